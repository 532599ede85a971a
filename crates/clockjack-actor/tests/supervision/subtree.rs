//! All descendants of a failed actor are suspended until its supervisor has decided.

use core::time::Duration;

use clockjack_actor::{
    ActorRef, ActorSystem, Backoff, Failure, Next, RootContext, Scope, Strategy, SystemMessage,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

/// A supervisor that takes a second to restart its child, which keeps its own children.
fn slow() -> Strategy {
    Strategy::restart().keep_children().backoff(Backoff::new(SECOND, SECOND))
}

/// `top` over `a` over `b` over `c` over `d`, without `top`.
fn line(root: &mut RootContext, log: &Log, top: Strategy) -> [ActorRef<Msg>; 4] {
    let props_of_top = props(log).supervise_children(Scope::OneForOne, top);
    let mut above: ActorRef<Msg> = root.spawn("top", props_of_top).unwrap();
    let mut path = String::from("/user/top");
    let line = ["a", "b", "c", "d"].map(|name| {
        let to = log.clone();
        run(root, &above, move |_, cx| {
            cx.spawn_child(name, props(&to))?;
            Ok(Next::Stay)
        });
        path = format!("{path}/{name}");
        above = root.system().lookup(&path).unwrap();
        above.clone()
    });
    log.take();
    line
}

fn say(root: &mut RootContext, log: &Log, to: &[&ActorRef<Msg>]) -> Vec<String> {
    to.iter().for_each(|actor| actor.tell(Msg::Say("here")).unwrap());
    root.run_until_idle();
    log.take()
}

#[test]
fn all_levels_below_a_failed_actor_wait_until_it_is_back_and_then_handle_what_has_come() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [a, b, c, d] = line(&mut root, &log, slow());
    for _ in 0..3 {
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        log.take();
        assert!(say(&mut root, &log, &[&b, &c, &d]).is_empty(), "its supervisor has not decided");
        clock.advance(SECOND);
        root.run_until_idle();
        let mut lines = log.take();
        assert_eq!(lines.remove(0), "top/a started");
        lines.sort();
        assert_eq!(lines, ["top/a/b here", "top/a/b/c here", "top/a/b/c/d here"]);
        // They continue as before.
        assert_eq!(say(&mut root, &log, &[&d, &b]).len(), 2);
    }
}

#[test]
fn what_an_actor_settles_itself_suspends_nobody() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pause = slow().backoff(Backoff::new(SECOND, SECOND));
    let a = root.spawn("a", props(&log).supervise(pause)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        Ok(Next::Stay)
    });
    let x: ActorRef<Msg> = root.system().lookup("/user/a/x").unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    assert_eq!(say(&mut root, &log, &[&x]), ["a/x here"]);
}

#[test]
fn who_is_suspended_for_two_reasons_waits_until_both_are_gone_and_so_do_those_below() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [a, b, c, d] = line(&mut root, &log, slow());
    // Another suspension hits an actor in the middle.
    c.try_send_system(SystemMessage::Suspend).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    assert!(say(&mut root, &log, &[&b, &c, &d]).is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a started", "top/a/b here"]);
    c.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a/b/c here", "top/a/b/c/d here"]);
    // The other way round: the failure is handled last.
    a.tell(Msg::Fail).unwrap();
    b.try_send_system(SystemMessage::Suspend).unwrap();
    root.run_until_idle();
    b.try_send_system(SystemMessage::Suspend).unwrap();
    b.try_send_system(SystemMessage::Resume).unwrap();
    b.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    log.take();
    assert!(say(&mut root, &log, &[&d]).is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a started", "top/a/b/c/d here"]);
}

#[test]
fn an_actor_that_fails_while_it_is_suspended_is_resumed_without_those_below() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [a, b, ..] = line(&mut root, &log, Strategy::resume());
    let me = a.clone();
    run(&mut root, &a, move |_, _| {
        me.try_send_system(SystemMessage::Suspend).unwrap();
        Err(Failure::msg("while it is suspended"))
    });
    log.take();
    assert!(say(&mut root, &log, &[&a, &b]).is_empty());
    a.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["top/a here", "top/a/b here"]);
}

#[test]
fn who_comes_below_a_suspended_actor_waits_with_the_others() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [_, _, _, d] = line(&mut root, &log, Strategy::stop());
    let (to, me) = (log.clone(), d.clone());
    run(&mut root, &d, move |_, cx| {
        cx.spawn_child("old", props(&to))?;
        me.try_send_system(SystemMessage::Suspend).unwrap();
        cx.spawn_child("new", props(&to))?.tell(Msg::Say("here"))?;
        Ok(Next::Stay)
    });
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["top/a/b/c/d/new started", "top/a/b/c/d/old started"]);
    d.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a/b/c/d/new here"]);
}

#[test]
fn children_of_a_start_that_failed_and_was_tried_again_are_not_held_for_ever() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let top = props(&log).supervise_children(Scope::OneForOne, slow().limit(5, 100 * SECOND));
    let top = root.spawn("top", top).unwrap();
    let to = log.clone();
    run(&mut root, &top, move |_, cx| {
        let down = to.clone();
        let plan = Plan::default().started(move |me, cx| {
            let name = if me.born == 1 { "kept" } else { "made" };
            cx.spawn_child(name, props(&down))?;
            if me.born == 1 { Err(Failure::msg("at first")) } else { Ok(Next::Stay) }
        });
        cx.spawn_child("a", plan.props(&to))?;
        Ok(Next::Stay)
    });
    let kept: ActorRef<Msg> = root.system().lookup("/user/top/a/kept").unwrap();
    log.take();
    assert!(say(&mut root, &log, &[&kept]).is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    log.take();
    let made: ActorRef<Msg> = root.system().lookup("/user/top/a/made").unwrap();
    assert_eq!(say(&mut root, &log, &[&kept, &made]), ["top/a/kept here", "top/a/made here"]);
}

#[test]
fn all_levels_below_a_failed_actor_stop_with_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let line = line(&mut root, &log, Strategy::stop());
    line[0].tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(line.iter().all(ActorRef::is_stopped));
}

#[test]
fn a_host_does_not_let_go_on_what_a_parent_holds() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [a, b, ..] = line(&mut root, &log, slow());
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    log.take();
    b.try_send_system(SystemMessage::Resume).unwrap();
    assert!(say(&mut root, &log, &[&b]).is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a started", "top/a/b here"]);
    assert_eq!(say(&mut root, &log, &[&b]), ["top/a/b here"], "it is held no more");
}

#[test]
fn a_host_that_suspends_ever_again_lets_go_on_as_often_as_counts() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [_, b, ..] = line(&mut root, &log, Strategy::stop());
    for _ in 0..70_000 {
        b.try_send_system(SystemMessage::Suspend).unwrap();
    }
    assert!(say(&mut root, &log, &[&b]).is_empty());
    for _ in 0..255 {
        b.try_send_system(SystemMessage::Resume).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["top/a/b here"]);
}
