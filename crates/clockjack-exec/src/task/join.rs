//! The join handle: a future of the result of a task.
#![expect(unsafe_code, reason = "takes the output from a task when its state allows that")]

use core::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    exit::JoinError,
    pid::Pid,
    process::signal::ProcessSignal,
    state::JoinHandleDrop,
    task::{JoinableHeader, TaskRef, budget::poll_leaf},
};

/// A future of the result of a task.
///
/// Dropping it detaches the task, which continues; its result is dropped when it is available. The
/// handle may be awaited anywhere, also outside the executor.
///
/// # Cancellation
///
/// A caller may stop awaiting at any time and await again later; the result is not lost.
#[must_use = "a task continues without being joined, but its failure is not seen then"]
pub struct JoinHandle<T> {
    state: Wait,
    _output: PhantomData<fn() -> T>,
}

enum Wait {
    Cell { task: TaskRef, has_waker: bool },
    Refused(JoinError),
    Taken,
}

// SAFETY: the output moves to the thread that polls, so it must be `Send`; the rest is a counted
// reference, which is `Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: `&JoinHandle` gives access only to the pid and the requests to stop.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// The reference has the claim to the output, which is of type `Result<T, JoinError>`.
    pub(crate) fn new(task: TaskRef) -> Self {
        Self { state: Wait::Cell { task, has_waker: false }, _output: PhantomData }
    }

    /// The handle of a task that was refused.
    pub(crate) fn refused(exit: JoinError) -> Self {
        Self { state: Wait::Refused(exit), _output: PhantomData }
    }

    /// The pid of the task; `None` if it was refused, or its result was taken.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        match &self.state {
            Wait::Cell { task, .. } => Some(task.pid()),
            _ => None,
        }
    }

    /// Whether the task has ended, so that awaiting returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.state {
            Wait::Cell { task, .. } => task.header().state.is_complete(),
            _ => true,
        }
    }

    /// Asks the task to stop: a future is dropped instead of its next poll, a process receives
    /// [`Event::Cancel`](crate::Event::Cancel). The result then says so, unless it was available
    /// before.
    pub fn cancel(&self) {
        if let Wait::Cell { task, .. } = &self.state {
            drop(task.signal(ProcessSignal::Cancel { reason: "cancelled by the joiner" }));
        }
    }

    /// Terminates the task instead of its next poll.
    pub fn abort(&self) {
        if let Wait::Cell { task, .. } = &self.state {
            task.header().terminate();
        }
    }

    fn take(&mut self) -> Result<T, JoinError> {
        let state = core::mem::replace(&mut self.state, Wait::Taken);
        let task = match state {
            Wait::Cell { task, .. } => task,
            Wait::Refused(exit) => return Err(exit),
            Wait::Taken => return Err(JoinError::already_joined()),
        };
        let header = task.header();
        let mut output: Option<Result<T, JoinError>> = None;
        // SAFETY: the task is complete and this is its joiner, so this thread owns the output; the
        // vtable is that of the cell, whose output has this type.
        unsafe { (header.vtable.take_output)(header, (&raw mut output).cast()) };
        output.unwrap_or_else(|| Err(JoinError::already_joined()))
    }

    /// Stores a waker, unless the task has ended. Returns true if it has.
    fn is_complete_or_register(task: &TaskRef, has_waker: &mut bool, waker: &Waker) -> bool {
        let header = task.header();
        if header.state.is_complete() {
            return true;
        }
        if *has_waker {
            // The slot must not even be read before this: the completing runner may be taking the
            // waker.
            if header.state.reclaim_join_waker().is_err() {
                return true;
            }
            *has_waker = false;
        }
        // SAFETY: only a future or a process is joined.
        let join_waker = unsafe { &JoinableHeader::of(header).join_waker };
        // SAFETY: without the bit the joiner owns the slot.
        let old = join_waker.with_mut(|slot| unsafe {
            match &mut *slot {
                Some(old) if old.will_wake(waker) => None,
                slot => slot.replace(waker.clone()),
            }
        });
        drop(old);
        if header.state.publish_join_waker().is_err() {
            // SAFETY: without the bit the joiner owns the slot.
            drop(join_waker.with_mut(|slot| unsafe { (*slot).take() }));
            return true;
        }
        *has_waker = true;
        false
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_leaf(cx, |cx| {
            if let Wait::Cell { task, has_waker } = &mut self.state
                && !Self::is_complete_or_register(task, has_waker, cx.waker())
            {
                return Poll::Pending;
            }
            Poll::Ready(self.take())
        })
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let Wait::Cell { task, .. } = &self.state else { return };
        let header = task.header();
        let JoinHandleDrop { owns_output, owns_waker_slot } = header.state.drop_join_handle();
        if owns_waker_slot {
            // SAFETY: only a future or a process is joined.
            let join_waker = unsafe { &JoinableHeader::of(header).join_waker };
            // SAFETY: the state says so.
            drop(join_waker.with_mut(|slot| unsafe { (*slot).take() }));
        }
        if owns_output {
            // SAFETY: the state says so; the vtable is that of the cell.
            unsafe { (header.vtable.drop_output)(header) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("pid", &self.pid()).finish_non_exhaustive()
    }
}
