//! A `BinaryHeap` with lazy delete: a cancel marks the timer's slot, and the heap's entry is
//! dropped when it reaches the top.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};
use crate::slots::{SlotKey, Slots};

pub(crate) struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    ids: Slots<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline_ms: u64,
    key: SlotKey,
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
        Self { entries: BinaryHeap::new(), ids: Slots::default() }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        let key = self.ids.insert(id);
        self.entries.push(Reverse(Entry { deadline_ms, key }));
        key
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.ids.take(key));
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        while let Some(&Reverse(entry)) = self.entries.peek() {
            if entry.deadline_ms > to_ms {
                break;
            }
            self.entries.pop();
            if let Some(id) = self.ids.take(entry.key) {
                fired.note(*id);
            }
        }
        fired
    }
}
