//! What a toolbox gives: a clock, a way to sleep, a way to survive a panic.
//!
//! [`Toolbox`] is the contract for one thread, which a board support crate or a test implements.
//! [`ExecutorToolbox`] is the wider contract that the executor's heart is built on; it has workers, because a
//! pool of threads parks each of its workers by itself. `clockjack-rt` implements it for threads,
//! and [`LocalExecutor`](crate::LocalExecutor) turns any toolbox into one.
#![expect(unsafe_code, reason = "declares the promise that hosts make about their current worker")]

use core::time::Duration;

use clockjack_time::{MonotonicClock, Tick, TickDriver, TimerInstant};

use crate::{exit::PanicPayload, worker::WorkerLocal};

/// What an executor on one thread needs from its platform.
///
/// # Examples
///
/// A toolbox for tests, in which time passes only by hand:
///
/// ```
/// use clockjack_exec::Toolbox;
/// use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};
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
///     fn park(&self, _until: Option<Tick>) {}
///     fn unpark(&self) {}
/// }
/// ```
pub trait Toolbox: Sync {
    /// The clock by which timers are armed and fire.
    fn clock(&self) -> &dyn MonotonicClock;

    /// What makes time pass for a scheduler on this toolbox.
    fn driver(&self) -> &dyn TickDriver;

    /// Sleeps until [`unpark`](Self::unpark), or until the tick has begun. May return for no
    /// reason. An unpark that came before is not lost: the next park returns at once.
    fn park(&self, until: Option<Tick>);

    /// Ends the sleep of [`park`](Self::park). Called from any thread, and from interrupts.
    fn unpark(&self);

    /// The worker that the caller runs on; `None` outside workers and inside interrupts.
    fn current_worker(&self) -> Option<u16> {
        Some(0)
    }

    /// A fresh reading, as fine as the toolbox has one: that of the [clock](Self::clock), unless it
    /// says otherwise.
    ///
    /// It MUST NOT differ from the clock but by being finer: rounded down to the clock's tick it is
    /// a reading of the clock. A delay that is counted from the clock alone may be short by the
    /// part of a tick that was over already; a toolbox on which that part can be seen, by a finer
    /// clock, has to give it here.
    fn now(&self) -> TimerInstant {
        self.clock().now()
    }

    /// The seed of every choice that is left open. Same seed, same run.
    fn seed(&self) -> u64 {
        0
    }

    /// Calls `turn`, once, and catches a panic in it, where the toolbox can.
    ///
    /// # Errors
    ///
    /// The panic that was caught. A toolbox that cannot catch one never returns an error.
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        call();
        Ok(())
    }
}

/// What the executor's heart needs: a [`Toolbox`] with workers.
///
/// # Safety
///
/// 1. [`local`](Self::local) gives what was last set by [`enter`](Self::enter) on the same thread,
///    through any toolbox of the same type, and null on a thread where nothing was set. It gives null
///    in code that interrupts the thread.
/// 2. [`guarded`](Self::catch_unwind) calls its argument at most once, on the same thread, before it
///    returns.
#[doc(hidden)]
pub unsafe trait ExecutorToolbox: Send + Sync + 'static {
    /// A fresh reading, in nanoseconds since the executor's start.
    fn nanos(&self) -> u64;

    /// The tick that a reading of [`nanos`](Self::nanos) falls in.
    fn tick_of(&self, nanos: u64) -> Tick;

    /// The first tick edge that is `after` or more away from a fresh reading.
    fn deadline_after(&self, after: Duration) -> Tick;

    /// Calls `turn` and catches a panic in it.
    ///
    /// # Errors
    /// The panic.
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload>;

    /// The worker that this thread is, of whichever executor; null if it is none.
    fn worker_local(&self) -> *const WorkerLocal;

    /// Makes this thread a worker, or no worker again; gives what was set before.
    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal;

    /// Sleeps in a worker until its unpark, or until the tick has begun.
    fn park(&self, worker: usize, until: Option<Tick>);

    /// Ends the sleep in a worker.
    fn unpark(&self, worker: usize);

    /// Ends the sleep of the watchdog, if the toolbox has one.
    fn unpark_watchdog(&self);

    /// Lets other threads run.
    fn yield_now(&self);

    /// A process has ended while the executor stops: whoever waits for that should look.
    fn shutdown_progressed(&self);

    /// The seed of every choice that is left open.
    fn seed(&self) -> u64;
}
