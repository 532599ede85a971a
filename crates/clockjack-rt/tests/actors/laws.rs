//! Supervision, stop and watch on several workers.

use core::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{
        Actor, ActorRef, ActorSystem, Context, DeadLetterReason, EventKinds, Failure, Limits, Next,
        Props, Scope, Signal, Strategy, SystemBuilder, SystemEvent,
    },
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{
    eventually::eventually,
    patience::{LONG, patient},
    token::Token,
};

fn runtime(system: SystemBuilder, workers: usize) -> InTime<Runtime> {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(system.shutdown(patient()), config)
        .expect("a pool of a few threads starts");
    InTime::new(runtime, RuntimeConfig::DEFAULT.drop_timeout)
}

/// What is said on a channel, in the order in which it is.
type Said = mpsc::Sender<String>;

/// Says when it starts and when it ends; blocks in its handler if it is told to.
struct Sayer {
    name: &'static str,
    said: Said,
}

enum Order {
    Block(mpsc::Receiver<()>),
    Fail,
    Stop,
    Have(&'static [&'static str]),
    Watch(ActorRef<Order>),
}

impl Sayer {
    fn say(&self, what: &str) {
        // Nobody listens any more when a test has seen enough.
        let _ = self.said.send(format!("{} {what}", self.name));
    }
}

impl Actor for Sayer {
    type Msg = Order;

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.say("started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {
        match order {
            Order::Block(until) => {
                self.say("blocks");
                let _ = until.recv_timeout(LONG);
            }
            Order::Fail => return Err(Failure::msg("asked to")),
            Order::Stop => return Ok(Next::Stop),
            Order::Have(names) => {
                for name in names {
                    let said = self.said.clone();
                    cx.spawn_child(name, move || Self { name, said: said.clone() })?;
                }
                self.say("has them");
            }
            Order::Watch(who) => cx.watch(&who)?,
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::PreRestart => self.say("restarts"),
            Signal::PostStop => self.say("ends"),
            Signal::Terminated(_) => self.say("is told"),
            _ => {}
        }
        Ok(Next::Stay)
    }
}

fn wait_for(said: &mpsc::Receiver<String>, line: &str) {
    wait_for_all(said, &[line]);
}

fn wait_for_all(said: &mpsc::Receiver<String>, lines: &[&str]) {
    let mut lines = lines.to_vec();
    while !lines.is_empty() {
        let next = said.recv_timeout(LONG).unwrap_or_else(|_| panic!("nobody says {lines:?}"));
        lines.retain(|line| *line != next);
    }
}

#[test]
fn a_child_that_does_not_stop_is_told_of_and_holds_up_its_parent_but_not_its_siblings() {
    child_that_does_not_stop(|_| ());
}

#[test]
fn a_child_that_does_not_stop_is_told_of_also_if_the_scheduler_is_closed() {
    child_that_does_not_stop(|rt| _ = rt.system().scheduler().jobs().shutdown());
}

fn child_that_does_not_stop(before_stop: impl FnOnce(&Runtime)) {
    let rt = runtime(ActorSystem::builder("t").stop_timeout(Duration::from_millis(5)), 2);
    let (said, hear) = mpsc::channel();
    let events = said.clone();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Straggler(path) = event {
            let _ = events.send(format!("{path} does not stop"));
        }
        Ok(Next::Stay)
    });
    let listener = rt.spawn("events", listener).unwrap();
    rt.system().events().subscribe(EventKinds::STRAGGLER, listener);
    let top = rt.spawn("a", move || Sayer { name: "a", said: said.clone() }).unwrap();
    top.tell(Order::Have(&["x", "slow", "y"])).unwrap();
    wait_for(&hear, "a has them");
    let (let_go, until) = mpsc::channel();
    let slow: ActorRef<Order> = rt.system().lookup("/user/a/slow").unwrap();
    slow.tell(Order::Block(until)).unwrap();
    wait_for(&hear, "slow blocks");
    before_stop(&rt);
    top.tell(Order::Stop).unwrap();
    // Both come while it blocks, in any order: two actors say them.
    wait_for_all(&hear, &["/user/a/slow does not stop", "x ends"]);
    assert!(!top.is_stopped());
    let_go.send(()).unwrap();
    wait_for(&hear, "slow ends");
    wait_for(&hear, "a ends");
    assert!(rt.shutdown_in_time(LONG).is_clean());
}

