//! Random trees, random failures, virtual time: invariants that hold whatever happens.
//!
//! A tree is made from a plan, which each of its actors executes again whenever it starts. Then
//! actions are applied to it: messages, failures, watches, stops, time. Everything that the actors
//! see is recorded, and the invariants are checked on the record.
//!
//! 1. A value of an actor starts, handles messages, and then receives `PreRestart` or `PostStop`,
//!    if it has started, and nothing after that.
//! 2. When an actor receives `PostStop`, none of its descendants is alive.
//! 3. A watch is answered by exactly one notification, once its target has stopped.
//! 4. An accepted message is handled or becomes a dead letter; nothing is lost and nothing is kept.
//! 5. The same plan and the same seed give the same trace.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Context, EventKinds, Failure, Mailbox, Next, Pid, Props,
    RootContext, Scope, Signal, Strategy, SystemEvent,
};
use clockjack_time::ManualClock;
use proptest::{
    prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest},
    strategy::{Just, Strategy as Generator},
    test_runner::TestCaseError,
};

use crate::bench::start_seeded;

const MS: Duration = Duration::from_millis(1);

/// The plan of one actor of the tree.
#[derive(Clone, Debug)]
struct NodePlan {
    /// Its parent: one of the actors before it, or none.
    above: Option<usize>,
    itself: u8,
    children: u8,
    /// Which of its starts fails; none if 0.
    fails_start: u32,
}

/// An action on a tree.
#[derive(Clone, Debug)]
enum Deed {
    Tell(usize, What),
    Stop(usize),
    Watch(usize, usize),
    Unwatch(usize, usize),
    Pass(u16),
    Settle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Work,
    Fail,
    Panic,
    Stop,
    Stash,
    Unstash,
}

/// What an actor has received.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Born,
    Started,
    StartFailed,
    Handled(u32),
    PreRestart,
    PostStop,
    Ended(String, Pid),
    Dropped,
}

/// One line of a trace: which value of which actor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    path: String,
    value: u64,
    seen: Seen,
}

#[derive(Default)]
struct Books {
    lines: Vec<Line>,
    values: u64,
    births: BTreeMap<usize, u32>,
    handled: u64,
    letters: u64,
    /// Messages that are not dropped yet.
    alive: i64,
    /// Watches that were not answered or withdrawn: watcher, target.
    watches: BTreeSet<(Pid, Pid)>,
    /// A notification without a watch.
    stray: Option<String>,
}

#[derive(Clone)]
struct World {
    books: Arc<Mutex<Books>>,
    plans: Arc<Vec<NodePlan>>,
}

