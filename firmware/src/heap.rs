//! The heap: memory of a fixed size, with counters. It can be closed, and then refuses every
//! allocation.

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::{Cell, UnsafeCell},
    mem::MaybeUninit,
    ptr::null_mut,
};

use critical_section::Mutex;
use embedded_alloc::LlffHeap;

use crate::board::HEAP_BYTES;

#[global_allocator]
static HEAP: Counting = Counting {
    heap: LlffHeap::empty(),
    books: Mutex::new(Cell::new(Books { allocations: 0, refused: 0, used_max: 0 })),
    is_shut: Mutex::new(Cell::new(false)),
};

static ARENA: Arena = Arena(UnsafeCell::new(MaybeUninit::uninit()));

#[repr(align(16))]
struct Arena(UnsafeCell<MaybeUninit<[u8; HEAP_BYTES]>>);

// SAFETY: only the heap accesses it, with interrupts disabled; there is one core.
unsafe impl Sync for Arena {}

/// The counters of the heap.
#[derive(Clone, Copy, Debug)]
pub struct Books {
    /// The number of allocations.
    pub allocations: usize,
    /// The number of refused allocations: no memory was left, or the heap was closed.
    pub refused: usize,
    /// The maximum number of bytes in use.
    pub used_max: usize,
}

struct Counting {
    heap: LlffHeap,
    books: Mutex<Cell<Books>>,
    is_shut: Mutex<Cell<bool>>,
}

// SAFETY: memory comes from the inner heap, with the caller's layout, and is freed there.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        critical_section::with(|cs| {
            let block = match self.is_shut.borrow(cs).get() {
                true => null_mut(),
                // SAFETY: the caller guarantees the contract of `alloc`.
                false => unsafe { self.heap.alloc(layout) },
            };
            let books = self.books.borrow(cs);
            let mut entry = books.get();
            if block.is_null() {
                entry.refused += 1;
            } else {
                entry.allocations += 1;
                entry.used_max = entry.used_max.max(self.heap.used());
            }
            books.set(entry);
            block
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the contract of `dealloc`; the block came from this heap.
        unsafe { self.heap.dealloc(block, layout) };
    }
}

/// Gives the heap its memory.
pub(crate) fn init() {
    // SAFETY: the start-up code calls this once, before any allocation; no other code accesses the
    // arena.
    unsafe { HEAP.heap.init(ARENA.0.get() as usize, HEAP_BYTES) };
}

/// The counters so far.
#[must_use]
pub fn books() -> Books {
    critical_section::with(|cs| HEAP.books.borrow(cs).get())
}

/// Prints the size of the heap and the maximum use as facts.
pub fn report() {
    crate::out::fact("arena", HEAP_BYTES as u64);
    crate::out::fact("heap-max", books().used_max as u64);
}

/// The number of bytes in use.
#[must_use]
pub fn used() -> usize {
    HEAP.heap.used()
}

/// Closes the heap or opens it again. While it is closed every allocation is refused; code that
/// cannot handle the refusal stops the program.
pub fn shut(is_shut: bool) {
    critical_section::with(|cs| HEAP.is_shut.borrow(cs).set(is_shut));
}
