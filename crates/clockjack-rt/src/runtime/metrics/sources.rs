//! The parts of a runtime as samples: their names, units and descriptions.

use clockjack_actor::{DeadLetterReason, SystemMetrics};
use clockjack_exec::{WorkerStats, executor_ref::ExecutorRef};
use clockjack_observe::samples::{Sample, SampleSet};
use clockjack_sched::SchedulerMetrics;

use super::{counter, gauge};
use crate::BlockingStats;

/// A duration in whole nanoseconds.
fn nanos(time: core::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn system(set: &mut SampleSet, system: &SystemMetrics) {
    gauge(set, "actors.live", "Actors that are alive, with guardians.", &[], system.live);
    let counters = [
        ("actors.spawned", "Actors that were spawned.", system.spawned),
        ("actors.started", "Actors that have started.", system.started),
        ("actors.stopped", "Actors that have stopped.", system.stopped),
        ("actors.restarts", "Restarts of actors.", system.restarts),
        ("actors.failures", "Failures of actors.", system.failures),
        ("events.dropped", "Events for which a subscriber had no room.", system.events_dropped),
    ];
    for (name, help, n) in counters {
        counter(set, name, help, &[], n as u64);
    }
    let help = "Messages that were returned to their senders.";
    for (reason, n) in [("full", system.refused_full), ("stopped", system.refused_stopped)] {
        counter(set, "messages.refused", help, &[("reason", reason)], n as u64);
    }
    let help = "Messages that were accepted, or told to nobody, and not handled.";
    for reason in DeadLetterReason::ALL.iter().copied() {
        let (label, n) = (reason.name(), system.dead_letters(reason));
        counter(set, "dead_letters", help, &[("reason", label)], n as u64);
    }
}

pub(super) fn executor(set: &mut SampleSet, pool: &str, executor: &ExecutorRef) {
    let stats = executor.stats();
    let labels = [("pool", pool)];
    let counters = [
        ("executor.tasks_spawned", "Tasks that were spawned.", stats.spawned),
        ("executor.tasks_finished", "Tasks that have finished.", stats.finished),
        ("executor.polls", "Polls of tasks.", stats.steps),
        ("executor.steals", "Tasks that a worker stole from another.", stats.stolen),
        ("executor.parks", "How often a worker parked.", stats.parked),
        ("executor.timers_armed", "Timers that were armed.", stats.timers_armed),
        ("executor.timers_fired", "Timers that fired.", stats.timers_fired),
        ("executor.timers_cancelled", "Timers that were cancelled.", stats.timers_cancelled),
        (
            "executor.timers_dropped",
            "Timers that were dropped to make room, or because the executor was closed.",
            stats.timers_dropped,
        ),
    ];
    for (name, help, n) in counters {
        counter(set, name, help, &labels, n);
    }
    let pending = usize::try_from(stats.timers_pending).unwrap_or(usize::MAX);
    gauge(set, "executor.timers_pending", "Timers that are armed.", &labels, pending);
    let latest = usize::try_from(stats.lateness_max_ticks).unwrap_or(usize::MAX);
    let help = "The largest lateness of a timer, in ticks.";
    gauge(set, "executor.timer_lateness_max_ticks", help, &labels, latest);
    for one in executor.worker_stats() {
        worker(set, pool, &one);
    }
}

fn worker(set: &mut SampleSet, pool: &str, worker: &WorkerStats) {
    let index = worker.worker.to_string();
    let labels = [("pool", pool), ("worker", index.as_str())];
    let counts = &worker.counts;
    let [_in_time, late @ ..] = counts.timers_by_lateness;
    let counters = [
        ("worker.polls", "Polls of tasks by this worker.", counts.steps),
        ("worker.steals", "Tasks that this worker stole.", counts.stolen),
        ("worker.parks", "How often this worker parked.", counts.parked),
        ("worker.timers_fired", "Timers that this worker fired.", counts.timers_fired),
        ("worker.timers_late", "Timers that this worker fired late.", late.iter().sum()),
        ("worker.parked_ns", "How long this worker was parked.", nanos(worker.parked)),
    ];
    for (name, help, n) in counters {
        counter(set, name, help, &labels, n);
    }
    let help = "Tasks in the run queue of this worker.";
    gauge(set, "worker.queue_length", help, &labels, worker.queue_len);
    let mean = usize::try_from(worker.poll_mean.as_nanos()).unwrap_or(usize::MAX);
    let help = "The time from one poll to the next, a moving average over busy times.";
    gauge(set, "worker.poll_mean_ns", help, &labels, mean);
    let latest = usize::try_from(counts.lateness_max_ticks).unwrap_or(usize::MAX);
    let help = "The largest lateness of a timer that this worker fired, in ticks.";
    gauge(set, "worker.timer_lateness_max_ticks", help, &labels, latest);
}

pub(super) fn blocking(set: &mut SampleSet, blocking: &BlockingStats) {
    let gauges = [
        ("blocking.threads", "Threads for blocking work.", blocking.threads),
        ("blocking.running", "Closures that run.", blocking.running),
        ("blocking.queued", "Closures that wait for a thread.", blocking.queued),
    ];
    for (name, help, n) in gauges {
        gauge(set, name, help, &[], n);
    }
    let counters = [
        ("blocking.finished", "Closures that have finished.", blocking.finished),
        ("blocking.panicked", "Closures that panicked.", blocking.panicked),
        ("blocking.refused", "Closures that were refused.", blocking.refused),
    ];
    for (name, help, n) in counters {
        counter(set, name, help, &[], n);
    }
}

pub(super) fn scheduler(set: &mut SampleSet, jobs: &SchedulerMetrics) {
    let gauges = [
        ("scheduler.jobs_active", "Jobs that wait, are due or run.", jobs.active_total),
        ("scheduler.jobs_periodic", "Active jobs that repeat.", jobs.periodic_total),
        ("scheduler.jobs_max", "How many jobs may be active now.", jobs.quota_limit),
    ];
    for (name, help, n) in gauges {
        gauge(set, name, help, &[], n);
    }
    let counters = [
        ("scheduler.jobs_accepted", "Jobs that were accepted.", jobs.accepted_total),
        ("scheduler.jobs_executed", "Jobs that have run for the last time.", jobs.executed_total),
        ("scheduler.jobs_cancelled", "Jobs that were cancelled.", jobs.cancelled_total),
        ("scheduler.jobs_dropped", "Jobs for which there was no room.", jobs.dropped_total),
        (
            "scheduler.reserve_exceeded",
            "Jobs of the runtime that found its reserve used up.",
            jobs.reserve_exceeded_total,
        ),
        ("scheduler.runs", "Runs of jobs.", jobs.fired_total),
        ("scheduler.runs_failed", "Runs that failed.", jobs.failed_total),
        ("scheduler.drifts", "Windows of 64 runs that were all late.", jobs.drift.count),
        ("scheduler.catch_up_ticks", "Ticks that came late.", jobs.drift_compensations),
    ];
    for (name, help, n) in counters {
        counter(set, name, help, &[], n);
    }
    let lost = jobs.diagnostics_dropped as u64;
    counter(set, "scheduler.events_dropped", "Diagnostic events that were lost.", &[], lost);
    let help = "How late runs were.";
    set.push(&Sample::histogram("scheduler.lateness_ns", &jobs.lateness).help(help));
}
