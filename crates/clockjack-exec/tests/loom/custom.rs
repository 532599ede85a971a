//! A custom cell with the word of a mailbox, and the executor of one thread.
#![expect(unsafe_code, reason = "its body is the one consumer of the mailbox")]

use core::any::TypeId;

use clockjack_exec::{
    Commands, Limits, LocalExecutor, Toolbox,
    custom::{self, Body, Outcome, Turn},
    exit::Caught,
};
use clockjack_sync::mail::{Mailbox, Pop};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};
use loom::thread;

/// A host in which nothing passes by itself.
struct Bench(ManualClock, ManualDriver);

impl Toolbox for Bench {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.0
    }
    fn driver(&self) -> &dyn TickDriver {
        &self.1
    }
    fn park(&self, _until: Option<Tick>) {}
    fn unpark(&self) {}
}

/// Takes what comes, and sleeps.
struct Taker;

impl Body for Taker {
    type Front = Mailbox<u32>;

    fn kind() -> TypeId {
        TypeId::of::<u32>()
    }

    fn unpark(front: &Mailbox<u32>) -> bool {
        front.call()
    }

    fn is_parked(front: &Mailbox<u32>) -> bool {
        front.is_asleep()
    }

    fn step(&mut self, turn: &Turn<'_, Mailbox<u32>>) -> Outcome {
        let mailbox = turn.front();
        // SAFETY: a cell has one runner at a time.
        unsafe { mailbox.look() };
        if turn.is_terminated() {
            return Outcome::Again;
        }
        let read = |value: *const u32| {
            // SAFETY: the mailbox hands out a valid value, once.
            unsafe { value.read() }
        };
        // SAFETY: as above; nothing is left of a number.
        match unsafe { mailbox.pop_or_idle(read) } {
            Pop::Empty => Outcome::Parked,
            Pop::Item(_) | Pop::Busy => Outcome::Again,
        }
    }

    fn panicked(&mut self, _: &Turn<'_, Mailbox<u32>>, _: Caught) -> Outcome {
        Outcome::End
    }

    fn ended(&mut self, _: &Turn<'_, Mailbox<u32>>) {}
}

/// The thread of an executor ends everything, also what another thread is just waking.
#[test]
fn an_executor_that_ends_waits_for_who_wakes_one_of_its_cells() {
    loom::model(|| {
        let bench =
            Bench(ManualClock::new(Resolution::MILLI), ManualDriver::new(Resolution::MILLI));
        let limits = Limits::SMALL.processes(4);
        let mut executor = LocalExecutor::new(bench, limits, Commands::new()).unwrap();
        let handle = executor.handle();
        let make = || (Mailbox::new(4), Taker);
        // SAFETY: the body is `Send`.
        let cell = unsafe { custom::start(handle.engine(), make, |_| ()) }.unwrap();
        executor.run_until_idle();
        let waker = thread::spawn(move || {
            if cell.push(1).unwrap().wake {
                // SAFETY: the push has ended its sleep.
                unsafe { cell.queue() };
            }
            cell
        });
        drop(executor);
        let _cell = waker.join().unwrap();
        assert_eq!(handle.engine().live_len(), 0, "a process was left behind");
    });
}
