//! What the scenes play on: a host of shuttle's threads, and a executor of workers with a watchdog.
//!
//! Time is virtual and passes only by sleeping: who parks with a deadline lets others run once, and
//! then it is that late. So every thread may be slow, nothing waits for a real clock, and who parks
//! without a deadline and is forgotten there is found as a deadlock.
#![expect(unsafe_code, reason = "promises which worker a thread is")]

use alloc::sync::Arc;
use core::{cell::Cell, ptr, task::Waker, time::Duration};

use clockjack_exec::{
    Commands, ExecutorToolbox, Handle, Limits, PanicPayload,
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    watchdog::Watchdog,
    worker::{self, WorkerLocal},
};
use clockjack_sync::primitive::{
    atomic::{AtomicU64, Ordering::SeqCst},
    become_realtime,
};
use clockjack_time::{Resolution, Tick};
use shuttle::{
    rand::Rng as _,
    sync::{Condvar, Mutex},
    thread::{self, JoinHandle},
};

/// A tick of the scenes: long enough that a step of no time at all is short.
pub(crate) const TICK: Duration = Duration::from_millis(1);
const NANOS_PER_TICK: u64 = 1_000_000;
/// Of so many schedules of a scene one.
pub(crate) const SHARE: usize = 10;
const GRACE_TICKS: u64 = 2;
const QUIET_LOOKS_MAX: u32 = 2;
/// Steps take no time, but the one that a scene blocks: longer than any scene.
const REPORT_AFTER_NANOS: u64 = 10 * NANOS_PER_TICK;

shuttle::thread_local! {
    /// The worker that this thread is.
    static LOCAL: Cell<*const WorkerLocal> = Cell::new(ptr::null());
}

/// A door that is opened once, and waited for by threads.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Blocks the thread, as a step should not do.
    pub(crate) fn wait(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    /// Closes it again behind who came through.
    fn pass(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        *is_open = false;
    }

    fn try_pass(&self) -> bool {
        core::mem::take(&mut *self.is_open.lock().unwrap())
    }
}

/// Runs a scene of a whole executor, which takes some ten times as long as one of a queue.
pub(crate) fn explore(scene: impl Fn() + Clone + Send + Sync + 'static) {
    clockjack_sync::primitive::explore_part(SHARE, scene);
}

/// What the threads of a scene share with the executor.
struct ModelState {
    ticks: AtomicU64,
    workers: Box<[Gate]>,
    watchdog: Gate,
    watchdog_call: Arc<Mutex<WatchdogCall>>,
    seed: u64,
}

/// What the host does when a thread calls the watchdog: it wakes a task.
#[derive(Default)]
pub(crate) struct WatchdogCall {
    pub(crate) is_made: bool,
    pub(crate) task: Option<Waker>,
}

impl ModelState {
    fn park(&self, place: &Gate, until: Option<Tick>) {
        let Some(until) = until else { return place.pass() };
        if !place.try_pass() {
            thread::yield_now();
            if !place.try_pass() {
                self.ticks.fetch_max(until.get(), SeqCst);
            }
        }
    }
}

struct ModelToolbox(Arc<ModelState>);

// SAFETY: (1) the thread-local of shuttle's holds what was last set on this thread, and nothing
// interrupts it. (2) the closure is called once, on this thread.
unsafe impl ExecutorToolbox for ModelToolbox {
    fn nanos(&self) -> u64 {
        self.0.ticks.load(SeqCst) * NANOS_PER_TICK
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / NANOS_PER_TICK)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).unwrap();
        Tick::new((self.nanos() + nanos).div_ceil(NANOS_PER_TICK))
    }

    // Not caught: a panic in a scene is its failure.
    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        turn();
        Ok(())
    }

    fn worker_local(&self) -> *const WorkerLocal {
        LOCAL.try_with(Cell::get).unwrap_or(ptr::null())
    }

    fn enter(&self, local: *const WorkerLocal) -> *const WorkerLocal {
        LOCAL.with(|before| before.replace(local))
    }

    fn park(&self, worker: usize, until: Option<Tick>) {
        self.0.park(&self.0.workers[worker], until);
    }

    fn unpark(&self, worker: usize) {
        self.0.workers[worker].open();
    }

    fn unpark_watchdog(&self) {
        let task = {
            let mut call = self.0.watchdog_call.lock().unwrap();
            call.is_made = true;
            call.task.take()
        };
        task.into_iter().for_each(Waker::wake);
        self.0.watchdog.open();
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn shutdown_progressed(&self) {}

    fn seed(&self) -> u64 {
        self.0.seed
    }
}

/// An executor with its threads.
pub(crate) struct ModelExecutor {
    model: Arc<ModelState>,
    pub(crate) executor: ExecutorRef,
    workers: Box<[Option<JoinHandle<()>>]>,
    watchdog: Option<JoinHandle<()>>,
}

