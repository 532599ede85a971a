//! Who holds a spin lock neither allocates nor frees memory, and takes no second lock, because a
//! thread of a real-time class may wait for the lock.
//!
//! Allocations are counted per thread, so that concurrent tests do not disturb each other.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "nothing is logged here")]
#[path = "support/bench.rs"]
mod bench;

use core::{
    cell::{Cell, RefCell},
    pin::pin,
    task::Waker,
    time::Duration,
};
use std::backtrace::Backtrace;

use bench::start;
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Group, Listing, Mailbox, Next,
    Pool, Props, ReplyTo, RootContext, Scope, ServiceKey, Signal, StaticError, Strategy,
    SystemEvent,
};
use clockjack_sync::{
    primitive::IS_DEBUG,
    spin_lock::{SpinLock, set_observer},
};
use clockjack_testing::allocation::{Counting, Counts};

#[global_allocator]
static COUNTING: Counting = Counting::new();

const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    /// The requests of this thread when it took the lock that it holds.
    static HELD: Cell<Option<Counts>> = const { Cell::new(None) };
    static N_TAKEN: Cell<usize> = const { Cell::new(0) };
    /// Where this thread has broken a rule.
    static BROKEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn observe(is_held: bool) {
    let broken = |rule: &str| {
        let place = format!("{rule} under a lock:\n{}", Backtrace::force_capture());
        BROKEN.with_borrow_mut(|all| all.push(place));
    };
    if is_held {
        N_TAKEN.set(N_TAKEN.get() + 1);
        if HELD.replace(Some(COUNTING.counts())).is_some() {
            broken("a second lock");
            HELD.set(Some(COUNTING.counts()));
        }
    } else if let Some(before) = HELD.take()
        && before != COUNTING.counts()
    {
        broken("memory");
    }
}

/// Runs it, and returns where a rule was broken.
fn broken_rules(run: impl FnOnce()) -> Vec<String> {
    set_observer(observe);
    let before = N_TAKEN.get();
    run();
    assert!(!IS_DEBUG || N_TAKEN.get() > before, "locks were taken");
    BROKEN.take()
}

fn check(run: impl FnOnce()) {
    let broken = broken_rules(run);
    assert!(broken.is_empty(), "{} times; the first: {}", broken.len(), broken[0]);
}

#[test]
fn the_observer_sees_an_allocation_and_a_second_lock() {
    if !IS_DEBUG {
        // Locks call no observer.
        return;
    }
    let (first, second) = (SpinLock::new(Vec::new()), SpinLock::new(0));
    let broken = broken_rules(|| first.with(|list| list.push(1)));
    assert!(matches!(&broken[..], [one] if one.starts_with("memory")));
    let broken = broken_rules(|| first.with(|_| second.with(|count| *count += 1)));
    assert!(matches!(&broken[..], [one] if one.starts_with("a second lock")));
    assert!(broken_rules(|| second.with(|count| *count += 1)).is_empty());
}

static NO_PAPER: StaticError = StaticError::new(1, "no paper");

/// What a node is told.
enum Msg {
    Spawn(u32),
    StopChild(u32),
    FailChild(u32),
    ListChildren,
    Fail,
    Nothing,
    /// To wait for the answer of another one.
    AskAndWait(ActorRef<Msg>),
    Answer(ReplyTo<u32>),
    AskInTurn(ActorRef<Msg>, ReplyTo<u32>),
    Stop,
}

/// Does what it is told, and has such children.
struct Node;

fn child(number: u32) -> String {
    format!("child-{number}")
}

