//! A `BTreeMap` from deadline and id: the simplest store, always in exact order.

use alloc::collections::BTreeMap;

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

pub(crate) struct Tree {
    timers: BTreeMap<(u64, u32), u32>,
}

impl Subject for Tree {
    const FACTS: Facts = Facts {
        name: "BTreeMap",
        package: None,
        role: Role::Reference,
        cancel: Cancel::Frees,
        ids: Ids::HandedBack,
        note: "key is deadline and id, value the payload",
    };

    type Key = (u64, u32);

    fn new() -> Self {
        Self { timers: BTreeMap::new() }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.timers.insert((deadline_ms, id), id);
        (deadline_ms, id)
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.timers.remove(&key));
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > to_ms {
                break;
            }
            fired.note(first.remove());
        }
        fired
    }
}
