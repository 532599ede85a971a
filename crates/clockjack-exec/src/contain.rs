//! Calling what is the user's where a panic has nobody to go to: drops, wakers, texts of failures.
//!
//! A worker must survive all of them. Each value is dropped under a guard of its own, because of
//! two that panic in one drop the second aborts.

use crate::{
    cell::{self, Ending},
    engine::Engine,
    exit::{Caught, ExitReason},
};

/// What monitors are told of a failure that cannot be written.
const NO_TEXT: &str = "a failure whose text panicked";

impl Engine {
    /// Calls what may be user code; a panic in it is counted. False if there was one.
    pub(crate) fn contain(&self, call: &mut dyn FnMut()) -> bool {
        let Err(caught) = self.host().guarded(call) else { return true };
        self.count_drop_panic();
        self.discard(caught);
        false
    }

    /// Drops something of a user's.
    pub(crate) fn drop_contained<T>(&self, value: T) {
        let mut value = Some(value);
        self.contain(&mut || drop(value.take()));
    }

    /// Drops what was thrown, which may throw again.
    pub(crate) fn discard(&self, caught: Caught) {
        let mut caught = Some(caught);
        if let Err(again) = self.host().guarded(&mut || drop(caught.take())) {
            // Who knows what that does when it is dropped.
            core::mem::forget(again);
        }
    }

    /// What others are told of an end. The text of a failure is user code.
    pub(crate) fn reason_of(&self, ending: &Ending) -> ExitReason {
        if !matches!(ending, Ending::Exit(exit) if exit.is_failed()) {
            return ending.reason();
        }
        let mut reason = None;
        let guarded = self.host().guarded(&mut || reason = Some(ending.reason()));
        if let Err(caught) = guarded {
            self.discard(caught);
        }
        reason.unwrap_or_else(|| ExitReason::Failed(NO_TEXT.into()))
    }

    /// Wakes somebody whose waker may be user code.
    pub(crate) fn wake_foreign(&self, waker: core::task::Waker) {
        // That of another executor's process calls that one's host.
        if cell::head_of(&waker).is_some_and(|head| head.is_of(self)) {
            waker.wake();
            return;
        }
        let mut waker = Some(waker);
        self.contain(&mut || {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        });
    }
}
