//! The oracle of the actors workload: derives the expected state from sends, timers, watches and
//! stops, and checks the invariants.

use core::fmt;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_actor::{ActorRef, Cancellable, Pid};

use super::{
    node::Msg,
    plan::{BACKOFF_MIN, NodePlan, UserLoad, backs_off, has_no_strategy, restarts_groups},
};
use crate::{
    context::{SimContext, lock},
    invariant::Invariant,
};

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Sent, and not yet handled.
    Sent,
    Handled,
    /// The sender got the message back, or the job was cancelled.
    Returned,
    /// Dropped by the system: a dead letter, lost, or, if no actor was left, possibly a message
    /// whose job the shutdown cancelled.
    Dropped {
        was_last_actor_gone: bool,
    },
}

/// How a timer repeats, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Single,
    Rate(u64),
    Delay(u64),
}

/// A pending timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) id: u64,
    pub(super) due: u64,
    pub(super) repeat: Repeat,
}

/// The lifecycle state of an actor value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    Born,
    Started,
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) index: usize,
    pub(super) lifecycle: Lifecycle,
    pub(super) pid: Pid,
}

/// The restart history of an actor with a restart limit, computed from the definition of the time
/// window.
///
/// A failure counts at the time of the supervision decision. For a restart, that is when the old
/// value gets its signal. For a stop, it is some time between the failure and the last signal, so
/// the oracle accepts a stop that is correct for the earliest of these times.
#[derive(Clone, Debug, Default)]
pub(super) struct RestartHistory {
    /// The actor: a later actor with the same name has its own history.
    pub(super) pid: Option<Pid>,
    /// When restarts were granted.
    granted: Vec<u64>,
    /// When the actor failed, if no decision has followed yet.
    pub(super) failed: Option<u64>,
    /// Whether the workload stopped the actor: then any last event is acceptable.
    pub(super) is_exempt: bool,
}

impl RestartHistory {
    pub(super) fn of(pid: Pid) -> Self {
        Self { pid: Some(pid), ..Self::default() }
    }

    /// Counts a failure that is decided at this time. Returns whether a restart is allowed.
    fn grants(&mut self, now: u64, (restarts, within): (u64, u64)) -> bool {
        let in_window = self.granted.iter().filter(|granted| now - **granted < within).count();
        let is_granted = (in_window as u64) < restarts;
        if is_granted {
            self.granted.push(now);
        }
        is_granted
    }

    /// The value stops or restarts. Returns whether that is correct.
    fn ends(&mut self, now: u64, limit: (u64, u64), is_restart: bool) -> bool {
        match (self.failed.take(), is_restart) {
            _ if self.is_exempt => true,
            (Some(_), true) => self.grants(now, limit),
            (Some(failed), false) => !self.grants(failed, limit),
            // A restart requires a failure; a stop can have other reasons.
            (None, is_restart) => !is_restart,
        }
    }
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) fates: Vec<Fate>,
    pub(super) n_dropped: u64,
    /// The last sequence number that was sent, and that arrived, per sender, receiver and message
    /// kind.
    pub(super) sent: BTreeMap<(u64, usize, u8), u64>,
    came: BTreeMap<(u64, usize, u8), u64>,
    /// User messages that have not reached their handler: the receiver, the id, and when the
    /// message was sent.
    waiting: BTreeMap<(usize, usize), u64>,
    pub(super) values: BTreeMap<u64, Value>,
    pub(super) n_values: u64,
    /// Values with a running handler.
    busy: BTreeSet<u64>,
    pub(super) restart_histories: BTreeMap<usize, RestartHistory>,
    /// The order in which the actors were spawned.
    spawned: BTreeMap<Pid, u64>,
    /// Actors that received `PostStop`, in order.
    pub(super) stopped: Vec<(usize, Pid)>,
    pub(super) timers: BTreeMap<(u64, u64), Armed>,
    pub(super) n_timers: u64,
    /// Watches that were neither answered nor removed: watcher and target.
    pub(super) watches: BTreeSet<(Pid, Pid)>,
    pub(super) known: BTreeMap<Pid, ActorRef<Msg>>,
    pub(super) jobs: Vec<(Cancellable, usize)>,
    /// Actors whose value has ended for a restart, and that have not started since: the index, and
    /// when the value ended.
    restarting: BTreeMap<Pid, (usize, u64)>,
    /// When the receive timeouts of values are due.
    pub(super) receive_timeouts: BTreeMap<u64, u64>,
    /// Whether a user has closed the scheduler: then all timers of actors are cancelled.
    pub(super) is_scheduler_closed: bool,
}

