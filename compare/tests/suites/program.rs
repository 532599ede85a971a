//! Calls of the program, and its output.

use std::process::{Command, Output};

use serde_json::Value;

/// The program, ready for arguments. Software that is installed here must not influence a test.
pub(super) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_clockjack-compare"));
    program.env_remove("CPLUS_INCLUDE_PATH");
    program
}

pub(super) fn compare(args: &[&str]) -> Output {
    program().args(args).output().expect("the program was built with this test")
}

/// What it printed; it must have gone well.
pub(super) fn stdout(output: &Output) -> String {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    String::from_utf8(output.stdout.clone()).expect("the report is UTF-8")
}

/// The cases of a report of JSON lines.
pub(super) fn parse(report: &str) -> Vec<Value> {
    report.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// The cases that a call reports.
pub(super) fn lines(args: &[&str]) -> Vec<Value> {
    parse(&stdout(&compare(args)))
}

/// Who of a field's subjects has a figure.
pub(super) fn with_figure<'a>(line: &'a Value, field: &str) -> Vec<&'a str> {
    let peers = line[field].as_object().unwrap_or_else(|| panic!("no {field} in {line}"));
    peers.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str()).collect()
}

/// A call that is refused as wrong, with this in its complaint.
#[track_caller]
pub(super) fn refused(args: &[&str], complaint: &str) {
    let output = compare(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(complaint), "{args:?}: {said}");
}
