//! [`MemoryServer`]: an engine in this process, for tests and for a single node.
//!
//! The server is a model of what a real one does for the live half: a log with conditional writes,
//! times to live and one total order, and packs to the subscriber of an incarnation. It has no
//! clock of its own: each call passes the time of the caller, and the largest one counts, so the
//! systems that share a server must share a clock. It does not survive its process.
//!
//! The log keeps the newest [`LOG_KEPT_MAX`] entries. A reader that is further behind gets a
//! snapshot, as after a reconnect. The queue of packs of a node has a bound as well; a pack beyond
//! it is dropped, and its receiver counts the gap.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    vec::Vec,
};
use core::{fmt, mem};

use clockjack_sync::{Arc, spin_lock::SpinLock};

use crate::{
    engine::{Connect, Engine, EngineEvent, Expected, LogWrite, Moment, Notify},
    log::LogEvent,
};

/// The most entries that the log keeps for readers that are behind.
pub const LOG_KEPT_MAX: usize = 4_096;

/// The most packs that wait for a node.
pub const PACKS_WAITING_MAX: usize = 65_536;

/// A server in this process. Cheap to clone.
#[derive(Clone)]
pub struct MemoryServer(Arc<SpinLock<ServerState>>);

#[derive(Default)]
struct ServerState {
    now: Moment,
    sequence: u64,
    keys: BTreeMap<String, Entry>,
    log: VecDeque<LogEvent>,
    connections: BTreeMap<u64, Connection>,
    n_connections: u64,
    n_joins: u64,
    /// Pairs of connections between which no pack travels; each pair in both orders.
    blocked: BTreeSet<(u64, u64)>,
    n_packs_dropped: u64,
}

struct Entry {
    sequence: u64,
    value: Vec<u8>,
    expires: Option<Moment>,
}

struct Connection {
    incarnation: u64,
    /// The sequence number up to which the log was read.
    read: u64,
    events: VecDeque<EngineEvent>,
    /// Called when there is something to read, outside of the lock.
    notify: Notify,
    is_notified: bool,
    /// The node hears nothing more, and its writes are ignored.
    is_cut: bool,
    /// The node does not reach the server, and knows it.
    is_offline: bool,
    /// The node reaches the server again, and has not read it yet.
    is_back: bool,
}

impl MemoryServer {
    /// A server without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(SpinLock::new(ServerState::default())))
    }

    /// Connects a node.
    fn connect_node(&self, notify: Notify) -> MemoryEngine {
        let connection = self.0.with(|state| {
            state.n_connections += 1;
            let connection = Connection {
                incarnation: 0,
                read: 0,
                events: VecDeque::new(),
                notify,
                is_notified: false,
                is_cut: false,
                is_offline: false,
                is_back: false,
            };
            state.connections.insert(state.n_connections, connection);
            state.n_connections
        });
        MemoryEngine { server: self.clone(), connection }
    }

    /// The number of packs that were dropped because their node did not read.
    #[must_use]
    pub fn packs_dropped(&self) -> u64 {
        self.0.with(|state| state.n_packs_dropped)
    }

    /// The keys of the log that have a value, in their order. For tests.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.0.with(|state| state.keys.keys().cloned().collect())
    }

    /// Cuts the connection of an incarnation, as if its process was killed: its subject has no
    /// subscriber any more, and its writes are ignored. For tests.
    pub fn cut(&self, incarnation: u64) {
        self.0.with(|state| {
            let connections = state.connections.values_mut();
            for one in connections.filter(|one| one.incarnation == incarnation) {
                one.is_cut = true;
            }
        });
    }

    /// Cuts an incarnation off from the server, as if its cable was unplugged, or lets it reach the
    /// server again, as after a reconnect. What it sends or writes meanwhile is lost, and so are
    /// packs for it, of which their senders learn nothing. For tests.
    pub fn set_offline(&self, incarnation: u64, is_offline: bool) {
        self.change(|state| {
            let connections = state.connections.values_mut();
            for one in connections.filter(|one| one.incarnation == incarnation) {
                if is_offline && !one.is_offline {
                    one.events.push_back(EngineEvent::Disconnected);
                }
                one.is_back |= one.is_offline && !is_offline;
                one.is_offline = is_offline;
            }
        });
    }

    /// Stops the packs between two incarnations, in both directions, or lets them pass again. Both
    /// still read and write the log. For tests.
    pub fn set_blocked(&self, a: u64, b: u64, is_blocked: bool) {
        self.0.with(|state| {
            let of = |incarnation| {
                let mut all = state.connections.iter();
                all.find(|(_, one)| one.incarnation == incarnation).map(|(id, _)| *id)
            };
            let (Some(a), Some(b)) = (of(a), of(b)) else { return };
            for pair in [(a, b), (b, a)] {
                if is_blocked {
                    state.blocked.insert(pair);
                } else {
                    state.blocked.remove(&pair);
                }
            }
        });
    }

    /// Delivers bytes to an incarnation, with any sender that they name. For tests of what a node
    /// does with bytes that are not trusted.
    pub fn inject(&self, to: u64, pack: Vec<u8>) {
        self.change(|state| state.publish(0, to, pack));
    }

    /// Changes the state, then notifies the nodes that have something to read.
    fn change<R>(&self, change: impl FnOnce(&mut ServerState) -> R) -> R {
        let (result, to_notify) = self.0.with(|state| {
            let result = change(state);
            (result, state.take_notifies())
        });
        for notify in to_notify {
            notify.notify();
        }
        result
    }
}

