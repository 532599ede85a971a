//! Tests of the command as its user sees it: output, exit codes and repeatability.

#[path = "cli/jobs.rs"]
mod jobs;

use std::{
    io::{self, Write},
    process::{Command, Stdio},
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::Registry;
use serde_json::Value;

struct Ran {
    code: u8,
    out: String,
    err: String,
}

/// Runs the command in this process.
fn clockjack(args: &[&str], err_is_terminal: bool) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { err_is_terminal, ..Streams::new(&mut out, &mut err) };
    let code = run(&Registry::new(), ["clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    Ran { code, out: text(out), err: text(err) }
}

/// Runs the command and expects success without messages.
#[track_caller]
fn result(args: &[&str]) -> String {
    let ran = clockjack(args, false);
    assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{args:?}");
    ran.out
}

/// The result as JSON without the members that depend on the machine.
#[track_caller]
fn repeatable(args: &[&str]) -> Value {
    let text = result(args);
    assert_eq!(text.lines().count(), 1, "one line");
    let mut json: Value = serde_json::from_str(&text).expect("JSON");
    let timing = json.as_object_mut().expect("an object").remove("timing").expect("timing");
    assert!(timing["total_ns"].is_u64(), "{timing}");
    json
}

/// Replaces everything that depends on the machine, whatever its width.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        if let Some(rest) = line.strip_prefix("wall time     ") {
            let (_, behind) = rest.split_once(' ').expect("words behind the time");
            let release = behind.split_once(" (debug build").map_or(behind, |(first, _)| first);
            return format!("wall time     <time> {release}");
        }
        let is_row = ["armed", "cancelled", "fired"].iter().any(|name| line.starts_with(name));
        if !is_row {
            return line.to_owned();
        }
        assert_eq!(line.len(), 43, "columns: {line}");
        let (count, times) = line.split_at(21);
        let times: Vec<&str> = times.split_whitespace().collect();
        assert!(times[0].ends_with('s'), "a time with its unit: {line}");
        assert!(times[1].parse::<f64>().is_ok(), "nanoseconds: {line}");
        format!("{count}  <time>  <ns>")
    };
    text.lines().map(|line| mask(line) + "\n").collect()
}

#[test]
fn the_text_is_as_expected_but_for_the_times() {
    let args = ["timers", "--count", "5000", "--horizon-ms", "1000", "--step-ms", "7"];
    assert_eq!(masked(&result(&args)), include_str!("golden/timers.txt"));
}

