//! Bytes that were made to break the decoder.

use std::collections::BTreeMap;

use clockjack_wire::{DecodeError, Decoder, Field, MEMORY_MAX, MESSAGE_MAX, decode};

use crate::types::{Shape, Store, Unit};

fn refusal<T: Field + core::fmt::Debug>(bytes: &[u8]) -> DecodeError {
    T::read(&mut Decoder::new(bytes)).expect_err("it is not a value")
}

/// A length as a varint.
fn length(n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = clockjack_wire::Encoder::new(&mut bytes, 10);
    n.write(&mut out).expect("it fits");
    bytes
}

#[test]
fn a_length_is_checked_before_memory_is_allocated_for_it() {
    for n in [1 << 25, 1 << 40, u64::MAX] {
        assert!(refusal::<Vec<u64>>(&length(n)).is_too_large());
        assert!(refusal::<String>(&length(n)).is_too_large());
        assert!(refusal::<BTreeMap<u64, u64>>(&length(n)).is_too_large());
        // Values without bytes: the loop would not end.
        assert!(refusal::<Vec<()>>(&length(n)).is_too_large());
    }
    // The nodes of a map may be half full: a map counts twice.
    let n = MEMORY_MAX as u64 / 16 * 3 / 4;
    assert!(refusal::<Vec<(u64, u64)>>(&length(n)).is_malformed());
    assert!(refusal::<BTreeMap<u64, u64>>(&length(n)).is_too_large());
    // Within the limit of memory, and beyond the bytes that are there.
    assert!(refusal::<Vec<u64>>(&length(1_000)).is_malformed());
    assert!(refusal::<String>(&length(1_000)).is_malformed());
}

#[test]
fn small_bytes_cannot_become_much_memory() {
    // A byte for a kibibyte: a million of them would be a gibibyte.
    let mut bytes = length(1_000_000);
    bytes.resize(1_000_100, 0);
    assert!(refusal::<Vec<Option<[u128; 64]>>>(&bytes).is_too_large());
    assert!(refusal::<Vec<Box<Option<[u128; 64]>>>>(&bytes).is_too_large());
}

#[test]
fn values_that_nest_too_deep_do_not_overflow_the_stack() {
    // Variant `Group`, one element, and so on.
    let bytes = [3, 1].repeat(400_000);
    assert!(refusal::<Shape>(&bytes).is_too_large());
}

#[test]
fn garbage_is_told_apart_from_what_is_too_large() {
    for (name, refused) in [
        ("bool", refusal::<bool>(&[2])),
        ("option", refusal::<Option<u8>>(&[9])),
        ("text", refusal::<String>(&[1, 0xff])),
        ("char", refusal::<char>(&[2, b'a', b'b'])),
        ("too many bits", refusal::<u16>(&[0xff, 0xff, 0x04])),
        ("too many bytes", refusal::<u16>(&[0x80, 0x80, 0x80, 0x00])),
        ("not the shortest", refusal::<u32>(&[0x80, 0x00])),
        ("duration", refusal::<core::time::Duration>(&[0, 0x80, 0x94, 0xeb, 0xdc, 0x03])),
        ("keys", refusal::<BTreeMap<u8, ()>>(&[2, 1, 1])),
        ("variant", refusal::<Shape>(&[4])),
        ("cut off", refusal::<u64>(&[0x80])),
    ] {
        assert!(refused.is_malformed(), "{name}: {refused}");
        assert!(!refused.is_too_large(), "{name}: {refused}");
        assert!(!refused.to_string().is_empty(), "{name}");
    }
}

#[test]
fn a_message_has_no_bytes_after_its_end_and_a_limit() {
    assert!(decode::<Unit>(1, &[]).is_ok());
    let refused = decode::<Unit>(1, &[0]).expect_err("a byte follows");
    assert!(refused.is_malformed());
    assert_eq!(refused.to_string(), "1 bytes follow the value");
    let refused = decode::<Store>(1, &vec![0; MESSAGE_MAX + 1]).expect_err("it is too large");
    assert!(refused.is_too_large());
}
