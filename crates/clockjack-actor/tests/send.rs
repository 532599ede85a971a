//! `send`, which waits for room.

#[path = "support/bench.rs"]
mod bench;

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    cell::Cell,
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context as Cx, Poll, Waker},
};
use std::thread;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Mailbox, Next, Overflow, Props,
    RootContext, SendError, SystemEvent,
};

/// Records its messages; stops at zero.
struct Clerk(Log);

impl Actor for Clerk {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, n: u32) -> Result<Next, Failure> {
        self.0.add(n.to_string());
        Ok(if n == 0 { Next::Stop } else { Next::Stay })
    }
}

fn clerk(root: &mut RootContext, mailbox: Mailbox) -> (ActorRef<u32>, Log) {
    let log = Log::default();
    let to = log.clone();
    let props = Props::new(move || Clerk(to.clone())).mailbox(mailbox);
    (root.spawn("clerk", props).unwrap(), log)
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, woken: &Arc<Woken>) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Cx::from_waker(&Waker::from(Arc::clone(woken))))
}

fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Cx::from_waker(Waker::noop())).is_pending()
}

#[test]
fn who_waits_is_let_in_in_order_and_before_who_does_not() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(2));
    actor.tell(1).unwrap();
    actor.tell(2).unwrap();
    let woken = Arc::new(Woken::default());
    let mut waiting: Vec<_> = (3..=7).map(|n| actor.send(n)).collect();
    for one in &mut waiting {
        assert!(poll(one, &woken).is_pending());
    }
    assert!(actor.tell(8).unwrap_err().is_full());
    root.run_until_idle();
    assert_eq!(log.take(), ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(woken.0.load(SeqCst), 5);
    for one in &mut waiting {
        assert!(poll(one, &woken).is_ready());
    }
    actor.tell(8).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["8"]);
}

/// Sends itself a message after each message, which is refused as full as long as others wait.
struct Teller {
    me: Option<ActorRef<u32>>,
    log: Log,
}

impl Actor for Teller {
    type Msg = u32;

    fn receive(&mut self, cx: &mut Context<'_, Self>, n: u32) -> Result<Next, Failure> {
        let me = self.me.get_or_insert_with(|| cx.self_ref());
        let told = if n < 100 { me.tell(100 + n).is_ok() } else { false };
        self.log.add(format!("{n} {told}"));
        Ok(Next::Stay)
    }
}

#[test]
fn room_that_is_freed_goes_to_who_waits() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let props = Props::new(move || Teller { me: None, log: to.clone() });
    let actor = root.spawn("t", props.mailbox(Mailbox::bounded(2))).unwrap();
    actor.tell(1).unwrap();
    actor.tell(2).unwrap();
    let mut waiting: Vec<_> = (3..=5).map(|n| actor.send(n)).collect();
    root.run_until_idle();
    // While 1, 2 and 3 are handled a sender waits; when 4 is handled, the last message is in the
    // mailbox.
    let expected = ["1 false", "2 false", "3 false", "4 true", "5 true", "104 false", "105 false"];
    assert_eq!(log.take(), expected);
    assert!(!waiting.iter_mut().any(is_pending));
}

#[test]
fn what_waits_comes_back_when_the_actor_stops() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(1));
    actor.tell(0).unwrap();
    let woken = Arc::new(Woken::default());
    let (mut first, mut second) = (actor.send(1), actor.send(2));
    assert!(poll(&mut first, &woken).is_pending());
    assert!(poll(&mut second, &woken).is_pending());
    root.system().stop(&actor).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    assert_eq!(woken.0.load(SeqCst), 2);
    for (mut one, n) in [(first, 1), (second, 2)] {
        let Poll::Ready(Err(refused)) = poll(&mut one, &woken) else { panic!("it waits on") };
        assert!(refused.is_stopped());
        assert_eq!(refused.into_inner(), n);
    }
    let Poll::Ready(Err(refused)) = poll(&mut actor.send(3), &woken) else { panic!("sent") };
    assert!(refused.is_stopped());
}

