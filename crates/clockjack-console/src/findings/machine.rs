//! Findings about workers, timers, blocking threads, clocks and graphs: S06 to S09, S12 to S14.

use super::{Check, finding, time};
use crate::{
    state::{Counters, GraphRates, State, float, late_bucket, late_p99, seconds_between},
    view::{Finding, Number},
    watcher::at_place,
};

/// Fewer late timers than this are no finding.
const LATE_MIN: u64 = 3;

pub(super) fn check(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    saturated(check, state, found);
    late_timers(check, state);
    blocking(check, found);
    clock(check, state, found);
    graphs(check, state);
    console(check, state);
}

/// S06: all workers of a pool are busy, and more and more tasks wait.
fn saturated(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    let limits = check.thresholds;
    let workers = state.samples.workers();
    let is_busy = !workers.is_empty()
        && workers.iter().all(|one| one.busy().value.is_some_and(|busy| busy > limits.busy));
    let queue = state.rates.last.as_ref().map_or(0, Counters::queue);
    if !is_busy {
        state.memory.saturated = None;
        return;
    }
    let (since_ns, at_first) = *state.memory.saturated.get_or_insert((check.now_ns, queue));
    let for_ns = check.now_ns.saturating_sub(since_ns);
    if for_ns < limits.busy_for_ns || queue <= at_first {
        return;
    }
    let names = state.samples.top(3).into_iter().filter_map(|(place, share)| {
        let path = |actor: &clockjack_actor::inspect::ActorView<'_>| actor.path().to_string();
        let path = at_place(check.target, check.executors, place, path)?;
        Some(format!("{path} ({:.0} %)", share.or_zero() * 100.0))
    });
    let names: Vec<String> = names.collect();
    let n = workers.len();
    let most = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let text = format!(
        "all {n} workers are busy for {}, and {queue} tasks wait, {} more than at first{most}",
        time(for_ns),
        queue - at_first
    );
    let one = finding("S06", "workers", text)
        .with("busy", state.samples.busy(), limits.busy)
        .with("queue", queue, at_first);
    found.push(Finding { since_ms: for_ns / 1_000_000, ..one });
}

/// S07: timers fire late.
fn late_timers(check: &Check<'_>, state: &mut State) {
    let limit = check.thresholds.late_ticks;
    let Some(late) = state.rates.lateness() else { return };
    let Some(p99) = late_p99(&late).filter(|p99| *p99 > limit) else { return };
    // Of fewer than a hundred timers each one is more than a hundredth: one or two prove nothing.
    let n_beyond: u64 = late[late_bucket(p99)..].iter().sum();
    if n_beyond < LATE_MIN {
        return;
    }
    let n_late: u64 = late.iter().skip(1).sum();
    let worst = worst_worker(state);
    let who = worst.map_or_else(String::new, |(pool, worker)| {
        let pool = check.executors.get(pool).map_or("", |(name, _)| name);
        format!("; most of them on worker {worker} of {pool}")
    });
    let text =
        format!("of the timers of the last seconds, {n_late} were late, p99 {p99} ticks{who}");
    let one = finding("S07", "timers", text).with("p99 ticks", p99, limit);
    state.memory.happened("S07", check.now_ns, one);
}

/// The worker with the most late timers within the last window.
fn worst_worker(state: &State) -> Option<(usize, usize)> {
    let (before, last) = state.rates.window()?;
    let late = |counters: &Counters, at: (usize, usize)| -> u64 {
        let mut all = counters.workers.iter();
        let found = all.find(|(pool, one)| (*pool, one.worker) == at);
        found.map_or(0, |(_, one)| one.counts.timers_by_lateness.iter().skip(1).sum())
    };
    let places = last.workers.iter().map(|(pool, one)| (*pool, one.worker));
    let grown = places.map(|at| (late(last, at).saturating_sub(late(before, at)), at));
    grown.max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0).map(|(_, at)| at)
}

/// S12: no thread is left for blocking work.
fn blocking(check: &Check<'_>, found: &mut Vec<Finding>) {
    let Some((stats, threads_max)) = check.target.blocking() else { return };
    // While a thread is left, work waits only for as long as it takes to start or wake it.
    if stats.running < threads_max {
        return;
    }
    let text = format!(
        "{} of {threads_max} threads run blocking work, and {} closures wait",
        stats.running, stats.queued
    );
    let one = finding("S12", "blocking", text)
        .with("running", stats.running, threads_max)
        .with("queued", stats.queued, 1_u64)
        .with("refused", stats.refused, Number::UNKNOWN);
    found.push(one);
}

