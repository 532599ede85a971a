//! The expected state of a cluster, from what the simulation does and from the log of the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_actor::TerminationCause;
use clockjack_net::{LogEvent, Members};

use crate::{
    context::{SimContext, lock},
    invariant::Invariant,
};

/// The messages through one remote proxy, to one target.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// The nodes, and their incarnations when the proxy was made.
    pub(crate) from: (usize, u64),
    pub(crate) to: (usize, u64),
    pub(crate) target: u64,
    /// How many messages and requests the proxy has accepted.
    pub(crate) sent: u64,
    pub(crate) n_delivered: u64,
    /// The number of the last message that the target has handled.
    pub(crate) last: u64,
    /// How the watcher learned of the end, and when.
    pub(crate) end: Option<(TerminationCause, u64)>,
    /// The process of the sender was killed.
    pub(crate) is_killed: bool,
}

#[derive(Debug)]
pub(crate) struct Request {
    stream: u64,
    /// Its place among the messages of the stream.
    number: u64,
    deadline: u64,
    n_handled: u64,
    pub(crate) is_open: bool,
    is_answered: bool,
}

impl StreamState {
    /// A target has handled the message with this number.
    fn deliver(&mut self, sim: &SimContext, target: u64, stream: u64, number: u64) {
        let (last, sent) = (self.last, self.sent);
        sim.check(Invariant::N1, self.target == target, || {
            format!("stream {stream} has arrived at target {target}")
        });
        sim.check(Invariant::N1, last < number && number <= sent, || {
            format!("stream {stream}: message {number} of {sent} after message {last}")
        });
        self.last = number;
        self.n_delivered += 1;
    }
}

/// Shared by the simulation and its actors. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Oracle(Arc<Mutex<OracleState>>);

pub(crate) struct OracleState {
    sim: SimContext,
    pub(crate) streams: BTreeMap<u64, StreamState>,
    pub(crate) requests: BTreeMap<u64, Request>,
    /// Targets that the simulation stops.
    pub(crate) stopped: BTreeSet<u64>,
    /// Messages that were lost, as the receiver has counted them, by sender and receiver.
    gaps: BTreeMap<(u64, u64), u64>,
    /// The members after each entry of the log that changed them.
    members: BTreeMap<u64, BTreeSet<u64>>,
    /// The incarnations whose service has a key, after each entry of the log that changed them.
    services: BTreeMap<u64, BTreeSet<u64>>,
    /// The target of an incarnation.
    targets: BTreeMap<u64, u64>,
    /// Incarnations that the log has ended, and where.
    ended: BTreeMap<u64, u64>,
    /// Requests whose asks have not ended.
    open: BTreeSet<u64>,
    /// Streams whose ends were not checked yet.
    new_ends: Vec<u64>,
    /// Requests whose asks have failed before their deadline, which was not checked yet.
    new_refusals: Vec<u64>,
    /// Incarnations of processes, in their order, by node.
    incarnations: BTreeMap<usize, u64>,
}

