//! An actor that waits for its restart: for a backoff delay, for its children, or both.

use alloc::sync::Arc;
use core::time::Duration;

use clockjack_actor::{
    ActorRef, ActorSystem, Backoff, EventKinds, Failure, Limits, Next, RootContext, Strategy,
    SystemMessage,
};
use clockjack_sched::{DispatcherId, Policy, PolicyRegistry, SchedulerConfig};
use clockjack_time::{ManualClock, Resolution, Tick, TimerPriority};

use crate::{
    bench::{Log, start, start_seeded, start_ticking},
    scripted_actor::{Msg, Plan, events, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

fn backoff() -> Strategy {
    Strategy::restart().backoff(Backoff::new(SECOND, 8 * SECOND))
}

fn pass(root: &mut RootContext, clock: &ManualClock, time: Duration) {
    clock.advance(time);
    root.run_until_idle();
}

/// The backoff delay after a failure, in milliseconds, found by small steps.
fn pause(root: &mut RootContext, clock: &ManualClock, a: &ActorRef<Msg>, plan: &Plan) -> u64 {
    let before = plan.births();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    for ms in 0.. {
        if plan.births() != before {
            return ms;
        }
        assert!(ms < 100_000, "it never comes back");
        pass(root, clock, Duration::from_millis(1));
    }
    unreachable!("the range has no end")
}

#[test]
fn pauses_double_up_to_the_longest_and_begin_anew_after_a_calm() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let strategy =
        Strategy::restart().backoff(Backoff::new(SECOND / 100, SECOND / 20).reset_after(SECOND));
    let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
    root.run_until_idle();
    let pauses: Vec<_> = (0..4).map(|_| pause(&mut root, &clock, &a, &plan)).collect();
    assert_eq!(pauses, [10, 20, 40, 50]);
    pass(&mut root, &clock, SECOND - SECOND / 1000);
    assert_eq!(pause(&mut root, &clock, &a, &plan), 50);
    pass(&mut root, &clock, SECOND);
    assert_eq!(pause(&mut root, &clock, &a, &plan), 10);
}

#[test]
fn the_jitter_of_pauses_comes_from_the_seed_and_the_path() {
    let pauses = |seed, name: &str| -> Vec<u64> {
        let (mut root, clock) = start_seeded(ActorSystem::builder("t"), seed);
        let plan = Plan::default();
        let backoff = Backoff::new(SECOND / 10, SECOND / 10).jitter(0.5);
        let props = plan.props(&Log::default()).supervise(Strategy::restart().backoff(backoff));
        let a = root.spawn(name, props).unwrap();
        root.run_until_idle();
        (0..5).map(|_| pause(&mut root, &clock, &a, &plan)).collect()
    };
    let first = pauses(1, "a");
    assert_eq!(first, pauses(1, "a"));
    assert_ne!(first, pauses(2, "a"));
    assert_ne!(first, pauses(1, "b"));
    assert!(first.iter().all(|pause| (100..=150).contains(pause)), "{first:?}");
}

#[test]
fn messages_and_signals_of_a_pause_are_kept_and_handled_by_the_new_value_in_order() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    let b = root.spawn("b", props(&Log::default())).unwrap();
    let who = b.clone();
    run(&mut root, &a, move |_, cx| {
        cx.watch(&who)?;
        Err(Failure::msg("now"))
    });
    a.tell(Msg::Say("one")).unwrap();
    b.tell(Msg::Stop).unwrap();
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take(), ["a started", "a sees b end", "a one", "a is 2"]);
}

#[test]
fn a_full_mailbox_has_room_again_during_a_pause() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let one = clockjack_actor::Mailbox::bounded(1);
    let a = root.spawn("a", props(&log).mailbox(one).supervise(backoff())).unwrap();
    root.run_until_idle();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    for text in ["one", "two", "three"] {
        a.tell(Msg::Say(text)).unwrap();
        root.run_until_idle();
    }
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take()[2..], ["a started", "a one", "a two", "a three"]);
}

