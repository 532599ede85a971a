//! `clockjack jobs`.

use std::{fs, io, path::PathBuf, process::Command};

use clockjack_cli::exit_code;
use serde_json::Value;

use super::{clockjack, result, written_to};

/// A path for a file with this name.
fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs a few jobs and writes a trace. Returns the path and the contents of the trace.
#[track_caller]
fn kept(name: &str) -> (String, String) {
    let path = place(name).into_os_string().into_string().expect("a path of text");
    result(&["jobs", "--jobs", "20", "--trace", &path]);
    let trace = fs::read_to_string(&path).expect("it was written");
    (path, trace)
}

/// The exit code and the message of a comparison with a file with these contents.
#[track_caller]
fn compared_with(name: &str, trace: &str) -> (u8, String) {
    let path = place(name);
    fs::write(&path, trace).expect("the file can be written");
    let path = path.to_str().expect("a path of text");
    let ran = clockjack(&["jobs", "--jobs", "20", "--compare", path], false);
    assert_eq!(ran.out.is_empty(), ran.code == exit_code::USAGE, "no report without a run");
    (ran.code, ran.err.replace(path, "FILE"))
}

#[test]
fn the_text_is_as_expected() {
    let args = ["jobs", "--jobs", "40", "--stall", "20s", "--dump", "text", "--at", "12s"];
    assert_eq!(result(&args), include_str!("../golden/jobs.txt"));
}

#[test]
fn a_line_of_text_fits_eighty_columns() {
    let cases: [&[&str]; 3] = [
        &["jobs", "--jobs", "3000", "--stall", "20s"],
        &["jobs", "--for", "100d", "--stall", "40d", "--resolution", "1s", "--policy", "folded"],
        &["jobs", "--for", "999999999ns", "--stall", "333333333ns", "--resolution", "1us"],
    ];
    for args in cases {
        for line in result(args).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}

#[test]
fn equal_plans_give_equal_bytes_and_other_seeds_do_not() {
    let with_seed = |seed, format| {
        let args = ["jobs", "--stall", "10s", "--seed", seed, "--format", format, "--dump", "text"];
        result(&args)
    };
    for format in ["human", "json"] {
        assert_eq!(with_seed("1", format), with_seed("1", format));
        assert_ne!(with_seed("1", format), with_seed("2", format));
    }
}

#[test]
fn the_json_is_one_line_with_what_the_text_has() {
    let args = ["jobs", "--stall", "20s", "--format", "json", "--dump", "lines", "--at", "0s"];
    let text = result(&args);
    assert_eq!(text.lines().count(), 1);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["command"], "jobs");
    assert_eq!(json["plan"]["stall_ns"], 20_000_000_000_u64);
    assert_eq!(json["metrics"]["accepted_total"], 1_000);
    let warned = json["warnings"].as_array().expect("a list").iter().map(|w| &w["name"]);
    assert!(warned.clone().any(|name| name == "BurstFire"), "{json}");
    let dump = json["dump"].as_str().expect("asked for");
    assert!(dump.contains(" now=0 "), "{dump}");
    let runs = |kind: &str| json[kind]["runs"].as_u64().expect("a count");
    assert!(runs("once") > 0 && runs("fixed_rate") > 0 && runs("fixed_delay") > 0);
}

