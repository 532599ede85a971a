//! Each illness is the first thing that `clockjack doctor --of` reports, which looks for three
//! seconds; the same finding is the first one on the screen. A look while the machine was too busy
//! is repeated, at most [`LOOKS`] times in all.

#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::Registry;

/// A running shop, and the directory of its socket.
struct Shop {
    process: Child,
    directory: PathBuf,
    address: String,
}

impl Shop {
    fn start(illness: Option<&str>) -> Self {
        let name = illness.unwrap_or("healthy");
        let directory = std::env::temp_dir().join(format!("cj-shop-{}-{name}", std::process::id()));
        let _removed = fs::remove_dir_all(&directory);
        fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
        command.env("XDG_RUNTIME_DIR", &directory).stdout(Stdio::piped());
        command.args(illness.iter().flat_map(|name| ["--ill", name]));
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("look at ").unwrap().to_owned();
        Self { process, directory, address }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// The exit code and both outputs.
fn clockjack(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::new(), ["clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

/// How often a program is looked at. A machine that stands still for a part of a second makes
/// clocks jump and timers late, which is then the first finding, and true.
const LOOKS: u32 = 5;

/// The output of the first look that is as wanted, or of the last one.
fn look(args: &[&str], is_wanted: impl Fn(&str) -> bool) -> (u8, String) {
    let mut looks = (0..LOOKS).map(|_| clockjack(args));
    let mut last = looks.next().expect("there is one");
    while !is_wanted(&last.1) {
        let Some(next) = looks.next() else { break };
        last = next;
    }
    assert!(is_wanted(&last.1), "{args:?}: {}{}", last.1, last.2);
    (last.0, last.1)
}

/// The illness is named first, by its code and its subject.
fn check(illness: &str, code: &str, subject: &str) {
    let shop = Shop::start(Some(illness));
    let is_first = |out: &str| {
        let first = out.lines().next().unwrap_or_default();
        first.starts_with(code) && first.contains(subject)
    };
    let (exit, out) = look(&["doctor", "--of", &shop.address], is_first);
    let first = out.lines().next().unwrap_or_default();
    assert!(first.ends_with(&format!("clockjack explain {code}")), "{illness}: {first}");
    assert_eq!(exit, exit_code::ASSERTION_FAILED, "{illness}");
    let mark = format!(" ! {code} ");
    let is_on_screen = |screen: &str| screen.lines().nth(1).is_some_and(|l| l.starts_with(&mark));
    let (exit, _) = look(&["top", &shop.address, "--once", "--width", "200"], is_on_screen);
    assert_eq!(exit, exit_code::OK);
}

#[test]
fn a_healthy_shop_has_no_findings() {
    let shop = Shop::start(None);
    // What needs a longer look comes after it.
    let is_healthy = |out: &str| out.starts_with("no findings\nS04 is undecided");
    let (exit, _) = look(&["doctor", "--of", &shop.address], is_healthy);
    assert_eq!(exit, exit_code::OK);
    let (exit, out, _) = clockjack(&["inspect", &shop.address, "/user/shop", "--format", "json"]);
    assert_eq!(exit, exit_code::OK);
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["path"], "/user/shop");
    let (exit, _, err) = clockjack(&["inspect", &shop.address, "/user/nobody"]);
    assert_eq!(exit, exit_code::USAGE, "{err}");
}

#[test]
fn a_stuck_handler_is_named_first() {
    check("stuck", "S01", "/user/shop/till-7");
}

#[test]
fn a_cycle_of_asks_is_named_first() {
    check("cycle", "S02", "/user/shop/till-");
}

#[test]
fn a_hot_mailbox_is_named_first() {
    check("mailbox", "S03", "/user/shop/ledger");
}

#[test]
fn a_storm_of_restarts_is_named_first() {
    check("restarts", "S04", "/user/shop/till-7");
}

#[test]
fn dead_letters_are_named_first() {
    check("dead", "S05", "/user/shop/till-7/desk");
}

#[test]
fn busy_workers_are_named_first() {
    check("busy", "S06", "");
}

#[test]
fn an_overrunning_lane_is_named_first() {
    check("overrun", "S08", "fast");
}

#[test]
fn a_dropping_edge_is_named_first() {
    check("drops", "S09", "scanned");
}

#[test]
fn a_leak_of_actors_is_named_first() {
    check("leak", "S11", "/user");
}

#[test]
fn threads_that_are_all_blocked_are_named_first() {
    check("blocking", "S12", "");
}

#[test]
fn nobody_is_at_a_socket_whose_program_was_killed() {
    let mut shop = Shop::start(None);
    shop.process.kill().unwrap();
    shop.process.wait().unwrap();
    assert!(fs::exists(&shop.address).unwrap());
    let (exit, _, err) = clockjack(&["doctor", "--of", &shop.address]);
    assert_eq!(exit, exit_code::NOT_CONNECTED, "{err}");
}
