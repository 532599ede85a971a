//! The pool for blocking work: bounds, reuse, panics, shutdown.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    pin::pin,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    panic::{catch_unwind, panic_any},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    task::Wake,
    thread::{self, Thread, ThreadId},
};

use clockjack_rt::{BlockingConfig, BlockingPool, BlockingReport};
use clockjack_testing::keeps_deadline;
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(3600);

fn pool(threads_max: usize, queue_max: usize) -> BlockingPool {
    let config =
        BlockingConfig { threads_max, queue_max, keep_alive: LONG, ..BlockingConfig::DEFAULT };
    BlockingPool::new(config).unwrap()
}

/// A closure that runs until it is told to end, or its gate is dropped.
struct Gate {
    end: Sender<()>,
    began: Receiver<ThreadId>,
}

impl Gate {
    fn submit(pool: &BlockingPool) -> Self {
        let ((end, ends), (begin, began)) = (channel::<()>(), channel());
        let work = move || {
            begin.send(thread::current().id()).unwrap();
            let _ = ends.recv();
        };
        pool.submit(work).unwrap();
        Self { end, began }
    }

    fn wait_for_start(&self) -> ThreadId {
        self.began.recv().unwrap()
    }
}

fn wait_for_idle(pool: &BlockingPool, n_idle: usize) {
    eventually(&format!("{n_idle} threads are idle"), || pool.stats().idle == n_idle);
}

fn run(pool: &BlockingPool) -> ThreadId {
    let (answer, answers) = channel();
    pool.submit(move || answer.send(thread::current().id()).unwrap()).unwrap();
    answers.recv().unwrap()
}

#[test]
fn as_many_run_at_once_as_there_may_be_threads() {
    let pool = pool(3, 2);
    let running = [(); 3].map(|()| Gate::submit(&pool));
    let threads = running.each_ref().map(Gate::wait_for_start);
    let waiting = [(); 2].map(|()| Gate::submit(&pool));
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.running, stats.queued), (3, 3, 2));

    drop(running);
    for gate in &waiting {
        assert!(threads.contains(&gate.wait_for_start()));
    }
    assert_eq!(pool.stats().threads_started, 3);
}

#[test]
fn what_is_beyond_the_bound_comes_back() {
    let pool = pool(2, 1);
    let gates = [(); 3].map(|()| Gate::submit(&pool));
    // Whether the threads have started by now does not matter.
    let (answer, answers) = channel();
    let rejected = pool.submit(move || answer.send('a').unwrap()).unwrap_err();
    assert!(rejected.is_full() && !rejected.is_closed() && !rejected.is_no_thread());
    assert_eq!(rejected.to_string(), "blocking work refused: the pool is full");
    rejected.into_inner()();
    assert_eq!((answers.recv(), pool.stats().refused), (Ok('a'), 1));

    drop(gates);
    eventually("room again", || pool.submit(|| ()).is_ok());
}

#[test]
fn without_a_queue_a_free_thread_is_enough() {
    let pool = pool(1, 0);
    let gate = Gate::submit(&pool);
    assert!(pool.submit(|| ()).unwrap_err().is_full());
    gate.end.send(()).unwrap();
    wait_for_idle(&pool, 1);
    run(&pool);
}

#[test]
fn an_idle_thread_is_used_before_another_is_started() {
    let pool = pool(8, 8);
    let first = run(&pool);
    for _ in 0..100 {
        wait_for_idle(&pool, 1);
        assert_eq!(run(&pool), first);
        assert_eq!(pool.stats().threads, 1);
    }
}

#[test]
fn of_two_idle_threads_the_last_to_rest_is_called() {
    let pool = pool(2, 8);
    let (early, late) = (Gate::submit(&pool), Gate::submit(&pool));
    let last = {
        early.wait_for_start();
        late.wait_for_start()
    };
    early.end.send(()).unwrap();
    wait_for_idle(&pool, 1);
    late.end.send(()).unwrap();
    wait_for_idle(&pool, 2);
    for _ in 0..10 {
        assert_eq!(run(&pool), last);
        wait_for_idle(&pool, 2);
    }
}

#[test]
fn idle_threads_leave_and_others_start_again() {
    let config = BlockingConfig { keep_alive: Duration::from_millis(1), ..BlockingConfig::DEFAULT };
    let pool = BlockingPool::new(config).unwrap();
    for round in 1..=3 {
        run(&pool);
        eventually("the thread has left", || pool.stats().threads == 0);
        assert_eq!(pool.stats().threads_started, round);
    }
}

