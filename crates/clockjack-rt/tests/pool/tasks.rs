//! What users of tokio look for: sets of tasks, time-outs, blocking work with a result, a budget,
//! dumps, and figures of single workers.

use core::{
    future::pending,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, mpsc},
    thread,
};

use clockjack_rt::{
    JoinSet, PoolConfig, Runtime, RuntimeConfig, WorkerPool,
    actor::{Next, Props},
    consume_budget,
    exec::{Commands, JoinError, Limits, LocalExecutor, State},
    sleep, spawn_blocking, spawn_future, timeout,
};
use clockjack_testing::{
    InTime,
    toolbox::{ByHand, Parking},
};
use clockjack_time::Resolution;

use super::{LONG, eventually, pool};
use crate::in_time::ShutdownInTime as _;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An executor on this thread, in virtual time.
fn by_hand(limits: Limits) -> LocalExecutor {
    let (mut host, _clock) = ByHand::new(Resolution::MILLI);
    host.parking = Parking::MovesTime;
    LocalExecutor::new(host, limits, Commands::new()).unwrap()
}

#[test]
fn a_set_returns_its_tasks_in_the_order_in_which_they_finish() {
    let mut executor = by_hand(Limits::DEFAULT);
    let handle = executor.handle();
    let mut set = JoinSet::new();
    for n in [30, 10, 20, 0] {
        let sleep = handle.sleep(ms(n));
        set.spawn_on(&handle, async move {
            sleep.await.unwrap();
            assert_ne!(n, 20, "this one panics");
            n
        });
    }
    assert_eq!(set.len(), 4);
    assert!(set.try_join_next().is_none(), "nothing has run");
    let mut joined = Vec::new();
    while let Some(next) = executor.block_on(set.join_next()) {
        joined.push(next.map_err(|error| error.is_panicked()));
        assert_eq!(joined.len() + set.len(), 4);
    }
    assert_eq!(joined, [Ok(0), Ok(10), Err(true), Ok(30)]);
    assert!(set.is_empty());
    // Several have finished before the set is asked.
    for n in [3, 1, 2] {
        let sleep = handle.sleep(ms(n));
        set.spawn_on(&handle, async move {
            sleep.await.unwrap();
            n
        });
    }
    assert!(set.try_join_next().is_none(), "nothing has run");
    executor.block_on(handle.sleep(ms(5))).unwrap();
    let joined = core::iter::from_fn(|| set.try_join_next()).map(Result::unwrap);
    assert_eq!(joined.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(executor.block_on(set.join_next()).is_none(), "an empty set does not wait");
    assert!(set.try_join_next().is_none());
}

#[test]
fn a_set_grows_while_it_is_joined_and_takes_tasks_of_others() {
    let mut executor = by_hand(Limits::DEFAULT);
    let handle = executor.handle();
    let mut set = JoinSet::new();
    set.insert(handle.spawn_future(async { 5_u32 }));
    let mut sum = 0;
    while let Some(next) = executor.block_on(set.join_next()) {
        let n = next.unwrap();
        sum += n;
        for _ in 0..n {
            set.spawn_on(&handle, async move { n - 1 });
        }
    }
    // 5, 5 of 4, 5·4 of 3, ...
    assert_eq!(sum, 5 + 5 * 4 + 20 * 3 + 60 * 2 + 120);
}

#[test]
fn a_set_aborts_its_tasks_when_it_is_told_to_or_dropped_and_not_when_they_are_detached() {
    let mut executor = by_hand(Limits::DEFAULT);
    let handle = executor.handle();
    let mut set = JoinSet::new();
    for _ in 0..3 {
        set.spawn_on(&handle, pending::<()>());
    }
    set.spawn_on(&handle, async {});
    executor.run_until_idle();
    set.abort_all();
    let all = executor.block_on(set.join_all());
    assert_eq!(all.len(), 4);
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(all.iter().flatten_err().all(JoinError::is_terminated));

    let mut set = JoinSet::new();
    (0..3).for_each(|_| set.spawn_on(&handle, pending::<()>()));
    executor.run_until_idle();
    assert_eq!(executor.live_len(), 3);
    drop(set);
    executor.run_until_idle();
    assert_eq!(executor.live_len(), 0);

    let mut set = JoinSet::new();
    set.spawn_on(&handle, pending::<()>());
    set.detach_all();
    drop(set);
    executor.run_until_idle();
    assert_eq!(executor.live_len(), 1);
}

/// The errors of results.
trait FlattenErr<'a, E: 'a> {
    fn flatten_err(self) -> impl Iterator<Item = &'a E>;
}

impl<'a, T: 'a, E: 'a, I: Iterator<Item = &'a Result<T, E>>> FlattenErr<'a, E> for I {
    fn flatten_err(self) -> impl Iterator<Item = &'a E> {
        self.filter_map(|result| result.as_ref().err())
    }
}

