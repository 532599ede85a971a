//! Several nodes on one server in memory: messages, asks, watches, services and members, while
//! packs are lost, links are cut, and nodes are paused, killed and started again.
//!
//! Each node is a system of its own; all have one clock. The engine of each node is the one in
//! memory, behind [faults](engine). The oracle knows what was sent, which node was killed, and what
//! the log of the server says, and derives from these what each node may report.

mod engine;
mod node;
mod oracle;

use core::time::Duration;

use clockjack_actor::{
    ActorRef, ActorSystem, EventKinds, Mailbox, Props, ServiceKey, SystemMessage,
};
use clockjack_net::{
    MemoryServer, Net, NetConfig,
    engine::{Connect as _, Engine, EngineEvent, Moment, Notify},
    wire::frame::MESSAGE_OVERHEAD,
};

use self::{
    engine::{Cable, FaultyConnect, Traffic},
    node::{Failures, Listener, Msg, Target, Watcher},
    oracle::{Oracle, StreamState},
};
use crate::{
    context::SimContext,
    fault::Class,
    host::single_thread::SingleThreadHost,
    invariant::Invariant,
    random::{Stream, mix},
    run::{Description, Phases, Workload, run_phases},
};

/// Time passes in parts of so many ticks, so that nodes see it together.
const PART: u64 = 250;
/// How often the nodes run one after the other until all are idle.
const ROUNDS_MAX: usize = 10_000;
/// The longest time that a node is paused or cut off, in ticks: longer than a lease.
const OUTAGE_MAX: u64 = 25_000;
/// How long the nodes run without faults: longer than a lease, and than all messages take.
const DRAIN_TICKS: u64 = 120_000;
/// The messages of a flood, and their bytes: more than the window of a channel, or of a link.
const FLOOD_MANY: (u64, usize) = (300, 0);
const FLOOD_LARGE: (u64, usize) = (12, 900 << 10);
/// How long the asks of a flood wait, in ticks.
const ASK_TIMEOUT: u64 = 20_000;
/// How long a target takes nothing at the end, in ticks.
const WAIT_TICKS: u64 = 20_000;
/// The requests that wait for it, and their bytes: more than the window of a link and the room of
/// its mailbox.
const WAITING: (u64, usize) = (200, 100 << 10);
/// The most room of a mailbox.
const ROOM_MAX: u64 = 40;
/// The messages through each stream at the end: more than its first window.
const LAST_MESSAGES: u64 = 200;
/// Nanoseconds per tick.
const TICK_NANOS: u64 = 1_000_000;

/// Nodes of a cluster, their actors, and their server.
#[derive(Clone, Copy, Debug)]
pub struct Cluster;

impl Workload for Cluster {
    fn description(&self) -> Description {
        use Class::{
            KeyLost, MailFlood, NetDelay, NetDrop, NetDup, NetOffline, NetPartition, NodeCrash,
            NodePause, OddStop, ServerRestart, WriteLost,
        };
        use Invariant::{L1, N1, N2, N3, N7, N8};
        Description {
            name: "cluster",
            faults: &[
                &[NetDrop, NetDup, NetDelay, NetPartition, NetOffline, ServerRestart, WriteLost],
                &[NodePause, NodeCrash, OddStop, MailFlood, KeyLost],
            ],
            invariants: &[N1, N2, N3, N7, N8, L1],
            least_records: 20,
            least_comparisons: 100,
        }
    }

    fn run(&self, sim: &SimContext) {
        let mut run = WorkloadRun::new(sim);
        let steps = sim.setting("steps", 60, 120);
        run_phases(sim, steps, &mut run);
    }
}

/// A running process of a node.
struct Node {
    host: SingleThreadHost,
    net: Net,
    cable: Cable,
    target: ActorRef<Msg>,
    /// The number of its target among all.
    number: u64,
}

impl Node {
    /// The incarnations of the services that its receptionist has from other nodes.
    fn remote_services(&self) -> Vec<u64> {
        let listing = self.host.system().receptionist().find(&key());
        let incarnation = |service: &ActorRef<Msg>| {
            let path = service.path().to_string();
            let (_, node) = path.split_once('@')?;
            u64::from_str_radix(node.split('-').next()?, 16).ok()
        };
        listing.services().iter().filter_map(incarnation).collect()
    }
}

