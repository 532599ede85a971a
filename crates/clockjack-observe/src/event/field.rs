//! The trait of event fields, and the packing of fields into bits.
//!
//! An encoded event is one 128-bit number. The lowest byte is the code of the kind, the fields
//! follow in the order of the table without gaps, the rest is zero.

use core::fmt;

/// A value of at most 64 bits with a total encoding.
///
/// `from_raw(to_raw(v)) == Some(v)`, and `from_raw` accepts exactly the numbers `0..=MAX`.
pub(crate) trait Field: Copy + fmt::Display {
    /// The width in the encoding.
    const BITS: u32;
    /// The largest number that encodes a value.
    const MAX: u64;
    /// Encodes the value as a number.
    fn to_raw(self) -> u64;
    /// Decodes a number, if it encodes a value.
    fn from_raw(raw: u64) -> Option<Self>;
}

macro_rules! integer_fields {
    ($($int:ty)*) => {$(
        impl Field for $int {
            const BITS: u32 = <$int>::BITS;
            const MAX: u64 = <$int>::MAX as u64;

            #[inline(always)]
            fn to_raw(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn from_raw(raw: u64) -> Option<Self> {
                <$int>::try_from(raw).ok()
            }
        }
    )*};
}

integer_fields!(u8 u16 u32 u64);

/// Bits of the code of the kind, at the low end of the word.
pub(crate) const KIND_BITS: u32 = 8;

/// Packs fields into a word, one after the other.
pub(crate) struct Packer {
    word: u128,
    used_bits: u32,
}

impl Packer {
    #[inline(always)]
    pub(crate) fn new(kind: u8) -> Self {
        Self { word: kind as u128, used_bits: KIND_BITS }
    }

    #[inline(always)]
    pub(crate) fn put<F: Field>(self, field: F) -> Self {
        let raw = field.to_raw();
        debug_assert!(raw <= F::MAX, "field number {raw} above its maximum {}", F::MAX);
        Self {
            word: self.word | (u128::from(raw) << self.used_bits),
            used_bits: self.used_bits + F::BITS,
        }
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> u128 {
        self.word
    }
}

/// Unpacks fields from a word, in the order in which they were packed.
pub(crate) struct Unpacker {
    rest: u128,
}

impl Unpacker {
    #[inline(always)]
    pub(crate) fn new(word: u128) -> Self {
        Self { rest: word >> KIND_BITS }
    }

    /// The next field; `None` if its number is not a value.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mask keeps at most 64 bits")]
    pub(crate) fn take<F: Field>(&mut self) -> Option<F> {
        let mask = u64::MAX >> (u64::BITS - F::BITS);
        let raw = self.rest as u64 & mask;
        self.rest >>= F::BITS;
        F::from_raw(raw)
    }

    /// Whether only zeros are left.
    #[inline(always)]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rest == 0
    }
}

/// Declares a one-byte enum whose variants have fixed codes from 0 upwards and printed names.
macro_rules! byte_enum {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$vmeta:meta])* $variant:ident $text:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// Every value, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The printed name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $crate::event::field::Field for $name {
            const BITS: u32 = 8;
            const MAX: u64 = Self::ALL.len() as u64 - 1;

            #[inline(always)]
            fn to_raw(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_raw(raw: u64) -> Option<Self> {
                usize::try_from(raw).ok().and_then(|code| Self::ALL.get(code)).copied()
            }
        }
    )*};
}

pub(crate) use byte_enum;
