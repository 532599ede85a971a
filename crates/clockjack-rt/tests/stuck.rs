//! Workers that are stuck in a step: what they leave is taken over, and they are reported.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread,
};

use clockjack_rt::{
    OsInstant, Parker, PoolConfig, WorkerPool,
    exec::{Commands, Handle, StuckWorker},
};
use clockjack_testing::{InTime, keeps_deadline};
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);

fn pool(workers: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    InTime::new(WorkerPool::new(config, Commands::new()).unwrap(), PoolConfig::DEFAULT.drop_timeout)
}

/// How late something was, in nanoseconds.
type Late = Arc<AtomicU64>;

fn note(late: &Late, due: OsInstant) {
    let nanos = OsInstant::now().saturating_since(due).as_nanos();
    late.store(u64::try_from(nanos).unwrap().max(1), SeqCst);
}

/// Of so many trials so many begin within the limit, what a step has left.
const TRIALS: usize = 100;
const PROMPT_MIN: usize = 95;
const LIMIT: Duration = Duration::from_millis(5);
/// A loaded machine does not wake a thread in time, and sometimes is not loaded.
const ATTEMPTS: usize = 60;
/// How late a thread that does nothing but sleep may be during a trial that counts.
const QUIET: Duration = Duration::from_micros(500);

/// A thread that parks for short times, as the threads of a pool do, and notes how late it wakes:
/// that is the machine's doing.
#[derive(Default)]
struct Sentinel {
    worst_nanos: AtomicU64,
    rounds: AtomicUsize,
    is_over: AtomicBool,
}

impl Sentinel {
    fn run(&self) {
        let parker = Parker::new();
        while !self.is_over.load(SeqCst) {
            let due = OsInstant::now().saturating_add(Duration::from_micros(500));
            parker.park(Some(due));
            let late = OsInstant::now().saturating_since(due).as_nanos();
            self.worst_nanos.fetch_max(u64::try_from(late).unwrap(), SeqCst);
            self.rounds.fetch_add(1, SeqCst);
        }
    }

    /// Runs a trial; `None` if the machine did not run threads in time meanwhile.
    fn watch<R>(&self, trial: impl FnOnce() -> R) -> Option<R> {
        self.worst_nanos.store(0, SeqCst);
        let result = trial();
        // The sleep that is under way may be a late one.
        let round = self.rounds.load(SeqCst);
        eventually("the sentinel wakes", || self.rounds.load(SeqCst) > round);
        (Duration::from_nanos(self.worst_nanos.load(SeqCst)) <= QUIET).then_some(result)
    }
}

/// Lets a step leave something to do, and then block until that is done; says how late it was done.
/// A pool that waits for the blocked worker would wait for ever.
fn trial(
    pool: &WorkerPool,
    leave: impl Fn(Late) -> Box<dyn Send> + Clone + Send + 'static,
) -> Duration {
    let late = Late::default();
    let (leave, to) = (leave.clone(), Arc::clone(&late));
    let blocked = pool.spawn_future(async move {
        let left = leave(Arc::clone(&to));
        eventually("it is done elsewhere", || to.load(SeqCst) != 0);
        left
    });
    drop(pool.block_on(blocked).unwrap());
    Duration::from_nanos(late.load(SeqCst))
}

/// Tries until enough of the trials of one attempt are prompt.
#[track_caller]
fn assert_prompt(mut trial: impl FnMut() -> Duration) {
    let sentinel = Sentinel::default();
    let best = thread::scope(|scope| {
        scope.spawn(|| sentinel.run());
        let mut best = 0;
        for _ in 0..ATTEMPTS {
            let quiet = (0..20 * TRIALS).filter_map(|_| sentinel.watch(&mut trial));
            let n_prompt = quiet.take(TRIALS).filter(|late| *late <= LIMIT).count();
            best = best.max(n_prompt);
            if best >= PROMPT_MIN {
                break;
            }
        }
        sentinel.is_over.store(true, SeqCst);
        best
    });
    assert!(best >= PROMPT_MIN, "at best {best} of {TRIALS} within {LIMIT:?}");
}

fn waker(f: impl Fn() + Send + Sync + 'static) -> core::task::Waker {
    struct Call<F>(F);
    impl<F: Fn() + Send + Sync + 'static> std::task::Wake for Call<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    Arc::new(Call(f)).into()
}

