//! Tests of the command as its user sees it: output, exit codes and repeatability.

use std::{
    io::{self, Write},
    process::{Command, Stdio},
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::Registry;

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

/// The result without the measured times.
fn masked(args: &[&str]) -> String {
    let mask = |line: &str| match line.find(" ms ") {
        Some(at) if !line.contains("virtual") => {
            let number = line[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            format!("{}<time>\n", number.trim_end())
        }
        _ => format!("{}\n", line.split_once(" (debug build").map_or(line, |(first, _)| first)),
    };
    result(args).lines().map(mask).collect()
}

#[test]
fn the_text_is_as_expected_but_for_the_times() {
    let timers = "\
5000 timers in 60000 ms of virtual time, seed 1

armed           5000<time>
cancelled        500<time>
fired           4500<time>
lateness   none early, at most<time>
order      ORDER, the same on every machine
checked    against a sorted list: equal
";
    let text = masked(&["demo", "timers", "--count", "5000"]);
    let order = text.split_whitespace().find(|word| word.starts_with("0x")).expect("a digest");
    assert_eq!(text.replace(order.trim_end_matches(','), "ORDER"), timers);
    let text = masked(&["demo", "jobs"]);
    assert!(text.starts_with("1000 jobs in 60 s of virtual time, seed 1; at 30 s"), "{text}");
    assert!(text.ends_with("checked      against a sorted list: equal\n"), "{text}");
}

#[test]
fn a_line_of_text_fits_eighty_columns() {
    for args in [&["demo", "timers", "--count", "100000"][..], &["demo", "jobs"]] {
        for line in result(args).lines() {
            let line = line.split_once(" (debug build").map_or(line, |(first, _)| first);
            assert!(line.len() <= 80, "{line}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_results_and_others_do_not() {
    for demo in ["timers", "jobs"] {
        let with_seed = |seed| masked(&["demo", demo, "--count", "2000", "--seed", seed]);
        let order = |text: &str| text.lines().find(|l| l.starts_with("order")).map(str::to_owned);
        let first = with_seed("1");
        assert_eq!(first, with_seed("1"));
        assert!(order(&first).is_some());
        assert_ne!(order(&first), order(&with_seed("2")));
    }
}

#[test]
fn a_known_seed_gives_a_known_order_on_every_machine() {
    // Computed by a program in another language that sorts the timers instead of using a wheel.
    let text = result(&["demo", "timers", "--count", "20000"]);
    assert!(text.contains("order      0x5550438641e8896b, "), "{text}");
    assert!(text.contains("fired          18000 "), "{text}");
}

#[test]
fn a_dump_comes_before_the_report() {
    let text = result(&["demo", "jobs", "--count", "9", "--dump"]);
    assert!(text.starts_with("scheduler "), "{text}");
    assert!(text.contains("\n9 jobs in 60 s of virtual time"), "{text}");
}

#[test]
fn exit_code_0_is_success_help_and_version() {
    assert_eq!(clockjack(&["demo", "timers", "--count", "10"], false).code, 0);
    assert!(result(&["demo", "--help"]).contains("Examples:\n  clockjack demo timers"));
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
    for args in [&["demo", "timers", "--count", "10"][..], &["--help"]] {
        let (code, message) = written_to(io::ErrorKind::StorageFull, args);
        assert_eq!(code, 1);
        assert!(message.starts_with("clockjack: cannot write the result: "), "{message}");
    }
}

#[test]
fn a_reader_that_went_away_is_success() {
    for args in [&["demo", "timers", "--count", "10"][..], &["--help"]] {
        assert_eq!(written_to(io::ErrorKind::BrokenPipe, args), (0, String::new()));
    }
}

#[test]
fn exit_code_2_is_a_wrong_argument_and_the_message_names_the_limit() {
    let cases: [(&[&str], &str); 6] = [
        (&["demo", "timers", "--count", "10000001"], "10000001 is not in 0..=10000000"),
        (&["demo", "jobs", "--count", "-1"], "unexpected argument '-1'"),
        (&["demo", "jobs", "--seed", "x"], "invalid value 'x' for '--seed <SEED>'"),
        (&["demo", "timers", "--cuont", "1"], "similar argument exists: '--count'"),
        (&["demo", "clocks"], "unrecognized subcommand 'clocks'"),
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
fn the_process_returns_the_same_codes_and_survives_a_closed_pipe() {
    let process = || Command::new(env!("CARGO_BIN_EXE_clockjack"));
    let usage = process().args(["demo", "timers", "--count", "-1"]).output().expect("it starts");
    assert_eq!(usage.status.code(), Some(2));
    assert!(usage.stdout.is_empty());
    let ok = process().args(["demo", "timers", "--count", "10"]).output().expect("it starts");
    assert_eq!(ok.status.code(), Some(0));
    assert!(ok.stderr.is_empty(), "no progress without a terminal");

    let mut args = process();
    args.args(["demo", "timers", "--count", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = args.spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
