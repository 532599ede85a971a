//! Bad input while a node is a member: the node goes on, and reports what has happened.

use core::time::Duration;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
};

use clockjack_net::NetEvent;

use crate::{
    nodes::{node, pair, sum_of_calls, wait_for_members, watch},
    process::Server,
    until,
};

/// Publishes to a server that asks nobody for credentials, and waits until it has read all of it.
fn publish(server: &Server, messages: &[(String, Vec<u8>)]) {
    let mut socket = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    let mut lines = BufReader::new(socket.try_clone().expect("a second handle"));
    socket.write_all(b"CONNECT {\"verbose\":false}\r\n").expect("it is open");
    for (subject, payload) in messages {
        write!(socket, "PUB {subject} {}\r\n", payload.len()).expect("it is open");
        socket.write_all(payload).expect("it is open");
        socket.write_all(b"\r\n").expect("it is open");
    }
    socket.write_all(b"PING\r\n").expect("it is open");
    let mut line = String::new();
    while !line.starts_with("PONG") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("it is open"), 0, "it has closed");
        assert!(!line.starts_with("-ERR"), "{line}");
    }
}

#[test]
fn a_peer_that_sends_garbage_harms_nobody_and_is_counted() {
    let server = Server::start();
    let (one, two) = (node(&server, "one"), node(&server, "two"));
    wait_for_members(&one, 2);
    wait_for_members(&two, 2);
    let [to, from] = [&one, &two].map(|node| node.net.me().incarnation());
    let subject = |last: &str| format!("test.n.one.{to:016x}.{last}");
    // What looks like a pack of the other node, and is none inside.
    let mut forged = clockjack_net::wire::frame::begin_pack(from, to);
    forged.extend([0xff; 64]);
    let garbage = [
        (subject("l"), Vec::new()),
        (subject("l"), vec![0xff; 100_000]),
        (subject("c"), b"hello".to_vec()),
        (subject("x"), vec![0; 33]),
        (subject("l"), forged),
        // Keys and values of the log that no node has written.
        ("$KV.test.live.zz".into(), vec![1]),
        (format!("$KV.test.live.{:016x}", 99), vec![0xff; 5_000]),
        ("$KV.test.reg.%zz.1.2.3".into(), Vec::new()),
        ("$KV.test.something".into(), vec![7; 10]),
    ];
    publish(&server, &garbage);
    until("the garbage is counted", || (one.net.metrics().packs_refused >= 3).then_some(()));
    assert_eq!(sum_of_calls(&one, &two), 3_000 * 3_001 / 2, "it works as before");
    assert_eq!(one.net.members(), two.net.members());
    assert_eq!(one.net.members().members.len(), 2, "nobody has joined by this");
}

#[test]
fn a_log_that_is_deleted_is_the_loss_of_every_member_and_nodes_join_the_next_one() {
    let server = Server::start();
    let (one, two, remote) = pair(&server);
    let causes = watch(&two, &remote);
    let before = one.net.me();
    publish(&server, &[("$JS.API.STREAM.DELETE.KV_test".into(), Vec::new())]);
    let cause = causes.recv_timeout(crate::PATIENCE).expect("the end is reported");
    assert!(format!("{cause:?}").ends_with("Lost"), "{cause:?}");
    until("both are members of the new log", || {
        let [a, b] = [&one, &two].map(|node| node.net.members().members.len());
        (a == 2 && b == 2).then_some(())
    });
    assert_ne!(one.net.me(), before, "as another incarnation");
    let events: Vec<NetEvent> = one.events.try_iter().collect();
    assert!(events.contains(&NetEvent::Lost(before)), "{events:?}");
    assert!(causes.recv_timeout(Duration::from_millis(200)).is_err(), "once");
    assert_eq!(sum_of_calls(&one, &two), 3_000 * 3_001 / 2);
}

#[test]
fn a_server_that_is_dead_is_reported_and_the_node_is_lost_only_when_it_reads_so() {
    let mut server = Server::start();
    let (one, two, remote) = pair(&server);
    let causes = watch(&two, &remote);
    server.kill();
    until("the connection is lost", || {
        two.events.try_iter().any(|event| event == NetEvent::Suspended).then_some(())
    });
    // No server: an ask ends by its deadline, and nobody is told that anybody has ended.
    let ask = remote.ask(crate::nodes::Msg::Sum, Duration::from_millis(300));
    assert!(two.rt.block_on(ask).is_err());
    assert!(causes.try_recv().is_err());
    assert_eq!(two.net.members().members.len(), 2);
    server.restart();
    until("the connection is there", || {
        two.events.try_iter().any(|event| event == NetEvent::Resumed).then_some(())
    });
    drop(one);
}
