//! The system's allocator, with counts beside it.
//!
//! What each thread asks for is counted apart, so that tests beside one another do not disturb;
//! memory that is handed to another thread is missed there. What all threads have out is counted as
//! well, the harness of the tests included, for binaries with one test.
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

/// What was asked of the allocator by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Blocks that were given out. One that changes its size is given out and given back.
    pub allocations: u64,
    /// Blocks that were given back.
    pub frees: u64,
    /// Bytes given out and not given back. Negative if memory from before was freed.
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

/// An allocator that counts. A test that counts makes it the global one of its binary.
#[derive(Debug)]
pub struct Counting {
    used: AtomicUsize,
    most: AtomicUsize,
}

// The counts of all threads publish nothing, so they are relaxed. Who reads them has learnt by ways
// of its own, which order the counts behind them, that the work is done.
impl Counting {
    /// Nothing is counted yet.
    #[expect(clippy::new_without_default, reason = "it is for a static, so it is const")]
    #[must_use]
    pub const fn new() -> Self {
        Self { used: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// What this thread has asked for so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        COUNTS.get()
    }

    /// Blocks that this thread was given so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.counts().allocations
    }

    /// What `work` gives, and what it asked for on this thread.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> (R, Counts) {
        let before = self.counts();
        let result = work();
        (result, self.counts().since(before))
    }

    /// Bytes that all threads together have out.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// The most bytes that were out at once since the last [`forget_most`](Self::forget_most).
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// Looks for the most from now on.
    pub fn forget_most(&self) {
        self.most.store(self.used_bytes(), Relaxed);
    }

    fn give_out(&self, bytes: usize) {
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

/// A thread that is past its thread-local storage is not measured any more.
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
        // SAFETY: `pointer` came from `System` by one of the other two, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // In this order, for both blocks may be out at once.
        self.give_out(size);
        self.take_back(layout.size());
        // SAFETY: `pointer` came from `System` with this `layout`; the caller promises that `size`
        // is not zero and does not overflow when rounded up to the alignment.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
