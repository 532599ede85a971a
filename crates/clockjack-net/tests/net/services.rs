//! Services of all nodes in each receptionist.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use clockjack_actor::{ActorRef, Listing, ServiceKey, router::Group};
use clockjack_net::{
    MemoryServer, Net, NetConfig,
    engine::{Connect, Engine, EngineEvent, Expected, LogWrite, Moment, Notify},
};
use clockjack_testkit::{ManualTime, TestCluster};

use crate::{Counter, Msg, SECOND};

fn key() -> ServiceKey<Msg> {
    ServiceKey::new("a counter / 1")
}

fn n_found(cluster: &TestCluster, at: usize) -> usize {
    cluster.settle();
    cluster.node(at).system().receptionist().find(&key()).services().len()
}

/// Starts a counter and registers it.
fn register(cluster: &TestCluster, at: usize, name: &str) -> ActorRef<Msg> {
    let node = cluster.node(at);
    let counter = node.spawn(name, Counter::new(&node.probe::<u64>()));
    node.system().receptionist().register(&key(), &counter).expect("it runs");
    counter
}

/// Three nodes that share the key, each with two counters; one cluster per seed.
fn shared() -> impl Iterator<Item = TestCluster> {
    (0..20).map(|seed| {
        let cluster = TestCluster::with_seed(3, seed);
        for at in 0..3 {
            cluster.net(at).share(&key()).expect("it is the first").forever();
            register(&cluster, at, "counter");
            register(&cluster, at, "second");
        }
        cluster
    })
}

/// How many services each node finds. None of them has failed.
fn all_found(cluster: &TestCluster) -> [usize; 3] {
    [0, 1, 2].map(|at| {
        cluster.node(at).expect_no_failures();
        n_found(cluster, at)
    })
}

/// The keys of services in the log.
fn service_keys(cluster: &TestCluster) -> Vec<String> {
    cluster.server().keys().into_iter().filter(|key| key.starts_with("reg.")).collect()
}

#[test]
fn each_node_finds_the_services_of_all_nodes_once() {
    for cluster in shared() {
        assert_eq!(all_found(&cluster), [6, 6, 6]);
        cluster.advance(60 * SECOND);
        assert_eq!(all_found(&cluster), [6, 6, 6], "a proxy is not announced again");
        for service in cluster.node(0).system().receptionist().find(&key()).services() {
            let sum = cluster.block_on(service.ask(Msg::Sum, SECOND));
            assert_eq!(sum.expect("it answers"), 0);
        }
    }
}

#[test]
fn a_service_disappears_when_it_stops_or_is_deregistered_or_its_node_is_lost() {
    for cluster in shared() {
        cluster.settle();
        let local = cluster.node(1).system().lookup::<Msg>("/user/counter").expect("it runs");
        cluster.node(1).system().receptionist().deregister(&key(), &local);
        assert_eq!(all_found(&cluster), [5, 5, 5]);
        let stopping = cluster.node(2).system().lookup::<Msg>("/user/counter").expect("it runs");
        stopping.tell(Msg::Stop).expect("it runs");
        assert_eq!(all_found(&cluster), [4, 4, 4]);
        cluster.crash(0);
        cluster.advance(5 * SECOND);
        assert_eq!(all_found(&cluster)[1..], [2, 2]);
    }
}

#[test]
fn a_node_that_joins_again_sees_all_services_and_is_seen_again() {
    for cluster in shared() {
        cluster.settle();
        cluster.freeze(1);
        cluster.advance(20 * SECOND);
        assert_eq!([0, 2].map(|at| n_found(&cluster, at)), [4, 4]);
        cluster.thaw(1);
        cluster.advance(5 * SECOND);
        assert_eq!(all_found(&cluster), [6, 6, 6]);
        assert_eq!(service_keys(&cluster).len(), 6, "no proxy is announced");
    }
}

#[test]
fn a_service_that_stops_before_it_is_announced_does_not_end_the_sharing() {
    for cluster in shared() {
        cluster.settle();
        let stopped = register(&cluster, 0, "stopped");
        cluster.node(0).system().stop(&stopped).expect("it runs");
        assert_eq!(all_found(&cluster), [6, 6, 6]);
        register(&cluster, 0, "later");
        assert_eq!(all_found(&cluster), [7, 7, 7]);
    }
}

