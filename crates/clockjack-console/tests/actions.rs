//! Actions: who may request them, and that each of them is told, also a refused one.

use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex, mpsc},
    time::Instant,
};

use clockjack_console::{
    Address,
    client::Client,
    query::EventsQuery,
    server::{Bind, Console, Control, Opened},
    view::{EventRow, Events},
};
use clockjack_graph::{
    Clock, Component, Execute, Failure, GraphContext, GraphFile, GraphRun, Output, Registry,
    RunOptions,
};
use clockjack_rt::Runtime;
use serde_json::{Value, json};

const CELL: &str = "
schema_version: 1
graph: { name: cell, kind: internal_test }
lanes:
  main: { type: fixed_rate, period_ms: 1 }
components:
  - id: sensor
    type: holder
    execution: { lane: main }
    boundary: { role: input }
edges: []
";

/// Makes calls of the component wait, for a test that needs a run without epochs.
#[derive(Debug, Default)]
struct Gate {
    lock: Mutex<()>,
    /// Calls that wait for the lock, or are about to.
    n_waiting: AtomicUsize,
}

#[derive(Component, Clone, Debug, Default)]
#[component(type = "holder", title = "Holder", role = "input")]
struct Holder {
    #[output]
    out: Output<f64>,
    #[config(default = 1.0, min = 0.0)]
    gain: f64,
    gate: Arc<Gate>,
}

impl Execute for Holder {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.gate.n_waiting.fetch_add(1, Ordering::Relaxed);
        let _passed = self.gate.lock.lock().unwrap();
        self.gate.n_waiting.fetch_sub(1, Ordering::Relaxed);
        cx.publish(self.out, self.gain)?;
        Ok(())
    }
}

/// A program with graphs, each under a name.
struct Program {
    runtime: Runtime,
    runs: Vec<GraphRun>,
    console: Opened,
    gate: Arc<Gate>,
}

impl Program {
    fn start(control: Control, names: &[&str]) -> Self {
        let runtime = Runtime::new("house").unwrap();
        let gate = Arc::<Gate>::default();
        let of_holders = gate.clone();
        let holder = move || Holder { gate: of_holders.clone(), ..Holder::default() };
        let registry = Registry::standard().register_with(holder);
        let mut runs = Vec::new();
        let mut console = Console::of(&runtime).bind(Bind::Loopback(0)).control(control);
        for name in names {
            let graph = GraphFile::parse("cell.yaml", CELL).unwrap().compile(&registry);
            let graph = graph.unwrap_or_else(|faults| panic!("{faults:#?}"));
            let options = RunOptions::until_stopped().clock(Clock::Wall);
            let run = graph.start(runtime.system(), options).unwrap();
            console = console.graph(name, &run);
            runs.push(run);
        }
        Self { console: console.open().unwrap(), runtime, runs, gate }
    }

    fn client(&self) -> Client {
        Client::connect(self.console.address()).unwrap()
    }