#[test]
fn nothing_is_lost_between_submitters_and_threads_that_leave() {
    const SUBMITTERS: u64 = 4;
    const CLOSURES: u64 = 2_000;
    let config = BlockingConfig {
        threads_max: 3,
        queue_max: 16,
        keep_alive: Duration::ZERO,
        ..BlockingConfig::DEFAULT
    };
    let (pool, done) = (BlockingPool::new(config).unwrap(), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                for _ in 0..CLOSURES {
                    let done = Arc::clone(&done);
                    let mut work = move || {
                        done.fetch_add(1, SeqCst);
                    };
                    while let Err(rejected) = pool.submit(work) {
                        assert!(rejected.is_full(), "{rejected}");
                        work = rejected.into_inner();
                        thread::yield_now();
                    }
                }
            });
        }
    });
    eventually("all have run", || done.load(SeqCst) == SUBMITTERS * CLOSURES);
    eventually("all are counted", || pool.stats().finished == SUBMITTERS * CLOSURES);
    eventually("all threads have left", || pool.stats().threads == 0);
}

/// What is thrown, and throws again when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_is_counted_and_the_thread_goes_on() {
    let pool = pool(1, 8);
    let thread = run(&pool);
    pool.submit(|| panic!("on purpose")).unwrap();
    pool.submit(|| panic_any(Grenade)).unwrap();
    assert_eq!(run(&pool), thread);
    eventually("all are counted", || pool.stats().finished == 4);
    assert_eq!(pool.stats().panicked, 2);
}

#[test]
fn shutdown_waits_for_what_runs() {
    let pool = pool(2, 8);
    let (running, done) = (Gate::submit(&pool), Arc::new(AtomicUsize::new(0)));
    running.wait_for_start();
    let report = thread::scope(|scope| {
        let shutdown = scope.spawn(|| pool.shutdown_in_time(LONG));
        eventually("closed", || pool.is_closed());
        done.fetch_add(1, SeqCst);
        running.end.send(()).unwrap();
        shutdown.join().unwrap()
    });
    assert_eq!(report, BlockingReport { finished: 1, abandoned: 0, dropped: 0 });
    assert_eq!((done.load(SeqCst), pool.stats().threads), (1, 0));
    let rejected = pool.submit(|| ()).unwrap_err();
    assert!(rejected.is_closed());
    assert_eq!(rejected.to_string(), "blocking work refused: the pool is shut down");
}

#[test]
fn shutdown_leaves_a_stuck_closure_alone_and_drops_what_is_queued() {
    let pool = pool(1, 8);
    let stuck = Gate::submit(&pool);
    stuck.wait_for_start();
    let token = Arc::new(());
    for _ in 0..3 {
        let token = Arc::clone(&token);
        pool.submit(move || unreachable!("{token:?}")).unwrap();
    }
    let report = pool.shutdown_in_time(Duration::from_millis(5));
    assert_eq!(report, BlockingReport { finished: 0, abandoned: 1, dropped: 3 });
    assert_eq!(Arc::strong_count(&token), 1, "what was queued is dropped");
    assert_eq!((pool.stats().dropped, pool.stats().panicked), (3, 0));

    // Called again, it waits for what was left.
    stuck.end.send(()).unwrap();
    let report = pool.shutdown_in_time(LONG);
    assert_eq!((report.abandoned, report.dropped, pool.stats().threads), (0, 0, 0));
}

#[test]
fn a_closure_that_shuts_its_pool_down_waits_for_the_others_and_not_for_itself() {
    let pool = Arc::new(pool(2, 8));
    let other = Gate::submit(&pool);
    other.wait_for_start();
    let (sender, receiver) = channel();
    let theirs = Arc::clone(&pool);
    pool.submit(move || sender.send(theirs.shutdown_in_time(LONG)).unwrap()).unwrap();
    eventually("closed", || pool.is_closed());
    assert!(receiver.try_recv().is_err(), "the other still runs");
    other.end.send(()).unwrap();
    let report = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(report, BlockingReport { finished: 1, abandoned: 1, dropped: 0 });
    assert_eq!(pool.shutdown_in_time(LONG).abandoned, 0);
}

