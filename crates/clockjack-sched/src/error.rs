//! Why a request was refused, and why a handler failed.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
};
use core::fmt;

use clockjack_sync::{Arc, panic::PanicPayload};

/// Why a job was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleErrorKind {
    /// A period of zero, a delay of zero where [`strict_delays`] is set, a delay of more than
    /// [`DELAY_TICKS_MAX`](crate::DELAY_TICKS_MAX) or a period of more than
    /// [`PERIOD_TICKS_MAX`](crate::PERIOD_TICKS_MAX) ticks. Permanent.
    ///
    /// [`strict_delays`]: crate::SchedulerConfig::strict_delays
    InvalidDelay,
    /// The number of live jobs is at its limit. Temporary: until jobs complete or are cancelled.
    QuotaExceeded,
    /// The timer store has no room, and no job of a lower class was found to evict. Temporary:
    /// until timers fire or are cancelled.
    CapacityExceeded,
    /// The runtime is under pressure, and the number of live jobs is at the limit for that, or the
    /// job is of a class that is refused first. Temporary: until the pressure ends.
    Backpressured,
    /// The scheduler was shut down. Permanent.
    Closed,
    /// The receiver has stopped. Permanent.
    ReceiverGone,
    /// The request may have to wait for another thread, and the caller is an interrupt. Permanent
    /// there; possible outside of interrupts.
    CannotWait,
}

impl fmt::Display for ScheduleErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidDelay => "the delay or period is zero or too long",
            Self::QuotaExceeded => "the number of live jobs is at its limit",
            Self::CapacityExceeded => "the timer store has no room",
            Self::Backpressured => "the runtime is under pressure",
            Self::Closed => "the scheduler was shut down",
            Self::ReceiverGone => "the receiver has stopped",
            Self::CannotWait => "an interrupt cannot wait",
        })
    }
}

/// A job that was not accepted. It left no trace; the error contains the payload.
#[derive(Clone, PartialEq, Eq)]
pub struct ScheduleError<T> {
    kind: ScheduleErrorKind,
    value: T,
}

impl<T> ScheduleError<T> {
    /// Creates an error that contains the refused `value`.
    #[must_use]
    pub const fn new(kind: ScheduleErrorKind, value: T) -> Self {
        Self { kind, value }
    }

    /// The reason.
    #[must_use]
    pub const fn kind(&self) -> ScheduleErrorKind {
        self.kind
    }

    /// Returns the payload.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Drops the payload.
    #[must_use]
    pub fn discard(self) -> ScheduleError<()> {
        ScheduleError { kind: self.kind, value: () }
    }

    /// Converts the payload.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> ScheduleError<U> {
        ScheduleError { kind: self.kind, value: f(self.value) }
    }
}

impl<T> fmt::Debug for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not scheduled: {}", self.kind)
    }
}

impl<T> core::error::Error for ScheduleError<T> {}

/// Why a handler failed, as text, because many readers may receive it. A clone allocates nothing.
#[derive(Clone)]
pub struct HandlerError {
    text: Text,
    is_panic: bool,
}

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<String>),
}

impl Text {
    fn new(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Static(text),
            Cow::Owned(text) => Self::Shared(Arc::new(text)),
        }
    }
}

impl HandlerError {
    /// Creates a failure with this text.
    #[must_use]
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: Text::new(text.into()), is_panic: false }
    }

    /// Creates a failure with the text of an error.
    #[must_use]
    pub fn from_display(error: &dyn fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// Creates a failure for a panic that the host has caught.
    #[must_use]
    pub fn panic(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: Text::new(text.into()), is_panic: true }
    }

    pub(crate) fn from_panic(payload: &PanicPayload) -> Self {
        match payload.static_message() {
            Some(text) => Self::panic(text),
            None => Self::panic(payload.message().to_string()),
        }
    }

    /// Whether the handler panicked; otherwise it returned an error.
    #[must_use]
    pub const fn is_panic(&self) -> bool {
        self.is_panic
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.text {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl PartialEq for HandlerError {
    fn eq(&self, other: &Self) -> bool {
        self.is_panic == other.is_panic && self.text() == other.text()
    }
}

impl Eq for HandlerError {}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("text", &self.text())
            .field("is_panic", &self.is_panic)
            .finish()
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_panic {
            write!(f, "panicked: {}", self.text())
        } else {
            f.write_str(self.text())
        }
    }
}

/// Makes `?` work in handlers. For that, this type itself cannot implement
/// [`Error`](core::error::Error).
impl<E: core::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::from_display(&error)
    }
}
