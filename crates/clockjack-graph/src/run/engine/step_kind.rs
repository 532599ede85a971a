//! Specialised steps for most components.
//!
//! A component that is alone in its region, with a stateless trigger, no edge that may refuse, no
//! pool lane and no budget, does not need most of the general step. What remains is a check for
//! work, a call, and moving the publications into the channels of the readers. The specialised
//! steps do exactly what [`Region::step_general`] does for such a component, and fall back to it
//! whenever something is unusual.
//!
//! Each specialised step pays for itself. Instructions per epoch of 17 components (`cargo xtask
//! counts`), with all of them and without one:
//!
//! | operation | all | without | |
//! |---|--:|--:|---|
//! | `graph/fan_in/epoch` | 6,435 | 8,629 | [`StepKind::AllInputs`] |
//! | `graph/fan_in/epoch` | 6,435 | 17,843 | [`StepKind::PerEpoch`] |
//! | `graph/fan_out/epoch` | 4,981 | 7,158 | [`StepKind::PerEpoch`] |
//! | `graph/chain/epoch` | 5,650 | 20,606 | all of `StepKind` |
//! | `graph/caterpillar/epoch` | 5,439 | 6,237 | [`Downstream::IS_UNOBSERVED`] |
//!
//! A message is written twice: where its publisher stages it, and where its reader sees it. There
//! it stays as the last message of its input, while the next one is written to another place: the
//! other slot of the channel, or, if several inputs are read together, the other one of two lists
//! that are swapped.
//!
//! A worker that runs all regions sequentially knows for the whole epoch whether calls are
//! measured, traced or logged. If not, the compiler generates separate code without these checks
//! ([`Downstream::IS_UNOBSERVED`]).

use super::{
    context::{CallInfo, LastSeen, is_taken},
    env::Env,
    node::{CallOutcome, NodeState, Status, Target},
    region::{Downstream, PublicationCounts, Region},
};
use crate::{
    data::Value,
    run::{
        flow::{channel::Channel, message::Message, outbox::Mark},
        observe::{
            report::Fault,
            trace::{self, Begun, Recorder},
        },
    },
};

/// Which specialised step a region uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// None: the step with all features.
    General,
    /// One call per message of its only channel; the value is the number of the input.
    PerMessage(u16),
    /// One call per epoch.
    PerEpoch,
    /// One call, if every input has a message.
    AllInputs,
}

impl StepKind {
    /// Chooses the cheapest step for a region, and prepares the region for it.
    pub(crate) fn choose(region: &mut Region) {
        region.step_kind = Self::of(region);
        let ([node], channels) = (region.nodes.as_mut_slice(), &mut region.channels) else {
            return;
        };
        match region.step_kind {
            // The channel keeps the last message, so the node need not.
            Self::PerMessage(_) => channels.iter_mut().for_each(Channel::keep_last),
            Self::AllInputs => node.fresh.resize_with(node.last.len(), Message::none),
            Self::PerEpoch | Self::General => {}
        }
    }

    fn of(region: &Region) -> Self {
        let [node] = region.nodes.as_slice() else { return Self::General };
        // A call with a budget is measured in every epoch, which costs more than the rest of a
        // step.
        let is_simple = region.looping.is_none()
            && node.admission.is_none()
            && !node.outbox.is_guarded()
            && !node.is_measured()
            && node.chains.is_none();
        if !is_simple {
            Self::General
        } else if !node.untriggered.is_empty() {
            if node.trigger.is_steady() { Self::PerEpoch } else { Self::General }
        } else if let Some(port) = node.trigger.single() {
            Self::PerMessage(port)
        } else if node.trigger.is_steady() {
            Self::PerEpoch
        } else if node.trigger.is_set_of(region.channels.len()) {
            Self::AllInputs
        } else {
            Self::General
        }
    }
}

