//! What timers on workers promise, in virtual time: none early, none lost, none left with a worker
//! that is busy or gone.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a host for tests promises which worker a thread is")]

extern crate alloc;

#[path = "support/model.rs"]
#[expect(dead_code, reason = "the tests of the source need more of it")]
mod model;

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_exec::{
    Interval, Limits, Timer,
    worker::manual::{ManualStep, ManualWorker},
};
use clockjack_time::Tick;
use model::{Model, TICK, Wrapped, counter, ended, waker, worker};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Notes what happened, in order.
type Log<T> = Arc<Mutex<Vec<T>>>;

#[test]
fn a_worker_that_is_free_takes_over_what_a_blocked_one_is_late_for() {
    let model = Model::new(2);
    let log: Log<(Option<usize>, u64)> = Log::default();
    let handle = model.handle();
    drop(handle.spawn_future({
        let (model, log) = (Arc::clone(&model), Arc::clone(&log));
        async move {
            clockjack_exec::sleep(ms(10)).await.unwrap();
            log.lock().unwrap().push((worker(), model.now()));
        }
    }));
    let blocked = handle.spawn_future({
        let (model, log) = (Arc::clone(&model), Arc::clone(&log));
        async move {
            // The worker is in this step from now on; another one begins to work.
            model.advance(10 * TICK - 1);
            model.work(1);
            assert!(log.lock().unwrap().is_empty(), "early");
            model.advance(3 * TICK + 1);
            model.work(1);
            assert_eq!(*log.lock().unwrap(), [(Some(1), 13 * TICK)]);
        }
    });
    model.work(0);
    ended(blocked);
    let stats = handle.stats();
    assert_eq!((stats.timers_fired, stats.timers_taken_over), (1, 1));
    assert_eq!(stats.lateness_max_ticks, 3);
    assert_eq!((stats.spawned, stats.finished), (2, 2));
    model.finish();
}

#[test]
fn a_worker_takes_over_everything_that_is_overdue_before_it_sleeps() {
    const N: usize = 1_000;
    let model = Model::new(2);
    let woken = Arc::new(AtomicUsize::new(0));
    let step = model.handle().spawn_future({
        let (model, woken) = (Arc::clone(&model), Arc::clone(&woken));
        async move {
            let _timers: Vec<Timer> = (0..N)
                .map(|_| {
                    let mut timer = model.handle().timer();
                    timer.arm(ms(5), counter(&woken)).unwrap();
                    timer
                })
                .collect();
            model.advance(6 * TICK);
            let parks = model.parks();
            model.work(1);
            assert_eq!(woken.load(SeqCst), N, "all that is overdue");
            assert_eq!(model.parks(), parks + 1, "before it slept");
        }
    });
    model.work(0);
    ended(step);
    assert_eq!(model.handle().stats().timers_taken_over, N as u64);
    assert_eq!(model.handle().stats().drop_panics, 0);
    model.finish();
}

/// Two tasks that wake each other for ever, so that one of them is always in the LIFO slot.
fn spawn_pair(model: &Model) {
    let wakers = Arc::new(Mutex::new([const { None::<Waker> }; 2]));
    for me in 0..2 {
        let wakers = Arc::clone(&wakers);
        drop(model.handle().spawn_future(poll_fn(move |cx| {
            let mut wakers = wakers.lock().unwrap();
            wakers[me] = Some(cx.waker().clone());
            if let Some(other) = wakers[1 - me].take() {
                other.wake();
            }
            Poll::<()>::Pending
        })));
    }
}

#[test]
fn a_worker_that_fires_one_timer_and_runs_another_task_first_wakes_an_idle_worker() {
    let model = Model::new(2);
    let mut busy = ManualWorker::new(model.handle().executor(), 0);
    drop(model.handle().spawn_future(model.handle().sleep(ms(5))));
    while !matches!(busy.step(), ManualStep::Parked(_)) {}
    spawn_pair(&model);
    for _ in 0..10 {
        assert_eq!(busy.step(), ManualStep::Awake);
    }
    let mut idle = ManualWorker::new(model.handle().executor(), 1);
    while idle.step() != ManualStep::Parked(None) {}
    model.take_unparked(1);

    model.advance(5 * TICK);
    let fired = || model.handle().stats().timers_fired;
    while fired() == 0 {
        assert!(!model.take_unparked(1), "nothing has happened");
        assert_eq!(busy.step(), ManualStep::Awake);
    }
    assert!(model.take_unparked(1), "the task waits behind a step that may be long");
    while idle.step() != ManualStep::Parked(None) {}
    let stats = model.handle().stats();
    assert_eq!((stats.finished, stats.stolen), (1, 1), "the idle worker has run it");
    drop((busy, idle));
    model.finish();
}

