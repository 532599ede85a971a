//! Tests of devices, links and permissions on Linux.

#![cfg(target_os = "linux")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
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
