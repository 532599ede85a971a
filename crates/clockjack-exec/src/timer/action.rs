//! What a timer of the executor does when it is due.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, task::Waker};

use clockjack_time::Tick;

use crate::{
    command::WeakCompleter, executor::ExecutorShared, pid::Pid, task, timer::period::Period,
};

/// The value of a timer.
pub(crate) enum TimerAction {
    /// Wakes a task of this executor, if it is still alive. By its pid and not by a reference: most
    /// timers are cancelled, and then no count was changed.
    WakeTask(Pid),
    /// Calls another waker.
    Wake(Waker),
    /// Completes a command of a process.
    Complete(Box<CommandTimer>),
}

/// A command that a timer completes. It holds no reference to the process, which is freed as soon
/// as it ends.
pub(crate) struct CommandTimer {
    pub(crate) completer: WeakCompleter,
    /// For an interval: its period, and when it is due next.
    pub(crate) period: Option<Period>,
}

/// What an interval reports each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalTick {
    /// The tick at which it was due.
    pub due: Tick,
    /// How many earlier due times were skipped, because they had passed already.
    pub missed: u64,
}

/// What must not be done while the shard's guard is held.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "a command timer goes back into its timer in the same box")]
pub(crate) struct DeferredActions {
    wakers: Vec<Waker>,
    command_timers: Vec<Box<CommandTimer>>,
}

impl TimerAction {
    /// The action that has the effect of this waker.
    pub(crate) fn waking(executor: &ExecutorShared, waker: &Waker) -> Self {
        match task::header_of(waker) {
            Some(header) if header.is_of(executor) => Self::WakeTask(header.pid()),
            _ => Self::Wake(waker.clone()),
        }
    }

    /// Does what may be done under the shard's guard, and defers the rest. No user code is called,
    /// with one exception: a process that has ended, and to which nobody else holds a reference, is
    /// freed here; the drop of its result, which nobody took, runs under `catch_unwind`.
    pub(crate) fn fire(self, executor: &ExecutorShared, now: Tick, deferred: &mut DeferredActions) {
        match self {
            Self::WakeTask(pid) => executor.wake(pid),
            // A task of another executor is included: its toolbox, and what its last waker holds,
            // may be user code.
            Self::Wake(waker) => deferred.wakers.push(waker),
            Self::Complete(mut command_timer) => {
                let Some(completer) = command_timer.completer.upgrade(executor) else { return };
                match command_timer.period {
                    None => completer.reply(()),
                    Some(ref mut period) => {
                        let missed = period.catch_up(now);
                        completer.send_reply(IntervalTick { due: period.due(), missed });
                        completer.forget();
                        period.advance_to_next();
                        deferred.command_timers.push(command_timer);
                    }
                }
            }
        }
    }

    /// The timers were closed: notifies the task that waits.
    pub(crate) fn closed(self, executor: &ExecutorShared) {
        match self {
            Self::WakeTask(pid) => executor.wake(pid),
            Self::Wake(waker) => executor.wake_foreign(waker),
            // Dropping the completer completes the command with a failure.
            Self::Complete(command_timer) => drop(command_timer.completer.upgrade(executor)),
        }
    }

    /// The timer was cancelled: drops what it holds, under `catch_unwind` if that may be user code.
    /// The timer of a command is cancelled when its process has ended, so nobody waits for the
    /// completion.
    pub(crate) fn dropped(self, executor: &ExecutorShared) {
        match self {
            Self::WakeTask(_) | Self::Complete(_) => {}
            Self::Wake(waker) => executor.drop_catching_panic(waker),
        }
    }
}

impl DeferredActions {
    /// Does the rest, after the guard was released.
    pub(crate) fn finish(&mut self, executor: &ExecutorShared) {
        for waker in self.wakers.drain(..) {
            executor.wake_foreign(waker);
        }
        for command_timer in self.command_timers.drain(..) {
            command_timer.arm_again(executor);
        }
    }
}

impl CommandTimer {
    /// Arms the timer for its next due time, unless the process has ended.
    fn arm_again(self: Box<Self>, executor: &ExecutorShared) {
        let Some(period) = self.period else { return };
        let Some(completer) = self.completer.upgrade(executor) else { return };
        // If the timer is refused, dropping the completer reports the failure.
        if !completer.is_receivable()
            || executor.arm(period.due(), TimerAction::Complete(self)).is_ok()
        {
            completer.forget();
        }
    }
}

impl fmt::Debug for TimerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WakeTask(_) => "WakeTask",
            Self::Wake(_) => "Wake",
            Self::Complete(_) => "ErasedCompleter",
        })
    }
}
