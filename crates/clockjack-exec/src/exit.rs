//! How processes end: [`JoinError`] is what the one who waits for the result gets in its place, and
//! [`ExitReason`] is what everyone else is told.
//!
//! An exit is one of a kind: it owns the failure or the panic's payload. A reason is a copy for any
//! number of monitors and links, so it has the text only, counted where it is not static.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
};
use core::{any::Any, error::Error, fmt};

use clockjack_sync::Counted;

use crate::{failure::Failure, pid::Pid};

/// Why there is no result of a process.
///
/// Either the process ended without one, or the result cannot be had here
/// ([`is_unavailable`](Self::is_unavailable)). WaitKind again helps in no case.
///
/// # Examples
///
/// ```
/// use clockjack_exec::{exit::JoinError, failure::Failure};
///
/// let exit = JoinError::failed(Failure::msg("no worker left"));
/// assert!(exit.is_failed());
/// assert_eq!(exit.to_string(), "the process failed: no worker left");
/// assert!(exit.reason().is_failure());
/// assert_eq!(exit.into_failure().unwrap().to_string(), "no worker left");
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
    ExecutorGone,
    Refused(Refusal),
}

/// Why a process was never started.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Full,
    Stopping,
}

/// What an executor makes, and nobody else has a use for.
#[doc(hidden)]
impl JoinError {
    /// The process returned a failure.
    #[must_use]
    pub const fn failed(failure: Failure) -> Self {
        Self(Kind::Failed(failure))
    }

    /// The process panicked.
    #[must_use]
    pub const fn panicked(caught: PanicPayload) -> Self {
        Self(Kind::Panicked(caught))
    }

    /// The process was ended without being asked.
    #[must_use]
    pub const fn terminated() -> Self {
        Self(Kind::Terminated)
    }

    /// The process was asked to end, for this reason, and did.
    #[must_use]
    pub const fn cancelled(reason: &'static str) -> Self {
        Self(Kind::Cancelled(reason))
    }

    /// A process that this one was linked to failed, as the text says.
    pub fn link_down(linked: Pid, text: impl Into<Text>) -> Self {
        Self(Kind::LinkDown(linked, text.into()))
    }

    /// The result was handed out before.
    #[must_use]
    pub const fn already_joined() -> Self {
        Self(Kind::AlreadyJoined)
    }

    /// The executor went away with its processes.
    #[must_use]
    pub const fn executor_gone() -> Self {
        Self(Kind::ExecutorGone)
    }

    /// The process was not started: there are as many as there may be.
    #[must_use]
    pub const fn refused_full() -> Self {
        Self(Kind::Refused(Refusal::Full))
    }

    /// The process was not started: the executor was stopping.
    #[must_use]
    pub const fn refused_stopping() -> Self {
        Self(Kind::Refused(Refusal::Stopping))
    }
}

impl JoinError {
    /// Whether the process returned a failure.
    #[must_use]
    pub const fn is_failed(&self) -> bool {
        matches!(self.0, Kind::Failed(_))
    }

    /// Whether the process panicked.
    #[must_use]
    pub const fn is_panicked(&self) -> bool {
        matches!(self.0, Kind::Panicked(_))
    }

    /// Whether the process was ended without being asked.
    #[must_use]
    pub const fn is_terminated(&self) -> bool {
        matches!(self.0, Kind::Terminated)
    }

