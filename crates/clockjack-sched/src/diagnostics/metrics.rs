//! The metrics of a scheduler.

use core::time::Duration;

use clockjack_observe::histogram::Summary;

use crate::{Scheduler, TaskRunReport, jobs::table::TimeHistogram};

/// Metrics of a scheduler, all shards together. The values of one shard are consistent with each
/// other; those of several shards are read one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerMetrics {
    /// Live jobs: waiting, due or running.
    pub active_total: usize,
    /// Live jobs that repeat.
    pub periodic_total: usize,
    /// Jobs that were evicted for lack of room.
    pub dropped_total: u64,
    /// Jobs of the runtime itself that found the reserve used up; see
    /// [`SchedulerConfig::internal_reserve`](crate::SchedulerConfig::internal_reserve).
    pub reserve_exceeded_total: u64,
    /// How many jobs may be live at present.
    pub quota_limit: usize,
    /// Jobs that were accepted.
    pub accepted_total: u64,
    /// Runs that were handed over.
    pub fired_total: u64,
    /// Handed-over runs that were sent as deliveries and never accepted: the job was cancelled, or
    /// the receiver dropped the delivery.
    pub discarded_total: u64,
    /// Jobs that have run for the last time.
    pub executed_total: u64,
    /// Jobs that were cancelled, including evicted ones.
    pub cancelled_total: u64,
    /// Runs whose handler failed.
    pub failed_total: u64,
    /// How late runs were when they became due, in nanoseconds.
    pub lateness: Summary,
    /// How late the least late run of a window was, in nanoseconds, for windows that exceeded the
    /// budget.
    pub drift: Summary,
    /// How late the driver was at its last tick, as it has reported.
    pub driver_jitter: Duration,
    /// Ticks that were caught up with, because time was not advanced when they came.
    pub drift_compensations: u64,
    /// Close tasks that were run.
    pub task_run_on_close_total: u64,
    /// Close tasks that failed.
    pub task_run_on_close_failures: u64,
    /// How long all close tasks took.
    pub task_run_on_close_duration: Duration,
    /// Slots in use by jobs, and by handles of completed or cancelled jobs.
    pub slots_total: usize,
    /// Diagnostic events that were dropped because a queue was full.
    pub diagnostics_dropped: usize,
}

impl Scheduler {
    /// Reads the metrics. Takes the guard of each shard for a short time.
    #[must_use]
    // Not inlined, because its stack frame is large.
    #[inline(never)]
    pub fn metrics(&self) -> SchedulerMetrics {
        let inner = self.inner();
        let (mut lateness, mut drift) = (TimeHistogram::new(), TimeHistogram::new());
        let TaskRunReport { succeeded, failed, duration, .. } = inner.close_stats();
        let mut metrics = SchedulerMetrics {
            active_total: 0,
            periodic_total: 0,
            dropped_total: 0,
            reserve_exceeded_total: 0,
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
                metrics.reserve_exceeded_total += counts.reserve_exceeded;
                metrics.accepted_total += counts.accepted;
                metrics.fired_total += counts.fired;
                metrics.discarded_total += counts.discarded;
                metrics.executed_total += counts.executed;
                metrics.cancelled_total += counts.cancelled;
                metrics.failed_total += counts.failed;
                // Reserved slots are not in use.
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
