//! Faults of nodes, servers and the way between them, again and again: what is promised holds after
//! each of them.
//!
//! The variable `CLOCKJACK_NATS_ROUNDS` says how often each fault happens: `cargo xtask nats
//! --rounds 50`.

use core::time::Duration;

use clockjack_nats::{NatsConfig, tools::Inspector};

use crate::{
    gate::Gate,
    nodes::{node_with, wait_for_members},
    process::Server,
    stress::{StressNode, check, check_agreement},
    until,
};

/// How often each fault happens.
fn rounds() -> u32 {
    let rounds = std::env::var("CLOCKJACK_NATS_ROUNDS").ok();
    rounds.map_or(1, |rounds| rounds.parse().expect("CLOCKJACK_NATS_ROUNDS is a number"))
}

/// Shorter than the default, so that a round takes some seconds.
const LEASE: Duration = Duration::from_secs(4);
/// A fault that no member may notice: a renewal happens in time.
const SHORT: Duration = Duration::from_millis(1_200);
/// A fault after which the lease of a node has ended for sure.
const LONG: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillNode,
    StopNodeShortly,
    StopNodeLong,
    PartitionShortly,
    PartitionLong,
    LoseBytes,
    KillServer,
    ServerAwayLong,
    StopServerShortly,
    StopServerLong,
}

const FAULTS: [Fault; 10] = [
    Fault::KillNode,
    Fault::StopNodeShortly,
    Fault::StopNodeLong,
    Fault::PartitionShortly,
    Fault::PartitionLong,
    Fault::LoseBytes,
    Fault::KillServer,
    Fault::ServerAwayLong,
    Fault::StopServerShortly,
    Fault::StopServerLong,
];

struct Scene {
    server: Server,
    /// The way of the first node to the server.
    gate: Gate,
    nodes: Vec<StressNode>,
    /// What nodes that were killed have printed.
    outputs: Vec<Vec<String>>,
}

impl Scene {
    fn new() -> Self {
        let server = Server::start();
        let gate = Gate::new(server.port());
        let node = |name: &str, url: String| StressNode::start(&[url], name, LEASE);
        let nodes = vec![
            node("tell-1", gate.url()),
            node("tell-2", server.url()),
            node("ask-1", server.url()),
        ];
        Self { server, gate, nodes, outputs: Vec::new() }
    }

    fn happen(&mut self, fault: Fault) {
        let sleep = std::thread::sleep;
        match fault {
            Fault::KillNode => {
                let mut node = self.nodes.remove(1);
                node.kill();
                self.outputs.push(node.lines());
                self.nodes.insert(1, StressNode::start(&[self.server.url()], &node.name, LEASE));
            }
            Fault::StopNodeShortly | Fault::StopNodeLong => {
                self.nodes[0].signal("STOP");
                sleep(if matches!(fault, Fault::StopNodeLong) { LONG } else { SHORT });
                self.nodes[0].signal("CONT");
            }
            Fault::PartitionShortly | Fault::PartitionLong => {
                self.gate.set_closed(true);
                sleep(if matches!(fault, Fault::PartitionLong) { LONG } else { SHORT });
                self.gate.set_closed(false);
            }
            Fault::LoseBytes => self.gate.lose(Duration::from_millis(300)),
            Fault::KillServer | Fault::ServerAwayLong => {
                self.server.kill();
                if matches!(fault, Fault::ServerAwayLong) {
                    sleep(LONG);
                }
                self.server.restart();
            }
            Fault::StopServerShortly | Fault::StopServerLong => {
                self.server.signal("STOP");
                sleep(if matches!(fault, Fault::StopServerLong) { LONG } else { SHORT });
                self.server.signal("CONT");
            }
        }
    }
}

#[test]
fn faults_of_nodes_and_of_one_server_are_survived() {
    let mut scene = Scene::new();
    check("the start", &mut scene.nodes);
    for round in 0..rounds() {
        for fault in FAULTS {
            // Messages are on their way when it happens.
            std::thread::sleep(Duration::from_millis(300));
            scene.happen(fault);
            check(&format!("{fault:?} in round {round}"), &mut scene.nodes);
        }
    }
    let reports = check("the end", &mut scene.nodes);
    assert!(reports.iter().any(|one| one.asks_answered > 0), "{reports:?}");
    assert!(reports.iter().any(|one| one.lost > 0), "no message was lost: {reports:?}");
    scene.outputs.extend(scene.nodes.iter().map(StressNode::lines));
    let n_places = check_agreement(&scene.outputs);
    assert!(n_places > 10, "nodes were compared at {n_places} places only");
}

