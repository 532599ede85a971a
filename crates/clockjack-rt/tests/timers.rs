//! Timers of a pool from a user's side, by the clock of the system.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, Barrier, mpsc},
    task::Wake,
    thread,
};

use clockjack_rt::{
    OsInstant, PoolConfig, WorkerPool,
    exec::{
        Commands, Event, Events, Failure, Limits, Process, Sleep, StepOutput, Tag, Timer,
        builtin::{RepeatEvery, SleepFor},
    },
};
use clockjack_testing::InTime;
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);

fn pool(workers: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    InTime::new(WorkerPool::new(config, Commands::new()).unwrap(), PoolConfig::DEFAULT.drop_timeout)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Sends a message when it is woken.
struct Notify(mpsc::Sender<()>);

impl Wake for Notify {
    fn wake(self: Arc<Self>) {
        // The receiver may have what it waited for.
        let _ = self.0.send(());
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), count.into())
}

fn poll(sleep: &mut Sleep, waker: &Waker) -> Poll<Result<(), clockjack_rt::exec::TimerError>> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_timer_is_armed_reset_and_disarmed_by_any_thread() {
    let pool = pool(2);
    let (count, waker) = counter();
    let mut timer = pool.handle().timer();
    assert!(!timer.reset(ms(1)).unwrap(), "it has no waker");
    assert!(!timer.cancel() && !timer.is_armed());
    timer.arm(LONG, waker.clone()).unwrap();
    assert!(timer.is_armed());

    // On another thread, and on a worker.
    let mut timer = thread::scope(|scope| {
        let reset = scope.spawn(|| {
            assert!(timer.reset(LONG * 2).unwrap());
            timer
        });
        reset.join().unwrap()
    });
    let mut timer = pool
        .block_on(pool.spawn_future(async move {
            assert!(timer.is_armed() && timer.cancel() && !timer.cancel());
            assert!(timer.reset(ms(2)).unwrap(), "it still has its waker");
            timer
        }))
        .unwrap();
    eventually("it fires", || count.0.load(SeqCst) == 1);
    assert!(!timer.is_armed() && !timer.cancel());

    timer.arm(LONG, waker).unwrap();
    drop(timer);
    assert!(pool.shutdown_in_time(LONG).is_clean());
    assert_eq!(count.0.load(SeqCst), 1, "a timer that is dropped tells nobody");
}

