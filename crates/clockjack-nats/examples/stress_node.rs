//! A node for tests with faults: `cargo xtask nats` starts several, and kills and stops them.
//!
//! The node exports a counter, and to each other member it opens a remote proxy, which it watches.
//! A node whose name begins with `ask` sends requests to it, each other node sends messages: so the
//! messages of a node can be counted exactly. It prints what it sees, one line each, and reads
//! commands: `pause` stops sending, `resume` continues, `report` prints all counters.
#![expect(clippy::print_stdout, reason = "the test reads it")]

use core::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::BufRead as _,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use clockjack_macros::Wire;
use clockjack_nats::{NatsConfig, join};
use clockjack_net::{Members, Net, NetEvent, NodeId};
use clockjack_rt::{
    Runtime,
    actor::{Actor, ActorRef, Context, Failure, Next, Props, ReplyTo, Signal},
};

/// How often each proxy gets a message.
const SEND_EVERY: Duration = Duration::from_millis(5);
/// How long the servers may take to be ready.
const JOIN_WITHIN: Duration = Duration::from_secs(60);
/// How long a request may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Wire)]
#[wire(id = "stress.Item")]
enum Item {
    /// A message from one incarnation to another one.
    Number(u64, u64),
    Count(ReplyTo<u64>),
}

/// What this process has counted.
#[derive(Default)]
struct Counts {
    /// Messages that have arrived, per sender and target.
    received: Mutex<BTreeMap<(u64, u64), u64>>,
    /// Messages that were reported as lost, per sender and target.
    lost: Mutex<BTreeMap<(u64, u64), u64>>,
    /// The incarnation of this node, as far as its listener has heard.
    me: AtomicU64,
    asks_started: AtomicU64,
    asks_ended: AtomicU64,
    asks_answered: AtomicU64,
    is_paused: AtomicBool,
}

fn add(map: &Mutex<BTreeMap<(u64, u64), u64>>, pair: (u64, u64), n: u64) {
    *map.lock().unwrap_or_else(PoisonError::into_inner).entry(pair).or_default() += n;
}

/// Counts what arrives.
struct Sink(Arc<Counts>);

impl Actor for Sink {
    type Msg = Item;

    fn receive(&mut self, _: &mut Context<'_, Self>, item: Item) -> Result<Next, Failure> {
        match item {
            Item::Number(from, to) => add(&self.0.received, (from, to), 1),
            Item::Count(to) => to.reply(self.0.received.lock().map_or(0, |map| map.len() as u64)),
        }
        Ok(Next::Stay)
    }
}

/// Watches the remote proxy of one member, and sends messages to it.
struct Sender {
    id: u64,
    me: u64,
    to: NodeId,
    remote: ActorRef<Item>,
    counts: Arc<Counts>,
    /// Whether another thread sends requests instead.
    asks: bool,
    /// Set when the proxy has stopped.
    is_over: Arc<AtomicBool>,
    n_sent: Arc<AtomicU64>,
}

impl Actor for Sender {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        println!("watch {} {:016x} {:016x}", self.id, self.me, self.to.incarnation());
        cx.watch(&self.remote)?;
        cx.timers().fixed_rate("send", SEND_EVERY, || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        let is_over = self.is_over.load(SeqCst);
        let is_silent = self.asks || is_over || self.counts.is_paused.load(SeqCst);
        // A full mailbox is no loss: nothing was sent.
        if !is_silent && self.remote.tell(Item::Number(self.me, self.to.incarnation())).is_ok() {
            self.n_sent.fetch_add(1, SeqCst);
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::Terminated(end) = &signal {
            println!("terminated {} {:?}", self.id, end.cause());
            self.is_over.store(true, SeqCst);
        }
        Ok(Next::Stay)
    }
}

/// One proxy: its number, the incarnations of sender and target, and how much was sent.
type Sent = (u64, u64, u64, Arc<AtomicU64>);

struct Node {
    rt: &'static Runtime,
    net: Net,
    asks: bool,
    counts: Arc<Counts>,
    /// The members for which there is a proxy, as which incarnation of this node.
    opened: Mutex<BTreeSet<(u64, u64)>>,
    sent: Mutex<Vec<Sent>>,
}

impl Node {
    /// Opens a proxy to a member that was not there before.
    fn open(self: &Arc<Self>, to: NodeId) {
        let pair = (self.net.me().incarnation(), to.incarnation());
        if !self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(pair) {
            return;
        }
        let node = self.clone();
        thread::spawn(move || {
            // A member that has no counter yet has one soon.
            let address = loop {
                match node.rt.block_on(node.net.find::<Item>(&to, "sink")) {
                    Ok(address) => break address,
                    Err(error) if error.is_unreachable() => return,
                    Err(_) => thread::sleep(Duration::from_millis(50)),
                }
            };
            // As another incarnation, this node opens another proxy.
            if let Ok(remote) = node.net.actor(&address)
                && node.net.me().incarnation() == pair.0
            {
                node.drive(pair.0, to, remote);
            }
        });
    }

