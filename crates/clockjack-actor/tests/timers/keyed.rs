//! Timers of an actor, in virtual time.

use crate::bench::Log;
use crate::scripted_actor::{Msg, ScriptedActor, Stage, act, ms, tell};
use clockjack_actor::{
    Actor, ActorSystem, Context, EventKinds, Failure, Key, Mailbox, Next, Props, Signal, Strategy,
    SystemEvent,
};
use clockjack_sched::{CatchUp, Policy, PolicyRegistry, ScheduleErrorKind, SchedulerConfig};
use clockjack_time::Resolution;
use core::time::Duration;

#[test]
fn a_single_timer_comes_once_and_when_it_is_due() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(10), Msg::Say("tick"))?;
        assert!(cx.timers().is_active("k"));
        Ok(Next::Stay)
    });
    stage.hears_in(9, &[]);
    stage.hears_in(100, &["10 tick x1"]);
}

#[test]
fn a_single_timer_is_inactive_before_its_message_is_handled() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        let check = Msg::Do(Box::new(|cx| {
            assert!(!cx.timers().is_active("k"));
            assert!(!cx.timers().cancel("k"));
            cx.timers().single("k", ms(5), Msg::Say("again"))?;
            Ok(Next::Stay)
        }));
        cx.timers().single("k", ms(10), check)?;
        Ok(Next::Stay)
    });
    stage.hears_in(20, &["15 again x1"]);
}

#[test]
fn a_timer_at_an_instant_comes_then_and_at_once_if_that_is_past() {
    let mut stage = Stage::new();
    stage.pass(5);
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        let now = cx.now();
        cx.timers().at("later", now + ms(7), Msg::Say("later"))?;
        let past = clockjack_time::TimerInstant { ticks: 1, resolution_ns: 1_000_000 };
        cx.timers().at("past", past, Msg::Say("past"))?;
        Ok(Next::Stay)
    });
    assert_eq!(stage.heard(), ["5 past x1"]);
    stage.hears_in(10, &["12 later x1"]);
}

#[test]
fn a_key_that_is_set_again_has_only_the_new_timer() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(10), Msg::Say("old"))?;
        cx.timers().single("k", ms(20), Msg::Say("new"))?;
        cx.timers().single(("k", 1), ms(10), Msg::Say("other"))?;
        Ok(Next::Stay)
    });
    stage.hears_in(50, &["10 other x1", "20 new x1"]);
}

/// Two timers are due in the same tick; the handler of the first meets the fire of the second,
/// which waits for its place by then, or as a control message.
fn second_while_first(deed: fn(&mut Context<'_, ScriptedActor>)) -> Vec<String> {
    let heard = second_while_first_with(deed, false);
    assert_eq!(second_while_first_with(deed, true), heard, "with priority");
    heard
}

fn second_while_first_with(
    deed: fn(&mut Context<'_, ScriptedActor>),
    has_priority: bool,
) -> Vec<String> {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, move |cx| {
        let first = Msg::Do(Box::new(move |cx| {
            assert!(cx.timers().is_active("second"));
            deed(cx);
            Ok(Next::Stay)
        }));
        let timers = cx.timers();
        let mut timers = if has_priority { timers.priority() } else { timers };
        timers.single("first", ms(10), first)?;
        timers.single("second", ms(10), Msg::Say("second"))?;
        Ok(Next::Stay)
    });
    stage.pass(30);
    assert_eq!(stage.root.system().scheduler().jobs().metrics().discarded_total, 1);
    stage.heard()
}

#[test]
fn a_timer_that_is_cancelled_does_not_come_though_it_was_under_way() {
    assert!(second_while_first(|cx| assert!(cx.timers().cancel("second"))).is_empty());
    assert!(second_while_first(|cx| cx.timers().cancel_all()).is_empty());
}

#[test]
fn a_timer_that_is_replaced_does_not_come_though_it_was_under_way() {
    let heard = second_while_first(|cx| {
        cx.timers().single("second", ms(5), Msg::Say("replaced")).unwrap();
    });
    assert_eq!(heard, ["15 replaced x1"]);
}

#[test]
fn a_slot_that_another_timer_has_by_now_does_not_take_an_old_fire() {
    let heard = second_while_first(|cx| {
        assert!(cx.timers().cancel("second"));
        cx.timers().single("third", ms(5), Msg::Say("third")).unwrap();
    });
    assert_eq!(heard, ["15 third x1"]);
}

#[test]
fn a_fixed_rate_begins_after_one_period_or_as_it_is_told() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().fixed_rate("a", ms(10), || Msg::Say("a"))?;
        cx.timers().fixed_rate_after("b", ms(3), ms(10), || Msg::Say("b"))?;
        Ok(Next::Stay)
    });
    stage.hears_in(25, &["3 b x1", "10 a x1", "13 b x1", "20 a x1", "23 b x1"]);
}

