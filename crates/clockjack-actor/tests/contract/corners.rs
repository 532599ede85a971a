//! Corner cases of supervision, signals, death watch and stash.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Context, EventKinds, Failure, FailureInfo,
    FailureReport, Next, Props, RootContext, Scope, Signal, Strategy, SystemMessage,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, act, events, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

/// A chain of this many actors, each the child of the one before.
fn line(log: &Log, below: u32) -> Plan {
    let log = log.clone();
    Plan::default().started(move |me, cx| {
        if below > 0 && me.born == 1 {
            cx.spawn_child("c", line(&log, below - 1).props(&log))?;
        }
        Ok(Next::Stay)
    })
}

#[test]
fn what_comes_while_the_children_stop_is_kept_for_the_new_value() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, quiet) = (Log::default(), Log::default());
    let to = quiet.clone();
    let plan = Plan::default().started(move |me, cx| {
        if me.born == 1 {
            cx.spawn_child("c", line(&to, 50).props(&to))?;
        }
        Ok(Next::Stay)
    });
    let a = root.spawn("a", plan.props(&log).supervise(Strategy::restart())).unwrap();
    let b = root.spawn("b", props(&quiet)).unwrap();
    let who = b.clone();
    run(&mut root, &a, move |_, cx| {
        cx.watch(&who)?;
        Ok(Next::Stay)
    });
    log.take();
    quiet.take();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Born).unwrap();
    b.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let order = quiet.take();
    let at = |line: &str| order.iter().position(|one| one == line).unwrap();
    assert!(at("b PostStop") < at("a/c PostStop"), "the end comes while it waits");
    assert_eq!(log.take(), ["a PreRestart", "a started", "a sees b end", "a is 2"]);
}

#[test]
fn a_limit_holds_also_where_there_are_pauses() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let strategy =
        Strategy::restart().limit(2, 1_000 * SECOND).backoff(Backoff::new(SECOND, SECOND));
    let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
    for births in [2, 3] {
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        clock.advance(SECOND);
        root.run_until_idle();
        assert_eq!((plan.births(), a.is_stopped()), (births, false));
    }
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
}

#[test]
fn a_value_that_fails_in_the_replay_is_the_one_that_is_told_of_the_restart() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().signal(|me, _, _| {
        me.say(format!("of {}", me.born));
        None
    });
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND));
    let a = root.spawn("a", plan.props(&log).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Born).unwrap();
    for _ in 0..2 {
        root.run_until_idle();
        clock.advance(SECOND);
    }
    root.run_until_idle();
    let expected = [
        "a started",
        "a of 1",
        "a PreRestart",
        "a started",
        "a of 2",
        "a PreRestart",
        "a started",
        "a is 3",
    ];
    assert_eq!(log.take(), expected);
}

/// Answers a signal with an error.
struct Sour(Log);

impl Actor for Sour {
    type Msg = bool;

    fn receive(&mut self, _: &mut Context<'_, Self>, is_good: bool) -> Result<Next, Failure> {
        self.0.add(format!("{is_good}"));
        if is_good { Ok(Next::Stay) } else { Err(Failure::msg("the cause")) }
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Err(Failure::msg(format!("in {signal:?}")))
    }
}

#[test]
fn an_error_in_the_hook_before_a_restart_is_only_told() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::FAILURE, &told);
    let to = log.clone();
    let props = Props::new(move || Sour(to.clone()));
    // One more failure would stop it.
    let limit = Strategy::restart().limit(1, SECOND);
    let a = root.spawn("a", props.supervise(limit)).unwrap();
    a.tell(false).unwrap();
    a.tell(true).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["false", "true"]);
    let told = told.take();
    assert!(told.iter().any(|line| line.contains("in PreRestart")), "{told:?}");
    assert!(!a.is_stopped());
}

#[test]
fn an_error_in_the_last_hook_is_told_and_the_actor_ends() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::FAILURE, &told);
    let to = log.clone();
    let a = root.spawn("a", Props::new(move || Sour(to.clone()))).unwrap();
    root.run_until_idle();
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    let told = told.take();
    assert!(told.iter().any(|line| line.contains("in PostStop")), "{told:?}");
}

/// A parent whose strategy restarts, and its child `x`.
fn family(root: &mut RootContext, log: &Log) -> (ActorRef<Msg>, ActorRef<Msg>) {
    let props_of_a = props(log).supervise_children(Scope::OneForOne, Strategy::restart());
    let a = root.spawn("a", props_of_a).unwrap();
    (a.clone(), child(root, &a, log))
}

