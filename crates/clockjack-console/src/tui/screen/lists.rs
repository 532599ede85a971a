//! The tabs that are tables.

use super::{Column, Content, State, format, has_estimates, sweep};
use crate::view::{
    ActorRow, ActorState, Events, Graphs, JobRow, Number, Page, TreeRow, WorkerRow, Workers,
};

/// The depth of a mailbox, with its capacity if it has one.
pub(super) fn depth(depth: Number, capacity: Number) -> String {
    if capacity.is_unknown() {
        return format::count(depth);
    }
    format!("{}/{}", format::count(depth), format::count(capacity))
}

/// The state; what is wrong is in capitals, as colour alone is no mark.
pub(super) fn state_name(state: ActorState) -> String {
    match state {
        ActorState::Unknown => "-".into(),
        ActorState::Stuck | ActorState::Failed | ActorState::Restarting => {
            state.name().to_uppercase()
        }
        _ => state.name().into(),
    }
}

fn is_bad(state: ActorState) -> bool {
    matches!(state, ActorState::Stuck | ActorState::Failed | ActorState::Restarting)
}

const ACTORS: &[Column] = &[
    Column::path("PATH"),
    Column::left("STATE", 10),
    Column::right("DEPTH", 11),
    Column::right("RATE", 9),
    Column::right("WAIT", 7),
    Column::right("TIME%", 5),
    Column::right("RESTARTS", 8),
    Column::left("TYPE", 20).from(100),
];

pub(super) fn actors(state: &State, width: usize) -> Option<Content> {
    let page: Page<ActorRow> = state.main()?;
    let row = |row: &ActorRow| {
        vec![
            format::plain(&row.path),
            state_name(row.state),
            depth(row.depth, row.capacity),
            format::rate(row.rate),
            format::time(row.wait_ns),
            format::percent(row.share),
            format::count(row.restarts),
            format::type_name(&row.type_name),
        ]
    };
    let mut text = format!("{} actors{}", format::count(page.total), sweep(page.sweep.as_ref()));
    if !state.filter.is_empty() {
        text.push_str(&format!(", {} match `{}`", format::count(page.matches), state.filter));
    }
    if page.page > 0 || page.has_more {
        text.push_str(&format!(", page {}", page.page + 1));
    }
    if has_estimates(page.rows.iter().map(|row| row.share)) {
        text.push_str("   ~ sampled");
    }
    let rows = page.rows.iter().map(row).collect();
    let content = Content::table(ACTORS, rows, width, text);
    Some(content.mark(|index| is_bad(page.rows[index].state)))
}

const TREE: &[Column] = &[
    Column::path("CHILD"),
    Column::left("STATE", 10),
    Column::right("CHILDREN", 8),
    Column::right("BELOW", 9),
    Column::right("DEPTH", 9),
    Column::right("DEPTH BELOW", 11),
    Column::right("RATE BELOW", 10),
    Column::right("RESTARTS", 8).from(100),
    Column::left("TYPE", 20).from(110),
];

pub(super) fn tree(state: &State, width: usize) -> Option<Content> {
    let page: Page<TreeRow> = state.main()?;
    let row = |row: &TreeRow| {
        vec![
            format::plain(&row.actor.path),
            state_name(row.actor.state),
            format::count(row.children),
            format::count(row.below),
            depth(row.actor.depth, row.actor.capacity),
            format::count(row.depth_below),
            format::rate(row.rate_below),
            format::count(row.restarts_below),
            format::type_name(&row.actor.type_name),
        ]
    };
    let children = format::count(page.total);
    let sweep = sweep(page.sweep.as_ref());
    let text =
        format!("{children} children of {}{sweep}   right opens, left leaves", state.tree_at);
    let rows = page.rows.iter().map(row).collect();
    let content = Content::table(TREE, rows, width, text);
    Some(content.mark(|index| is_bad(page.rows[index].actor.state)))
}

const JOBS: &[Column] = &[
    Column::left("JOB", 10),
    Column::left("MODE", 6),
    Column::left("STATE", 10),
    Column::right("DUE IN", 8),
    Column::right("PERIOD", 8),
    Column::right("BACKLOG", 7),
    Column::right("MISSED", 7),
    Column::rest("POLICY"),
];

