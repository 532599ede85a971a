//! A slab of elements with a hash table over them, in which no operation takes more than constant
//! time, on average over the hashes.
//!
//! The hash table is that of Litwin ("Linear hashing: a new tool for file and table addressing",
//! 1980), with the buckets in memory, as Larson has it ("Dynamic hash tables", 1988). A table that
//! doubles moves all of its elements at once. Here each insertion splits at most one bucket, so its
//! work is that of a chain, which has one element on average. The elements stay where they are; the
//! buckets link them.
//!
//! Memory is freed as a whole, when the slab is empty, by a caller that has
//! [taken](HashSlab::take_unneeded) it out of the lock.

use clockjack_exec::Pid;
use clockjack_sync::splitmix::mix;

use super::{Grows, Segments, segments};

/// No element.
pub(crate) const NONE: u32 = u32::MAX;

/// The number of buckets of a slab with few elements.
const BUCKETS_MIN: usize = 4;

/// An empty slab keeps the memory for this many elements, because others may follow soon.
pub(crate) const KEPT_MAX: usize = 64;

/// See the [module](self).
pub(crate) struct HashSlab<T> {
    slots: Segments<Slot<T>>,
    /// The first element of each bucket, or [`NONE`]. There are never fewer buckets than elements.
    buckets: Segments<u32>,
    /// The first vacant slot.
    vacant: u32,
    len: usize,
}

struct Slot<T> {
    hash: u32,
    /// The next element of the bucket, or the next vacant slot.
    next: u32,
    value: Option<T>,
}

/// What is missing before another element can be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    slots: Option<segments::Missing>,
    buckets: Option<segments::Missing>,
}

/// Memory for another element.
pub(crate) struct Room<T> {
    slots: Option<segments::Room<Slot<T>>>,
    buckets: Option<segments::Room<u32>>,
}

impl<T> Default for HashSlab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Grows for HashSlab<T> {
    type Missing = Missing;
    type Room = Room<T>;

    fn missing(&self) -> Option<Missing> {
        let slots = if self.vacant == NONE { self.slots.missing() } else { None };
        let grows = self.buckets.len() <= self.len.max(BUCKETS_MIN - 1);
        let buckets = if grows { self.buckets.missing() } else { None };
        (slots.is_some() || buckets.is_some()).then_some(Missing { slots, buckets })
    }

    fn allocate(missing: Missing) -> Room<T> {
        Room {
            slots: missing.slots.map(Segments::allocate),
            buckets: missing.buckets.map(Segments::allocate),
        }
    }

    fn add_room(&mut self, room: Room<T>) -> Room<T> {
        Room {
            slots: room.slots.map(|room| self.slots.add_room(room)),
            buckets: room.buckets.map(|room| self.buckets.add_room(room)),
        }
    }
}

impl<T> HashSlab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Segments::new(), buckets: Segments::new(), vacant: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// The elements in the first `slots_max` slots, in no particular order.
    pub(crate) fn first_slots(&self, slots_max: usize) -> impl Iterator<Item = &T> {
        let n_slots = self.slots.len().min(slots_max);
        (0..n_slots).filter_map(|index| self.slots.get(index)?.value.as_ref())
    }

    /// The elements with this hash, each with its index, in no particular order.
    pub(crate) fn with_hash(&self, hash: u32) -> impl Iterator<Item = (u32, &T)> {
        let mut at = self.first(hash);
        core::iter::from_fn(move || {
            let (index, slot) = (at, self.slots.get(at as usize)?);
            at = slot.next;
            Some((index, slot))
        })
        .filter(move |(_, slot)| slot.hash == hash)
        .filter_map(|(index, slot)| Some((index, slot.value.as_ref()?)))
    }

    /// The bucket of a hash while there are `n_buckets`: the last bits of the hash, one fewer for
    /// buckets that have not been split since their number was a power of two.
    fn bucket(hash: u32, n_buckets: usize) -> usize {
        let mask = n_buckets.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < n_buckets { bucket } else { bucket & (mask >> 1) }
    }

    fn first(&self, hash: u32) -> u32 {
        match self.buckets.len() {
            0 => NONE,
            len => self.buckets.get(Self::bucket(hash, len)).copied().unwrap_or(NONE),
        }
    }

    /// Inserts an element, and returns its index. There must be [room](Grows::missing), and fewer
    /// than `u32::MAX` elements.
    pub(crate) fn insert(&mut self, hash: u32, value: T) -> u32 {
        while self.buckets.len() < BUCKETS_MIN {
            self.buckets.push(NONE);
        }
        self.len += 1;
        if self.buckets.len() < self.len {
            self.split();
        }
        let (vacant, slot) = (self.vacant, Slot { hash, next: NONE, value: Some(value) });
        let index = match self.slots.get_mut(vacant as usize) {
            Some(place) => {
                self.vacant = place.next;
                *place = slot;
                vacant
            }
            None => u32::try_from(self.slots.push(slot)).expect("the caller bounds the number"),
        };
        self.link(index);
        index
    }

    fn link(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let bucket = Self::bucket(slot.hash, self.buckets.len());
        if let Some(first) = self.buckets.get_mut(bucket) {
            slot.next = core::mem::replace(first, index);
        }
    }

    /// Adds a bucket, and moves those elements to it that belong there now: all of them were in one
    /// bucket.
    fn split(&mut self) {
        let added = self.buckets.push(NONE);
        let old = Self::bucket(u32::try_from(added).unwrap_or(NONE), added);
        let Some(first) = self.buckets.get_mut(old) else { return };
        let mut at = core::mem::replace(first, NONE);
        while let Some(slot) = self.slots.get(at as usize) {
            let next = slot.next;
            self.link(at);
            at = next;
        }
    }

    /// Removes an element.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let vacant = self.vacant;
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        let (hash, next) = (slot.hash, core::mem::replace(&mut slot.next, vacant));
        (self.vacant, self.len) = (index, self.len - 1);
        let bucket = Self::bucket(hash, self.buckets.len());
        let mut at = self.first(hash);
        if at == index {
            if let Some(first) = self.buckets.get_mut(bucket) {
                *first = next;
            }
            return Some(value);
        }
        while let Some(before) = self.slots.get_mut(at as usize) {
            at = before.next;
            if at == index {
                before.next = next;
                break;
            }
        }
        Some(value)
    }

    /// The memory of a slab that is empty and had many elements, to be dropped when the lock is no
    /// longer held.
    #[must_use = "it is dropped when the lock is no longer held"]
    pub(crate) fn take_unneeded(&mut self) -> Option<Self> {
        let is_unneeded = self.len == 0 && self.slots.len() > KEPT_MAX;
        is_unneeded.then(|| core::mem::take(self))
    }
}

