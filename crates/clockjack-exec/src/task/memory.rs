//! A free-list allocator for the cells of tasks, with size classes.
//!
//! Such allocators are called segregated free lists (Wilson and others, "Dynamic storage
//! allocation: a survey and critical review", 1995).
//!
//! The size classes are sixteen bytes apart. Each has a few free lists, each under a spin lock. A
//! thread tries the lists in order and skips one whose lock is held, so it never waits; if no list
//! has a block, or none has room, it uses the global allocator. Behaviour does not depend on which
//! block a thread gets: nothing is ordered by address.
//!
//! Invariant: a block in a free list was allocated with the layout of its size class, nobody uses
//! it, and its first word is the link to the next block. A free list keeps at most `KEPT_MAX`
//! blocks. The owner of a block may also [return it to the global allocator](release).
#![expect(
    unsafe_code,
    reason = "hands out memory, and links the free blocks through the blocks themselves"
)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::{alloc::Layout, fmt, ptr, ptr::NonNull};

use clockjack_sync::{pad::Padded, spin_lock::SpinLock};

use crate::executor::ExecutorShared;

/// The distance between two size classes, and the alignment of blocks.
const STEP: usize = 16;
/// Larger values use the global allocator.
const SIZE_MAX: usize = 512;
const CLASSES: usize = SIZE_MAX / STEP;
/// The number of free lists per size class: so many threads can use one at the same time.
const FREE_LISTS: usize = 2;
/// How many blocks a free list keeps: as many as come and go in a burst, and no more than some
/// hundred kilobytes.
pub(crate) const KEPT_MAX: u32 = 1024;

/// The allocator; see the [module](self).
pub struct Memory {
    free_lists: [Padded<[SpinLock<FreeList>; CLASSES]>; FREE_LISTS],
}

struct FreeList {
    first: *mut Block,
    len: u32,
}

// SAFETY: nobody else uses the blocks of a free list.
unsafe impl Send for FreeList {}

struct Block {
    next: *mut Block,
}

const _: () = assert!(STEP >= size_of::<Block>() && STEP >= align_of::<Block>());

impl FreeList {
    fn pop(&mut self) -> Option<NonNull<Block>> {
        let block = NonNull::new(self.first)?;
        // SAFETY: nobody else uses a block in a free list, and it begins with its link.
        self.first = unsafe { block.as_ref() }.next;
        self.len -= 1;
        Some(block)
    }

    fn push(&mut self, block: NonNull<Block>) -> bool {
        if self.len >= KEPT_MAX {
            return false;
        }
        // SAFETY: the caller has given the block away; it is large enough, and aligned.
        unsafe { block.write(Block { next: self.first }) };
        self.first = block.as_ptr();
        self.len += 1;
        true
    }
}

/// Moves a value into a block from the global allocator; otherwise as [`Memory::make`].
#[must_use]
pub fn make<T>(value: T) -> NonNull<T> {
    let block = allocate::<T>();
    // SAFETY: it was just allocated for this type.
    unsafe { block.write(value) };
    block
}

/// Returns the block of a value that was moved out or dropped to the global allocator.
///
/// # Safety
///
/// As [`Memory::keep`].
pub unsafe fn release<T>(value: NonNull<T>) {
    // SAFETY: it was allocated with this layout.
    unsafe { dealloc(value.cast().as_ptr(), layout_of::<T>()) };
}

/// How a value of this type is allocated.
const fn layout_of<T>() -> Layout {
    if fits::<T>() {
        match Layout::from_size_align((class::<T>() + 1) * STEP, STEP) {
            Ok(layout) => layout,
            Err(_) => panic!("a class is small"),
        }
    } else {
        Layout::new::<T>()
    }
}

const fn fits<T>() -> bool {
    size_of::<T>() > 0 && size_of::<T>() <= SIZE_MAX && align_of::<T>() <= STEP
}

const fn class<T>() -> usize {
    (size_of::<T>() - 1) / STEP
}

impl ExecutorShared {
    /// The allocator for cells, and for values that live as long as those.
    #[doc(hidden)]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Memory {
    pub(crate) fn new() -> Self {
        let free_list = || SpinLock::new(FreeList { first: ptr::null_mut(), len: 0 });
        let free_lists = core::array::from_fn(|_| Padded(core::array::from_fn(|_| free_list())));
        Self { free_lists }
    }

    /// Moves a value into a block.
    ///
    /// Its owner frees it by [`free`](Self::free) or [`keep`](Self::keep), or by [`release`].
    #[must_use]
    pub fn make<T>(&self, value: T) -> NonNull<T> {
        let found = if fits::<T>() { self.take(class::<T>()) } else { None };
        let Some(block) = found.map(NonNull::cast) else { return make(value) };
        // SAFETY: it was allocated with the layout of the type, and nobody uses it.
        unsafe { block.write(value) };
        block
    }

