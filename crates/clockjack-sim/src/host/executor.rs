//! The host of workers that take turns on one thread, some of them in the middle of another's.
#![expect(unsafe_code, reason = "promises which worker this thread is")]

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{
    any::Any,
    cell::Cell,
    panic::AssertUnwindSafe,
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use std::panic::catch_unwind;

use clockjack_exec::{
    Caught, Host,
    worker::{Local, hand::Turned},
};
use clockjack_time::Tick;

use crate::{clock::SimClock, context::SimContext};

/// Nanoseconds of a tick.
const TICK_NANOS: u64 = 1_000_000;

std::thread_local! {
    /// The worker that this thread is.
    static LOCAL: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

/// Who was called.
pub(crate) struct ExecutorState {
    clock: Arc<SimClock>,
    seed: u64,
    seats: Vec<AtomicBool>,
    metronome: AtomicBool,
    runner: AtomicBool,
}

impl ExecutorState {
    pub(crate) fn new(sim: &SimContext, seats: usize) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(sim.clock()),
            seed: sim.order_seed(),
            seats: (0..seats).map(|_| AtomicBool::new(false)).collect(),
            metronome: AtomicBool::new(false),
            runner: AtomicBool::new(false),
        })
    }

    // Relaxed, here and below: all of it is one thread.

    pub(crate) fn is_called(&self, seat: usize) -> bool {
        self.seats[seat].load(Relaxed)
    }

    pub(crate) fn answer(&self, seat: usize) {
        self.seats[seat].store(false, Relaxed);
    }

    pub(crate) fn is_metronome_called(&self) -> bool {
        self.metronome.load(Relaxed)
    }

    pub(crate) fn answer_metronome(&self) {
        self.metronome.store(false, Relaxed);
    }

    /// Whether somebody is to take a turn of the scheduler.
    pub(crate) fn is_runner_called(&self) -> bool {
        self.runner.load(Relaxed)
    }

    pub(crate) fn call_runner(&self) {
        self.runner.store(true, Relaxed);
    }

    pub(crate) fn answer_runner(&self) {
        self.runner.store(false, Relaxed);
    }
}

/// Such a host, of an engine.
pub(crate) struct ExecutorHost(pub(crate) Arc<ExecutorState>);

// SAFETY: (1) the thread-local holds what was last set on this thread; a turn within a turn leaves
// what it has found there.
// (2) the closure is called once, on this thread.
unsafe impl Host for ExecutorHost {
    fn nanos(&self) -> u64 {
        // Not what is shown: this one may go back, and nothing may come of that.
        self.0.clock.raw() * TICK_NANOS
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / TICK_NANOS)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Tick::new(self.nanos().saturating_add(nanos).div_ceil(TICK_NANOS))
    }

    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        catch_unwind(AssertUnwindSafe(turn))
            .map_err(|payload: Box<dyn Any + Send>| Caught::new(payload))
    }

    fn local(&self) -> *const Local {
        LOCAL.try_with(Cell::get).unwrap_or(ptr::null())
    }

    fn enter(&self, local: *const Local) -> *const Local {
        LOCAL.with(|before| before.replace(local))
    }

    /// Never called: who is turned by hand says that it sleeps, and returns.
    fn park(&self, _seat: usize, _until: Option<Tick>) {}

    fn unpark(&self, seat: usize) {
        self.0.seats[seat].store(true, Relaxed);
    }

    fn unpark_metronome(&self) {
        self.0.metronome.store(true, Relaxed);
    }

    fn yield_now(&self) {}

    fn stop_progressed(&self) {}

    fn seed(&self) -> u64 {
        self.0.seed
    }
}

/// Whether somebody sleeps, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Awake,
    Asleep(Option<u64>),
}

impl Rest {
    pub(crate) fn of(turned: Turned) -> Self {
        match turned {
            Turned::Asleep(until) => Self::Asleep(until.map(Tick::get)),
            Turned::Awake | Turned::Left => Self::Awake,
        }
    }

    pub(crate) fn is_over(self, now: u64) -> bool {
        match self {
            Self::Awake => true,
            Self::Asleep(until) => until.is_some_and(|until| until <= now),
        }
    }
}
