//! The stash.

use clockjack_actor::{
    ActorRef, ActorSystem, EventKinds, Failure, Next, RootContext, Signal, Strategy,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, act, events, props, run},
};

fn stashing(
    root: &mut RootContext,
    log: &Log,
    capacity: usize,
    texts: &'static [&'static str],
) -> ActorRef<Msg> {
    let props = props(log).stash(capacity).supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    run(root, &a, move |_, cx| {
        for text in texts {
            cx.stash(Msg::Say(text))?;
        }
        Ok(Next::Stay)
    });
    log.take();
    a
}

#[test]
fn what_finds_no_room_comes_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = stashing(&mut root, &log, 2, &["one", "two"]);
    run(&mut root, &a, |me, cx| {
        let refused = cx.stash(Msg::Say("three")).unwrap_err();
        assert!(refused.to_string().contains("2 messages"));
        assert!(matches!(refused.into_inner(), Msg::Say("three")));
        me.say(format!("keeps {}", cx.stash_len()));
        Ok(Next::Stay)
    });
    let none = root.spawn("none", props(&log)).unwrap();
    run(&mut root, &none, |_, cx| {
        assert!(cx.stash(Msg::Stop).is_err());
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a keeps 2", "none started"]);
}

#[test]
fn they_come_back_in_order_before_newer_mail_and_only_those_that_were_there() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = stashing(&mut root, &log, 10, &["one", "two"]);
    a.tell(act(|_, cx| {
        cx.unstash_all();
        cx.stash(Msg::Say("stashed after the call"))?;
        Ok(Next::Stay)
    }))
    .unwrap();
    a.tell(Msg::Say("newer")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a one", "a two", "a newer"]);
    run(&mut root, &a, |_, cx| {
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a stashed after the call"]);
}

#[test]
fn what_is_stashed_again_stays() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).stash(2)).unwrap();
    fn again(n: u32) -> Msg {
        act(move |me, cx| {
            me.say(format!("turn {n}"));
            cx.stash(again(n + 1))?;
            Ok(Next::Stay)
        })
    }
    a.tell(again(1)).unwrap();
    a.tell(again(1)).unwrap();
    root.run_until_idle();
    // The stash is full, and still there is room for those that come out of it.
    run(&mut root, &a, |_, cx| {
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(log.take()[1..], ["a turn 1", "a turn 1", "a turn 2", "a turn 2"]);
}

#[test]
fn so_many_come_back_as_were_asked_for() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = stashing(&mut root, &log, 10, &["one", "two", "three"]);
    run(&mut root, &a, |_, cx| {
        cx.unstash(2);
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a one", "a two"]);
}

#[test]
fn they_may_be_cleared_while_they_come_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).stash(10)).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.stash(act(|me, cx| {
            me.say(format!("clears {}", cx.clear_stash().len()));
            Ok(Next::Stay)
        }))?;
        cx.stash(Msg::Say("must not come"))?;
        cx.stash(Msg::Say("must not come"))?;
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a started", "a clears 2"]);
}

#[test]
fn a_stop_while_they_come_back_makes_dead_letters_of_the_rest() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log).stash(10)).unwrap();
    run(&mut root, &a, |_, cx| {
        for msg in [Msg::Say("one"), Msg::Stop, Msg::Say("two"), Msg::Say("three")] {
            cx.stash(msg)?;
        }
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a started", "a one", "a PostStop"]);
    assert_eq!(told.take().len(), 2);
}

#[test]
fn what_is_unhandled_is_told_as_usual() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::UNHANDLED, &told);
    let a = root.spawn("a", props(&log).stash(10)).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.stash(act(|_, _| Ok(Next::Unhandled)))?;
        cx.unstash_all();
        Ok(Next::Stay)
    });
    assert_eq!(told.take(), ["unhandled by /user/a"]);
}

#[test]
fn a_failure_while_they_come_back_restarts_the_value_that_failed_and_keeps_the_rest() {
    for strategy in [Strategy::restart(), Strategy::resume()] {
        let is_restart = format!("{strategy:?}").contains("Restart");
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let a = root.spawn("a", props(&log).stash(10).supervise(strategy)).unwrap();
        a.tell(act(|me, cx| {
            for msg in [Msg::Say("one"), Msg::Fail, Msg::Born] {
                cx.stash(msg)?;
            }
            me.state = 5;
            cx.unstash_all();
            Ok(Next::Stay)
        }))
        .unwrap();
        a.tell(act(|me, _| {
            me.say(format!("has {}", me.state));
            Ok(Next::Stay)
        }))
        .unwrap();
        root.run_until_idle();
        let expected: &[&str] = if is_restart {
            &["a started", "a one", "a PreRestart", "a started", "a is 2", "a has 0"]
        } else {
            &["a started", "a one", "a is 1", "a has 5"]
        };
        assert_eq!(log.take(), expected);
    }
}

#[test]
fn a_restart_brings_back_what_was_stashed() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = stashing(&mut root, &log, 10, &["one", "two"]);
    a.tell(act(|_, _| Err(Failure::msg("now")))).unwrap();
    a.tell(Msg::Say("newer")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a PreRestart", "a started", "a one", "a two", "a newer"]);
}

#[test]
fn what_was_to_come_back_does_so_if_the_handler_panics_and_the_actor_goes_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).stash(4).supervise(Strategy::resume())).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.stash(Msg::Say("older"))?;
        Ok(Next::Stay)
    });
    log.take();
    a.tell(act(|_, cx| {
        cx.unstash_all();
        panic!("behind it")
    }))
    .unwrap();
    a.tell(Msg::Say("newer")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a older", "a newer"]);
}

#[test]
fn the_last_hook_still_has_what_was_stashed_also_if_the_children_took_their_time() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().signal(|me, cx, signal| {
        if let Signal::PostStop = signal {
            me.say(format!("saves {}", cx.clear_stash().len()));
        }
        None
    });
    let a = root.spawn("a", plan.props(&log).stash(2)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("child", props(&to))?;
        cx.stash(Msg::Say("one"))?;
        Ok(Next::Stay)
    });
    log.take();
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/child PostStop", "a saves 1", "a PostStop"]);
}
