//! The step of most components.
//!
//! A component alone in its region, with a trigger that needs nothing kept, no edge that may refuse
//! and no pool to admit it, does not need most of what a step may have to do. What is left is a look
//! whether there is something to do, a call, and the move of what was published into the channels
//! of those who read it. These ways do exactly what [`Region::step_full`] does for such a component,
//! and go to it whenever something is out of the ordinary.

use super::env::Env;
use super::node::{Occasion, Status, To};
use super::outbox::Staged;
use super::region::{Downstream, Region};
use super::report::Fault;
use super::trigger::Arrival;

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
        let is_plain = region.looping.is_none()
            && node.beside.is_empty()
            && node.admission.is_none()
            && !node.outbox.is_guarded();
        if !is_plain {
            Self::Full
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
    #[inline]
    pub(super) fn step_each(
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
            let Some(message) = self.channels[0].pop(env.now_ns) else { break };
            let mut arrival = Arrival { port, message };
            n_called += 1;
            let node = &mut self.nodes[0];
            node.trigger.note_ready(1);
            if env.measures || node.is_measured() {
                let (messages, glance) = (core::slice::from_mut(&mut arrival), downstream.glance());
                self.call_one(0, env, messages, Occasion::PLAIN, glance)?;
            } else {
                let invoked = node.call(env, core::slice::from_mut(&mut arrival), Occasion::PLAIN);
                node.keep_one(arrival);
                if invoked.is_plain() {
                    node.counts.executions += 1;
                } else {
                    self.settle(0, env, 0, invoked)?;
                }
            }
            self.commit_plain(env, downstream);
        }
        Ok(n_called)
    }

    /// One call.
    #[inline]
    pub(super) fn step_once(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let node = &mut self.nodes[0];
        if node.status != Status::Active || env.measures || node.is_measured() {
            return self.step_full(env, downstream);
        }
        node.trigger.note_ready(1);
        let invoked = node.call(env, &mut [], Occasion::PLAIN);
        if invoked.is_plain() {
            node.counts.executions += 1;
        } else {
            self.settle(0, env, 0, invoked)?;
        }
        self.commit_plain(env, downstream);
        Ok(1)
    }

    /// One call with a message of each input.
    #[inline]
    pub(super) fn step_set(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        let Self { nodes, channels, invocations, .. } = self;
        let node = &mut nodes[0];
        if node.status != Status::Active
            || env.measures
            || node.is_measured()
            || !node.trigger.has_plain_set(channels)
        {
            return self.step_full(env, downstream);
        }
        invocations.clear();
        node.trigger.collect(env.now_ns, channels, 1, invocations);
        let (_, messages) = invocations.get_mut(0);
        let invoked = node.call(env, messages, Occasion::PLAIN);
        for arrival in invocations.take_all() {
            node.keep_one(arrival);
        }
        if invoked.is_plain() {
            node.counts.executions += 1;
        } else {
            self.settle(0, env, 0, invoked)?;
        }
        self.commit_plain(env, downstream);
        Ok(1)
    }

    /// Makes what was staged visible: one publication on immediate edges at once, whatever else
    /// there may be as always.
    #[inline]
    fn commit_plain(&mut self, env: &Env, downstream: &mut impl Downstream) {
        let node = &mut self.nodes[0];
        let outbox = &mut node.outbox;
        let n_staged = outbox.staged.len();
        let is_noted = env.logs || env.traces;
        if n_staged != 1 || is_noted || !node.is_prompt || !outbox.writes.is_empty() {
            if n_staged + outbox.writes.len() > 0 {
                self.commit(0, env, downstream);
            }
            return;
        }
        let Some(Staged { port, message }) = outbox.staged.pop() else { return };
        let (first, end) = outbox.range_of(port);
        let routes = &node.routes[first..end];
        self.n_published.staged += routes.len() as u64;
        self.n_published.committed += routes.len() as u64;
        let Some((last, others)) = routes.split_last() else { return };
        for route in others {
            if let (To::Region(region, channel), Some(shared)) = (route.to, message.share()) {
                downstream.deliver(region, channel, env.now_ns, shared);
            }
        }
        if let To::Region(region, channel) = last.to {
            downstream.deliver(region, channel, env.now_ns, message);
        }
    }
}
