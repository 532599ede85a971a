//! Reusable slots, and keys that name a slot for one generation: for the subjects that hold their
//! timers in a heap, where a cancelled timer stays until it reaches the top.

/// Names a slot for one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotKey {
    slot: u32,
    generation: u32,
}

/// Values, each in a slot until it is taken.
pub(crate) struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    /// Incremented when the value is taken, so that all keys to it become stale.
    generation: u32,
    value: T,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, value: T) -> SlotKey {
        if let Some(slot) = self.free.pop() {
            let taken = &mut self.all[slot as usize];
            taken.value = value;
            return SlotKey { slot, generation: taken.generation };
        }
        let slot = u32::try_from(self.all.len()).expect("fewer than 2^32 timers are alive");
        self.all.push(Slot { generation: 0, value });
        SlotKey { slot, generation: 0 }
    }

    /// Frees the slot of `key` and returns its value, or `None` if the key is stale.
    pub(crate) fn take(&mut self, key: SlotKey) -> Option<&mut T> {
        let slot = &mut self.all[key.slot as usize];
        if slot.generation != key.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(&mut slot.value)
    }

    /// Whether the value of `key` has not been taken yet.
    pub(crate) fn has(&self, key: SlotKey) -> bool {
        self.all[key.slot as usize].generation == key.generation
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_key_is_good_once_also_when_its_slot_is_used_again() {
        let mut slots = Slots::default();
        let first = slots.insert(1);
        assert!(slots.has(first));
        assert_eq!(slots.take(first).copied(), Some(1));
        let second = slots.insert(2);
        assert_eq!((first.slot, slots.all.len()), (second.slot, 1));
        assert!(!slots.has(first) && slots.has(second));
        assert_eq!(slots.take(first), None);
        assert_eq!(slots.take(second).copied(), Some(2));
    }
}
