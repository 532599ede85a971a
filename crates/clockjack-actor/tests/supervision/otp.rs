//! Random trees of supervisors, compared with a model of OTP's `supervisor`.
//!
//! Each actor of a tree supervises its children with a scope and a limit of its own, and spawns
//! them in its start. The script makes actors fail, lets starts fail, and lets time pass. The model
//! is a page of code that does what `supervisor.erl` (OTP 25) does, one step after another: it ends
//! the children of a group from the last to the first, starts them from the first to the last,
//! counts each restart for the intensity and the period of the supervisor, and lets the supervisor
//! itself fail when they are exceeded.
//!
//! # Laws
//!
//! The laws of a group of siblings, which are the children that a scope restarts or stops because
//! of one of them (all of them, or the one that has failed and those that are newer):
//!
//! 1. The group is stopped newest first; each member has stopped before the next one is asked to.
//! 2. After the last member has stopped, the group is started oldest first; each start has
//!    succeeded before the next one begins. So no member runs while something that it depends on
//!    is of another incarnation.
//! 3. A start that fails within the group is tried again, and the members that have started stay.
//! 4. A group that the decision is to stop is stopped in the same order, and not started.
//! 5. The restarts of all children count together against the limit of their supervisor. A restart
//!    of a group is one, however many members the group has, and so is each repetition of law 3.
//! 6. Children that were spawned one after another start in that order.
//!
//! # Differences
//!
//! The model differs from OTP where Clockjack does, on purpose:
//!
//! * An actor that has failed is still there; it ends in its turn among its siblings. (A process of
//!   Erlang has gone when its supervisor learns of the failure.)
//! * The hook of a restart comes before the children stop, as in Pekko.
//! * A start that fails within a group is tried again alone. (OTP does so under rest-for-one; under
//!   one-for-all it ends the others again for every attempt.)
//! * A restart leaves the period when it is exactly as old as the period. (OTP's period is a whole
//!   number of seconds, both ends included.)
//!
//! Compared is what happens to the children of each actor, in order. The children of an actor start
//! while its siblings do, so there is no order between the two.

use alloc::{collections::BTreeMap, sync::Arc};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, Scope, Signal, Strategy,
};
use proptest::{
    prelude::{prop_assert_eq, prop_oneof, proptest},
    strategy::{Just, Strategy as Generator},
    test_runner::Config,
};

use crate::bench::start;

/// The number of random trees.
const TREES: u32 = 1_000;

/// An actor of the tree, and how it supervises.
#[derive(Clone, Debug)]
struct NodePlan {
    /// None for the first one only.
    above: Option<usize>,
    scope: Scope,
    intensity: u32,
    period_ms: u64,
}

#[derive(Clone, Debug)]
enum Step {
    /// The actor fails, if it is there.
    Fail(usize),
    /// So many of the next starts of the actor fail that belong to a restart.
    FailStarts(usize, u32),
    Pass(u64),
}

#[derive(Clone, Debug)]
struct Script {
    nodes: Vec<NodePlan>,
    steps: Vec<Step>,
}

fn scripts() -> impl Generator<Value = Script> {
    let scope =
        prop_oneof![Just(Scope::OneForOne), Just(Scope::AllForOne), Just(Scope::RestForOne)];
    let node = (0_usize..64, scope, 0_u32..5, 1_u64..40);
    let nodes = proptest::collection::vec(node, 1..10).prop_map(|all| {
        let plan = |at: usize, above: usize, scope, intensity, period_ms| NodePlan {
            // Many children of few parents.
            above: at.checked_sub(1).map(|_| (above % at).min(above % 4)),
            scope,
            intensity,
            period_ms,
        };
        let plans = all.into_iter().enumerate();
        plans.map(|(at, (above, a, b, c))| plan(at, above, a, b, c)).collect::<Vec<_>>()
    });
    let step = prop_oneof![
        4 => (0_usize..64).prop_map(Step::Fail),
        1 => (0_usize..64, 1_u32..4).prop_map(|(who, n)| Step::FailStarts(who, n)),
        2 => (1_u64..30).prop_map(Step::Pass),
    ];
    (nodes, proptest::collection::vec(step, 1..30))
        .prop_map(|(nodes, steps)| Script { nodes, steps })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Start,
    StartFails,
    End,
}

/// What has happened, in order; and how many of the next starts of each actor fail.
#[derive(Default)]
struct Record {
    events: Vec<(usize, Event)>,
    failing: BTreeMap<usize, u32>,
}

impl Record {
    /// An actor starts; false if the start fails. The first start of an actor does not.
    fn start(&mut self, who: usize, is_first: bool) -> bool {
        let left = self.failing.entry(who).or_default();
        let fails = !is_first && *left > 0;
        if fails {
            *left -= 1;
        }
        self.events.push((who, if fails { Event::StartFails } else { Event::Start }));
        !fails
    }

    /// The events of the children of each actor.
    fn by_parent(&self, nodes: &[NodePlan]) -> BTreeMap<Option<usize>, Vec<(usize, Event)>> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for event in &self.events {
            all.entry(nodes[event.0].above).or_default().push(*event);
        }
        all
    }
}

fn children_of(nodes: &[NodePlan], above: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
    let are: Vec<_> = (0..nodes.len()).filter(|at| nodes[*at].above == Some(above)).collect();
    are.into_iter()
}

