//! Memory: a message that is refused neither allocates nor frees, even if its dead letter finds
//! subscribers without room. So an interrupt may send it.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "nothing is logged here, that would allocate")]
#[path = "support/bench.rs"]
mod bench;

use core::future::pending;

use bench::start;
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Mailbox, Next, Overflow, Props,
    RootContext, SystemEvent,
};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// Takes one event, and then waits for ever, so that its mailbox stays full.
struct Deaf;

impl Actor for Deaf {
    type Msg = SystemEvent;

    fn receive(&mut self, cx: &mut Context<'_, Self>, _: SystemEvent) -> Result<Next, Failure> {
        cx.wait(pending(), |_, _, ()| Ok(Next::Stay))?;
        Ok(Next::Stay)
    }
}

struct Sink;

impl Actor for Sink {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// Dead letters of actors that are gone: only the events refer to their paths.
fn send_to_the_dead(root: &mut RootContext, names: core::ops::Range<u32>) {
    for n in names {
        let name = format!("a-name-that-needs-memory-of-its-own-{n}");
        let gone = root.spawn(&name, Props::new(|| Sink)).unwrap();
        root.system().stop(&gone).unwrap();
        root.run_until_idle();
        gone.tell_or_dead_letter(0);
    }
}

#[test]
fn a_tell_whose_dead_letter_evicts_an_event_neither_allocates_nor_frees() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let deaf = root.spawn("deaf", Props::new(|| Deaf).mailbox(Mailbox::bounded(1))).unwrap();
    root.system().events().subscribe_bounded(EventKinds::DEAD_LETTER, deaf.clone(), 4);
    let mailbox = Mailbox::bounded(1).overflow(Overflow::DropNewest);
    let full: ActorRef<u32> = root.spawn("full", Props::new(|| Sink).mailbox(mailbox)).unwrap();
    root.run_until_idle();
    // One is handled, one is in the mailbox, the others wait.
    send_to_the_dead(&mut root, 0..6);
    assert_eq!(root.system().events().dropped_by(&deaf), Some(0));
    full.tell(0).unwrap();
    for n in 1..=64 {
        let (sent, counts) = COUNTING.during(|| full.tell(n));
        sent.unwrap();
        assert_eq!((counts.allocations, counts.frees), (0, 0), "the {n}th refused message");
    }
    assert_eq!(root.system().metrics().dead_letters_total(), 6 + 64);
    assert_eq!(root.system().events().dropped_by(&deaf), Some(64));
    // A thread drops what was evicted.
    let ((), counts) = COUNTING.during(|| {
        root.run_until_idle();
    });
    assert!(counts.frees >= 4, "{counts:?}");
}

#[test]
fn a_refused_tell_in_a_sealed_system_frees_no_path_that_was_kept_before_the_seal() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let deaf = root.spawn("deaf", Props::new(|| Deaf).mailbox(Mailbox::bounded(1))).unwrap();
    root.system().events().subscribe(EventKinds::MAILBOX_REFUSALS, deaf);
    let mailbox = || Props::new(|| Sink).mailbox(Mailbox::bounded(1));
    let full: ActorRef<u32> = root.spawn("full", mailbox()).unwrap();
    let gone = root.spawn("a-name-that-needs-memory-of-its-own", mailbox()).unwrap();
    root.run_until_idle();
    gone.tell(0).unwrap();
    gone.tell(1).unwrap_err();
    root.system().stop(&gone).unwrap();
    drop(gone);
    root.run_until_idle();
    root.seal();
    root.run_until_idle();
    full.tell(0).unwrap();
    for n in 1..=64 {
        let (sent, counts) = COUNTING.during(|| full.tell(n));
        sent.unwrap_err();
        assert_eq!((counts.allocations, counts.frees), (0, 0), "the {n}th refused message");
    }
}

#[test]
fn a_refused_tell_neither_allocates_nor_frees_although_there_is_a_listener() {
    let (mut root, _) = start(ActorSystem::builder("t").on_refusals(|_, _| ()));
    let full: ActorRef<u32> =
        root.spawn("full", Props::new(|| Sink).mailbox(Mailbox::bounded(1))).unwrap();
    root.run_until_idle();
    full.tell(0).unwrap();
    let refused = |n| {
        let (sent, counts) = COUNTING.during(|| full.tell(n));
        sent.unwrap_err();
        assert_eq!((counts.allocations, counts.frees), (0, 0), "the {n}th refused message");
    };
    // The first one has a report scheduled.
    (1..=4).for_each(&refused);
    // Later ones find the window full of mailboxes that are gone, and whose paths nobody else has.
    for n in 0..40 {
        let name = format!("a-name-that-needs-memory-of-its-own-{n}");
        let gone: ActorRef<u32> =
            root.spawn(&name, Props::new(|| Sink).mailbox(Mailbox::bounded(1))).unwrap();
        root.run_until_idle();
        gone.tell(0).unwrap();
        let (sent, counts) = COUNTING.during(|| (0..9).try_for_each(|n| gone.tell(n)));
        sent.unwrap_err();
        assert_eq!((counts.allocations, counts.frees), (0, 0), "{name}");
        root.system().stop(&gone).unwrap();
        root.run_until_idle();
    }
    full.tell(0).unwrap();
    (5..=64).for_each(&refused);
}