#[test]
fn a_task_that_is_refused_is_in_the_set_with_the_reason() {
    let mut executor = by_hand(Limits::DEFAULT.processes(2));
    let handle = executor.handle();
    let mut set = JoinSet::new();
    (0..1_000).for_each(|_| set.spawn_on(&handle, async {}));
    let all = executor.block_on(set.join_all());
    assert_eq!(all.len(), 1_000);
    assert!(all.iter().any(Result::is_ok) && all.iter().any(Result::is_err));
}

/// A joiner that is always ready has to yield, too.
#[test]
fn a_set_of_finished_tasks_is_joined_on_the_budget_of_the_joiner() {
    let mut executor = by_hand(Limits::DEFAULT);
    let handle = executor.handle();
    let n_joined = Arc::new(AtomicUsize::new(0));
    let mut set = JoinSet::new();
    (0..1_000).for_each(|_| set.spawn_on(&handle, async {}));
    executor.run_until_idle();
    let joiner = handle.spawn_future({
        let n_joined = Arc::clone(&n_joined);
        async move {
            while set.join_next().await.is_some() {
                n_joined.fetch_add(1, SeqCst);
            }
        }
    });
    executor.turn();
    assert_eq!(n_joined.load(SeqCst), 128);
    executor.run_until_idle();
    assert!(joiner.is_finished());
    assert_eq!(n_joined.load(SeqCst), 1_000);
}

