//! Graphs.

use crate::{
    Target,
    state::{GraphRates, State},
    view::{ComponentRow, EdgeRow, GraphRow, GraphView, Graphs, LaneRow, LoopRow, Number},
};

pub(super) fn graphs(target: &Target) -> Graphs {
    let state = target.state();
    let rows = target.graphs().into_iter();
    let rows = rows.map(|(name, run)| row(&state, name, run.has_ended()));
    Graphs { rows: rows.collect() }
}

fn row(state: &State, name: String, has_ended: bool) -> GraphRow {
    let Some(graph) = state.graphs.get(&name) else {
        return GraphRow { name, is_running: !has_ended, ..GraphRow::default() };
    };
    let epochs_rate = graph.rate(None, |lane| lane.epochs);
    let components = graph.labels("component_id").len();
    GraphRow {
        name,
        is_running: !has_ended,
        components: if components > 0 { Number::size(components) } else { Number::UNKNOWN },
        epochs_rate,
        calls_rate: graph.rate(None, |lane| lane.calls),
        drops: graph.sum(|lane| lane.drops),
        overruns: graph.sum(|lane| lane.overruns),
        skipped: graph.sum(|lane| lane.skipped),
    }
}

pub(super) fn graph(target: &Target, name: &str) -> Option<GraphView> {
    let (_, run) = target.graphs().into_iter().find(|(other, _)| other == name)?;
    let state = target.state();
    let row = row(&state, name.to_owned(), run.has_ended());
    let Some(graph) = state.graphs.get(name) else {
        return Some(GraphView { graph: row, ..GraphView::default() });
    };
    let labels = graph.labels("component_id");
    let is_loop = |id: &&&str| !graph.metric("runtime.loop.iterations", id).is_unknown();
    let (loops, components): (Vec<&&str>, Vec<&&str>) = labels.iter().partition(|id| is_loop(id));
    Some(GraphView {
        graph: row,
        lanes: graph.lanes.iter().map(|lane| lane_row(graph, &lane.lane)).collect(),
        components: components.into_iter().map(|id| component_row(graph, id)).collect(),
        edges: graph.labels("channel_id").into_iter().map(|id| edge_row(graph, id)).collect(),
        loops: loops.into_iter().map(|id| loop_row(graph, id)).collect(),
    })
}

fn lane_row(graph: &GraphRates, lane: &str) -> LaneRow {
    let now = graph.lanes.iter().find(|one| one.lane == lane);
    let known = now.filter(|one| one.epochs > 0);
    let number = |of: fn(&clockjack_graph::run::LiveLane) -> u64| {
        known.map_or(Number::UNKNOWN, |one| Number::count(of(one)))
    };
    LaneRow {
        lane: lane.to_owned(),
        ticks_rate: graph.rate(Some(lane), |one| one.ticks),
        calls_rate: graph.rate(Some(lane), |one| one.calls),
        overruns: number(|one| one.overruns),
        skipped: number(|one| one.skipped),
        drops: number(|one| one.drops),
    }
}

fn component_row(graph: &GraphRates, id: &str) -> ComponentRow {
    ComponentRow {
        component: id.to_owned(),
        calls: graph.metric("runtime.component.execution_count", id),
        calls_rate: graph.metric_rate("runtime.component.execution_count", id),
        p50_ns: graph.metric("runtime.component.p50_duration_ns", id),
        p99_ns: graph.metric("runtime.component.p99_duration_ns", id),
        errors: graph.metric("runtime.component.error_count", id),
        ..ComponentRow::default()
    }
}

fn edge_row(graph: &GraphRates, id: &str) -> EdgeRow {
    let age = graph.metric("runtime.channel.message_age_ms", id);
    EdgeRow {
        edge: id.to_owned(),
        delivered: graph.metric("runtime.channel.delivery_count", id),
        rate: graph.metric_rate("runtime.channel.delivery_count", id),
        drops: graph.metric("runtime.channel.drop_count", id),
        rejected: graph.metric("runtime.channel.reject_count", id),
        stale: graph.metric("runtime.channel.stale_drop_count", id),
        age_ns: age.value.map(|ms| ms * 1e6).into(),
        ..EdgeRow::default()
    }
}

fn loop_row(graph: &GraphRates, id: &str) -> LoopRow {
    LoopRow {
        name: id.to_owned(),
        iterations: graph.metric("runtime.loop.iterations", id),
        exhausted: graph.metric("runtime.loop.max_iterations_hit", id),
    }
}
