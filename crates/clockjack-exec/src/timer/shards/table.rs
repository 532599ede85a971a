//! An append-only table: entries are added one by one, and all threads read it concurrently.
#![expect(unsafe_code, reason = "entries are shared by address and freed with the table")]

use alloc::boxed::Box;
use core::{marker::PhantomData, ptr};

use clockjack_sync::primitive::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Entries `0..len`, added one after the other, never moved, and freed with the table.
pub(super) struct AppendTable<E> {
    entries: Box<[AtomicPtr<E>]>,
    /// How many indices are claimed: entries from here on are null.
    claimed: AtomicU32,
    /// The table owns the entries, and is shared between threads only if they can be.
    owned: PhantomData<Box<E>>,
}

impl<E: Send + Sync> AppendTable<E> {
    /// An empty table for `len_max` entries.
    pub(super) fn new(len_max: u32) -> Self {
        let entries = (0..len_max).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { entries, claimed: AtomicU32::new(0), owned: PhantomData }
    }

    /// The entry at an index; `None` if it was not added yet.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&E> {
        // Acquire: pairs with the release in `add`, so that the caller sees the entry.
        let entry = self.entries.get(index as usize)?.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null comes from the box in `add`, is never replaced, and is
        // freed only by the drop of `self`, which the result borrows. The entry is only ever
        // shared.
        unsafe { entry.as_ref() }
    }

    /// An index that is above that of every entry that was added before this call.
    pub(super) fn end(&self) -> u32 {
        // Relaxed: a bound for a search. An index that is claimed and has no entry yet is skipped;
        // a thread that must not miss an entry has executed a fence before this (rule 8).
        self.claimed.load(Ordering::Relaxed)
    }

    /// The entries with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &E)> {
        (0..self.end()).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Adds an entry; `None` if the table is full.
    pub(super) fn add(&self, make: impl FnOnce(u32) -> E) -> Option<u32> {
        // Relaxed: claims an index. The pointer publishes the entry.
        let mut index = self.claimed.load(Ordering::Relaxed);
        loop {
            if index as usize == self.entries.len() {
                return None;
            }
            // Relaxed: as above.
            match self.claimed.compare_exchange_weak(
                index,
                index + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => index = now,
            }
        }
        let entry = Box::into_raw(Box::new(make(index)));
        // Release: pairs with the acquire in `get`. A swap, so that the write has one place in the
        // modification order that the closing thread's fence orders.
        self.entries[index as usize].swap(entry, Ordering::AcqRel);
        Some(index)
    }
}

impl<E> Drop for AppendTable<E> {
    fn drop(&mut self) {
        for entry in &self.entries {
            // Relaxed: `&mut self` says that all other users are gone.
            let entry = entry.load(Ordering::Relaxed);
            if !entry.is_null() {
                // SAFETY: `add` made this from a box, it is dropped once, and no reference to it
                // outlives `self`.
                drop(unsafe { Box::from_raw(entry) });
            }
        }
    }
}
