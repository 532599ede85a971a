//! Calls user code where a panic has no caller to go to: drops, wakers, texts of failures.
//!
//! A worker must survive all of them. Each value is dropped under its own `catch_unwind`, because a
//! second panic during the unwinding of the first aborts the program.

use crate::{
    executor::ExecutorShared,
    exit::{ExitReason, PanicPayload},
    task::{self, TaskResult},
};

/// The exit reason for a failure whose text panics.
const NO_TEXT: &str = "a failure whose text panicked";

impl ExecutorShared {
    /// Calls what may be user code; counts a panic in it. False if there was one.
    pub(crate) fn catch_panic(&self, call: &mut dyn FnMut()) -> bool {
        let Err(payload) = self.toolbox().catch_unwind(call) else { return true };
        self.count_drop_panic();
        self.drop_panic_payload(payload);
        false
    }

    /// Drops a value of a user.
    pub(crate) fn drop_catching_panic<T>(&self, value: T) {
        let mut value = Some(value);
        self.catch_panic(&mut || drop(value.take()));
    }

    /// Drops the payload of a panic, which may panic again.
    pub(crate) fn drop_panic_payload(&self, payload: PanicPayload) {
        payload.drop_caught(|call| self.toolbox().catch_unwind(call));
    }

    /// The exit reason that other processes get. The text of a failure is user code.
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

    /// Wakes a waker that may be user code.
    pub(crate) fn wake_foreign(&self, waker: core::task::Waker) {
        // The waker of another executor's task calls that executor's toolbox, so it counts as user
        // code.
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
