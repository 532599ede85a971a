//! The boundary at the beginning of an epoch: commits what was deferred to this epoch, in compiled
//! order, then what came from outside, in the order of arrival, then the results of tasks, by their
//! numbers.

use std::sync::Arc;

use clockjack_exec::Failure;

use super::{Domain, EXCLUSIVE};
use crate::{
    data::Value,
    describe::EdgeKind,
    lock::lock,
    run::{
        engine::{
            env::Env,
            epoch::DomainState,
            node::{NodeState, Target},
            region::Deferred,
        },
        flow::{
            blackboard, channel,
            inbox::{Inbox, Incoming, Sent},
            message::{Message, Meta},
            reconfigure::{ConfigRefused, Transaction},
        },
        observe::{
            commit_log,
            report::{Fault, RunPhase},
            trace::{self, TraceName, TraceRecord},
        },
        setup::{
            shared::RunShared,
            wiring::{self, ChannelLocation, count},
        },
    },
};

impl Domain {
    /// Commits the publications and blackboard writes that were deferred to this epoch.
    pub(super) fn commit_deferred(&mut self) {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let logs = state.env.logs;
        let mut n_async = 0;
        for position in &self.special_edges.deferring {
            let position = *position as usize;
            let region = state.regions[position].get_mut();
            if region.deferred.is_empty() {
                continue;
            }
            let mut deferred = core::mem::take(&mut region.deferred);
            let mut repeatable = None;
            let is_async = |one: &&Deferred| one.kind == EdgeKind::Async;
            n_async += deferred.iter().filter(is_async).count() as u64;
            let in_flight = &mut self.progress.in_flight;
            for one in deferred.iter().filter(|one| one.max_inflight > 0) {
                count_in_flight(in_flight, one.message.meta.edge, one.max_inflight);
            }
            for one in deferred.drain(..) {
                if one.max_inflight > 0 && evict_one(in_flight, one.message.meta.edge) {
                    self.progress.async_evicted.add(one.message.meta.edge);
                    continue;
                }
                let own_counts = &mut state.regions[position].get_mut().n_published;
                match one.kind {
                    EdgeKind::State => own_counts.state_committed += 1,
                    EdgeKind::Async => own_counts.async_committed += 1,
                    _ => {}
                }
                own_counts.committed += 1;
                let edge = one.message.meta.edge;
                if let Target::Domain(to) = one.to {
                    let to = &self.inboxes[to as usize];
                    if !send_to_domain(&self.shared, to, edge, one.message) {
                        self.progress.undelivered.add(edge);
                    }
                    continue;
                }
                if logs {
                    log_commit(&mut self.progress.boundary_log, &one.message, &mut repeatable);
                }
                let place = self.channel_locations[edge as usize];
                let seq = deliver(state, place, one.message);
                if state.env.traces {
                    let record = commit_record(&state.env, one.kind, edge, seq);
                    self.progress.records.push(record);
                }
            }
            in_flight.clear();
            state.regions[position].get_mut().deferred = deferred;
        }
        if n_async > 0 {
            let n_open = state.env.tasks.n_open() as u64;
            self.progress.async_max = self.progress.async_max.max(n_async + n_open);
        }
        let DomainState { regions, env, .. } = state;
        if core::mem::take(env.is_written.get_mut()) {
            let (epoch, counts) = (env.epoch, &mut self.progress.state);
            for writes in regions.iter_mut().map(|region| &mut region.get_mut().writes) {
                blackboard::commit(&mut env.blackboard, writes.drain(..), epoch, counts);
            }
        }
        let now_ns = state.env.now_ns;
        for (region, channel) in &self.special_edges.previous_tick {
            state.regions[*region as usize].get_mut().channels[*channel as usize].advance(now_ns);
        }
    }