impl World {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct Token(World);

impl Token {
    fn new(world: &World) -> Self {
        world.books().alive += 1;
        Self(world.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.books().alive -= 1;
    }
}

enum Msg {
    Do(What, u32, Token),
    Watch(ActorRef<Msg>, Token),
    Unwatch(ActorRef<Msg>, Token),
}

struct Node {
    world: World,
    index: usize,
    value: u64,
    path: String,
}

impl Node {
    fn saw(&self, seen: Seen) {
        let line = Line { path: self.path.clone(), value: self.value, seen };
        self.world.books().lines.push(line);
    }
}

fn strategy(kind: u8) -> Option<Strategy> {
    let backoff = Backoff::new(2 * MS, 20 * MS).jitter(0.5);
    Some(match kind {
        1 => Strategy::restart(),
        2 => Strategy::resume(),
        3 => Strategy::restart().limit(2, 50 * MS),
        4 => Strategy::restart().backoff(backoff).stash(3),
        5 => Strategy::restart().keep_children(),
        6 => Strategy::escalate(),
        7 => Strategy::stop(),
        _ => return None,
    })
}

fn props(world: &World, index: usize) -> Props<Node, impl FnMut() -> Node + Send + use<>> {
    let plan = world.plans[index].clone();
    let world = world.clone();
    let props = Props::new(move || {
        let mut books = world.books();
        books.values += 1;
        *books.births.entry(index).or_default() += 1;
        let value = books.values;
        drop(books);
        Node { world: world.clone(), index, value, path: String::new() }
    });
    let props = props.stash(4).mailbox(Mailbox::unbounded());
    let props = match strategy(plan.itself) {
        Some(strategy) => props.supervise(strategy),
        None => props,
    };
    let scope = [Scope::OneForOne, Scope::AllForOne, Scope::RestForOne];
    match strategy(plan.children % 8) {
        Some(strategy) => {
            props.supervise_children(scope[usize::from(plan.children / 8) % 3], strategy)
        }
        None => props,
    }
}

fn name(index: usize) -> String {
    format!("n{index}")
}

impl Actor for Node {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.path = cx.path().to_string();
        self.saw(Seen::Born);
        for (index, plan) in self.world.plans.iter().enumerate() {
            if plan.above == Some(self.index) {
                // A name may be taken by a child that was kept.
                let _ = cx.spawn_child(&name(index), props(&self.world, index));
            }
        }
        let births = self.world.books().births[&self.index];
        if births == self.world.plans[self.index].fails_start {
            self.saw(Seen::StartFailed);
            return Err(Failure::msg("start"));
        }
        self.saw(Seen::Started);
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let me = cx.pid();
        match msg {
            Msg::Watch(who, token) => {
                self.world.books().handled += 1;
                drop(token);
                cx.watch(&who)?;
                self.world.books().watches.insert((me, who.pid()));
            }
            Msg::Unwatch(who, token) => {
                self.world.books().handled += 1;
                drop(token);
                cx.unwatch(&who);
                self.world.books().watches.remove(&(me, who.pid()));
            }
            Msg::Do(What::Stash, number, token) => {
                // It comes again as work.
                match cx.stash(Msg::Do(What::Work, number, token)) {
                    Ok(()) => {}
                    Err(_) => self.world.books().handled += 1,
                }
            }
            Msg::Do(what, number, _token) => {
                self.world.books().handled += 1;
                self.saw(Seen::Handled(number));
                match what {
                    What::Fail => return Err(Failure::msg("asked to")),
                    What::Panic => panic!("asked to"),
                    What::Stop => return Ok(Next::Stop),
                    What::Unstash => cx.unstash_all(),
                    What::Work | What::Stash => {}
                }
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::PreRestart => self.saw(Seen::PreRestart),
            Signal::PostStop => self.saw(Seen::PostStop),
            Signal::Terminated(end) => {
                self.saw(Seen::Ended(end.path.to_string(), end.pid));
                let mut books = self.world.books();
                if !books.watches.remove(&(cx.pid(), end.pid)) {
                    books.stray = Some(format!("{} of {}", self.path, end.path));
                }
            }
            _ => {}
        }
        Ok(Next::Stay)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.path.is_empty() {
            self.saw(Seen::Dropped);
        }
    }
}

fn plans() -> impl Generator<Value = Vec<NodePlan>> {
    let one = (any::<proptest::sample::Index>(), 0_u8..8, 0_u8..24, 0_u32..6);
    proptest::collection::vec(one, 1..9).prop_map(|raw| {
        let plan = |(at, (above, itself, children, fails)): (usize, (_, u8, u8, u32))| {
            let above: proptest::sample::Index = above;
            let above = above.index(at + 1);
            // The first is at the top, and so are some others.
            let above = (above < at).then_some(above);
            NodePlan { above, itself, children, fails_start: if fails < 4 { 0 } else { fails - 3 } }
        };
        raw.into_iter().enumerate().map(plan).collect()
    })
}

fn deeds() -> impl Generator<Value = Vec<Deed>> {
    let what = prop_oneof![
        4 => Just(What::Work),
        3 => Just(What::Fail),
        1 => Just(What::Panic),
        1 => Just(What::Stop),
        1 => Just(What::Stash),
        1 => Just(What::Unstash),
    ];
    let deed = prop_oneof![
        12 => (0_usize..9, what).prop_map(|(at, what)| Deed::Tell(at, what)),
        1 => (0_usize..9).prop_map(Deed::Stop),
        3 => (0_usize..9, 0_usize..9).prop_map(|(one, other)| Deed::Watch(one, other)),
        1 => (0_usize..9, 0_usize..9).prop_map(|(one, other)| Deed::Unwatch(one, other)),
        3 => (0_u16..30).prop_map(Deed::Pass),
        3 => Just(Deed::Settle),
    ];
    proptest::collection::vec(deed, 0..60)
}

fn path_of(plans: &[NodePlan], index: usize) -> String {
    match plans[index].above {
        Some(above) => format!("{}/{}", path_of(plans, above), name(index)),
        None => format!("/user/{}", name(index)),
    }
}

struct Outcome {
    world: World,
    accepted: u64,
    /// Watches of live actors whose target had stopped when the system was idle.
    unanswered: Vec<(Pid, Pid)>,
}

/// Executes a plan; the caller checks the records.
fn carry_out(plans: &[NodePlan], users: u8, deeds: &[Deed], seed: u64) -> Outcome {
    let world = World { books: Arc::default(), plans: Arc::new(plans.to_vec()) };
    let mut builder = ActorSystem::builder("t").shutdown_on_escalation(false);
    if let Some(strategy) = strategy(users % 8) {
        builder = builder.supervise_users(Scope::OneForOne, strategy);
    }
    let (mut root, clock) = start_seeded(builder, seed);
    count_letters(&mut root, &world);
    for (index, plan) in plans.iter().enumerate() {
        if plan.above.is_none() {
            root.spawn(&name(index), props(&world, index)).unwrap();
        }
    }
    let mut known: BTreeMap<Pid, ActorRef<Msg>> = BTreeMap::new();
    let mut accepted = 0;
    for (number, deed) in (0_u32..).zip(deeds) {
        let mut find = |index: usize| {
            let path = path_of(plans, index % plans.len());
            let found: Option<ActorRef<Msg>> = root.system().lookup(&path).ok();
            if let Some(found) = &found {
                known.insert(found.pid(), found.clone());
            }
            found
        };
        let token = || Token::new(&world);
        let mut tell = |to: &ActorRef<Msg>, msg| accepted += u64::from(to.tell(msg).is_ok());
        match deed {
            Deed::Tell(at, what) => {
                if let Some(to) = find(*at) {
                    tell(&to, Msg::Do(*what, number, token()));
                }
            }
            Deed::Stop(at) => {
                if let Some(to) = find(*at) {
                    let stop = clockjack_actor::SystemMessage::Stop;
                    let _ = to.try_send_system(stop);
                }
            }
            Deed::Watch(one, other) | Deed::Unwatch(one, other) => {
                let (Some(to), Some(who)) = (find(*one), find(*other)) else { continue };
                // A restart unwatches the children, which the records do not know.
                if who.path().is_below_or_at(&to.path()) {
                    continue;
                }
                let is_watch = matches!(deed, Deed::Watch(..));
                let make = if is_watch { Msg::Watch } else { Msg::Unwatch };
                tell(&to, make(who, token()));
            }
            Deed::Pass(ms) => {
                clock.advance(u32::from(*ms) * MS);
                root.run_until_idle();
            }
            Deed::Settle => _ = root.run_until_idle(),
        }
    }
    let unanswered = wind_up(&mut root, &clock, &world, known);
    Outcome { world, accepted, unanswered }
}

/// Runs the system until it is idle, and then terminates it. Returns the watches of live actors
/// whose target had stopped.
fn wind_up(
    root: &mut RootContext,
    clock: &ManualClock,
    world: &World,
    known: BTreeMap<Pid, ActorRef<Msg>>,
) -> Vec<(Pid, Pid)> {
    // All backoff delays pass.
    for _ in 0..200 {
        clock.advance(31 * MS);
        root.run_until_idle();
    }
    let unanswered = {
        let books = world.books();
        let is_stopped = |pid: &Pid| known.get(pid).is_none_or(ActorRef::is_stopped);
        let due = books.watches.iter().filter(|(one, other)| !is_stopped(one) && is_stopped(other));
        due.copied().collect()
    };
    drop(known);
    // Stashed messages are dropped with their actor, while the counter still counts.
    for (index, plan) in world.plans.iter().enumerate() {
        if plan.above.is_none()
            && let Ok(top) = root.system().lookup::<Msg>(&path_of(&world.plans, index))
        {
            root.system().stop(&top).unwrap();
        }
    }
    root.run_until_idle();
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().is_some(), "it has ended");
    unanswered
}

/// Counts dead letters.
fn count_letters(root: &mut RootContext, world: &World) {
    let to = world.clone();
    let props = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::DeadLetter(letter) = event {
            to.books().letters += u64::from(letter.message_type.contains("Msg"));
        }
        Ok(Next::Stay)
    });
    let counter = root.spawn("counter", props.mailbox(Mailbox::unbounded())).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER, counter);
}

