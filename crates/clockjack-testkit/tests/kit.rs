//! What the kit for one actor records, and what it leaves to the test.

#[path = "support/panics.rs"]
mod panics;

use core::{future::ready, time::Duration};

use clockjack_actor::{
    Actor, ActorPath, ActorRef, Context, Failure, Next, Props, Signal, Terminated,
};
use clockjack_testkit::{ActorTestKit, Effect, TimerMode};
use panics::panic_of;

const SECOND: Duration = Duration::from_secs(1);

/// Executes closures, and records other messages.
#[derive(Default)]
struct Doer {
    heard: Vec<String>,
}

enum Msg {
    Do(Deed),
    Text(&'static str),
}

type Deed =
    Box<dyn FnOnce(&mut Doer, &mut Context<'_, Doer>) -> Result<Next, Failure> + Send + 'static>;

impl Actor for Doer {
    type Msg = Msg;

    fn started(&mut self, _cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.heard.push("started".into());
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Do(deed) => return deed(self, cx),
            Msg::Text(text) => self.heard.push(text.into()),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::Terminated(end) if end.path.name() == "stranger" => Ok(Next::Unhandled),
            Signal::Terminated(end) => {
                self.heard.push(format!("end of {}", end.path));
                Ok(Next::Stay)
            }
            Signal::ReceiveTimeout => {
                self.heard.push("time-out".into());
                Ok(Next::Stop)
            }
            _ => Ok(Next::Unhandled),
        }
    }
}

fn kit() -> ActorTestKit<Doer> {
    let mut kit = ActorTestKit::new(Props::new(Doer::default).stash(10));
    kit.actor_mut().heard.clear();
    kit
}

fn run(
    kit: &mut ActorTestKit<Doer>,
    deed: impl FnOnce(&mut Doer, &mut Context<'_, Doer>) -> Result<Next, Failure> + Send + 'static,
) {
    kit.run(Msg::Do(Box::new(deed)));
}

fn kit_path() -> ActorPath {
    ActorPath::root().child("user").child("kit")
}

fn timer(key: &'static str, mode: TimerMode, overriding: bool) -> Effect {
    Effect::TimerScheduled { key: key.into(), delay: SECOND, mode, overriding }
}

/// Another actor, for the tested one to watch or to send to.
fn other(kit: &ActorTestKit<Doer>, name: &str) -> ActorRef<Msg> {
    kit.time().spawn(name, Props::new(Doer::default))
}

#[test]
fn the_actor_is_started_and_then_handles_what_is_run() {
    let mut kit = ActorTestKit::new(Doer::default);
    assert_eq!(kit.actor().heard, ["started"]);
    kit.run(Msg::Text("one"));
    kit.run(Msg::Text("two"));
    assert_eq!(kit.actor().heard, ["started", "one", "two"]);
    assert_eq!(kit.last(), Next::Stay);
    kit.expect_no_effects();
}

#[test]
fn what_it_tells_itself_waits_in_the_inbox() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.self_ref().tell(Msg::Text("later"))?;
        cx.self_ref().tell(Msg::Text("latest"))?;
        Ok(Next::Stay)
    });
    assert!(kit.actor().heard.is_empty());
    assert!(kit.run_one());
    assert_eq!(kit.actor().heard, ["later"]);
    assert_eq!(kit.take_inbox().len(), 1);
    assert!(!kit.run_one());
}

#[test]
fn children_are_written_down_and_run() {
    let mut kit = kit();
    let out = kit.time().probe::<&'static str>();
    let to = out.actor_ref();
    run(&mut kit, move |_, cx| {
        let child = cx.spawn_child(
            "child",
            Props::from_fn(move |_, msg: &'static str| {
                to.tell(msg)?;
                Ok(Next::Stay)
            }),
        );
        let child = child.map_err(|refused| Failure::msg(refused.to_string()))?;
        child.tell("hello")?;
        Ok(Next::Stay)
    });
    out.expect_eq("hello");
    run(&mut kit, |_, cx| {
        let child = cx.child::<&'static str>("child").expect("it is there");
        cx.stop_child(&child)?;
        Ok(Next::Stay)
    });
    kit.expect_effect(&Effect::Spawned { name: "child".into() });
    kit.expect_effect(&Effect::Stopped(kit_path().child("child")));
    kit.expect_no_effects();
}

#[test]
fn a_name_that_is_refused_is_no_effect() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        assert!(cx.spawn_local_child("a b", Doer::default).is_err());
        assert!(cx.spawn_local_child("ab", Doer::default).is_ok());
        Ok(Next::Stay)
    });
    assert_eq!(kit.effects(), [Effect::Spawned { name: "ab".into() }]);
}

