//! The join handle of blocking work: a future of the result of a closure.
//!
//! The handle and the job share one slot under a lock. The job stores the result, takes the waker,
//! releases the lock and then wakes; the handle reads the slot before it stores a waker. Both
//! accesses are under the lock, so either the handle sees the result or the job sees the waker.
//! No user code runs under the lock.

use core::{
    fmt, mem,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_exec::{JoinError, PanicPayload, poll_leaf};

use super::state::BlockingJob;

/// Why there is no result if the pool dropped the closure.
const DROPPED: &str = "the pool was shut down before the closure started";

/// A future of the result of a closure on a thread for blocking work.
///
/// If the closure panics, the result is a [`JoinError`] with the payload of the panic. If the pool
/// is shut down before the closure starts, the closure is dropped, and the error is
/// [cancelled](JoinError::is_cancelled). A running closure cannot be cancelled: dropping the handle
/// detaches the closure, and its result is dropped when it is available.
///
/// The handle may be awaited anywhere, also outside the pool. A caller may stop awaiting at any
/// time and await again later; the result is not lost.
#[must_use = "the closure runs without being awaited, but its result and its panic are not seen"]
pub struct BlockingHandle<T> {
    slot: Arc<Slot<T>>,
}

/// What the handle and the job share.
struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    Waiting(Option<Waker>),
    Finished(Result<T, JoinError>),
    Taken,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code under this lock leaves the state inconsistent when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> BlockingHandle<T> {
    /// Whether the closure has finished, so that awaiting returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !matches!(*self.slot.lock(), State::Waiting(_))
    }
}

impl<T> Future for BlockingHandle<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_leaf(cx, |cx| self.poll_slot(cx))
    }
}

impl<T> BlockingHandle<T> {
    fn poll_slot(&self, cx: &Context<'_>) -> Poll<Result<T, JoinError>> {
        // Cloned and dropped outside the lock, because a waker may run user code.
        let mut waker = Some(cx.waker().clone());
        let mut state = self.slot.lock();
        if let State::Waiting(waiting) = &mut *state {
            mem::swap(waiting, &mut waker);
            drop(state);
            drop(waker);
            return Poll::Pending;
        }
        let before = mem::replace(&mut *state, State::Taken);
        drop(state);
        Poll::Ready(match before {
            State::Finished(result) => result,
            State::Waiting(_) | State::Taken => Err(JoinError::already_joined()),
        })
    }
}

impl<T> fmt::Debug for BlockingHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_finished = self.is_finished();
        f.debug_struct("BlockingHandle").field("is_finished", &is_finished).finish_non_exhaustive()
    }
}

/// A closure whose result goes to a [`BlockingHandle`].
pub(super) struct JobWithHandle<F, T> {
    work: F,
    completer: Completer<T>,
}

impl<F, T> JobWithHandle<F, T> {
    pub(super) fn new(work: F) -> (Self, BlockingHandle<T>) {
        let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
        let handle = BlockingHandle { slot: Arc::clone(&slot) };
        (Self { work, completer: Completer(slot) }, handle)
    }

    /// Returns the closure, which does not run.
    pub(super) fn into_work(self) -> F {
        self.work
    }
}

impl<F, T> BlockingJob for JobWithHandle<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn run(self: Box<Self>) -> bool {
        let Self { work, completer } = *self;
        // `AssertUnwindSafe`: a panic can break only the closure's own state, which is dropped.
        let result = catch_unwind(AssertUnwindSafe(work));
        let panicked = result.is_err();
        completer
            .complete(result.map_err(|payload| JoinError::panicked(PanicPayload::new(payload))));
        panicked
    }
}

/// Stores the result; if it is dropped without a result, the closure was dropped by the pool.
struct Completer<T>(Arc<Slot<T>>);

impl<T> Completer<T> {
    fn complete(&self, result: Result<T, JoinError>) {
        let mut state = self.0.lock();
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Finished(result);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        // Has no effect after a result was stored.
        self.complete(Err(JoinError::cancelled(DROPPED)));
    }
}
