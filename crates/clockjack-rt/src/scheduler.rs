//! Schedulers with the operating system's clock: on a pool, on a thread, on tokio.
//!
//! The module [`sched`](crate::sched) explains jobs, handlers, policies and warnings. This module
//! has the drivers, which poll the shards of a scheduler.
//!
//! | driver | for | a handler that blocks |
//! |---|---|---|
//! | [`WorkerPool::scheduler`] | programs with a pool | delays nothing while a worker is free |
//! | [`ThreadScheduler`] | programs without a pool | delays the other handlers |
//! | `TokioScheduler`, feature `tokio` | tokio applications | delays the other handlers |
//!
//! Each driver reads the monotonic clock in nanoseconds when it polls: ticks are computed from the
//! clock and not counted by wake-ups, so no tick is lost, and no job runs early. No driver wakes
//! up while nothing is due.
//!
//! [`WorkerPool::scheduler`]: crate::WorkerPool::scheduler
//!
//! # On a pool
//!
//! The scheduler has a shard per worker, or one. The workers poll these shards as they poll the
//! shards of their own timers: when a worker parks, it sleeps until the first deadline of both; a
//! worker that is free takes over the shards of one that is busy; and the watchdog of the pool
//! notices shards that nobody polls. The protocol is that of the *source* in
//! `clockjack-exec/src/timer/shards.md`. A job is in one wheel, and no task runs for it except the
//! one that it wakes.
//!
//! Handlers run on the worker that polls their shard. A handler that takes longer than four
//! milliseconds keeps its worker, and another worker polls the shard from then on: a shard allows
//! several pollers at a time, and one of them runs each job. So handlers that block delay nothing
//! while a worker is free. A worker in a handler counts as busy: others steal its tasks, and
//! [`on_stuck`](crate::PoolConfig::on_stuck) reports it.

mod config;
pub(crate) mod driver;
pub(crate) mod poll_all;
mod pool;
mod thread;
pub(crate) mod watchdog;

use core::time::Duration;

use clockjack_sched::DispatcherId;
use clockjack_time::{Resolution, Tick, TimerInstant};

pub(crate) use self::pool::{DriverTimeoutCheck, Executors, PoolScheduler, PoolSource};
pub use self::{
    config::{PoolSchedulerConfig, TimerTopology},
    thread::ThreadScheduler,
};
use crate::{OsClock, OsInstant};

/// The dispatcher that runs handlers on threads for blocking work: those of the pool, or tokio's.
pub const BLOCKING_DISPATCHER: DispatcherId = DispatcherId(1);

/// How long the drop of a scheduler may begin handlers.
pub(crate) const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// How many handlers one poll of a shard runs before other tasks get the worker.
const POLL_BUDGET: usize = 64;

const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");

/// Converts between the clock and the ticks of a scheduler. Time is in nanoseconds; the clock's
/// anchor corresponds to the scheduler's start tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timebase {
    clock: OsClock,
    /// The scheduler's time at the anchor, in nanoseconds.
    start_nanos: u64,
    nanos_per_tick: u64,
}

impl Timebase {
    pub(crate) fn new(clock: OsClock, start: Tick, resolution: Resolution) -> Self {
        let nanos_per_tick = u64::from(resolution.nanos().get());
        let start_nanos = start.get().saturating_mul(nanos_per_tick);
        Self { clock, start_nanos, nanos_per_tick }
    }

    #[inline]
    pub(crate) fn now(&self) -> TimerInstant {
        let nanos = self.start_nanos.saturating_add(self.clock.nanos_now());
        TimerInstant::new(Tick::new(nanos), NANO)
    }

    /// The start of a scheduler tick, in nanoseconds after the anchor. A tick that is too far away
    /// for a number of nanoseconds has the largest one, wherever the anchor and the start are.
    fn nanos_of(&self, tick: Tick) -> u64 {
        match tick.get().saturating_mul(self.nanos_per_tick) {
            u64::MAX => u64::MAX,
            nanos => nanos.saturating_sub(self.start_nanos),
        }
    }

    /// The start of a scheduler tick: a thread that sleeps until then finds the tick due.
    pub(crate) fn instant_of(&self, tick: Tick) -> OsInstant {
        let anchor = self.clock.anchor().as_nanos();
        OsInstant::from_nanos(anchor.saturating_add(self.nanos_of(tick)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_begins_where_the_clock_reads_it() {
        let start = Tick::new(1_000);
        let time = Timebase::new(OsClock::new(Resolution::MILLI), start, Resolution::TEN_MILLIS);
        assert!(time.now().elapsed_tick(Resolution::TEN_MILLIS) >= start);
        assert_eq!(time.instant_of(start), time.clock.anchor());
        assert_eq!(time.nanos_of(Tick::new(1_003)), 30_000_000);
        assert_eq!(time.instant_of(Tick::MAX), OsInstant::MAX);
    }

    #[test]
    fn the_last_tick_is_the_largest_instant_wherever_the_system_clock_begins() {
        // Linux counts from the start of the machine; other systems from the first reading, so that
        // the anchor may be less than the start of the scheduler, or zero.
        for anchor in [0, 1, 9_999_999_999, 10_000_000_000, u64::MAX].map(OsInstant::from_nanos) {
            let clock = OsClock::anchored_at(anchor, Resolution::MILLI);
            for resolution in [NANO, Resolution::MILLI, Resolution::TEN_MILLIS] {
                let time = Timebase::new(clock, Tick::new(1_000), resolution);
                assert_eq!(time.instant_of(Tick::MAX), OsInstant::MAX, "{anchor:?} {resolution:?}");
            }
        }
    }
}
