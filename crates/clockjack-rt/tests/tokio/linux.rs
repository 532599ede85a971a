//! Signals end a system inside tokio that runs, and the second one the program; in processes of
//! their own.
#![cfg(target_os = "linux")]

#[path = "../support/child.rs"]
mod child;
#[path = "../support/eventually.rs"]
mod eventually;

use core::time::Duration;
use std::os::unix::process::ExitStatusExt as _;

use child::{Process, SIGHUP, SIGINT, SIGTERM};
use clockjack_rt::{
    RunConfig, TokioToolbox,
    actor::{Actor, ActorSystem, Context, Failure, Next, Signal, shutdown::Phase},
};
use clockjack_time::Resolution;

const TEST: &str = "signals::what_the_child_does";

/// Prints its signals, and fails to handle messages; a slow one adds a task to the shutdown that
/// never completes.
struct Talker {
    is_slow: bool,
}

impl Actor for Talker {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.is_slow {
            cx.system().on_shutdown(
                Phase::BEFORE_SERVICE_UNBIND,
                "never ends",
                core::future::pending(),
            )?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Err(Failure::msg("out of paper"))
    }

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("{signal:?}");
        Ok(Next::Stay)
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn what_the_child_does() {
    let Some(role) = child::role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let toolbox = TokioToolbox::new(Resolution::MILLI);
        let mut system = toolbox.system(ActorSystem::builder("t")).unwrap();
        let is_slow = matches!(&*role, "slow" | "short");
        let talker = system.spawn("talker", move || Talker { is_slow }).unwrap();
        if role == "fails" {
            talker.tell(()).unwrap();
        }
        let drain_timeout = (role == "short").then_some(Duration::from_millis(20));
        let on_hangup = || println!("hangup");
        println!("ready");
        let config = RunConfig { drain_timeout, on_hangup: Some(Box::new(on_hangup)) };
        let report = system.run_with(config).await;
        println!("ended: {}", report.reason);
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
    for (signal, end) in [(SIGINT, "ended: Ctrl-C"), (SIGTERM, "ended: SIGTERM")] {
        let mut child = start("polite");
        child.send(SIGHUP);
        child.read_until("hangup");
        child.send(signal);
        child.read_until("PostStop");
        child.read_until(end);
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let child = start("slow");
    // The child may handle the two in either order.
    child.send(SIGTERM);
    child.send(SIGINT);
    let (status, _) = child.wait();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
    assert_eq!(status.signal(), None);
}

#[test]
fn a_drain_that_takes_too_long_is_reported_and_the_run_ends() {
    let mut child = start("short");
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM");
    let err = child.wait_for_success();
    assert!(err.contains("clockjack[t]: actor /user/talker did not stop within 20ms"), "{err}");
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
    child.read_until("ended: SIGTERM");
    assert_eq!(child.wait_for_success(), "");
    assert!(err.starts_with("clockjack[t]: SIGINT was ignored when the program started"), "{err}");
}

#[test]
fn a_failure_is_one_line_with_path_message_cause_and_decision() {
    let mut child = start("fails");
    let line = "clockjack[t]: actor /user/talker failed while handling (): out of paper; the actor \
                stops\n";
    assert_eq!(child.read_error(), line);
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM");
    assert_eq!(child.wait_for_success(), "");
}
