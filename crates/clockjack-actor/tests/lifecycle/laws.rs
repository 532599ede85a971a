//! How an actor starts and stops.

use clockjack_actor::{ActorRef, ActorSystem, EventKinds, Next, Signal};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, events, props, run},
    watch::watch,
};

fn tree(log: &Log, depth: u32) -> Plan {
    let log = log.clone();
    Plan::default().started(move |_, cx| {
        if depth > 0 {
            for name in ["x", "y"] {
                cx.spawn_child(name, tree(&log, depth - 1).props(&log))?;
            }
        }
        Ok(Next::Stay)
    })
}

#[test]
fn children_end_first_then_comes_post_stop_then_watchers_are_told() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", tree(&log, 2).props(&log)).unwrap();
    let w = root.spawn("w", props(&log)).unwrap();
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        cx.watch(&who)?;
        Ok(Next::Stay)
    });
    log.take();
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    // The newest first at each level.
    let expected = [
        "a/y/y PostStop",
        "a/y/x PostStop",
        "a/y PostStop",
        "a/x/y PostStop",
        "a/x/x PostStop",
        "a/x PostStop",
        "a PostStop",
        "w sees a end",
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn one_that_stops_in_its_start_hears_of_its_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().started(|_, _| Ok(Next::Stop));
    let a = root.spawn("a", plan.props(&log)).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!(log.take(), ["a started", "a PostStop"]);
}

#[test]
fn one_that_is_stopped_before_it_was_made_is_told_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default();
    let a = root.spawn("a", plan.props(&log)).unwrap();
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!((log.take(), plan.births()), (vec![], 0));
}

#[test]
fn only_a_parent_stops_a_child_and_may_do_so_twice() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", tree(&log, 1).props(&log)).unwrap();
    let b = root.spawn("b", props(&log)).unwrap();
    root.run_until_idle();
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    let (child, other) = (x.clone(), b.clone());
    run(&mut root, &a, move |_, cx| {
        assert!(cx.stop_child(&other).unwrap_err().to_string().contains("/user/b"));
        assert!(cx.stop_child(&cx.self_ref()).is_err());
        cx.stop_child(&child)?;
        cx.stop_child(&child)?;
        Ok(Next::Stay)
    });
    assert!(x.is_stopped() && !b.is_stopped());
    let gone = x.clone();
    run(&mut root, &a, move |me, cx| {
        cx.stop_child(&gone)?;
        me.say("is fine");
        Ok(Next::Stay)
    });
    assert_eq!(log.take().last().unwrap(), "a is fine");
    assert!(root.system().stop(&x).is_err(), "it is not below /user");
}

#[test]
fn signals_may_be_left_unhandled_but_for_the_end_of_one_that_is_watched() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default().signal(|_, _, _| Some(Next::Unhandled));
    let a = root.spawn("a", plan.props(&log)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        let child = cx.spawn_child("x", props(&to))?;
        cx.watch(&child)?;
        cx.stop_child(&child)?;
        Ok(Next::Stay)
    });
    assert!(a.is_stopped());
    let told = told.take();
    assert!(told[0].starts_with("/user/a stop (a watched actor has stopped"), "{told:?}");
}

#[test]
fn a_death_pact_can_be_supervised_like_any_failure() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default()
        .signal(|_, _, signal| matches!(signal, Signal::Terminated(_)).then_some(Next::Unhandled));
    let props_of_a = plan.props(&log).supervise(clockjack_actor::Strategy::restart());
    let a = root.spawn("a", props_of_a).unwrap();
    let b = root.spawn("b", props(&Log::default())).unwrap();
    watch(&mut root, &a, &b);
    b.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a sees b end", "a PreRestart", "a started"]);
}

#[test]
fn a_name_is_free_when_the_end_of_its_holder_was_seen() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        let child = cx.spawn_child("x", props(&to))?;
        cx.stop_child(&child)?;
        let taken = cx.spawn_child("x", props(&to)).unwrap_err();
        assert!(taken.is_name_taken());
        Ok(Next::Stay)
    });
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        Ok(Next::Stay)
    });
    assert_eq!(log.take().last().unwrap(), "a/x started");
}

