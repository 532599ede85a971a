//! Signals stop a system on Embassy: a task waits for a [`SignalListener`] and shuts the system
//! down. In processes of their own, since signals are for a whole program.
#![cfg(target_os = "linux")]

#[path = "../../../clockjack-rt/tests/support/child.rs"]
mod child;
#[expect(clippy::disallowed_methods, reason = "what is waited for is another process")]
#[path = "../../../clockjack-rt/tests/support/eventually.rs"]
mod eventually;

use core::time::Duration;
use std::os::unix::process::ExitStatusExt as _;

use child::{Process, SIGHUP, SIGINT, SIGTERM};
use clockjack_actor::{Actor, Context, Failure, Next, Signal, shutdown::Phase};
use clockjack_rt::signals::{Hangup, SignalConfig, SignalEvent, SignalListener};
use clockjack_testing::awaits_deadline;

use crate::{
    platform,
    system::{LONG, small},
};

const TEST: &str = "signals::what_the_child_does";

/// Prints its signals; a slow one adds a task to the shutdown that never completes.
struct Talker {
    is_slow: bool,
}

impl Actor for Talker {
    type Msg = ();

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.is_slow {
            cx.system().on_shutdown(Phase::BEFORE_SERVICE_UNBIND, "never ends", async {
                println!("drains");
                core::future::pending().await
            })?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("{signal:?}");
        Ok(Next::Stay)
    }
}

#[test]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "its parent reads it")]
fn what_the_child_does() {
    let Some(role) = child::role() else { return };
    platform::run(async move |_| {
        let mut system = small();
        let is_slow = role != "polite";
        system.spawn("talker", move || Talker { is_slow }).expect("there is room");
        let config = SignalConfig { hangup: Hangup::Listen, ..SignalConfig::DEFAULT };
        let mut signals = SignalListener::new(config);
        signals.warnings().iter().for_each(|warning| eprintln!("{warning}"));
        println!("ready");
        let signal = loop {
            match system.drive(signals.next()).await.expect("the driver is not stopped") {
                SignalEvent::Stop(signal) => break signal,
                other => println!("{other:?}"),
            }
        };
        let timeout = if role == "short" { Duration::from_millis(20) } else { LONG };
        let report = awaits_deadline(timeout, system.shutdown(timeout)).await;
        let is_left = report.stragglers.iter().any(|path| path.name() == "talker");
        println!("ended: {signal:?}, is left: {is_left}");
    });
}

fn start(role: &str) -> Process {
    let mut child = Process::start(TEST, role);
    child.read_until("ready");
    child.wait_for_handlers(&[SIGINT, SIGTERM, SIGHUP]);
    child
}

#[test]
fn a_signal_terminates_the_system_in_order() {
    for (signal, name) in [(SIGINT, "Interrupt"), (SIGTERM, "Terminate")] {
        let mut child = start("polite");
        child.send(SIGHUP);
        child.read_until("Hangup");
        child.send(signal);
        child.read_until("PostStop");
        child.read_until(&format!("ended: {name}, is left: false"));
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second, code) in [(SIGINT, SIGTERM, 143), (SIGTERM, SIGINT, 130)] {
        let mut child = start("slow");
        child.send(first);
        child.read_until("drains");
        child.send(second);
        let (status, _) = child.wait();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
    }
}

#[test]
fn a_drain_that_takes_too_long_is_reported_and_the_program_goes_on() {
    let mut child = start("short");
    child.send(SIGTERM);
    child.read_until("drains");
    child.read_until("ended: Terminate, is left: true");
    assert_eq!(child.wait_for_success(), "");
}

#[test]
fn an_ignored_interrupt_stays_ignored_with_a_warning_and_the_other_signal_works() {
    let by = ["env", "--default-signal=TERM,HUP", "--ignore-signal=INT"];
    let mut child = Process::start_by(&by, TEST, "polite");
    child.read_until("ready");
    child.wait_for_handlers(&[SIGTERM]);
    let err = child.read_error();
    child.send(SIGINT);
    child.send(SIGTERM);
    child.read_until("ended: Terminate, is left: false");
    assert_eq!(child.wait_for_success(), "");
    assert!(err.starts_with("SIGINT was ignored when the program started"), "{err}");
}
