//! The destructor of a thread-local variable, in which no thread can start or end. So the thread
//! that measures the deadline of a shutdown could not start there either: the tests wait for less
//! than the deadline instead.

use core::{cell::RefCell, time::Duration};
use std::{sync::mpsc, thread};

use clockjack_rt::{
    BlockingConfig, BlockingPool, PoolConfig, Runtime, WorkerPool, exec::Commands,
    sched::SchedulerConfig, scheduler::ThreadScheduler,
};
use clockjack_testing::caller_asserts_deadline;

/// Far beyond what a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);

/// Calls a function when its thread ends.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.take().expect("it is dropped once")();
    }
}

thread_local! {
    static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

/// Calls a function in a destructor at the end of another thread, and returns its result.
fn at_the_end_of_a_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let call = move || drop(sender.send(call()));
        AT_END.set(Some(AtEnd(Some(Box::new(call)))));
    });
    let result = receiver.recv_timeout(LONG).expect("it does not wait for a thread");
    thread.join().unwrap();
    result
}

/// Starts something on another thread, and calls a function with it in a destructor at the end of
/// that thread.
fn at_the_end_of_its_thread<P: 'static, T: Send + 'static>(start: fn() -> P, end: fn(P) -> T) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let started = start();
        let call = move || drop(sender.send(end(started)));
        AT_END.set(Some(AtEnd(Some(Box::new(call)))));
    });
    let result = receiver.recv_timeout(LONG).expect("it does not wait for a thread");
    thread.join().unwrap();
    result
}

fn pool() -> WorkerPool {
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).unwrap()
}

#[test]
fn a_pool_that_goes_with_any_thread_does_not_wait_until_its_threads_have_ended() {
    let pool = pool();
    drop(pool.spawn_blocking(|| ()).unwrap());
    let timeout = LONG * 60;
    let report = at_the_end_of_a_thread(move || caller_asserts_deadline(|| pool.shutdown(timeout)));
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_pool_that_goes_with_a_thread_does_not_wait_for_a_watchdog_that_has_not_started() {
    for _ in 0..100 {
        let end = |pool: WorkerPool| caller_asserts_deadline(|| pool.shutdown(LONG * 60));
        let report = at_the_end_of_its_thread(pool, end);
        assert!(report.is_clean(), "{report:?}");
    }
}

#[test]
fn blocking_work_that_goes_with_a_thread_does_not_wait_for_a_thread_that_has_not_started() {
    let start = || {
        let pool = BlockingPool::new(BlockingConfig::DEFAULT).unwrap();
        pool.submit(|| ()).unwrap();
        pool
    };
    let end = |pool: BlockingPool| caller_asserts_deadline(|| pool.shutdown(LONG * 60));
    for _ in 0..100 {
        let report = at_the_end_of_its_thread(start, end);
        assert_eq!(report.abandoned, 0, "{report:?}");
    }
}

#[test]
fn a_runtime_that_goes_with_a_thread_does_not_wait_until_its_threads_have_ended() {
    let runtime = Runtime::new("t").unwrap();
    at_the_end_of_a_thread(move || drop(runtime));
}

#[test]
fn a_scheduler_that_goes_with_a_thread_does_not_wait_until_its_thread_has_ended() {
    let scheduler = ThreadScheduler::start(SchedulerConfig::DEFAULT).unwrap();
    at_the_end_of_a_thread(move || drop(scheduler));
}

#[test]
fn no_pool_starts_and_none_grows_where_no_thread_can() {
    let why = "the destructor of a thread-local variable cannot wait for a thread on Windows";
    let refused = at_the_end_of_a_thread(|| {
        WorkerPool::new(PoolConfig::DEFAULT, Commands::new()).unwrap_err().to_string()
    });
    assert!(refused.contains(why), "{refused}");
    let pool = pool();
    let refused =
        at_the_end_of_a_thread(move || (pool.resize(3).unwrap_err().to_string(), pool.workers()));
    assert!(refused.0.contains(why) && refused.1 == 2, "{refused:?}");
}