/// Invariants 1 and 2.
fn check_lives(lines: &[Line]) -> Result<(), TestCaseError> {
    let mut lives: BTreeMap<u64, Vec<&Seen>> = BTreeMap::new();
    let mut alive: BTreeMap<u64, &str> = BTreeMap::new();
    for line in lines {
        let life = lives.entry(line.value).or_default();
        let last = life.last().copied();
        let is_fine = match (&line.seen, last) {
            (Seen::Born, last) => last.is_none(),
            (Seen::Started | Seen::StartFailed, last) => last == Some(&Seen::Born),
            (Seen::Handled(_) | Seen::Ended(..) | Seen::PreRestart | Seen::PostStop, last) => {
                matches!(last, Some(Seen::Started | Seen::Handled(_) | Seen::Ended(..)))
            }
            (Seen::Dropped, last) => {
                matches!(last, Some(Seen::StartFailed | Seen::PreRestart | Seen::PostStop))
            }
        };
        prop_assert!(is_fine, "{:?} after {:?}", line, last);
        match line.seen {
            Seen::Born => _ = alive.insert(line.value, &line.path),
            Seen::Dropped => _ = alive.remove(&line.value),
            Seen::PostStop => {
                let below = format!("{}/", line.path);
                let left = alive.values().find(|path| path.starts_with(&below));
                prop_assert!(left.is_none(), "{:?} is alive at the end of {}", left, line.path);
            }
            _ => {}
        }
        life.push(&line.seen);
    }
    prop_assert!(alive.is_empty(), "{:?} were not dropped", alive);
    Ok(())
}

proptest! {
    #![proptest_config(proptest::test_runner::Config {
        cases: if cfg!(miri) { 4 } else { 300 },
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn the_laws_of_restart_watch_and_stop_hold_for_random_trees(
        plans in plans(),
        users in 0_u8..8,
        deeds in deeds(),
        seed in any::<u64>(),
    ) {
        let outcome = carry_out(&plans, users, &deeds, seed);
        let books = outcome.world.books();
        check_lives(&books.lines)?;
        prop_assert_eq!(&books.stray, &None, "a notice without a watch");
        prop_assert_eq!(&outcome.unanswered, &vec![], "an end that was not told");
        prop_assert_eq!(books.alive, 0, "messages that nobody has dropped");
        prop_assert_eq!(
            outcome.accepted, books.handled + books.letters,
            "accepted is handled or a dead letter"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_trace(
        plans in plans(),
        users in 0_u8..8,
        deeds in deeds(),
        seed in any::<u64>(),
    ) {
        let trace = || carry_out(&plans, users, &deeds, seed).world.books().lines.clone();
        prop_assert_eq!(trace(), trace());
    }
}
