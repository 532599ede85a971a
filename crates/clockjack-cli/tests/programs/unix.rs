//! `clockjack ps` and `clockjack inspect` on programs with sockets in the usual directory.

#![cfg(unix)]

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::DirBuilderExt as _, net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use clockjack_cli::exit_code;
use clockjack_console::server::{Console, Control};
use clockjack_rt::{Runtime, actor::Props};
use serde_json::Value;

/// The name of the system of the program that `what_the_child_does` is.
const ROLE: &str = "CLOCKJACK_TEST_SYSTEM";

/// A directory for sockets of this test only.
fn runtime_directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("cj-ps-{}-{name}", std::process::id()));
    let _removed = fs::remove_dir_all(&directory);
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    directory
}

fn clockjack(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack"));
    command.args(args).env("XDG_RUNTIME_DIR", directory).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A program with a console and one actor.
struct Program {
    child: Child,
    socket: PathBuf,
}

impl Program {
    fn start(directory: &Path, system: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "what_the_child_does", "--nocapture"]);
        command.env(ROLE, system).env("XDG_RUNTIME_DIR", directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = out.lines().map(Result::unwrap);
        let socket = lines.find_map(|line| Some(line.split_once("look at ")?.1.to_owned()));
        Self { child, socket: socket.unwrap().into() }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// As `kill -9`: nothing is cleaned up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if the test has killed it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_the_child_does() {
    let Ok(system) = std::env::var(ROLE) else { return };
    let runtime = Runtime::new(&system).unwrap();
    runtime.spawn("till", Props::from_fn(|_cx, (): ()| ())).unwrap();
    let console = Console::of(&runtime).control(Control::JOBS).open().unwrap();
    writeln!(io::stdout(), "look at {}", console.address()).unwrap();
    // Until the test that has started it has ended.
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

#[test]
fn the_socket_of_a_program_that_was_killed_is_removed_and_nothing_else_is() {
    let directory = runtime_directory("killed");
    let alive = Program::start(&directory, "alive");
    let mut dead = Program::start(&directory, "dead");
    let file = alive.socket.with_file_name("1-file.sock");
    fs::write(&file, "not a socket").unwrap();
    let listed = || text(&clockjack(&directory, &["ps", "--format", "ndjson"]).stdout);
    let is_listed = |pid: u32| {
        let lines = listed();
        let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|one| one["pid"] == pid)
    };
    assert!(is_listed(dead.child.id()).is_some());
    dead.kill();
    assert!(dead.socket.exists(), "a program that is killed leaves its socket");
    assert!(is_listed(dead.child.id()).is_none());
    assert!(!dead.socket.exists(), "it was removed");
    let one = is_listed(alive.child.id()).unwrap();
    assert_eq!(one["system"], "alive", "{one}");
    assert_eq!(one["control"], serde_json::json!(["JOBS"]), "{one}");
    assert!(one["problem"].is_null() && one["actors"].as_f64().unwrap() >= 1.0, "{one}");
    assert!(alive.socket.exists() && file.exists(), "these are no sockets of killed programs");
    let table = text(&clockjack(&directory, &["ps"]).stdout);
    let is_it = |line: &&str| line.starts_with(&alive.pid());
    let line = table.lines().find(is_it).unwrap();
    assert!(line.contains(" alive ") && line.contains(" JOBS "), "{table}");
    drop(alive);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_name_of_a_socket_sends_no_commands_to_the_terminal() {
    let directory = runtime_directory("names");
    let sockets = directory.join("clockjack");
    fs::DirBuilder::new().mode(0o700).create(&sockets).unwrap();
    let listener = UnixListener::bind(sockets.join("4711-\u{1b}[2J.sock")).unwrap();
    // It accepts and says nothing, so that it is neither a console nor the rest of one.
    let hangs_up = std::thread::Builder::new().spawn(move || drop(listener.accept())).unwrap();
    let listed = clockjack(&directory, &["ps"]);
    hangs_up.join().unwrap();
    let table = text(&listed.stdout);
    assert!(table.contains("4711  \\u{1b}[2J"), "{table:?}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_is_inspected_by_its_pid_its_system_and_its_socket() {
    let directory = runtime_directory("inspect");
    let system = format!("house-{}", std::process::id());
    let mut program = Program::start(&directory, &system);
    let (pid, socket) = (program.pid(), program.socket.to_str().unwrap().to_owned());
    let inspect = |args: &[&str]| {
        let ran = clockjack(&directory, &[&["inspect"], args, &["--for", "0s"]].concat());
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    for name in [&pid, &system, &socket] {
        let (code, out, err) = inspect(&[name]);
        assert_eq!(code, Some(0), "{name}: {err}");
        assert!(out.contains(&format!("system: {system}\n")), "{name}: {out}");
    }
    let (_, out, _) = inspect(&[&pid, "/user/till", "--format", "json"]);
    let actor: Value = serde_json::from_str(&out).unwrap();
    assert!(actor.to_string().contains("/user/till"), "{actor}");
    let (_, out, _) = inspect(&[&pid, "--view", "actors", "--filter", "till"]);
    assert!(out.contains("path: /user/till\n"), "{out}");
    let codes = [
        (&[&pid[..], "/user/nobody"][..], exit_code::USAGE),
        (&[&pid, "--view", "actors", "--filter", "depth>x"], exit_code::USAGE),
        (&["no-such-system"], exit_code::NOT_CONNECTED),
    ];
    for (args, expected) in codes {
        let (code, out, err) = inspect(args);
        assert_eq!((code, out.as_str()), (Some(expected.into()), ""), "{args:?}");
        assert!(err.starts_with("clockjack: "), "{err}");
    }
    program.kill();
    assert_eq!(inspect(&[&pid]).0, Some(exit_code::NOT_CONNECTED.into()));
    fs::remove_dir_all(directory).unwrap();
}
