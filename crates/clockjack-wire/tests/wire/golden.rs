//! Golden bytes: `golden/ID.vVERSION.bin` for each type of the tests, and `golden/frames.v1.bin`.
//!
//! A changed byte without a changed version fails: programs of two releases would no longer
//! understand each other. After a change with a new version, `cargo xtask wire --bless` writes the
//! missing files, and no other ones.

use std::{fs, path::Path};

use clockjack_wire::{
    Decoded, Wire, decode, encode,
    frame::{EndCause, Frame, Message, begin_pack, push_frame},
};

use crate::types::{All, Store, Unit, all};

fn check_bytes(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CLOCKJACK_BLESS").is_some() && !path.exists() {
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
        fs::write(&path, bytes).expect("it can be written");
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        bytes.escape_ascii().to_string(),
        golden.escape_ascii().to_string(),
        "{name}: the bytes of a version never change; make a new version"
    );
    golden
}

fn check<M: Wire>(message: M) -> Decoded<M> {
    let (bytes, _) = encode(message).unwrap_or_else(|error| panic!("{}: {error}", M::ID));
    let golden = check_bytes(&format!("{}.v{}.bin", M::ID, M::VERSION), &bytes);
    decode(M::VERSION, &golden).unwrap_or_else(|error| panic!("{}: {error}", M::ID))
}

#[test]
fn the_bytes_of_each_type_and_version_stay_as_they_were() {
    let Decoded::Tell(read) = check(all()) else { panic!("it is no request") };
    assert_eq!(read, all());
    assert!(matches!(check(Unit), Decoded::Tell(Unit)));
    let put = Store::Put { key: "key".into(), value: vec![1, 2, 3] };
    assert!(matches!(check(put), Decoded::Tell(Store::Put { .. })));
}

#[test]
fn the_bytes_of_frames_stay_as_they_were() {
    let mut pack = begin_pack(0x0102_0304_0506_0708, 9);
    let message = Message {
        channel: 1,
        number: 300,
        request: 2,
        type_hash: All::ID.hash(),
        version: 3,
        time_left_ms: Some(1_000),
        trace: Some([7; 16]),
        body: b"body",
    };
    for frame in [
        Frame::Message(message),
        Frame::Message(Message { request: 0, time_left_ms: None, trace: None, ..message }),
        Frame::Open { channel: 1, export: 5, type_hash: All::ID.hash(), version: 3 },
        Frame::Grant { channel: 1, limit: 1_024, received: 64 },
        Frame::Query { channel: 1, sent: 64 },
        Frame::End { channel: 1, cause: EndCause::Stopped },
        Frame::End { channel: 1, cause: EndCause::NotExported },
        Frame::Close { channel: 1 },
        Frame::Answer { channel: 1, request: 2, body: Some(b"yes") },
        Frame::Answer { channel: 1, request: 3, body: None },
        Frame::Find { request: 4, type_hash: All::ID.hash(), name: "counter" },
        Frame::Found { request: 4, export: 5 },
        Frame::Ping,
    ] {
        push_frame(&mut pack, &frame).expect("it fits");
    }
    check_bytes("frames.v1.bin", &pack);
    let mut links = begin_pack(1, 9);
    for frame in [
        Frame::LinkQuery { sent: 8 << 20 },
        Frame::LinkGrant { limit: 8 << 20, received: 300 },
        Frame::Forget { channel: 1, request: 2 },
    ] {
        push_frame(&mut links, &frame).expect("it fits");
    }
    check_bytes("frames-of-links.v1.bin", &links);
}
