//! An actor and the strategies that are wrapped around it.

use core::{num::ParseIntError, time::Duration};

use clockjack_actor::{
    ActorPath, ActorRef, ActorSystem, Backoff, Directive, EventKinds, Failure, Next, Props,
    RestartStats, Scope, Strategy, SupervisorStrategy,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, ScriptedActor, act, events, props, run},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn without_a_strategy_it_stops_at_its_first_failure() {
    for fault in [|| Msg::Fail, || Msg::Panic] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let a = root.spawn("a", props(&log)).unwrap();
        a.tell(fault()).unwrap();
        a.tell(Msg::Say("later")).unwrap();
        root.run_until_idle();
        assert_eq!(log.take(), ["a started", "a PostStop"]);
        assert!(a.is_stopped());
    }
}

#[test]
fn the_message_that_fails_is_used_up_and_the_others_are_kept() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(Strategy::restart())).unwrap();
    for msg in [Msg::Say("one"), Msg::Fail, Msg::Born, Msg::Panic, Msg::Born] {
        a.tell(msg).unwrap();
    }
    root.run_until_idle();
    let expected = [
        "a started",
        "a one",
        "a PreRestart",
        "a started",
        "a is 2",
        "a PreRestart",
        "a started",
        "a is 3",
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn a_resume_keeps_the_state() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(Strategy::resume())).unwrap();
    run(&mut root, &a, |me, _| {
        me.state = 7;
        Err(Failure::msg("no reason to lose it"))
    });
    a.tell(Msg::Panic).unwrap();
    run(&mut root, &a, |me, _| {
        me.say(format!("has {}", me.state));
        Ok(Next::Stay)
    });
    assert_eq!(log.take(), ["a started", "a has 7"]);
}

fn parse(text: &'static str) -> Msg {
    act(move |me, _| {
        me.say(format!("got {}", text.parse::<u32>()?));
        Ok(Next::Stay)
    })
}

#[test]
fn strategies_nest_the_innermost_first_each_for_its_errors() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let props = props(&log)
        .supervise(Strategy::resume().only::<ParseIntError>())
        .supervise(Strategy::restart().only::<core::fmt::Error>())
        .supervise(Strategy::stop());
    let a = root.spawn("a", props).unwrap();
    a.tell(parse("x")).unwrap();
    a.tell(act(|_, _| Err(core::fmt::Error.into()))).unwrap();
    a.tell(parse("5")).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart", "a started", "a got 5", "a PostStop"]);
}

#[test]
fn a_strategy_for_the_same_errors_takes_the_place_of_the_earlier_one() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let props = props(&log).supervise(Strategy::stop()).supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart", "a started", "a is 2"]);
}

/// How often an actor is created that fails at these times, in milliseconds, until it has stopped:
/// by its own strategy, and by that of its parent.
fn births(strategy: impl Fn() -> Strategy, failures: &[u64]) -> [u32; 2] {
    [false, true].map(|by_parent| {
        let (mut root, clock) = start(ActorSystem::builder("t"));
        let plan = Plan::default();
        let child = plan.props(&Log::default());
        let a: ActorRef<Msg> = if by_parent {
            let top = props(&Log::default()).supervise_children(Scope::OneForOne, strategy());
            let top = root.spawn("top", top).unwrap();
            run(&mut root, &top, move |_, cx| {
                cx.spawn_child("a", child)?;
                Ok(Next::Stay)
            });
            root.system().lookup("/user/top/a").unwrap()
        } else {
            root.spawn("a", child.supervise(strategy())).unwrap()
        };
        for &millis in failures {
            clock.advance_to(clockjack_time::Tick::new(millis));
            root.run_until_idle();
            if a.tell(Msg::Fail).is_err() {
                break;
            }
            root.run_until_idle();
        }
        assert!(a.is_stopped(), "the last failure exceeds the limit");
        plan.births()
    })
}

#[test]
fn after_n_restarts_within_the_window_the_next_failure_stops_it() {
    let twice = || Strategy::restart().limit(2, SECOND);
    assert_eq!(births(twice, &[500, 600, 1_499]), [3, 3]);
    // A restart leaves the window when it is as old as the window is long.
    assert_eq!(births(twice, &[500, 600, 1_500, 1_600, 2_499]), [5, 5]);
}