    /// Takes what has come in from outside.
    pub(super) fn take_incoming(&mut self) -> Option<Fault> {
        let mut incoming = core::mem::take(&mut self.progress.incoming);
        let mut lost = core::mem::take(&mut self.progress.lost_before);
        self.inboxes[self.index].take(&mut incoming, &mut lost);
        self.count_lost_before(&mut lost);
        self.progress.lost_before = lost;
        if incoming.is_empty() {
            self.progress.incoming = incoming;
            return None;
        }
        // The order in which tasks end depends on threads. They are taken by number instead.
        incoming.make_contiguous().sort_by_key(|one| match one {
            Incoming::TaskEnded { number, .. } => *number + 1,
            _ => 0,
        });
        let (mut fault, mut n_taken) = (None, 0);
        for _ in 0..incoming.len() {
            let Some(item) = incoming.pop_front() else { break };
            if self.must_wait(&item) {
                // It waits for the next epoch, and stays ahead of what comes in until then.
                incoming.push_back(item);
                continue;
            }
            n_taken += usize::from(item.is_fed());
            fault = fault.or(self.apply_incoming(item));
        }
        self.progress.incoming = incoming;
        if n_taken > 0 {
            self.inboxes[self.index].release(n_taken);
        }
        fault
    }

    /// Counts messages that were lost on their way from other domains at their channels.
    fn count_lost_before(&mut self, lost: &mut Vec<(u32, u64)>) {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        for (edge, n_lost) in lost.drain(..) {
            let place = self.channel_locations[edge as usize];
            let region = state.regions[place.region as usize].get_mut();
            let channel = &mut region.channels[place.channel as usize];
            channel.count_lost_before(n_lost, state.env.now_ns);
        }
    }

    fn apply_incoming(&mut self, item: Incoming) -> Option<Fault> {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let meta = Meta { published_ns: state.env.now_ns, ..Meta::default() };
        match item {
            Incoming::Fed { edge, value, stamp } => {
                let value =
                    if self.shared.is_moved(edge) { value } else { value.into_shared(false) };
                let message = Message { value, meta: Meta { edge, ..meta }.stamped(stamp) };
                self.input(edge, message, false);
            }
            Incoming::FromDomain { edge, value, meta } => {
                let message = Message { value, meta };
                if state.env.logs {
                    commit_log::arrival(&mut self.progress.boundary_log, edge, &message);
                }
                self.shared.credits.receive(edge);
                self.deliver_incoming(edge, message);
            }
            // It only wakes the coordinator, which checks for room itself.
            Incoming::RoomAvailable => {}
            Incoming::Config(transaction) => return self.reconfigure(&transaction),
            Incoming::FedOut { component, port, value, stamp } => {
                let (env, (_, position, at)) = (&state.env, self.shared.nodes[component]);
                let node = &mut state.regions[position as usize].get_mut().nodes[at as usize];
                let call = node.chains.as_mut().map_or(0, |chains| chains.feed(env));
                let meta = Meta { received_ns: call, ..meta };
                self.publish_for(component, port, value, meta.stamped(stamp));
            }
            Incoming::TaskEnded { number, origin, result } => {
                self.progress.n_tasks_completed += 1;
                self.progress.running.ended(number);
                state.env.tasks.closed(1);
                let node = node_of(state, &self.shared.nodes, origin.component);
                let is_published = matches!(result, Some(Ok(Some(_))));
                let chains = node.chains.as_mut();
                let call = chains.map_or(0, |chains| chains.release(origin.call, is_published));
                let lost = || Err(Failure::msg("the task panicked or was dropped"));
                match result.unwrap_or_else(lost) {
                    Ok(None) => {}
                    Ok(Some(value)) => {
                        let (correlation, received_ns) = (origin.correlation, call);
                        let meta = Meta { correlation, received_ns, ..meta };
                        self.publish_for(origin.component, origin.port, value, meta);
                    }
                    Err(failure) => return self.task_failed(origin.component, &failure),
                }
            }
        }
        None
    }