/// The hash of a name. Names do not come from attackers, and the order must be reproducible.
pub(crate) fn hash_of_name(name: &str) -> u32 {
    // FNV-1a, folded.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in name.as_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or(0)
}

/// The hash of a number.
pub(crate) fn hash_of(number: u64) -> u32 {
    u32::try_from(mix(number) >> 32).unwrap_or(0)
}

/// The hash of a pid.
pub(crate) fn hash_of_pid(pid: Pid) -> u32 {
    let place = u64::from(pid.node()) << 32 | u64::from(pid.index());
    hash_of(mix(place) ^ pid.generation().get())
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, vec::Vec};

    use clockjack_sync::spin_lock::SpinLock;

    use super::*;
    use crate::room::with_room;

    fn insert(slab: &SpinLock<HashSlab<u64>>, hash: u32, value: u64) -> u32 {
        with_room(slab, |slab| slab, |slab| slab.insert(hash, value))
    }

    fn with_hash(slab: &SpinLock<HashSlab<u64>>, hash: u32) -> Vec<(u32, u64)> {
        slab.with(|slab| slab.with_hash(hash).map(|(at, value)| (at, *value)).collect())
    }

    #[test]
    fn what_was_inserted_and_not_removed_is_found_at_every_size() {
        let (slab, mut model) = (SpinLock::new(HashSlab::new()), BTreeMap::new());
        for round in 0..3_000_u64 {
            // Some have the same hash.
            let hash = hash_of(round / 2);
            let at = insert(&slab, hash, round);
            assert_eq!(model.insert(at, (hash, round)), None, "round {round}: {at} was in use");
            if mix(round).is_multiple_of(3) {
                let at = u32::try_from(mix(round + 1) % (round + 1)).expect("few");
                let removed = slab.with(|slab| slab.remove(at));
                assert_eq!(removed, model.remove(&at).map(|(_, value)| value), "round {round}");
            }
            if round % 97 == 0 {
                for (at, (hash, value)) in &model {
                    let found = with_hash(&slab, *hash);
                    assert!(found.contains(&(*at, *value)), "round {round}: {value} at {at}");
                }
            }
        }
        assert_eq!(slab.with(|slab| slab.len()), model.len());
        model.keys().for_each(|at| assert!(slab.with(|slab| slab.remove(*at)).is_some()));
        assert!(slab.with(HashSlab::take_unneeded).is_some());
        assert_eq!(with_hash(&slab, hash_of(0)), []);
    }

    #[test]
    fn an_insertion_moves_a_few_elements_however_many_there_are() {
        let slab = SpinLock::new(HashSlab::new());
        let mut longest = 0;
        for round in 0..100_000 {
            insert(&slab, hash_of(round), round);
            // An insertion walks over the bucket that it splits, and each other operation over the
            // bucket of its hash.
            let n_in_bucket = slab.with(|slab| {
                let (mut at, mut n) = (slab.first(hash_of(round)), 0);
                while let Some(slot) = slab.slots.get(at as usize) {
                    (at, n) = (slot.next, n + 1);
                }
                n
            });
            longest = longest.max(n_in_bucket);
        }
        assert!(longest <= 16, "a bucket of {longest} elements");
    }

    #[test]
    fn few_elements_keep_their_memory() {
        let slab = SpinLock::new(HashSlab::new());
        let all: Vec<_> = (0..64).map(|number| insert(&slab, hash_of(number), number)).collect();
        all.into_iter().for_each(|at| _ = slab.with(|slab| slab.remove(at)));
        assert!(slab.with(HashSlab::take_unneeded).is_none());
        assert_eq!(slab.with(|slab| slab.missing()), None, "there is room for another one");
    }
}