#[test]
fn all_who_wait_for_room_of_an_actor_that_stops_are_woken() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(2));
    [0, 1].into_iter().for_each(|n| actor.tell(n).unwrap());
    // More than the actor refuses at a time. It takes the message that stops it before it gives
    // anybody room.
    let mut waiting: Vec<_> = (2..200).map(|n| actor.send(n)).collect();
    let woken: Vec<_> = waiting.iter().map(|_| Arc::new(Woken::default())).collect();
    for (one, woken) in waiting.iter_mut().zip(&woken) {
        assert!(poll(one, woken).is_pending());
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["0"]);
    for ((one, woken), n) in waiting.iter_mut().zip(&woken).zip(2..) {
        assert_eq!(woken.0.load(SeqCst), 1, "the sender of {n}");
        let Poll::Ready(Err(refused)) = poll(one, woken) else { panic!("{n} waits") };
        assert_eq!(refused.into_inner(), n);
    }
}

#[test]
fn a_send_that_is_cancelled_was_sent_surely_or_never_is() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(1));
    let mut sent = actor.send(1);
    let mut given_up = actor.send(2);
    assert_eq!(Pin::new(&mut given_up).cancel(), Some(2));
    assert_eq!(Pin::new(&mut given_up).cancel(), None);
    assert_eq!(Pin::new(&mut sent).cancel(), None);
    // No sender waits any more, but the mailbox is full; both are as before.
    assert!(actor.tell(3).unwrap_err().is_full());
    drop(actor.send(4));
    let mut late = actor.send(5);
    root.run_until_idle();
    assert_eq!(Pin::new(&mut late).cancel(), None);
    assert_eq!(log.take(), ["1", "5"]);
    actor.tell(6).unwrap();
    let mut last = actor.send(7);
    assert_eq!(Pin::new(&mut last).cancel(), Some(7));
    root.run_until_idle();
    actor.tell(8).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["6", "8"]);
}

thread_local! {
    static MAPPED: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_mapped_ref_maps_when_there_is_room_and_gives_back_what_it_got() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(1));
    let texts: ActorRef<&'static str> = actor
        .map(|text: String| {
            MAPPED.set(MAPPED.get() + 1);
            text.len().try_into().unwrap()
        })
        .map(String::from);
    actor.tell(1).unwrap();
    let mut first = texts.send("four");
    let mut second = texts.send("fives");
    let mut third = texts.send("");
    let mut fourth = texts.send("never");
    assert!(is_pending(&mut first) && is_pending(&mut third) && is_pending(&mut fourth));
    assert_eq!(MAPPED.get(), 0);
    assert_eq!(Pin::new(&mut second).cancel(), Some("fives"));
    root.run_until_idle();
    // The third message stops the actor; the fourth was admitted before.
    assert_eq!(log.take(), ["1", "4", "0"]);
    assert_eq!(Pin::new(&mut first).cancel(), None);
    assert!(texts.send("x").into_refused().is_some_and(|text| text == "x"));
}

trait IntoRefused<M> {
    fn into_refused(self) -> Option<M>;
}

impl<M> IntoRefused<M> for clockjack_actor::Sending<M> {
    fn into_refused(mut self) -> Option<M> {
        match poll(&mut self, &Arc::default()) {
            Poll::Ready(Err(refused)) => Some(SendError::into_inner(refused)),
            _ => None,
        }
    }
}

#[test]
fn a_mapped_ref_may_capture_and_keeps_what_it_has_captured_as_long_as_it_is_needed() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, log) = clerk(&mut root, Mailbox::bounded(1));
    let captured = Arc::new(100);
    let mapped = actor.map({
        let captured = Arc::clone(&captured);
        move |n: u8| u32::from(n) + *captured
    });
    mapped.tell(1).unwrap();
    assert_eq!(mapped.tell(2).unwrap_err().into_inner(), 2, "unconverted");
    let mut waiting = mapped.send(3);
    assert!(is_pending(&mut waiting));
    // The message that waits has its own copy of the function.
    drop(mapped);
    root.run_until_idle();
    assert!(matches!(poll(&mut waiting, &Arc::default()), Poll::Ready(Ok(()))));
    root.run_until_idle();
    assert_eq!(log.take(), ["101", "103"]);
    drop(waiting);
    assert_eq!(Arc::strong_count(&captured), 1, "nobody holds it any more");
}

