//! Workers that come and go, and the end of all.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::{self, poll_fn},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};

use clockjack_exec::{Handle, JoinError, JoinHandle, Limits, yield_now};
use shuttle::{future::block_on, sync::Mutex, thread};

use crate::{
    task::Token,
    toolbox::{Gate, ModelExecutor, TICK, explore},
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

/// What a waker of a user wakes when it is dropped.
#[derive(Default)]
struct DropCall {
    is_made: bool,
    task: Option<Waker>,
}

/// A waker that does nothing when it is woken, and wakes a task when it is dropped.
struct WakesWhenDropped(Arc<Mutex<DropCall>>);

impl Wake for WakesWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for WakesWhenDropped {
    fn drop(&mut self) {
        let task = {
            let mut call = self.0.lock().unwrap();
            call.is_made = true;
            call.task.take()
        };
        task.into_iter().for_each(Waker::wake);
    }
}

/// A worker leaves, and cancels first what its own task has slept for. Threads outside cancel other
/// sleeps of the same shard. One that finds the shard held leaves its waker there, and the worker,
/// which holds the shard next, drops the waker while it leaves.
#[test]
fn what_the_drop_of_a_waker_wakes_while_a_worker_leaves_is_polled() {
    explore(|| {
        let mut executor = ModelExecutor::empty(2, Limits::SMALL);
        executor.start(0);
        let call = Arc::new(Mutex::new(DropCall::default()));
        let waker = Waker::from(Arc::new(WakesWhenDropped(Arc::clone(&call))));
        let outside = [waker, Waker::noop().clone()].map(|waker| {
            let mut sleep = executor.handle().sleep(1000 * TICK);
            assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
            sleep
        });
        let waits = executor.handle().spawn_future(poll_fn(move |cx| {
            let mut call = call.lock().unwrap();
            if call.is_made {
                return Poll::Ready(());
            }
            call.task = Some(cx.waker().clone());
            Poll::Pending
        }));
        let (has_slept, is_asked) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
        let (slept, asked) = (Arc::clone(&has_slept), Arc::clone(&is_asked));
        let handle = executor.handle();
        let inside = executor.handle().spawn_future(poll_fn(move |cx| {
            let mut sleep = handle.sleep(1000 * TICK);
            assert!(Pin::new(&mut sleep).poll(cx).is_pending());
            drop(sleep);
            slept.open();
            asked.wait();
            Poll::Ready(())
        }));
        has_slept.wait();
        executor.start(1);
        executor.ask_to_leave(0);
        let cancellers = outside.map(|sleep| thread::spawn(move || drop(sleep)));
        is_asked.open();
        executor.stop_worker(0);
        cancellers.into_iter().for_each(|one| one.join().unwrap());
        block_on(inside).unwrap();
        block_on(waits).unwrap();
        executor.end();
    });
}

/// The only worker is asked to leave and wanted again, twice, as by a pool that is resized while
/// other threads submit tasks. It stays, or it has a successor; each of them may be asked, and
/// wanted again, before it occupies the slot.
#[test]
fn a_worker_that_is_wanted_again_stays_or_has_a_successor() {
    explore(|| {
        let mut executor = ModelExecutor::of_one(Limits::SMALL);
        let handle = executor.handle();
        let submitter = thread::spawn(move || {
            let theirs = handle.clone();
            let yields = handle.spawn_future(async move {
                theirs.spawn_future(yield_now()).await.unwrap();
            });
            block_on(yields).unwrap();
        });
        for _ in 0..2 {
            executor.ask_to_leave(0);
            executor.want_again(0);
        }
        submitter.join().unwrap();
        executor.end();
    });
}

/// The successor is asked to leave, too, perhaps before it occupies the slot: it leaves.
#[test]
fn a_successor_that_is_asked_before_it_starts_leaves() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        let yields = executor.handle().spawn_future(yield_now());
        executor.ask_to_leave(1);
        executor.want_again(1);
        executor.stop_worker(1);
        block_on(yields).unwrap();
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
