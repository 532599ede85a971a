//! Timers take their place among the user messages when they fire.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Overflow, Props, Signal,
    Strategy,
};
use proptest::{
    prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest},
    strategy::{Just, Strategy as Generator},
};

use crate::{
    bench,
    scripted_actor::{Msg, Stage, act, ms, tell},
};

fn mailboxes() -> [Mailbox; 5] {
    [
        Mailbox::bounded(4),
        Mailbox::unbounded(),
        Mailbox::bounded(4).overflow(Overflow::DropNewest),
        Mailbox::bounded(4).overflow(Overflow::DropOldest),
        Mailbox::bounded(4).overflow(Overflow::StopActor),
    ]
}

/// An actor with a timer of so many milliseconds, in this mailbox.
fn timed(stage: &mut Stage, mailbox: Mailbox, after: u64) -> ActorRef<Msg> {
    let props = stage.props(move |cx| {
        cx.timers().single("k", ms(after), Msg::Say("timer"))?;
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.mailbox(mailbox)).unwrap();
    stage.root.run_until_idle();
    a
}

#[test]
fn what_was_told_before_the_timer_is_handled_before_it() {
    for mailbox in mailboxes() {
        let mut stage = Stage::new();
        let a = timed(&mut stage, mailbox, 5);
        tell(&a, Msg::Work("slow", 20));
        tell(&a, Msg::Say("alive"));
        stage.root.run_until_idle();
        assert_eq!(stage.heard(), ["0 slow", "20 alive", "20 timer x1"]);
        // It is idle, and the next timer comes at once.
        stage.act(&a, |cx| {
            cx.timers().single("k", ms(5), Msg::Say("again"))?;
            Ok(Next::Stay)
        });
        stage.hears_in(5, &["25 again x1"]);
    }
}

#[test]
fn what_is_told_after_the_timer_has_fired_is_handled_after_it() {
    for mailbox in mailboxes() {
        let mut stage = Stage::new();
        let a = timed(&mut stage, mailbox, 5);
        // Jobs of one tick are due in the order in which they were scheduled.
        let jobs = stage.root.system().scheduler();
        jobs.schedule_once(ms(5), &a, Msg::Say("later")).unwrap();
        tell(&a, Msg::Say("before"));
        stage.clock.advance(ms(5));
        tell(&a, Msg::Say("before too"));
        stage.root.run_until_idle();
        let expected = ["5 before", "5 before too", "5 timer x1", "5 later x1"];
        assert_eq!(stage.heard(), expected);
    }
}

#[test]
fn a_timer_with_priority_goes_before_what_waits() {
    for mailbox in mailboxes() {
        let mut stage = Stage::new();
        let a = timed(&mut stage, mailbox, 5);
        stage.act(&a, |cx| {
            let mut timers = cx.timers().priority();
            timers.single("urgent", ms(5), Msg::Say("urgent"))?;
            timers.fixed_rate("beat", ms(5), || Msg::Say("beat"))?;
            Ok(Next::Stay)
        });
        tell(&a, Msg::Say("waits"));
        stage.clock.advance(ms(5));
        stage.root.run_until_idle();
        assert_eq!(stage.heard(), ["5 urgent x1", "5 beat x1", "5 waits", "5 timer x1"]);
    }
}

/// A key that is set again without priority has none.
#[test]
fn priority_is_of_the_timer_and_not_of_its_key() {
    let mut stage = Stage::new();
    let a = timed(&mut stage, Mailbox::DEFAULT, 5);
    stage.act(&a, |cx| {
        cx.timers().priority().single("k", ms(9), Msg::Say("never"))?;
        cx.timers().single("k", ms(5), Msg::Say("timer"))?;
        Ok(Next::Stay)
    });
    tell(&a, Msg::Say("waits"));
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["5 waits", "5 timer x1"]);
}

