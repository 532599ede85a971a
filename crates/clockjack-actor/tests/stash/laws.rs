//! The stash.

use alloc::sync::Arc;
use core::{
    pin::Pin,
    task::{self, Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Ask, Context, EventKinds, Failure, Next, Props, ReplyTo,
    RootContext, Signal, Strategy,
};

use crate::{
    bench::{Log, start},
    puppet::{Msg, Plan, act, events, props, run},
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
fn a_request_in_the_stash_is_over_when_the_actor_begins_to_stop() {
    enum Order {
        Ask(ReplyTo<u32>),
        Stop,
    }
    struct Keeper(Plan, Log);
    impl Actor for Keeper {
        type Msg = Order;
        fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
            cx.spawn_child("child", self.0.props(&self.1))?;
            Ok(Next::Stay)
        }
        fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Order) -> Result<Next, Failure> {
            match msg {
                Order::Ask(to) if cx.stash_len() == 0 => cx.stash(Order::Ask(to))?,
                Order::Ask(to) => to.reply(0),
                Order::Stop => return Ok(Next::Stop),
            }
            Ok(Next::Stay)
        }
    }
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let asked: Arc<Mutex<Option<Ask<u32>>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let plan = Plan::default().signal(move |me, _, signal| {
        if let (Signal::PostStop, Some(ask)) = (signal, &mut *seen.lock().unwrap()) {
            let answer = Pin::new(ask).poll(&mut task::Context::from_waker(Waker::noop()));
            let is_over = matches!(answer, Poll::Ready(Err(error)) if error.is_stopped());
            me.say(format!("finds it over: {is_over}"));
        }
        None
    });
    let to = log.clone();
    let props = Props::new(move || Keeper(plan.clone(), to.clone())).stash(1);
    let a = root.spawn("a", props).unwrap();
    *asked.lock().unwrap() = Some(a.ask(Order::Ask, Duration::from_secs(1)));
    root.run_until_idle();
    log.take();
    a.tell(Order::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/child finds it over: true", "a/child PostStop"]);
}
