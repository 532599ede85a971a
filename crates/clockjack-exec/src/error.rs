//! The errors of executors. An error returns the refused value to the caller, never prints it, and
//! puts no bound on its type.
//!
//! Only executors create these errors, so their constructors are hidden from the documentation;
//! they are public because the executors are in more than one crate.

use alloc::{boxed::Box, string::ToString as _};
use core::{error::Error, fmt};

use crate::failure::Failure;

/// A message that was not sent, with the message.
///
/// *Full* is temporary: trying again helps after the receiver has taken a message. The others are
/// permanent.
///
/// # Examples
///
/// ```
/// use clockjack_exec::error::SendError;
///
/// let refused = SendError::full("hello");
/// assert!(refused.is_full());
/// assert_eq!(refused.to_string(), "message not sent: the mailbox is full");
/// assert_eq!(refused.into_inner(), "hello");
/// ```
pub struct SendError<M> {
    kind: SendKind,
    message: M,
}

#[derive(Clone, Copy, Debug)]
enum SendKind {
    Full,
    Stopped,
    Unknown,
    WrongType,
}

#[doc(hidden)]
impl<M> SendError<M> {
    /// The mailbox is full.
    #[cold]
    #[must_use]
    pub const fn full(message: M) -> Self {
        Self { kind: SendKind::Full, message }
    }

    /// The process has ended.
    #[cold]
    #[must_use]
    pub const fn stopped(message: M) -> Self {
        Self { kind: SendKind::Stopped, message }
    }

    /// There is no process with this pid.
    #[cold]
    #[must_use]
    pub const fn unknown(message: M) -> Self {
        Self { kind: SendKind::Unknown, message }
    }

    /// The process takes messages of another type.
    #[cold]
    #[must_use]
    pub const fn wrong_type(message: M) -> Self {
        Self { kind: SendKind::WrongType, message }
    }
}

impl<M> SendError<M> {
    /// Whether the mailbox was full; temporary.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.kind, SendKind::Full)
    }

    /// Whether the process has ended; permanent.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.kind, SendKind::Stopped)
    }

    /// Whether there is no process with this pid; permanent, because a pid is never used again.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self.kind, SendKind::Unknown)
    }

    /// Whether the process takes messages of another type; permanent.
    #[must_use]
    pub const fn is_wrong_type(&self) -> bool {
        matches!(self.kind, SendKind::WrongType)
    }

    /// The message.
    pub fn into_inner(self) -> M {
        self.message
    }

    /// Drops the message and keeps the reason.
    pub fn discard(self) -> SendError<()> {
        self.map(drop)
    }

    /// The same error with the message mapped to another value.
    pub fn map<N>(self, f: impl FnOnce(M) -> N) -> SendError<N> {
        SendError { kind: self.kind, message: f(self.message) }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendError").field(&self.kind).finish()
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("message not sent: ")?;
        f.write_str(match self.kind {
            SendKind::Full => "the mailbox is full",
            SendKind::Stopped => "the process has stopped",
            SendKind::Unknown => "there is no such process",
            SendKind::WrongType => "the process takes messages of another type",
        })
    }
}

impl<M> Error for SendError<M> {}

/// A process that was not started, with the process if it still exists.
///
/// *Full* is temporary until another process ends; *stopped* is permanent. After a refusal by
/// `init`, its [`failure`](Self::failure) says what helps.
pub struct SubmitError<P> {
    kind: SubmitKind,
    process: Option<P>,
}

#[derive(Debug)]
enum SubmitKind {
    Full,
    Stopped,
    Forked,
    Refused(Failure),
}

#[doc(hidden)]
impl<P> SubmitError<P> {
    /// The executor has as many processes as its limits allow.
    #[cold]
    #[must_use]
    pub const fn full(process: P) -> Self {
        Self { kind: SubmitKind::Full, process: Some(process) }
    }

    /// The executor accepts no more processes.
    #[cold]
    #[must_use]
    pub const fn stopped(process: P) -> Self {
        Self { kind: SubmitKind::Stopped, process: Some(process) }
    }

    /// The executor has no threads in this forked child.
    #[cold]
    #[must_use]
    pub const fn forked(process: P) -> Self {
        Self { kind: SubmitKind::Forked, process: Some(process) }
    }

    /// The process's own `init` failed; the process was closed or is returned.
    #[cold]
    #[must_use]
    pub const fn refused(failure: Failure, process: Option<P>) -> Self {
        Self { kind: SubmitKind::Refused(failure), process }
    }
}

