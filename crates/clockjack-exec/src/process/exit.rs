//! How tasks end: a [`JoinError`] is what the joiner gets instead of a result, and an
//! [`ExitReason`] is what monitors and links get, as in OTP.
//!
//! A `JoinError` is unique: it owns the failure or the payload of the panic. An `ExitReason` is a
//! copy for any number of monitors and links, so it has only the text, reference-counted if it is
//! not static.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
};
use core::{error::Error, fmt};

use clockjack_sync::Arc;
pub use clockjack_sync::panic::PanicPayload;

use crate::{failure::Failure, pid::Pid};

/// Why there is no result of a task: the error of a [`JoinHandle`](crate::JoinHandle).
///
/// Either the task ended without a result, or the result is not available here
/// ([`is_unavailable`](Self::is_unavailable)). Waiting again helps in no case.
///
/// # Examples
///
/// ```
/// use clockjack_exec::{exit::JoinError, failure::Failure};
///
/// let error = JoinError::failed(Failure::msg("no worker left"));
/// assert!(error.is_failed());
/// assert_eq!(error.to_string(), "the process failed: no worker left");
/// assert!(error.reason().is_failure());
/// assert_eq!(error.into_failure().unwrap().to_string(), "no worker left");
/// ```
#[derive(Debug)]
pub struct JoinError(Kind);

#[derive(Debug)]
enum Kind {
    Failed(Failure),
    Panicked(PanicPayload),
    Terminated,
    Cancelled(&'static str),
    LinkDown(Pid, Text),
    AlreadyJoined,
    Refused(Refusal),
}

/// Why a task was never started.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Full,
    Stopping,
    Forked,
}

/// Constructors for executors; they are of no use for others.
#[doc(hidden)]
impl JoinError {
    /// The task returned a failure.
    #[must_use]
    pub const fn failed(failure: Failure) -> Self {
        Self(Kind::Failed(failure))
    }

    /// The task panicked.
    #[must_use]
    pub const fn panicked(payload: PanicPayload) -> Self {
        Self(Kind::Panicked(payload))
    }

    /// The task was terminated.
    #[must_use]
    pub const fn terminated() -> Self {
        Self(Kind::Terminated)
    }

    /// The task was asked to stop, for this reason, and did.
    #[must_use]
    pub const fn cancelled(reason: &'static str) -> Self {
        Self(Kind::Cancelled(reason))
    }

    /// A process that this one was linked to failed, as the text says.
    pub fn link_down(linked: Pid, text: impl Into<Text>) -> Self {
        Self(Kind::LinkDown(linked, text.into()))
    }

    /// The result was taken before.
    #[must_use]
    pub const fn already_joined() -> Self {
        Self(Kind::AlreadyJoined)
    }

    /// The task was not started: the executor has as many as its limits allow.
    #[must_use]
    pub const fn refused_full() -> Self {
        Self(Kind::Refused(Refusal::Full))
    }

    /// The task was not started: the executor was shutting down.
    #[must_use]
    pub const fn refused_stopping() -> Self {
        Self(Kind::Refused(Refusal::Stopping))
    }

    /// The task was not started: this process is a forked child, in which the executor has no
    /// threads.
    #[must_use]
    pub const fn refused_forked() -> Self {
        Self(Kind::Refused(Refusal::Forked))
    }
}

impl JoinError {
    /// Whether the task returned a failure.
    #[must_use]
    pub const fn is_failed(&self) -> bool {
        matches!(self.0, Kind::Failed(_))
    }

    /// Whether the task panicked.
    #[must_use]
    pub const fn is_panicked(&self) -> bool {
        matches!(self.0, Kind::Panicked(_))
    }

    /// Whether the task was terminated.
    #[must_use]
    pub const fn is_terminated(&self) -> bool {
        matches!(self.0, Kind::Terminated)
    }

