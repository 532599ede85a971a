//! An owning pointer, of one word, to a value in pooled memory of the actor system.
//!
//! The value itself refers to an actor of the system, so the pointer needs no reference to the
//! pool.
#![expect(unsafe_code, reason = "owns a value behind a pointer")]

use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::cell::header::AnyActor;

/// A value that refers to an actor of the system from whose pool its memory comes.
pub(crate) trait InSystem {
    fn member(&self) -> &AnyActor;
}

/// See the [module](self).
pub(crate) struct PoolBox<T: InSystem> {
    ptr: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it is the only owner of its value.
unsafe impl<T: InSystem + Send> Send for PoolBox<T> {}
// SAFETY: as above.
unsafe impl<T: InSystem + Sync> Sync for PoolBox<T> {}

impl<T: InSystem> PoolBox<T> {
    pub(crate) fn new(value: T) -> Self {
        // The clone keeps the system alive while the value is moved.
        let member = value.member().clone();
        Self { ptr: member.system().memory().make(value), _owns: PhantomData }
    }

    /// Takes the value; its memory goes back to the pool.
    pub(crate) fn into_inner(self) -> T {
        let ptr = ManuallyDrop::new(self).ptr;
        // SAFETY: the memory was initialized with a value, which is read once, because `self` is
        // not dropped.
        let value = unsafe { ptr.read() };
        // SAFETY: the memory is from this pool, and the value was moved out.
        unsafe { value.member().system().memory().keep(ptr) };
        value
    }
}

impl<T: InSystem> Deref for PoolBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it owns the value.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T: InSystem> Drop for PoolBox<T> {
    fn drop(&mut self) {
        // The original is not used again.
        drop(Self { ptr: self.ptr, _owns: PhantomData }.into_inner());
    }
}

impl<T: InSystem> fmt::Debug for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBox").finish_non_exhaustive()
    }
}
