//! The engine of a simulated node: the one in memory, with faults between the node and the server.
//!
//! It also reads every pack that a node sends, and checks the windows: what has been sent must not
//! exceed what the receiver has granted.

use core::mem;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use clockjack_net::{
    LINK_WINDOW, LogEvent, MemoryServer,
    engine::{Connect, Engine, EngineEvent, Expected, LogWrite, Moment, Notify},
    wire::frame::{Frame, MESSAGE_MAX, MESSAGE_OVERHEAD, Pack},
};

use crate::{
    context::{SimContext, lock},
    fault::Class,
    invariant::Invariant,
};

/// The windows of a channel, as the contract has them.
const CHANNEL_FIRST: u64 = 64;
const CHANNEL_WINDOW: u64 = 1_024;
/// After how much a receiver grants more at the latest: messages of a channel, bytes of a link.
const CHANNEL_GRANT: u64 = CHANNEL_FIRST / 2;
const LINK_GRANT: u64 = LINK_WINDOW / 8;
/// By how much the last message may exceed the window of a link.
const EXCESS_MAX: u64 = MESSAGE_MAX as u64 + MESSAGE_OVERHEAD;
/// The longest delay of what a node reads, in ticks.
const DELAY_MAX: u64 = 3_000;

/// What all nodes of a run share.
#[derive(Clone)]
pub(crate) struct Traffic(Arc<Mutex<TrafficState>>);

struct TrafficState {
    sim: SimContext,
    /// Pairs of nodes between which no pack travels.
    blocked: BTreeSet<(usize, usize)>,
    /// The node of an incarnation.
    nodes: BTreeMap<u64, usize>,
    n_lost: u64,
    /// By sender, receiver and channel: the number of the last message that was sent, and of the
    /// last that may be.
    channels: BTreeMap<(u64, u64, u64), (u64, u64)>,
    /// By sender and receiver: the bytes that were sent, and those that may be.
    links: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Traffic {
    pub(crate) fn new(sim: &SimContext) -> Self {
        Self(Arc::new(Mutex::new(TrafficState {
            sim: sim.clone(),
            blocked: BTreeSet::new(),
            nodes: BTreeMap::new(),
            n_lost: 0,
            channels: BTreeMap::new(),
            links: BTreeMap::new(),
        })))
    }

    /// Stops the packs between two nodes, or lets them pass again.
    pub(crate) fn set_blocked(&self, a: usize, b: usize, is_blocked: bool) {
        let blocked = &mut lock(&self.0).blocked;
        for pair in [(a, b), (b, a)] {
            if is_blocked {
                blocked.insert(pair);
            } else {
                blocked.remove(&pair);
            }
        }
    }

    pub(crate) fn heal(&self) {
        lock(&self.0).blocked.clear();
    }

    /// The number of the last message that was sent on each channel.
    pub(crate) fn sent(&self) -> BTreeMap<(u64, u64, u64), u64> {
        lock(&self.0).channels.iter().map(|(channel, (sent, _))| (*channel, *sent)).collect()
    }

    /// Checks that the credit of channels was returned that have been used since, without losses,
    /// and whose messages were all taken.
    pub(crate) fn check_credit(&self, since: &BTreeMap<(u64, u64, u64), u64>) {
        let state = lock(&self.0);
        for (channel, (sent, limit)) in &state.channels {
            let before = since.get(channel).copied().unwrap_or(0);
            if *sent >= before + CHANNEL_GRANT {
                let least = sent + CHANNEL_WINDOW - CHANNEL_GRANT;
                state.sim.check(Invariant::N8, *limit >= least, || {
                    format!("channel {channel:x?}: limit {limit} after message {sent}")
                });
            }
        }
    }

    /// Checks that the credit of a link was returned, over which more than its window was sent
    /// without losses, and whose messages were all taken.
    pub(crate) fn check_link_credit(&self, from: u64, to: u64) {
        let state = lock(&self.0);
        let (sent, limit) = state.links.get(&(from, to)).copied().unwrap_or((0, LINK_WINDOW));
        let least = sent / LINK_GRANT * LINK_GRANT + LINK_WINDOW;
        state.sim.check(Invariant::N8, limit >= least, || {
            format!("link {from:x} to {to:x}: limit {limit} after {sent} bytes")
        });
    }

    /// The bytes that were sent on a link.
    pub(crate) fn sent_on_link(&self, from: u64, to: u64) -> u64 {
        lock(&self.0).links.get(&(from, to)).map_or(0, |(sent, _)| *sent)
    }

    /// The bytes that may be sent on a link while nothing is taken.
    pub(crate) fn link_window(&self) -> u64 {
        LINK_WINDOW + EXCESS_MAX
    }

    /// How many packs were lost.
    pub(crate) fn n_lost(&self) -> u64 {
        lock(&self.0).n_lost
    }
}

impl TrafficState {
    /// Whether a pack from a node reaches the server and the other node.
    fn passes(&mut self, from: usize, to: u64) -> bool {
        let is_blocked = self.nodes.get(&to).is_some_and(|to| self.blocked.contains(&(from, *to)));
        let passes = !is_blocked && self.sim.fault(Class::NetDrop).is_none();
        self.n_lost += u64::from(!passes);
        passes
    }

