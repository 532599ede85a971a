//! What a timer of the executor does when it falls due.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, task::Waker};

use clockjack_time::Tick;

use crate::{command::WeakCompleter, executor::ExecutorShared, period::Period, pid::Pid, task};

/// The value of a timer.
pub(crate) enum TimerAction {
    /// Wakes a process of this executor, if it is still there. By its name and not by a reference:
    /// most timers are cancelled, and then nothing was counted.
    WakeTask(Pid),
    /// Wakes somebody else.
    Wake(Waker),
    /// Answers a command of a process.
    Complete(Box<CommandTimer>),
}

/// A command that a timer answers. The process is not counted: if it ends, however long it was to
/// wait, it is gone at once.
pub(crate) struct CommandTimer {
    pub(crate) completer: WeakCompleter,
    /// For an interval: its period, and when it is due next.
    pub(crate) period: Option<Period>,
}

/// What an interval tells each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalTick {
    /// The tick that it was due at.
    pub due: Tick,
    /// How many earlier ones were left out, because time had passed them already.
    pub missed: u64,
}

/// What could not be done while the lease was held.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "an command_timer goes back into its timer in the box it came in"
)]
pub(crate) struct DeferredActions {
    wakers: Vec<Waker>,
    command_timers: Vec<Box<CommandTimer>>,
}

impl TimerAction {
    /// What wakes whom this waker wakes.
    pub(crate) fn waking(executor: &ExecutorShared, waker: &Waker) -> Self {
        match task::header_of(waker) {
            Some(header) if header.is_of(executor) => Self::WakeTask(header.pid()),
            _ => Self::Wake(waker.clone()),
        }
    }

    /// Does what can be done under the lease, and leaves the rest. Nothing of the user's is called,
    /// but in one case: a process that has ended meanwhile, and of which nobody else holds a
    /// reference, is freed here with the result that nobody took, guarded.
    pub(crate) fn fire(self, executor: &ExecutorShared, now: Tick, deferred: &mut DeferredActions) {
        match self {
            Self::WakeTask(pid) => executor.wake(pid),
            // Also a process of another executor: its toolbox, and what its last waker holds, is the
            // user's.
            Self::Wake(waker) => deferred.wakers.push(waker),
            Self::Complete(mut command_timer) => {
                let Some(completer) = command_timer.completer.upgrade(executor) else { return };
                match command_timer.period {
                    None => completer.reply(()),
                    Some(ref mut period) => {
                        let missed = period.catch_up(now);
                        completer.send_reply(IntervalTick { due: period.due(), missed });
                        completer.forget();
                        period.go_on();
                        deferred.command_timers.push(command_timer);
                    }
                }
            }
        }
    }

    /// The timers were closed: whoever waits is told.
    pub(crate) fn closed(self, executor: &ExecutorShared) {
        match self {
            Self::WakeTask(pid) => executor.wake(pid),
            Self::Wake(waker) => executor.wake_foreign(waker),
            // An completer that is dropped says that there is none.
            Self::Complete(command_timer) => drop(command_timer.completer.upgrade(executor)),
        }
    }

    /// The timer was cancelled: what it holds goes, guarded if it may be the user's. Of a command
    /// that is when its process has ended, and nobody waits for the completer.
    pub(crate) fn dropped(self, executor: &ExecutorShared) {
        match self {
            Self::WakeTask(_) | Self::Complete(_) => {}
            Self::Wake(waker) => executor.drop_catching_panic(waker),
        }
    }
}

impl DeferredActions {
    /// Does the rest, with the lease open.
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
    /// Arms it for when it is due again, unless the process is gone.
    fn arm_again(self: Box<Self>, executor: &ExecutorShared) {
        let Some(period) = self.period else { return };
        let Some(completer) = self.completer.upgrade(executor) else { return };
        // If it is refused, the completer says so by itself.
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