#[test]
fn messages_that_wait_at_the_end_are_dead_letters() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log).stash(10)).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.stash(Msg::Say("stashed"))?;
        Ok(Next::Stay)
    });
    a.tell(Msg::Stop).unwrap();
    a.tell(Msg::Say("user")).unwrap();
    a.tell(Msg::Say("user")).unwrap();
    root.run_until_idle();
    assert_eq!(told.take(), ["dead letter for /user/a: its receiver has stopped"; 3]);
    assert!(a.tell(Msg::Stop).unwrap_err().is_stopped());
}

#[test]
fn the_end_of_one_value_comes_before_the_start_of_the_next_of_its_name() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let plan = Plan::default().signal(move |_, cx, signal| {
        if let Signal::Terminated(end) = signal {
            assert_eq!(end.path.name(), "x");
            cx.spawn_child("x", props(&to)).unwrap();
        }
        None
    });
    let a = root.spawn("a", plan.props(&log)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        let child = cx.spawn_child("x", props(&to))?;
        cx.watch(&child)?;
        Ok(Next::Stay)
    });
    log.take();
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    x.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/x PostStop", "a sees x end", "a/x started"]);
}

#[test]
fn a_system_that_terminates_stops_all_in_reverse_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    for name in ["a", "b", "c"] {
        root.spawn(name, props(&log)).unwrap();
    }
    root.run_until_idle();
    log.take();
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean());
    assert_eq!(log.take(), ["c PostStop", "b PostStop", "a PostStop"]);
    let refused = root.spawn("d", props(&log)).unwrap_err();
    assert!(refused.is_stopping());
}

/// The smallest possible actor.
struct Leaf;

impl clockjack_actor::Actor for Leaf {
    type Msg = u32;

    fn receive(
        &mut self,
        cx: &mut clockjack_actor::Context<'_, Self>,
        below: u32,
    ) -> Result<Next, clockjack_actor::Failure> {
        if below > 0 {
            cx.spawn_child("c", || Self)?.tell(below - 1)?;
        }
        Ok(Next::Stay)
    }
}

/// A hundred thousand, or fewer where that takes too long.
const MANY: u32 = if cfg!(miri) { 100 } else { 100_000 };

#[test]
fn many_actors_stop_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let refs: Vec<_> = (0..MANY).map(|n| root.spawn(&format!("n{n}"), || Leaf).unwrap()).collect();
    root.run_until_idle();
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean());
    assert!(refs.iter().all(ActorRef::is_stopped));
}

#[test]
fn a_line_of_ten_thousand_parents_ends_without_deep_calls() {
    // A call per level would overflow the stack.
    let small = std::thread::Builder::new().stack_size(256 << 10);
    small.spawn(end_a_long_line).unwrap().join().unwrap();
}

fn end_a_long_line() {
    const DEPTH: u32 = 10_000;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let top = root.spawn("c", || Leaf).unwrap();
    top.tell(DEPTH).unwrap();
    root.run_until_idle();
    let deepest = root.system().tree().pop().unwrap();
    assert_eq!(deepest.depth(), DEPTH as usize + 2);
    let last: ActorRef<u32> = root.system().lookup(&deepest.to_string()).unwrap();
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean());
    drop((end, top, root));
    // The last actor keeps all its ancestors alive, and is freed with them.
    drop(last);
    drop(deepest);
}

#[test]
fn twenty_thousand_actors_that_came_and_went_leave_nothing_behind() {
    for listens in [false, true] {
        // Room for a few actors at a time: a leaked actor would take it.
        let limits = clockjack_actor::Limits::DEFAULT.processes(20);
        let (mut root, _) = start(ActorSystem::builder("t").limits(limits));
        let told = Log::default();
        if listens {
            events(&mut root, EventKinds::ALL, &told);
            told.take();
        }
        let held = alloc::sync::Arc::new(());
        for n in 0..2_000 {
            for m in 0..10 {
                let held = alloc::sync::Arc::clone(&held);
                let keeps = clockjack_actor::Props::from_fn(move |_, (): ()| {
                    let _ = &held;
                    Ok(Next::Stop)
                });
                root.spawn(&format!("{n}-{m}"), keeps).unwrap().tell(()).unwrap();
            }
            root.run_until_idle();
        }
        assert_eq!(alloc::sync::Arc::strong_count(&held), 1);
        assert_eq!(root.system().tree().len(), 3 + usize::from(listens));
        assert_eq!(told.take().len(), if listens { 40_000 } else { 0 });
    }
}
