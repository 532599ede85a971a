//! The heap: memory of a fixed size, with books. It can be shut, and then refuses everything.

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

// SAFETY: only the heap touches it, which holds off interrupts meanwhile; there is one core.
unsafe impl Sync for Arena {}

/// What has happened on the heap.
#[derive(Clone, Copy, Debug)]
pub struct Books {
    /// How often memory was handed out.
    pub allocations: usize,
    /// How often it was not: there was none left, or the heap was shut.
    pub refused: usize,
    /// The most that was in use at a time, in bytes.
    pub used_max: usize,
}

struct Counting {
    heap: LlffHeap,
    books: Mutex<Cell<Books>>,
    is_shut: Mutex<Cell<bool>>,
}

// SAFETY: memory comes from the heap inside, with the caller's layout, and goes back there.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        critical_section::with(|cs| {
            let block = match self.is_shut.borrow(cs).get() {
                true => null_mut(),
                // SAFETY: by the caller's promise.
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
        // SAFETY: by the caller's promise; it came from there.
        unsafe { self.heap.dealloc(block, layout) };
    }
}

/// Gives the heap its memory.
pub(crate) fn init() {
    // SAFETY: it is called once, by the start-up code, before anything is allocated; the memory is
    // the arena's, which nobody else touches.
    unsafe { HEAP.heap.init(ARENA.0.get() as usize, HEAP_BYTES) };
}

/// What has happened so far.
#[must_use]
pub fn books() -> Books {
    critical_section::with(|cs| HEAP.books.borrow(cs).get())
}

/// Writes the size of the heap and the most that was in use as facts.
pub fn report() {
    crate::out::fact("arena", HEAP_BYTES as u64);
    crate::out::fact("heap-max", books().used_max as u64);
}

/// How many bytes are in use.
#[must_use]
pub fn used() -> usize {
    HEAP.heap.used()
}

/// From here on all memory is refused, or not any more. Who cannot go on without ends the program.
pub fn shut(is_shut: bool) {
    critical_section::with(|cs| HEAP.is_shut.borrow(cs).set(is_shut));
}
