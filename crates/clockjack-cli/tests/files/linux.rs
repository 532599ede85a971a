//! Tests of devices, links, permissions and signals on Linux.

#![cfg(target_os = "linux")]

use std::{
    fs::{self, Permissions},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Command, Stdio},
};

use clockjack_cli::exit_code;

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
    assert!(out.contains("epochs      5"), "{out}");
    assert!(err.starts_with("clockjack: cannot write '/dev/full': "), "{err}");
    assert_eq!(names_beside(&metrics), ["m.prom"], "what could be written was");
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