#[test]
fn a_fixed_delay_begins_after_one_delay_or_as_it_is_told() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().fixed_delay("a", ms(10), || Msg::Say("a"))?;
        cx.timers().fixed_delay_after("b", ms(3), ms(10), || Msg::Say("b"))?;
        Ok(Next::Stay)
    });
    stage.hears_in(25, &["3 b x1", "10 a x1", "13 b x1", "20 a x1", "23 b x1"]);
}

#[test]
fn a_fixed_rate_goes_on_by_its_grid_and_a_fixed_delay_counts_from_the_handlers_return() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().fixed_rate("rate", ms(10), || Msg::Work("rate", 4))?;
        Ok(Next::Stay)
    });
    stage.hears_in(26, &["10 rate x1", "20 rate x1", "30 rate x1"]);
    stage.act(&a, |cx| {
        assert!(cx.timers().cancel("rate"));
        cx.timers().fixed_delay("delay", ms(10), || Msg::Work("delay", 4))?;
        Ok(Next::Stay)
    });
    stage.hears_in(35, &["48 delay x1", "62 delay x1", "76 delay x1"]);
}

#[test]
fn one_fire_of_a_timer_is_under_way_and_what_is_missed_is_told() {
    for (catch_up, expected) in [
        (CatchUp::Individually, vec!["35 tick x1", "35 tick x1", "35 tick x1", "40 tick x1"]),
        (CatchUp::Folded, vec!["35 tick x3", "40 tick x1"]),
    ] {
        let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(catch_up));
        let mut stage = Stage::with(ActorSystem::builder("t").policies(policies));
        let a = stage.scripted_actor();
        stage.act(&a, |cx| {
            cx.timers().fixed_rate("k", ms(10), || Msg::Say("tick"))?;
            Ok(Next::Stay)
        });
        stage.clock.advance(ms(35));
        stage.root.run_until_idle();
        stage.pass(5);
        assert_eq!(stage.heard(), expected);
    }
}

#[test]
fn a_periodic_timer_is_cancelled_or_replaced_by_its_own_handler() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        let mut n = 0;
        cx.timers().fixed_rate("k", ms(10), move || {
            n += 1;
            if n < 3 {
                return Msg::Say("tick");
            }
            Msg::Do(Box::new(|cx| {
                assert!(cx.timers().is_active("k") && cx.timers().cancel("k"));
                cx.timers().fixed_delay("d", ms(5), || {
                    Msg::Do(Box::new(|cx| {
                        cx.timers().single("d", ms(1), Msg::Say("last"))?;
                        Ok(Next::Stay)
                    }))
                })?;
                Ok(Next::Stay)
            }))
        })?;
        Ok(Next::Stay)
    });
    stage.hears_in(100, &["10 tick x1", "20 tick x1", "36 last x1"]);
}