    /// Checks the frames of a pack.
    fn check(&mut self, bytes: &[u8]) {
        let Ok(pack) = Pack::read(bytes) else {
            return self.sim.check(Invariant::N8, false, || "a node sends no pack".into());
        };
        let (from, to) = (pack.from, pack.to);
        for frame in pack {
            match frame {
                Ok(Frame::Message(message)) => {
                    let number = message.number;
                    let channel = self.channels.entry((from, to, message.channel));
                    let (last, limit) = channel.or_insert((0, CHANNEL_FIRST));
                    *last = number.max(*last);
                    let limit = *limit;
                    self.sim.check(Invariant::N8, number <= limit, || {
                        format!("message {number} of a channel with the limit {limit}")
                    });
                    let (sent, limit) = self.links.entry((from, to)).or_insert((0, LINK_WINDOW));
                    *sent += message.body.len() as u64 + MESSAGE_OVERHEAD;
                    let (sent, limit) = (*sent, *limit);
                    self.sim.check(Invariant::N8, sent <= limit + EXCESS_MAX, || {
                        format!("{sent} bytes on a link with the limit {limit}")
                    });
                }
                Ok(Frame::Grant { channel, limit, received }) => {
                    let known = self.channels.entry((to, from, channel));
                    let (_, known) = known.or_insert((0, CHANNEL_FIRST));
                    *known = limit.max(*known);
                    let most = CHANNEL_FIRST.max(received + CHANNEL_WINDOW);
                    self.sim.check(Invariant::N8, limit <= most, || {
                        format!("a grant up to {limit}, of which {received} have arrived")
                    });
                }
                Ok(Frame::LinkGrant { limit, received }) => {
                    let (_, known) = self.links.entry((to, from)).or_insert((0, LINK_WINDOW));
                    *known = limit.max(*known);
                    self.sim.check(Invariant::N8, limit <= received + LINK_WINDOW, || {
                        format!("a link may send {limit} bytes, of which {received} have arrived")
                    });
                }
                _ => {}
            }
        }
    }
}

/// The connection of a node, as the simulation sees it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cable(Arc<Mutex<CableState>>);

#[derive(Default)]
struct CableState {
    incarnation: u64,
    is_offline: bool,
    /// The node knows that it is offline.
    is_told: bool,
    /// The process was killed: nothing passes any more.
    is_cut: bool,
    /// What the node reads later.
    held: Vec<EngineEvent>,
    held_until: u64,
}

impl Cable {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// The current incarnation of the node.
    pub(crate) fn incarnation(&self) -> u64 {
        lock(&self.0).incarnation
    }

    /// The node does not reach the server, or reaches it again.
    pub(crate) fn set_offline(&self, is_offline: bool) {
        lock(&self.0).is_offline = is_offline;
    }

    pub(crate) fn cut(&self) {
        lock(&self.0).is_cut = true;
    }

