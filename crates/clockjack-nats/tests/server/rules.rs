//! The permissions that `clockjack cluster permissions` prints, on a real server.
//!
//! The attempts are made by a client that speaks the protocol of the server itself, so nothing
//! between it and the server holds an attempt back.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
};

use clockjack_nats::{
    Auth, NatsConfig, join,
    tools::{Inspector, Role, Rules},
};
use clockjack_net::{LogEntry, NetEvent};
use clockjack_rt::Runtime;

use crate::{
    nodes::{Node, node_with, sum_of_calls, wait_for_members},
    process::Server,
    until,
};

/// The users of one account, each with the rules of its own: a name, its cluster and its role.
fn server_with(users: &[(&str, &str, Role)]) -> Server {
    Server::with_config(&settings(users), &["-js"])
}

/// The settings of a server with these users.
fn settings(users: &[(&str, &str, Role)]) -> String {
    let mut text = String::from("accounts { all { jetstream: enabled, users: [\n");
    for (user, cluster, role) in users {
        let rules = Rules::new(cluster, user, *role).expect("these are names").to_string();
        // What is printed is an account with one user: the user, with a password instead of the
        // variable.
        let start = rules.find("      {\n").expect("the user begins");
        let end = rules.rfind("    ]\n  }\n}").expect("the account ends");
        let lines = rules[start..end].lines().map(|line| {
            let is_password = line.trim_start().starts_with("password:");
            if is_password { format!("password: \"of-{user}\"\n") } else { format!("{line}\n") }
        });
        text.extend(lines);
    }
    text.push_str("]}}\n");
    text
}

fn config(server: &Server, cluster: &str, user: &str) -> NatsConfig {
    let auth = Auth::UserPassword { user: user.into(), password: format!("of-{user}") };
    NatsConfig { auth, ..NatsConfig::new(&server.url(), cluster, user) }
}

/// A client that sends what it likes.
struct Stranger {
    socket: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Stranger {
    fn connect(server: &Server, user: &str) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let lines = BufReader::new(socket.try_clone().expect("a second handle"));
        let mut stranger = Self { socket, lines };
        let hello = format!(r#"CONNECT {{"verbose":false,"user":"{user}","pass":"of-{user}"}}"#);
        assert_eq!(stranger.send(&hello, ""), None, "the credentials are right");
        stranger
    }

    /// Sends a command, and returns the error with which the server answers.
    fn send(&mut self, command: &str, payload: &str) -> Option<String> {
        let payload =
            if command.starts_with("PUB") { format!("{payload}\r\n") } else { String::new() };
        write!(self.socket, "{command}\r\n{payload}PING\r\n").expect("it is open");
        let mut error = None;
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).expect("it is open"), 0, "it has closed");
            if let Some(text) = line.strip_prefix("-ERR ") {
                error = Some(text.trim().to_owned());
            }
            if line.starts_with("PONG") {
                return error;
            }
        }
    }

    #[track_caller]
    fn is_refused(&mut self, what: &str, subject: &str, payload: &str) {
        let is_read = what.starts_with("read");
        let (command, right) = match is_read {
            true => (format!("SUB {subject} 1"), "Subscription"),
            false => (format!("PUB {subject} {}", payload.len()), "Publish"),
        };
        let error = self.send(&command, payload);
        let expected = format!("'Permissions Violation for {right} to \"{subject}\"'");
        assert_eq!(error.as_deref(), Some(expected.as_str()), "{what}");
    }
}

/// Two nodes of the cluster `shop` that talk to each other, and everybody else.
fn shop() -> (Server, Node, Node) {
    let server = server_with(&[
        ("one", "shop", Role::Worker),
        ("two", "shop", Role::Worker),
        ("ada", "shop", Role::Observer),
        ("eve", "other", Role::Worker),
    ]);
    let one = node_with(config(&server, "shop", "one"));
    let two = node_with(config(&server, "shop", "two"));
    wait_for_members(&one, 2);
    wait_for_members(&two, 2);
    (server, one, two)
}

