//! Failures: one that is passed over, one that restarts after a pause, one too many.
//!
//! `cargo run --example supervision`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::num::ParseIntError;

use clockjack::{
    actor::{EscalationSink, FailureInfo},
    prelude::*,
};

/// Shares out a thousand, and counts how often.
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

/// Has a worker, and cannot do without.
struct Boss;

/// The worker has ended.
struct WorkerGone;

impl Actor for Boss {
    type Msg = WorkerGone;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let pause = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        // The first strategy that matches decides; what exceeds its limit goes further out.
        let props = Props::new(Worker::default)
            .supervise(Strategy::resume().only::<ParseIntError>())
            .supervise(Strategy::restart().limit(1, Duration::from_secs(60)).backoff(pause));
        let worker = cx.spawn_child("worker", props)?;
        cx.watch_with(&worker, WorkerGone)?;
        // "some" is passed over, the first "0" restarts, the second is one too many. What stands
        // behind a failure waits in the mailbox until that is settled.
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

/// Hears of what nobody below has settled.
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
    let report = rt.run(); // until the system ends, or Ctrl-C
    println!("over, with {} left behind", report.stragglers.len());
    Ok(())
}
