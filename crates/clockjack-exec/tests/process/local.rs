//! The executor on one thread: turns, orders drawn from a seed, and its end.

use alloc::{rc::Rc, sync::Arc};
use core::{
    cell::{Cell, RefCell},
    future::{pending, poll_fn},
    task::{Poll, Waker},
    time::Duration,
};
use std::{sync::Mutex, thread};

use clockjack_exec::{
    Commands, Event, Limits, Payload, State, Tag,
    builtin::{RepeatEvery, SleepFor},
    sleep, yield_now,
};
use clockjack_testing::keeps_deadline;
use clockjack_time::{MonotonicClock as _, Tick};

use crate::bench::{Dropped, Log, Mortal, Run, asker, millis, process};

#[test]
fn step_one_steps_one_process_and_no_timer() {
    let mut run = Run::new();
    let log = Log::default();
    for n in 0..2 {
        let log = log.clone();
        drop(run.exec.spawn_future(async move {
            log.say(format!("{n} begins"));
            sleep(millis(1)).await.unwrap();
            log.say(format!("{n} ends"));
        }));
    }
    assert!(run.exec.is_ready());
    assert!(run.exec.step_one());
    log.expect(&["0 begins"]);
    assert!(run.exec.step_one());
    log.expect(&["1 begins"]);
    run.clock.advance(millis(1));
    assert!(!run.exec.step_one(), "a timer was looked at");
    assert!(!run.exec.is_ready());
    assert_eq!(run.idle(), 2);
    log.expect(&["0 ends", "1 ends"]);
    run.assert_well();
}

#[test]
fn statistics_of_one_thread_count_its_steps_its_timers_and_its_sleeps() {
    let mut run = Run::new();
    let two = run.exec.spawn_future(async {
        sleep(millis(5)).await.unwrap();
        sleep(millis(5)).await.unwrap();
    });
    run.idle();
    run.clock.advance(millis(8));
    // The first is found three late; for the second the executor sleeps, which is exact.
    run.exec.block_on(two).unwrap();
    let stats = run.handle().stats();
    assert_eq!((stats.steps, stats.timers_fired, stats.parked), (3, 2, 1));
    assert_eq!(stats.lateness_max_ticks, 3);
}

#[test]
fn limits_of_nothing_and_of_everything_are_limits() {
    let all = |n| Limits::DEFAULT.processes(n).timers(n).messages(n).throughput(n);
    let of = |limits| Run::of(limits, Commands::new(), 0);
    let refused = of(all(0)).exec.submit(Mortal).unwrap_err();
    assert!(refused.is_full());
    for (limits, is_second_taken) in [(all(0).processes(1), false), (all(usize::MAX), true)] {
        let mut run = of(limits.step_budget(Duration::MAX));
        let it = run.exec.submit(Mortal).unwrap();
        it.tell(0).unwrap();
        assert_eq!(it.tell(0).is_ok(), is_second_taken);
        run.exec.block_on(it.join()).unwrap();
        drop(it);
        let mut timer = run.handle().timer();
        timer.arm(Duration::MAX, Waker::noop().clone()).unwrap();
        assert!(timer.cancel());
        run.assert_well();
    }
}

#[test]
fn a_turn_fires_what_is_due_and_steps_each_ready_process_once() {
    let mut run = Run::new();
    let steps = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let steps = Rc::clone(&steps);
        drop(run.exec.spawn_future(async move {
            loop {
                steps.set(steps.get() + 1);
                yield_now().await;
            }
        }));
    }
    drop(run.exec.spawn_future(async {
        sleep(millis(5)).await.unwrap();
    }));
    let turn = run.exec.turn();
    assert_eq!((turn.steps, turn.fired, steps.get()), (4, 0, 3));
    assert_eq!(turn.next_wake.map(Tick::get), Some(5));
    let turn = run.exec.turn();
    assert_eq!((turn.steps, turn.fired, steps.get()), (3, 0, 6));
    run.clock.advance(millis(5));
    let turn = run.exec.turn();
    assert_eq!((turn.steps, turn.fired, steps.get()), (4, 1, 9));
    assert_eq!(turn.next_wake, None);
}

#[test]
fn without_a_seed_the_order_is_that_of_becoming_ready() {
    assert_eq!(order_of(0, false), (0..20).collect::<Vec<_>>());
}

