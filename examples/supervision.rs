//! Failures: one that is ignored, one that causes a restart with back-off, one too many.
//!
//! `cargo run --example supervision`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::num::ParseIntError;

use clockjack::{
    actor::{EscalationSink, FailureInfo},
    prelude::*,
};

/// Divides a thousand, and counts how often.
#[derive(Default)]
struct Worker {
    shared_out: u32,
}

impl Actor for Worker {
    type Msg = &'static str;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, by: &'static str) -> Result<Next, Failure> {
        let each = 1000_u32 / by.parse::<u32>()?; // an error is a failure, and so is a panic
        self.shared_out += 1;
        println!("worker: {each} for each of {by}, and that was number {}", self.shared_out);
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::PreRestart => println!("worker: I start again, with nothing done"),
            Signal::PostStop => println!("worker: I give up"),
            _ => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

/// Has a worker, and fails without it.
struct Boss;

/// The worker has stopped.
struct WorkerGone;

impl Actor for Boss {
    type Msg = WorkerGone;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let pause = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        // The first matching strategy decides; a failure beyond its limit goes to the next one.
        let props = Props::new(Worker::default)
            .supervise(Strategy::resume().only::<ParseIntError>())
            .supervise(Strategy::restart().limit(1, Duration::from_secs(60)).backoff(pause));
        let worker = cx.spawn_child("worker", props)?;
        cx.watch_with(&worker, WorkerGone)?;
        // "some" is ignored, the first "0" causes a restart, the second exceeds the limit.
        // Messages behind a failure wait in the mailbox until the failure is handled.
        for by in ["4", "some", "5", "0", "8", "0"] {
            worker.tell(by)?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, _: WorkerGone) -> Result<Next, Failure> {
        println!("boss: my worker is gone");
        Err(Failure::msg("no worker left"))
    }
}

/// Receives the failures that no supervisor handled.
struct Pager;

impl EscalationSink for Pager {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        let (_, path) = info.origin();
        println!("pager: {path} failed: {}", info.reason);
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let plant = ActorSystem::builder("plant")
        .supervise_users(Scope::AllForOne, Strategy::escalate())
        .escalation(Pager);
    let rt = Runtime::start(plant)?;
    rt.spawn("boss", || Boss)?;
    let report = rt.run(); // until the system stops, or Ctrl-C
    println!("over, with {} left behind", report.termination.stragglers.len());
    Ok(())
}
