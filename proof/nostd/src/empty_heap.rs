//! A heap without memory: code that allocates compiles and is refused at run time.

use core::{
    alloc::{GlobalAlloc, Layout},
    ptr::null_mut,
};

#[global_allocator]
static HEAP: Empty = Empty;

struct Empty;

// SAFETY: `alloc` may return null, which means that the allocation failed; so nothing is ever
// handed to `dealloc`.
unsafe impl GlobalAlloc for Empty {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
