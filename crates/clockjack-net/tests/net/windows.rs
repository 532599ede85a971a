//! The windows of links, and requests whose asks are over.

use clockjack_actor::{Actor, ActorRef, Context, Failure, Mailbox, Next, Props, SystemMessage};
use clockjack_net::{
    LINK_WINDOW, NetEvent,
    wire::{
        Wire as _, encode,
        frame::{Frame, MESSAGE_MAX, Message, begin_pack, push_frame},
    },
};
use clockjack_testkit::{TestCluster, TestProbe};

use crate::{Counter, Msg, Pair, SECOND, end_member, pair, pair_of, pairs};

const KIB: usize = 1 << 10;

/// Waits for as many seconds as a message says, or for one second if it says nothing, and reports
/// each message that it handles.
struct Slow(ActorRef<u64>);

impl Actor for Slow {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let (seen, seconds) = match msg {
            Msg::Add(n) => (n, u32::try_from(n)?),
            Msg::Blob(bytes) => (bytes.len() as u64, 1),
            Msg::Sum(to) => {
                to.reply(0);
                (u64::MAX, 0)
            }
            Msg::Weigh(bytes, to) => {
                to.reply(bytes.len() as u64);
                (0, 0)
            }
            _ => return Ok(Next::Unhandled),
        };
        self.0.tell(seen)?;
        let sleep = cx.system().executor().sleep(seconds * SECOND);
        cx.wait(sleep, |_: &mut Self, _: &mut Context<'_, Self>, _| {})?;
        Ok(Next::Stay)
    }
}

/// The remote proxy, on node 1, of a slow actor on node 0 whose mailbox has room for one message.
fn slow(cluster: &TestCluster, name: &str, seen: &TestProbe<u64>) -> ActorRef<Msg> {
    slow_pair(cluster, name, seen).1
}

/// The actor, and its remote proxy.
fn slow_pair(
    cluster: &TestCluster,
    name: &str,
    seen: &TestProbe<u64>,
) -> (ActorRef<Msg>, ActorRef<Msg>) {
    let to = seen.actor_ref();
    let props = Props::new(move || Slow(to.clone())).mailbox(Mailbox::bounded(1));
    let slow = cluster.node(0).spawn(name, props);
    let address = cluster.net(0).export(name, &slow).expect("it runs");
    (slow, cluster.net(1).actor(&address).expect("node 0 is a member"))
}

fn events(pair: &Pair, at: usize) -> TestProbe<NetEvent> {
    let events = pair.cluster.node(at).probe::<NetEvent>().showing();
    pair.cluster.net(at).subscribe(&events.actor_ref());
    events.expect();
    events
}

#[test]
fn slow_actors_of_a_node_together_fill_the_window_of_its_link_and_no_other() {
    let pair = pair_of(TestCluster::start(3));
    let cluster = &pair.cluster;
    let seen = cluster.node(0).probe::<u64>().showing();
    let remotes: Vec<_> = (0..10).map(|at| slow(cluster, &format!("slow-{at}"), &seen)).collect();
    let before = cluster.net(1).metrics();
    for _ in 0..18 {
        for remote in &remotes {
            remote.tell(Msg::Blob(vec![0; 64 * KIB])).expect("there is room");
        }
    }
    cluster.settle();
    // Each actor has taken two messages, and its receiver holds one that it has read.
    let sent = cluster.net(1).metrics().bytes_out - before.bytes_out;
    let taken = 10 * 2 * 65 * KIB as u64;
    assert!(sent <= LINK_WINDOW + taken + MESSAGE_MAX as u64, "{sent} bytes were sent");
    assert!(cluster.net(1).metrics().link_full > 0);
    assert_eq!(cluster.net(1).metrics().channel_full, before.channel_full);
    // Without credit the proxies do not read: the mailbox fills, and that is a typed refusal.
    let n_accepted = (0..10_000).take_while(|_| remotes[0].tell(Msg::Add(0)).is_ok()).count();
    assert!(remotes[0].tell(Msg::Add(0)).is_err_and(|refused| refused.is_full()));
    // The link to another node is not concerned, nor is one in the other direction.
    let third = cluster.node(2).spawn("third", Counter::new(&pair.seen));
    let third = cluster.net(2).export("third", &third).expect("it runs");
    cluster.net(1).actor(&third).expect("a member").tell(Msg::Add(3)).expect("there is room");
    pair.seen.expect_eq(3);
    // The actors take one message per second; then all have arrived, and there is room again.
    cluster.advance(400 * SECOND);
    let all = seen.receive_n(180 + n_accepted);
    assert_eq!(all.iter().filter(|n| **n > 0).count(), 180);
    remotes[0].tell(Msg::Add(0)).expect("there is room again");
    assert_eq!(cluster.net(0).metrics().lost, 0);
}

