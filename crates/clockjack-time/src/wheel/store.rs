//! What the wheel keeps its entries in: columns of links, deadlines, values and generations.
//!
//! The trait is sealed. A store is memory with rules, not a place for behaviour; the wheel decides
//! what stands in it. Three stores exist: [`Slab`](super::Slab) grows, [`Fixed`](super::Fixed)
//! lives wherever its owner puts it and never allocates, and the shard's store shares its
//! generations with other threads.
//!
//! Rules that the wheel relies on, for every index `HEADS <= i < HEADS + slots()`:
//!
//! 1. `value` is initialised exactly while `class(i) != VACANT`; `put` and `take` keep that.
//! 2. `slots()` only changes in `add_slot` and `reset`; a slot stays where it is until then.
//! 3. `claim` and `fire` say true at most once for each `arm`, whoever calls them.

#![expect(unsafe_code, reason = "values stand in slots that the class column says are filled")]

use core::{mem::MaybeUninit, num::NonZeroU64};

use super::{level::HEADS, priority::Class};

/// A generation: names one arming of one slot, never used again by the same store.
pub(crate) type Generation = NonZeroU64;

/// The last generation before they begin again: what a timer word has room for on every target.
/// At a hundred million armings a second they last for a month.
pub(crate) const GENERATION_MAX: u64 = (1 << 48) - 1;

/// Bits of the deadline column that hold the deadline; the two above hold the class.
const DUE_BITS: u32 = 30;
/// The part of a deadline that is kept: enough, since what is in the wheel is near.
pub(crate) const DUE_MASK: u64 = (1 << DUE_BITS) - 1;

/// An entry of the overflow: 24 bytes, ordered by deadline, then by registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Far {
    pub(crate) deadline: u64,
    pub(crate) sequence: u64,
    pub(crate) index: u32,
}

impl Far {
    pub(crate) const NONE: Self = Self { deadline: 0, sequence: 0, index: 0 };
}

/// Packs what a slot's deadline column holds.
#[inline(always)]
pub(crate) const fn pack_due(class: Class, deadline: u64) -> u32 {
    let low = (deadline & DUE_MASK) as u32;
    (class.code() << DUE_BITS) | low
}

/// The class in a slot's deadline column, `None` for a slot without a value.
#[inline(always)]
pub(crate) const fn due_class(due: u32) -> Option<Class> {
    Class::from_code(due >> DUE_BITS)
}

/// The full deadline of an entry in the wheel, which lies in `elapsed..elapsed + 2^30`.
#[inline(always)]
pub(crate) fn due_ahead(due: u32, elapsed: u64) -> u64 {
    elapsed.wrapping_add(u64::from(due).wrapping_sub(elapsed) & DUE_MASK)
}

/// The full deadline of an at-once entry, which lies in `elapsed - 2^30 + 1..=elapsed`.
#[inline(always)]
pub(crate) fn due_behind(due: u32, elapsed: u64) -> u64 {
    elapsed.wrapping_sub(elapsed.wrapping_sub(u64::from(due)) & DUE_MASK)
}

/// Turns a slot number into an index of the columns, where list heads come first.
pub(crate) const fn index_of(slot: u32) -> Option<u32> {
    slot.checked_add(HEADS)
}

/// Position of a timer's index in the columns that have no list heads.
#[inline(always)]
pub(crate) const fn at(index: u32) -> usize {
    (index - HEADS) as usize
}

/// Sealed: only this crate's stores have it.
///
/// A store gives its columns as slices; what is done with them is written once, here. The
/// generation column of a store with one owner is plain memory; the shard's store overrides the
/// calls on it by compare-exchanges.
pub trait Columns<T> {
    /// How many slots exist by now.
    fn slots(&self) -> u32;
    /// How many slots there may ever be.
    fn slots_max(&self) -> u32;
    /// Adds one slot, which is vacant. False if there may be no more.
    fn add_slot(&mut self) -> bool;
    /// Gives memory back if nothing is in use: afterwards there are no slots.
    fn reset(&mut self);

    fn next(&self, index: u32) -> u32;
    fn set_next(&mut self, index: u32, next: u32);
    fn prev(&self, index: u32) -> u32;
    fn set_prev(&mut self, index: u32, prev: u32);

    fn dues(&self) -> &[u32];
    fn dues_mut(&mut self) -> &mut [u32];
    fn values(&self) -> &[MaybeUninit<T>];
    fn values_mut(&mut self) -> &mut [MaybeUninit<T>];
    fn generations(&self) -> &[u64];
    fn generations_mut(&mut self) -> &mut [u64];

