//! Membership: the lease of this node, and the eviction of others. A state machine without I/O.
//!
//! ```text
//!          reads its own key              reads the end of its own key
//! Joining ───────────────────► Member ─────────────────────────────────► Joining, as another
//!    └──────────── leave ─────────┴── leave ──► Left                       incarnation
//! ```
//!
//! 1. A node draws an incarnation and creates its key, with a time to live. It is a member when it
//!    *reads* the key in the log, with its own name. If another node has the key, it draws again.
//! 2. A member renews its key by a write that names the sequence number of the last entry that it
//!    has read. So a key that has ended is never revived.
//! 3. An acknowledgement proves nothing, and is not even read: a node trusts only what it reads of
//!    its own key. When it reads the end, it draws another incarnation and begins again.
//! 4. An attempt to join that was not read is repeated as another incarnation: the log may have had
//!    the key, and ended it. The key of the attempt is removed, in case that it is there.
//! 5. A member whose subject had no subscriber for a while is removed by the member that notices,
//!    with the same condition as in rule 2: a renewal in between wins. The silence after an outage
//!    of the server proves nothing: the others may not have connected again yet.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use clockjack_sync::splitmix::{SplitMix, mix};

use crate::{
    NetConfig,
    engine::{EngineEvent, Expected, LogWrite, Moment},
    log::{Change, LogView, live_key, member_value},
    node::NodeId,
};

/// The longest time between two failed attempts to reach a member that still count as one silence.
const SILENCE_GAP: Duration = Duration::from_millis(1_500);

/// How many attempts to join a node makes within the time of a lease.
const JOINS_PER_LEASE: u32 = 3;

/// What this node learned about its own membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnChange {
    Joined,
    /// Another node has this incarnation; the node joins as another one.
    Taken,
    /// This incarnation has ended; the node joins as another one.
    Lost(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Joining,
    Member,
    Left,
}

/// See the [module](self).
pub(crate) struct Membership {
    config: NetConfig,
    random: SplitMix,
    me: u64,
    state: State,
    /// When the key was last created or renewed.
    written: Moment,
    /// The last entry of the key that was read, and when.
    read: (Option<u64>, Moment),
    /// Members whose subject has no subscriber: since when, and until when.
    silent: BTreeMap<u64, (Moment, Moment)>,
    /// Silence counts from then on.
    silence_from: Moment,
    pub(crate) view: LogView,
}

impl Membership {
    /// The membership of a node that has not joined. The engine says which `join` this is, from
    /// one: equal seeds, such as the default ones, then draw different incarnations, and a node
    /// that leaves and joins does not draw its old one.
    pub(crate) fn new(config: NetConfig, join: u64) -> Self {
        // The seed is mixed first: otherwise seeds that differ by one would meet at another join.
        let mut random = SplitMix::new(mix(config.seed).wrapping_add(join));
        let me = draw(&mut random);
        Self {
            config,
            random,
            me,
            state: State::Joining,
            written: Moment::default(),
            read: (None, Moment::default()),
            silent: BTreeMap::new(),
            silence_from: Moment::default(),
            view: LogView::default(),
        }
    }

    pub(crate) fn me(&self) -> NodeId {
        NodeId::new(&self.config.name, self.me)
    }

    pub(crate) fn is_member(&self) -> bool {
        self.state == State::Member
    }

    /// How long ago the last renewal of the lease was read; zero for a node that is no member.
    pub(crate) fn lease_age(&self, now: Moment) -> Duration {
        if self.is_member() { now.since(self.read.1) } else { Duration::ZERO }
    }

    /// Creates the key of this incarnation.
    pub(crate) fn join(&mut self, now: Moment, writes: &mut Vec<LogWrite>) {
        self.written = now;
        writes.push(self.own_key(Expected::Absent));
    }

