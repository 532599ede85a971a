//! A set of pids that keeps their order: an insertion-ordered hash table.
//!
//! The scheme is that of Python's dictionaries (Hettinger, "More compact dictionaries with faster
//! iteration", 2012): a vector in the order of insertion, and a table of indices into the vector
//! with open addressing and linear probing (Knuth, volume 3, section 6.4, algorithm L). A removed
//! pid leaves a hole in the vector; the set is built again when the vector is full, so each
//! operation takes constant time on average. A small set has no table.
//!
//! The order matters: processes that are linked to one that ends are notified in the order in which
//! the links were made, on every machine.

use alloc::vec::{self, Vec};
use core::iter::Flatten;

use clockjack_sync::splitmix;

use crate::pid::Pid;

/// A vector of this length has no table.
const LINEAR_MAX: usize = 8;
/// A free entry of the table.
const FREE: u32 = u32::MAX;

/// A set of pids; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct PidSet {
    /// The pids in the order of their insertion; `None` where one was removed.
    pids: Vec<Option<Pid>>,
    len: usize,
    /// Indices into `pids`, or [`FREE`]; a power of two of them, at least half of them free. Empty
    /// if `pids` is short.
    table: Vec<u32>,
}

/// The pids of a set, the oldest first.
pub(super) type Pids = Flatten<vec::IntoIter<Option<Pid>>>;

impl PidSet {
    pub(super) fn contains(&self, pid: Pid) -> bool {
        self.find(pid).is_some()
    }

    /// The number of pids.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a pid; false if it was there.
    pub(super) fn insert(&mut self, pid: Pid) -> bool {
        if self.contains(pid) {
            return false;
        }
        if self.pids.len() >= LINEAR_MAX.max(self.table.len() / 2) {
            self.rebuild();
        }
        let index = self.pids.len();
        self.pids.push(Some(pid));
        self.len += 1;
        if !self.table.is_empty() {
            self.place(pid, index);
        }
        true
    }

    /// Removes a pid; false if it was not there.
    pub(super) fn remove(&mut self, pid: Pid) -> bool {
        let Some(index) = self.find(pid) else { return false };
        self.pids[index] = None;
        self.len -= 1;
        if self.len == 0 {
            // An empty set that was large returns its memory.
            self.pids.clear();
            if !self.table.is_empty() {
                *self = Self::default();
            }
        }
        true
    }

    /// The pids, the oldest first.
    pub(super) fn into_pids(self) -> Pids {
        self.pids.into_iter().flatten()
    }

    fn find(&self, pid: Pid) -> Option<usize> {
        if self.table.is_empty() {
            return self.pids.iter().position(|known| *known == Some(pid));
        }
        let is_it = |index: &u32| self.pids[*index as usize] == Some(pid);
        let found = self.probes(pid).map(|at| self.table[at]).take_while(|index| *index != FREE);
        found.into_iter().find(is_it).map(|index| index as usize)
    }

    /// The entries of the table in which a pid may be, in order.
    fn probes(&self, pid: Pid) -> impl Iterator<Item = usize> + use<> {
        let mask = self.table.len() - 1;
        let key = u64::from(pid.index()) << 32 ^ pid.generation().get() ^ u64::from(pid.node());
        #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
        let start = splitmix::mix(key) as usize;
        (0..=mask).map(move |n| start.wrapping_add(n) & mask)
    }

    fn place(&mut self, pid: Pid, index: usize) {
        let at = self.probes(pid).find(|at| self.table[*at] == FREE);
        let at = at.expect("half of the table is free");
        self.table[at] = u32::try_from(index).expect("there are fewer than 2^32 processes");
    }

    /// Closes the holes, and makes room for as many pids again.
    fn rebuild(&mut self) {
        self.pids.retain(Option::is_some);
        self.table.clear();
        if self.len >= LINEAR_MAX {
            self.table.resize((self.len * 4).next_power_of_two(), FREE);
            for index in 0..self.pids.len() {
                if let Some(pid) = self.pids[index] {
                    self.place(pid, index);
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::num::NonZeroU64;

    use clockjack_sync::splitmix::SplitMix;

    use super::*;

    fn pid(index: u32, generation: u64) -> Pid {
        Pid::new(1, index, NonZeroU64::new(generation).expect("a generation is not zero"))
    }

    #[test]
    fn it_is_a_vector_without_duplicates() {
        for range in [4, 20, 300] {
            let (mut set, mut model) = (PidSet::default(), Vec::new());
            let mut random = SplitMix::new(u64::from(range));
            for _ in 0..5000 {
                let pid = pid(random.below(range), 1 + u64::from(random.below(2)));
                let known = model.iter().position(|known| *known == pid);
                assert_eq!(set.contains(pid), known.is_some());
                if random.below(2) == 0 {
                    assert_eq!(set.insert(pid), known.is_none());
                    model.extend(known.is_none().then_some(pid));
                } else {
                    assert_eq!(set.remove(pid), known.is_some());
                    known.map(|at| model.remove(at));
                }
                assert_eq!(set.len(), model.len());
            }
            assert_eq!(set.into_pids().collect::<Vec<_>>(), model);
        }
    }

    /// The law behind "constant": how many entries a search reads does not grow with the set.
    #[test]
    fn a_search_reads_a_few_entries_however_large_the_set_is() {
        const N: u32 = 100_000;
        let mut set = PidSet::default();
        (0..N).for_each(|index| assert!(set.insert(pid(index, 7))));
        let read = |index| {
            let is_used = |at: &usize| set.table[*at] != FREE;
            1 + set.probes(pid(index, 7)).take_while(is_used).count()
        };
        let reads: usize = (0..2 * N).map(read).sum();
        assert!(reads < 6 * N as usize, "{reads} entries for {} searches", 2 * N);
        (0..N).for_each(|index| assert!(set.remove(pid(index, 7))));
        assert_eq!((set.len(), set.table.capacity()), (0, 0));
    }

    /// A set whose pids come and go does not grow.
    #[test]
    fn holes_are_closed() {
        let mut set = PidSet::default();
        (0..20).for_each(|index| assert!(set.insert(pid(index, 1))));
        for round in 0..10_000 {
            assert!(set.insert(pid(99, round + 1)));
            assert!(set.remove(pid(99, round + 1)));
        }
        assert!(set.pids.len() <= 128 && set.table.len() <= 256);
    }
}
