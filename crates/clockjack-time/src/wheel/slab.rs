//! The store that grows.

use alloc::vec::Vec;
use core::{fmt, mem::MaybeUninit};

use super::{
    level::HEADS,
    store::{Columns, Far},
};

/// A store that grows up to a limit: 20 bytes and the value for each timer.
///
/// It never shrinks by itself; [`Wheel::shrink`](super::Wheel::shrink) gives the memory of an
/// empty wheel back.
pub struct Slab<T> {
    next: Vec<u32>,
    prev: Vec<u32>,
    due: Vec<u32>,
    generation: Vec<u64>,
    values: Vec<MaybeUninit<T>>,
    far: Vec<Far>,
    slots_max: u32,
    far_max: usize,
}

impl<T> Slab<T> {
    /// A store for at most `slots_max` timers, of which `far_max` may be in the overflow.
    ///
    /// Numbers beyond what 32-bit indices reach are cut to that.
    pub fn new(slots_max: usize, far_max: usize) -> Self {
        let limit = u32::MAX - HEADS - 1;
        let slots_max = u32::try_from(slots_max).unwrap_or(limit).min(limit);
        Self {
            next: (0..HEADS).collect(),
            prev: (0..HEADS).collect(),
            due: Vec::new(),
            generation: Vec::new(),
            values: Vec::new(),
            far: Vec::new(),
            slots_max,
            far_max: far_max.min(slots_max as usize),
        }
    }
}

impl<T> Columns<T> for Slab<T> {
    #[inline(always)]
    fn slots(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "at most slots_max, which is a u32")]
        let slots = self.due.len() as u32;
        slots
    }

    fn slots_max(&self) -> u32 {
        self.slots_max
    }

    #[inline]
    fn add_slot(&mut self) -> bool {
        if self.slots() == self.slots_max {
            return false;
        }
        self.next.push(0);
        self.prev.push(0);
        self.due.push(0);
        self.generation.push(0);
        self.values.push(MaybeUninit::uninit());
        true
    }

    fn reset(&mut self) {
        *self = Self::new(self.slots_max as usize, self.far_max);
    }

    #[inline(always)]
    fn next(&self, index: u32) -> u32 {
        self.next[index as usize]
    }

    #[inline(always)]
    fn set_next(&mut self, index: u32, next: u32) {
        self.next[index as usize] = next;
    }

    #[inline(always)]
    fn prev(&self, index: u32) -> u32 {
        self.prev[index as usize]
    }

    #[inline(always)]
    fn set_prev(&mut self, index: u32, prev: u32) {
        self.prev[index as usize] = prev;
    }

    #[inline(always)]
    fn dues(&self) -> &[u32] {
        &self.due
    }

    #[inline(always)]
    fn dues_mut(&mut self) -> &mut [u32] {
        &mut self.due
    }

    #[inline(always)]
    fn values(&self) -> &[MaybeUninit<T>] {
        &self.values
    }

    #[inline(always)]
    fn values_mut(&mut self) -> &mut [MaybeUninit<T>] {
        &mut self.values
    }

    #[inline(always)]
    fn generations(&self) -> &[u64] {
        &self.generation
    }

    #[inline(always)]
    fn generations_mut(&mut self) -> &mut [u64] {
        &mut self.generation
    }

    #[inline(always)]
    fn far(&self) -> &[Far] {
        &self.far
    }

    #[inline(always)]
    fn far_mut(&mut self) -> &mut [Far] {
        &mut self.far
    }

    fn far_max(&self) -> usize {
        self.far_max
    }

    fn far_push(&mut self, entry: Far) -> bool {
        if self.far.len() == self.far_max {
            return false;
        }
        self.far.push(entry);
        true
    }

    fn far_pop(&mut self) -> Option<Far> {
        self.far.pop()
    }
}

impl<T> Drop for Slab<T> {
    fn drop(&mut self) {
        self.drop_values();
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("slots", &self.slots())
            .field("slots_max", &self.slots_max)
            .field("far", &self.far.len())
            .finish_non_exhaustive()
    }
}
