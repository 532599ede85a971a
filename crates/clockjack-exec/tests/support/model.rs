//! A toolbox on one thread, on which several workers run in turn and time advances only by hand.
//!
//! A worker that is blocked in a step is modelled by what it does there: the step itself lets other
//! workers work, by [`Model::work`] on the same thread, until they find nothing and want to sleep.
//! So every run is the same, and what a worker does not find it will not have found.

use alloc::{sync::Arc, task::Wake};
use core::{
    cell::Cell,
    panic::AssertUnwindSafe,
    pin::Pin,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Mutex, MutexGuard, OnceLock},
};

use clockjack_exec::{
    Commands, ExecutorToolbox, Handle, JoinHandle, Limits, PanicPayload, Sleep, StuckWorker,
    TimerError, TimerSource,
    executor::{ExecutorConfig, ExecutorShared},
    watchdog::Watchdog,
    worker::{self, WorkerLocal},
};
use clockjack_time::{Resolution, Tick};

/// Nanoseconds of a tick.
pub(crate) const TICK: u64 = 1_000_000;
/// How late a shard may be, in ticks.
pub(crate) const TOLERANCE: u64 = 2;
/// After which time in a step a worker is reported.
pub(crate) const STUCK_AFTER: u64 = 100 * TICK;

thread_local! {
    static LOCAL: Cell<*const WorkerLocal> = const { Cell::new(ptr::null()) };
}

/// What host and test share.
#[derive(Default)]
pub(crate) struct State {
    nanos: AtomicU64,
    /// A worker that sleeps until this time or earlier sleeps; one that would for longer leaves.
    horizon: AtomicU64,
    /// How far the clock goes each time a searching worker lets others run.
    per_yield: AtomicU64,
    tokens: Vec<AtomicBool>,
    parks: AtomicUsize,
    watchdog_unparks: AtomicUsize,
    thread_number: AtomicUsize,
    handle: Mutex<Option<Handle>>,
    source: OnceLock<Box<dyn TimerSource>>,
}

/// An executor with some workers, and its watchdog.
pub(crate) struct Model {
    state: Arc<State>,
    watchdog: Mutex<Watchdog>,
    handle: Handle,
}

impl Model {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Self::with_limits(workers, Limits::DEFAULT)
    }

    pub(crate) fn with_limits(workers: usize, limits: Limits) -> Arc<Self> {
        let tokens = (0..workers).map(|_| AtomicBool::new(false)).collect();
        let state = Arc::new(State { tokens, ..State::default() });
        let config = ExecutorConfig {
            workers,
            node: 0,
            limits,
            resolution: Resolution::MILLI,
            tolerance_ticks: TOLERANCE,
            quiet_polls_max: 5,
        };
        let host = Box::new(ModelHost(Arc::clone(&state)));
        let executor = ExecutorShared::new(host, &config, Commands::new()).unwrap();
        let handle = Handle::new(executor);
        *state.handle.lock().unwrap() = Some(handle.clone());
        Arc::new(Self { state, watchdog: Mutex::new(Watchdog::new(workers, STUCK_AFTER)), handle })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sets what the workers poll next to their timers.
    pub(crate) fn set_source(&self, source: impl TimerSource + 'static) {
        assert!(self.state.source.set(Box::new(source)).is_ok(), "it is set once");
    }

    pub(crate) fn now(&self) -> u64 {
        self.state.nanos.load(SeqCst)
    }

    pub(crate) fn advance(&self, nanos: u64) {
        self.state.nanos.fetch_add(nanos, SeqCst);
    }

    /// The clock goes on by so much each time a searching worker lets others run.
    pub(crate) fn advance_at_yields(&self, nanos: u64) {
        self.state.per_yield.store(nanos, SeqCst);
    }

    /// Works in a worker until there is nothing to do before `horizon`, sleeping in between.
    pub(crate) fn work_until(&self, worker: usize, horizon: u64) {
        let before = self.state.horizon.swap(horizon, SeqCst);
        worker::run_worker(self.handle.executor(), worker);
        self.state.horizon.store(before, SeqCst);
    }

    /// Works in a worker until there is nothing to do now.
    pub(crate) fn work(&self, worker: usize) {
        self.work_until(worker, 0);
    }

    /// A look of the watchdog: until when it would sleep, and whom it reports.
    pub(crate) fn look(&self) -> (Option<u64>, Vec<StuckWorker>) {
        let mut stuck = Vec::new();
        let mut watchdog: MutexGuard<'_, Watchdog> = self.watchdog.lock().unwrap();
        let until = watchdog.poll(self.handle.executor(), |worker| stuck.push(worker));
        (until.map(Tick::get), stuck)
    }

    /// The number of the thread of the test, as that of several threads outside.
    pub(crate) fn set_thread_number(&self, number: usize) {
        self.state.thread_number.store(number, SeqCst);
    }

    /// Whether a worker was unparked since the last call.
    pub(crate) fn take_unparked(&self, worker: usize) -> bool {
        self.state.tokens[worker].swap(false, SeqCst)
    }

    /// How often a worker wanted to sleep.
    pub(crate) fn parks(&self) -> usize {
        self.state.parks.load(SeqCst)
    }

    /// How often the watchdog was called out of its sleep.
    pub(crate) fn watchdog_unparks(&self) -> usize {
        self.state.watchdog_unparks.load(SeqCst)
    }

    /// Ends the circle of executor and host.
    pub(crate) fn finish(&self) {
        let executor = self.handle.executor();
        executor.begin_shutdown();
        executor.terminate_all(|_| ());
        self.work(0);
        assert_eq!(executor.live_len(), 0, "everything ends at its next turn");
        executor.close_timers();
        drop(self.state.handle.lock().unwrap().take());
    }
}