#[test]
fn a_full_mailbox_loses_no_timer() {
    let mut stage = Stage::new();
    let props = stage.props(|cx| {
        cx.timers().single("k", ms(1), Msg::Say("tick"))?;
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.mailbox(Mailbox::bounded(1))).unwrap();
    stage.root.run_until_idle();
    tell(&a, Msg::Say("user"));
    assert!(a.tell(Msg::Say("more")).is_err());
    stage.hears_in(1, &["1 user", "1 tick x1"]);
}

#[test]
fn a_refused_timer_comes_back_and_leaves_the_old_one_as_it_was() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(10), Msg::Say("old"))?;
        let refused = cx.timers().single("k", Duration::MAX, Msg::Say("new")).unwrap_err();
        assert_eq!(refused.kind(), ScheduleErrorKind::InvalidDelay);
        assert!(matches!(refused.into_inner(), Msg::Say("new")));
        let refused = cx.timers().fixed_rate("k", Duration::ZERO, || Msg::Say("never"));
        assert_eq!(refused.unwrap_err().kind(), ScheduleErrorKind::InvalidDelay);
        assert!(cx.timers().is_active("k") && !cx.timers().is_active("other"));
        assert!(cx.timers().fixed_delay("other", Duration::ZERO, || Msg::Say("never")).is_err());
        assert!(!cx.timers().is_active("other"));
        Ok(Next::Stay)
    });
    stage.hears_in(20, &["10 old x1"]);
}

#[test]
fn a_timer_that_the_quota_has_no_room_for_comes_back() {
    let config = SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT };
    let mut stage = Stage::with(ActorSystem::builder("t").scheduler(config));
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(10), Msg::Say("one"))?;
        let refused = cx.timers().single("l", ms(10), Msg::Say("two")).unwrap_err();
        assert_eq!(refused.kind(), ScheduleErrorKind::QuotaExceeded);
        assert!(matches!(refused.into_inner(), Msg::Say("two")));
        Ok(Next::Stay)
    });
    stage.hears_in(20, &["10 one x1"]);
}

#[test]
fn a_timer_of_a_year_comes_and_one_beyond_the_longest_delay_is_refused() {
    let mut stage = Stage::ticking(ActorSystem::builder("t"), Resolution::MILLI);
    let a = stage.scripted_actor();
    let year = Duration::from_secs(365 * 24 * 3600);
    stage.act(&a, move |cx| {
        cx.timers().single("k", year, Msg::Say("at last"))?;
        cx.timers().single("longest", ms(1 << 48), Msg::Say("never here"))?;
        assert!(cx.timers().single("k", ms((1 << 48) + 1), Msg::Say("never")).is_err());
        Ok(Next::Stay)
    });
    stage.clock.advance(year - ms(1));
    stage.root.run_until_idle();
    assert!(stage.heard().is_empty());
    stage.hears_in(1, &["31536000000 at last x1"]);
}

#[test]
fn a_restart_cancels_all_timers_before_the_hook_and_old_fires_never_surface() {
    for fault in [|| Msg::Fail, || Msg::Panic] {
        let mut stage = Stage::new();
        let props = stage.props_with(
            |_| Ok(Next::Stay),
            |cx, signal| {
                if matches!(signal, Signal::PreRestart) {
                    assert!(!cx.timers().is_active("k") && !cx.timers().is_active("every"));
                    cx.timers().single("hook", ms(1), Msg::Say("of the hook")).unwrap();
                }
                None
            },
        );
        let a = stage.root.spawn("a", props.supervise(Strategy::restart())).unwrap();
        stage.act(&a, move |cx| {
            // Due in the same tick, and so in the system queue when the actor fails.
            cx.timers().single("fails", ms(10), fault())?;
            cx.timers().single("k", ms(10), Msg::Say("old"))?;
            cx.timers().fixed_rate("every", ms(10), || Msg::Say("old"))?;
            Ok(Next::Stay)
        });
        stage.hears_in(50, &["10 PreRestart"]);
        stage.act(&a, |cx| {
            cx.timers().single("k", ms(1), Msg::Say("new"))?;
            Ok(Next::Stay)
        });
        stage.hears_in(1, &["51 new x1"]);
    }
}

