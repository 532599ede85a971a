//! Diagnostics of a scheduler: event streams, the log, and hooks for tests.

pub mod drift;
pub mod dump;
pub mod log;
pub(crate) mod metrics;
pub(crate) mod recorder;
pub mod stream;
pub(crate) mod warning;
pub(crate) mod watch;

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use clockjack_time::{ManualClock, Tick};

use crate::{
    DumpFormat, EventKinds, ExecutionBatch, JobNumber, LogRecord, ModeError, ReplayTrace,
    RunnerMode, Scheduler, SchedulerDump, SchedulerLog, Subscription, TooManySubscriptions,
};

/// How many jobs of a shard a dump shows.
const DUMP_JOBS_MAX: usize = 1000;

/// The diagnostics of a scheduler; created by [`Scheduler::diagnostics`].
#[derive(Clone, Copy, Debug)]
pub struct Diagnostics<'s> {
    scheduler: &'s Scheduler,
}

impl<'s> Diagnostics<'s> {
    pub(crate) const fn new(scheduler: &'s Scheduler) -> Self {
        Self { scheduler }
    }

    /// Subscribes to events of these kinds. At most `capacity` events wait to be read; further ones
    /// are dropped and counted.
    ///
    /// # Errors
    ///
    /// If the maximum number of subscriptions exists.
    pub fn subscribe(
        &self,
        kinds: EventKinds,
        capacity: usize,
    ) -> Result<Subscription, TooManySubscriptions> {
        crate::Bus::subscribe(self.scheduler.inner().shared.bus(), kinds, capacity)
    }

    /// Starts a new log of the last `capacity` records per shard. Discards earlier records.
    pub fn enable_log(&self, capacity: usize) {
        for shard in &self.scheduler.inner().shards {
            let log = SchedulerLog::with_capacity(capacity);
            shard.with_guard(|locked| locked.table.set_log(log));
        }
    }

    /// Logs into a buffer of the caller, without an allocation. For the first shard, which is the
    /// only one in manual mode and on small processors.
    pub fn enable_log_in(&self, buffer: &'static mut [LogRecord]) {
        let log = SchedulerLog::in_buffer(buffer);
        self.scheduler.inner().shards[0].with_guard(|locked| locked.table.set_log(log));
    }

    /// The log of all shards, as a trace that can be written and compared.
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

    /// The last run that was handed over. With several shards, that of the last shard that has one;
    /// meant for tests, which have one shard.
    #[must_use]
    pub fn last_fire_batch(&self) -> Option<(JobNumber, ExecutionBatch)> {
        let shards = self.scheduler.inner().shards.iter().rev();
        shards
            .filter_map(|shard| shard.with_guard(|locked| locked.table.counts().last_batch))
            .next()
    }

    /// How late the driver was at its last tick, as it has reported.
    #[must_use]
    pub fn driver_jitter(&self) -> Duration {
        self.scheduler.metrics().driver_jitter
    }

    /// Sets how late the driver was at its last tick, for hosts. This lateness is not drift.
    pub fn set_driver_jitter(&self, jitter: Duration) {
        for shard in 0..self.scheduler.shards() {
            self.set_shard_jitter(shard, jitter);
        }
    }

    /// As [`set_driver_jitter`](Self::set_driver_jitter), for hosts with a driver per shard. Does
    /// nothing if there is no such shard.
    pub fn set_shard_jitter(&self, shard: usize, jitter: Duration) {
        if let Some(shard) = self.scheduler.inner().shards.get(shard) {
            shard.with_guard(|locked| locked.table.set_jitter(jitter));
        }
    }

    /// Injects ticks without a driver, for tests: moves `clock`, which must be the scheduler's, to
    /// `up_to` in one step, and runs due jobs. Returns the number of runs.
    ///
    /// # Errors
    ///
    /// If the scheduler has no manual clock.
    pub fn inject_tick(&self, clock: &ManualClock, up_to: Tick) -> Result<usize, ModeError> {
        use clockjack_time::MonotonicClock as _;
        if self.scheduler.metadata().mode != RunnerMode::Manual {
            return Err(ModeError::NOT_MANUAL);
        }
        clock.advance_ticks(up_to.saturating_since(clock.now().tick()));
        Ok(self.scheduler.run_due())
    }

    /// A dump of the scheduler.
    #[must_use]
    pub fn dump(&self) -> SchedulerDump {
        self.dump_jobs(DUMP_JOBS_MAX)
    }

    /// As [`dump`](Self::dump), with at most `jobs_max` jobs of each shard: for views that show one
    /// page after the other.
    #[doc(hidden)]
    #[must_use]
    pub fn dump_jobs(&self, jobs_max: usize) -> SchedulerDump {
        let inner = self.scheduler.inner();
        let metadata = self.scheduler.metadata();
        let shards = inner.shards.iter().map(|shard| {
            shard.with_guard(|locked| {
                let mut dump = locked.table.dump(&locked.wheel, jobs_max);
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
    /// Switches the tracing of runs on or off: while it is on, the host's flight recorder receives
    /// an event for each run. It receives warnings in any case.
    pub fn set_tracing(&self, is_on: bool) {
        self.inner().shared.tables.recorder.set_tracing(is_on);
    }

    /// Writes a dump of the scheduler: its wheels, and its waiting and periodic jobs.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn dump(&self, format: DumpFormat, out: &mut dyn fmt::Write) -> fmt::Result {
        self.diagnostics().dump().write(format, out)
    }
}
