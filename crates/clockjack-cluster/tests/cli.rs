//! The program as its user sees it, without a server: help, files and exit codes.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

const COMMANDS: [&str; 6] = ["status", "members", "events", "doctor", "init-server", "permissions"];

fn cluster(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_clockjack-cluster");
    Command::new(program).args(args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("the program writes text")
}

/// The result of a command that succeeds without messages.
#[track_caller]
fn result(args: &[&str]) -> String {
    let output = cluster(args);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    text(&output.stdout).to_owned()
}

/// After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-cluster` rewrites the
/// files.
#[track_caller]
fn check_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs from the current output:\n{text}", path.display());
}

#[test]
fn the_whole_surface_is_that_of_the_golden_file() {
    let mut surface = result(&["--help"]);
    for command in COMMANDS {
        assert!(surface.contains(&format!("  {command} ")), "{command} is listed");
        surface.push_str(&format!("\n==== {command} ====\n\n{}", result(&[command, "--help"])));
    }
    check_golden("surface.txt", &surface);
}

#[test]
fn the_permissions_are_those_of_the_golden_files() {
    for role in ["worker", "observer"] {
        let args = ["permissions", "--role", role, "--cluster", "shop", "--node", "node-1"];
        check_golden(&format!("{role}.conf"), &result(&args));
    }
    // Without names, the text says where they belong.
    let text = result(&["permissions", "--role", "worker"]);
    assert!(text.contains("\"CLUSTER.n.NODE.>\""), "{text}");
}

#[test]
fn a_name_with_a_wildcard_gets_no_permissions() {
    let output = cluster(&["permissions", "--role", "worker", "--cluster", "*"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("the names of the cluster"), "{output:?}");
}

#[test]
fn the_configuration_of_a_server_is_written_once_and_its_path_printed() {
    let dir = std::env::temp_dir().join(format!("clockjack-cluster-{}", std::process::id()));
    let data = dir.join("nats");
    let data = data.to_str().expect("a path");
    let path = result(&["init-server", "--data", data]);
    let file = fs::read_to_string(path.trim_end()).expect("the file is there");
    let shown = file.replace(
        Path::new(data).canonicalize().expect("it is there").to_str().expect("a path"),
        "DATA",
    );
    check_golden("nats-server.conf", &shown);
    assert_eq!(result(&["init-server", "--data", data]), path, "a second time");
    let other = cluster(&["init-server", "--data", data, "--listen", "127.0.0.1:4333"]);
    assert_eq!(other.status.code(), Some(2), "it has other settings");
    assert!(text(&other.stderr).contains("has other settings"), "{other:?}");
    assert_eq!(fs::read_to_string(path.trim_end()).expect("the file is there"), file);
    fs::remove_dir_all(dir).expect("it can be removed");
}

#[test]
fn exit_code_8_is_a_server_that_is_not_there() {
    // A port that was free a moment ago.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("nats://{}", socket.local_addr().expect("it is bound"));
    drop(socket);
    for command in ["status", "members", "events", "doctor"] {
        let output = cluster(&[command, "--server", &url, "--cluster", "shop"]);
        assert_eq!(output.status.code(), Some(8), "{command}");
        assert!(text(&output.stderr).contains("no server was reached"), "{output:?}");
    }
}

#[test]
fn exit_code_2_is_a_wrong_argument_or_a_server_without_protection() {
    assert_eq!(cluster(&["status", "--nothing"]).status.code(), Some(2));
    assert_eq!(cluster(&["permissions", "--role", "king"]).status.code(), Some(2));
    let output = cluster(&["status", "--server", "nats://192.0.2.1:4222"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("insecure"), "{output:?}");
}