#[test]
fn a_queued_closure_whose_drop_panics_does_not_stop_a_shutdown() {
    let pool = pool(1, 8);
    let gate = Gate::submit(&pool);
    gate.wait_for_start();
    let token = Arc::new(());
    for _ in 0..2 {
        let (grenade, token) = (Grenade, Arc::clone(&token));
        pool.submit(move || drop((grenade, token))).unwrap();
    }
    let report =
        catch_unwind(core::panic::AssertUnwindSafe(|| pool.shutdown_in_time(Duration::ZERO)));
    assert_eq!(report.unwrap(), BlockingReport { finished: 0, abandoned: 1, dropped: 2 });
    assert_eq!((pool.stats().panicked, Arc::strong_count(&token)), (2, 1));
    drop(gate);
    assert_eq!(pool.shutdown_in_time(LONG).abandoned, 0);
}

#[test]
fn dropping_a_pool_waits_for_nothing_and_its_threads_leave() {
    let (pool, token) = (pool(2, 8), Arc::new(()));
    let gate = Gate::submit(&pool);
    gate.wait_for_start();
    let held = Arc::clone(&token);
    pool.submit(move || drop(held)).unwrap();
    keeps_deadline(Duration::ZERO, || drop(pool));
    drop(gate);
    eventually("nothing holds the token", || Arc::strong_count(&token) == 1);
}

#[test]
fn a_closure_comes_back_if_the_system_gives_no_thread() {
    let config = BlockingConfig { stack_size: Some(1 << 60), ..BlockingConfig::DEFAULT };
    let pool = BlockingPool::new(config).unwrap();
    let rejected = pool.submit(|| ()).unwrap_err();
    assert!(rejected.is_no_thread(), "{rejected}");
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.queued, stats.refused), (0, 0, 1));
    assert_eq!(pool.shutdown_in_time(LONG).dropped, 0);
}

#[test]
fn a_pool_without_threads_is_refused() {
    let config = BlockingConfig { threads_max: 0, ..BlockingConfig::DEFAULT };
    let invalid = BlockingPool::new(config).unwrap_err();
    assert!(invalid.is_zero_workers(), "{invalid}");
    let config = BlockingConfig { name: "a\0".into(), ..BlockingConfig::DEFAULT };
    assert!(BlockingPool::new(config).unwrap_err().is_thread());
}

/// Waits for a future on this thread.
fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Whether its waker was called.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_handle_yields_the_value_of_the_closure_once() {
    let pool = pool(1, 1);
    let (release, released) = channel::<()>();
    let mut handle = pool
        .spawn_blocking(move || {
            released.recv().unwrap_err();
            String::from("done")
        })
        .unwrap();
    // A waker of an earlier poll is replaced by that of the last one.
    let mut noop = Context::from_waker(Waker::noop());
    assert!(pin!(&mut handle).poll(&mut noop).is_pending());
    assert!(!handle.is_finished());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(release);
    eventually("its waker is called", || woken.0.load(SeqCst));
    assert!(handle.is_finished());
    assert_eq!(wait_for(&mut handle).unwrap(), "done");
    assert!(wait_for(handle).unwrap_err().is_already_joined());
}

#[test]
fn a_handle_yields_the_panic_of_the_closure_and_the_pool_counts_it() {
    let pool = pool(1, 1);
    let handle = pool.spawn_blocking(|| panic_any(7_u32)).unwrap();
    let error = wait_for(handle).unwrap_err();
    assert!(error.is_panicked(), "{error}");
    eventually("the panic is counted", || pool.stats().panicked == 1);
    // The thread survives, and a dropped handle detaches its closure.
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    drop(pool.spawn_blocking(move || counted.fetch_add(1, SeqCst)).unwrap());
    eventually("it ran", || ran.load(SeqCst) == 1);
    assert_eq!(pool.stats().threads_started, 1);
}

#[test]
fn a_refused_closure_is_returned_and_a_dropped_one_is_cancelled() {
    let pool = pool(1, 1);
    let gate = Gate::submit(&pool);
    gate.wait_for_start();
    let queued = pool.spawn_blocking(|| 1).unwrap();
    let refused = pool.spawn_blocking(|| 2).unwrap_err();
    assert!(refused.is_full());
    assert_eq!(refused.into_inner()(), 2);
    assert_eq!(pool.shutdown_in_time(Duration::ZERO).dropped, 1);
    let error = wait_for(queued).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert!(pool.spawn_blocking(|| 3).unwrap_err().is_closed());
    drop(gate);
}
