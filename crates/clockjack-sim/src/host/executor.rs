//! The executor host for several workers that are interleaved on one thread. A worker can run
//! within the step of another worker.
#![expect(unsafe_code, reason = "promises which worker this thread is")]

use core::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use std::sync::Arc;

use clockjack_exec::{
    ExecutorToolbox, PanicPayload,
    worker::{WorkerLocal, manual::ManualStep},
};
use clockjack_time::Tick;

use crate::{clock::SimClock, context::SimContext};

/// Nanoseconds per tick.
const TICK_NANOS: u64 = 1_000_000;

std::thread_local! {
    /// The worker that currently runs on this thread.
    static LOCAL: Cell<*const WorkerLocal> = const { Cell::new(ptr::null()) };
}

/// The wake flags of the workers, the watchdog and the scheduler poller.
pub(crate) struct ExecutorState {
    clock: Arc<SimClock>,
    seed: u64,
    wake_flags: Vec<AtomicBool>,
    watchdog: AtomicBool,
    poller: AtomicBool,
}

impl ExecutorState {
    pub(crate) fn new(sim: &SimContext, n_workers: usize) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(sim.clock()),
            seed: sim.order_seed(),
            wake_flags: (0..n_workers).map(|_| AtomicBool::new(false)).collect(),
            watchdog: AtomicBool::new(false),
            poller: AtomicBool::new(false),
        })
    }

    // Relaxed, here and below: only one thread uses the flags.

    pub(crate) fn is_woken(&self, worker: usize) -> bool {
        self.wake_flags[worker].load(Relaxed)
    }

    pub(crate) fn clear_wake(&self, worker: usize) {
        self.wake_flags[worker].store(false, Relaxed);
    }

    pub(crate) fn is_watchdog_woken(&self) -> bool {
        self.watchdog.load(Relaxed)
    }

    pub(crate) fn clear_watchdog_wake(&self) {
        self.watchdog.store(false, Relaxed);
    }

    /// Whether the scheduler must be polled.
    pub(crate) fn is_poller_woken(&self) -> bool {
        self.poller.load(Relaxed)
    }

    pub(crate) fn wake_poller(&self) {
        self.poller.store(true, Relaxed);
    }

    pub(crate) fn clear_poller_wake(&self) {
        self.poller.store(false, Relaxed);
    }
}

/// The host of an executor.
pub(crate) struct ExecutorHost(pub(crate) Arc<ExecutorState>);

// SAFETY: (1) the thread-local holds the pointer that was last set on this thread; a step within
// another step restores the pointer that it found. (2) the closure is called once, on this thread.
unsafe impl ExecutorToolbox for ExecutorHost {
    fn nanos(&self) -> u64 {
        // The raw clock, not the visible one: it may go back, and the executor must tolerate that.
        self.0.clock.raw() * TICK_NANOS
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / TICK_NANOS)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Tick::new(self.nanos().saturating_add(nanos).div_ceil(TICK_NANOS))
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        super::catch_panic(turn)
    }

    fn worker_local(&self) -> *const WorkerLocal {
        LOCAL.try_with(Cell::get).unwrap_or(ptr::null())
    }

    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal {
        LOCAL.with(|before| before.replace(local))
    }

    /// Never called: a manually stepped worker reports that it sleeps, and returns.
    fn park(&self, _seat: usize, _until: Option<Tick>) {}

    fn unpark(&self, worker: usize) {
        self.0.wake_flags[worker].store(true, Relaxed);
    }

    fn unpark_watchdog(&self) {
        self.0.watchdog.store(true, Relaxed);
    }

    fn yield_now(&self) {}

    fn shutdown_progressed(&self) {}

    fn seed(&self) -> u64 {
        self.0.seed
    }
}

/// Whether a worker sleeps, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepState {
    Awake,
    Asleep(Option<u64>),
}

impl SleepState {
    pub(crate) fn of(step: ManualStep) -> Self {
        match step {
            ManualStep::Parked(until) => Self::Asleep(until.map(Tick::get)),
            ManualStep::Awake | ManualStep::Stopped => Self::Awake,
        }
    }

    pub(crate) fn is_over(self, now: u64) -> bool {
        match self {
            Self::Awake => true,
            Self::Asleep(until) => until.is_some_and(|until| until <= now),
        }
    }
}
