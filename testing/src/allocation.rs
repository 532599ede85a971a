//! The system's allocator with counters.
//!
//! The requests of each thread are counted separately, so that concurrent tests do not disturb each
//! other; memory that moves to another thread is therefore counted on the wrong thread. The
//! allocations and the live bytes of all threads, including the test harness, are counted as well,
//! for binaries with one test.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait")]

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::alloc::System;

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::ZERO) };
}

/// The allocator requests of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Allocated blocks. A reallocation counts as one allocation and one free.
    pub allocations: u64,
    /// Freed blocks.
    pub frees: u64,
    /// Bytes allocated and not freed. Negative if memory that was allocated earlier was freed.
    pub live_bytes: isize,
}

impl Counts {
    const ZERO: Self = Self { allocations: 0, frees: 0, live_bytes: 0 };

    fn since(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            frees: self.frees - before.frees,
            live_bytes: self.live_bytes - before.live_bytes,
        }
    }
}

/// An allocator that counts. A test binary that needs counts makes it the global allocator.
#[derive(Debug)]
pub struct Counting {
    allocated: AtomicUsize,
    used: AtomicUsize,
    most: AtomicUsize,
}

// The counts of all threads publish nothing, so they are relaxed. A reader knows by other
// synchronization, which also orders the counts, that the counted work is complete.
impl Counting {
    /// An allocator with all counts zero.
    #[expect(clippy::new_without_default, reason = "it is for a static, so `new` is const")]
    #[must_use]
    pub const fn new() -> Self {
        let (used, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { allocated: AtomicUsize::new(0), used, most }
    }

    /// The requests of this thread so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        COUNTS.get()
    }

    /// The allocations of this thread so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.counts().allocations
    }

    /// Calls `work`; returns its result and the requests that it made on this thread.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> (R, Counts) {
        let before = self.counts();
        let result = work();
        (result, self.counts().since(before))
    }

    /// The allocations of all threads so far.
    #[must_use]
    pub fn allocations_of_all(&self) -> usize {
        self.allocated.load(Relaxed)
    }

    /// The live bytes of all threads.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// The maximum of the live bytes since the last [`forget_most`](Self::forget_most).
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// Resets the maximum to the current value.
    pub fn forget_most(&self) {
        self.most.store(self.used_bytes(), Relaxed);
    }

    fn give_out(&self, bytes: usize) {
        self.allocated.fetch_add(1, Relaxed);
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.most.fetch_max(used, Relaxed);
        count(|so_far| Counts {
            allocations: so_far.allocations + 1,
            live_bytes: so_far.live_bytes + bytes.cast_signed(),
            ..so_far
        });
    }

    fn take_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        count(|so_far| Counts {
            frees: so_far.frees + 1,
            live_bytes: so_far.live_bytes - bytes.cast_signed(),
            ..so_far
        });
    }
}

/// A thread whose thread-local storage is already destroyed is not counted.
fn count(change: impl FnOnce(Counts) -> Counts) {
    let _ = COUNTS.try_with(|counts| counts.set(change(counts.get())));
}

// SAFETY: every call goes to `System` with the same arguments; counting touches no memory of the
// caller and neither allocates nor unwinds (the cell is const-initialised, without destructor, and
// no count comes near the end of its range).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.give_out(layout.size());
        // SAFETY: the caller's promise (`layout` is not of size zero) is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.take_back(layout.size());
        // SAFETY: `pointer` came from `System` by `alloc` or `realloc`, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // In this order, because both blocks may be live concurrently.
        self.give_out(size);
        self.take_back(layout.size());
        // SAFETY: `pointer` came from `System` with this `layout`; the caller promises that `size`
        // is not zero and does not overflow when rounded up to the alignment.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
