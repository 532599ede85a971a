//! What carries a scheduler: who gives it the time, wakes its runner and catches panics.

use core::fmt;

use clockjack_sync::prim::hint;
use clockjack_time::{ClockKind, DriverStatus, Resolution, TimerInstant};

use crate::{DispatchedRun, DispatcherId, HandlerError};

/// By what a scheduler's time moves. It follows from the kind of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunnerMode {
    /// A hand moves the clock, and runs what is due on its own thread.
    Manual,
    /// Threads or tasks of the host sleep until something is due.
    AsyncHost,
    /// An interrupt counts ticks, and a loop takes them up.
    Hardware,
}

impl RunnerMode {
    /// The mode for a clock.
    #[must_use]
    pub const fn of(kind: ClockKind) -> Self {
        match kind {
            ClockKind::Deterministic => Self::Manual,
            ClockKind::RealtimeHost => Self::AsyncHost,
            ClockKind::RealtimeHardware => Self::Hardware,
        }
    }

    /// The name as it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::AsyncHost => "async-host",
            Self::Hardware => "hardware",
        }
    }
}

impl fmt::Display for RunnerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a scheduler needs from the place where it runs.
///
/// # For implementers
///
/// 1. `now` MUST be a fresh reading of a [`MonotonicClock`](clockjack_time::MonotonicClock), in the
///    finest resolution that the host has: delays are counted from it, and rounded up once.
/// 2. After `wake_poller` somebody MUST call [`Scheduler::poll_shard`](crate::Scheduler::poll_shard) for that
///    shard soon. It is called from any thread, and MUST NOT wait or take a turn itself.
/// 3. `guarded` MUST call its argument once, on this thread, before it returns.
/// 4. `dispatch` MUST NOT run what it is given before it returns.
/// 5. `now`, `relax` and `can_wait` are called while a shard is held, or waited for: they MUST NOT
///    call the scheduler.
/// 6. Where threads have priorities, `relax` MUST let those of a lower one run too. Where there are
///    interrupts, `can_wait` MUST say false in them, and they MUST NOT take turns, look at metrics
///    or diagnostics, or shut the scheduler down: all of these wait.
pub trait SchedulerHost: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> TimerInstant;

    /// What makes it pass.
    fn clock_kind(&self) -> ClockKind;

    /// How long a tick of the driver is, where ticks are counted: as long as the unit of
    /// [`now`](Self::now), unless that is finer.
    fn driver_tick(&self) -> Resolution {
        self.now().resolution()
    }

    /// The name of what drives the scheduler, for people.
    fn name(&self) -> &'static str;

    /// The shard that this thread registers in; more than there are go round.
    fn shard(&self) -> usize {
        0
    }

    /// Somebody is to take a turn of this shard.
    fn wake_poller(&self, shard: usize);

    /// Lets other threads run.
    fn relax(&self) {
        hint::spin_loop();
    }

    /// Whether this thread may wait for another. An interrupt must not: the holder of what it waits
    /// for may be what it has interrupted. It schedules all the same, as many jobs as there are
    /// places ready for it, and is refused for want of room beyond that.
    fn can_wait(&self) -> bool {
        true
    }

    /// Calls what is the user's, and catches a panic in it, where the host can.
    ///
    /// # Errors
    ///
    /// The panic, as [`HandlerError::panic`].
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        call();
        Ok(())
    }

    /// Whether there is such a dispatcher.
    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        dispatcher == DispatcherId::DEFAULT
    }

    /// Runs a job's handler on a dispatcher other than [`DispatcherId::DEFAULT`], which is where
    /// turns are taken.
    ///
    /// # Errors
    ///
    /// The work comes back if the dispatcher takes no more.
    fn dispatch(&self, dispatcher: DispatcherId, run: DispatchedRun) -> Result<(), DispatchedRun> {
        let _ = dispatcher;
        Err(run)
    }

    /// Stops what makes time pass, at the shutdown.
    fn stop_driver(&self) -> Option<DriverStatus> {
        None
    }
}

/// How a scheduler is driven, as it was found at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverMetadata {
    /// The mode.
    pub mode: RunnerMode,
    /// The kind of clock that it follows from.
    pub clock: ClockKind,
    /// The name of the driver.
    pub driver: &'static str,
}

/// Why a scheduler cannot be driven in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeError {
    /// The configuration is for production, and the clock is moved by hand.
    ManualInProduction,
    /// The call is for a scheduler whose clock is moved by hand, and this one's is not.
    NotManual,
    /// The configuration has no shard, or more than may be.
    Shards,
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ManualInProduction => "a clock that is moved by hand is refused in production",
            Self::NotManual => "the scheduler's clock is not moved by hand",
            Self::Shards => "a scheduler has from 1 to 1024 shards",
        })
    }
}

impl core::error::Error for ModeError {}