#[test]
fn what_a_timer_wakes_while_its_worker_searches_is_not_slept_on() {
    // The timers fall due while the worker looks elsewhere for the last time before it sleeps.
    for after in 1..=20 {
        let model = Model::new(2);
        model.advance_at_yields(TICK);
        let done = Arc::new(AtomicBool::new(false));
        drop(model.handle().spawn_future({
            let (handle, done) = (model.handle().clone(), Arc::clone(&done));
            async move {
                Wrapped(handle.sleep(ms(after))).await.unwrap();
                done.store(true, SeqCst);
            }
        }));
        model.work_until(0, 30 * TICK);
        assert!(done.load(SeqCst), "after {after} ms");
        model.finish();
    }
}

#[test]
fn what_a_taken_over_timer_wakes_is_not_slept_on() {
    let model = Model::new(2);
    let done = Arc::new(AtomicBool::new(false));
    drop(model.handle().spawn_future({
        let (handle, done) = (model.handle().clone(), Arc::clone(&done));
        async move {
            Wrapped(handle.sleep(ms(1))).await.unwrap();
            done.store(true, SeqCst);
        }
    }));
    let blocked = model.handle().spawn_future({
        let (model, done) = (Arc::clone(&model), Arc::clone(&done));
        async move {
            model.advance(TICK);
            model.work(1);
            assert!(done.load(SeqCst));
        }
    });
    model.work(0);
    ended(blocked);
    model.finish();
}

#[test]
fn timers_outlive_their_workers_and_keep_their_time() {
    let model = Model::new(3);
    let handle = model.handle();
    let log: Log<(u64, u64)> = Log::default();
    let mut timers = Vec::new();
    // Each round another worker arms some and leaves.
    for round in 0..30_u64 {
        for i in 0..20 {
            let (mut timer, log) = (handle.timer(), Arc::clone(&log));
            let after = 10 + (round * 37 + i * 91) % 500;
            let due = model.now() + after * TICK;
            let state = Arc::clone(&model);
            let note = waker(move || log.lock().unwrap().push((due, state.now())));
            drop(handle.spawn_future(async move {
                timer.arm(ms(after), note).unwrap();
                core::future::pending::<()>().await;
                drop(timer);
            }));
            timers.push(due);
        }
        let worker = usize::try_from(round % 3).unwrap();
        model.work_until(worker, model.now() + 4 * TICK);
        let _ = model.look();
        assert!(handle.stats().timer_shards <= 3, "more shards than workers");
    }
    model.work_until(1, model.now() + 600 * TICK);
    let log = log.lock().unwrap();
    assert_eq!(log.len(), timers.len(), "none is lost");
    for (due, at) in log.iter() {
        assert!(at >= due, "due at {due}, fired at {at}");
        assert!(*at <= due + 2 * TICK, "due at {due}, fired at {at}");
    }
    assert!(handle.stats().shards_reassigned > 0);
    assert_eq!(
        handle.stats().timer_shards,
        1,
        "an unassigned shard is taken before one is created"
    );
    drop(log);
    model.finish();
}

#[test]
fn a_shard_of_a_worker_that_left_is_reassigned_to_one_that_stays() {
    let model = Model::new(2);
    let fired = Arc::new(AtomicUsize::new(0));
    let step = model.handle().spawn_future({
        let (model, fired) = (Arc::clone(&model), Arc::clone(&fired));
        async move {
            // Another worker comes, arms a timer, and goes.
            drop(model.handle().spawn_future({
                let fired = Arc::clone(&fired);
                async move {
                    clockjack_exec::sleep(ms(50)).await.unwrap();
                    fired.fetch_add(1, SeqCst);
                }
            }));
            model.work(1);
            assert_eq!(model.handle().stats().shards_reassigned, 0);
            assert!(model.watchdog_unparks() > 0 || model.look().0.is_some());
            let _ = model.look();
            assert_eq!(model.handle().stats().shards_reassigned, 1);
        }
    });
    model.work_until(0, 60 * TICK);
    ended(step);
    assert_eq!(fired.load(SeqCst), 1);
    assert_eq!(model.now(), 50 * TICK, "its assigned slept for it, and woke in time");
    assert_eq!(model.handle().stats().timers_taken_over, 0);
    model.finish();
}