impl ModelExecutor {
    /// Two workers, and a worker in each.
    pub(crate) fn of_two() -> Self {
        Self::with(Limits::SMALL)
    }

    /// One worker.
    pub(crate) fn of_one(limits: Limits) -> Self {
        let mut executor = Self::empty(1, limits);
        executor.start(0);
        executor
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let mut executor = Self::empty(2, limits);
        executor.start(0);
        executor.start(1);
        executor
    }

    /// One worker, whose thread is of a real-time class.
    pub(crate) fn of_realtime(limits: Limits) -> Self {
        let mut executor = Self::empty(1, limits);
        executor.start_after(0, become_realtime);
        executor
    }

    /// Slots without workers.
    pub(crate) fn empty(workers: usize, limits: Limits) -> Self {
        let model = Arc::new(ModelState {
            ticks: AtomicU64::new(1),
            workers: (0..workers).map(|_| Gate::default()).collect(),
            watchdog: Gate::default(),
            watchdog_call: Arc::default(),
            seed: shuttle::rand::thread_rng().r#gen(),
        });
        let config = ExecutorConfig {
            workers,
            node: 0,
            limits,
            resolution: Resolution::from_nanos(1_000_000).unwrap(),
            tolerance_ticks: GRACE_TICKS,
            quiet_polls_max: QUIET_LOOKS_MAX,
        };
        let host = Box::new(ModelToolbox(Arc::clone(&model)));
        let executor = ExecutorShared::new(host, &config, Commands::new()).unwrap();
        Self { model, executor, workers: (0..workers).map(|_| None).collect(), watchdog: None }
    }

    /// What happens with the next call of the watchdog.
    pub(crate) fn watchdog_call(&self) -> Arc<Mutex<WatchdogCall>> {
        Arc::clone(&self.model.watchdog_call)
    }

    /// Starts a worker, and waits until it runs.
    pub(crate) fn start(&mut self, worker: usize) {
        self.start_after(worker, || {});
    }

    fn start_after(&mut self, worker: usize, first: fn()) {
        let (executor, started) = (self.executor.clone(), Arc::new(Gate::default()));
        let on_start = Arc::clone(&started);
        let thread = thread::spawn(move || {
            first();
            worker::run_worker_with(&executor, worker, || on_start.open());
        });
        started.wait();
        assert!(self.workers[worker].replace(thread).is_none());
    }

    /// Starts the watchdog, as the pool does.
    pub(crate) fn start_watchdog(&mut self) {
        let (executor, model) = (self.executor.clone(), Arc::clone(&self.model));
        self.watchdog = Some(thread::spawn(move || {
            let mut watchdog = Watchdog::new(model.workers.len(), REPORT_AFTER_NANOS);
            while !executor.are_timers_closed() {
                let until = watchdog.poll(&executor, |_| {});
                model.park(&model.watchdog, until);
            }
        }));
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::new(self.executor.clone())
    }

    /// Lets time pass while everybody is awake.
    pub(crate) fn clock(&self) -> impl Fn(u64) + Send + 'static {
        let model = Arc::clone(&self.model);
        move |ticks| _ = model.ticks.fetch_add(ticks, SeqCst)
    }

    /// Asks a worker to leave, and waits for that.
    pub(crate) fn stop_worker(&mut self, worker: usize) {
        let thread = self.workers[worker].take().unwrap();
        self.executor.request_worker_stop(worker);
        thread.join().unwrap();
        assert!(!self.executor.is_worker_running(worker));
    }

    /// Asks a worker to leave, and does not wait for that: the requester of `worker/leave.md`, as a
    /// pool that is resized.
    pub(crate) fn ask_to_leave(&self, worker: usize) {
        self.executor.request_worker_stop(worker);
    }

    /// Withdraws the request. If the worker has accepted it already, starts a successor, which
    /// waits for the slot on its own thread (rules 1 and 6).
    pub(crate) fn want_again(&mut self, worker: usize) {
        if self.executor.withdraw_worker_stop(worker) {
            return;
        }
        let before = self.workers[worker].take().unwrap();
        let executor = self.executor.clone();
        let successor = thread::spawn(move || {
            before.join().unwrap();
            worker::run_worker_with(&executor, worker, || {});
        });
        self.workers[worker] = Some(successor);
    }

    /// Ends it all: everything that was started has ended, and nothing of the executor is left when
    /// the last of its threads has gone.
    pub(crate) fn end(mut self) {
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_some() {
                self.stop_worker(worker);
            }
        }
        assert_eq!(self.executor.live_len(), 0, "{:?}", self.executor.stats());
        self.executor.live_tasks(|alive| panic!("{alive:?} is alive"));
        self.executor.close_timers();
        self.executor.close_run_queue();
        self.model.watchdog.open();
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.join().unwrap();
        }
        let Self { model, executor, .. } = self;
        drop(executor);
        assert_eq!(Arc::strong_count(&model), 1, "the executor is left behind");
    }
}
