//! Children that restart or stop together, and the order in which children start.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Failure, IntoProps, Next, Props, RootContext, Scope,
    Strategy,
};

use crate::{
    bench::{Log, start, start_seeded},
    scripted_actor::{Msg, Plan, act, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

/// A parent with children of these names and plans; the log is empty.
fn family(
    root: &mut RootContext,
    log: &Log,
    (scope, strategy): (Scope, Strategy),
    plans: &[(&'static str, Plan)],
) -> Vec<ActorRef<Msg>> {
    let a = root.spawn("a", props(log).supervise_children(scope, strategy)).unwrap();
    let (to, all) = (log.clone(), plans.to_vec());
    run(root, &a, move |_, cx| {
        for (name, plan) in all {
            cx.spawn_child(name, plan.props(&to))?;
        }
        Ok(Next::Stay)
    });
    log.take();
    plans.iter().map(|(name, _)| child(root, name)).collect()
}

fn child(root: &RootContext, name: &str) -> ActorRef<Msg> {
    root.system().lookup(&format!("/user/a/{name}")).unwrap()
}

fn three() -> [(&'static str, Plan); 3] {
    ["x", "y", "z"].map(|name| (name, Plan::default()))
}

/// The lines of the children.
fn of_children(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| line.starts_with("a/")).collect()
}

/// A plan whose starts with these numbers fail.
fn failing(births: &'static [u32]) -> Plan {
    Plan::default().started(|me, _| {
        if births.contains(&me.born) { Err(Failure::msg("not now")) } else { Ok(Next::Stay) }
    })
}

#[test]
fn a_group_ends_the_youngest_first_and_starts_the_oldest_first() {
    for (scope, failed) in [(Scope::RestForOne, 0), (Scope::AllForOne, 1), (Scope::AllForOne, 2)] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let children = family(&mut root, &log, (scope, Strategy::restart()), &three());
        children[failed].tell(Msg::Fail).unwrap();
        root.run_until_idle();
        let expected = [
            "a/z PreRestart",
            "a/y PreRestart",
            "a/x PreRestart",
            "a/x started",
            "a/y started",
            "a/z started",
        ];
        assert_eq!(of_children(log.take()), expected, "{scope:?} {failed}");
        children.iter().for_each(|child| child.tell(Msg::Born).unwrap());
        root.run_until_idle();
        assert_eq!(log.take(), ["a/x is 2", "a/y is 2", "a/z is 2"]);
    }
}

#[test]
fn those_before_the_failed_one_are_not_in_its_group() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let children = family(&mut root, &log, (Scope::RestForOne, Strategy::restart()), &three());
    children[1].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let expected = ["a/z PreRestart", "a/y PreRestart", "a/y started", "a/z started"];
    assert_eq!(of_children(log.take()), expected);
}

/// An actor with a chain of descendants of this length, which has to stop before the actor can.
fn with_below(depth: u32, log: &Log) -> Plan {
    let to = log.clone();
    Plan::default().started(move |_, cx| {
        if depth > 0 {
            cx.spawn_child("below", with_below(depth - 1, &to).props(&to))?;
        }
        Ok(Next::Stay)
    })
}

/// In several orders of the actors that are ready.
#[test]
fn no_old_grandchild_runs_next_to_a_new_child() {
    for seed in 0..20 {
        let (mut root, _) = start_seeded(ActorSystem::builder("t"), seed);
        let log = Log::default();
        let [y, z] = [(), ()].map(|()| with_below(4, &log));
        let plans = [("x", Plan::default()), ("y", y), ("z", z)];
        let scope = (Scope::RestForOne, Strategy::restart());
        let children = family(&mut root, &log, scope, &plans);
        children[0].tell(Msg::Fail).unwrap();
        root.run_until_idle();
        let mut lines = of_children(log.take());
        let is_shown = |line: &str| !line.contains("/below/") && !line.ends_with("below started");
        lines.retain(|line| is_shown(line));
        let expected = [
            "a/z PreRestart",
            "a/z/below PostStop",
            "a/y PreRestart",
            "a/y/below PostStop",
            "a/x PreRestart",
            "a/x started",
            "a/y started",
            "a/z started",
        ];
        assert_eq!(lines, expected, "seed {seed}");
    }
}

#[test]
fn a_stop_of_a_group_ends_the_youngest_first() {
    for (scope, expected) in [
        (
            Scope::AllForOne,
            ["a/z/below PostStop", "a/z PostStop", "a/y PostStop", "a/x PostStop"].as_slice(),
        ),
        (Scope::RestForOne, &["a/z/below PostStop", "a/z PostStop", "a/y PostStop"]),
    ] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let to = log.clone();
        // The youngest takes longest, because it has a child.
        let with_child = Plan::default().started(move |_, cx| {
            cx.spawn_child("below", props(&to))?;
            Ok(Next::Stay)
        });
        let plans = [("x", Plan::default()), ("y", Plan::default()), ("z", with_child)];
        let children = family(&mut root, &log, (scope, Strategy::stop()), &plans);
        children[1].tell(Msg::Fail).unwrap();
        root.run_until_idle();
        assert_eq!(of_children(log.take()), expected);
    }
}

#[test]
fn a_start_that_fails_in_a_group_is_tried_again_alone_and_those_after_it_wait() {
    for scope in [Scope::AllForOne, Scope::RestForOne] {
        let (mut root, clock) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let backoff = Backoff::new(SECOND, SECOND);
        let strategy = Strategy::restart().limit(9, 100 * SECOND).backoff(backoff);
        let plans = [("x", Plan::default()), ("y", failing(&[2, 3])), ("z", Plan::default())];
        let children = family(&mut root, &log, (scope, strategy), &plans);
        children[0].tell(Msg::Fail).unwrap();
        root.run_until_idle();
        let ends = ["a/z PreRestart", "a/y PreRestart", "a/x PreRestart"];
        assert_eq!(of_children(log.take()), ends);
        for expected in [
            ["a/x started", "a/y started"].as_slice(),
            &["a/y started"],
            &["a/y started", "a/z started"],
        ] {
            clock.advance(SECOND);
            root.run_until_idle();
            assert_eq!(of_children(log.take()), expected, "{scope:?}");
        }
        clock.advance(100 * SECOND);
        root.run_until_idle();
        assert_eq!(log.take(), [""; 0]);
    }
}

#[test]
fn a_member_that_fails_after_its_start_restarts_the_group_again() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let backoff = Backoff::new(SECOND, SECOND);
    let strategy = Strategy::restart().limit(9, 100 * SECOND).backoff(backoff);
    let plans = [("x", Plan::default()), ("y", failing(&[2])), ("z", Plan::default())];
    let children = family(&mut root, &log, (Scope::AllForOne, strategy), &plans);
    children[0].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    clock.advance(SECOND);
    root.run_until_idle();
    log.take();
    // `y` waits for its second attempt, `z` for `y`.
    children[0].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(of_children(log.take()), ["a/x PreRestart"]);
    clock.advance(2 * SECOND);
    root.run_until_idle();
    assert_eq!(of_children(log.take()), ["a/x started", "a/y started", "a/z started"]);
}

