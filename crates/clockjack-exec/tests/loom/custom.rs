//! A custom cell with the word of a mailbox, and the executor of one thread.
#![expect(unsafe_code, reason = "its body is the one consumer of the mailbox")]

use core::{any::TypeId, ptr::NonNull};

use clockjack_exec::{
    Commands, Limits, LocalExecutor,
    custom::{self, Body, CustomRef, Outcome, Turn, run_next},
    exit::Caught,
};
use clockjack_sync::mail::{Mailbox, Pop, Popped, Seen};
use clockjack_testing::toolbox::{ByHand, Panics};
use clockjack_time::Resolution;
use loom::thread;

/// Takes what comes, and sleeps.
struct Taker;

impl Body for Taker {
    type Front = Mailbox<u32>;
    type Sleep = Seen;

    fn kind() -> TypeId {
        TypeId::of::<u32>()
    }

    fn unpark(front: &Mailbox<u32>) -> bool {
        front.call()
    }

    fn is_parked(front: &Mailbox<u32>) -> bool {
        front.is_asleep()
    }

    unsafe fn sleep(front: NonNull<Mailbox<u32>>, seen: Seen) -> bool {
        // SAFETY: the caller is the runner, and the front is there until it sleeps.
        unsafe { Mailbox::idle_from(front.as_ptr(), seen) }
    }

    fn step(&mut self, turn: &Turn<'_, Mailbox<u32>>) -> Outcome<Seen> {
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
        loop {
            // SAFETY: as above; nothing is left of a number.
            match unsafe { mailbox.pop_by(read) } {
                Popped::Item(_) => {}
                Popped::Empty(seen) => return Outcome::Sleep(seen),
                Popped::Busy => return Outcome::Again,
            }
        }
    }

    fn panicked(&mut self, _: &Turn<'_, Mailbox<u32>>, _: Caught) -> Outcome<Seen> {
        Outcome::End
    }

    fn ended(&mut self, _: &Turn<'_, Mailbox<u32>>) {}
}

/// An executor without workers of its own, and a cell that sleeps.
fn asleep() -> (LocalExecutor, CustomRef<Mailbox<u32>>) {
    let (mut host, _clock) = ByHand::new(Resolution::MILLI);
    host.panics = Panics::GoThrough;
    let limits = Limits::SMALL.processes(4);
    let mut executor = LocalExecutor::new(host, limits, Commands::new()).unwrap();
    let make = || (Mailbox::new(4), Taker);
    // SAFETY: the body is `Send`.
    let cell = unsafe { custom::start(executor.handle().engine(), make, |_| ()) }.unwrap();
    executor.run_until_idle();
    (executor, cell)
}

/// Sends something, and wakes the cell if it has to.
fn push(cell: &CustomRef<Mailbox<u32>>) {
    if cell.push(1).unwrap().wake {
        // SAFETY: the push has ended its sleep.
        unsafe { cell.queue() };
    }
}

/// From its sleep on a body may have its next turn elsewhere, while the thread that has put it to
/// sleep is still on its way out.
#[test]
fn a_body_that_sleeps_is_not_borrowed_any_more() {
    loom::model(|| {
        let (executor, cell) = asleep();
        let handle = executor.handle();
        // One has work already, the other comes with more.
        push(&cell);
        let workers = [false, true].map(|comes_with_more| {
            let (cell, handle) = (cell.clone(), handle.clone());
            thread::spawn(move || {
                if comes_with_more {
                    push(&cell);
                }
                // SAFETY: the body is `Send`, and these threads stand in for the workers.
                let _ = unsafe { run_next(handle.engine()) };
            })
        });
        for worker in workers {
            worker.join().unwrap();
        }
        // SAFETY: as above.
        while unsafe { run_next(handle.engine()) } != Pop::Empty {}
        assert!(cell.is_idle(), "something is left, or it was not put to sleep");
    });
}

/// The thread of an executor ends everything, also what another thread is just waking.
#[test]
fn an_executor_that_ends_waits_for_who_wakes_one_of_its_cells() {
    loom::model(|| {
        let (executor, cell) = asleep();
        let handle = executor.handle();
        let waker = thread::spawn(move || {
            push(&cell);
            cell
        });
        drop(executor);
        let _cell = waker.join().unwrap();
        assert_eq!(handle.engine().live_len(), 0, "a process was left behind");
    });
}
