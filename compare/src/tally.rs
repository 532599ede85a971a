//! The allocator of this program: the system's, with two sets of counters.
//!
//! One set belongs to a thread, for subjects that work on the measuring thread; memory that moves
//! to another thread is not counted there. The other set counts all threads, for subjects with
//! workers. Both are off unless a run counts, so that timed runs pay two untaken branches per
//! allocation, equally for every subject.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait by definition")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::alloc::System;

/// The counted requests to the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Allocations and reallocations.
    pub(crate) n_allocs: u64,
    /// Bytes allocated and not freed. Negative if memory that was allocated earlier was freed.
    pub(crate) live_bytes: i64,
}

/// Counts on this thread from its construction until it is dropped.
#[derive(Debug)]
pub(crate) struct Counting {
    /// The cells belong to the thread that started counting.
    _not_send: core::marker::PhantomData<*const ()>,
}

impl Counting {
    /// Starts counting on this thread, from zero.
    ///
    /// # Panics
    ///
    /// If this thread already counts: the two counts would be mixed.
    pub(crate) fn begin() -> Self {
        assert!(!ACTIVE.get(), "this thread counts its allocations already");
        TALLY.set(Tally::default());
        ACTIVE.set(true);
        Self { _not_send: core::marker::PhantomData }
    }

    /// The counts so far.
    pub(crate) fn tally(&self) -> Tally {
        TALLY.get()
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        ACTIVE.set(false);
    }
}

/// Counts the allocations of all threads from its construction until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct CountingAll {
    first: Tally,
}

impl CountingAll {
    /// Starts counting.
    ///
    /// # Panics
    ///
    /// If all threads are already counted: the first to stop would stop both.
    pub(crate) fn begin() -> Self {
        // Relaxed, here and below: the counts publish nothing. The measured threads receive the
        // work and return its result through other synchronization, which also orders the counts.
        let was_active = ALL_ACTIVE.swap(true, Ordering::Relaxed);
        assert!(!was_active, "the allocations of all threads are counted already");
        Self { first: Self::totals() }
    }

    /// Stops counting.
    pub(crate) fn stop(self) -> Tally {
        let last = Self::totals();
        Tally {
            n_allocs: last.n_allocs - self.first.n_allocs,
            live_bytes: last.live_bytes - self.first.live_bytes,
        }
    }

    fn totals() -> Tally {
        Tally {
            n_allocs: ALL_ALLOCS.load(Ordering::Relaxed),
            live_bytes: ALL_LIVE_BYTES.load(Ordering::Relaxed),
        }
    }
}

impl Drop for CountingAll {
    fn drop(&mut self) {
        ALL_ACTIVE.store(false, Ordering::Relaxed);
    }
}

static ALL_ACTIVE: AtomicBool = AtomicBool::new(false);
static ALL_ALLOCS: AtomicU64 = AtomicU64::new(0);
static ALL_LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

thread_local! {
    // Constant and without a destructor: reading them never allocates, not even the first time, and
    // they can be read until the thread exits.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static TALLY: Cell<Tally> = const { Cell::new(Tally { n_allocs: 0, live_bytes: 0 }) };
}

/// The system's allocator with the counters.
#[derive(Debug)]
pub(crate) struct TallyAllocator;

#[inline]
fn note(n_allocs: u64, given: usize, taken: usize) {
    // A `Layout` is at most `isize::MAX` bytes, so neither cast changes a value.
    let grown = given as i64 - taken as i64;
    if ACTIVE.get() {
        let tally = TALLY.get();
        TALLY.set(Tally {
            n_allocs: tally.n_allocs + n_allocs,
            live_bytes: tally.live_bytes + grown,
        });
    }
    if ALL_ACTIVE.load(Ordering::Relaxed) {
        ALL_ALLOCS.fetch_add(n_allocs, Ordering::Relaxed);
        ALL_LIVE_BYTES.fetch_add(grown, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to `System`, which fulfils the contract of the trait;
// the counters neither allocate nor unwind (the sums cannot overflow: a thread would have to
// allocate 2^63 bytes).
unsafe impl GlobalAlloc for TallyAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller promises a layout of non-zero size, which is what `System` asks.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller promises a layout of non-zero size, which is what `System` asks.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(0, 0, layout.size());
        // SAFETY: the caller promises that `block` came from this allocator with this `layout`;
        // this allocator gives out only what `System` gave it for the same layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(1, new_size, layout.size());
        // SAFETY: the caller promises that `block` came from this allocator with this `layout`,
        // and so from `System`, that `new_size` is not zero, and that it does not overflow
        // `isize` when rounded up to the alignment.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, CountingAll, Tally};
    use core::hint::black_box;

    #[test]
    fn counts_allocations_and_live_bytes_of_boxes_and_growing_vectors() {
        let counting = Counting::begin();
        let boxed = black_box(Box::new([0_u8; 100]));
        assert_eq!(counting.tally(), Tally { n_allocs: 1, live_bytes: 100 });
        let mut grown: Vec<u8> = black_box(Vec::with_capacity(10));
        grown.reserve_exact(30);
        assert_eq!(counting.tally(), Tally { n_allocs: 3, live_bytes: 130 });
        let zeroed = black_box(vec![0_u64; 4]);
        assert_eq!(counting.tally(), Tally { n_allocs: 4, live_bytes: 162 });
        drop((boxed, grown, zeroed));
        assert_eq!(counting.tally(), Tally { n_allocs: 4, live_bytes: 0 });
    }

    #[test]
    fn nothing_is_counted_before_and_after() {
        let before = black_box(vec![0_u8; 50]);
        let counting = Counting::begin();
        assert_eq!(counting.tally(), Tally::default());
        drop(counting);
        let after = black_box(vec![0_u8; 50]);
        let counting = Counting::begin();
        drop((before, after));
        assert_eq!(counting.tally(), Tally { n_allocs: 0, live_bytes: -100 });
    }

    #[test]
    fn another_thread_does_not_disturb_the_tally() {
        let counting = Counting::begin();
        let before = std::thread::scope(|scope| {
            let other = scope.spawn(|| black_box(vec![0_u8; 1 << 20]).len());
            // Starting a thread allocates on this thread; the allocations of the other thread must
            // not be counted.
            let before = counting.tally();
            assert_eq!(other.join().expect("the thread only allocates"), 1 << 20);
            before
        });
        assert!(before.live_bytes < 1 << 20, "{before:?}");
        assert!(counting.tally().live_bytes < 1 << 20, "{:?}", counting.tally());
    }

    #[test]
    fn the_count_of_all_threads_holds_what_each_of_them_asked_for() {
        let counting = CountingAll::begin();
        std::thread::scope(|scope| {
            let boxes = || (0..1_000_u64).map(|n| *black_box(Box::new(n))).sum::<u64>();
            let others = [scope.spawn(boxes), scope.spawn(boxes)];
            for other in others {
                assert_eq!(other.join().expect("the thread only allocates"), 499_500);
            }
        });
        // Other tests of this process run concurrently, so there may be more.
        let tally = counting.stop();
        assert!(tally.n_allocs >= 2_000, "{tally:?}");
    }

    #[test]
    #[should_panic(expected = "counts its allocations already")]
    fn counting_twice_at_once_is_refused() {
        let _first = Counting::begin();
        let _second = Counting::begin();
    }
}
