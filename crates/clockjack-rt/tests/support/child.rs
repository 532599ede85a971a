//! A test as its own process: signals and standard error belong to a whole program.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
};

use super::eventually::eventually;

/// Says in the environment what the child is to do.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";

pub(crate) const SIGHUP: u32 = 1;
pub(crate) const SIGINT: u32 = 2;
pub(crate) const SIGTERM: u32 = 15;

/// The role of this process, if it is a child.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A process that runs one test of this binary.
pub(crate) struct Process {
    child: KilledOnDrop,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

/// A child that does not outlive a test that has failed.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // A child that has ended is not signalled: its end is known, or still to be waited for.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    /// Starts a test in a role, with the default reaction to signals.
    pub(crate) fn start(test: &str, role: &str) -> Self {
        // A background process of a shell ignores Ctrl-C, and so do its children.
        Self::start_by(&["env", "--default-signal=INT,TERM,HUP"], test, role)
    }

    /// Starts a test by a command that takes a command.
    pub(crate) fn start_by(by: &[&str], test: &str, role: &str) -> Self {
        let child = Command::new(by[0])
            .args(&by[1..])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = KilledOnDrop(child.unwrap());
        let out = BufReader::new(child.0.stdout.take().unwrap());
        let err = BufReader::new(child.0.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Reads standard output until a line ends so.
    pub(crate) fn read_until(&mut self, end: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(end) {
            line.clear();
            let n = self.out.read_line(&mut line).unwrap();
            if n == 0 {
                let mut err = String::new();
                self.err.read_to_string(&mut err).unwrap();
                panic!("the child ended before it said {end}: {err}");
            }
        }
    }

    /// Reads a line of standard error, which `wait` then does not return.
    pub(crate) fn read_error(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line
    }

    /// Waits until the child has handlers for these signals.
    pub(crate) fn wait_for_handlers(&self, signals: &[u32]) {
        let wanted = signals.iter().fold(0_u64, |mask, signal| mask | 1 << (signal - 1));
        let path = format!("/proc/{}/status", self.child.0.id());
        eventually("the child listens", || {
            let status = std::fs::read_to_string(&path).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & wanted == wanted
        });
    }

    pub(crate) fn send(&self, signal: u32) {
        let (signal, pid) = (format!("-{signal}"), self.child.0.id().to_string());
        assert!(Command::new("kill").args([&signal, &pid]).status().unwrap().success());
    }

    /// Waits for the end; returns the status and standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut err = String::new();
        self.err.read_to_string(&mut err).unwrap();
        (self.child.0.wait().unwrap(), err)
    }

    /// Waits for the end, which was a success; returns standard error.
    pub(crate) fn wait_for_success(self) -> String {
        let (status, err) = self.wait();
        assert!(status.success(), "{status}: {err}");
        err
    }
}