    /// The overflow's entries.
    fn far(&self) -> &[Far];
    fn far_mut(&mut self) -> &mut [Far];
    /// How many entries the overflow may hold.
    fn far_max(&self) -> usize;
    /// Appends an entry. False if there is no room.
    fn far_push(&mut self, entry: Far) -> bool;
    /// Takes the last entry away.
    fn far_pop(&mut self) -> Option<Far>;

    /// What the deadline column says: a class and the low bits of a deadline.
    #[inline(always)]
    fn due(&self, index: u32) -> u32 {
        self.dues()[at(index)]
    }

    /// Fills a vacant slot. `due` carries a class.
    #[inline(always)]
    fn put(&mut self, index: u32, due: u32, value: T) {
        debug_assert!(due_class(self.due(index)).is_none(), "slot {index} is filled");
        debug_assert!(due_class(due).is_some(), "a filled slot has a class");
        self.values_mut()[at(index)] = MaybeUninit::new(value);
        self.dues_mut()[at(index)] = due;
    }

    /// Writes the deadline of an occupied slot anew; the class in `due` is not vacant.
    #[inline(always)]
    fn set_due(&mut self, index: u32, due: u32) {
        debug_assert!(due_class(self.due(index)).is_some(), "slot {index} is vacant");
        debug_assert!(due_class(due).is_some(), "a filled slot has a class");
        self.dues_mut()[at(index)] = due;
    }

    /// Empties a slot and hands out what was in it; `None` if it was vacant.
    #[inline(always)]
    fn take(&mut self, index: u32) -> Option<T> {
        let due = &mut self.dues_mut()[at(index)];
        due_class(*due)?;
        *due = 0;
        // SAFETY: the class was not vacant, so `put` has written the value (rule 1), and it is
        // marked vacant now, so nobody reads it a second time.
        Some(unsafe { self.values()[at(index)].assume_init_read() })
    }

    /// A look at the value of an occupied slot.
    fn value(&self, index: u32) -> Option<&T> {
        due_class(*self.dues().get(at(index))?)?;
        // SAFETY: the class is not vacant, so `put` has written the value (rule 1).
        Some(unsafe { self.values()[at(index)].assume_init_ref() })
    }

    /// A look at the value of an occupied slot, to change it.
    fn value_mut(&mut self, index: u32) -> Option<&mut T> {
        due_class(*self.dues().get(at(index))?)?;
        // SAFETY: the class is not vacant, so `put` has written the value (rule 1).
        Some(unsafe { self.values_mut()[at(index)].assume_init_mut() })
    }

    /// Drops every value that is still there.
    fn drop_values(&mut self) {
        if core::mem::needs_drop::<T>() {
            for slot in 0..self.slots() {
                drop(self.take(HEADS + slot));
            }
        }
    }

    /// Arms a slot that nobody else may touch under a new generation.
    #[inline(always)]
    fn arm(&mut self, index: u32, generation: Generation) {
        self.generations_mut()[at(index)] = generation.get();
    }

    /// The generation that an armed slot has.
    #[inline(always)]
    fn generation(&self, index: u32) -> Option<Generation> {
        Generation::new(self.generations()[at(index)])
    }

    /// Whether the slot is armed under this generation and neither fired nor cancelled.
    #[inline(always)]
    fn is_armed(&self, index: u32, generation: Generation) -> bool {
        self.generations().get(at(index)) == Some(&generation.get())
    }

    /// Cancel: decides the race for this arming. The slot is the caller's if true.
    #[inline(always)]
    fn claim(&mut self, index: u32, generation: Generation) -> bool {
        self.is_armed(index, generation)
    }

    /// Expiry: decides the race for this arming. If false, somebody cancelled it and will return
    /// the slot by another way.
    #[inline(always)]
    fn fire(&mut self, _index: u32, _generation: Generation) -> bool {
        true
    }

    /// Changes the generation of an armed slot. If false, it was cancelled meanwhile.
    #[inline(always)]
    fn rearm(&mut self, index: u32, from: Generation, to: Generation) -> bool {
        debug_assert!(self.is_armed(index, from), "slot {index} is not armed");
        self.arm(index, to);
        true
    }

    /// Ends an arming after `claim` or `fire`.
    #[inline(always)]
    fn disarm(&mut self, index: u32) {
        self.generations_mut()[at(index)] = 0;
    }
}
