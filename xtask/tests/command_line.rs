//! The program as a stranger calls it: what is wrong is refused at once and in words, wherever it
//! is called from and whoever reads.

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
    xtask().args(args.split_whitespace()).output().expect("it starts")
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

#[test]
fn every_command_of_the_help_has_a_help_of_its_own() {
    let help = said(&call("help"));
    let list = help.split_once("Commands:\n").expect("it lists them").1;
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

/// A release of everything would be built for nothing.
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
fn outside_of_a_checkout_is_told_in_words() {
    let output = xtask().arg("layering").current_dir("/").output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("/ is not inside a checkout of Clockjack"), "{}", said(&output));
}

#[test]
fn it_works_from_a_folder_below_the_root() {
    let below = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let output = xtask().arg("layering").current_dir(below).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// `cargo xtask layering | head -1` must not end in a panic.
#[test]
fn a_reader_that_goes_away_does_not_end_the_command() {
    let mut child = xtask()
        .arg("layering")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    reader.read_line(&mut first).expect("it says something");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert!(first.starts_with("layering: "), "{first}");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