#[test]
fn a_link_that_is_blocked_for_a_second_is_reported_until_it_gets_on() {
    let pair = pair();
    let (cluster, events) = (&pair.cluster, events(&pair, 1));
    let seen = cluster.node(0).probe::<u64>().showing();
    let remote = slow(cluster, "slow", &seen);
    remote.tell(Msg::Add(20)).expect("there is room");
    for _ in 0..12 {
        remote.tell(Msg::Blob(vec![0; 1_000 * KIB])).expect("there is room");
    }
    let to = cluster.net(0).me();
    events.expect_eq_within(NetEvent::Blocked { to: to.clone() }, 3 * SECOND);
    events.expect_none_for(10 * SECOND);
    events.expect_eq_within(NetEvent::Unblocked { to }, 10 * SECOND);
    cluster.advance(100 * SECOND);
    assert_eq!(seen.receive_n(13).len(), 13);
}

#[test]
fn a_window_of_a_link_that_was_lost_as_a_whole_opens_again() {
    let pair = pair();
    pair.cluster.partition(0, 1);
    for _ in 0..12 {
        pair.remote.tell(Msg::Blob(vec![0; 1_000 * KIB])).expect("there is room");
    }
    pair.cluster.advance(10 * SECOND);
    assert!(pair.cluster.net(1).metrics().link_full > 0);
    pair.cluster.heal(0, 1);
    pair.cluster.advance(5 * SECOND);
    let n_left = 12 - pair.cluster.net(0).metrics().lost;
    assert!((2..5).contains(&n_left), "{n_left} waited for credit");
    assert_eq!(pair.seen.receive_n(usize::try_from(n_left).unwrap()).len() as u64, n_left);
}

#[test]
fn what_an_actor_leaves_when_it_stops_gives_its_credit_back() {
    let pair = pair();
    let (cluster, seen) = (&pair.cluster, pair.cluster.node(0).probe::<u64>().showing());
    for at in 0..4 {
        let (actor, remote) = slow_pair(cluster, &format!("slow-{at}"), &seen);
        remote.tell(Msg::Add(1_000)).expect("there is room");
        for _ in 0..4 {
            remote.tell(Msg::Blob(vec![0; 1_000 * KIB])).expect("there is room");
        }
        cluster.advance(SECOND);
        assert_eq!(cluster.net(1).metrics().link_full, 0, "actor {at}");
        actor.try_send_system(SystemMessage::Stop).expect("it runs");
        cluster.advance(SECOND);
        assert!(remote.is_stopped());
    }
    pair.remote.tell(Msg::Add(1)).expect("there is room");
    pair.seen.expect_eq(1);
}

