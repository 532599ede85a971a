//! Faults of user code, and the damage that they must not do.

use alloc::sync::Arc;
use core::fmt;

use clockjack_actor::{
    ActorPath, ActorSystem, Directive, EventKinds, Failure, FailureInfo, IntoProps, Next, Props,
    RestartStats, RootContext, Scope, Signal, Strategy, SupervisorStrategy,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, ScriptedActor, act, events, props, run},
};

/// Whether another actor still works.
fn assert_well(root: &mut RootContext) {
    let log = Log::default();
    let well = root.spawn("well", props(&log)).unwrap();
    well.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["well started", "well is 1"]);
}

fn told_of(told: &Log, text: &str) {
    let lines = told.take();
    assert!(lines.iter().any(|line| line.contains(text)), "{text:?} is not in {lines:?}");
}

#[test]
fn a_panic_in_the_factory_is_a_failure_of_the_start() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let mut n = 0;
    let factory = move || -> ScriptedActor {
        n += 1;
        panic!("factory {n}")
    };
    let limit = Strategy::restart().limit(2, core::time::Duration::from_secs(1));
    let a = root.spawn("a", Props::new(factory).supervise(limit)).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    told_of(&told, "/user/a stop (panicked: factory 3 of /user/a)");
    assert_well(&mut root);
}

#[test]
fn a_panic_in_the_start_is_a_failure_of_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default().started(|_, _| panic!("in the start"));
    let a = root.spawn("a", plan.props(&Log::default())).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    told_of(&told, "/user/a stop (panicked: in the start");
    assert_well(&mut root);
}

#[test]
fn a_panic_or_an_error_in_the_last_hook_is_told_and_the_actor_ends() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default()
        .signal(|_, _, signal| matches!(signal, Signal::PostStop).then(|| panic!("at the end")));
    let a = root.spawn("a", plan.props(&Log::default())).unwrap();
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    told_of(&told, "at the end");
    assert_eq!(root.system().metrics().failures, 1, "it is counted");
    assert_well(&mut root);
}

/// Panics when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

struct Bomber {
    _bomb: Bomb,
}

impl clockjack_actor::Actor for Bomber {
    type Msg = Option<Bomb>;

    fn receive(
        &mut self,
        cx: &mut clockjack_actor::Context<'_, Self>,
        msg: Option<Bomb>,
    ) -> Result<Next, Failure> {
        match msg {
            Some(bomb) => {
                cx.stash(Some(bomb)).ok();
                Ok(Next::Stay)
            }
            None => Err(Failure::msg("asked to")),
        }
    }
}

#[test]
fn a_panic_in_the_drop_of_an_actor_is_told_and_changes_nothing() {
    for strategy in [Strategy::restart(), Strategy::stop()] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let told = Log::default();
        events(&mut root, EventKinds::FAILURE, &told);
        let props = Props::new(|| Bomber { _bomb: Bomb("the actor's drop") });
        let is_restart = format!("{strategy:?}").contains("Restart");
        let a = root.spawn("a", props.supervise(strategy)).unwrap();
        a.tell(None).unwrap();
        root.run_until_idle();
        assert_eq!(a.is_stopped(), !is_restart);
        told_of(&told, "the actor's drop");
        assert_well(&mut root);
        drop(root.system().shutdown());
        root.run_until_idle();
    }
}

#[test]
fn a_panic_in_the_drop_of_messages_is_told_and_the_rest_is_drained() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (told, letters) = (Log::default(), Log::default());
    let props = Props::new(|| Bomber { _bomb: Bomb("the actor's drop") });
    let a = root.spawn("a", props.stash(10)).unwrap();
    events(&mut root, EventKinds::FAILURE | EventKinds::DEAD_LETTER, &told);
    a.tell(Some(Bomb("stashed"))).unwrap();
    root.run_until_idle();
    a.tell(None).unwrap();
    a.tell(Some(Bomb("in the mailbox"))).unwrap();
    a.tell(Some(Bomb("also there"))).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    let lines = told.take();
    for text in ["stashed", "in the mailbox", "also there", "the actor's drop"] {
        assert!(lines.iter().any(|line| line.contains(text)), "{text:?} is not in {lines:?}");
    }
    let n_letters = lines.iter().filter(|line| line.starts_with("dead letter")).count();
    assert_eq!(n_letters, 3);
    drop(letters);
    assert_well(&mut root);
}