impl<P> SubmitError<P> {
    /// Whether the executor had as many processes as its limits allow; temporary.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.kind, SubmitKind::Full)
    }

    /// Whether the executor accepts no more processes; permanent.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.kind, SubmitKind::Stopped)
    }

    /// Whether this process is a fork of the one that started the executor, whose threads exist in
    /// the parent only; permanent.
    #[must_use]
    pub const fn is_forked(&self) -> bool {
        matches!(self.kind, SubmitKind::Forked)
    }

    /// Whether the process's own `init` failed.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self.kind, SubmitKind::Refused(_))
    }

    /// The failure of `init`, if it failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.kind {
            SubmitKind::Refused(failure) => Some(failure),
            _ => None,
        }
    }

    /// Takes out the failure of `init`, if it failed.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        match self.kind {
            SubmitKind::Refused(failure) => Some(failure),
            _ => None,
        }
    }

    /// The process, unless `init` consumed it and it was closed.
    pub fn into_inner(self) -> Option<P> {
        self.process
    }

    /// Drops the process and keeps the reason.
    pub fn discard(self) -> SubmitError<()> {
        self.map(drop)
    }

    /// The same error with the process mapped to another value.
    pub fn map<Q>(self, f: impl FnOnce(P) -> Q) -> SubmitError<Q> {
        SubmitError { kind: self.kind, process: self.process.map(f) }
    }
}

impl<P> fmt::Debug for SubmitError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubmitError").field(&self.kind).finish()
    }
}

impl<P> fmt::Display for SubmitError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("process not started: ")?;
        match &self.kind {
            SubmitKind::Full => f.write_str("the limit of processes is reached"),
            SubmitKind::Stopped => f.write_str("the executor has shut down"),
            SubmitKind::Forked => f.write_str("the executor has no threads in a forked child"),
            SubmitKind::Refused(failure) => write!(f, "its init failed: {failure}"),
        }
    }
}

impl<P> Error for SubmitError<P> {
    /// The cause of the failure of `init`, which is itself in the text already.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure()?.as_error().source()
    }
}

/// An executor that could not be started, or could not be resized.
///
/// Trying again may help if a thread could not be started; otherwise other arguments are needed.
#[derive(Clone, Debug)]
pub struct StartError(StartKind);

#[derive(Clone, Debug)]
enum StartKind {
    ZeroWorkers,
    TooManyWorkers { workers_max: usize },
    Thread(Box<str>),
    DuplicateCommand(u16),
    Stopped,
    Unsupported(Box<str>),
    NameTaken(Box<str>),
}

#[doc(hidden)]
impl StartError {
    /// The caller requested no workers.
    #[must_use]
    pub const fn zero_workers() -> Self {
        Self(StartKind::ZeroWorkers)
    }

    /// The caller requested more workers than this maximum.
    #[must_use]
    pub const fn too_many_workers(workers_max: usize) -> Self {
        Self(StartKind::TooManyWorkers { workers_max })
    }

    /// The operating system could not start a thread, for this reason.
    #[must_use]
    pub fn thread(says: &dyn fmt::Display) -> Self {
        Self(StartKind::Thread(says.to_string().into()))
    }

    /// Two handlers are for the command with this number.
    #[must_use]
    pub const fn duplicate_command(id: u16) -> Self {
        Self(StartKind::DuplicateCommand(id))
    }

    /// The executor has been shut down.
    #[must_use]
    pub const fn stopped() -> Self {
        Self(StartKind::Stopped)
    }

    /// The platform has no threads for the executor of this name.
    #[must_use]
    pub fn unsupported(name: &str) -> Self {
        Self(StartKind::Unsupported(name.into()))
    }

    /// An executor of this name exists already.
    #[must_use]
    pub fn name_taken(name: &str) -> Self {
        Self(StartKind::NameTaken(name.into()))
    }
}

impl StartError {
    /// Whether the caller requested no workers.
    #[must_use]
    pub const fn is_zero_workers(&self) -> bool {
        matches!(self.0, StartKind::ZeroWorkers)
    }

    /// Whether the caller requested more workers than possible.
    #[must_use]
    pub const fn is_too_many_workers(&self) -> bool {
        matches!(self.0, StartKind::TooManyWorkers { .. })
    }

