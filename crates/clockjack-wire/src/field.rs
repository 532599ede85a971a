//! [`Field`]: a value that can be a part of a message.

use alloc::{borrow::ToOwned as _, boxed::Box, collections::BTreeMap, string::String, vec::Vec};
use core::time::Duration;

use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// A value that can be a part of a message, or its answer.
///
/// `#[derive(Wire)]` implements it for structs and enums without a `ReplyTo`, also for those
/// without an id. Implement it by hand for plain data of your own: what `write` writes, `read` must
/// read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a message that travels",
    note = "put `#[derive(Wire)]` on its definition; a part of other messages needs no id",
    note = "an `ActorRef` does not travel: send the `Address` of an exported actor"
)]
pub trait Field: Sized {
    /// Writes the value.
    ///
    /// # Errors
    ///
    /// If the value is too large, or has no encoding.
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>>;

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// If the bytes are not a value of this type.
    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

macro_rules! unsigned {
    ($($int:ty)*) => {$(
        impl Field for $int {
            fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
                out.varint(u128::from(*self))
            }

            fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let value = from.varint(Self::BITS)?;
                Self::try_from(value).map_err(|_| DecodeError::invalid("integer"))
            }
        }
    )*};
}

unsigned!(u16 u32 u64 u128);

macro_rules! signed {
    ($($int:ty, $unsigned:ty;)*) => {$(
        impl Field for $int {
            fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
                // Zigzag: 0, -1, 1, -2, .. are 0, 1, 2, 3, ..
                let zigzag = (*self << 1) ^ (*self >> (Self::BITS - 1));
                out.varint(u128::from(zigzag.cast_unsigned()))
            }

            fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let zigzag = <$unsigned>::read(from)?;
                Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
            }
        }
    )*};
}

signed!(i16, u16; i32, u32; i64, u64; i128, u128;);

/// As an `u64`, so that the size of a pointer does not matter.
impl Field for usize {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.length(*self)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let too_large = |_| DecodeError::invalid("usize of this machine");
        Self::try_from(from.varint(64)?).map_err(too_large)
    }
}

impl Field for u8 {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.bytes(&[*self])
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(from.array::<1>()?[0])
    }
}

impl Field for i8 {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.bytes(&self.to_le_bytes())
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        from.array().map(Self::from_le_bytes)
    }
}

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl Field for $float {
            fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
                out.bytes(&self.to_le_bytes())
            }

            fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                from.array().map(Self::from_le_bytes)
            }
        }
    )*};
}

floats!(f32 f64);

impl Field for bool {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.bytes(&[u8::from(*self)])
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DecodeError::invalid("bool")),
        }
    }
}

impl Field for char {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        write_text(self.encode_utf8(&mut [0; 4]), out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut chars = read_text(from)?.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => Ok(char),
            _ => Err(DecodeError::invalid("char")),
        }
    }
}

impl Field for String {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        write_text(self, out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        read_text(from).map(str::to_owned)
    }
}

impl Field for Box<str> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        write_text(self, out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        read_text(from).map(Self::from)
    }
}

fn write_text(text: &str, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
    out.length(text.len())?;
    out.bytes(text.as_bytes())
}

/// Reads a text without copying it.
fn read_text<'a>(from: &mut Decoder<'a>) -> Result<&'a str, DecodeError> {
    let n = from.length(1)?;
    str::from_utf8(from.bytes(n)?).map_err(|_| DecodeError::invalid("UTF-8 text"))
}

impl Field for () {
    fn write(&self, _out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        Ok(())
    }

    fn read(_from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        self.is_some().write(out)?;
        match self {
            Some(value) => out.nested(|out| value.write(out)),
            None => Ok(()),
        }
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if bool::read(from)? { from.nested(T::read).map(Some) } else { Ok(None) }
    }
}

impl<T: Field, E: Field> Field for Result<T, E> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        self.is_err().write(out)?;
        out.nested(|out| match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        })
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let is_err = bool::read(from)?;
        from.nested(|from| if is_err { E::read(from).map(Err) } else { T::read(from).map(Ok) })
    }
}

impl<T: Field> Field for Box<T> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.nested(|out| (**self).write(out))
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        from.charge(size_of::<T>())?;
        from.nested(T::read).map(Self::new)
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.length(self.len())?;
        out.nested(|out| self.iter().try_for_each(|value| value.write(out)))
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let n = from.length(size_of::<T>())?;
        // A value takes at least one byte, unless it is empty in memory too, so this reserves no
        // more than the message can fill.
        let mut values = Self::with_capacity(n.min(from.left()));
        from.nested(|from| {
            for _ in 0..n {
                values.push(T::read(from)?);
            }
            Ok(values)
        })
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.nested(|out| self.iter().try_for_each(|value| value.write(out)))
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        from.charge(size_of::<Self>())?;
        let values = from.nested(|from| {
            // At once, because a vector that grows needs up to twice what was charged; but no more
            // than the message can fill.
            let mut values = Vec::with_capacity(N.min(from.left()));
            for _ in 0..N {
                values.push(T::read(from)?);
            }
            Ok(values)
        })?;
        values.try_into().map_err(|_| DecodeError::invalid("array"))
    }
}

/// In the order of the keys. Keys out of order, or equal ones, are refused: then the same map would
/// have several encodings.
impl<K: Field + Ord, V: Field> Field for BTreeMap<K, V> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        out.length(self.len())?;
        out.nested(|out| {
            self.iter().try_for_each(|(key, value)| {
                key.write(out)?;
                value.write(out)
            })
        })
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        // Twice: the nodes of a map that is filled in order are half full.
        let n = from.length(2 * size_of::<(K, V)>())?;
        from.nested(|from| {
            let mut map = Self::new();
            for _ in 0..n {
                let (key, value) = (K::read(from)?, V::read(from)?);
                if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                    return Err(DecodeError::invalid("map: its keys are not in order"));
                }
                map.insert(key, value);
            }
            Ok(map)
        })
    }
}

/// Seconds, then nanoseconds.
impl Field for Duration {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        self.as_secs().write(out)?;
        self.subsec_nanos().write(out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (secs, nanos) = (u64::read(from)?, u32::read(from)?);
        if nanos >= 1_000_000_000 {
            return Err(DecodeError::invalid("duration: it has a second of nanoseconds"));
        }
        Ok(Self::new(secs, nanos))
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Field),+> Field for ($($name,)+) {
            fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
                #[expect(non_snake_case, reason = "named after the types")]
                let ($($name,)+) = self;
                out.nested(|out| {
                    $($name.write(out)?;)+
                    Ok(())
                })
            }

            fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                from.nested(|from| Ok(($($name::read(from)?,)+)))
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}
