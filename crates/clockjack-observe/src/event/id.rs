//! Identifiers in events: small numbers that stay small in the encoding.
//!
//! An event identifies a slot without its generation: within one ring, the order of the records
//! distinguishes two users of a slot.

use core::fmt;

use super::field::Field;

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident($int:ident))*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl From<$int> for $name {
            fn from(number: $int) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl Field for $name {
            const BITS: u32 = $int::BITS;
            const MAX: u64 = $int::MAX as u64;

            #[inline(always)]
            fn to_raw(self) -> u64 {
                u64::from(self.0)
            }

            #[inline(always)]
            fn from_raw(raw: u64) -> Option<Self> {
                $int::try_from(raw).ok().map(Self)
            }
        }
    )*};
}

ids! {
    /// A worker of the executor; [`WorkerId::OUTSIDE`] for a thread that is not a worker.
    WorkerId(u16)
    /// A shard: a timer wheel of the executor, or a job table of the scheduler.
    ShardId(u16)
    /// A task, by its index in the registry. Indices are used again after a task has ended.
    TaskId(u32)
}

impl WorkerId {
    /// Not a worker: an interrupt, the watchdog, or a thread of the application.
    pub const OUTSIDE: Self = Self(u16::MAX);
}

/// An actor: the number of its executor, and the index of its task there. Printed as `index`, or as
/// `node.index` if the executor is not that of the default dispatcher.
///
/// Six bytes with an alignment of two, so that two of them fit into an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    node: u16,
    index_high: u16,
    index_low: u16,
}

impl ActorId {
    /// No actor: the parent of the root.
    pub const NONE: Self = Self::new(u16::MAX, u32::MAX);

    /// The actor that is the task with this index on the executor `node`.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the index is cut into halves")]
    pub const fn new(node: u16, index: u32) -> Self {
        Self { node, index_high: (index >> 16) as u16, index_low: index as u16 }
    }

    /// The number of its executor.
    #[must_use]
    pub const fn node(self) -> u16 {
        self.node
    }

    /// Its task.
    #[must_use]
    pub const fn task(self) -> TaskId {
        TaskId((self.index_high as u32) << 16 | self.index_low as u32)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => f.write_str("none"),
            Self { node: 0, .. } => write!(f, "{}", self.task()),
            Self { node, .. } => write!(f, "{node}.{}", self.task()),
        }
    }
}

impl Field for ActorId {
    const BITS: u32 = 48;
    const MAX: u64 = (1 << 48) - 1;

    fn to_raw(self) -> u64 {
        u64::from(self.task().0) | u64::from(self.node) << 32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is the index")]
    fn from_raw(raw: u64) -> Option<Self> {
        let node = u16::try_from(raw >> 32).ok()?;
        Some(Self::new(node, raw as u32))
    }
}
