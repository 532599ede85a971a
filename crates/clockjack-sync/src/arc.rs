//! An atomically reference-counted pointer, as `alloc::sync::Arc`, on the atomics of
//! [`primitive`](crate::primitive).
//!
//! It exists on targets without compare-exchange, where `alloc::sync::Arc` does not, and a loom
//! model sees its counting. Strong references only, sized values only, shared access only.
#![expect(unsafe_code, reason = "frees the value when the last pointer is dropped")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// A shared pointer to a value that is dropped with the last pointer.
///
/// # Examples
///
/// ```
/// use clockjack_sync::Arc;
///
/// let one = Arc::new(5);
/// let two = one.clone();
/// assert!(Arc::ptr_eq(&one, &two));
/// drop(one);
/// assert_eq!(*two, 5);
/// ```
pub struct Arc<T> {
    block: NonNull<Block<T>>,
    /// Dropping a pointer may drop a `T`.
    _owns: PhantomData<Block<T>>,
}

struct Block<T> {
    count: AtomicUsize,
    value: T,
}

// SAFETY: a pointer gives `&T` to any thread (needs `T: Sync`), and the thread that drops the last
// pointer drops the `T` (needs `T: Send`).
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above; `&Arc<T>` can be cloned into an `Arc<T>`.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Moves `value` to the heap.
    pub fn new(value: T) -> Self {
        let block = Box::new(Block { count: AtomicUsize::new(1), value });
        Self { block: NonNull::from(Box::leak(block)), _owns: PhantomData }
    }

    /// Whether both point to the same value.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.block == other.block
    }

    /// Whether this is the only pointer to the value. If no other thread can clone this pointer
    /// meanwhile, the answer true stays true.
    #[must_use]
    pub fn is_unique(this: &Self) -> bool {
        // Acquire: pairs with the release of a pointer that was dropped; its uses of the value are
        // over.
        this.block().count.load(Acquire) == 1
    }

    /// The address of the value, which keeps its count until [`from_raw`](Self::from_raw).
    #[must_use]
    pub fn into_raw(this: Self) -> NonNull<T> {
        let this = ManuallyDrop::new(this);
        // SAFETY: the block is alive; the address keeps the provenance of the whole of it.
        let value = unsafe { &raw mut (*this.block.as_ptr()).value };
        // SAFETY: the address of a field of a live block is not null.
        unsafe { NonNull::new_unchecked(value) }
    }

    /// Turns the address back into a pointer.
    ///
    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw), and is turned back once.
    #[must_use]
    pub unsafe fn from_raw(value: NonNull<T>) -> Self {
        // SAFETY: the value is a field of a block, which begins this offset before it, in the same
        // allocation.
        let block = unsafe { value.byte_sub(core::mem::offset_of!(Block<T>, value)) };
        Self { block: block.cast(), _owns: PhantomData }
    }

    /// The value, if this is the last pointer to it; else only drops this pointer. Of several
    /// concurrent calls for all pointers, exactly one returns the value.
    #[must_use = "a value that is not used is dropped"]
    pub fn into_inner(this: Self) -> Option<T> {
        let this = ManuallyDrop::new(this);
        // Release: as in `drop`.
        if this.block().count.fetch_sub(1, Release) != 1 {
            return None;
        }
        // Acquire: as in `drop`.
        this.block().count.load(Acquire);
        // SAFETY: as in `drop`; `this` is not dropped, so the block is freed once.
        Some(unsafe { Box::from_raw(this.block.as_ptr()) }.value)
    }

    fn block(&self) -> &Block<T> {
        // SAFETY: the block came from `Box::leak` in `new`, so the pointer is aligned and valid; it
        // is freed only when the count reaches zero, and `self` is counted. Only shared references
        // to it are made before that.
        unsafe { self.block.as_ref() }
    }
}

impl<T> Clone for Arc<T> {
    /// # Panics
    ///
    /// If there are more than `isize::MAX` pointers, which is possible only with `mem::forget`.
    fn clone(&self) -> Self {
        // Relaxed: the new pointer is made from one that keeps the block alive; sending it to
        // another thread publishes it.
        let before = self.block().count.fetch_add(1, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many references");
        Self { block: self.block, _owns: PhantomData }
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.block().value
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // Release: what this thread did with the value happens before the drop of the value; pairs
        // with the load of the thread that drops the last pointer.
        if self.block().count.fetch_sub(1, Release) != 1 {
            return;
        }
        // Acquire: pairs with the decrements of all other threads, whose release sequence this
        // thread's own decrement continues. A load and not a fence, because ThreadSanitizer does
        // not support fences.
        self.block().count.load(Acquire);
        // SAFETY: the pointer came from `Box::leak` in `new`; the count was one, so no other
        // pointer exists and none can be made, and the load orders every earlier use before this.
        drop(unsafe { Box::from_raw(self.block.as_ptr()) });
    }
}

impl<T: fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