/// One that began again with the first restart after its end would grant two more here, and five
/// within a second and a half of a limit of three in ten.
#[test]
fn the_window_of_an_actor_and_that_of_a_supervisor_slide_alike() {
    let twice = || Strategy::restart().limit(2, SECOND);
    assert_eq!(births(twice, &[0, 900, 1_100, 1_200]), [4, 4]);
    let thrice = || Strategy::restart().limit(3, 10 * SECOND);
    let failures = [0, 9_000, 9_500, 10_100, 10_200, 10_500];
    assert_eq!(births(thrice, &failures), [5, 5]);
}

#[test]
fn a_limit_of_none_stops_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let strategy = Strategy::restart().limit(0, SECOND);
    let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert_eq!((plan.births(), a.is_stopped()), (1, true));
}

/// How often an actor is made that fails in each of its first `failures` starts.
fn starts(strategy: Strategy, failures: u32) -> (u32, bool) {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let plan = Plan::default().started(move |me, _| {
        if me.born <= failures { Err(Failure::msg("not yet")) } else { Ok(Next::Stay) }
    });
    let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
    for _ in 0..50 {
        root.run_until_idle();
        clock.advance(SECOND);
    }
    root.run_until_idle();
    (plan.births(), a.is_stopped())
}

#[test]
fn a_first_start_that_fails_is_tried_again_only_with_a_limit_or_a_pause() {
    let limit = |n| Strategy::restart().limit(n, 1_000 * SECOND);
    let backoff = || Backoff::new(SECOND, SECOND);
    assert_eq!(starts(Strategy::restart(), u32::MAX), (1, true));
    assert_eq!(starts(Strategy::resume(), u32::MAX), (1, true));
    assert_eq!(starts(limit(1), u32::MAX), (1, true));
    assert_eq!(starts(limit(2), u32::MAX), (3, true));
    assert_eq!(starts(limit(3), u32::MAX), (4, true));
    assert_eq!(starts(Strategy::restart().backoff(backoff()), 5), (6, false));
    assert_eq!(starts(limit(2).backoff(backoff()), u32::MAX), (3, true));
}

#[test]
fn a_resume_after_the_start_of_a_restart_has_failed_stops_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default()
        .started(|me, _| if me.born == 2 { Err(core::fmt::Error.into()) } else { Ok(Next::Stay) });
    let props = plan
        .props(&log)
        .supervise(Strategy::resume().only::<core::fmt::Error>())
        .supervise(Strategy::restart());
    let a = root.spawn("a", props).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    assert_eq!(log.take(), ["a started", "a PreRestart", "a started"]);
}

#[test]
fn a_value_that_has_not_started_is_told_neither_of_a_restart_nor_of_its_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let plan = Plan::default().started(|_, _| Err(Failure::msg("never")));
    let strategy = Strategy::restart().limit(2, SECOND);
    root.spawn("a", plan.props(&log).supervise(strategy)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a started", "a started"]);
}

#[test]
fn the_hook_before_a_restart_may_fail_which_is_only_told() {
    for panics in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let (log, told) = (Log::default(), Log::default());
        events(&mut root, EventKinds::FAILURE, &told);
        let plan = Plan::default().signal(move |_, cx, _| {
            if panics {
                panic!("in the hook");
            }
            cx.stash(Msg::Stop).ok();
            None
        });
        let a = root.spawn("a", plan.props(&log).supervise(Strategy::restart())).unwrap();
        a.tell(Msg::Fail).unwrap();
        a.tell(Msg::Born).unwrap();
        root.run_until_idle();
        let lines = log.take();
        assert_eq!(lines.last().unwrap(), "a is 2");
        assert!(!lines.iter().any(|line| line.contains("PostStop")), "{lines:?}");
        let told = told.take();
        assert_eq!(told.iter().any(|line| line.contains("in the hook")), panics, "{told:?}");
    }
}

/// Restarts, and records the calls of its hooks.
#[derive(Clone, Default)]
pub(crate) struct Hooked(pub(crate) Log);

impl SupervisorStrategy for Hooked {
    fn decide(&mut self, failure: &Failure, _: &ActorPath, _: &RestartStats, _: u64) -> Directive {
        self.0.add(format!("decides about {failure}"));
        Directive::Restart
    }

    fn before_start(&mut self, path: &ActorPath) {
        self.0.add(format!("{path} is about to be made"));
    }

