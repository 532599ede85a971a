//! Actors under load: order, accounts, ends. What was accepted was handled or is a dead letter, to
//! the last one.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::{sync::Arc, thread};

use clockjack_rt::{
    BLOCKING_DISPATCHER, Runtime, RuntimeConfig,
    actor::{
        Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Overflow, Props, Signal,
        Strategy,
    },
    sched::DispatcherId,
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{
    eventually::eventually,
    patience::{LONG, patient},
};

const SENDERS: usize = 4;
/// All senders together send a million.
const EACH: usize = 250_000;

fn start(workers: usize) -> InTime<Runtime> {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("t").shutdown(patient()), config)
        .expect("it starts");
    InTime::new(runtime, RuntimeConfig::DEFAULT.drop_timeout)
}

/// How many dead letters there are. By the meters, since a subscriber loses events that come too
/// fast.
fn letters(runtime: &Runtime) -> usize {
    runtime.system().metrics().dead_letters_total()
}

/// How many ranks there are where messages have any.
const RANKS: usize = 3;

/// Where in a mailbox with priorities a message stands.
fn rank((_, n): &(usize, usize)) -> u8 {
    u8::try_from(n % RANKS).unwrap_or(0)
}

/// Sees to it that the messages of each sender rise, those of one rank if there are ranks.
struct Judge {
    last: [[Option<usize>; RANKS]; SENDERS],
    rank: Rank,
    handled: Arc<AtomicUsize>,
    is_wrong: Arc<AtomicBool>,
}

impl Actor for Judge {
    type Msg = (usize, usize);

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        (sender, n): (usize, usize),
    ) -> Result<Next, Failure> {
        let rank = usize::from((self.rank)(&(sender, n)));
        if self.last[sender][rank].replace(n) >= Some(n) {
            self.is_wrong.store(true, SeqCst);
        }
        self.handled.fetch_add(1, SeqCst);
        Ok(Next::Stay)
    }
}

type Rank = fn(&(usize, usize)) -> u8;
type Send = fn(&ActorRef<(usize, usize)>, (usize, usize)) -> bool;

/// Reports, and again while there is no room.
fn insist(actor: &ActorRef<(usize, usize)>, mut msg: (usize, usize)) -> bool {
    while let Err(refused) = actor.tell(msg) {
        if refused.is_stopped() {
            return false;
        }
        msg = refused.into_inner();
        thread::yield_now();
    }
    true
}

fn tell_control(actor: &ActorRef<(usize, usize)>, msg: (usize, usize)) -> bool {
    actor.tell_control(msg).is_ok()
}

/// A million messages by four senders: in order, and none unaccounted for.
fn keeps_order(mailbox: Mailbox, send: Send) {
    keeps_order_of(mailbox, None, send);
}

