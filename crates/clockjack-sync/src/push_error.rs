//! The error of every refused push; it contains the refused value.

use core::{error::Error, fmt};

/// A push that was refused, with the value that was to be pushed.
///
/// *Full* is transient: try again when the consumer has taken something. *Closed* is permanent.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// let mailbox = clockjack_sync::mail::Mailbox::new(1);
/// let _ = mailbox.push('a').unwrap();
/// let refused = mailbox.push('b').unwrap_err();
/// assert!(refused.is_full());
/// assert_eq!(refused.into_inner(), 'b');
///
/// mailbox.close();
/// assert!(mailbox.push('c').unwrap_err().is_closed());
/// # }
/// ```
pub struct PushError<T> {
    value: T,
    refusal: Refusal,
}

/// Why a push is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// All room is taken.
    Full,
    /// Nothing is taken any more.
    Closed,
}

impl<T> PushError<T> {
    pub(crate) const fn new(value: T, refusal: Refusal) -> Self {
        Self { value, refusal }
    }

    /// Whether there was no room; transient.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.refusal, Refusal::Full)
    }

    /// Whether the queue was closed; permanent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.refusal, Refusal::Closed)
    }

    /// The refused value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Drops the refused value and keeps the reason.
    #[must_use]
    pub fn discard(self) -> PushError<()> {
        self.map(drop)
    }

    /// The same refusal with another form of the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> PushError<U> {
        PushError { value: f(self.value), refusal: self.refusal }
    }
}

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PushError").field(&self.refusal).finish()
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.refusal {
            Refusal::Full => "push refused: the queue is full",
            Refusal::Closed => "push refused: the queue is closed",
        })
    }
}

impl<T> Error for PushError<T> {}