#[test]
fn a_line_of_text_fits_eighty_columns() {
    let (many, late) = (["timers", "--count", "100000"], ["timers", "--step-ms", "1000"]);
    for args in [many, late] {
        for line in result(&args).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_results_and_others_do_not() {
    let with_seed =
        |seed| repeatable(&["timers", "--count", "20000", "--format", "json", "--seed", seed]);
    let first = with_seed("1");
    assert_eq!(first, with_seed("1"));
    let mut other = with_seed("2");
    assert_ne!(first["order"], other["order"]);
    assert_ne!(first["fired_per_step"], other["fired_per_step"]);
    // Values that the arguments determine are the same for every seed.
    for key in ["order", "fired_per_step", "idle_steps"] {
        other[key] = first[key].clone();
    }
    other["plan"]["seed"] = first["plan"]["seed"].clone();
    assert_eq!(first, other);
}

#[test]
fn a_known_seed_gives_a_known_order_on_every_machine() {
    // Computed by a program in another language that sorts the timers instead of using a wheel.
    let json = repeatable(&["timers", "--count", "20000", "--format", "json"]);
    assert_eq!(json["order"], "0x5550438641e8896b");
    assert_eq!((&json["armed"], &json["fired"]), (&20_000.into(), &18_000.into()));
    assert_eq!(json["cancelled"], 2_000);
    assert_eq!(json["virtual_ms"], 60_000);
    assert_eq!(json["late_ticks"]["buckets"], serde_json::json!([[0, 0, 18_000]]));
}

#[test]
fn exit_code_0_is_success_help_and_version() {
    assert_eq!(clockjack(&["timers", "--count", "10"], false).code, 0);
    assert!(result(&["timers", "--help"]).contains("Examples:\n  clockjack timers"));
    assert!(result(&["--help"]).contains("Exit codes:\n  0    "));
    assert_eq!(result(&["--version"]), format!("clockjack {}\n", env!("CARGO_PKG_VERSION")));
}

/// A stream on which every write fails.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

/// The exit code and the message if writing the result fails with this error.
fn written_to(kind: io::ErrorKind, args: &[&str]) -> (u8, String) {
    let mut err = Vec::new();
    let mut broken = Broken(kind);
    let mut streams = Streams::new(&mut broken, &mut err);
    let code = run(&Registry::new(), ["clockjack"].iter().chain(args), &mut streams);
    (code, String::from_utf8(err).expect("text"))
}

#[test]
fn exit_code_1_is_a_result_that_could_not_be_written() {
    for args in [&["timers", "--count", "10"][..], &["--help"]] {
        let (code, message) = written_to(io::ErrorKind::StorageFull, args);
        assert_eq!(code, 1);
        assert!(message.starts_with("clockjack: cannot write the result: "), "{message}");
    }
}

#[test]
fn a_reader_that_went_away_is_success() {
    for args in [&["timers", "--count", "10"][..], &["--help"]] {
        assert_eq!(written_to(io::ErrorKind::BrokenPipe, args), (0, String::new()));
    }
}

#[test]
fn exit_code_2_is_a_wrong_argument_and_the_message_names_the_limit() {
    let cases: [(&[&str], &str); 9] = [
        (&["timers", "--count", "50000001"], "50000001 is not in 0..=50000000"),
        (&["timers", "--count", "-1"], "unexpected argument '-1'"),
        (&["timers", "--horizon-ms", "0"], "0 is not in 1..=604800000"),
        (&["timers", "--cancel", "101"], "101 is not in 0..=100"),
        (&["timers", "--step-ms", "0"], "0 is not in 1..=4294967295"),
        (&["timers", "--seed", "x"], "invalid value 'x' for '--seed <SEED>'"),
        (&["timers", "--format", "xml"], "[possible values: human, json, ndjson]"),
        (&["timers", "--cuont", "1"], "similar argument exists: '--count'"),
        (&["clocks"], "unrecognized subcommand 'clocks'"),
    ];
    for (args, message) in cases {
        let ran = clockjack(args, false);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.contains(message), "{args:?} says {}", ran.err);
        assert!(!ran.err.contains('\x1b'), "no colour: {}", ran.err);
    }
}

#[test]
fn no_argument_at_all_shows_the_help_as_an_error() {
    let ran = clockjack(&[], false);
    assert_eq!((ran.code, ran.out.as_str()), (exit_code::USAGE, ""));
    assert!(ran.err.contains("Usage: clockjack [OPTIONS] <COMMAND>"), "{}", ran.err);
}

#[test]
fn progress_is_drawn_on_a_terminal_or_if_asked_for_and_is_wiped() {
    let drawn = |mode, err_is_terminal| {
        let args = ["timers", "--count", "1000", "--progress", mode];
        let ran = clockjack(&args, err_is_terminal);
        assert_eq!(ran.code, exit_code::OK);
        ran.err
    };
    for silent in [drawn("auto", false), drawn("none", false), drawn("none", true)] {
        assert_eq!(silent, "");
    }
    for line in [drawn("auto", true), drawn("bar", false), drawn("bar", true)] {
        let phases: Vec<&str> = line.split('\r').filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(phases, ["", "arming", "cancelling", "firing", "", ""]);
        assert!(!line.contains('\x1b') && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn the_process_returns_the_same_codes_and_survives_a_closed_pipe() {
    let process = || Command::new(env!("CARGO_BIN_EXE_clockjack"));
    let usage = process().args(["timers", "--cancel", "101"]).output().expect("it starts");
    assert_eq!(usage.status.code(), Some(2));
    assert!(usage.stdout.is_empty());
    let ok = process().args(["timers", "--count", "10"]).output().expect("it starts");
    assert_eq!(ok.status.code(), Some(0));
    assert!(ok.stderr.is_empty(), "no progress without a terminal");

    let mut args = process();
    args.args(["timers", "--count", "100000"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = args.spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
