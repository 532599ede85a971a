//! A parent and its strategy for children.

use core::time::Duration;

use clockjack_actor::{
    ActorRef, ActorSystem, Backoff, EventKinds, Failure, Next, RootContext, Scope, Strategy,
    SystemMessage,
};

use crate::{
    bench::{Log, start},
    itself::Hooked,
    scripted_actor::{Msg, Plan, act, events, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

/// A parent with children `x`, `y` and `z`; the log is empty.
fn family(
    root: &mut RootContext,
    log: &Log,
    scope: Scope,
    strategy: Strategy,
) -> (ActorRef<Msg>, [ActorRef<Msg>; 3]) {
    let a = root.spawn("a", props(log).supervise_children(scope, strategy)).unwrap();
    let to = log.clone();
    run(root, &a, move |_, cx| {
        for name in ["x", "y", "z"] {
            cx.spawn_child(name, props(&to))?;
        }
        Ok(Next::Stay)
    });
    log.take();
    let child = |name| root.system().lookup(&format!("/user/a/{name}")).unwrap();
    let children = ["x", "y", "z"].map(child);
    (a, children)
}

#[test]
fn one_for_one_restarts_the_one_that_failed() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (_a, [_, y, _]) = family(&mut root, &log, Scope::OneForOne, Strategy::restart());
    y.tell(Msg::Fail).unwrap();
    y.tell(Msg::Born).unwrap();
    root.run_until_idle();
    let expected = [
        "a hears that /user/a/y restart (failed of /user/a/y)",
        "a/y PreRestart",
        "a/y started",
        "a/y is 2",
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn all_for_one_restarts_all_stops_all_and_resumes_one() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (_a, children) = family(&mut root, &log, Scope::AllForOne, Strategy::restart());
    children[1].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let restarted = log.take().iter().filter(|line| line.ends_with("PreRestart")).count();
    assert_eq!(restarted, 3);

    let (mut root, _) = start(ActorSystem::builder("t"));
    let (_a, children) = family(&mut root, &log, Scope::AllForOne, Strategy::stop());
    children[1].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(children.iter().all(ActorRef::is_stopped));

    let (mut root, _) = start(ActorSystem::builder("t"));
    let (_a, children) = family(&mut root, &log, Scope::AllForOne, Strategy::resume());
    log.take();
    children[1].tell(Msg::Fail).unwrap();
    children[1].tell(Msg::Born).unwrap();
    root.run_until_idle();
    let expected = ["a hears that /user/a/y resume (failed of /user/a/y)", "a/y is 1"];
    assert_eq!(log.take(), expected);
}

#[test]
fn rest_for_one_restarts_those_that_were_started_later_too() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (_a, [_, y, _]) = family(&mut root, &log, Scope::RestForOne, Strategy::restart());
    y.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let lines = log.take();
    let is_restarted = |name: &str| lines.contains(&format!("a/{name} PreRestart"));
    assert_eq!([is_restarted("x"), is_restarted("y"), is_restarted("z")], [false, true, true]);
}

#[test]
fn two_that_fail_at_once_are_restarted_once_each_with_the_others() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (_a, [x, y, _]) = family(&mut root, &log, Scope::AllForOne, Strategy::restart());
    x.tell(Msg::Fail).unwrap();
    y.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let lines = log.take();
    let n_restarts = lines.iter().filter(|line| line.ends_with("PreRestart")).count();
    let n_decisions = lines.iter().filter(|line| line.starts_with("a hears")).count();
    // The first decision covered the second failure.
    assert_eq!((n_restarts, n_decisions), (3, 1), "{lines:?}");
}

#[test]
fn a_failed_child_keeps_its_mail_while_its_parent_decides() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND));
    let (_a, [x, ..]) = family(&mut root, &log, Scope::OneForOne, strategy);
    x.tell(Msg::Fail).unwrap();
    x.tell(Msg::Say("one")).unwrap();
    root.run_until_idle();
    x.tell(Msg::Say("two")).unwrap();
    root.run_until_idle();
    log.take();
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["a/x started", "a/x one", "a/x two"]);
}

