//! What a timer of the executor does when it is due.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, task::Waker};

use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_time::{Tick, TimerId};

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
    pub(crate) repeats: Option<Repeats>,
}

/// What makes the timer of a command an interval.
pub(crate) struct Repeats {
    pub(crate) period: Period,
    pub(crate) current: Arc<CurrentTimer>,
}

/// The timer by which an interval waits at the moment: another one each time. The process cancels
/// it when it ends, on whichever thread that is, while a worker may be arming the next one.
///
/// The lock decides: either the worker has stored its timer before the process ends, and the
/// process cancels that; or the worker finds that the process has ended, and cancels the timer
/// itself.
#[derive(Default)]
pub(crate) struct CurrentTimer(SpinLock<CurrentTimerInner>);

#[derive(Default)]
struct CurrentTimerInner {
    /// The timer and when it is due. A timer that is due later is the later one, though its worker
    /// may be the first to store it.
    timer: Option<(Tick, TimerId)>,
    has_ended: bool,
}

impl CurrentTimer {
    /// The interval waits by this timer from now on.
    pub(crate) fn set(&self, executor: &ExecutorShared, due: Tick, id: TimerId) {
        let has_ended = self.0.with(|inner| {
            if inner.timer.is_none_or(|(known, _)| known < due) {
                inner.timer = Some((due, id));
            }
            inner.has_ended
        });
        if has_ended {
            executor.cancel_timer(id);
        }
    }

    /// The process has ended: cancels the timer, and the next one if that is just being armed.
    pub(crate) fn end(&self, executor: &ExecutorShared) {
        let timer = self.0.with(|inner| {
            inner.has_ended = true;
            inner.timer
        });
        if let Some((_, id)) = timer {
            executor.cancel_timer(id);
        }
    }
}

impl fmt::Debug for CurrentTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentTimer").finish_non_exhaustive()
    }
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
                match command_timer.repeats {
                    None => completer.reply(()),
                    Some(Repeats { ref mut period, .. }) => {
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
        let Some(Repeats { period, current }) = &self.repeats else { return };
        let Some(completer) = self.completer.upgrade(executor) else { return };
        if !completer.is_receivable() {
            return completer.forget();
        }
        let (due, current) = (period.due(), current.clone());
        // If the timer is refused, dropping the completer reports the failure.
        if let Ok(id) = executor.arm(due, TimerAction::Complete(self)) {
            current.set(executor, due, id);
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
