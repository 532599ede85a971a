//! Versions of a type, and what a program says about those that it does not know.

use clockjack_actor::ReplyTo;
use clockjack_macros::Wire;
use clockjack_wire::{
    AskFor, DecodeError, Decoded, Decoder, Field as _, Wire as _, check_version, decode, encode,
};

/// The third version; the first had only a name, the second is not read any more.
#[derive(Debug, PartialEq, Wire)]
#[wire(id = "test.Order", version = 3, oldest = 2, upcast = Order::upcast)]
struct Order {
    name: String,
    count: u32,
}

impl Order {
    fn upcast(version: u16, from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        assert_eq!(version, 2, "the current version does not come here");
        Ok(Self { name: String::read(from)?, count: 1 })
    }
}

#[test]
fn an_older_version_is_read_by_the_upcast() {
    let Ok(Decoded::Tell(order)) = decode::<Order>(2, &[1, b'a']) else { panic!("it is known") };
    assert_eq!(order, Order { name: "a".into(), count: 1 });
    let (bytes, _) = encode(Order { name: "a".into(), count: 9 }).expect("it is small");
    let Ok(Decoded::Tell(order)) = decode::<Order>(3, &bytes) else { panic!("it is known") };
    assert_eq!(order.count, 9);
}

/// The second version; in the first one, a request had no key.
#[derive(Debug, Wire)]
#[wire(id = "test.Lookup", version = 2, upcast = Lookup::upcast)]
enum Lookup {
    Put(u8),
    Get { key: u8, to: ReplyTo<u8> },
}

impl Lookup {
    fn upcast(_version: u16, from: &mut Decoder<'_>) -> Result<Decoded<Self>, DecodeError> {
        match u8::read(from)? {
            0 => Ok(Decoded::Tell(Self::Put(1))),
            _ => Ok(Decoded::Ask(AskFor::new(|to| Self::Get { key: 7, to }))),
        }
    }
}

#[test]
fn an_older_request_is_read_by_the_upcast_as_a_request() {
    assert!(matches!(decode::<Lookup>(1, &[0]), Ok(Decoded::Tell(Lookup::Put(1)))));
    assert!(matches!(decode::<Lookup>(1, &[1]), Ok(Decoded::Ask(_))));
    assert!(matches!(decode::<Lookup>(2, &[0, 1]), Ok(Decoded::Tell(Lookup::Put(1)))));
    assert!(matches!(decode::<Lookup>(2, &[1, 7]), Ok(Decoded::Ask(_))));
}

#[test]
fn an_unknown_version_is_refused_with_the_versions_that_are_known() {
    for version in [0, 1, 4, u16::MAX] {
        let refused = decode::<Order>(version, &[1, b'a']).expect_err("it is unknown");
        assert!(refused.is_unknown_version());
        assert!(!refused.is_malformed());
        let text = format!("version {version} of test.Order: this program reads 2 to 3");
        assert_eq!(refused.to_string(), text);
    }
    assert!(check_version::<Order>(2).is_ok());
}

#[test]
fn an_unknown_type_is_refused_with_both_types() {
    let refused = DecodeError::unknown_type(7, Order::ID);
    assert!(refused.is_unknown_type());
    let text = "a message of type 0x0000000000000007 for a receiver of test.Order";
    assert_eq!(refused.to_string(), text);
}

#[test]
fn without_options_a_type_reads_its_own_version_only() {
    use crate::types::All;
    assert_eq!((All::VERSION, All::OLDEST), (3, 3));
}