/// What was told before the timer is handled while the timer waits behind it, and cancels it.
#[test]
fn a_timer_that_waits_for_its_place_can_be_cancelled_and_replaced() {
    type Deed = fn(&mut Context<'_, crate::scripted_actor::ScriptedActor>);
    let deeds: [(Deed, &[&str]); 3] = [
        (|cx| assert!(cx.timers().cancel("k")), &["5 waits"]),
        (|cx| cx.timers().cancel_all(), &["5 waits"]),
        (
            |cx| cx.timers().single("k", ms(3), Msg::Say("new")).map_err(|_| "refused").unwrap(),
            &["5 waits", "8 new x1"],
        ),
    ];
    for (deed, expected) in deeds {
        for mailbox in mailboxes() {
            let mut stage = Stage::new();
            let a = timed(&mut stage, mailbox, 5);
            // The first message of the poll finds the timer in its place, behind the second.
            act(&a, move |cx| {
                assert!(cx.timers().is_active("k"));
                deed(cx);
                Ok(Next::Stay)
            });
            tell(&a, Msg::Say("waits"));
            stage.clock.advance(ms(5));
            stage.hears_in(0, &[]);
            stage.root.run_until_idle();
            stage.pass(10);
            assert_eq!(stage.heard(), expected);
            let metrics = stage.root.system().scheduler().jobs().metrics();
            assert_eq!(metrics.discarded_total, 1, "it is counted");
        }
    }
}

#[test]
fn an_eviction_brings_the_timer_nearer_and_later_messages_stay_behind_it() {
    let mut stage = Stage::new();
    let a = timed(&mut stage, Mailbox::bounded(2).overflow(Overflow::DropOldest), 5);
    let jobs = stage.root.system().scheduler();
    for text in ["3", "4", "5"] {
        jobs.schedule_once(ms(5), &a, Msg::Say(text)).unwrap();
    }
    tell(&a, Msg::Say("1"));
    tell(&a, Msg::Say("2"));
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["5 timer x1", "5 4 x1", "5 5 x1"]);
}

#[test]
fn what_is_unstashed_goes_before_a_timer_that_waits() {
    let mut stage = Stage::new();
    let props = stage.props(move |cx| {
        cx.timers().single("k", ms(5), Msg::Say("timer"))?;
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.stash(4)).unwrap();
    stage.act(&a, |cx| {
        assert!(cx.stash(Msg::Say("stashed")).is_ok());
        Ok(Next::Stay)
    });
    act(&a, |cx| {
        cx.unstash_all();
        Ok(Next::Stay)
    });
    tell(&a, Msg::Say("waits"));
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["5 stashed", "5 waits", "5 timer x1"]);
}

#[test]
fn a_wait_holds_timers_back_except_those_with_priority() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(5), Msg::Say("timer"))?;
        cx.timers().priority().single("p", ms(6), Msg::Say("urgent"))?;
        let delay = cx.system().scheduler().jobs().delays().delay(ms(10));
        cx.wait(delay, |_, cx, _| {
            cx.self_ref().tell(Msg::Say("after")).map_err(|_| Failure::msg("refused"))?;
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    });
    stage.hears_in(20, &["6 urgent x1", "10 timer x1", "10 after"]);
}

#[test]
fn a_timer_that_waits_survives_a_resume_but_not_a_restart() {
    for (strategy, is_kept) in [(Strategy::resume(), true), (Strategy::restart(), false)] {
        let mut stage = Stage::new();
        let props = stage.props(|_| Ok(Next::Stay)).supervise(strategy);
        let a = stage.root.spawn("a", props).unwrap();
        stage.act(&a, |cx| {
            cx.timers().single("k", ms(5), Msg::Say("timer"))?;
            Ok(Next::Stay)
        });
        tell(&a, Msg::Fail);
        tell(&a, Msg::Say("waits"));
        stage.clock.advance(ms(5));
        stage.root.run_until_idle();
        let expected: &[&str] = match is_kept {
            true => &["5 waits", "5 timer x1"],
            false => &["5 PreRestart", "5 waits"],
        };
        assert_eq!(stage.heard(), expected);
    }
}

/// By priority: `Work` before `Say`, all else last.
fn priority(msg: &Msg) -> u8 {
    match msg {
        Msg::Work(..) => 2,
        Msg::Say(_) => 1,
        _ => 0,
    }
}

