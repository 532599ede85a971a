//! Timers over two workers: cancelled while they fire, taken over from a worker that is blocked.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Poll, Waker},
};

use clockjack_exec::{Handle, Limits, Sleep, Timer, yield_now};
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

/// A task that arms a timer for itself, and opens the gate when that has fired.
fn armed_for(
    handle: &Handle,
    timer: Arc<Mutex<Option<Timer>>>,
    gate: Arc<Gate>,
) -> clockjack_exec::JoinHandle<()> {
    let arms = handle.clone();
    handle.spawn_future(poll_fn(move |cx| {
        let mut timer = timer.lock().unwrap();
        if timer.is_none() {
            timer.insert(arms.timer()).arm(TICK, cx.waker().clone()).unwrap();
            return Poll::Pending;
        }
        gate.open();
        Poll::Ready(())
    }))
}

/// The worker that fires the one timer goes on with a step that ends when the task of that timer
/// has run. There is no watchdog that would find the task.
#[test]
fn a_task_that_one_timer_wakes_does_not_wait_for_the_step_of_its_worker() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let (gate, advance) = (Arc::new(Gate::default()), executor.clock());
        let timer = Arc::new(Mutex::new(None::<Timer>));
        let handle = executor.handle();
        let blocker = executor.handle().spawn_future(async move {
            let woken = armed_for(&handle, Arc::clone(&timer), Arc::clone(&gate));
            while timer.lock().unwrap().is_none() {
                thread::yield_now();
                yield_now().await;
            }
            // Meanwhile the other worker finds nothing, and parks.
            for _ in 0..100 {
                thread::yield_now();
            }
            advance(1);
            while timer.lock().unwrap().as_ref().unwrap().is_armed() {
                thread::yield_now();
                yield_now().await;
            }
            gate.wait();
            drop(timer);
            woken.await.unwrap();
        });
        block_on(blocker).unwrap();
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

/// The inbox has two cells, so that it is full if one thread is suspended with the shard in its
/// hands, and two have armed their timers meanwhile.
#[test]
fn timers_of_threads_outside_are_not_refused_while_another_holds_the_shard() {
    explore(|| {
        let executor = ModelExecutor::of_one(Limits::SMALL.timers(8));
        let arms = |_| {
            let mut timer = executor.handle().timer();
            thread::spawn(move || {
                timer.arm(1000 * TICK, Waker::noop().clone()).unwrap();
                timer
            })
        };
        let threads: Vec<_> = (0..4).map(arms).collect();
        for thread in threads {
            // It may have fired: time passes while a worker parks.
            thread.join().unwrap().cancel();
        }
        executor.end();
    });
}
