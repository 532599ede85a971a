//! Mailboxes with priorities.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::collections::BTreeSet;
use core::time::Duration;

use bench::{Log, start};
use clockjack_actor::{
    ActorRef, ActorSystem, Backoff, DeadLetterReason, EventKinds, Failure, Mailbox, Next, Overflow,
    Props, RootContext, SpawnErrorKind, Strategy, SystemEvent,
};

type Msg = (u8, u32);

fn clerk(root: &mut RootContext, log: &Log, mailbox: Mailbox) -> ActorRef<Msg> {
    let log = log.clone();
    let props = Props::from_fn(move |_cx, (priority, number): Msg| {
        log.add(format!("{priority}.{number}"));
        Ok(if number == 99 { Next::Stop } else { Next::Stay })
    });
    root.spawn("clerk", props.mailbox(mailbox).priority(|msg| msg.0)).expect("it fits")
}

#[test]
fn higher_priorities_are_handled_first_and_equal_ones_in_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let clerk = clerk(&mut root, &log, Mailbox::DEFAULT);
    for (number, priority) in [1, 3, 1, 2, 3, 0].into_iter().enumerate() {
        clerk.tell((priority, u32::try_from(number).unwrap())).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["3.1", "3.4", "2.3", "1.0", "1.2", "0.5"]);
    // Idle again: the next one wakes it.
    clerk.tell((7, 7)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["7.7"]);
}

#[test]
fn what_waits_by_its_priority_keeps_its_room() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let clerk = clerk(&mut root, &log, Mailbox::bounded(2));
    clerk.tell((1, 1)).unwrap();
    clerk.tell((2, 2)).unwrap();
    assert!(clerk.tell((9, 3)).unwrap_err().is_full());
    root.run_until_idle();
    clerk.tell((0, 4)).unwrap();
    clerk.tell((0, 5)).unwrap();
    assert!(clerk.tell((0, 6)).unwrap_err().is_full());
    root.run_until_idle();
    assert_eq!(log.take(), ["2.2", "1.1", "0.4", "0.5"]);
}

#[test]
fn what_is_left_at_the_end_is_a_dead_letter() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let lost = Log::default();
    let to = lost.clone();
    let letters = root.spawn(
        "letters",
        Props::from_fn(move |_cx, event: SystemEvent| {
            if let SystemEvent::DeadLetter(letter) = event {
                assert_eq!(letter.reason, DeadLetterReason::Stopped);
                to.add(letter.recipient.to_string());
            }
            Ok(Next::Stay)
        }),
    );
    root.system().events().subscribe(EventKinds::DEAD_LETTER, letters.unwrap());
    let clerk = clerk(&mut root, &log, Mailbox::DEFAULT);
    clerk.tell((1, 1)).unwrap();
    clerk.tell((5, 99)).unwrap();
    clerk.tell((2, 2)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["5.99"]);
    assert_eq!(lost.take(), ["/user/clerk", "/user/clerk"]);
}

#[test]
fn a_function_that_panics_ranks_a_message_lowest() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let props = Props::from_fn(move |_cx, msg: Msg| {
        to.add(msg.1.to_string());
        Ok(Next::Stay)
    });
    let rank = |msg: &Msg| if msg.0 == 0 { panic!("no rank") } else { msg.0 };
    let clerk = root.spawn("clerk", props.priority(rank)).unwrap();
    clerk.tell((0, 1)).unwrap();
    clerk.tell((1, 2)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["2", "1"]);
}

#[test]
fn a_mailbox_that_evicts_has_no_priorities() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::from_fn(|_cx, _: Msg| Ok(Next::Stay));
    let mailbox = Mailbox::bounded(1).overflow(Overflow::DropOldest);
    let refused = root.spawn("clerk", props.mailbox(mailbox).priority(|msg| msg.0));
    assert!(matches!(refused.unwrap_err().kind(), SpawnErrorKind::InvalidProps(_)));
}

#[test]
fn ranked_messages_are_all_handled_whatever_the_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let clerk = clerk(&mut root, &log, Mailbox::DEFAULT);
    for number in 0..500_u32 {
        clerk.tell((u8::try_from(number * 7 % 13).unwrap(), number + 100)).unwrap();
        if number % 50 == 0 {
            root.run_until_idle();
        }
    }
    root.run_until_idle();
    let seen = log.take();
    assert_eq!(seen.len(), 500);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), 500);
}

#[test]
fn what_comes_while_a_restart_is_waited_for_is_ranked_with_what_is_there() {
    const SECOND: Duration = Duration::from_secs(1);
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let props = Props::from_fn(move |_cx, (priority, number): Msg| {
        if priority == 9 {
            return Err(Failure::msg("failed"));
        }
        to.add(format!("{priority}.{number}"));
        Ok(Next::Stay)
    });
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND)).stash(3);
    let props = props.mailbox(Mailbox::bounded(3)).supervise(strategy);
    let clerk = root.spawn("clerk", props.priority(|msg| msg.0)).unwrap();
    for msg in [(1, 1), (9, 0), (5, 2)] {
        clerk.tell(msg).unwrap();
    }
    root.run_until_idle();
    // Those that wait have their room in the mailbox; those that are kept have other room.
    for msg in [(1, 3), (7, 4), (5, 5), (8, 6)] {
        clerk.tell(msg).unwrap();
        root.run_until_idle();
    }
    assert_eq!(root.system().metrics().dead_letters(DeadLetterReason::StashFull), 1);
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["7.4", "5.2", "5.5", "1.1", "1.3"]);
    for number in 1..=3 {
        clerk.tell((0, number)).unwrap();
    }
    assert!(clerk.tell((0, 4)).unwrap_err().is_full(), "its room is what it was");
    root.run_until_idle();
    assert_eq!(log.take(), ["0.1", "0.2", "0.3"]);
}