#[test]
fn the_timers_of_a_worker_that_blocks_fire_elsewhere() {
    let pool = pool(2);
    let handle = pool.handle();
    let mut n_trials = 0;
    let leave = move |late: Late| -> Box<dyn Send> {
        let after = Duration::from_millis(5);
        let due = OsInstant::now().saturating_add(after);
        let mut timer = handle.timer();
        // Armed in the shard of this worker, which then does not come to it.
        timer.arm(after, waker(move || note(&late, due))).unwrap();
        Box::new(timer)
    };
    assert_prompt(|| {
        n_trials += 1;
        trial(&pool, leave.clone())
    });
    assert_eq!(pool.stats().timers_taken_over, n_trials, "{:?}", pool.stats());
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn what_a_worker_that_blocks_has_woken_runs_elsewhere() {
    let pool = pool(2);
    let leave = |late: Late| -> Box<dyn Send> {
        let (wake, woken) = mpsc::channel::<core::task::Waker>();
        let due = Arc::new(Mutex::new(None::<OsInstant>));
        let is_due = Arc::clone(&due);
        let waits = core::future::poll_fn(move |cx| match *is_due.lock().unwrap() {
            Some(due) => core::task::Poll::Ready(due),
            None => {
                wake.send(cx.waker().clone()).unwrap();
                core::task::Poll::Pending
            }
        });
        drop(clockjack_rt::spawn_future(async move { note(&late, waits.await) }));
        // Another worker has taken it and it waits; so that it is this one that wakes it.
        let waker = woken.recv().unwrap();
        *due.lock().unwrap() = Some(OsInstant::now());
        waker.wake();
        Box::new(())
    };
    assert_prompt(|| trial(&pool, leave));
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn what_a_worker_that_blocks_has_started_runs_elsewhere() {
    let pool = pool(2);
    let leave = |late: Late| -> Box<dyn Send> {
        let due = OsInstant::now();
        drop(clockjack_rt::spawn_future(async move { note(&late, due) }));
        Box::new(())
    };
    assert_prompt(|| trial(&pool, leave));
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

/// A step that goes on until one timer has fired, and then blocks until the task of that timer has
/// run; how late that was.
async fn blocks_after_one_timer(handle: Handle) -> Duration {
    let late = Late::default();
    let due = Arc::new(OnceLock::new());
    let fired = handle.stats().timers_fired;
    drop(clockjack_rt::spawn_future({
        let (late, due) = (Arc::clone(&late), Arc::clone(&due));
        async move {
            clockjack_rt::sleep(Duration::from_millis(2)).await.unwrap();
            note(&late, *due.get_or_init(OsInstant::now));
        }
    }));
    while handle.stats().timers_fired == fired {
        clockjack_rt::yield_now().await;
    }
    due.get_or_init(OsInstant::now);
    eventually("it runs elsewhere", || late.load(SeqCst) != 0);
    Duration::from_nanos(late.load(SeqCst))
}

#[test]
fn the_task_of_the_one_timer_that_a_worker_fires_before_it_blocks_runs_elsewhere() {
    let pool = pool(2);
    assert_prompt(|| {
        pool.block_on(pool.spawn_future(blocks_after_one_timer(pool.handle()))).unwrap()
    });
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

static REPORTS: Mutex<Vec<StuckWorker>> = Mutex::new(Vec::new());

fn report(stuck: StuckWorker) {
    REPORTS.lock().unwrap().push(stuck);
}

#[test]
fn each_step_that_is_stuck_is_reported_once_with_its_process_and_how_long() {
    let stuck_after = Duration::from_millis(50);
    let config =
        PoolConfig { workers: Some(2), stuck_after, on_stuck: Some(report), ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let mut pids = Vec::new();
    for _ in 0..3 {
        let n_before = REPORTS.lock().unwrap().len();
        let stuck = pool.spawn_future(async move {
            while REPORTS.lock().unwrap().len() == n_before {
                thread::yield_now();
            }
            // Long enough for another report, if there were one.
            thread::sleep(stuck_after * 4);
        });
        pids.push(stuck.pid());
        pool.block_on(stuck).unwrap();
    }
    let reports = REPORTS.lock().unwrap();
    assert_eq!(reports.iter().map(|stuck| stuck.pid).collect::<Vec<_>>(), pids);
    for stuck in reports.iter() {
        assert!(stuck.for_nanos >= u64::try_from(stuck_after.as_nanos()).unwrap());
        assert!(stuck.worker < 2);
    }
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "what was thrown fails as well");
    }
}

fn panicking_report(_stuck: StuckWorker) {
    PANICS.fetch_add(1, SeqCst);
    std::panic::panic_any(Bomb);
}

#[test]
fn a_report_that_panics_does_not_end_the_watch() {
    let config = PoolConfig {
        workers: Some(2),
        stuck_after: Duration::from_millis(20),
        on_stuck: Some(panicking_report),
        ..PoolConfig::DEFAULT
    };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    for n in 1..=3 {
        // Each is reported, though the report before it has failed.
        let stuck = pool.spawn_future(async move {
            while PANICS.load(SeqCst) < n {
                thread::yield_now();
            }
        });
        pool.block_on(stuck).unwrap();
    }
    // A loaded machine makes other steps look stuck, too.
    eventually("all are counted", || pool.stats().watchdog_restarts >= 3);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

static OWNED: Mutex<Option<WorkerPool>> = Mutex::new(None);
static IS_DROPPED: AtomicBool = AtomicBool::new(false);

fn dropping_report(_stuck: StuckWorker) {
    let pool = OWNED.lock().unwrap().take();
    if let Some(pool) = pool {
        keeps_deadline(PoolConfig::DEFAULT.drop_timeout, || drop(pool));
        IS_DROPPED.store(true, SeqCst);
    }
}

#[test]
fn a_report_that_drops_the_pool_does_not_wait_for_its_own_thread() {
    let config = PoolConfig {
        workers: Some(1),
        stuck_after: Duration::from_millis(20),
        on_stuck: Some(dropping_report),
        drop_timeout: LONG * 60,
        ..PoolConfig::DEFAULT
    };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    let handle = pool.handle();
    *OWNED.lock().unwrap() = Some(pool);
    let theirs = handle.clone();
    drop(handle.spawn_future(async move {
        while !theirs.is_stopping() {
            thread::yield_now();
        }
    }));
    eventually("the pool is gone", || IS_DROPPED.load(SeqCst));
}
