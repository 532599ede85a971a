//! The system allocator with a counter per thread.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait")]

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};
use std::alloc::System;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Allocations and re-allocations of this thread so far.
pub(crate) fn count() -> u64 {
    COUNT.get()
}

struct Counting;

/// A thread whose thread-local storage is already destroyed is not measured.
fn add_one() {
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to `System` with the same arguments; counting touches no memory of the
// caller and neither allocates nor unwinds (`COUNT` is const-initialised and has no destructor).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add_one();
        // SAFETY: the caller's promise (`layout` is not of size zero) is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` through `alloc` or `realloc` with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add_one();
        // SAFETY: `pointer` came from `System` with this `layout`; the caller promises that `size`
        // is not zero and does not overflow when rounded up to the alignment.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_counted_and_arithmetic_is_not() {
        let before = count();
        core::hint::black_box(1 + core::hint::black_box(1));
        assert_eq!(count(), before);
        core::hint::black_box(Box::new(7));
        assert_eq!(count(), before + 1);
    }
}
