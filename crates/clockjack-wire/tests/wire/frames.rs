//! Frames and packs.

use clockjack_wire::frame::{
    EndCause, FRAMES_MAX, Frame, Message, PACK_MAX, Pack, begin_pack, push_frame,
};
use proptest::{collection, option, prelude::*};

/// A frame that owns its bytes, for proptest.
#[derive(Clone, Debug)]
enum Owned {
    Message([u64; 4], u16, Option<u32>, Option<[u8; 16]>, Vec<u8>),
    Numbers(u8, [u64; 3], u16),
    Answer(u64, u64, Option<Vec<u8>>),
    Find(u64, u64, String),
    Ping,
}

fn frames() -> impl Strategy<Value = Owned> {
    let bytes = || collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        (any::<[u64; 4]>(), any::<u16>(), any::<Option<u32>>(), any::<Option<[u8; 16]>>(), bytes())
            .prop_map(|(n, version, left, trace, body)| {
                Owned::Message(n, version, left, trace, body)
            }),
        (0..9_u8, any::<[u64; 3]>(), any::<u16>()).prop_map(|(k, n, v)| Owned::Numbers(k, n, v)),
        (any::<u64>(), any::<u64>(), option::of(bytes()))
            .prop_map(|(channel, request, body)| Owned::Answer(channel, request, body)),
        (any::<u64>(), any::<u64>(), "[a-z.]{0,20}").prop_map(|(a, b, c)| Owned::Find(a, b, c)),
        Just(Owned::Ping),
    ]
}

fn frame(owned: &Owned) -> Frame<'_> {
    match owned {
        Owned::Message([channel, number, request, type_hash], version, left, trace, body) => {
            Frame::Message(Message {
                channel: *channel,
                number: *number,
                request: *request,
                type_hash: *type_hash,
                version: *version,
                time_left_ms: left.map(u64::from),
                trace: *trace,
                body,
            })
        }
        Owned::Numbers(kind, [a, b, c], version) => match kind {
            0 => Frame::Open { channel: *a, export: *b, type_hash: *c, version: *version },
            1 => Frame::Grant { channel: *a, limit: *b, received: *c },
            2 => Frame::Query { channel: *a, sent: *b },
            3 => Frame::End {
                channel: *a,
                cause: [EndCause::Stopped, EndCause::Failed, EndCause::Unknown]
                    [usize::from(version % 3)],
            },
            4 => Frame::Close { channel: *a },
            5 => Frame::Found { request: *a, export: *b },
            6 => Frame::LinkQuery { sent: *a },
            7 => Frame::LinkGrant { limit: *a, received: *b },
            _ => Frame::Forget { channel: *a, request: *b },
        },
        Owned::Answer(channel, request, body) => {
            Frame::Answer { channel: *channel, request: *request, body: body.as_deref() }
        }
        Owned::Find(request, type_hash, name) => {
            Frame::Find { request: *request, type_hash: *type_hash, name }
        }
        Owned::Ping => Frame::Ping,
    }
}

proptest! {
    #[test]
    fn a_pack_is_read_as_it_was_written(
        (from, to) in any::<(u64, u64)>(),
        owned in collection::vec(frames(), 0..20),
    ) {
        let mut bytes = begin_pack(from, to);
        for one in &owned {
            push_frame(&mut bytes, &frame(one)).expect("it fits");
        }
        let pack = Pack::read(&bytes).expect("it is a pack");
        prop_assert_eq!((pack.from, pack.to), (from, to));
        let read: Vec<_> = pack.map(|frame| frame.expect("it is a frame")).collect();
        let sent: Vec<_> = owned.iter().map(frame).collect();
        prop_assert_eq!(read, sent);
    }

    #[test]
    fn any_bytes_are_frames_or_refused(bytes in any::<Vec<u8>>()) {
        let mut pack = begin_pack(1, 2);
        pack.extend_from_slice(&bytes);
        let n_frames = Pack::read(&pack).expect("the header is valid").count();
        prop_assert!(n_frames <= bytes.len());
        if let Ok(pack) = Pack::read(&bytes) {
            pack.for_each(drop);
        }
    }
}

#[test]
fn a_frame_of_an_unknown_kind_does_not_end_the_pack() {
    let mut bytes = begin_pack(1, 2);
    bytes.extend_from_slice(&[3, 99, 1, 2]);
    push_frame(&mut bytes, &Frame::Ping).expect("it fits");
    let frames: Vec<_> = Pack::read(&bytes).expect("it is a pack").collect();
    assert_eq!(frames.len(), 2);
    let refused = frames[0].as_ref().expect_err("its kind is unknown");
    assert!(refused.is_unknown_kind() && !refused.is_malformed());
    assert_eq!(refused.to_string(), "a frame of the unknown kind 99");
    assert_eq!(frames[1], Ok(Frame::Ping));
}

#[test]
fn the_largest_time_that_is_left_can_be_read() {
    let frame = |time_left_ms| {
        Frame::Message(Message {
            channel: 1,
            number: 1,
            request: 1,
            type_hash: 1,
            version: 1,
            time_left_ms,
            trace: None,
            body: b"body",
        })
    };
    let mut bytes = begin_pack(1, 2);
    push_frame(&mut bytes, &frame(Some(u64::MAX))).expect("it fits");
    let frames: Vec<_> = Pack::read(&bytes).expect("it is a pack").collect();
    assert_eq!(frames, [Ok(frame(Some(u64::MAX - 1)))]);
}

#[test]
fn a_length_beyond_the_pack_ends_it() {
    let mut bytes = begin_pack(1, 2);
    bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    push_frame(&mut bytes, &Frame::Ping).expect("it fits");
    let frames: Vec<_> = Pack::read(&bytes).expect("it is a pack").collect();
    assert_eq!(frames.len(), 1);
    assert!(frames[0].is_err());
}

#[test]
fn a_pack_of_another_protocol_or_size_is_refused() {
    let mut bytes = begin_pack(1, 2);
    bytes[0] = 2;
    assert!(Pack::read(&bytes).is_err_and(|error| error.is_malformed()));
    assert!(Pack::read(&bytes[..5]).is_err_and(|error| error.is_malformed()));
    bytes[0] = 1;
    bytes.resize(PACK_MAX + 1, 0);
    assert!(Pack::read(&bytes).is_err_and(|error| error.is_too_large()));
}

#[test]
fn a_pack_has_a_limit_of_frames() {
    let mut bytes = begin_pack(1, 2);
    for _ in 0..=FRAMES_MAX {
        push_frame(&mut bytes, &Frame::Ping).expect("it fits");
    }
    let frames: Vec<_> = Pack::read(&bytes).expect("it is a pack").collect();
    assert_eq!(frames.len(), FRAMES_MAX + 1);
    assert!(frames.last().is_some_and(|last| last.as_ref().is_err_and(|e| e.is_too_large())));
}

#[test]
fn a_frame_that_does_not_fit_leaves_the_pack_as_it_was() {
    let mut bytes = begin_pack(1, 2);
    let body = vec![0; PACK_MAX];
    let answer = Frame::Answer { channel: 1, request: 1, body: Some(&body) };
    assert!(push_frame(&mut bytes, &answer).is_err_and(|error| error.is_too_large()));
    assert_eq!(bytes, begin_pack(1, 2));
}
