//! Losses are counted, and bad messages harm nobody.

use clockjack_actor::{DeadLetterReason, SystemMessage};
use clockjack_macros::Wire;
use clockjack_net::{Address, NetEvent, wire::MESSAGE_MAX};

use crate::{Counter, Msg, SECOND, n_receivers, pair, watch};

#[test]
fn messages_lost_in_a_partition_are_counted_exactly() {
    let pair = pair();
    let events = pair.cluster.node(0).probe::<NetEvent>().showing();
    pair.cluster.net(0).subscribe(&events.actor_ref());
    events.expect();
    let send = |numbers: core::ops::Range<u64>| {
        for n in numbers {
            pair.remote.tell(Msg::Add(n)).expect("there is room");
        }
        pair.cluster.settle();
    };
    send(0..10);
    pair.cluster.partition(0, 1);
    send(10..17);
    pair.cluster.heal(0, 1);
    send(17..20);
    let arrived: Vec<u64> = (0..10).chain(17..20).collect();
    assert_eq!(pair.seen.receive_n(13), arrived);
    events.expect_eq(NetEvent::Gap { from: pair.cluster.net(1).me(), n: 7 });
    // Lost at the end: the sender reports how far it has sent.
    pair.cluster.partition(0, 1);
    send(20..24);
    pair.cluster.heal(0, 1);
    events.expect_eq_within(NetEvent::Gap { from: pair.cluster.net(1).me(), n: 4 }, 3 * SECOND);
    events.expect_none_for(60 * SECOND);
    pair.seen.expect_none();
}

#[test]
fn a_window_that_was_lost_as_a_whole_opens_again() {
    let pair = pair();
    pair.cluster.partition(0, 1);
    for n in 0..64 {
        pair.remote.tell(Msg::Add(n)).expect("there is room");
    }
    pair.cluster.advance(10 * SECOND);
    pair.cluster.heal(0, 1);
    pair.cluster.advance(5 * SECOND);
    for n in 100..200 {
        pair.remote.tell(Msg::Add(n)).expect("there is room");
        pair.cluster.settle();
    }
    assert_eq!(pair.seen.receive_n(100), (100..200).collect::<Vec<_>>());
}

#[test]
fn a_message_that_is_too_large_is_a_dead_letter_of_its_sender() {
    let pair = pair();
    let letters = || {
        let metrics = pair.cluster.node(1).system().metrics();
        metrics.dead_letters(DeadLetterReason::Unsendable)
    };
    pair.remote.tell(Msg::Blob(vec![0; MESSAGE_MAX])).expect("there is room");
    pair.cluster.settle();
    assert_eq!(letters(), 1);
    // Up to the limit, several in one step.
    for _ in 0..3 {
        pair.remote.tell(Msg::Blob(vec![0; MESSAGE_MAX - 10])).expect("there is room");
    }
    assert_eq!(pair.seen.receive_n(3), [MESSAGE_MAX as u64 - 10; 3]);
    assert_eq!(letters(), 1);
}

#[test]
fn the_receiver_of_a_proxy_that_stopped_in_a_partition_stops_later() {
    let pair = pair();
    pair.remote.tell(Msg::Add(1)).expect("there is room");
    pair.seen.expect_eq(1);
    pair.cluster.advance(5 * SECOND);
    assert_eq!(n_receivers(&pair, 0), 1);
    pair.cluster.partition(0, 1);
    pair.remote.try_send_system(SystemMessage::Stop).expect("it runs");
    pair.cluster.advance(5 * SECOND);
    assert_eq!(n_receivers(&pair, 0), 1, "node 0 cannot know it");
    pair.cluster.heal(0, 1);
    pair.cluster.advance(40 * SECOND);
    assert_eq!(n_receivers(&pair, 0), 0);
}

#[test]
fn thousands_of_small_frames_are_sent_in_several_packs() {
    let pair = pair();
    let mut remotes = vec![pair.remote.clone()];
    for n in 0..5_000 {
        let address = pair.cluster.net(0).export(&format!("counter-{n}"), &pair.counter);
        let remote = pair.cluster.net(1).actor(&address.expect("it runs"));
        remotes.push(remote.expect("it is a member"));
        if n % 100 == 0 {
            pair.cluster.settle();
        }
    }
    // A node opens some of them per second.
    pair.cluster.advance(70 * SECOND);
    assert_eq!(n_receivers(&pair, 0), 5_001);
    pair.cluster.partition(0, 1);
    pair.counter.tell(Msg::Stop).expect("it runs");
    pair.cluster.advance(5 * SECOND);
    pair.cluster.heal(0, 1);
    // One tick repeats the ends of all channels.
    pair.cluster.advance(SECOND);
    assert_eq!(remotes.iter().filter(|remote| !remote.is_stopped()).count(), 0);
}

/// A newer version of the counter's messages.
#[derive(Wire)]
#[wire(id = "test.Counter", version = 2)]
struct Newer(u64);

#[test]
fn an_export_of_another_version_or_an_unknown_one_stops_its_proxy() {
    let pair = pair();
    let parts = pair.address.to_string();
    let newer: Address<Newer> = parts.parse().expect("the type has the same name");
    let newer = pair.cluster.net(1).actor(&newer).expect("it is a member");
    let unknown = parts.replacen("/1/", "/99/", 1).parse().expect("it is an address");
    let unknown = pair.cluster.net(1).actor::<Msg>(&unknown).expect("it is a member");
    newer.tell(Newer(1)).expect("there is room");
    unknown.tell(Msg::Add(1)).expect("there is room");
    pair.cluster.settle();
    assert!(newer.is_stopped());
    assert!(unknown.is_stopped());
    // The other channel is not harmed.
    pair.remote.tell(Msg::Add(7)).expect("there is room");
    pair.seen.expect_eq(7);
}

#[test]
fn messages_for_a_lost_node_are_refused_as_soon_as_it_is_known() {
    let pair = pair();
    let ends = watch(&pair);
    pair.cluster.crash(0);
    // Accepted by the proxy, as long as the node counts as a member.
    pair.remote.tell(Msg::Add(1)).expect("there is room");
    ends.expect_within(5 * SECOND);
    let refused = pair.remote.tell(Msg::Add(2)).expect_err("the proxy has stopped");
    assert!(!refused.is_full());
    assert!(pair.cluster.net(1).actor(&pair.address).is_err());
}

/// More than a node opens at once: the others wait for their turn, and lose nothing.
#[test]
fn thousands_of_proxies_are_opened_one_after_the_other_and_lose_nothing() {
    let pair = pair();
    let node = pair.cluster.node(0);
    let counters: Vec<_> = (0..2_000)
        .map(|n| {
            let counter = node.spawn(&format!("counter-{n}"), Counter::new(&pair.seen));
            pair.cluster.net(0).export(&format!("counter-{n}"), &counter).expect("it runs")
        })
        .collect();
    let remotes: Vec<_> =
        counters.iter().map(|to| pair.cluster.net(1).actor(to).expect("a member")).collect();
    for (n, remote) in (0..).zip(&remotes) {
        remote.tell(Msg::Add(n)).expect("there is room");
    }
    pair.cluster.settle();
    assert!(pair.seen.queued() >= 1_000, "{} at once", pair.seen.queued());
    pair.cluster.advance(20 * SECOND);
    let mut all = pair.seen.receive_n(2_000);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2_000));
    let metrics = pair.cluster.net(0).metrics();
    assert_eq!((metrics.lost, metrics.opens_refused), (0, 0));
}