    /// Ends the tasks that still run after the last epoch, and counts them, and the fed values that
    /// no epoch has taken.
    pub(super) async fn stop_tasks(&mut self) {
        let (policy, drain_max) = self.bounds.shutdown;
        self.progress.running.end(policy, drain_max, &self.state.env.executor).await;
        let mut incoming = core::mem::take(&mut self.progress.incoming);
        // This domain reads nothing any more: producers in other domains must not wait for it.
        for (edge, from) in &self.special_edges.credited {
            if self.shared.credits.close(*edge) {
                // The other domain may have ended.
                let _ = self.inboxes[*from as usize].put(Incoming::RoomAvailable);
            }
        }
        let mut lost = Vec::new();
        incoming.append(&mut self.inboxes[self.index].close(&mut lost));
        self.count_lost_before(&mut lost);
        for item in incoming.drain(..) {
            self.progress.n_fed_dropped += u64::from(item.is_fed());
            match &item {
                Incoming::Fed { edge, .. } | Incoming::FromDomain { edge, .. } => {
                    self.progress.undelivered.add(*edge);
                }
                Incoming::FedOut { component, port, .. } => {
                    let edges = &self.shared.plan.components[*component].outputs[*port].edges;
                    edges.iter().for_each(|edge| self.progress.undelivered.add(count(*edge)));
                }
                _ => {}
            }
            let Incoming::TaskEnded { origin, result, .. } = item else { continue };
            let counts = &mut self.progress.tasks_at_end;
            match result {
                None => counts.cancelled += 1,
                Some(Ok(value)) => {
                    counts.unseen += 1;
                    let from = &self.shared.plan.components[origin.component];
                    let edges = value.iter().flat_map(|_| &from.outputs[origin.port].edges);
                    edges.for_each(|edge| self.progress.undelivered.add(count(*edge)));
                }
                Some(Err(failure)) => {
                    counts.unseen += 1;
                    let text = format!("{failure}");
                    let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
                    let epoch = state.env.epoch;
                    let node = node_of(state, &self.shared.nodes, origin.component);
                    node.counts.errors += 1;
                    let fault = node.fault(RunPhase::Execute, text, epoch, false);
                    self.progress.note_fault(fault);
                }
            }
        }
    }

    /// Applies a change of settings: all of it, or nothing.
    fn reconfigure(&mut self, transaction: &Transaction) -> Option<Fault> {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let epoch = state.env.epoch;
        let (counts, records) = (&mut self.progress.config, &mut self.progress.records);
        counts.transaction += 1;
        counts.staged += transaction.changes.len() as u64;
        let value = counts.transaction;
        let mut note = |env: &Env, name, component: Option<usize>| {
            if env.traces {
                let component = component.map_or(trace::NONE, count);
                records.push(TraceRecord { component, value, ..TraceRecord::point(name, env) });
            }
        };
        let nodes = &self.shared.nodes;
        for (component, change) in &transaction.changes {
            note(&state.env, TraceName::ConfigTransactionValidate, Some(*component));
            let node = node_of(state, nodes, *component);
            let config = node.config.with(change);
            let checked = node.check_config(&config);
            if let Err(why) = checked {
                counts.rejected += transaction.changes.len() as u64;
                transaction.reply.send(Err(ConfigRefused::new(&node.id, why)));
                return None;
            }
        }
        if state.env.logs {
            commit_log::settings(&mut self.progress.boundary_log, &transaction.changes);
        }
        let mut old = Vec::with_capacity(transaction.changes.len());
        let mut failed = None;
        for (component, change) in &transaction.changes {
            note(&state.env, TraceName::ConfigTransactionApply, Some(*component));
            let node = node_of(state, nodes, *component);
            let config = node.config.with(change);
            old.push((*component, core::mem::replace(&mut node.config, config)));
            if let Err(failure) = node.take_config() {
                let refused = ConfigRefused::new(&node.id, &failure);
                failed = Some((refused, node.config_fault(&failure, epoch)));
                break;
            }
        }
        let Some((refused, fault)) = failed else {
            note(&state.env, TraceName::ConfigTransactionCommit, None);
            for (component, _) in &transaction.changes {
                let config = node_of(state, nodes, *component).config.clone();
                lock(&self.shared.settings)[*component] = config;
            }
            counts.version += 1;
            counts.committed += transaction.changes.len() as u64;
            transaction.reply.send(Ok(counts.version));
            return None;
        };
        for (component, config) in old.into_iter().rev() {
            note(&state.env, TraceName::ConfigTransactionRollback, Some(component));
            let node = node_of(state, nodes, component);
            node.config = config;
            counts.rolled_back += 1;
            // The run ends in any case.
            let _ = node.take_config();
        }
        transaction.reply.send(Err(refused));
        Some(fault)
    }

