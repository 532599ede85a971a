//! Signals that a test sends to a process; and one that is ignored, as only Unix has it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use clockjack_cli::exit_code;

use super::{DRAINED, Run, TEST, graph, read_until, scratch, text};

/// Says in the environment what the child is to do.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";

pub(crate) const SIGINT: u32 = 2;
pub(crate) const SIGTERM: u32 = 15;
/// The first of two signals: its name, and the exit code of a run that it ends.
pub(crate) const FIRST: (u32, &str, u8) = (SIGTERM, "SIGTERM", exit_code::TERMINATED);
pub(crate) const SECOND: u32 = SIGINT;

/// The role of this process, if it is a child.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Makes this process another one, with the same id.
pub(crate) fn become_command(command: &mut Command) -> ! {
    panic!("it does not start: {}", command.exec())
}

pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Process {
    pub(crate) fn start(role: &str) -> Self {
        // A background process of a shell ignores Ctrl-C, and so do its children.
        Self::start_with("--default-signal=INT,TERM", role)
    }

    fn start_with(signals: &str, role: &str) -> Self {
        let mut command = Command::new("env");
        command.arg(signals).arg(std::env::current_exe().expect("there is one"));
        command.args(["--exact", TEST, "--nocapture"]).env(ROLE, role);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("it has one"));
        let err = BufReader::new(child.stderr.take().expect("it has one"));
        Self { child, out, err }
    }

    /// The next line of standard output.
    pub(crate) fn read_line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.out.read_line(&mut line).expect("text"), 0, "its output has ended");
        line
    }

    /// The next line of standard error.
    pub(crate) fn read_error(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).expect("text");
        line
    }

    /// Sends signals, one right after the other.
    pub(crate) fn send(&self, signals: &[u32]) {
        let id = self.child.id();
        let kills: Vec<_> = signals.iter().map(|one| format!("kill -{one} {id}")).collect();
        let sent = Command::new("sh").args(["-c", &kills.join("; ")]).status();
        assert!(sent.expect("there is a shell").success());
    }

    /// The exit code, after the end.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended is not signalled.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn an_ignored_interrupt_is_a_warning_and_the_other_signal_works() {
    let start = |role: &str| Process::start_with("--ignore-signal=INT", role);
    let mut run = Run::start_by("ignored", false, "", &[], start);
    let line = run.process.read_error();
    assert!(line.starts_with("clockjack: SIGINT was ignored when the program started"), "{line}");
    run.process.send(&[SIGINT]);
    run.process.send(&[SIGTERM]);
    run.finish(&["deactivated", DRAINED], exit_code::TERMINATED);
}

#[test]
fn a_third_signal_ends_a_run_that_cannot_write_its_files() {
    let path = scratch("third.yaml");
    fs::write(&path, graph(false, "")).expect("it can be written");
    // Nobody reads from it, so that its writer waits for ever.
    let pipe = path.with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is such a command").success());
    let role = ["clockjack", "run", text(&path), "--clock", "wall", "--metrics", text(&pipe)];
    let mut process = Process::start(&role.join("\n"));
    read_until(&mut process, "third call");
    process.send(&[SIGTERM]);
    let note = process.read_error();
    assert!(note.starts_with("clockjack: SIGTERM: waiting up to "), "{note}");
    read_until(&mut process, "deactivated");
    process.send(&[SIGINT, SIGTERM]);
    let code = process.wait();
    // Either of them may be the third one.
    let signals = [exit_code::INTERRUPTED, exit_code::TERMINATED];
    assert!(signals.map(|code| Some(code.into())).contains(&code), "{code:?}");
}
