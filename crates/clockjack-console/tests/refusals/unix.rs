//! Requests over a unix socket.
#![cfg(unix)]

use core::time::Duration;
use std::{
    io::Write as _,
    os::unix::{fs::DirBuilderExt as _, net::UnixStream},
};

use clockjack_console::server::{Bind, Console};
use clockjack_rt::Runtime;

use super::answer_on;

#[test]
fn a_socket_needs_no_token_and_has_the_same_rules_of_form() {
    let directory = std::env::temp_dir().join(format!("cj-refusals-{}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let path = directory.join("x.sock");
    let runtime = Runtime::new("guarded").unwrap();
    let console = Console::of(&runtime).bind(Bind::SocketAt(path.clone())).open().unwrap();
    let status = |request: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _written = stream.write_all(request.replace('\n', "\r\n").as_bytes());
        answer_on(stream).0
    };
    assert_eq!(status("GET /v1/overview HTTP/1.0\n\n"), 200);
    assert_eq!(status("GET /v1/nothing HTTP/1.0\n\n"), 404);
    assert_eq!(status("GET /v1/hello HTTP/1.1\nhost: a\nhost: b\n\n"), 400);
    assert_eq!(status("PUT /v1/overview HTTP/1.0\n\n"), 405);
    let act = "POST /v1/act HTTP/1.0\ncontent-type: application/json\ncontent-length: 13\n\n";
    assert_eq!(status(&format!("{act}{{\"do\":\"stop\"}}")), 403);
    console.close();
    assert!(!path.exists());
    std::fs::remove_dir(directory).unwrap();
}
