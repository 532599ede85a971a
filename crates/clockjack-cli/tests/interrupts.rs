//! A signal, or an event of a console, lets a run drain and write its files; the second one ends
//! the wait. In processes of their own, since a signal is for a whole program.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")]
#[path = "interrupts/linux.rs"]
mod platform;
#[cfg(windows)]
#[path = "interrupts/windows.rs"]
mod platform;

use core::time::Duration;
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::{Component, Execute, Failure, GraphContext, Output, Registry};
use platform::{FIRST, Process, SECOND, SIGINT, SIGTERM};
use serde_json::Value;

/// The test that the child runs.
const TEST: &str = "what_the_child_does";
/// The role of a child that becomes the command itself; its arguments follow, one per line.
const COMMAND: &str = "command\n";

/// Says what happens to it; hangs in its third call, if it is to.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "talker", title = "Talker", role = "input")]
struct Talker {
    #[output]
    out: Output<f64>,
    #[config(default = false)]
    hangs: bool,
    n: u32,
}

impl Execute for Talker {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1;
        cx.publish(self.out, f64::from(self.n))?;
        if self.n == 3 {
            say("third call");
        }
        if self.hangs && self.n == 3 {
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        say("deactivated");
        Ok(())
    }
}

/// Writes a line for the parent, at once.
fn say(line: &str) {
    writeln!(io::stdout(), "{line}").expect("the parent reads it");
}

fn graph(hangs: bool, lane: &str) -> String {
    format!(
        "schema_version: 1\n\
         graph: {{name: talk, kind: internal_test}}\n\
         lanes: {{main: {{type: fixed_rate, period_ms: 1{lane}}}}}\n\
         components:\n\
         - id: talker\n  \
           type: talker\n  \
           execution: {{lane: main}}\n  \
           boundary: {{role: input}}\n  \
           config: {{hangs: {hangs}}}\n\
         edges: []\n"
    )
}

#[test]
fn what_the_child_does() {
    let Some(role) = platform::role() else { return };
    if let Some(args) = role.strip_prefix(COMMAND) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack"));
        platform::become_command(command.args(args.split('\n')));
    }
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let registry = Registry::standard().register::<Talker>();
    let code = run(&registry, role.split('\n'), &mut Streams::new(&mut out, &mut err));
    std::process::exit(code.into());
}

/// A path for a new file, in a separate directory.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interrupts-{name}"));
    // Removes the directory that an earlier test run left.
    let _removed = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a directory can be made");
    folder.join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// A run that is going to be interrupted, and its files.
struct Run {
    process: Process,
    graph: PathBuf,
}

impl Run {
    /// The files that a run writes: log, trace, metrics.
    const FILES: [&str; 3] = ["log", "trace.json", "metrics.prom"];

    /// Starts a run; `lane` are further settings of the lane.
    fn start(name: &str, hangs: bool, lane: &str) -> Self {
        Self::start_by(name, hangs, lane, &[], Process::start)
    }

    /// As `start`; `more` are further arguments.
    fn start_by(
        name: &str,
        hangs: bool,
        lane: &str,
        more: &[&str],
        start: fn(&str) -> Process,
    ) -> Self {
        let path = scratch(&format!("{name}.yaml"));
        fs::write(&path, graph(hangs, lane)).expect("it can be written");
        let [log, trace, metrics] = Self::FILES.map(|file| path.with_extension(file));
        let mut role = vec!["clockjack", "run", text(&path), "--clock", "wall"];
        role.extend(["--commit-log", text(&log), "--trace", text(&trace)]);
        role.extend(["--metrics", text(&metrics)]);
        role.extend(more);
        let mut process = start(&role.join("\n"));
        read_until(&mut process, "third call");
        Self { process, graph: path }
    }

    /// Reads the note that a signal starts to drain.
    fn read_note(&mut self, start: &str) {
        let line = self.process.read_error();
        assert!(line.starts_with(&format!("clockjack: {start}")), "{line}");
        assert!(line.contains(": waiting up to "), "{line}");
        assert!(line.contains("a second signal writes the files without waiting"), "{line}");
    }

    /// Waits for a line of the summary, and for the end; checks the exit code and the files.
    fn finish(mut self, lines: &[&str], code: u8) {
        lines.iter().for_each(|line| read_until(&mut self.process, line));
        assert_eq!(self.process.wait(), Some(code.into()));
        let [log, trace, metrics] = Self::FILES
            .map(|file| fs::read(self.graph.with_extension(file)).expect("the file exists"));
        assert!(n_epochs(&log) >= 2, "{log:?}");
        let trace: Value = serde_json::from_slice(&trace).expect("the trace is whole");
        let metrics = String::from_utf8(metrics).expect("metrics are text");
        let n_events = trace["traceEvents"].as_array().map_or(0, Vec::len);
        assert!(n_events > 0, "{trace}");
        assert!(metrics.contains("executor_polls_total") && metrics.ends_with('\n'), "{metrics}");
    }
}

