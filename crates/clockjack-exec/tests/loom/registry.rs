//! Look-ups against the last release, and against a slot that is used again.
#![expect(unsafe_code, reason = "cells that loom watches stand for the processes")]

use core::{
    num::{NonZeroU32, NonZeroU64},
    ptr::NonNull,
};

use clockjack_exec::registry::{LastRef, Lookup, Registry, SlotRef};
use clockjack_sync::primitive::UnsafeCell;
use loom::{sync::Arc, thread};

const FIRST: NonZeroU64 = NonZeroU64::MIN;

/// A table and the processes in it, which outlive the model so that a use after the free is seen
/// as such: a freed one holds zero.
struct Table {
    registry: Registry,
    processes: [UnsafeCell<u64>; 2],
}

// SAFETY: loom itself reports two accesses to a cell that are not ordered.
unsafe impl Sync for Table {}
// SAFETY: as above.
unsafe impl Send for Table {}

impl Table {
    fn new(capacity: usize) -> Arc<Self> {
        let processes = core::array::from_fn(|_| UnsafeCell::new(0));
        Arc::new(Self { registry: Registry::new(capacity, 1), processes })
    }

    fn cell(value: NonNull<()>) -> *const UnsafeCell<u64> {
        value.as_ptr().cast_const().cast()
    }

    /// Makes the n-th process, with so many references, if there is a slot.
    fn insert(&self, n: usize, refs: u32) -> Option<(u32, NonZeroU64)> {
        let reserved = self.registry.reserve(None)?;
        let pid = (reserved.index(), reserved.generation());
        let cell = &self.processes[n];
        set(cell, pid.1.get());
        self.registry.occupy(reserved, NonNull::from(cell).cast(), NonZeroU32::new(refs).unwrap());
        Some(pid)
    }

    /// The generation that stands in the process itself.
    fn read(found: &SlotRef<'_>) -> u64 {
        // SAFETY: the value points to one of the table's cells.
        let cell = unsafe { &*Self::cell(found.value()) };
        cell.with(|cell| {
            // SAFETY: a reference is held; loom checks that.
            unsafe { *cell }
        })
    }

    /// Ends and frees a process.
    fn free(&self, last: LastRef<'_>) {
        // SAFETY: the value points to one of the table's cells.
        set(unsafe { &*Self::cell(last.value()) }, 0);
        self.registry.end(None);
        self.registry.vacate(last, None);
    }

    /// Gives up the reference of a holder.
    fn release(&self, found: SlotRef<'_>) -> bool {
        found.release().map(|last| self.free(last)).is_some()
    }

    /// Looks a process up, reads it if it is there, and gives the reference back.
    fn look(&self, (index, generation): (u32, NonZeroU64)) -> bool {
        match self.registry.get(index, generation) {
            Lookup::Found(found) => {
                assert_eq!(Self::read(&found), generation.get(), "the wrong one, or a freed one");
                self.release(found)
            }
            Lookup::Missing => false,
            Lookup::LastRef(last) => {
                self.free(last);
                true
            }
        }
    }

    /// Gives up a reference that nobody carries.
    fn drop_one(&self, (index, _): (u32, NonZeroU64)) -> bool {
        let mut freed = false;
        self.registry.for_each_live(|found| {
            if found.index() == index {
                let slot = found.into_slot();
                for _ in 0..2 {
                    // SAFETY: the reference of the walk, then the one to be given up.
                    freed |= unsafe { slot.release() }.map(|last| self.free(last)).is_some();
                }
            }
        });
        freed
    }
}

fn set(cell: &UnsafeCell<u64>, value: u64) {
    cell.with_mut(|cell| {
        // SAFETY: the caller is the only one that reaches the process; loom checks that.
        unsafe { *cell = value }
    });
}

#[test]
fn a_look_up_and_the_last_release_free_the_process_once() {
    loom::model(|| {
        let table = Table::new(1);
        let pid = table.insert(0, 1).unwrap();
        let other = Arc::clone(&table);
        let owner = thread::spawn(move || other.drop_one(pid));
        let other = Arc::clone(&table);
        let finder = thread::spawn(move || other.look(pid));
        let freed = [owner.join().unwrap(), finder.join().unwrap()];
        assert_eq!(freed.iter().filter(|&&freed| freed).count(), 1);
        assert_eq!(table.registry.live_len(), 0);
    });
}