impl Region {
    /// One call per message of the only channel.
    #[inline(always)]
    pub(super) fn step_per_message<D: Downstream>(
        &mut self,
        port: u16,
        env: &Env,
        mut downstream: D,
    ) -> Result<u32, Fault> {
        let [channel] = self.channels.as_mut_slice() else { return Ok(0) };
        if !channel.has_update() {
            return Ok(0);
        }
        let [node] = self.nodes.as_mut_slice() else { return Ok(0) };
        if !matches!(node.status, Status::Active) {
            return self.step_per_message_slow(port, env, downstream);
        }
        let Some((message, last)) = channel.open(env.now_ns) else {
            return self.step_per_message_slow(port, env, downstream);
        };
        message.meta.port = port;
        node.trigger.note_ready(1);
        let begun = begin(env, &mut downstream);
        let last_seen = LastSeen { first: port, last: core::slice::from_ref(last) };
        let outcome = node.call_with(env, message, last_seen);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.clock());
            trace::end_unbudgeted(env, node, noted, begun, core::slice::from_ref(message));
        }
        if is_taken(message) {
            channel.was_taken();
        } else {
            last.value.clear();
        }
        // The slot held one message, and no other worker has put one there since.
        let parts = (&mut self.n_published, &mut self.recorder);
        if finish_fast(node, parts, outcome.as_ref(), env, &mut downstream) {
            return Ok(1);
        }
        self.finish(outcome, env, downstream)
    }

    /// The slow path: there may be several messages, they cannot stay in the slot, or the component
    /// may not be callable.
    #[inline(never)]
    fn step_per_message_slow<D: Downstream>(
        &mut self,
        port: u16,
        env: &Env,
        mut downstream: D,
    ) -> Result<u32, Fault> {
        // The node takes over the last message from its channel until the step is done.
        let at = usize::from(port);
        let is_kept = self.channels[0].does_keep_last();
        if is_kept {
            self.nodes[0].last[at] = self.channels[0].take_last();
        }
        let called = self.call_per_message(port, env, &mut downstream);
        if is_kept {
            let last = core::mem::replace(&mut self.nodes[0].last[at], Message::none());
            self.channels[0].give_last(last);
        }
        called
    }

    fn call_per_message(
        &mut self,
        port: u16,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let mut n_called = 0;
        while self.channels[0].has_update() {
            if self.nodes[0].status != Status::Active && !self.reactivate(0, env)? {
                break;
            }
            let Some(mut message) = self.channels[0].pop(env.now_ns) else { break };
            message.meta.port = port;
            n_called += 1;
            self.nodes[0].trigger.note_ready(1);
            let messages = core::slice::from_mut(&mut message);
            self.call_one(0, env, messages, &CallInfo::DEFAULT, downstream.clock())?;
            self.commit(0, env, downstream);
        }
        Ok(n_called)
    }

    /// One call per epoch.
    #[inline(always)]
    pub(super) fn step_per_epoch<D: Downstream>(
        &mut self,
        env: &Env,
        mut downstream: D,
    ) -> Result<u32, Fault> {
        let [node] = self.nodes.as_mut_slice() else { return Ok(0) };
        // The invocation also gets messages of inputs that are not part of the trigger, mostly from
        // a feed.
        let has_update = self.channels.iter().any(Channel::has_update);
        if !matches!(node.status, Status::Active) || has_update {
            return self.step_general(env, &mut { downstream });
        }
        node.trigger.note_ready(1);
        let begun = begin(env, &mut downstream);
        let outcome = node.call(env, &mut [], &CallInfo::DEFAULT);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.clock());
            trace::end_unbudgeted(env, node, noted, begun, &[]);
        }
        let parts = (&mut self.n_published, &mut self.recorder);
        if finish_fast(node, parts, outcome.as_ref(), env, &mut downstream) {
            return Ok(1);
        }
        self.finish(outcome, env, downstream)
    }

    /// One call with one message per input.
    #[inline(never)]
    pub(super) fn step_all_inputs<D: Downstream>(
        &mut self,
        env: &Env,
        mut downstream: D,
    ) -> Result<u32, Fault> {
        let Self { nodes, channels, .. } = self;
        let [node] = nodes.as_mut_slice() else { return Ok(0) };
        let is_ready = matches!(node.status, Status::Active)
            && node.trigger.collect_set(env.now_ns, channels, &mut node.fresh);
        if !is_ready {
            return self.step_general(env, &mut downstream);
        }
        let n_messages = channels.len();
        let begun = begin(env, &mut downstream);
        let outcome = node.call_fresh(env, n_messages);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.clock());
            let fresh = core::mem::take(&mut node.fresh);
            trace::end_unbudgeted(env, node, noted, begun, &fresh[..n_messages]);
            node.fresh = fresh;
        }
        node.keep_fresh(n_messages);
        let parts = (&mut self.n_published, &mut self.recorder);
        if finish_fast(node, parts, outcome.as_ref(), env, &mut downstream) {
            return Ok(1);
        }
        self.finish(outcome, env, downstream)
    }

    /// Finishes the only call of a step, if the fast path could not.
    #[cold]
    fn finish<D: Downstream>(
        &mut self,
        outcome: Option<CallOutcome>,
        env: &Env,
        mut downstream: D,
    ) -> Result<u32, Fault> {
        if let Some(outcome) = outcome {
            self.finish_call(0, env, Mark::START, outcome)?;
        }
        if !self.nodes[0].outbox.has_nothing() {
            self.commit(0, env, &mut downstream);
        }
        Ok(1)
    }
}

/// Finishes the only call of a step, if nothing about it was unusual, and commits what was staged:
/// nothing, or a single publication on immediate edges to other regions. Returns whether the step
/// is done; otherwise the call is counted, and [`Region::finish`] does the rest.
///
/// It takes the parts of the region instead of the region: after the call, the compiler would have
/// to find the node again.
#[inline(always)]
fn finish_fast<D: Downstream>(
    node: &mut NodeState,
    (n_published, recorder): (&mut PublicationCounts, &mut Recorder),
    outcome: Option<&CallOutcome>,
    env: &Env,
    downstream: &mut D,
) -> bool {
    if outcome.is_some() {
        return false;
    }
    node.counts.executions += 1;
    let is_quick = node.is_fast && (D::IS_UNOBSERVED || !env.logs);
    let only = if is_quick { node.outbox.take_only() } else { None };
    let Some(staged) = only else { return node.outbox.has_nothing() };
    let routes = node.routes.get(staged.first as usize..staged.end as usize);
    let Some((last, others)) = routes.and_then(<[_]>::split_last) else { return true };
    n_published.fast += 1 + others.len() as u64;
    let Message { value, meta } = &mut staged.message;
    let value = core::mem::replace(value, Value::UNIT);
    for route in others {
        if let (Target::Region(region, channel), Some(shared)) = (route.to, value.share()) {
            let seq = downstream.deliver((region, channel), env.now_ns, shared, meta);
            if !D::IS_UNOBSERVED {
                trace::committed(env, recorder, downstream.clock(), route.edge, seq);
            }
        }
    }
    if let Target::Region(region, channel) = last.to {
        let seq = downstream.deliver((region, channel), env.now_ns, value, meta);
        if !D::IS_UNOBSERVED {
            trace::committed(env, recorder, downstream.clock(), last.edge, seq);
        }
    }
    true
}

/// The start time of a call, if calls are measured in this epoch.
#[inline(always)]
fn begin<D: Downstream>(env: &Env, downstream: &mut D) -> Begun {
    if D::IS_UNOBSERVED {
        Begun::UNMEASURED
    } else {
        trace::begin_unbudgeted(env, downstream.clock())
    }
}