/// Three servers that store the log together.
struct Servers(Vec<Server>);

impl Servers {
    fn start() -> Self {
        // Ports that were free a moment ago: each server has to know those of the others.
        let sockets: Vec<std::net::TcpListener> =
            (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let port =
            |socket: &std::net::TcpListener| socket.local_addr().expect("it is bound").port();
        let ports: Vec<u16> = sockets.iter().map(port).collect();
        drop(sockets);
        let routes: Vec<String> =
            ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let start = |(index, port): (usize, &u16)| {
            let listen = format!("nats://127.0.0.1:{port}");
            let (name, routes) = (format!("s{index}"), routes.join(","));
            let cluster = ["--cluster_name", "test", "--cluster", &listen, "--routes", &routes];
            Server::with(&[&["-js", "--server_name", &name][..], &cluster].concat())
        };
        Self(ports.iter().enumerate().map(start).collect())
    }

    fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// The server that decides about the order of the log.
    fn leader(&self) -> usize {
        until("the log has a leader", || {
            let mut config = NatsConfig::new("", "stress", "looking");
            config.urls = self.urls();
            let report = Inspector::connect(&config).ok()?.read().ok()?;
            let leader = report.servers.into_iter().find(|one| one.is_leader)?;
            leader.name.strip_prefix('s')?.parse().ok()
        })
    }
}

#[test]
fn faults_of_three_servers_are_survived() {
    let mut servers = Servers::start();
    // A change of leader takes up to 7.5 s, and a client of a server that does not answer moves to
    // another one after about as long.
    let lease = Duration::from_secs(15);
    let node = |name: &str, first: usize| {
        let mut urls = servers.urls();
        urls.rotate_left(first);
        StressNode::start(&urls, name, lease)
    };
    let mut nodes = vec![node("tell-1", 0), node("tell-2", 1), node("ask-1", 2)];
    check("the start", &mut nodes);
    for round in 0..rounds() {
        let leader = servers.leader();
        servers.0[leader].kill();
        check(&format!("the death of the leader in round {round}"), &mut nodes);
        servers.0[leader].restart();
        check(&format!("its return in round {round}"), &mut nodes);
        let leader = servers.leader();
        servers.0[leader].signal("STOP");
        std::thread::sleep(Duration::from_secs(9));
        servers.0[leader].signal("CONT");
        check(&format!("a pause of the leader in round {round}"), &mut nodes);
        let other = (servers.leader() + 1) % 3;
        servers.0[other].kill();
        check(&format!("the death of another server in round {round}"), &mut nodes);
        servers.0[other].restart();
    }
    check("the end", &mut nodes);
    let outputs: Vec<Vec<String>> = nodes.iter().map(StressNode::lines).collect();
    let n_places = check_agreement(&outputs);
    assert!(n_places > 3, "nodes were compared at {n_places} places only");
}

/// The nodes connect again at their own pace, the last one later than the others, because it tries
/// a server first that is not there. None of them counts the silence of the others.
#[test]
fn members_survive_outages_of_the_server_that_are_longer_than_a_silence_may_be() {
    let mut server = Server::start();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let gone = format!("nats://{}", socket.local_addr().expect("it is bound"));
    drop(socket);
    let nodes = ["one", "two", "three"].map(|name| {
        let mut config = NatsConfig::new(&server.url(), "test", name);
        if name == "three" {
            config.urls.insert(0, gone.clone());
        }
        node_with(config)
    });
    for node in &nodes {
        wait_for_members(node, 3);
    }
    let before = nodes.each_ref().map(|node| node.net.me());
    for round in 0..rounds() {
        for seconds in 6..10 {
            server.kill();
            std::thread::sleep(Duration::from_secs(seconds));
            server.restart();
            // Longer than a member may be without a subscriber, counted from the reconnect of the
            // last one, and until the lease of a node that was not heard would have ended.
            std::thread::sleep(Duration::from_secs(9));
            let after = nodes.each_ref().map(|node| node.net.me());
            assert_eq!(before, after, "{seconds} s in round {round}");
        }
    }
    for node in &nodes {
        wait_for_members(node, 3);
        assert_eq!(node.net.metrics().rejoins, 0);
    }
}