#[test]
fn an_old_pid_never_finds_the_next_process_in_its_slot() {
    loom::model(|| {
        let table = Table::new(1);
        let pid = table.insert(0, 1).unwrap();
        let other = Arc::clone(&table);
        let owner = thread::spawn(move || {
            let freed = other.drop_one(pid);
            (freed, other.insert(1, 1))
        });
        let other = Arc::clone(&table);
        let finder = thread::spawn(move || other.look(pid));
        let (freed, next) = owner.join().unwrap();
        assert_ne!(freed, finder.join().unwrap(), "the first one is freed once");
        match next {
            Some(next) => {
                // Another slot if the first one was not vacated yet.
                let generation = if next.0 == pid.0 { 2 } else { 1 };
                assert_eq!(next.1.get(), generation);
                assert!(matches!(table.registry.get(pid.0, FIRST), Lookup::Missing));
                assert!(table.drop_one(next));
            }
            None => assert!(!freed, "a free slot was refused"),
        }
        assert_eq!(table.registry.live_len(), 0);
    });
}

#[test]
fn a_look_up_that_meets_the_end_of_another_process_frees_it() {
    loom::model(|| {
        let table = Table::new(1);
        let pid = table.insert(0, 1).unwrap();
        let other = Arc::clone(&table);
        let owner = thread::spawn(move || {
            let mut freed = usize::from(other.drop_one(pid));
            let mut made = 1;
            if let Some(next) = other.insert(1, 1) {
                made += 1;
                freed += usize::from(other.drop_one(next));
            }
            (made, freed)
        });
        let other = Arc::clone(&table);
        let finder = thread::spawn(move || usize::from(other.look(pid)));
        let (made, freed) = owner.join().unwrap();
        assert_eq!(freed + finder.join().unwrap(), made);
        assert_eq!(table.registry.live_len(), 0);
    });
}

#[test]
fn two_makers_never_get_one_slot_and_find_it_clean() {
    loom::model(|| {
        let table = Table::new(2);
        let pid = table.insert(0, 1).unwrap();
        let makers = [0, 1].map(|n| {
            let other = Arc::clone(&table);
            thread::spawn(move || {
                if n == 0 {
                    assert!(other.drop_one(pid));
                }
                let reserved = other.registry.reserve(None)?;
                Some((reserved.index(), reserved.generation()))
            })
        });
        let got: Vec<_> = makers.into_iter().filter_map(|maker| maker.join().unwrap()).collect();
        assert_eq!(got.len(), 2, "there was a slot for each");
        assert_ne!(got[0], got[1]);
    });
}

#[test]
fn what_a_finder_finds_was_published_by_its_maker() {
    loom::model(|| {
        let table = Table::new(1);
        let other = Arc::clone(&table);
        let maker = thread::spawn(move || other.insert(0, 1));
        let other = Arc::clone(&table);
        let finder = thread::spawn(move || other.look((0, FIRST)));
        let pid = maker.join().unwrap().unwrap();
        assert!(!finder.join().unwrap());
        assert!(table.drop_one(pid));
    });
}

#[test]
fn two_makers_share_the_slots_within_the_capacity() {
    loom::model(|| {
        let table = Table::new(2);
        let makers = [0, 1].map(|_| {
            let other = Arc::clone(&table);
            thread::spawn(move || other.registry.reserve(None).map(|reserved| reserved.index()))
        });
        let mut got = makers.map(|maker| maker.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [Some(0), Some(1)], "a slot beyond the capacity, or none");
    });
}

#[test]
fn no_more_processes_are_admitted_than_there_may_be() {
    loom::model(|| {
        let table = Table::new(2);
        let pid = table.insert(0, 1).unwrap();
        let makers = [false, true].map(|ends_another| {
            let other = Arc::clone(&table);
            thread::spawn(move || {
                if ends_another {
                    assert!(other.drop_one(pid));
                }
                usize::from(other.registry.reserve(None).is_some())
            })
        });
        let n_admitted: usize = makers.into_iter().map(|maker| maker.join().unwrap()).sum();
        assert_eq!(n_admitted, 2, "one was free, and one became free");
        assert!(table.registry.reserve(None).is_none(), "one more than there may be");
    });
}
