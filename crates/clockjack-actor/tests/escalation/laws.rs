//! Escalation of failures: stages, sinks, the root.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use clockjack_actor::{
    ActorRef, ActorSystem, EscalationStage, FailureEventHub, FailureInfo, FailureReport, Next,
    RootContext, Scope, Strategy, SystemBuilder, SystemMessage,
    escalation::{Custom, ParentGuardian},
};

use crate::{
    bench::{Log, start, start_seeded},
    scripted_actor::{Msg, Plan, props, run, short},
};

/// Accepts after this many refusals.
fn reluctant(
    log: &Log,
    refusals: u32,
) -> Custom<impl FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static> {
    let (log, mut left) = (log.clone(), refusals);
    Custom::new(move |info: FailureInfo| {
        if left > 0 {
            left -= 1;
            log.add("refused");
            return Err(info);
        }
        log.add(format!("took {} {:?}", info.origin().1, info.stage));
        Ok(())
    })
}

/// A system in which all failures of top-level actors are escalated to the root.
fn escalating() -> SystemBuilder {
    ActorSystem::builder("t").supervise_users(Scope::OneForOne, Strategy::escalate())
}

/// `a` with a child `x`, whose failures `a` escalates.
fn line(root: &mut RootContext, log: &Log) -> [ActorRef<Msg>; 2] {
    let props_of_a = props(log).supervise_children(Scope::OneForOne, Strategy::escalate());
    let a = root.spawn("a", props_of_a).unwrap();
    let to = log.clone();
    run(root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        Ok(Next::Stay)
    });
    log.take();
    [a, root.system().lookup("/user/a/x").unwrap()]
}

#[test]
fn a_failure_that_nobody_settles_comes_up_to_the_root_which_stops_all() {
    let (log, sunk, told) = (Log::default(), Log::default(), Log::default());
    let to = told.clone();
    let builder = escalating().on_escalation(move |info| to.add(short(info)));
    let (mut root, _) = start(builder.escalation(reluctant(&sunk, 0)));
    let [a, x] = line(&mut root, &log);
    x.tell(Msg::Fail).unwrap();
    let end = root.system().when_terminated();
    root.run_until_idle();
    let report = end.report().expect("the system has ended");
    assert!(report.reason.starts_with("/user/a/x "), "{}", report.reason);
    assert!(report.reason.ends_with("escalated to /, stop"), "{}", report.reason);
    assert!(a.is_stopped() && x.is_stopped());
    assert_eq!(sunk.take(), ["took /user/a/x Root"]);
    assert_eq!(told.take(), ["/ stop (failed of /user/a/x)"]);
    let lines = log.take();
    assert!(lines[0].starts_with("a is left with /user/a/x ?"), "{lines:?}");
    assert_eq!(lines[1..], ["a/x PostStop", "a PostStop"]);
}

#[test]
fn each_level_sees_its_own_stage_and_may_settle_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let stages: Arc<Mutex<Vec<EscalationStage>>> = Arc::default();
    let top = props(&log).supervise_children(Scope::OneForOne, Strategy::stop());
    let a = root.spawn("a", top).unwrap();
    let (to, seen) = (log.clone(), Arc::clone(&stages));
    run(&mut root, &a, move |_, cx| {
        let (down, seen) = (to.clone(), Arc::clone(&seen));
        let sink = Custom::new(move |info: FailureInfo| {
            seen.lock().unwrap().push(info.stage);
            Ok(())
        });
        let plan = Plan::default().started(move |_, cx| {
            cx.spawn_child("x", props(&down))?;
            Ok(Next::Stay)
        });
        let mid = plan.props(&to).supervise_children(Scope::OneForOne, Strategy::escalate());
        cx.spawn_child("mid", mid.escalation(sink))?;
        Ok(Next::Stay)
    });
    let x: ActorRef<Msg> = root.system().lookup("/user/a/mid/x").unwrap();
    log.take();
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let lines = log.take();
    assert_eq!(lines[0], "a/mid is left with /user/a/mid/x ? (failed of /user/a/mid/x)");
    assert_eq!(lines[1], "a hears that /user/a/mid stop (failed of /user/a/mid/x)");
    // The sink of `mid` also serves its child, which has none.
    let expected = [EscalationStage::Initial, EscalationStage::Escalated { hops: 1 }];
    assert_eq!(*stages.lock().unwrap(), expected);
    assert!(x.is_stopped() && !a.is_stopped());
}