#[test]
fn the_end_of_a_watched_actor_comes_by_hand() {
    let mut kit = kit();
    let (a, b) = (other(&kit, "a"), other(&kit, "b"));
    let (ends, paths) =
        ([&a, &b].map(|one| Terminated::new(one.pid(), one.path(), None)), [a.path(), b.path()]);
    run(&mut kit, move |_, cx| {
        cx.watch(&a)?;
        cx.watch_with(&b, Msg::Text("b is over")).map_err(|_| Failure::msg("refused"))?;
        cx.unwatch(&a);
        cx.watch(&a)?;
        Ok(Next::Stay)
    });
    let [a, b] = paths;
    let expected = [
        Effect::Watched(a.clone()),
        Effect::WatchedWith(b),
        Effect::Unwatched(a.clone()),
        Effect::Watched(a),
    ];
    assert_eq!(kit.effects(), expected);
    for end in ends {
        kit.signal(Signal::Terminated(end));
    }
    assert_eq!(kit.actor().heard, ["end of /user/a", "b is over"]);
}

#[test]
fn an_end_that_is_left_unhandled_is_a_failure() {
    let mut kit = kit();
    let stranger = other(&kit, "stranger");
    let end = || Signal::Terminated(Terminated::new(stranger.pid(), stranger.path(), None));
    assert!(kit.try_signal(end()).is_err());
    let text = panic_of(|| kit.signal(end()));
    assert!(text.starts_with("/user/kit: the signal failed in kit::Doer: "), "{text}");
}

#[test]
fn a_timer_does_not_fire_by_time_alone() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.timers().single("a", SECOND, Msg::Text("a")).map_err(|_| Failure::msg("refused"))?;
        Ok(Next::Stay)
    });
    kit.expect_effect(&timer("a", TimerMode::Single, false));
    kit.time().advance(10 * SECOND);
    assert!(kit.actor().heard.is_empty(), "it fires by hand only");
}

#[test]
fn a_single_timer_is_inert_when_it_has_fired() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.timers().single("a", SECOND, Msg::Text("a")).map_err(|_| Failure::msg("refused"))?;
        Ok(Next::Stay)
    });
    let handle = kit.timer("a").expect("it is set");
    assert!(kit.send(handle));
    assert!(!kit.send(handle));
    assert_eq!(kit.timer("a"), None);
    assert_eq!(kit.actor().heard, ["a"]);
}

#[test]
fn a_timer_that_repeats_is_inert_when_it_was_cancelled() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.timers().fixed_rate("a", SECOND, || Msg::Text("a"))?;
        cx.timers().fixed_delay("b", SECOND, || Msg::Text("b"))?;
        Ok(Next::Stay)
    });
    kit.expect_effect(&timer("a", TimerMode::FixedRate(SECOND), false));
    kit.expect_effect(&timer("b", TimerMode::FixedDelay(SECOND), false));
    let a = kit.timer("a").expect("it is set");
    assert!(kit.send(a));
    assert!(kit.send(a));
    run(&mut kit, |_, cx| {
        assert!(cx.timers().cancel("a"));
        assert!(!cx.timers().cancel("a"));
        cx.timers().cancel_all();
        Ok(Next::Stay)
    });
    kit.expect_effect(&Effect::TimerCancelled { key: "a".into() });
    kit.expect_effect(&Effect::TimerCancelled { key: "b".into() });
    kit.expect_no_effects();
    assert!(!kit.send(a));
    assert_eq!(kit.actor().heard, ["a", "a"]);
}

#[test]
fn a_timer_in_the_place_of_another_overrides_it() {
    let mut kit = kit();
    let set = |_: &mut Doer, cx: &mut Context<'_, Doer>| {
        cx.timers().fixed_rate("a", SECOND, || Msg::Text("a"))?;
        Ok(Next::Stay)
    };
    run(&mut kit, set);
    let old = kit.timer("a").expect("it is set");
    run(&mut kit, set);
    kit.expect_effect(&timer("a", TimerMode::FixedRate(SECOND), false));
    kit.expect_effect(&timer("a", TimerMode::FixedRate(SECOND), true));
    assert!(!kit.send(old));
    let new = kit.timer("a").expect("it is set");
    assert!(kit.send(new));
}

#[test]
fn what_is_scheduled_for_others_comes_when_its_time_has_come() {
    let mut kit = kit();
    let out = kit.time().probe::<&'static str>();
    let (to, path) = (out.actor_ref(), out.actor_ref().path());
    run(&mut kit, move |_, cx| {
        cx.schedule_once(SECOND, &to, "tick")?;
        let cancelled = cx.schedule_once(2 * SECOND, &to, "tock")?;
        let seen = [
            cancelled.cancel(),
            cancelled.is_cancelled(),
            cancelled.cancel(),
            cancelled.is_cancelled(),
        ];
        assert_eq!(seen, [true, true, false, true]);
        Ok(Next::Stay)
    });
    kit.expect_effect(&Effect::Scheduled { delay: SECOND, receiver: path.clone() });
    kit.expect_effect(&Effect::Scheduled { delay: 2 * SECOND, receiver: path });
    out.expect_none();
    out.expect_eq_within("tick", SECOND);
    out.expect_none_for(10 * SECOND);
}

#[test]
fn what_is_scheduled_for_itself_comes_to_the_inbox() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        let me = cx.self_ref();
        cx.schedule_once(SECOND, &me, Msg::Text("tick")).map_err(|_| Failure::msg("refused"))?;
        Ok(Next::Stay)
    });
    kit.time().advance(SECOND);
    assert!(kit.run_one());
    assert_eq!(kit.actor().heard, ["tick"]);
}

