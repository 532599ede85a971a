//! Inspecting a table: counts, the log, and a dump of its jobs.

use alloc::{boxed::Box, vec::Vec};
use core::time::Duration;

use clockjack_observe::Snapshot;
use clockjack_sync::{Arc, primitive};
use clockjack_time::{GrowingWheel, Storage, Tick, TimerInstant, Wheel};

use super::JobTable;
use crate::{
    BatchMode, Bus, ExecutionBatch, JobDump, JobId, JobNumber, SchedulerLog, ShardDump,
    jobs::spec::tick_of,
};

/// A histogram of times with a precision of one eighth, in 4 KiB. On a microcontroller the
/// precision is one half, in 1 KiB, because two large ones would take half of a small processor's
/// memory.
pub(crate) type TimeHistogram = Snapshot<{ primitive::scaled(8, 2, 8) }>;

/// The counters of a table.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) active: usize,
    pub(crate) periodic: usize,
    pub(crate) accepted: u64,
    pub(crate) executed: u64,
    pub(crate) cancelled: u64,
    pub(crate) dropped: u64,
    pub(crate) reserve_exceeded: u64,
    pub(crate) failed: u64,
    pub(crate) fired: u64,
    pub(crate) discarded: u64,
    pub(crate) run_on_close: u64,
    /// Due runs of jobs that the close has cancelled.
    pub(crate) runs_left: u64,
    pub(crate) drift_compensations: u64,
    pub(crate) last_batch: Option<(JobNumber, ExecutionBatch)>,
    /// In nanoseconds.
    pub(crate) lateness: Box<TimeHistogram>,
    /// In nanoseconds, of windows that exceeded the budget.
    pub(crate) drift: Box<TimeHistogram>,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            active: 0,
            periodic: 0,
            accepted: 0,
            executed: 0,
            cancelled: 0,
            dropped: 0,
            reserve_exceeded: 0,
            failed: 0,
            fired: 0,
            discarded: 0,
            run_on_close: 0,
            runs_left: 0,
            drift_compensations: 0,
            last_batch: None,
            lateness: new_histogram(),
            drift: new_histogram(),
        }
    }
}

// Not inlined: the histogram is built on the stack, and would enlarge the frame of the caller.
#[inline(never)]
fn new_histogram() -> Box<TimeHistogram> {
    Box::new(TimeHistogram::new())
}

impl<P> JobTable<P> {
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The log, which is empty unless the configuration asks for one.
    #[must_use]
    pub fn log(&self) -> &SchedulerLog {
        &self.log
    }

    #[inline]
    pub(super) fn is_logging(&self) -> bool {
        self.log.capacity() > 0
    }

    pub(crate) fn set_log(&mut self, log: SchedulerLog) {
        self.log = log;
    }

    /// The event bus of this table, for subscriptions.
    #[must_use]
    pub fn bus(&self) -> &Arc<Bus> {
        &self.shared.bus
    }

    /// Sets how late the driver was at its last tick. This lateness does not count as drift.
    pub fn set_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter;
    }

    /// Sets whether the driver's caller counts and reports the ticks that are caught up with.
    pub(crate) fn set_driver_reports_ticks(&mut self, reports: bool) {
        self.driver_reports_ticks = reports;
    }

    /// Counts ticks that were caught up with. Returns how many may be without a warning.
    pub(crate) fn count_catch_up(&mut self, ticks: u64) -> u32 {
        self.counts.drift_compensations = self.counts.drift_compensations.saturating_add(ticks);
        self.catch_up_limit
    }

    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// The number of live jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.active
    }

    /// Whether there is no live job.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the time of a cancel is needed, for the log or for a subscriber.
    pub(crate) fn wants_time(&self) -> bool {
        self.is_logging() || self.shared.bus.wants(crate::EventKinds::CANCEL)
    }

    pub(crate) fn observe(&mut self, now: TimerInstant) {
        self.now = self.now.max(tick_of(now, self.resolution));
    }

    /// When the next job is due or memory can be freed.
    pub(crate) fn next_wake(&mut self, wheel: &mut GrowingWheel<JobId>) -> Option<Tick> {
        let retention = if self.is_closed { 0 } else { self.retention_ticks };
        let shrink_at = self.free.shrink(&self.slots, self.now, retention);
        self.shrink_wheel(wheel);
        match (wheel.next_deadline(), shrink_at) {
            (Some(next), Some(shrink_at)) => Some(next.min(shrink_at)),
            (next, shrink_at) => next.or(shrink_at),
        }
    }

    /// How many slots are in use, including those that only a handle keeps.
    pub(crate) fn slots_used(&self) -> usize {
        self.free.used()
    }

    /// How many slots are allocated.
    pub(crate) fn slots_room(&self) -> usize {
        self.free.end() as usize
    }

    /// A dump of the table with at most `jobs_max` jobs, periodic ones first, then by due time.
    #[must_use]
    pub fn dump<S: Storage<JobId>>(
        &mut self,
        wheel: &Wheel<JobId, S>,
        jobs_max: usize,
    ) -> ShardDump {
        let shard = self.shard;
        let mut jobs: Vec<JobDump> = self
            .jobs()
            .filter(|(_, _, data)| data.is_live)
            .map(|(_, state, data)| JobDump {
                job: JobNumber { shard, number: data.number },
                state: state.name(),
                mode: data.mode,
                due: data.due,
                period_ticks: u64::from(data.period),
                backlog: data.backlog(state.is_handed_over()),
                last_fire: (data.last_fire != Tick::MAX).then_some(data.last_fire),
                priority: data.class,
            })
            .collect();
        jobs.sort_by_key(|job| (job.mode == BatchMode::OneShot, job.due, job.job));
        let jobs_left_out = jobs.len().saturating_sub(jobs_max);
        jobs.truncate(jobs_max);
        ShardDump {
            shard,
            wheel_offset: wheel.elapsed(),
            occupied_slots: wheel.occupied_slots(),
            pending: wheel.len(),
            overflow: wheel.overflow_len(),
            overflow_capacity: wheel.overflow_capacity(),
            pending_commands: 0,
            queued: self.n_due(),
            jobs,
            jobs_left_out,
        }
    }
}
