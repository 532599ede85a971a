//! What a probe shows, and its message when an expectation is not met.

#[path = "support/panics.rs"]
mod panics;

use core::time::Duration;

use clockjack_actor::{ActorRef, Next, Props};
use clockjack_testkit::{Fish, ManualTime, TestProbe};
use panics::panic_of;

const SECOND: Duration = Duration::from_secs(1);

/// A probe that has received these messages.
fn told(time: &ManualTime, messages: &[u32]) -> TestProbe<u32> {
    let probe = time.probe().showing();
    for msg in messages {
        assert!(probe.actor_ref().tell(*msg).is_ok());
    }
    probe
}

/// Sends `to` a number each second, starting with one.
fn each_second(time: &ManualTime, to: ActorRef<u32>) {
    let clerk = time.spawn(
        "clerk",
        Props::from_fn(move |cx, n: u32| {
            if n > 0 {
                to.tell(n)?;
            }
            cx.timers().single("next", SECOND, n + 1)?;
            Ok(Next::Stay)
        }),
    );
    assert!(clerk.tell(0).is_ok());
}

#[test]
fn messages_come_in_the_order_in_which_they_were_told() {
    let time = ManualTime::start();
    let probe = told(&time, &[1, 2, 3, 4]);
    assert_eq!(probe.queued(), 4);
    assert_eq!(probe.expect(), 1);
    probe.expect_eq(2);
    assert_eq!(probe.receive_n(2), [3, 4]);
    probe.expect_none();
}

#[test]
fn a_missing_message_names_probe_and_expectation() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    let text =
        "/user/probe-1 at 0ns: expected a message, but no further message came; nothing is queued";
    assert_eq!(panic_of(|| probe.expect()), text);
    let text = "/user/probe-1 at 0ns: \
                expected 7, but no further message came; nothing is queued";
    assert_eq!(panic_of(|| probe.expect_eq(7)), text);
    let text = "/user/probe-1 at 2s: \
                expected a message, but no further message came within 2s; nothing \
                is queued";
    assert_eq!(panic_of(|| probe.expect_within(2 * SECOND)), text);
}

#[test]
fn another_message_is_shown_with_those_behind_it() {
    let time = ManualTime::start();
    let probe = told(&time, &[1, 2, 3]);
    let text = "/user/probe-1 at 0ns: \
                expected 7, got 1; queued: [2, 3]";
    assert_eq!(panic_of(|| probe.expect_eq(7)), text);
}

#[test]
fn a_message_where_none_is_expected_is_shown() {
    let time = ManualTime::start();
    let probe = told(&time, &(0..12).collect::<Vec<_>>());
    let text = "/user/probe-1 at 0ns: \
                expected no message; queued: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] \
                and 2 more";
    assert_eq!(panic_of(|| probe.expect_none()), text);
}

#[test]
fn messages_that_cannot_be_shown_are_counted() {
    struct Opaque;
    let time = ManualTime::start();
    let probe = time.probe_named::<Opaque>("mine");
    assert!(probe.actor_ref().tell(Opaque).is_ok());
    let text = panic_of(|| probe.expect_none());
    assert!(text.starts_with("/user/mine at 0ns: expected no message; 1 of "), "{text}");
    assert!(text.ends_with("Opaque queued"), "{text}");
}

#[test]
fn time_passes_until_the_message_comes_and_no_further() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    each_second(&time, probe.actor_ref());
    assert_eq!(probe.expect_within(10 * SECOND), 1);
    assert_eq!(time.elapsed(), SECOND);
    probe.expect_eq_within(2, SECOND);
    assert_eq!(time.elapsed(), 2 * SECOND);
    assert_eq!(probe.receive_n_within(3, 3 * SECOND), [3, 4, 5]);
    assert_eq!(time.elapsed(), 5 * SECOND);
    let text = "/user/probe-1 at 5.999s: \
                expected a message, but no further message came within 999ms; \
                nothing is queued";
    assert_eq!(panic_of(|| probe.expect_within(Duration::from_millis(999))), text);
}

#[test]
fn nothing_comes_for_a_while() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    each_second(&time, probe.actor_ref());
    probe.expect_none_for(Duration::from_millis(999));
    let text = "/user/probe-1 at 1s: \
                expected no message; queued: [1]";
    assert_eq!(panic_of(|| probe.expect_none_for(5 * SECOND)), text);
}

#[test]
fn too_few_messages_are_told_with_their_number() {
    let time = ManualTime::start();
    let probe = told(&time, &[1, 2]);
    let text = "/user/probe-1 at 0ns: \
                expected 3 messages, got 2, but no further message came; nothing \
                is queued";
    assert_eq!(panic_of(|| probe.receive_n(3)), text);
}

#[test]
fn fishing_keeps_all_up_to_the_one_that_was_sought() {
    let time = ManualTime::start();
    let probe = told(&time, &[1, 2, 3, 4]);
    let until_three = |n: &u32| if *n == 3 { Fish::Complete } else { Fish::Continue };
    assert_eq!(probe.fish(until_three), [1, 2, 3]);
    probe.expect_eq(4);
    let text = "/user/probe-1 at 0ns: \
                expected more than 0 messages to fish, but no further message \
                came; nothing is queued";
    assert_eq!(panic_of(|| probe.fish(until_three)), text);
}

#[test]
fn fishing_waits_as_long_as_it_may() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    each_second(&time, probe.actor_ref());
    let until_three = |n: &u32| if *n == 3 { Fish::Complete } else { Fish::Continue };
    assert_eq!(probe.fish_within(3 * SECOND, until_three), [1, 2, 3]);
    let text = "/user/probe-1 at 5s: \
                expected more than 2 messages to fish, but no further message came \
                within 2s; nothing is queued";
    assert_eq!(panic_of(|| probe.fish_within(2 * SECOND, |_| Fish::Continue)), text);
}

#[test]
fn fishing_fails_with_its_reason() {
    let time = ManualTime::start();
    let probe = told(&time, &[1, 2]);
    let text = "/user/probe-1 at 0ns: \
                expected matching messages to fish: 1 is odd; queued: [2]";
    assert_eq!(panic_of(|| probe.fish(|n| Fish::Fail(format!("{n} is odd")))), text);
}

#[test]
fn the_end_of_an_actor_is_seen_also_afterwards() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    let actor = time.spawn("mortal", Props::from_fn(|_, (): ()| Ok(Next::Stop)));
    let text = "/user/probe-1 at 0ns: \
                expected /user/mortal to stop, but no further message came; \
                nothing is queued";
    assert_eq!(panic_of(|| probe.expect_terminated(&actor)), text);
    assert!(actor.tell(()).is_ok());
    probe.expect_terminated(&actor);
    probe.expect_terminated(&actor);
}

#[test]
fn the_end_of_an_actor_is_waited_for() {
    let time = ManualTime::start();
    let probe = told(&time, &[]);
    let actor = time.spawn(
        "mortal",
        Props::from_fn(|cx, first: bool| {
            cx.timers().single("end", SECOND, false)?;
            Ok(if first { Next::Stay } else { Next::Stop })
        }),
    );
    assert!(actor.tell(true).is_ok());
    probe.expect_terminated_within(&actor, SECOND);
    assert_eq!(time.elapsed(), SECOND);
}
