//! A custom task with the word of a mailbox, and the executor of one thread.
#![expect(unsafe_code, reason = "its body is the one consumer of the mailbox")]

use core::{any::TypeId, ptr::NonNull};

use clockjack_exec::{
    Commands, Limits, LocalExecutor,
    custom_task::{self, CustomPollOutcome, CustomTask, CustomTaskRef, PollContext, run_next},
    exit::PanicPayload,
};
use clockjack_sync::mail::{EmptyToken, Mailbox, Pop, Popped};
use clockjack_testing::toolbox::{ByHand, Panics};
use clockjack_time::Resolution;
use loom::thread;

/// Takes what comes, and sleeps.
struct Taker;

impl CustomTask for Taker {
    type Shared = Mailbox<u32>;
    type ParkToken = EmptyToken;

    fn kind() -> TypeId {
        TypeId::of::<u32>()
    }

    fn unpark(shared: &Mailbox<u32>) -> bool {
        shared.notify()
    }

    fn is_parked(shared: &Mailbox<u32>) -> bool {
        shared.is_asleep()
    }

    unsafe fn park(shared: NonNull<Mailbox<u32>>, seen: EmptyToken) -> bool {
        // SAFETY: the caller is the runner, and the shared is there until it sleeps.
        unsafe { Mailbox::try_idle_with(shared.as_ptr(), seen) }
    }

    fn poll(&mut self, cx: &PollContext<'_, Mailbox<u32>>) -> CustomPollOutcome<EmptyToken> {
        let mailbox = cx.shared();
        // SAFETY: a task has one runner at a time.
        unsafe { mailbox.ack() };
        if cx.is_terminated() {
            return CustomPollOutcome::PollAgain;
        }
        let read = |value: *const u32| {
            // SAFETY: the mailbox hands out a valid value, once.
            unsafe { value.read() }
        };
        loop {
            // SAFETY: as above; nothing is left of a number.
            match unsafe { mailbox.pop_with(read) } {
                Popped::Item(_) => {}
                Popped::Empty(seen) => return CustomPollOutcome::Park(seen),
                Popped::Retry => return CustomPollOutcome::PollAgain,
            }
        }
    }

    fn on_panic(
        &mut self,
        _: &PollContext<'_, Mailbox<u32>>,
        _: PanicPayload,
    ) -> CustomPollOutcome<EmptyToken> {
        CustomPollOutcome::Finished
    }

    fn on_terminate(&mut self, _: &PollContext<'_, Mailbox<u32>>) {}
}

/// An executor without workers of its own, and a task that sleeps.
fn asleep() -> (LocalExecutor, CustomTaskRef<Mailbox<u32>>) {
    let (mut host, _clock) = ByHand::new(Resolution::MILLI);
    host.panics = Panics::GoThrough;
    let limits = Limits::SMALL.processes(4);
    let mut executor = LocalExecutor::new(host, limits, Commands::new()).unwrap();
    let make = || (Mailbox::new(4), Taker);
    // SAFETY: the body is `Send`.
    let task = unsafe { custom_task::start(executor.handle().executor(), make, |_| ()) }.unwrap();
    executor.run_until_idle();
    (executor, task)
}

/// Sends something, and wakes the task if it has to.
fn push(task: &CustomTaskRef<Mailbox<u32>>) {
    if task.push(1).unwrap().wake {
        // SAFETY: the push has ended its sleep.
        unsafe { task.schedule() };
    }
}

/// Once it is parked, another thread may poll a body, while the thread that has put it to
/// sleep is still on its way out.
#[test]
fn a_body_that_sleeps_is_not_borrowed_any_more() {
    loom::model(|| {
        let (executor, task) = asleep();
        let handle = executor.handle();
        // One has work already, the other comes with more.
        push(&task);
        let workers = [false, true].map(|comes_with_more| {
            let (task, handle) = (task.clone(), handle.clone());
            thread::spawn(move || {
                if comes_with_more {
                    push(&task);
                }
                // SAFETY: the body is `Send`, and these threads stand in for the workers.
                let _ = unsafe { run_next(handle.executor()) };
            })
        });
        for worker in workers {
            worker.join().unwrap();
        }
        // SAFETY: as above.
        while unsafe { run_next(handle.executor()) } != Pop::Empty {}
        assert!(task.is_idle(), "something is left, or it was not put to sleep");
    });
}

/// The thread of an executor ends everything, also what another thread is just waking.
#[test]
fn an_executor_that_ends_waits_for_who_wakes_one_of_its_cells() {
    loom::model(|| {
        let (executor, task) = asleep();
        let handle = executor.handle();
        let waker = thread::spawn(move || {
            push(&task);
            task
        });
        drop(executor);
        let _cell = waker.join().unwrap();
        assert_eq!(handle.executor().live_len(), 0, "a process was left behind");
    });
}