    fn after_restart(&mut self, path: &ActorPath, stats: &RestartStats) {
        self.0.add(format!("{path} is back, {}", stats.restarts));
    }
}

#[test]
fn the_hooks_of_a_strategy_run_around_starts() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let strategy = Strategy::custom(Hooked(log.clone()));
    let a = root.spawn("a", props(&log).supervise(strategy)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    let expected = [
        "/user/a is about to be made",
        "a started",
        "decides about failed",
        "a PreRestart",
        "/user/a is about to be made",
        "a started",
        "/user/a is back, 1",
    ];
    assert_eq!(log.take(), expected);
}

/// Writes what it is asked about.
struct Asked(Log);

impl SupervisorStrategy for Asked {
    fn decide(
        &mut self,
        failure: &Failure,
        path: &ActorPath,
        stats: &RestartStats,
        now_nanos: u64,
    ) -> Directive {
        let RestartStats { restarts, last_restart_nanos, .. } = stats;
        let text = format!("{path} {failure}, {restarts} before, {last_restart_nanos:?}");
        self.0.add(format!("{text}, at {now_nanos}"));
        Directive::Restart
    }
}

/// By the strategy of the actor itself, and by that of its parent for its children.
#[test]
fn a_decision_gets_path_statistics_and_time_of_the_actor_that_failed() {
    for is_parents in [false, true] {
        let log = Log::default();
        let strategy = Strategy::custom(Asked(log.clone()));
        let builder = ActorSystem::builder("t");
        let (builder, props) = if is_parents {
            let scope = Scope::OneForOne;
            (builder.supervise_users(scope, strategy), props(&Log::default()))
        } else {
            (builder, props(&Log::default()).supervise(strategy))
        };
        let (mut root, clock) = start(builder);
        let other = crate::scripted_actor::props(&Log::default()).supervise(Strategy::restart());
        let [a, other] = [("a", props), ("other", other)].map(|(n, p)| root.spawn(n, p).unwrap());
        for (ms, who) in [(3, &a), (4, &other), (7, &a)] {
            clock.advance_to(clockjack_time::Tick::new(ms));
            who.tell(Msg::Fail).unwrap();
            root.run_until_idle();
        }
        let expected = [
            "/user/a failed, 0 before, None, at 3000000",
            "/user/a failed, 1 before, Some(3000000), at 7000000",
        ];
        assert_eq!(log.take(), expected, "by the parent: {is_parents}");
    }
}

#[test]
fn a_restart_by_an_outer_layer_lets_the_inner_one_forget() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let inner = Strategy::restart().limit(1, 100 * SECOND).only::<ParseIntError>();
    let outer = Strategy::restart().limit(2, 100 * SECOND);
    let props = plan.props(&Log::default()).supervise(inner).supervise(outer);
    let a = root.spawn("a", props).unwrap();
    // One by the inner strategy, one by the outer because the limit of the inner is exceeded, and
    // so on.
    for n in 2..=6 {
        a.tell(parse("x")).unwrap();
        root.run_until_idle();
        assert_eq!((plan.births(), a.is_stopped()), (n, false));
    }
    a.tell(parse("x")).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
}

#[test]
fn an_actor_that_cannot_be_made_again_is_stopped_instead() {
    let (mut root, _) =
        start(ActorSystem::builder("t").supervise_users(Scope::OneForOne, Strategy::restart()));
    let log = Log::default();
    let once = |log: &Log| {
        Props::<ScriptedActor, fn() -> ScriptedActor>::once(Plan::default().scripted_actor(log))
    };
    let a = root.spawn("a", once(&log)).unwrap();
    a.tell(Msg::Fail).unwrap();
    root.run_until_idle();
    assert!(a.is_stopped());
    let refused = root.spawn("b", once(&log).supervise(Strategy::restart())).unwrap_err();
    assert!(refused.is_invalid_props());
}

#[test]
fn restart_counters_are_bounded_however_long_an_actor_fails() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default();
    let strategy = Strategy::restart().limit(u32::MAX, Duration::MAX);
    let a = root.spawn("a", plan.props(&Log::default()).supervise(strategy)).unwrap();
    for _ in 0..200 {
        (0..100).for_each(|_| a.tell(Msg::Fail).unwrap());
        root.run_until_idle();
    }
    assert_eq!((plan.births(), a.is_stopped()), (20_001, false));
}
