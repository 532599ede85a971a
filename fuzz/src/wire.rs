//! The readers of the wire format: bytes of a peer that is not trusted.

use std::collections::BTreeMap;

use clockjack_macros::Wire;
use clockjack_wire::{
    Decoded, Wire as _, decode, encode,
    frame::{Pack, begin_pack, push_frame},
};

/// Reads a pack. Frames that are valid are written as a pack that is read as the same frames; a
/// refusal has a message.
pub fn wire_frame(bytes: &[u8]) {
    let pack = match Pack::read(bytes) {
        Ok(pack) => pack,
        Err(refused) => {
            return assert!(!refused.to_string().is_empty(), "refused without a message");
        }
    };
    let mut written = begin_pack(pack.from, pack.to);
    let mut frames = Vec::new();
    for frame in pack.flatten() {
        push_frame(&mut written, &frame).expect("what was read is not too large");
        frames.push(frame);
    }
    let again: Result<Vec<_>, _> = Pack::read(&written).expect("the header is ours").collect();
    assert_eq!(again.expect("what is written can be read"), frames);
}

/// Reads messages. One that is valid has no other encoding.
pub fn wire_types(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 2 {
        0 => check::<Tree>(bytes),
        _ => check::<Table>(bytes),
    }
}

fn check<M: clockjack_wire::Wire>(bytes: &[u8]) {
    match decode::<M>(M::VERSION, bytes) {
        Ok(Decoded::Tell(message)) => {
            let (written, _) = encode(message).expect("what was read is not too large");
            assert_eq!(written, bytes, "{} has two encodings", Tree::ID);
        }
        Ok(Decoded::Ask(_)) => {}
        Err(refused) => assert!(!refused.to_string().is_empty(), "refused without a message"),
    }
}

/// A message that nests.
#[derive(Wire)]
#[wire(id = "fuzz.Tree")]
enum Tree {
    Leaf(i64),
    Pair(Box<(Tree, Tree)>),
    Many(Vec<Tree>),
    Empty,
}

/// A message with collections.
#[derive(Wire)]
#[wire(id = "fuzz.Table")]
struct Table {
    rows: BTreeMap<String, Vec<Option<u128>>>,
    units: Vec<()>,
    letters: [char; 2],
    number: (u8, i8, bool, Result<u16, f64>),
}