    /// The status and the body of the answer to an action.
    fn act(&self, body: &Value) -> (u16, Value) {
        let Address::Tcp(at, _) = self.console.address() else { panic!("it is on TCP") };
        let url = self.console.url().unwrap();
        let (_, token) = url.split_once("#t=").unwrap();
        let body = body.to_string();
        let mut stream = TcpStream::connect(at).unwrap();
        write!(
            stream,
            "POST /v1/act HTTP/1.0\r\nhost: {at}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.strip_prefix("HTTP/1.0 ").unwrap()[..3].parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn events(&self) -> Events {
        let query = EventsQuery { since: 0, kinds: vec!["action".into()] };
        self.client().get(&query).unwrap()
    }

    /// What the events say, without who has asked.
    fn told(&self) -> Vec<String> {
        let what = |row: EventRow| {
            let (who, what) = row.text.split_once(": ").unwrap();
            assert!(who.starts_with("127.0.0.1:"), "{who}");
            what.to_owned()
        };
        self.events().rows.into_iter().map(what).collect()
    }
}

fn set(setting: &str, value: impl Into<Value>) -> Value {
    json!({ "do": "set", "control": true, "setting": setting, "value": value.into() })
}

#[test]
fn actions_are_told() {
    let program = Program::start(Control::GRAPHS, &["cell"]);
    let without = |name: &str| {
        let mut body = set("sensor.gain", 2);
        body.as_object_mut().unwrap().remove(name);
        body
    };
    let cases = [
        (set("sensor.gain", 2), 200, "set sensor.gain = 2: done, was null"),
        (set("sensor.gain", "2"), 400, "set sensor.gain = \"2\": refused: `sensor`: "),
        (set("sensor.gain", -1), 400, "set sensor.gain = -1: refused: `sensor`: `gain` is -1"),
        (set("sensor.z", 2), 404, "set sensor.z = 2: refused: `holder` has no setting `z`; it"),
        (set("x.gain", 2), 404, "set x.gain = 2: refused: there is no component `x`; the graph"),
        (set("gain", 2), 400, "set gain = 2: refused: `gain` is no setting"),
        (without("control"), 403, "set sensor.gain = 2: refused: a client must request control"),
        (without("value"), 400, "set sensor.gain: refused: the member `value` is missing"),
        (without("setting"), 400, "set = 2: refused: the member `setting` is missing"),
        (json!({ "do": "step" }), 501, "step: refused: `step` is not carried out"),
        (json!({ "do": "eval", "path": "/" }), 400, "eval /: refused: unknown action `eval`"),
        (
            json!({ "do": "stop", "path": "/user/a" }),
            403,
            "stop /user/a: refused: the program does not allow the class ACTORS",
        ),
        (set("sensor.gain", 3.5), 200, "set sensor.gain = 3.5: done, was 2"),
    ];
    for (body, status, _) in &cases {
        assert_eq!(program.act(body).0, *status, "{body}");
    }
    let told = program.told();
    assert_eq!(told.len(), cases.len(), "{told:#?}");
    for (told, (body, _, expected)) in told.iter().zip(&cases) {
        assert!(told.starts_with(expected), "{body}: {told}");
    }
    assert_eq!(program.client().param(None, "sensor.gain").unwrap().value, json!(3.5));
}

#[test]
fn a_client_must_request_control_and_the_program_must_allow_the_class() {
    let program = Program::start(Control::JOBS, &["cell"]);
    let set = |client: Client| client.set_param(None, "sensor.gain", &json!(2));
    let error = set(program.client().with_control()).unwrap_err();
    assert!(error.is_not_allowed() && error.to_string().contains("GRAPHS"), "{error}");
    let program = Program::start(Control::GRAPHS, &["cell"]);
    let error = set(program.client()).unwrap_err();
    assert!(error.is_not_allowed() && error.to_string().contains("request control"), "{error}");
    let change = set(program.client().with_control()).unwrap();
    assert_eq!(
        (change.graph.as_str(), &change.old, &change.new),
        ("cell", &Value::Null, &json!(2))
    );
    assert_eq!(change.version, 1);
}

#[test]
fn the_graph_must_be_named_if_there_are_several() {
    let program = Program::start(Control::GRAPHS, &["arm", "belt"]);
    let client = program.client().with_control();
    let error = client.set_param(None, "sensor.gain", &json!(2)).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("`arm`, `belt`"), "{error}");
    client.set_param(Some("belt"), "sensor.gain", &json!(2)).unwrap();
    let value = |graph| client.param(Some(graph), "sensor.gain").unwrap();
    assert_eq!((value("arm").value, value("arm").is_default), (Value::Null, true));
    assert_eq!((value("belt").value, value("belt").is_default), (json!(2), false));
    assert!(client.param(Some("leg"), "sensor.gain").unwrap_err().is_not_found());
    let none = Program::start(Control::GRAPHS, &[]);
    let error = none.client().param(None, "sensor.gain").unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("none"), "{error}");
}

#[test]
fn a_run_that_has_ended_refuses_changes() {
    let mut program = Program::start(Control::GRAPHS, &["cell"]);
    let run = program.runs.remove(0);
    run.stop();
    program.runtime.block_on(run).unwrap();
    let (status, body) = program.act(&set("sensor.gain", 2));
    assert_eq!((status, body), (409, json!({ "error": "the run has ended" })));
}

#[test]
fn actions_are_told_to_those_who_come_after_others_have_looked() {
    let program = Program::start(Control::GRAPHS, &["cell"]);
    program.client().with_control().set_param(None, "sensor.gain", &json!(2)).unwrap();
    let mut stream = program.client().stream(&[("events", Vec::new())], 10.0).unwrap();
    stream.next_event().unwrap();
    drop(stream);
    while program.console.clients() > 0 {
        std::thread::yield_now();
    }
    let events = program.events();
    assert_eq!(events.rows.len(), 1, "{events:?}");
}

/// The run holds a call, so that no epoch begins; what was asked for is carried out afterwards.
#[test]
fn a_change_waits_for_an_epoch_longer_than_its_client() {
    let program = Program::start(Control::GRAPHS, &["cell"]);
    let gate = program.gate.clone();
    let (held, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let guard = gate.lock.lock().unwrap();
        // A change is made at the beginning of an epoch, before its calls.
        while gate.n_waiting.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        held.send(()).unwrap();
        // Also when the test has failed.
        let _released = released.recv();
        drop(guard);
    });
    is_held.recv().unwrap();
    let (status, body) = program.act(&set("sensor.gain", 2));
    assert_eq!(status, 504, "{body}");
    assert!(program.client().param(None, "sensor.gain").unwrap().is_default);
    let late = "set sensor.gain = 2: the run has begun no epoch for 5 s";
    assert!(matches!(&program.told()[..], [told] if told.starts_with(late)));
    release.send(()).unwrap();
    holder.join().unwrap();
    let begin = Instant::now();
    while program.told().len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", program.told());
        std::thread::yield_now();
    }
    assert_eq!(program.told()[1], "set sensor.gain = 2: done, was null");
}
