//! The encoding of an event in sixteen bytes, and the errors of decoding.

use core::{error, fmt};

/// An event as sixteen bytes, little-endian: the kind's code, then the fields without gaps, then
/// zeros.
///
/// ```text
///   byte   0      1 ..                                         15
///        +------+---------+---------+-- - - --+----------------+
///        | kind | field 1 | field 2 |         | zeros          |
///        +------+---------+---------+-- - - --+----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoded([u8; 16]);

impl Encoded {
    /// The size of every encoded event.
    pub const BYTES: usize = 16;

    /// Wraps bytes from a file or a network; [`Event::decode`](super::Event::decode) checks them.
    #[inline(always)]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[inline(always)]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The code of the kind, whether it is known or not.
    #[inline(always)]
    #[must_use]
    pub const fn kind_code(self) -> u8 {
        self.0[0]
    }

    #[inline(always)]
    pub(crate) const fn from_word(word: u128) -> Self {
        Self(word.to_le_bytes())
    }

    #[inline(always)]
    pub(crate) const fn word(self) -> u128 {
        u128::from_le_bytes(self.0)
    }
}

const _: () = assert!(size_of::<Encoded>() == Encoded::BYTES);

/// Sixteen bytes that are not an event. Permanent: the same bytes never decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    code: u8,
    invalid: InvalidPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidPart {
    Kind,
    Field(&'static str),
    Padding,
}

impl DecodeError {
    pub(crate) const fn kind(code: u8) -> Self {
        Self { code, invalid: InvalidPart::Kind }
    }

    pub(crate) const fn field(code: u8, name: &'static str) -> Self {
        Self { code, invalid: InvalidPart::Field(name) }
    }

    pub(crate) const fn padding(code: u8) -> Self {
        Self { code, invalid: InvalidPart::Padding }
    }

    /// The code of the kind that was found.
    #[must_use]
    pub const fn kind_code(&self) -> u8 {
        self.code
    }

    /// Whether this version does not know the code: a newer writer, or damaged data.
    #[must_use]
    pub const fn is_unknown_kind(&self) -> bool {
        matches!(self.invalid, InvalidPart::Kind)
    }

    /// Whether a field holds a number that is not a value of its type.
    #[must_use]
    pub const fn is_bad_field(&self) -> bool {
        matches!(self.invalid, InvalidPart::Field(_))
    }

    /// Whether a bit is set beyond the last field.
    #[must_use]
    pub const fn is_bad_padding(&self) -> bool {
        matches!(self.invalid, InvalidPart::Padding)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.invalid {
            InvalidPart::Kind => write!(f, "no event has the code {:#04x}", self.code),
            InvalidPart::Field(name) => {
                write!(f, "field {name} of an event with code {:#04x} is invalid", self.code)
            }
            InvalidPart::Padding => {
                write!(f, "bits are set beyond the fields of an event with code {:#04x}", self.code)
            }
        }
    }
}

impl error::Error for DecodeError {}
