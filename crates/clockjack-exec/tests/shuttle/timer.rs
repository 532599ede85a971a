//! Timers over two workers: cancelled while they fire, taken over from a worker that is blocked.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Poll, Waker},
};

use clockjack_exec::{Handle, Sleep};
use shuttle::{future::block_on, sync::Mutex, thread};

use crate::toolbox::{Gate, ModelExecutor, TICK, explore};

/// A waker that opens a gate and counts how often.
#[derive(Default)]
struct Bell {
    rung: AtomicUsize,
    gate: Gate,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Relaxed);
        self.gate.open();
    }
}

/// Armed by a task on one worker, cancelled by a task on any, while both workers and the watchdog
/// see to timers.
#[test]
fn a_timer_fires_or_is_cancelled_never_both_and_never_neither() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        executor.start_watchdog();
        let bell = Arc::new(Bell::default());
        let (handle, waker) = (executor.handle(), Waker::from(Arc::clone(&bell)));
        let armed = executor.handle().spawn_future(async move {
            let mut timer = handle.timer();
            timer.arm(TICK, waker).unwrap();
            timer
        });
        let cancelled = executor.handle().spawn_future(async move {
            let mut timer = armed.await.unwrap();
            timer.cancel()
        });
        if !block_on(cancelled).unwrap() {
            bell.gate.wait();
            assert_eq!(bell.rung.load(Relaxed), 1);
            executor.end();
        } else {
            executor.end();
            assert_eq!(bell.rung.load(Relaxed), 0);
        }
    });
}

/// A sleep that was polled by one task goes on in another; the first is woken for nothing, or not
/// at all.
#[test]
fn a_sleep_that_moves_to_another_task_ends_there() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        executor.start_watchdog();
        let handle = executor.handle();
        let first = executor.handle().spawn_future(async move {
            let mut sleep = Some(handle.sleep(TICK));
            poll_fn(|cx| {
                let polled = sleep.as_mut().map(|sleep| Pin::new(sleep).poll(cx));
                assert!(matches!(polled, Some(Poll::Pending)), "a tick has not passed yet");
                Poll::Ready(sleep.take())
            })
            .await
        });
        let second = executor.handle().spawn_future(async move {
            let sleep: Option<Sleep> = first.await.unwrap();
            sleep.unwrap().await.unwrap();
        });
        block_on(second).unwrap();
        executor.end();
    });
}

/// The step goes on until its own timer has fired, so somebody else has to fire it.
#[test]
fn a_timer_of_a_worker_that_is_blocked_is_taken_over() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        executor.start_watchdog();
        let (bell, handle) = (Arc::new(Bell::default()), executor.handle());
        let blocked = executor.handle().spawn_future(async move {
            let mut timer = handle.timer();
            timer.arm(TICK, Waker::from(Arc::clone(&bell))).unwrap();
            bell.gate.wait();
            assert!(!timer.cancel());
        });
        block_on(blocked).unwrap();
        assert_eq!(executor.executor.stats().timers_taken_over, 1);
        executor.end();
    });
}

/// The step goes on until a task has run that it has woken itself, which is first in line on the
/// same worker.
#[test]
fn what_a_blocked_worker_has_put_first_is_taken_from_it() {
    explore(|| {
        let mut executor = ModelExecutor::of_two();
        executor.start_watchdog();
        let (left, gate) = (Arc::new(Mutex::new(None)), Arc::new(Gate::default()));
        let woken = woken_by(&executor.handle(), Arc::clone(&left), Arc::clone(&gate));
        let blocker = executor.handle().spawn_future(poll_fn(move |cx| {
            let waker: Option<Waker> = left.lock().unwrap().take();
            let Some(waker) = waker else {
                thread::yield_now();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            };
            waker.wake();
            gate.wait();
            Poll::Ready(())
        }));
        block_on(blocker).unwrap();
        block_on(woken).unwrap();
        executor.end();
    });
}

/// A task that leaves its waker, and opens the gate when it was woken.
fn woken_by(
    handle: &Handle,
    left: Arc<Mutex<Option<Waker>>>,
    gate: Arc<Gate>,
) -> clockjack_exec::JoinHandle<()> {
    let mut has_left = false;
    handle.spawn_future(poll_fn(move |cx| {
        if !has_left {
            has_left = true;
            *left.lock().unwrap() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        gate.open();
        Poll::Ready(())
    }))
}

/// Timers that nobody on a worker arms: the assigned worker is woken, if it sleeps.
#[test]
fn a_timer_that_a_thread_outside_arms_wakes_the_assigned_worker() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let sleep = executor.handle().sleep(TICK);
        let other = thread::spawn({
            let sleep = executor.handle().sleep(3 * TICK);
            move || block_on(sleep).unwrap()
        });
        block_on(sleep).unwrap();
        other.join().unwrap();
        assert!(executor.handle().now().tick().get() >= 4);
        executor.end();
    });
}
