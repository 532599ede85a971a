//! The log: who is a member, and who offers a service, in one total order.
//!
//! Every node reads the same sequence of [`LogEvent`]s and applies it to a [`LogView`], which is a
//! pure function of the last value of each key: so it does not matter whether a node has read all
//! entries, or a snapshot. Two nodes that have read up to the same sequence number agree; one is
//! only later. The services of a member disappear with it, in the same step.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::fmt::Write as _;

use clockjack_wire::{Decoder, Encoder, Field};

use crate::node::{Member, Members, NodeId, is_node_name};

/// The most bytes of a value of the log.
pub const LOG_VALUE_MAX: usize = 4_096;

/// One entry of the log: a key has a new value, or none any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The position in the log.
    pub sequence: u64,
    /// The key.
    pub key: String,
    /// The value; `None` if the key was deleted or has expired.
    pub value: Option<Vec<u8>>,
}

/// What an entry of the log says: [`LogEvent::entry`]. For tools that show the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEntry {
    /// A node has joined, if it is a member since this entry; otherwise it has renewed its lease.
    Member(Member),
    /// The membership of this incarnation has ended.
    MemberEnded(u64),
    /// An incarnation offers a service.
    Service {
        /// The key.
        key: String,
        /// The incarnation.
        incarnation: u64,
    },
    /// An incarnation does not offer a service any more.
    ServiceEnded {
        /// The key.
        key: String,
        /// The incarnation.
        incarnation: u64,
    },
}

impl LogEvent {
    /// What the entry says; `None` if no node has written it.
    #[must_use]
    pub fn entry(&self) -> Option<LogEntry> {
        Some(match (parse_key(&self.key)?, &self.value) {
            (LogKey::Live(incarnation), Some(value)) => {
                LogEntry::Member(read_member(incarnation, self.sequence, value)?)
            }
            (LogKey::Live(incarnation), None) => LogEntry::MemberEnded(incarnation),
            (LogKey::Service(Service { key, incarnation, .. }), Some(_)) => {
                LogEntry::Service { key, incarnation }
            }
            (LogKey::Service(Service { key, incarnation, .. }), None) => {
                LogEntry::ServiceEnded { key, incarnation }
            }
        })
    }
}

/// A service that a member offers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Service {
    pub(crate) key: String,
    pub(crate) type_hash: u64,
    pub(crate) incarnation: u64,
    pub(crate) export: u64,
}

/// What an entry of the log changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    MemberUp(Member),
    MemberDown(Member),
    ServiceUp(Service),
    ServiceDown(Service),
}

enum LogKey {
    Live(u64),
    Service(Service),
}

pub(crate) fn live_key(incarnation: u64) -> String {
    format!("live.{incarnation:016x}")
}

pub(crate) fn service_key(service: &Service) -> String {
    let Service { key, type_hash, incarnation, export } = service;
    let mut text = String::from("reg.");
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(text, "%{byte:02x}");
        }
    }
    let _ = write!(text, ".{type_hash:016x}.{incarnation:016x}.{export}");
    text
}

/// Reads a key in the form in which it is written. Other spellings of the same numbers are not
/// ours: with two keys for one member, a reader of entries and one of a snapshot would disagree.
fn parse_key(key: &str) -> Option<LogKey> {
    parse_any_spelling(key).filter(|parsed| match parsed {
        LogKey::Live(incarnation) => live_key(*incarnation) == key,
        LogKey::Service(service) => service_key(service) == key,
    })
}

