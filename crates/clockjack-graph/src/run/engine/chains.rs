//! Chains: how long data takes from one component to another, and whether that is within budget.
//!
//! Each call of a component on a chain has an *origin* per chain: when the oldest data that reached
//! the call began. At the beginning of a chain that is the call itself; further on it is the
//! earliest origin of the messages that the component was called with. A call that got none has no
//! origin, and so have its publications. When a call at the end of a chain succeeds, the time from
//! its origin to its own end is a sample of the chain.
//!
//! With the clock of the system, times are measured. In simulated time a call begins when the epoch
//! does, or when all its data was there, and takes as long as the cost model of the run says:
//! without a model no time. So samples depend on the graph and its inputs only.
//!
//! [`origins`](crate::run::flow::origins) says how origins travel with messages.

use std::{collections::BTreeMap, sync::Arc};

use super::{call_cost::CallCost, env::Env, region::Region};
use crate::{
    compile::Plan,
    run::{
        flow::{
            channel::Channel,
            message::Message,
            origins::{MessageCalls, NO_ORIGIN, Origins},
            outbox::{Mark, Outbox},
            pending,
        },
        observe::metrics::user::Samples,
    },
};

/// The chains of a run, before its components are wired.
pub(crate) struct ChainTable {
    /// For each component on a chain: the chains, in order, and its calls.
    parts: BTreeMap<usize, (Vec<usize>, Arc<Origins>)>,
    cost: Option<CallCost>,
}

/// What a component on a chain knows about its calls.
pub(crate) struct NodeChains {
    pub(crate) chains: Vec<ChainAt>,
    inputs: Vec<ChainInput>,
    /// Of its own calls, for the readers of what it publishes.
    origins: Arc<Origins>,
    /// How long calls take in simulated time.
    cost: Option<CallCost>,
    n_calls: u64,
    /// The calls that are made now: for each its number, when it began, and an origin per chain.
    calls: Vec<u64>,
    /// The calls whose tasks have not ended. There are at most as many as tasks.
    held: BTreeMap<u64, HeldCall>,
}

/// A call whose tasks have not ended: their results come when the entry of the call may be gone.
struct HeldCall {
    n_tasks: u32,
    ended_ns: u64,
    origins: Vec<u64>,
}

/// The part of a component in a chain.
pub(crate) struct ChainAt {
    /// The index of the chain in the plan.
    pub(crate) chain: usize,
    begins: bool,
    /// The samples, if the chain ends here.
    pub(crate) end: Option<ChainEnd>,
}

/// The samples of a chain.
pub(crate) struct ChainEnd {
    max_ns: u64,
    pub(crate) samples_ms: Samples,
    pub(crate) n_violations: u64,
    /// The value of `n_violations` at the last report.
    n_reported: u64,
    /// When the last violation happened.
    violated_ns: u64,
}

/// An input on a chain.
struct ChainInput {
    edge: u32,
    /// Its channel in the region.
    channel: usize,
    /// The calls of the publisher.
    origins: Arc<Origins>,
    /// The chains on the edge: their indices at the publisher and here.
    pairs: Vec<(usize, usize)>,
}