#[test]
fn what_finds_no_room_in_a_pause_is_a_dead_letter() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log).supervise(backoff().stash(2))).unwrap();
    a.tell(Msg::Fail).unwrap();
    for text in ["one", "two", "three"] {
        a.tell(Msg::Say(text)).unwrap();
    }
    root.run_until_idle();
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take()[2..], ["a started", "a one", "a two"]);
    assert_eq!(
        told.take(),
        ["dead letter for /user/a: no room to keep the message during a restart"]
    );
}

#[test]
fn a_thousand_messages_are_kept_if_nothing_else_is_set() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    for _ in 0..1_100 {
        a.tell(Msg::Say("kept")).unwrap();
        root.run_until_idle();
    }
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take().iter().filter(|line| *line == "a kept").count(), 1_000);
    assert_eq!(told.take().len(), 100);
}

#[test]
fn if_what_was_kept_fails_again_the_rest_stays_kept() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    a.tell(Msg::Fail).unwrap();
    for msg in [Msg::Say("one"), Msg::Fail, Msg::Born] {
        a.tell(msg).unwrap();
    }
    root.run_until_idle();
    a.tell(Msg::Say("newer")).unwrap();
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take()[2..], ["a started", "a one", "a PreRestart"]);
    a.tell(Msg::Say("newest")).unwrap();
    pass(&mut root, &clock, 2 * SECOND);
    assert_eq!(log.take(), ["a started", "a is 3", "a newer", "a newest"]);
}

#[test]
fn restarts_one_after_another_keep_no_more_than_one_does() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let plan = Plan::default().started(|me, _| {
        if (2..=4).contains(&me.born) { Err(Failure::msg("not yet")) } else { Ok(Next::Stay) }
    });
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND)).stash(3);
    let a = root.spawn("a", plan.props(&log).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    for text in ["first", "second", "third", "fourth"] {
        a.tell(Msg::Say(text)).unwrap();
        a.tell(Msg::Say(text)).unwrap();
        root.run_until_idle();
        pass(&mut root, &clock, SECOND);
    }
    assert_eq!(log.take()[6..], ["a first", "a first", "a second"]);
    assert_eq!(told.take().len(), 5);
}

#[test]
fn a_pause_that_is_longer_than_a_job_may_wait_is_waited_for_to_its_end() {
    // At most some 36 minutes, with ticks of a microsecond.
    let micro = Resolution::from_nanos(1_000).unwrap();
    let (mut root, clock) = start_ticking(ActorSystem::builder("t"), 0, micro);
    let log = Log::default();
    let strategy = Strategy::restart().backoff(Backoff::new(7_200 * SECOND, 7_200 * SECOND));
    let a = root.spawn("a", props(&log).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    for _ in 0..2 {
        pass(&mut root, &clock, 3_599 * SECOND);
    }
    pass(&mut root, &clock, SECOND);
    assert!(log.take().is_empty());
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take(), ["a started"]);
}

/// A system whose scheduler has no room for another job of a user of any class, and a reserve of
/// this size.
fn crowded(internal_reserve: usize, limits: Limits) -> (RootContext, Arc<ManualClock>) {
    let policies = PolicyRegistry::new();
    let policies = policies.set_default(Policy::DEFAULT.priority(TimerPriority::High));
    let config = SchedulerConfig {
        quota: 4,
        capacity: 4,
        internal_reserve,
        policies,
        ..SchedulerConfig::DEFAULT
    };
    let (root, clock) = start(ActorSystem::builder("t").scheduler(config).limits(limits));
    crowd(&root);
    (root, clock)
}

fn crowd(root: &RootContext) {
    let jobs = root.system().scheduler().jobs();
    while jobs.schedule_once_fn(3_600 * SECOND, DispatcherId::DEFAULT, |_| ()).is_ok() {}
}

#[test]
fn jobs_of_users_neither_shorten_nor_swallow_a_pause() {
    let (mut root, clock) = crowded(1, Limits::DEFAULT);
    let log = Log::default();
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND));
    let a = root.spawn("a", props(&log).supervise(strategy)).unwrap();
    for _ in 0..3 {
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        crowd(&root);
        assert_eq!(log.take(), ["a started", "a PreRestart"]);
        pass(&mut root, &clock, SECOND - SECOND / 1000);
        assert!(log.take().is_empty());
        pass(&mut root, &clock, SECOND / 1000);
    }
    assert_eq!(log.take(), ["a started"]);
    let metrics = root.system().scheduler().jobs().metrics();
    assert_eq!((metrics.reserve_exceeded_total, metrics.dropped_total), (0, 0));
}