fn keeps_order_of(mailbox: Mailbox, ranked: Option<Rank>, send: Send) {
    let runtime = start(2);
    let handled = Arc::new(AtomicUsize::new(0));
    let is_wrong = Arc::new(AtomicBool::new(false));
    let (counts, wrong) = (Arc::clone(&handled), Arc::clone(&is_wrong));
    let props = Props::new(move || Judge {
        last: [[None; RANKS]; SENDERS],
        rank: ranked.unwrap_or(|_| 0),
        handled: Arc::clone(&counts),
        is_wrong: Arc::clone(&wrong),
    });
    let props = props.mailbox(mailbox);
    let props = if let Some(rank) = ranked { props.priority(rank) } else { props };
    let judge = runtime.spawn("judge", props).expect("room");
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let judge = &judge;
            scope.spawn(move || (0..EACH).for_each(|n| assert!(send(judge, (sender, n)))));
        }
    });
    eventually("all are accounted for", || {
        handled.load(SeqCst) + letters(&runtime) == SENDERS * EACH
    });
    assert!(!is_wrong.load(SeqCst), "a sender's messages were overtaken");
    if matches!(mailbox.on_overflow(), Overflow::Fail) {
        assert_eq!(letters(&runtime), 0);
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_bounded_mailbox_keeps_the_order_of_each_sender() {
    keeps_order(Mailbox::DEFAULT, insist);
}

#[test]
fn an_unbounded_mailbox_keeps_the_order_of_each_sender() {
    keeps_order(Mailbox::unbounded(), insist);
}

#[test]
fn a_mailbox_that_drops_the_newest_keeps_the_order_and_counts() {
    keeps_order(Mailbox::bounded(100).overflow(Overflow::DropNewest), insist);
}

#[test]
fn a_mailbox_that_drops_the_oldest_keeps_the_order_and_counts() {
    keeps_order(Mailbox::bounded(100).overflow(Overflow::DropOldest), insist);
}

#[test]
fn a_mailbox_with_priorities_keeps_the_order_of_each_sender_in_each_rank() {
    keeps_order_of(Mailbox::DEFAULT, Some(rank), insist);
}

#[test]
fn an_unbounded_mailbox_with_priorities_keeps_the_order_of_each_sender_in_each_rank() {
    keeps_order_of(Mailbox::unbounded(), Some(rank), insist);
}

#[test]
fn a_mailbox_with_priorities_that_are_all_equal_keeps_the_order_of_each_sender() {
    keeps_order_of(Mailbox::bounded(100), Some(|_| 1), insist);
}

#[test]
fn the_control_lane_keeps_the_order_of_each_sender() {
    keeps_order(Mailbox::DEFAULT, tell_control);
}

#[test]
fn a_stop_under_fire_loses_no_message_that_was_accepted() {
    let runtime = start(2);
    let (mut accepted, mut rounds) = (0, 0);
    let handled = Arc::new(AtomicUsize::new(0));
    for round in 0..1_000 {
        let counts = Arc::clone(&handled);
        let props = Props::from_fn(move |_: &mut Context<'_, _>, _: (usize, usize)| {
            counts.fetch_add(1, SeqCst);
            Ok(Next::Stay)
        });
        let mailbox = match round % 3 {
            0 => Mailbox::bounded(8),
            1 => Mailbox::unbounded(),
            _ => Mailbox::bounded(8).overflow(Overflow::DropOldest),
        };
        let judge = runtime.spawn("judge", props.mailbox(mailbox)).expect("the last is gone");
        let sent = AtomicUsize::new(0);
        thread::scope(|scope| {
            for sender in 0..2 {
                let (judge, sent) = (&judge, &sent);
                scope.spawn(move || {
                    // Enough to be in the middle of it, also where threads have to wait.
                    for n in 0..5_000 {
                        let is_accepted = match (n + sender) % 8 {
                            0 => judge.tell_control((sender, n)).is_ok(),
                            _ => insist(judge, (sender, n)),
                        };
                        if !is_accepted {
                            return;
                        }
                        sent.fetch_add(1, SeqCst);
                    }
                });
            }
            eventually("it is under fire", || sent.load(SeqCst) > round % 50);
            runtime.system().stop(&judge).expect("it is below `/user`");
        });
        accepted += sent.load(SeqCst);
        rounds += 1;
        eventually("all are accounted for, and not twice", || {
            handled.load(SeqCst) + letters(&runtime) == accepted
        });
        eventually("its name is free", || {
            runtime.system().lookup::<(usize, usize)>("/user/judge").is_err()
        });
    }
    assert_eq!(rounds, 1_000);
    assert_eq!(handled.load(SeqCst) + letters(&runtime), accepted);
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

/// Counts that it is gone.
struct Counted(Arc<AtomicUsize>);

impl Actor for Counted {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stop)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn twenty_thousand_actors_that_come_and_go_leave_nothing() {
    let runtime = start(2);
    let before = runtime.system().tree().len();
    let dropped = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (runtime, dropped) = (&runtime, &dropped);
            scope.spawn(move || {
                for n in 0..5_000 {
                    let to = Arc::clone(dropped);
                    let make = move || Counted(Arc::clone(&to));
                    let name = format!("{thread}-{n}");
                    runtime.spawn(&name, make).expect("room").tell(()).expect("it runs");
                }
            });
        }
    });
    eventually("all were dropped", || dropped.load(SeqCst) == 20_000);
    eventually("none is in the tree", || runtime.system().tree().len() == before);
    // The factories of all of them, too.
    eventually("nothing is kept", || Arc::strong_count(&dropped) == 1);
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_hundred_thousand_actors_are_stopped_at_once() {
    const ACTORS: usize = 100_000;
    let runtime = start(2);
    let dropped = Arc::new(AtomicUsize::new(0));
    let n_made = Arc::new(AtomicUsize::new(0));
    let actors: Vec<_> = (0..ACTORS)
        .map(|n| {
            let (to, n_made) = (Arc::clone(&dropped), Arc::clone(&n_made));
            let make = move || {
                n_made.fetch_add(1, SeqCst);
                Counted(Arc::clone(&to))
            };
            runtime.spawn(&format!("{n}"), make).expect("room")
        })
        .collect();
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{} did not stop", report.termination.stragglers.len());
    assert!(actors.iter().all(ActorRef::is_stopped));
    assert_eq!(dropped.load(SeqCst), n_made.load(SeqCst));
    assert_eq!(Arc::strong_count(&dropped), 1);
}

/// Starts actors one after the other from outside, each of which handles a message.
fn assert_many_have_their_turn(runtime: &Runtime) {
    let handled = Arc::new(AtomicUsize::new(0));
    for n in 0..200 {
        let counts = Arc::clone(&handled);
        let props = Props::from_fn(move |_: &mut Context<'_, _>, (): ()| {
            counts.fetch_add(1, SeqCst);
            Ok(Next::Stop)
        });
        runtime.spawn(&format!("{n}"), props).expect("room").tell(()).expect("it runs");
        eventually("it was handled", || handled.load(SeqCst) == n + 1);
    }
}

