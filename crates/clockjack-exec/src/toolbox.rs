//! What an executor needs from its platform: a clock, a way to sleep, a way to survive a panic.
//!
//! [`Toolbox`] is the contract for one thread, which a board support crate or a test implements.
//! [`ExecutorToolbox`] is the wider contract that the executor is built on; it has workers, because
//! a pool of threads parks each of its workers separately. `clockjack-rt` implements it for
//! threads, and [`LocalExecutor`](crate::LocalExecutor) adapts any [`Toolbox`] to it.
#![expect(unsafe_code, reason = "declares what implementors promise about the current worker")]

use core::time::Duration;

use clockjack_observe::Event;
use clockjack_sync::primitive::hint;
use clockjack_time::{MonotonicClock, Tick, TickDriver, TimerInstant};

use crate::{exit::PanicPayload, timer::source::TimerSource, worker::WorkerLocal};

/// What an executor on one thread needs from its platform.
///
/// # Examples
///
/// A toolbox for tests, in which time advances only by hand:
///
/// ```
/// use clockjack_exec::Toolbox;
/// use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, TickDriver};
///
/// struct Bench {
///     clock: ManualClock,
///     driver: ManualDriver,
/// }
///
/// impl Toolbox for Bench {
///     fn clock(&self) -> &dyn MonotonicClock {
///         &self.clock
///     }
///     fn driver(&self) -> &dyn TickDriver {
///         &self.driver
///     }
/// }
/// ```
pub trait Toolbox: Sync {
    /// The clock by which timers are armed and fire.
    fn clock(&self) -> &dyn MonotonicClock;

    /// What makes time pass for a scheduler on this platform. A root context registers with it,
    /// takes its ticks in every round, and stops it when the system has terminated.
    fn driver(&self) -> &dyn TickDriver;

    /// Sleeps until [`unpark`](Self::unpark), or until the tick has begun. May return spuriously.
    /// An unpark that came before is not lost: the next park returns at once. By default it returns
    /// at once, for a platform that cannot sleep.
    fn park(&self, until: Option<Tick>) {
        let _ = until;
        hint::spin_loop();
    }

    /// How loaded the platform is, in percent, if it knows: a full outgoing queue, a low battery. A
    /// root context reads this in every round. From 80 on, the scheduler is under pressure and
    /// accepts fewer jobs, until the load is 40 or less.
    fn backpressure_pct(&self) -> Option<u8> {
        None
    }

    /// Ends the sleep of [`park`](Self::park). Called from any thread, and from interrupts. By
    /// default it does nothing: override it together with `park`, unless an interrupt ends the
    /// sleep by itself.
    fn unpark(&self) {}

    /// The worker that the caller runs on; `None` outside workers and inside interrupts.
    fn current_worker(&self) -> Option<u16> {
        Some(0)
    }

    /// The time, read now, as fine as the platform has it: that of the [clock](Self::clock), unless
    /// the implementation overrides this.
    ///
    /// It MUST NOT differ from the clock except by being finer: rounded down to the clock's tick it
    /// is a reading of the clock. A delay that counts from the clock alone may be short by the part
    /// of the current tick that has passed already. A platform that can see that part, by a finer
    /// clock, has to return it here.
    fn now(&self) -> TimerInstant {
        self.clock().now()
    }

    /// A reading of the [clock](Self::clock) in nanoseconds. A toolbox that wraps another one
    /// behind a pointer forwards this, so that a reading takes one indirect call and not three.
    #[doc(hidden)]
    fn clock_nanos(&self) -> u64 {
        let now = self.clock().now();
        now.ticks.saturating_mul(u64::from(now.resolution_ns))
    }

    /// The seed of all random choices. The same seed gives the same run.
    fn seed(&self) -> u64 {
        0
    }

    /// Calls `call`, once, and catches a panic in it, if the platform can.
    ///
    /// # Errors
    ///
    /// The panic that was caught. A toolbox that cannot catch panics never returns an error.
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        call();
        Ok(())
    }
}

/// What the executor needs from its platform: a [`Toolbox`] with workers.
///
/// # Safety
///
/// 1. [`worker_local`](Self::worker_local) returns what was last set by [`enter`](Self::enter) on
///    the same thread, through any toolbox of the same type, and null on a thread where nothing was
///    set. It returns null in code that interrupts the thread.
/// 2. [`catch_unwind`](Self::catch_unwind) calls its argument at most once, on the same thread,
///    before it returns.
#[doc(hidden)]
pub unsafe trait ExecutorToolbox: Send + Sync + 'static {
    /// The time, read now, in nanoseconds since the executor's start.
    fn nanos(&self) -> u64;

    /// The tick that a reading of [`nanos`](Self::nanos) is in.
    fn tick_of(&self, nanos: u64) -> Tick;

    /// The first tick edge that is `after` or more after the time, read now.
    fn deadline_after(&self, after: Duration) -> Tick;

    /// Calls `call` and catches a panic in it.
    ///
    /// # Errors
    /// The panic.
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload>;

    /// The local state of the worker that this thread is, of whichever executor; null if it is
    /// none.
    fn worker_local(&self) -> *const WorkerLocal;

    /// Makes this thread a worker, or no worker again; returns what was set before.
    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal;

    /// Parks a worker until it is unparked, or until the tick has begun.
    fn park(&self, worker: usize, until: Option<Tick>);

    /// Unparks a worker.
    fn unpark(&self, worker: usize);

    /// Unparks the watchdog, if the runtime has one.
    fn unpark_watchdog(&self);

    /// Yields to other threads.
    fn yield_now(&self);

    /// A number of the caller's thread, by which threads that are not workers are spread over the
    /// workers' timers: about as many threads have an even one as an odd one. By default all have
    /// the same.
    fn thread_number(&self) -> usize {
        0
    }

    /// Timed work that the workers poll next to the timers of the executor.
    fn source(&self) -> Option<&dyn TimerSource> {
        None
    }

    /// A task has ended during the shutdown: wakes the thread that waits for the shutdown.
    fn shutdown_progressed(&self);

    /// The seed of all random choices.
    fn seed(&self) -> u64;

    /// Records an event at this time, or now. The worker is that of the calling thread; `None` if
    /// the thread is not a worker of the executor. It MUST NOT wait or call the executor. By
    /// default nothing is recorded.
    fn record(&self, worker: Option<usize>, at_nanos: Option<u64>, event: Event) {
        let _ = (worker, at_nanos, event);
    }
}