    fn own_key(&self, expected: Expected) -> LogWrite {
        let since = self.view.member(self.me).map_or(0, |member| member.since);
        let value = member_value(&self.config.name, &self.config.roles, since);
        assert!(value.is_some(), "a node whose roles are too long does not join");
        LogWrite { key: live_key(self.me), value, expected, ttl: Some(self.config.lease) }
    }

    /// Applies what was read from the log.
    pub(crate) fn read(
        &mut self,
        now: Moment,
        event: &EngineEvent,
        changes: &mut Vec<Change>,
        writes: &mut Vec<LogWrite>,
    ) -> Option<OwnChange> {
        match event {
            EngineEvent::Log(event) => self.view.apply(event, changes),
            EngineEvent::Snapshot { sequence, entries } => {
                self.view.apply_snapshot(*sequence, entries, changes);
            }
            EngineEvent::LogReplaced => self.view.reset(changes),
            _ => return None,
        }
        let renewed = self.view.renewed(self.me);
        if self.read.0 != renewed {
            self.read = (renewed, now);
        }
        let own = self.view.member(self.me);
        let is_taken = own.is_some_and(|member| member.node.name() != self.config.name);
        let is_alive = own.is_some();
        match self.state {
            State::Joining if is_taken => {
                self.me = draw(&mut self.random);
                self.join(now, writes);
                Some(OwnChange::Taken)
            }
            State::Joining if is_alive => {
                self.state = State::Member;
                Some(OwnChange::Joined)
            }
            State::Member if !is_alive => {
                let lost = self.me();
                self.me = draw(&mut self.random);
                self.state = State::Joining;
                self.join(now, writes);
                Some(OwnChange::Lost(lost))
            }
            _ => None,
        }
    }

    /// A pack found no subscriber.
    pub(crate) fn no_responders(&mut self, now: Moment, incarnation: u64) {
        if self.view.member(incarnation).is_none() || now < self.silence_from {
            return;
        }
        let silence = self.silent.entry(incarnation).or_insert((now, now));
        if now.since(silence.1) > SILENCE_GAP {
            silence.0 = now;
        }
        silence.1 = now;
    }

    /// The server is reached again. The others have as long to reach it as one that has no
    /// subscriber has to return.
    pub(crate) fn reconnected(&mut self, now: Moment) {
        self.silent.clear();
        self.silence_from = now.after(self.config.evict_after);
    }

    /// A pack of a member has arrived.
    pub(crate) fn heard(&mut self, incarnation: u64) {
        self.silent.remove(&incarnation);
    }

    /// Renews the lease, and removes members that have been silent for too long. Returns whether
    /// the node joins as another incarnation from now on.
    pub(crate) fn tick(&mut self, now: Moment, writes: &mut Vec<LogWrite>) -> bool {
        let elapsed = now.since(self.written);
        let is_late =
            self.state == State::Joining && elapsed >= self.config.lease / JOINS_PER_LEASE;
        if is_late {
            writes.push(self.own_end());
            self.me = draw(&mut self.random);
            self.join(now, writes);
        } else if elapsed >= self.config.renew_every
            && self.state == State::Member
            && let Some(sequence) = self.view.renewed(self.me)
        {
            self.written = now;
            writes.push(self.own_key(Expected::Sequence(sequence)));
        }
        self.evict(now, writes);
        is_late
    }

    fn evict(&mut self, now: Moment, writes: &mut Vec<LogWrite>) {
        let (view, config) = (&self.view, &self.config);
        self.silent.retain(|incarnation, (first, last)| {
            let Some(sequence) = view.renewed(*incarnation) else { return false };
            if last.since(*first) < config.evict_after {
                return now.since(*last) <= SILENCE_GAP;
            }
            writes.push(LogWrite {
                key: live_key(*incarnation),
                value: None,
                expected: Expected::Sequence(sequence),
                ttl: None,
            });
            false
        });
    }

    /// Ends this membership.
    pub(crate) fn leave(&mut self, writes: &mut Vec<LogWrite>) {
        if self.state != State::Left {
            self.state = State::Left;
            writes.push(self.own_end());
        }
    }

