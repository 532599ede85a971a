//! Tests of input and output: pipes and standard input, files that are written completely or not
//! at all, and exit codes that do not depend on the reader of the output.

#[path = "files/linux.rs"]
mod linux;

use core::time::Duration;
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Instant,
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::Registry;
use serde_json::Value;

/// A stream with a closed pipe or a full disk.
struct Broken(io::ErrorKind);

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

/// The exit code, standard output and standard error.
fn clockjack(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    (code, text(out), text(err))
}

/// The exit code if the reader has closed the pipe.
fn unread(args: &[&str]) -> u8 {
    let (mut out, mut err) = (Broken(io::ErrorKind::BrokenPipe), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    assert!(err.is_empty() || code != 0, "{}", String::from_utf8_lossy(&err));
    code
}

/// Runs the command as a process, with this standard input.
fn piped(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it has one");
    // A command that rejects its arguments does not read standard input.
    let _written = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs").join(name);
    path.to_str().expect("a path of text").to_owned()
}

/// A path for a new file, in a separate directory.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
    // Removes the directory that an earlier test run left.
    let _removed = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a directory can be made");
    folder.join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

fn names_beside(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().expect("it has one")).expect("the file exists");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_verdict_does_not_depend_on_who_reads_it() {
    let (cell, bad) = (file("cell.yaml"), file("bad.yaml"));
    let must = scratch("must.yaml");
    let rule = "{id: a, type: eventually, event: loop_error}";
    let rules = format!("assertion_schema_version: \"1\"\nassertions:\n  - {rule}\n");
    fs::write(&must, rules).expect("the file can be written");
    let cases: [(&[&str], u8); 7] = [
        (&["check", &bad], exit_code::INVALID_GRAPH),
        (&["check", &bad, "--format", "json"], exit_code::INVALID_GRAPH),
        (&["run", &bad, "--format", "json"], exit_code::INVALID_GRAPH),
        (&["lint", &cell, "--deny"], exit_code::ASSERTION_FAILED),
        (
            &["diff-plan", &cell, &file("failing.yaml"), "--expect-same"],
            exit_code::ASSERTION_FAILED,
        ),
        (&["observe", &cell, "--assert", text(&must)], exit_code::ASSERTION_FAILED),
        (
            &["observe", &cell, "--assert", text(&must), "--format", "human"],
            exit_code::ASSERTION_FAILED,
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(clockjack(args).0, expected, "{args:?}, read");
        assert_eq!(unread(args), expected, "{args:?}, not read");
    }
}

#[test]
fn a_recording_is_whole_also_if_the_reader_went_away() {
    let folder = scratch("recording");
    assert_eq!(unread(&["observe", &file("cell.yaml"), "--record", text(&folder)]), exit_code::OK);
    let events = fs::read_to_string(folder.join("observe.ndjson")).expect("it was written");
    assert!(events.contains("final_summary"), "{events}");
    let manifest = fs::read_to_string(folder.join("manifest.json")).expect("it was written");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["n_trace_dropped"], 0, "{manifest}");
}

#[test]
fn a_graph_comes_from_standard_input_for_every_command() {
    let cell = fs::read(file("cell.yaml")).expect("the file exists");
    for command in ["check", "plan", "render", "run", "trace", "observe", "bench"] {
        let ran = piped(&[command, "-"], &cell);
        assert_eq!(ran.status.code(), Some(0), "{command}: {ran:?}");
    }
    let other = file("cell.yaml");
    assert!(piped(&["diff-plan", "-", &other, "--expect-same"], &cell).status.success());
    let twice = piped(&["diff-plan", "-", "-"], &cell);
    assert_eq!(twice.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&twice.stderr).contains("`-` is given twice"), "{twice:?}");
}

#[test]
fn faults_of_a_piped_graph_are_those_of_the_file() {
    let bad = fs::read(file("bad.yaml")).expect("the file exists");
    let ran = piped(&["check", "-"], &bad);
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let told = String::from_utf8_lossy(&ran.stdout).replace("<stdin>", &file("bad.yaml"));
    assert_eq!(told, clockjack(&["check", &file("bad.yaml")]).1);
}

#[test]
fn what_cannot_be_written_is_told_before_the_run() {
    let cell = file("cell.yaml");
    // Without a bound: a run that started would not stop.
    for option in ["--trace", "--metrics", "--commit-log"] {
        let args = ["run", &cell, "--clock", "wall", option, "no/such/folder/file"];
        let (code, out, err) = clockjack(&args);
        assert_eq!((code, out.as_str()), (exit_code::FAILED, ""), "{option}");
        assert!(err.starts_with("clockjack: cannot write 'no/such/folder/file': "), "{err}");
    }
    let args = ["trace", &cell, "--clock", "wall", "-o", "no/such/folder/file"];
    assert_eq!(clockjack(&args).0, exit_code::FAILED);
}

