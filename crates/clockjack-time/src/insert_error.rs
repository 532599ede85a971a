//! The error of an insert that found no room; it contains the refused value.

use core::{error::Error, fmt};

/// There was no room for a timer; the error contains its value.
///
/// Permanent until a timer fires or is cancelled, except for [`is_busy`](Self::is_busy), which is
/// transient: it ends as soon as the owner of the shard has polled; and for
/// [`is_closed`](Self::is_closed), which never ends.
pub struct InsertError<T> {
    kind: Kind,
    value: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Store,
    Overflow,
    Inbox,
    Closed,
}

impl<T> InsertError<T> {
    #[cold]
    pub(crate) const fn store(value: T) -> Self {
        Self { kind: Kind::Store, value }
    }

    #[cold]
    pub(crate) const fn overflow(value: T) -> Self {
        Self { kind: Kind::Overflow, value }
    }

    /// A transient refusal, for queues of timers in front of a wheel.
    #[cold]
    #[must_use]
    pub const fn busy(value: T) -> Self {
        Self { kind: Kind::Inbox, value }
    }

    /// A permanent refusal, for a shard or a queue that was closed.
    #[cold]
    #[must_use]
    pub const fn closed(value: T) -> Self {
        Self { kind: Kind::Closed, value }
    }

    /// The number of armed timers has reached the capacity.
    #[must_use]
    pub const fn is_capacity(&self) -> bool {
        matches!(self.kind, Kind::Store)
    }

    /// The deadline is beyond the wheel's range, and the overflow has reached its capacity. An
    /// earlier deadline would have been accepted.
    #[must_use]
    pub const fn is_overflow(&self) -> bool {
        matches!(self.kind, Kind::Overflow)
    }

    /// Another thread held the shard, and the inbox is full at the moment: try again.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self.kind, Kind::Inbox)
    }

    /// The shard was closed: trying again does not help.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed)
    }

    /// The refused value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The same refusal without the value.
    pub fn discard(self) -> InsertError<()> {
        InsertError { kind: self.kind, value: () }
    }
}

impl<T> fmt::Debug for InsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for InsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Store => "no room for another timer: the wheel is at its capacity",
            Kind::Overflow => {
                "no room for another timer beyond the range: the overflow is at its capacity"
            }
            Kind::Inbox => "no room for another remote timer: the inbox is full until it is polled",
            Kind::Closed => "the timer is refused: the shard is closed",
        })
    }
}

impl<T> Error for InsertError<T> {}
