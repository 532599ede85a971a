//! The end of a remote actor is reported exactly once, with its cause.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use clockjack_actor::{
    Actor, ActorRef, Context, DeadLetterReason, Failure, Next, Props, Signal, TerminationCause,
};
use clockjack_testkit::TestCluster;

use crate::{Msg, Pair, SECOND, end_member, pair_of, pairs, watch};

/// The end is reported within some seconds, and never again.
fn check(
    pair: &Pair,
    ends: &clockjack_testkit::TestProbe<(TerminationCause, bool)>,
    expected: (TerminationCause, bool),
    within: u32,
) {
    ends.expect_eq_within(expected, within * SECOND);
    ends.expect_none_for(120 * SECOND);
    assert!(pair.remote.is_stopped());
    pair.cluster.node(1).expect_no_failures();
}

/// Counts what it is told, where the watcher can read it.
struct Tally(Arc<AtomicU64>);

impl Actor for Tally {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        if matches!(msg, Msg::Stop) {
            return Ok(Next::Stop);
        }
        // Relaxed: all nodes of a test run on its thread.
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Next::Stay)
    }
}

/// Reports how much had been counted when it learned of the end.
struct TallyWatcher {
    who: ActorRef<Msg>,
    n_seen: Arc<AtomicU64>,
    to: ActorRef<u64>,
}

impl Actor for TallyWatcher {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.watch(&self.who)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if matches!(signal, Signal::Terminated(_)) {
            self.to.tell(self.n_seen.load(Ordering::Relaxed))?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_stop_is_reported_once_and_after_what_was_delivered() {
    for pair in pairs() {
        let ends = watch(&pair);
        // The systems share a process here, so the watcher can read what was delivered by then.
        let n_seen = Arc::new(AtomicU64::new(0));
        let tally = Tally(n_seen.clone());
        let tally = pair.cluster.node(0).spawn("tally", Props::once(tally));
        let address = pair.cluster.net(0).export("tally", &tally).expect("it runs");
        let who = pair.cluster.net(1).actor(&address).expect("it is a member");
        let at_the_end = pair.cluster.node(1).probe::<u64>().showing();
        let watcher = TallyWatcher { who: who.clone(), n_seen, to: at_the_end.actor_ref() };
        pair.cluster.node(1).spawn("tally-watcher", Props::once(watcher));
        pair.cluster.settle();
        for remote in [&who, &pair.remote] {
            for n in 0..40 {
                remote.tell(Msg::Add(n)).expect("there is room");
            }
            remote.tell(Msg::Stop).expect("there is room");
        }
        at_the_end.expect_eq(40);
        at_the_end.expect_none_for(SECOND);
        assert_eq!(pair.seen.queued(), 40);
        check(&pair, &ends, (TerminationCause::Stopped, false), 1);
    }
}

#[test]
fn a_failure_is_reported_once() {
    for pair in pairs() {
        let ends = watch(&pair);
        let props = Props::new(crate::Counter::new(&pair.seen))
            .supervise(clockjack_actor::Strategy::stop());
        let failing = pair.cluster.node(0).spawn("failing", props);
        let address = pair.cluster.net(0).export("failing", &failing).expect("it runs");
        let remote = pair.cluster.net(1).actor(&address).expect("it is a member");
        let pair = Pair { remote, ..pair };
        let failed = pair.cluster.node(1).probe().showing();
        let (who, to) = (pair.remote.clone(), failed.actor_ref());
        let watcher = move || crate::Watcher { who: who.clone(), ends: to.clone() };
        pair.cluster.node(1).spawn("second", watcher);
        pair.cluster.settle();
        pair.remote.tell(Msg::Fail).expect("there is room");
        check(&pair, &failed, (TerminationCause::Failed, false), 1);
        ends.expect_none();
    }
}

#[test]
fn a_killed_node_is_reported_once_after_some_seconds() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.cluster.advance(10 * SECOND);
        pair.cluster.crash(0);
        ends.expect_none_for(2 * SECOND);
        check(&pair, &ends, (TerminationCause::NodeLost, true), 3);
    }
}

#[test]
fn a_frozen_node_is_reported_once_when_its_lease_has_ended() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.cluster.advance(10 * SECOND);
        pair.cluster.freeze(0);
        ends.expect_none_for(12 * SECOND);
        ends.expect_eq_within((TerminationCause::NodeLost, true), 4 * SECOND);
        // The node returns: nothing revives the old reference.
        pair.cluster.thaw(0);
        ends.expect_none_for(120 * SECOND);
        assert!(pair.remote.tell(Msg::Add(1)).is_err());
        pair.seen.expect_none();
    }
}