#[test]
fn in_a_mailbox_with_priorities_a_timer_has_that_of_its_message() {
    let mut stage = Stage::new();
    let props = stage.props(|cx| {
        cx.timers().single("low", ms(5), Msg::Quiet("low timer"))?;
        cx.timers().single("middle", ms(5), Msg::Say("middle timer"))?;
        cx.timers().fixed_rate("high", ms(5), || Msg::Work("high timer", 0))?;
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.priority(priority)).unwrap();
    stage.root.run_until_idle();
    stage.root.system().scheduler().schedule_once(ms(5), &a, Msg::Say("later")).unwrap();
    for msg in [Msg::Quiet("low"), Msg::Say("middle"), Msg::Work("high", 0)] {
        tell(&a, msg);
    }
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    let expected = [
        "5 high",
        "5 high timer x1",
        "5 middle",
        "5 middle timer x1",
        "5 later x1",
        "5 low",
        "5 low timer x1",
    ];
    assert_eq!(stage.heard(), expected);
    stage.hears_in(5, &["10 high timer x1"]);
}

#[test]
fn a_ranked_timer_can_be_cancelled_and_its_rate_goes_on_only_if_not() {
    let mut stage = Stage::new();
    let props = stage.props(|cx| {
        cx.timers().single("low", ms(5), Msg::Quiet("low timer"))?;
        cx.timers().fixed_rate("rate", ms(5), || Msg::Quiet("rate"))?;
        cx.timers().fixed_rate("kept", ms(5), || Msg::Quiet("kept"))?;
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.priority(|msg| u8::from(!matches!(msg, Msg::Quiet(_)))));
    let a = a.unwrap();
    stage.root.run_until_idle();
    act(&a, |cx| {
        assert!(cx.timers().cancel("low") && cx.timers().cancel("rate"));
        Ok(Next::Stay)
    });
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    stage.pass(5);
    assert_eq!(stage.heard(), ["5 kept x1", "10 kept x1"]);
    stage.tell(&a, Msg::Stop);
    assert!(stage.dead.take().is_empty());
}

#[test]
fn a_receive_timeout_does_not_overtake_messages_that_it_ignores() {
    let mut stage = Stage::new();
    let props = stage.props(|cx| {
        cx.set_receive_timeout(ms(10));
        Ok(Next::Stay)
    });
    let is_ignored = |msg: &Msg| matches!(msg, Msg::Quiet(_));
    let a = stage.root.spawn("a", props.receive_timeout_ignores(is_ignored)).unwrap();
    stage.root.run_until_idle();
    // Ignored messages only: it comes behind the last of them.
    tell(&a, Msg::Quiet("1"));
    tell(&a, Msg::Quiet("2"));
    stage.clock.advance(ms(10));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["10 1", "10 2", "10 ReceiveTimeout"]);
    // The last one is not ignored: there was no silence.
    tell(&a, Msg::Quiet("3"));
    tell(&a, Msg::Say("4"));
    stage.clock.advance(ms(10));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["20 3", "20 4"]);
    stage.hears_in(10, &["30 ReceiveTimeout"]);
}

#[test]
fn a_receive_timeout_does_not_overtake_a_timer_that_has_fired() {
    let mut stage = Stage::new();
    let a = timed(&mut stage, Mailbox::DEFAULT, 10);
    stage.act(&a, |cx| {
        cx.set_receive_timeout(ms(10));
        Ok(Next::Stay)
    });
    stage.hears_in(19, &["10 timer x1"]);
    stage.hears_in(1, &["20 ReceiveTimeout"]);
}

#[test]
fn a_receive_timeout_fires_in_a_wait_unless_a_message_waits() {
    for waits in [false, true] {
        let mut stage = Stage::new();
        let a = stage.scripted_actor();
        stage.act(&a, |cx| {
            cx.set_receive_timeout(ms(10));
            let delay = cx.system().scheduler().jobs().delays().delay(ms(15));
            cx.wait(delay, |_, _, _| Ok(Next::Stay))?;
            Ok(Next::Stay)
        });
        if waits {
            tell(&a, Msg::Say("waits"));
            stage.hears_in(24, &["15 waits"]);
        } else {
            stage.hears_in(14, &["10 ReceiveTimeout"]);
        }
    }
}

/// The actor of the property: notes what it handles.
struct Clerk {
    clock: Arc<clockjack_time::ManualClock>,
    log: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Told(u32),
    Cancel(u32),
    Before(u32),
    Timer(u32),
    After(u32),
}

#[derive(Clone, Debug)]
enum Order {
    Note(Entry),
    /// A timer, and a scheduled message on either side of it.
    Arm(u32, u64, bool),
    Slow(u64),
}

impl Actor for Clerk {
    type Msg = Order;

