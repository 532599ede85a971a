//! Looking at a table: counts, the log, and a picture of its jobs.

use alloc::{boxed::Box, vec::Vec};
use core::time::Duration;

use clockjack_observe::Snapshot;
use clockjack_time::{GrowingWheel, Storage, Tick, TimerInstant, Wheel};

use super::JobTable;
use crate::{
    BatchMode, Bus, ExecutionBatch, JobDump, JobId, JobNumber, SchedulerLog, ShardDump,
    job::tick_of,
};
use clockjack_sync::{Counted, prim};

/// How times are spread: to an eighth, in 4 KiB. On a microcontroller to a half, in one: there two
/// of them would be half of a small one's memory.
pub(crate) type TimeHistogram = Snapshot<{ prim::scaled(8, 2, 8) }>;

/// What a table has counted.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) active: usize,
    pub(crate) periodic: usize,
    pub(crate) accepted: u64,
    pub(crate) executed: u64,
    pub(crate) cancelled: u64,
    pub(crate) dropped: u64,
    pub(crate) failed: u64,
    pub(crate) fired: u64,
    pub(crate) discarded: u64,
    pub(crate) run_on_close: u64,
    pub(crate) drift_compensations: u64,
    pub(crate) last_batch: Option<(JobNumber, ExecutionBatch)>,
    /// In nanoseconds.
    pub(crate) lateness: Box<TimeHistogram>,
    /// In nanoseconds, of windows that were beyond the budget.
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
            failed: 0,
            fired: 0,
            discarded: 0,
            run_on_close: 0,
            drift_compensations: 0,
            last_batch: None,
            lateness: new_histogram(),
            drift: new_histogram(),
        }
    }
}

// It is made on the stack: in a frame of its own, not in that of who makes a scheduler.
#[inline(never)]
fn new_histogram() -> Box<TimeHistogram> {
    Box::new(TimeHistogram::new())
}

impl<P> JobTable<P> {
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What was logged, if the configuration asked for a log.
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

    /// The stream of events of this table, to be subscribed to.
    #[must_use]
    pub fn bus(&self) -> &Counted<Bus> {
        &self.shared.bus
    }

    /// Tells how late the driver itself was at its last tick: that is no drift of the scheduler's.
    pub fn set_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter;
    }

    /// Whether ticks that are made up for are counted, and told, by who takes them off the driver.
    pub(crate) fn set_driver_reports_ticks(&mut self, is_reported: bool) {
        self.driver_reports_ticks = is_reported;
    }

    /// Counts ticks that were made up for. Gives how many may be without being told of.
    pub(crate) fn count_catch_up(&mut self, ticks: u64) -> u32 {
        self.counts.drift_compensations = self.counts.drift_compensations.saturating_add(ticks);
        self.catch_up_limit
    }

    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// How many jobs live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.active
    }

    /// Whether no job lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether somebody wants to know when a cancel is made, so that the time has to be handed in.
    pub(crate) fn wants_time(&self) -> bool {
        self.is_logging() || self.shared.bus.wants(crate::EventKinds::CANCEL)
    }

    pub(crate) fn observe(&mut self, now: TimerInstant) {
        self.now = self.now.max(tick_of(now, self.resolution));
    }

    /// When something is due next, or memory can be given back.
    pub(crate) fn next_wake(&mut self, wheel: &mut GrowingWheel<JobId>) -> Option<Tick> {
        let retention = if self.is_closed { 0 } else { self.retention_ticks };
        let shrink_at = self.free.shrink(&self.slots, self.now, retention);
        self.shrink_wheel(wheel);
        match (wheel.next_deadline(), shrink_at) {
            (Some(next), Some(shrink_at)) => Some(next.min(shrink_at)),
            (next, shrink_at) => next.or(shrink_at),
        }
    }

    /// How many slots are in use, those that only a handle keeps included.
    pub(crate) fn slots_used(&self) -> usize {
        self.free.used()
    }

    /// How many slots there is room for.
    pub(crate) fn slots_room(&self) -> usize {
        self.free.end() as usize
    }

    /// A picture of the table, with at most so many jobs in it, periodic ones first and then by
    /// due time.
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
                backlog: data.pending_runs,
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