#[test]
fn a_child_has_the_sink_of_its_parent_unless_it_has_its_own() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, of_a, of_y) = (Log::default(), Log::default(), Log::default());
    let a = root.spawn("a", props(&log).escalation(reluctant(&of_a, 0))).unwrap();
    let (to, own) = (log.clone(), of_y.clone());
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        cx.spawn_child("y", props(&to).escalation(reluctant(&own, 0)))?;
        Ok(Next::Stay)
    });
    for name in ["x", "y"] {
        let child: ActorRef<Msg> = root.system().lookup(&format!("/user/a/{name}")).unwrap();
        child.tell(Msg::Fail).unwrap();
    }
    root.run_until_idle();
    assert_eq!(of_a.take(), ["took /user/a/x Initial"]);
    assert_eq!(of_y.take(), ["took /user/a/y Initial"]);
    // A failure that the actor's own strategy handles reaches no sink.
    let settled = props(&log).supervise(Strategy::restart()).escalation(reluctant(&of_a, 0));
    let b = root.spawn("b", settled).unwrap();
    b.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(of_a.take().is_empty());
}

#[test]
fn what_a_sink_refuses_is_offered_again_until_it_is_taken() {
    let sunk = Log::default();
    let builder = escalating().shutdown_on_escalation(false).escalation(reluctant(&sunk, 2));
    let (mut root, clock) = start(builder);
    let log = Log::default();
    let own = Log::default();
    root.spawn("a", props(&log)).unwrap().tell(Msg::Fail).unwrap();
    let b = root.spawn("b", props(&log).escalation(reluctant(&own, 1))).unwrap();
    root.run_until_idle();
    assert_eq!(sunk.take(), ["refused"]);
    for expected in [&["refused"][..], &["took /user/a Root"], &[]] {
        clock.advance(Duration::from_millis(100));
        root.run_until_idle();
        assert_eq!(sunk.take(), expected);
    }
    assert!(root.system().take_escalations().is_empty());
    // The sink of an actor that stops is not offered anything again.
    run(&mut root, &b, |_, cx| {
        let log = Log::default();
        cx.spawn_child("x", props(&log))?.tell(Msg::Fail)?;
        Ok(Next::Stay)
    });
    assert_eq!(own.take(), ["refused"]);
    clock.advance(Duration::from_millis(100));
    root.run_until_idle();
    assert_eq!(own.take(), ["took /user/b/x Initial"]);
    assert_eq!(root.system().scheduler().jobs().metrics().active_total, 0, "nobody tries on");
}

#[test]
fn what_a_sink_refuses_is_offered_again_also_without_a_scheduler() {
    let sunk = Log::default();
    let builder = escalating().shutdown_on_escalation(false).escalation(reluctant(&sunk, 4));
    let (mut root, clock) = start(builder);
    let log = Log::default();
    let pass = |root: &mut RootContext, millis| {
        clock.advance(Duration::from_millis(millis));
        root.run_until_idle();
        sunk.take()
    };
    root.spawn("a", props(&log)).unwrap().tell(Msg::Fail).unwrap();
    assert_eq!(pass(&mut root, 0), ["refused"]);
    // The close drops the job of the next offer, which comes at once instead.
    root.system().scheduler().jobs().shutdown();
    assert_eq!(pass(&mut root, 50), ["refused"]);
    assert!(pass(&mut root, 99).is_empty());
    assert_eq!(pass(&mut root, 1), ["refused"]);
    assert_eq!(pass(&mut root, 100), ["refused"]);
    assert_eq!(pass(&mut root, 100), ["took /user/a Root"]);
    assert!(pass(&mut root, 1_000).is_empty());
}

#[test]
fn an_actor_with_a_sink_offers_again_also_without_a_scheduler() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, own) = (Log::default(), Log::default());
    let b = root.spawn("b", props(&log).escalation(reluctant(&own, 2))).unwrap();
    root.run_until_idle();
    root.system().scheduler().jobs().shutdown();
    run(&mut root, &b, |_, cx| {
        let log = Log::default();
        cx.spawn_child("x", props(&log))?.tell(Msg::Fail)?;
        Ok(Next::Stay)
    });
    // The child has no timer for its parent, which offers at once, and then waits.
    assert_eq!(own.take(), ["refused", "refused"]);
    clock.advance(Duration::from_millis(100));
    root.run_until_idle();
    assert_eq!(own.take(), ["took /user/b/x Initial"]);
}

