//! Events of a console that a test sends to a process.

#[expect(dead_code, reason = "the tests of clockjack-rt use the rest")]
#[path = "../../../clockjack-rt/tests/windows/child.rs"]
mod child;

use std::process::Command;

pub(crate) use child::{SIGINT, SIGTERM, role};
use clockjack_cli::exit_code;
use clockjack_rt::signals::{SignalConfig, SignalListener};

use super::TEST;

/// The first of two events: its name, and the exit code of a run that it ends. No event can come
/// after a closed console in Wine.
pub(crate) const FIRST: (u32, &str, u8) = (SIGINT, "Ctrl-C", exit_code::INTERRUPTED);
pub(crate) const SECOND: u32 = SIGTERM;

/// Runs another program on the console of this one, and ends as it does.
pub(crate) fn become_command(command: &mut Command) -> ! {
    // The events are for the other one, so they must not end this one.
    let config = SignalConfig { stops_max: u32::MAX, ..SignalConfig::DEFAULT };
    let _taken = SignalListener::new(config);
    let status = command.status().expect("it starts");
    std::process::exit(status.code().expect("each program has a code here"))
}

pub(crate) struct Process(child::Process);

impl Process {
    pub(crate) fn start(role: &str) -> Self {
        Self(child::Process::start(TEST, role))
    }

    /// The next line of standard output.
    pub(crate) fn read_line(&mut self) -> String {
        self.0.read_until("")
    }

    /// The next line of standard error.
    pub(crate) fn read_error(&mut self) -> String {
        self.0.read_error()
    }

    /// Sends events, one right after the other.
    pub(crate) fn send(&self, events: &[u32]) {
        events.iter().for_each(|event| self.0.send(*event));
    }

    /// The exit code, after the end.
    pub(crate) fn wait(self) -> Option<i32> {
        self.0.wait().0.code()
    }
}
