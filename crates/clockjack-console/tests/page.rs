//! The page's own modules against the crate's: frames that are put together, and numbers that are
//! written. They run in Node, if it is installed. And what only the page asks for: its files, and
//! the timeline.

use core::time::Duration;
use std::{
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use clockjack_console::{
    client::Client,
    frame::{Encoder, Frame},
    server::{Bind, Console, Control},
    view::Number,
};
use clockjack_rt::{
    Runtime,
    actor::{Next, Props},
};
use serde_json::{Value, json};

/// Runs a module of the page followed by this script, which gets the input as a JSON text; `None`
/// if there is no Node.
fn node(module: &str, script: &str, input: &Value) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page").join(module);
    let module = std::fs::read_to_string(path).unwrap();
    let mut command = Command::new("node");
    command.args(["--input-type=module", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        // Not by a macro, whose output the harness keeps to itself when a test passes.
        let what = "SKIPPED: Node is not installed, so the page's modules were not run\n";
        std::io::stderr().write_all(what.as_bytes()).unwrap();
        return None;
    };
    let text =
        format!("{module}\nconst input = JSON.parse({});\n{script}\n", json!(input.to_string()));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "Node failed");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A view with random rows in a random order.
fn random(next: &mut impl FnMut(u64) -> u64) -> Value {
    let mut rows: Vec<Value> = Vec::new();
    for pid in 0..8 {
        if next(3) > 0 {
            let at = usize::try_from(next(rows.len() as u64 + 1)).unwrap();
            rows.insert(at, json!({ "pid": pid.to_string(), "depth": next(2) }));
        }
    }
    json!({ "rows": rows, "total": next(3) })
}

#[test]
fn the_page_puts_frames_together_to_the_whole_view() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut encoder = Encoder::new("actors", "actors");
    let mut steps: Vec<(Option<Frame>, Value)> = Vec::new();
    for _ in 0..500 {
        let view = random(&mut next);
        steps.push((encoder.next(view.clone()), view));
    }
    let script = "
        import assert from 'node:assert';
        const mirror = new Mirror();
        for (const [frame, view] of input) {
            if (frame) mirror.apply(frame);
            assert.deepEqual(mirror.value(), view);
        }
        console.log('equal');";
    let steps = serde_json::to_value(steps).unwrap();
    let Some(said) = node("mirror.js", script, &steps) else { return };
    assert_eq!(said, "equal\n");
}

#[test]
fn the_page_writes_numbers_with_their_marks() {
    let script = "
        for (const n of input) console.log([count(n), rate(n), time(n), percent(n)].join(' | '));";
    let numbers = [
        Number::UNKNOWN,
        Number::count(10_412),
        Number::exact(0.2),
        Number::sampled(0.38, 0.02),
        Number::exact(82_000.0),
        Number::exact(1_310_000.0),
    ];
    let numbers = serde_json::to_value(numbers).unwrap();
    let Some(said) = node("format.js", script, &numbers) else { return };
    let expected = "- | - | - | -\n\
        10,412 | 10.4 k/s | 10 us | 1041200%\n\
        0 | 0.2 /s | 0 ns | 20%\n\
        0~ | 0.4 /s~ | 0 ns~ | 38%~\n\
        82,000 | 82 k/s | 82 us | 8200000%\n\
        1,310,000 | 1.31 M/s | 1.3 ms | 131000000%\n";
    assert_eq!(said, expected);
}

#[test]
fn the_page_needs_no_token_and_what_it_asks_does() {
    let runtime = Runtime::new("house").unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0)).open().unwrap();
    let clockjack_console::Address::Tcp(at, _) = console.address() else { panic!("on TCP") };
    let get = |path: &str| {
        let mut stream = TcpStream::connect(at).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: {at}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let policy = "content-security-policy: default-src 'none'; script-src 'self'; \
                  style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
    // All files that the page names: those of its markup, and what its modules import.
    let mut paths = vec!["/".to_owned()];
    let mut seen = 0;
    while let Some(path) = paths.get(seen).cloned() {
        seen += 1;
        let answer = get(&path);
        assert!(answer.starts_with("HTTP/1.0 200"), "{path}: {answer}");
        assert!(answer.lines().any(|line| line == policy), "{path}: {answer}");
        for (_, rest) in answer.match_indices('"').map(|(at, _)| answer.split_at(at + 1)) {
            let name = rest.split('"').next().unwrap_or_default();
            let is_file = name.starts_with('/') && name.ends_with(['s']) && name.contains('.');
            if is_file && !paths.iter().any(|path| path == name) {
                paths.push(name.to_owned());
            }
        }
    }
    assert!(paths.len() > 10, "{paths:?}");
    assert!(get("/v1/overview").starts_with("HTTP/1.0 401"));
    assert!(get("/app.js?x=1").starts_with("HTTP/1.0 200"));
    assert!(get("/vendor/LICENSE-htm").starts_with("HTTP/1.0 401"), "only what is listed");
    assert!(Client::connect(console.address()).is_ok());
}