impl Connect for MemoryServer {
    /// Counts, so that no two joins draw the same incarnation, whatever their seeds are.
    fn join_number(&mut self) -> u64 {
        self.0.with(|state| {
            state.n_joins += 1;
            state.n_joins
        })
    }

    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine> {
        Box::new(self.connect_node(notify))
    }
}

impl Default for MemoryServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, n_nodes) = self.0.with(|state| (state.sequence, state.connections.len()));
        f.debug_struct("MemoryServer")
            .field("sequence", &sequence)
            .field("nodes", &n_nodes)
            .finish()
    }
}

impl ServerState {
    fn take_notifies(&mut self) -> Vec<Notify> {
        let sequence = self.sequence;
        let has_news = |one: &&mut Connection| {
            let is_behind = one.is_back || (one.read < sequence && !one.is_offline);
            !one.is_cut && !one.is_notified && (is_behind || !one.events.is_empty())
        };
        let mut notifies = Vec::new();
        for one in self.connections.values_mut().filter(has_news) {
            one.is_notified = true;
            notifies.push(one.notify.clone());
        }
        notifies
    }

    /// Time passes: keys whose time to live is over end, in the order of their ends.
    fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        let now = self.now;
        let is_over = |entry: &&Entry| entry.expires.is_some_and(|expires| expires <= now);
        let mut over: Vec<(Option<Moment>, String)> = self
            .keys
            .iter()
            .filter(|(_, entry)| is_over(entry))
            .map(|(key, entry)| (entry.expires, key.clone()))
            .collect();
        over.sort();
        for (_, key) in over {
            self.append(key, None, None);
        }
    }

    fn write(&mut self, write: LogWrite) {
        let last = self.keys.get(&write.key).map(|entry| entry.sequence);
        let is_accepted = match write.expected {
            Expected::Any => true,
            Expected::Absent => last.is_none(),
            Expected::Sequence(sequence) => last == Some(sequence),
        };
        if is_accepted && (write.value.is_some() || last.is_some()) {
            let expires = write.ttl.map(|ttl| self.now.after(ttl));
            self.append(write.key, write.value, expires);
        }
    }

    fn append(&mut self, key: String, value: Option<Vec<u8>>, expires: Option<Moment>) {
        self.sequence += 1;
        let sequence = self.sequence;
        match &value {
            Some(value) => {
                let entry = Entry { sequence, value: value.clone(), expires };
                self.keys.insert(key.clone(), entry);
            }
            None => {
                self.keys.remove(&key);
            }
        }
        if self.log.len() >= LOG_KEPT_MAX {
            self.log.pop_front();
        }
        self.log.push_back(LogEvent { sequence, key, value });
    }

    fn publish(&mut self, from: u64, to: u64, pack: Vec<u8>) {
        let target =
            self.connections.iter_mut().find(|(_, one)| one.incarnation == to && !one.is_cut);
        let Some((target_id, target)) = target else {
            if let Some(from) = self.connections.get_mut(&from) {
                from.events.push_back(EngineEvent::NoResponders(to));
            }
            return;
        };
        let is_lost = target.is_offline || self.blocked.contains(&(from, *target_id));
        if is_lost || target.events.len() >= PACKS_WAITING_MAX {
            self.n_packs_dropped += 1;
        } else {
            target.events.push_back(EngineEvent::Pack(pack));
        }
    }

    fn poll(&mut self, connection: u64) -> Vec<EngineEvent> {
        let Some(one) = self.connections.get_mut(&connection).filter(|one| !one.is_cut) else {
            return Vec::new();
        };
        one.is_notified = false;
        if one.is_offline {
            return mem::take(&mut one.events).into();
        }
        let mut events = Vec::new();
        let is_back = mem::take(&mut one.is_back);
        if is_back {
            // What was received before comes first.
            events.extend(mem::take(&mut one.events));
            events.push(EngineEvent::Reconnected);
        }
        let oldest = self.log.front().map_or(self.sequence, |event| event.sequence);
        if is_back || one.read + 1 < oldest {
            let entry_of = |(key, entry): (&String, &Entry)| LogEvent {
                sequence: entry.sequence,
                key: key.clone(),
                value: Some(entry.value.clone()),
            };
            let mut entries: Vec<LogEvent> = self.keys.iter().map(entry_of).collect();
            entries.sort_by_key(|entry| entry.sequence);
            events.push(EngineEvent::Snapshot { sequence: self.sequence, entries });
        } else {
            let new = self.log.iter().filter(|event| event.sequence > one.read);
            events.extend(new.cloned().map(EngineEvent::Log));
        }
        one.read = self.sequence;
        // What the log says comes first: a pack of a new member is from a member then.
        events.extend(mem::take(&mut one.events));
        events
    }
}