impl Oracle {
    pub(crate) fn new(sim: &SimContext) -> Self {
        Self(Arc::new(Mutex::new(OracleState {
            sim: sim.clone(),
            streams: BTreeMap::new(),
            requests: BTreeMap::new(),
            stopped: BTreeSet::new(),
            gaps: BTreeMap::new(),
            members: BTreeMap::from([(0, BTreeSet::new())]),
            services: BTreeMap::from([(0, BTreeSet::new())]),
            targets: BTreeMap::new(),
            ended: BTreeMap::new(),
            open: BTreeSet::new(),
            new_ends: Vec::new(),
            new_refusals: Vec::new(),
            incarnations: BTreeMap::new(),
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, OracleState> {
        lock(&self.0)
    }

    /// A target has handled a message.
    pub(crate) fn delivered(&self, target: u64, stream: u64, number: u64) {
        let mut state = self.state();
        let sim = state.sim.clone();
        sim.record("delivered", &[stream, number]);
        let Some(known) = state.streams.get_mut(&stream) else {
            return sim.check(Invariant::N1, false, || format!("stream {stream} is unknown"));
        };
        known.deliver(&sim, target, stream, number);
    }

    /// A target has handled a request, in its place among the messages.
    pub(crate) fn handled(&self, target: u64, stream: u64, request: u64) {
        let mut state = self.state();
        let sim = state.sim.clone();
        sim.record("handled", &[stream, request]);
        let Some(known) = state.requests.get_mut(&request) else {
            return sim.check(Invariant::N2, false, || format!("request {request} is unknown"));
        };
        known.n_handled += 1;
        let (n, number) = (known.n_handled, known.number);
        sim.check_equal(Invariant::N2, "how often a request was handled", n, 1);
        if let Some(known) = state.streams.get_mut(&stream) {
            known.deliver(&sim, target, stream, number);
        }
    }

    /// A request was sent.
    pub(crate) fn asks(&self, stream: u64, deadline: u64) -> u64 {
        let mut state = self.state();
        let request = state.requests.len() as u64 + 1;
        let number = state.streams.get_mut(&stream).map_or(0, |known| {
            known.sent += 1;
            known.sent
        });
        let new =
            Request { stream, number, deadline, n_handled: 0, is_open: true, is_answered: false };
        state.requests.insert(request, new);
        state.open.insert(request);
        request
    }

    /// An ask has ended, with its answer or by a timeout or otherwise.
    pub(crate) fn answered(&self, request: u64, answer: Option<u64>, is_timed_out: bool) {
        let mut state = self.state();
        let (sim, now) = (state.sim.clone(), state.sim.now());
        sim.record("answered", &[request, answer.unwrap_or(0), u64::from(is_timed_out)]);
        let Some(known) = state.requests.get_mut(&request) else { return };
        let was_open = core::mem::replace(&mut known.is_open, false);
        known.is_answered = answer.is_some();
        let (stream, deadline, n_handled) = (known.stream, known.deadline, known.n_handled);
        state.open.remove(&request);
        sim.check(Invariant::N2, was_open, || format!("ask {request} has ended twice"));
        sim.check(Invariant::N2, !is_timed_out || now >= deadline, || {
            format!("ask {request} has timed out {} ms early", deadline.saturating_sub(now))
        });
        if answer.is_none() && !is_timed_out {
            state.new_refusals.push(request);
        }
        if let Some(answer) = answer {
            sim.check(Invariant::N2, answer == request && n_handled == 1, || {
                format!("ask {request}, handled {n_handled} times, got the answer {answer}")
            });
            let end = state.streams.get(&stream).and_then(|known| known.end);
            sim.check(Invariant::N3, end.is_none_or(|(_, at)| at >= now), || {
                format!("an answer on stream {stream} after its end {end:?}")
            });
        }
    }

    /// A watcher has learned of the end of its remote actor.
    pub(crate) fn terminated(&self, stream: u64, cause: TerminationCause) {
        let mut state = self.state();
        let (sim, now) = (state.sim.clone(), state.sim.now());
        sim.record("terminated", &[stream, cause as u64]);
        let Some(known) = state.streams.get_mut(&stream) else { return };
        let before = known.end.replace((cause, now));
        sim.check(Invariant::N3, before.is_none(), || {
            format!("the end of stream {stream} is reported again, before as {before:?}")
        });
        state.new_ends.push(stream);
    }

    /// Checks the causes of new ends, when the log was read: those of streams, and those of asks
    /// that have got no answer before their deadline.
    pub(crate) fn check_causes(&self) {
        let mut state = self.state();
        for request in core::mem::take(&mut state.new_refusals) {
            let stream = &state.streams[&state.requests[&request].stream];
            let is_justified = !stream.is_alive()
                || state.stopped.contains(&stream.target)
                || state.ended.contains_key(&stream.to.1)
                || state.is_lost(stream.from);
            state.sim.check(Invariant::N2, is_justified, || {
                format!("ask {request} has failed, and its target and both nodes are there")
            });
        }
        for stream in core::mem::take(&mut state.new_ends) {
            let known = &state.streams[&stream];
            let Some((cause, _)) = known.end else { continue };
            let is_justified = match cause {
                TerminationCause::NodeLost => state.ended.contains_key(&known.to.1),
                TerminationCause::SelfLost => state.is_lost(known.from),
                _ => state.stopped.contains(&known.target),
            };
            state.sim.check(Invariant::N3, is_justified, || {
                format!("stream {stream} has ended as {cause:?}, which is not what happened")
            });
        }
    }

    /// A node has counted losses.
    pub(crate) fn gap(&self, node: usize, from: u64, n: u64) {
        let mut state = self.state();
        let to = state.incarnations.get(&node).copied().unwrap_or(0);
        state.sim.record("gap", &[from, n]);
        *state.gaps.entry((from, to)).or_default() += n;
    }

    /// A node takes another one for hostile.
    pub(crate) fn muted(&self, node: usize, from: u64) {
        let sim = self.state().sim.clone();
        sim.check(Invariant::N8, false, || format!("node {node} has muted {from:016x}"));
    }

    /// An actor has failed; none should.
    pub(crate) fn failed(&self, info: &dyn core::fmt::Display) {
        let sim = self.state().sim.clone();
        sim.check(Invariant::L1, false, || format!("an actor has failed: {info}"));
    }

    /// The incarnation of a node that is a member, which its events are about from now on.
    pub(crate) fn is_incarnation(&self, node: usize, incarnation: u64, target: u64) {
        let mut state = self.state();
        state.incarnations.insert(node, incarnation);
        state.targets.insert(incarnation, target);
    }

    /// The next entry of the log.
    pub(crate) fn log(&self, event: &LogEvent) {
        let mut state = self.state();
        let sim = state.sim.clone();
        if let Some(text) = event.key.strip_prefix("reg.") {
            return state.log_service(event, text);
        }
        let Some(text) = event.key.strip_prefix("live.") else { return };
        let Ok(incarnation) = u64::from_str_radix(text, 16) else { return };
        sim.record("live", &[event.sequence, incarnation, u64::from(event.value.is_some())]);
        let mut members =
            state.members.last_entry().map_or_else(BTreeSet::new, |last| last.get().clone());
        if event.value.is_some() {
            let end = state.ended.get(&incarnation);
            sim.check(Invariant::N3, end.is_none(), || {
                format!("{incarnation:016x} lives again, after its end at {end:?}")
            });
            members.insert(incarnation);
        } else if members.remove(&incarnation) {
            state.ended.insert(incarnation, event.sequence);
        }
        state.members.insert(event.sequence, members);
    }

    /// Checks what a node has read: the members, and that what belonged to lost ones has ended.
    pub(crate) fn check_members(&self, node: usize, read: &Members) {
        let state = self.state();
        let found: BTreeSet<u64> =
            read.members.iter().map(|member| member.node.incarnation()).collect();
        let known = state.members.range(..=read.sequence).next_back();
        let expected = known.map(|(_, members)| members);
        state.sim.check(Invariant::N7, expected == Some(&found), || {
            format!("node {node} at {}: {found:x?}, expected {expected:x?}", read.sequence)
        });
    }

    /// Checks the services that an idle node finds, by their incarnations: those that follow from
    /// the entries that it has read. One whose target has stopped may be gone before.
    pub(crate) fn check_services(&self, node: usize, me: u64, read: &Members, found: &[u64]) {
        let state = self.state();
        let at = |all: &BTreeMap<u64, BTreeSet<u64>>| {
            all.range(..=read.sequence).next_back().map_or_else(BTreeSet::new, |(_, at)| at.clone())
        };
        let members = at(&state.members);
        if !members.contains(&me) {
            return;
        }
        let mut expected = &at(&state.services) & &members;
        expected.remove(&me);
        let is_stopped =
            |one: &u64| state.targets.get(one).is_none_or(|target| state.stopped.contains(target));
        let found: BTreeSet<u64> = found.iter().copied().collect();
        let is_one_of_them = found.is_subset(&expected);
        let is_all = expected.difference(&found).all(is_stopped);
        state.sim.check(Invariant::N7, is_one_of_them && is_all, || {
            format!("node {node} at {}: services {found:x?} of {expected:x?}", read.sequence)
        });
    }

    /// Checks a node that has run until it is idle: the streams to lost nodes have ended, and so
    /// have their asks.
    pub(crate) fn check_idle_node(&self, me: u64, read: &Members) {
        let state = self.state();
        let is_lost =
            |incarnation: u64| state.ended.get(&incarnation).is_some_and(|at| *at <= read.sequence);
        let mine = |stream: &&StreamState| stream.from.1 == me && stream.is_alive();
        for (id, stream) in state.streams.iter().filter(|(_, stream)| mine(stream)) {
            let is_over = !is_lost(stream.to.1);
            state.sim.check(Invariant::N3, is_over, || {
                format!("stream {id} has not ended, and its node is lost")
            });
        }
        let now = state.sim.now();
        for id in &state.open {
            let request = &state.requests[id];
            let stream = &state.streams[&request.stream];
            let is_other = stream.is_killed || stream.from.1 != me;
            state.sim.check(Invariant::N2, is_other || now <= request.deadline, || {
                format!("ask {id} waits {} ms after its deadline", now - request.deadline)
            });
            let is_over = stream.end.is_none() || stream.is_killed || stream.from.1 != me;
            state.sim.check(Invariant::N2, is_over, || {
                format!("ask {id} waits, and its stream has ended: {:?}", stream.end)
            });
        }
    }

    /// Checks the losses: what a receiver has counted is no more than what was lost, and exactly
    /// that between nodes whose streams all live. Requests may be given up before they are sent.
    pub(crate) fn check_losses(&self, is_at_rest: bool) {
        let state = self.state();
        let mut pairs: BTreeMap<(u64, u64), (u64, bool)> = BTreeMap::new();
        for stream in state.streams.values() {
            let (n_missing, is_exact) =
                pairs.entry((stream.from.1, stream.to.1)).or_insert((0, true));
            *n_missing += stream.sent.saturating_sub(stream.n_delivered);
            *is_exact &= stream.end.is_none() && !stream.is_killed;
        }
        let asks: BTreeSet<(u64, u64)> = state
            .requests
            .values()
            .filter_map(|request| state.streams.get(&request.stream))
            .map(|stream| (stream.from.1, stream.to.1))
            .collect();
        for (pair, (n_missing, is_exact)) in pairs {
            let n = state.gaps.get(&pair).copied().unwrap_or(0);
            let (from, to) = pair;
            state.sim.check(Invariant::N1, n <= n_missing, || {
                format!("{from:x} to {to:x}: {n} lost, but only {n_missing} are missing")
            });
            if is_at_rest && is_exact && !asks.contains(&pair) {
                state.sim.check(Invariant::N1, n == n_missing, || {
                    format!("{from:x} to {to:x}: {n} lost, but {n_missing} are missing")
                });
            }
        }
    }

    /// Checks that nothing counts as lost if the network has lost nothing, and no node has refused
    /// a pack.
    pub(crate) fn check_losses_of(&self, n_lost_packs: u64) {
        let state = self.state();
        let n_lost: u64 = state.gaps.values().sum();
        state.sim.check(Invariant::N1, n_lost == 0 || n_lost_packs > 0, || {
            format!("{n_lost} messages are lost, and no pack")
        });
    }

    /// Checks that everything has ended that must, when nothing fails any more.
    pub(crate) fn check_ends(&self) {
        let state = self.state();
        for (id, stream) in state.streams.iter().filter(|(_, stream)| !stream.is_killed) {
            let is_over = state.is_lost(stream.from)
                || state.ended.contains_key(&stream.to.1)
                || state.stopped.contains(&stream.target);
            state.sim.check(Invariant::N3, is_over == stream.end.is_some(), || {
                format!("stream {id} has ended: {:?}, and should: {is_over}", stream.end)
            });
        }
        for (id, request) in &state.requests {
            let is_killed = state.streams[&request.stream].is_killed;
            state.sim.check(Invariant::N2, !request.is_open || is_killed, || {
                format!("ask {id} has not ended")
            });
        }
    }

    /// How many of the requests after these were answered.
    pub(crate) fn n_answered_after(&self, n_before: usize) -> u64 {
        let state = self.state();
        state.requests.values().skip(n_before).filter(|request| request.is_answered).count() as u64
    }

    /// The streams from an incarnation to a target that have not ended.
    pub(crate) fn live_streams(&self, from: u64, target: u64) -> BTreeSet<u64> {
        let state = self.state();
        let is_it = |known: &StreamState| {
            known.from.1 == from && known.target == target && known.is_alive()
        };
        state.streams.iter().filter(|(_, known)| is_it(known)).map(|(id, _)| *id).collect()
    }

    /// The process of a node was killed. Returns all streams from it.
    pub(crate) fn killed(&self, node: usize) -> BTreeSet<u64> {
        let mut state = self.state();
        let mut killed = BTreeSet::new();
        for (id, stream) in state.streams.iter_mut().filter(|(_, one)| one.from.0 == node) {
            stream.is_killed = true;
            killed.insert(*id);
        }
        killed
    }
}

impl OracleState {
    /// Whether the log has ended an incarnation of a node, or the node has given it up before it
    /// was a member.
    fn is_lost(&self, (node, incarnation): (usize, u64)) -> bool {
        let current = self.incarnations.get(&node);
        self.ended.contains_key(&incarnation) || current.is_some_and(|now| *now != incarnation)
    }

    /// The next entry of the log, with the rest of the key of a service: `KEY.TYPE.INC.EXPORT`.
    fn log_service(&mut self, event: &LogEvent, text: &str) {
        let incarnation = text.split('.').nth(2).map(|text| u64::from_str_radix(text, 16));
        let Some(Ok(incarnation)) = incarnation else { return };
        let last = self.services.last_entry();
        let mut services = last.map_or_else(BTreeSet::new, |last| last.get().clone());
        if event.value.is_some() {
            services.insert(incarnation);
        } else {
            services.remove(&incarnation);
        }
        self.services.insert(event.sequence, services);
    }
}
