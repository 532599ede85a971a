//! Hosts in which nothing happens by itself: time passes by hand, and a worker that parks is given
//! the next act of a script.

use alloc::{collections::VecDeque, sync::Arc, task::Wake};
use core::{
    cell::{Cell, RefCell},
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::panic::catch_unwind;

use clockjack_exec::{
    Commands, ExecutorToolbox, Handle, Limits, LocalExecutor, PanicPayload,
    executor::{ExecutorConfig, ExecutorShared},
    worker::{self, WorkerLocal},
};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::{ManualClock, Resolution, Tick};

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (Arc::clone(&woken), Waker::from(woken))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Polls once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(waker))
}

pub(crate) const fn ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks)
}

/// An executor of one thread, and the hand of its clock.
pub(crate) fn bench() -> (LocalExecutor, Arc<ManualClock>) {
    let (host, clock) = ByHand::new(Resolution::MILLI);
    let executor = LocalExecutor::new(host, Limits::DEFAULT, Commands::new());
    (executor.expect("there are no commands to clash"), clock)
}

thread_local! {
    static LOCAL: Cell<*const WorkerLocal> = const { Cell::new(ptr::null()) };
    static NANOS: Cell<u64> = const { Cell::new(0) };
    static ON_UNPARK: RefCell<Option<Act>> = const { RefCell::new(None) };
    static ON_WATCHDOG: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
    static ACTS: RefCell<VecDeque<Act>> = const { RefCell::new(VecDeque::new()) };
    static HANDLE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

type Act = Box<dyn FnOnce()>;

const TICK: u64 = 1_000_000;

/// The toolbox of workers that all run on the thread of the test, one at a time. Its state is
/// thread-local.
struct ModelState;

// SAFETY: (1) the thread-local holds what was last set on this thread, and nothing interrupts it.
// (2) the closure is called once, here.
unsafe impl ExecutorToolbox for ModelState {
    fn nanos(&self) -> u64 {
        NANOS.get()
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / TICK)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).expect("a short time");
        Tick::new((NANOS.get() + nanos).div_ceil(TICK))
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

    fn park(&self, worker: usize, _until: Option<Tick>) {
        let act = ACTS.with_borrow_mut(VecDeque::pop_front);
        match act {
            Some(act) => act(),
            None => dismiss(worker),
        }
    }

    fn unpark(&self, _seat: usize) {
        let act = ON_UNPARK.take();
        if let Some(act) = act {
            act();
        }
    }

    fn unpark_watchdog(&self) {
        ON_WATCHDOG.with_borrow(|act| act.iter().for_each(|act| act()));
    }

    fn yield_now(&self) {}

    fn shutdown_progressed(&self) {}

    fn seed(&self) -> u64 {
        1
    }
}

/// An executor with so many workers, for workers of this thread.
pub(crate) fn stage(workers: usize) -> Handle {
    stage_with(workers, Limits::DEFAULT)
}

/// As [`stage`], with these limits.
pub(crate) fn stage_with(workers: usize, limits: Limits) -> Handle {
    let config = ExecutorConfig {
        workers,
        node: 0,
        limits,
        resolution: Resolution::MILLI,
        tolerance_ticks: 2,
        quiet_polls_max: 1,
    };
    let executor = ExecutorShared::new(Box::new(ModelState), &config, Commands::new());
    let executor = executor.expect("there are no commands to clash");
    let handle = Handle::new(executor);
    enter(&handle);
    handle
}

/// Makes this thread one on which workers of a stage may work.
pub(crate) fn enter(handle: &Handle) {
    HANDLE.set(Some(handle.clone()));
}

/// Whether this thread passes for a worker.
pub(crate) fn is_worker() -> bool {
    !LOCAL.get().is_null()
}

/// Asks the worker of a worker to leave.
pub(crate) fn dismiss(worker: usize) {
    HANDLE.with_borrow(|handle| {
        let handle = handle.as_ref().expect("there is a stage");
        handle.executor().request_worker_stop(worker);
    });
}

/// Plays this when the next sleeping worker is called, in the middle of whatever calls it.
pub(crate) fn when_a_worker_is_called(act: impl FnOnce() + 'static) {
    ON_UNPARK.set(Some(Box::new(act)));
}

/// Plays this each time the watchdog is called, in the middle of whatever calls it.
pub(crate) fn whenever_the_watchdog_is_called(act: impl Fn() + 'static) {
    ON_WATCHDOG.set(Some(Box::new(act)));
}

/// Lets time pass.
pub(crate) fn pass(ticks: u64) {
    NANOS.set(NANOS.get() + ticks * TICK);
}

/// Puts the clock back.
pub(crate) fn step_back(ticks: u64) {
    NANOS.set(NANOS.get() - ticks * TICK);
}

/// Works in a worker. Each time there is nothing to do, the next act is played; after the last the
/// worker leaves.
pub(crate) fn work(handle: &Handle, worker: usize, acts: Vec<Act>) {
    ACTS.set(acts.into());
    worker::run_worker(handle.executor(), worker);
}

/// Ends what a stage holds.
pub(crate) fn close(handle: &Handle) {
    let executor = handle.executor();
    executor.begin_shutdown();
    executor.terminate_all(|_| {});
    work(handle, 0, Vec::new());
    executor.close_timers();
    assert_eq!(executor.live_len(), 0);
    HANDLE.set(None);
    ON_WATCHDOG.set(None);
}
