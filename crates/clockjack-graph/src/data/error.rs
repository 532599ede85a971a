//! The error of payloads and buffers.

use core::fmt;

/// Bytes that are not a payload, or a buffer that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError(pub(super) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The bytes are not an encoded value of the type.
    Decode { schema: &'static str, reason: &'static str },
    /// A row of an image is longer than the stride.
    Stride { stride: u32, needed: u64 },
    /// There are too few bytes for all rows of an image.
    Bytes { len: usize, needed: u64 },
    /// A pool has reached its limit, and all its buffers are lent.
    Exhausted { wanted: usize, lent: usize, max: usize },
    /// A pool has no buffers of that size.
    TooLarge { wanted: usize, largest: usize },
}

impl DataError {
    /// The bytes are not an encoded value of the type with this [`SCHEMA`](super::Data::SCHEMA).
    #[must_use]
    pub const fn new(schema: &'static str, reason: &'static str) -> Self {
        Self(Kind::Decode { schema, reason })
    }

    /// Whether a pool has reached its limit. A later request may succeed.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self.0, Kind::Exhausted { .. })
    }

    /// Whether a pool has no buffers of the requested size. Permanent.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self.0, Kind::TooLarge { .. })
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Decode { schema, reason } => write!(f, "not a value of `{schema}`: {reason}"),
            Kind::Stride { stride, needed } => {
                write!(f, "a row has {needed} bytes, but the stride is {stride}")
            }
            Kind::Bytes { len, needed } => {
                write!(f, "{needed} bytes are needed, but there are {len}")
            }
            Kind::Exhausted { wanted, lent, max } => {
                write!(f, "pool exhausted: {wanted} bytes requested, {lent} of {max} are lent")
            }
            Kind::TooLarge { wanted, largest } => {
                write!(f, "{wanted} bytes requested, but the largest buffer has {largest}")
            }
        }
    }
}

impl core::error::Error for DataError {}
