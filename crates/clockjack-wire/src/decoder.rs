//! [`Decoder`]: reads values from bytes that are not trusted.
//!
//! Three limits hold for any bytes: a length is compared with the bytes that are left, or charged
//! against [`MEMORY_MAX`], before anything is allocated for it; values nest at most [`DEPTH_MAX`]
//! levels deep, so that no input overflows the stack; and the number of elements of a collection is
//! charged too, so that a collection of empty values ends.

use crate::{DEPTH_MAX, DecodeError, MEMORY_MAX, error::DecodeErrorKind};

/// Reads values from bytes.
#[derive(Debug)]
pub struct Decoder<'a> {
    left: &'a [u8],
    depth: usize,
    memory_left: usize,
}

impl<'a> Decoder<'a> {
    /// Reads these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, depth: 0, memory_left: MEMORY_MAX }
    }

    /// The number of bytes that were not read yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// Reads `n` bytes.
    ///
    /// # Errors
    ///
    /// If there are not as many.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        match self.left.split_at_checked(n) {
            Some((bytes, rest)) => {
                self.left = rest;
                Ok(bytes)
            }
            None => Err(DecodeError::new(DecodeErrorKind::Truncated {
                needed: n,
                left: self.left.len(),
            })),
        }
    }

    /// Reads an array of bytes.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// Reads an unsigned integer of at most `bits` bits.
    ///
    /// # Errors
    ///
    /// If the number has more bits, or is not in its shortest form: then two different messages
    /// would have the same meaning.
    pub fn varint(&mut self, bits: u32) -> Result<u128, DecodeError> {
        let mut value = 0_u128;
        let mut shift = 0_u32;
        loop {
            let [byte] = self.array()?;
            let low = u128::from(byte & 0x7f);
            let room = bits.saturating_sub(shift);
            if room < 7 && low >> room != 0 {
                return Err(DecodeError::invalid("integer: it has too many bits"));
            }
            value |= low.checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                let is_shortest = low != 0 || shift == 0;
                let overlong = DecodeError::invalid("integer: it is not in its shortest form");
                return if is_shortest { Ok(value) } else { Err(overlong) };
            }
            shift += 7;
            if shift >= bits {
                return Err(DecodeError::invalid("integer: it has too many bits"));
            }
        }
    }

    /// Reads the length of a collection whose elements take `element_bytes` in memory, and charges
    /// that memory.
    ///
    /// # Errors
    ///
    /// If the message would take more than [`MEMORY_MAX`] bytes of memory.
    pub fn length(&mut self, element_bytes: usize) -> Result<usize, DecodeError> {
        let n = self.varint(64)?;
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.charge(n.saturating_mul(element_bytes.max(1)))?;
        Ok(n)
    }

    /// Charges memory that is about to be allocated.
    ///
    /// # Errors
    ///
    /// As [`length`](Self::length).
    pub fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        let Some(left) = self.memory_left.checked_sub(bytes) else {
            return Err(DecodeError::new(DecodeErrorKind::TooLarge {
                what: "memory",
                n: bytes as u64,
                max: MEMORY_MAX as u64,
            }));
        };
        self.memory_left = left;
        Ok(())
    }

    /// Reads a value that contains others, one level deeper.
    ///
    /// # Errors
    ///
    /// If there are more than [`DEPTH_MAX`] levels, or as `read`.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth >= DEPTH_MAX {
            return Err(DecodeError::new(DecodeErrorKind::TooDeep));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Expects that all bytes were read.
    ///
    /// # Errors
    ///
    /// If there are more.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left.len() {
            0 => Ok(()),
            n => Err(DecodeError::new(DecodeErrorKind::Trailing(n))),
        }
    }
}
