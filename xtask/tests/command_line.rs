//! The command line: wrong arguments are refused immediately with a clear message, from any folder,
//! and a closed pipe does not stop the command.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

fn xtask() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.env("RUST_BACKTRACE", "0");
    command
}

fn call(args: &str) -> Output {
    xtask().args(args.split_whitespace()).output().expect("xtask starts")
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

#[test]
fn every_command_of_the_help_has_a_help_of_its_own() {
    let help = said(&call("help"));
    let list = help.split_once("Commands:\n").expect("the help lists the commands").1;
    let names: Vec<&str> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"ci") && names.contains(&"sanitize"), "{names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let output = call(&format!("{name} --help"));
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(said(&output).contains(&format!("Usage: cargo xtask {name}")), "{name}");
    }
}

/// Otherwise an optimised build would run first, which takes minutes.
#[test]
fn a_wrong_name_is_refused_with_2_before_anything_is_built() {
    for (args, known) in [
        ("compare everything", "scheduler"),
        ("sim --workload mars", "graphs"),
        ("fuzz --target nothing", "mailbox"),
        ("foreign vax", "s390x"),
        ("sanitize hands", "address"),
        ("no-such-command", "Usage: cargo xtask"),
        ("tidy --no-such-option", "Usage: cargo xtask tidy"),
    ] {
        let output = call(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(said(&output).contains(known), "{args}: {}", said(&output));
    }
}

#[test]
fn a_call_outside_of_a_checkout_is_refused_with_a_message() {
    let output = xtask().arg("layering").current_dir("/").output().expect("xtask starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("/ is not inside a checkout of Clockjack"), "{}", said(&output));
}

#[test]
fn it_works_from_a_folder_below_the_root() {
    let below = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let output = xtask().arg("layering").current_dir(below).output().expect("xtask starts");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// `cargo xtask layering | head -1` must not panic.
#[test]
fn a_reader_that_closes_the_pipe_does_not_stop_the_command() {
    let mut child = xtask()
        .arg("layering")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("xtask starts");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("the output is piped"));
    reader.read_line(&mut first).expect("the command prints a line");
    drop(reader);
    let output = child.wait_with_output().expect("the command exits");
    assert!(first.starts_with("layering: "), "{first}");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