fn parse_any_spelling(key: &str) -> Option<LogKey> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (kind, rest) = key.split_once('.')?;
    if kind == "live" {
        return hex(rest).map(LogKey::Live);
    }
    let parts: Vec<&str> = rest.split('.').collect();
    let ("reg", &[name, type_hash, incarnation, export]) = (kind, parts.as_slice()) else {
        return None;
    };
    Some(LogKey::Service(Service {
        key: unescape(name)?,
        type_hash: hex(type_hash)?,
        incarnation: hex(incarnation)?,
        export: export.parse().ok()?,
    }))
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (code, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// The value of a member's key. A renewal says since when the node is a member, for readers that
/// have not read the first entry of the key; that entry says zero. None if the value has more than
/// [`LOG_VALUE_MAX`] bytes: a node whose largest value has more does not join.
pub(crate) fn member_value(name: &str, roles: &[String], since: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let value = (name.to_string(), roles.to_vec(), since);
    let written = value.write(&mut Encoder::new(&mut bytes, LOG_VALUE_MAX));
    written.is_ok().then_some(bytes)
}

fn read_member(incarnation: u64, sequence: u64, value: &[u8]) -> Option<Member> {
    if value.len() > LOG_VALUE_MAX {
        return None;
    }
    let mut from = Decoder::new(value);
    let (name, roles, since) = <(String, Vec<String>, u64)>::read(&mut from).ok()?;
    from.finish().ok()?;
    let since = if since == 0 { sequence } else { since };
    is_node_name(&name).then(|| Member { node: NodeId::new(&name, incarnation), roles, since })
}

/// The state that follows from the log up to a sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogView {
    sequence: u64,
    members: BTreeMap<u64, LiveMember>,
    /// The services that have a key. Those of a member are visible; dead is dead, so those of an
    /// incarnation that has ended never are again.
    services: BTreeSet<Service>,
    /// Entries with a key or a value that is not one of ours.
    n_invalid: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LiveMember {
    member: Member,
    /// The sequence number of the last renewal.
    renewed: u64,
}

impl LogView {
    /// Applies one entry. An entry that was applied already changes nothing.
    pub(crate) fn apply(&mut self, event: &LogEvent, changes: &mut Vec<Change>) {
        if event.sequence <= self.sequence {
            return;
        }
        self.sequence = event.sequence;
        self.set(event.sequence, &event.key, event.value.as_deref(), changes);
    }

    /// Applies the whole state of the log at a sequence number, when entries may have been missed:
    /// what is not in it has ended.
    pub(crate) fn apply_snapshot(
        &mut self,
        sequence: u64,
        entries: &[LogEvent],
        changes: &mut Vec<Change>,
    ) {
        if sequence < self.sequence {
            return;
        }
        let there: BTreeSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let gone: Vec<String> = self.keys().filter(|key| !there.contains(key.as_str())).collect();
        for key in gone {
            self.set(sequence, &key, None, changes);
        }
        for entry in entries {
            self.set(entry.sequence, &entry.key, entry.value.as_deref(), changes);
        }
        self.sequence = sequence;
    }

    /// The log was created again: nothing that was read before is true any more.
    pub(crate) fn reset(&mut self, changes: &mut Vec<Change>) {
        self.apply_snapshot(u64::MAX, &[], changes);
        self.sequence = 0;
    }

    fn keys(&self) -> impl Iterator<Item = String> {
        let services = self.services.iter().map(service_key);
        self.members.keys().map(|incarnation| live_key(*incarnation)).chain(services)
    }

    fn set(&mut self, sequence: u64, key: &str, value: Option<&[u8]>, changes: &mut Vec<Change>) {
        match (parse_key(key), value) {
            (Some(LogKey::Live(incarnation)), Some(value)) => {
                match read_member(incarnation, sequence, value) {
                    Some(member) => self.renew_member(sequence, member, changes),
                    None => {
                        self.n_invalid += 1;
                        self.end_member(incarnation, changes);
                    }
                }
            }
            (Some(LogKey::Live(incarnation)), None) => self.end_member(incarnation, changes),
            (Some(LogKey::Service(service)), Some(_)) => {
                let is_new = self.services.insert(service.clone());
                if is_new && self.members.contains_key(&service.incarnation) {
                    changes.push(Change::ServiceUp(service));
                }
            }
            (Some(LogKey::Service(service)), None) => {
                let is_gone = self.services.remove(&service);
                if is_gone && self.members.contains_key(&service.incarnation) {
                    changes.push(Change::ServiceDown(service));
                }
            }
            (None, _) => self.n_invalid += 1,
        }
    }

    fn renew_member(&mut self, renewed: u64, member: Member, changes: &mut Vec<Change>) {
        let incarnation = member.node.incarnation();
        let live = LiveMember { member: member.clone(), renewed };
        if self.members.insert(incarnation, live).is_none() {
            changes.push(Change::MemberUp(member));
            changes.extend(self.services_of(incarnation).cloned().map(Change::ServiceUp));
        }
    }

    fn end_member(&mut self, incarnation: u64, changes: &mut Vec<Change>) {
        let Some(live) = self.members.remove(&incarnation) else { return };
        changes.extend(self.services_of(incarnation).cloned().map(Change::ServiceDown));
        changes.push(Change::MemberDown(live.member));
    }

    /// All services of an incarnation that have a key, also those of one that has ended.
    pub(crate) fn services_of(&self, incarnation: u64) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(move |service| service.incarnation == incarnation)
    }

    /// The services whose incarnation has ended. It wrote them when it was a member, and never is
    /// one again.
    pub(crate) fn orphans(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(|one| !self.members.contains_key(&one.incarnation))
    }

    pub(crate) fn member(&self, incarnation: u64) -> Option<&Member> {
        self.members.get(&incarnation).map(|live| &live.member)
    }

    /// The sequence number of the last entry of a member's key.
    pub(crate) fn renewed(&self, incarnation: u64) -> Option<u64> {
        self.members.get(&incarnation).map(|live| live.renewed)
    }

    /// The member after this one, in the order of the incarnations, as a ring.
    pub(crate) fn next_member(&self, incarnation: u64) -> Option<u64> {
        let mut after = self.members.range(incarnation.saturating_add(1)..);
        let next = after.next().or_else(|| self.members.first_key_value());
        next.map(|(next, _)| *next).filter(|next| *next != incarnation)
    }

    pub(crate) fn members(&self) -> Members {
        let mut members: Vec<Member> =
            self.members.values().map(|live| live.member.clone()).collect();
        members.sort_by_key(|member| member.since);
        Members { sequence: self.sequence, members }
    }

    /// The services under a key with messages of this type.
    pub(crate) fn services<'a>(
        &'a self,
        key: &'a str,
        type_hash: u64,
    ) -> impl Iterator<Item = &'a Service> {
        let is_it = move |service: &&Service| {
            let is_visible = self.members.contains_key(&service.incarnation);
            is_visible && service.key == key && service.type_hash == type_hash
        };
        self.services.iter().filter(is_it)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    fn service(key: &str, incarnation: u64, export: u64) -> Service {
        Service { key: key.into(), type_hash: 7, incarnation, export }
    }

    /// A random entry: members 1 to 4 come and go, with services, next to garbage.
    fn entries() -> impl Strategy<Value = (String, Option<Vec<u8>>)> {
        let value = prop_oneof![
            4 => Just(member_value("node", &[], 0)),
            2 => Just(None),
            1 => any::<Vec<u8>>().prop_map(Some),
        ];
        let key = prop_oneof![
            (1..5_u64).prop_map(live_key),
            ("[a-z. /%ä]{0,6}", 1..5_u64, 0..3_u64).prop_map(|(key, incarnation, export)| {
                service_key(&service(&key, incarnation, export))
            }),
            "[a-z.%0-9]{0,12}",
        ];
        (key, value)
    }

    proptest! {
        /// Nodes agree: one reads every entry, one reads some of them twice, one gets a snapshot.
        #[test]
        fn views_at_the_same_sequence_number_are_equal(
            written in proptest::collection::vec(entries(), 0..60),
            at in any::<prop::sample::Index>(),
        ) {
            let events: Vec<LogEvent> = (1..)
                .zip(written)
                .map(|(sequence, (key, value))| LogEvent { sequence, key, value })
                .collect();
            let (mut all, mut twice, mut late) = <(LogView, LogView, LogView)>::default();
            let mut changes = Vec::new();
            for event in &events {
                all.apply(event, &mut changes);
            }
            let middle = if events.is_empty() { 0 } else { at.index(events.len()) };
            for event in events[..middle].iter().chain(&events) {
                twice.apply(event, &mut Vec::new());
            }
            for event in &events[..middle] {
                late.apply(event, &mut Vec::new());
            }
            prop_assert_eq!(&all, &twice);
            // A member without an end is up, and its services are those of the last view.
            let ups = changes.iter().filter(|one| matches!(one, Change::MemberUp(_))).count();
            let downs = changes.iter().filter(|one| matches!(one, Change::MemberDown(_))).count();
            prop_assert_eq!(ups - downs, all.members.len());
            let mut keys: BTreeMap<&str, &LogEvent> = BTreeMap::new();
            for event in &events {
                match event.value {
                    Some(_) => keys.insert(&event.key, event),
                    None => keys.remove(event.key.as_str()),
                };
            }
            let mut snapshot: Vec<LogEvent> = keys.into_values().cloned().collect();
            snapshot.sort_by_key(|event| event.sequence);
            late.apply_snapshot(events.len() as u64, &snapshot, &mut Vec::new());
            prop_assert_eq!((&late.members, &late.services), (&all.members, &all.services));
            prop_assert_eq!(late.members(), all.members());
        }

        #[test]
        fn the_key_of_a_service_is_read_as_it_was_written(key in any::<String>()) {
            let written = service(&key, 3, 4);
            match parse_key(&service_key(&written)) {
                Some(LogKey::Service(read)) => prop_assert_eq!(read, written),
                _ => prop_assert!(false, "it is no service"),
            }
        }
    }

    #[test]
    fn an_entry_says_who_has_joined_and_what_is_offered() {
        let entry =
            |key: String, value: Option<Vec<u8>>| LogEvent { sequence: 9, key, value }.entry();
        let joined = entry(live_key(7), member_value("a", &[], 0));
        let Some(LogEntry::Member(member)) = joined else { panic!("{joined:?}") };
        assert_eq!((member.node.name(), member.node.incarnation(), member.since), ("a", 7, 9));
        let renewed = entry(live_key(7), member_value("a", &[], 3));
        assert!(matches!(renewed, Some(LogEntry::Member(member)) if member.since == 3));
        assert_eq!(entry(live_key(7), None), Some(LogEntry::MemberEnded(7)));
        let (key, incarnation) = (String::from("a b"), 7);
        let offered = entry(service_key(&service(&key, 7, 1)), Some(Vec::new()));
        assert_eq!(offered, Some(LogEntry::Service { key: key.clone(), incarnation }));
        let ended = entry(service_key(&service(&key, 7, 1)), None);
        assert_eq!(ended, Some(LogEntry::ServiceEnded { key, incarnation }));
        assert_eq!(entry("live.zz".into(), Some(Vec::new())), None);
        assert_eq!(entry(live_key(7), Some(vec![0xff; 9])), None);
    }

    #[test]
    fn a_member_that_has_ended_takes_its_services_along_and_gets_none_again() {
        let mut view = LogView::default();
        let mut changes = Vec::new();
        let mut sequence = 0;
        let mut write = |view: &mut LogView, key: String, value: Option<Vec<u8>>| {
            sequence += 1;
            changes.clear();
            view.apply(&LogEvent { sequence, key, value }, &mut changes);
            changes.clone()
        };
        let (printer, scanner) = (service("printer", 1, 1), service("scanner", 1, 2));
        write(&mut view, live_key(1), member_value("a", &[], 0));
        let up = write(&mut view, service_key(&printer), Some(Vec::new()));
        assert_eq!(up, [Change::ServiceUp(printer.clone())]);
        assert!(write(&mut view, service_key(&printer), Some(Vec::new())).is_empty());
        write(&mut view, service_key(&scanner), Some(Vec::new()));
        let member = view.member(1).cloned().expect("it is up");
        let down = write(&mut view, live_key(1), None);
        let both = [Change::ServiceDown(printer.clone()), Change::ServiceDown(scanner)];
        assert_eq!(down[..2], both);
        assert_eq!(down[2..], [Change::MemberDown(member)]);
        // Late entries of the dead incarnation change nothing.
        assert!(write(&mut view, service_key(&printer), Some(Vec::new())).is_empty());
        assert!(write(&mut view, service_key(&printer), None).is_empty());
        assert!(write(&mut view, service_key(&service("fax", 1, 3)), Some(Vec::new())).is_empty());
        assert_eq!(view.services("printer", 7).count(), 0);
        let orphans = [service("fax", 1, 3), service("scanner", 1, 2)];
        assert!(view.orphans().eq(&orphans), "{view:?}");
    }

    #[test]
    fn a_key_has_one_spelling() {
        let service = service_key(&service("A b", 1, 2));
        assert!(parse_key(&service).is_some());
        assert!(parse_key(&live_key(1)).is_some());
        let odd = [
            "live.1".into(),
            "live.+000000000000001".into(),
            "live.000000000000000A".into(),
            service.replace('A', "%41"),
            service.replace("%20", "%+2"),
            service.replace(".0", "."),
            service.replace(".2", ".+2"),
            service.replace(".2", ".02"),
        ];
        for key in odd {
            assert!(parse_key(&key).is_none(), "{key}");
        }
    }

    #[test]
    fn the_neighbour_of_the_last_member_is_the_first() {
        let mut view = LogView::default();
        assert_eq!(view.next_member(5), None);
        for (sequence, incarnation) in (1..).zip([2, 5, 9]) {
            let value = member_value("n", &[], 0);
            let event = LogEvent { sequence, key: live_key(incarnation), value };
            view.apply(&event, &mut vec![]);
        }
        assert_eq!([2, 5, 9].map(|at| view.next_member(at)), [Some(5), Some(9), Some(2)]);
    }
}
