//! What is known of the actors by those who send, arm, watch and stop, and the invariants that follow.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};
use std::sync::{Mutex, MutexGuard};

use clockjack_actor::{ActorRef, Cancellable, Pid};

use super::{node::Msg, plan::NodePlan};
use crate::{
    context::{SimContext, open},
    invariant::Invariant,
};

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// On its way.
    Sent,
    Handled,
    /// It came back to its sender, or its job was cancelled.
    Returned,
    /// It was dropped by neither: a dead letter, or lost.
    Dropped,
}

/// How a timer repeats, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Single,
    Rate(u64),
    Delay(u64),
}

/// A timer that is armed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) id: u64,
    pub(super) due: u64,
    pub(super) beat: Beat,
}

/// Where a value of an actor is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Born,
    Started,
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) index: usize,
    pub(super) life: Life,
    pub(super) pid: Pid,
}

/// The failures of an actor with a limit of its own, counted by the invariant of the window.
///
/// A failure counts when it is decided description. Of a restart that is when the old value is told; of
/// an end it is some time between the failure and the last signal, so an end is right if it is
/// right by the earliest of these times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageRecord {
    /// Whose it is: another actor of the same name has another.
    pub(super) pid: Option<Pid>,
    opened: Option<u64>,
    count: u64,
    /// When it has failed, if nothing has followed from that yet.
    pub(super) failed: Option<u64>,
    /// It was stopped by somebody: then anything may be the last.
    pub(super) is_excused: bool,
}

impl MessageRecord {
    pub(super) fn of(pid: Pid) -> Self {
        Self { pid: Some(pid), ..Self::default() }
    }

    /// Counts a failure that is decided description at this time; whether a restart is granted.
    fn grants(&mut self, now: u64, (restarts, within): (u64, u64)) -> bool {
        match self.opened {
            Some(opened) if now - opened < within => self.count += 1,
            _ => (self.opened, self.count) = (Some(now), 1),
        }
        self.count <= restarts
    }

    /// The value ends; whether that is right.
    fn ends(&mut self, now: u64, limit: (u64, u64), is_restart: bool) -> bool {
        match (self.failed.take(), is_restart) {
            _ if self.is_excused => true,
            (Some(_), true) => self.grants(now, limit),
            (Some(failed), false) => !self.grants(failed, limit),
            // A restart follows a failure only; an end may have other reasons.
            (None, is_restart) => !is_restart,
        }
    }
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) fates: Vec<Fate>,
    pub(super) n_dropped: u64,
    /// The numbers of what was sent last and came last: sender, receiver, lane.
    pub(super) sent: BTreeMap<(u64, usize, u8), u64>,
    came: BTreeMap<(u64, usize, u8), u64>,
    pub(super) values: BTreeMap<u64, Value>,
    pub(super) n_values: u64,
    /// Values that are in a handler.
    busy: BTreeSet<u64>,
    pub(super) ledgers: BTreeMap<usize, MessageRecord>,
    /// In which order actors were spawned.
    spawned: BTreeMap<Pid, u64>,
    /// Who has ended by `PostStop`, in order.
    pub(super) stopped: Vec<(usize, Pid)>,
    pub(super) timers: BTreeMap<(u64, u64), Armed>,
    pub(super) n_timers: u64,
    /// Watches that were neither answered nor taken back: watcher, target.
    pub(super) watches: BTreeSet<(Pid, Pid)>,
    pub(super) known: BTreeMap<Pid, ActorRef<Msg>>,
    pub(super) jobs: Vec<(Cancellable, usize)>,
}

impl Oracle {
    /// An actor was spawned, behind all others.
    pub(super) fn is_spawned(&mut self, pid: Pid) {
        let place = self.spawned.len() as u64;
        self.spawned.entry(pid).or_insert(place);
    }

    /// Its place among all that were spawned.
    pub(super) fn order_of(&self, pid: Pid) -> Option<u64> {
        self.spawned.get(&pid).copied()
    }