#[test]
fn a_failed_start_takes_its_timers_along() {
    let mut stage = Stage::new();
    let starts = core::sync::atomic::AtomicU32::new(0);
    let props = stage.props(move |cx| {
        if starts.fetch_add(1, core::sync::atomic::Ordering::Relaxed) == 0 {
            cx.timers().fixed_rate("k", ms(10), || Msg::Say("old"))?;
            return Err(Failure::msg("failed"));
        }
        Ok(Next::Stay)
    });
    let strategy = Strategy::restart().limit(3, Duration::from_secs(10));
    let a = stage.root.spawn("a", props.supervise(strategy)).unwrap();
    stage.root.run_until_idle();
    stage.pass(50);
    assert!(stage.heard().is_empty() && !a.is_stopped());
}

#[test]
fn a_stop_cancels_all_timers_before_the_hook_and_makes_no_dead_letters() {
    let mut stage = Stage::new();
    let props = stage.props_with(
        |_| Ok(Next::Stay),
        |cx, signal| {
            if matches!(signal, Signal::PostStop) {
                assert!(!cx.timers().is_active("k") && !cx.timers().is_active("every"));
                cx.timers().single("hook", ms(1), Msg::Say("of the hook")).unwrap();
            }
            None
        },
    );
    let a = stage.root.spawn("a", props).unwrap();
    stage.act(&a, |cx| {
        cx.timers().single("stops", ms(10), Msg::Stop)?;
        cx.timers().single("k", ms(10), Msg::Say("old"))?;
        cx.timers().fixed_rate("every", ms(10), || Msg::Say("old"))?;
        Ok(Next::Stay)
    });
    stage.pass(10);
    let metrics = stage.root.system().scheduler().jobs().metrics();
    assert_eq!(metrics.active_total, 0, "{metrics:?}");
    stage.hears_in(40, &["10 PostStop"]);
    assert!(stage.dead.take().is_empty());
}

#[test]
fn timers_go_on_after_a_resume_and_a_panic_completes_its_run() {
    let mut stage = Stage::new();
    let props = stage.props(|_| Ok(Next::Stay)).supervise(Strategy::resume());
    let a = stage.root.spawn("a", props).unwrap();
    stage.act(&a, |cx| {
        let mut n = 0;
        cx.timers().fixed_delay("k", ms(10), move || {
            n += 1;
            match n {
                1 => Msg::Panic,
                2 => Msg::Fail,
                3 => panic!("in the closure"),
                _ => Msg::Say("tick"),
            }
        })?;
        Ok(Next::Stay)
    });
    stage.hears_in(50, &["40 tick x1", "50 tick x1"]);
}

/// Does with its timers something else in each of its states.
enum Machine {
    Closed(Log),
    Open(Log),
}