/// The connection of one node to a [`MemoryServer`].
pub(crate) struct MemoryEngine {
    server: MemoryServer,
    connection: u64,
}

impl MemoryEngine {
    /// Changes the state as this node, unless its connection was cut.
    fn change(&self, change: impl FnOnce(&mut ServerState)) {
        self.server.change(|state| {
            if state.connections.get(&self.connection).is_some_and(|one| !one.is_cut) {
                change(state);
            }
        });
    }

    /// As [`change`](Self::change), unless the node does not reach the server.
    fn send(&self, change: impl FnOnce(&mut ServerState)) {
        self.change(|state| {
            if state.connections.get(&self.connection).is_some_and(|one| !one.is_offline) {
                change(state);
            }
        });
    }
}

impl Engine for MemoryEngine {
    fn subscribe(&mut self, incarnation: u64) {
        self.change(|state| {
            if let Some(one) = state.connections.get_mut(&self.connection) {
                one.incarnation = incarnation;
                one.events.clear();
            }
        });
    }

    fn publish(&mut self, to: u64, pack: Vec<u8>) {
        self.send(|state| state.publish(self.connection, to, pack));
    }

    fn write(&mut self, now: Moment, write: LogWrite) {
        self.send(|state| {
            state.advance(now);
            state.write(write);
        });
    }

    fn poll(&mut self, now: Moment) -> Vec<EngineEvent> {
        self.change(|state| state.advance(now));
        self.server.0.with(|state| state.poll(self.connection))
    }
}

impl Drop for MemoryEngine {
    fn drop(&mut self) {
        let removed = self.server.0.with(|state| state.connections.remove(&self.connection));
        drop(removed);
    }
}
