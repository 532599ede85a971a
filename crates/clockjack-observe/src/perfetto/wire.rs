//! The protobuf wire format: fields with their numbers, one after the other.
//!
//! Only the part that a trace needs, as "Encoding" in the Protocol Buffers documentation describes
//! it. There is no decoder and no schema check: the caller knows the fields. A [`Message`] always
//! contains whole fields.

use alloc::vec::Vec;

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An unsigned number, a `bool` or an enum value.
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.raw_varint(value);
    }

    /// An `int64`: a negative one takes ten bytes.
    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.varint(field, value.cast_unsigned());
    }

    /// A `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// A `string`.
    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.delimited(field, value.as_bytes());
    }

    /// A nested message.
    pub(super) fn message(&mut self, field: u32, value: &Self) {
        self.delimited(field, &value.bytes);
    }

    /// Whether the message has no field.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn delimited(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.raw_varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.raw_varint((field << 3 | wire_type).into());
    }

    /// Seven bits per byte, lowest first; the top bit says that another byte follows.
    fn raw_varint(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                self.bytes.push(low);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Message;

    fn bytes(write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        write(&mut message);
        message.into_bytes()
    }

    // The examples of the public documentation of the encoding, and the limits of the ranges.
    #[test]
    fn fields_are_encoded_as_protobuf_describes() {
        assert_eq!(bytes(|m| m.varint(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(bytes(|m| m.text(2, "testing")), *b"\x12\x07testing");
        assert_eq!(bytes(|m| m.varint(1, 0)), [0x08, 0x00]);
        assert_eq!(bytes(|m| m.varint(60, 1)), [0xe0, 0x03, 0x01]);
        let minus_two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(bytes(|m| m.int(1, -2)), minus_two);
        assert_eq!(bytes(|m| m.fixed64(47, 1)), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|m| m.double(5, 1.0)), [0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let mut inner = Message::default();
        inner.varint(1, 150);
        assert_eq!(bytes(|m| m.message(3, &inner)), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
