//! Workers that are stuck in a step: what they leave is taken over, and they are reported.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;

use core::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use clockjack_rt::{
    OsInstant, PoolConfig, WorkerPool,
    exec::{Commands, StuckWorker},
};
use eventually::eventually;

const LONG: Duration = Duration::from_secs(60);

fn pool(workers: usize) -> WorkerPool {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).unwrap()
}

/// How late something was, in nanoseconds.
type Late = Arc<AtomicU64>;

fn note(late: &Late, due: OsInstant) {
    let nanos = OsInstant::now().saturating_since(due).as_nanos();
    late.store(u64::try_from(nanos).unwrap().max(1), SeqCst);
}

/// Within which time what a step has left is to begin, at its best: a loaded machine does not wake
/// a thread in time, and sometimes is not loaded.
const LIMIT: Duration = Duration::from_millis(100);

/// Lets a step leave something to do, and then block until that is done, twenty times; says how
/// late it was done. A pool that waits for the blocked worker would wait for ever.
fn trials(
    pool: &WorkerPool,
    leave: impl Fn(Late) -> Box<dyn Send> + Clone + Send + 'static,
) -> Vec<Duration> {
    let trial = |_| {
        let late = Late::default();
        let (leave, to) = (leave.clone(), Arc::clone(&late));
        let blocked = pool.spawn_future(async move {
            let left = leave(Arc::clone(&to));
            eventually("it is done elsewhere", || to.load(SeqCst) != 0);
            left
        });
        drop(pool.block_on(blocked).unwrap());
        Duration::from_nanos(late.load(SeqCst))
    };
    (0..20).map(trial).collect()
}

#[track_caller]
fn assert_prompt(lates: &[Duration]) {
    assert!(lates.iter().any(|late| *late <= LIMIT), "{lates:?}");
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
    let lates = trials(&pool, move |late| {
        let after = Duration::from_millis(5);
        let due = OsInstant::now().saturating_add(after);
        let mut timer = handle.timer();
        // Armed in the shard of this worker, which then does not come to it.
        timer.arm(after, waker(move || note(&late, due))).unwrap();
        Box::new(timer)
    });
    assert_prompt(&lates);
    assert!(pool.stats().timers_taken_over >= 20, "{:?}", pool.stats());
    assert!(pool.shutdown(LONG).is_clean());
}

#[test]
fn what_a_worker_that_blocks_has_woken_runs_elsewhere() {
    let pool = pool(2);
    let lates = trials(&pool, |late| {
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
    });
    assert_prompt(&lates);
    assert!(pool.shutdown(LONG).is_clean());
}

#[test]
fn what_a_worker_that_blocks_has_started_runs_elsewhere() {
    let pool = pool(2);
    let lates = trials(&pool, |late| {
        let due = OsInstant::now();
        drop(clockjack_rt::spawn_future(async move { note(&late, due) }));
        Box::new(())
    });
    assert_prompt(&lates);
    assert!(pool.shutdown(LONG).is_clean());
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
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
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
    assert!(pool.shutdown(LONG).is_clean());
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
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    for n in 1..=3 {
        // Each is reported, though the report before it has failed.
        let stuck = pool.spawn_future(async move {
            while PANICS.load(SeqCst) < n {
                thread::yield_now();
            }
        });
        pool.block_on(stuck).unwrap();
    }
    pool.block_on(pool.handle().sleep(Duration::from_millis(1))).unwrap();
    assert_eq!(pool.stats().watchdog_restarts, 3);
    assert!(pool.shutdown(LONG).is_clean());
}

static OWNED: Mutex<Option<WorkerPool>> = Mutex::new(None);
static IS_DROPPED: AtomicBool = AtomicBool::new(false);

fn dropping_report(_stuck: StuckWorker) {
    let pool = OWNED.lock().unwrap().take();
    if pool.is_some() {
        drop(pool);
        IS_DROPPED.store(true, SeqCst);
    }
}

#[test]
fn a_report_that_drops_the_pool_does_not_wait_for_its_own_thread() {
    let config = PoolConfig {
        workers: Some(1),
        stuck_after: Duration::from_millis(20),
        on_stuck: Some(dropping_report),
        drop_deadline: LONG * 60,
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
