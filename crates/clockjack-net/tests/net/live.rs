//! tell, send, ask and find.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, Mailbox, Next, Props, ReplyTo, Signal, TerminationCause,
};
use clockjack_net::{
    Address, NetEvent,
    wire::{
        DecodeError, Decoded, Decoder, EncodeError, Encoder, Wire, WireId, frame::EXPORT_NAME_MAX,
    },
};
use clockjack_testkit::TestCluster;

use crate::{Msg, SECOND, pair, pair_of, pairs, watch};

#[test]
fn messages_arrive_in_the_order_of_sending() {
    for seed in 0..20 {
        let pair = pair_of(TestCluster::with_seed(2, seed));
        for n in 0..60 {
            pair.remote.tell(Msg::Add(n)).expect("there is room");
        }
        assert_eq!(pair.seen.receive_n(60), (0..60).collect::<Vec<_>>(), "seed {seed}");
        pair.cluster.node(0).expect_no_failures();
    }
}

#[test]
fn thousands_of_messages_pass_the_window_without_loss() {
    let pair = pair();
    let remote = pair.remote.clone();
    let all = async move {
        for n in 0..10_000 {
            remote.send(Msg::Add(n)).await.map_err(|refused| refused.to_string())?;
        }
        Ok::<(), String>(())
    };
    pair.cluster.block_on(all).expect("nothing is refused");
    assert_eq!(pair.seen.receive_n(10_000), (0..10_000).collect::<Vec<_>>());
}

#[test]
fn an_answer_comes_back_and_a_request_keeps_its_place_among_tells() {
    let pair = pair();
    pair.remote.tell(Msg::Add(2)).expect("there is room");
    let sum = pair.remote.ask(Msg::Sum, SECOND);
    pair.remote.tell(Msg::Add(5)).expect("there is room");
    assert_eq!(pair.cluster.block_on(sum).expect("it answers"), 2);
    let sum = pair.remote.ask(Msg::Sum, SECOND);
    assert_eq!(pair.cluster.block_on(sum).expect("it answers"), 7);
}

#[test]
fn an_ask_without_an_answer_ends_by_its_deadline() {
    let pair = pair();
    let before = pair.cluster.elapsed();
    let refused = pair.cluster.block_on(pair.remote.ask(Msg::Keep, 3 * SECOND));
    assert!(refused.is_err_and(|error| error.is_timed_out()));
    assert_eq!(pair.cluster.elapsed() - before, 3 * SECOND);
}

#[test]
fn an_ask_ends_at_once_when_the_actor_stops_without_an_answer() {
    let pair = pair();
    let ask = pair.remote.ask(Msg::Keep, 60 * SECOND);
    pair.remote.tell(Msg::Stop).expect("there is room");
    let before = pair.cluster.elapsed();
    assert!(pair.cluster.block_on(ask).is_err_and(|error| !error.is_timed_out()));
    assert!(pair.cluster.elapsed() - before < SECOND);
}

#[test]
fn an_actor_that_answers_and_stops_is_heard() {
    for pair in pairs() {
        let ends = watch(&pair);
        let answer = pair.cluster.block_on(pair.remote.ask(Msg::Bye, SECOND));
        assert_eq!(answer.expect("it answers"), 0);
        ends.expect_eq((TerminationCause::Stopped, false));
        ends.expect_none_for(60 * SECOND);
    }
}

#[test]
fn an_actor_may_answer_more_requests_later_than_its_window_has_room_for() {
    let pair = pair();
    let mut asks = Vec::new();
    for _ in 0..1_200 {
        asks.push(pair.remote.ask(Msg::Keep, 50 * SECOND));
        pair.cluster.settle();
    }
    pair.remote.tell(Msg::Release).expect("there is room");
    pair.seen.expect_eq(1_200);
    for ask in asks {
        assert_eq!(pair.cluster.block_on(ask).expect("it answers"), 0);
    }
}

/// A request that is read as a message without a `ReplyTo`.
struct Unread(Option<ReplyTo<u64>>);

impl Wire for Unread {
    const ID: WireId = WireId::new("test.Unread");

    fn encode(self, out: &mut Encoder<'_>) -> Result<(), EncodeError<Self>> {
        self.0.into_iter().for_each(|to| out.reply_to(to));
        Ok(())
    }

    fn decode(_version: u16, _from: &mut Decoder<'_>) -> Result<Decoded<Self>, DecodeError> {
        Ok(Decoded::Tell(Self(None)))
    }
}

#[test]
fn a_request_that_is_read_as_a_message_ends_at_once_without_an_answer() {
    let pair = pair();
    let probe = pair.cluster.node(0).probe::<Unread>();
    let address = pair.cluster.net(0).export("probe", &probe.actor_ref()).expect("it runs");
    let remote = pair.cluster.net(1).actor(&address).expect("node 0 is a member");
    let before = pair.cluster.elapsed();
    let refused = pair.cluster.block_on(remote.ask(|to| Unread(Some(to)), 50 * SECOND));
    assert!(refused.is_err_and(|error| !error.is_timed_out()));
    assert!(pair.cluster.elapsed() - before < SECOND);
    assert!(probe.expect().0.is_none(), "it is handled as a message");
}

