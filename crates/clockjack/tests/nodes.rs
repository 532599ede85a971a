//! Several nodes, for a program that depends only on the facade.
#![cfg(not(loom))]

// A test sees the dependencies of its package, but a user of the facade does not. These lines
// shadow the crates, so that generated code which names them finds nothing.
extern crate core as clockjack_actor;
extern crate core as clockjack_net;
extern crate core as clockjack_wire;

use clockjack::{
    actor::{ServiceKey, TerminationCause},
    net::{Address, Net, NetEvent},
    prelude::*,
    testkit::TestCluster,
    wire::{Decoded, Wire, decode, encode},
};

#[derive(Wire)]
#[wire(id = "demo.Counter")]
enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
}

#[derive(Default)]
struct Counter(u64);

impl Actor for Counter {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => self.0 += n,
            Msg::Sum(to) => to.reply(self.0),
        }
        Ok(Next::Stay)
    }
}

/// Watches a counter, and reports how it ended.
struct Watcher {
    who: ActorRef<Msg>,
    out: ActorRef<TerminationCause>,
}

impl Actor for Watcher {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.watch(&self.who)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let Signal::Terminated(end) = signal else { return Ok(Next::Unhandled) };
        self.out.tell(end.cause())?;
        Ok(Next::Stay)
    }
}

/// The sum of a counter on another node.
fn sum(cluster: &TestCluster, counter: &ActorRef<Msg>) -> u64 {
    let sum = cluster.block_on(counter.ask(Msg::Sum, Duration::from_secs(1)));
    sum.expect("the counter answers")
}

#[test]
fn a_program_with_the_facade_alone_tells_asks_watches_and_finds_on_other_nodes() {
    let cluster = TestCluster::start(2);
    let key = ServiceKey::new("counters");
    let counter = cluster.node(0).spawn("counter", Counter::default);
    let nets: [&Net; 2] = [cluster.net(0), cluster.net(1)];
    for net in nets {
        net.share(&key).expect("it is the first").forever();
    }
    cluster.node(0).system().receptionist().register(&key, &counter).expect("it runs");
    cluster.settle();
    let found = cluster.node(1).system().receptionist().find(&key);
    let [remote] = found.services() else { panic!("{found:?}") };
    remote.tell(Msg::Add(2)).expect("there is room");
    assert_eq!(sum(&cluster, remote), 2);

    let ends = cluster.node(1).probe::<TerminationCause>();
    let (who, out) = (remote.clone(), ends.actor_ref());
    cluster.node(1).spawn("watcher", move || Watcher { who: who.clone(), out: out.clone() });
    cluster.settle();
    cluster.crash(0);
    ends.expect_eq_within(TerminationCause::NodeLost, Duration::from_secs(5));
    assert!(cluster.node(1).system().receptionist().find(&key).services().is_empty());
}

#[test]
fn an_address_travels_as_text_and_an_event_says_what_was_lost() {
    let cluster = TestCluster::start(2);
    let events = cluster.node(0).probe::<NetEvent>();
    cluster.net(0).subscribe(&events.actor_ref());
    events.expect();
    let counter = cluster.node(0).spawn("counter", Counter::default);
    let address = cluster.net(0).export("counter", &counter).expect("it runs").to_string();
    let address: Address<Msg> = address.parse().expect("it is an address");
    let remote = cluster.net(1).actor(&address).expect("node 0 is a member");
    cluster.settle();
    cluster.partition(0, 1);
    remote.tell(Msg::Add(1)).expect("there is room");
    cluster.settle();
    cluster.heal(0, 1);
    remote.tell(Msg::Add(3)).expect("there is room");
    assert_eq!(sum(&cluster, &remote), 3);
    events.expect_eq(NetEvent::Gap { from: cluster.net(1).me(), n: 1 });
}

#[test]
fn the_derive_of_the_facade_writes_the_bytes_of_the_format() {
    let (bytes, _) = encode(Msg::Add(300)).expect("it is small");
    assert_eq!(bytes, [0, 0xac, 0x02]);
    assert!(matches!(decode::<Msg>(1, &bytes), Ok(Decoded::Tell(Msg::Add(300)))));
}