impl ChainTable {
    pub(crate) fn new(plan: &Plan, cost: Option<CallCost>) -> Self {
        let mut chains: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut n_messages: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, chain) in plan.chains.iter().enumerate() {
            for edge in &chain.edges {
                let (from, to) = (plan.edges[*edge].from.0, plan.edges[*edge].to.0);
                for component in [from, to] {
                    let list = chains.entry(component).or_default();
                    if list.last() != Some(&at) {
                        list.push(at);
                    }
                }
                let most = n_messages.entry(from).or_default();
                // As many again may be deferred to the next epoch, or held by a loop.
                *most = (*most).max(n_kept(plan, *edge).saturating_mul(2));
            }
        }
        let part = |(component, list): (usize, Vec<usize>)| {
            let n_messages = n_messages.get(&component).copied().unwrap_or(0);
            let origins = Arc::new(Origins::new(list.len(), n_messages));
            (component, (list, origins))
        };
        Self { parts: chains.into_iter().map(part).collect(), cost }
    }

    /// The chains of a component, whose channels begin at `first` in its region; `None` if it is on
    /// none. Its channels on chains then keep where their messages come from.
    pub(crate) fn node(
        &self,
        plan: &Plan,
        component: usize,
        first: usize,
        channels: &mut [Channel],
    ) -> Option<NodeChains> {
        let (list, origins) = self.parts.get(&component)?;
        let chains = list.iter().map(|at| {
            let chain = &plan.chains[*at];
            ChainAt {
                chain: *at,
                begins: chain.from == component,
                end: (chain.to == component).then(|| ChainEnd::new(chain.max_ms)),
            }
        });
        let mut inputs = Vec::new();
        for (at, channel) in channels.iter_mut().enumerate().skip(first) {
            let edge = channel.edge() as usize;
            let on =
                list.iter().enumerate().filter(|(_, at)| plan.chains[**at].edges.contains(&edge));
            let Some((theirs, origins)) = self.parts.get(&plan.edges[edge].from.0) else {
                continue;
            };
            let pair = |(here, at): (usize, &usize)| {
                Some((theirs.iter().position(|one| one == at)?, here))
            };
            let pairs: Vec<(usize, usize)> = on.filter_map(pair).collect();
            if pairs.is_empty() {
                continue;
            }
            channel.track(MessageCalls::new(n_kept(plan, edge)));
            let (edge, origins) = (channel.edge(), Arc::clone(origins));
            inputs.push(ChainInput { edge, channel: at, origins, pairs });
        }
        Some(NodeChains {
            chains: chains.collect(),
            inputs,
            origins: Arc::clone(origins),
            cost: self.cost.clone(),
            n_calls: 0,
            calls: Vec::new(),
            held: BTreeMap::new(),
        })
    }
}

/// The most messages of an edge that its channel and the trigger of its reader keep.
fn n_kept(plan: &Plan, edge: usize) -> usize {
    let reader = &plan.components[plan.edges[edge].to.0];
    let edges = &reader.inputs[plan.edges[edge].to.1].edges;
    let n_places = edges.iter().map(|one| u64::from(plan.edges[*one].policy.capacity.max(2))).sum();
    let n_pending = pending::bound(n_places, reader.spec.trigger.batch_size, false);
    usize::try_from(n_places).unwrap_or(usize::MAX).saturating_add(n_pending)
}

impl NodeChains {
    /// The numbers of one call in `calls`.
    fn width(&self) -> usize {
        self.chains.len() + 2
    }

    /// The number of a call that is made now.
    pub(crate) fn number(&self, index: usize) -> u64 {
        self.calls.get(index * self.width()).copied().unwrap_or(0)
    }

    /// A step begins: it has no calls yet.
    fn clear(&mut self) {
        self.calls.clear();
    }

    /// A call begins with these messages.
    fn begin(&mut self, env: &Env, channels: &mut [Channel], messages: &[Message]) {
        self.n_calls += 1;
        let mut began_ns = if env.is_simulated { env.now_ns } else { env.since_start() };
        let first = self.calls.len() + 2;
        self.calls.extend([self.n_calls, began_ns]);
        self.calls.extend(self.chains.iter().map(|_| NO_ORIGIN));
        let origins = &mut self.calls[first..];
        for message in messages {
            let on_edge = |input: &&ChainInput| input.edge == message.meta.edge;
            let Some(input) = self.inputs.iter().find(on_edge) else { continue };
            let Some(call) = channels[input.channel].take_call(message.meta.seq) else {
                continue;
            };
            input.origins.read(call, |ended_ns, origin| {
                if env.is_simulated {
                    began_ns = began_ns.max(ended_ns);
                }
                for (theirs, here) in &input.pairs {
                    origins[*here] = origins[*here].min(origin(*theirs));
                }
            });
        }
        for (chain, origin) in self.chains.iter().zip(origins) {
            if chain.begins {
                *origin = began_ns;
            }
        }
        self.calls[first - 1] = began_ns;
    }

