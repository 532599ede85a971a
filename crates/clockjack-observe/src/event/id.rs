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
    /// A timer shard: one timer wheel with its guard.
    ShardId(u16)
    /// A process, by its index in the registry.
    ProcessId(u32)
    /// An actor cell, by its index.
    ActorId(u32)
    /// A compiled graph.
    GraphId(u16)
    /// A component of a graph.
    ComponentId(u32)
    /// An edge of a graph.
    EdgeId(u32)
    /// A lane of a graph.
    LaneId(u16)
}

impl WorkerId {
    /// Not a worker: an interrupt, the watchdog, or a thread of the application.
    pub const OUTSIDE: Self = Self(u16::MAX);
}

impl ActorId {
    /// No actor: the parent of the root.
    pub const NONE: Self = Self(u32::MAX);
}

/// A timer or a job: a slot in a shard. Printed as `shard/slot`.
///
/// Six bytes with an alignment of two, so that an event with a slot and a `u64` has sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    shard: u16,
    slot_high: u16,
    slot_low: u16,
}

impl SlotId {
    /// The slot `slot` of shard `shard`.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the slot is cut into halves")]
    pub const fn new(shard: ShardId, slot: u32) -> Self {
        Self { shard: shard.0, slot_high: (slot >> 16) as u16, slot_low: slot as u16 }
    }

    /// The shard that contains it.
    #[inline(always)]
    #[must_use]
    pub const fn shard(self) -> ShardId {
        ShardId(self.shard)
    }

    /// The slot in the shard.
    #[inline(always)]
    #[must_use]
    pub const fn slot(self) -> u32 {
        (self.slot_high as u32) << 16 | self.slot_low as u32
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard(), self.slot())
    }
}

impl Field for SlotId {
    const BITS: u32 = 48;
    const MAX: u64 = (1 << 48) - 1;

    #[inline(always)]
    fn to_raw(self) -> u64 {
        u64::from(self.slot()) | u64::from(self.shard) << 32
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is the slot")]
    fn from_raw(raw: u64) -> Option<Self> {
        let shard = u16::try_from(raw >> 32).ok()?;
        Some(Self::new(ShardId(shard), raw as u32))
    }
}