#[test]
fn the_next_failure_brings_the_one_before_along() {
    let sunk = Log::default();
    let builder = escalating().shutdown_on_escalation(false).escalation(reluctant(&sunk, 1));
    let (mut root, _) = start(builder);
    let log = Log::default();
    for name in ["a", "b"] {
        root.spawn(name, props(&log)).unwrap().tell(Msg::Fail).unwrap();
        root.run_until_idle();
    }
    assert_eq!(sunk.take(), ["refused", "took /user/a Root", "took /user/b Root"]);
}

#[test]
fn a_sink_has_a_last_chance_when_the_system_ends() {
    let sunk = Log::default();
    let (mut root, _) = start(escalating().escalation(reluctant(&sunk, 1)));
    root.spawn("a", props(&Log::default())).unwrap().tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(sunk.take(), ["refused", "took /user/a Root"]);
}

#[test]
fn without_a_sink_escalations_wait_to_be_taken() {
    let (mut root, clock) = start(escalating().shutdown_on_escalation(false));
    for name in ["a", "b"] {
        root.spawn(name, props(&Log::default())).unwrap().tell(Msg::Fail).unwrap();
        root.run_until_idle();
    }
    clock.advance(Duration::from_secs(1));
    root.run_until_idle();
    let taken: Vec<_> = root.system().take_escalations().iter().map(short).collect();
    assert_eq!(taken, ["/ stop (failed of /user/a)", "/ stop (failed of /user/b)"]);
    assert!(root.system().take_escalations().is_empty());
}

#[test]
fn a_system_that_goes_on_stops_what_failed_and_lets_the_others_go_on() {
    let (mut root, _) = start(escalating().shutdown_on_escalation(false));
    let log = Log::default();
    let [a, x] = line(&mut root, &log);
    let b = root.spawn("b", props(&log)).unwrap();
    root.run_until_idle();
    for _ in 0..2 {
        let c = root.spawn("c", props(&log)).unwrap();
        c.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        assert!(c.is_stopped());
    }
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped() && x.is_stopped());
    log.take();
    b.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["b is 1"]);
}

#[test]
fn listeners_and_sinks_may_panic_and_cause_failures_themselves() {
    let log = Log::default();
    let heard = log.clone();
    let builder = escalating()
        .shutdown_on_escalation(false)
        .on_escalation(|_| panic!("a listener"))
        .on_escalation(move |info| heard.add(format!("heard of {}", info.origin().1)));
    let other: Arc<Mutex<Option<ActorRef<Msg>>>> = Arc::default();
    let (to, mut n, sunk) = (Arc::clone(&other), 0, log.clone());
    let builder = builder.escalation(Custom::new(move |info: FailureInfo| {
        n += 1;
        if n == 1 {
            panic!("a sink");
        }
        if let Some(other) = to.lock().unwrap().take() {
            other.tell(Msg::Fail).unwrap();
        }
        sunk.add(format!("took {}", info.origin().1));
        Ok(())
    }));
    let (mut root, clock) = start(builder);
    let quiet = Log::default();
    let b = root.spawn("b", props(&quiet)).unwrap();
    *other.lock().unwrap() = Some(b);
    root.spawn("a", props(&quiet)).unwrap().tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["heard of /user/a"]);
    clock.advance(Duration::from_millis(100));
    root.run_until_idle();
    assert_eq!(log.take(), ["took /user/a", "heard of /user/b", "took /user/b"]);
}

#[test]
fn each_failure_at_the_root_is_published_to_all_subscribers_before_anybody_acts_on_it() {
    let log = Log::default();
    let (listens, sinks) = (log.clone(), log.clone());
    let builder = escalating()
        .shutdown_on_escalation(false)
        .on_escalation(move |info| listens.add(format!("listener {}", info.origin().1)))
        .escalation(Custom::new(move |info: FailureInfo| {
            sinks.add(format!("sink {}", info.origin().1));
            Ok(())
        }));
    let (mut root, _) = start(builder);
    let hub = root.system().failure_hub().clone();
    let (first, second) = (log.clone(), log.clone());
    let panics = hub.subscribe(|_| panic!("a subscriber")).unwrap();
    let first = hub.subscribe(move |info| first.add(format!("first {}", short(info)))).unwrap();
    let second = hub.subscribe(move |info| {
        second.add(format!("second {} {:?}", info.origin().1, info.stage));
    });
    let queue = hub.subscribe_queue(8).unwrap();
    let quiet = Log::default();
    let [_, x] = line(&mut root, &quiet);
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let lines = log.take();
    let expected = [
        "first / stop (failed of /user/a/x)",
        "second /user/a/x Root",
        "listener /user/a/x",
        "sink /user/a/x",
    ];
    assert_eq!(lines, expected);
    // A failure that an ancestor handles is not published.
    let settled = root.spawn("b", props(&quiet).supervise(Strategy::restart())).unwrap();
    settled.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    drop((panics, first, second));
    root.spawn("c", props(&quiet)).unwrap().tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["listener /user/c", "sink /user/c"]);
    let kept: Vec<_> = queue.drain().iter().map(|info| info.origin().1.to_string()).collect();
    assert_eq!(kept, ["/user/a/x", "/user/c"]);
}