#[test]
fn a_sleep_wakes_who_polled_it_last_and_is_never_early() {
    let pool = pool(2);
    let due = OsInstant::now().saturating_add(ms(20));
    let mut sleep = pool.handle().sleep(ms(20));
    let (first, second) = (counter(), counter());
    assert!(poll(&mut sleep, &first.1).is_pending());
    assert!(poll(&mut sleep, &second.1).is_pending());
    eventually("the second is woken", || second.0.0.load(SeqCst) == 1);
    assert!(OsInstant::now() >= due);
    assert!(matches!(poll(&mut sleep, &first.1), Poll::Ready(Ok(()))));
    assert_eq!(first.0.0.load(SeqCst), 0);

    // From one process to another, in the middle.
    let sleep = pool.spawn_future(async {
        let mut sleep = clockjack_rt::sleep(ms(20));
        core::future::poll_fn(|cx| {
            assert!(Pin::new(&mut sleep).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        (sleep, OsInstant::now())
    });
    let (sleep, begun) = pool.block_on(sleep).unwrap();
    pool.block_on(pool.spawn_future(sleep)).unwrap().unwrap();
    assert!(OsInstant::now().saturating_since(begun) <= LONG);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_sleep_outside_an_executor_says_so() {
    let mut sleep = clockjack_rt::exec::sleep(ms(1));
    let Poll::Ready(Err(error)) = poll(&mut sleep, Waker::noop()) else {
        panic!("nobody would wake it");
    };
    assert!(error.is_no_executor(), "{error}");
}

#[test]
fn sleeps_are_awaited_in_block_on_by_name_and_by_handle() {
    let pool = pool(1);
    for after in [Duration::ZERO, Duration::from_nanos(1), ms(3)] {
        let begun = OsInstant::now();
        pool.block_on(async { clockjack_rt::sleep(after).await }).unwrap();
        pool.block_on(pool.handle().sleep(after)).unwrap();
        // Created outside: its time starts with the first poll.
        pool.block_on(clockjack_rt::sleep(after)).unwrap();
        assert!(OsInstant::now().saturating_since(begun) >= after * 3);
    }
    let handle = pool.handle();
    let mut endless = handle.sleep(Duration::MAX);
    let (count, waker) = counter();
    assert!(poll(&mut endless, &waker).is_pending());
    assert!(pool.shutdown_in_time(LONG).is_clean());
    eventually("the end is told", || count.0.load(SeqCst) == 1);
    assert!(matches!(poll(&mut endless, &waker), Poll::Ready(Err(error)) if error.is_closed()));
    let refused = handle.timer().arm(ms(1), waker).unwrap_err();
    assert!(refused.is_closed(), "{refused}");
}

#[test]
fn an_interval_keeps_its_period_and_counts_what_it_left_out() {
    const PERIOD: u64 = 5;
    let pool = pool(1);
    let ticks = pool.spawn_future(async {
        let mut interval = clockjack_rt::interval(ms(PERIOD));
        let first = interval.due();
        let mut periods = 0;
        for turn in 0..10 {
            let tick = interval.tick().await.unwrap();
            periods += tick.missed + 1;
            let expected = first.get() + (periods - 1) * PERIOD;
            assert_eq!(tick.due.get(), expected, "a multiple of the period, each counted");
            if turn == 3 {
                thread::sleep(ms(3 * PERIOD));
            }
        }
        periods
    });
    let periods = pool.block_on(ticks).unwrap();
    assert!(periods >= 10 + 2, "three periods passed in one turn: {periods}");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_pool_refuses_timers_above_its_limit() {
    let limits = Limits::DEFAULT.timers(8);
    let config = PoolConfig { workers: Some(1), limits, ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let (_, waker) = counter();
    let mut timers = Vec::new();
    let refused = loop {
        let mut timer = pool.handle().timer();
        match timer.arm(LONG, waker.clone()) {
            Ok(()) => timers.push(timer),
            Err(refused) => break refused,
        }
    };
    assert!(refused.is_full(), "{refused}");
    assert!((1..=8).contains(&timers.len()), "{}", timers.len());
    assert!(pool.block_on(pool.handle().sleep(ms(1))).unwrap_err().is_full());
    timers.clear();
    pool.block_on(pool.handle().sleep(ms(1))).unwrap();
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn ten_thousand_timers_of_one_tick_all_fire_while_others_go_on() {
    const N: usize = 10_000;
    let pool = pool(2);
    let (count, waker) = counter();
    let other = pool.spawn_future({
        let count = Arc::clone(&count);
        async move {
            let mut turns = 0_u64;
            while count.0.load(SeqCst) < N {
                turns += 1;
                clockjack_rt::yield_now().await;
            }
            turns
        }
    });
    let timers: Vec<Timer> = (0..N)
        .map(|_| {
            let mut timer = pool.handle().timer();
            timer.arm(ms(20), waker.clone()).unwrap();
            timer
        })
        .collect();
    assert!(pool.block_on(other).unwrap() > 0);
    eventually("all have fired", || timers.iter().all(|timer| !timer.is_armed()));
    assert_eq!(count.0.load(SeqCst), N);
    eventually("all are counted", || pool.stats().timers_fired == N as u64);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn of_a_cancel_and_a_fire_that_meet_exactly_one_wins() {
    const ROUNDS: usize = 2_000;
    let pool = pool(2);
    let (count, waker) = counter();
    let (send, receive) = mpsc::sync_channel::<Timer>(64);
    let n_cancelled = thread::scope(|scope| {
        let canceller = scope.spawn(move || {
            receive.into_iter().map(|mut timer| usize::from(timer.cancel())).sum::<usize>()
        });
        for _ in 0..ROUNDS {
            let mut timer = pool.handle().timer();
            timer.arm(Duration::ZERO, waker.clone()).unwrap();
            send.send(timer).unwrap();
        }
        drop(send);
        canceller.join().unwrap()
    });
    eventually("each has one end", || count.0.load(SeqCst) + n_cancelled == ROUNDS);
    assert!(pool.shutdown_in_time(LONG).is_clean());
    assert_eq!(count.0.load(SeqCst) + n_cancelled, ROUNDS);
}

/// One of the threads that keep the guards of the shards busy, also while they are closed.
fn arm_and_cancel(mut timer: Timer, is_over: &AtomicBool) {
    while !is_over.load(SeqCst) {
        // Refused after the close.
        let _ = timer.arm(LONG, Waker::noop().clone());
        timer.cancel();
    }
}

#[test]
fn a_shutdown_wakes_every_sleeper_outside_while_threads_arm_and_cancel() {
    const SLEEPERS: usize = 2;
    const DISTURBERS: usize = 6;
    for round in 0..10 {
        let pool = pool(1);
        let handle = pool.handle();
        let (asleep, sleeps) = mpsc::channel();
        let (woken, wakes) = mpsc::channel();
        for _ in 0..SLEEPERS {
            let (handle, asleep, woken) = (handle.clone(), asleep.clone(), woken.clone());
            // Not joined: one that is never woken would keep the test from its report.
            thread::spawn(move || {
                let (wake, called) = mpsc::channel();
                let waker = Waker::from(Arc::new(Notify(wake)));
                let mut sleep = handle.sleep(LONG);
                assert!(poll(&mut sleep, &waker).is_pending());
                asleep.send(()).unwrap();
                while poll(&mut sleep, &waker).is_pending() {
                    called.recv().unwrap();
                }
                woken.send(()).unwrap();
            });
        }
        sleeps.iter().take(SLEEPERS).for_each(drop);
        let is_over = Arc::new(AtomicBool::new(false));
        let disturbers: Vec<_> = (0..DISTURBERS)
            .map(|_| {
                let (timer, is_over) = (handle.timer(), Arc::clone(&is_over));
                thread::spawn(move || arm_and_cancel(timer, &is_over))
            })
            .collect();
        // So that they are at work when the timers are closed.
        eventually("they arm", || pool.stats().timers_armed > 1_000);
        assert!(pool.shutdown_in_time(LONG).is_clean());
        for sleeper in 0..SLEEPERS {
            let is_woken = wakes.recv_timeout(LONG / 4).is_ok();
            assert!(is_woken, "round {round}: sleeper {sleeper} is left asleep");
        }
        is_over.store(true, SeqCst);
        disturbers.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Ticks of an interval that a process has received; its failure would be an event that is not one.
struct Ticks(Arc<[AtomicUsize; 2]>);

impl Process for Ticks {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        let mut is_first = true;
        for event in events {
            is_first = false;
            if let Event::YieldComplete { result, .. } = event {
                self.0[usize::from(result.is_err())].fetch_add(1, SeqCst);
            }
        }
        if is_first && self.0[0].load(SeqCst) == 0 {
            out.yield_command(Tag(1), RepeatEvery(ms(1)));
        } else {
            out.idle();
        }
        Ok(())
    }
}

/// Sleeps, again and again, until a sleep is refused.
struct Sleeps(Arc<[AtomicUsize; 2]>);

impl Process for Sleeps {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            if let Event::YieldComplete { result, .. } = event {
                self.0[usize::from(result.is_err())].fetch_add(1, SeqCst);
            }
        }
        out.yield_command(Tag(1), SleepFor(ms(1)));
        Ok(())
    }
}

#[test]
fn threads_that_arm_and_cancel_end_no_interval_and_refuse_no_sleep() {
    // An inbox of few cells is soon full, when a thread is suspended with the shard in its hands.
    let limits = Limits::DEFAULT.timers(64);
    let config = PoolConfig { workers: Some(1), limits, ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let is_over = Arc::new(AtomicBool::new(false));
    let disturbers: Vec<_> = (0..4)
        .map(|_| {
            let (mut timer, is_over) = (pool.handle().timer(), Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(SeqCst) {
                    timer.arm(LONG, Waker::noop().clone()).expect("there is room for a few");
                    timer.cancel();
                }
            })
        })
        .collect();
    let counts: Vec<Arc<[AtomicUsize; 2]>> = (0..16).map(|_| Arc::default()).collect();
    for (number, count) in counts.iter().enumerate() {
        let count = Arc::clone(count);
        if number % 2 == 0 {
            drop(pool.submit(Ticks(count)).unwrap());
        } else {
            drop(pool.submit(Sleeps(count)).unwrap());
        }
    }
    eventually("each goes on", || counts.iter().all(|count| count[0].load(SeqCst) >= 100));
    is_over.store(true, SeqCst);
    disturbers.into_iter().for_each(|thread| thread.join().unwrap());
    let n_failed: usize = counts.iter().map(|count| count[1].load(SeqCst)).sum();
    assert_eq!(n_failed, 0, "completions that are failures");
    pool.shutdown_in_time(ms(50));
}

/// Threads meet in one shard, so that some cancel while another one holds it. What they leave there
/// is a waker of the user, and nothing else would touch the shard for an hour.
#[test]
fn the_waker_of_a_cancelled_timer_is_dropped_at_once_and_not_at_its_deadline() {
    const THREADS: usize = 2;
    const ROUNDS: usize = 3_000;
    const EACH: usize = 4;
    let pool = pool(1);
    let (count, waker) = counter();
    let meet = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut timers: Vec<Timer> = (0..EACH).map(|_| pool.handle().timer()).collect();
                    let arm = |timer: &mut Timer| timer.arm(60 * LONG, waker.clone()).unwrap();
                    timers.iter_mut().for_each(arm);
                    meet.wait();
                    drop(timers);
                    meet.wait();
                    // The main thread looks.
                    meet.wait();
                }
            });
        }
        for _ in 0..ROUNDS {
            meet.wait();
            meet.wait();
            // One is here, and one is `waker`.
            eventually("every other clone is dropped", || Arc::strong_count(&count) == 2);
            meet.wait();
        }
    });
    assert_eq!(count.0.load(SeqCst), 0, "none has fired");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}
