//! Why an ask has no answer.

use core::{error::Error, fmt, time::Duration};

use crate::ActorPath;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskErrorKind {
    TimedOut,
    Stopped,
    Dropped,
    ToItself,
    ZeroTimeout,
    Full,
    NoTimer,
    Sealed,
}

/// An ask that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskError {
    kind: AskErrorKind,
    target: ActorPath,
    message_type: &'static str,
    timeout: Duration,
}

impl AskError {
    pub(super) fn new(
        kind: AskErrorKind,
        target: ActorPath,
        message_type: &'static str,
        timeout: Duration,
    ) -> Self {
        Self { kind, target, message_type, timeout }
    }

    /// Whether the timeout elapsed before there was an answer. It is unknown whether the request
    /// was handled.
    #[must_use]
    pub const fn is_timed_out(&self) -> bool {
        matches!(self.kind, AskErrorKind::TimedOut)
    }

    /// Whether the actor had stopped, or stopped before it answered. Permanent.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.kind, AskErrorKind::Stopped)
    }

    /// Whether the actor has dropped the request, or its `ReplyTo`.
    #[must_use]
    pub const fn is_dropped(&self) -> bool {
        matches!(self.kind, AskErrorKind::Dropped)
    }

    /// Whether the actor has asked itself and waits for the answer, by
    /// [`wait`](crate::Context::wait) or [`wait_mut`](crate::Context::wait_mut), so that it would
    /// not handle the request before the timeout. Permanent: use
    /// [`Context::ask`](crate::Context::ask), which lets the actor continue.
    #[must_use]
    pub const fn is_to_itself(&self) -> bool {
        matches!(self.kind, AskErrorKind::ToItself)
    }

    /// Whether the ask could not be started: because the timeout is zero, because the system is
    /// sealed and there is no memory, because the mailbox is full and does not allow waiting, or
    /// because there is no room for another timer.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(
            self.kind,
            AskErrorKind::ZeroTimeout
                | AskErrorKind::Full
                | AskErrorKind::NoTimer
                | AskErrorKind::Sealed
        )
    }

    /// The path of the actor that was asked.
    #[must_use]
    pub const fn target(&self) -> &ActorPath {
        &self.target
    }

    /// The name of the request's message type.
    #[must_use]
    pub const fn message_type(&self) -> &'static str {
        self.message_type
    }

    /// The timeout.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, target, message_type, timeout } = self;
        write!(f, "{target} has not answered a message of type {message_type}: ")?;
        match kind {
            AskErrorKind::TimedOut => write!(f, "timed out after {timeout:?}"),
            AskErrorKind::Stopped => write!(f, "already terminated (timeout {timeout:?})"),
            AskErrorKind::Dropped => write!(f, "it dropped the request (timeout {timeout:?})"),
            AskErrorKind::ToItself => write!(
                f,
                "it asks itself, and takes no messages while it waits (timeout {timeout:?})"
            ),
            AskErrorKind::ZeroTimeout => f.write_str("the timeout is zero"),
            AskErrorKind::Full => write!(f, "the mailbox is full (timeout {timeout:?})"),
            AskErrorKind::NoTimer => {
                write!(f, "no room for another timer (timeout {timeout:?})")
            }
            AskErrorKind::Sealed => write!(f, "the system is sealed (timeout {timeout:?})"),
        }
    }
}

impl Error for AskError {}
