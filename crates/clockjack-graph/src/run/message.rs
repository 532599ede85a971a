//! What lies in a channel: a value, and where it came from.

use crate::data::Value;
use crate::describe::Domain;

/// A value on its way.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) value: Value,
    pub(crate) meta: Meta,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Its number in its channel, from one. The channel gives it.
    pub(crate) seq: u64,
    /// The edge whose channel it is in.
    pub(crate) edge: u32,
    /// When it was published: nanoseconds of the domain's time, that of the epoch.
    pub(crate) published_ns: u64,
    /// When it came into the channel.
    pub(crate) received_ns: u64,
    /// The epoch in which it was published.
    pub(crate) epoch: u64,
    /// The message that began it all.
    pub(crate) correlation: MessageId,
    /// The message that led to this one.
    pub(crate) causation: MessageId,
    /// When what it tells of happened.
    pub(crate) stamp: Option<Stamp>,
    /// It was older than the edge's deadline when it was read.
    pub(crate) is_late: bool,
}

/// A message: `edge#seq`. Zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId {
    /// The edge, plus one.
    pub(crate) edge_plus_one: u32,
    /// Its number there.
    pub(crate) seq: u64,
}

/// A point in somebody's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Whose.
    pub domain: Domain,
    /// Nanoseconds.
    pub ns: u64,
}

impl Message {
    /// The same for another reader; `None` for one that has one reader only.
    pub(crate) fn share(&self) -> Option<Self> {
        Some(Self { value: self.value.share()?, meta: self.meta })
    }

    /// Its own name.
    pub(crate) fn id(&self) -> MessageId {
        MessageId { edge_plus_one: self.meta.edge + 1, seq: self.meta.seq }
    }
}
