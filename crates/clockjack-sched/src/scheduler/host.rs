//! The host of a scheduler: gives it the time, wakes its poller and catches panics.

use alloc::boxed::Box;
use core::fmt;

use clockjack_observe::Event;
use clockjack_sync::{panic::PanicPayload, primitive::hint};
use clockjack_time::{ClockKind, DriverStatus, Resolution, Tick, TimerInstant};

use crate::{DispatchedRun, DispatcherId};

/// What makes the time of a scheduler advance. It follows from the kind of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunnerMode {
    /// The caller advances the clock, and due jobs run on the caller's thread.
    Manual,
    /// Threads or tasks of the host sleep until a job is due.
    AsyncHost,
    /// An interrupt counts ticks, and a loop polls them.
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

    /// The printed name.
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

/// The services that a scheduler needs from its platform.
///
/// # For implementers
///
/// 1. `now` MUST be a fresh reading of a [`MonotonicClock`](clockjack_time::MonotonicClock), in the
///    finest resolution that the host has: delays are counted from it, and rounded up once.
/// 2. After `wake_poller`, a thread or task MUST call
///    [`Scheduler::poll_shard`](crate::Scheduler::poll_shard) for that shard at the given tick at
///    the latest; a host may also do so at once. `wake_poller` is called from any thread, and MUST
///    NOT wait or poll the shard itself.
/// 3. `catch_unwind` MUST call its argument once, on this thread, before it returns.
/// 4. `dispatch` MUST NOT execute its argument before it returns.
/// 5. `now`, `relax` and `can_wait` are called by a thread that holds a shard guard or waits for
///    one: they MUST NOT call the scheduler.
/// 6. Where threads have priorities, `relax` MUST let threads of lower priorities run too. Where
///    there are interrupts, `can_wait` MUST return false in them, and they MUST NOT poll shards,
///    read metrics or diagnostics, or shut the scheduler down: all of these wait.
pub trait SchedulerHost: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> TimerInstant;

    /// The kind of the clock.
    fn clock_kind(&self) -> ClockKind;

    /// The length of a tick of the driver, for drivers that count ticks. By default the unit of
    /// [`now`](Self::now); override it if `now` is finer.
    fn driver_tick(&self) -> Resolution {
        self.now().resolution()
    }

    /// The name of the driver, for display.
    fn name(&self) -> &'static str;

    /// The shard in which this thread schedules jobs, modulo the number of shards.
    fn shard(&self) -> usize {
        0
    }

    /// Wakes the poller of this shard, unless it wakes by itself at the tick `at` or earlier;
    /// [`Tick::ZERO`] means that the shard must be polled at once.
    fn wake_poller(&self, shard: usize, at: Tick);

    /// Lets other threads run.
    fn relax(&self) {
        hint::spin_loop();
    }

    /// Whether this thread may wait for another thread. An interrupt must not: it may have
    /// interrupted the thread that it would wait for. It can schedule nevertheless: as many jobs as
    /// there are reserved slots, and further ones fail for lack of room. It cannot register or
    /// cancel close tasks.
    fn can_wait(&self) -> bool {
        true
    }

    /// Calls user code and catches its panics, if the host can.
    ///
    /// # Errors
    ///
    /// The panic that was caught. A host that cannot catch panics never returns an error.
    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        call();
        Ok(())
    }

    /// Whether this dispatcher exists.
    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        dispatcher == DispatcherId::DEFAULT
    }

    /// Runs the handler of a job on a dispatcher other than [`DispatcherId::DEFAULT`], which is the
    /// thread that polls the shard.
    ///
    /// # Errors
    ///
    /// Returns the run if the dispatcher accepts no more.
    fn dispatch(&self, dispatcher: DispatcherId, run: DispatchedRun) -> Result<(), DispatchedRun> {
        let _ = dispatcher;
        Err(run)
    }

    /// Stops the driver, during the shutdown.
    fn stop_driver(&self) -> Option<DriverStatus> {
        None
    }

    /// The function that records events, if the host has a flight recorder. The scheduler calls it
    /// while it holds a shard guard: the function MUST NOT wait or call the scheduler.
    fn recorder(&self) -> Option<EventSink> {
        None
    }
}

/// Records an event.
pub type EventSink = Box<dyn Fn(Event) + Send + Sync>;

/// How a scheduler is driven, as determined at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverMetadata {
    /// The mode.
    pub mode: RunnerMode,
    /// The kind of clock that determines the mode.
    pub clock: ClockKind,
    /// The name of the driver.
    pub driver: &'static str,
}