#[test]
fn a_node_that_ignores_the_window_of_a_link_is_muted() {
    let pair = pair();
    let (cluster, events) = (&pair.cluster, events(&pair, 0));
    let seen = cluster.node(0).probe::<u64>().showing();
    let remote = slow(cluster, "slow", &seen);
    remote.tell(Msg::Add(1_000)).expect("there is room");
    cluster.advance(2 * SECOND);
    let [from, to] = [1, 0].map(|at| cluster.net(at).me().incarnation());
    let encoded = encode(Msg::Blob(vec![0; 1_000 * KIB]));
    let (body, _) = encoded.unwrap_or_else(|error| panic!("{error}"));
    for number in 2..40 {
        let message = Message {
            channel: 2,
            number,
            request: 0,
            type_hash: Msg::ID.hash(),
            version: 1,
            time_left_ms: None,
            trace: None,
            body: &body,
        };
        let mut pack = begin_pack(from, to);
        push_frame(&mut pack, &Frame::Message(message)).expect("it fits");
        cluster.server().inject(to, pack);
        cluster.settle();
    }
    events.expect_eq(NetEvent::Muted(cluster.net(1).me()));
    let n_taken = cluster.net(0).metrics().messages_in;
    assert!(n_taken < 20, "{n_taken} messages of 1 MiB were accepted");
}

#[test]
fn messages_that_arrive_again_do_not_count_in_the_window_of_a_link() {
    let pair = pair();
    let events = events(&pair, 0);
    pair.remote.tell(Msg::Blob(vec![0; 1_000 * KIB])).expect("there is room");
    pair.seen.expect();
    let [from, to] = [1, 0].map(|at| pair.cluster.net(at).me().incarnation());
    let body = vec![0; MESSAGE_MAX];
    for _ in 0..30 {
        let message = Message {
            channel: 1,
            number: 1,
            request: 0,
            type_hash: Msg::ID.hash(),
            version: 1,
            time_left_ms: None,
            trace: None,
            body: &body,
        };
        let mut pack = begin_pack(from, to);
        push_frame(&mut pack, &Frame::Message(message)).expect("it fits");
        pair.cluster.server().inject(to, pack);
    }
    pair.remote.tell(Msg::Add(7)).expect("there is room");
    pair.seen.expect_eq(7);
    events.expect_none();
    assert_eq!(pair.cluster.net(0).metrics().lost, 0);
}

#[test]
fn a_request_whose_ask_is_over_is_dropped_where_it_waits_at_the_receiver() {
    let pair = pair();
    let (cluster, seen) = (&pair.cluster, pair.cluster.node(0).probe::<u64>().showing());
    let remote = slow(cluster, "slow", &seen);
    let ask = || cluster.node(1).system().executor().spawn_future(remote.ask(Msg::Sum, 3 * SECOND));
    // The first is handled, the second is in the mailbox: the requests wait for room.
    remote.tell(Msg::Add(100)).expect("there is room");
    remote.tell(Msg::Add(1)).expect("there is room");
    let waiting: Vec<_> = (0..5).map(|_| ask()).collect();
    // The receiver waits with this one, and the requests after it wait in its mailbox.
    remote.tell(Msg::Add(2)).expect("there is room");
    let queued: Vec<_> = (0..5).map(|_| ask()).collect();
    cluster.advance(200 * SECOND);
    assert_eq!(seen.receive_n(3), [100, 1, 2]);
    seen.expect_none_for(10 * SECOND);
    assert_eq!(cluster.net(0).metrics().asks_forgotten, 10);
    drop((waiting, queued));
    // One that is in time is handled.
    let answer = cluster.block_on(remote.ask(Msg::Sum, 3 * SECOND));
    assert_eq!(answer.expect("it answers"), 0);
}

#[test]
fn a_request_whose_ask_is_over_before_there_is_credit_is_not_sent() {
    let pair = pair();
    let (cluster, seen) = (&pair.cluster, pair.cluster.node(0).probe::<u64>().showing());
    let remote = slow(cluster, "slow", &seen);
    remote.tell(Msg::Add(100)).expect("there is room");
    for _ in 0..70 {
        remote.tell(Msg::Add(0)).expect("there is room");
    }
    let executor = cluster.node(1).system().executor().clone();
    let asks: Vec<_> =
        (0..5).map(|_| executor.spawn_future(remote.ask(Msg::Sum, 3 * SECOND))).collect();
    cluster.advance(200 * SECOND);
    assert_eq!(cluster.net(1).metrics().asks_over, 5);
    assert_eq!(cluster.net(1).metrics().channel_full, 1);
    assert_eq!(cluster.net(0).metrics().messages_in, 71);
    assert_eq!(seen.receive_n(71).iter().sum::<u64>(), 100);
    seen.expect_none();
    drop(asks);
}

