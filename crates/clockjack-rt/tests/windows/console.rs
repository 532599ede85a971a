//! Console events end a runtime that runs, and the second one the program, as signals do on Unix.
//! In processes of their own, since an event is for a whole program.

use core::time::Duration;
use std::thread;

use clockjack_rt::{
    RunConfig, Runtime,
    actor::{Actor, Context, Failure, Next, Signal},
};

use crate::child::{self, CTRL_BREAK, LOGOFF, Process, SIGINT, SIGTERM};

/// The system shuts down.
const SHUTDOWN: u32 = 6;

const TEST: &str = "console::what_the_child_does";

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
    let Some(role) = child::role() else { return };
    let runtime = Runtime::new("t").unwrap();
    let is_deaf = matches!(&*role, "deaf" | "short");
    runtime.spawn("talker", move || Talker { is_deaf }).unwrap();
    let drain_timeout = (role == "short").then_some(Duration::from_millis(20));
    println!("ready");
    let report = runtime.run_with(RunConfig { drain_timeout, ..RunConfig::DEFAULT });
    println!("ended: {} {:?}", report.termination.reason, report.signal);
}

fn start(role: &str) -> Process {
    let mut child = Process::start(TEST, role);
    child.read_until("ready");
    child
}

#[test]
fn a_signal_terminates_the_system_in_order() {
    for (event, end) in [
        (SIGINT, "ended: Ctrl-C Some(Interrupt)"),
        (CTRL_BREAK, "ended: Ctrl-C Some(Interrupt)"),
        (SIGTERM, "ended: SIGTERM Some(Terminate)"),
        (SHUTDOWN, "ended: SIGTERM Some(Terminate)"),
    ] {
        let mut child = start("polite");
        child.send(event);
        child.read_until("PostStop");
        child.read_until(end);
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second, code) in
        [(SIGINT, SIGINT, 130), (CTRL_BREAK, SIGINT, 130), (SIGINT, SIGTERM, 143)]
    {
        let mut child = start("deaf");
        child.send(first);
        child.read_until("PostStop");
        child.send(second);
        assert_eq!(child.wait().0.code(), Some(code));
    }
}

#[test]
fn a_drain_that_takes_too_long_is_reported_and_the_run_ends() {
    let mut child = start("short");
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate)");
    let err = child.wait_for_success();
    assert!(err.starts_with("clockjack[t]: runtime shut down (SIGTERM): not clean"), "{err}");
    assert!(err.contains("actor /user/talker did not stop in time"), "{err}");
}

#[test]
fn a_user_who_logs_off_is_left_to_the_next_handler() {
    let mut child = start("polite");
    // A handler that takes the event would print nothing.
    child.send(LOGOFF);
    child.read_until("left alone");
    child.send(SIGINT);
    child.read_until("ended: Ctrl-C Some(Interrupt)");
    assert_eq!(child.wait_for_success(), "");
}