#[test]
fn the_pauses_of_a_parents_strategy_begin_anew_after_a_calm_of_the_child() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let ms = Duration::from_millis(1);
    let backoff = Backoff::new(10 * ms, 1_000 * ms).reset_after(SECOND);
    let strategy = Strategy::restart().backoff(backoff);
    let (_a, [x, ..]) = family(&mut root, &log, Scope::OneForOne, strategy);
    let mut pause = || {
        x.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        log.take();
        for n in 0_u32.. {
            if log.take().contains(&"a/x started".to_owned()) {
                return n;
            }
            clock.advance(ms);
            root.run_until_idle();
        }
        unreachable!("the range has no end")
    };
    assert_eq!([pause(), pause(), pause()], [10, 20, 40]);
    clock.advance(SECOND);
    assert_eq!(pause(), 10);
}

#[test]
fn a_child_whose_first_start_fails_follows_the_laws_of_a_first_start() {
    for (strategy, births) in [
        (Strategy::restart(), 1),
        (Strategy::restart().limit(1, SECOND), 1),
        (Strategy::restart().limit(2, SECOND), 3),
    ] {
        let (mut root, _) = start(ActorSystem::builder("t").shutdown_on_escalation(false));
        let log = Log::default();
        let props = props(&log).supervise_children(Scope::OneForOne, strategy);
        let a = root.spawn("a", props).unwrap();
        let plan = Plan::default().started(|_, _| Err(Failure::msg("never")));
        let (child, to) = (plan.clone(), log.clone());
        run(&mut root, &a, move |_, cx| {
            cx.spawn_child("x", child.props(&to))?;
            Ok(Next::Stay)
        });
        assert_eq!(plan.births(), births);
    }
}

#[test]
fn the_hooks_of_a_parents_strategy_are_told_of_those_that_are_restarted_with_another_one() {
    let log = Log::default();
    let strategy = Strategy::custom(Hooked(log.clone()));
    let users = ActorSystem::builder("t").supervise_users(Scope::AllForOne, strategy);
    let (mut root, _) = start(users);
    let quiet = Log::default();
    let [a, b] = ["a", "b"].map(|name| root.spawn(name, props(&quiet)).unwrap());
    root.run_until_idle();
    log.take();
    for (failed, times) in [(&a, 1), (&a, 2), (&b, 3)] {
        failed.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        let mut lines = log.take();
        lines.sort();
        let expected = [
            "/user/a is about to be made".to_owned(),
            format!("/user/a is back, {times}"),
            "/user/b is about to be made".to_owned(),
            format!("/user/b is back, {times}"),
            "decides about failed".to_owned(),
        ];
        assert_eq!(lines, expected);
    }
}

#[test]
fn the_hooks_of_a_parents_strategy_are_told_of_its_children() {
    let log = Log::default();
    let strategy = Strategy::custom(Hooked(log.clone()));
    let users = ActorSystem::builder("t").supervise_users(Scope::OneForOne, strategy);
    let (mut root, _) = start(users);
    let a = root.spawn("a", props(&log)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let expected = [
        "/user/a is about to be made",
        "a started",
        "decides about failed",
        "/user/a is about to be made",
        "a PreRestart",
        "a started",
        "/user/a is back, 1",
    ];
    assert_eq!(log.take(), expected);
}

/// `top` over `mid` over `x`; the failure of `x` is escalated to `top`, whose strategy this is.
fn line(root: &mut RootContext, log: &Log, top: Strategy) -> [ActorRef<Msg>; 4] {
    let props_of_top = props(log).supervise_children(Scope::OneForOne, top);
    let a = root.spawn("top", props_of_top).unwrap();
    let to = log.clone();
    run(root, &a, move |_, cx| {
        let down = to.clone();
        let plan = Plan::default().started(move |me, cx| {
            if me.born == 1 {
                cx.spawn_child("x", props(&down))?;
                cx.spawn_child("y", props(&down))?;
            }
            Ok(Next::Stay)
        });
        let mid = plan.props(&to).supervise_children(Scope::OneForOne, Strategy::escalate());
        cx.spawn_child("mid", mid)?;
        Ok(Next::Stay)
    });
    log.take();
    let get = |path| root.system().lookup(path).unwrap();
    [a.clone(), get("/user/top/mid"), get("/user/top/mid/x"), get("/user/top/mid/y")]
}

#[test]
fn a_failure_left_to_the_one_above_is_decided_by_its_strategy() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [_, mid, x, y] = line(&mut root, &log, Strategy::resume());
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    for one in [&mid, &x, &y] {
        one.tell(Msg::Born).unwrap();
    }
    root.run_until_idle();
    let mut lines = log.take();
    let told = lines.drain(..2).collect::<Vec<_>>();
    assert!(told[0].starts_with("top/mid is left with /user/top/mid/x ?"), "{told:?}");
    assert_eq!(told[1], "top hears that /user/top/mid resume (failed of /user/top/mid/x)");
    // All three continue with their state.
    assert_eq!(lines, ["top/mid is 1", "top/mid/x is 1", "top/mid/y is 1"]);
}