#[test]
fn what_comes_from_outside_is_not_starved_by_actors_that_tell_each_other() {
    let runtime = start(1);
    let is_over = Arc::new(AtomicBool::new(false));
    for pair in 0..4 {
        let over = Arc::clone(&is_over);
        let props = Props::from_fn(move |cx: &mut Context<'_, _>, (): ()| {
            if !over.load(SeqCst) {
                cx.self_ref().tell(())?;
            }
            Ok(Next::Stay)
        });
        runtime.spawn(&format!("busy-{pair}"), props).expect("room").tell(()).expect("it runs");
    }
    assert_many_have_their_turn(&runtime);
    // Also while they are flooded, they stop.
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert!(!is_over.load(SeqCst));
}

/// Reports itself something before its first message can come.
struct Eager(Arc<AtomicUsize>);

impl Actor for Eager {
    type Msg = bool;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        // Somebody else may have been faster.
        if cx.self_ref().tell(true).is_ok() {
            self.0.fetch_add(1, SeqCst);
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, is_own: bool) -> Result<Next, Failure> {
        if is_own {
            self.0.fetch_sub(1, SeqCst);
        }
        Ok(Next::Stay)
    }
}

#[test]
fn an_actor_starts_with_room_for_one_message() {
    let runtime = start(2);
    let open = Arc::new(AtomicUsize::new(0));
    for n in 0..1_000 {
        let to = Arc::clone(&open);
        let props = Props::new(move || Eager(Arc::clone(&to))).mailbox(Mailbox::bounded(1));
        let actor = runtime.spawn(&format!("{n}"), props).expect("room");
        let mut msg = false;
        while let Err(refused) = actor.tell(msg) {
            assert!(refused.is_full());
            msg = refused.into_inner();
            thread::yield_now();
        }
    }
    assert!(runtime.system().tree().len() >= 1_000);
    eventually("what was accepted was handled", || open.load(SeqCst) == 0);
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_spawn_beside_the_end_is_refused_or_ends_with_the_rest() {
    for round in 0..200 {
        let runtime = start(2);
        let system = runtime.system().clone();
        let pinned = system.create_pinned("p").expect("it starts");
        let dropped = Arc::new(AtomicUsize::new(0));
        let n_made = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..2 {
                let (system, pinned) = (&system, &pinned);
                let (dropped, n_made) = (&dropped, &n_made);
                scope.spawn(move || {
                    for n in 0..300 {
                        let (to, n_made) = (Arc::clone(dropped), Arc::clone(n_made));
                        let make = move || {
                            n_made.fetch_add(1, SeqCst);
                            Counted(Arc::clone(&to))
                        };
                        let name = format!("{thread}-{n}");
                        let spawned = match n % 2 {
                            0 => system.spawn(&name, make).is_ok(),
                            _ => system.spawn_pinned(pinned, &name, make).is_ok(),
                        };
                        if !spawned {
                            return;
                        }
                    }
                });
            }
            for _ in 0..round % 50 {
                thread::yield_now();
            }
            let report = runtime.shutdown_in_time(LONG);
            assert!(report.is_clean(), "round {round}: {report:?}");
        });
        assert_eq!(dropped.load(SeqCst), n_made.load(SeqCst));
    }
}

/// Passes a count around until it is zero.
struct Hop {
    next: Option<ActorRef<Hops>>,
    arrived: Arc<AtomicUsize>,
}

enum Hops {
    Next(ActorRef<Self>),
    Left(usize),
}

impl Actor for Hop {
    type Msg = Hops;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Hops) -> Result<Next, Failure> {
        match (msg, &self.next) {
            (Hops::Next(next), _) => self.next = Some(next),
            (Hops::Left(0), _) => _ = self.arrived.fetch_add(1, SeqCst),
            (Hops::Left(left), Some(next)) => next.tell(Hops::Left(left - 1))?,
            (Hops::Left(_), None) => return Err(Failure::msg("nowhere to go")),
        }
        Ok(Next::Stay)
    }
}

/// One of each kind of dispatcher.
fn all_kinds(runtime: &Runtime) -> [DispatcherId; 5] {
    let system = runtime.system();
    [
        DispatcherId::DEFAULT,
        system.create_pinned("p1").expect("it starts").id(),
        system.create_dispatcher("d", 2).expect("it starts"),
        system.create_pinned("p2").expect("it starts").id(),
        BLOCKING_DISPATCHER,
    ]
}