#[test]
fn an_ask_ends_when_the_node_is_lost() {
    let pair = pair();
    let ask = pair.remote.ask(Msg::Keep, Duration::from_secs(600));
    pair.cluster.settle();
    pair.cluster.crash(0);
    let before = pair.cluster.elapsed();
    let refused = pair.cluster.block_on(ask);
    assert!(refused.is_err_and(|error| error.is_stopped()), "the proxy has stopped");
    assert!(pair.cluster.elapsed() - before <= 5 * SECOND);
}

/// Takes one message, reports it, and then waits for a second before each further one.
struct Slow(ActorRef<u64>);

impl Actor for Slow {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        if let Msg::Add(n) = msg {
            self.0.tell(n)?;
        }
        let sleep = cx.system().executor().sleep(SECOND);
        cx.wait(sleep, |_: &mut Self, _: &mut Context<'_, Self>, _| {})?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

#[test]
fn a_slow_target_fills_the_window_and_then_the_mailbox_of_the_proxy() {
    let pair = pair();
    let taken = pair.cluster.node(0).probe::<u64>().showing();
    let to = taken.actor_ref();
    let props = Props::new(move || Slow(to.clone())).mailbox(Mailbox::bounded(4));
    let slow = pair.cluster.node(0).spawn("slow", props);
    let address = pair.cluster.net(0).export("slow", &slow).expect("it runs");
    let remote = pair.cluster.net(1).actor(&address).expect("node 0 is a member");
    let mut n_sent = 0_u64;
    let refused = loop {
        match remote.tell(Msg::Add(n_sent)) {
            Ok(()) => n_sent += 1,
            Err(refused) => break refused,
        }
        pair.cluster.settle();
        assert!(n_sent < 100_000, "nothing bounds the sender");
    };
    assert!(refused.is_full());
    // Another actor of the same node is not delayed.
    pair.remote.tell(Msg::Add(1)).expect("there is room");
    pair.seen.expect_eq(1);
    // The target takes one per second; then there is room again.
    pair.cluster.advance(Duration::from_secs(2_000));
    remote.tell(Msg::Add(n_sent)).expect("there is room again");
    pair.cluster.advance(Duration::from_secs(5));
    // Nothing was lost, and the window did not close for good.
    let all: Vec<u64> = (0..=n_sent).collect();
    assert_eq!(taken.receive_n(all.len()), all);
}

#[test]
fn an_export_is_found_by_its_name_and_type() {
    let pair = pair();
    let node = pair.cluster.net(0).me();
    let found = pair.cluster.block_on(pair.cluster.net(1).find::<Msg>(&node, "counter"));
    assert_eq!(found.as_ref(), Ok(&pair.address));
    let missing = pair.cluster.block_on(pair.cluster.net(1).find::<Msg>(&node, "other"));
    assert!(missing.is_err_and(|error| error.is_not_exported()));
    let local = pair.cluster.block_on(pair.cluster.net(0).find::<Msg>(&node, "counter"));
    assert_eq!(local, found);
    pair.cluster.crash(0);
    let lost = pair.cluster.block_on(pair.cluster.net(1).find::<Msg>(&node, "counter"));
    assert!(lost.is_err_and(|error| error.is_unreachable()));
}

#[test]
fn a_name_that_no_export_can_have_is_not_asked_for() {
    let pair = pair();
    let events = pair.cluster.node(0).probe::<NetEvent>().showing();
    pair.cluster.net(0).subscribe(&events.actor_ref());
    events.expect();
    let node = pair.cluster.net(0).me();
    for length in [0, EXPORT_NAME_MAX + 1, 2 << 20].repeat(5) {
        let find = pair.cluster.net(1).find::<Msg>(&node, &"n".repeat(length));
        let missing = pair.cluster.block_on(find);
        assert!(missing.is_err_and(|error| error.is_not_exported()), "{length} bytes");
    }
    events.expect_none();
}

#[test]
fn an_address_is_text_and_a_proxy_is_the_same_on_each_call() {
    let pair = pair();
    let text = pair.address.to_string();
    assert_eq!(text.parse::<Address<Msg>>().as_ref(), Ok(&pair.address));
    assert!(text.replace("test.Counter", "test.Other").parse::<Address<Msg>>().is_err());
    assert!("test.Counter/1".parse::<Address<Msg>>().is_err());
    let again = pair.cluster.net(1).actor(&pair.address).expect("it is a member");
    assert_eq!(again, pair.remote);
    assert!(pair.cluster.net(1).is_remote(&again));
    assert!(!pair.cluster.net(0).is_remote(&pair.counter));
    pair.counter.tell(Msg::Stop).expect("it runs");
    pair.cluster.settle();
    assert!(again.is_stopped());
    assert!(pair.cluster.net(1).is_remote(&again), "it does not become a local actor");
}

#[test]
fn a_name_is_exported_once_while_its_actor_runs() {
    let pair = pair();
    let net = pair.cluster.net(0);
    let refused = net.export("counter", &pair.counter).expect_err("the name is taken");
    assert!(refused.is_name_taken());
    assert!(net.export("", &pair.counter).is_err_and(|error| error.is_invalid_name()));
    pair.counter.tell(Msg::Stop).expect("it runs");
    pair.cluster.settle();
    assert!(net.export("other", &pair.counter).is_err_and(|error| error.is_stopped()));
    let new = pair.cluster.node(0).spawn("new", crate::Counter::new(&pair.seen));
    assert_ne!(net.export("counter", &new).expect("the old one has stopped"), pair.address);
}

#[test]
fn a_control_message_overtakes_the_tells_that_wait_in_its_proxy() {
    let pair = pair();
    for n in 0..5 {
        pair.remote.tell(Msg::Add(n)).expect("there is room");
    }
    pair.remote.tell_control(Msg::Add(99)).expect("there is room");
    assert_eq!(pair.seen.receive_n(6), [99, 0, 1, 2, 3, 4]);
    // At most once, as any other message.
    pair.cluster.partition(0, 1);
    pair.remote.tell_control(Msg::Add(100)).expect("there is room");
    pair.cluster.advance(5 * SECOND);
    pair.cluster.heal(0, 1);
    pair.cluster.advance(5 * SECOND);
    pair.seen.expect_none();
    assert_eq!(pair.cluster.net(0).metrics().lost, 1);
}

#[test]
fn a_control_message_goes_before_the_message_that_waits_for_credit() {
    let pair = pair();
    pair.cluster.partition(0, 1);
    for n in 0..70 {
        pair.remote.tell(Msg::Add(n)).expect("there is room");
    }
    pair.cluster.settle();
    for n in [200, 201] {
        pair.remote.tell_control(Msg::Add(n)).expect("it runs");
    }
    pair.cluster.advance(SECOND);
    assert!(!pair.remote.is_stopped());
    pair.cluster.heal(0, 1);
    pair.cluster.advance(5 * SECOND);
    // The first window is lost.
    assert_eq!(pair.seen.receive_n(8), [200, 201, 64, 65, 66, 67, 68, 69]);
    assert_eq!(pair.cluster.net(0).metrics().lost, 64);
    pair.cluster.node(1).expect_no_failures();
}

/// The hot path of local actors does not know of nodes: a reference to a remote proxy is one word,
/// as every other one, and only its path shows what it is.
#[test]
fn a_reference_to_an_actor_of_another_node_is_one_word() {
    let pair = pair();
    assert_eq!(size_of_val(&pair.remote), size_of::<usize>());
    assert!(pair.cluster.net(1).is_remote(&pair.remote));
    assert!(!pair.cluster.net(0).is_remote(&pair.counter));
}

#[test]
fn an_answer_arrives_within_the_timeout_of_the_ask_however_long_that_is() {
    let pair = pair();
    let executor = pair.cluster.node(1).system().executor().clone();
    let ask = executor.spawn_future(pair.remote.ask(Msg::Keep, 120 * SECOND));
    pair.cluster.advance(90 * SECOND);
    pair.counter.tell(Msg::Release).expect("it runs");
    let answer = pair.cluster.block_on(ask).expect("the future runs");
    assert_eq!(answer.expect("the actor has answered in time"), 0);
    assert!(pair.cluster.elapsed() < 92 * SECOND);
    // One that is never answered times out at its deadline, neither earlier nor with another error.
    let start = pair.cluster.elapsed();
    let never = pair.cluster.block_on(pair.remote.ask(Msg::Keep, 300 * SECOND));
    assert!(never.expect_err("nobody answers").is_timed_out());
    assert_eq!(pair.cluster.elapsed() - start, 300 * SECOND);
}

/// The frame that says so is lost, and repeated until it is confirmed.
#[test]
fn a_request_that_nobody_waits_for_is_forgotten_although_a_frame_is_lost() {
    let pair = pair();
    let executor = pair.cluster.node(1).system().executor().clone();
    let ask = executor.spawn_future(pair.remote.ask(Msg::Keep, 5 * SECOND));
    pair.cluster.advance(SECOND);
    pair.cluster.partition(0, 1);
    pair.cluster.advance(9 * SECOND);
    assert_eq!(pair.cluster.net(0).metrics().asks_forgotten, 0);
    pair.cluster.heal(0, 1);
    pair.cluster.advance(2 * SECOND);
    assert_eq!(pair.cluster.net(0).metrics().asks_forgotten, 1);
    // Confirmed: no frame repeats it.
    let sent = |at: usize| pair.cluster.net(at).metrics().bytes_out;
    let before = [sent(0), sent(1)];
    pair.cluster.advance(10 * SECOND);
    let idle = [sent(0) - before[0], sent(1) - before[1]];
    assert_eq!(idle[0], idle[1], "pings only");
    drop(ask);
}
