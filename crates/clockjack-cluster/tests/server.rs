//! The commands that read, on a real server: `cargo xtask nats` runs these tests.

#[path = "../../clockjack-nats/tests/server/process.rs"]
#[expect(dead_code, reason = "the tests of clockjack-nats do more with servers")]
mod process;

use core::time::Duration;
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Output, Stdio},
    time::Instant,
};

use clockjack_macros::Wire;
use clockjack_nats::{NatsConfig, join};
use clockjack_net::Net;
use clockjack_rt::{
    Runtime,
    actor::{Props, ServiceKey},
};
use serde_json::Value;

use crate::process::Server;

/// Longer than anything takes that these tests wait for.
const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until something is there.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it has not happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn program(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack-cluster"));
    command.args(args).args(["--server", &server.url()]);
    command
}

fn cluster(server: &Server, args: &[&str]) -> Output {
    program(server, args).output().expect("it starts")
}

/// The lines of a command that succeeds, as JSON.
#[track_caller]
fn lines(server: &Server, args: &[&str]) -> Vec<Value> {
    let output = cluster(server, &[args, &["--format", "json"]].concat());
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// What the service takes.
#[derive(Wire)]
#[wire(id = "test.Page")]
enum Page {
    Number(u64),
}

/// A node of the cluster `shop` that offers a service.
fn node(server: &Server, name: &str) -> (Runtime, Net) {
    let rt = Runtime::new(name).expect("it starts");
    let mut config = NatsConfig::new(&server.url(), "shop", name);
    config.node.roles = vec!["worker".into()];
    let net = rt.block_on(join(rt.system(), config)).expect("the server runs");
    let key = ServiceKey::<Page>::new("printer");
    net.share(&key).expect("it is not shared").forever();
    let printer = rt.spawn("printer", Props::from_fn(|_cx, _: Page| Ok(()))).expect("it starts");
    rt.system().receptionist().register(&key, &printer).expect("it runs");
    (rt, net)
}

#[test]
fn members_and_services_are_shown_and_a_node_that_leaves_is_an_event() {
    let server = Server::start();
    // There is no cluster yet.
    let output = cluster(&server, &["status"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (one, two) = (node(&server, "one"), node(&server, "two"));
    let has_all = || {
        let rows = lines(&server, &["members"]);
        let n = rows.iter().filter(|row| row["services"] == serde_json::json!(["printer"])).count();
        (n == 2).then_some(rows)
    };
    let rows = until("both offer their service", has_all);
    let names: Vec<String> = rows.iter().map(|row| row["node"].to_string()).collect();
    assert!(names.contains(&format!("\"{}\"", one.1.me())), "{names:?}");
    assert!(rows.iter().all(|row| row["roles"] == serde_json::json!(["worker"])));
    let status = &lines(&server, &["status"])[0];
    assert_eq!(status["cluster"], "shop");
    assert_eq!(status["members"].as_array().map(Vec::len), Some(2));
    assert_eq!(status["log"]["replicas"], 1);
    let text = cluster(&server, &["status"]).stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("cluster  shop: 2 members, 2 services\n"), "{text}");
    // The log as it grows: both members, their services, and then the end of one.
    let mut follow = program(&server, &["events", "--follow", "--format", "json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().expect("it starts");
    let out = BufReader::new(follow.stdout.take().expect("a pipe"));
    let mut events = out.lines().map(|line| {
        serde_json::from_str::<Value>(&line.expect("it is open")).expect("a line is JSON")
    });
    let mut seen: Vec<Value> = events.by_ref().take(4).collect();
    let leaving = two.1.me().to_string();
    drop(two);
    let end = loop {
        let event = events.next().expect("the program follows the log");
        if event["event"] == "end" {
            break event;
        }
        seen.push(event);
    };
    assert_eq!(end["node"], *leaving);
    let last = lines(&server, &["members"]);
    follow.kill().expect("it runs");
    follow.wait().expect("it ends");
    assert_eq!(seen.iter().filter(|event| event["event"] == "member").count(), 2, "{seen:?}");
    let services = seen.iter().filter(|event| event["event"] == "service");
    assert_eq!(services.count(), 2, "{seen:?}");
    assert!(last.iter().all(|row| row["node"] != *leaving), "{last:?}");
    drop(one);
}

#[test]
fn the_doctor_reads_when_the_server_writes_to_its_disk() {
    let config = "http: \"127.0.0.1:-1\"\njetstream { sync_interval: always }\n";
    let server = Server::with_config(config, &["-js"]);
    let (_rt, net) = node(&server, "one");
    until("it is a member", || (net.members().members.len() == 1).then_some(()));
    let ports = server.ports().expect("the server has written it");
    let (_, monitor) = ports.split_once("http://").expect("it has a monitoring port");
    let monitor = &monitor[..monitor.find('"').expect("the address ends")];
    let findings = lines(&server, &["doctor", "--monitor", monitor]);
    let of = |check: &str| {
        let found = findings.iter().find(|one| one["check"] == check);
        found.unwrap_or_else(|| panic!("no {check}: {findings:?}"))["text"].to_string()
    };
    assert!(of("durability").contains("survives its crash and its power failure"), "{findings:?}");
    assert!(of("server").contains("clockjack cluster permissions"), "{findings:?}");
    assert!(of("members").contains("1 members"), "{findings:?}");
    let without = lines(&server, &["doctor"]);
    assert!(without.iter().any(|one| one["text"].to_string().contains("--monitor")), "{without:?}");
    // What a log that another program has created lacks is a failure.
    let output = cluster(&server, &["doctor", "--cluster", "nothing"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn two_clusters_of_one_server_must_be_named_and_wrong_credentials_are_code_8() {
    let server = Server::with(&["-js", "--user", "ada", "--pass", "right"]);
    let output = program(&server, &["status", "--user", "ada"])
        .env("CLOCKJACK_NATS_PASSWORD", "wrong")
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("credentials"), "{output:?}");
    let auth = clockjack_nats::Auth::UserPassword { user: "ada".into(), password: "right".into() };
    let mut nodes = Vec::new();
    for cluster in ["shop", "bank"] {
        let rt = Runtime::new("node").expect("it starts");
        let config =
            NatsConfig { auth: auth.clone(), ..NatsConfig::new(&server.url(), cluster, "a") };
        let net = rt.block_on(join(rt.system(), config)).expect("the server runs");
        nodes.push((rt, net));
    }
    let output = program(&server, &["status", "--user", "ada"])
        .env("CLOCKJACK_NATS_PASSWORD", "right")
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("bank, shop"), "{output:?}");
}
