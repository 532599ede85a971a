//! Console events end a runtime, as signals do on Unix. In a process of its own, since an event is
//! for a whole program.
#![expect(unsafe_code, reason = "std has no call that sends a console event")]

use core::{ffi::c_int, iter, time::Duration};
use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::windows::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use clockjack_rt::{
    RunConfig, Runtime,
    actor::{Actor, Context, Failure, Next, Signal},
    signals::{SignalConfig, SignalListener},
};

/// Far beyond what a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);

/// Says in the environment that this process is the child.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";
const TEST: &str = "console::what_the_child_does";

/// The child has a console of its own, without a window, so that an event reaches nobody else.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;
const CTRL_C: u32 = 0;
/// All processes on the console of the sender.
const EVERYBODY: u32 = 0;

#[link(name = "kernel32")]
unsafe extern "system" {
    /// Has no precondition.
    safe fn GenerateConsoleCtrlEvent(event: u32, group: u32) -> c_int;
}

struct Talker {
    is_deaf: bool,
}

impl Actor for Talker {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("{signal:?}");
        while self.is_deaf {
            thread::park();
        }
        Ok(Next::Stay)
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn what_the_child_does() {
    let Ok(role) = std::env::var(ROLE) else { return };
    // An event that arrives before the runtime listens must not end the child.
    let config = SignalConfig { stops_max: u32::MAX, ..SignalConfig::DEFAULT };
    let _early = SignalListener::new(config);
    let runtime = Runtime::new("t").unwrap();
    let is_deaf = role == "deaf";
    runtime.spawn("talker", move || Talker { is_deaf }).unwrap();
    thread::spawn(|| {
        for _line in io::stdin().lines() {
            let sent = GenerateConsoleCtrlEvent(CTRL_C, EVERYBODY);
            assert_ne!(sent, 0, "{}", io::Error::last_os_error());
        }
    });
    println!("ready");
    let report = runtime.run_with(RunConfig::DEFAULT);
    println!("ended: {} {:?}", report.termination.reason, report.signal);
}

/// A child that does not outlive a test that has failed, and the lines that it writes.
struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Process {
    fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .creation_flags(CREATE_NO_WINDOW)
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // The harness writes the name of the test before the first line.
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let process = Self { child, lines };
        assert!(process.says("ready", LONG));
        process
    }

    /// Whether a line ends so within this time.
    fn says(&self, end: &str, patience: Duration) -> bool {
        let mut lines = iter::from_fn(|| self.lines.recv_timeout(patience).ok());
        lines.any(|line| line.trim_end().ends_with(end))
    }

    /// The child sends the event to its console, which the parent is not on.
    fn request_event(&mut self) {
        let mut stdin = self.child.stdin.as_ref().expect("it is piped");
        stdin.write_all(b"\n").unwrap();
    }

    /// Requests Ctrl-C until the actor stops: the runtime may not listen yet.
    fn stop(&mut self) {
        self.request_event();
        while !self.says("PostStop", LONG) {
            self.request_event();
        }
    }
}

#[test]
fn a_console_event_terminates_the_system_in_order() {
    let mut child = Process::start("polite");
    child.stop();
    assert!(child.says("ended: Ctrl-C Some(Interrupt)", LONG));
    assert!(child.child.wait().unwrap().success());
}

#[test]
fn a_second_console_event_ends_the_program_at_once() {
    let mut child = Process::start("deaf");
    child.stop();
    child.request_event();
    assert_eq!(child.child.wait().unwrap().code(), Some(130));
}