    /// Whether the task was asked to stop, and did.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Cancelled(_))
    }

    /// Whether the process ended because a linked process failed.
    #[must_use]
    pub const fn is_link_down(&self) -> bool {
        matches!(self.0, Kind::LinkDown(..))
    }

    /// Whether the result is not available: it was taken before, or the task was never started.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        self.is_already_joined() || self.is_refused()
    }

    /// Whether the result was taken before.
    #[must_use]
    pub const fn is_already_joined(&self) -> bool {
        matches!(self.0, Kind::AlreadyJoined)
    }

    /// Whether the task was never started, because there were too many or the executor was shutting
    /// down.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self.0, Kind::Refused(_))
    }

    /// Whether the task was never started because this process is a fork of the one that started
    /// the executor: the threads of the executor exist in the parent only. Permanent.
    #[must_use]
    pub const fn is_forked(&self) -> bool {
        matches!(self.0, Kind::Refused(Refusal::Forked))
    }

    /// The failure that the task returned, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.0 {
            Kind::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Takes out the failure that the task returned, if it did.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        match self.0 {
            Kind::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The message of the panic, if the task panicked.
    #[must_use]
    pub fn panic_message(&self) -> Option<&str> {
        match &self.0 {
            Kind::Panicked(payload) => Some(payload.message()),
            _ => None,
        }
    }

    /// Takes out the payload of the panic, if the task panicked, to resume the panic here.
    #[must_use]
    pub fn into_panic(self) -> Option<PanicPayload> {
        match self.0 {
            Kind::Panicked(payload) => Some(payload),
            _ => None,
        }
    }

    /// The linked process that failed, if that ended this one.
    #[must_use]
    pub const fn linked(&self) -> Option<Pid> {
        match &self.0 {
            Kind::LinkDown(linked, _) => Some(*linked),
            _ => None,
        }
    }

    /// What monitors and links get.
    ///
    /// A task that ends with its executor was terminated. An error that is not an end of a task
    /// counts as a failure.
    #[must_use]
    pub fn reason(&self) -> ExitReason {
        match &self.0 {
            Kind::Failed(failure) => ExitReason::Failed(failure.to_string().into()),
            Kind::Panicked(payload) => ExitReason::Panicked(payload.into()),
            Kind::Terminated => ExitReason::Terminated,
            Kind::Cancelled(reason) => ExitReason::Cancelled(reason),
            Kind::LinkDown(..) => ExitReason::Failed(self.to_string().into()),
            Kind::AlreadyJoined => ExitReason::Failed(ALREADY_JOINED.into()),
            Kind::Refused(refusal) => ExitReason::Failed(refusal.text().into()),
        }
    }
}

const ALREADY_JOINED: &str = "the result of the process was taken before";

impl Refusal {
    const fn text(self) -> &'static str {
        match self {
            Self::Full => "the process was not started: the limit of processes is reached",
            Self::Stopping => "the process was not started: the executor is shutting down",
            Self::Forked => {
                "the process was not started: the threads of the executor are those of the parent \
                 of this forked child"
            }
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(failure) => write!(f, "the process failed: {failure}"),
            Kind::Panicked(payload) => write!(f, "the process panicked: {}", payload.message()),
            Kind::Terminated => f.write_str("the process was terminated"),
            Kind::Cancelled(reason) => write!(f, "the process was cancelled: {reason}"),
            Kind::LinkDown(linked, text) => write!(f, "the linked process {linked} failed: {text}"),
            Kind::AlreadyJoined => f.write_str(ALREADY_JOINED),
            Kind::Refused(refusal) => f.write_str(refusal.text()),
        }
    }
}

impl Error for JoinError {
    /// The cause of the failure. The failure itself is in the text of this error already, and a
    /// caller that prints the whole chain should not print it twice.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure()?.as_error().source()
    }
}

/// How a process ended, as monitors and links get it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// With a result.
    Normal,
    /// With a failure of this text.
    Failed(Text),
    /// With a panic of this text.
    Panicked(Text),
    /// Terminated, without being asked to stop.
    Terminated,
    /// Asked to stop, for this reason.
    Cancelled(&'static str),
}

const _: () = assert!(size_of::<ExitReason>() <= 3 * size_of::<usize>());

impl ExitReason {
    /// Whether links are notified: after a failure, a panic or a termination, that is, unless the
    /// process ended with a result or was asked to stop.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Panicked(_) | Self::Terminated)
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("ended normally"),
            Self::Failed(text) => write!(f, "failed: {text}"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Terminated => f.write_str("terminated"),
            Self::Cancelled(reason) => write!(f, "cancelled: {reason}"),
        }
    }
}

/// A text that can be cloned cheaply: static, or reference-counted.
#[derive(Clone)]
pub struct Text(Source);

#[derive(Clone)]
enum Source {
    Static(&'static str),
    Shared(Arc<Box<str>>),
}

impl Text {
    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Source::Static(text) => text,
            Source::Shared(text) => text,
        }
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(Source::Static(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Source::Shared(Arc::new(text.into_boxed_str())))
    }
}

impl From<&PanicPayload> for Text {
    fn from(payload: &PanicPayload) -> Self {
        match payload.static_message() {
            Some(text) => text.into(),
            None => String::from(payload.message()).into(),
        }
    }
}

/// The text by which a process reports the end of a linked one.
impl From<ExitReason> for Text {
    fn from(reason: ExitReason) -> Self {
        match reason {
            ExitReason::Failed(text) | ExitReason::Panicked(text) => text,
            ExitReason::Cancelled(reason) => reason.into(),
            ExitReason::Normal => "ended normally".into(),
            ExitReason::Terminated => "terminated".into(),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
