//! Console events end a system inside tokio that runs, and the second one the program; in processes
//! of their own.

use core::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use clockjack_rt::{
    RunConfig, TokioToolbox,
    actor::{Actor, ActorSystem, Context, Failure, Next, Signal, shutdown::Phase},
};
use clockjack_time::Resolution;

use crate::child::{self, CTRL_BREAK, Process, SIGINT, SIGTERM};

const TEST: &str = "tokio_run::what_the_child_does";

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
        if role == "fails" {
            talker.tell(()).unwrap();
        }
        let drain_timeout = (role == "short").then_some(Duration::from_millis(20));
        let mut run = pin!(system.run_with(RunConfig { drain_timeout, ..RunConfig::DEFAULT }));
        let first = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))).await;
        assert!(first.is_pending(), "it waits for an event");
        println!("ready");
        println!("ended: {}", run.await.termination.reason);
    });
}

fn start(role: &str) -> Process {
    let mut child = Process::start(TEST, role);
    child.read_until("ready");
    child
}

#[test]
fn a_signal_terminates_the_system_in_order() {
    for (event, end) in
        [(SIGINT, "ended: Ctrl-C"), (CTRL_BREAK, "ended: Ctrl-C"), (SIGTERM, "ended: SIGTERM")]
    {
        let mut child = start("polite");
        child.send(event);
        child.read_until("PostStop");
        child.read_until(end);
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second, code) in [(CTRL_BREAK, SIGINT, 130), (SIGINT, SIGTERM, 143)] {
        let mut child = start("slow");
        child.send(first);
        child.read_until("drains");
        child.send(second);
        assert_eq!(child.wait().0.code(), Some(code));
    }
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
fn a_failure_is_one_line_with_path_message_cause_and_decision() {
    let mut child = start("fails");
    let line = "clockjack[t]: actor /user/talker failed while handling (): out of paper; the actor \
                stops\n";
    assert_eq!(child.read_error(), line);
    child.send(SIGTERM);
    child.read_until("ended: SIGTERM");
    assert_eq!(child.wait_for_success(), "");
}