/// The proxy gets the window of the lost incarnation, and the driver hears of the proxy only after
/// it has read the end of that incarnation.
#[test]
fn a_proxy_that_is_opened_as_its_node_is_lost_stops_and_no_later_one_gets_its_window() {
    for pair in pairs() {
        let cluster = &pair.cluster;
        let other = cluster.net(0).export("other", &pair.counter).expect("it runs");
        let old = cluster.net(1).me();
        end_member(cluster, &old);
        let stale = cluster.net(1).actor(&other).expect("it has not read its end");
        cluster.settle();
        assert_ne!(cluster.net(1).me(), old);
        assert!(stale.is_stopped(), "it belongs to the lost incarnation");
        let remotes = [&pair.address, &other].map(|to| cluster.net(1).actor(to).expect("a member"));
        for at in 0..18 {
            remotes[at % 2].tell(Msg::Blob(vec![0; 1_000 * KIB])).expect("there is room");
        }
        cluster.advance(2 * SECOND);
        assert_eq!(pair.seen.queued(), 18, "the window opens again");
        pair.seen.receive_n(18);
    }
}

/// A target that takes nothing: what its node holds for it is the window of the link, whether the
/// sender asks or tells.
#[test]
fn requests_that_wait_for_room_count_in_the_windows_until_they_are_in_the_mailbox() {
    let pair = pair();
    let (cluster, seen) = (&pair.cluster, pair.cluster.node(0).probe::<u64>().showing());
    let (actor, remote) = slow_pair(cluster, "slow", &seen);
    remote.tell(Msg::Add(100)).expect("there is room");
    remote.tell(Msg::Add(0)).expect("there is room");
    cluster.settle();
    let executor = cluster.node(1).system().executor().clone();
    let weigh = |_| {
        let request = |to| Msg::Weigh(vec![0; 900 * KIB], to);
        executor.spawn_future(remote.ask(request, 1_000 * SECOND))
    };
    let before = cluster.net(1).metrics().bytes_out;
    let asks: Vec<_> = (0..100).map(weigh).collect();
    cluster.advance(10 * SECOND);
    let metrics = cluster.net(1).metrics();
    let sent = metrics.bytes_out - before;
    assert!(sent <= LINK_WINDOW + 2 * MESSAGE_MAX as u64, "{sent} bytes wait for the target");
    assert!(metrics.link_full > 0);
    // It takes them: each is answered, and in order.
    for ask in asks {
        assert_eq!(cluster.block_on(ask).expect("the future runs").expect("it answers"), 921_600);
    }
    assert!(!actor.is_stopped());
    cluster.node(0).expect_no_failures();
}

/// The same for small ones, which count as messages of their channel.
#[test]
fn small_requests_that_wait_for_room_fill_the_window_of_their_channel() {
    let pair = pair();
    let (cluster, seen) = (&pair.cluster, pair.cluster.node(0).probe::<u64>().showing());
    let remote = slow(cluster, "slow", &seen);
    remote.tell(Msg::Add(10_000)).expect("there is room");
    cluster.settle();
    let executor = cluster.node(1).system().executor().clone();
    let before = cluster.net(1).metrics().messages_out;
    let asks: Vec<_> =
        (0..5_000).map(|_| executor.spawn_future(remote.ask(Msg::Sum, 90 * SECOND))).collect();
    cluster.advance(5 * SECOND);
    let metrics = cluster.net(1).metrics();
    let n_sent = metrics.messages_out - before;
    assert!(n_sent <= 1_024 + 1, "{n_sent} requests wait for the target");
    assert!(metrics.channel_full > 0);
    drop(asks);
}
