//! Finding out what a scheduler did: streams, the log, and hooks for tests.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use clockjack_time::{ManualClock, Tick};

use crate::{
    DumpFormat, EventKinds, ExecutionBatch, JobNumber, LogRecord, ModeError, ReplayTrace,
    RunnerMode, Scheduler, SchedulerDump, SchedulerLog, Subscription, TooManySubscriptions,
};

/// How many jobs of a shard a dump shows.
const DUMP_JOBS_MAX: usize = 1000;

/// The diagnostics of a scheduler; made by [`Scheduler::diagnostics`].
#[derive(Clone, Copy, Debug)]
pub struct Diagnostics<'s> {
    scheduler: &'s Scheduler,
}

impl<'s> Diagnostics<'s> {
    pub(crate) const fn new(scheduler: &'s Scheduler) -> Self {
        Self { scheduler }
    }

    /// The events of these kinds from now on, at most `capacity` of which wait to be read; those
    /// that find no room are counted.
    ///
    /// # Errors
    ///
    /// If there are as many subscriptions as may be.
    pub fn subscribe(
        &self,
        kinds: EventKinds,
        capacity: usize,
    ) -> Result<Subscription, TooManySubscriptions> {
        crate::Bus::subscribe(self.scheduler.inner().shared.bus(), kinds, capacity)
    }

    /// Keeps the last `capacity` records of each shard from now on; what was logged before is gone.
    pub fn enable_log(&self, capacity: usize) {
        for shard in &self.scheduler.inner().shards {
            let log = SchedulerLog::with_capacity(capacity);
            shard.with_guard(|locked| locked.table.set_log(log));
        }
    }

    /// Logs into a buffer of the caller's, without an allocation. For the first shard, which is the
    /// only one in manual mode and on small processors.
    pub fn enable_log_in(&self, buffer: &'static mut [LogRecord]) {
        let log = SchedulerLog::in_buffer(buffer);
        self.scheduler.inner().shards[0].with_guard(|locked| locked.table.set_log(log));
    }

    /// What was logged, of all shards, as a trace that can be written down and compared.
    #[must_use]
    pub fn trace(&self) -> ReplayTrace {
        let inner = self.scheduler.inner();
        let relax = inner.shared.relax();
        let shards = inner.shards.iter();
        let mut guards: Vec<_> = shards.map(|shard| shard.jobs.lock(&relax)).collect();
        let logs = guards.iter_mut().map(|guard| guard.locked().table.log());
        let trace = ReplayTrace::merged(inner.shared.resolution, logs);
        drop(guards);
        inner.shards.iter().for_each(|shard| shard.flush());
        trace
    }

    /// The run that was handed over last. With several shards, that of the last one in which any
    /// was: for tests, which have one.
    #[must_use]
    pub fn last_fire_batch(&self) -> Option<(JobNumber, ExecutionBatch)> {
        let shards = self.scheduler.inner().shards.iter().rev();
        shards
            .filter_map(|shard| shard.with_guard(|locked| locked.table.counts().last_batch))
            .next()
    }

    /// How late the driver has reported itself to be.
    #[must_use]
    pub fn driver_jitter(&self) -> Duration {
        self.scheduler.metrics().driver_jitter
    }

    /// Tells how late the driver was at its last tick, for hosts: that is no drift.
    pub fn set_driver_jitter(&self, jitter: Duration) {
        for shard in &self.scheduler.inner().shards {
            shard.with_guard(|locked| locked.table.set_jitter(jitter));
        }
    }

    /// Hands in ticks without a driver, for tests: moves `clock`, which must be the scheduler's, to
    /// `up_to` in one leap, and runs what is due. Gives the number of runs.
    ///
    /// # Errors
    ///
    /// If the scheduler's clock is not moved by hand.
    pub fn inject_tick(&self, clock: &ManualClock, up_to: Tick) -> Result<usize, ModeError> {
        use clockjack_time::MonotonicClock as _;
        if self.scheduler.metadata().mode != RunnerMode::Manual {
            return Err(ModeError::NotManual);
        }
        clock.advance_ticks(up_to.saturating_since(clock.now().tick()));
        Ok(self.scheduler.run_due())
    }

    /// A picture of the scheduler.
    #[must_use]
    pub fn dump(&self) -> SchedulerDump {
        let inner = self.scheduler.inner();
        let metadata = self.scheduler.metadata();
        let shards = inner.shards.iter().map(|shard| {
            shard.with_guard(|locked| {
                let mut dump = locked.table.dump(&locked.wheel, DUMP_JOBS_MAX);
                dump.pending_commands = shard.jobs.n_remote_ops();
                dump
            })
        });
        let shards: Vec<_> = shards.collect();
        SchedulerDump {
            mode: metadata.mode.name(),
            clock: metadata.clock,
            resolution: inner.shared.resolution,
            now: self.scheduler.now().elapsed_tick(inner.shared.resolution),
            is_closed: self.scheduler.is_closed(),
            quota_limit: inner.shared.tables.quota.limit(),
            active: self.scheduler.metrics().active_total,
            shards,
        }
    }
}

impl Scheduler {
    /// Writes a picture of the scheduler: where its wheels stand, what waits, what repeats.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn dump(&self, format: DumpFormat, out: &mut dyn fmt::Write) -> fmt::Result {
        self.diagnostics().dump().write(format, out)
    }
}