    fn task_failed(&mut self, component: usize, failure: &Failure) -> Option<Fault> {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let (now_ns, epoch) = (state.env.now_ns, state.env.epoch);
        let (_, position, at) = self.shared.nodes[component];
        let region = state.regions[position as usize].get_mut();
        let fault = region.failed(at as usize, failure, now_ns, epoch);
        if fault.is_fatal {
            return Some(fault);
        }
        self.progress.note_fault(fault);
        None
    }

    /// Publishes a value at an output of a component, as if it were called.
    fn publish_for(&mut self, component: usize, port: usize, value: Value, meta: Meta) {
        let plan = Arc::clone(&self.shared.plan);
        let edges = &plan.components[component].outputs[port].edges;
        let Some((last, others)) = edges.split_last() else { return };
        let is_moved = others.is_empty() && self.shared.is_moved(count(*last));
        let is_single = wiring::has_one_reader(&plan, edges);
        let value = if is_moved { value } else { value.into_shared(is_single) };
        let copy = |domain: &Self, edge: usize| {
            let copies = !value.is_inline() && wiring::copies(&plan, edges, edge);
            let copy = if copies { value.copied() } else { None };
            copy.inspect(|_| domain.state.env.note_copy(count(edge)))
        };
        let mut is_repeatable = false;
        for edge in others {
            if let Some(value) = copy(self, *edge).or_else(|| value.share()) {
                let edge = count(*edge);
                let message = Message { value, meta: Meta { edge, ..meta } };
                is_repeatable = self.input(edge, message, is_repeatable);
            }
        }
        let for_last = copy(self, *last);
        let value = for_last.unwrap_or(value);
        let edge = count(*last);
        self.input(edge, Message { value, meta: Meta { edge, ..meta } }, is_repeatable);
    }

    /// Takes one value from outside, on one edge; `is_again`: the last entry of the log has the
    /// same value. Returns whether the next edge may repeat the entry.
    fn input(&mut self, edge: u32, message: Message, is_again: bool) -> bool {
        let env = &self.state.env;
        // On an immediate edge, the record of the commit also stands for the publication.
        if env.traces && self.shared.plan.edges[edge as usize].kind != EdgeKind::Immediate {
            let point = TraceRecord::point(TraceName::ChannelPublish, env);
            self.progress.records.push(TraceRecord { edge, ..point });
        }
        let mut is_repeatable = is_again;
        if env.logs && is_again {
            commit_log::again(&mut self.progress.boundary_log, edge);
        } else if env.logs {
            let log = &mut self.progress.boundary_log;
            is_repeatable = commit_log::input(log, edge, &message);
        }
        self.deliver_incoming(edge, message);
        is_repeatable
    }

    /// Delivers one value from outside or from another domain.
    fn deliver_incoming(&mut self, edge: u32, message: Message) {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        let place = self.channel_locations[edge as usize];
        if place.domain as usize == self.index {
            let seq = deliver(state, place, message);
            if state.env.traces {
                let kind = self.shared.plan.edges[edge as usize].kind;
                self.progress.records.push(commit_record(&state.env, kind, edge, seq));
            }
        } else {
            let to = &self.inboxes[place.domain as usize];
            if !send_to_domain(&self.shared, to, edge, message) {
                self.progress.undelivered.add(edge);
            }
        }
    }

    /// Reports the free room of credited edges to producers in other domains.
    pub(super) fn report_credit(&mut self) {
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        for (edge, from) in &self.special_edges.credited {
            let place = self.channel_locations[*edge as usize];
            let region = state.regions[place.region as usize].get_mut();
            let n_inside = region.channels[place.channel as usize].n_without_room();
            if self.shared.credits.report_depth(*edge, n_inside) {
                // The other domain may have ended.
                let _ = self.inboxes[*from as usize].put(Incoming::RoomAvailable);
            }
        }
    }

