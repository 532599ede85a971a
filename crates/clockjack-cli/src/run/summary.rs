//! The result of a run in every output format, and its exit code.

use core::{fmt::Write as _, time::Duration};

use clockjack_graph::{
    compile::Plan,
    run::{
        ChainReport, LaneAdvice, LaneReport, LiveLane, Loss, Metric, Metrics, RunReport,
        SilentInput,
    },
};
use clockjack_observe::{prometheus, samples::SampleSet};
use clockjack_rt::signals::StopSignal;
use serde_json::{Value, json};

use super::{
    RunResult,
    known_losses::{known_losses, whole},
};
use crate::exit_code;

/// The schema version of the records.
const SCHEMA_VERSION: &str = "1";

/// What a run must keep to, besides not failing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demands {
    /// How many ticks may exceed their period; `None`: any number.
    pub(crate) overruns_max: Option<u64>,
    /// No message may be lost.
    pub(crate) denies_loss: bool,
    /// No chain may exceed its budget, no message its deadline, and no input may be silent.
    pub(crate) denies_late: bool,
}

/// The exit code of a run. A failure takes precedence over an interruption, an interruption over
/// late ticks and data, and these over lost messages.
pub(crate) fn exit_code(result: &RunResult, demands: Demands) -> u8 {
    if result.error.is_some() {
        return exit_code::RUN_FAILED;
    }
    if result.was_interrupted {
        return result.signal.map_or(exit_code::INTERRUPTED, StopSignal::exit_code);
    }
    if demands.overruns_max.is_some_and(|max| overruns(result) > max) {
        return exit_code::OVERRUN;
    }
    if demands.denies_late && result.report.as_ref().is_some_and(|report| report.n_late() > 0) {
        return exit_code::OVERRUN;
    }
    if demands.denies_loss && result.report.as_ref().is_some_and(|report| report.n_lost() > 0) {
        return exit_code::ASSERTION_FAILED;
    }
    exit_code::OK
}

/// The number of ticks that exceeded their period.
fn overruns(result: &RunResult) -> u64 {
    let Some(report) = &result.report else { return 0 };
    whole(report.metrics.total("runtime.scheduler.tick_overrun_count"))
}

/// The result as text.
pub(crate) fn text(plan: &Plan, result: &RunResult) -> String {
    let mut out = String::new();
    if let Some(report) = &result.report {
        let simulated = seconds(u128::from(report.elapsed_ns));
        push_line(&mut out, format_args!("{}: {}", plan.name, report.stop));
        push_line(&mut out, format_args!("  epochs      {}", report.epochs));
        push_line(&mut out, format_args!("  calls       {}", report.executions));
        push_line(&mut out, format_args!("  time        {simulated}"));
        push_line(&mut out, format_args!("  parallel    {}", report.overlap_max));
        lanes(&mut out, plan, &report.metrics);
        remarks(&mut out, plan, report);
    }
    out.push_str(&ending(plan, result));
    out
}

/// What a user should know about a run besides its results: settings without effect, losses,
/// latencies, loops and faults.
pub(super) fn remarks(out: &mut String, plan: &Plan, report: &RunReport) {
    for lane in &report.lanes {
        for LaneAdvice { field, why } in &lane.advisory {
            push_line(out, format_args!("lane {}: `{field}` has no effect: {why}", lane.lane));
        }
    }
    losses(out, report);
    latencies(out, plan, report);
    for one in &report.loops {
        let residual = one.residual.map_or(String::new(), |value| format!(", residual {value}"));
        push_line(out, format_args!("loop {}: {}{residual}", one.id, one.reason));
    }
    for fault in &report.faults {
        push_line(out, format_args!("fault: {fault}"));
    }
    if report.n_faults_dropped > 0 {
        push_line(out, format_args!("{} more faults were not stored", report.n_faults_dropped));
    }
}