#[test]
fn no_member_of_a_group_starts_before_one_that_does_not_end_has_ended() {
    let rt = runtime(ActorSystem::builder("t").stop_timeout(Duration::from_millis(5)), 2);
    let (said, hear) = mpsc::channel();
    let others = said.clone();
    let other = rt.spawn("b", move || Sayer { name: "b", said: others.clone() }).unwrap();
    wait_for(&hear, "b started");
    let top = Props::new(move || Sayer { name: "a", said: said.clone() })
        .supervise_children(Scope::AllForOne, Strategy::restart());
    let top = rt.spawn("a", top).unwrap();
    top.tell(Order::Have(&["x", "y", "slow"])).unwrap();
    wait_for(&hear, "a has them");
    let child =
        |name: &str| -> ActorRef<Order> { rt.system().lookup(&format!("/user/a/{name}")).unwrap() };
    let (let_go, until) = mpsc::channel();
    child("slow").tell(Order::Block(until)).unwrap();
    // The siblings start in order, so all of them have started.
    wait_for(&hear, "slow blocks");
    child("x").tell(Order::Fail).unwrap();
    wait_for(&hear, "y restarts");
    wait_for(&hear, "x restarts");
    // The parent goes on, and starts nobody. A second actor ends each poll of the parent: one poll
    // could handle all rounds, and a member that was told to start would run only after them.
    for _ in 0..50 {
        for (actor, line) in [(&top, "a has them"), (&other, "b has them")] {
            actor.tell(Order::Have(&[])).unwrap();
            assert_eq!(hear.recv_timeout(LONG).unwrap(), line, "the slow one has not ended");
        }
    }
    let_go.send(()).unwrap();
    wait_for(&hear, "slow restarts");
    for name in ["x", "y", "slow"] {
        wait_for(&hear, &format!("{name} started"));
    }
    assert!(rt.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_child_starts_after_the_siblings_that_were_spawned_before_it() {
    /// Waits in its start, so that others could start meanwhile.
    struct Slow(&'static str, Said);
    impl Actor for Slow {
        type Msg = ();

        fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
            let _ = self.1.send(format!("{} begins", self.0));
            thread::sleep(Duration::from_millis(20));
            let _ = self.1.send(format!("{} has started", self.0));
            Ok(Next::Stay)
        }

        fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
            Ok(Next::Stay)
        }
    }
    let rt = runtime(ActorSystem::builder("t"), 4);
    let (said, hear) = mpsc::channel();
    let parent = Props::from_fn(move |cx: &mut Context<'_, _>, (): ()| {
        for name in ["x", "y", "z"] {
            let said = said.clone();
            cx.spawn_child(name, move || Slow(name, said.clone()))?;
        }
        Ok(Next::Stay)
    });
    let parent = parent.supervise_children(Scope::OneForOne, Strategy::restart());
    rt.spawn("a", parent).unwrap().tell(()).unwrap();
    for name in ["x", "y", "z"] {
        for what in ["begins", "has started"] {
            assert_eq!(hear.recv_timeout(LONG).unwrap(), format!("{name} {what}"));
        }
    }
    assert!(rt.shutdown_in_time(LONG).is_clean());
}