/// The place of a node: its process, if it runs.
#[derive(Default)]
struct Place {
    node: Option<Node>,
    paused_until: u64,
    offline_until: u64,
    /// When a killed process is started again.
    starts_at: u64,
}

struct WorkloadRun {
    sim: SimContext,
    oracle: Oracle,
    traffic: Traffic,
    server: MemoryServer,
    /// Reads the log for the oracle.
    observer: Box<dyn Engine>,
    places: Vec<Place>,
    /// The remote proxy of each stream.
    remotes: Vec<(u64, ActorRef<Msg>)>,
    partitions: Vec<(usize, usize, u64)>,
    work: Stream,
    order: Stream,
    pace: u64,
    busy: u64,
    /// Packs that nodes refused before they were killed.
    n_refused: u64,
    /// How many of ten messages are requests.
    asks: u64,
    /// The longest time that a target takes for a message.
    slow: u64,
    n_targets: u64,
    /// The nodes leave. What they have read says nothing about them any more.
    is_leaving: bool,
}

impl WorkloadRun {
    fn new(sim: &SimContext) -> Self {
        let server = MemoryServer::new();
        let n_nodes = sim.setting("nodes", 2, 5);
        let mut run = Self {
            sim: sim.clone(),
            oracle: Oracle::new(sim),
            traffic: Traffic::new(sim),
            observer: Box::new(server.clone()).connect(Notify::new(|| {})),
            server,
            places: (0..n_nodes).map(|_| Place::default()).collect(),
            remotes: Vec::new(),
            partitions: Vec::new(),
            work: sim.stream("work"),
            order: sim.stream("order"),
            pace: sim.setting("pace", 200, 3_000),
            busy: sim.setting("busy", 1, 12),
            n_refused: 0,
            asks: sim.setting("asks", 0, 3),
            slow: sim.setting("slow", 0, 2_000),
            n_targets: 0,
            is_leaving: false,
        };
        for at in 0..run.places.len() {
            run.start_node(at);
        }
        run.pass(PART);
        run
    }

    fn start_node(&mut self, at: usize) {
        let name = format!("node-{at}");
        let builder = ActorSystem::builder(&name).shutdown_on_escalation(false);
        let seed = mix(self.sim.order_seed() ^ at as u64).max(1);
        let cable = Cable::new();
        let connect = FaultyConnect {
            sim: self.sim.clone(),
            server: self.server.clone(),
            traffic: self.traffic.clone(),
            cable: cable.clone(),
            node: at,
        };
        let started = SingleThreadHost::start_seeded(&self.sim, builder, seed);
        let Ok(host) = started else {
            return self.sim.check(Invariant::L1, false, || "a node does not start".into());
        };
        self.n_targets += 1;
        let (oracle, number) = (self.oracle.clone(), self.n_targets);
        let joined = Net::join(host.system(), connect, NetConfig::new(&name));
        let listening = oracle.clone();
        let listener = move || Listener { oracle: listening.clone(), node: at };
        let listener = Props::new(listener).mailbox(Mailbox::unbounded());
        let listener = host.system().spawn("listener", listener);
        let target = move || Target { oracle: oracle.clone(), target: number };
        let room = usize::try_from(self.work.between(1, ROOM_MAX)).unwrap_or(1);
        let target = Props::new(target).mailbox(Mailbox::bounded(room));
        let target = host.system().spawn("target", target);
        let (Ok(net), Ok(listener), Ok(target)) = (joined, listener, target) else {
            return self.sim.check(Invariant::L1, false, || "a node does not join".into());
        };
        net.subscribe(&listener);
        let failing = self.oracle.clone();
        let failures = Props::new(move || Failures(failing.clone())).mailbox(Mailbox::unbounded());
        if let Ok(failures) = host.system().spawn("failures", failures) {
            host.system().events().subscribe(EventKinds::FAILURE, failures);
        }
        let key = key();
        let is_shared = net.share(&key).is_ok_and(|shared| {
            shared.forever();
            net.export("target", &target).is_ok()
        });
        let is_registered = host.system().receptionist().register(&key, &target).is_ok();
        self.sim.check(Invariant::L1, is_shared && is_registered, || "nothing is shared".into());
        self.sim.record("start", &[at as u64, number]);
        self.places[at] =
            Place { node: Some(Node { host, net, cable, target, number }), ..Place::default() };
    }

