//! Values in memory of the system that is used again, by an owning pointer of one word.
//!
//! A value knows an actor, whose system it is; so nothing has to be kept beside it.
#![expect(unsafe_code, reason = "owns a value behind a pointer")]

use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::base::AnyActor;

/// What knows an actor of the system whose memory it takes.
pub(crate) trait Home {
    fn home(&self) -> &AnyActor;
}

/// See the [module](self).
pub(crate) struct Pooled<T: Home> {
    place: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it is the one owner of its value.
unsafe impl<T: Home + Send> Send for Pooled<T> {}
// SAFETY: as above.
unsafe impl<T: Home + Sync> Sync for Pooled<T> {}

impl<T: Home> Pooled<T> {
    pub(crate) fn new(value: T) -> Self {
        // It keeps the system while the value moves.
        let home = value.home().clone();
        Self { place: home.system().memory().make(value), _owns: PhantomData }
    }

    /// The value; its memory is for the next one.
    pub(crate) fn into_inner(self) -> T {
        let place = ManuallyDrop::new(self).place;
        // SAFETY: it was made with a value, which is taken once, for `self` is not dropped.
        let value = unsafe { place.read() };
        // SAFETY: it was made by such memory, and the value was moved out.
        unsafe { value.home().system().memory().keep(place) };
        value
    }
}

impl<T: Home> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it owns the value.
        unsafe { self.place.as_ref() }
    }
}

impl<T: Home> Drop for Pooled<T> {
    fn drop(&mut self) {
        // This one is not looked at again.
        drop(Self { place: self.place, _owns: PhantomData }.into_inner());
    }
}

impl<T: Home> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled").finish_non_exhaustive()
    }
}
