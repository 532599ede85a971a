//! Workers that come and go, and the end of all.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::{self, Future, poll_fn},
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};

use clockjack_exec::{Handle, JoinError, JoinHandle, yield_now};
use shuttle::{future::block_on, sync::Mutex, thread};

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

/// A waker of a user that wakes a task when it is dropped.
struct WakesOnDrop {
    is_dropped: Arc<AtomicBool>,
    task: Arc<Mutex<Option<Waker>>>,
}

impl Wake for WakesOnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for WakesOnDrop {
    fn drop(&mut self) {
        self.is_dropped.store(true, Relaxed);
        let task = self.task.lock().unwrap().take();
        task.into_iter().for_each(Waker::wake);
    }
}

/// A worker that leaves cancels the timers that its tasks gave up. While the worker held its shard
/// before, another thread has cancelled a timer with a waker of a user, which the worker has to
/// drop now; that drop wakes a task.
#[test]
fn what_a_waker_wakes_that_is_dropped_by_a_worker_that_leaves_is_polled() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let task = Arc::new(Mutex::new(None));
        let (dropped, slot) = (Arc::clone(&is_dropped), Arc::clone(&task));
        let waits = executor.handle().spawn_future(poll_fn(move |cx| {
            let mut slot = slot.lock().unwrap();
            if dropped.load(Relaxed) {
                return Poll::Ready(());
            }
            *slot = Some(cx.waker().clone());
            Poll::Pending
        }));
        let waker = Waker::from(Arc::new(WakesOnDrop { is_dropped, task }));
        let mut sleep = executor.handle().sleep(1000 * TICK);
        assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        let canceller = thread::spawn(move || drop(sleep));
        let handle = executor.handle();
        let gives_up = executor.handle().spawn_future(poll_fn(move |cx| {
            let mut sleep = handle.sleep(1000 * TICK);
            assert!(Pin::new(&mut sleep).poll(cx).is_pending());
            handle.executor().request_worker_stop(0);
            Poll::Ready(())
        }));
        block_on(gives_up).unwrap();
        executor.stop_worker(0);
        canceller.join().unwrap();
        // A waker that nobody has dropped yet is dropped now, by this thread.
        executor.executor.close_timers();
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
