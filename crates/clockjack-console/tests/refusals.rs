//! Nothing is shown, executed or reported without permission: a table of requests, each with its
//! status. The requests are written to raw sockets, because clients rewrite them.

#[path = "refusals/unix.rs"]
mod unix;

use core::{net::SocketAddr, time::Duration};
use std::{io::Write as _, net::TcpStream};

use clockjack_console::{
    Address,
    server::{Bind, CONNECTIONS_MAX, Console, Control, Opened},
};
use clockjack_rt::Runtime;

/// The status of a connection that is closed without an answer.
const CLOSED: u16 = 0;

/// A console on TCP, and what a client needs to know of it.
struct Server {
    _console: Opened,
    addr: SocketAddr,
    token: String,
}

impl Server {
    fn open(runtime: &Runtime) -> Self {
        Self::of(Console::of(runtime).bind(Bind::Loopback(0)).open().unwrap())
    }

    fn of(console: Opened) -> Self {
        let url = console.url().unwrap();
        let (_, token) = url.split_once("#t=").unwrap();
        let Address::Tcp(addr, _) = console.address() else { panic!("it is on TCP") };
        Self { addr: *addr, token: token.to_owned(), _console: console }
    }

    /// The request with the names of the console filled in.
    fn fill(&self, request: &str) -> String {
        let half = &self.token[..self.token.len() / 2];
        let lines = request.replace("{port}", &self.addr.port().to_string());
        let lines = lines.replace("{host}", &self.addr.to_string());
        lines.replace("{token}", &self.token).replace("{half}", half).replace('\n', "\r\n")
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The answer to a request; its status is [`CLOSED`] if there is none.
    fn answer(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        // Otherwise each answer would wait for the end of the time for the next request.
        let request = if request.contains("connection:") {
            request.to_owned()
        } else {
            request.replacen("\nhost:", "\nconnection: close\nhost:", 1)
        };
        // A server that refuses a request early does not read the rest of it.
        let _written = stream.write_all(self.fill(&request).as_bytes());
        answer_on(stream)
    }

    fn status(&self, request: &str) -> u16 {
        self.answer(request).0
    }
}

fn answer_on(mut stream: impl std::io::Read) -> (u16, String) {
    let mut answer = Vec::new();
    // A reset after the answer takes nothing away from it.
    let _read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let status = answer.strip_prefix("HTTP/1.1 ").or(answer.strip_prefix("HTTP/1.0 "));
    (status.map_or(CLOSED, |rest| rest[..3].parse().unwrap()), answer)
}

const AUTH: &str = "authorization: Bearer {token}\n";

/// A request with a token, up to the end of its head.
fn with_token(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\nhost: {{host}}\n{AUTH}connection: close\n{headers}\n")
}

fn act(kind: &str, body: &str) -> String {
    let length = body.len();
    let headers = format!("content-type: {kind}\ncontent-length: {length}\n");
    format!("{}{body}", with_token("POST /v1/act", &headers))
}

/// Requests whose `Host` or `Origin` is another one: pages of other sites.
const FOREIGN: &[(&str, u16, &str)] = &[
    ("rebinding", 403, "GET /v1/hello HTTP/1.1\nhost: evil.example:{port}\n\n"),
    ("rebinding, with the token", 403, "GET /v1/overview HTTP/1.1\nhost: evil.example\n{auth}\n"),
    ("rebinding of the page", 403, "GET / HTTP/1.1\nhost: evil.example:{port}\n\n"),
    ("rebinding of an asset", 403, "GET /app.js HTTP/1.1\nhost: evil.example:{port}\n\n"),
    ("host without a port", 403, "GET /v1/hello HTTP/1.1\nhost: 127.0.0.1\n\n"),
    ("host with another port", 403, "GET /v1/hello HTTP/1.1\nhost: 127.0.0.1:1\n\n"),
    ("our host as a prefix", 403, "GET /v1/hello HTTP/1.1\nhost: {host}.evil.example\n\n"),
    ("HTTP/1.1 without a host", 403, "GET /v1/hello HTTP/1.1\n\n"),
    ("HTTP/1.0 without a host", 403, "GET /v1/hello HTTP/1.0\n\n"),
    ("an empty host", 403, "GET /v1/hello HTTP/1.1\nhost:\n\n"),
    (
        "a foreign origin",
        403,
        "GET /v1/overview HTTP/1.1\nhost: {host}\norigin: http://evil.example\n{auth}\n",
    ),
    (
        "a foreign origin asks for hello",
        403,
        "GET /v1/hello HTTP/1.1\nhost: {host}\norigin: http://evil.example\n\n",
    ),
    ("no origin", 403, "GET /v1/overview HTTP/1.1\nhost: {host}\norigin: null\n{auth}\n"),
    (
        "an origin with another scheme",
        403,
        "GET /v1/overview HTTP/1.1\nhost: {host}\norigin: https://{host}\n{auth}\n",
    ),
    (
        "an origin with another port",
        403,
        "GET /v1/overview HTTP/1.1\nhost: {host}\norigin: http://127.0.0.1:1\n{auth}\n",
    ),
    (
        "a preflight",
        403,
        "OPTIONS /v1/act HTTP/1.1\nhost: {host}\norigin: http://evil.example\n\
         access-control-request-method: POST\n\n",
    ),
    (
        "a foreign absolute address",
        403,
        "GET http://evil.example/v1/overview HTTP/1.1\nhost: {host}\n{auth}\n",
    ),
];

/// Requests that do not show the token.
const TOKENS: &[(&str, u16, &str)] = &[
    ("no token", 401, "GET /v1/overview HTTP/1.1\nhost: {host}\n\n"),
    ("no token for a stream", 401, "GET /v1/stream?view=actors HTTP/1.1\nhost: {host}\n\n"),
    ("no token for nothing", 401, "GET /v1/nothing HTTP/1.1\nhost: {host}\n\n"),
    ("no token for an action", 401, "POST /v1/act HTTP/1.1\nhost: {host}\ncontent-length: 2\n\n{}"),
    (
        "no token for a websocket",
        401,
        "GET /v1/stream?view=actors HTTP/1.1\nhost: {host}\nconnection: upgrade\n\
         upgrade: websocket\nsec-websocket-version: 13\nsec-websocket-key: AAAA\n\n",
    ),
    (
        "a wrong token",
        401,
        "GET /v1/overview HTTP/1.1\nhost: {host}\nauthorization: Bearer 0123456789abcdef\n\n",
    ),
    (
        "half of the token",
        401,
        "GET /v1/overview HTTP/1.1\nhost: {host}\nauthorization: Bearer {half}\n\n",
    ),
    (
        "more than the token",
        401,
        "GET /v1/overview HTTP/1.1\nhost: {host}\nauthorization: Bearer {token}0\n\n",
    ),
    ("an empty token", 401, "GET /v1/hello HTTP/1.1\nhost: {host}\nauthorization: Bearer \n\n"),
    (
        "the token as a password",
        401,
        "GET /v1/overview HTTP/1.1\nhost: {host}\nauthorization: Basic {token}\n\n",
    ),
    ("the token in the query", 401, "GET /v1/overview?t={token} HTTP/1.1\nhost: {host}\n\n"),
    (
        "the token in a cookie",
        401,
        "GET /v1/overview HTTP/1.1\nhost: {host}\ncookie: t={token}\n\n",
    ),
    ("two tokens", 400, "GET /v1/overview HTTP/1.1\nhost: {host}\n{auth}{auth}\n"),
];

/// Requests with the token that are refused all the same.
fn malformed() -> Vec<(&'static str, u16, String)> {
    let get = |path: &str| with_token(&format!("GET {path}"), "");
    let long = "x".repeat(17 * 1024);
    let many: String = (0..200).map(|n| format!("x-{n}: y\n")).collect();
    let json = "application/json";
    vec![
        ("traversal", 404, get("/v1/../../etc/passwd")),
        ("traversal at the root", 404, get("/../../etc/passwd")),
        ("hidden traversal", 404, get("/%2e%2e/%2e%2e/etc/passwd")),
        ("traversal in a name", 404, get("/v1/%2e%2e%2fhello")),
        ("traversal from the page", 404, get("/assets/../server.rs")),
        ("an empty name before", 404, get("//v1/overview")),
        ("an unknown view", 404, get("/v1/secrets")),
        ("an actor that does not exist", 404, get("/v1/actor?path=/user/nobody")),
        ("an actor without a name", 400, get("/v1/actor")),
        ("an invalid filter", 400, get("/v1/actors?filter=depth%3E%3E")),
        ("an unknown order", 400, get("/v1/actors?sort=name")),
        ("a stream of nothing", 400, get("/v1/stream")),
        ("too many frames", 400, get("/v1/stream?view=actors&hz=11")),
        ("a stream of an unknown view", 404, get("/v1/stream?view=secrets")),
        ("a view is written", 405, with_token("PUT /v1/overview", "")),
        ("a view is deleted", 405, with_token("DELETE /v1/overview", "")),
        ("an action is read", 405, get("/v1/act")),
        ("a proxy", 405, with_token("CONNECT {host}", "")),
        ("an action that is not allowed", 403, act(json, r#"{"do":"stop","path":"/user/a"}"#)),
        ("an unknown action", 400, act(json, r#"{"do":"eval"}"#)),
        ("an action without a name", 400, act(json, "{}")),
        ("an action that is no JSON", 400, act(json, "do=stop")),
        ("an action as a form", 415, act("application/x-www-form-urlencoded", "do=stop")),
        ("an action as text", 415, act("text/plain", r#"{"do":"stop"}"#)),
        ("a body that is too large", 413, act(json, &" ".repeat(64 * 1024 + 1))),
        (
            "a body that is said to be too large and does not come",
            413,
            with_token("POST /v1/act", &format!("content-length: {}\n", 64 * 1024 + 1)),
        ),
        (
            "a slow body",
            408,
            with_token("POST /v1/act", "content-type: application/json\ncontent-length: 9\n") + "{",
        ),
        ("a head that is too large", 431, with_token("GET /v1/hello", &format!("x: {long}\n"))),
        ("an address that is too long", 431, get(&format!("/v1/{long}"))),
        ("too many headers", 431, with_token("GET /v1/hello", &many)),
        ("two hosts", 400, with_token("GET /v1/overview", "host: {host}\n")),
        ("two origins", 400, with_token("GET /v1/hello", "origin: http://{host}\norigin: x\n")),
        (
            "a body with two lengths",
            400,
            with_token("POST /v1/act", "transfer-encoding: chunked\ncontent-length: 5\n") + "0\n\n",
        ),
        (
            "a body in chunks",
            400,
            with_token("POST /v1/act", "transfer-encoding: chunked\n") + "0\n\n",
        ),
        ("HTTP/2", CLOSED, "PRI * HTTP/2.0\n\nSM\n\n".into()),
        ("no HTTP", 400, "hello\n\n".into()),
    ]
}

fn check(runtime: &Runtime, name: &str, expected: u16, request: &str) {
    let server = Server::open(runtime);
    let (status, answer) = server.answer(&request.replace("{auth}", AUTH));
    assert_eq!(status, expected, "{name}: {answer}");
    let lower = answer.to_ascii_lowercase();
    assert!(!answer.contains(&server.token), "{name}: no answer has the token");
    assert!(!lower.contains("access-control-"), "{name}: no other site gets permission");
    assert!(!lower.contains("set-cookie"), "{name}: there are no cookies");
}

#[test]
fn every_request_without_permission_is_refused_with_its_status() {
    let runtime = Runtime::new("guarded").unwrap();
    let mut n = 0;
    for (name, expected, request) in FOREIGN.iter().chain(TOKENS) {
        check(&runtime, name, *expected, request);
        n += 1;
    }
    for (name, expected, request) in malformed() {
        check(&runtime, name, expected, &request);
        n += 1;
    }
    assert!(n >= 40, "{n}");
}

#[test]
fn the_same_requests_with_permission_are_answered() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    assert_eq!(server.status(&with_token("GET /v1/overview", "")), 200);
    assert_eq!(server.status(&with_token("GET /v1/actors", "origin: http://{host}\n")), 200);
    let local = format!("GET /v1/actors HTTP/1.0\nhost: LocalHost:{{port}}\n{AUTH}\n");
    assert_eq!(server.status(&local), 200);
    let absolute = with_token("GET http://{host}/v1/actors", "");
    assert_eq!(server.status(&absolute), 200);

    let (status, answer) = server.answer("GET /v1/hello HTTP/1.0\nhost: {host}\n\n");
    assert_eq!(status, 200);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let shown = serde_json::json!({ "schema": "clockjack.console/1", "auth": "token" });
    assert_eq!(body, shown, "to a stranger");
    for header in ["content-security-policy: default-src 'none'", "nosniff", "no-store"] {
        assert!(head.contains(header), "{header}: {head}");
    }
}

#[test]
fn a_token_of_an_earlier_console_is_worth_nothing() {
    let runtime = Runtime::new("guarded").unwrap();
    let old = Server::open(&runtime);
    let request = old.fill("authorization: Bearer {token}\n");
    assert_eq!(old.status(&with_token("GET /v1/overview", "")), 200);
    drop(old);
    let new = Server::open(&runtime);
    let request = format!("GET /v1/overview HTTP/1.0\nhost: {{host}}\n{}\n", request.trim());
    assert_eq!(new.status(&format!("{request}\n")), 401);
}

#[test]
fn ten_wrong_tokens_close_the_console_for_everybody() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    let wrong = "GET /v1/hello HTTP/1.0\nhost: {host}\nauthorization: Bearer wrong\n\n";
    for _ in 0..10 {
        assert_eq!(server.status(wrong), 401);
    }
    assert_eq!(server.status(wrong), 429);
    assert_eq!(server.status(&with_token("GET /v1/overview", "")), 429);
    // A page of another site cannot close it: its requests are refused before.
    let server = Server::open(&runtime);
    let foreign = "GET /v1/hello HTTP/1.0\nhost: evil.example\nauthorization: Bearer wrong\n\n";
    for _ in 0..20 {
        assert_eq!(server.status(foreign), 403);
    }
    assert_eq!(server.status(&with_token("GET /v1/overview", "")), 200);
}

#[test]
fn the_ninth_connection_is_refused_and_a_slow_head_makes_room() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /v1/hello HTTP/1.1\r\n").unwrap();
    }
    assert_eq!(server.status(&with_token("GET /v1/overview", "")), 503);
    for stream in slow {
        let (status, answer) = answer_on(stream);
        assert_eq!(status, 408, "{answer}");
    }
    // The server learns a moment later that the slow clients have gone.
    let mut again = (0..1000).map(|_| server.status(&with_token("GET /v1/overview", "")));
    assert_eq!(again.find(|status| *status != 503), Some(200));
}

/// The head of a request that says that a body comes.
fn slow_body(authorization: &str) -> String {
    let kind = "content-type: application/json";
    format!("POST /v1/act HTTP/1.1\nhost: {{host}}\n{authorization}{kind}\ncontent-length: 9\n\n")
}

#[test]
fn a_stranger_holds_no_connection_by_a_body_that_does_not_come() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    let mut strangers: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| server.connect()).collect();
    for stream in &mut strangers {
        stream.write_all(server.fill(&slow_body("")).as_bytes()).unwrap();
    }
    // They keep their side open, and get their answers without sending any more.
    let begin = std::time::Instant::now();
    for stream in &strangers {
        let (status, answer) = answer_on(stream);
        assert_eq!(status, 401, "{answer}");
    }
    // A body of a client may take five seconds.
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    // They still hold their side; the server gives them a second to read why.
    let overview = with_token("GET /v1/overview", "");
    let mut again = core::iter::repeat_with(|| server.status(&overview))
        .take_while(|_| begin.elapsed() < Duration::from_secs(20));
    assert_eq!(again.find(|status| *status != 503), Some(200));
    drop(strangers);
}

#[test]
fn a_slow_body_makes_room() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(server.fill(&slow_body(AUTH)).as_bytes()).unwrap();
    }
    assert_eq!(server.status(&with_token("GET /v1/overview", "")), 503);
    for stream in slow {
        let (status, answer) = answer_on(stream);
        assert_eq!(status, 408, "{answer}");
    }
    let mut again = (0..1000).map(|_| server.status(&with_token("GET /v1/overview", "")));
    assert_eq!(again.find(|status| *status != 503), Some(200));
}

#[test]
fn an_action_is_refused_with_the_class_that_is_missing() {
    let runtime = Runtime::new("guarded").unwrap();
    let server = Server::open(&runtime);
    let (status, answer) = server.answer(&act("application/json", r#"{"do":"cancel-job"}"#));
    assert_eq!(status, 403);
    assert!(answer.contains(r#""missing":"JOBS""#), "{answer}");
    let allowed = Console::of(&runtime).bind(Bind::Loopback(0)).control(Control::JOBS);
    let server = Server::of(allowed.open().unwrap());
    assert_eq!(server.status(&act("application/json", r#"{"do":"cancel-job"}"#)), 501);
    assert_eq!(server.status(&act("application/json", r#"{"do":"stop"}"#)), 403);
}
