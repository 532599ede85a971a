//! Metrics of the runtime: its executor, its scheduler and its actors. `--metrics` writes them
//! together with the metrics of the graph.

use clockjack_observe::samples::Sample;
use clockjack_rt::{Runtime, actor::SystemMetrics, exec::ExecStats};
use clockjack_sched::SchedulerMetrics;

/// A metric with its description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimeMetric {
    name: &'static str,
    help: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// A value that only grows.
    Counter(u64),
    /// A value that can grow and shrink.
    Gauge(u64),
}

const fn counter(name: &'static str, help: &'static str, value: u64) -> RuntimeMetric {
    RuntimeMetric { name, help, value: Value::Counter(value) }
}

const fn gauge(name: &'static str, help: &'static str, value: u64) -> RuntimeMetric {
    RuntimeMetric { name, help, value: Value::Gauge(value) }
}

/// All metrics of a runtime.
pub(crate) fn counts(runtime: &Runtime) -> Vec<RuntimeMetric> {
    let system = runtime.system();
    let mut all = executor(&runtime.pool().stats());
    all.extend(scheduler(&system.scheduler().jobs().metrics()));
    all.extend(actors(&system.metrics()));
    all
}

fn executor(exec: &ExecStats) -> Vec<RuntimeMetric> {
    vec![
        counter("executor.spawned_count", "Tasks that were spawned.", exec.spawned),
        counter("executor.finished_count", "Tasks that have finished.", exec.finished),
        counter("executor.step_count", "Task polls by all workers.", exec.steps),
        counter(
            "executor.stolen_count",
            "Tasks that a worker stole from another worker.",
            exec.stolen,
        ),
        counter("executor.parked_count", "How often a worker parked.", exec.parked),
        counter("executor.timer_armed_count", "Timers that were inserted.", exec.timers_armed),
        counter("executor.timer_fired_count", "Timers that fired.", exec.timers_fired),
        counter(
            "executor.timer_cancelled_count",
            "Timers that were cancelled.",
            exec.timers_cancelled,
        ),
        gauge("executor.timer_pending", "Timers that are pending.", exec.timers_pending),
        gauge(
            "executor.lateness_max_ticks",
            "The largest lateness of a timer.",
            exec.lateness_max_ticks,
        ),
    ]
}

fn scheduler(jobs: &SchedulerMetrics) -> Vec<RuntimeMetric> {
    vec![
        gauge("scheduler.active", "Jobs that are active.", jobs.active_total as u64),
        gauge("scheduler.periodic", "Periodic jobs that are active.", jobs.periodic_total as u64),
        counter("scheduler.accepted_count", "Jobs that were accepted.", jobs.accepted_total),
        counter("scheduler.fired_count", "Runs that were started.", jobs.fired_total),
        counter(
            "scheduler.executed_count",
            "Jobs that have completed their last run.",
            jobs.executed_total,
        ),
        counter("scheduler.cancelled_count", "Jobs that were cancelled.", jobs.cancelled_total),
        counter("scheduler.failed_count", "Runs whose handler failed.", jobs.failed_total),
        counter(
            "scheduler.dropped_count",
            "Jobs that were dropped because the capacity was exhausted.",
            jobs.dropped_total,
        ),
        gauge("scheduler.lateness_max_ns", "The largest lateness of a run.", jobs.lateness.max),
    ]
}

fn actors(actors: &SystemMetrics) -> Vec<RuntimeMetric> {
    vec![
        gauge("actors.live", "Actors that are alive.", actors.live as u64),
        counter("actors.spawned_count", "Actors that were spawned.", actors.spawned as u64),
        counter("actors.stopped_count", "Actors that have stopped.", actors.stopped as u64),
        counter("actors.restart_count", "Restarts of actors.", actors.restarts as u64),
        counter("actors.failure_count", "Failures of actors.", actors.failures as u64),
        counter(
            "actors.dead_letter_count",
            "Messages that could not be delivered.",
            actors.dead_letters_total() as u64,
        ),
    ]
}

impl RuntimeMetric {
    /// The sample for the exporters.
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