    /// Kills the process of a node.
    fn kill(&mut self, at: usize) {
        let Some(node) = self.places[at].node.take() else { return };
        self.sim.record("kill", &[at as u64]);
        self.n_refused += node.net.metrics().packs_refused;
        node.cable.cut();
        self.server.cut(node.cable.incarnation());
        let killed = self.oracle.killed(at);
        self.remotes.retain(|(stream, _)| !killed.contains(stream));
        drop(node);
    }

    /// Time passes for all nodes; those that are not paused run.
    fn pass(&mut self, ticks: u64) {
        let mut left = ticks;
        while left > 0 && !self.sim.is_broken() {
            let part = left.min(PART);
            left -= part;
            self.sim.clock().advance(part);
            let now = self.sim.now();
            for node in self.places.iter_mut().filter_map(|place| place.node.as_mut()) {
                node.host.passed(part);
            }
            for place in self.places.iter_mut().filter(|place| place.paused_until <= now) {
                if let Some(node) = &mut place.node {
                    node.host.deliver_ticks();
                }
            }
            self.run_all();
        }
    }

    /// Runs the nodes, in any order, until all are idle.
    fn run_all(&mut self) {
        let now = self.sim.now();
        for _ in 0..ROUNDS_MAX {
            let places = self.places.iter_mut().filter(|place| place.paused_until <= now);
            let mut woken: Vec<&mut Node> = places
                .filter_map(|place| place.node.as_mut())
                .filter(|node| node.host.is_woken())
                .collect();
            if woken.is_empty() {
                return self.check_nodes();
            }
            let at = self.order.index(woken.len());
            woken[at].host.run_until_idle();
            self.read_log();
        }
        self.sim.check(Invariant::L1, false, || "the nodes are never idle".into());
    }

    /// Lets the oracle read the log.
    fn read_log(&mut self) {
        let now = Moment::from_nanos(self.sim.now().saturating_mul(TICK_NANOS));
        for event in self.observer.poll(now) {
            match event {
                EngineEvent::Log(event) => self.oracle.log(&event),
                _ => self.sim.check(Invariant::N7, false, || "the log is not read".into()),
            }
        }
    }

    fn check_nodes(&mut self) {
        self.read_log();
        for (at, node) in self.places.iter().enumerate() {
            if let Some(node) = &node.node {
                let me = node.net.me().incarnation();
                self.oracle.is_incarnation(at, me, node.number);
            }
        }
        self.oracle.check_causes();
        let now = self.sim.now();
        for (at, place) in self.places.iter().enumerate() {
            let Some(node) = place.node.as_ref().filter(|_| place.paused_until <= now) else {
                continue;
            };
            let (me, members) = (node.net.me().incarnation(), node.net.members());
            self.oracle.check_members(at, &members);
            if !self.is_leaving {
                self.oracle.check_services(at, me, &members, &node.remote_services());
            }
            self.oracle.check_idle_node(me, &members);
        }
    }

    /// The remote proxy, on one node, of the target of another: an existing one, or a new stream.
    fn stream(&mut self, from: usize, to: usize) -> Option<(u64, ActorRef<Msg>)> {
        let [source, sink] = [from, to].map(|at| self.places[at].node.as_ref());
        let (source, sink) = (source?, sink?);
        let (me, peer) = (source.net.me().incarnation(), sink.net.me().incarnation());
        let known = self.oracle.live_streams(me, sink.number);
        let found = self.remotes.iter().find(|(stream, _)| known.contains(stream));
        if let Some(found) = found {
            return Some(found.clone());
        }
        // As if the address had travelled in a message.
        let key = key();
        let services = source.host.system().receptionist().find(&key);
        let remote = services.services().iter().find(|service| {
            let path = service.path();
            let path = format!("{path}");
            path.contains(&format!("@{peer:016x}-")) && !service.is_stopped()
        })?;
        let remote = remote.clone();
        let id = self.oracle.state().streams.len() as u64 + 1;
        self.add_stream(id, (from, me), (to, peer), remote)
    }

