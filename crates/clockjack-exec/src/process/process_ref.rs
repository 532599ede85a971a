//! A reference to a process with a known message type.
#![expect(unsafe_code, reason = "knows the message type of a task")]

use core::{fmt, marker::PhantomData};

use crate::{
    error::SendError,
    exit::JoinError,
    payload::Payload,
    pid::Pid,
    process::signal::ProcessSignal,
    state::State,
    task::join::JoinHandle,
    task::{TaskRef, process},
};

/// A reference to a process that takes messages of type `M`.
///
/// Dropping it does not stop the process. The result of the process is kept until the last
/// reference is dropped.
pub struct ProcessRef<M> {
    task: TaskRef,
    _message: PhantomData<fn(M)>,
}

// SAFETY: messages go to the thread that runs the process, so `M: Send` is needed; the rest is a
// counted reference, which is `Send` and `Sync`.
unsafe impl<M: Send> Send for ProcessRef<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for ProcessRef<M> {}

impl<M: 'static> ProcessRef<M> {
    /// # Safety
    ///
    /// The cell is that of a process with this message type.
    pub(crate) unsafe fn new(task: TaskRef) -> Self {
        Self { task, _message: PhantomData }
    }

    /// Sends a message. It never waits.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the process has ended or its mailbox is full.
    pub fn tell(&self, message: M) -> Result<(), SendError<M>> {
        // SAFETY: by the contract of `new`.
        unsafe { process::tell(&self.task, message) }
    }

    /// The pid of the process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.pid()
    }

    /// Asks the process to stop, by an event. False if it has ended.
    pub fn cancel(&self, reason: &'static str) -> bool {
        self.task.signal(ProcessSignal::Cancel { reason }).is_ok()
    }

    /// Ends the process instead of its next step: a running step is never interrupted. False if it
    /// has ended.
    pub fn terminate(&self) -> bool {
        self.task.header().terminate()
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// What the process does, at about this time.
    #[must_use]
    pub fn state(&self) -> State {
        self.task.header().state()
    }

    /// A handle that waits for the end of the process and takes its result. The result can be taken
    /// once: the second joiner gets a [`JoinError`]; use monitors if several callers need to know.
    pub fn join(&self) -> JoinHandle<Payload> {
        if self.task.header().state.claim_join() {
            JoinHandle::new(self.task.clone())
        } else {
            JoinHandle::refused(JoinError::already_joined())
        }
    }
}

impl<M> Clone for ProcessRef<M> {
    fn clone(&self) -> Self {
        Self { task: self.task.clone(), _message: PhantomData }
    }
}

impl<M> PartialEq for ProcessRef<M> {
    fn eq(&self, other: &Self) -> bool {
        self.task.as_ptr() == other.task.as_ptr()
    }
}

impl<M> Eq for ProcessRef<M> {}

impl<M> fmt::Debug for ProcessRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProcessRef").field(&self.task.pid()).finish()
    }
}
