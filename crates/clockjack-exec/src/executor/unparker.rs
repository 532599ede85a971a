//! A waker that unparks the thread of a local executor.
#![expect(unsafe_code, reason = "a waker is a pointer and four functions")]

use core::{
    mem::ManuallyDrop,
    task::{RawWaker, RawWakerVTable, Waker},
};

use crate::executor_ref::ExecutorRef;

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// A waker for the one thread of an executor without workers.
pub(crate) fn waker(executor: &ExecutorRef) -> Waker {
    // SAFETY: the functions are thread-safe and count a reference per waker.
    unsafe { Waker::from_raw(raw(executor.clone())) }
}

fn raw(executor: ExecutorRef) -> RawWaker {
    RawWaker::new(ExecutorRef::into_raw(executor), &TABLE)
}

/// # Safety
///
/// The data is that of a waker of this module, which keeps its reference.
unsafe fn borrowed(data: *const ()) -> ManuallyDrop<ExecutorRef> {
    // SAFETY: the data came from `into_raw`.
    ManuallyDrop::new(unsafe { ExecutorRef::from_raw(data) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: by the contract of a waker.
    let executor = unsafe { borrowed(data) };
    raw(ExecutorRef::clone(&executor))
}

unsafe fn wake(data: *const ()) {
    // SAFETY: by the contract of a waker.
    let executor = ManuallyDrop::into_inner(unsafe { borrowed(data) });
    executor.toolbox().unpark(0);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: by the contract of a waker.
    unsafe { borrowed(data) }.toolbox().unpark(0);
}

unsafe fn release(data: *const ()) {
    // SAFETY: by the contract of a waker, which gives its reference away.
    drop(ManuallyDrop::into_inner(unsafe { borrowed(data) }));
}