    /// Sends and asks until the proxy has stopped.
    fn drive(&self, me: u64, to: NodeId, remote: ActorRef<Item>) {
        let (is_over, n_sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let id = sent.len() as u64;
        sent.push((id, me, to.incarnation(), n_sent.clone()));
        drop(sent);
        let asks = self.asks;
        let (asked, over, counts) = (remote.clone(), is_over.clone(), self.counts.clone());
        let props = move || Sender {
            id,
            me,
            to: to.clone(),
            remote: remote.clone(),
            counts: counts.clone(),
            asks,
            is_over: is_over.clone(),
            n_sent: n_sent.clone(),
        };
        if self.rt.spawn(&format!("sender-{id}"), props).is_err() {
            return;
        }
        let counts = &self.counts;
        while asks && !over.load(SeqCst) {
            if !counts.is_paused.load(SeqCst) {
                counts.asks_started.fetch_add(1, SeqCst);
                let answer = self.rt.block_on(asked.ask(Item::Count, ASK_TIMEOUT));
                counts.asks_answered.fetch_add(u64::from(answer.is_ok()), SeqCst);
                counts.asks_ended.fetch_add(1, SeqCst);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn report(&self) {
        let net = self.net.metrics();
        for (id, from, to, n) in self.sent.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("sent {id} {from:016x} {to:016x} {}", n.load(SeqCst));
        }
        for (what, map) in [("received", &self.counts.received), ("lost", &self.counts.lost)] {
            for ((from, to), n) in map.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                println!("{what} {from:016x} {to:016x} {n}");
            }
        }
        let Counts { asks_started, asks_ended, asks_answered, .. } = &*self.counts;
        let [started, ended, answered] =
            [asks_started, asks_ended, asks_answered].map(|n| n.load(SeqCst));
        println!("asks {started} {ended} {answered}");
        println!("refused {}", net.packs_refused);
        print_members(&self.net.members());
        println!("end {:016x}", self.net.me().incarnation());
    }
}

fn print_members(members: &Members) {
    let all: Vec<String> = members.members.iter().map(|one| one.node.to_string()).collect();
    println!("members {} {}", members.sequence, all.join(","));
}

/// Opens proxies to members as they come, and counts what is lost.
fn listen(node: &Arc<Node>) -> Result<(), Failure> {
    let listening = node.clone();
    let listen = Props::from_fn(move |_cx, event: NetEvent| {
        match event {
            NetEvent::Joined(me) => {
                println!("joined {:016x}", me.incarnation());
                listening.counts.me.store(me.incarnation(), SeqCst);
                // As another incarnation, everybody else is new again.
                let others = listening.net.members().members;
                others.into_iter().filter(|one| one.node != me).for_each(|one| {
                    listening.open(one.node);
                });
            }
            NetEvent::MemberUp(member) if is_member(&listening.net) => listening.open(member.node),
            NetEvent::Gap { from, n } => {
                let me = listening.counts.me.load(SeqCst);
                add(&listening.counts.lost, (from.incarnation(), me), n);
            }
            other => println!("event {other:?}"),
        }
        Ok(())
    });
    let listener = node.rt.spawn("listener", listen)?;
    node.net.subscribe(&listener);
    Ok(())
}

/// Prints the members at each place of the log.
fn follow_members(node: &Arc<Node>) {
    let watched = node.clone();
    thread::spawn(move || {
        let mut last = 0;
        loop {
            let members = watched.net.members();
            if core::mem::replace(&mut last, members.sequence) != members.sequence {
                print_members(&members);
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [urls, name, lease_s] = arguments.as_slice() else {
        return Err(Failure::msg("usage: stress_node URLS NAME LEASE_SECONDS"));
    };
    let rt: &'static Runtime = Box::leak(Box::new(Runtime::new(name)?));
    let mut config = NatsConfig::new("", "stress", name);
    config.urls = urls.split(',').map(str::to_owned).collect();
    config.replicas = config.urls.len();
    config.connect_timeout = Duration::from_secs(10);
    config.node.lease = Duration::from_secs(lease_s.parse()?);
    config.node.renew_every = config.node.lease / 7;
    // Servers that have just started have no leader yet.
    let start = Instant::now();
    let net = loop {
        match rt.block_on(join(rt.system(), config.clone())) {
            Ok(net) => break net,
            Err(error) if start.elapsed() < JOIN_WITHIN => println!("not joined: {error}"),
            Err(error) => return Err(error.into()),
        }
        thread::sleep(Duration::from_millis(200));
    };
    let counts = Arc::new(Counts::default());
    let sink = counts.clone();
    let sink = rt.spawn("sink", move || Sink(sink.clone()))?;
    net.export("sink", &sink)?;
    let node = Arc::new(Node {
        rt,
        net,
        asks: name.starts_with("ask"),
        counts,
        opened: Mutex::default(),
        sent: Mutex::default(),
    });
    listen(&node)?;
    follow_members(&node);
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "pause" => node.counts.is_paused.store(true, SeqCst),
            "resume" => node.counts.is_paused.store(false, SeqCst),
            _ => node.report(),
        }
    }
    Ok(())
}

/// Whether this node has read its own key.
fn is_member(net: &Net) -> bool {
    let me = net.me();
    net.members().members.iter().any(|one| one.node == me)
}
