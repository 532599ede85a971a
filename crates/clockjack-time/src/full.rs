//! The refusal of a timer for want of room, with the value that was refused.

use core::{error::Error, fmt};

/// There was no room for a timer; what it was to be armed with comes back.
///
/// Permanent until something fires or is cancelled, except for [`is_busy`](Self::is_busy), which
/// passes as soon as the owner of the shard has polled it, and for [`is_closed`](Self::is_closed),
/// which never passes.
pub struct Full<T> {
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

impl<T> Full<T> {
    #[cold]
    pub(crate) const fn store(value: T) -> Self {
        Self { kind: Kind::Store, value }
    }

    #[cold]
    pub(crate) const fn overflow(value: T) -> Self {
        Self { kind: Kind::Overflow, value }
    }

    /// A refusal that passes, for whatever queues timers on their way to a wheel.
    #[cold]
    #[must_use]
    pub const fn busy(value: T) -> Self {
        Self { kind: Kind::Inbox, value }
    }

    /// A refusal that does not pass, for whatever was closed.
    #[cold]
    #[must_use]
    pub const fn closed(value: T) -> Self {
        Self { kind: Kind::Closed, value }
    }

    /// As many timers are armed as there may be.
    #[must_use]
    pub const fn is_capacity(&self) -> bool {
        matches!(self.kind, Kind::Store)
    }

    /// The deadline lies beyond the wheel's range, and as many such timers are armed as there may
    /// be. A nearer deadline would have been accepted.
    #[must_use]
    pub const fn is_overflow(&self) -> bool {
        matches!(self.kind, Kind::Overflow)
    }

    /// The shard was held by another thread, and its inbox is full for the moment: try again.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self.kind, Kind::Inbox)
    }

    /// The shard was closed: trying again does not help.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed)
    }

    /// What was refused.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The same refusal without the value, for passing on.
    pub fn discard(self) -> Full<()> {
        Full { kind: self.kind, value: () }
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Store => "no room for another timer: the wheel is at its capacity",
            Kind::Overflow => "no room for another far timer: the overflow is at its capacity",
            Kind::Inbox => "no room for another remote timer: the inbox is full until it is polled",
            Kind::Closed => "no timers are taken any more: the shard is closed",
        })
    }
}

impl<T> Error for Full<T> {}