#[derive(Clone, Copy)]
enum Step {
    Open,
    Tick(&'static str),
}

impl Actor for Machine {
    type Msg = Step;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().single("kept", ms(10), Step::Tick("kept"))?;
        cx.timers().single("replaced", ms(10), Step::Tick("replaced"))?;
        cx.timers().single("cancelled", ms(10), Step::Tick("cancelled"))?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, step: Step) -> Result<Next, Failure> {
        match (&*self, step) {
            (Self::Closed(log), Step::Open) => {
                *self = Self::Open(log.clone());
                cx.timers().single("replaced", ms(20), Step::Tick("replacing"))?;
                assert!(cx.timers().cancel("cancelled"));
            }
            (Self::Open(log), Step::Tick(text)) => log.add(format!("open {text}")),
            (Self::Closed(log), Step::Tick(text)) => log.add(format!("closed {text}")),
            (Self::Open(_), Step::Open) => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

#[test]
fn timers_are_of_the_actor_whatever_it_has_become() {
    let mut stage = Stage::new();
    let log = stage.log.clone();
    let machine = stage.root.spawn("machine", move || Machine::Closed(log.clone())).unwrap();
    stage.root.run_until_idle();
    machine.tell(Step::Open).unwrap();
    stage.root.run_until_idle();
    stage.hears_in(50, &["open kept", "open replacing"]);
}

#[test]
fn a_timer_message_that_fails_is_told_of_as_the_message_that_it_is() {
    let mut stage = Stage::new();
    let log = stage.log.clone();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Failure(info) = event {
            log.add(info.message_type.unwrap_or("no message"));
        }
        Ok(Next::Stay)
    });
    let listener = stage.root.spawn("failures", listener).unwrap();
    stage.root.system().events().subscribe(EventKinds::FAILURE, listener);
    let props = stage.props_with(|_| Ok(Next::Stay), |_, _| Some(Next::Stay));
    let a = stage.root.spawn("a", props.supervise(Strategy::restart())).unwrap();
    for fault in [|| Msg::Fail, || Msg::Panic] {
        stage.act(&a, move |cx| {
            cx.timers().single("k", ms(1), fault())?;
            Ok(Next::Stay)
        });
        stage.pass(1);
        assert_eq!(stage.heard(), [core::any::type_name::<Msg>()]);
    }
}

#[test]
fn a_stashed_timer_message_is_the_message_itself_with_its_batch() {
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(CatchUp::Folded));
    let mut stage = Stage::with(ActorSystem::builder("t").policies(policies));
    let props = stage.props(|_| Ok(Next::Stay)).stash(10);
    let a = stage.root.spawn("a", props).unwrap();
    stage.act(&a, |cx| {
        cx.timers().fixed_rate("k", ms(10), || {
            Msg::Do(Box::new(|cx| {
                cx.timers().cancel("k");
                cx.stash(Msg::Say("stashed")).map_err(|_| Failure::msg("full"))?;
                Ok(Next::Stay)
            }))
        })?;
        Ok(Next::Stay)
    });
    stage.clock.advance(ms(35));
    stage.root.run_until_idle();
    tell(&a, Msg::Say("user"));
    act(&a, |cx| {
        assert!(cx.scheduler_batch().is_none());
        cx.unstash_all();
        Ok(Next::Stay)
    });
    stage.tell(&a, Msg::Say("later"));
    assert_eq!(stage.heard(), ["35 user", "35 stashed x3", "35 later"]);
}

#[test]
fn the_shutdown_of_the_scheduler_ends_timers() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().fixed_rate("k", ms(10), || Msg::Say("tick"))?;
        Ok(Next::Stay)
    });
    stage.pass(10);
    stage.root.system().scheduler().jobs().shutdown();
    stage.act(&a, |cx| {
        assert!(!cx.timers().is_active("k") && !cx.timers().cancel("k"));
        let refused = cx.timers().single("k", ms(1), Msg::Say("late")).unwrap_err();
        assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
        Ok(Next::Stay)
    });
    stage.hears_in(30, &["10 tick x1"]);
}

#[test]
fn many_timers_of_one_actor_come_in_order() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        for n in (1..=500_u64).rev() {
            cx.timers().single(n, ms(n), Msg::Say("tick"))?;
        }
        for n in (2..=500_u64).step_by(2) {
            assert!(cx.timers().cancel(n));
        }
        Ok(Next::Stay)
    });
    stage.pass(600);
    let expected: Vec<_> = (1..=500).step_by(2).map(|n| format!("{n} tick x1")).collect();
    assert_eq!(stage.heard(), expected);
}

#[test]
fn keys_are_texts_numbers_or_both() {
    assert_eq!(Key::from("a"), "a".into());
    assert_ne!(Key::from("a"), ("a", 0).into());
    assert_eq!(
        format!("{} {} {:?}", Key::from("a"), Key::from(1), Key::from(("b", 2))),
        "a 1 Key(b 2)"
    );
}