    fn add_stream(
        &mut self,
        id: u64,
        from: (usize, u64),
        to: (usize, u64),
        remote: ActorRef<Msg>,
    ) -> Option<(u64, ActorRef<Msg>)> {
        let target = self.places[to.0].node.as_ref()?.number;
        let new = StreamState::new(from, to, target);
        self.oracle.state().streams.insert(id, new);
        self.sim.record("stream", &[id, from.1, to.1, target]);
        let (oracle, watched) = (self.oracle.clone(), remote.clone());
        let watcher =
            move || Watcher { oracle: oracle.clone(), stream: id, remote: watched.clone() };
        let host = &self.places[from.0].node.as_ref()?.host;
        let spawned = host.system().spawn(&format!("watcher-{id}"), Props::new(watcher));
        self.sim.check(Invariant::L1, spawned.is_ok(), || "no watcher".into());
        self.remotes.push((id, remote.clone()));
        Some((id, remote))
    }

    /// Sends a message, or a request, from one node to another.
    fn act(&mut self) {
        let n_nodes = self.places.len();
        let from = self.work.index(n_nodes);
        let to = (from + 1 + self.work.index(n_nodes - 1)) % n_nodes;
        let slow = if self.work.chance(3_000) { self.work.below(self.slow + 1) } else { 0 };
        let is_ask = self.work.below(10) < self.asks;
        let timeout = self.work.between(100, 20_000);
        let Some((stream, remote)) = self.stream(from, to) else { return };
        if is_ask {
            self.ask(from, stream, &remote, slow, timeout, 0);
        } else {
            self.tell(stream, &remote, slow, 0);
        }
    }

    fn tell(&mut self, stream: u64, remote: &ActorRef<Msg>, slow: u64, bytes: usize) -> bool {
        let number = self.oracle.state().streams.get(&stream).map_or(0, |known| known.sent + 1);
        let is_sent =
            remote.tell(Msg::Tell { stream, number, slow, filling: vec![0; bytes] }).is_ok();
        if is_sent && let Some(known) = self.oracle.state().streams.get_mut(&stream) {
            known.sent = number;
        }
        self.sim.record("tell", &[stream, number, u64::from(is_sent)]);
        is_sent
    }

    fn ask(
        &mut self,
        from: usize,
        stream: u64,
        remote: &ActorRef<Msg>,
        slow: u64,
        timeout: u64,
        bytes: usize,
    ) {
        let Some(node) = &self.places[from].node else { return };
        let request = self.oracle.asks(stream, self.sim.now() + timeout);
        self.sim.record("ask", &[stream, request]);
        let filling = vec![0; bytes];
        let timeout = Duration::from_millis(timeout);
        let ask = remote.ask(|to| Msg::Ask { stream, request, slow, filling, to }, timeout);
        let oracle = self.oracle.clone();
        let future = async move {
            let answer = ask.await;
            let is_timed_out = answer.as_ref().is_err_and(|error| error.is_timed_out());
            oracle.answered(request, answer.ok(), is_timed_out);
        };
        // It ends with its system.
        drop(node.host.system().executor().spawn_future(future));
    }

