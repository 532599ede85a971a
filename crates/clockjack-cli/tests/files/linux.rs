//! Tests of devices, links, permissions and signals on Linux.

#![cfg(target_os = "linux")]

use core::time::Duration;
use std::{
    fs::{self, Permissions},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    time::Instant,
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::{Component, Execute, Failure, GraphContext, Output, Registry};
use serde_json::Value;

use super::{clockjack, file, names_beside, piped, scratch, text};

#[test]
fn a_pipe_is_read_once() {
    let (cell, bad) = (file("cell.yaml"), file("bad.yaml"));
    let ran = piped(&["check", "/dev/stdin"], &fs::read(&bad).expect("the file exists"));
    let told = String::from_utf8_lossy(&ran.stdout).replace("/dev/stdin", &bad);
    assert_eq!(told, clockjack(&["check", &bad]).1);
    let ran = piped(&["bench", "/dev/stdin"], &fs::read(cell).expect("the file exists"));
    assert!(ran.status.success(), "{ran:?}");
}

#[test]
fn the_name_of_a_valid_file_sends_no_commands_to_the_terminal() {
    let graph = scratch("red\x1b[31m.yaml");
    fs::copy(file("cell.yaml"), &graph).expect("the file can be copied");
    let (code, out, _) = clockjack(&["check", text(&graph)]);
    assert_eq!(code, exit_code::OK);
    assert!(out.ends_with("red\\u{1b}[31m.yaml: ok\n"), "{out}");
}

#[test]
fn an_endless_assertion_file_is_refused() {
    let (code, out, err) = clockjack(&["observe", &file("cell.yaml"), "--assert", "/dev/zero"]);
    assert_eq!((code, out.as_str()), (exit_code::USAGE, ""));
    assert!(err.contains("longer than 1048576 bytes"), "{err}");
}

#[test]
fn links_and_permissions_stay_what_they_are() {
    let path = scratch("a.svg");
    let link = path.with_file_name("link");
    fs::write(&path, "old").expect("the file can be written");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("it is ours");
    symlink("a.svg", &link).expect("a link can be made");
    let args = ["render", &file("cell.yaml"), "--format", "svg", "-o", text(&link)];
    assert_eq!(clockjack(&args).0, exit_code::OK);
    assert!(fs::symlink_metadata(&link).expect("the file exists").is_symlink());
    assert!(fs::read_to_string(&path).expect("the file exists").starts_with("<svg"));
    assert_eq!(fs::metadata(&path).expect("the file exists").permissions().mode() & 0o777, 0o640);
}

#[test]
fn no_file_is_written_over_one_that_is_read_by_another_name() {
    let graph = scratch("linked.yaml");
    fs::copy(file("cell.yaml"), &graph).expect("the file can be copied");
    let before = fs::read(&graph).expect("the file exists");
    let (hard, soft) = (graph.with_file_name("hard"), graph.with_file_name("soft"));
    fs::hard_link(&graph, &hard).expect("a link can be made");
    symlink("linked.yaml", &soft).expect("a link can be made");
    for link in [&hard, &soft] {
        for option in ["--commit-log", "--trace", "--metrics"] {
            let (code, out, err) = clockjack(&["run", text(&graph), option, text(link)]);
            assert_eq!((code, out.as_str()), (exit_code::USAGE, ""), "{option} {link:?}");
            assert!(err.contains("would be overwritten"), "{err}");
        }
    }
    let twice = ["run", &file("cell.yaml"), "--trace", text(&graph), "--metrics", text(&hard)];
    assert_eq!(clockjack(&twice).0, exit_code::USAGE);
    assert_eq!(fs::read(&graph).expect("the file exists"), before);
}

#[test]
fn a_device_is_written_straight_and_may_be_named_twice() {
    let null = "/dev/null";
    let args = ["run", &file("cell.yaml"), "--steps", "2", "--trace", null, "--metrics", null];
    assert_eq!(clockjack(&args).0, exit_code::OK);
    assert!(!fs::metadata(null).expect("the file exists").is_file(), "it is still a device");
}

#[test]
fn a_run_is_told_also_if_a_file_of_it_could_not_be_written() {
    let metrics = scratch("m.prom");
    let args = [
        "run",
        &file("cell.yaml"),
        "--steps",
        "5",
        "--trace",
        "/dev/full",
        "--metrics",
        text(&metrics),
    ];
    let (code, out, err) = clockjack(&args);
    assert_eq!(code, exit_code::FAILED);
    assert!(out.starts_with("cell: 5 epochs, 25 calls, "), "{out}");
    assert!(err.starts_with("clockjack: cannot write '/dev/full': "), "{err}");
    assert_eq!(names_beside(&metrics), ["m.prom"], "what could be written was");
}

#[test]
fn the_values_of_a_run_are_all_told_although_its_log_cannot_be_written() {
    let cell = file("cell.yaml");
    // Component, calls, calls per second and last value; the rest is measured.
    let table = |log: &[&str]| {
        let (code, out, err) = clockjack(&[&["run", &cell, "--steps", "5000"], log].concat());
        let rows = out.lines().skip(4).take(5);
        let rows: Vec<String> =
            rows.map(|row| row.split_whitespace().take(4).collect::<Vec<_>>().join(" ")).collect();
        assert!(rows[0].starts_with("target 5000 "), "{out}");
        (code, rows, err)
    };
    let (_, whole, _) = table(&[]);
    let (code, rows, err) = table(&["--commit-log", "/dev/full"]);
    assert_eq!(code, exit_code::FAILED);
    assert!(err.starts_with("clockjack: cannot write '/dev/full': "), "{err}");
    assert_eq!(rows, whole);
}

/// The role of the child process in `what_the_child_does`.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";

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
    let Ok(role) = std::env::var(ROLE) else { return };
    let args = role.split('\n');
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let registry = Registry::standard().register::<Talker>();
    let code = run(&registry, args, &mut Streams::new(&mut out, &mut err));
    std::process::exit(code.into());
}

