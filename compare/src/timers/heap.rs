//! A `BinaryHeap` with lazy delete: a cancel marks the timer's slot, and the heap's entry is
//! dropped when it reaches the top.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

pub(crate) struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// Names a slot for one generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotKey {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline_ms: u64,
    key: SlotKey,
}

struct Slot {
    /// Raised when the timer fires or is cancelled, so that its entry in the heap is stale.
    generation: u32,
    id: u32,
}

impl Heap {
    /// Frees the slot of `key` and gives its id, or `None` if the key is stale.
    fn take(&mut self, key: SlotKey) -> Option<u32> {
        let slot = &mut self.slots[key.slot as usize];
        if slot.generation != key.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(slot.id)
    }
}

impl Subject for Heap {
    const FACTS: Facts = Facts {
        name: "BinaryHeap",
        package: None,
        role: Role::Reference,
        cancel: Cancel::Lazy,
        ids: Ids::HandedBack,
        note: "lazy delete by generation; a cancelled entry stays until it reaches the top",
    };

    type Key = SlotKey;

    fn new() -> Self {
        Self { entries: BinaryHeap::new(), slots: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 timers are alive");
            self.slots.push(Slot { generation: 0, id });
            slot
        });
        let taken = &mut self.slots[slot as usize];
        taken.id = id;
        let key = SlotKey { slot, generation: taken.generation };
        self.entries.push(Reverse(Entry { deadline_ms, key }));
        key
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.take(key));
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        while let Some(&Reverse(entry)) = self.entries.peek() {
            if entry.deadline_ms > to_ms {
                break;
            }
            self.entries.pop();
            if let Some(id) = self.take(entry.key) {
                fired.note(id);
            }
        }
        fired
    }
}
