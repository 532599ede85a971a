//! Implements exec's `Host` trait with operating-system threads.
#![expect(unsafe_code, reason = "promises which worker a thread is")]

use core::{
    cell::{Cell, RefCell},
    ptr,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::sync::Arc;

use clockjack_exec::{
    ExecutorToolbox, PanicPayload, TimerSource, executor::ExecutorShared, worker::WorkerLocal,
};
use clockjack_observe::{
    Event,
    event::WorkerId,
    recorder::{FlightRecorder, Ring, Writer},
};
use clockjack_sync::pad::Padded;
use clockjack_time::{MonotonicClock as _, Tick};

use crate::{OsClock, OsInstant, Parker, PoolConfig, catch_panic, scheduler::PoolSource};

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
    /// The number of this thread: the next one, when it is first asked for.
    static THREAD_NUMBER: usize = NEXT_THREAD_NUMBER.fetch_add(1, Relaxed);
}

static NEXT_THREAD_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// How late a worker woke up from its last sleep with a deadline, until its shard has the figure.
///
/// Only the worker writes and takes it, so relaxed accesses suffice.
#[derive(Debug)]
pub(crate) struct WakeJitter(AtomicU64);

impl WakeJitter {
    const NONE: u64 = u64::MAX;

    const fn new() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }

    fn record(&self, until: OsInstant, now: OsInstant) {
        if now >= until {
            let nanos = now.saturating_since(until).as_nanos();
            self.0.store(u64::try_from(nanos).unwrap_or(Self::NONE), Relaxed);
        }
    }

    /// The lateness, if the worker has slept since the last call.
    #[inline]
    pub(crate) fn take(&self) -> Option<Duration> {
        let nanos = self.0.load(Relaxed);
        if nanos == Self::NONE {
            return None;
        }
        self.0.store(Self::NONE, Relaxed);
        Some(Duration::from_nanos(nanos))
    }
}

/// What the threads of one pool share with its executor.
#[derive(Debug)]
pub(crate) struct Threads {
    pub(crate) clock: OsClock,
    pub(crate) parkers: Box<[Parker]>,
    /// How late the workers woke up.
    pub(crate) wake_jitters: Box<[Padded<WakeJitter>]>,
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
            wake_jitters: (0..workers_max).map(|_| Padded(WakeJitter::new())).collect(),
            watchdog: Parker::new(),
            shutdown_parker: Parker::new(),
            nanos_per_tick: u64::from(clock.resolution().nanos().get()),
            recorder: (n_slots > 0).then(|| FlightRecorder::new(workers_max, n_slots)),
            seed: config.seed,
        })
    }

    /// Makes this thread the writer of the ring of a worker, until the result is dropped.
    pub(crate) fn claim_ring(&self, worker: usize) -> RingClaim {
        let worker = u16::try_from(worker).ok().map(WorkerId);
        let writer = worker.and_then(|worker| self.recorder.as_ref()?.writer(worker));
        WRITER.set(writer);
        RingClaim(())
    }
}

/// This thread is the writer of a worker's ring.
#[must_use = "the ring is released when this is dropped"]
pub(crate) struct RingClaim(());

impl Drop for RingClaim {
    fn drop(&mut self) {
        drop(WRITER.take());
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
    with_worker_at(address_of(executor), |_| ()).is_some()
}

/// The address of an executor, for [`with_worker_at`].
pub(crate) fn address_of(executor: &ExecutorShared) -> usize {
    ptr::from_ref(executor).addr()
}

/// Calls `f` with the worker state of this thread, if it is a worker of the executor at this
/// address.
#[inline]
pub(crate) fn with_worker_at<R>(address: usize, f: impl FnOnce(&WorkerLocal) -> R) -> Option<R> {
    let local = LOCAL.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: the pointer is null or was set by the worker that runs on this thread; the worker
    // resets it before its state is dropped, and does not do so while `f` runs on its thread.
    let local = unsafe { local.as_ref() }?;
    (address_of(local.executor()) == address).then(|| f(local))
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
pub(crate) struct ThreadHost {
    pub(crate) threads: Arc<Threads>,
    pub(crate) source: PoolSource,
}

// SAFETY: (1) the thread-local holds the value that was last set on this thread; signal handlers
// run no code of the executor. (2) the closure is called once, on this thread.
unsafe impl ExecutorToolbox for ThreadHost {
    fn nanos(&self) -> u64 {
        self.threads.clock.nanos_now()
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / self.threads.nanos_per_tick)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        self.threads.clock.deadline_after(after)
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

    fn thread_number(&self) -> usize {
        // A thread that ends has no number any more.
        THREAD_NUMBER.try_with(|number| *number).unwrap_or(0)
    }

    fn park(&self, worker: usize, until: Option<Tick>) {
        let until = until.map(|tick| self.threads.clock.instant_of(tick));
        self.threads.parkers[worker].park(until);
        if let Some(until) = until {
            self.threads.wake_jitters[worker].record(until, OsInstant::now());
        }
    }

    fn unpark(&self, worker: usize) {
        self.threads.parkers[worker].unpark();
    }

    fn unpark_watchdog(&self) {
        self.threads.watchdog.unpark();
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn source(&self) -> Option<&dyn TimerSource> {
        Some(&self.source)
    }

    fn shutdown_progressed(&self) {
        self.threads.shutdown_parker.unpark();
    }

    fn seed(&self) -> u64 {
        self.threads.seed
    }

    fn record(&self, worker: Option<usize>, at_nanos: Option<u64>, event: Event) {
        let Some(recorder) = &self.threads.recorder else { return };
        let at_nanos = at_nanos.unwrap_or_else(|| self.nanos());
        // Such a thread is a worker of this pool, so its writer is that of the pool's recorder.
        let is_written = worker.is_some() && write_own(at_nanos, event);
        if !is_written {
            recorder.write_outside(at_nanos, event);
        }
    }
}