impl Oracle {
    /// Records that an actor was spawned after all others.
    pub(super) fn is_spawned(&mut self, pid: Pid) {
        let place = self.spawned.len() as u64;
        self.spawned.entry(pid).or_insert(place);
    }

    /// The position among all spawned actors.
    pub(super) fn order_of(&self, pid: Pid) -> Option<u64> {
        self.spawned.get(&pid).copied()
    }

    /// The workload stops an actor: its last event is not checked.
    pub(super) fn exempt(&mut self, index: usize) {
        if let Some(history) = self.restart_histories.get_mut(&index) {
            history.is_exempt = true;
        }
    }
}

/// The state that all actors of a run share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) sim: SimContext,
    pub(super) plans: Arc<Vec<NodePlan>>,
    pub(super) crowd: Option<UserLoad>,
    oracle: Arc<Mutex<Oracle>>,
}

impl Shared {
    pub(super) fn new(sim: &SimContext, plans: Vec<NodePlan>) -> Self {
        let crowd = UserLoad::draw(sim);
        Self { sim: sim.clone(), plans: Arc::new(plans), crowd, oracle: Arc::default() }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    pub(super) fn now(&self) -> u64 {
        self.sim.now()
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// Creates a message from a sender to an actor, with the next sequence number.
    pub(super) fn message(&self, from: u64, to: usize, lane: u8) -> TrackedMessage {
        let mut oracle = self.oracle();
        let seq = oracle.sent.entry((from, to, lane)).or_default();
        *seq += 1;
        let seq = *seq;
        oracle.fates.push(Fate::Sent);
        let id = oracle.fates.len() - 1;
        if lane == 0 {
            oracle.waiting.insert((to, id), self.now());
        }
        drop(oracle);
        TrackedMessage { shared: self.clone(), id, from, to, lane, seq, not_before: 0 }
    }

    /// A message reaches its handler for the first time: checks the order.
    pub(super) fn arrives(&self, message: &TrackedMessage) {
        let TrackedMessage { from, to, lane, seq, not_before, id, .. } = *message;
        let now = self.now();
        self.oracle().waiting.remove(&(to, id));
        self.check(Invariant::T1, now >= not_before, || {
            format!("a message for {not_before} arrives at {now}")
        });
        let before = self.oracle().came.insert((from, to, lane), seq).unwrap_or(0);
        self.check(Invariant::A2, before < seq, || {
            format!("{seq} arrives after {before}, both from {from} to {to}, kind {lane}")
        });
    }

    /// A message is handled.
    pub(super) fn handled(&self, message: &TrackedMessage) {
        let id = message.id;
        let fate = core::mem::replace(&mut self.oracle().fates[id], Fate::Handled);
        self.check(Invariant::A7, fate == Fate::Sent, || {
            format!("message {id} is delivered again: {fate:?}")
        });
        self.check(Invariant::T3, fate != Fate::Returned, || format!("message {id} was cancelled"));
    }

    /// The system has shut down, and the job of this message is cancelled, although the workload
    /// did not cancel the job.
    ///
    /// The shutdown closes the scheduler, which cancels the jobs that have not sent their message.
    /// Such a message was never sent: it is no dead letter, and its handle reports the cancel. The
    /// handle alone proves nothing about a message that was in a mailbox, so the message must also
    /// have been dropped when no actor was left: the scheduler closes after the last actor.
    pub(super) fn is_cancelled_by_shutdown(&self, id: usize) {
        let mut oracle = self.oracle();
        let fate = oracle.fates[id];
        let is_fine = fate == Fate::Dropped { was_last_actor_gone: true };
        if is_fine {
            oracle.fates[id] = Fate::Returned;
            oracle.n_dropped -= 1;
        }
        drop(oracle);
        self.check(Invariant::A3, is_fine, || {
            format!("message {id}, whose job was cancelled by the shutdown, is {fate:?}")
        });
    }

    /// A handler starts. Checks that its value is started and has no other running handler.
    pub(super) fn enters(&self, value: u64) {
        let mut oracle = self.oracle();
        let (lifecycle, is_free) =
            (oracle.values.get(&value).map(|value| value.lifecycle), oracle.busy.insert(value));
        drop(oracle);
        self.check(Invariant::A1, is_free, || format!("value {value} is in two handlers"));
        self.check(Invariant::A8, lifecycle == Some(Lifecycle::Started), || {
            format!("a handler of value {value}, which is {lifecycle:?}")
        });
    }

    /// A handler finishes, possibly with a panic.
    pub(super) fn leaves(&self, value: u64, ring: Option<u64>) {
        let now = self.now();
        let mut oracle = self.oracle();
        oracle.busy.remove(&value);
        self.restart_receive_timeout(&mut oracle, value);
        // A fixed delay counts from here.
        if let Some(key) = ring
            && let Some(armed) = oracle.timers.get_mut(&(value, key))
            && let Repeat::Delay(delay) = armed.repeat
        {
            armed.due = now + delay;
        }
    }

    /// The receive timeout of an actor of the plan in ticks, if it has one.
    pub(super) fn receive_timeout_of(&self, index: usize) -> Option<u64> {
        let is_counted = self.plans[index].limit.is_some();
        self.crowd.filter(|_| is_counted).map(|crowd| crowd.receive_timeout)
    }

    /// A handler of this value has returned: its receive timeout starts again.
    fn restart_receive_timeout(&self, oracle: &mut Oracle, value: u64) {
        let Some(index) = oracle.values.get(&value).map(|value| value.index) else { return };
        if let Some(ticks) = self.receive_timeout_of(index) {
            oracle.receive_timeouts.insert(value, self.now() + ticks);
        }
    }

    /// The value has started, or has handled a signal.
    pub(super) fn signal_handled(&self, value: u64) {
        self.restart_receive_timeout(&mut self.oracle(), value);
    }

    /// No message has arrived for the time of the receive timeout.
    pub(super) fn receive_timeout_fires(&self, value: u64) {
        let now = self.now();
        let due = self.oracle().receive_timeouts.get(&value).copied();
        self.check(Invariant::T1, due.is_some_and(|due| now >= due), || {
            format!("the receive timeout of value {value}, due at {due:?}, fires at {now}")
        });
        if let Some(due) = due {
            self.check_overtaking(value, due, "the receive timeout");
        }
    }

    /// A user has closed the scheduler of an idle system: it has cancelled the timers of all
    /// actors, and the messages that were not sent. What the system itself waits for continues.
    pub(super) fn scheduler_closed(&self) {
        let mut oracle = self.oracle();
        oracle.is_scheduler_closed = true;
        oracle.timers.clear();
        let jobs = core::mem::take(&mut oracle.jobs);
        for (job, id) in &jobs {
            if job.is_cancelled() && matches!(oracle.fates[*id], Fate::Dropped { .. }) {
                oracle.fates[*id] = Fate::Returned;
                oracle.n_dropped -= 1;
            }
        }
        drop(oracle);
    }

    /// A timer event is handled.
    pub(super) fn timer_fires(&self, value: u64, key: u64, id: u64, runs: u64) {
        let now = self.now();
        let due = self.oracle().timers.get(&(value, key)).map(|armed| armed.due);
        if let Some(due) = due {
            self.check_overtaking(value, due, format_args!("timer {key}"));
        }
        let mut oracle = self.oracle();
        let armed = oracle.timers.get(&(value, key)).copied().filter(|armed| armed.id == id);
        let Some(armed) = armed else {
            drop(oracle);
            return self.check(Invariant::T3, false, || {
                format!(
                    "timer {id} of value {value} was cancelled, replaced, or its value has ended"
                )
            });
        };
        let Armed { due, repeat, .. } = armed;
        let mut last = due;
        match repeat {
            Repeat::Single => _ = oracle.timers.remove(&(value, key)),
            Repeat::Rate(period) => {
                last = due + (runs - 1) * period;
                let next = Armed { due: last + period, ..armed };
                oracle.timers.insert((value, key), next);
            }
            // Nothing is due before the handler finishes.
            Repeat::Delay(_) => {
                oracle.timers.insert((value, key), Armed { due: u64::MAX, ..armed });
            }
        }
        drop(oracle);
        let invariant = if repeat == Repeat::Single { Invariant::T1 } else { Invariant::T4 };
        self.check(invariant, now >= last && last != u64::MAX, || {
            format!("timer {id} fires at {now} {runs} times, due at {due}: {repeat:?}")
        });
    }

    /// What fires at `due` or later comes after the messages that were sent before. Scheduled
    /// messages count from when they are sent, which the oracle does not know.
    fn check_overtaking(&self, value: u64, due: u64, what: impl fmt::Display) {
        let oracle = self.oracle();
        let Some(index) = oracle.values.get(&value).map(|value| value.index) else { return };
        let oldest = oracle.waiting.range((index, 0)..(index + 1, 0)).next();
        let oldest = oldest.map(|((_, id), sent)| (*id, *sent));
        drop(oracle);
        self.check(Invariant::A13, oldest.is_none_or(|(_, sent)| sent >= due), || {
            format!("{what} of actor {index}, due at {due}, overtakes {oldest:?}")
        });
    }

    /// The system is idle: no timer of a live value may be overdue, and every watch must be
    /// answered.
    pub(super) fn check_idle_state(&self) {
        let now = self.now();
        let oracle = self.oracle();
        for ((value, key), armed) in &oracle.timers {
            let is_there =
                oracle.values.get(value).is_some_and(|value| value.lifecycle == Lifecycle::Started);
            let is_due = armed.due <= now;
            self.check(Invariant::T2, !(is_there && is_due), || {
                format!("timer {key} of value {value} was due at {}", armed.due)
            });
        }
        for (value, due) in &oracle.receive_timeouts {
            let is_there =
                oracle.values.get(value).is_some_and(|value| value.lifecycle == Lifecycle::Started);
            self.check(Invariant::T2, !is_there || *due > now, || {
                format!("the receive timeout of value {value} was due at {due}")
            });
        }
        let is_started = |value: &&Value| value.lifecycle == Lifecycle::Started;
        let started: BTreeSet<Pid> =
            oracle.values.values().filter(is_started).map(|value| value.pid).collect();
        for (watcher, target) in &oracle.watches {
            let is_stopped = |pid| oracle.known.get(pid).is_none_or(ActorRef::is_stopped);
            // An actor that waits for its restart gets the notification after the restart.
            let is_due = started.contains(watcher) && is_stopped(target);
            self.check(Invariant::A6, !is_due, || {
                format!("{watcher:?} was not notified of {target:?}")
            });
        }
        for (index, history) in &oracle.restart_histories {
            let is_fine = history.failed.is_none() || history.is_exempt;
            self.check(Invariant::A5, is_fine, || {
                format!("actor {index} has no decision after its failure")
            });
        }
    }

    /// A watcher is notified that its target has stopped.
    pub(super) fn notified(&self, watcher: Pid, target: Pid) {
        let is_watched = self.oracle().watches.remove(&(watcher, target));
        self.check(Invariant::A6, is_watched, || {
            format!("a second or unexpected notification for {target:?}")
        });
    }

    /// An actor attempts to start: within a group, all that are older have started.
    pub(super) fn begins(&self, pid: Pid, index: usize) {
        let now = self.now();
        let oracle = self.oracle();
        let Some((_, ended)) = oracle.restarting.get(&pid).copied() else { return };
        if backs_off(&self.plans[index]) {
            self.check(Invariant::A12, now >= ended + BACKOFF_MIN, || {
                format!("actor {index} ended at {ended} and restarts at {now}, without a backoff")
            });
        }
        if !self.is_in_group(index) {
            return;
        }
        let order = oracle.order_of(pid);
        let is_older = |other: &Pid| oracle.order_of(*other) < order;
        let is_stopped = |pid: &Pid| oracle.known.get(pid).is_none_or(ActorRef::is_stopped);
        let late = oracle.restarting.iter().find(|(other, (at, _))| {
            self.are_siblings(index, *at) && is_older(other) && !is_stopped(other)
        });
        let late = late.map(|(_, (at, _))| *at);
        drop(oracle);
        self.check(Invariant::A11, late.is_none(), || {
            format!("actor {index} starts before its older sibling {late:?}")
        });
    }

    /// An actor has started.
    pub(super) fn has_started(&self, pid: Pid) {
        self.oracle().restarting.remove(&pid);
    }

    /// A value ends for a restart: within a group, all that are younger have ended.
    fn restarts(&self, pid: Pid, index: usize) {
        let mut oracle = self.oracle();
        oracle.restarting.insert(pid, (index, self.now()));
        if !self.is_in_group(index) {
            return;
        }
        let order = oracle.order_of(pid);
        let early = oracle.values.values().find(|other| {
            other.lifecycle == Lifecycle::Started
                && self.are_siblings(index, other.index)
                && oracle.order_of(other.pid) > order
        });
        let early = early.map(|other| other.index);
        drop(oracle);
        self.check(Invariant::A11, early.is_none(), || {
            format!("actor {index} ends before its younger sibling {early:?}")
        });
    }

    /// Nothing fails any more, and all delays have passed: nobody waits for a restart.
    pub(super) fn check_restarts(&self) {
        let oracle = self.oracle();
        let is_stopped = |pid: &Pid| oracle.known.get(pid).is_none_or(ActorRef::is_stopped);
        let mut restarting = oracle.restarting.iter();
        let left = restarting.find(|(pid, _)| !is_stopped(pid)).map(|(_, (at, _))| *at);
        drop(oracle);
        self.check(Invariant::A12, left.is_none(), || format!("actor {left:?} has not restarted"));
    }

    fn is_in_group(&self, index: usize) -> bool {
        let above = self.plans[index].above;
        has_no_strategy(&self.plans[index])
            && above.is_some_and(|above| restarts_groups(&self.plans, above))
    }

    /// Whether both have one parent, and restart by its decisions only.
    fn are_siblings(&self, one: usize, other: usize) -> bool {
        one != other && self.plans[one].above == self.plans[other].above && self.is_in_group(other)
    }

    /// A value ends by a restart or a stop.
    pub(super) fn ends(&self, value: u64, index: usize, is_restart: bool) {
        let mut oracle = self.oracle();
        let pid = oracle.values.get_mut(&value).map(|value| {
            value.lifecycle = Lifecycle::Ended;
            value.pid
        });
        oracle.timers.retain(|(owner, _), _| *owner != value);
        oracle.receive_timeouts.remove(&value);
        match pid {
            Some(pid) if is_restart => {
                drop(oracle);
                self.restarts(pid, index);
                oracle = self.oracle();
            }
            Some(pid) => oracle.stopped.push((index, pid)),
            None => {}
        }
        let (now, limit) = (self.now(), self.plans[index].limit);
        let (Some(history), Some(limit)) = (oracle.restart_histories.get_mut(&index), limit) else {
            return;
        };
        let before = history.clone();
        let is_fine = history.ends(now, limit, is_restart);
        drop(oracle);
        self.check(Invariant::A5, is_fine, || {
            let what = if is_restart { "restarts" } else { "stops" };
            format!("actor {index} {what} with a limit of {limit:?}: {before:?}")
        });
    }
}

/// A message with its sequence number. The oracle learns its fate on drop.
pub(super) struct TrackedMessage {
    shared: Shared,
    pub(super) id: usize,
    pub(super) from: u64,
    pub(super) to: usize,
    pub(super) lane: u8,
    pub(super) seq: u64,
    /// The earliest time at which the message may arrive.
    not_before: u64,
}

impl TrackedMessage {
    /// The sender got the message back.
    pub(super) fn returned(&self) {
        self.shared.oracle().fates[self.id] = Fate::Returned;
    }

    /// The scheduler sends the message, some time after `ticks`.
    pub(super) fn is_scheduled(&mut self, ticks: u64) {
        self.not_before = self.shared.now() + ticks;
        self.shared.oracle().waiting.remove(&(self.to, self.id));
    }
}

impl Drop for TrackedMessage {
    fn drop(&mut self) {
        let mut oracle = self.shared.oracle();
        oracle.waiting.remove(&(self.to, self.id));
        let was_last_actor_gone = oracle.values.is_empty();
        let fate = &mut oracle.fates[self.id];
        if *fate == Fate::Sent {
            *fate = Fate::Dropped { was_last_actor_gone };
            oracle.n_dropped += 1;
        }
    }
}
