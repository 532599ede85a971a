//! The state blackboard: named values that outlive an invocation, each with one writer.
//!
//! During an epoch all readers see what was committed at its beginning. Writes are staged; the
//! coordinator commits them at the next epoch, in compiled order. A name belongs to the first
//! component that writes it.

use std::{collections::BTreeMap, sync::Arc};

use crate::data::Value;

/// What all components read in an epoch.
pub(crate) type Snapshot = Arc<BTreeMap<String, Entry>>;

/// A value with its writer.
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) writer: usize,
    pub(crate) epoch: u64,
}

/// `runtime.state.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateCounts {
    pub(crate) committed: u64,
    pub(crate) rejected: u64,
}

/// A staged write.
pub(crate) struct Write {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) writer: usize,
}

/// Commits writes, in order. Refuses and counts a write to a name of another component.
pub(crate) fn commit(
    snapshot: &mut Snapshot,
    writes: impl Iterator<Item = Write>,
    epoch: u64,
    counts: &mut StateCounts,
) {
    let mut writes = writes.peekable();
    if writes.peek().is_none() {
        return;
    }
    let map = match Arc::get_mut(snapshot) {
        Some(map) => map,
        None => {
            // A reader still has the old snapshot: copy on write.
            let share = |entry: &Entry| {
                let value = entry.value.share()?;
                Some(Entry { value, writer: entry.writer, epoch: entry.epoch })
            };
            let copy =
                snapshot.iter().filter_map(|(key, entry)| Some((key.clone(), share(entry)?)));
            *snapshot = Arc::new(copy.collect());
            Arc::get_mut(snapshot).expect("it was just created")
        }
    };
    for Write { key, value, writer } in writes {
        match map.get_mut(&key) {
            Some(entry) if entry.writer != writer => counts.rejected += 1,
            Some(entry) => {
                (entry.value, entry.epoch) = (value, epoch);
                counts.committed += 1;
            }
            None => {
                map.insert(key, Entry { value, writer, epoch });
                counts.committed += 1;
            }
        }
    }
}
