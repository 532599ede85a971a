//! A region in a run: one component, or the members of a loop. It is what is scheduled; its results
//! are visible to others when it has ended.
//!
//! A region touches its own state, and the channels of regions that come after it in compiled order
//! ([`Downstream`]): those wait for it, so nobody reads them meanwhile.

use alloc::vec::Vec;

use clockjack_sync::mutant;

use super::batch::Batch;
use super::channel::{Channel, Pushed};
use super::commit_log;
use super::context::LoopIteration;
use super::env::Env;
use super::loops::LoopState;
use super::message::{Message, Meta};
use super::node::{NodeState, Route, To};
use super::outbox::OutEdge;
use super::report::Fault;
use super::trace::{self, Recorder};
use super::trigger::Invocations;
use crate::describe::{EdgeKind, LaneOverflow, Overflow};

/// Channels of regions that come later.
pub(crate) trait Downstream {
    /// Puts a message into one of them; its number there.
    fn deliver(&mut self, region: u32, channel: u32, now_ns: u64, message: Message) -> u64;

    /// How much one of them takes without refusing.
    fn room(&mut self, region: u32, channel: u32) -> u32;
}

/// A region in a run.
pub(crate) struct Region {
    /// Which lane of the plan.
    pub(crate) lane: usize,
    /// Its lane has ticks of its own, or those of the host: nothing else makes it due.
    pub(crate) is_paced: bool,
    /// In the order of their calls.
    pub(crate) nodes: Vec<NodeState>,
    /// In-edges, those of one node beside each other.
    pub(crate) channels: Vec<Channel>,
    pub(crate) looping: Option<LoopState>,
    /// What is to be committed at the next epoch, in order.
    pub(crate) deferred: Vec<Deferred>,
    /// Commits of this epoch, written down.
    pub(crate) log: Vec<u8>,
    /// Writes to the blackboard that wait for the next epoch.
    pub(crate) writes: Vec<super::blackboard::Write>,
    pub(crate) recorder: Recorder,
    pub(crate) invocations: Invocations,
    /// Failures of this epoch that do not end the run.
    pub(crate) faults: Vec<Fault>,
    pub(crate) n_published: PublicationCounts,
    /// One component with one channel, and nothing that may hold it up.
    pub(crate) is_simple: bool,
}

/// A publication that waits for the next epoch.
pub(crate) struct Deferred {
    pub(crate) to: To,
    pub(crate) kind: EdgeKind,
    /// How many of its edge may be under way; zero: any number.
    pub(crate) max_inflight: u32,
    pub(crate) message: Message,
}

/// `runtime.publication.*` of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PublicationCounts {
    pub(crate) staged: u64,
    pub(crate) committed: u64,
    pub(crate) delayed: u64,
    pub(crate) state: u64,
    pub(crate) state_committed: u64,
    pub(crate) asynchronous: u64,
    pub(crate) failed_commit: u64,
    pub(crate) composite_discarded: u64,
}

impl Region {
    /// One step: calls whatever is ready, and commits.
    ///
    /// # Errors
    ///
    /// A fault that ends the run. What was committed before it stays.
    #[inline]
    pub(crate) fn step(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        if self.is_simple {
            return self.step_simple(env, downstream);
        }
        if self.looping.is_some() {
            return super::loops::step(self, env, downstream);
        }
        let n_called = self.step_node(0, env, downstream, None)?;
        if n_called > 0 {
            self.commit(0, env, downstream);
        }
        Ok(n_called)
    }

    /// Whether [`step_simple`](Self::step_simple) does what `step` does.
    pub(crate) fn is_simple(&self) -> bool {
        let [node] = self.nodes.as_slice() else { return false };
        self.looping.is_none()
            && node.trigger.single().is_some()
            && node.beside.is_empty()
            && node.admission.is_none()
            && !node.outbox.is_guarded()
    }