#[test]
fn a_clock_that_stands_still_fires_nothing_and_one_that_jumps_only_what_is_due() {
    const YEAR: u64 = 365 * 24 * 3_600 * 1_000;
    let model = Model::new(1);
    let log: Log<u64> = Log::default();
    let mut timers = Vec::new();
    model.work(0);
    for after in [1, 99, 100, 101, 3_600_000, YEAR, YEAR + 100] {
        let (mut timer, log) = (model.handle().timer(), Arc::clone(&log));
        timer.arm(ms(after), waker(move || log.lock().unwrap().push(after))).unwrap();
        timers.push(timer);
    }
    let busy = || {
        // Many polls, so that the worker polls its timers often.
        drop(model.handle().spawn_future(async {
            for _ in 0..1_000 {
                clockjack_exec::yield_now().await;
            }
        }));
        model.work(0);
    };
    busy();
    assert!(log.lock().unwrap().is_empty(), "time has not passed");
    model.advance(100 * TICK);
    busy();
    assert_eq!(*log.lock().unwrap(), [1, 99, 100]);
    busy();
    model.advance(YEAR * TICK - 1);
    busy();
    assert_eq!(*log.lock().unwrap(), [1, 99, 100, 101, 3_600_000, YEAR]);
    model.advance(1);
    busy();
    assert_eq!(*log.lock().unwrap(), [1, 99, 100, 101, 3_600_000, YEAR, YEAR + 100]);
    model.finish();
}

#[test]
fn a_delay_counts_from_the_arm_and_not_from_the_turn_that_it_is_armed_in() {
    let model = Model::new(1);
    let at = Arc::new(Mutex::new(None));
    drop(model.handle().spawn_future({
        let (model, at) = (Arc::clone(&model), Arc::clone(&at));
        async move {
            // The worker read the clock before; since then it was held up.
            model.advance(100 * TICK);
            clockjack_exec::sleep(ms(10)).await.unwrap();
            *at.lock().unwrap() = Some(model.now());
        }
    }));
    model.work_until(0, 1_000 * TICK);
    assert_eq!(*at.lock().unwrap(), Some(110 * TICK));
    model.finish();
}

#[test]
fn a_clock_that_is_held_up_after_an_arm_makes_late_and_never_early() {
    let model = Model::new(1);
    let at: Log<(u64, u64)> = Log::default();
    drop(model.handle().spawn_future({
        let (model, at) = (Arc::clone(&model), Arc::clone(&at));
        async move {
            for after in [10, 1, 0, 200] {
                let begun = model.now();
                let sleep = model.handle().sleep(ms(after));
                model.advance(100 * TICK + 17);
                sleep.await.unwrap();
                at.lock().unwrap().push((after, (model.now() - begun) / TICK));
            }
        }
    }));
    model.work_until(0, 10_000 * TICK);
    assert_eq!(*at.lock().unwrap(), [(10, 100), (1, 100), (0, 100), (200, 200)]);
    model.finish();
}

#[test]
fn ten_thousand_timers_of_one_tick_fire_in_order_while_others_go_on() {
    const N: usize = 10_000;
    let model = Model::new(1);
    let log: Log<usize> = Log::default();
    let turns = Arc::new(AtomicUsize::new(0));
    model.work(0);
    let timers: Vec<Timer> = (0..N)
        .map(|i| {
            let (mut timer, log) = (model.handle().timer(), Arc::clone(&log));
            timer.arm(ms(5), waker(move || log.lock().unwrap().push(i))).unwrap();
            timer
        })
        .collect();
    let progress: Log<(usize, usize)> = Log::default();
    let other = model.handle().spawn_future({
        let (log, turns, progress) = (Arc::clone(&log), Arc::clone(&turns), Arc::clone(&progress));
        async move {
            while log.lock().unwrap().len() < N {
                let fired = log.lock().unwrap().len();
                progress.lock().unwrap().push((turns.fetch_add(1, SeqCst), fired));
                clockjack_exec::yield_now().await;
            }
        }
    });
    model.advance(5 * TICK);
    model.work(0);
    ended(other);
    assert!(log.lock().unwrap().iter().copied().eq(0..N), "in the order of the arms");
    assert!(timers.iter().all(|timer| !timer.is_armed()));
    let progress = progress.lock().unwrap();
    let bursts = progress.windows(2).map(|pair| pair[1].1 - pair[0].1);
    assert!(bursts.max().unwrap() <= 512, "the other process had its turns in between");
    drop(progress);
    assert_eq!(model.handle().stats().timers_fired, N as u64);
    model.finish();
}

