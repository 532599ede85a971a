//! `clockjack run --console`: a run in real time that a client looks at and changes.

use core::time::Duration;
use std::{
    io,
    path::Path,
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, JoinHandle},
};

use clockjack_cli::{Interrupt, Streams, exit_code, run};
use clockjack_console::{
    client::{Client, resolve},
    query::GraphQuery,
    view::GraphView,
};
use clockjack_graph::Registry;

/// The longest time until a run must print something, on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends every line that is written to it.
struct Lines(Sender<String>, String);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.push_str(&String::from_utf8_lossy(bytes));
        while let Some((line, rest)) = self.1.split_once('\n') {
            // Nobody reads the lines after those that a test waits for.
            let _sent = self.0.send(line.to_owned());
            self.1 = rest.to_owned();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run in another thread.
struct Run {
    interrupt: Interrupt,
    lines: Receiver<String>,
    ended: JoinHandle<(u8, String)>,
}

impl Run {
    fn start(args: &'static [&str]) -> Self {
        let graph = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs/cell.yaml");
        let graph = graph.to_str().unwrap().to_owned();
        let interrupt = Interrupt::new();
        let of_run = interrupt.clone();
        let (sender, lines) = mpsc::channel();
        let work = move || {
            let (mut out, mut err) = (Vec::new(), Lines(sender, String::new()));
            let mut streams = Streams { interrupt: of_run, ..Streams::new(&mut out, &mut err) };
            let args = [&["clockjack", "run", &graph], args].concat();
            let code = run(&Registry::standard(), args, &mut streams);
            (code, String::from_utf8(out).unwrap())
        };
        let ended = thread::Builder::new().name("run".into()).spawn(work).unwrap();
        Self { interrupt, lines, ended }
    }

    /// The URL that the run prints.
    fn url(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        let url = line.strip_prefix("console: ").and_then(|line| line.split_whitespace().next());
        url.unwrap_or_else(|| panic!("no URL in {line}")).to_owned()
    }

    /// Stops the run; returns its exit code and its summary.
    fn end(self) -> (u8, String) {
        self.interrupt.request();
        self.ended.join().unwrap()
    }
}

/// The exit code and the output of another command.
fn clockjack(args: &[&str]) -> (u8, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn a_run_shows_its_graph_in_real_time_until_it_ends() {
    let running = Run::start(&["--console"]);
    let url = running.url();
    assert!(url.starts_with("http://127.0.0.1:") && url.contains("/#t="), "{url}");
    let client = Client::connect(&resolve(&url).unwrap()).unwrap();
    assert_eq!(client.hello().control, ["INSPECT"]);
    let view: GraphView = client.get(&GraphQuery { name: "cell".into() }).unwrap();
    assert_eq!(view.graph.name, "cell");
    // In virtual time its thousand epochs are over long before a client comes.
    assert_eq!(clockjack(&["get", &url, "controller.kp"]), (0, "default\n".into()));
    assert_eq!(clockjack(&["set", &url, "controller.kp=2"]).0, exit_code::NOT_ALLOWED);
    let (code, summary) = running.end();
    assert_eq!(code, exit_code::INTERRUPTED);
    assert!(summary.contains("interrupted"), "{summary}");
    assert!(!summary.contains("of virtual time"), "{summary}");
    assert_eq!(clockjack(&["get", &url, "controller.kp"]).0, exit_code::NOT_CONNECTED);
}

#[test]
fn a_run_lets_clients_change_settings_if_it_is_told_to() {
    let running = Run::start(&["--console", "--control", "graphs"]);
    let url = running.url();
    let set = clockjack(&["set", &url, "controller.kp=2"]);
    assert_eq!(set, (0, "controller.kp: default -> 2\n".into()));
    assert_eq!(clockjack(&["get", &url, "controller.kp"]), (0, "2\n".into()));
    assert_eq!(running.end().0, exit_code::INTERRUPTED);
}

#[test]
fn a_bounded_run_ends_by_itself() {
    let running = Run::start(&["--console", "--for", "200ms"]);
    running.url();
    let (code, summary) = running.ended.join().unwrap();
    assert_eq!(code, exit_code::OK, "{summary}");
}