    fn take(&self, class: usize) -> Option<NonNull<Block>> {
        let mut free_lists = self.free_lists.iter().filter_map(|free_list| free_list.get(class));
        free_lists.find_map(|free_list| free_list.try_with(FreeList::pop)?)
    }

    /// Drops a value, and puts its block into a free list, even if the drop panics.
    ///
    /// # Safety
    ///
    /// It was made by [`make`](Self::make), of this executor or of another, and nobody else uses
    /// it.
    pub unsafe fn free<T>(&self, value: NonNull<T>) {
        let _keep = KeepOnDrop { memory: self, value };
        // SAFETY: by the contract.
        unsafe { value.drop_in_place() };
    }

    /// Puts the block of a value that was moved out or dropped into a free list.
    ///
    /// # Safety
    ///
    /// As [`free`](Self::free); and nobody reads the value any more.
    pub unsafe fn keep<T>(&self, value: NonNull<T>) {
        let block = value.cast::<Block>();
        let put = |free_list: &SpinLock<FreeList>| {
            free_list.try_with(|free_list| free_list.push(block)) == Some(true)
        };
        let mut free_lists =
            self.free_lists.iter().filter_map(|free_list| free_list.get(class::<T>()));
        if !fits::<T>() || !free_lists.any(put) {
            // SAFETY: by the contract.
            unsafe { release(value) };
        }
    }
}

struct KeepOnDrop<'m, T> {
    memory: &'m Memory,
    value: NonNull<T>,
}

impl<T> Drop for KeepOnDrop<'_, T> {
    fn drop(&mut self) {
        // SAFETY: by the contract of `free`, which has dropped the value.
        unsafe { self.memory.keep(self.value) };
    }
}

fn allocate<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0, "what has no size needs no memory") };
    let layout = layout_of::<T>();
    // SAFETY: the layout has a size.
    let block = unsafe { alloc(layout) };
    NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Drop for Memory {
    fn drop(&mut self) {
        for free_list in &mut self.free_lists {
            for (class, free_list) in free_list.iter_mut().enumerate() {
                let Ok(layout) = Layout::from_size_align((class + 1) * STEP, STEP) else {
                    continue;
                };
                while let Some(block) = free_list.get_mut().pop() {
                    // SAFETY: it was allocated with the layout of its size class, and nobody uses
                    // it.
                    unsafe { dealloc(block.as_ptr().cast(), layout) };
                }
            }
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::{boxed::Box, vec::Vec};

    use super::*;

    #[test]
    fn a_block_is_used_again_for_a_value_of_the_same_size() {
        let memory = Memory::new();
        let one = memory.make([1_u64; 9]);
        // SAFETY: it was just made.
        unsafe { memory.free(one) };
        let other = memory.make([2_u8; 70]);
        assert_eq!(other.addr(), one.addr());
        let third = memory.make([3_u8; 70]);
        assert_ne!(third.addr(), one.addr());
        for made in [other, third] {
            // SAFETY: each was made above.
            unsafe { memory.free(made) };
        }
    }

    #[test]
    fn it_keeps_no_more_than_its_bound() {
        let memory = Memory::new();
        let n = KEPT_MAX as usize * FREE_LISTS + 3;
        let all: Vec<_> = (0..n).map(|n| memory.make(n)).collect();
        for made in all {
            // SAFETY: each was made above, and is freed once.
            unsafe { memory.free(made) };
        }
        let kept: u32 = memory
            .free_lists
            .iter()
            .map(|free_list| free_list[0].with(|free_list| free_list.len))
            .sum();
        assert_eq!(kept as usize, n - 3);
    }

    #[test]
    fn what_is_large_or_much_aligned_is_left_to_the_allocator() {
        #[repr(align(64))]
        struct Aligned(u8);
        let memory = Memory::new();
        let large = memory.make([7_u8; SIZE_MAX + 1]);
        // SAFETY: it was just made.
        unsafe { memory.free(large) };
        let aligned = memory.make(Aligned(1));
        assert_eq!(aligned.addr().get() % 64, 0);
        // SAFETY: it was just made.
        assert_eq!(unsafe { aligned.as_ref() }.0, 1);
        // SAFETY: as above.
        unsafe { memory.free(aligned) };
        let n: u32 = memory.free_lists[0]
            .iter()
            .map(|free_list| free_list.with(|free_list| free_list.len))
            .sum();
        assert_eq!(n, 0);
    }

    #[test]
    fn a_value_whose_drop_panics_gives_its_block_back() {
        struct Bomb(#[expect(dead_code, reason = "so that it has a size")] Box<u8>);
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("boom");
            }
        }
        let memory = Memory::new();
        let bomb = memory.make(Bomb(Box::new(1)));
        // SAFETY: it was just made.
        let freed = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| unsafe {
            memory.free(bomb);
        }));
        assert!(freed.is_err());
        let next = memory.make(5_u64);
        assert_eq!(next.addr(), bomb.addr());
        // SAFETY: it was just made.
        unsafe { memory.free(next) };
    }
}