    fn receive(&mut self, cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {
        match order {
            Order::Note(entry) => {
                if let Entry::Cancel(k) = entry {
                    cx.timers().cancel(u64::from(k));
                }
                self.log.lock().unwrap().push(entry);
            }
            Order::Arm(k, ticks, is_periodic) => {
                let me = cx.self_ref();
                let (key, timer) = (u64::from(k), Order::Note(Entry::Timer(k)));
                drop(cx.schedule_once(ms(ticks), &me, Order::Note(Entry::Before(k)))?);
                if is_periodic {
                    let hour = Duration::from_secs(3_600);
                    cx.timers().fixed_delay_after(key, ms(ticks), hour, move || timer.clone())?;
                } else {
                    cx.timers().single(key, ms(ticks), timer)?;
                }
                drop(cx.schedule_once(ms(ticks), &me, Order::Note(Entry::After(k)))?);
            }
            Order::Slow(n) => _ = self.clock.advance(ms(n)),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, _signal: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Tell,
    Arm(u64, bool),
    Cancel,
    Slow(u64),
    Pass(u64),
    Run,
}

fn deeds() -> impl Generator<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => Just(Deed::Tell),
        3 => (1..20_u64, any::<bool>()).prop_map(|(ticks, periodic)| Deed::Arm(ticks, periodic)),
        1 => Just(Deed::Cancel),
        2 => (1..12_u64).prop_map(Deed::Slow),
        2 => (0..8_u64).prop_map(Deed::Pass),
        2 => Just(Deed::Run),
    ];
    prop::collection::vec(deed, 1..60)
}

/// What is handled, for a mailbox of this kind.
fn play(deeds: &[Deed], mailbox: Mailbox, has_priorities: bool) -> Vec<Entry> {
    let (mut root, clock) = bench::start(ActorSystem::builder("t"));
    let log = Arc::new(Mutex::new(Vec::new()));
    let (of_clerk, time) = (Arc::clone(&log), Arc::clone(&clock));
    let clerk = move || Clerk { clock: Arc::clone(&time), log: Arc::clone(&of_clerk) };
    let mut props = Props::new(clerk).mailbox(mailbox);
    if has_priorities {
        // All the same: the order is that of arrival.
        props = props.priority(|_| 7);
    }
    let clerk = root.spawn("clerk", props).unwrap();
    let (mut n_told, mut n_timers) = (0, 0);
    for deed in deeds {
        // The mailbox may be full: then it is as if nothing was done.
        match *deed {
            Deed::Tell => {
                n_told += 1;
                _ = clerk.tell(Order::Note(Entry::Told(n_told)));
            }
            Deed::Arm(ticks, is_periodic) => {
                n_timers += 1;
                _ = clerk.tell(Order::Arm(n_timers, ticks, is_periodic));
            }
            Deed::Cancel => _ = clerk.tell(Order::Note(Entry::Cancel(n_timers))),
            Deed::Slow(n) => _ = clerk.tell(Order::Slow(n)),
            Deed::Pass(n) => _ = clock.advance(ms(n)),
            Deed::Run => _ = root.run_until_idle(),
        }
    }
    for _ in 0..100 {
        root.run_until_idle();
        clock.advance(ms(1));
    }
    root.run_until_idle();
    let log = log.lock().unwrap();
    log.clone()
}

fn numbers(seen: &[Entry], number: impl Fn(Entry) -> Option<u32>) -> Vec<u32> {
    seen.iter().filter_map(|one| number(*one)).collect()
}

proptest! {
    /// Messages that were sent immediately before and after a timer has fired are its neighbours in
    /// what the actor handles, and messages keep their order.
    #[test]
    fn timers_and_messages_are_first_in_first_out(
        deeds in deeds(),
        kind in 0..6_usize,
        capacity in 1..6_usize,
    ) {
        let mailbox = match kind {
            0 | 1 => Mailbox::unbounded(),
            2 | 3 => Mailbox::bounded(capacity),
            4 => Mailbox::bounded(capacity).overflow(Overflow::DropNewest),
            _ => Mailbox::bounded(capacity).overflow(Overflow::DropOldest),
        };
        let seen = play(&deeds, mailbox, kind % 2 == 1 && kind < 4);
        let told = numbers(&seen, |one| if let Entry::Told(n) = one { Some(n) } else { None });
        prop_assert!(told.is_sorted(), "{seen:?}");
        let place = |entry| seen.iter().position(|one| *one == entry);
        for k in numbers(&seen, |one| if let Entry::Timer(k) = one { Some(k) } else { None }) {
            let timer = place(Entry::Timer(k)).unwrap();
            prop_assert_eq!(seen.iter().filter(|one| **one == Entry::Timer(k)).count(), 1);
            if let Some(before) = place(Entry::Before(k)) {
                prop_assert_eq!(before + 1, timer, "{:?}", seen);
            }
            if let Some(after) = place(Entry::After(k)) {
                prop_assert_eq!(timer + 1, after, "{:?}", seen);
            }
            let cancel = place(Entry::Cancel(k));
            prop_assert!(cancel.is_none_or(|cancel| cancel > timer), "{seen:?}");
        }
        if kind < 2 {
            // Nothing is lost: a timer that is missing was cancelled.
            for k in numbers(&seen, |one| if let Entry::After(k) = one { Some(k) } else { None }) {
                prop_assert!(place(Entry::Timer(k)).is_some() || place(Entry::Cancel(k)).is_some());
            }
        }
    }
}