#[test]
fn an_interval_does_not_drift_and_counts_what_it_left_out() {
    let model = Model::new(1);
    let ticks: Log<(u64, u64, u64)> = Log::default();
    drop(model.handle().spawn_future({
        let (model, ticks) = (Arc::clone(&model), Arc::clone(&ticks));
        async move {
            let mut interval = Interval::new(model.handle().clone(), ms(10));
            for took in [3, 9, 10, 25, 0, 0] {
                let tick = interval.tick().await.unwrap();
                ticks.lock().unwrap().push((tick.due.get(), tick.missed, model.now() / TICK));
                model.advance(took * TICK);
            }
        }
    }));
    model.work_until(0, 1_000 * TICK);
    // Due at 10, 20, 30, 40; the turn of 40 took until 65: 50 is left out.
    let expected = [(10, 0, 10), (20, 0, 20), (30, 0, 30), (40, 0, 40), (60, 1, 65), (70, 0, 70)];
    assert_eq!(*ticks.lock().unwrap(), expected);
    model.finish();
}

#[test]
fn an_interval_that_is_given_up_forgets_nothing_that_it_left_out() {
    let model = Model::new(1);
    let missed = Arc::new(Mutex::new(None));
    let taker = model.handle().spawn_future({
        let (model, missed) = (Arc::clone(&model), Arc::clone(&missed));
        async move {
            let mut interval = Interval::new(model.handle().clone(), ms(10));
            model.advance(35 * TICK);
            // Polled once and given up, as by a select.
            {
                let mut tick = core::pin::pin!(interval.tick());
                poll_fn(|cx| {
                    assert!(tick.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
            }
            *missed.lock().unwrap() = Some(interval.tick().await.unwrap());
        }
    });
    model.work_until(0, 1_000 * TICK);
    ended(taker);
    let tick = missed.lock().unwrap().expect("it came");
    assert_eq!((tick.due, tick.missed), (Tick::new(30), 2));
    model.finish();
}

#[test]
fn a_timer_is_refused_at_the_limit_and_armed_once_there_is_room() {
    let model = Model::with_limits(1, Limits::DEFAULT.timers(4));
    model.work(0);
    let fired = Arc::new(AtomicUsize::new(0));
    let count = counter(&fired);
    let arm = || {
        let mut timer = model.handle().timer();
        timer.arm(ms(10), count.clone()).map(|()| timer)
    };
    let mut timers: Vec<Timer> = core::iter::from_fn(|| arm().ok()).take(100_000).collect();
    assert!(timers.len() >= 4 && timers.len() < 100_000, "{} were armed", timers.len());
    let refused = arm().unwrap_err();
    assert!(refused.is_full() && !refused.is_closed(), "{refused}");

    let mut late = model.handle().timer();
    assert!(late.arm(ms(10), count.clone()).unwrap_err().is_full());
    assert!(late.reset(ms(10)).unwrap_err().is_full(), "it knows its waker all the same");
    assert!(timers.pop().unwrap().cancel());
    assert!(late.reset(ms(10)).unwrap());
    let armed = timers.len() + 1;
    model.work_until(0, 20 * TICK);
    assert_eq!(fired.load(SeqCst), armed);
    model.finish();
}

#[test]
fn the_longest_delay_neither_fires_nor_wakes_anybody() {
    let model = Model::new(1);
    model.work(0);
    let fired = Arc::new(AtomicUsize::new(0));
    let mut timer = model.handle().timer();
    let count = counter(&fired);
    timer.arm(Duration::MAX, count.clone()).unwrap();
    model.advance(u64::MAX / 2);
    model.work(0);
    assert!(timer.is_armed());
    assert_eq!(fired.load(SeqCst), 0);
    assert!(timer.reset(Duration::ZERO).unwrap());
    model.advance(TICK);
    model.work(0);
    assert_eq!(fired.load(SeqCst), 1, "no delay at all is the next tick");
    assert!(!timer.cancel() && !timer.is_armed());
    model.finish();
}

#[test]
fn the_end_wakes_who_sleeps_and_tells_that_it_was_not_the_time() {
    let model = Model::new(1);
    model.work(0);
    let woken = Arc::new(AtomicUsize::new(0));
    let mut sleeps: Vec<_> = [ms(10), Duration::MAX].map(|d| model.handle().sleep(d)).into();
    let wakers = [counter(&woken), counter(&woken)];
    let poll = |sleep: &mut clockjack_exec::Sleep, waker| {
        Pin::new(sleep).poll(&mut Context::from_waker(waker))
    };
    for (sleep, waker) in sleeps.iter_mut().zip(&wakers) {
        assert!(poll(sleep, waker).is_pending());
    }
    model.finish();
    assert_eq!(woken.load(SeqCst), 2);
    for (sleep, waker) in sleeps.iter_mut().zip(wakers.iter().rev()) {
        let Poll::Ready(Err(error)) = poll(sleep, waker) else {
            panic!("it is neither due nor armed");
        };
        assert!(error.is_closed());
    }
    let mut timer = model.handle().timer();
    assert!(timer.arm(ms(1), wakers[0].clone()).unwrap_err().is_closed());
}

#[test]
fn a_sleep_of_no_time_takes_none_and_lets_others_run_once() {
    let model = Model::new(1);
    let log: Log<&str> = Log::default();
    let (first, second) = (Arc::clone(&log), Arc::clone(&log));
    let handle = model.handle().clone();
    drop(model.handle().spawn_future(async move {
        clockjack_exec::sleep(Duration::ZERO).await.unwrap();
        first.lock().unwrap().push("first");
        handle.sleep(Duration::ZERO).await.unwrap();
        first.lock().unwrap().push("first again");
    }));
    drop(model.handle().spawn_future(async move { second.lock().unwrap().push("second") }));
    model.work(0);
    assert_eq!(*log.lock().unwrap(), ["second", "first", "first again"]);
    assert_eq!((model.now(), model.handle().stats().timers_armed), (0, 0));
    let mut late = model.handle().sleep(Duration::ZERO);
    model.finish();
    let polled = Pin::new(&mut late).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(error)) if error.is_closed()), "it was shut down");
}