/// A console of a runtime, and requests to it over TCP.
struct House {
    runtime: Runtime,
    console: clockjack_console::server::Opened,
}

impl House {
    fn new(control: Control) -> Self {
        let runtime = Runtime::new("house").unwrap();
        let console = Console::of(&runtime).control(control).bind(Bind::Loopback(0));
        let console = console.open().unwrap();
        Self { runtime, console }
    }

    /// Sends a request with the token.
    fn ask(&self, path: &str) -> TcpStream {
        let url = self.console.url().unwrap();
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/#t=").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!("host: {host}\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(format!("GET {path} HTTP/1.0\r\n{head}").as_bytes()).unwrap();
        stream
    }

    /// The head and the body of an answer.
    fn answer(&self, path: &str) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        self.ask(path).read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8(bytes[..end].to_vec()).unwrap(), bytes[end + 4..].to_vec())
    }

    fn until_tracing(&self, is_on: bool) {
        let start = Instant::now();
        while self.runtime.metrics().is_tracing() != is_on {
            assert!(start.elapsed() < Duration::from_secs(30), "tracing stays {}", !is_on);
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_timeline_is_traced_for_its_time_where_the_program_allows_it() {
    let house = House::new(Control::INSPECT);
    // Again and again: a poll that is under way when tracing begins is not recorded.
    let ticker = Props::from_fn(|cx, (): ()| {
        cx.timers().fixed_rate("tick", Duration::from_millis(1), || ())?;
        Ok(Next::Stay)
    });
    let ticker = house.runtime.spawn("ticker", ticker).unwrap();
    ticker.tell(()).unwrap();
    let is_poll = |event: &Value| event["ph"] == "X" && event["name"] == "/user/ticker";
    // A busy machine may let no worker run for that time.
    let start = Instant::now();
    loop {
        let stream = house.ask("/v1/timeline?ms=200");
        house.until_tracing(true);
        let mut answer = String::new();
        BufReader::new(stream).read_to_string(&mut answer).unwrap();
        assert!(!house.runtime.metrics().is_tracing());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["traced"], true);
        let events = body["traceEvents"].as_array().unwrap();
        if events.iter().any(is_poll) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{events:?}");
    }

    let (head, body) = house.answer("/v1/timeline?ms=1&format=perfetto");
    assert!(head.contains("filename=\"timeline.pftrace\""), "{head}");
    assert!(!body.is_empty());
    let (head, body) = house.answer("/v1/timeline?ms=1&format=chrome");
    assert!(head.contains("filename=\"timeline.json\""), "{head}");
    assert!(serde_json::from_slice::<Value>(&body).unwrap().get("traced").is_none());
    for query in ["ms=0", "ms=5001", "format=gif"] {
        let (head, _) = house.answer(&format!("/v1/timeline?{query}"));
        assert!(head.starts_with("HTTP/1.0 400"), "{query}: {head}");
    }
}

#[test]
fn a_timeline_traces_nothing_where_the_program_does_not_allow_it() {
    let house = House::new(Control::NONE);
    let (_, body) = house.answer("/v1/timeline?ms=5000");
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["traced"], false);
    assert!(!house.runtime.metrics().is_tracing());
}

#[test]
fn tracing_ends_when_the_client_has_gone_and_when_the_console_is_closed() {
    let house = House::new(Control::INSPECT);
    let stream = house.ask("/v1/timeline?ms=5000");
    house.until_tracing(true);
    drop(stream);
    house.until_tracing(false);
    let _waiting = house.ask("/v1/timeline?ms=5000");
    house.until_tracing(true);
    house.console.close();
    assert!(!house.runtime.metrics().is_tracing());
}
