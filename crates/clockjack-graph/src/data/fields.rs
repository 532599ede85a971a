//! The encoding of composite payloads, and of values in the commit log: numbers in LEB128 (seven
//! bits per byte, the low ones first), and bytes behind their length.

use super::{Data, DataError};

/// The most bytes of a number.
const NUMBER_LEN_MAX: usize = 10;

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, n: u64) {
    let (digits, len) = digits(n);
    out.extend_from_slice(&digits[..len]);
}

/// Appends a field of a composite payload.
pub fn put_field<T: Data>(out: &mut Vec<u8>, value: &T) {
    put_with_length(out, |out| value.encode(out));
}

/// Appends what `write` appends, behind its length, and returns the length. Allocates nothing but
/// room in `out`.
pub(crate) fn put_with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    // A length below 128 takes one byte, which is reserved here and set when the length is known.
    let at = out.len();
    out.push(0);
    write(out);
    let end = out.len();
    let length = end - at - 1;
    let (digits, n_digits) = digits(length as u64);
    if n_digits > 1 {
        out.resize(end + n_digits - 1, 0);
        out.copy_within(at + 1..end, at + n_digits);
    }
    out[at..at + n_digits].copy_from_slice(&digits[..n_digits]);
    length
}

/// The bytes of a number, and how many there are.
fn digits(mut n: u64) -> ([u8; NUMBER_LEN_MAX], usize) {
    let (mut digits, mut len) = ([0; NUMBER_LEN_MAX], 1);
    while n >= 0x80 {
        digits[len - 1] = u8::try_from(n & 0x7f).expect("seven bits") | 0x80;
        n >>= 7;
        len += 1;
    }
    digits[len - 1] = u8::try_from(n).expect("below 128");
    (digits, len)
}

/// Reads the fields of a composite payload.
#[derive(Debug)]
pub struct Fields<'b> {
    schema: &'static str,
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    /// The fields of a payload with this schema.
    #[must_use]
    pub fn new(schema: &'static str, bytes: &'b [u8]) -> Self {
        Self { schema, rest: bytes }
    }

    /// Reads a number.
    ///
    /// # Errors
    ///
    /// The bytes end too early, or the number has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, DataError> {
        let mut n = 0_u64;
        for at in 0..NUMBER_LEN_MAX {
            let Some((digit, rest)) = self.rest.split_first() else {
                return Err(DataError::new(self.schema, "ends too early"));
            };
            self.rest = rest;
            let bits = u64::from(digit & 0x7f);
            let shift = 7 * u32::try_from(at).expect("ten at most");
            if bits << shift >> shift != bits {
                break;
            }
            n |= bits << shift;
            if digit & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(DataError::new(self.schema, "a number has more than 64 bits"))
    }

    /// Reads the next field.
    ///
    /// # Errors
    ///
    /// The bytes end too early, or are not an encoded value of this type.
    pub fn field<T: Data>(&mut self) -> Result<T, DataError> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let Some((field, rest)) = self.rest.split_at_checked(length) else {
            return Err(DataError::new(self.schema, "ends too early"));
        };
        self.rest = rest;
        T::decode(field)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    ///
    /// There are more bytes than fields.
    pub fn end(&mut self) -> Result<(), DataError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DataError::new(self.schema, "has more bytes than fields"))
        }
    }

    /// The error of a variant that the type does not have.
    #[must_use]
    pub fn unknown_variant(&self) -> DataError {
        DataError::new(self.schema, "has no such variant")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_come_back() {
        for shift in 0..64 {
            for n in [(1 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put_number(&mut bytes, n);
                assert_eq!(Fields::new("n", &bytes).number(), Ok(n));
                let short = &bytes[..bytes.len() - 1];
                assert!(Fields::new("n", short).number().is_err(), "{n}");
            }
        }
        assert!(Fields::new("n", &[0xff; 11]).number().is_err(), "71 bits");
        assert!(
            Fields::new("n", &[0xff; 9].into_iter().chain([2]).collect::<Vec<_>>())
                .number()
                .is_err()
        );
    }

    #[test]
    fn bytes_of_all_lengths_come_behind_their_length() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let mut out = vec![7];
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            assert_eq!(put_with_length(&mut out, |out| out.extend_from_slice(&bytes)), length);
            let mut fields = Fields::new("bytes", &out[1..]);
            assert_eq!(fields.field::<Vec<u8>>(), Ok(bytes));
            assert_eq!(fields.end(), Ok(()));
        }
    }
}