    fn own_end(&self) -> LogWrite {
        LogWrite { key: live_key(self.me), value: None, expected: Expected::Any, ttl: None }
    }
}

/// An incarnation; zero is none.
fn draw(random: &mut SplitMix) -> u64 {
    random.next_u64().max(1)
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec};

    use super::*;
    use crate::log::LogEvent;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Moment {
        Moment::default().after(seconds * SECOND)
    }

    fn log(sequence: u64, key: String, value: Option<Vec<u8>>) -> EngineEvent {
        EngineEvent::Log(LogEvent { sequence, key, value })
    }

    /// A member, its key at sequence number 1.
    fn member() -> Membership {
        let mut membership = Membership::new(NetConfig::new("a"), 1);
        let mut writes = vec![];
        membership.join(at(0), &mut writes);
        let write = writes.pop().expect("it creates its key");
        assert_eq!((write.expected, write.ttl), (Expected::Absent, Some(15 * SECOND)));
        assert!(!membership.is_member(), "it has not read its key");
        let event = log(1, write.key, write.value);
        let own = membership.read(at(0), &event, &mut vec![], &mut vec![]);
        assert_eq!(own, Some(OwnChange::Joined));
        membership
    }

    #[test]
    fn an_incarnation_that_another_node_has_is_drawn_again() {
        let mut membership = Membership::new(NetConfig::new("a"), 1);
        let old = membership.me();
        let (mut writes, key) = (vec![], live_key(old.incarnation()));
        let taken = log(1, key, member_value("b", &[], 0));
        let own = membership.read(at(0), &taken, &mut vec![], &mut writes);
        assert_eq!(own, Some(OwnChange::Taken));
        assert!(!membership.is_member());
        let new = membership.me().incarnation();
        assert_ne!(new, old.incarnation());
        let write = writes.pop().expect("it creates its key");
        assert_eq!((&write.key, write.expected), (&live_key(new), Expected::Absent));
        let own = membership.read(at(0), &log(2, write.key, write.value), &mut vec![], &mut writes);
        assert_eq!(own, Some(OwnChange::Joined));
    }

    #[test]
    fn joins_with_near_seeds_draw_different_incarnations() {
        let draw = |seed, join| {
            let config = NetConfig { seed, ..NetConfig::new("a") };
            Membership::new(config, join).me().incarnation()
        };
        let mut all: Vec<u64> =
            (0..50).flat_map(|seed| (1..50).map(move |join| draw(seed, join))).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 50 * 49);
    }

    /// The log may have had the key and ended it, and the node may not have read either.
    #[test]
    fn an_attempt_to_join_that_was_not_read_is_repeated_as_another_incarnation() {
        let mut membership = Membership::new(NetConfig::new("a"), 1);
        let (mut writes, old) = (vec![], membership.me());
        membership.join(at(0), &mut writes);
        let first = writes.pop().expect("it creates its key");
        assert!(!membership.tick(at(4), &mut writes), "it is too early");
        assert_eq!(writes, []);
        assert!(membership.tick(at(5), &mut writes));
        assert_eq!((&writes[0].key, &writes[0].value), (&first.key, &None));
        let new = membership.me();
        assert_ne!(new, old);
        assert_eq!(
            (&writes[1].key, writes[1].expected),
            (&live_key(new.incarnation()), Expected::Absent)
        );
        // The first attempt is read late.
        let late = log(1, first.key, first.value);
        assert_eq!(membership.read(at(5), &late, &mut vec![], &mut vec![]), None);
        let entry = log(2, writes[1].key.clone(), writes[1].value.clone());
        let own = membership.read(at(5), &entry, &mut vec![], &mut vec![]);
        assert_eq!(own, Some(OwnChange::Joined));
        assert!(!membership.tick(at(60), &mut writes), "a member has joined");
    }

    #[test]
    fn a_lease_is_renewed_at_the_last_entry_that_was_read() {
        let mut membership = member();
        let mut writes = vec![];
        membership.tick(at(1), &mut writes);
        assert_eq!(writes, [], "it is too early");
        membership.tick(at(2), &mut writes);
        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0].expected, Expected::Sequence(1));
        let renewed = log(8, writes[0].key.clone(), writes[0].value.clone());
        assert_eq!(membership.read(at(2), &renewed, &mut vec![], &mut vec![]), None);
        writes.clear();
        membership.tick(at(4), &mut writes);
        assert_eq!(writes[0].expected, Expected::Sequence(8));
    }

    #[test]
    fn a_paused_node_cannot_renew() {
        let mut membership = member();
        let old = membership.me();
        let mut writes = vec![];
        // The renewal names an entry that is not the last one any more: the server refuses it.
        membership.tick(at(60), &mut writes);
        assert_eq!(writes[0].expected, Expected::Sequence(1));
        writes.clear();
        let end = log(2, live_key(old.incarnation()), None);
        let own = membership.read(at(60), &end, &mut vec![], &mut writes);
        assert_eq!(own, Some(OwnChange::Lost(old.clone())));
        assert_ne!(membership.me(), old);
        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0].key, live_key(membership.me().incarnation()));
        assert_eq!(writes[0].expected, Expected::Absent);
    }

    #[test]
    fn a_log_that_was_created_again_is_the_loss_of_every_member() {
        let mut membership = member();
        let old = membership.me();
        let other = log(2, live_key(77), member_value("b", &[], 0));
        membership.read(at(0), &other, &mut vec![], &mut vec![]);
        let (mut changes, mut writes) = (vec![], vec![]);
        let replaced = EngineEvent::LogReplaced;
        let own = membership.read(at(1), &replaced, &mut changes, &mut writes);
        assert_eq!(own, Some(OwnChange::Lost(old.clone())));
        assert_eq!(changes.len(), 2, "{changes:?}");
        // The new log has smaller numbers, and is read.
        let write = writes.pop().expect("it creates its key");
        let own =
            membership.read(at(1), &log(1, write.key, write.value), &mut changes, &mut writes);
        assert_eq!(own, Some(OwnChange::Joined));
        assert_ne!(membership.me(), old);
    }

    #[test]
    fn a_member_is_removed_after_three_seconds_without_a_subscriber() {
        let mut membership = member();
        let other = log(2, live_key(77), member_value("b", &[], 0));
        membership.read(at(0), &other, &mut vec![], &mut vec![]);
        let removals = |membership: &mut Membership, second: u32| {
            let mut writes = vec![];
            membership.tick(at(second), &mut writes);
            writes.retain(|write| write.key == live_key(77));
            writes
        };
        for second in 10..13 {
            membership.no_responders(at(second), 77);
            assert_eq!(removals(&mut membership, second), []);
        }
        // It answers: the silence begins again.
        membership.heard(77);
        for second in 13..16 {
            membership.no_responders(at(second), 77);
            assert_eq!(removals(&mut membership, second), []);
        }
        membership.no_responders(at(16), 77);
        let removal = removals(&mut membership, 16);
        assert_eq!(removal.len(), 1);
        assert_eq!((&removal[0].value, removal[0].expected), (&None, Expected::Sequence(2)));
        // Nor is that of others that may not have reached the server again.
        membership.reconnected(at(17));
        for second in 17..23 {
            membership.no_responders(at(second), 77);
            assert_eq!(removals(&mut membership, second), [], "second {second}");
        }
        membership.no_responders(at(23), 77);
        assert_eq!(removals(&mut membership, 23).len(), 1);
        // Two failures that are far apart are no silence.
        membership.no_responders(at(30), 77);
        membership.no_responders(at(60), 77);
        assert_eq!(removals(&mut membership, 60), []);
    }
}