/// The model.
struct Model {
    nodes: Vec<NodePlan>,
    record: Record,
    now: u64,
    /// Whether the actor exists.
    exists: Vec<bool>,
    /// Whether the actor has a value, that is, has started and not ended.
    has_value: Vec<bool>,
    /// When the supervisor has restarted children.
    restarts: Vec<Vec<u64>>,
}

impl Model {
    fn new(nodes: &[NodePlan]) -> Self {
        let n = nodes.len();
        let mut this = Self {
            nodes: nodes.to_vec(),
            record: Record::default(),
            now: 0,
            exists: vec![false; n],
            has_value: vec![false; n],
            restarts: vec![Vec::new(); n],
        };
        this.start(0);
        this
    }

    /// Starts an actor and what is below it; false if the start fails.
    fn start(&mut self, who: usize) -> bool {
        let is_first = !core::mem::replace(&mut self.exists[who], true);
        self.has_value[who] = self.record.start(who, is_first);
        if !self.has_value[who] {
            return false;
        }
        self.restarts[who].clear();
        for child in children_of(&self.nodes, who) {
            self.start(child);
        }
        true
    }

    fn end(&mut self, who: usize) {
        if core::mem::replace(&mut self.has_value[who], false) {
            self.record.events.push((who, Event::End));
        }
    }

    fn stop_children(&mut self, who: usize) {
        for child in children_of(&self.nodes, who).rev() {
            self.stop(child);
        }
    }

    fn stop(&mut self, who: usize) {
        if core::mem::replace(&mut self.exists[who], false) {
            self.stop_children(who);
            self.end(who);
        }
    }

    /// An actor that exists has failed.
    fn fail(&mut self, who: usize) {
        let Some(above) = self.nodes[who].above else { return self.stop(who) };
        let group: Vec<_> = match self.nodes[above].scope {
            Scope::OneForOne => vec![who],
            Scope::AllForOne => children_of(&self.nodes, above).collect(),
            Scope::RestForOne => children_of(&self.nodes, above).filter(|at| *at >= who).collect(),
        };
        if !self.may_restart(above) {
            return self.fail(above);
        }
        for &member in group.iter().rev() {
            self.end(member);
            self.stop_children(member);
        }
        for member in group {
            while !self.start(member) {
                if !self.may_restart(above) {
                    return self.fail(above);
                }
            }
        }
    }

    /// Counts a restart; false if there are too many.
    fn may_restart(&mut self, supervisor: usize) -> bool {
        let NodePlan { intensity, period_ms, .. } = self.nodes[supervisor];
        let now = self.now;
        self.restarts[supervisor].retain(|at| now - at < period_ms);
        let is_fine = self.restarts[supervisor].len() < intensity as usize;
        self.restarts[supervisor].push(now);
        is_fine
    }
}

#[derive(Clone)]
struct Shared {
    nodes: Arc<Vec<NodePlan>>,
    record: Arc<Mutex<Record>>,
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    fn props(&self, who: usize) -> Props<Node, impl FnMut() -> Node + Send + use<>> {
        let (shared, mut is_first) = (self.clone(), true);
        let NodePlan { scope, intensity, period_ms, .. } = self.nodes[who];
        let strategy = Strategy::restart().limit(intensity, Duration::from_millis(period_ms));
        Props::new(move || Node {
            shared: shared.clone(),
            who,
            is_first: core::mem::replace(&mut is_first, false),
        })
        .supervise_children(scope, strategy)
    }

    fn path(&self, who: usize) -> String {
        let above = self.nodes[who].above.map_or("/user".to_owned(), |above| self.path(above));
        format!("{above}/{who}")
    }
}

struct Node {
    shared: Shared,
    who: usize,
    is_first: bool,
}

impl Actor for Node {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if !self.shared.record().start(self.who, self.is_first) {
            return Err(Failure::msg("the start fails"));
        }
        for child in children_of(&self.shared.nodes, self.who) {
            cx.spawn_child(&child.to_string(), self.shared.props(child))?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Err(Failure::msg("fails"))
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if matches!(signal, Signal::PreRestart | Signal::PostStop) {
            self.shared.record().events.push((self.who, Event::End));
        }
        Ok(Next::Stay)
    }
}

proptest! {
    #![proptest_config(Config::with_cases(TREES))]

    #[test]
    fn supervisors_do_what_those_of_otp_do(script in scripts()) {
        let Script { nodes, steps } = script;
        let (mut root, clock) = start(ActorSystem::builder("t"));
        let shared = Shared { nodes: Arc::new(nodes.clone()), record: Arc::default() };
        let mut model = Model::new(&nodes);
        root.spawn("0", shared.props(0)).unwrap();
        root.run_until_idle();
        for (n, step) in steps.iter().enumerate() {
            match *step {
                Step::Fail(who) => {
                    let who = who % nodes.len();
                    let found = root.system().lookup::<()>(&shared.path(who));
                    prop_assert_eq!(found.is_ok(), model.exists[who], "{} in step {}", who, n);
                    if let Ok(one) = found {
                        ActorRef::tell(&one, ()).unwrap();
                        root.run_until_idle();
                        model.fail(who);
                    }
                }
                Step::FailStarts(who, starts) => {
                    let who = who % nodes.len();
                    shared.record().failing.insert(who, starts);
                    model.record.failing.insert(who, starts);
                }
                Step::Pass(ms) => {
                    clock.advance(Duration::from_millis(ms));
                    root.run_until_idle();
                    model.now += ms;
                }
            }
            let seen = shared.record().by_parent(&nodes);
            let expected = model.record.by_parent(&nodes);
            prop_assert_eq!(seen, expected, "step {}", n);
        }
    }
}