/// How a run ended, if it did not end by itself.
pub(super) fn ending(plan: &Plan, result: &RunResult) -> String {
    let mut out = String::new();
    if let Some(error) = &result.error {
        push_line(&mut out, format_args!("{}: the run failed: {error}", plan.name));
    }
    if let Some(metrics) = &result.abandoned {
        let known = known_losses(plan, metrics);
        if !known.is_empty() {
            let n_lost: u64 = known.iter().map(|one| one.count).sum();
            push_line(&mut out, format_args!("messages lost, as last counted: {n_lost}"));
            known.iter().for_each(|one| push_line(&mut out, format_args!("  {one}")));
        }
        push_line(
            &mut out,
            format_args!(
                "{}: abandoned: a callback did not return; components were not deactivated",
                plan.name
            ),
        );
    } else if result.was_interrupted {
        push_line(&mut out, format_args!("interrupted: the work in progress was completed"));
    }
    out
}

/// One line per lane.
pub(super) fn lanes(out: &mut String, plan: &Plan, metrics: &Metrics) {
    push_line(
        out,
        format_args!("{:<20} {:>10} {:>10} {:>10}", "lane", "ticks", "overruns", "skipped"),
    );
    for lane in &plan.lanes {
        let id = lane.spec.id.as_str();
        let of = |name| metrics.get(name, id).unwrap_or(0.0);
        let ticks = of("runtime.scheduler.tick_count");
        let over = of("runtime.scheduler.tick_overrun_count");
        let skipped = of("runtime.scheduler.skipped_tick_count");
        push_line(out, format_args!("{id:<20} {ticks:>10} {over:>10} {skipped:>10}"));
    }
}

/// The messages that no component saw, by place and cause; nothing if there are none.
fn losses(out: &mut String, report: &RunReport) {
    if report.losses.is_empty() {
        return;
    }
    let n_left: u64 =
        report.losses.iter().filter(|one| one.is_run_ended()).map(|one| one.count).sum();
    push_line(
        out,
        format_args!("messages lost: {}, not read at the end: {n_left}", report.n_lost()),
    );
    for loss in &report.losses {
        push_line(out, format_args!("  {loss}"));
    }
}

/// The latencies of all chains, and what was late on edges; nothing for a graph without budgets.
fn latencies(out: &mut String, plan: &Plan, report: &RunReport) {
    for chain in &report.chains {
        push_line(out, format_args!("{chain}"));
    }
    for edge in &plan.edges {
        let missed = report.metrics.get("runtime.channel.deadline_miss_count", &edge.id);
        if let Some(missed) = missed.filter(|missed| *missed > 0.0) {
            let (id, max) = (&edge.id, edge.policy.deadline_ms);
            let were = if missed < 2.0 { "message was" } else { "messages were" };
            push_line(out, format_args!("edge {id}: {missed} {were} read later than {max} ms"));
        }
    }
    for input in &report.silent_inputs {
        push_line(out, format_args!("{input}"));
    }
}

pub(super) fn push_line(out: &mut String, text: core::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
    out.push('\n');
}

/// Nanoseconds as seconds, without rounding.
pub(super) fn seconds(nanos: u128) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The result as one JSON object. Only `timing` depends on the machine.
pub(crate) fn json(plan: &Plan, result: &RunResult) -> Value {
    let mut value = head(plan, result);
    if let Some(report) = &result.report {
        let metrics: Vec<Value> = report.metrics.iter().map(metric).collect();
        value["metrics"] = metrics.into();
        value["faults"] = faults(result).into();
        value["loops"] = loops(result).into();
        value["chains"] = report.chains.iter().map(chain).collect();
        value["silent_inputs"] = report.silent_inputs.iter().map(silent_input).collect();
        value["lanes"] = report.lanes.iter().map(lane).collect();
    }
    value["losses"] = losses_json(plan, result).into();
    value
}

