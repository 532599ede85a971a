//! The server cannot be reached for a while, or has ended a member that runs.

use clockjack_actor::TerminationCause;
use clockjack_net::NetEvent;
use clockjack_testkit::TestProbe;

use crate::{Msg, Pair, SECOND, end_member, pair, pairs, watch};

/// The events of a node, from now on.
fn events(pair: &Pair, at: usize) -> TestProbe<NetEvent> {
    let events = pair.cluster.node(at).probe::<NetEvent>().showing();
    pair.cluster.net(at).subscribe(&events.actor_ref());
    events.expect();
    events
}

/// The sum of the counter, as node 1 gets it.
fn sum(pair: &Pair) -> u64 {
    let sum = pair.cluster.block_on(pair.remote.ask(Msg::Sum, SECOND));
    sum.expect("the counter answers")
}

#[test]
fn messages_lost_in_an_outage_are_counted_after_the_reconnect_although_none_follows() {
    for pair in pairs() {
        let events = events(&pair, 0);
        pair.remote.tell(Msg::Add(1)).expect("there is room");
        pair.seen.expect_eq(1);
        pair.cluster.disconnect(1);
        for n in 0..5 {
            pair.remote.tell(Msg::Add(n)).expect("there is room");
        }
        pair.cluster.advance(5 * SECOND);
        pair.seen.expect_none();
        pair.cluster.reconnect(1);
        // The sender reports the last number that it has sent.
        let gap = NetEvent::Gap { from: pair.cluster.net(1).me(), n: 5 };
        events.expect_eq_within(gap, 3 * SECOND);
        events.expect_none_for(60 * SECOND);
        assert_eq!(pair.cluster.net(0).metrics().lost, 5);
    }
}

#[test]
fn an_outage_that_is_shorter_than_the_lease_ends_nothing() {
    for pair in pairs() {
        let (ends, events) = (watch(&pair), events(&pair, 1));
        let me = pair.cluster.net(1).me();
        pair.cluster.disconnect(1);
        events.expect_eq(NetEvent::Suspended);
        // Live messages are lost, and an ask ends by its deadline.
        let late = pair.cluster.block_on(pair.remote.ask(Msg::Sum, 2 * SECOND));
        assert!(late.expect_err("nobody answers").is_timed_out());
        pair.cluster.advance(8 * SECOND);
        pair.cluster.reconnect(1);
        events.expect_eq(NetEvent::Resumed);
        pair.cluster.advance(5 * SECOND);
        assert_eq!(pair.cluster.net(1).me(), me);
        assert_eq!(sum(&pair), 0);
        ends.expect_none_for(60 * SECOND);
        pair.cluster.node(1).expect_no_failures();
    }
}

#[test]
fn an_outage_that_is_longer_than_the_lease_is_the_loss_of_the_node_and_is_reported_once() {
    for pair in pairs() {
        let (ends, events) = (watch(&pair), events(&pair, 1));
        let old = pair.cluster.net(1).me();
        pair.cluster.disconnect(1);
        pair.cluster.advance(20 * SECOND);
        ends.expect_none();
        assert_eq!(pair.cluster.net(0).members().members.len(), 1, "its lease has ended");
        pair.cluster.reconnect(1);
        ends.expect_eq_within((TerminationCause::SelfLost, true), SECOND);
        ends.expect_none_for(60 * SECOND);
        assert_ne!(pair.cluster.net(1).me(), old);
        let happened = [events.expect(), events.expect(), events.expect(), events.expect()];
        let expected = [
            NetEvent::Suspended,
            NetEvent::Resumed,
            NetEvent::Lost(old),
            NetEvent::Joined(pair.cluster.net(1).me()),
        ];
        assert_eq!(happened, expected);
        assert!(!pair.counter.is_stopped(), "local actors continue");
        assert_eq!(pair.cluster.net(0).members().members.len(), 2);
    }
}

/// Membership may be wrong: a server may end the key of a node that runs and renews it.
#[test]
fn a_member_that_is_ended_although_it_runs_joins_again_and_its_actors_have_lost_nothing() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.remote.tell(Msg::Add(3)).expect("there is room");
        pair.seen.expect_eq(3);
        let old = pair.cluster.net(0).me();
        end_member(&pair.cluster, &old);
        ends.expect_eq((TerminationCause::NodeLost, true));
        pair.cluster.advance(5 * SECOND);
        assert_ne!(pair.cluster.net(0).me(), old, "dead is dead");
        assert_eq!(pair.cluster.net(1).members().members.len(), 2);
        assert!(pair.cluster.net(1).actor(&pair.address).is_err(), "the old address is dead");
        // The counter runs on, with what it had, and is reached under a new address.
        let address = pair.cluster.net(0).export("again", &pair.counter).expect("it runs");
        let remote = pair.cluster.net(1).actor(&address).expect("it is a member");
        let again = Pair { remote, ..pair };
        assert_eq!(sum(&again), 3);
        ends.expect_none_for(60 * SECOND);
    }
}

#[test]
fn a_channel_that_is_full_in_an_outage_refuses_and_passes_messages_after_it() {
    let pair = pair();
    pair.cluster.disconnect(1);
    let mut n_accepted = 0;
    while pair.remote.tell(Msg::Add(n_accepted)).is_ok() {
        n_accepted += 1;
        pair.cluster.settle();
        assert!(n_accepted < 100_000, "nothing bounds what waits");
    }
    assert!(n_accepted >= 64, "{n_accepted}");
    pair.cluster.reconnect(1);
    pair.cluster.advance(5 * SECOND);
    // The window was lost; what waited behind it arrives, in order.
    let arrived = pair.seen.receive_n(pair.seen.queued());
    assert!(arrived.is_sorted() && arrived.last() == Some(&(n_accepted - 1)), "{arrived:?}");
    let n_lost = pair.cluster.net(0).metrics().lost;
    assert_eq!(arrived.len() as u64 + n_lost, n_accepted);
}