#[test]
fn systems_may_share_a_hub_that_outlives_them() {
    let hub = FailureEventHub::new();
    let queue = hub.subscribe_queue(8).unwrap();
    for name in ["a", "b"] {
        let (mut root, _) = start(escalating().failure_hub(hub.clone()));
        root.spawn(name, props(&Log::default())).unwrap().tell(Msg::Fail).unwrap();
        root.run_until_idle();
        assert!(root.system().when_terminated().report().is_some(), "by policy");
    }
    let kept: Vec<_> = queue.drain().iter().map(|info| info.origin().1.to_string()).collect();
    assert_eq!(kept, ["/user/a", "/user/b"]);
    assert_eq!(hub.n_subscribers(), 1);
}

#[test]
fn a_host_may_have_a_parent_decide_again() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let props_of_a = props(&log).supervise_children(Scope::OneForOne, Strategy::restart());
    let a = root.spawn("a", props_of_a).unwrap();
    // A child whose failures go to its parent through a sink, in addition to the usual escalation.
    let (to, parent) = (log.clone(), a.clone());
    run(&mut root, &a, move |_, cx| {
        let pid = parent.pid();
        let sink = ParentGuardian::new(pid, move |info| {
            parent.try_send_system(SystemMessage::Escalate(info)).map_err(|back| {
                let back = back.into_inner();
                back.failure().cloned().expect("it is the one that was sent")
            })
        });
        cx.spawn_child("x", props(&to).supervise(Strategy::escalate()).escalation(sink))?;
        Ok(Next::Stay)
    });
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    log.take();
    x.tell(Msg::Fail).unwrap();
    x.tell(Msg::Born).unwrap();
    root.run_until_idle();
    let lines = log.take();
    assert_eq!(lines.last().unwrap(), "a/x is 2", "{lines:?}");
    let escalated = "a is left with /user/a ? (failed of /user/a/x)";
    assert!(lines.contains(&escalated.to_owned()), "{lines:?}");

    let info = FailureInfo::new(x.pid(), x.path(), FailureReport::new("from afar"));
    a.try_send_system(SystemMessage::Failure(info)).unwrap();
    x.tell(Msg::Born).unwrap();
    root.run_until_idle();
    let lines = log.take();
    assert!(lines.contains(&"a hears that /user/a/x restart (from afar of /user/a/x)".to_owned()));
    assert_eq!(lines.last().unwrap(), "a/x is 3", "{lines:?}");
}

#[test]
fn failures_go_up_as_typed_signals_without_unwinding() {
    let (mut root, _) = start(escalating());
    let log = Log::default();
    let [_, x] = line(&mut root, &log);
    // No panic anywhere: `Err` alone.
    x.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let lines = log.take();
    assert!(lines[0].starts_with("a is left with /user/a/x ? (failed of /user/a/x)"), "{lines:?}");
}

#[test]
fn those_that_were_suspended_on_the_way_up_handle_what_has_come_meanwhile() {
    let builder = ActorSystem::builder("t")
        .shutdown_on_escalation(false)
        .supervise_users(Scope::OneForOne, Strategy::restart());
    let (mut root, _) = start(builder);
    let log = Log::default();
    let b = root.spawn("b", props(&log)).unwrap();
    let plan = Plan::default().started(|_, _| Err(clockjack_actor::Failure::msg("never")));
    let a = root.spawn("a", plan.props(&log)).unwrap();
    b.tell(Msg::Say("here")).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    b.tell(Msg::Say("later")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["b started", "b here", "a started", "b later"]);
}

#[test]
fn a_child_may_fail_before_its_guardian_has_had_a_turn() {
    for seed in 1..30 {
        let (mut root, _) = start_seeded(escalating().shutdown_on_escalation(false), seed);
        let log = Log::default();
        let a = root.spawn("a", props(&log)).unwrap();
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        assert!(a.is_stopped());
        assert!(root.spawn("b", props(&log)).is_ok(), "the guardian is there");
    }
}
