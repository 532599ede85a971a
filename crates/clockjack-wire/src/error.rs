//! Why a value was not encoded, or bytes were not decoded.

use core::fmt;

use crate::WireId;

/// Why bytes are not a message of the expected type. The same bytes will be refused again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError(DecodeErrorKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeErrorKind {
    UnknownType { hash: u64, expected: WireId },
    UnknownVersion { id: WireId, version: u16, oldest: u16, newest: u16 },
    TooLarge { what: &'static str, n: u64, max: u64 },
    TooDeep,
    Truncated { needed: usize, left: usize },
    Trailing(usize),
    Invalid(&'static str),
    UnknownKind(u8),
}

impl DecodeError {
    pub(crate) const fn new(kind: DecodeErrorKind) -> Self {
        Self(kind)
    }

    /// The bytes have the right length, but not this form: for implementations by hand.
    #[must_use]
    pub const fn invalid(what: &'static str) -> Self {
        Self(DecodeErrorKind::Invalid(what))
    }

    /// The hash of the type is not that of `expected`.
    #[must_use]
    pub const fn unknown_type(hash: u64, expected: WireId) -> Self {
        Self(DecodeErrorKind::UnknownType { hash, expected })
    }

    /// The message has another type than its receiver.
    #[must_use]
    pub const fn is_unknown_type(&self) -> bool {
        matches!(self.0, DecodeErrorKind::UnknownType { .. })
    }

    /// This program cannot read this version of the type: it is newer, or too old.
    #[must_use]
    pub const fn is_unknown_version(&self) -> bool {
        matches!(self.0, DecodeErrorKind::UnknownVersion { .. })
    }

    /// A frame has a kind that this program does not know: it is that of a newer node.
    #[must_use]
    pub const fn is_unknown_kind(&self) -> bool {
        matches!(self.0, DecodeErrorKind::UnknownKind(_))
    }

    /// A length is above a limit, or the value would need too much memory or too many levels.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        matches!(self.0, DecodeErrorKind::TooLarge { .. } | DecodeErrorKind::TooDeep)
    }

    /// The bytes are not an encoded value: they are cut off, go on after the value, or contain
    /// something that no value is encoded as.
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        matches!(
            self.0,
            DecodeErrorKind::Truncated { .. }
                | DecodeErrorKind::Trailing(_)
                | DecodeErrorKind::Invalid(_)
        )
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DecodeErrorKind::UnknownType { hash, expected } => {
                write!(f, "a message of type {hash:#018x} for a receiver of {expected}")
            }
            DecodeErrorKind::UnknownVersion { id, version, oldest, newest } => {
                write!(f, "version {version} of {id}: this program reads {oldest} to {newest}")
            }
            DecodeErrorKind::TooLarge { what, n, max } => {
                write!(f, "{what} of {n}: the limit is {max}")
            }
            DecodeErrorKind::TooDeep => {
                write!(f, "values are nested more than {} levels deep", crate::DEPTH_MAX)
            }
            DecodeErrorKind::Truncated { needed, left } => {
                write!(f, "cut off: {needed} more bytes expected, {left} left")
            }
            DecodeErrorKind::Trailing(n) => write!(f, "{n} bytes follow the value"),
            DecodeErrorKind::Invalid(what) => write!(f, "not a valid {what}"),
            DecodeErrorKind::UnknownKind(kind) => write!(f, "a frame of the unknown kind {kind}"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Why a value cannot be encoded. The error contains the value; another attempt fails too, unless
/// the limit is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodeError<M> {
    kind: EncodeErrorKind,
    value: M,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncodeErrorKind {
    TooLarge { max: usize },
    TooDeep,
    Unsupported(&'static str),
}

impl EncodeError<()> {
    pub(crate) const fn new(kind: EncodeErrorKind) -> Self {
        Self { kind, value: () }
    }

    /// The value has no encoding: for implementations by hand.
    #[must_use]
    pub const fn unsupported(what: &'static str) -> Self {
        Self::new(EncodeErrorKind::Unsupported(what))
    }

    /// The error with the value that could not be encoded.
    #[must_use]
    pub fn with<M>(self, value: M) -> EncodeError<M> {
        EncodeError { kind: self.kind, value }
    }
}

impl<M> EncodeError<M> {
    /// The encoded value would exceed the limit of a message.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        matches!(self.kind, EncodeErrorKind::TooLarge { .. } | EncodeErrorKind::TooDeep)
    }

    /// The value has no encoding.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        matches!(self.kind, EncodeErrorKind::Unsupported(_))
    }

    /// Returns the value.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.value
    }

    /// The same error without the value.
    #[must_use]
    pub fn discard(self) -> EncodeError<()> {
        EncodeError::new(self.kind)
    }
}

impl<M> fmt::Display for EncodeError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            EncodeErrorKind::TooLarge { max } => {
                write!(f, "the message needs more than {max} bytes")
            }
            EncodeErrorKind::TooDeep => {
                write!(f, "values are nested more than {} levels deep", crate::DEPTH_MAX)
            }
            EncodeErrorKind::Unsupported(what) => write!(f, "cannot be encoded: {what}"),
        }
    }
}

/// Without the value: payloads do not reach logs.
impl<M> fmt::Debug for EncodeError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodeError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<M> core::error::Error for EncodeError<M> {}
