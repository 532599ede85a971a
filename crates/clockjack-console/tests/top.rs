//! A terminal and a running program: streams that are changed quickly, and a program that ends.

use core::time::Duration;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use clockjack_console::{
    Address, Token,
    client::Client,
    server::{Bind, CONNECTIONS_MAX, Console},
    tui::{Top, TopConfig},
};
use clockjack_rt::Runtime;

#[test]
fn a_terminal_that_changes_what_it_shows_leaves_no_streams_behind() {
    let runtime = Runtime::new("house").unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0)).open().unwrap();
    let client = Client::connect(console.address()).unwrap();
    // Nothing comes on these streams for seconds, and nobody waits for it.
    let config = TopConfig { hz: 0.1, ..TopConfig::default() };
    for _ in 0..2 * CONNECTIONS_MAX {
        drop(Top::new(client.clone(), config.clone()));
    }
    for _ in 0..CONNECTIONS_MAX + 2 {
        // Its first frame has come, unless the machine is slow.
        let top = Top::new(client.clone(), config.clone());
        let _screen = top.once(80, 24, Duration::from_millis(150));
    }
    // As many as there is room for, so that each one before has left.
    let others: Vec<Top> =
        (1..CONNECTIONS_MAX).map(|_| Top::new(client.clone(), config.clone())).collect();
    let top = Top::new(client.clone(), config);
    let screen = top.once(80, 24, Duration::from_secs(3)).unwrap();
    assert!(screen.contains("house"), "{screen}");
    drop(others);
}

#[test]
fn a_program_that_ends_before_the_first_frame_leaves_no_empty_screen() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let hello = r#"{"schema":"clockjack.console/1","auth":"token"}"#;
    let bye = "event: bye\ndata: {}\n\n";
    let program = thread::spawn(move || {
        for (kind, body) in [("application/json", hello), ("text/event-stream", bye)] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let length = body.len();
            let head = format!("content-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
            write!(stream, "HTTP/1.1 200 OK\r\n{head}{body}").unwrap();
        }
    });
    let client = Client::connect(&Address::Tcp(at, Some(Token::random().unwrap()))).unwrap();
    let top = Top::new(client, TopConfig::default());
    let error = top.once(80, 24, Duration::from_secs(60)).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    program.join().unwrap();
}