/// The worker of the worker that runs the caller.
pub(crate) fn worker() -> Option<usize> {
    // SAFETY: a worker sets it to what lives until it sets something else.
    unsafe { LOCAL.get().as_ref() }.map(WorkerLocal::index)
}

struct ModelHost(Arc<State>);

// SAFETY: (1) the thread-local holds what was last set on this thread, and nothing interrupts it.
// (2) the closure is called once, on this thread.
unsafe impl ExecutorToolbox for ModelHost {
    fn nanos(&self) -> u64 {
        self.0.nanos.load(SeqCst)
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / TICK)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let due = self.nanos().saturating_add(nanos);
        if due == u64::MAX { Tick::MAX } else { Tick::new(due.div_ceil(TICK)) }
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_unwind(AssertUnwindSafe(turn)).map_err(PanicPayload::new)
    }

    fn worker_local(&self) -> *const WorkerLocal {
        LOCAL.get()
    }

    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal {
        LOCAL.replace(local)
    }

    fn park(&self, worker: usize, until: Option<Tick>) {
        self.0.parks.fetch_add(1, SeqCst);
        if self.0.tokens[worker].swap(false, SeqCst) {
            return;
        }
        match until.map(|tick| tick.get().saturating_mul(TICK)) {
            Some(until) if until <= self.0.horizon.load(SeqCst) => {
                self.0.nanos.fetch_max(until, SeqCst);
            }
            _ => {
                let handle = self.0.handle.lock().unwrap().clone();
                handle.expect("nobody works after the end").executor().request_worker_stop(worker);
            }
        }
    }

    fn unpark(&self, worker: usize) {
        self.0.tokens[worker].store(true, SeqCst);
    }

    fn unpark_watchdog(&self) {
        self.0.watchdog_unparks.fetch_add(1, SeqCst);
    }

    fn yield_now(&self) {
        let per_yield = self.0.per_yield.load(Relaxed);
        self.0.nanos.fetch_add(per_yield, SeqCst);
    }

    fn thread_number(&self) -> usize {
        self.0.thread_number.load(SeqCst)
    }

    fn source(&self) -> Option<&dyn TimerSource> {
        self.0.source.get().map(|source| &**source)
    }

    fn shutdown_progressed(&self) {}

    fn seed(&self) -> u64 {
        0
    }
}

/// A waker of the test's own: the executor does not know whom it wakes.
pub(crate) struct Note<F>(pub(crate) F);

impl<F: Fn() + Send + Sync + 'static> Wake for Note<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A waker that calls this.
pub(crate) fn waker(f: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Note(f)))
}

/// A waker that counts how often it was called.
pub(crate) fn counter(count: &Arc<AtomicUsize>) -> Waker {
    let count = Arc::clone(count);
    waker(move || {
        count.fetch_add(1, SeqCst);
    })
}

/// A sleep that is polled with a waker of another kind, as combinators do.
pub(crate) struct Wrapped(pub(crate) Sleep);

impl Future for Wrapped {
    type Output = Result<(), TimerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = cx.waker().clone();
        let outer = waker(move || inner.wake_by_ref());
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&outer))
    }
}

/// What a process that has ended gave; a panic in it is one here.
#[track_caller]
pub(crate) fn ended<T>(mut join: JoinHandle<T>) -> T {
    match Pin::new(&mut join).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(output)) => output,
        Poll::Ready(Err(exit)) => panic!("{exit}"),
        Poll::Pending => panic!("it has not ended"),
    }
}
