//! [`Encoder`]: writes values in the format of postcard, up to a limit.

use alloc::vec::Vec;

use clockjack_actor::ReplyTo;

use crate::{DEPTH_MAX, EncodeError, Field, error::EncodeErrorKind, message::PendingReply};

/// Writes values to a buffer.
///
/// The format is that of [postcard](https://postcard.jamesmunns.com/wire-format): integers of more
/// than one byte are variable-length, signed ones in zigzag order, and collections begin with their
/// length.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    bytes_left: usize,
    bytes_max: usize,
    depth: usize,
    reply: Option<PendingReply>,
}

impl<'a> Encoder<'a> {
    /// Appends to a buffer, at most `bytes_max` bytes.
    pub fn new(out: &'a mut Vec<u8>, bytes_max: usize) -> Self {
        Self { out, bytes_left: bytes_max, bytes_max, depth: 0, reply: None }
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    ///
    /// If the limit would be exceeded; so do all functions that write.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError<()>> {
        let Some(left) = self.bytes_left.checked_sub(bytes.len()) else {
            return Err(EncodeError::new(EncodeErrorKind::TooLarge { max: self.bytes_max }));
        };
        self.bytes_left = left;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes an unsigned integer with seven bits per byte, the lowest first.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn varint(&mut self, value: u128) -> Result<(), EncodeError<()>> {
        let mut bytes = [0; 19];
        let mut n = 0;
        let mut left = value;
        loop {
            let low = u8::try_from(left & 0x7f).unwrap_or_default();
            left >>= 7;
            bytes[n] = if left == 0 { low } else { low | 0x80 };
            n += 1;
            if left == 0 {
                return self.bytes(&bytes[..n]);
            }
        }
    }

    /// Writes the length of a collection.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn length(&mut self, n: usize) -> Result<(), EncodeError<()>> {
        // A usize has at most 64 bits.
        self.varint(n as u128)
    }

    /// Writes a value that contains others, one level deeper.
    ///
    /// # Errors
    ///
    /// If there are more than [`DEPTH_MAX`] levels, or as `write`.
    pub fn nested(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError<()>>,
    ) -> Result<(), EncodeError<()>> {
        if self.depth >= DEPTH_MAX {
            return Err(EncodeError::new(EncodeErrorKind::TooDeep));
        }
        self.depth += 1;
        let written = write(self);
        self.depth -= 1;
        written
    }

    /// Takes the right to answer out of a message. The bytes of the message do not contain it: the
    /// link sends a number in its place, and keeps the `ReplyTo` for the answer.
    ///
    /// # Panics
    ///
    /// If the message has more than one; the derive refuses such a type.
    pub fn reply_to<R: Field + Send + 'static>(&mut self, reply_to: ReplyTo<R>) {
        assert!(self.reply.is_none(), "a message may have only one `ReplyTo`");
        self.reply = Some(PendingReply::new(reply_to));
    }

    /// The right to answer that the message contained, if it is a request.
    #[must_use]
    pub fn into_reply(self) -> Option<PendingReply> {
        self.reply
    }
}
