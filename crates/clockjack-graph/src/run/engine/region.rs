//! A region in a run: one component, or the members of a composite loop. The region is the unit of
//! scheduling. Other regions see its results when its step has ended.
//!
//! A region touches its own state, and the channels of regions after it in compiled order
//! ([`Downstream`]). Those regions depend on it and do not run yet, so no worker reads these
//! channels at the same time. The head of [`epoch`](super::epoch) explains how values are
//! committed.

use clockjack_exec::Failure;

use super::{
    context::{CallInfo, LoopIteration},
    env::Env,
    loops::LoopState,
    node::{CallOutcome, NodeState, Route, Status, Target},
    step_kind::StepKind,
};
use crate::{
    data::Value,
    describe::{EdgeKind, EdgeOverflow, LaneOverflow},
    run::{
        flow::{
            blackboard,
            channel::{Channel, Pushed},
            message::{Message, Meta},
            outbox::{Mark, OutEdge, Staged},
            trigger::Invocations,
        },
        observe::{
            commit_log, report,
            report::Fault,
            trace::{self, ClockCache, Recorder, TraceName},
        },
        setup::wiring,
    },
};

/// Access to the channels of later regions.
pub(crate) trait Downstream {
    /// Whether the whole epoch is known at compile time to be [unobserved](Env::is_unobserved).
    const IS_UNOBSERVED: bool;

    /// Puts a message into a channel; returns its sequence number there.
    fn deliver(&mut self, to: (u32, u32), now_ns: u64, value: Value, meta: &Meta) -> u64;

    /// How many messages a channel accepts before it refuses one.
    fn room(&mut self, region: u32, channel: u32) -> u32;

    /// The clock of the worker that runs this region.
    fn clock(&mut self) -> &mut ClockCache;
}

/// A region in a run.
pub(crate) struct Region {
    /// Index of its lane in the plan.
    pub(crate) lane: usize,
    /// Only ticks make its lane due: its own, or those of the host.
    pub(crate) is_paced: bool,
    /// In the order in which they are called.
    pub(crate) nodes: Vec<NodeState>,
    /// Channels of the in-edges, grouped by node.
    pub(crate) channels: Vec<Channel>,
    pub(crate) looping: Option<LoopState>,
    /// Publications to commit at the beginning of the next epoch, in order.
    pub(crate) deferred: Vec<Deferred>,
    /// The encoded commits of this epoch, for the commit log.
    pub(crate) log: Vec<u8>,
    /// The last entry of `log` is of the publication that is committed now, and long enough to be
    /// written once for all its edges.
    pub(crate) is_repeatable: bool,
    /// Writes to the blackboard to commit at the beginning of the next epoch.
    pub(crate) writes: Vec<blackboard::Write>,
    pub(crate) recorder: Recorder,
    pub(crate) invocations: Invocations,
    /// Failures of this epoch that do not end the run.
    pub(crate) faults: Vec<Fault>,
    pub(crate) n_published: PublicationCounts,
    pub(crate) step_kind: StepKind,
}

/// A publication to commit at the beginning of the next epoch.
pub(crate) struct Deferred {
    pub(crate) to: Target,
    pub(crate) kind: EdgeKind,
    /// How many messages of its edge may be in flight; zero: any number.
    pub(crate) max_inflight: u32,
    pub(crate) message: Message,
}

/// `runtime.publication.*` of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PublicationCounts {
    /// Publications that the fast path committed. They are not part of `staged` and `committed`.
    pub(crate) fast: u64,
    pub(crate) staged: u64,
    pub(crate) committed: u64,
    pub(crate) delayed: u64,
    pub(crate) state: u64,
    pub(crate) state_committed: u64,
    pub(crate) asynchronous: u64,
    pub(crate) failed_commit: u64,
    pub(crate) composite_discarded: u64,
    /// Of the `async` publications: how many became visible, and how many a loop discarded.
    pub(crate) async_committed: u64,
    pub(crate) async_discarded: u64,
}