#[test]
fn twelve_attempts_of_a_stranger_are_refused_by_the_server() {
    let (server, one, two) = shop();
    // A node of another cluster, in the same account: nothing but the rules is in its way.
    let mut eve = Stranger::connect(&server, "eve");
    let inc = format!("{:016x}", one.net.me().incarnation());
    let create = r#"{"name":"KV_shop","subjects":["shop.n.>"]}"#;
    let consumer = r#"{"stream_name":"KV_shop","config":{"deliver_subject":"_INBOX.other.eve.x"}}"#;
    let attempts = [
        ("read the frames of a node", format!("shop.n.one.{inc}.*"), ""),
        ("read the frames of all nodes", "shop.n.>".into(), ""),
        ("read the answers to a node", "_INBOX.shop.one.>".into(), ""),
        ("read everything", ">".into(), ""),
        ("read the writes to the log", "$KV.shop.>".into(), ""),
        ("send frames to a node", format!("shop.n.one.{inc}.l"), "x"),
        ("send control frames to a node", format!("shop.n.one.{inc}.c"), "x"),
        ("renew the lease of a node", format!("$KV.shop.live.{inc}"), "x"),
        ("offer a service as a node", format!("$KV.shop.reg.k.{inc}.{inc}.1"), "x"),
        ("create a reader of the log", "$JS.API.CONSUMER.CREATE.KV_shop".into(), consumer),
        ("delete the log", "$JS.API.STREAM.DELETE.KV_shop".into(), ""),
        ("create a log that keeps frames", "$JS.API.STREAM.CREATE.KV_shop".into(), create),
    ];
    assert_eq!(attempts.len(), 12);
    for (what, subject, payload) in &attempts {
        eve.is_refused(what, subject, payload);
    }
    // The cluster has not noticed: it works, and both nodes are who they were.
    assert_eq!(sum_of_calls(&one, &two), 3_000 * 3_001 / 2);
    assert_eq!(one.net.members().members.len(), 2);
}

#[test]
fn nodes_and_observers_can_do_their_work_with_the_rules_and_nothing_else() {
    let (server, one, two) = shop();
    assert_eq!(sum_of_calls(&one, &two), 3_000 * 3_001 / 2);
    let inspector = Inspector::connect(&config(&server, "shop", "ada")).expect("she may connect");
    let report = inspector.read().expect("she may read");
    let members = report.entries.iter().filter_map(|one| match one.event.entry() {
        Some(LogEntry::Member(member)) => Some(member.node),
        _ => None,
    });
    let mut members: Vec<_> = members.collect();
    members.sort();
    let mut expected = [one.net.me(), two.net.me()];
    expected.sort();
    assert_eq!(members, expected);
    // The log of the server names each refusal: so far there was none.
    assert!(!server.log().contains("Permissions Violation"), "{}", server.log());
    // A node does not read what is for another one of its cluster.
    let mut two = Stranger::connect(&server, "two");
    two.is_refused("read the frames of another node", "shop.n.one.>", "");
    two.is_refused("read the answers to another node", "_INBOX.shop.one.>", "");
    two.is_refused("delete an entry of the log", "$JS.API.STREAM.MSG.DELETE.KV_shop", "{}");
    two.is_refused("purge the log", "$JS.API.STREAM.PURGE.KV_shop", "{}");
    // An observer only reads.
    let mut ada = Stranger::connect(&server, "ada");
    let inc = format!("{:016x}", one.net.me().incarnation());
    ada.is_refused("end a member", &format!("$KV.shop.live.{inc}"), "");
    ada.is_refused("create a consumer", "$JS.API.CONSUMER.CREATE.KV_shop", "{}");
    ada.is_refused("send frames", &format!("shop.n.one.{inc}.l"), "x");
    ada.is_refused("read frames", "shop.n.>", "");
}

/// Each right of a worker, in words of its rules, that a node without it must not join.
const NEEDED: [&str; 4] =
    ["$KV.shop.live.*", "$KV.shop.reg.>", "shop.n.*.*.c", "_INBOX.shop.one.>"];

#[test]
fn a_node_without_a_permission_does_not_join_and_the_error_names_it() {
    let complete = settings(&[("one", "shop", Role::Worker)]);
    for right in NEEDED {
        let line = format!("\"{right}\"");
        assert!(complete.contains(&line), "{right}");
        let server = Server::with_config(&complete.replace(&line, ""), &["-js"]);
        let rt = Runtime::new("one").expect("it starts");
        let joined = rt.block_on(join(rt.system(), config(&server, "shop", "one")));
        let error = joined.expect_err("a right is missing");
        assert!(error.is_permission_missing(), "{right}: {error:?}");
        let subject = right.split(['*', '>']).next().expect("there is a part");
        let text = error.to_string();
        assert!(text.contains(subject) && text.contains("cluster permissions"), "{text}");
    }
}

#[test]
fn a_permission_or_credentials_that_are_revoked_are_reported() {
    let complete = settings(&[("one", "shop", Role::Worker)]);
    let mut server = Server::with_config(&complete, &["-js"]);
    let one = node_with(config(&server, "shop", "one"));
    wait_for_members(&one, 1);
    let refused = |what: &str| {
        until(what, || {
            one.events.try_iter().find_map(|event| match event {
                NetEvent::Refused { what: text } if text.to_lowercase().contains(what) => {
                    Some(text)
                }
                _ => None,
            })
        })
    };
    server.kill();
    server.restart_with_config(&complete.replace("\"$KV.shop.live.*\"", ""));
    let text = refused("$kv.shop.live.");
    assert!(text.contains("Permissions Violation"), "{text}");
    server.kill();
    server.restart_with_config(&complete.replace("of-one", "of-nobody"));
    refused("authorization violation");
    // It finds its way back when it is allowed again.
    server.kill();
    server.restart_with_config(&complete);
    wait_for_members(&one, 1);
}
