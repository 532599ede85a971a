//! Small groups of numbers as payloads, such as a point or a value with its number. Use `Vec<f64>`
//! for long sequences.
//!
//! A group is encoded as the concatenation of its parts, so all values of a type have the same
//! length.

use super::{Data, DataError};

macro_rules! arrays {
    ($( $n:literal, $schema:literal; )+) => { $(
        impl Data for [f64; $n] {
            const SCHEMA: &'static str = $schema;

            fn encode(&self, out: &mut Vec<u8>) {
                for one in self {
                    one.encode(out);
                }
            }

            fn decode(bytes: &[u8]) -> Result<Self, DataError> {
                let wrong = DataError::new($schema, "wrong length");
                let (parts, rest) = bytes.as_chunks::<8>();
                let parts: &[[u8; 8]; $n] = parts.try_into().map_err(|_| wrong.clone())?;
                if rest.is_empty() { Ok(parts.map(f64::from_le_bytes)) } else { Err(wrong) }
            }
        }
    )+ };
}

arrays! {
    2, "f64[2]";
    3, "f64[3]";
    4, "f64[4]";
}

macro_rules! pairs {
    ($( $first:ty, $second:ty, $schema:literal; )+) => { $(
        impl Data for ($first, $second) {
            const SCHEMA: &'static str = $schema;

            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
                self.1.encode(out);
            }

            fn decode(bytes: &[u8]) -> Result<Self, DataError> {
                let wrong = DataError::new($schema, "wrong length");
                let (first, second) =
                    bytes.split_at_checked(size_of::<$first>()).ok_or(wrong.clone())?;
                let second = <$second>::decode(second).map_err(|_| wrong)?;
                Ok((<$first>::decode(first)?, second))
            }
        }
    )+ };
}

pairs! {
    f64, f64, "(f64, f64)";
    u64, f64, "(u64, f64)";
    u64, u64, "(u64, u64)";
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares bytes, since NaN is a payload too.
    #[track_caller]
    fn check_round_trip<T: Data>(value: &T) {
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        value.encode(&mut bytes);
        T::decode(&bytes).unwrap().encode(&mut again);
        assert_eq!(bytes, again);
        assert!(T::decode(&bytes[1..]).is_err(), "one byte less");
        bytes.push(0);
        assert!(T::decode(&bytes).is_err(), "one byte more");
    }

    proptest! {
        #[test]
        fn groups_come_back_from_their_bytes_and_from_no_others(
            a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), n in any::<u64>(),
        ) {
            check_round_trip(&[a, b]);
            check_round_trip(&[a, b, c]);
            check_round_trip(&[a, b, c, a]);
            check_round_trip(&(a, b));
            check_round_trip(&(n, a));
            check_round_trip(&(n, n));
        }
    }

    #[test]
    fn parts_keep_their_order() {
        let mut bytes = Vec::new();
        (7_u64, 0.5).encode(&mut bytes);
        assert_eq!(<(u64, f64)>::decode(&bytes), Ok((7, 0.5)));
        bytes.clear();
        [1.0, 2.0].encode(&mut bytes);
        assert_eq!(<[f64; 2]>::decode(&bytes), Ok([1.0, 2.0]));
    }
}