    /// Whether the process was asked to end, and did.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Cancelled(_))
    }

    /// Whether the process ended because one failed that it was linked to.
    #[must_use]
    pub const fn is_link_down(&self) -> bool {
        matches!(self.0, Kind::LinkDown(..))
    }

    /// Whether the result cannot be had here, however the process ended: it was handed out before,
    /// the executor is gone, or the process was never started.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        self.is_already_joined() || self.is_executor_gone() || self.is_refused()
    }

    /// Whether the result was handed out before.
    #[must_use]
    pub const fn is_already_joined(&self) -> bool {
        matches!(self.0, Kind::AlreadyJoined)
    }

    /// Whether the executor went away with its processes.
    #[must_use]
    pub const fn is_executor_gone(&self) -> bool {
        matches!(self.0, Kind::ExecutorGone)
    }

    /// Whether the process was never started, as there were too many or the executor was stopping.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self.0, Kind::Refused(_))
    }

    /// The failure that the process returned, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.0 {
            Kind::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Takes out the failure that the process returned, if it did.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        match self.0 {
            Kind::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// What the process said when it panicked, if it did.
    #[must_use]
    pub fn panic_message(&self) -> Option<&str> {
        match &self.0 {
            Kind::Panicked(caught) => Some(caught.message()),
            _ => None,
        }
    }

    /// Takes out the panic, if there was one, to let it go on here.
    #[must_use]
    pub fn into_panic(self) -> Option<PanicPayload> {
        match self.0 {
            Kind::Panicked(caught) => Some(caught),
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

    /// What others are told about this end.
    ///
    /// A process that goes down with its executor was terminated; for one that has no end of its
    /// own to tell of, what is wrong counts as a failure.
    #[must_use]
    pub fn reason(&self) -> ExitReason {
        match &self.0 {
            Kind::Failed(failure) => ExitReason::Failed(failure.to_string().into()),
            Kind::Panicked(caught) => ExitReason::Panicked(caught.text()),
            Kind::Terminated | Kind::ExecutorGone => ExitReason::Terminated,
            Kind::Cancelled(reason) => ExitReason::Cancelled(reason),
            Kind::LinkDown(..) => ExitReason::Failed(self.to_string().into()),
            Kind::AlreadyJoined => ExitReason::Failed(ALREADY_JOINED.into()),
            Kind::Refused(refusal) => ExitReason::Failed(refusal.text().into()),
        }
    }
}

const ALREADY_JOINED: &str = "the result of the process was handed out before";

impl Refusal {
    const fn text(self) -> &'static str {
        match self {
            Self::Full => "the process was not started: as many run as there may be",
            Self::Stopping => "the process was not started: the executor is stopping",
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(failure) => write!(f, "the process failed: {failure}"),
            Kind::Panicked(caught) => write!(f, "the process panicked: {}", caught.message()),
            Kind::Terminated => f.write_str("the process was terminated"),
            Kind::Cancelled(reason) => write!(f, "the process was cancelled: {reason}"),
            Kind::LinkDown(linked, text) => write!(f, "the linked process {linked} failed: {text}"),
            Kind::AlreadyJoined => f.write_str(ALREADY_JOINED),
            Kind::ExecutorGone => f.write_str("the executor is gone, and the process with it"),
            Kind::Refused(refusal) => f.write_str(refusal.text()),
        }
    }
}

impl Error for JoinError {
    /// The cause of the failure. The failure itself is in the text of the exit already, and who
    /// writes the whole chain should not get it twice.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure()?.as_error().source()
    }
}

/// A panic that was caught: whatever was thrown.
pub struct PanicPayload(Box<dyn Any + Send>);

impl PanicPayload {
    const NO_TEXT: &str = "a panic with a payload that is no text";

    /// From what `catch_unwind` gives.
    #[must_use]
    pub fn new(payload: Box<dyn Any + Send>) -> Self {
        Self(payload)
    }

    /// What was said in the panic, or that nothing was.
    #[must_use]
    pub fn message(&self) -> &str {
        if let Some(text) = self.0.downcast_ref::<&'static str>() {
            text
        } else if let Some(text) = self.0.downcast_ref::<String>() {
            text
        } else {
            Self::NO_TEXT
        }
    }

    /// What was thrown, for `resume_unwind`.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Any + Send> {
        self.0
    }

    fn text(&self) -> Text {
        match self.0.downcast_ref::<String>() {
            Some(text) => text.clone().into(),
            None => self.0.downcast_ref::<&'static str>().map_or(Self::NO_TEXT, |text| text).into(),
        }
    }
}

impl fmt::Debug for PanicPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PanicPayload").field(&self.message()).finish()
    }
}

/// How a process ended, as monitors and links are told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// With a result.
    Normal,
    /// With a failure of this text.
    Failed(Text),
    /// With a panic of this text.
    Panicked(Text),
    /// WaitTransition without being asked.
    Terminated,
    /// Asked to end, for this reason.
    Cancelled(&'static str),
}

const _: () = assert!(size_of::<ExitReason>() <= 3 * size_of::<usize>());

impl ExitReason {
    /// Whether links are told: after a failure, a panic or a termination, that is whenever the
    /// process neither came to its end nor was asked to.
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

/// A text that many can have: static, or counted.
#[derive(Clone)]
pub struct Text(Source);

#[derive(Clone)]
enum Source {
    Static(&'static str),
    Shared(Counted<Box<str>>),
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
        Self(Source::Shared(Counted::new(text.into_boxed_str())))
    }
}

/// How the other end is told of in a text of one's own.
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
