//! Waiting for the end of a process.
#![expect(unsafe_code, reason = "takes the output from a cell when the state word allows it")]

use core::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_sync::mutant;

use crate::{
    cell::{CellRef, Joinable},
    exit::Exit,
    pid::Pid,
    signal::Signal,
    state::DropJoin,
};

/// What becomes of a process: a future of its result.
///
/// Dropping it detaches: the process goes on, and its result is dropped when it is there. It may be
/// awaited anywhere, also outside the executor.
///
/// # Cancellation
///
/// Awaiting may be given up and taken up again at any time; the result is not lost.
#[must_use = "a process goes on without being joined, but its failure is then not seen"]
pub struct Join<T> {
    state: Wait,
    _output: PhantomData<fn() -> T>,
}

enum Wait {
    Cell { cell: CellRef, has_waker: bool },
    Refused(Exit),
    Over,
}

// SAFETY: the output moves to the thread that polls, so it must be `Send`; the rest is a counted
// reference, which is `Send`.
unsafe impl<T: Send> Send for Join<T> {}
// SAFETY: `&Join` gives access to nothing but the pid and the requests to stop.
unsafe impl<T> Sync for Join<T> {}

impl<T> Unpin for Join<T> {}

impl<T> Join<T> {
    /// The reference has the claim to the output, which is of type `Result<T, Exit>`.
    pub(crate) fn new(cell: CellRef) -> Self {
        Self { state: Wait::Cell { cell, has_waker: false }, _output: PhantomData }
    }

    /// What was never started.
    pub(crate) fn refused(exit: Exit) -> Self {
        Self { state: Wait::Refused(exit), _output: PhantomData }
    }

    /// The process that is waited for; `None` if it was refused, or its result was taken.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        match &self.state {
            Wait::Cell { cell, .. } => Some(cell.pid()),
            _ => None,
        }
    }

    /// Whether the process has ended, so that awaiting does not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.state {
            Wait::Cell { cell, .. } => cell.head().word.is_complete(),
            _ => true,
        }
    }

    /// Asks the process to stop: a future is dropped at its next turn, a process is told by
    /// [`Event::Cancel`](crate::Event::Cancel). The result then says so, unless it was there
    /// before.
    pub fn cancel(&self) {
        if let Wait::Cell { cell, .. } = &self.state {
            drop(cell.signal(Signal::Cancel { reason: "cancelled by who joins" }));
        }
    }

    /// Ends the process at its next turn, whatever it is.
    pub fn abort(&self) {
        if let Wait::Cell { cell, .. } = &self.state {
            cell.head().terminate();
        }
    }

    fn take(&mut self) -> Result<T, Exit> {
        let state = core::mem::replace(&mut self.state, Wait::Over);
        let cell = match state {
            Wait::Cell { cell, .. } => cell,
            Wait::Refused(exit) => return Err(exit),
            Wait::Over => return Err(Exit::already_joined()),
        };
        let head = cell.head();
        let mut output: Option<Result<T, Exit>> = None;
        // SAFETY: the process is complete and this is its joiner, so the output is this thread's;
        // the table is that of the cell, whose output has this type.
        unsafe { (head.vtable.take_output)(head, (&raw mut output).cast()) };
        output.unwrap_or_else(|| Err(Exit::already_joined()))
    }

    /// Leaves a waker, as far as the process has not ended. True if it has.
    fn is_complete_or_leave(cell: &CellRef, has_waker: &mut bool, waker: &Waker) -> bool {
        let head = cell.head();
        if head.word.is_complete() {
            return true;
        }
        if *has_waker {
            // Not even looked at before: the completer may be taking it.
            if head.word.take_back_join_waker().is_err() {
                return true;
            }
            *has_waker = false;
        }
        // SAFETY: what is joined is a future or a process.
        let joiner = unsafe { &Joinable::of(head).joiner };
        // SAFETY: without the bit the slot is the joiner's.
        let old = joiner.with_mut(|slot| unsafe {
            match &mut *slot {
                Some(old) if old.will_wake(waker) || mutant!("join-keeps-waker") => None,
                slot => slot.replace(waker.clone()),
            }
        });
        drop(old);
        if head.word.publish_join_waker().is_err() {
            // SAFETY: without the bit the slot is the joiner's.
            drop(joiner.with_mut(|slot| unsafe { (*slot).take() }));
            return true;
        }
        *has_waker = true;
        false
    }
}

impl<T> Future for Join<T> {
    type Output = Result<T, Exit>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Wait::Cell { cell, has_waker } = &mut self.state
            && !Self::is_complete_or_leave(cell, has_waker, cx.waker())
        {
            return Poll::Pending;
        }
        Poll::Ready(self.take())
    }
}

impl<T> Drop for Join<T> {
    fn drop(&mut self) {
        let Wait::Cell { cell, .. } = &self.state else { return };
        let head = cell.head();
        let DropJoin { output_is_mine, waker_slot_is_mine } = head.word.drop_join();
        if waker_slot_is_mine {
            // SAFETY: what is joined is a future or a process.
            let joiner = unsafe { &Joinable::of(head).joiner };
            // SAFETY: the word says so.
            drop(joiner.with_mut(|slot| unsafe { (*slot).take() }));
        }
        if output_is_mine {
            // SAFETY: the word says so; the table is that of the cell.
            unsafe { (head.vtable.drop_output)(head) };
        }
    }
}

impl<T> fmt::Debug for Join<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join").field("pid", &self.pid()).finish_non_exhaustive()
    }
}