#[test]
fn a_worker_can_arm_as_many_timers_as_the_limits_say() {
    for limit in [8, 9, 24, 100, 1_000, 5_000] {
        let model = Model::with_limits(1, Limits::DEFAULT.timers(limit));
        let all = model.handle().spawn_future({
            let handle = model.handle().clone();
            async move {
                let mut timers: Vec<Timer> = (0..limit).map(|_| handle.timer()).collect();
                let arm = |timer: &mut Timer| timer.arm(ms(10), Waker::noop().clone());
                let n_armed = timers.iter_mut().map_while(|timer| arm(timer).ok()).count();
                assert_eq!(n_armed, limit);
                let mut more = handle.timer();
                assert!(more.arm(ms(10), Waker::noop().clone()).unwrap_err().is_full());
            }
        });
        model.work(0);
        ended(all);
        model.finish();
    }
}

#[test]
fn timers_of_a_pool_are_counted_by_what_became_of_them_and_how_late_they_were() {
    let model = Model::new(1);
    model.work(0);
    let mut timers: Vec<Timer> = (0..6).map(|_| model.handle().timer()).collect();
    for (number, timer) in timers.iter_mut().enumerate() {
        timer.arm(ms(10 * number as u64 + 10), Waker::noop().clone()).unwrap();
    }
    assert!(timers[5].reset(ms(70)).unwrap());
    timers[4].arm(ms(60), Waker::noop().clone()).unwrap();
    assert!(timers[5].cancel());
    assert!(timers[5].reset(ms(80)).unwrap(), "this one was not armed");
    // Fires those of 10, 20, 30, 40 and 60 ms, which are 53, 43, 33, 23 and 3 ms late.
    model.advance(63 * TICK);
    model.work(0);
    model.work_until(0, 80 * TICK);
    let stats = model.handle().stats();
    assert_eq!((stats.timers_rescheduled, stats.timers_armed), (2, 9));
    assert_eq!((stats.timers_cancelled, stats.timers_fired), (3, 6));
    assert_eq!((stats.timers_pending, stats.lateness_max_ticks), (0, 53));
    let mut expected = [0; 16];
    (expected[0], expected[2], expected[5], expected[6]) = (1, 1, 1, 3);
    assert_eq!(stats.timers_by_lateness, expected, "in time, 2 to 3, 16 to 31, 32 to 63");
    model.finish();
}