/// A run that is going to be interrupted, and its files.
struct Run {
    child: Child,
    out: BufReader<ChildStdout>,
    graph: PathBuf,
}

impl Run {
    /// The files that a run writes: log, trace, metrics.
    const FILES: [&str; 3] = ["log", "trace.json", "metrics.prom"];

    fn start(name: &str, hangs: bool, signals: &str) -> Self {
        Self::start_in(name, hangs, signals, "", &[])
    }

    /// As `start`; `lane` are further settings of the lane, and `more` further arguments.
    fn start_in(name: &str, hangs: bool, signals: &str, lane: &str, more: &[&str]) -> Self {
        let path = scratch(&format!("{name}.yaml"));
        fs::write(&path, graph(hangs, lane)).expect("it can be written");
        let [log, trace, metrics] = Self::FILES.map(|file| path.with_extension(file));
        let mut role = vec!["clockjack", "run", text(&path), "--clock", "wall"];
        role.extend(["--commit-log", text(&log), "--trace", text(&trace)]);
        role.extend(["--metrics", text(&metrics)]);
        role.extend(more);
        Self::of(&role, signals, path.clone())
    }

    /// A run with these arguments, in its third call.
    fn of(role: &[&str], signals: &str, path: PathBuf) -> Self {
        let exe = std::env::current_exe().expect("there is one");
        let mut command = Command::new("env");
        command.arg(signals).arg(exe);
        command.args(["--exact", "linux::what_the_child_does", "--nocapture"]);
        command.env(ROLE, role.join("\n")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("it has one"));
        let mut run = Self { child, out, graph: path };
        run.read_until("third call");
        run
    }

    fn read_until(&mut self, expected: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(expected) {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).expect("text"), 0, "no line {expected}");
        }
    }

    fn send(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("there is such a command").success());
    }

    /// Reads the note that a signal starts to drain.
    fn read_note(&mut self, start: &str) {
        let mut err = BufReader::new(self.child.stderr.as_mut().expect("it has one"));
        let mut line = String::new();
        err.read_line(&mut line).expect("text");
        assert!(line.starts_with(&format!("clockjack: {start}")), "{line}");
        assert!(line.contains(": waiting up to "), "{line}");
        assert!(line.contains("a second signal writes the files without waiting"), "{line}");
    }

    /// Waits for the end, but not for ever.
    fn exit_code(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status.code();
            }
            if start.elapsed() > Duration::from_secs(60) {
                self.child.kill().expect("it can be killed");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end, checks the exit code and the files, and returns the rest of the output.
    fn finish(mut self, code: u8) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(code.into()), "{rest}");
        let [log, trace, metrics] = Self::FILES
            .map(|file| fs::read(self.graph.with_extension(file)).expect("the file exists"));
        assert!(n_epochs(&log) >= 2, "{log:?}");
        let trace: Value = serde_json::from_slice(&trace).expect("the trace is whole");
        let metrics = String::from_utf8(metrics).expect("metrics are text");
        let n_events = trace["traceEvents"].as_array().map_or(0, Vec::len);
        assert!(n_events > 0, "{trace}");
        assert!(metrics.contains("executor_polls_total") && metrics.ends_with('\n'), "{metrics}");
        rest
    }
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

const DEFAULT: &str = "--default-signal=INT,TERM";

#[test]
fn a_signal_lets_a_run_drain_and_write_its_files() {
    let signals =
        [("-INT", "Ctrl-C", exit_code::INTERRUPTED), ("-TERM", "SIGTERM", exit_code::TERMINATED)];
    for (signal, name, code) in signals {
        let mut run = Run::start(&format!("drain{signal}"), false, DEFAULT);
        run.send(signal);
        run.read_note(name);
        run.read_until("deactivated");
        let summary = run.finish(code);
        assert!(summary.contains("interrupted: the work in progress was completed"), "{summary}");
    }
}

