//! Mailboxes with priorities.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::{collections::BTreeSet, sync::Arc};
use core::{
    pin::Pin,
    task::{self, Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Ask, Backoff, Context, DeadLetterReason, EventKinds, Failure,
    Mailbox, Next, Overflow, Props, ReplyTo, RootContext, Signal, Strategy, SystemEvent,
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
    assert!(refused.unwrap_err().is_invalid_props());
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
    // Waiting messages have room in the mailbox; kept messages have separate room.
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

#[test]
fn a_request_that_waits_by_its_rank_is_over_when_the_actor_begins_to_stop() {
    enum Order {
        Ask(ReplyTo<u32>),
        Stop,
    }
    type Asked = Arc<Mutex<Option<Ask<u32>>>>;
    struct Boss(Asked, Log);
    struct Child(Asked, Log);
    impl Actor for Boss {
        type Msg = Order;
        fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
            let (asked, log) = (Arc::clone(&self.0), self.1.clone());
            cx.spawn_child("child", move || Child(Arc::clone(&asked), log.clone()))?;
            Ok(Next::Stay)
        }
        fn receive(&mut self, _: &mut Context<'_, Self>, msg: Order) -> Result<Next, Failure> {
            match msg {
                Order::Ask(to) => to.reply(1),
                Order::Stop => return Ok(Next::Stop),
            }
            Ok(Next::Stay)
        }
    }
    impl Actor for Child {
        type Msg = ();
        fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
            Ok(Next::Stay)
        }
        fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
            if let Some(ask) = &mut *self.0.lock().unwrap() {
                let answer = Pin::new(ask).poll(&mut task::Context::from_waker(Waker::noop()));
                let is_over = matches!(answer, Poll::Ready(Err(error)) if error.is_stopped());
                self.1.add(format!("it is over: {is_over}"));
            }
            Ok(Next::Stay)
        }
    }
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (asked, log) = (Asked::default(), Log::default());
    let parts = (Arc::clone(&asked), log.clone());
    let props = Props::new(move || Boss(Arc::clone(&parts.0), parts.1.clone()));
    let rank = |msg: &Order| u8::from(matches!(msg, Order::Stop));
    let boss = root.spawn("boss", props.priority(rank)).unwrap();
    root.run_until_idle();
    *asked.lock().unwrap() = Some(boss.ask(Order::Ask, Duration::from_secs(1)));
    boss.tell(Order::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["it is over: true"], "before the child has stopped");
}
