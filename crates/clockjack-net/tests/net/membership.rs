//! Members, leases and incarnations.

use clockjack_actor::ActorSystem;
use clockjack_net::{LOG_VALUE_MAX, MemoryServer, Net, NetConfig, NetEvent, NodeId};
use clockjack_testkit::{ManualTime, TestCluster};

use crate::{Msg, SECOND, pair};

fn names(net: &Net) -> Vec<String> {
    net.members().members.iter().map(|member| member.node.name().into()).collect()
}

#[test]
fn all_nodes_read_the_same_members() {
    let cluster = TestCluster::start(5);
    for at in 0..5 {
        assert_eq!(cluster.net(at).members(), cluster.net(0).members());
    }
    assert_eq!(names(cluster.net(3)), ["node-0", "node-1", "node-2", "node-3", "node-4"]);
    cluster.crash(2);
    cluster.crash(3);
    cluster.advance(10 * SECOND);
    for at in [0, 1, 4] {
        assert_eq!(cluster.net(at).members(), cluster.net(0).members());
        assert_eq!(names(cluster.net(at)), ["node-0", "node-1", "node-4"]);
    }
}

#[test]
fn nodes_with_the_default_settings_are_different_members() {
    let server = MemoryServer::new();
    let systems = ["a", "b"].map(|name| (name, ManualTime::start()));
    let nets = systems.each_ref().map(|(name, system)| {
        Net::join_memory(system.system(), &server, NetConfig::new(name)).expect("it runs")
    });
    for _ in 0..3 {
        for (_, system) in &systems {
            system.settle();
        }
    }
    for net in &nets {
        assert_eq!(names(net), ["a", "b"]);
    }
    assert_ne!(nets[0].me().incarnation(), nets[1].me().incarnation());
}

/// A host ends a run whose last actor has failed only while nobody has a handle who could start
/// another actor.
#[test]
fn a_net_does_not_count_as_a_handle_of_its_system() {
    let node = ManualTime::start();
    let n_handles = node.system().n_handles();
    let net = Net::memory(node.system()).expect("it runs");
    node.settle();
    assert_eq!(net.members().members.len(), 1);
    assert_eq!(node.system().n_handles(), n_handles);
}

#[test]
fn a_node_that_leaves_and_joins_is_another_incarnation() {
    let (server, node) = (MemoryServer::new(), ManualTime::start());
    let join = || {
        let net = Net::join_memory(node.system(), &server, NetConfig::new("a"));
        node.settle();
        net.expect("the system has no net")
    };
    let net = join();
    let old = net.me();
    net.leave();
    node.settle();
    let net = join();
    assert_ne!(net.me(), old);
    assert_eq!(names(&net), ["a"]);
}

#[test]
fn an_hour_of_renewals_keeps_the_members() {
    let cluster = TestCluster::start(3);
    let events = cluster.node(0).probe::<NetEvent>().showing();
    assert!(cluster.net(0).subscribe(&events.actor_ref()));
    events.expect_eq(NetEvent::Joined(cluster.net(0).me()));
    events.expect_none_for(3_600 * SECOND);
    assert_eq!(names(cluster.net(1)).len(), 3);
}

#[test]
fn a_node_that_lost_its_lease_joins_again_as_another_incarnation() {
    let pair = pair();
    let (cluster, old) = (&pair.cluster, pair.cluster.net(0).me());
    let events = cluster.node(1).probe::<NetEvent>().showing();
    cluster.net(1).subscribe(&events.actor_ref());
    events.expect();
    let own = cluster.node(0).probe::<NetEvent>().showing();
    cluster.net(0).subscribe(&own.actor_ref());
    own.expect();
    cluster.freeze(0);
    cluster.advance(20 * SECOND);
    let down = events.expect();
    assert!(matches!(&down, NetEvent::MemberDown(member) if member.node == old), "{down:?}");
    cluster.thaw(0);
    own.expect_eq_within(NetEvent::Lost(old.clone()), 2 * SECOND);
    let new = cluster.net(0).me();
    own.expect_eq_within(NetEvent::Joined(new.clone()), 2 * SECOND);
    assert_eq!(new.name(), old.name());
    assert_ne!(new.incarnation(), old.incarnation());
    let up = events.expect_within(2 * SECOND);
    assert!(matches!(&up, NetEvent::MemberUp(member) if member.node == new), "{up:?}");
    // The old address is dead; local actors, and a new address, are not.
    assert!(cluster.net(1).actor(&pair.address).is_err());
    pair.counter.tell(Msg::Add(1)).expect("it runs");
    pair.seen.expect_eq(1);
    let find = cluster.net(1).find::<Msg>(&new, "counter");
    let address = cluster.block_on(find).expect("it is exported");
    let remote = cluster.net(1).actor(&address).expect("it is a member");
    remote.tell(Msg::Add(2)).expect("there is room");
    pair.seen.expect_eq(2);
}