#[test]
fn a_receive_time_out_is_written_down_and_comes_by_hand() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.set_receive_timeout(SECOND);
        cx.cancel_receive_timeout();
        cx.set_receive_timeout(2 * SECOND);
        Ok(Next::Stay)
    });
    let expected = [
        Effect::ReceiveTimeoutSet(SECOND),
        Effect::ReceiveTimeoutCancelled,
        Effect::ReceiveTimeoutSet(2 * SECOND),
    ];
    assert_eq!(kit.effects(), expected);
    kit.time().advance(10 * SECOND);
    assert!(!kit.is_stopped());
    kit.signal(Signal::ReceiveTimeout);
    assert_eq!(kit.actor().heard, ["time-out"]);
    assert!(kit.is_stopped());
}

#[test]
fn messages_that_were_put_aside_are_handled_in_order_behind_the_one_that_wants_them() {
    let mut kit = kit();
    for text in ["one", "two", "three"] {
        run(&mut kit, move |_, cx| {
            cx.stash(Msg::Text(text)).map_err(|_| Failure::msg("full"))?;
            Ok(Next::Stay)
        });
    }
    run(&mut kit, |doer, cx| {
        cx.unstash(2);
        doer.heard.push("wanted".into());
        Ok(Next::Stay)
    });
    assert_eq!(kit.actor().heard, ["wanted", "one", "two"]);
    let expected = [Effect::Stashed, Effect::Stashed, Effect::Stashed, Effect::Unstashed(2)];
    assert_eq!(kit.effects(), expected);
}

#[test]
fn futures_are_written_down_and_not_run() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        let refused = |_| Failure::msg("refused");
        let then = |doer: &mut Doer, _: &mut Context<'_, Doer>, ()| {
            doer.heard.push("done".into());
            Ok(Next::Stay)
        };
        cx.spawn_future(ready(()), then).map_err(refused)?;
        cx.wait(ready(()), then).map_err(refused)?;
        Ok(Next::Stay)
    });
    kit.run(Msg::Text("next"));
    assert_eq!(kit.effects(), [Effect::FutureStarted, Effect::FutureAwaited]);
    assert_eq!(kit.actor().heard, ["next"]);
}

#[test]
fn another_effect_is_shown_with_those_behind_it() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.set_receive_timeout(SECOND);
        cx.cancel_receive_timeout();
        Ok(Next::Stay)
    });
    let text = "/user/kit: expected Stashed, got ReceiveTimeoutSet(1s); then \
                [ReceiveTimeoutCancelled]";
    assert_eq!(panic_of(|| kit.expect_effect(&Effect::Stashed)), text);
    let text = "/user/kit: expected no effects, got [ReceiveTimeoutCancelled]";
    assert_eq!(panic_of(|| kit.expect_no_effects()), text);
    kit.effects();
    let text = "/user/kit: expected Stashed, but there are no more effects";
    assert_eq!(panic_of(|| kit.expect_effect(&Effect::Stashed)), text);
}

#[test]
fn a_failure_is_one_of_the_test_and_the_actor_goes_on() {
    let mut kit = kit();
    let text = panic_of(|| run(&mut kit, |_, _| Err(Failure::msg("out of paper"))));
    assert_eq!(text, "/user/kit: the message failed in kit::Doer: out of paper");
    assert!(kit.try_run(Msg::Do(Box::new(|_, _| Err(Failure::msg("again"))))).is_err());
    assert_eq!(panic_of(|| run(&mut kit, |_, _| panic!("no ink"))), "no ink");
    kit.run(Msg::Text("still there"));
    assert_eq!(kit.actor().heard, ["still there"]);
}

#[test]
fn an_actor_that_has_stopped_handles_nothing_more() {
    let mut kit = kit();
    run(&mut kit, |_, _| Ok(Next::Stop));
    assert!(kit.is_stopped());
    let text = "/user/kit: the actor has stopped and handles nothing more";
    assert_eq!(panic_of(|| kit.run(Msg::Text("more"))), text);
}

#[test]
fn an_actor_that_stops_itself_has_stopped_and_shows_it() {
    let mut kit = kit();
    run(&mut kit, |_, cx| {
        cx.stop_self();
        Ok(Next::Stay)
    });
    kit.expect_effect(&Effect::StoppedSelf);
    assert!(kit.is_stopped());
}

#[test]
fn the_end_of_one_that_had_ended_before_it_was_watched_is_the_message_too() {
    let mut kit = kit();
    let gone = other(&kit, "gone");
    kit.time().system().stop(&gone).unwrap();
    kit.time().settle();
    let who = gone.clone();
    run(&mut kit, move |_, cx| {
        cx.watch_with(&who, Msg::Text("it is over")).map_err(|_| Failure::msg("refused"))?;
        Ok(Next::Stay)
    });
    kit.signal(Signal::Terminated(Terminated::new(gone.pid(), gone.path(), None)));
    assert_eq!(kit.actor().heard, ["it is over"]);
}