#[test]
fn a_decider_that_panics_has_not_decided() {
    struct Panics;
    impl SupervisorStrategy for Panics {
        fn decide(&mut self, _: &Failure, _: &ActorPath, _: &RestartStats, _: u64) -> Directive {
            panic!("cannot decide")
        }
    }
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let inner = Strategy::custom(Panics).only::<fmt::Error>();
    let props_of_a = props(&log).supervise(inner).supervise(Strategy::restart());
    let a = root.spawn("a", props_of_a).unwrap();
    run(&mut root, &a, |_, _| Err(fmt::Error.into()));
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart", "a started", "a is 2"]);

    // A parent's decider: the failure is escalated to the grandparent, which stops it.
    let parent = props(&log).supervise_children(Scope::OneForOne, Strategy::custom(Panics));
    let b = root.spawn("b", parent).unwrap();
    run(&mut root, &b, |_, cx| {
        cx.spawn_child("x", props(&Log::default()))?.tell(Msg::Fail)?;
        Ok(Next::Stay)
    });
    assert!(b.is_stopped());
    assert_well(&mut root);
}

#[test]
fn hooks_of_a_strategy_that_panic_fail_the_actor() {
    struct Panics(bool);
    impl SupervisorStrategy for Panics {
        fn decide(&mut self, _: &Failure, _: &ActorPath, _: &RestartStats, _: u64) -> Directive {
            Directive::Restart
        }
        fn before_start(&mut self, _: &ActorPath) {
            assert!(!self.0, "before the start");
        }
        fn after_restart(&mut self, _: &ActorPath, stats: &RestartStats) {
            assert!(stats.restarts > 1, "after the restart");
        }
    }
    for before in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let told = Log::default();
        events(&mut root, EventKinds::FAILURE, &told);
        let plan = Plan::default();
        let strategy = Strategy::custom(Panics(before));
        let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
        let text = if before { "before the start" } else { "after the restart" };
        told_of(&told, text);
        assert_eq!((plan.births(), a.is_stopped()), if before { (0, true) } else { (3, false) });
        assert_well(&mut root);
    }
}

#[derive(Debug)]
struct Mute;

impl fmt::Display for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("it has no words")
    }
}

impl core::error::Error for Mute {}

#[test]
fn an_error_whose_text_panics_is_a_failure_like_others() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default();
    let props = plan.props(&Log::default()).supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    run(&mut root, &a, |_, _| Err(Mute.into()));
    assert_eq!((plan.births(), a.is_stopped()), (2, false));
    told_of(&told, "a failure whose `Display` panics");
    assert_well(&mut root);
}

#[test]
fn a_sink_that_panics_hinders_nobody() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let count = Arc::new(core::sync::atomic::AtomicU32::new(0));
    let n = Arc::clone(&count);
    let sink = clockjack_actor::escalation::Custom::new(move |_: FailureInfo| {
        n.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        panic!("a sink")
    });
    let a = root.spawn("a", props(&Log::default()).escalation(sink)).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.spawn_child("x", props(&Log::default()))?.tell(Msg::Fail)?;
        Ok(Next::Stay)
    });
    for _ in 0..3 {
        clock.advance(core::time::Duration::from_millis(100));
        root.run_until_idle();
    }
    assert_eq!(count.load(core::sync::atomic::Ordering::Relaxed), 4);
    assert_well(&mut root);
}

#[test]
fn a_panic_with_something_that_panics_is_survived() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let props = plan.props(&Log::default()).supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    let msg = act(|_, _| std::panic::panic_any(Bomb("thrown")));
    a.tell(msg).unwrap();
    root.run_until_idle();
    assert_eq!((plan.births(), a.is_stopped()), (2, false));
    assert_well(&mut root);
}

/// Panics when it is converted into props.
struct NoProps;

impl IntoProps for NoProps {
    type Actor = ScriptedActor;
    type Factory = fn() -> ScriptedActor;

    fn into_props(self) -> Props<ScriptedActor, fn() -> ScriptedActor> {
        panic!("there are none")
    }
}

#[test]
fn a_panic_while_a_child_is_made_leaves_its_name_free_and_no_end_waits_for_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(Strategy::resume())).unwrap();
    run(&mut root, &a, |_, cx| {
        cx.spawn_child("child", NoProps)?;
        Ok(Next::Stay)
    });
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        cx.spawn_child("child", props(&to))?;
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a started", "a/child started"]);
    run(&mut root, &a, |_, cx| {
        cx.spawn_child("other", NoProps)?;
        Ok(Next::Stay)
    });
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_well(&mut root);
}
