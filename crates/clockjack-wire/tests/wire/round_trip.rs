//! What was encoded is decoded to the same value, and has the bytes that the crate `postcard`
//! writes.

use core::time::Duration;
use std::collections::BTreeMap;

use clockjack_wire::{Decoded, Decoder, Encoder, Field, MESSAGE_MAX, decode, encode};
use proptest::{collection, option, prelude::*, result};
use serde::{Serialize, de::DeserializeOwned};

use crate::types::{All, Shape, Store, all};

fn written(value: &impl Field) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.write(&mut Encoder::new(&mut bytes, MESSAGE_MAX)).expect("it is small");
    bytes
}

fn check<T: Field + PartialEq + core::fmt::Debug + Serialize + DeserializeOwned>(value: &T) {
    let bytes = written(value);
    assert_eq!(bytes, postcard::to_allocvec(value).expect("it is small"), "{value:?}");
    let mut from = Decoder::new(&bytes);
    assert_eq!(T::read(&mut from).as_ref(), Ok(value));
    from.finish().expect("all bytes belong to the value");
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Point),
        (-1e9..1e9).prop_map(Shape::Circle),
        (any::<u32>(), any::<u32>()).prop_map(|(width, height)| Shape::Rect { width, height }),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| collection::vec(inner, 0..4).prop_map(Shape::Group))
}

prop_compose! {
    fn alls()(
        unsigned in any::<(u8, u16, u32, u64, u128)>(),
        signed in any::<(i8, i16, i32, i64, i128)>(),
        size in any::<u32>(),
        floats in (-1e9_f32..1e9, -1e9..1e9),
        (text, boxed, letter) in any::<(String, String, char)>(),
        flag in any::<bool>(),
        maybe in option::of(shapes()),
        result in result::maybe_ok(any::<u16>(), any::<String>()),
        bytes in any::<Vec<u8>>(),
        (shapes, array) in (collection::vec(shapes(), 0..4), any::<[i16; 3]>()),
        map in any::<BTreeMap<String, Vec<u32>>>(),
        (secs, nanos) in (any::<u64>(), 0..1_000_000_000_u32),
    ) -> All {
        All {
            unsigned, signed, size: size as usize, floats, text, boxed: boxed.into(), letter, flag,
            maybe: maybe.map(Box::new), result, bytes, shapes, array, map,
            wait: Duration::new(secs, nanos), unit: (),
        }
    }
}

proptest! {
    #[test]
    fn a_value_has_the_bytes_of_postcard_and_is_read_as_the_same_value(all in alls()) {
        check(&all);
        let (bytes, reply) = encode(all.clone()).expect("it is small");
        prop_assert!(reply.is_none());
        let Ok(Decoded::Tell(read)) = decode::<All>(3, &bytes) else { panic!("it is no request") };
        prop_assert_eq!(read, all);
    }

    #[test]
    fn an_integer_has_the_bytes_of_postcard(all in any::<(u16, i16, u64, i64, u128, i128)>()) {
        check(&all);
    }

    /// Any bytes: a refusal, or the only encoding of a value.
    #[test]
    fn bytes_that_are_read_are_the_encoding_of_the_value(bytes in any::<Vec<u8>>()) {
        if let Ok(Decoded::Tell(all)) = decode::<All>(3, &bytes) {
            prop_assert_eq!(&written(&all), &bytes);
        }
        let mut from = Decoder::new(&bytes);
        if let Ok(map) = BTreeMap::<u8, u64>::read(&mut from) {
            let n_read = bytes.len() - from.left();
            prop_assert_eq!(written(&map), &bytes[..n_read]);
        }
    }
}

#[test]
fn the_edges_of_integers_are_read_as_they_were_written() {
    check(&all());
    for shift in 0..64 {
        let value = 1_u64 << shift;
        check(&(
            value,
            value - 1,
            value.cast_signed(),
            -value.cast_signed().wrapping_sub(1).max(0),
        ));
    }
    check(&(i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN));
}

#[test]
fn a_message_without_reply_to_is_a_tell_and_one_with_it_is_an_ask() {
    let put = Store::Put { key: "k".into(), value: vec![1, 2] };
    let (bytes, reply) = encode(put).expect("it is small");
    assert!(reply.is_none(), "it is no request");
    assert_eq!(bytes, [0, 1, b'k', 2, 1, 2]);
    match decode::<Store>(1, &bytes) {
        Ok(Decoded::Tell(Store::Put { key, value })) => {
            assert_eq!((key.as_str(), value.as_slice()), ("k", [1, 2].as_slice()));
        }
        other => panic!("{other:?}"),
    }
    // The request has the bytes of its other fields.
    assert!(matches!(decode::<Store>(1, &[1, 1, b'k']), Ok(Decoded::Ask(_))));
    assert!(matches!(decode::<Store>(1, &[2]), Ok(Decoded::Ask(_))));
    assert!(matches!(decode::<Store>(1, &[3]), Ok(Decoded::Tell(Store::Clear))));
}

#[test]
fn a_message_that_is_too_large_is_returned_to_the_caller() {
    let value = vec![7; MESSAGE_MAX];
    let refused = encode(Store::Put { key: "k".into(), value }).expect_err("it is too large");
    assert!(refused.is_too_large());
    assert_eq!(refused.to_string(), format!("the message needs more than {MESSAGE_MAX} bytes"));
    match refused.into_inner() {
        Store::Put { value, .. } => assert_eq!(value.len(), MESSAGE_MAX),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_nests_too_deep_is_refused_when_it_is_written() {
    let mut shape = Shape::Point;
    for _ in 0..1_000 {
        shape = Shape::Group(vec![shape]);
    }
    let mut bytes = Vec::new();
    let refused = shape.write(&mut Encoder::new(&mut bytes, MESSAGE_MAX));
    assert!(refused.is_err_and(|error| error.is_too_large()));
}