pub(super) fn jobs(state: &State, width: usize) -> Option<Content> {
    let page: Page<JobRow> = state.main()?;
    let row = |row: &JobRow| {
        vec![
            format::plain(&row.job),
            row.mode.clone(),
            row.state.clone(),
            format::time(row.due_in_ns),
            format::time(row.period_ns),
            format::count(row.backlog),
            format::count(row.missed),
            format::plain(&row.policy),
        ]
    };
    let text = format!("{} jobs", format::count(page.total));
    let rows = page.rows.iter().map(row).collect();
    Some(Content::table(JOBS, rows, width, text))
}

const GRAPHS: &[Column] = &[
    Column::rest("GRAPH"),
    Column::left("STATE", 7),
    Column::right("COMPONENTS", 10),
    Column::right("EPOCHS", 10),
    Column::right("CALLS", 10),
    Column::right("DROPS", 8),
    Column::right("OVERRUNS", 8),
    Column::right("SKIPPED", 8),
];

pub(super) fn graphs(state: &State, width: usize) -> Option<Content> {
    let graphs: Graphs = state.main()?;
    let rows = graphs.rows.iter().map(|row| {
        vec![
            format::plain(&row.name),
            if row.is_running { "running" } else { "ended" }.into(),
            format::count(row.components),
            format::rate(row.epochs_rate),
            format::rate(row.calls_rate),
            format::count(row.drops),
            format::count(row.overruns),
            format::count(row.skipped),
        ]
    });
    let text = match graphs.rows.len() {
        0 => "the program shows no graph: `Console::graph(name, &run)`".to_owned(),
        n => format!("{n} graphs"),
    };
    Some(Content::table(GRAPHS, rows.collect(), width, text))
}

const EVENTS: &[Column] = &[
    Column::right("NUMBER", 8),
    Column::right("TIME", 10),
    Column::left("KIND", 12),
    Column::rest("WHAT"),
];

pub(super) fn events(state: &State, width: usize) -> Option<Content> {
    let events: Events = state.main()?;
    let rows = events.rows.iter().rev().map(|row| {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let seconds = row.at_ns as f64 / 1e9;
        let text = match &row.path {
            Some(path) if !row.text.contains(path.as_str()) => format!("{path}: {}", row.text),
            _ => row.text.clone(),
        };
        vec![
            row.number.to_string(),
            format!("{seconds:.3}"),
            row.kind.clone(),
            format::plain(&text),
        ]
    });
    let mut text = format!("{} events, the newest first", events.rows.len());
    if events.lost.or_zero() > 0.0 {
        text.push_str(&format!(", {} lost", format::count(events.lost)));
    }
    Some(Content::table(EVENTS, rows.collect(), width, text))
}

const WORKERS: &[Column] = &[
    Column::left("POOL", 10),
    Column::right("#", 3),
    Column::right("BUSY%", 5),
    Column::right("STEPS", 9),
    Column::right("STOLEN", 9).from(100),
    Column::right("PARKS", 9),
    Column::right("RING", 5),
    Column::right("LONGEST", 8),
    Column::right("TIMERS", 7).from(100),
    Column::right("LATE", 6).from(100),
    Column::rest("RUNS NOW"),
];

pub(super) fn workers(state: &State, width: usize) -> Option<Content> {
    let workers: Workers = state.main()?;
    let running = |row: &WorkerRow| {
        row.running.as_ref().map_or("-".to_owned(), |running| {
            let name = if running.name.is_empty() { &running.type_name } else { &running.name };
            format!("{} {}", format::plain(name), format::time(running.for_ns))
        })
    };
    let rows = workers.rows.iter().map(|row| {
        vec![
            format::plain(&row.pool),
            row.worker.to_string(),
            format::percent(row.busy),
            format::rate(row.steps_rate),
            format::rate(row.steals_in_rate),
            format::rate(row.parks_rate),
            format::count(row.ring),
            format::time(row.longest_ns),
            format::count(row.timers),
            format::count(row.late_max_ticks),
            running(row),
        ]
    });
    let text = format!(
        "{} workers, {} tasks wait for any of them",
        workers.rows.len(),
        format::count(workers.injector)
    );
    Some(Content::table(WORKERS, rows.collect(), width, text))
}