/// The messages that no component saw, by place and cause; those of a run that was abandoned as
/// last counted.
pub(crate) fn losses_json(plan: &Plan, result: &RunResult) -> Vec<Value> {
    match (&result.report, &result.abandoned) {
        (Some(report), _) => report.losses.iter().map(loss).collect(),
        (None, Some(metrics)) => known_losses(plan, metrics).iter().map(|one| one.json()).collect(),
        (None, None) => Vec::new(),
    }
}

/// The result as one JSON object per line; the summary is the last.
pub(crate) fn lines(plan: &Plan, result: &RunResult) -> String {
    let mut out = String::new();
    let mut put = |record: &str, mut value: Value| {
        value["record"] = record.into();
        push_line(&mut out, format_args!("{value}"));
    };
    if let Some(report) = &result.report {
        report.metrics.iter().for_each(|one| put("metric", metric(one)));
        report.lanes.iter().for_each(|one| put("lane", lane(one)));
        report.chains.iter().for_each(|one| put("chain", chain(one)));
        report.silent_inputs.iter().for_each(|one| put("silent_input", silent_input(one)));
    }
    losses_json(plan, result).into_iter().for_each(|one| put("loss", one));
    faults(result).into_iter().for_each(|one| put("fault", one));
    loops(result).into_iter().for_each(|one| put("loop", one));
    put("summary", head(plan, result));
    out
}

/// The summary without the lists.
pub(crate) fn head(plan: &Plan, result: &RunResult) -> Value {
    let report = result.report.as_ref();
    json!({
        "result_schema_version": SCHEMA_VERSION,
        "graph": plan.name,
        "ok": result.error.is_none(),
        "error": result.error,
        "interrupted": result.was_interrupted,
        "abandoned": result.abandoned.is_some(),
        "stop_reason": report.map(|report| report.stop.name()),
        "epochs": report.map(|report| report.epochs),
        "executions": report.map(|report| report.executions),
        "elapsed_ns": report.map(|report| report.elapsed_ns),
        "n_lost": report.map(RunReport::n_lost),
        "n_late": report.map(RunReport::n_late),
        "n_faults_dropped": report.map(|report| report.n_faults_dropped),
        "timing": {
            "wall_ns": u64::try_from(result.wall.as_nanos()).unwrap_or(u64::MAX),
            "overlap_max": report.map(|report| report.overlap_max),
        },
    })
}

fn faults(result: &RunResult) -> Vec<Value> {
    let faults = result.report.iter().flat_map(|report| &report.faults);
    let record = faults.map(|fault| {
        json!({
            "phase": fault.phase.name(),
            "component": fault.component,
            "lane": fault.lane,
            "message": fault.message,
            "epoch": fault.epoch,
            "fatal": fault.is_fatal,
        })
    });
    record.collect()
}

/// Messages that were lost for one cause at one place.
fn loss(one: &Loss) -> Value {
    json!({
        "place": one.place.kind(),
        "id": one.place.id(),
        "cause": one.cause.name(),
        "count": one.count,
        "description": one.cause.description(),
        "hint": one.hint(),
    })
}

/// The latencies of a chain.
fn chain(one: &ChainReport) -> Value {
    json!({
        "id": one.id,
        "from": one.from,
        "to": one.to,
        "max_ms": millis(one.max),
        "samples": one.samples,
        "violations": one.violations,
        "p50_ms": one.p50_ms,
        "p99_ms": one.p99_ms,
        "longest_ms": one.longest_ms,
    })
}