#[test]
fn a_member_that_stops_does_not_hold_up_its_group() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let stops =
        Plan::default().started(|me, _| Ok(if me.born == 2 { Next::Stop } else { Next::Stay }));
    let plans = [("x", Plan::default()), ("y", stops), ("z", Plan::default())];
    let children = family(&mut root, &log, (Scope::AllForOne, Strategy::restart()), &plans);
    children[2].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let starts: Vec<_> = log.take().into_iter().filter(|line| line.ends_with("started")).collect();
    assert_eq!(starts, ["a/x started", "a/y started", "a/z started"]);
    assert!(children[1].is_stopped());
    children[0].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let expected = ["a/z PreRestart", "a/x PreRestart", "a/x started", "a/z started"];
    assert_eq!(of_children(log.take()), expected);
}

#[test]
fn a_parent_that_stops_in_the_middle_of_a_group_stops_all() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let backoff = Backoff::new(SECOND, SECOND);
    let strategy = Strategy::restart().backoff(backoff);
    let children = family(&mut root, &log, (Scope::AllForOne, strategy), &three());
    let a: ActorRef<Msg> = root.system().lookup("/user/a").unwrap();
    children[0].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    // None of the children has a value that could hear of it.
    assert_eq!(log.take(), ["a PostStop"]);
    assert!(children.iter().all(ActorRef::is_stopped) && a.is_stopped());
    clock.advance(10 * SECOND);
    assert_eq!(root.run_until_idle(), 0);
}

/// Whichever of them runs first.
#[test]
fn siblings_start_in_the_order_in_which_they_were_spawned() {
    const N: usize = 600;
    for seed in 0..3 {
        let (mut root, _) = start_seeded(ActorSystem::builder("t"), seed);
        let log = Log::default();
        let above = props(&log).supervise_children(Scope::OneForOne, Strategy::restart());
        let a = root.spawn("a", above).unwrap();
        let to = log.clone();
        run(&mut root, &a, move |_, cx| {
            for n in 0..N {
                cx.spawn_child(&n.to_string(), props(&to))?;
            }
            Ok(Next::Stay)
        });
        let expected: Vec<_> = (0..N).map(|n| format!("a/{n} started")).collect();
        let lines = of_children(log.take());
        assert!(lines == expected, "seed {seed}: {lines:?}");
    }
}

#[test]
fn one_that_stops_before_its_start_does_not_hold_up_those_after_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let above = props(&log).supervise_children(Scope::AllForOne, Strategy::restart());
    let a = root.spawn("a", above).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        let x = cx.spawn_child("x", props(&to))?;
        cx.spawn_child("y", props(&to))?;
        cx.stop_child(&x)?;
        cx.spawn_child("z", props(&to))?;
        Ok(Next::Stay)
    });
    assert_eq!(of_children(log.take()), ["a/y started", "a/z started"]);
}