#[test]
fn no_file_is_written_over_one_that_is_read_or_over_another() {
    let graph = scratch("graph.yaml");
    fs::copy(file("cell.yaml"), &graph).expect("the file can be copied");
    let before = fs::read(&graph).expect("the file exists");
    let (other, same) = (graph.with_file_name("other"), graph.with_file_name("."));
    let same = same.join("graph.yaml");
    let (graph, other, same) = (text(&graph), text(&other), text(&same));
    let cases: [&[&str]; 6] = [
        &["render", graph, "-o", graph],
        &["trace", graph, "-o", same],
        &["run", graph, "--trace", same],
        &["run", graph, "--commit-log", graph],
        &["run", graph, "--metrics", graph],
        &["run", graph, "--metrics", other, "--trace", other],
    ];
    for args in cases {
        let (code, out, err) = clockjack(args);
        assert_eq!((code, out.as_str()), (exit_code::USAGE, ""), "{args:?}");
        assert!(err.contains("would be overwritten"), "{err}");
    }
    assert_eq!(fs::read(graph).expect("the file exists"), before);
    assert_eq!(names_beside(Path::new(graph)), ["graph.yaml"], "nothing was left");
}

#[test]
fn a_file_name_sends_no_commands_to_the_terminal() {
    let (code, _, err) = clockjack(&["check", "no\x1b[31m\nsuch"]);
    assert_eq!(code, exit_code::USAGE);
    assert!(err.starts_with(r"clockjack: cannot read the graph 'no\u{1b}[31m\nsuch': "), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// Two lanes with clocks of their own, whose names are the endings of files.
const OWN_CLOCKS: &str = "\
schema_version: 1
graph: {name: clocks, kind: internal_test}
lanes:
  yaml: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}
  trace: {type: fixed_rate, period_ms: 1, wall_clock_enabled: true}
components:
  - {id: a, type: counter, execution: {lane: yaml}}
  - {id: b, type: counter, execution: {lane: trace}}
edges: []
";

#[test]
fn the_log_of_a_lane_is_not_written_over_the_graph_or_another_output() {
    let graph = scratch("g.yaml");
    fs::write(&graph, OWN_CLOCKS).expect("the file can be written");
    let (log, other) = (graph.with_extension(""), graph.with_file_name("h"));
    let trace = other.with_extension("trace");
    let run = ["run", text(&graph), "--clock", "wall", "--for", "5ms", "--commit-log"];
    let cases: [&[&str]; 3] = [
        &[text(&log)],
        &[text(&other), "--trace", text(&trace)],
        &[text(&other), "--metrics", text(&trace)],
    ];
    for args in cases {
        let (code, out, err) = clockjack(&[&run, args].concat());
        assert_eq!((code, out.as_str()), (exit_code::USAGE, ""), "{args:?}");
        assert!(err.contains("would be overwritten"), "{err}");
    }
    assert_eq!(names_beside(&graph), ["g.yaml"], "nothing was left");
    assert_eq!(fs::read_to_string(&graph).expect("the file exists"), OWN_CLOCKS);
    let (code, _, err) = clockjack(&[&run, &[text(&other)][..]].concat());
    assert_eq!(code, exit_code::OK, "{err}");
    let mut names = names_beside(&graph);
    names.sort_unstable();
    assert_eq!(names, ["g.yaml", "h", "h.trace", "h.yaml"]);
}

#[test]
fn a_file_that_another_command_is_writing_is_left_alone() {
    let cell = file("cell.yaml");
    let log = scratch("log");
    let record = log.with_file_name("recording");
    fs::create_dir(&record).expect("a directory can be made");
    let cases: [(&Path, &[&str]); 2] = [
        (&log, &["run", &cell, "--steps", "2", "--commit-log", text(&log)]),
        (
            &record.join("observe.ndjson"),
            &["observe", &cell, "--steps", "2", "--record", text(&record)],
        ),
    ];
    for (path, args) in cases {
        // As the other command does while it runs.
        let held = held(path, "theirs");
        let (code, out, err) = clockjack(args);
        assert_eq!((code, out.as_str()), (exit_code::FAILED, ""), "{args:?}");
        assert!(err.contains("another command is writing this file"), "{err}");
        assert_eq!(fs::read_to_string(path).expect("the file exists"), "theirs");
        drop(held);
        // A process that another test is just starting has the lock until it has become that
        // program.
        let is_held = |err: &str| err.contains("another command is writing this file");
        let start = Instant::now();
        let (code, err) = loop {
            let (code, _, err) = clockjack(args);
            if !is_held(&err) || start.elapsed() > Duration::from_secs(60) {
                break (code, err);
            }
        };
        assert_eq!((code, err.as_str()), (exit_code::OK, ""), "{args:?}");
        let written = fs::read(path).expect("the file exists");
        assert!(!written.is_empty() && !written.starts_with(b"theirs"), "{args:?}");
    }
}

/// Sets a lock on a file with these contents, as a command that writes it has.
fn held(path: &Path, contents: &str) -> fs::File {
    fs::write(path, contents).expect("the file can be written");
    let held = fs::OpenOptions::new().write(true).open(path).expect("the file exists");
    held.try_lock().expect("nobody else has it");
    held
}

#[test]
fn a_log_is_left_alone_if_another_command_writes_the_log_of_a_lane() {
    let graph = scratch("lanes.yaml");
    fs::write(&graph, OWN_CLOCKS).expect("the file can be written");
    let log = graph.with_file_name("log");
    fs::write(&log, "of the last run").expect("the file can be written");
    let lane = graph.with_file_name("log.trace");
    let held = held(&lane, "theirs");
    let args = ["run", text(&graph), "--clock", "wall", "--for", "5ms", "--commit-log", text(&log)];
    let (code, out, err) = clockjack(&args);
    assert_eq!((code, out.as_str()), (exit_code::FAILED, ""));
    assert!(err.contains("log.trace': another command is writing this file"), "{err}");
    assert_eq!(fs::read_to_string(&log).expect("the file exists"), "of the last run");
    assert_eq!(fs::read_to_string(&lane).expect("the file exists"), "theirs");
    drop(held);
}

#[test]
fn a_run_that_does_not_start_leaves_the_log_of_the_last_one() {
    let graph = scratch("refused.yaml");
    let cell = fs::read_to_string(file("cell.yaml")).expect("the file exists");
    // The least command is above the greatest one: the component cannot be activated.
    let refused = cell.replace("type: controller\n", "type: controller\n    config: {min: 2.0}\n");
    fs::write(&graph, &refused).expect("the file can be written");
    let log = graph.with_file_name("log");
    let run = |graph: &str| clockjack(&["run", graph, "--steps", "3", "--commit-log", text(&log)]);
    assert_eq!(run(&file("cell.yaml")).0, exit_code::OK);
    let whole = fs::read(&log).expect("it was written");
    let (code, out, _) = run(text(&graph));
    assert_eq!(code, exit_code::RUN_FAILED, "{out}");
    assert_eq!(fs::read(&log).expect("the file exists"), whole);
    // A longer log of before leaves nothing behind a shorter one.
    fs::write(&log, [&whole[..], &whole].concat()).expect("the file can be written");
    assert_eq!(run(&file("cell.yaml")).0, exit_code::OK);
    assert_eq!(fs::read(&log).expect("it was written"), whole);
}

#[test]
fn room_for_records_that_no_machine_has_is_refused() {
    let cell = file("cell.yaml");
    let cases: [[&str; 3]; 3] = [
        ["run", &cell, "--trace-capacity"],
        ["trace", &cell, "--capacity"],
        ["observe", &cell, "--event-buffer-capacity"],
    ];
    for [command, cell, option] in cases {
        for many in ["4294967295", "16777217"] {
            let (code, out, err) = clockjack(&[command, cell, option, many]);
            assert_eq!((code, out.as_str()), (exit_code::USAGE, ""), "{command} {many}");
            assert!(err.contains("..=16777216"), "{err}");
        }
    }
}

#[test]
fn the_line_of_a_benchmark_is_there_until_its_end() {
    let args = ["bench", &file("cell.yaml"), "--runs", "3", "--progress", "counter"];
    let (code, _, err) = clockjack(&args);
    assert_eq!(code, exit_code::OK);
    let drawn: Vec<&str> = err.split('\r').skip(1).map(str::trim).collect();
    assert_eq!(drawn[0], "running    0/3");
    // The number of further events depends on the duration of the run.
    let behind = drawn.iter().position(|line| line.is_empty()).expect("it is wiped");
    assert_eq!(drawn[behind..], ["", ""], "and only once: {err:?}");
}
