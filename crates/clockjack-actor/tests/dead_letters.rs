//! Messages that no actor handles.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::rc::Rc;

use bench::{Log, start};
use clockjack_actor::{
    ActorSystem, DeadLetterReason, EventKinds, Mailbox, Next, Overflow, Props, RootContext,
    SystemEvent,
};

fn listen(root: &mut RootContext, kinds: EventKinds) -> Log {
    let log = Log::default();
    let to = log.clone();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        match event {
            SystemEvent::DeadLetter(letter) => {
                to.add(format!("{} {} {:?}", letter.recipient, letter.message_type, letter.reason))
            }
            SystemEvent::SuppressedDeadLetter(letter) => {
                to.add(format!("suppressed {} {:?}", letter.message_type, letter.reason));
            }
            other => to.add(format!("{other:?}")),
        }
        Ok(Next::Stay)
    });
    let listener = root.spawn("listener", listener).unwrap();
    root.system().events().subscribe(kinds, listener);
    log
}

#[test]
fn what_is_sent_to_the_dead_letters_is_told_as_one() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = listen(&mut root, EventKinds::DEAD_LETTER);
    let dead = root.system().dead_letters::<u32>();
    assert!(!dead.is_stopped());
    dead.tell(7).unwrap();
    root.system().dead_letters::<&'static str>().tell("text").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/$dead-letters u32 Addressed", "/$dead-letters &str Addressed"]);
    assert_eq!(root.system().metrics().dead_letters(DeadLetterReason::Addressed), 2);
}

#[test]
fn a_message_to_the_dead_letters_is_dropped_and_need_not_be_send() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let message = Rc::new(1);
    root.system().dead_letters::<Rc<i32>>().tell(Rc::clone(&message)).unwrap();
    assert_eq!(Rc::strong_count(&message), 1);
    root.run_until_idle();
}

#[test]
fn the_address_outlives_the_system_and_refuses() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let system = root.system().clone();
    drop(system.shutdown());
    root.run_until_idle();
    let dead = system.dead_letters::<u32>();
    assert!(dead.is_stopped());
    assert!(dead.tell(1).unwrap_err().is_stopped());
    drop(root);
    assert!(system.dead_letters::<u32>().is_stopped());
}

struct Tick;

#[test]
fn dead_letters_of_a_marked_type_are_told_only_to_who_wants_those() {
    let builder = || ActorSystem::builder("t").suppress_dead_letters_of::<Tick>();
    for (kinds, expected) in [
        (EventKinds::DEAD_LETTER, vec!["/user/a u8 Stopped"]),
        (
            EventKinds::ALL_DEAD_LETTERS,
            vec!["suppressed dead_letters::Tick Stopped", "/user/a u8 Stopped"],
        ),
    ] {
        let (mut root, _) = start(builder());
        let log = listen(&mut root, kinds);
        let ticks = root.spawn("t", Props::from_fn(|_, _: Tick| Ok(Next::Stop))).unwrap();
        let bytes = root.spawn("a", Props::from_fn(|_, _: u8| Ok(Next::Stop))).unwrap();
        ticks.tell(Tick).unwrap();
        bytes.tell(0).unwrap();
        root.run_until_idle();
        ticks.tell_or_dead_letter(Tick);
        bytes.tell_or_dead_letter(0);
        root.run_until_idle();
        assert_eq!(log.take(), expected);
        let metrics = root.system().metrics();
        assert_eq!(metrics.suppressed_dead_letters, 1);
        assert_eq!(metrics.dead_letters(DeadLetterReason::Stopped), 2);
    }
}

#[test]
fn a_mailbox_that_drops_does_not_spin() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let mailbox = Mailbox::bounded(1).overflow(overflow);
        let props = Props::from_fn(|_, _: u8| Ok(Next::Stay)).mailbox(mailbox);
        let actor = root.spawn("a", props).unwrap();
        root.run_until_idle();
        for _ in 0..1_000 {
            actor.tell(0).unwrap();
        }
        assert!(root.run_until_idle() <= 2);
        assert_eq!(root.run_until_idle(), 0);
        assert_eq!(root.system().metrics().dead_letters_total(), 999);
    }
}
