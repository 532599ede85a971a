//! A message in a channel: a value with its metadata.

use crate::{data::Value, describe::ClockDomain};

/// A value with its metadata.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) value: Value,
    pub(crate) meta: Meta,
}

/// The metadata of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Its sequence number in its channel, from one. The channel sets it.
    pub(crate) seq: u64,
    /// The edge whose channel it is in.
    pub(crate) edge: u32,
    /// In a message that a component is called with: the number of the input, with flags.
    pub(crate) port: u16,
    /// When it was published: the time of the epoch, in nanoseconds of the domain's time.
    pub(crate) published_ns: u64,
    /// When it was put into the channel. Before that, the number of the call that published it, if
    /// its publisher is on a chain; else zero.
    pub(crate) received_ns: u64,
    /// The message that began the chain of calls.
    pub(crate) correlation: MessageId,
    /// The timestamp, as two fields: an `Option<Stamp>` would take eight bytes more.
    pub(crate) stamp_ns: u64,
    pub(crate) stamp_domain: Option<ClockDomain>,
    /// It was older than the edge's deadline when it was read.
    pub(crate) is_late: bool,
}

impl Meta {
    /// The metadata of no message.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        edge: 0,
        port: 0,
        published_ns: 0,
        received_ns: 0,
        correlation: MessageId(0),
        stamp_ns: 0,
        stamp_domain: None,
        is_late: false,
    };

    /// The timestamp that its publisher has given.
    #[inline]
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.stamp_domain.map(|domain| Stamp { domain, ns: self.stamp_ns })
    }

    /// The same metadata with this timestamp.
    #[inline]
    pub(crate) fn stamped(self, stamp: Option<Stamp>) -> Self {
        match stamp {
            Some(Stamp { domain, ns }) => Self { stamp_ns: ns, stamp_domain: Some(domain), ..self },
            None => Self { stamp_ns: 0, stamp_domain: None, ..self },
        }
    }
}

/// The id of a message, `edge#seq`; zero: none.
///
/// ```text
/// 63            40 39            0
/// | edge plus one | number there |
/// ```
/// Sequence numbers wrap at 2^40: ids are for people only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId(u64);

const SEQ_BITS: u32 = 40;

impl MessageId {
    #[inline]
    pub(crate) fn new(edge: u32, seq: u64) -> Self {
        Self(((u64::from(edge) + 1) << SEQ_BITS) | (seq & ((1 << SEQ_BITS) - 1)))
    }

    /// Whether it is the id of no message.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The edge plus one, and the sequence number.
    pub(crate) fn pair(self) -> (u32, u64) {
        let edge_plus_one = u32::try_from(self.0 >> SEQ_BITS).expect("24 bits");
        (edge_plus_one, self.0 & ((1 << SEQ_BITS) - 1))
    }
}

/// A timestamp: a point in the time of some clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which clock.
    pub domain: ClockDomain,
    /// Nanoseconds.
    pub ns: u64,
}

impl Message {
    /// Another reference to the same value; `None` if the value allows one reader only.
    #[inline]
    pub(crate) fn share(&self) -> Option<Self> {
        Some(Self { value: self.value.share()?, meta: self.meta })
    }

    /// Another reference to the same value; an empty message if the value allows one reader only.
    pub(crate) fn shared(&self) -> Self {
        self.share().unwrap_or(const { Self::none() })
    }

    /// The same value once more: shared if possible, else copied. An empty message if neither is
    /// possible.
    pub(crate) fn duplicate(&self) -> Self {
        let copied = || Some(Self { value: self.value.copied()?, meta: self.meta });
        self.share().or_else(copied).unwrap_or(const { Self::none() })
    }

    /// An empty place: a message without a sequence number.
    pub(crate) const fn none() -> Self {
        Self { value: Value::UNIT, meta: Meta::NONE }
    }

    /// Whether this is an empty place. Every message that is or was in a channel has a number.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.meta.seq == 0
    }

    /// Overwrites a message whose value is a number and needs no drop.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: Value, meta: Meta) {
        self.value.put(value);
        self.meta = meta;
    }

    /// Its id.
    #[inline]
    pub(crate) fn id(&self) -> MessageId {
        MessageId::new(self.meta.edge, self.meta.seq)
    }
}

// Messages are moved at every step of their way: at most one cache line.
const _: () = assert!(size_of::<Message>() <= 64);
