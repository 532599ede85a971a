//! Workers that come and go, and the end of all.

use alloc::sync::Arc;
use core::{
    future::{self, poll_fn},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

use clockjack_exec::{Handle, JoinError, JoinHandle, yield_now};
use shuttle::{future::block_on, thread};

use crate::{
    task::Token,
    toolbox::{ModelExecutor, TICK, explore},
};

/// A worker leaves at any time: while tasks wait in its ring and its LIFO slot, and while timers
/// are armed in its shard.
#[test]
fn a_worker_that_leaves_hands_on_its_processes_and_its_timers() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        executor.start_watchdog();
        let handle = executor.handle();
        let root = executor.handle().spawn_future(async move {
            let sleeper = handle.clone();
            let sleeps = handle.spawn_future(async move { sleeper.sleep(TICK).await });
            let yields = handle.spawn_future(yield_now());
            yields.await.unwrap();
            sleeps.await.unwrap().unwrap();
        });
        executor.stop_worker(1);
        block_on(root).unwrap();
        executor.end();
    });
}

/// A worker that leaves calls its host, and the host wakes a task: not into the queues that the
/// worker leaves behind.
#[test]
fn what_the_host_wakes_while_a_worker_leaves_is_polled() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        let call = executor.watchdog_call();
        let waits = executor.handle().spawn_future(poll_fn(move |cx| {
            let mut call = call.lock().unwrap();
            if call.is_made {
                return Poll::Ready(());
            }
            call.task = Some(cx.waker().clone());
            Poll::Pending
        }));
        executor.stop_worker(0);
        block_on(waits).unwrap();
        executor.end();
    });
}

/// There is always one that stays, and it is another one each time.
#[test]
fn a_worker_is_dismissed_as_soon_as_it_sits() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        let yields = executor.handle().spawn_future(yield_now());
        executor.stop_worker(1);
        executor.start(1);
        executor.stop_worker(0);
        block_on(yields).unwrap();
        executor.end();
    });
}

/// Starts tasks that would never end by themselves, and gives those that were taken.
fn start_endless(handle: &Handle, n: usize, left: &Arc<AtomicUsize>) -> Vec<JoinHandle<()>> {
    let endless = |_| {
        let token = Token::new(left);
        let sleep = handle.sleep(1000 * TICK);
        handle.spawn_future(async move {
            let _token = token;
            let _ = sleep.await;
            future::pending().await
        })
    };
    (0..n).map(endless).collect()
}

/// Whatever is taken is asked to stop, also what is just being made.
#[test]
fn a_stop_reaches_everything_that_is_started_meanwhile() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let left = Arc::new(AtomicUsize::new(0));
        let (handle, theirs) = (executor.handle(), Arc::clone(&left));
        let submitter = thread::spawn(move || start_endless(&handle, 2, &theirs));
        let mine = start_endless(&executor.handle(), 1, &left);
        assert!(executor.executor.begin_shutdown());
        assert!(!executor.executor.begin_shutdown());
        let is_stopped = |exit: &JoinError| exit.is_cancelled() || exit.is_refused();
        for join in mine.into_iter().chain(submitter.join().unwrap()) {
            let exit = block_on(join).unwrap_err();
            assert!(is_stopped(&exit), "{exit}");
        }
        assert!(block_on(executor.handle().spawn_future(async {})).unwrap_err().is_refused());
        executor.executor.terminate_all(|_| {});
        executor.end();
        assert_eq!(left.load(Relaxed), 0);
    });
}

/// Who sleeps when the timers are closed is woken and learns it, on whichever thread.
#[test]
fn a_close_of_the_timers_reaches_every_sleeper() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let (inside, outside) = (executor.handle().sleep(TICK), executor.handle().sleep(TICK));
        let inside = executor.handle().spawn_future(inside);
        let outside = thread::spawn(move || block_on(outside));
        executor.executor.close_timers();
        let results = [block_on(inside).unwrap(), outside.join().unwrap()];
        for result in results {
            // Or the tick had passed before.
            assert!(result.is_ok() || result.is_err_and(|error| error.is_closed()));
        }
        executor.end();
    });
}
