//! Implements exec's `Host` trait with operating-system threads.
#![expect(unsafe_code, reason = "promises which worker a thread is")]

use core::{
    cell::{Cell, RefCell},
    ptr,
    time::Duration,
};
use std::sync::Arc;

use clockjack_exec::{
    ExecutorToolbox, PanicPayload, executor::ExecutorShared, worker::WorkerLocal,
};
use clockjack_observe::{
    Event,
    event::WorkerId,
    recorder::{FlightRecorder, Ring, Writer},
};
use clockjack_time::{MonotonicClock as _, Tick};

use crate::{OsClock, Parker, PoolConfig, catch_panic};

/// The writer of a worker's own ring.
type OwnWriter = Writer<clockjack_sync::Arc<Ring>>;

thread_local! {
    /// The writer of the ring of the worker that runs on this thread.
    static WRITER: RefCell<Option<OwnWriter>> = const { RefCell::new(None) };
}

thread_local! {
    /// The worker state of this thread; null on other threads.
    static LOCAL: Cell<*const WorkerLocal> = const { Cell::new(ptr::null()) };
}

thread_local! {
    /// Whether this thread runs its own executor.
    static IS_PINNED: Cell<bool> = const { Cell::new(false) };
}

thread_local! {
    /// The index of the worker that runs on this thread.
    static WORKER_INDEX: Cell<usize> = const { Cell::new(0) };
}

/// What the threads of one pool share with its executor.
#[derive(Debug)]
pub(crate) struct Threads {
    pub(crate) clock: OsClock,
    pub(crate) parkers: Box<[Parker]>,
    pub(crate) watchdog: Parker,
    /// Where the thread that shuts the pool down waits.
    pub(crate) shutdown_parker: Parker,
    /// The rings of the workers; `None` if the configuration wants none.
    pub(crate) recorder: Option<FlightRecorder>,
    nanos_per_tick: u64,
    seed: u64,
}

impl Threads {
    pub(crate) fn new(clock: OsClock, workers_max: usize, config: &PoolConfig) -> Arc<Self> {
        let n_slots = config.flight_records;
        Arc::new(Self {
            clock,
            parkers: (0..workers_max).map(|_| Parker::new()).collect(),
            watchdog: Parker::new(),
            shutdown_parker: Parker::new(),
            nanos_per_tick: u64::from(clock.resolution().nanos().get()),
            recorder: (n_slots > 0).then(|| FlightRecorder::new(workers_max, n_slots)),
            seed: config.seed,
        })
    }

    /// Makes this thread the writer of the ring of a worker.
    pub(crate) fn claim_ring(&self, worker: usize) {
        let worker = u16::try_from(worker).ok().map(WorkerId);
        let writer = worker.and_then(|worker| self.recorder.as_ref()?.writer(worker));
        WRITER.with(|place| *place.borrow_mut() = writer);
    }
}

/// Whether this thread is a worker of any pool, or runs its own executor. Such a thread must not
/// wait for work that it would have to do itself.
pub(crate) fn is_worker() -> bool {
    !LOCAL.get().is_null() || IS_PINNED.get()
}

/// Declares that this thread runs its own executor from now on.
pub(crate) fn mark_pinned() {
    IS_PINNED.set(true);
}

/// Whether this thread is a worker of this executor.
pub(crate) fn is_worker_of(executor: &ExecutorShared) -> bool {
    // SAFETY: the pointer is null or was set by the worker that runs on this thread; the worker
    // resets it before its state is dropped.
    unsafe { LOCAL.try_with(Cell::get).unwrap_or(ptr::null()).as_ref() }
        .is_some_and(|local| ptr::eq(local.executor(), executor))
}

/// Sets the index of the worker that this thread is about to become.
pub(crate) fn set_worker_index(index: usize) {
    WORKER_INDEX.set(index);
}

/// The worker index of this thread, if it is a worker of this executor.
#[inline]
pub(crate) fn worker_index_of(executor: &ExecutorShared) -> Option<usize> {
    is_worker_of(executor).then(|| WORKER_INDEX.get())
}

/// Writes into the ring of this worker; false if it has none, or not any more.
fn write_own(at_nanos: u64, event: Event) -> bool {
    let write = |place: &RefCell<Option<OwnWriter>>| match &mut *place.borrow_mut() {
        Some(writer) => {
            writer.write(at_nanos, event);
            true
        }
        None => false,
    };
    WRITER.try_with(write).unwrap_or(false)
}

/// The host as the executor owns it.
pub(crate) struct ThreadHost(pub(crate) Arc<Threads>);

// SAFETY: (1) the thread-local holds the value that was last set on this thread; signal handlers
// run no code of the executor. (2) the closure is called once, on this thread.
unsafe impl ExecutorToolbox for ThreadHost {
    fn nanos(&self) -> u64 {
        self.0.clock.nanos_now()
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / self.0.nanos_per_tick)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        self.0.clock.deadline_after(after)
    }

    #[inline]
    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_panic(turn)
    }

    #[inline]
    fn worker_local(&self) -> *const WorkerLocal {
        // A thread that exits may still drop what it owns after its thread-locals are destroyed:
        // then it is not a worker any more.
        LOCAL.try_with(Cell::get).unwrap_or(ptr::null())
    }

    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal {
        LOCAL.replace(local)
    }

    fn park(&self, worker: usize, until: Option<Tick>) {
        self.0.parkers[worker].park(until.map(|tick| self.0.clock.instant_of(tick)));
    }

    fn unpark(&self, worker: usize) {
        self.0.parkers[worker].unpark();
    }

    fn unpark_watchdog(&self) {
        self.0.watchdog.unpark();
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn shutdown_progressed(&self) {
        self.0.shutdown_parker.unpark();
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn record(&self, worker: Option<usize>, at_nanos: Option<u64>, event: Event) {
        let Some(recorder) = &self.0.recorder else { return };
        let at_nanos = at_nanos.unwrap_or_else(|| self.nanos());
        // Such a thread is a worker of this pool, so its writer is that of the pool's recorder.
        let is_written = worker.is_some() && write_own(at_nanos, event);
        if !is_written {
            recorder.write_outside(at_nanos, event);
        }
    }
}