#[test]
fn a_mailbox_that_overflows_in_another_way_is_not_waited_for() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let (actor, log) = clerk(&mut root, Mailbox::bounded(1).overflow(overflow));
        actor.tell(1).unwrap();
        assert!(!is_pending(&mut actor.send(2)));
        root.run_until_idle();
        assert_eq!(log.take(), [if overflow == Overflow::DropNewest { "1" } else { "2" }]);
    }
}

#[test]
fn a_sealed_system_has_no_memory_for_who_would_wait() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, _log) = clerk(&mut root, Mailbox::bounded(1));
    actor.tell(1).unwrap();
    root.seal();
    let mut refused = actor.send(2);
    let Poll::Ready(Err(refused)) = poll(&mut refused, &Arc::default()) else { panic!("waits") };
    assert!(refused.is_full());
}

#[test]
fn who_waits_for_an_actor_that_is_gone_with_its_system_gets_its_message_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (actor, _log) = clerk(&mut root, Mailbox::bounded(1));
    actor.tell(1).unwrap();
    let waiting = actor.send(2);
    // The phases of the shutdown would let the actor handle its messages.
    root.system().stop(&actor).unwrap();
    let _end = root.system().shutdown();
    root.run_until_idle();
    drop((root, actor));
    assert_eq!(waiting.into_refused(), Some(2));
}

/// Unparks a thread.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Cx::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Fifo {
    next: [u32; SENDERS],
    seen: Arc<AtomicUsize>,
}

const SENDERS: usize = 3;

impl Actor for Fifo {
    type Msg = (usize, u32);

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        (from, n): (usize, u32),
    ) -> Result<Next, Failure> {
        assert_eq!(self.next[from], n, "of sender {from}");
        self.next[from] += 1;
        self.seen.fetch_add(1, SeqCst);
        Ok(Next::Stay)
    }
}

#[test]
fn nothing_is_lost_or_overtaken_between_threads_that_wait_tell_and_give_up() {
    const EACH: u32 = if cfg!(miri) { 30 } else { 500 };
    let (mut root, _) = start(ActorSystem::builder("t"));
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let props = Props::new(move || Fifo { next: [0; SENDERS], seen: Arc::clone(&counted) });
    let actor = root.spawn("fifo", props.mailbox(Mailbox::bounded(3))).unwrap();
    let sent: u32 = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|me| {
                let actor = actor.clone();
                scope.spawn(move || {
                    let mut n = 0;
                    while n < EACH {
                        match n % 3 {
                            0 => n += u32::from(actor.tell((me, n)).is_ok()),
                            1 => {
                                block_on(actor.send((me, n))).unwrap();
                                n += 1;
                            }
                            _ => {
                                // Dropped at once, unless it is admitted before. A message that is
                                // told while it waits must not overtake it.
                                let mut sending = actor.send((me, n));
                                let _ = is_pending(&mut sending);
                                let overtaken = actor.tell((me, n + 1)).is_ok();
                                let is_sent = Pin::new(&mut sending).cancel().is_none();
                                assert!(is_sent || !overtaken);
                                n += u32::from(is_sent) + u32::from(overtaken);
                            }
                        }
                    }
                    n
                })
            })
            .collect();
        while !senders.iter().all(thread::ScopedJoinHandle::is_finished) {
            root.run_until_idle();
            thread::yield_now();
        }
        senders.into_iter().map(|one| one.join().unwrap()).sum()
    });
    root.run_until_idle();
    assert!(!actor.is_stopped(), "a message was overtaken");
    assert_eq!(seen.load(SeqCst), usize::try_from(sent).unwrap());
}

/// Counts dead letters.
struct Letters(Log);

impl Actor for Letters {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        if let SystemEvent::DeadLetter(letter) = event {
            self.0.add(format!("{} {}", letter.recipient, letter.reason));
        }
        Ok(Next::Stay)
    }
}

#[test]
fn what_comes_back_is_no_dead_letter() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let letters = root.spawn("letters", move || Letters(to.clone())).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER, letters);
    let (actor, _log) = clerk(&mut root, Mailbox::bounded(1));
    actor.tell(1).unwrap();
    let waiting = actor.send(2);
    root.system().stop(&actor).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/clerk its receiver has stopped"]);
    assert_eq!(waiting.into_refused(), Some(2));
}