#[test]
fn each_service_is_written_to_the_log_once() {
    let cluster = TestCluster::start(1);
    cluster.net(0).share(&key()).expect("it is the first").forever();
    cluster.settle();
    let before = cluster.net(0).members().sequence;
    for n in 0..100 {
        register(&cluster, 0, &format!("counter-{n}"));
    }
    cluster.settle();
    assert_eq!(service_keys(&cluster).len(), 100);
    assert_eq!(cluster.net(0).members().sequence - before, 100);
}

/// As if its write had been lost: somebody removes the entry.
#[test]
fn a_service_whose_entry_is_lost_is_written_again() {
    for cluster in shared() {
        assert_eq!(all_found(&cluster), [6, 6, 6]);
        let key = service_keys(&cluster).pop().expect("six services");
        let mut other = Box::new(cluster.server().clone()).connect(Notify::new(|| ()));
        let end = LogWrite { key, value: None, expected: Expected::Any, ttl: None };
        other.write(Moment::default(), end);
        assert_eq!(service_keys(&cluster).len(), 5);
        cluster.advance(2 * SECOND);
        assert_eq!(service_keys(&cluster).len(), 6);
        assert_eq!(all_found(&cluster), [6, 6, 6]);
    }
}

#[test]
fn the_services_of_lost_nodes_leave_the_log() {
    for cluster in shared() {
        cluster.settle();
        // The two nodes that would remove what others leave behind are lost together.
        let mut nodes = [0, 1, 2];
        nodes.sort_by_key(|at| cluster.net(*at).me().incarnation());
        let [first, second, last] = nodes;
        cluster.crash(first);
        cluster.crash(second);
        cluster.advance(20 * SECOND);
        assert_eq!(service_keys(&cluster).len(), 2);
        // A node alone, with a service that it announces before it reads that it was lost.
        cluster.freeze(last);
        register(&cluster, last, "late");
        cluster.advance(20 * SECOND);
        cluster.thaw(last);
        cluster.advance(5 * SECOND);
        let me = format!("{:016x}", cluster.net(last).me().incarnation());
        let keys = service_keys(&cluster);
        assert_eq!(keys.len(), 3, "{keys:?}");
        assert!(keys.iter().all(|key| key.contains(&me)), "{keys:?}");
    }
}

#[test]
fn a_key_is_shared_once_and_until_the_right_is_dropped() {
    let cluster = shared().next().expect("there is a seed");
    assert!(cluster.net(0).share(&key()).is_err_and(|error| error.is_name_taken()));
    let other = ServiceKey::<Msg>::new("other");
    let shared = cluster.net(0).share(&other).expect("it is the first");
    cluster.net(1).share(&other).expect("it is the first").forever();
    let local = cluster.node(0).system().lookup::<Msg>("/user/counter").expect("it runs");
    cluster.node(0).system().receptionist().register(&other, &local).expect("it runs");
    cluster.settle();
    let find = || cluster.node(1).system().receptionist().find(&other).services().len();
    assert_eq!(find(), 1);
    drop(shared);
    cluster.settle();
    assert_eq!(find(), 0);
}

#[test]
fn a_key_can_be_shared_again_by_a_node_that_has_left_and_joined() {
    for cluster in shared() {
        cluster.settle();
        cluster.net(0).leave();
        cluster.settle();
        assert_eq!(all_found(&cluster), [2, 4, 4]);
        let system = cluster.node(0).system();
        let config = NetConfig::new("again");
        let net = Net::join_memory(system, cluster.server(), config);
        let net = net.expect("the system has no net");
        net.share(&key()).expect("the node has left").forever();
        assert_eq!(all_found(&cluster), [6, 6, 6]);
    }
}

#[test]
fn a_subscriber_hears_of_the_services_of_other_nodes_as_they_come_and_go() {
    let cluster = TestCluster::start(2);
    let node = cluster.node(1);
    let listings = node.probe::<Listing<Msg>>();
    node.system().receptionist().subscribe(&key(), &listings.actor_ref()).expect("there is room");
    assert!(listings.expect().services().is_empty());
    for at in 0..2 {
        cluster.net(at).share(&key()).expect("it is the first").forever();
    }
    let remote = register(&cluster, 0, "counter");
    let listing = listings.expect();
    let [found] = listing.services() else { panic!("{listing:?}") };
    assert!(cluster.net(1).is_remote(found));
    remote.tell(Msg::Stop).expect("it runs");
    assert!(listings.expect().services().is_empty());
    register(&cluster, 0, "another");
    assert_eq!(listings.expect().services().len(), 1);
    cluster.crash(0);
    assert!(listings.expect_within(5 * SECOND).services().is_empty());
}