    fn disturb(&mut self) {
        let (n_nodes, now) = (self.places.len() as u64, self.sim.now());
        let pick = |size: u64| usize::try_from(size % n_nodes).unwrap_or(0);
        if let Some(size) = self.sim.fault(Class::NetPartition) {
            let (a, b) = (pick(size), pick(size / 7 + 1));
            self.traffic.set_blocked(a, b, true);
            self.partitions.push((a, b, now + size % OUTAGE_MAX));
        }
        if let Some(size) = self.sim.fault(Class::NetOffline) {
            self.places[pick(size)].offline_until = now + size % OUTAGE_MAX;
        }
        if let Some(size) = self.sim.fault(Class::ServerRestart) {
            for place in &mut self.places {
                place.offline_until = now + size % OUTAGE_MAX;
            }
        }
        if let Some(size) = self.sim.fault(Class::NodePause) {
            self.places[pick(size)].paused_until = now + size % OUTAGE_MAX;
        }
        if let Some(size) = self.sim.fault(Class::NodeCrash)
            && self.places[pick(size)].node.is_some()
        {
            self.kill(pick(size));
            self.places[pick(size)].starts_at = now + size % (OUTAGE_MAX / 2);
        }
        if let Some(size) = self.sim.fault(Class::OddStop)
            && let Some(node) = &self.places[pick(size)].node
        {
            self.oracle.state().stopped.insert(node.number);
            self.sim.record("stop", &[node.number]);
            // It may have stopped before.
            drop(node.target.try_send_system(SystemMessage::Stop));
        }
        if let Some(size) = self.sim.fault(Class::MailFlood) {
            let (from, to) = (pick(size), pick(size + 1));
            if let Some((stream, remote)) = self.stream(from, to) {
                let (n, bytes) = if size % 5 == 0 { FLOOD_LARGE } else { FLOOD_MANY };
                if size % 5 == 1 {
                    for _ in 0..FLOOD_LARGE.0 {
                        self.ask(from, stream, &remote, 0, ASK_TIMEOUT, FLOOD_LARGE.1);
                    }
                    return;
                }
                for number in 0..n {
                    // The first one is slow, and the others wait behind it.
                    let slow = if number == 0 { self.slow } else { 0 };
                    self.tell(stream, &remote, slow, bytes);
                }
            }
        }
    }

    /// Ends outages that are over.
    fn recover(&mut self) {
        let now = self.sim.now();
        let traffic = &self.traffic;
        self.partitions.retain(|(a, b, until)| {
            if *until <= now {
                traffic.set_blocked(*a, *b, false);
            }
            *until > now
        });
        for at in 0..self.places.len() {
            let place = &self.places[at];
            match &place.node {
                Some(node) => node.cable.set_offline(place.offline_until > now),
                None if place.starts_at <= now => self.start_node(at),
                None => {}
            }
        }
    }

    /// What every node must see when nothing has failed for a while.
    fn check_calm(&mut self) {
        let n_nodes = self.places.len();
        let nodes: Vec<&Node> =
            self.places.iter().filter_map(|place| place.node.as_ref()).collect();
        let stopped = self.oracle.state().stopped.clone();
        let n_services = nodes.iter().filter(|node| !stopped.contains(&node.number)).count();
        for node in &nodes {
            let members = node.net.members();
            let is_in = members.members.iter().any(|member| member.node == node.net.me());
            let n_members = members.members.len();
            self.sim.check(Invariant::L1, is_in && n_members == n_nodes, || {
                format!("{:?} sees {n_members} members of {n_nodes}", node.net.me())
            });
            let key = key();
            let listing = node.host.system().receptionist().find(&key);
            let found = listing.services().len();
            self.sim.check(Invariant::N7, found == n_services, || {
                format!("{:?} sees {found} services of {n_services}", node.net.me())
            });
            self.sim.check(Invariant::L1, node.cable.is_clear(), || "a node is behind".into());
        }
    }
}

impl WorkloadRun {
    /// When nothing fails any more, all windows open again, and all credit is returned.
    fn check_windows(&mut self) {
        let before = self.traffic.sent();
        let mut alive = None;
        for (stream, remote) in self.remotes.clone() {
            let (sent, pair) = match self.oracle.state().streams.get(&stream) {
                Some(known) if known.is_alive() => (known.n_delivered, (known.from.1, known.to.1)),
                _ => continue,
            };
            for _ in 0..LAST_MESSAGES {
                self.tell(stream, &remote, 0, 0);
                self.run_all();
            }
            self.pass(PART);
            let n = self.oracle.state().streams[&stream].n_delivered - sent;
            self.sim.check_equal(Invariant::N8, "messages that pass", n, LAST_MESSAGES);
            alive.get_or_insert((stream, remote, pair));
        }
        self.traffic.check_credit(&before);
        // The window of a link, on one of them: the bytes are many.
        let Some((stream, remote, (from, to))) = alive else { return };
        let sent = self.oracle.state().streams[&stream].n_delivered;
        let (n, bytes) = FLOOD_LARGE;
        for _ in 0..n {
            self.tell(stream, &remote, 0, bytes);
            self.run_all();
        }
        self.pass(PART);
        let n_arrived = self.oracle.state().streams[&stream].n_delivered - sent;
        self.sim.check_equal(Invariant::N8, "large messages that pass", n_arrived, n);
        self.traffic.check_link_credit(from, to);
        self.check_requests_that_wait(stream, &remote, (from, to));
    }

