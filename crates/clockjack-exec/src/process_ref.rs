//! A reference to a process: what its messages are is known.
#![expect(unsafe_code, reason = "knows the message type of a task")]

use core::{fmt, marker::PhantomData};

use crate::{
    error::SendError,
    exit::JoinError,
    join::JoinHandle,
    payload::Payload,
    pid::Pid,
    signal::ProcessSignal,
    state::State,
    task::{TaskRef, process},
};

/// An address of a process that takes messages of type `M`.
///
/// Dropping it does not stop the process. It keeps the process's result, once there is one, until
/// the last reference goes.
pub struct ProcessRef<M> {
    task: TaskRef,
    _message: PhantomData<fn(M)>,
}

// SAFETY: messages that are sent go to the thread that runs the process, so `M: Send` is needed;
// the rest is a counted reference, which is `Send` and `Sync`.
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
    /// The message comes back if the process has ended or as many wait as its limit allows.
    pub fn tell(&self, message: M) -> Result<(), SendError<M>> {
        // SAFETY: by the contract of `new`.
        unsafe { process::tell(&self.task, message) }
    }

    /// The process's name.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.pid()
    }

    /// Asks the process to stop, by an event. False if it has ended.
    pub fn cancel(&self, reason: &'static str) -> bool {
        self.task.signal(ProcessSignal::Cancel { reason }).is_ok()
    }

    /// Ends the process at its next turn: a step that is under way is never interrupted. False if
    /// it has ended.
    pub fn terminate(&self) -> bool {
        self.task.header().terminate()
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// What it does, at about this time.
    #[must_use]
    pub fn state(&self) -> State {
        self.task.header().state()
    }

    /// Waits for its end and takes its result. A result can be taken once: the second who asks is
    /// told so by [`JoinError`]; use monitors where many want to know.
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
