//! A peer that is not trusted: whatever it sends, no local actor is harmed.

use clockjack_actor::{Actor, Context, DeadLetterReason, EventKinds, Failure, Next, SystemEvent};
use clockjack_net::{
    NetEvent,
    wire::{
        DecodeError, Decoded, Decoder, EncodeError, Encoder, MESSAGE_MAX, Wire, WireId,
        frame::{EndCause, Frame, Message, begin_pack, push_frame},
    },
};
use proptest::prelude::*;

use crate::{Msg, Pair, SECOND, n_receivers, pair};

/// A pack of frames from node 1 to node 0.
fn pack(pair: &Pair, frames: &[Frame<'_>]) -> Vec<u8> {
    pack_to(pair, 0, frames)
}

/// A pack of frames to a node, from the other one.
fn pack_to(pair: &Pair, at: usize, frames: &[Frame<'_>]) -> Vec<u8> {
    let [to, from] = [at, 1 - at].map(|at| pair.cluster.net(at).me().incarnation());
    let mut bytes = begin_pack(from, to);
    for frame in frames {
        push_frame(&mut bytes, frame).expect("it fits");
    }
    bytes
}

fn inject(pair: &Pair, bytes: Vec<u8>) {
    pair.cluster.server().inject(pair.cluster.net(0).me().incarnation(), bytes);
    pair.cluster.settle();
}

/// Node 0 and its counter work as before.
fn check_unharmed(pair: &Pair) {
    pair.counter.tell(Msg::Add(1)).expect("it runs");
    pair.seen.expect_eq(1);
    pair.cluster.node(0).expect_no_failures();
    assert_eq!(pair.cluster.net(0).members().members.len(), 2);
}

fn message(number: u64, body: &[u8]) -> Message<'_> {
    Message {
        channel: 1,
        number,
        request: 0,
        type_hash: Msg::ID.hash(),
        version: 1,
        time_left_ms: None,
        trace: None,
        body,
    }
}

#[test]
fn bytes_that_are_no_pack_or_from_a_stranger_are_dropped() {
    let pair = pair();
    pair.remote.tell(Msg::Add(3)).expect("there is room");
    pair.seen.expect_eq(3);
    let me = pair.cluster.net(0).me().incarnation();
    let mut stranger = begin_pack(12345, me);
    push_frame(&mut stranger, &Frame::Message(message(2, &[0, 9]))).expect("it fits");
    let mut for_another = begin_pack(pair.cluster.net(1).me().incarnation(), me ^ 1);
    push_frame(&mut for_another, &Frame::Message(message(2, &[0, 9]))).expect("it fits");
    for bytes in [vec![], vec![0xff; 100], stranger, for_another] {
        inject(&pair, bytes);
    }
    pair.seen.expect_none();
    check_unharmed(&pair);
    pair.remote.tell(Msg::Add(4)).expect("there is room");
    pair.seen.expect_eq(4);
}

#[test]
fn a_message_that_cannot_be_decoded_is_a_dead_letter_with_its_reason() {
    let pair = pair();
    pair.remote.tell(Msg::Add(3)).expect("there is room");
    pair.seen.expect_eq(3);
    let frames = [
        Frame::Message(message(2, &[99])),
        Frame::Message(Message { version: 7, ..message(3, &[0, 9]) }),
        Frame::Message(Message { type_hash: 7, ..message(4, &[0, 9]) }),
        Frame::Message(message(5, &[0, 9])),
    ];
    inject(&pair, pack(&pair, &frames));
    pair.seen.expect_eq(9);
    let metrics = pair.cluster.node(0).system().metrics();
    assert_eq!(metrics.dead_letters(DeadLetterReason::Undecodable), 3);
    check_unharmed(&pair);
}

#[test]
fn a_message_beyond_the_window_is_dropped_and_ten_of_them_mute_the_node() {
    let pair = pair();
    pair.remote.tell(Msg::Add(3)).expect("there is room");
    pair.seen.expect_eq(3);
    let events = pair.cluster.node(0).probe::<NetEvent>().showing();
    pair.cluster.net(0).subscribe(&events.actor_ref());
    events.expect();
    for n in 0..9 {
        inject(&pair, pack(&pair, &[Frame::Message(message(1_000_000 + n, &[0, 9]))]));
    }
    events.expect_none();
    inject(&pair, pack(&pair, &[Frame::Message(message(u64::MAX, &[0, 9]))]));
    events.expect_eq(NetEvent::Muted(pair.cluster.net(1).me()));
    pair.seen.expect_none();
    pair.remote.tell(Msg::Add(4)).expect("there is room");
    pair.seen.expect_none_for(50 * SECOND);
    check_unharmed(&pair);
    // After a minute it is heard again; what was lost meanwhile is counted.
    events.expect_eq_within(NetEvent::Gap { from: pair.cluster.net(1).me(), n: 1 }, 20 * SECOND);
    pair.remote.tell(Msg::Add(5)).expect("there is room");
    pair.seen.expect_eq(5);
}

#[test]
fn an_answer_or_a_kind_of_frame_that_is_unknown_breaks_no_rule() {
    let pair = pair();
    let events = [0, 1].map(|at| {
        let events = pair.cluster.node(at).probe::<NetEvent>().showing();
        pair.cluster.net(at).subscribe(&events.actor_ref());
        events.expect();
        events
    });
    for request in 1..=20 {
        let ask = pair.remote.ask(Msg::Keep, 60 * SECOND);
        pair.cluster.settle();
        // The answer of a newer node, with another type.
        let answer = Frame::Answer { channel: 1, request, body: Some(&[0x80, 1, 2]) };
        let to = pair.cluster.net(1).me().incarnation();
        pair.cluster.server().inject(to, pack_to(&pair, 1, &[answer]));
        let before = pair.cluster.elapsed();
        assert!(pair.cluster.block_on(ask).is_err_and(|error| !error.is_timed_out()));
        assert!(pair.cluster.elapsed() - before < SECOND);
        // A frame of a newer node, and one that this node knows.
        let mut newer = pack(&pair, &[]);
        newer.extend_from_slice(&[3, 99, 1, 2]);
        push_frame(&mut newer, &Frame::Ping).expect("it fits");
        inject(&pair, newer);
    }
    events.iter().for_each(|events| events.expect_none());
    check_unharmed(&pair);
}

#[test]
fn requests_beyond_the_limit_of_a_channel_are_refused_and_not_handled() {
    let pair = pair();
    pair.cluster.settle();
    // The limit, as the receiver has it.
    let asks_max = 16 * 1_024;
    let numbers: Vec<u64> = (1..=asks_max + 5).collect();
    for numbers in numbers.chunks(32) {
        let request = |n: &u64| Frame::Message(Message { request: *n, ..message(*n, &[2]) });
        inject(&pair, pack(&pair, &numbers.iter().map(request).collect::<Vec<_>>()));
    }
    pair.counter.tell(Msg::Release).expect("it runs");
    pair.seen.expect_eq(asks_max);
}

/// A message whose decoder panics.
struct Bomb;

impl Wire for Bomb {
    const ID: WireId = WireId::new("test.Bomb");

    fn encode(self, _out: &mut Encoder<'_>) -> Result<(), EncodeError<Self>> {
        Ok(())
    }

    fn decode(_version: u16, _from: &mut Decoder<'_>) -> Result<Decoded<Self>, DecodeError> {
        panic!("as the test wants")
    }
}

struct Target;

impl Actor for Target {
    type Msg = Bomb;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: Bomb) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

#[test]
fn a_decoder_that_panics_ends_its_channel_and_nothing_else() {
    let pair = pair();
    let target = pair.cluster.node(0).spawn("target", || Target);
    let address = pair.cluster.net(0).export("target", &target).expect("it runs");
    let remote = pair.cluster.net(1).actor(&address).expect("it is a member");
    remote.tell(Bomb).expect("there is room");
    pair.cluster.advance(2 * SECOND);
    assert!(remote.is_stopped());
    assert!(!target.is_stopped());
    assert_eq!(pair.cluster.node(0).take_failures().len(), 1);
    check_unharmed(&pair);
}

fn frames() -> impl Strategy<Value = Frame<'static>> {
    let number = || prop_oneof![0..4_u64, 60..70_u64, any::<u64>()];
    let cause = prop_oneof![
        Just(EndCause::Stopped),
        Just(EndCause::Failed),
        Just(EndCause::NotExported),
        Just(EndCause::Unknown)
    ];
    prop_oneof![
        (number(), number(), number()).prop_map(|(channel, number, request)| {
            Frame::Message(Message { channel, request, ..message(number, &[2]) })
        }),
        (number(), number(), any::<bool>()).prop_map(|(channel, export, is_ours)| Frame::Open {
            channel,
            export,
            type_hash: if is_ours { Msg::ID.hash() } else { 1 },
            version: 1,
        }),
        (number(), number(), number()).prop_map(|(channel, limit, received)| Frame::Grant {
            channel,
            limit,
            received
        }),
        (number(), number()).prop_map(|(channel, sent)| Frame::Query { channel, sent }),
        (number(), cause).prop_map(|(channel, cause)| Frame::End { channel, cause }),
        number().prop_map(|channel| Frame::Close { channel }),
        (number(), number()).prop_map(|(channel, request)| Frame::Answer {
            channel,
            request,
            body: Some(&[1, 2]),
        }),
        number().prop_map(|request| Frame::Find { request, type_hash: 1, name: "counter" }),
        (number(), number()).prop_map(|(request, export)| Frame::Found { request, export }),
        Just(Frame::Ping),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_frames_of_a_member_harm_no_local_actor(
        packs in proptest::collection::vec(proptest::collection::vec(frames(), 0..8), 1..8),
    ) {
        let pair = pair();
        for frames in packs {
            inject(&pair, pack(&pair, &frames));
        }
        pair.cluster.advance(5 * SECOND);
        check_unharmed(&pair);
    }
}

/// What a message contains is the business of its actor alone.
#[test]
fn no_event_of_a_node_shows_what_a_message_contains() {
    const SECRET: &[u8] = b"hunter2-hunter2";
    let pair = pair();
    let events = [0, 1].map(|at| {
        let node = pair.cluster.node(at);
        let events = node.probe::<SystemEvent>().showing();
        node.system().events().subscribe(EventKinds::ALL, events.actor_ref());
        let of_net = node.probe::<NetEvent>().showing();
        pair.cluster.net(at).subscribe(&of_net.actor_ref());
        (events, of_net)
    });
    // Cannot be decoded, is too large, is of another type, is lost, and has no actor any more.
    pair.remote.tell(Msg::Add(3)).expect("there is room");
    pair.cluster.settle();
    let body = [&[99_u8][..], SECRET].concat();
    inject(&pair, pack(&pair, &[Frame::Message(message(2, &body))]));
    inject(&pair, SECRET.to_vec());
    let other = Message { type_hash: 7, ..message(3, &body) };
    inject(&pair, pack(&pair, &[Frame::Message(other), Frame::Message(message(5, &body))]));
    let mut large = vec![0; MESSAGE_MAX];
    large.extend_from_slice(SECRET);
    pair.remote.tell(Msg::Blob(large)).expect("there is room");
    pair.cluster.settle();
    pair.counter.tell(Msg::Stop).expect("it runs");
    pair.remote.tell(Msg::Blob(SECRET.to_vec())).expect("it does not know it yet");
    pair.cluster.advance(5 * SECOND);
    let mut text = String::new();
    for (events, of_net) in &events {
        let (n, n_of_net) = (events.queued(), of_net.queued());
        assert!(n > 0 && n_of_net > 0);
        events.receive_n(n).iter().for_each(|event| text.push_str(&format!("{event:?}\n")));
        of_net.receive_n(n_of_net).iter().for_each(|event| text.push_str(&format!("{event:?}\n")));
    }
    assert!(text.contains("Undecodable") && text.contains("Unsendable"), "{text}");
    let bytes = format!("{SECRET:?}");
    for shown in ["hunter2", bytes.trim_matches(['[', ']'])] {
        assert!(!text.contains(shown), "{text}");
    }
}

#[test]
fn a_peer_that_opens_channels_without_end_gets_64_per_second_after_a_first_burst() {
    let pair = pair();
    let export = 1;
    let mut channel = 10;
    let mut flood = || {
        let opens = (0..4_000).map(|_| {
            channel += 1;
            Frame::Open { channel, export, type_hash: Msg::ID.hash(), version: 1 }
        });
        inject(&pair, pack(&pair, &opens.collect::<Vec<_>>()));
    };
    // The other node would close what it has not opened.
    pair.cluster.partition(0, 1);
    let n_before = n_receivers(&pair, 0);
    flood();
    let n_first = n_receivers(&pair, 0) - n_before;
    assert!((1_000..1_200).contains(&n_first), "{n_first} channels at once");
    let n_refused = || pair.cluster.net(0).metrics().opens_refused;
    for second in 0..10 {
        pair.cluster.advance(SECOND);
        let before = n_refused();
        flood();
        let n_opened = 4_000 - (n_refused() - before);
        assert!((1..=65).contains(&n_opened), "{n_opened} in second {second}");
    }
    check_unharmed(&pair);
}

#[test]
fn a_name_that_no_export_has_is_answered_once_per_second() {
    let pair = pair();
    let find = |request| Frame::Find { request, type_hash: 7, name: "nobody" };
    let answers = |n: u64| {
        let before = pair.cluster.net(0).metrics().bytes_out;
        inject(&pair, pack(&pair, &(1..=n).map(find).collect::<Vec<_>>()));
        pair.cluster.net(0).metrics().bytes_out - before
    };
    let one = answers(1);
    assert!(one > 0);
    assert_eq!(answers(1_000), 0, "it was answered in this second");
    pair.cluster.advance(SECOND);
    assert!(answers(1_000) <= one);
    // Many names are not answered without end either.
    let names: Vec<String> = (0..1_000).map(|n| format!("nobody-{n}")).collect();
    let finds =
        (1..).zip(&names).map(|(request, name)| Frame::Find { request, type_hash: 7, name });
    let before = pair.cluster.net(0).metrics().bytes_out;
    inject(&pair, pack(&pair, &finds.collect::<Vec<_>>()));
    assert!(pair.cluster.net(0).metrics().bytes_out - before < 64 * one);
    check_unharmed(&pair);
}