#[test]
fn the_shards_of_workers_that_left_are_spread_over_those_that_stay() {
    let model = Model::new(8);
    let workers: Vec<_> =
        (0..8).map(|worker| ManualWorker::new(model.handle().executor(), worker)).collect();
    let mut staying = workers;
    let leaving = staying.split_off(3);
    drop(leaving);
    let shards = || {
        let stats = model.handle().worker_stats().into_iter();
        stats.map(|worker| (worker.worker, worker.counts.timer_shards)).collect::<Vec<_>>()
    };
    assert_eq!(shards(), [(0, 1), (1, 1), (2, 1)]);
    model.look();
    assert_eq!(shards(), [(0, 3), (1, 3), (2, 2)]);
    drop(staying);
    model.finish();
}

#[test]
fn timers_of_threads_outside_are_spread_over_the_workers() {
    let model = Model::new(4);
    let workers: Vec<_> =
        (0..4).map(|worker| ManualWorker::new(model.handle().executor(), worker)).collect();
    let timers: Vec<Timer> = (0..8)
        .map(|number| {
            model.set_thread_number(number);
            let mut timer = model.handle().timer();
            timer.arm(ms(10), Waker::noop().clone()).unwrap();
            timer
        })
        .collect();
    let stats = model.handle().worker_stats();
    let pending: Vec<_> = stats.iter().map(|worker| worker.counts.timers_pending).collect();
    assert_eq!(pending, [2; 4]);
    drop((timers, workers));
    model.finish();
}

/// What the wheel frees, who is assigned what is left, and what the close drops, in the figures of
/// the pool and in those of the workers.
#[test]
fn statistics_count_compactions_reassignments_and_what_the_close_drops() {
    const N: usize = 700;
    let far = Duration::from_secs(600);
    let model = Model::new(2);
    let [stays, leaves] = [0, 1].map(|n| ManualWorker::new(model.handle().executor(), n));
    // Seven fill a chunk of a list, and of most chunks one timer is left.
    let mut timers: Vec<Timer> = Vec::new();
    for _ in 0..N {
        let mut chunk = [(); 7].map(|()| {
            let mut timer = model.handle().timer();
            timer.arm(far, Waker::noop().clone()).unwrap();
            timer
        });
        assert!(chunk[1..].iter_mut().all(Timer::cancel));
        let [kept, ..] = chunk;
        timers.push(kept);
    }
    let stats = model.handle().stats();
    assert_eq!((stats.timers_armed, stats.timers_cancelled), (7 * N as u64, 6 * N as u64));
    assert_eq!((stats.timers_pending, stats.timers_stale), (N as u64, 0));
    drop((stays, leaves));
    // Polls of the timers scan lists with such chunks, a part at a time.
    let ticks = model.handle().spawn_future(async {
        for _ in 0..200 {
            clockjack_exec::sleep(ms(1)).await.unwrap();
        }
    });
    model.work_until(0, 300 * TICK);
    ended(ticks);
    let stats = model.handle().stats();
    assert!(stats.timer_lists_scanned > 0, "{stats:?}");
    assert!(stats.timer_chunks_compacted > N as u64 / 5, "{stats:?}");
    assert_eq!((stats.timers_fired, stats.timers_pending), (200, N as u64));
    // The shard of a worker that is gone is assigned to one that stays.
    let [stays, leaves] = [0, 1].map(|n| ManualWorker::new(model.handle().executor(), n));
    let before = model.handle().stats().shards_reassigned;
    drop(leaves);
    model.look();
    let stats = model.handle().stats();
    assert_eq!((stats.shards_reassigned - before, stats.timer_shards), (1, 2));
    let [of_worker] = model.handle().worker_stats().try_into().unwrap();
    assert_eq!((of_worker.counts.timer_shards, of_worker.counts.timers_pending), (2, N as u64));
    model.handle().executor().close_timers();
    let [of_worker] = model.handle().worker_stats().try_into().unwrap();
    assert_eq!((of_worker.counts.timers_dropped, of_worker.counts.timers_fired), (N as u64, 200));
    drop(stays);
    model.finish();
    let stats = model.handle().stats();
    assert_eq!((stats.timers_dropped, stats.timers_pending), (N as u64, 0), "{stats:?}");
    let ends = stats.timers_fired + stats.timers_cancelled + stats.timers_dropped;
    assert_eq!(ends, stats.timers_armed, "each timer has one end: {stats:?}");
}