#[test]
fn a_node_counts_members_ends_and_the_age_of_its_lease() {
    let pair = pair();
    let metrics = |at: usize| pair.cluster.net(at).metrics();
    pair.cluster.advance(5 * SECOND);
    assert_eq!((metrics(0).members, metrics(1).members_lost, metrics(0).rejoins), (2, 0, 0));
    assert!(metrics(0).lease_age <= 2 * SECOND, "{:?}", metrics(0).lease_age);
    pair.cluster.freeze(0);
    pair.cluster.advance(20 * SECOND);
    assert_eq!((metrics(1).members, metrics(1).members_lost), (1, 1));
    pair.cluster.thaw(0);
    pair.cluster.advance(5 * SECOND);
    assert_eq!((metrics(0).rejoins, metrics(1).rejoins), (1, 0));
    assert_eq!((metrics(0).members, metrics(1).members), (2, 2));
    let sequence = pair.cluster.net(1).members().sequence;
    assert!(sequence - metrics(1).log_sequence < 4, "{sequence}: {:?}", metrics(1));
}

#[test]
fn a_node_without_a_valid_name_or_with_a_net_is_refused() {
    let cluster = TestCluster::start(1);
    let system: &ActorSystem = cluster.node(0).system();
    let server = MemoryServer::new();
    for name in ["", "a b", &"n".repeat(65)] {
        let refused = Net::join_memory(system, &server, NetConfig::new(name));
        assert!(refused.is_err_and(|error| error.is_invalid_name()), "{name}");
    }
    assert!(Net::memory(system).is_err_and(|error| error.is_refused()));
}

#[test]
fn a_node_whose_roles_do_not_fit_into_the_log_is_refused() {
    let server = MemoryServer::new();
    for (role, is_accepted) in [(LOG_VALUE_MAX - 100, true), (LOG_VALUE_MAX - 10, false)] {
        let node = ManualTime::start();
        let config = NetConfig { roles: vec!["r".repeat(role)], ..NetConfig::new("a") };
        let net = Net::join_memory(node.system(), &server, config);
        node.settle();
        assert_eq!(net.is_ok(), is_accepted, "a role of {role} bytes");
        match net {
            Ok(net) => assert_eq!(net.members().members[0].roles[0].len(), role),
            Err(error) => assert!(error.is_roles_too_long()),
        }
        node.expect_no_failures();
    }
}

#[test]
fn a_node_is_text() {
    let cluster = TestCluster::start(1);
    let me = cluster.net(0).me();
    assert_eq!(me.to_string().parse::<NodeId>(), Ok(me));
    for text in ["", "a", "a@1", "@0123456789abcdef", "a@0123456789abcdeg"] {
        assert!(text.parse::<NodeId>().is_err(), "{text}");
    }
}

#[test]
fn a_reader_that_is_far_behind_gets_a_snapshot() {
    let cluster = TestCluster::start(3);
    cluster.freeze(0);
    cluster.crash(2);
    // Long enough that the log no longer has what node 0 has missed.
    cluster.advance(5_000 * 2 * SECOND);
    cluster.thaw(0);
    cluster.advance(10 * SECOND);
    assert_eq!(names(cluster.net(0)), ["node-1", "node-0"]);
    assert_eq!(cluster.net(0).members(), cluster.net(1).members());
}