    /// An actor is stopped from outside: what it does last is not held against it.
    pub(super) fn excuse(&mut self, index: usize) {
        if let Some(ledger) = self.ledgers.get_mut(&index) {
            ledger.is_excused = true;
        }
    }
}

/// What all actors of a run share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) sim: SimContext,
    pub(super) plans: Arc<Vec<NodePlan>>,
    oracle: Arc<Mutex<Oracle>>,
}

impl Shared {
    pub(super) fn new(sim: &SimContext, plans: Vec<NodePlan>) -> Self {
        Self { sim: sim.clone(), plans: Arc::new(plans), oracle: Arc::default() }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        open(&self.oracle)
    }

    pub(super) fn now(&self) -> u64 {
        self.sim.now()
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// A message from a sender to an actor; the number says which of those it is.
    pub(super) fn parcel(&self, from: u64, to: usize, lane: u8) -> ScheduledMessage {
        let mut oracle = self.oracle();
        let seq = oracle.sent.entry((from, to, lane)).or_default();
        *seq += 1;
        let seq = *seq;
        oracle.fates.push(Fate::Sent);
        let id = oracle.fates.len() - 1;
        drop(oracle);
        ScheduledMessage { shared: self.clone(), id, from, to, lane, seq, not_before: 0 }
    }

    /// A message reaches its handler for the first time: order.
    pub(super) fn arrives(&self, parcel: &ScheduledMessage) {
        let ScheduledMessage { from, to, lane, seq, not_before, .. } = *parcel;
        let now = self.now();
        self.check(Invariant::T1, now >= not_before, || {
            format!("a message for {not_before} comes at {now}")
        });
        let before = self.oracle().came.insert((from, to, lane), seq).unwrap_or(0);
        self.check(Invariant::A2, before < seq, || {
            format!("{seq} comes after {before}, both from {from} to {to} by lane {lane}")
        });
    }

    /// A message is handled.
    pub(super) fn handled(&self, parcel: &ScheduledMessage) {
        let id = parcel.id;
        let fate = core::mem::replace(&mut self.oracle().fates[id], Fate::Handled);
        self.check(Invariant::A7, fate == Fate::Sent, || {
            format!("message {id} comes again: {fate:?}")
        });
        self.check(Invariant::T3, fate != Fate::Returned, || format!("message {id} was cancelled"));
    }

    /// A handler begins. What it was called for must be known by its value's life.
    pub(super) fn enters(&self, value: u64) {
        let mut oracle = self.oracle();
        let (life, is_free) =
            (oracle.values.get(&value).map(|value| value.life), oracle.busy.insert(value));
        drop(oracle);
        self.check(Invariant::A1, is_free, || format!("value {value} is in two handlers"));
        self.check(Invariant::A8, life == Some(Life::Started), || {
            format!("a handler of value {value}, which is {life:?}")
        });
    }

    /// A handler ends: by a panic, too.
    pub(super) fn leaves(&self, value: u64, ring: Option<u64>) {
        let now = self.now();
        let mut oracle = self.oracle();
        oracle.busy.remove(&value);
        // A fixed delay counts from here.
        if let Some(key) = ring
            && let Some(armed) = oracle.timers.get_mut(&(value, key))
            && let Beat::Delay(delay) = armed.beat
        {
            armed.due = now + delay;
        }
    }

    /// A timer's message is handled.
    pub(super) fn rings(&self, value: u64, key: u64, id: u64, runs: u64) {
        let now = self.now();
        let mut oracle = self.oracle();
        let armed = oracle.timers.get(&(value, key)).copied().filter(|armed| armed.id == id);
        let Some(armed) = armed else {
            drop(oracle);
            return self.check(Invariant::T3, false, || {
                format!("timer {id} of value {value} was cancelled, replaced, or is gone")
            });
        };
        let Armed { due, beat, .. } = armed;
        let mut last = due;
        match beat {
            Beat::Single => _ = oracle.timers.remove(&(value, key)),
            Beat::Rate(period) => {
                last = due + (runs - 1) * period;
                let next = Armed { due: last + period, ..armed };
                oracle.timers.insert((value, key), next);
            }
            // Nothing is due before the handler ends.
            Beat::Delay(_) => {
                oracle.timers.insert((value, key), Armed { due: u64::MAX, ..armed });
            }
        }
        drop(oracle);
        let invariant = if beat == Beat::Single { Invariant::T1 } else { Invariant::T4 };
        self.check(invariant, now >= last && last != u64::MAX, || {
            format!("timer {id} rings at {now} {runs} times, due at {due}: {beat:?}")
        });
    }

    /// All is quiet: no timer of a living value is overdue, and every watch is answered.
    pub(super) fn check_quiet(&self) {
        let now = self.now();
        let oracle = self.oracle();
        for ((value, key), armed) in &oracle.timers {
            let is_there =
                oracle.values.get(value).is_some_and(|value| value.life == Life::Started);
            let is_due = armed.due <= now;
            self.check(Invariant::T2, !(is_there && is_due), || {
                format!("timer {key} of value {value} was due at {}", armed.due)
            });
        }
        let is_started = |value: &&Value| value.life == Life::Started;
        let started: BTreeSet<Pid> =
            oracle.values.values().filter(is_started).map(|value| value.pid).collect();
        for (watcher, target) in &oracle.watches {
            let is_stopped = |pid| oracle.known.get(pid).is_none_or(ActorRef::is_stopped);
            // One that waits to be made anew is told when it is.
            let is_due = started.contains(watcher) && is_stopped(target);
            self.check(Invariant::A6, !is_due, || {
                format!("{watcher:?} was not told of {target:?}")
            });
        }
        for (index, ledger) in &oracle.ledgers {
            let is_fine = ledger.failed.is_none() || ledger.is_excused;
            self.check(Invariant::A5, is_fine, || format!("actor {index} waits after its failure"));
        }
    }

    /// The end of a watched actor is told.
    pub(super) fn told(&self, watcher: Pid, target: Pid) {
        let is_watched = self.oracle().watches.remove(&(watcher, target));
        self.check(Invariant::A6, is_watched, || format!("a second or stray notice of {target:?}"));
    }

    /// A value ends by a restart or a stop.
    pub(super) fn ends(&self, value: u64, index: usize, is_restart: bool) {
        let mut oracle = self.oracle();
        let pid = oracle.values.get_mut(&value).map(|value| {
            value.life = Life::Ended;
            value.pid
        });
        if let (Some(pid), false) = (pid, is_restart) {
            oracle.stopped.push((index, pid));
        }
        oracle.timers.retain(|(owner, _), _| *owner != value);
        let (now, limit) = (self.now(), self.plans[index].limit);
        let (Some(ledger), Some(limit)) = (oracle.ledgers.get_mut(&index), limit) else { return };
        let before = *ledger;
        let is_fine = ledger.ends(now, limit, is_restart);
        drop(oracle);
        self.check(Invariant::A5, is_fine, || {
            let what = if is_restart { "restarts" } else { "stops" };
            format!("actor {index} {what} with a limit of {limit:?}: {before:?}")
        });
    }
}

/// A message's own number, with its way. However it ends, the oracle know.
pub(super) struct ScheduledMessage {
    shared: Shared,
    pub(super) id: usize,
    pub(super) from: u64,
    pub(super) to: usize,
    pub(super) lane: u8,
    pub(super) seq: u64,
    /// When it may come.
    pub(super) not_before: u64,
}

impl ScheduledMessage {
    /// It has come back.
    pub(super) fn returned(&self) {
        self.shared.oracle().fates[self.id] = Fate::Returned;
    }
}

impl Drop for ScheduledMessage {
    fn drop(&mut self) {
        let mut oracle = self.shared.oracle();
        let fate = &mut oracle.fates[self.id];
        if *fate == Fate::Sent {
            *fate = Fate::Dropped;
            oracle.n_dropped += 1;
        }
    }
}
