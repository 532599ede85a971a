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

    /// Whether the time was over before there was an answer. Whether the request was handled is not
    /// known.
    #[must_use]
    pub const fn is_timed_out(&self) -> bool {
        matches!(self.kind, AskErrorKind::TimedOut)
    }

    /// Whether the actor had stopped, or did so before it answered. Permanent.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.kind, AskErrorKind::Stopped)
    }

    /// Whether the actor has dropped the request, or what it was to answer by.
    #[must_use]
    pub const fn is_dropped(&self) -> bool {
        matches!(self.kind, AskErrorKind::Dropped)
    }

    /// Whether the actor has asked itself and waits for the answer, by
    /// [`wait`](crate::Context::wait) or [`wait_mut`](crate::Context::wait_mut), and so would not
    /// see the request before its time is over. Permanent: ask by
    /// [`Context::ask`](crate::Context::ask), which lets it go on.
    #[must_use]
    pub const fn is_to_itself(&self) -> bool {
        matches!(self.kind, AskErrorKind::ToItself)
    }

    /// Whether the ask could not be made: with a time-out of zero, without memory in a sealed
    /// system, without room in a mailbox that nobody waits for or among the timers.
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

    /// Who was asked.
    #[must_use]
    pub const fn target(&self) -> &ActorPath {
        &self.target
    }

    /// The name of the type of the message that asked.
    #[must_use]
    pub const fn message_type(&self) -> &'static str {
        self.message_type
    }

    /// How long the answer might have taken.
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
            AskErrorKind::Stopped => write!(f, "already terminated (time-out {timeout:?})"),
            AskErrorKind::Dropped => write!(f, "it dropped the request (time-out {timeout:?})"),
            AskErrorKind::ToItself => write!(
                f,
                "it is who asks, and takes no messages while it waits (time-out {timeout:?})"
            ),
            AskErrorKind::ZeroTimeout => f.write_str("a time-out of zero leaves no time for it"),
            AskErrorKind::Full => write!(f, "the mailbox is full (time-out {timeout:?})"),
            AskErrorKind::NoTimer => {
                write!(f, "no buffer for another timer (time-out {timeout:?})")
            }
            AskErrorKind::Sealed => write!(f, "the system is sealed (time-out {timeout:?})"),
        }
    }
}

impl Error for AskError {}
