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
//! # Runners of a pool
//!
//! Each shard of the scheduler has a *runner slot* with one *runner*: a future on the pool that
//! polls the shard and sleeps until the next deadline. A handler runs inside a poll of its runner,
//! so a runner whose handler blocks cannot serve other jobs that become due. Such a runner is
//! replaced.
//!
//! Roles: the *runner* of the slot; the *takeover timer*, a timer of the pool, which another worker
//! fires if the runner's worker blocks; *callers*, any thread that makes a deadline earlier.
//!
//! ```text
//!   stage = [ version | POLLING | VACANT ]
//!
//!             wake                 poll                      poll returns
//!   VACANT ─────────▶ new runner ───────▶ POLLING, timer armed ─────────▶ idle, timer cancelled
//!      ▲                  ▲                      │                            │
//!      │                  └───── timer fires ────┘                            │
//!      └───────────────────────── runner dropped ◀────────────────────────────┘
//! ```
//!
//! 1. Every change of the stage is a compare-exchange of the exact value that its author wrote or
//!    was armed with, and increments the version. So a value never occurs twice (no ABA), and an
//!    author whose exchange fails knows that another runner owns the slot.
//! 2. A runner registers its waker, sets POLLING, arms the takeover timer, polls the shard, cancels
//!    the timer, and clears POLLING. If one of its exchanges fails, it has been replaced: it wakes
//!    the current runner, since its last handler may have made a deadline earlier, and completes.
//! 3. A takeover timer that fires exchanges the POLLING value for which it was armed, and starts
//!    another runner, which polls at once. A shard allows several pollers at a time. So no more
//!    runners are started than handlers block, and each blocked handler has a worker for itself.
//! 4. A caller wakes the runner, and starts one if the slot is vacant. A runner that is dropped
//!    leaves the slot vacant; if it owned the slot, jobs may be waiting, so it starts another.
//!
//! *Why no deadline is missed*: a thread that makes a deadline earlier calls (see the rules of a
//! shard in `clockjack-sched`). There are three cases. The call finds the waker and wakes the
//! runner; or it precedes the runner's registration of the waker, and then the poll after the
//! registration sees the job; or it finds the slot vacant and starts a runner. Replaced runners
//! call for the deadlines that their own handlers have made earlier.
//!
//! *Cost*: each poll arms and cancels one timer in the worker's wheel, which wakes no thread. With
//! one worker, no other worker can fire the takeover timer.

mod config;
pub(crate) mod driver;
pub(crate) mod poll_all;
mod pool;
mod thread;
pub(crate) mod watchdog;

use clockjack_sched::DispatcherId;
use clockjack_time::{Resolution, Tick, TimerInstant};

pub(crate) use self::pool::{DriverTimeoutCheck, Executors, PoolScheduler};
pub use self::{
    config::{PoolSchedulerConfig, TimerTopology},
    pool::RunnerStats,
    thread::ThreadScheduler,
};
use crate::{OsClock, OsInstant};

/// The dispatcher that runs handlers on threads for blocking work: those of the pool, or tokio's.
pub const BLOCKING_DISPATCHER: DispatcherId = DispatcherId(1);

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

    /// The start of a scheduler tick, in nanoseconds after the anchor.
    fn nanos_of(&self, tick: Tick) -> u64 {
        tick.get().saturating_mul(self.nanos_per_tick).saturating_sub(self.start_nanos)
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
}