#[test]
fn a_parent_that_is_restarted_stops_its_suspended_children() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [_, mid, x, y] = line(&mut root, &log, Strategy::restart());
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(x.is_stopped() && y.is_stopped() && !mid.is_stopped());
    mid.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take().last().unwrap(), "top/mid is 2");
}

#[test]
fn children_that_were_kept_through_the_restart_of_their_parent_go_on_and_the_failed_one_anew() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [_, mid, x, y] = line(&mut root, &log, Strategy::restart().keep_children());
    for _ in 0..3 {
        x.tell(Msg::Fail).unwrap();
        root.run_until_idle();
    }
    log.take();
    for one in [&mid, &x, &y] {
        one.tell(Msg::Born).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["top/mid is 4", "top/mid/x is 4", "top/mid/y is 1"]);
}

#[test]
fn children_are_let_go_exactly_as_often_as_they_were_suspended() {
    let (mut root, _) = start(ActorSystem::builder("t").shutdown_on_escalation(false));
    let log = Log::default();
    let [_, _, x, y] = line(&mut root, &log, Strategy::resume());
    // Another suspension of the child stays.
    y.try_send_system(SystemMessage::Suspend).unwrap();
    for _ in 0..3 {
        x.tell(Msg::Fail).unwrap();
        root.run_until_idle();
    }
    y.tell(Msg::Say("held")).unwrap();
    root.run_until_idle();
    assert!(!log.take().contains(&"top/mid/y held".to_owned()));
    y.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["top/mid/y held"]);
    // Two failures that are escalated together suspend once, and are handled together.
    x.tell(Msg::Fail).unwrap();
    y.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    x.tell(Msg::Born).unwrap();
    y.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["top/mid/x is 1", "top/mid/y is 1"]);
}

#[test]
fn a_stop_ends_one_that_waits_for_its_parents_decision() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND));
    let (a, [x, ..]) = family(&mut root, &log, Scope::AllForOne, strategy);
    x.tell(act(|_, cx| {
        cx.self_ref().try_send_system(SystemMessage::Stop).unwrap();
        Err(Failure::msg("before the stop is looked at"))
    }))
    .unwrap();
    x.tell(Msg::Say("kept")).unwrap();
    root.run_until_idle();
    assert!(x.is_stopped() && !a.is_stopped());
    // There is nothing left to decide, so the others are not affected.
    assert_eq!(log.take(), ["a/x PostStop"]);
    assert_eq!(told.take(), ["dead letter for /user/a/x: its receiver has stopped"]);
    clock.advance(10 * SECOND);
    assert_eq!(root.run_until_idle(), 0);
}

#[test]
fn a_child_whose_failure_its_parent_resumes_by_its_own_strategy_goes_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let above = props(&log)
        .supervise(Strategy::resume())
        .supervise_children(Scope::OneForOne, Strategy::escalate());
    let a = root.spawn("a", above).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        Ok(Next::Stay)
    });
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    x.tell(Msg::Born).unwrap();
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/x is 1", "a is 1"]);
}