    /// Requests for a target that takes nothing count in the window of their link until they are in
    /// its mailbox. Then all of them are answered.
    fn check_requests_that_wait(
        &mut self,
        stream: u64,
        remote: &ActorRef<Msg>,
        (from, to): (u64, u64),
    ) {
        let at = self.oracle.state().streams[&stream].from.0;
        self.tell(stream, remote, WAIT_TICKS, 0);
        self.run_all();
        let sent = self.traffic.sent_on_link(from, to);
        let (n, bytes) = WAITING;
        let first = self.oracle.state().requests.len();
        for _ in 0..n {
            self.ask(at, stream, remote, 0, 2 * WAIT_TICKS, bytes);
        }
        self.run_all();
        self.pass(WAIT_TICKS / 2);
        let n_sent = self.traffic.sent_on_link(from, to) - sent;
        let most = self.traffic.link_window() + (ROOM_MAX + 1) * (bytes as u64 + MESSAGE_OVERHEAD);
        self.sim.check(Invariant::N8, n_sent <= most, || {
            format!("{n_sent} bytes of requests wait for a target with room for {ROOM_MAX}")
        });
        self.pass(WAIT_TICKS);
        let n_answered = self.oracle.n_answered_after(first);
        self.sim.check_equal(Invariant::N2, "requests that were answered", n_answered, n);
    }
}

fn key() -> ServiceKey<Msg> {
    ServiceKey::new("target")
}

impl StreamState {
    fn new(from: (usize, u64), to: (usize, u64), target: u64) -> Self {
        Self { from, to, target, sent: 0, n_delivered: 0, last: 0, end: None, is_killed: false }
    }

    /// Whether messages pass.
    fn is_alive(&self) -> bool {
        !self.is_killed && self.end.is_none()
    }
}

impl Phases for WorkloadRun {
    fn step(&mut self) {
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
        }
        self.disturb();
        self.recover();
        let ticks = 1 + self.work.below(self.pace);
        self.pass(ticks);
        self.oracle.check_losses(false);
    }

    /// No more faults: all nodes are members, and all streams that have not ended pass messages.
    fn drain(&mut self) {
        self.sim.heal();
        self.traffic.heal();
        for place in &mut self.places {
            (place.paused_until, place.offline_until, place.starts_at) = (0, 0, 0);
        }
        self.recover();
        self.pass(DRAIN_TICKS);
        if self.sim.is_broken() {
            return;
        }
        self.check_calm();
        self.oracle.check_ends();
        self.oracle.check_losses(true);
        // A pack may arrive before its sender is a member in the view of the receiver.
        let alive = self.places.iter().filter_map(|place| place.node.as_ref());
        let n_refused: u64 = alive.map(|node| node.net.metrics().packs_refused).sum();
        self.oracle.check_losses_of(self.traffic.n_lost() + self.n_refused + n_refused);
        self.check_windows();
    }

    /// All nodes but one leave, which the last one sees at once; then that one leaves.
    fn shutdown(&mut self) {
        self.sim.heal();
        self.traffic.heal();
        for place in &mut self.places {
            (place.paused_until, place.offline_until, place.starts_at) = (0, 0, u64::MAX);
        }
        self.recover();
        // Nodes that were lost meanwhile join again.
        self.pass(2 * OUTAGE_MAX);
        let left: Vec<usize> =
            (0..self.places.len()).filter(|at| self.places[*at].node.is_some()).collect();
        let Some((last, others)) = left.split_last() else { return };
        self.is_leaving = true;
        others
            .iter()
            .filter_map(|at| self.places[*at].node.as_ref())
            .for_each(|node| node.net.leave());
        self.pass(PART);
        let Some(node) = &self.places[*last].node else { return };
        let n_members = node.net.members().members.len() as u64;
        self.sim.check_equal(Invariant::N7, "members that have not left", n_members, 1);
        node.net.leave();
        self.pass(PART);
        let keys = self.server.keys();
        let live = keys.iter().filter(|key| key.starts_with("live.")).count() as u64;
        self.sim.check_equal(Invariant::N7, "members of the log", live, 0);
    }
}
