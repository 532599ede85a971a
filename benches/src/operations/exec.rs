//! Operations of `clockjack-exec`, on one thread.

use core::hint::black_box;

use clockjack_exec::{
    Commands, Event, Events, Failure, Limits, LocalExecutor, Process, StepOutput, Toolbox,
};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("exec/future/spawn_finish", 1000, || {
            let mut executor = start();
            move |n| {
                (0..n).for_each(|i| {
                    drop(executor.spawn_future(async move { black_box(i) }));
                    executor.run_until_idle();
                });
            }
        }),
        operation("exec/process/tell_step", 1000, || {
            let mut executor = start();
            let to = executor.submit(Adder(0)).expect("room for one");
            executor.run_until_idle();
            move |n| {
                (0..n).for_each(|i| {
                    to.tell(u64::from(i)).expect("room for one");
                    executor.run_until_idle();
                });
            }
        }),
    ]
}

fn start() -> LocalExecutor {
    let platform =
        Platform(ManualClock::new(Resolution::MILLI), ManualDriver::new(Resolution::MILLI));
    LocalExecutor::new(platform, Limits::DEFAULT, Commands::new()).expect("no command twice")
}

struct Platform(ManualClock, ManualDriver);

impl Toolbox for Platform {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.0
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.1
    }

    fn park(&self, _until: Option<Tick>) {}

    fn unpark(&self) {}
}

struct Adder(u64);

impl Process for Adder {
    type Message = u64;

    fn step(&mut self, events: &mut Events<'_, u64>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            if let Event::Message(n) = event {
                self.0 += n;
            }
        }
        out.wait();
        Ok(())
    }
}