    /// Sets the free room of edges that are not immediate, for this epoch.
    pub(super) fn open_rooms(&mut self) {
        if self.special_edges.guarded.is_empty() {
            return;
        }
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        for (position, at, index) in &self.special_edges.guarded {
            let region = state.regions[*position as usize].get_mut();
            let route = region.nodes[*at as usize].routes[*index as usize];
            let place = self.channel_locations[route.edge as usize];
            let room = if place.domain as usize == self.index {
                let to = state.regions[place.region as usize].get_mut();
                to.channels[place.channel as usize].room()
            } else {
                self.shared.credits.room(route.edge)
            };
            let limit = if route.max_inflight > 0 { route.max_inflight } else { u32::MAX };
            let region = state.regions[*position as usize].get_mut();
            let outbox = &mut region.nodes[*at as usize].outbox;
            outbox.set_room(*index as usize, room.min(limit));
        }
    }
}

/// Sends a message to another domain; returns false if that has ended, as its inbox is closed then.
/// A message that its edge has no room for counts there.
fn send_to_domain(shared: &RunShared, to: &Inbox, edge: u32, message: Message) -> bool {
    let sent = to.send(edge, message.value, message.meta);
    if sent == Sent::Accepted {
        shared.credits.send(edge);
    }
    sent != Sent::Closed
}

/// Writes a deferred message to the commit log. `repeatable` is the address of the payload of the
/// last entry, if the next edge may repeat it. Payloads at the same address are the same one: all
/// of the list of deferred messages are alive until they are visible.
fn log_commit(log: &mut Vec<u8>, message: &Message, repeatable: &mut Option<usize>) {
    let (edge, address) = (message.meta.edge, message.value.address());
    if address.is_some() && address == *repeatable {
        commit_log::again(log, edge);
    } else {
        let is_long = commit_log::commit(log, edge, message);
        *repeatable = address.filter(|_| is_long);
    }
}

/// The trace record of a commit at the boundary.
fn commit_record(env: &Env, kind: EdgeKind, edge: u32, seq: u64) -> TraceRecord {
    let name = match kind {
        EdgeKind::State => TraceName::StateCommit,
        EdgeKind::Async => TraceName::AsyncAdmission,
        _ => TraceName::ChannelCommit,
    };
    TraceRecord { edge, message: (edge + 1, seq), ..TraceRecord::point(name, env) }
}

fn node_of<'c>(
    state: &'c mut DomainState,
    nodes: &[(u32, u32, u32)],
    component: usize,
) -> &'c mut NodeState {
    let (_, region, at) = nodes[component];
    &mut state.regions[region as usize].get_mut().nodes[at as usize]
}

fn deliver(state: &mut DomainState, place: ChannelLocation, message: Message) -> u64 {
    let now_ns = state.env.now_ns;
    let region = state.regions[place.region as usize].get_mut();
    let channel = &mut region.channels[place.channel as usize];
    if let channel::Pushed::Refused(..) = channel.push(now_ns, message) {
        region.n_published.failed_commit += 1;
    }
    channel.counters().publish_count
}

/// Counts one more message on an edge that keeps at most `max`.
fn count_in_flight(in_flight: &mut Vec<(u32, u32, u32)>, edge: u32, max: u32) {
    match in_flight.iter_mut().find(|(of, ..)| *of == edge) {
        Some((_, n, _)) => *n += 1,
        None => in_flight.push((edge, 1, max)),
    }
}

/// Whether the next message of an edge is evicted by newer ones.
fn evict_one(in_flight: &mut [(u32, u32, u32)], edge: u32) -> bool {
    match in_flight.iter_mut().find(|(of, ..)| *of == edge) {
        Some((_, n, max)) if *n > *max => {
            *n -= 1;
            true
        }
        _ => false,
    }
}