#[test]
fn a_pause_for_which_the_reserve_has_no_place_is_waited_for_to_its_end() {
    let (mut root, clock) = crowded(1, Limits::DEFAULT);
    let log = Log::default();
    for name in ["a", "b", "c"] {
        let a = root.spawn(name, props(&log).supervise(backoff())).unwrap();
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        a.tell(Msg::Say("waits")).unwrap();
        root.run_until_idle();
    }
    assert_eq!(root.system().scheduler().jobs().metrics().reserve_exceeded_total, 2);
    drop(log.take());
    pass(&mut root, &clock, SECOND - SECOND / 1000);
    assert!(log.take().is_empty(), "a restart came before its time");
    pass(&mut root, &clock, SECOND / 1000);
    let mut lines = log.take();
    lines.sort_unstable();
    assert_eq!(lines, ["a started", "a waits", "b started", "b waits", "c started", "c waits"]);
}

#[test]
fn a_pause_after_the_close_of_the_scheduler_is_waited_for_to_its_end() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    root.run_until_idle();
    root.system().scheduler().jobs().shutdown();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    pass(&mut root, &clock, SECOND - SECOND / 1000);
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    pass(&mut root, &clock, SECOND / 1000);
    assert_eq!(log.take(), ["a started"]);
}

#[test]
fn a_close_of_the_scheduler_during_a_pause_neither_ends_it_nor_swallows_the_restart() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    a.tell(Msg::Say("kept")).unwrap();
    pass(&mut root, &clock, SECOND / 4);
    root.system().scheduler().jobs().shutdown();
    pass(&mut root, &clock, 3 * SECOND / 4 - SECOND / 1000);
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    pass(&mut root, &clock, SECOND / 1000);
    assert_eq!(log.take(), ["a started", "a kept"]);
}

#[test]
fn a_close_of_the_scheduler_in_a_part_of_a_long_pause_leaves_the_rest() {
    let micro = Resolution::from_nanos(1_000).unwrap();
    let (mut root, clock) = start_ticking(ActorSystem::builder("t"), 0, micro);
    let log = Log::default();
    let strategy = Strategy::restart().backoff(Backoff::new(7_200 * SECOND, 7_200 * SECOND));
    let a = root.spawn("a", props(&log).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    pass(&mut root, &clock, 60 * SECOND);
    root.system().scheduler().jobs().shutdown();
    pass(&mut root, &clock, 7_139 * SECOND);
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    pass(&mut root, &clock, SECOND);
    assert_eq!(log.take(), ["a started"]);
}

/// The first actors take all timers of the executor; the others are polled.
#[test]
fn a_pause_without_any_timer_is_waited_for_to_its_end() {
    const N_LONG: usize = 8;
    let (mut root, clock) = crowded(0, Limits::DEFAULT.timers(2));
    let log = Log::default();
    for n in 0..=N_LONG {
        let pause = if n == N_LONG { 2 * SECOND } else { 8 * SECOND };
        let strategy = Strategy::restart().backoff(Backoff::new(pause, pause));
        let a = root.spawn(&format!("a{n}"), props(&log).supervise(strategy)).unwrap();
        a.tell(Msg::Fail).unwrap();
    }
    // An actor that is polled is never idle, so single rounds.
    let rounds = |root: &mut RootContext| (0..9).for_each(|_| _ = root.next_wake());
    rounds(&mut root);
    assert_eq!(log.take().len(), 2 * N_LONG + 2, "each has started and failed");
    clock.advance(2 * SECOND - SECOND / 1000);
    rounds(&mut root);
    assert!(log.take().is_empty(), "a restart came before its time");
    clock.advance(SECOND / 1000);
    rounds(&mut root);
    assert_eq!(log.take(), ["a8 started"]);
    pass(&mut root, &clock, 6 * SECOND);
    assert_eq!(log.take().len(), N_LONG, "each has restarted");
}

/// A system without anything to wait by must still be able to stop.
#[test]
fn a_stop_ends_a_pause_without_any_timer() {
    let (mut root, _) = crowded(0, Limits::DEFAULT);
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    root.run_until_idle();
    root.seal();
    a.tell(Msg::Fail).unwrap();
    for _ in 0..9 {
        let next = root.next_wake().expect("an actor that is polled is never idle");
        assert_eq!(next, Tick::ZERO);
    }
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
}

#[test]
fn a_restart_stops_the_children_and_waits_for_them() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let plan = Plan::default().started(move |_, cx| {
        let child = cx.spawn_child("child", props(&to))?;
        // The restart revokes it, so it has no effect.
        cx.watch_with(&child, Msg::Say("must not come"))?;
        Ok(Next::Stay)
    });
    let a = root.spawn("a", plan.props(&log).supervise(Strategy::restart())).unwrap();
    root.run_until_idle();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    let expected = [
        "a started",
        "a/child started",
        "a PreRestart",
        "a/child PostStop",
        "a started",
        "a is 2",
        "a/child started",
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn children_may_live_on_through_a_restart() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let strategy = Strategy::restart().keep_children();
    let a = root.spawn("a", props(&log).supervise(strategy)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("child", props(&to))?;
        Ok(Next::Stay)
    });
    let child: ActorRef<Msg> = root.system().lookup("/user/a/child").unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    child.tell(Msg::Born).unwrap();
    root.run_until_idle();
    let expected = ["a started", "a/child started", "a PreRestart", "a started", "a/child is 1"];
    assert_eq!(log.take(), expected);
}

