//! [`Announced`]: the entries of services that a node has written and not read yet.
//!
//! Whether a write was accepted is read from the log, and any write may be lost: so what the log
//! does not show is written again. Not at once, because the entry may be on its way, and not all at
//! once: a node that stops leaves thousands of entries behind, and their removal must delay neither
//! the leases of the one that removes them nor those of others.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::time::Duration;

use crate::{
    engine::{Expected, LogWrite, Moment},
    log::{Service, service_key},
};

/// After how long a write that the log does not show is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(8);

/// The most writes of services per tick.
const WRITES_PER_TICK: usize = 256;

/// An entry of a service. Those that begin one come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Begin(Service),
    End(Service),
}

impl Entry {
    fn write(&self) -> LogWrite {
        let (service, value) = match self {
            Self::Begin(service) => (service, Some(Vec::new())),
            Self::End(service) => (service, None),
        };
        LogWrite { key: service_key(service), value, expected: Expected::Any, ttl: None }
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Announced(BTreeMap<Entry, Moment>);

impl Announced {
    /// Writes an entry now, for the first time.
    pub(crate) fn write(&mut self, now: Moment, entry: Entry, writes: &mut Vec<LogWrite>) {
        writes.push(entry.write());
        self.0.insert(entry, now);
    }

    /// Writes of these entries, which the log should show and does not, those that are due: new
    /// ones first.
    pub(crate) fn repeat(
        &mut self,
        now: Moment,
        missing: &BTreeSet<Entry>,
        writes: &mut Vec<LogWrite>,
    ) {
        self.0.retain(|entry, _| missing.contains(entry));
        let is_new = |entry: &&Entry| !self.0.contains_key(*entry);
        let is_due = |entry: &&Entry| {
            self.0.get(*entry).is_some_and(|written| now.since(*written) >= REPEAT_AFTER)
        };
        let new = missing.iter().filter(is_new);
        let due: Vec<Entry> =
            new.chain(missing.iter().filter(is_due)).take(WRITES_PER_TICK).cloned().collect();
        for entry in due {
            self.write(now, entry, writes);
        }
    }

    /// The log shows the entry.
    pub(crate) fn read(&mut self, entry: &Entry) {
        self.0.remove(entry);
    }
}