    /// A call of this component has succeeded; what it staged after `kept` gets its number.
    fn end(
        &mut self,
        index: usize,
        env: &Env,
        id: &str,
        outbox: &mut Outbox,
        kept: Mark,
        task: bool,
    ) {
        let first = index * self.width();
        let (call, began_ns) = (self.calls[first], self.calls[first + 1]);
        let ended_ns = match &self.cost {
            _ if !env.is_simulated => env.since_start(),
            Some(cost) => began_ns.saturating_add(cost.of(id, env.epoch)),
            None => began_ns,
        };
        let origins = &self.calls[first + 2..first + 2 + self.chains.len()];
        for (chain, origin) in self.chains.iter_mut().zip(origins) {
            if let (Some(end), true) = (&mut chain.end, *origin != NO_ORIGIN) {
                end.add(ended_ns.saturating_sub(*origin), ended_ns);
            }
        }
        let n_staged = outbox.set_call_after(kept, call);
        if (n_staged > 0 || task) && origins.iter().any(|origin| *origin != NO_ORIGIN) {
            self.origins.push(call, ended_ns, origins);
        }
    }

    /// A task of this call begins.
    pub(crate) fn hold(&mut self, call: u64) {
        if let Some(held) = self.held.get_mut(&call) {
            held.n_tasks += 1;
            return;
        }
        let n_chains = self.chains.len();
        self.origins.read(call, |ended_ns, origin| {
            let origins = (0..n_chains).map(origin).collect();
            self.held.insert(call, HeldCall { n_tasks: 1, ended_ns, origins });
        });
    }

    /// A task of this call has ended. If its result is published, returns the number of a new call
    /// with the same origins, which stands for the old one; else zero.
    pub(crate) fn release(&mut self, call: u64, is_published: bool) -> u64 {
        let Some(held) = self.held.get_mut(&call) else { return 0 };
        held.n_tasks -= 1;
        if is_published {
            self.n_calls += 1;
            self.origins.push(self.n_calls, held.ended_ns, &held.origins);
        }
        if held.n_tasks == 0 {
            self.held.remove(&call);
        }
        if is_published { self.n_calls } else { 0 }
    }

    /// Values are published for the component without a call, by a feed: the chains that begin
    /// here begin now. Returns the number that stands for the call.
    pub(crate) fn feed(&mut self, env: &Env) -> u64 {
        self.clear();
        self.begin(env, &mut [], &[]);
        let (call, began_ns) = (self.calls[0], self.calls[1]);
        self.origins.push(call, began_ns, &self.calls[2..]);
        call
    }
}

impl ChainEnd {
    fn new(max_ms: u64) -> Self {
        Self {
            max_ns: max_ms.saturating_mul(1_000_000),
            samples_ms: Samples::new(),
            n_violations: 0,
            n_reported: 0,
            violated_ns: 0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    fn add(&mut self, latency_ns: u64, ended_ns: u64) {
        self.samples_ms.put(latency_ns as f64 / 1e6);
        if latency_ns > self.max_ns {
            self.n_violations += 1;
            self.violated_ns = ended_ns;
        }
    }

    /// How many violations there were since the last call of this method, and when the last one
    /// happened.
    pub(crate) fn take_new_violations(&mut self) -> (u64, u64) {
        let before = core::mem::replace(&mut self.n_reported, self.n_violations);
        (self.n_violations - before, self.violated_ns)
    }
}

impl Region {
    /// Begins a call of a node on a chain, the only one of its step; returns its number.
    #[cold]
    pub(super) fn begin_chains(&mut self, at: usize, env: &Env, messages: &[Message]) -> u64 {
        let Some(chains) = &mut self.nodes[at].chains else { return 0 };
        chains.clear();
        chains.begin(env, &mut self.channels, messages);
        chains.number(0)
    }

    /// Begins all calls of a batch of a node on a chain.
    #[cold]
    pub(super) fn begin_chains_of_batch(&mut self, at: usize, env: &Env) {
        let Some(chains) = &mut self.nodes[at].chains else { return };
        chains.clear();
        for index in 0..self.invocations.len() {
            chains.begin(env, &mut self.channels, self.invocations.get_mut(index).1);
        }
    }

    /// Ends a call of a node on a chain that has succeeded.
    #[cold]
    pub(super) fn end_chains(&mut self, at: usize, index: usize, env: &Env, kept: Mark) {
        let node = &mut self.nodes[at];
        let Some(chains) = &mut node.chains else { return };
        let task = env.tasks.has_submitted(node.component);
        chains.end(index, env, &node.id, &mut node.outbox, kept, task);
    }
}