    /// The step of most components: a call for each message of the one channel.
    #[inline]
    fn step_simple(&mut self, env: &Env, downstream: &mut impl Downstream) -> Result<u32, Fault> {
        let mut n_called = 0;
        while self.channels[0].has_update() {
            let node = &mut self.nodes[0];
            if node.status != super::node::Status::Active {
                match node.ready_to_be_called(env) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(fault) if fault.is_fatal => return Err(fault),
                    Err(fault) => {
                        self.faults.push(fault);
                        break;
                    }
                }
            }
            let Some(message) = self.channels[0].pop(env.now_ns) else { break };
            let port = node.trigger.single().expect("it was seen");
            let mut arrival = super::trigger::Arrival { port, message };
            let messages = core::slice::from_mut(&mut arrival);
            node.trigger.note_ready(1);
            n_called += 1;
            self.call_one(0, env, messages, 0, None)?;
            self.commit(0, env, downstream);
        }
        Ok(n_called)
    }

    /// Calls one node for each invocation that is ready. Its publications stay staged.
    #[inline]
    pub(crate) fn step_node(
        &mut self,
        at: usize,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: Option<LoopIteration>,
    ) -> Result<u32, Fault> {
        let node = &mut self.nodes[at];
        node.is_blocked = false;
        let channels = &mut self.channels[node.channels.clone()];
        if !node.trigger.might_be_ready(env.now_ns, channels) {
            return Ok(0);
        }
        match node.ready_to_be_called(env) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(fault) if fault.is_fatal => return Err(fault),
            Err(fault) => {
                self.faults.push(fault);
                return Ok(0);
            }
        }
        let is_blocked = node.outbox.is_guarded() && !self.grant_rooms(at, downstream);
        let node = &mut self.nodes[at];
        node.is_blocked = is_blocked;
        if is_blocked {
            node.counts.blocked += 1;
            return Ok(0);
        }
        let channels = &mut self.channels[node.channels.clone()];
        self.invocations.clear();
        let n_ready = node.trigger.collect(env.now_ns, channels, usize::MAX, &mut self.invocations);
        if n_ready == 0 {
            return Ok(0);
        }
        if !node.beside.is_empty() {
            node.look_beside(env.now_ns, &mut self.channels);
        }
        self.admit(at, env)?;
        let is_batch = self.invocations.len() > 1
            && self.looping.is_none()
            && self.nodes[at].overlaps()
            && (env.is_shared || !mutant!("region-batch-only-if-shared"));
        if is_batch {
            return self.call_at_once(at, env);
        }
        self.call_all(at, env, downstream, iteration)
    }

    /// Calls a reentrant component for all its invocations, some of them at once. They commit
    /// together.
    fn call_at_once(&mut self, at: usize, env: &Env) -> Result<u32, Fault> {
        // Who is alone does all of it: the same way, so that the result is the same.
        let board = env.board.as_ref().filter(|_| env.is_shared);
        let node = &mut self.nodes[at];
        let width = node.admission.map_or(1, |admission| admission.width);
        let jobs = node.jobs(&mut self.invocations);
        let n_jobs = jobs.len();
        let batch = alloc::sync::Arc::new(Batch::new(jobs, width));
        if let Some(board) = board {
            board.offer(&batch);
        }
        let (jobs, n_at_once) = batch.finish(env, self.recorder.worker);
        if let Some(board) = board {
            board.withdraw(&batch);
        }
        trace::batch(env, node, &mut self.recorder, &jobs);
        node.counts.overlap_max = node.counts.overlap_max.max(n_at_once as u64);
        let mut fatal = None;
        for mut job in jobs {
            node.keep(&mut job.messages);
            node.counts.cancel_observed += u64::from(job.saw_cancel);
            match job.result {
                Ok(()) => {
                    node.counts.executions += 1;
                    node.outbox.absorb(&mut job.outbox);
                }
                Err(failure) => {
                    let fault = node.failed(&failure, env.now_ns, env.epoch);
                    if fault.is_fatal {
                        fatal = fatal.or(Some(fault));
                    } else {
                        self.faults.push(fault);
                    }
                }
            }
            node.spare.push(job.outbox);
        }
        if core::mem::take(&mut node.outbox.is_fatal) && fatal.is_none() {
            let text = "an edge that fails the run was full";
            fatal = Some(node.fault(super::report::Phase::Execute, text, env.epoch, true));
        }
        match fatal {
            Some(fault) => Err(fault),
            None => Ok(super::wiring::count(n_jobs)),
        }
    }

    fn call_all(
        &mut self,
        at: usize,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: Option<LoopIteration>,
    ) -> Result<u32, Fault> {
        let mut n_called = 0;
        let mut invocations = core::mem::take(&mut self.invocations);
        let n_invocations = invocations.len();
        for index in 0..n_invocations {
            let (invocation, messages) = invocations.get_mut(index);
            n_called += 1;
            let missed_runs = u64::from(invocation.missed_runs);
            self.call_one(at, env, messages, missed_runs, iteration)?;
            if self.nodes[at].status != super::node::Status::Active {
                break;
            }
            if self.looping.is_none() && index + 1 < n_invocations {
                self.commit(at, env, downstream);
            }
        }
        invocations.clear();
        self.invocations = invocations;
        Ok(n_called)
    }

    /// One call. What it has published stays staged, or is thrown away if it fails.
    #[inline]
    fn call_one(
        &mut self,
        at: usize,
        env: &Env,
        messages: &mut [super::trigger::Arrival],
        missed_runs: u64,
        iteration: Option<LoopIteration>,
    ) -> Result<(), Fault> {
        let node = &mut self.nodes[at];
        let kept = node.outbox.staged.len();
        let begun = trace::begin(env, node, &mut self.recorder);
        let invoked = node.call(env, messages, missed_runs, iteration);
        trace::end(env, node, &mut self.recorder, begun, messages);
        node.keep(messages);
        if invoked.saw_cancel {
            node.counts.cancel_observed += 1;
        }
        if let (Some(state), Some(report)) = (&mut self.looping, invoked.report) {
            state.take_report(report);
        }
        match invoked.result {
            Ok(()) if !node.outbox.is_fatal => {
                node.counts.executions += 1;
                Ok(())
            }
            Ok(()) => {
                node.outbox.is_fatal = false;
                let text = "an edge that fails the run was full";
                Err(node.fault(super::report::Phase::Execute, text, env.epoch, true))
            }
            Err(failure) => {
                node.counts.discarded += node.outbox.discard_after(kept) as u64;
                let fault = node.failed(&failure, env.now_ns, env.epoch);
                if fault.is_fatal {
                    return Err(fault);
                }
                self.faults.push(fault);
                Ok(())
            }
        }
    }

    /// Leaves out what a pool lane does not admit. Which ones depends on the ready set alone.
    fn admit(&mut self, at: usize, env: &Env) -> Result<(), Fault> {
        let node = &mut self.nodes[at];
        let Some(admission) = node.admission else { return Ok(()) };
        let n_ready = self.invocations.len();
        node.counts.in_flight_max =
            node.counts.in_flight_max.max(n_ready.min(admission.width) as u64);
        if n_ready <= admission.capacity {
            return Ok(());
        }
        let n_over = n_ready - admission.capacity;
        node.counts.rejected += n_over as u64;
        match admission.overflow {
            LaneOverflow::FailFast => {
                let phase = super::report::Phase::Runtime;
                let text = alloc::format!(
                    "{n_ready} invocations are ready, and its lane admits {}",
                    admission.capacity
                );
                return Err(node.fault(phase, text, env.epoch, true));
            }
            LaneOverflow::DropOldest | LaneOverflow::Overwrite => {
                self.invocations.drop_front(n_over);
            }
            _ => self.invocations.truncate(admission.capacity),
        }
        Ok(())
    }

    /// Finds out how much each edge takes that may refuse; false if a blocking one has no room for
    /// what an invocation may publish.
    fn grant_rooms(&mut self, at: usize, downstream: &mut impl Downstream) -> bool {
        let mut is_free = true;
        for index in 0..self.nodes[at].routes.len() {
            let route = self.nodes[at].routes[index];
            let edge = &self.nodes[at].outbox.edges()[index];
            if edge.room == OutEdge::ANY {
                continue;
            }
            let (mut room, overflow) = (edge.room, edge.overflow);
            if route.kind == EdgeKind::Immediate {
                room = match route.to {
                    To::Here(channel) => self.channels[channel as usize].room(),
                    To::Region(region, channel) => {
                        let n_held =
                            self.looping.as_ref().map_or(0, |state| state.n_held(route.edge));
                        downstream.room(region, channel).saturating_sub(n_held)
                    }
                    To::Domain(_) => room,
                };
                self.nodes[at].outbox.set_room(index, room);
            }
            is_free &= overflow != Overflow::Block || room >= self.nodes[at].burst;
        }
        is_free
    }

    /// Makes what a node has staged visible, or lays it aside for the next epoch.
    #[inline]
    pub(crate) fn commit(&mut self, at: usize, env: &Env, downstream: &mut impl Downstream) {
        let node = &mut self.nodes[at];
        if node.outbox.staged.is_empty() && node.outbox.writes.is_empty() {
            return;
        }
        self.writes.append(&mut node.outbox.writes);
        let mut staged = core::mem::take(&mut node.outbox.staged);
        for one in staged.drain(..) {
            let node = &mut self.nodes[at];
            let (first, end) = node.outbox.range_of(one.port);
            let meta = Meta {
                published_ns: env.now_ns,
                correlation: one.correlation,
                causation: one.causation,
                stamp: one.stamp,
                ..Meta::default()
            };
            let mut value = Some(one.value);
            for index in first..end {
                let route = self.nodes[at].routes[index];
                // The last reader gets the value itself.
                let is_last = index + 1 == end;
                let shared =
                    if is_last { value.take() } else { value.as_ref().and_then(|v| v.share()) };
                let Some(value) = shared else { continue };
                self.route(route, Message { value, meta }, env, downstream);
            }
        }
        self.nodes[at].outbox.staged = staged;
    }

    /// One message on one edge.
    #[inline(always)]
    fn route(
        &mut self,
        route: Route,
        mut message: Message,
        env: &Env,
        downstream: &mut impl Downstream,
    ) {
        self.n_published.staged += 1;
        message.meta.edge = route.edge;
        if route.kind != EdgeKind::Immediate {
            match route.kind {
                EdgeKind::State => self.n_published.state += 1,
                EdgeKind::Async => self.n_published.asynchronous += 1,
                _ => self.n_published.delayed += 1,
            }
            let Route { to, kind, max_inflight, .. } = route;
            self.deferred.push(Deferred { to, kind, max_inflight, message });
            return;
        }
        if let (Some(state), To::Region(..)) = (&mut self.looping, route.to) {
            state.hold(route, message);
            return;
        }
        self.make_visible(route, message, env, downstream);
    }

    #[inline(always)]
    pub(crate) fn make_visible(
        &mut self,
        route: Route,
        message: Message,
        env: &Env,
        downstream: &mut impl Downstream,
    ) {
        if env.logs {
            commit_log::commit(&mut self.log, route.edge, &message);
        }
        self.n_published.committed += 1;
        let seq = match route.to {
            To::Here(channel) => {
                let channel = &mut self.channels[channel as usize];
                let pushed = channel.push(env.now_ns, message);
                if let Pushed::Refused(..) = pushed {
                    self.n_published.failed_commit += 1;
                }
                channel.counters().publish_count
            }
            To::Region(region, channel) => downstream.deliver(region, channel, env.now_ns, message),
            // Refused by the compiler.
            To::Domain(_) => {
                self.n_published.failed_commit += 1;
                0
            }
        };
        trace::committed(env, &mut self.recorder, route.edge, seq);
    }

    /// The earliest tick here, which time stops at even while there is other work, and the earliest
    /// time at which something else could become ready by itself.
    pub(crate) fn next_due(&self, now_ns: u64) -> (Option<u64>, Option<u64>) {
        let (mut tick, mut other) = (None, None);
        if self.is_paced {
            return (tick, other);
        }
        for node in &self.nodes {
            // What waits for room had its chance now: time must go on for it to get any.
            if node.is_blocked && !mutant!("region-blocked-stops-time") {
                let later = |due: &u64| *due > now_ns;
                tick = earlier(tick, node.trigger.next_tick().filter(later));
                other = earlier(other, node.trigger.next_due().filter(later));
                continue;
            }
            match node.status {
                super::node::Status::Active => {
                    tick = earlier(tick, node.trigger.next_tick());
                    other = earlier(other, node.trigger.next_due());
                }
                super::node::Status::Backoff { until_ns } => {
                    other = earlier(other, Some(until_ns));
                }
                super::node::Status::Isolated => {}
            }
        }
        (tick, other)
    }
}

/// The earlier of two times, if there is any.
pub(crate) fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