/// S13: the clock has jumped, or stands still.
fn clock(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    let warnings: Vec<(u64, String)> = check.target.log().clock.iter().cloned().collect();
    for (at_ns, text) in warnings {
        state.memory.happened("S13", at_ns, finding("S13", "clock", text));
    }
    let reads = check.target.system().scheduler().jobs().now().tick().get();
    let memory = &mut state.memory.clock;
    match *memory {
        Some((since_ns, time_ns)) if time_ns == reads => {
            let still_ns = check.now_ns.saturating_sub(since_ns);
            if still_ns >= check.thresholds.clock_still_ns {
                let text = format!("the scheduler's clock has not advanced for {}", time(still_ns));
                let limit = float(check.thresholds.clock_still_ns) / 1e9;
                let one =
                    finding("S13", "clock", text).with("seconds", float(still_ns) / 1e9, limit);
                found.push(Finding { since_ms: still_ns / 1_000_000, ..one });
            }
        }
        _ => *memory = Some((check.now_ns, reads)),
    }
}

/// S08 and S09: lanes that do not keep their rate, and edges that lose messages.
fn graphs(check: &Check<'_>, state: &mut State) {
    let mut new = Vec::new();
    for (name, graph) in state.graphs.iter() {
        for lane in &graph.lanes {
            new.extend(lane_finding(name, graph, &lane.lane));
        }
        for edge in graph.labels("channel_id") {
            new.extend(edge_finding(name, graph, edge));
        }
    }
    for (code, one) in new {
        state.memory.happened(code, check.now_ns, one);
    }
}

fn lane_finding(name: &str, graph: &GraphRates, lane: &str) -> Option<(&'static str, Finding)> {
    let overruns = graph.grown(Some(lane), |lane| lane.overruns)?;
    let skipped = graph.grown(Some(lane), |lane| lane.skipped)?;
    if overruns + skipped == 0 {
        return None;
    }
    let slow = graph.labels("component_id").into_iter().map(|component| {
        (graph.metric("runtime.component.max_duration_ns", component).or_zero(), component)
    });
    let slowest = slow.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(ns, _)| *ns > 0.0);
    let who = slowest.map_or_else(String::new, |(ns, component)| {
        format!("; the slowest component is {component} with {:.1} ms", ns / 1e6)
    });
    let text =
        format!("lane {lane} of {name}: {overruns} ticks took too long, {skipped} skipped{who}");
    let one = finding("S08", format!("{name}/{lane}"), text)
        .with("overruns", overruns, 1_u64)
        .with("skipped", skipped, 1_u64);
    Some(("S08", one))
}

fn edge_finding(name: &str, graph: &GraphRates, edge: &str) -> Option<(&'static str, Finding)> {
    const LOSSES: &[(&str, &str)] = &[
        ("runtime.channel.drop_count", "dropped"),
        ("runtime.channel.reject_count", "rejected"),
        ("runtime.channel.stale_drop_count", "too old"),
    ];
    let mut one = finding("S09", format!("{name}/{edge}"), "");
    let mut parts = Vec::new();
    for (metric, what) in LOSSES {
        let grown = graph.metric_grown(metric, edge).filter(|grown| *grown > 0.0);
        if let Some(grown) = grown {
            parts.push(format!("{grown:.0} {what}"));
            one = one.with(what, grown, 1_u64);
        }
    }
    if parts.is_empty() {
        return None;
    }
    one.text = format!("edge {edge} of {name} loses messages: {}", parts.join(", "));
    Some(("S09", one))
}

/// S14: the console has lost events or samples.
fn console(check: &Check<'_>, state: &mut State) {
    let events = check.target.log().lost;
    let lost_now = (events, state.samples.lost);
    let before = core::mem::replace(&mut state.memory.lost, lost_now);
    let events = lost_now.0.saturating_sub(before.0);
    // A sampling thread on a loaded machine is late now and then: a tenth of them matters.
    let samples = lost_now.1.saturating_sub(before.1);
    let last_ns = state.looked_ns.map(|(_, last)| last);
    let seconds = last_ns.and_then(|last| seconds_between(last, check.now_ns)).unwrap_or(1.0);
    let is_many = float(samples) > 100.0 * seconds;
    if events == 0 && !is_many {
        return;
    }
    let text = format!("the console has lost {events} events and {samples} samples");
    let one = finding("S14", "console", text).with("events", events, 1_u64).with(
        "samples per second",
        float(samples) / seconds,
        100.0,
    );
    // What was lost now is missing in the numbers for a while.
    state.memory.happened("S14", check.now_ns, one);
}
