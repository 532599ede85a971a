//! What a timer of the executor does when it falls due.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, task::Waker};

use clockjack_time::Tick;

use crate::{cell, command::Address, engine::Engine, period::Period, pid::Pid};

/// The value of a timer.
pub(crate) enum Fire {
    /// Wakes a process of this engine, if it is still there. By its name and not by a reference:
    /// most timers are cancelled, and then nothing was counted.
    Process(Pid),
    /// Wakes somebody else.
    Wake(Waker),
    /// Answers a command of a process.
    Answer(Box<Alarm>),
}

/// A command that a timer answers. The process is not counted: if it ends, however long it was to
/// wait, it is gone at once.
pub(crate) struct Alarm {
    pub(crate) address: Address,
    /// For an interval: its period, and when it is due next.
    pub(crate) every: Option<Period>,
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
#[expect(clippy::vec_box, reason = "an alarm goes back into its timer in the box it came in")]
pub(crate) struct Deferred {
    wakers: Vec<Waker>,
    alarms: Vec<Box<Alarm>>,
}

impl Fire {
    /// What wakes whom this waker wakes.
    pub(crate) fn waking(engine: &Engine, waker: &Waker) -> Self {
        match cell::head_of(waker) {
            Some(head) if head.is_of(engine) => Self::Process(head.pid()),
            _ => Self::Wake(waker.clone()),
        }
    }

    /// Does what can be done under the lease, and leaves the rest. Nothing of the user's is called,
    /// but in one case: a process that has ended meanwhile, and of which nobody else holds a
    /// reference, is freed here with the result that nobody took, guarded.
    pub(crate) fn hand_over(self, engine: &Engine, now: Tick, deferred: &mut Deferred) {
        match self {
            Self::Process(pid) => engine.wake(pid),
            // Also a process of another executor: its host, and what its last waker holds, is the
            // user's.
            Self::Wake(waker) => deferred.wakers.push(waker),
            Self::Answer(mut alarm) => {
                let Some(answer) = alarm.address.answer(engine) else { return };
                match alarm.every {
                    None => answer.reply(()),
                    Some(ref mut period) => {
                        let missed = period.catch_up(now);
                        answer.tell(IntervalTick { due: period.due(), missed });
                        answer.withdraw();
                        period.go_on();
                        deferred.alarms.push(alarm);
                    }
                }
            }
        }
    }

    /// The timers were closed: whoever waits is told.
    pub(crate) fn closed(self, engine: &Engine) {
        match self {
            Self::Process(pid) => engine.wake(pid),
            Self::Wake(waker) => engine.wake_foreign(waker),
            // An answer that is dropped says that there is none.
            Self::Answer(alarm) => drop(alarm.address.answer(engine)),
        }
    }

    /// The timer was cancelled: what it holds goes, guarded if it may be the user's. Of a command
    /// that is when its process has ended, and nobody waits for the answer.
    pub(crate) fn dropped(self, engine: &Engine) {
        match self {
            Self::Process(_) | Self::Answer(_) => {}
            Self::Wake(waker) => engine.drop_contained(waker),
        }
    }
}

impl Deferred {
    /// Does the rest, with the lease open.
    pub(crate) fn finish(&mut self, engine: &Engine) {
        for waker in self.wakers.drain(..) {
            engine.wake_foreign(waker);
        }
        for alarm in self.alarms.drain(..) {
            alarm.arm_again(engine);
        }
    }
}

impl Alarm {
    /// Arms it for when it is due again, unless the process is gone.
    fn arm_again(self: Box<Self>, engine: &Engine) {
        let Some(period) = self.every else { return };
        let Some(answer) = self.address.answer(engine) else { return };
        // If it is refused, the answer says so by itself.
        if !answer.is_wanted() || engine.arm(period.due(), Fire::Answer(self)).is_ok() {
            answer.withdraw();
        }
    }
}

impl fmt::Debug for Fire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process(_) => "Process",
            Self::Wake(_) => "Wake",
            Self::Answer(_) => "Answer",
        })
    }
}
