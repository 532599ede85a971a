//! Why a timer was not armed, with the value that it was to hold.

use core::{error::Error, fmt};

use clockjack_time::InsertError;

/// A timer that was not armed.
///
/// Trying again helps if it [is busy](Self::is_busy), and later if there [was no
/// room](Self::is_full); never after the table was [closed](Self::is_closed).
pub struct ArmError<T> {
    reason: Reason,
    value: Option<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Closed,
    Full,
    Busy,
}

impl<T> ArmError<T> {
    #[cold]
    pub(super) const fn closed(value: Option<T>) -> Self {
        Self { reason: Reason::Closed, value }
    }

    #[cold]
    pub(super) fn full(full: InsertError<T>) -> Self {
        let reason = if full.is_busy() { Reason::Busy } else { Reason::Full };
        Self { reason, value: Some(full.into_inner()) }
    }

    /// The table is closed.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.reason, Reason::Closed)
    }

    /// The shard has as many timers as its capacity allows.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.reason, Reason::Full)
    }

    /// Another thread held the shard, and its inbox was full: try again.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self.reason, Reason::Busy)
    }

    /// The value of the timer. `None` only if the table was closed while the timer was being armed:
    /// then the next thread that holds the shard drops the value.
    pub fn into_inner(self) -> Option<T> {
        self.value
    }
}

impl<T> fmt::Debug for ArmError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArmError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for ArmError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Closed => "the timer was not armed: the executor was closed",
            Reason::Full => "the timer was not armed: the shard is at its capacity",
            Reason::Busy => "the timer was not armed: the inbox is full until the shard is polled",
        })
    }
}

impl<T> Error for ArmError<T> {}
