//! The store of fixed capacity: no allocation, can be a static.

use core::{fmt, mem::MaybeUninit};

use super::{
    level::HEADS,
    store::{Columns, Far},
};

const HEADS_USIZE: usize = HEADS as usize;

/// A store for `N` timers of which `FAR` may lie beyond the wheel's range, all inside itself.
///
/// 20 bytes and the value for each of `N`, 24 for each of `FAR`, 1.6 KiB for the list heads.
pub struct Fixed<T, const N: usize, const FAR: usize = N> {
    next: Links<N>,
    prev: Links<N>,
    due: [u32; N],
    generation: [u64; N],
    values: [MaybeUninit<T>; N],
    far: [Far; FAR],
    far_len: usize,
    slots: u32,
}

/// One column of links: list heads first, timers behind them, addressed as one.
#[derive(Clone)]
struct Links<const N: usize> {
    heads: [u32; HEADS_USIZE],
    timers: [u32; N],
}

impl<const N: usize> Links<N> {
    /// Every list head linked to itself: all lists are empty.
    const fn new() -> Self {
        let mut heads = [0; HEADS_USIZE];
        let mut head = 0;
        while head < HEADS {
            heads[head as usize] = head;
            head += 1;
        }
        Self { heads, timers: [0; N] }
    }

    #[inline(always)]
    fn get(&self, index: u32) -> u32 {
        match index.checked_sub(HEADS) {
            Some(slot) => self.timers[slot as usize],
            None => self.heads[index as usize],
        }
    }

    #[inline(always)]
    fn set(&mut self, index: u32, link: u32) {
        match index.checked_sub(HEADS) {
            Some(slot) => self.timers[slot as usize] = link,
            None => self.heads[index as usize] = link,
        }
    }
}

impl<T, const N: usize, const FAR: usize> Fixed<T, N, FAR> {
    /// An empty store. A `const fn`, so a wheel can be a static's initial value.
    pub const fn new() -> Self {
        const { assert!(N < (u32::MAX - HEADS) as usize, "slots are numbered by 32 bits") };
        const { assert!(FAR <= N, "no more timers can be far than there can be") };
        Self {
            next: Links::new(),
            prev: Links::new(),
            due: [0; N],
            generation: [0; N],
            values: [const { MaybeUninit::uninit() }; N],
            far: [Far::NONE; FAR],
            far_len: 0,
            slots: 0,
        }
    }
}

impl<T, const N: usize, const FAR: usize> Default for Fixed<T, N, FAR> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize, const FAR: usize> Columns<T> for Fixed<T, N, FAR> {
    #[inline(always)]
    fn slots(&self) -> u32 {
        self.slots
    }

    fn slots_max(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "asserted in `new`")]
        let max = N as u32;
        max
    }

    #[inline]
    fn add_slot(&mut self) -> bool {
        if self.slots == self.slots_max() {
            return false;
        }
        self.slots += 1;
        true
    }

    fn reset(&mut self) {
        self.slots = 0;
    }

    #[inline(always)]
    fn next(&self, index: u32) -> u32 {
        self.next.get(index)
    }

    #[inline(always)]
    fn set_next(&mut self, index: u32, next: u32) {
        self.next.set(index, next);
    }

    #[inline(always)]
    fn prev(&self, index: u32) -> u32 {
        self.prev.get(index)
    }

    #[inline(always)]
    fn set_prev(&mut self, index: u32, prev: u32) {
        self.prev.set(index, prev);
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
        &self.far[..self.far_len]
    }

    #[inline(always)]
    fn far_mut(&mut self) -> &mut [Far] {
        &mut self.far[..self.far_len]
    }

    fn far_max(&self) -> usize {
        FAR
    }

    fn far_push(&mut self, entry: Far) -> bool {
        let Some(room) = self.far.get_mut(self.far_len) else { return false };
        *room = entry;
        self.far_len += 1;
        true
    }

    fn far_pop(&mut self) -> Option<Far> {
        self.far_len = self.far_len.checked_sub(1)?;
        Some(self.far[self.far_len])
    }
}

impl<T, const N: usize, const FAR: usize> Drop for Fixed<T, N, FAR> {
    fn drop(&mut self) {
        self.drop_values();
    }
}

impl<T, const N: usize, const FAR: usize> fmt::Debug for Fixed<T, N, FAR> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixed")
            .field("slots", &self.slots)
            .field("slots_max", &N)
            .field("far", &self.far_len)
            .finish_non_exhaustive()
    }
}