    /// Whether the node has read everything that there is for it.
    pub(crate) fn is_clear(&self) -> bool {
        let state = lock(&self.0);
        !state.is_offline && !state.is_told && state.held.is_empty()
    }
}

/// Connects a node.
pub(crate) struct FaultyConnect {
    pub(crate) sim: SimContext,
    pub(crate) server: MemoryServer,
    pub(crate) traffic: Traffic,
    pub(crate) cable: Cable,
    pub(crate) node: usize,
}

impl Connect for FaultyConnect {
    fn join_number(&mut self) -> u64 {
        self.server.join_number()
    }

    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine> {
        let Self { sim, server, traffic, cable, node } = *self;
        let inner = Box::new(server).connect(notify);
        Box::new(FaultyEngine { sim, inner, traffic, cable, node, keys: BTreeMap::new(), read: 0 })
    }
}

struct FaultyEngine {
    sim: SimContext,
    inner: Box<dyn Engine>,
    traffic: Traffic,
    cable: Cable,
    node: usize,
    /// The keys that have a value, for a snapshot.
    keys: BTreeMap<String, LogEvent>,
    read: u64,
}

impl FaultyEngine {
    fn passes(&self) -> bool {
        let state = lock(&self.cable.0);
        !state.is_offline && !state.is_cut
    }

    fn remember(&mut self, event: &LogEvent) {
        self.read = event.sequence;
        match event.value {
            Some(_) => self.keys.insert(event.key.clone(), event.clone()),
            None => self.keys.remove(&event.key),
        };
    }

    /// All that the log has, as after a reconnect.
    fn snapshot(&self) -> EngineEvent {
        let mut entries: Vec<LogEvent> = self.keys.values().cloned().collect();
        entries.sort_by_key(|entry| entry.sequence);
        EngineEvent::Snapshot { sequence: self.read, entries }
    }
}

impl Engine for FaultyEngine {
    fn subscribe(&mut self, incarnation: u64) {
        lock(&self.cable.0).incarnation = incarnation;
        lock(&self.traffic.0).nodes.insert(incarnation, self.node);
        self.sim.record("subscribe", &[self.node as u64, incarnation]);
        self.inner.subscribe(incarnation);
    }

    fn publish(&mut self, to: u64, pack: Vec<u8>) {
        if lock(&self.cable.0).is_cut {
            return;
        }
        lock(&self.traffic.0).check(&pack);
        if !self.passes() {
            lock(&self.traffic.0).n_lost += 1;
            return;
        }
        if lock(&self.traffic.0).passes(self.node, to) {
            if self.sim.fault(Class::NetDup).is_some() {
                self.inner.publish(to, pack.clone());
            }
            self.inner.publish(to, pack);
        }
    }

    fn write(&mut self, now: Moment, write: LogWrite) {
        if !self.passes() || self.sim.fault(Class::WriteLost).is_some() {
            return;
        }
        let is_lease = write.value.is_some() && write.ttl.is_some();
        let key = write.key.clone();
        self.inner.write(now, write);
        if is_lease && self.sim.fault(Class::KeyLost).is_some() {
            // As a server did after a pause: it accepted a renewal, and then ended the key.
            let end = LogWrite { key, value: None, expected: Expected::Any, ttl: None };
            self.inner.write(now, end);
        }
    }

    fn poll(&mut self, now: Moment) -> Vec<EngineEvent> {
        let mut new = self.inner.poll(now);
        for event in &new {
            if let EngineEvent::Log(event) = event {
                self.remember(event);
            }
        }
        let cable = self.cable.clone();
        let mut state = lock(&cable.0);
        if state.is_cut {
            return Vec::new();
        }
        if state.is_offline {
            // What was held has arrived before; what comes now does not.
            let n_lost = new.iter().filter(|event| matches!(event, EngineEvent::Pack(_))).count();
            lock(&self.traffic.0).n_lost += n_lost as u64;
            new = mem::take(&mut state.held);
            if !mem::replace(&mut state.is_told, true) {
                new.push(EngineEvent::Disconnected);
            }
            return new;
        }
        if mem::replace(&mut state.is_told, false) {
            new.retain(|event| matches!(event, EngineEvent::Pack(_)));
            new.splice(0..0, [EngineEvent::Reconnected, self.snapshot()]);
        }
        if state.held.is_empty()
            && let Some(size) = self.sim.fault(Class::NetDelay)
        {
            state.held_until = self.sim.now() + 1 + size % DELAY_MAX;
        }
        state.held.append(&mut new);
        if self.sim.now() < state.held_until { Vec::new() } else { mem::take(&mut state.held) }
    }
}