#[test]
fn no_task_of_a_set_is_lost_or_joined_twice_on_several_workers() {
    const TASKS: usize = 2_000;
    let pool = pool(4);
    for round in 0..10 {
        let joined = pool.spawn_future(async move {
            let mut set = JoinSet::new();
            let mut is_joined = vec![false; TASKS];
            for n in 0..TASKS {
                set.spawn_future(async move {
                    if (n + round) % 3 == 0 {
                        clockjack_rt::yield_now().await;
                    }
                    n
                });
                if n % 7 == 0
                    && let Some(Ok(n)) = set.join_next().await
                {
                    assert!(!core::mem::replace(&mut is_joined[n], true), "{n} was joined twice");
                }
            }
            while let Some(Ok(n)) = set.join_next().await {
                assert!(!core::mem::replace(&mut is_joined[n], true), "{n} was joined twice");
            }
            is_joined.iter().all(|is_joined| *is_joined)
        });
        assert!(pool.block_on(joined).unwrap(), "a task is missing");
    }
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn blocking_work_of_the_current_pool_returns_its_result() {
    let pool = pool(1);
    let here = thread::current().id();
    let task = pool.spawn_future(async move {
        let on_worker = thread::current().id();
        let on = spawn_blocking(|| thread::current().id()).unwrap().await.unwrap();
        assert!(on != here && on != on_worker);
        let panicked = spawn_blocking(|| panic!("no such file")).unwrap().await;
        panicked.map(|()| String::new()).unwrap_err().panic_message().map(str::to_owned)
    });
    assert_eq!(pool.block_on(task).unwrap().as_deref(), Some("no such file"));
    assert_eq!(pool.block_on(async { spawn_blocking(|| 7).unwrap().await }).unwrap(), 7);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
#[should_panic(expected = "there is no current pool with threads for blocking work")]
fn blocking_work_without_a_pool_is_a_panic() {
    let _ = spawn_blocking(|| ());
}

#[test]
fn a_time_out_ends_a_wait_in_a_task_and_in_block_on() {
    let pool = pool(1);
    let in_task = pool.spawn_future(async { timeout(ms(5), pending::<()>()).await });
    assert!(pool.block_on(in_task).unwrap().unwrap_err().is_elapsed());
    let in_block_on = pool.block_on(async { timeout(ms(5), pending::<()>()).await });
    assert!(in_block_on.unwrap_err().is_elapsed());
    let in_time = pool.block_on(async { timeout(LONG, spawn_future(async { 7 })).await });
    assert_eq!(in_time.unwrap().unwrap(), 7);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

/// Without a budget this hangs: the first task never lets the second one run.
#[test]
fn a_future_that_is_always_ready_does_not_keep_the_only_worker() {
    let pool = pool(1);
    let is_set = Arc::new(AtomicBool::new(false));
    let looper = pool.spawn_future({
        let is_set = Arc::clone(&is_set);
        async move {
            while !is_set.load(SeqCst) {
                consume_budget().await;
            }
        }
    });
    let setter = pool.spawn_future(async move { is_set.store(true, SeqCst) });
    pool.block_on(async { timeout(LONG, looper).await }).expect("it ends").unwrap();
    pool.block_on(setter).unwrap();
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_dump_of_a_runtime_has_futures_and_actors_of_all_dispatchers_with_their_names() {
    let rt = InTime::new(Runtime::new("dumped").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let other = rt.system().create_dispatcher("other", 1).unwrap();
    let props = || Props::from_fn(|_cx, (): ()| Ok(Next::Stay));
    rt.spawn("ada", props()).unwrap();
    rt.spawn("bob", props().dispatcher(other)).unwrap();
    let line = line!() + 1;
    let sleeper = rt.spawn_named("sleeper", async { sleep(LONG).await });
    let find =
        |name: &str| rt.task_dump().into_iter().find(|task| task.name.as_deref() == Some(name));
    let is_idle = |name: &str| find(name).expect("it is alive").state == State::Idle;
    for name in ["sleeper", "/user/ada", "/user/bob"] {
        eventually("it is idle", || is_idle(name));
    }
    let sleeper_task = find("sleeper").unwrap();
    assert_eq!(Some(sleeper_task.pid), sleeper.pid());
    assert_eq!(sleeper_task.polls, 1);
    for location in [sleeper_task.spawned_at, sleeper_task.waits_at] {
        let location = location.unwrap();
        assert_eq!((location.file(), location.line()), (file!(), line));
    }
    let bob = find("/user/bob").unwrap();
    assert!(bob.polls > 0 && bob.since_poll.is_some());
    assert_eq!((bob.spawned_at, bob.waits_at), (None, None));
    sleeper.abort();
    assert!(rt.shutdown_in_time(LONG).is_clean());
}

#[test]
fn the_figures_of_a_worker_say_how_many_tasks_wait_for_it() {
    const QUEUED: usize = 5;
    let config = PoolConfig { workers: Some(1), workers_max: 4, ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holder = pool.spawn_future(async move {
        let queued: Vec<_> = (0..QUEUED).map(|_| spawn_future(async {})).collect();
        begin.send(()).unwrap();
        released.recv().unwrap_err();
        queued
    });
    begun.recv().unwrap();
    let [busy] = pool.worker_stats()[..] else { panic!("one worker runs") };
    assert_eq!((busy.worker, busy.is_polling, busy.queue_len), (0, true, QUEUED));
    drop(release);
    for task in pool.block_on(holder).unwrap() {
        pool.block_on(task).unwrap();
    }
    let stats = || pool.worker_stats()[0];
    // On a loaded machine it may still search when the timer is due, and not be parked.
    eventually("it has slept until a timer", || {
        pool.block_on(async { sleep(ms(5)).await }).unwrap();
        let idle = stats();
        // The worker counts a timer after it has woken the thread that sleeps.
        let has_fired = idle.counts.timers_fired > 0;
        has_fired && !idle.is_polling && idle.queue_len == 0 && idle.parked > Duration::ZERO
    });
    let idle = stats();
    let counts = idle.counts;
    assert!(counts.steps > QUEUED as u64 && counts.parked > 0, "{idle:?}");
    assert!(idle.poll_mean > Duration::ZERO, "{idle:?}");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}
