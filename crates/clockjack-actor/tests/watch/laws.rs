//! Death watch.

use clockjack_actor::{
    ActorRef, ActorSystem, EventKinds, Next, RootContext, Signal, Strategy, SystemMessage,
    TerminationCause,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, act, events, props, run},
};

/// A watcher `w` and an actor `a` that it may watch.
fn two(root: &mut RootContext, log: &Log) -> (ActorRef<Msg>, ActorRef<Msg>) {
    let w = root.spawn("w", props(log).stash(10)).unwrap();
    let props = props(&Log::default()).supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    root.run_until_idle();
    log.take();
    (w, a)
}

pub(crate) fn watch(root: &mut RootContext, watcher: &ActorRef<Msg>, who: &ActorRef<Msg>) {
    let who = who.clone();
    run(root, watcher, move |_, cx| {
        cx.watch(&who)?;
        Ok(Next::Stay)
    });
}

#[test]
fn there_is_one_notice_however_often_one_watches() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    for _ in 0..3 {
        watch(&mut root, &w, &a);
    }
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w sees a end"]);
}

#[test]
fn one_that_has_ended_is_told_of_at_once_each_time() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    for _ in 0..2 {
        watch(&mut root, &w, &a);
        assert_eq!(log.take(), ["w sees a end"]);
    }
}

#[test]
fn a_restart_is_no_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    watch(&mut root, &w, &a);
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w sees a end"]);
}

/// Stops two actors that `w` watches at once, the second one by a message if there is one. The log
/// contains the notifications.
fn end_both_watched(
    root: &mut RootContext,
    log: &Log,
    plan: &Plan,
    [a, b]: [&ActorRef<Msg>; 2],
    message: Option<&'static str>,
) {
    let w = root.spawn("w", plan.props(log)).unwrap();
    watch(root, &w, a);
    match message {
        Some(text) => {
            let who = b.clone();
            run(root, &w, move |_, cx| {
                cx.watch_with(&who, Msg::Say(text))?;
                Ok(Next::Stay)
            });
        }
        None => watch(root, &w, b),
    }
    log.take();
    a.tell(Msg::Stop).unwrap();
    b.tell(Msg::Stop).unwrap();
    root.run_until_idle();
}

#[test]
fn unwatch_takes_back_what_has_come_already() {
    for with in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let quiet = Log::default();
        let [a, b] = ["a", "b"].map(|name| root.spawn(name, props(&quiet)).unwrap());
        let other = b.clone();
        // Both terminations have arrived when the first is reported.
        let plan = Plan::default().signal(move |_, cx, _| {
            cx.unwatch(&other);
            None
        });
        end_both_watched(&mut root, &log, &plan, [&a, &b], with.then_some("must not come"));
        assert!(b.is_stopped());
        assert_eq!(log.take(), ["w sees a end"]);
    }
}

#[test]
fn to_watch_again_before_the_end_is_told_changes_nothing() {
    for with in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let quiet = Log::default();
        let [a, b] = ["a", "b"].map(|name| root.spawn(name, props(&quiet)).unwrap());
        let (first, other) = (a.clone(), b.clone());
        // Both terminations have arrived when the first is reported.
        let plan = Plan::default().signal(move |me, cx, signal| {
            if matches!(signal, Signal::Terminated(end) if end.is(&first)) {
                assert_eq!(cx.watch(&other).is_err(), with, "in the same way only");
                assert!(cx.watch_with(&other, Msg::Say("must not come")).is_err());
                me.say(format!("watches {}", cx.watching().len()));
            }
            None
        });
        end_both_watched(&mut root, &log, &plan, [&a, &b], with.then_some("sees b end"));
        assert_eq!(log.take(), ["w watches 0", "w sees a end", "w sees b end"]);
    }
}

#[test]
fn one_that_is_not_watched_any_more_is_not_told_of() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    watch(&mut root, &w, &a);
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        cx.unwatch(&who);
        Ok(Next::Stay)
    });
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
}

#[test]
fn to_watch_in_two_ways_is_refused_until_the_first_is_taken_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        cx.watch_with(&who, Msg::Say("first"))?;
        assert!(cx.watch(&who).is_err());
        let refused = cx.watch_with(&who, Msg::Say("second")).unwrap_err();
        assert!(matches!(refused.into_inner(), Msg::Say("second")));
        cx.unwatch(&who);
        cx.watch(&who)?;
        assert!(cx.watch_with(&who, Msg::Say("third")).is_err());
        cx.unwatch(&who);
        cx.watch_with(&who, Msg::Say("fourth"))?;
        Ok(Next::Stay)
    });
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w fourth"]);
}

#[test]
fn only_a_parent_that_watches_learns_why_a_child_has_ended() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let w = root.spawn("w", props(&log)).unwrap();
    let a = root.spawn("a", props(&log)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        let x = cx.spawn_child("x", props(&to))?;
        cx.watch(&x)?;
        cx.spawn_child("unwatched", props(&to))?;
        Ok(Next::Stay)
    });
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    watch(&mut root, &w, &x);
    log.take();
    x.tell(Msg::Fail).unwrap();
    root.system().lookup::<Msg>("/user/a/unwatched").unwrap().tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let mut lines = log.take();
    lines.retain(|line| line.contains("sees"));
    lines.sort();
    assert_eq!(lines, ["a sees x end by: failed", "w sees x end"]);
}