fn child(root: &mut RootContext, a: &ActorRef<Msg>, log: &Log) -> ActorRef<Msg> {
    let to = log.clone();
    run(root, a, move |_, cx| {
        cx.spawn_child("x", props(&to))?;
        Ok(Next::Stay)
    });
    root.system().lookup("/user/a/x").unwrap()
}

#[test]
fn a_failure_of_an_earlier_actor_of_that_name_is_ignored() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (a, old) = family(&mut root, &log);
    old.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let new = child(&mut root, &a, &log);
    log.take();
    let failure = |x: &ActorRef<Msg>| {
        let info = FailureInfo::new(x.pid(), x.path(), FailureReport::new("late news"));
        a.try_send_system(SystemMessage::Failure(info)).unwrap();
    };
    failure(&old);
    new.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/x is 1"]);
    // The same failure of the present actor would not be ignored.
    failure(&new);
    root.run_until_idle();
    assert_eq!(log.take()[1..], ["a/x PreRestart", "a/x started"]);
}

#[test]
fn ordinary_signals_may_be_left_unhandled() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().signal(|_, _, _| Some(Next::Unhandled));
    let strategy = Strategy::restart();
    let props_of_a = plan.props(&log).supervise_children(Scope::OneForOne, strategy);
    let a = root.spawn("a", props_of_a.supervise(Strategy::restart())).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("x", props(&to))?.tell(Msg::Fail)?;
        cx.set_receive_timeout(SECOND);
        Ok(Next::Stay)
    });
    clock.advance(SECOND);
    root.run_until_idle();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let mut lines = log.take();
    lines.retain(|line| line.starts_with("a "));
    let heard = "a hears that /user/a/x restart (failed of /user/a/x)";
    assert_eq!(lines, ["a started", heard, "a ReceiveTimeout", "a PreRestart", "a started"]);
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
}

#[test]
fn a_start_that_is_left_unhandled_is_a_failure() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default().started(|_, _| Ok(Next::Unhandled));
    let a = root.spawn("a", plan.props(&log)).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!(log.take(), ["a started"]);
    let told = told.take();
    assert!(told[0].contains("`started`"), "{told:?}");
}

#[test]
fn one_of_whom_nobody_knows_has_ended() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let w = root.spawn("w", props(&log)).unwrap();
    // An actor of a terminated system, and an unknown one.
    let (mut other, _) = start(ActorSystem::builder("other"));
    let gone = other.spawn("gone", props(&Log::default())).unwrap();
    drop(other);
    run(&mut root, &w, move |_, cx| {
        cx.watch(&gone)?;
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["w started", "w sees gone end"]);
}

/// Stashes these, in this order.
fn stashing(root: &mut RootContext, log: &Log, msgs: Vec<Msg>) -> ActorRef<Msg> {
    let a = root.spawn("a", props(log).stash(10)).unwrap();
    run(root, &a, move |_, cx| {
        for msg in msgs {
            cx.stash(msg)?;
        }
        Ok(Next::Stay)
    });
    log.take();
    a
}

fn add(n: u32) -> Msg {
    act(move |me, _| {
        me.say(format!("{} and {n}", me.state));
        me.state += n;
        Ok(Next::Stay)
    })
}

#[test]
fn each_message_of_the_stash_finds_what_the_one_before_has_left() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = stashing(&mut root, &log, vec![add(1), add(2), add(3)]);
    a.tell(act(|me, cx| {
        me.state = 10;
        cx.unstash_all();
        Ok(Next::Stay)
    }))
    .unwrap();
    a.tell(add(4)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a 10 and 1", "a 11 and 2", "a 13 and 3", "a 16 and 4"]);
}

#[test]
fn messages_of_the_stash_may_bring_back_more_of_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let unstash = |n: usize, text: &'static str| {
        act(move |me, cx| {
            me.say(text);
            cx.unstash(n);
            Ok(Next::Stay)
        })
    };
    let stashed = vec![unstash(1, "first"), unstash(9, "second"), Msg::Say("third"), Msg::Say("4")];
    let a = stashing(&mut root, &log, stashed);
    a.tell(unstash(1, "none")).unwrap();
    a.tell(Msg::Say("newer")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a none", "a first", "a second", "a third", "a 4", "a newer"]);
}