#[test]
fn a_group_router_shares_its_messages_among_the_services_of_all_nodes() {
    let cluster = TestCluster::start(3);
    let seen = [0, 1, 2].map(|at| {
        cluster.net(at).share(&key()).expect("it is the first").forever();
        let node = cluster.node(at);
        let seen = node.probe::<u64>();
        let counter = node.spawn("counter", Counter::new(&seen));
        node.system().receptionist().register(&key(), &counter).expect("it runs");
        seen
    });
    let group = cluster.node(1).spawn("group", Group::round_robin(&key()));
    cluster.settle();
    for n in 0..12 {
        group.tell(Msg::Add(n)).expect("there is room");
        cluster.settle();
    }
    for probe in &seen {
        assert_eq!(probe.receive_n(4).len(), 4);
    }
    // A lost node gets no message any more, and the others get all of them.
    cluster.crash(0);
    cluster.advance(5 * SECOND);
    for n in 0..8 {
        group.tell(Msg::Add(n)).expect("there is room");
        cluster.settle();
    }
    assert_eq!(seen.each_ref().map(clockjack_testkit::TestProbe::queued)[1..], [4, 4]);
}

/// How often each service was written.
type Writes = Arc<Mutex<BTreeMap<String, u64>>>;

/// A server that loses the writes of services.
struct Lossy {
    server: MemoryServer,
    writes: Writes,
}

struct LossyEngine {
    engine: Box<dyn Engine>,
    writes: Writes,
}

impl Connect for Lossy {
    fn join_number(&mut self) -> u64 {
        self.server.join_number()
    }

    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine> {
        Box::new(LossyEngine { engine: Box::new(self.server).connect(notify), writes: self.writes })
    }
}

impl Engine for LossyEngine {
    fn subscribe(&mut self, incarnation: u64) {
        self.engine.subscribe(incarnation);
    }

    fn publish(&mut self, to: u64, pack: Vec<u8>) {
        self.engine.publish(to, pack);
    }

    fn write(&mut self, now: Moment, write: LogWrite) {
        if write.key.starts_with("reg.") {
            *self.writes.lock().expect("no panic").entry(write.key).or_default() += 1;
        } else {
            self.engine.write(now, write);
        }
    }

    fn poll(&mut self, now: Moment) -> Vec<EngineEvent> {
        self.engine.poll(now)
    }
}

/// A thousand services of a lost node, and a hundred of its own, none of whose writes is seen.
#[test]
fn a_node_repeats_the_writes_of_services_rarely_and_a_part_of_them_at_a_time() {
    let (server, writes) = (MemoryServer::new(), Writes::default());
    let mut other = Box::new(server.clone()).connect(Notify::new(|| ()));
    for export in 0..1_000 {
        let key = format!("reg.printer.{:016x}.{:016x}.{export}", 1, 1);
        let value = Some(Vec::new());
        let begin = LogWrite { key, value, expected: Expected::Any, ttl: None };
        other.write(Moment::default(), begin);
    }
    let node = ManualTime::start();
    let connect = Lossy { server: server.clone(), writes: writes.clone() };
    let net = Net::join(node.system(), connect, NetConfig::new("node")).expect("it joins");
    net.share(&key()).expect("it is the first").forever();
    for n in 0..100 {
        let counter = node.spawn(&format!("counter-{n}"), Counter::new(&node.probe::<u64>()));
        node.system().receptionist().register(&key(), &counter).expect("it runs");
    }
    let n_written = || writes.lock().expect("no panic").values().sum::<u64>();
    node.settle();
    assert_eq!(n_written(), 100, "its own are announced once");
    for _ in 0..5 {
        let before = n_written();
        node.advance(SECOND);
        assert!(n_written() - before <= 256, "{} in one second", n_written() - before);
    }
    assert!(writes.lock().expect("no panic").values().all(|n| *n == 1), "it is too early");
    // All are repeated, as long as they are not seen, and none of them in every second.
    node.advance(60 * SECOND);
    let writes = writes.lock().expect("no panic");
    assert_eq!(writes.len(), 1_100);
    assert!(writes.values().all(|n| (4..=10).contains(n)), "{writes:?}");
    assert_eq!(net.members().members.len(), 1, "its lease is renewed");
    assert_eq!(net.metrics().rejoins, 0);
}