#[test]
fn a_notice_is_of_the_one_that_was_watched_and_not_of_its_successor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    watch(&mut root, &w, &a);
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w sees a end"]);
    let again = root.spawn("a", props(&Log::default())).unwrap();
    root.run_until_idle();
    again.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    assert_ne!(a.pid(), again.pid());
}

#[test]
fn what_is_told_instead_of_a_signal_is_an_ordinary_message() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        let stashes = act(|me, cx| {
            cx.stash(Msg::Say("was stashed"))?;
            me.say("stashes");
            Ok(Next::Stay)
        });
        cx.watch_with(&who, stashes)?;
        Ok(Next::Stay)
    });
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    run(&mut root, &w, |_, cx| {
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["w stashes", "w was stashed"]);
}

#[test]
fn both_ends_know_of_a_watch_also_if_a_host_has_ordered_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (w, a) = two(&mut root, &log);
    let ask = |root: &mut RootContext| {
        let to = log.clone();
        run(root, &w, move |_, cx| {
            to.add(format!("watching {}", cx.watching().len()));
            Ok(Next::Stay)
        });
        let to = log.clone();
        run(root, &a, move |_, cx| {
            to.add(format!("watchers {}", cx.watchers().len()));
            Ok(Next::Stay)
        });
        log.take()
    };
    a.try_send_system(SystemMessage::Watch(w.pid())).unwrap();
    root.run_until_idle();
    assert_eq!(ask(&mut root), ["watching 1", "watchers 1"]);
    a.try_send_system(SystemMessage::Unwatch(w.pid())).unwrap();
    root.run_until_idle();
    assert_eq!(ask(&mut root), ["watching 0", "watchers 0"]);
    a.try_send_system(SystemMessage::Watch(w.pid())).unwrap();
    a.try_send_system(SystemMessage::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w sees a end"]);
    let back = a.try_send_system(SystemMessage::Stop).unwrap_err();
    assert!(matches!(back.into_inner(), SystemMessage::Stop));
}

#[test]
fn a_watcher_that_ends_leaves_nothing_behind() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER | EventKinds::FAILURE, &told);
    let (w, a) = two(&mut root, &log);
    watch(&mut root, &w, &a);
    w.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert!(told.take().is_empty());
}

#[test]
fn many_watch_one_and_one_watches_many_in_a_time_that_does_not_explode() {
    const MANY: usize = if cfg!(miri) { 100 } else { 30_000 };
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().signal(|me, _, _| {
        me.state += 1;
        None
    });
    let hub = root.spawn("hub", plan.props(&Log::default())).unwrap();
    let mailbox = clockjack_actor::Mailbox::unbounded();
    let quiet = Plan::default();
    let spokes: Vec<_> = (0..MANY)
        .map(|n| {
            let props = quiet.props(&Log::default()).mailbox(mailbox);
            let spoke = root.spawn(&format!("s{n}"), props).unwrap();
            let who = hub.clone();
            let watch = act(move |_, cx| {
                cx.watch(&who)?;
                Ok(Next::Stay)
            });
            spoke.tell(watch).unwrap();
            spoke
        })
        .collect();
    let all = spokes.clone();
    run(&mut root, &hub, move |_, cx| {
        for spoke in &all {
            cx.watch(spoke)?;
        }
        Ok(Next::Stay)
    });
    let (half, rest) = spokes.split_at(MANY / 2);
    half.iter().for_each(|spoke| root.system().stop(spoke).unwrap());
    root.run_until_idle();
    let to = log.clone();
    run(&mut root, &hub, move |me, cx| {
        to.add(format!("{} ended, {} watch", me.state, cx.watchers().len()));
        Ok(Next::Stop)
    });
    assert_eq!(log.take(), [format!("{} ended, {} watch", half.len(), MANY)]);
    assert!(rest.iter().all(|spoke| !spoke.is_stopped()));
}

#[test]
fn a_parent_that_watches_its_child_learns_the_cause_of_its_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().signal(|me, _, signal| {
        if let Signal::Terminated(end) = signal {
            me.say(format!("{:?}", end.cause()));
        }
        None
    });
    let w = root.spawn("w", plan.props(&log)).unwrap();
    run(&mut root, &w, |_, cx| {
        for name in ["lost", "failed", "stopped"] {
            let child = cx.spawn_child(name, props(&Log::default()))?;
            cx.watch(&child)?;
        }
        Ok(Next::Stay)
    });
    log.take();
    let child = |name| root.system().lookup::<Msg>(&format!("/user/w/{name}")).unwrap();
    let (lost, failed, stopped) = (child("lost"), child("failed"), child("stopped"));
    run(&mut root, &lost, |_, cx| {
        cx.stop_self_because(TerminationCause::NodeLost);
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["w NodeLost", "w sees lost end"]);
    failed.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(log.take().contains(&"w Failed".to_owned()));
    stopped.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w Stopped", "w sees stopped end"]);
}