/// Reads standard output until a line has these words.
fn read_until(process: &mut Process, words: &str) {
    while !process.read_line().contains(words) {}
}

/// The number of epochs in a commit log of the graph above, which has no commits. Fails if the log
/// does not end with a whole record.
fn n_epochs(log: &[u8]) -> usize {
    let mut rest = log.strip_prefix(b"CJCL\x01\x04talk").expect("it begins with its name");
    let mut n = 0;
    while let Some((b'E', numbers)) = rest.split_first() {
        rest = numbers;
        // The number and the time of the epoch, in LEB128.
        for _ in 0..2 {
            let end = rest.iter().position(|byte| byte & 0x80 == 0).expect("a whole number");
            rest = &rest[end + 1..];
        }
        n += 1;
    }
    assert!(rest.is_empty() || rest[0] == b'X', "{log:?}");
    n
}

const DRAINED: &str = "interrupted: the work in progress was completed";
const ABANDONED: &str = "talk: abandoned: a callback did not return";

#[test]
fn a_signal_lets_a_run_drain_and_write_its_files() {
    let signals =
        [(SIGINT, "Ctrl-C", exit_code::INTERRUPTED), (SIGTERM, "SIGTERM", exit_code::TERMINATED)];
    for (signal, name, code) in signals {
        let mut run = Run::start(&format!("drain-{name}"), false, "");
        run.process.send(&[signal]);
        run.read_note(name);
        run.finish(&["deactivated", DRAINED], code);
    }
}

#[test]
fn a_second_signal_does_not_wait_and_leaves_whole_files() {
    let mut run = Run::start("hangs", true, "");
    let (first, name, code) = FIRST;
    run.process.send(&[first]);
    run.read_note(name);
    run.process.send(&[SECOND]);
    run.finish(&[ABANDONED], code);
}

#[test]
fn a_run_that_hangs_ends_with_whole_files_after_the_drain_timeout() {
    let more = ["--drain-timeout", "300ms"];
    let mut run = Run::start_by("late", true, "", &more, Process::start);
    let start = Instant::now();
    run.process.send(&[SIGTERM]);
    run.read_note("SIGTERM: waiting up to 300ms for");
    run.finish(&[ABANDONED], exit_code::TERMINATED);
    let took = start.elapsed();
    // The default is ten seconds.
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(9), "{took:?}");
}

#[test]
fn an_observed_run_that_hangs_ends_with_a_whole_recording_after_the_drain_timeout() {
    let path = scratch("observed.yaml");
    fs::write(&path, graph(true, "")).expect("it can be written");
    let record = path.with_file_name("recording");
    let role = ["clockjack", "observe", text(&path), "--clock", "wall"];
    let role = [&role[..], &["--record", text(&record), "--format", "human"]].concat();
    let role = [&role[..], &["--drain-timeout", "100ms"]].concat();
    let mut process = Process::start(&role.join("\n"));
    read_until(&mut process, "third call");
    process.send(&[SIGTERM]);
    let note = process.read_error();
    assert!(note.starts_with("clockjack: SIGTERM: waiting up to 100ms for"), "{note}");
    assert_eq!(process.wait(), Some(exit_code::TERMINATED.into()));
    for name in ["manifest.json", "summary.json", "metrics.json"] {
        let text = fs::read(record.join(name)).expect("it was written");
        let json: Value = serde_json::from_slice(&text).expect("it is whole");
        assert!(name != "summary.json" || json["abandoned"] == true, "{json}");
    }
}

#[test]
fn two_signals_at_once_let_a_run_drain_that_can() {
    // As from a terminal and from a supervisor that passes it on.
    let run = Run::start("pair", false, "");
    let (first, _, code) = FIRST;
    run.process.send(&[first, SECOND]);
    run.finish(&["deactivated", DRAINED], code);
}

#[test]
fn a_callback_that_hangs_is_told_while_it_hangs_and_in_the_exit() {
    let mut run = Run::start("overdue", true, ", max_callback_ms: 20");
    let line = run.process.read_error();
    let is_told = line.starts_with("clockjack: component `talker` has not returned from its call");
    assert!(is_told && line.ends_with("lane `main` allows 20 ms\n"), "{line}");
    run.process.send(&[FIRST.0, SECOND]);
    let failed = "talk: the run failed: component `talker` has not returned from its call for";
    run.finish(&[failed, ABANDONED], exit_code::RUN_FAILED);
}

#[test]
fn ctrl_c_lets_a_run_drain_and_is_told_by_130() {
    let folder = scratch("recorded");
    let cell = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs/cell.yaml");
    // Without a bound: the run stops because the signal requests that.
    let args = ["observe", text(&cell), "--clock", "wall", "--record", text(&folder)];
    let mut process = Process::start(&format!("{COMMAND}{}", args.join("\n")));
    read_until(&mut process, "symbol_table");
    process.send(&[SIGINT]);
    read_until(&mut process, "final_summary");
    assert_eq!(process.wait(), Some(130));
    assert!(folder.join("manifest.json").is_file(), "the recording is whole");
}
