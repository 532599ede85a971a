//! A waker that ends the sleep of an executor's thread.
#![expect(unsafe_code, reason = "a waker is a pointer and four functions")]

use core::{
    mem::ManuallyDrop,
    task::{RawWaker, RawWakerVTable, Waker},
};

use crate::engine_ref::EngineRef;

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// Wakes the one thread of an executor without seats.
pub(crate) fn waker(engine: &EngineRef) -> Waker {
    // SAFETY: the functions are thread-safe and count a reference for each waker.
    unsafe { Waker::from_raw(raw(engine.clone())) }
}

fn raw(engine: EngineRef) -> RawWaker {
    RawWaker::new(EngineRef::into_raw(engine), &TABLE)
}

/// # Safety
///
/// The data is that of a waker of this module, whose reference is not given up.
unsafe fn borrowed(data: *const ()) -> ManuallyDrop<EngineRef> {
    // SAFETY: the data came from `into_raw`.
    ManuallyDrop::new(unsafe { EngineRef::from_raw(data) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: by the contract of a waker.
    let engine = unsafe { borrowed(data) };
    raw(EngineRef::clone(&engine))
}

unsafe fn wake(data: *const ()) {
    // SAFETY: by the contract of a waker.
    let engine = ManuallyDrop::into_inner(unsafe { borrowed(data) });
    engine.host().unpark(0);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: by the contract of a waker.
    unsafe { borrowed(data) }.host().unpark(0);
}

unsafe fn release(data: *const ()) {
    // SAFETY: by the contract of a waker; its reference is given up.
    drop(ManuallyDrop::into_inner(unsafe { borrowed(data) }));
}