#[test]
fn one_that_stops_before_its_start_does_not_let_those_after_it_overtake() {
    // The seed decides which actor runs next.
    for seed in 1..100 {
        let (mut root, _) = start_seeded(ActorSystem::builder("t"), seed);
        let log = Log::default();
        let above = props(&log).supervise_children(Scope::AllForOne, Strategy::restart());
        let a = root.spawn("a", above).unwrap();
        let to = log.clone();
        run(&mut root, &a, move |_, cx| {
            let own = Strategy::restart().limit(3, SECOND);
            cx.spawn_child("w", props(&to))?;
            let x = cx.spawn_child("x", props(&to))?;
            let y = cx.spawn_child("y", props(&to))?;
            cx.stop_child(&y)?;
            cx.stop_child(&x)?;
            cx.spawn_child("z", failing(&[1]).props(&to).supervise(own))?;
            Ok(Next::Stay)
        });
        let lines = of_children(log.take());
        assert_eq!(lines, ["a/w started", "a/z started", "a/z started"], "{seed}");
    }
}

/// Props that are made by a closure, which finds the name of the actor taken.
struct Late<M>(M);

impl<A, F, M> IntoProps for Late<M>
where
    A: Actor,
    F: FnMut() -> A + 'static,
    M: FnOnce() -> Props<A, F>,
{
    type Actor = A;
    type Factory = F;

    fn into_props(self) -> Props<A, F> {
        (self.0)()
    }
}

#[test]
fn one_whose_first_start_has_failed_does_not_wait_for_an_elder_that_came_late() {
    let (mut root, clock) =
        start(ActorSystem::builder("t").supervise_users(Scope::AllForOne, Strategy::restart()));
    root.run_until_idle();
    let log = Log::default();
    let system = root.system().clone();
    let elder = Late(|| {
        let plan = Plan::default().started(move |me, _| {
            // The round ends with this step.
            clock.advance(SECOND);
            if me.born == 1 { Err(Failure::msg("not now")) } else { Ok(Next::Stay) }
        });
        let own = Strategy::restart().limit(3, 100 * SECOND);
        system.spawn("y", plan.props(&log).supervise(own)).unwrap();
        root.next_wake();
        assert_eq!(log.take(), ["y started"]);
        props(&log)
    });
    system.spawn("x", elder).unwrap();
    root.run_until_idle();
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["x started", "y started"]);
}

#[test]
fn one_that_joins_a_group_before_its_first_start_is_started_once_by_the_group() {
    for (strategy, expected) in [
        (Strategy::restart(), ["x PreRestart", "x started", "y started", "z started"].as_slice()),
        (Strategy::stop(), &["x PostStop"]),
    ] {
        let (mut root, clock) =
            start(ActorSystem::builder("t").supervise_users(Scope::AllForOne, strategy));
        let log = Log::default();
        let x = root.spawn("x", props(&log)).unwrap();
        root.run_until_idle();
        log.take();
        x.tell(act(move |_, _| {
            // The round ends with this step: the parent has not heard of the failure.
            clock.advance(SECOND);
            Err(Failure::msg("now"))
        }))
        .unwrap();
        root.next_wake();
        let [y, z] = ["y", "z"].map(|name| root.spawn(name, props(&log)).unwrap());
        root.run_until_idle();
        assert_eq!(log.take(), expected);
        assert_eq!([x, y, z].map(|one| one.is_stopped()), [expected.len() == 1; 3]);
    }
}

#[test]
fn those_that_fail_while_they_end_with_their_group_are_reported() {
    // The seed decides in which order the actors run.
    for seed in 0..50 {
        for (scope, strategy) in [
            (Scope::AllForOne, Strategy::restart()),
            (Scope::AllForOne, Strategy::stop()),
            (Scope::OneForOne, Strategy::restart()),
        ] {
            let heard = Log::default();
            let to = heard.clone();
            let builder = ActorSystem::builder("t").on_failure(move |_, info| {
                to.add(format!("{} {}", info.path, info.reason));
            });
            let (mut root, _) = start_seeded(builder, seed);
            let log = Log::default();
            let children = family(&mut root, &log, (scope, strategy), &three());
            let a: ActorRef<Msg> = root.system().lookup("/user/a").unwrap();
            for child in &children {
                let fails = act(|me, _| {
                    me.say("fails");
                    Err(Failure::msg("now"))
                });
                child.tell(fails).unwrap();
            }
            if scope == Scope::OneForOne {
                a.tell(Msg::Stop).unwrap();
            }
            let failures = root.system().metrics().failures;
            root.run_until_idle();
            let n_failed = log.take().iter().filter(|line| line.ends_with("fails")).count();
            assert_eq!(heard.take().len(), n_failed, "{scope:?} {seed}");
            assert_eq!(root.system().metrics().failures - failures, n_failed);
        }
    }
}
