//! The items that a full ring passes to its overflow hook.
#![expect(unsafe_code, reason = "moves items out of slots that the owner has claimed")]

use core::fmt;

use super::{CAPACITY, slots::Slots};

/// Items for which a full ring has no room, the oldest first; the newly pushed item comes last.
///
/// Items that are not taken out of it are dropped with it.
pub struct Overflow<'o, T, const N: usize = CAPACITY> {
    /// The items from `next` on, `claimed` of them, are still in their slots and belong to this.
    slots: &'o Slots<T, N>,
    next: u32,
    claimed: u32,
    pushed: Option<T>,
}

impl<'o, T, const N: usize> Overflow<'o, T, N> {
    /// # Safety
    ///
    /// The caller is the owner, has moved the head over the `claimed` items from `next` on, and
    /// pushes nothing while this lives (rule 6).
    pub(super) const unsafe fn new(
        slots: &'o Slots<T, N>,
        next: u32,
        claimed: u32,
        pushed: T,
    ) -> Self {
        Self { slots, next, claimed, pushed: Some(pushed) }
    }
}

impl<T, const N: usize> Iterator for Overflow<'_, T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.claimed == 0 {
            return self.pushed.take();
        }
        let position = self.next;
        self.claimed -= 1;
        self.next = position.wrapping_add(1);
        // SAFETY: by the promise of `new` the head was moved over the item and its slot is
        // untouched; the position was just counted, so it is taken once.
        Some(unsafe { self.slots.take(position) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.claimed as usize + usize::from(self.pushed.is_some());
        (n, Some(n))
    }
}

impl<T, const N: usize> ExactSizeIterator for Overflow<'_, T, N> {}

impl<T, const N: usize> core::iter::FusedIterator for Overflow<'_, T, N> {}

impl<T, const N: usize> Drop for Overflow<'_, T, N> {
    /// Drops the remaining items, also if the drop of one panics.
    fn drop(&mut self) {
        struct DropRemaining<'a, 'o, T, const N: usize>(&'a mut Overflow<'o, T, N>);
        impl<T, const N: usize> Drop for DropRemaining<'_, '_, T, N> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(drop);
            }
        }
        let remaining = DropRemaining(self);
        remaining.0.by_ref().for_each(drop);
    }
}

impl<T, const N: usize> fmt::Debug for Overflow<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflow").field("len", &self.len()).finish_non_exhaustive()
    }
}
