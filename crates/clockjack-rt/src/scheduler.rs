//! Schedulers with the clock of the operating system: on a pool, on a thread, on tokio.
//!
//! What a job, a handler, a policy and a warning are is told by [`sched`](crate::sched). Here is
//! who takes the turns.
//!
//! | driver | for | a handler that blocks |
//! |---|---|---|
//! | [`WorkerPool::scheduler`] | programs with a pool | holds up nobody while a worker is free |
//! | [`ThreadScheduler`] | programs without | holds up the others |
//! | `TokioScheduler`, feature `tokio` | applications on tokio | holds up the others |
//!
//! Each reads the monotonic clock in nanoseconds when it takes a turn: ticks are not counted by who
//! wakes up, so none is lost, and a deadline is never early. None wakes up while nothing is due.
//!
//! [`WorkerPool::scheduler`]: crate::WorkerPool::scheduler
//!
//! # Runners of a pool
//!
//! A shard of the scheduler has a *desk*, at which one *runner* sits: a future on the pool that
//! takes turns and sleeps until the next deadline. A handler runs in the middle of its turn, so a
//! runner whose handler blocks cannot see to what else comes due. It is replaced then.
//!
//! Roles: the *runner* at the desk; the *watch*, a timer of the pool, which another worker fires if
//! the runner's blocks; *callers*, any thread.
//!
//! ```text
//!   stage = [ count | TURN | VACANT ]
//!
//!             call                 poll                    end of turn
//!   VACANT ─────────▶ a new one ─────────▶ TURN, watch armed ─────────▶ idle, watch disarmed
//!      ▲                  ▲                      │                         │
//!      │                  └───── watch fires ────┘                         │
//!      └───────────────────────── runner dropped ◀─────────────────────────┘
//! ```
//!
//! 1. Every change of the stage is an exchange of the exact value that its author wrote or was
//!    armed for, and counts up. So a value is never there twice, and an author whose value is gone
//!    knows that another sits at the desk.
//! 2. A runner registers its waker, makes the stage TURN, arms the watch, takes a turn, disarms the
//!    watch, makes the stage idle. If one of its exchanges fails it has been replaced: it calls the
//!    runner at the desk, since its last handler may have brought a deadline forward, and ends.
//! 3. A watch that fires exchanges the TURN for which it was armed, and starts another runner,
//!    whose first poll is a turn. The shard allows that several take turns at a time. So no more
//!    runners are started than handlers block, and each of those has a worker for itself.
//! 4. A caller wakes the runner, and starts one if the desk is vacant. A runner that is dropped
//!    leaves the desk vacant; if it had sat there, jobs may wait, and it starts another.
//!
//! *Why no deadline is slept through*: who makes one earlier calls (see the rules of a shard in
//! `clockjack-sched`). The call finds the waker, or comes before a poll has registered it, and then
//! the turn behind that sees the job; or it finds the desk vacant. Replaced runners call for what
//! they have done themselves.
//!
//! *What it costs*: arming and disarming a timer in the wheel of the worker, for each turn; nobody
//! is woken for that. With one worker there is nobody to fire the watch.

mod config;
pub(crate) mod driver;
pub(crate) mod poll_all;
mod pool;
mod thread;
pub(crate) mod watchdog;

use core::{any::Any, panic::AssertUnwindSafe};
use std::{borrow::Cow, panic::catch_unwind};

use clockjack_sched::{DispatcherId, HandlerError};
use clockjack_time::{Resolution, Tick, TimerInstant};

pub(crate) use self::pool::{DriverTimeoutCheck, Executors, PoolScheduler};
pub use self::{
    config::{PoolSchedulerConfig, TimerTopology},
    pool::RunnerStats,
    thread::ThreadScheduler,
};
use crate::{OsClock, OsInstant, blocking};

/// The dispatcher that runs handlers on threads for blocking work: of the pool, or of tokio.
pub const BLOCKING_DISPATCHER: DispatcherId = DispatcherId(1);

/// How many handlers one turn runs, before others have theirs.
const POLL_BUDGET: usize = 64;

const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");

/// Calls something, and catches its panic as the failure of a handler. It is a
/// [`Guard`](crate::sched::Guard) for a [`ManualRunner`](crate::sched::ManualRunner) on a system
/// with unwinding.
///
/// # Errors
///
/// The panic, by its text.
pub fn catch_panic(call: &mut dyn FnMut()) -> Result<(), HandlerError> {
    // What the handler broke it has broken for itself: the scheduler drops it.
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let error = HandlerError::panic(panic_text(&*payload));
        blocking::drop_panic_payload(payload);
        error
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> Cow<'static, str> {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        return Cow::Borrowed(text);
    }
    payload.downcast_ref::<String>().map_or("no text".into(), |text| text.clone().into())
}

/// The time of a scheduler: nanoseconds, counted from a tick that its clock's anchor stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timebase {
    clock: OsClock,
    /// What the anchor is called.
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

    /// How long after the anchor a tick of the scheduler begins.
    fn nanos_of(&self, tick: Tick) -> u64 {
        tick.get().saturating_mul(self.nanos_per_tick).saturating_sub(self.start_nanos)
    }

    /// Where a tick of the scheduler begins. Who sleeps until then finds it due.
    pub(crate) fn instant_of(&self, tick: Tick) -> OsInstant {
        let anchor = self.clock.anchor().as_nanos();
        OsInstant::from_nanos(anchor.saturating_add(self.nanos_of(tick)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_text_whatever_was_thrown() {
        assert_eq!(catch_panic(&mut || ()), Ok(()));
        let text = |call: &mut dyn FnMut()| catch_panic(call).unwrap_err().text().to_owned();
        assert_eq!(text(&mut || panic!("plain")), "plain");
        assert_eq!(text(&mut || panic!("made of {}", 2)), "made of 2");
        assert_eq!(text(&mut || std::panic::panic_any(7)), "no text");
        assert_eq!(text(&mut || std::panic::panic_any(Bomb)), "no text");
    }

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