#[test]
fn messages_go_round_over_all_dispatchers() {
    const TOKENS: usize = 16;
    const HOPS: usize = 20_000;
    let runtime = start(2);
    let arrived = Arc::new(AtomicUsize::new(0));
    let ring: Vec<_> = all_kinds(&runtime)
        .into_iter()
        .enumerate()
        .map(|(n, dispatcher)| {
            let arrived = Arc::clone(&arrived);
            let props = Props::new(move || Hop { next: None, arrived: Arc::clone(&arrived) });
            runtime.spawn(&format!("{n}"), props.dispatcher(dispatcher)).expect("room")
        })
        .collect();
    for (n, hop) in ring.iter().enumerate() {
        let next = ring[(n + 1) % ring.len()].clone();
        hop.tell(Hops::Next(next)).expect("it runs");
    }
    for token in 0..TOKENS {
        ring[token % ring.len()].tell(Hops::Left(HOPS)).expect("it runs");
    }
    eventually("all have arrived", || arrived.load(SeqCst) == TOKENS);
    // They know each other in a circle.
    drop(ring);
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

/// Has children everywhere, and watches each of them, and others watch them, too.
struct Parent {
    kinds: [DispatcherId; 5],
    left: usize,
    open: usize,
    watcher: ActorRef<ActorRef<()>>,
    done: Arc<AtomicUsize>,
}

impl Parent {
    fn breed(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.left == 0 {
            self.done.fetch_add(1, SeqCst);
            return Ok(Next::Stop);
        }
        self.left -= 1;
        for (n, dispatcher) in self.kinds.into_iter().enumerate() {
            let props = Props::from_fn(|_: &mut Context<'_, _>, (): ()| Ok(Next::Stop));
            let child = cx.spawn_child(&format!("{n}"), props.dispatcher(dispatcher))?;
            cx.watch(&child)?;
            self.watcher.tell(child.clone())?;
            if (n + self.left).is_multiple_of(2) {
                cx.stop_child(&child)?;
            } else {
                child.tell(())?;
            }
            self.open += 1;
        }
        Ok(Next::Stay)
    }
}

impl Actor for Parent {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.breed(cx)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if matches!(signal, Signal::Terminated(_)) {
            self.open -= 1;
            if self.open == 0 {
                return self.breed(cx);
            }
        }
        Ok(Next::Stay)
    }
}

struct Watcher(Arc<AtomicUsize>);

impl Actor for Watcher {
    type Msg = ActorRef<()>;

    fn receive(&mut self, cx: &mut Context<'_, Self>, who: ActorRef<()>) -> Result<Next, Failure> {
        cx.watch(&who)?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.0.fetch_add(usize::from(matches!(signal, Signal::Terminated(_))), SeqCst);
        Ok(Next::Stay)
    }
}

#[test]
fn ends_are_told_to_parents_and_watchers_on_all_dispatchers() {
    const ROUNDS: usize = 300;
    let runtime = start(2);
    let kinds = all_kinds(&runtime);
    let (done, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (n, dispatcher) in kinds.into_iter().enumerate() {
        let to = Arc::clone(&told);
        let props = Props::new(move || Watcher(Arc::clone(&to)));
        let at = kinds[(n + 1) % kinds.len()];
        let props = props.dispatcher(at).mailbox(Mailbox::unbounded());
        let watcher = runtime.spawn(&format!("watcher-{n}"), props).expect("room");
        let done = Arc::clone(&done);
        let props = Props::new(move || Parent {
            kinds,
            left: ROUNDS,
            open: 0,
            watcher: watcher.clone(),
            done: Arc::clone(&done),
        });
        runtime.spawn(&format!("{n}"), props.dispatcher(dispatcher)).expect("room");
    }
    eventually("all parents are through", || done.load(SeqCst) == 5);
    eventually("each end was told once", || told.load(SeqCst) == 5 * 5 * ROUNDS);
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    assert_eq!(told.load(SeqCst), 5 * 5 * ROUNDS);
}

#[test]
fn actors_that_fail_and_are_made_anew_without_end_keep_nobody_from_a_turn() {
    let runtime = start(1);
    let n_made = Arc::new(AtomicUsize::new(0));
    for n in 0..4 {
        let made = Arc::clone(&n_made);
        // Its first message makes it fail, and the next one is there before.
        let props = Props::new(move || {
            made.fetch_add(1, SeqCst);
            Storm
        });
        let storm = runtime.spawn(&format!("storm-{n}"), props.supervise(Strategy::restart()));
        storm.expect("room").tell(()).expect("it runs");
    }
    assert_many_have_their_turn(&runtime);
    let before = n_made.load(SeqCst);
    eventually("they go on", || n_made.load(SeqCst) > before + 1_000);
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
}

/// Fails without end.
struct Storm;

impl Actor for Storm {
    type Msg = ();

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        cx.self_ref().tell(())?;
        Err(Failure::msg("again"))
    }
}