#[test]
fn the_loss_of_the_own_node_is_reported_once() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.cluster.freeze(1);
        pair.cluster.advance(20 * SECOND);
        pair.cluster.thaw(1);
        check(&pair, &ends, (TerminationCause::SelfLost, true), 2);
    }
}

#[test]
fn a_partition_that_heals_reports_nothing_but_a_stop_in_between() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.cluster.partition(0, 1);
        ends.expect_none_for(60 * SECOND);
        pair.cluster.heal(0, 1);
        ends.expect_none_for(60 * SECOND);
        pair.remote.tell(Msg::Add(1)).expect("there is room");
        pair.seen.expect_eq(1);
        // Everything is confirmed, so only the end itself has to be repeated.
        pair.cluster.advance(5 * SECOND);
        pair.cluster.partition(0, 1);
        pair.counter.tell(Msg::Stop).expect("it runs");
        ends.expect_none_for(60 * SECOND);
        pair.cluster.heal(0, 1);
        check(&pair, &ends, (TerminationCause::Stopped, false), 2);
    }
}

#[test]
fn a_node_that_leaves_is_reported_at_once() {
    for pair in pairs() {
        let ends = watch(&pair);
        pair.cluster.net(0).leave();
        check(&pair, &ends, (TerminationCause::NodeLost, true), 1);
        assert!(!pair.counter.is_stopped(), "local actors continue");
    }
}

#[test]
fn an_actor_that_has_stopped_before_is_reported_at_once() {
    for pair in pairs() {
        pair.counter.tell(Msg::Stop).expect("it runs");
        pair.cluster.settle();
        let ends = watch(&pair);
        check(&pair, &ends, (TerminationCause::Stopped, false), 1);
    }
}

/// Whatever its proxy has accepted and not sent by then: what waits for credit, what the driver has
/// not read, and what is in the mailbox of the proxy.
#[test]
fn messages_that_were_not_sent_when_their_node_is_lost_are_dead_letters() {
    let mut n_unsent = 0;
    for seed in 0..40 {
        let pair = pair_of(TestCluster::with_seed(2, seed));
        let (cluster, system) = (&pair.cluster, pair.cluster.node(1).system());
        let letters = || {
            let of = |reason| system.metrics().dead_letters(reason) as u64;
            [of(DeadLetterReason::Unreachable), of(DeadLetterReason::Stopped)]
        };
        end_member(cluster, &cluster.net(0).me());
        // The driver of node 1 reads the end, and some of these come after it.
        let n = if seed % 2 == 0 { 10 } else { 200 };
        for number in 0..n {
            pair.remote.tell(Msg::Add(number)).expect("it has not heard of it");
        }
        cluster.settle();
        assert!(pair.remote.is_stopped());
        let [unreachable, stopped] = letters();
        let unsent = cluster.net(1).metrics().unsent;
        assert!(unsent <= unreachable, "{unsent} of {unreachable}");
        assert_eq!(unreachable + stopped + cluster.net(1).metrics().messages_out, n, "seed {seed}");
        n_unsent += unsent;
    }
    assert!(n_unsent > 0, "no message was behind the end of its node");
}

/// A window that is lost: the others wait for credit in the proxy.
#[test]
fn a_message_that_waits_for_credit_when_its_node_is_lost_is_a_dead_letter() {
    let pair = pair_of(TestCluster::start(2));
    pair.cluster.crash(0);
    for number in 0..65 {
        pair.remote.tell(Msg::Add(number)).expect("there is room");
    }
    pair.cluster.advance(10 * SECOND);
    let metrics = pair.cluster.node(1).system().metrics();
    assert_eq!(metrics.dead_letters(DeadLetterReason::Unreachable), 1);
    assert_eq!(pair.cluster.net(1).metrics().messages_out, 64);
}

/// The driver of the node stops before it hears of the proxy.
#[test]
fn a_proxy_that_is_opened_as_its_node_leaves_stops() {
    for pair in pairs() {
        let cluster = &pair.cluster;
        let other = cluster.net(0).export("other", &pair.counter).expect("it runs");
        cluster.net(1).leave();
        let opened = cluster.net(1).actor(&other).expect("it has not left yet");
        let executor = cluster.node(1).system().executor().clone();
        let ask = executor.spawn_future(opened.ask(Msg::Sum, 3 * SECOND));
        cluster.settle();
        assert!(opened.is_stopped(), "its node has left");
        assert!(pair.remote.is_stopped());
        let answer = cluster.block_on(ask).expect("the future runs");
        assert!(answer.is_err_and(|error| error.is_stopped()), "an ask ends at once");
        assert_eq!(cluster.elapsed(), core::time::Duration::ZERO);
        assert!(cluster.net(1).actor(&other).is_err(), "it has left");
    }
}