#[test]
fn a_second_signal_does_not_wait_and_leaves_whole_files() {
    let mut run = Run::start("hangs", true, DEFAULT);
    run.send("-TERM");
    run.read_note("SIGTERM");
    run.send("-INT");
    let summary = run.finish(exit_code::TERMINATED);
    assert!(summary.contains("talk: abandoned: a callback did not return"), "{summary}");
}

#[test]
fn a_run_that_hangs_ends_with_whole_files_after_the_drain_timeout() {
    let mut run = Run::start_in("late", true, DEFAULT, "", &["--drain-timeout", "300ms"]);
    let start = Instant::now();
    run.send("-TERM");
    run.read_note("SIGTERM: waiting up to 300ms for");
    let summary = run.finish(exit_code::TERMINATED);
    assert!(summary.contains("talk: abandoned: a callback did not return"), "{summary}");
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
    let mut run = Run::of(&role, DEFAULT, path.clone());
    run.send("-TERM");
    run.read_note("SIGTERM: waiting up to 100ms for");
    assert_eq!(run.exit_code(), Some(exit_code::TERMINATED.into()));
    for name in ["manifest.json", "summary.json", "metrics.json"] {
        let text = fs::read(record.join(name)).expect("it was written");
        let json: Value = serde_json::from_slice(&text).expect("it is whole");
        assert!(name != "summary.json" || json["abandoned"] == true, "{json}");
    }
}

#[test]
fn a_third_signal_ends_a_run_that_cannot_write_its_files() {
    let path = scratch("third.yaml");
    fs::write(&path, graph(false, "")).expect("it can be written");
    // Nobody reads from it, so that its writer waits for ever.
    let pipe = path.with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is such a command").success());
    let role = ["clockjack", "run", text(&path), "--clock", "wall", "--metrics", text(&pipe)];
    let mut run = Run::of(&role, DEFAULT, path.clone());
    run.send("-TERM");
    run.read_note("SIGTERM");
    run.read_until("deactivated");
    run.send("-INT");
    run.send("-TERM");
    let code = run.exit_code();
    // Either of them may be the third one.
    let signals = [exit_code::INTERRUPTED, exit_code::TERMINATED];
    assert!(signals.map(|code| Some(code.into())).contains(&code), "{code:?}");
}

#[test]
fn two_signals_at_once_let_a_run_drain_that_can() {
    // As from a terminal and from a supervisor that passes it on.
    let mut run = Run::start("pair", false, DEFAULT);
    let pid = run.child.id();
    let both = format!("kill -TERM {pid}; kill -INT {pid}");
    assert!(Command::new("sh").args(["-c", &both]).status().expect("a shell").success());
    run.read_until("deactivated");
    let summary = run.finish(exit_code::TERMINATED);
    assert!(summary.contains("interrupted: the work in progress was completed"), "{summary}");
}

#[test]
fn a_callback_that_hangs_is_told_while_it_hangs_and_in_the_exit() {
    let mut run = Run::start_in("overdue", true, DEFAULT, ", max_callback_ms: 20", &[]);
    let mut err = BufReader::new(run.child.stderr.as_mut().expect("it has one"));
    let mut line = String::new();
    err.read_line(&mut line).expect("text");
    let is_told = line.starts_with("clockjack: component `talker` has not returned from its call");
    assert!(is_told && line.ends_with("lane `main` allows 20 ms\n"), "{line}");
    run.send("-TERM");
    run.send("-INT");
    let summary = run.finish(exit_code::RUN_FAILED);
    let failed = "talk: the run failed: component `talker` has not returned from its call for";
    assert!(summary.contains(failed), "{summary}");
    assert!(summary.contains("talk: abandoned: a callback did not return"), "{summary}");
}

#[test]
fn an_ignored_interrupt_is_a_warning_and_the_other_signal_works() {
    let mut run = Run::start("ignored", false, "--ignore-signal=INT");
    let mut err = BufReader::new(run.child.stderr.as_mut().expect("it has one"));
    let mut line = String::new();
    err.read_line(&mut line).expect("text");
    assert!(line.starts_with("clockjack: SIGINT was ignored when the program started"), "{line}");
    run.send("-INT");
    run.send("-TERM");
    run.read_until("deactivated");
    run.finish(exit_code::TERMINATED);
}

#[test]
fn ctrl_c_lets_a_run_drain_and_is_told_by_130() {
    let folder = scratch("interrupted");
    // A background process of a shell ignores Ctrl-C, and so do its children.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_clockjack")]);
    // Without a bound: the run stops because the signal requests that.
    command.args(["observe", &file("cell.yaml"), "--clock", "wall", "--record", text(&folder)]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("it has one"));
    let mut line = String::new();
    out.read_line(&mut line).expect("text");
    assert!(line.contains("symbol_table"), "{line}");
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("there is such a command").success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(rest.contains("final_summary"), "{rest}");
    assert!(folder.join("manifest.json").is_file(), "the recording is whole");
}
