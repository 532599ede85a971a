//! What lies in a channel: a value, and where it came from.

use crate::{data::Value, describe::Domain};

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
    /// Of a message that a component is called with: the input, and marks of what was done to it.
    pub(crate) port: u16,
    /// When it was published: nanoseconds of the domain's time, that of the epoch.
    pub(crate) published_ns: u64,
    /// When it came into the channel.
    pub(crate) received_ns: u64,
    /// The message that began it all.
    pub(crate) correlation: MessageId,
    /// Of the stamp, in two fields: an option of it would take eight bytes more.
    pub(crate) stamp_ns: u64,
    pub(crate) stamp_domain: Option<Domain>,
    /// It was older than the edge's deadline when it was read.
    pub(crate) is_late: bool,
}

impl Meta {
    /// That of no message.
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

    /// When what it tells of happened.
    #[inline]
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.stamp_domain.map(|domain| Stamp { domain, ns: self.stamp_ns })
    }

    /// The same, of something that happened then.
    #[inline]
    pub(crate) fn stamped(self, stamp: Option<Stamp>) -> Self {
        match stamp {
            Some(Stamp { domain, ns }) => Self { stamp_ns: ns, stamp_domain: Some(domain), ..self },
            None => Self { stamp_ns: 0, stamp_domain: None, ..self },
        }
    }
}

/// A message: `edge#seq`. Zero is none.
///
/// ```text
/// 63            40 39            0
/// | edge plus one | number there |
/// ```
/// Numbers beyond 2^40 begin anew: they name messages for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId(u64);

const SEQ_BITS: u32 = 40;

impl MessageId {
    #[inline]
    pub(crate) fn new(edge: u32, seq: u64) -> Self {
        Self(((u64::from(edge) + 1) << SEQ_BITS) | (seq & ((1 << SEQ_BITS) - 1)))
    }

    /// Whether it names none.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The edge plus one, and the number there.
    pub(crate) fn pair(self) -> (u32, u64) {
        let edge_plus_one = u32::try_from(self.0 >> SEQ_BITS).expect("24 bits");
        (edge_plus_one, self.0 & ((1 << SEQ_BITS) - 1))
    }
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
    #[inline]
    pub(crate) fn share(&self) -> Option<Self> {
        Some(Self { value: self.value.share()?, meta: self.meta })
    }

    /// The same for another reader; none for one that has one reader only.
    pub(crate) fn shared(&self) -> Self {
        self.share().unwrap_or(const { Self::none() })
    }

    /// What stands where there is no message: its number is none.
    pub(crate) const fn none() -> Self {
        Self { value: Value::UNIT, meta: Meta::NONE }
    }

    /// Whether there is none here. Those in channels, and all that were, have a number.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.meta.seq == 0
    }

    /// Takes the place of one whose value is a number, which needs no care.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: Value, meta: Meta) {
        self.value.put(value);
        self.meta = meta;
    }

    /// Its own name.
    #[inline]
    pub(crate) fn id(&self) -> MessageId {
        MessageId::new(self.meta.edge, self.meta.seq)
    }
}

// Messages are moved at every step of their step_kind: no more than a cache line.
const _: () = assert!(size_of::<Message>() <= 64);
