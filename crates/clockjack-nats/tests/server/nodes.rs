//! Two nodes on a server.

use core::time::Duration;
use std::sync::mpsc;

use clockjack_macros::Wire;
use clockjack_nats::{NatsConfig, join};
use clockjack_net::{Net, NetEvent};
use clockjack_rt::{
    Runtime,
    actor::{Actor, ActorRef, Context, Failure, Next, Props, ReplyTo, Signal, TerminationCause},
};

use crate::{
    PATIENCE,
    process::{NodeProcess, Server},
    until,
};

#[derive(Wire)]
#[wire(id = "test.Counter")]
pub(crate) enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
    Stop,
}

#[derive(Default)]
struct Counter(u64);

impl Actor for Counter {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => self.0 += n,
            Msg::Sum(to) => to.reply(self.0),
            Msg::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }
}

struct Watcher {
    who: ActorRef<Msg>,
    ends: mpsc::Sender<TerminationCause>,
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
            self.ends.send(end.cause())?;
        }
        Ok(Next::Stay)
    }
}

pub(crate) struct Node {
    pub(crate) rt: Runtime,
    pub(crate) net: Net,
    pub(crate) events: mpsc::Receiver<NetEvent>,
}

pub(crate) fn node(server: &Server, name: &str) -> Node {
    node_of(server, "test", name)
}

fn node_of(server: &Server, cluster: &str, name: &str) -> Node {
    node_with(NatsConfig::new(&server.url(), cluster, name))
}

pub(crate) fn node_with(config: NatsConfig) -> Node {
    let rt = Runtime::new(&config.node.name).expect("it starts");
    let net = rt.block_on(join(rt.system(), config)).expect("the server runs");
    let (to, events) = mpsc::channel();
    let listen = Props::from_fn(move |_cx, event: NetEvent| {
        to.send(event)?;
        Ok(())
    });
    let listener = rt.spawn("listener", listen).expect("it starts");
    assert!(net.subscribe(&listener));
    Node { rt, net, events }
}

pub(crate) fn wait_for_members(node: &Node, n: usize) {
    until("all are members", || (node.net.members().members.len() == n).then_some(()));
}

/// Two nodes, a counter on the first, and its remote proxy on the second.
pub(crate) fn pair(server: &Server) -> (Node, Node, ActorRef<Msg>) {
    let (one, two) = (node(server, "one"), node(server, "two"));
    wait_for_members(&one, 2);
    wait_for_members(&two, 2);
    let remote = remote_counter(&one, &two, "counter");
    (one, two, remote)
}

/// A counter on the first node, and its remote proxy on the second.
fn remote_counter(one: &Node, two: &Node, name: &str) -> ActorRef<Msg> {
    let counter = one.rt.spawn(name, Counter::default).expect("it starts");
    one.net.export(name, &counter).expect("it runs");
    let found = two.rt.block_on(two.net.find::<Msg>(&one.net.me(), name));
    two.net.actor(&found.expect("it is exported")).expect("it is a member")
}

/// Starts a counter on the first node, and calls it from the second one: the sum of the numbers
/// from 1 to 3,000, if none was lost.
pub(crate) fn sum_of_calls(one: &Node, two: &Node) -> u64 {
    let remote = remote_counter(one, two, "sum");
    two.rt.block_on(async {
        for n in 1..=3_000 {
            remote.send(Msg::Add(n)).await.expect("it runs");
        }
        remote.ask(Msg::Sum, PATIENCE).await.expect("it answers")
    })
}

pub(crate) fn watch(node: &Node, who: &ActorRef<Msg>) -> mpsc::Receiver<TerminationCause> {
    let (ends, causes) = mpsc::channel();
    let who = who.clone();
    let props = move || Watcher { who: who.clone(), ends: ends.clone() };
    node.rt.spawn("watcher", props).expect("it starts");
    causes
}

#[test]
fn tell_ask_and_watch_reach_an_actor_of_another_node() {
    let server = Server::start();
    let (one, two, remote) = pair(&server);
    let causes = watch(&two, &remote);
    two.rt.block_on(async {
        for n in 1..=3_000 {
            remote.send(Msg::Add(n)).await.expect("it runs");
        }
    });
    let sum = two.rt.block_on(remote.ask(Msg::Sum, PATIENCE));
    assert_eq!(sum.expect("it answers"), 3_000 * 3_001 / 2, "in order, and none is lost");
    remote.tell(Msg::Stop).expect("it runs");
    assert_eq!(causes.recv_timeout(PATIENCE), Ok(TerminationCause::Stopped));
    // A node that shuts down leaves at once, not when its lease has ended.
    drop(one.rt);
    wait_for_members(&two, 1);
    assert!(causes.try_recv().is_err(), "the end is reported once");
}

#[test]
fn nodes_of_another_cluster_are_not_seen() {
    let server = Server::start();
    let one = node(&server, "one");
    let rt = Runtime::new("other").expect("it starts");
    let config = NatsConfig::new(&server.url(), "other", "one");
    let other = rt.block_on(join(rt.system(), config)).expect("the server runs");
    until("it is a member", || (other.members().members.len() == 1).then_some(()));
    wait_for_members(&one, 1);
    assert_ne!(one.net.me(), other.me());
}

#[test]
fn sample_1_runs_in_two_processes_and_a_killed_node_is_reported_once() {
    let server = Server::start();
    let mut counter = NodeProcess::start("serve", &server.url());
    counter.expect("the counter is shared");
    let client = NodeProcess::start("call", &server.url());
    client.expect("the sum is 2");
    let watching = node_of(&server, "demo", "watching");
    wait_for_members(&watching, 3);
    counter.kill();
    client.expect("the node of the counter is lost");
    assert_eq!(client.finish(), [""; 0], "the end is reported once");
    wait_for_members(&watching, 1);
    let down =
        |event: &NetEvent| matches!(event, NetEvent::MemberDown(one) if one.node.name() == "serve");
    let n_down = watching.events.try_iter().filter(down).count();
    assert_eq!(n_down, 1);
}

#[test]
fn members_survive_a_restart_of_the_server_that_is_shorter_than_the_lease() {
    let mut server = Server::start();
    let (one, two, remote) = pair(&server);
    let (me, causes) = (one.net.me(), watch(&two, &remote));
    server.kill();
    until("the connection is lost", || {
        one.events.try_iter().any(|event| event == NetEvent::Suspended).then_some(())
    });
    server.restart();
    until("the connection is there", || {
        one.events.try_iter().any(|event| event == NetEvent::Resumed).then_some(())
    });
    remote.tell(Msg::Add(7)).expect("the proxy lives");
    let sum = until("the counter answers", || {
        two.rt.block_on(remote.ask(Msg::Sum, Duration::from_secs(1))).ok()
    });
    assert!(sum == 7 || sum == 0, "a tell is sent at most once: {sum}");
    assert_eq!(one.net.me(), me, "its lease was renewed in time");
    assert!(causes.try_recv().is_err());
}