    /// Whether the operating system could not start a thread.
    #[must_use]
    pub const fn is_thread(&self) -> bool {
        matches!(self.0, StartKind::Thread(_))
    }

    /// Whether there are two handlers for one command.
    #[must_use]
    pub const fn is_duplicate_command(&self) -> bool {
        matches!(self.0, StartKind::DuplicateCommand(_))
    }

    /// Whether the executor had been shut down.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.0, StartKind::Stopped)
    }

    /// Whether this platform cannot have such an executor at all, because it has no threads.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        matches!(self.0, StartKind::Unsupported(_))
    }

    /// Whether an executor of this name exists already.
    #[must_use]
    pub const fn is_name_taken(&self) -> bool {
        matches!(self.0, StartKind::NameTaken(_))
    }

    /// The maximum number of workers, if more were requested.
    #[must_use]
    pub const fn workers_max(&self) -> Option<usize> {
        match self.0 {
            StartKind::TooManyWorkers { workers_max } => Some(workers_max),
            _ => None,
        }
    }

    /// The number of the command that has two handlers, if that is the error.
    #[must_use]
    pub const fn command(&self) -> Option<u16> {
        match self.0 {
            StartKind::DuplicateCommand(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("executor not started or resized: ")?;
        match &self.0 {
            StartKind::ZeroWorkers => f.write_str("it needs at least one worker"),
            StartKind::TooManyWorkers { workers_max } => {
                write!(f, "it can have at most {workers_max} workers")
            }
            StartKind::Thread(reason) => write!(f, "no thread for a worker: {reason}"),
            StartKind::DuplicateCommand(id) => write!(f, "two handlers for command {id}"),
            StartKind::Stopped => f.write_str("it has shut down"),
            StartKind::Unsupported(name) => write!(f, "this platform has no threads for {name}"),
            StartKind::NameTaken(name) => write!(f, "an executor called {name} exists already"),
        }
    }
}

impl Error for StartError {}

/// A timer that was not armed.
///
/// *Full* is temporary until a timer fires or is cancelled; *closed* is permanent. Other threads
/// that use the timers at the same time are no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerError(TimerKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerKind {
    Full,
    Closed,
    NoExecutor,
    Forked,
    Elapsed,
}

#[doc(hidden)]
impl TimerError {
    /// The executor has no threads in this forked child.
    #[must_use]
    pub const fn forked() -> Self {
        Self(TimerKind::Forked)
    }

    /// The time of a time-out has passed.
    #[must_use]
    pub const fn elapsed() -> Self {
        Self(TimerKind::Elapsed)
    }

    /// There is no executor to arm it.
    #[must_use]
    pub const fn no_executor() -> Self {
        Self(TimerKind::NoExecutor)
    }

    /// As many timers are armed as the limits allow.
    #[must_use]
    pub const fn full() -> Self {
        Self(TimerKind::Full)
    }

    /// The executor arms no more timers.
    #[must_use]
    pub const fn closed() -> Self {
        Self(TimerKind::Closed)
    }
}

impl TimerError {
    /// Whether as many timers are armed as the limits allow; temporary until one fires or is
    /// cancelled.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.0, TimerKind::Full)
    }

    /// Whether this process is a fork of the one that started the executor, whose threads exist in
    /// the parent only; permanent.
    #[must_use]
    pub const fn is_forked(&self) -> bool {
        matches!(self.0, TimerKind::Forked)
    }

    /// Whether the time of a [`timeout`](crate::timeout) has passed.
    #[must_use]
    pub const fn is_elapsed(&self) -> bool {
        matches!(self.0, TimerKind::Elapsed)
    }

    /// Whether the executor arms no more timers; permanent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.0, TimerKind::Closed)
    }

    /// Whether no executor was found: the future was awaited outside its tasks, or inside a
    /// combinator that uses its own wakers. Create it by a [`Handle`](crate::Handle) there.
    #[must_use]
    pub const fn is_no_executor(&self) -> bool {
        matches!(self.0, TimerKind::NoExecutor)
    }
}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.0 {
            TimerKind::Elapsed => return f.write_str("the time-out has passed"),
            TimerKind::Full => "the limit of timers is reached",
            TimerKind::Closed => "the executor has shut down",
            TimerKind::Forked => "the executor has no threads in a forked child",
            TimerKind::NoExecutor => "it was neither created by a handle nor awaited in a task",
        };
        write!(f, "timer not armed: {reason}")
    }
}

impl Error for TimerError {}
