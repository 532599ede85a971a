//! Calling what is the user's where a panic has nobody to go to: drops, wakers, texts of failures.
//!
//! A worker must survive all of them. Each value is dropped under a guard of its own, because of
//! two that panic in one drop the second aborts.

use crate::{
    executor::ExecutorShared,
    exit::{ExitReason, PanicPayload},
    task::{self, TaskResult},
};

/// What monitors are told of a failure that cannot be written.
const NO_TEXT: &str = "a failure whose text panicked";

impl ExecutorShared {
    /// Calls what may be user code; a panic in it is counted. False if there was one.
    pub(crate) fn catch_panic(&self, call: &mut dyn FnMut()) -> bool {
        let Err(payload) = self.toolbox().catch_unwind(call) else { return true };
        self.count_drop_panic();
        self.drop_panic_payload(payload);
        false
    }

    /// Drops something of a user's.
    pub(crate) fn drop_catching_panic<T>(&self, value: T) {
        let mut value = Some(value);
        self.catch_panic(&mut || drop(value.take()));
    }

    /// Drops what was thrown, which may throw again.
    pub(crate) fn drop_panic_payload(&self, payload: PanicPayload) {
        let mut payload = Some(payload);
        if let Err(again) = self.toolbox().catch_unwind(&mut || drop(payload.take())) {
            // Who knows what that does when it is dropped.
            core::mem::forget(again);
        }
    }

    /// What others are told of an end. The text of a failure is user code.
    pub(crate) fn reason_of(&self, ending: &TaskResult) -> ExitReason {
        if !matches!(ending, TaskResult::Error(exit) if exit.is_failed()) {
            return ending.reason();
        }
        let mut reason = None;
        let caught = self.toolbox().catch_unwind(&mut || reason = Some(ending.reason()));
        if let Err(payload) = caught {
            self.drop_panic_payload(payload);
        }
        reason.unwrap_or_else(|| ExitReason::Failed(NO_TEXT.into()))
    }

    /// Wakes somebody whose waker may be user code.
    pub(crate) fn wake_foreign(&self, waker: core::task::Waker) {
        // That of another executor's process calls that one's toolbox.
        if task::header_of(&waker).is_some_and(|header| header.is_of(self)) {
            waker.wake();
            return;
        }
        let mut waker = Some(waker);
        self.catch_panic(&mut || {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        });
    }
}