/// An input at which nothing arrived for too long.
fn silent_input(one: &SilentInput) -> Value {
    json!({
        "channel_id": one.edge,
        "component_id": one.component,
        "max_silence_ms": millis(one.max),
        "count": one.count,
        "longest_ms": millis(one.longest),
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn loops(result: &RunResult) -> Vec<Value> {
    let loops = result.report.iter().flat_map(|report| &report.loops);
    loops.map(|one| json!({"id": one.id, "residual": one.residual, "reason": one.reason})).collect()
}

/// All metrics as one JSON object.
pub(crate) fn metrics_json(metrics: &Metrics) -> Value {
    let list: Vec<Value> = metrics.iter().map(metric).collect();
    json!({"result_schema_version": SCHEMA_VERSION, "metrics": list})
}

/// The health events as one JSON object.
pub(crate) fn health_json(report: &RunReport) -> Value {
    let list = report.health.iter().map(|one| {
        json!({
            "kind": one.kind.name(),
            "source": one.kind.source(),
            "component_id": one.component,
            "lane": one.lane,
            "channel_id": one.edge,
            "chain_id": one.chain,
            "policy": one.policy,
            "occurrence_count": one.occurrence_count,
            "sequence": one.sequence,
            "depth": one.depth,
            "capacity": one.capacity,
            "observed_ns": one.observed_ns,
        })
    });
    json!({"result_schema_version": SCHEMA_VERSION, "health": list.collect::<Vec<_>>()})
}

/// The settings of a lane that were in effect.
fn lane(one: &LaneReport) -> Value {
    let advice = |one: &LaneAdvice| json!({"field": one.field, "why": one.why});
    let advisory: Vec<Value> = one.advisory.iter().map(advice).collect();
    json!({
        "id": one.lane,
        "own_thread": one.has_thread,
        "enforced": one.enforced,
        "advisory": advisory,
    })
}

fn metric(one: &Metric) -> Value {
    let mut value = json!({"name": one.name, "kind": one.kind.name(), "value": one.value});
    if let Some((label, whose)) = &one.label {
        value["labels"] = json!({ *label: whose });
    }
    value
}

/// All metrics of the graph and of the runtime in Prometheus format.
pub(crate) fn prometheus(
    metrics: &Metrics,
    host: &SampleSet,
) -> Result<String, prometheus::ExportError> {
    let mut all = SampleSet::new();
    metrics.add_to(&mut all, &[]);
    all.append(host.clone());
    all.prometheus()
}

/// One progress line per lane: calls per second, overruns, skipped ticks and drops.
pub(crate) fn live(lanes: &[LiveLane], wall_ms: u128) -> Vec<String> {
    let columns = lanes.iter().map(|lane| lane.lane.len()).max().unwrap_or(0);
    let line = |lane: &LiveLane| {
        let rate = u128::from(lane.calls) * 1000 / wall_ms.max(1);
        let LiveLane { lane: id, overruns, skipped, drops, .. } = lane;
        format!("{id:<columns$} {rate:>9}/s  {overruns} overruns, {skipped} skipped, {drops} drops")
    };
    lanes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clockjack_graph::{
        GraphFile, Registry,
        run::{MetricKind, RunStopReason},
    };

    use super::*;

    fn result(overruns: f64) -> RunResult {
        let name = "runtime.scheduler.tick_overrun_count";
        let label = Some(("lane", String::from("main")));
        let metric =
            Metric { name: name.into(), kind: MetricKind::Counter, label, value: overruns };
        let report = RunReport {
            stop: RunStopReason::TickBound,
            epochs: 7,
            executions: 9,
            elapsed_ns: 1_500_000_000,
            faults: Vec::new(),
            n_faults_dropped: 0,
            n_fed_dropped: 0,
            overlap_max: 1,
            parallel_epochs: 0,
            snapshots: Vec::new(),
            health: Vec::new(),
            lanes: Vec::new(),
            loops: Vec::new(),
            chains: Vec::new(),
            silent_inputs: Vec::new(),
            losses: Vec::new(),
            metrics: Metrics { list: vec![metric], ..Metrics::default() },
        };
        let wall = Duration::from_millis(1);
        RunResult {
            report: Some(report),
            error: None,
            was_interrupted: false,
            signal: None,
            abandoned: None,
            wall,
            host: SampleSet::new(),
            workers: None,
        }
    }

    #[test]
    fn numbers_of_components_own_are_written_with_those_of_the_runtime() {
        let mut result = result(3.0);
        let report = result.report.as_mut().expect("the run has a report");
        report.metrics.user.push(Metric {
            name: "solve_ms.p95".into(),
            kind: MetricKind::Gauge,
            label: Some(("component_id", "ctl".into())),
            value: 1.5,
        });
        let text = prometheus(&report.metrics, &SampleSet::new()).expect("the names are valid");
        assert!(text.contains("{component_id=\"ctl\"} "), "{text}");
        let value = metric(&report.metrics.user[0]);
        assert_eq!(value["labels"]["component_id"], "ctl");
        assert_eq!(value["name"], "solve_ms.p95");
    }

    #[test]
    fn exit_code_7_is_more_overruns_than_are_allowed() {
        let with = |overruns_max| Demands { overruns_max, ..Demands::default() };
        assert_eq!(exit_code(&result(3.0), with(None)), 0, "there is no limit");
        assert_eq!(exit_code(&result(3.0), with(Some(3))), 0);
        assert_eq!(exit_code(&result(3.0), with(Some(2))), 7);
    }

    #[test]
    fn a_failure_says_more_than_an_interrupt_and_that_more_than_an_overrun() {
        let mut both = RunResult { was_interrupted: true, ..result(3.0) };
        let demands = Demands { overruns_max: Some(0), denies_loss: true, denies_late: true };
        assert_eq!(exit_code(&both, demands), 130);
        both.signal = Some(StopSignal::Terminate);
        assert_eq!(exit_code(&both, demands), 143);
        both.error = Some(String::from("it broke"));
        assert_eq!(exit_code(&both, demands), 5);
    }

    #[test]
    fn an_abandoned_run_shows_the_losses_of_its_last_metrics() {
        let of_edge = |name: &'static str, edge: &str, value| Metric {
            name: name.into(),
            kind: MetricKind::Counter,
            label: Some(("channel_id", edge.into())),
            value,
        };
        let list = vec![
            of_edge("runtime.channel.drop_count", "sense", 43.0),
            of_edge("runtime.channel.drop_count", "state", 0.0),
            of_edge("runtime.channel.stale_drop_count", "sense", 1.0),
        ];
        let abandoned = Some(Metrics { list, ..Metrics::default() });
        let result = RunResult { report: None, abandoned, was_interrupted: true, ..result(0.0) };
        let text = include_str!("../../tests/graphs/cell.yaml");
        let graph = GraphFile::parse("cell.yaml", text).expect("it is right");
        let graph = graph.compile(&Registry::standard()).expect("it is right");
        let text = ending(graph.plan(), &result);
        let expected = "messages lost, as last counted: 44\n  edge sense: 43 messages dropped \
                        because the edge was full; ";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\n  edge sense: 1 message older than `lifespan_ms`"), "{text}");
        assert!(!text.contains("edge state"), "{text}");
        let losses = losses_json(graph.plan(), &result);
        assert_eq!(losses.len(), 2, "{losses:?}");
        assert_eq!((&losses[0]["cause"], &losses[0]["count"]), (&"edge_full".into(), &43.into()));
    }

    #[test]
    fn times_are_shown_exactly() {
        let shown = [0, 1, 1_500_000_000, 10_000_000_000].map(seconds);
        assert_eq!(shown, ["0 s", "0.000000001 s", "1.5 s", "10 s"]);
    }

    #[test]
    fn each_lane_has_a_live_line() {
        let lane = |id: &str, drops| LiveLane {
            lane: id.into(),
            calls: 500,
            ticks: 100,
            overruns: 2,
            drops,
            ..LiveLane::default()
        };
        let lines = live(&[lane("a", 0), lane("long", 3)], 1000);
        let rest = "      500/s  2 overruns, 0 skipped,";
        assert_eq!(lines, [format!("a    {rest} 0 drops"), format!("long {rest} 3 drops")]);
    }
}
