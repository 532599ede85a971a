//! The step of most components.
//!
//! A component alone in its region, with a trigger that needs nothing kept, no edge that may refuse
//! and no pool to admit it, does not need most of what a step may have to do. What is left is a
//! look whether there is something to do, a call, and the move of what was published into the
//! channels of those who read it. These ways do exactly what [`Region::step_full`] does for such a
//! component, and go to it whenever something is out of the ordinary.

use super::channel::Channel;
use super::context::is_taken;
use super::env::Env;
use super::message::Message;
use super::node::{Occasion, Status, To};
use super::region::{Downstream, Region};
use super::report::Fault;
use super::trace;
use crate::data::Value;

/// How a region is stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// With all there may be to it.
    Full,
    /// A call for each message of its one channel, which is that of this input.
    Each(u16),
    /// One call in every epoch.
    Once,
    /// One call, if there is a message at each input.
    Set,
}

impl Way {
    /// The shortest way to step a region.
    pub(crate) fn of(region: &Region) -> Self {
        let [node] = region.nodes.as_slice() else { return Self::Full };
        let is_plain =
            region.looping.is_none() && node.admission.is_none() && !node.outbox.is_guarded();
        if !is_plain {
            Self::Full
        } else if !node.beside.is_empty() {
            if node.trigger.is_steady() { Self::Once } else { Self::Full }
        } else if let Some(port) = node.trigger.single() {
            Self::Each(port)
        } else if node.trigger.is_steady() {
            Self::Once
        } else if node.trigger.is_set() {
            Self::Set
        } else {
            Self::Full
        }
    }
}

impl Region {
    /// A call for each message of the one channel.
    #[inline(always)]
    pub(super) fn step_each(
        &mut self,
        port: u16,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let ([node], [channel]) = (self.nodes.as_mut_slice(), self.channels.as_mut_slice()) else {
            return Ok(0);
        };
        if !channel.has_update() {
            return Ok(0);
        }
        if node.status != Status::Active {
            return self.step_each_slowly(port, env, downstream);
        }
        let Some(slot) = channel.open(env.now_ns) else {
            return self.step_each_slowly(port, env, downstream);
        };
        let Some(message) = slot else { return Ok(0) };
        message.meta.port = port;
        node.trigger.note_ready(1);
        let begun = trace::begin(env, node, downstream.glance());
        let invoked = node.call(env, core::slice::from_mut(message), Occasion::PLAIN);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.glance());
            trace::end(env, node, noted, begun, core::slice::from_ref(message));
        }
        if is_taken(message) {
            *slot = None;
        } else if let Some(last) = node.last.get_mut(usize::from(port)) {
            Message::move_to(slot, last);
        }
        match invoked {
            None => node.counts.executions += 1,
            Some(told) => self.settle(0, env, 0, told)?,
        }
        self.commit_plain(env, downstream);
        // The slot held one message, and nobody has put another one there meanwhile.
        Ok(1)
    }

    /// The same, when there may be several messages, or they cannot stay where they are, or no call
    /// may be made.
    #[inline(never)]
    fn step_each_slowly(
        &mut self,
        port: u16,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let mut n_called = 0;
        while self.channels[0].has_update() {
            if self.nodes[0].status != Status::Active && !self.wake(0, env)? {
                break;
            }
            let Some(mut message) = self.channels[0].pop(env.now_ns) else { break };
            message.meta.port = port;
            n_called += 1;
            self.nodes[0].trigger.note_ready(1);
            let messages = core::slice::from_mut(&mut message);
            self.call_one(0, env, messages, Occasion::PLAIN, downstream.glance())?;
            self.commit_plain(env, downstream);
        }
        Ok(n_called)
    }

    /// One call.
    #[inline(always)]
    pub(super) fn step_once(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let [node] = self.nodes.as_mut_slice() else { return Ok(0) };
        // What came beside its trigger, from a feed mostly, is for the invocation.
        let has_update = self.channels.iter().any(Channel::has_update);
        if node.status != Status::Active || has_update {
            return self.step_full(env, downstream);
        }
        node.trigger.note_ready(1);
        let begun = trace::begin(env, node, downstream.glance());
        let invoked = node.call(env, &mut [], Occasion::PLAIN);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.glance());
            trace::end(env, node, noted, begun, &[]);
        }
        match invoked {
            None => node.counts.executions += 1,
            Some(told) => self.settle(0, env, 0, told)?,
        }
        self.commit_plain(env, downstream);
        Ok(1)
    }

    /// One call with a message of each input.
    #[inline(never)]
    pub(super) fn step_set(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let Self { nodes, channels, invocations, .. } = self;
        let node = &mut nodes[0];
        invocations.clear();
        if node.status != Status::Active
            || !node.trigger.collect_set(env.now_ns, channels, invocations)
        {
            return self.step_full(env, downstream);
        }
        let (_, messages) = invocations.get_mut(0);
        let begun = trace::begin(env, node, downstream.glance());
        let invoked = node.call(env, messages, Occasion::PLAIN);
        if begun.is_measured() {
            let noted = (&mut self.recorder, downstream.glance());
            trace::end(env, node, noted, begun, messages);
        }
        for message in messages {
            node.keep_one(message);
        }
        invocations.clear_kept();
        match invoked {
            None => node.counts.executions += 1,
            Some(told) => self.settle(0, env, 0, told)?,
        }
        self.commit_plain(env, downstream);
        Ok(1)
    }

    /// Makes what was staged visible: one publication on immediate edges at once, whatever else
    /// there may be as always.
    #[inline(always)]
    fn commit_plain(&mut self, env: &Env, downstream: &mut impl Downstream) {
        let [node] = self.nodes.as_mut_slice() else { return };
        let outbox = &mut node.outbox;
        if outbox.has_nothing() {
            return;
        }
        if env.logs || !node.is_prompt || !outbox.writes.is_empty() {
            return self.commit(0, env, downstream);
        }
        let Some(staged) = outbox.staged.take_only() else {
            return self.commit(0, env, downstream);
        };
        let routes = &node.routes[staged.first as usize..staged.end as usize];
        let Some((last, others)) = routes.split_last() else { return };
        self.n_published.staged += routes.len() as u64;
        self.n_published.committed += routes.len() as u64;
        let Message { value, meta } = &mut staged.message;
        let value = core::mem::replace(value, Value::UNIT);
        for route in others {
            if let (To::Region(region, channel), Some(shared)) = (route.to, value.share()) {
                let seq = downstream.deliver((region, channel), env.now_ns, shared, meta);
                trace::committed(env, &mut self.recorder, downstream.glance(), route.edge, seq);
            }
        }
        if let To::Region(region, channel) = last.to {
            let seq = downstream.deliver((region, channel), env.now_ns, value, meta);
            trace::committed(env, &mut self.recorder, downstream.glance(), last.edge, seq);
        }
    }
}
