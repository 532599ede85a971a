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
    actor::{Actor, ActorSystem, Context, Failure, Mailbox, Next, Props, Signal, shutdown::Phase},
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
        if role.starts_with("fails") {
            talker.tell(()).unwrap();
        }
        if role == "unsaved" {
            let save = async { Err(Failure::msg("the disk is full")) };
            system.system().on_shutdown(Phase::SERVICE_STOP, "save", save).unwrap();
        }
        if role == "overloaded" {
            let props = Props::from_fn(|_, _: u32| Ok(Next::Stay)).mailbox(Mailbox::bounded(4));
            let slow = system.spawn("slow", props).unwrap();
            assert_eq!((0..1004).filter(|n| slow.tell(*n).is_err()).count(), 1000);
        }
        // Who has a handle can start another actor.
        let handle = (role == "fails, and is kept").then(|| system.system().clone());
        let drain_timeout = (role == "short").then_some(Duration::from_millis(20));
        let on_hangup = || println!("hangup");
        println!("ready");
        let config = RunConfig { drain_timeout, on_hangup: Some(Box::new(on_hangup)) };
        let report = system.run_with(config).await;
        drop(handle);
        let (reason, failure) = (&report.termination.reason, &report.failure);
        let failed = failure.as_ref().map(|info| info.path.to_string());
        let is_success = report.is_success();
        println!("ended: {reason} {:?} {failed:?} {is_success}", report.signal);
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
    for (signal, end) in [
        (SIGINT, "ended: Ctrl-C Some(Interrupt) None true"),
        (SIGTERM, "ended: SIGTERM Some(Terminate) None true"),
    ] {
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
    for (first, second, code) in
        [(SIGINT, SIGINT, 130), (SIGINT, SIGTERM, 143), (SIGTERM, SIGINT, 130)]
    {
        let mut child = start("slow");
        child.send(first);
        child.read_until("drains");
        child.send(second);
        let (status, _) = child.wait();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
    }
}

#[test]
fn a_drain_that_takes_too_long_is_reported_and_the_run_ends() {
    let mut child = start("short");
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate) None false");
    let err = child.wait_for_success();
    assert!(err.starts_with("clockjack[t]: runtime shut down (SIGTERM): not clean"), "{err}");
    assert!(err.contains("\n  actor /user/talker did not stop in time"), "{err}");
}

#[test]
fn a_phase_that_fails_while_the_system_drains_is_a_warning() {
    let mut child = start("unsaved");
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate) None false");
    let err = child.wait_for_success();
    assert!(err.starts_with("clockjack[t]: runtime shut down (SIGTERM): not clean"), "{err}");
    assert!(err.contains("the disk is full"), "{err}");
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
    child.read_until("ended: SIGTERM Some(Terminate) None true");
    assert_eq!(child.wait_for_success(), "");
    assert!(err.starts_with("clockjack[t]: SIGINT was ignored when the program started"), "{err}");
}

#[test]
fn a_failure_is_one_line_with_path_message_cause_and_decision() {
    // It may have ended before anybody could see that it listens.
    let mut child = Process::start(TEST, "fails");
    let line = "clockjack[t]: actor /user/talker failed while handling (): out of paper; the actor \
                stops\n";
    assert_eq!(child.read_error(), line);
    child.read_until("(handling ()), stop None Some(\"/user/talker\") false");
    assert_eq!(child.wait_for_success(), "");
}

#[test]
fn a_handle_of_the_program_keeps_the_run_after_the_last_actor_has_failed() {
    let mut child = start("fails, and is kept");
    let err = child.read_error();
    assert!(err.contains("out of paper"), "{err}");
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate) None true");
    assert_eq!(child.wait_for_success(), "");
}

#[test]
fn refused_messages_are_one_line_that_names_the_worst_mailbox_while_the_program_runs() {
    let mut child = start("overloaded");
    let line =
        "clockjack[t]: actor /user/slow: the mailbox was full and has refused 1000 messages\n";
    assert_eq!(child.read_error(), line);
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM Some(Terminate) None true");
    assert_eq!(child.wait_for_success(), "");
}
