//! What the runtime below a graph has counted: its executor, its scheduler and its actors. Together
//! with the graph's own counts it is all that `--metrics` tells.

use clockjack_observe::samples::Sample;
use clockjack_rt::Runtime;
use clockjack_rt::actor::SystemMetrics;
use clockjack_rt::exec::ExecStats;
use clockjack_sched::SchedulerMetrics;

/// A count, with what it means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCount {
    name: &'static str,
    help: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// It only grows.
    Counter(u64),
    /// It goes up and down.
    Gauge(u64),
}

const fn counter(name: &'static str, help: &'static str, value: u64) -> HostCount {
    HostCount { name, help, value: Value::Counter(value) }
}

const fn gauge(name: &'static str, help: &'static str, value: u64) -> HostCount {
    HostCount { name, help, value: Value::Gauge(value) }
}

/// What there is to tell of a runtime.
pub(crate) fn counts(runtime: &Runtime) -> Vec<HostCount> {
    let system = runtime.system();
    let mut all = executor(&runtime.pool().stats());
    all.extend(scheduler(&system.scheduler().metrics()));
    all.extend(actors(&system.metrics()));
    all
}

fn executor(exec: &ExecStats) -> Vec<HostCount> {
    vec![
        counter("executor.spawned_count", "Processes that were started.", exec.spawned),
        counter("executor.finished_count", "Processes that have ended.", exec.finished),
        counter("executor.step_count", "Steps that workers made.", exec.steps),
        counter(
            "executor.stolen_count",
            "Processes that were taken from another worker.",
            exec.stolen,
        ),
        counter("executor.parked_count", "How often a worker went to sleep.", exec.parked),
        counter("executor.timer_armed_count", "Timers that were armed.", exec.timers_armed),
        counter("executor.timer_fired_count", "Timers that fired.", exec.timers_fired),
        counter(
            "executor.timer_cancelled_count",
            "Timers that were cancelled.",
            exec.timers_cancelled,
        ),
        gauge("executor.timer_pending", "Timers that are armed.", exec.timers_pending),
        gauge(
            "executor.lateness_max_ticks",
            "The largest lateness of a timer.",
            exec.lateness_max_ticks,
        ),
    ]
}

fn scheduler(jobs: &SchedulerMetrics) -> Vec<HostCount> {
    vec![
        gauge("scheduler.active", "Jobs that live.", jobs.active_total as u64),
        gauge("scheduler.periodic", "Jobs that live and repeat.", jobs.periodic_total as u64),
        counter("scheduler.accepted_count", "Jobs that were accepted.", jobs.accepted_total),
        counter("scheduler.fired_count", "Runs that were handed over.", jobs.fired_total),
        counter(
            "scheduler.executed_count",
            "Jobs that have run for the last time.",
            jobs.executed_total,
        ),
        counter("scheduler.cancelled_count", "Jobs that were cancelled.", jobs.cancelled_total),
        counter("scheduler.failed_count", "Runs whose handler failed.", jobs.failed_total),
        counter(
            "scheduler.dropped_count",
            "Jobs that were given up for want of room.",
            jobs.dropped_total,
        ),
        gauge("scheduler.lateness_max_ns", "How late a run came due, at most.", jobs.lateness.max),
    ]
}

fn actors(actors: &SystemMetrics) -> Vec<HostCount> {
    vec![
        gauge("actors.live", "Actors that have not ended.", actors.live as u64),
        counter("actors.spawned_count", "Actors that were spawned.", actors.spawned as u64),
        counter("actors.stopped_count", "Actors that have ended.", actors.stopped as u64),
        counter(
            "actors.restart_count",
            "How often an actor was made anew.",
            actors.restarts as u64,
        ),
        counter("actors.failure_count", "Failures of actors.", actors.failures as u64),
        counter(
            "actors.dead_letter_count",
            "Messages that reached nobody.",
            actors.dead_letters_total() as u64,
        ),
    ]
}

impl HostCount {
    /// As exporters take it.
    pub(crate) fn sample(&self) -> Sample<'_> {
        let sample = match self.value {
            Value::Counter(value) => Sample::counter(self.name, value),
            Value::Gauge(value) => {
                Sample::gauge(self.name, i64::try_from(value).unwrap_or(i64::MAX))
            }
        };
        sample.help(self.help)
    }
}
