//! Several nodes in virtual time.

#[path = "net/faults.rs"]
mod faults;
#[path = "net/hostile.rs"]
mod hostile;
#[path = "net/live.rs"]
mod live;
#[path = "net/membership.rs"]
mod membership;
#[path = "net/outages.rs"]
mod outages;
#[path = "net/sample.rs"]
mod sample;
#[path = "net/services.rs"]
mod services;
#[path = "net/watch.rs"]
mod watch;
#[path = "net/windows.rs"]
mod windows;

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, Next, ReplyTo, Signal, Terminated, TerminationCause,
};
use clockjack_macros::Wire;
use clockjack_net::{
    Address, NodeId,
    engine::{Connect as _, Expected, LogWrite, Moment, Notify},
};
use clockjack_testkit::{TestCluster, TestProbe};

const SECOND: Duration = Duration::from_secs(1);

/// The messages of a counter.
#[derive(Wire)]
#[wire(id = "test.Counter")]
enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
    /// Asks and never answers.
    Keep(ReplyTo<u64>),
    Blob(Vec<u8>),
    Stop,
    Fail,
    /// Answers and stops.
    Bye(ReplyTo<u64>),
    /// Answers what was kept, and reports how many.
    Release,
    /// A request with a payload: answers its length.
    Weigh(Vec<u8>, ReplyTo<u64>),
}

/// Adds numbers, and reports each of them.
struct Counter {
    sum: u64,
    kept: Vec<ReplyTo<u64>>,
    seen: ActorRef<u64>,
}

impl Counter {
    fn new(seen: &TestProbe<u64>) -> impl FnMut() -> Self + use<> {
        let seen = seen.actor_ref();
        move || Self { sum: 0, kept: Vec::new(), seen: seen.clone() }
    }
}

impl Actor for Counter {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => {
                self.sum += n;
                self.seen.tell(n)?;
            }
            Msg::Sum(to) => to.reply(self.sum),
            Msg::Keep(to) => self.kept.push(to),
            Msg::Blob(bytes) => self.seen.tell(bytes.len() as u64)?,
            Msg::Stop => return Ok(Next::Stop),
            Msg::Bye(to) => {
                to.reply(self.sum);
                return Ok(Next::Stop);
            }
            Msg::Release => {
                self.seen.tell(self.kept.len() as u64)?;
                for to in self.kept.drain(..) {
                    to.reply(self.sum);
                }
            }
            Msg::Weigh(bytes, to) => to.reply(bytes.len() as u64),
            Msg::Fail => return Err(Failure::msg("as the test wants")),
        }
        Ok(Next::Stay)
    }
}

/// Two nodes: a counter on node 0, and its remote proxy on node 1.
struct Pair {
    cluster: TestCluster,
    seen: TestProbe<u64>,
    counter: ActorRef<Msg>,
    address: Address<Msg>,
    remote: ActorRef<Msg>,
}

fn pair() -> Pair {
    pair_of(TestCluster::start(2))
}

/// Pairs that differ in which ready actor runs next.
fn pairs() -> impl Iterator<Item = Pair> {
    (0..10).map(|seed| pair_of(TestCluster::with_seed(2, seed)))
}

/// The receivers of a node: one per channel from another node.
fn n_receivers(pair: &Pair, at: usize) -> usize {
    let tree = pair.cluster.node(at).system().tree();
    let peer = pair.cluster.net(1 - at).me().incarnation();
    let name = format!("/system/net-{peer:016x}-");
    tree.iter().filter(|path| path.to_string().starts_with(&name)).count()
}

fn pair_of(cluster: TestCluster) -> Pair {
    let seen = cluster.node(0).probe::<u64>().showing();
    let counter = cluster.node(0).spawn("counter", Counter::new(&seen));
    let address = cluster.net(0).export("counter", &counter).expect("it runs");
    let remote = cluster.net(1).actor(&address).expect("node 0 is a member");
    Pair { cluster, seen, counter, address, remote }
}

/// The server ends a member that runs.
fn end_member(cluster: &TestCluster, node: &NodeId) {
    let mut other = Box::new(cluster.server().clone()).connect(Notify::new(|| ()));
    let key = format!("live.{:016x}", node.incarnation());
    let end = LogWrite { key, value: None, expected: Expected::Any, ttl: None };
    other.write(Moment::default(), end);
}

/// Watches an actor, and reports how it stopped.
struct Watcher {
    who: ActorRef<Msg>,
    ends: ActorRef<(TerminationCause, bool)>,
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
        if let Signal::Terminated(end) = signal {
            let end: Terminated = end;
            self.ends.tell((end.cause(), end.is_lost()))?;
        }
        Ok(Next::Stay)
    }
}

/// Watches the remote counter from node 1.
fn watch(pair: &Pair) -> TestProbe<(TerminationCause, bool)> {
    let node = pair.cluster.node(1);
    let ends = node.probe().showing();
    let (who, to) = (pair.remote.clone(), ends.actor_ref());
    node.spawn("watcher", move || Watcher { who: who.clone(), ends: to.clone() });
    pair.cluster.settle();
    ends
}
