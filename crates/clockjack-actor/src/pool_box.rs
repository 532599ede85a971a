//! Values in memory of the system that is used again, by an owning pointer of one word.
//!
//! A value knows an actor, whose system it is; so nothing has to be kept beside it.
#![expect(unsafe_code, reason = "owns a value behind a pointer")]

use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::header::AnyActor;

/// What knows an actor of the system whose memory it takes.
pub(crate) trait InSystem {
    fn member(&self) -> &AnyActor;
}

/// See the [module](self).
pub(crate) struct PoolBox<T: InSystem> {
    ptr: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it is the one owner of its value.
unsafe impl<T: InSystem + Send> Send for PoolBox<T> {}
// SAFETY: as above.
unsafe impl<T: InSystem + Sync> Sync for PoolBox<T> {}

impl<T: InSystem> PoolBox<T> {
    pub(crate) fn new(value: T) -> Self {
        // It keeps the system while the value moves.
        let member = value.member().clone();
        Self { ptr: member.system().memory().make(value), _owns: PhantomData }
    }

    /// The value; its memory is for the next one.
    pub(crate) fn into_inner(self) -> T {
        let ptr = ManuallyDrop::new(self).ptr;
        // SAFETY: it was made with a value, which is taken once, for `self` is not dropped.
        let value = unsafe { ptr.read() };
        // SAFETY: it was made by such memory, and the value was moved out.
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
        // This one is not looked at again.
        drop(Self { ptr: self.ptr, _owns: PhantomData }.into_inner());
    }
}

impl<T: InSystem> fmt::Debug for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBox").finish_non_exhaustive()
    }
}
