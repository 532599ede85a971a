//! Signals end a runtime that runs, and the second one the program. In processes of their own,
//! since they are for a whole program.

use core::time::Duration;
use std::os::unix::process::ExitStatusExt as _;

use clockjack_rt::{
    RunConfig, Runtime,
    actor::{Actor, Context, Failure, Next, Signal},
};

use crate::child::{self, Process, SIGHUP, SIGINT, SIGTERM};

const TEST: &str = "signals::what_the_child_does";

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
        if self.is_deaf {
            // Until the program ends.
            std::thread::sleep(Duration::from_secs(3600));
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
    let mut n_hangups = 0;
    let on_hangup = move || {
        n_hangups += 1;
        println!("hangup {n_hangups}");
        assert_ne!(n_hangups, 1, "the first one");
    };
    let mut config = RunConfig::DEFAULT;
    match &*role {
        "short" => config.drain_timeout = Some(Duration::from_millis(20)),
        "reloads" | "reloads, and goes on" => config.on_hangup = Some(Box::new(on_hangup)),
        _ => {}
    }
    println!("ready");
    let report = runtime.run_with(config);
    println!("ended: {} {:?}", report.termination.reason, report.signal);
    if matches!(&*role, "afterwards" | "reloads, and goes on") {
        println!("waits");
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn start(role: &str) -> Process {
    let mut child = Process::start(TEST, role);
    child.read_until("ready");
    child.wait_for_handlers(&[SIGINT, SIGTERM]);
    child
}

#[test]
fn a_signal_terminates_the_system_in_order() {
    for (signal, end) in
        [(SIGINT, "ended: Ctrl-C Some(Interrupt)"), (SIGTERM, "ended: SIGTERM Some(Terminate)")]
    {
        let mut child = start("polite");
        child.send(signal);
        child.read_until("PostStop");
        child.read_until(end);
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second, code) in
        [(SIGINT, SIGINT, 130), (SIGTERM, SIGTERM, 143), (SIGTERM, SIGINT, 130)]
    {
        let mut child = start("deaf");
        child.send(first);
        child.read_until("PostStop");
        child.send(second);
        let (status, _) = child.wait();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
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
fn an_ignored_interrupt_stays_ignored_with_a_warning_and_the_other_signal_works() {
    let by = ["env", "--default-signal=TERM,HUP", "--ignore-signal=INT"];
    let mut child = Process::start_by(&by, TEST, "polite");
    child.read_until("ready");
    child.wait_for_handlers(&[SIGTERM]);
    child.send(SIGINT);
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate)");
    let warning = "clockjack[t]: SIGINT was ignored when the program started, and stays ignored; \
                   use SIGTERM to stop the program\n";
    assert_eq!(child.wait_for_success(), warning);
}

#[test]
fn other_ignored_signals_are_handled() {
    let by = ["env", "--default-signal=INT", "--ignore-signal=TERM,HUP"];
    let mut child = Process::start_by(&by, TEST, "polite");
    child.read_until("ready");
    child.wait_for_handlers(&[SIGINT, SIGTERM]);
    // Without a hook it is left alone.
    child.send(SIGHUP);
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate)");
    assert_eq!(child.wait_for_success(), "");
}

#[test]
fn a_handler_that_cannot_be_installed_is_a_warning() {
    // No descriptor is left for the pair of sockets.
    let by = ["sh", "-c", "ulimit -n 4; exec \"$@\"", "sh", "env", "--default-signal=INT,TERM"];
    let mut child = Process::start_by(&by, TEST, "polite");
    for signal in ["SIGINT", "SIGTERM"] {
        let warning = format!("clockjack[t]: cannot install a handler for {signal}: ");
        let err = child.read_error();
        assert!(err.starts_with(&warning), "{err}");
    }
    child.send(SIGTERM);
    let (status, err) = child.wait();
    assert_eq!(status.signal(), Some(15), "{err}");
}

#[test]
fn a_hangup_calls_its_hook_which_may_panic_and_the_run_goes_on() {
    let mut child = start("reloads");
    child.wait_for_handlers(&[SIGHUP]);
    for n in 1..=3 {
        child.send(SIGHUP);
        child.read_until(&format!("hangup {n}"));
    }
    child.send(SIGTERM);
    child.read_until("PostStop");
    child.read_until("ended: SIGTERM Some(Terminate)");
    let err = child.wait_for_success();
    let ours: Vec<_> = err.lines().filter(|line| line.starts_with("clockjack")).collect();
    assert_eq!(ours.len(), 1, "{err}");
    assert!(ours[0].starts_with("clockjack[t]: the hook for SIGHUP panicked: "), "{err}");
}

#[test]
fn without_a_hook_a_hangup_does_what_it_always_does() {
    let child = start("polite");
    child.send(SIGHUP);
    let (status, _) = child.wait();
    assert_eq!((status.code(), status.signal()), (None, Some(1)));
}

#[test]
fn a_hangup_that_was_ignored_at_the_start_is_ignored_again_after_the_run() {
    let by = ["env", "--default-signal=INT,TERM", "--ignore-signal=HUP"];
    let mut child = Process::start_by(&by, TEST, "reloads, and goes on");
    child.read_until("ready");
    child.wait_for_handlers(&[SIGINT, SIGTERM, SIGHUP]);
    child.send(SIGHUP);
    child.read_until("hangup 1");
    child.send(SIGINT);
    child.read_until("waits");
    child.send(SIGHUP);
    child.send(SIGTERM);
    let (status, _) = child.wait();
    assert_eq!((status.code(), status.signal()), (Some(143), None));
}

#[test]
fn after_the_run_a_signal_ends_the_program() {
    let mut child = start("afterwards");
    child.send(SIGINT);
    child.read_until("waits");
    child.send(SIGTERM);
    let (status, _) = child.wait();
    assert_eq!((status.code(), status.signal()), (Some(143), None));
}