/// The order in which twenty processes take each their first step, and the messages of one.
fn order_of(seed: u64, looks_idly: bool) -> Vec<u32> {
    let mut run = Run::of(Limits::DEFAULT, Commands::new(), seed);
    if looks_idly {
        assert!(!run.exec.step_one());
        assert_eq!(run.exec.turn().steps, 0);
    }
    let order = Rc::new(RefCell::new(Vec::new()));
    for n in 0..20 {
        let order = Rc::clone(&order);
        drop(run.exec.spawn_future(async move { order.borrow_mut().push(n) }));
    }
    run.idle();
    order.take()
}

#[test]
fn a_seed_gives_one_order_and_another_seed_another() {
    assert_eq!(order_of(7, false), order_of(7, false));
    assert_ne!(order_of(7, false), order_of(8, false));
    let mut sorted = order_of(7, false);
    assert_ne!(sorted, (0..20).collect::<Vec<_>>());
    sorted.sort_unstable();
    assert_eq!(sorted, (0..20).collect::<Vec<_>>());
}

#[test]
fn looking_where_nothing_is_ready_does_not_change_the_run() {
    assert_eq!(order_of(7, false), order_of(7, true));
}

#[test]
fn no_seed_changes_the_order_inside_a_mailbox() {
    for seed in 0..20 {
        let mut run = Run::of(Limits::DEFAULT.throughput(3), Commands::new(), seed);
        let got = Rc::new(RefCell::new(vec![Vec::new(); 4]));
        let receivers: Vec<_> = (0..4_usize)
            .map(|at| {
                let got = Rc::clone(&got);
                let receiver = process::<u32, _>(move |events, out| {
                    for event in events {
                        if let Event::Message(n) = event {
                            got.borrow_mut()[at].push(n);
                        }
                    }
                    out.idle();
                    Ok(())
                });
                run.exec.submit(receiver).unwrap()
            })
            .collect();
        drop(run.exec.spawn_future(async move {
            for n in 0..10 {
                receivers.iter().for_each(|to| to.tell(n).unwrap());
                yield_now().await;
            }
        }));
        run.idle();
        for got in got.borrow().iter() {
            assert_eq!(*got, (0..10).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

/// Says on which thread it is dropped; not `Send`.
struct Here(Rc<Cell<u32>>, thread::ThreadId);

impl Drop for Here {
    fn drop(&mut self) {
        assert_eq!(thread::current().id(), self.1, "dropped on another thread");
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn what_is_not_send_dies_on_its_thread_though_a_waker_lives_on_elsewhere() {
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let drops = Rc::new(Cell::new(0));
    let mut run = Run::new();
    let (here, theirs) = (Here(Rc::clone(&drops), thread::current().id()), Arc::clone(&waker));
    let join = run.exec.spawn_future(async move {
        let _here = here;
        poll_fn(move |cx| {
            theirs.lock().unwrap().replace(cx.waker().clone());
            Poll::<()>::Pending
        })
        .await;
    });
    run.idle();
    let waker = waker.lock().unwrap().take().unwrap();
    thread::scope(|scope| {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let other = scope.spawn(move || {
            waker.wake_by_ref();
            // Only after the executor is gone does the last waker go, here.
            gone.recv().unwrap();
            waker.wake_by_ref();
            drop(waker);
        });
        run.idle();
        assert_eq!(drops.get(), 0);
        drop(run);
        assert_eq!(drops.get(), 1);
        go.send(()).unwrap();
        other.join().unwrap();
    });
    assert!(join.is_finished());
    assert_eq!(drops.get(), 1);
}

#[test]
fn an_executor_that_is_dropped_drops_every_body_once() {
    let run = Run::new();
    let log = Log::default();
    let held = Dropped(log.clone(), "future");
    let join = run.exec.spawn_future(async move {
        let _held = held;
        pending::<()>().await;
    });
    let held = Dropped(log.clone(), "process");
    let it = run.exec.submit(process::<Dropped, _>(move |_, out| {
        let _ = &held;
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    assert!(it.tell(Dropped(log.clone(), "message")).is_ok());
    let asks = asker(&log, |out| {
        out.yield_command(Tag(1), SleepFor(millis(5)));
        out.yield_command(Tag(2), RepeatEvery(millis(5)));
    });
    let asker = run.exec.submit(asks).unwrap();
    let mut run = run;
    run.exec.step_one();
    run.exec.step_one();
    run.exec.step_one();
    let handle = run.handle();
    drop(run);
    let told = log.take();
    let mut told: Vec<_> = told.lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["closed", "dropped future", "dropped message", "dropped process"]);
    assert!(join.is_finished() && it.is_finished() && asker.is_finished());
    assert_eq!(it.state(), State::Complete);
    let stats = handle.stats();
    assert_eq!((stats.spawned, stats.finished), (3, 3));
    drop((join, it, asker));
    log.expect(&[]);
}

#[test]
fn what_dies_with_the_executor_may_still_use_its_handle() {
    struct Late(clockjack_exec::Handle, Log);
    impl Drop for Late {
        fn drop(&mut self) {
            let refused = self.0.submit(Mortal).is_err_and(|refused| refused.is_stopped());
            drop(self.0.spawn_future(async {}));
            self.1.say(if refused { "refused" } else { "started" });
        }
    }
    let run = Run::new();
    let log = Log::default();
    let late = Late(run.handle(), log.clone());
    drop(run.exec.spawn_future(async move {
        let _late = late;
        pending::<()>().await;
    }));
    drop(run);
    log.expect(&["refused"]);
}

#[test]
fn a_shutdown_reports_who_ended_and_who_had_to_be_ended() {
    let run = Run::new();
    let log = Log::default();
    let polite = run.exec.submit(asker(&log, |_| {})).unwrap();
    let future = run.exec.spawn_future(pending::<()>());
    let deaf = run.exec.submit(process::<u32, _>(|events, out| {
        events.for_each(drop);
        out.idle();
        Ok(())
    }));
    let deaf = deaf.unwrap();
    let busy = run.exec.submit(process::<u32, _>(|events, out| {
        events.for_each(drop);
        out.yield_command(Tag(1), SleepFor(millis(3)));
        Ok(())
    }));
    let busy = busy.unwrap();
    let clock = Arc::clone(&run.clock);
    let report = keeps_deadline(millis(50), || run.exec.shutdown(millis(50)));
    assert_eq!(report.completed, 2);
    let mut stragglers: Vec<_> = report.stragglers.iter().map(|it| (it.pid, it.state)).collect();
    stragglers.sort_unstable_by_key(|(pid, _)| *pid);
    let expected = [(deaf.pid(), State::Idle), (busy.pid(), State::Blocked)];
    assert_eq!(stragglers, expected);
    assert!(report.stragglers[0].type_name.contains("Stepping"));
    log.expect(&["cancel shutdown", "closed"]);
    assert!(polite.is_finished() && future.is_finished());
    assert!(deaf.is_finished() && busy.is_finished());
    assert!(deaf.tell(1).unwrap_err().is_stopped());
    assert_eq!(clock.now().ticks, 50, "it waited until the deadline");
}

#[test]
fn a_shutdown_of_nothing_takes_no_time() {
    let run = Run::new();
    let clock = Arc::clone(&run.clock);
    let report = keeps_deadline(millis(50), || run.exec.shutdown(millis(50)));
    assert_eq!((report.completed, report.stragglers.len()), (0, 0));
    assert_eq!(clock.now().ticks, 0);
}

#[test]
fn other_threads_start_processes_by_a_handle() {
    let mut run = Run::new();
    let handle = run.handle();
    let joins: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let handle = handle.clone();
                scope.spawn(move || {
                    let it = handle.submit(Mortal).unwrap();
                    it.tell(0).unwrap();
                    (handle.spawn_future(async move { n }), it.join())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (n, (future, process)) in joins.into_iter().enumerate() {
        assert_eq!(run.exec.block_on(future).unwrap(), n);
        let result: Payload = run.exec.block_on(process).unwrap();
        assert!(result.is::<()>());
    }
    run.assert_well();
}

#[test]
fn block_on_sleeps_until_the_next_timer_only() {
    let mut run = Run::new();
    let handle = run.handle();
    let clock = Arc::clone(&run.clock);
    run.exec.block_on(async move {
        handle.sleep(millis(30)).await.unwrap();
        assert_eq!(clock.now().ticks, 30);
    });
    run.assert_well();
}