#[test]
fn what_is_accepted_is_handled_or_a_dead_letter_while_all_fail_and_restart() {
    const EACH: u64 = 5_000;
    let users = ActorSystem::builder("t").supervise_users(Scope::AllForOne, Strategy::restart());
    let rt = runtime(users, 2);
    let (handled, accepted) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let alive = Arc::new(AtomicI64::new(0));
    let workers: Vec<_> = (0..3)
        .map(|n| {
            let handled = Arc::clone(&handled);
            let props = Props::from_fn(move |_, (number, _token): (u64, Token)| {
                handled.fetch_add(1, SeqCst);
                if number % 7 == 0 { Err(Failure::msg("a seventh")) } else { Ok(Next::Stay) }
            });
            rt.spawn(&format!("w{n}"), props).unwrap()
        })
        .collect();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 0..EACH {
                    for worker in &workers {
                        let sent = worker.tell((number, Token::new(&alive)));
                        accepted.fetch_add(u64::from(sent.is_ok()), SeqCst);
                    }
                }
            });
        }
    });
    eventually("all that was accepted is accounted for", || {
        // A pause of the group lasts longer than there is room for what comes meanwhile.
        let letters = rt.system().metrics().dead_letters(DeadLetterReason::StashFull);
        handled.load(SeqCst) + letters as u64 == accepted.load(SeqCst)
    });
    assert!(rt.shutdown_in_time(LONG).is_clean());
    assert_eq!(alive.load(SeqCst), 0, "none is kept");
}

#[test]
fn each_watcher_is_told_once_whenever_the_end_comes() {
    const WATCHERS: usize = 8;
    let rt = runtime(ActorSystem::builder("t"), 2);
    for round in 0..200 {
        let (said, hear) = mpsc::channel();
        let quiet = said.clone();
        let target =
            rt.spawn(&format!("t{round}"), move || Sayer { name: "t", said: quiet.clone() });
        let target = target.unwrap();
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|n| {
                let said = said.clone();
                let make = move || Sayer { name: "w", said: said.clone() };
                rt.spawn(&format!("w{round}-{n}"), make).unwrap()
            })
            .collect();
        for (n, watcher) in watchers.iter().enumerate() {
            if n == WATCHERS / 2 {
                target.tell(if round % 2 == 0 { Order::Stop } else { Order::Fail }).unwrap();
            }
            watcher.tell(Order::Watch(target.clone())).unwrap();
            watcher.tell(Order::Watch(target.clone())).unwrap();
        }
        for _ in 0..WATCHERS {
            wait_for(&hear, "w is told");
        }
        for watcher in &watchers {
            watcher.tell(Order::Stop).unwrap();
        }
        drop(said);
        for line in hear.iter().take(WATCHERS) {
            // One that had watched again after the end is told again, and rightly so.
            assert!(["w ends", "w is told", "t ends", "t started", "w started"].contains(&&*line));
        }
    }
    assert!(rt.shutdown_in_time(LONG).is_clean());
}

struct Leaf;

impl Actor for Leaf {
    type Msg = u32;

    fn receive(&mut self, cx: &mut Context<'_, Self>, below: u32) -> Result<Next, Failure> {
        if below > 0 {
            cx.spawn_child("c", || Self)?.tell(below - 1)?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn many_actors_and_a_long_line_of_them_stop_at_once() {
    const MANY: usize = 100_000;
    let limits = Limits::DEFAULT.processes(200_000);
    let rt = runtime(ActorSystem::builder("t").limits(limits), 2);
    let refs: Vec<_> = (0..MANY).map(|n| rt.spawn(&format!("n{n}"), || Leaf).unwrap()).collect();
    refs[0].tell(10_000).unwrap();
    let report = rt.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{} did not stop", report.termination.stragglers.len());
    assert!(refs.iter().all(ActorRef::is_stopped));
}

#[test]
fn actors_that_are_started_while_the_system_ends_end_too() {
    for _ in 0..100 {
        let rt = runtime(ActorSystem::builder("t"), 2);
        let refs = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for n in 0..2 {
                let (system, refs) = (rt.system().clone(), &refs);
                scope.spawn(move || {
                    for m in 0..1_000 {
                        match system.spawn(&format!("{n}-{m}"), || Leaf) {
                            Ok(made) => refs.lock().unwrap().push(made),
                            Err(_) => return,
                        }
                    }
                });
            }
            drop(rt.system().shutdown());
        });
        let report = rt.shutdown_in_time(LONG);
        assert!(report.is_clean(), "{report:?}");
        assert!(refs.into_inner().unwrap().iter().all(ActorRef::is_stopped));
    }
}
