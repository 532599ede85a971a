//! Signals to a task whose body another crate writes, as an actor is.
#![expect(unsafe_code, reason = "its body is the one consumer of the mailbox")]

use core::{any::TypeId, ptr::NonNull};

use clockjack_exec::{
    Tag,
    builtin::{Monitor, Unmonitor},
    custom_task::{self, CustomPollOutcome, CustomTask, PollContext},
    exit::PanicPayload,
};
use clockjack_sync::mail::{EmptyToken, Mailbox, Popped};

use crate::bench::{Log, Run, asker};

/// Sleeps until it is asked to stop.
struct Sleeper(Log);

impl CustomTask for Sleeper {
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
        if let Some(reason) = cx.take_cancel() {
            self.0.say(reason);
            return CustomPollOutcome::Finished;
        }
        // SAFETY: as above; nobody sends anything.
        match unsafe { mailbox.pop_with(|_| ()) } {
            Popped::Empty(seen) => CustomPollOutcome::Park(seen),
            Popped::Item(()) | Popped::Retry => CustomPollOutcome::PollAgain,
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

#[test]
fn a_task_is_asked_to_stop_behind_however_many_other_signals() {
    // More than twice as many as one poll of a process handles.
    const PAIRS: u64 = 300;
    let mut run = Run::new();
    let (log, of_asker) = (Log::default(), Log::default());
    let handle = run.handle();
    let make = || (Mailbox::new(4), Sleeper(log.clone()));
    // SAFETY: the body is `Send`.
    let task = unsafe { custom_task::start(handle.executor(), make, |_| ()) }.unwrap();
    run.idle();
    let pid = task.pid();
    let asks = asker(&of_asker, move |out| {
        for n in 0..PAIRS {
            out.yield_command(Tag(2 * n), Monitor(pid));
            out.yield_command(Tag(2 * n + 1), Unmonitor(pid));
        }
    });
    drop(run.exec.submit(asks));
    assert!(run.exec.step_one(), "the process signals the task, which has not run yet");
    handle.executor().begin_shutdown();
    run.idle();
    log.expect(&["shutdown"]);
    assert!(task.is_complete());
}