#[test]
fn a_dump_is_asked_for_as_text_and_as_lines_and_ends_with_an_empty_line() {
    let text = result(&["jobs", "--jobs", "9", "--dump", "text"]);
    assert!(text.starts_with("scheduler  manual, open\n"), "{text}");
    for part in ["wheel at", "periodic jobs", "one-shots", "now        tick 3000, 30s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = result(&["jobs", "--jobs", "9", "--dump", "lines", "--at", "5s"]);
    let (lines, report) = text.split_once("\n\n").expect("an empty line");
    assert!(lines.starts_with("scheduler mode=manual "), "{lines}");
    assert!(lines.lines().all(|line| line.contains('=')), "{lines}");
    assert!(lines.contains("\nshard shard=0 wheel_offset=500 "), "{lines}");
    assert!(report.starts_with("9 jobs in 60s"), "{report}");
}

#[test]
fn a_run_is_the_one_that_was_kept() {
    let (path, trace) = kept("same.trace");
    assert!(trace.starts_with("clockjack-replay 1\nresolution_ns 10000000\nlost 0\nrecords "));
    let again = place("again.trace");
    let again = again.to_str().expect("a path of text");
    result(&["jobs", "--jobs", "20", "--compare", &path, "--trace", again]);
    assert_eq!(fs::read_to_string(again).expect("it was written"), trace);
}

#[test]
fn exit_code_1_is_a_run_that_parts_from_the_one_that_was_kept() {
    let (_, trace) = kept("parts.trace");
    let (head, tail) = trace.split_at(trace.find("fire ").expect("a run"));
    let index = head.lines().count() - 4;
    let other = format!("{head}{}", tail.replacen(" runs=1 ", " runs=2 ", 1));
    let (code, message) = compared_with("other.trace", &other);
    assert_eq!(code, 1);
    let begin = format!(
        "clockjack: this run (right) differs from 'FILE' (left): the traces differ at record \
         {index}\n  left   fire shard=0 "
    );
    assert!(message.starts_with(&begin), "{message}");
    assert!(message.ends_with("\n  differs in runs\n"), "{message}");

    let coarse = trace.replacen("resolution_ns 10000000", "resolution_ns 20000000", 1);
    let (code, message) = compared_with("coarse.trace", &coarse);
    assert_eq!(code, 1);
    assert!(message.contains("a tick is 20ms on the left and 10ms on the right"), "{message}");
}

#[test]
fn another_seed_another_length_and_a_reader_that_went_away_part_too() {
    let (path, _) = kept("seed.trace");
    for other in [["--seed", "2"], ["--for", "61s"], ["--stall", "1s"], ["--cancel", "0"]] {
        let mut args = vec!["jobs", "--jobs", "20", "--compare", &path];
        args.extend(other);
        assert_eq!(clockjack(&args, false).code, 1, "{other:?}");
        let (code, message) = written_to(io::ErrorKind::BrokenPipe, &args);
        assert_eq!(code, 1, "{other:?}");
        assert!(message.contains("the traces differ at record"), "{message}");
    }
}

#[test]
fn exit_code_2_is_a_trace_of_another_version_or_cut_short_and_the_message_names_the_line() {
    let (_, trace) = kept("whole.trace");
    let n_lines = trace.lines().count();
    let short: String = trace.split_inclusive('\n').take(n_lines - 1).collect();
    let cut = &trace[..trace.len() - 2];
    let cases = [
        (trace.replacen("replay 1", "replay 2", 1), "line 1: version 2 is unknown, 1 is known"),
        (short, &format!("line {n_lines}: there are fewer records than the header says")),
        (cut.to_owned(), &format!("line {n_lines}: `executor` is not a valid number")),
        (format!("{trace}more\n"), "there are more lines than the header says"),
        (trace.replacen("fire ", "burn ", 1), "no kind of record has this name"),
        (String::new(), "line 1: not a trace: it does not begin with `clockjack-replay`"),
    ];
    for (number, (trace, expected)) in cases.iter().enumerate() {
        let (code, message) = compared_with(&format!("bad-{number}.trace"), trace);
        assert_eq!(code, 2, "{message}");
        let begin = "clockjack: 'FILE' is not a complete trace: line ";
        assert!(message.starts_with(begin), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn exit_code_2_is_also_a_file_that_cannot_be_read_or_would_be_written_over() {
    let ran = clockjack(&["jobs", "--compare", "no/such/file"], false);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.starts_with("clockjack: cannot read the trace 'no/such/file': "),
        "{}",
        ran.err
    );
    fs::write(place("binary.trace"), [0xff, 0xfe]).expect("the file can be written");
    let path = place("binary.trace");
    let path = path.to_str().expect("a path of text");
    assert_eq!(clockjack(&["jobs", "--compare", path], false).code, 2);

    let (path, trace) = kept("kept.trace");
    let roundabout = place("./kept.trace");
    let roundabout = roundabout.to_str().expect("a path of text");
    let args = ["jobs", "--seed", "2", "--compare", &path, "--trace", roundabout];
    let ran = clockjack(&args, false);
    assert_eq!(ran.code, 2);
    let message = "would be overwritten: another argument names the same file";
    assert!(ran.err.contains(message), "{}", ran.err);
    assert_eq!(fs::read_to_string(&path).expect("the file exists"), trace, "it is as it was");
}

#[test]
fn exit_code_1_is_a_trace_or_a_report_that_could_not_be_written() {
    let ran = clockjack(&["jobs", "--jobs", "1", "--trace", "no/such/folder/a.trace"], false);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    let begin = "clockjack: cannot write 'no/such/folder/a.trace': ";
    assert!(ran.err.starts_with(begin), "{}", ran.err);
    let (code, message) = written_to(io::ErrorKind::StorageFull, &["jobs", "--jobs", "1"]);
    assert_eq!(code, 1);
    assert!(message.starts_with("clockjack: cannot write the result: "), "{message}");
    let gone = written_to(io::ErrorKind::BrokenPipe, &["jobs", "--jobs", "1"]);
    assert_eq!(gone, (0, String::new()));
}

#[test]
fn exit_code_2_is_a_wrong_argument_and_the_message_names_the_limit() {
    let cases: [(&[&str], &str); 14] = [
        (&["--jobs", "100001"], "100001 is not in 0..=100000"),
        (&["--cancel", "101"], "101 is not in 0..=100"),
        (&["--seed", "-1"], "unexpected argument '-1'"),
        (&["--for", "60"], "expected a whole number with a unit (ns, us, ms, s, m, h or d)"),
        (&["--for", "1.5s"], "invalid value '1.5s' for '--for <DURATION>'"),
        (&["--for", "0s"], "--for must be from 1 to 2147483647 ticks of 10ms"),
        (&["--for", "300d"], "--for must be from 1 to 2147483647 ticks of 10ms"),
        (&["--for", "999999d"], "longer than 584 years"),
        (&["--resolution", "0ms"], "the length of a tick must be between 1ns and 4294967295ns"),
        (&["--resolution", "5s"], "the length of a tick must be between 1ns and 4294967295ns"),
        (&["--stall", "31s"], "--stall must be at most half of --for"),
        (&["--policy", "both"], "[possible values: individually, folded]"),
        (&["--at", "1s"], "the following required arguments were not provided:\n  --dump"),
        (&["--dump", "text", "--at", "61s"], "--at must not be later than --for"),
    ];
    for (args, message) in cases {
        let args: Vec<&str> = ["jobs"].iter().chain(args).copied().collect();
        let ran = clockjack(&args, false);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.contains(message), "{args:?} says {}", ran.err);
        assert!(!ran.err.contains('\x1b'), "no colour: {}", ran.err);
    }
}

#[test]
fn the_help_has_examples() {
    assert!(result(&["jobs", "--help"]).contains("Examples:\n  clockjack jobs "));
}

#[test]
fn progress_is_drawn_on_a_terminal_or_if_asked_for_and_is_wiped() {
    let drawn = |mode, err_is_terminal| {
        let ran = clockjack(&["jobs", "--jobs", "10", "--progress", mode], err_is_terminal);
        assert_eq!(ran.code, exit_code::OK);
        ran.err
    };
    for silent in [drawn("auto", false), drawn("none", false), drawn("none", true)] {
        assert_eq!(silent, "");
    }
    for line in [drawn("auto", true), drawn("bar", false), drawn("bar", true)] {
        assert!(line.starts_with("\rrunning "), "{line:?}");
        assert!(line.ends_with("  \r"), "wiped: {line:?}");
        assert!(!line.contains('\x1b') && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn the_process_returns_the_same_codes_and_the_same_bytes() {
    let process = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack"));
        command.arg("jobs").args(args).output().expect("it starts")
    };
    let ok = process(&["--jobs", "50", "--stall", "10s"]);
    assert_eq!(ok.status.code(), Some(0));
    assert!(ok.stderr.is_empty(), "no progress without a terminal");
    let here = result(&["jobs", "--jobs", "50", "--stall", "10s"]);
    assert_eq!(String::from_utf8_lossy(&ok.stdout), here);

    let (path, _) = kept("process.trace");
    assert_eq!(process(&["--jobs", "20", "--compare", &path]).status.code(), Some(0));
    assert_eq!(process(&["--jobs", "21", "--compare", &path]).status.code(), Some(1));
    assert_eq!(process(&["--stall", "1h"]).status.code(), Some(2));
}