impl Region {
    /// One step: calls every component that is ready, and commits.
    ///
    /// # Errors
    ///
    /// A fault that ends the run. What was committed before the fault stays.
    #[inline(always)]
    pub(crate) fn step(&mut self, env: &Env, downstream: impl Downstream) -> Result<u32, Fault> {
        match self.step_kind {
            StepKind::PerMessage(port) => self.step_per_message(port, env, downstream),
            StepKind::PerEpoch => self.step_per_epoch(env, downstream),
            StepKind::AllInputs => self.step_all_inputs(env, downstream),
            StepKind::General => self.step_general(env, &mut { downstream }),
        }
    }

    /// A step with all features.
    #[inline(never)]
    pub(crate) fn step_general(
        &mut self,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<u32, Fault> {
        if self.looping.is_some() {
            return super::loops::step(self, env, downstream);
        }
        let n_called = self.step_node(0, env, downstream, None)?;
        if n_called > 0 {
            self.commit(0, env, downstream);
        }
        Ok(n_called)
    }

    /// Whether a member may be ready.
    pub(crate) fn might_be_ready(&self, env: &Env) -> bool {
        (0..self.nodes.len()).any(|at| self.is_ready(at, env))
    }

    /// Whether a node may be ready.
    #[inline]
    fn is_ready(&self, at: usize, env: &Env) -> bool {
        let node = &self.nodes[at];
        node.trigger.might_be_ready(env.now_ns, &self.channels[node.channels.clone()])
    }

    /// Calls one node for each ready invocation. The publications of the last call stay staged.
    #[inline]
    pub(crate) fn step_node(
        &mut self,
        at: usize,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: Option<LoopIteration>,
    ) -> Result<u32, Fault> {
        let limit = self.call_limit(at, env, downstream)?;
        if limit == 0 {
            return Ok(0);
        }
        let n_called = if self.nodes[at].is_one_by_one {
            self.call_one_by_one(at, limit, env, downstream, iteration)?
        } else {
            self.call_ready(at, limit, env, downstream, iteration)?
        };
        self.note_waiting(at, limit, env);
        Ok(n_called)
    }

    /// How often a node may be called in this step; zero if it is not ready, or not active, or if a
    /// blocking edge has no room.
    #[inline]
    pub(super) fn call_limit(
        &mut self,
        at: usize,
        env: &Env,
        downstream: &mut impl Downstream,
    ) -> Result<usize, Fault> {
        self.nodes[at].is_blocked = false;
        if !self.is_ready(at, env) {
            return Ok(0);
        }
        if self.nodes[at].status != Status::Active && !self.reactivate(at, env)? {
            return Ok(0);
        }
        let limit = self.room_for(at, downstream);
        let node = &mut self.nodes[at];
        node.is_blocked = limit == 0;
        node.counts.blocked += u64::from(limit == 0);
        Ok(limit)
    }

    /// After the calls of a step with this limit: notes whether ready invocations wait for room.
    #[inline]
    pub(super) fn note_waiting(&mut self, at: usize, limit: usize, env: &Env) {
        let node = &self.nodes[at];
        if limit < usize::MAX && node.trigger.makes_several() && node.status == Status::Active {
            self.nodes[at].is_blocked = self.is_ready(at, env);
        }
    }

    /// Calls one node with one invocation at a time, at most `limit` times, until it is not ready
    /// or a failure stops it. Messages that it was not called with stay in the channels.
    fn call_one_by_one(
        &mut self,
        at: usize,
        limit: usize,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: Option<LoopIteration>,
    ) -> Result<u32, Fault> {
        let mut n_called = 0;
        while (n_called as usize) < limit {
            // A component without a restart delay is recreated at once if it has work.
            if self.nodes[at].status != Status::Active
                && !(self.is_ready(at, env) && self.reactivate(at, env)?)
            {
                break;
            }
            if n_called > 0 && self.looping.is_none() {
                self.commit(at, env, downstream);
            }
            match self.call_ready(at, 1, env, downstream, iteration)? {
                0 => break,
                in_this => n_called += in_this,
            }
        }
        Ok(n_called)
    }

    /// Calls one node for at most `limit` ready invocations. Further ones stay in the channels.
    fn call_ready(
        &mut self,
        at: usize,
        limit: usize,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: Option<LoopIteration>,
    ) -> Result<u32, Fault> {
        if !self.take_ready(at, limit, env)? {
            return Ok(0);
        }
        let is_batch =
            self.invocations.len() > 1 && self.looping.is_none() && self.nodes[at].overlaps();
        if is_batch {
            return self.call_overlapping(at, env);
        }
        self.call_all(at, env, downstream, iteration)
    }

    /// Moves at most `limit` ready invocations of a node to the list of the region; returns whether
    /// there are any. What the lane does not admit is dropped.
    #[inline]
    pub(super) fn take_ready(&mut self, at: usize, limit: usize, env: &Env) -> Result<bool, Fault> {
        let node = &mut self.nodes[at];
        let channels = &mut self.channels[node.channels.clone()];
        self.invocations.clear();
        let n_ready = node.trigger.collect(env.now_ns, channels, limit, &mut self.invocations);
        if n_ready == 0 {
            return Ok(false);
        }
        self.admit(at, env)?;
        let node = &mut self.nodes[at];
        if !node.untriggered.is_empty() {
            node.take_untriggered(env.now_ns, &mut self.channels, &mut self.invocations);
        }
        Ok(true)
    }

    /// Whether a component that has failed before may be called. Recreates it if its backoff is
    /// over.
    ///
    /// # Errors
    ///
    /// A failure of its hooks, if that ends the run.
    #[cold]
    pub(crate) fn reactivate(&mut self, at: usize, env: &Env) -> Result<bool, Fault> {
        match self.nodes[at].is_callable(env) {
            Err(fault) if !fault.is_fatal => {
                self.note_fault(env, fault);
                Ok(false)
            }
            answer => answer,
        }
    }

    /// Calls a reentrant component for all its invocations, some of them concurrently. They commit
    /// together.
    fn call_overlapping(&mut self, at: usize, env: &Env) -> Result<u32, Fault> {
        // A single worker runs the whole batch through the same code, so the result is the same.
        let helpers = env.helpers.as_ref().filter(|_| env.is_parallel);
        if self.nodes[at].chains.is_some() {
            self.begin_chains_of_batch(at, env);
        }
        let node = &mut self.nodes[at];
        let batch = node.begin_batch(&mut self.invocations);
        let mut jobs = core::mem::take(&mut node.jobs);
        if let Some(helpers) = helpers {
            helpers.add_batch(&batch);
        }
        let n_at_once = batch.finish(env, self.recorder.worker, &mut jobs);
        let n_jobs = jobs.len();
        if let Some(helpers) = helpers {
            helpers.remove_batch(&batch);
        }
        trace::batch(env, node, &mut self.recorder, &jobs);
        node.counts.overlap_max = node.counts.overlap_max.max(n_at_once as u64);
        let mut fatal = None;
        for mut job in jobs.drain(..) {
            let node = &mut self.nodes[at];
            trace::job(env, node, &mut self.recorder, &job);
            if job.saw_cancel {
                node.saw_cancel(env, &mut self.recorder);
            }
            node.keep(&mut job.messages);
            match core::mem::replace(&mut job.result, Ok(())) {
                Ok(()) => {
                    node.counts.executions += 1;
                    let kept = node.outbox.mark();
                    node.outbox.absorb(&mut job.outbox);
                    if node.chains.is_some() {
                        self.end_chains(at, job.index, env, kept);
                    }
                }
                Err(failure) => {
                    // A later invocation reuses this outbox. Of the failed call only its
                    // refusals remain.
                    node.counts.discarded += job.outbox.discard_after(Mark::START) as u64;
                    node.outbox.absorb(&mut job.outbox);
                    let fault = self.failed(at, &failure, env.now_ns, env.epoch);
                    if fault.is_fatal {
                        fatal = fatal.or(Some(fault));
                    } else {
                        self.note_fault(env, fault);
                    }
                }
            }
            job.release();
            self.nodes[at].spare.push(job);
        }
        let node = &mut self.nodes[at];
        node.jobs = jobs;
        if core::mem::take(&mut node.outbox.is_fatal) && fatal.is_none() {
            fatal = Some(node.full_edge(env.epoch));
        }
        match fatal {
            Some(fault) => Err(fault),
            None => Ok(wiring::count(n_jobs)),
        }
    }

    /// Calls one node for each invocation in the list of the region, one after the other.
    pub(super) fn call_all(
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
            let is_one_each = !invocation.is_batch;
            let info = CallInfo { missed_runs, is_one_each, iteration, ..CallInfo::DEFAULT };
            let called = self.call_one(at, env, messages, &info, downstream.clock());
            let node = &mut self.nodes[at];
            if let Err(fault) = called {
                node.counts.lost.run_ended += invocations.n_messages_from(index + 1);
                return Err(fault);
            }
            if node.status != Status::Active {
                // Only on a pool lane can several invocations be admitted at this point.
                node.counts.rejected += (n_invocations - index - 1) as u64;
                node.counts.lost.after_failure += invocations.n_messages_from(index + 1);
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

    /// One call. Its publications stay staged; if the call fails, they are discarded.
    pub(crate) fn call_one(
        &mut self,
        at: usize,
        env: &Env,
        messages: &mut [Message],
        info: &CallInfo,
        clock: &mut ClockCache,
    ) -> Result<(), Fault> {
        if self.nodes[at].chains.is_some() {
            return self.call_on_chain(at, env, messages, info, clock);
        }
        self.call_off_chain(at, env, messages, info, clock)
    }

    /// A call of a node on a chain.
    #[cold]
    fn call_on_chain(
        &mut self,
        at: usize,
        env: &Env,
        messages: &mut [Message],
        info: &CallInfo,
        clock: &mut ClockCache,
    ) -> Result<(), Fault> {
        let info = &CallInfo { chain_call: self.begin_chains(at, env, messages), ..*info };
        let node = &self.nodes[at];
        let (kept, n_before) = (node.outbox.mark(), node.counts.executions);
        let called = self.call_off_chain(at, env, messages, info, clock);
        if self.nodes[at].counts.executions > n_before {
            self.end_chains(at, 0, env, kept);
        }
        called
    }

    #[inline]
    fn call_off_chain(
        &mut self,
        at: usize,
        env: &Env,
        messages: &mut [Message],
        info: &CallInfo,
        clock: &mut ClockCache,
    ) -> Result<(), Fault> {
        let node = &mut self.nodes[at];
        let kept = node.outbox.mark();
        let begun = trace::begin(env, node, clock);
        let watched = node.watched.as_ref();
        let in_progress = watched.and_then(|one| one.begin(env.epoch, env.nanos()));
        let outcome = node.call(env, messages, info);
        drop(in_progress);
        trace::end(env, node, (&mut self.recorder, clock), begun, messages);
        node.keep(messages);
        match outcome {
            None if !node.outbox.is_fatal => {
                node.counts.executions += 1;
                Ok(())
            }
            outcome => self.finish_call(at, env, kept, outcome.unwrap_or_default()),
        }
    }

    /// Handles the outcome of a call: counts it, or discards everything staged after `kept`.
    #[cold]
    pub(crate) fn finish_call(
        &mut self,
        at: usize,
        env: &Env,
        kept: Mark,
        outcome: CallOutcome,
    ) -> Result<(), Fault> {
        let node = &mut self.nodes[at];
        if outcome.saw_cancel {
            node.saw_cancel(env, &mut self.recorder);
        }
        if let (Some(state), Some(report)) = (&mut self.looping, outcome.report) {
            state.take_report(report);
        }
        // Independent of whether the component handled the refusal.
        if core::mem::take(&mut node.outbox.is_fatal) {
            node.counts.errors += u64::from(outcome.result.is_err());
            return Err(node.full_edge(env.epoch));
        }
        match outcome.result {
            Ok(()) => {
                node.counts.executions += 1;
                Ok(())
            }
            Err(failure) => {
                node.counts.discarded += node.outbox.discard_after(kept) as u64;
                let fault = self.failed(at, &failure, env.now_ns, env.epoch);
                if fault.is_fatal {
                    return Err(fault);
                }
                self.note_fault(env, fault);
                Ok(())
            }
        }
    }

    /// Applies the error policy to a node that failed. An isolated node must not block its
    /// producers, so its channels are abandoned.
    pub(crate) fn failed(
        &mut self,
        at: usize,
        failure: &Failure,
        now_ns: u64,
        epoch: u64,
    ) -> Fault {
        let node = &mut self.nodes[at];
        let fault = node.failed(failure, now_ns, epoch);
        if node.status == Status::Isolated {
            self.channels[node.channels.clone()].iter_mut().for_each(Channel::abandon);
        }
        fault
    }

    /// Records a fault that does not end the run.
    fn note_fault(&mut self, env: &Env, fault: Fault) {
        self.faults.push(fault);
        env.note_fault();
    }

    /// Drops invocations beyond the capacity of a pool lane. The choice depends on the ready set
    /// alone, not on threads.
    fn admit(&mut self, at: usize, env: &Env) -> Result<(), Fault> {
        let node = &mut self.nodes[at];
        let Some(admission) = node.admission else { return Ok(()) };
        let n_ready = self.invocations.len();
        let n_active = n_ready.min(admission.width);
        let n_queued = n_ready.min(admission.capacity).saturating_sub(n_active);
        node.counts.in_flight_max = node.counts.in_flight_max.max(n_active as u64);
        node.counts.queued_max = node.counts.queued_max.max(n_queued as u64);
        if n_ready <= admission.capacity {
            return Ok(());
        }
        let n_over = n_ready - admission.capacity;
        node.counts.rejected += n_over as u64;
        // Of an admission that ends the run, all invocations are lost.
        node.counts.lost.lane_full += self.invocations.n_messages_from(0);
        match admission.overflow {
            LaneOverflow::FailFast => {
                let phase = report::RunPhase::Runtime;
                let text = format!(
                    "{n_ready} invocations are ready, but the lane admits only {}",
                    admission.capacity
                );
                return Err(node.fault(phase, text, env.epoch, true));
            }
            LaneOverflow::DropOldest | LaneOverflow::Overwrite => {
                self.invocations.drop_front(n_over);
            }
            _ => self.invocations.truncate(admission.capacity),
        }
        node.counts.lost.lane_full -= self.invocations.n_messages_from(0);
        Ok(())
    }

    /// Updates the free room of each edge that may refuse. Returns how many invocations can run
    /// before a blocking edge has no room for the publications of the next.
    fn room_for(&mut self, at: usize, downstream: &mut impl Downstream) -> usize {
        let mut limit = usize::MAX;
        if !self.nodes[at].outbox.is_guarded() {
            return limit;
        }
        for index in 0..self.nodes[at].routes.len() {
            let route = self.nodes[at].routes[index];
            let edge = &self.nodes[at].outbox.edges()[index];
            if edge.room == OutEdge::ANY {
                continue;
            }
            let (mut room, overflow) = (edge.room, edge.overflow);
            if route.kind == EdgeKind::Immediate {
                room = match route.to {
                    Target::SameRegion(channel) => self.channels[channel as usize].room(),
                    Target::Region(region, channel) => {
                        let n_held =
                            self.looping.as_ref().map_or(0, |state| state.n_held(route.edge));
                        downstream.room(region, channel).saturating_sub(n_held)
                    }
                    Target::Domain(_) => room,
                };
                self.nodes[at].outbox.set_room(index, room);
            }
            if overflow == EdgeOverflow::Block {
                let n_calls = room / self.nodes[at].burst;
                limit = limit.min(n_calls as usize);
            }
        }
        limit
    }

    /// Commits the staged publications of a node, or defers them to the next epoch.
    pub(crate) fn commit(&mut self, at: usize, env: &Env, downstream: &mut impl Downstream) {
        let node = &mut self.nodes[at];
        if node.outbox.staged.is_empty() && node.outbox.writes.is_empty() {
            return;
        }
        self.writes.append(&mut node.outbox.writes);
        let mut staged = core::mem::take(&mut node.outbox.staged);
        for Staged { first, end, mut message, .. } in staged.drain_after(0) {
            let (first, end) = (first as usize, end as usize);
            // The log has no entry of this publication yet that the next edge may repeat.
            self.is_repeatable = false;
            for index in first..end - 1 {
                let route = self.nodes[at].routes[index];
                let other = for_reader(&mut message, route, env);
                self.route(route, other, env, downstream);
            }
            // The last reader gets the value itself, not another reference, unless it gets a copy.
            let last = self.nodes[at].routes[end - 1];
            if last.copies {
                message = for_reader(&mut message, last, env);
            }
            self.route(last, message, env, downstream);
        }
        self.nodes[at].outbox.staged = staged;
    }

    /// Routes one message to one edge.
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
            trace::published(env, &mut self.recorder, downstream.clock(), route.edge);
            let Route { to, kind, max_inflight, .. } = route;
            self.deferred.push(Deferred { to, kind, max_inflight, message });
            return;
        }
        if let (Some(state), Target::Region(..)) = (&mut self.looping, route.to) {
            state.hold(route, message);
            return;
        }
        self.make_visible(route, message, env, downstream);
    }

    #[inline]
    pub(crate) fn make_visible(
        &mut self,
        route: Route,
        message: Message,
        env: &Env,
        downstream: &mut impl Downstream,
    ) {
        if env.logs && self.is_repeatable {
            commit_log::again(&mut self.log, route.edge);
        } else if env.logs {
            self.is_repeatable = commit_log::commit(&mut self.log, route.edge, &message);
        }
        self.n_published.committed += 1;
        let seq = match route.to {
            Target::SameRegion(channel) => {
                let channel = &mut self.channels[channel as usize];
                let pushed = channel.push(env.now_ns, message);
                if let Pushed::Refused(..) = pushed {
                    self.n_published.failed_commit += 1;
                }
                channel.counters().publish_count
            }
            Target::Region(region, channel) => {
                let Message { value, meta } = message;
                downstream.deliver((region, channel), env.now_ns, value, &meta)
            }
            // The compiler rejects immediate edges between domains.
            Target::Domain(_) => {
                self.n_published.failed_commit += 1;
                0
            }
        };
        trace::committed(env, &mut self.recorder, downstream.clock(), route.edge, seq);
    }

    /// The run is stopping and this region has just run: counts a cancellation request for a
    /// component that did not poll for it. A loop counts its own.
    #[cold]
    pub(crate) fn note_stop_request(&mut self, env: &Env) {
        if let ([node], None) = (self.nodes.as_mut_slice(), &self.looping)
            && node.counts.cancel_observed == 0
        {
            node.counts.cancel_requested += 1;
            let name = TraceName::ComponentCancellationRequested;
            self.recorder.note(env, name, node.component, 0);
        }
    }

    /// Two times: the earliest tick of a timer here, at which simulated time stops even if there is
    /// other work; and the earliest time at which something else can become ready by time alone.
    pub(crate) fn next_due(&self, now_ns: u64) -> (Option<u64>, Option<u64>) {
        let (mut tick, mut other) = (None, None);
        if self.is_paced {
            return (tick, other);
        }
        for node in &self.nodes {
            // A node that waits for room could not run now: time must advance for it to get any.
            if node.is_blocked {
                let later = |due: &u64| *due > now_ns;
                tick = earlier(tick, node.trigger.next_tick().filter(later));
                other = earlier(other, node.trigger.next_due().filter(later));
                continue;
            }
            match node.status {
                Status::Isolated => {}
                Status::Backoff { until_ns } if until_ns > now_ns => {
                    other = earlier(other, Some(until_ns));
                }
                // A node whose backoff is over is recreated when it has work.
                Status::Active | Status::Backoff { .. } => {
                    tick = earlier(tick, node.trigger.next_tick());
                    other = earlier(other, node.trigger.next_due());
                }
            }
        }
        (tick, other)
    }
}

/// The message for one of several readers: another reference to the value, or a copy. A value that
/// does not decode what it has encoded cannot be copied and is shared.
fn for_reader(message: &mut Message, route: Route, env: &Env) -> Message {
    if route.copies
        && !message.value.is_inline()
        && let Some(value) = message.value.copied()
    {
        env.note_copy(route.edge);
        return Message { value, meta: message.meta };
    }
    if let Some(other) = message.share() {
        return other;
    }
    // The payload cannot be copied, so no reader may own it: all of them share it.
    message.value = core::mem::replace(&mut message.value, Value::UNIT).into_shared(false);
    message.shared()
}

/// The earlier of two times, if there is any.
pub(crate) fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
