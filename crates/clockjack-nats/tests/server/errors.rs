//! Servers that a node does not join: each error says what to do.

use core::time::Duration;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

use clockjack_nats::{Auth, JoinError, NatsConfig, Tls, join};
use clockjack_rt::Runtime;

use crate::process::Server;

#[track_caller]
fn refused(config: NatsConfig) -> JoinError {
    let rt = Runtime::new("node").expect("it starts");
    rt.block_on(join(rt.system(), config)).expect_err("the node does not join")
}

fn config(url: &str) -> NatsConfig {
    NatsConfig::new(url, "shop", "a")
}

#[test]
fn a_server_without_jetstream_is_refused() {
    let server = Server::with(&[]);
    let error = refused(config(&server.url()));
    assert!(error.is_jetstream_missing(), "{error:?}");
    assert!(error.to_string().contains("-js"), "{error}");
}

#[test]
fn wrong_credentials_are_refused() {
    let server = Server::with(&["-js", "--user", "ada", "--pass", "right"]);
    let wrong = Auth::UserPassword { user: "ada".into(), password: "wrong".into() };
    for auth in [wrong, Auth::None, Auth::Token("wrong".into())] {
        let error = refused(NatsConfig { auth, ..config(&server.url()) });
        assert!(error.is_credentials(), "{error:?}");
        assert!(error.to_string().contains("`auth`"), "{error}");
    }
    let missing = Auth::CredsFile("there/is/no/such.creds".into());
    let error = refused(NatsConfig { auth: missing, ..config(&server.url()) });
    assert!(error.is_credentials(), "{error:?}");
    let right = Auth::UserPassword { user: "ada".into(), password: "right".into() };
    let rt = Runtime::new("node").expect("it starts");
    let right = NatsConfig { auth: right, ..config(&server.url()) };
    rt.block_on(join(rt.system(), right)).expect("these are right");
}

#[test]
fn a_server_that_is_not_there_or_does_not_answer_is_reported_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("it is bound").port();
    let connect_timeout = Duration::from_millis(500);
    let url = format!("nats://127.0.0.1:{port}");
    let error = refused(NatsConfig { connect_timeout, ..config(&url) });
    assert!(error.is_unreachable(), "{error:?}");
    drop(silent);
    let error = refused(NatsConfig { connect_timeout, ..config(&url) });
    assert!(error.is_unreachable(), "{error:?}");
    assert!(error.to_string().contains("`urls`"), "{error}");
}

#[test]
fn a_server_without_tls_is_refused_if_the_node_requires_it() {
    let server = Server::start();
    let error = refused(NatsConfig { tls: Tls::Require, ..config(&server.url()) });
    assert!(error.is_tls() || error.is_unreachable(), "{error:?}");
}

#[test]
fn a_server_with_small_messages_is_refused() {
    let dir = std::env::temp_dir().join(format!("clockjack-nats-{}.conf", std::process::id()));
    std::fs::write(&dir, "max_payload: 65536\n").expect("the settings of the server");
    let server = Server::with(&["-js", "-c", dir.to_str().expect("a path")]);
    let error = refused(config(&server.url()));
    drop(std::fs::remove_file(&dir));
    assert!(error.is_payload_too_small(), "{error:?}");
    assert!(error.to_string().contains("65536"), "{error}");
}

#[test]
fn a_server_that_is_too_old_is_refused_with_both_versions() {
    let old = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = old.local_addr().expect("it is bound").port();
    // As much of an old server as a client needs to see.
    let server = std::thread::spawn(move || {
        let (mut socket, _) = old.accept().expect("the node connects");
        let name = r#""server_id":"x","version":"2.9.10","proto":1"#;
        let limits = r#""headers":true,"max_payload":1048576"#;
        write!(socket, "INFO {{{name},{limits}}}\r\n").expect("it is open");
        let mut buffer = [0; 4_096];
        while let Ok(n @ 1..) = socket.read(&mut buffer) {
            if String::from_utf8_lossy(&buffer[..n]).contains("PING") {
                write!(socket, "PONG\r\n").expect("it is open");
            }
        }
    });
    let error = refused(config(&format!("nats://127.0.0.1:{port}")));
    assert!(error.is_server_too_old(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("2.9.10") && text.contains("2.14"), "{text}");
    server.join().expect("the connection is closed");
}