#[test]
fn a_stop_in_a_pause_ends_it_without_a_word_to_the_value_that_is_no_more() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log).supervise(backoff())).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Say("kept")).unwrap();
    root.run_until_idle();
    let jobs = root.system().scheduler().jobs().metrics().active_total;
    assert_eq!(jobs, 1, "the pause has its timer");
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!(
        root.system().scheduler().jobs().metrics().active_total,
        0,
        "the timer is cancelled"
    );
    assert_eq!(log.take(), ["a started", "a PreRestart"]);
    assert_eq!(told.take(), ["dead letter for /user/a: its receiver has stopped"]);
    pass(&mut root, &clock, 10 * SECOND);
    assert!(log.take().is_empty());
    // The name is free.
    assert!(root.spawn("a", props(&log)).is_ok());
}

#[test]
fn a_restart_and_a_stop_that_come_one_upon_the_other_end_in_the_stop() {
    for first_stop in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let a = root.spawn("a", props(&log).supervise(Strategy::restart())).unwrap();
        let to = log.clone();
        run(&mut root, &a, move |_, cx| {
            for name in ["x", "y", "z"] {
                cx.spawn_child(name, props(&to))?;
            }
            Ok(Next::Stay)
        });
        log.take();
        let orders = [SystemMessage::Restart, SystemMessage::Stop];
        for order in orders.iter().cycle().skip(usize::from(first_stop)).take(2) {
            a.try_send_system(order.clone()).unwrap();
        }
        root.run_until_idle();
        assert!(a.is_stopped());
        let lines = log.take();
        let stops: Vec<_> = lines.iter().filter(|line| line.ends_with("PostStop")).collect();
        // After `Restart` there is no value that could receive `PostStop`.
        let mut expected = vec!["a/z PostStop", "a/y PostStop", "a/x PostStop"];
        expected.extend(first_stop.then_some("a PostStop"));
        assert_eq!(stops, expected);
    }
}

#[test]
fn an_actor_that_fails_in_each_start_does_not_keep_the_worker_to_itself() {
    const STARTS: u32 = 10_000;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default().started(|me, _| match me.born {
        2..STARTS => Err(Failure::msg("again")),
        _ => Ok(Next::Stay),
    });
    let a = root.spawn("a", plan.props(&Log::default()).supervise(Strategy::restart())).unwrap();
    let b = root.spawn("b", props(&Log::default())).unwrap();
    a.tell(Msg::Fail).unwrap();
    let (at, seen) = (plan.clone(), Arc::new(std::sync::Mutex::new(0)));
    let to = Arc::clone(&seen);
    run(&mut root, &b, move |_, _| {
        *to.lock().unwrap() = at.births();
        Ok(Next::Stay)
    });
    assert!(*seen.lock().unwrap() < 10, "others have their turns between");
    assert_eq!(plan.births(), STARTS);
}
