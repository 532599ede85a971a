//! What a scheduler has counted.

use core::time::Duration;

use clockjack_observe::histogram::Summary;

use crate::{Scheduler, TaskRunReport, table::TimeHistogram};

/// Counts of a scheduler, all shards together. The counts of one shard belong to one moment, those
/// of several do not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerMetrics {
    /// Jobs that live: that wait, are due, or run.
    pub active_total: usize,
    /// Those of them that repeat.
    pub periodic_total: usize,
    /// Jobs that were given up for want of room.
    pub dropped_total: u64,
    /// How many jobs may live at present.
    pub quota_limit: usize,
    /// Jobs that were accepted.
    pub accepted_total: u64,
    /// Runs that were handed over.
    pub fired_total: u64,
    /// Those of them that were sent as deliveries and never opened: the job was cancelled before, or
    /// who had the delivery dropped it.
    pub discarded_total: u64,
    /// Jobs that have run for the last time.
    pub executed_total: u64,
    /// Jobs that were cancelled, dropped ones included.
    pub cancelled_total: u64,
    /// Runs whose handler failed.
    pub failed_total: u64,
    /// How late runs came due, in nanoseconds.
    pub lateness: Summary,
    /// How late the least late run of a window was, in nanoseconds, of windows that were beyond the
    /// budget.
    pub drift: Summary,
    /// How late the driver has reported itself to be, at its last tick.
    pub driver_jitter: Duration,
    /// Ticks that were made up for, because nobody had moved time when they came.
    pub drift_compensations: u64,
    /// Close tasks that were run.
    pub task_run_on_close_total: u64,
    /// Those of them that failed.
    pub task_run_on_close_failures: u64,
    /// How long they took together.
    pub task_run_on_close_duration: Duration,
    /// Places that are taken by jobs, and by handles of jobs that have ended.
    pub slots_total: usize,
    /// Diagnostic events that found no room.
    pub diagnostics_dropped: usize,
}

impl Scheduler {
    /// What has been counted so far. Takes the guard of each shard for a moment.
    #[must_use]
    // Its frame is large: not a part of the caller's.
    #[inline(never)]
    pub fn metrics(&self) -> SchedulerMetrics {
        let inner = self.inner();
        let (mut lateness, mut drift) = (TimeHistogram::new(), TimeHistogram::new());
        let TaskRunReport { succeeded, failed, duration } = inner.close_stats();
        let mut metrics = SchedulerMetrics {
            active_total: 0,
            periodic_total: 0,
            dropped_total: 0,
            quota_limit: inner.shared.tables.quota.limit(),
            accepted_total: 0,
            fired_total: 0,
            discarded_total: 0,
            executed_total: 0,
            cancelled_total: 0,
            failed_total: 0,
            lateness: lateness.summary(),
            drift: drift.summary(),
            driver_jitter: Duration::ZERO,
            drift_compensations: 0,
            task_run_on_close_total: succeeded + failed,
            task_run_on_close_failures: failed,
            task_run_on_close_duration: duration,
            slots_total: 0,
            diagnostics_dropped: inner.shared.bus().dropped(),
        };
        for shard in &inner.shards {
            shard.with_guard(|locked| {
                let table = &locked.table;
                let counts = table.counts();
                metrics.active_total += counts.active;
                metrics.periodic_total += counts.periodic;
                metrics.dropped_total += counts.dropped;
                metrics.accepted_total += counts.accepted;
                metrics.fired_total += counts.fired;
                metrics.discarded_total += counts.discarded;
                metrics.executed_total += counts.executed;
                metrics.cancelled_total += counts.cancelled;
                metrics.failed_total += counts.failed;
                // Those in stock are nobody's.
                metrics.slots_total +=
                    table.slots_used().saturating_sub(shard.jobs.n_reserved_slots());
                metrics.drift_compensations += counts.drift_compensations;
                metrics.driver_jitter = metrics.driver_jitter.max(table.jitter());
                lateness.merge(&counts.lateness);
                drift.merge(&counts.drift);
            });
        }
        metrics.lateness = lateness.summary();
        metrics.drift = drift.summary();
        metrics
    }
}