impl Actor for Node {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Spawn(n) => {
                drop(cx.spawn_child(&child(n), || Node).map_err(|_| NO_PAPER.failure())?)
            }
            Msg::StopChild(n) => {
                let child = cx.child(&child(n)).expect("it is there");
                cx.stop_child::<Self::Msg>(&child)?;
            }
            Msg::FailChild(n) => {
                let child = cx.child::<Self::Msg>(&child(n)).expect("it is there");
                child.tell_or_dead_letter(Msg::Fail);
            }
            Msg::ListChildren => assert!(cx.children().count() > 0),
            Msg::Fail => return Err(NO_PAPER.failure()),
            Msg::Nothing => {}
            Msg::AskAndWait(other) => {
                let itself = cx.self_ref();
                let ask = other.ask(move |to| Msg::AskInTurn(itself, to), SECOND);
                cx.wait(ask, |_, _, _| Ok(Next::Stay))?;
            }
            Msg::Answer(to) => to.reply(1),
            Msg::AskInTurn(other, to) => {
                cx.wait(other.ask(Msg::Answer, SECOND), move |_, _, _| {
                    to.reply(2);
                    Ok(Next::Stay)
                })?;
            }
            Msg::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

fn system() -> RootContext {
    start(ActorSystem::builder("t")).0
}

fn tell(root: &mut RootContext, to: &ActorRef<Msg>, messages: impl IntoIterator<Item = Msg>) {
    for message in messages {
        to.tell(message).unwrap();
        root.run_until_idle();
    }
}

#[test]
fn children_come_fail_and_go() {
    for scope in [Scope::OneForOne, Scope::AllForOne, Scope::RestForOne] {
        check(|| {
            let mut root = system();
            let props = Props::new(|| Node).supervise(Strategy::restart());
            let props = props.supervise_children(scope, Strategy::restart());
            let parent = root.spawn("parent", props).unwrap();
            tell(&mut root, &parent, (0..100).map(Msg::Spawn));
            tell(&mut root, &parent, [Msg::FailChild(50), Msg::ListChildren]);
            tell(&mut root, &parent, (0..100).step_by(3).map(Msg::StopChild));
            assert!(root.system().actor_stats(1_000).len() > 60);
            tell(&mut root, &parent, [Msg::Spawn(0), Msg::Fail]);
            tell(&mut root, &parent, (0..9).map(Msg::Spawn));
            let stopped = pin!(root.system().when_stopped(&parent));
            tell(&mut root, &parent, [Msg::Stop]);
            root.block_on(stopped);
        });
    }
}

#[test]
fn routees_come_and_go() {
    check(|| {
        let mut root = system();
        let pool = Pool::round_robin(40, || Node);
        let handle = pool.handle();
        let pool = root.spawn("pool", pool).unwrap();
        for n in [100, 3, 50] {
            handle.resize(n).unwrap();
            tell(&mut root, &pool, (0..2 * n).map(|_| Msg::Nothing));
            tell(&mut root, &pool, [Msg::Stop, Msg::Fail, Msg::Nothing]);
            assert_eq!(handle.len(), n);
        }
        root.system().stop(&pool).unwrap();
        root.run_until_idle();
        assert!(handle.is_empty());
    });
}

#[test]
fn services_and_subscribers_come_and_go() {
    check(|| {
        let mut root = system();
        let desk = root.system().receptionist().clone();
        let keys = ["a", "b", "c"].map(ServiceKey::<Msg>::new);
        let read = Props::from_fn(|_, _: Listing<Msg>| Ok(Next::Stay));
        let reader = root.spawn("reader", read.mailbox(Mailbox::bounded(1))).unwrap();
        let group = root.spawn("group", Group::round_robin(&keys[0])).unwrap();
        keys.iter().for_each(|key| desk.subscribe(key, &reader).unwrap());
        let services: Vec<_> = (0..30).map(|n| root.spawn(&child(n), || Node).unwrap()).collect();
        for key in &keys {
            for service in &services {
                desk.register(key, service).unwrap();
            }
            root.run_until_idle();
            assert_eq!(desk.find(key).services().len(), 30);
        }
        tell(&mut root, &group, (0..40).map(|_| Msg::Nothing));
        assert!(desk.deregister(&keys[1], &services[0]));
        services[..20].iter().for_each(|service| service.tell(Msg::Stop).unwrap());
        root.run_until_idle();
        assert_eq!(desk.find(&keys[2]).services().len(), 10);
        assert!(desk.unsubscribe(&keys[0], &reader));
        root.system().stop(&reader).unwrap();
        root.system().stop(&group).unwrap();
        root.run_until_idle();
    });
}

#[test]
fn actors_wait_for_each_other() {
    check(|| {
        let mut root = system();
        let events = Props::from_fn(|_, _: SystemEvent| Ok(Next::Stay));
        let events = root.spawn("events", events).unwrap();
        root.system().events().subscribe(EventKinds::ASK_CYCLE, events);
        for n in 0..20 {
            let [a, b] = [2 * n, 2 * n + 1].map(|n| root.spawn(&child(n), || Node).unwrap());
            a.tell(Msg::AskAndWait(b)).unwrap();
        }
        root.run_until_idle();
        let answer = root.spawn("one", || Node).unwrap().ask(Msg::Answer, SECOND);
        assert_eq!(root.block_on(answer), Ok(1));
    });
}

#[test]
fn senders_wait_for_room() {
    check(|| {
        let mut root = system();
        let node = Props::new(|| Node).mailbox(Mailbox::bounded(2));
        let node = root.spawn("node", node).unwrap();
        let mut sending: Vec<_> = (0..60).map(|_| Box::pin(node.send(Msg::Nothing))).collect();
        let mut cx = core::task::Context::from_waker(Waker::noop());
        sending.retain_mut(|one| one.as_mut().poll(&mut cx).is_pending());
        assert!(sending.len() > 50);
        sending.drain(10..20);
        root.run_until_idle();
        sending.retain_mut(|one| one.as_mut().poll(&mut cx).is_pending());
        assert!(sending.is_empty(), "all have got room");
        node.tell(Msg::Stop).unwrap();
        sending.extend((0..60).map(|_| Box::pin(node.send(Msg::Nothing))));
        sending.retain_mut(|one| one.as_mut().poll(&mut cx).is_pending());
        root.run_until_idle();
        sending.retain_mut(|one| one.as_mut().poll(&mut cx).is_pending());
        assert!(sending.is_empty(), "the actor has stopped");
    });
}

#[test]
fn a_system_starts_and_terminates() {
    check(|| {
        let mut root = start(ActorSystem::builder("t").on_escalation(|_| ())).0;
        let node = root.spawn("node", || Node).unwrap();
        root.system().on_terminated(|_| ());
        let waiting = (0..9).map(|_| Box::pin(root.system().when_terminated()));
        let mut terminated: Vec<_> = waiting.collect();
        let mut cx = core::task::Context::from_waker(Waker::noop());
        terminated.iter_mut().for_each(|one| assert!(one.as_mut().poll(&mut cx).is_pending()));
        tell(&mut root, &node, [Msg::Fail]);
    });
}
