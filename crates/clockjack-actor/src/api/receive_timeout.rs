//! The receive timeout of an actor: a signal if no message arrives for some time.
//!
//! # Rules
//!
//! 1. The timeout restarts when the handler of a message returns, with any result, and after the
//!    [signal](crate::Signal::ReceiveTimeout) itself: the signal is repeated until the timeout is
//!    cancelled. Other signals count as messages; results of futures do not.
//! 2. Messages for which [`Props::receive_timeout_ignores`](crate::Props::receive_timeout_ignores)
//!    is true do not restart it, no matter how they arrived: from a timer, from the stash, as a
//!    control message.
//! 3. Setting and cancelling are possible in every handler, also in that of an ignored message; the
//!    last call counts. A timeout that is set starts when the handler returns. A timeout that is
//!    cancelled does not arrive, even if it was already due.
//! 4. The timeout belongs to the incarnation of the actor that has set it, and is cancelled before
//!    [`PreRestart`](crate::Signal::PreRestart) and [`PostStop`](crate::Signal::PostStop).
//! 5. It never fires while a message waits, in the mailbox, before it, or as that of a timer that
//!    has fired. If no message is ever ignored, the timeout then restarts at once, because the
//!    waiting message would restart it anyway. Otherwise it fires when the last waiting message was
//!    handled, unless one of them has restarted it.
//!
//! # Implementation
//!
//! A message only moves the deadline, which the cell stores; this costs one reading of the clock.
//! The timer (`cell::own_timer`) stays as it is; if the deadline is later when the timer fires, it
//! is armed again for the rest. So a busy actor has one job per timeout, not one per message. The
//! timer is armed again at once only for an earlier deadline. Its number distinguishes it from one
//! that was cancelled.

use core::time::Duration;

use crate::{
    Actor, Context, Signal,
    cell::{
        AnyPoll, Cell, CellState, HAS_RECEIVE_TIMEOUT, HAS_TIMERS, PENDING, PollOf, STARTS_TIMEOUT,
        any, own_timer::OwnTimer,
    },
    mailbox::system_queue::TimerEvent,
    testing::Effect,
};

/// The receive timeout of an actor; see the [module](self).
#[derive(Default)]
pub(crate) struct ReceiveTimeout {
    after: Option<Duration>,
    /// In nanoseconds of the executor.
    deadline: u64,
    armed: Option<Armed>,
    /// How many jobs were scheduled.
    jobs: u32,
    /// The number of the job that has fired last, until it is checked.
    fired: Option<u32>,
    /// The timeout has elapsed and waits until no message waits.
    has_elapsed: bool,
}

/// The result of checking a timeout whose job has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutCheck {
    /// There is nothing to do.
    Done,
    /// It has elapsed, but messages wait that it must not overtake.
    Waits,
    /// It has elapsed, and no message waits.
    Fires,
}

struct Armed {
    timer: OwnTimer,
    number: u32,
}

impl<A: Actor> Context<'_, A> {
    /// Requests [`Signal::ReceiveTimeout`] if no message arrives for this long, repeatedly, until
    /// it is cancelled. Replaces an earlier timeout. The shortest timeout is one tick. It never
    /// fires while a message waits, not even one that the timeout ignores.
    ///
    /// The timeout ends with this incarnation of the actor. It fires also if the scheduler has no
    /// room for it or was shut down: then a timer of the executor takes the place of the job.
    pub fn set_receive_timeout(&mut self, after: Duration) {
        self.state.timers_or_new().receive_timeout.after = Some(after);
        self.state.set(HAS_RECEIVE_TIMEOUT | STARTS_TIMEOUT, true);
        self.state.restart_receive_timeout(self.poll);
        self.state.record(|| Effect::ReceiveTimeoutSet(after));
    }

    /// Cancels the timeout, even if it was already due.
    pub fn cancel_receive_timeout(&mut self) {
        self.state.cancel_receive_timeout();
        self.state.record(|| Effect::ReceiveTimeoutCancelled);
    }
}

impl<A: Actor> CellState<A> {
    /// Whether a message restarts the receive timeout.
    pub(crate) fn influences(&self, msg: &A::Msg) -> bool {
        if !self.has(HAS_RECEIVE_TIMEOUT) {
            // A timeout that the handler sets starts when the handler returns.
            return false;
        }
        let ignores = self.settings.as_ref().and_then(|settings| settings.ignores);
        !ignores.is_some_and(|ignores| ignores(msg))
    }

    /// Restarts the timeout, if one is set.
    pub(crate) fn restart_receive_timeout(&mut self, poll: &PollOf<'_, A::Msg>) {
        if !self.has(HAS_RECEIVE_TIMEOUT) {
            return;
        }
        let Some(timers) = self.timers_mut() else { return };
        let Some(after) = timers.receive_timeout.after else { return };
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        timers.receive_timeout.has_elapsed = false;
        timers.receive_timeout.deadline = poll.nanos().saturating_add(after.max(1));
        timers.receive_timeout.arm(&any(poll));
        self.note_timeout_substitute();
    }

    /// If the timer of the timeout has no job, each poll checks it.
    fn note_timeout_substitute(&mut self) {
        let timer = self.timers_mut().and_then(|timers| timers.receive_timeout.timer_mut());
        if timer.is_some_and(|timer| timer.is_substitute()) {
            self.rare().has_substitutes = true;
        }
    }

    /// The job of a receive timeout has fired; it is checked after what waits.
    pub(crate) fn receive_timeout_later(&mut self, number: u32) {
        let Some(timers) = self.timers_mut() else { return };
        timers.receive_timeout.fired = Some(number);
        self.set(PENDING, true);
    }

    /// Checks whether the timeout is to fire now (rule 5).
    pub(crate) fn check_receive_timeout(&mut self, poll: &PollOf<'_, A::Msg>) -> TimeoutCheck {
        let Some(timers) = self.timers_mut() else { return TimeoutCheck::Done };
        let timeout = &mut timers.receive_timeout;
        if let Some(number) = timeout.fired.take() {
            timeout.has_elapsed |= timeout.job_fired(&any(poll), number);
        }
        let has_elapsed = timeout.has_elapsed;
        self.note_timeout_substitute();
        if !has_elapsed {
            return TimeoutCheck::Done;
        }
        if !self.has_waiting_message(poll.shared()) {
            return TimeoutCheck::Fires;
        }
        let ignores_some = self.settings.as_ref().is_some_and(|one| one.ignores.is_some());
        if ignores_some {
            // So that the runner does not go idle before it has checked again.
            self.set(HAS_TIMERS, true);
            return TimeoutCheck::Waits;
        }
        // The waiting message restarts the timeout. This call does so too, in case the message is
        // cancelled.
        self.restart_receive_timeout(poll);
        TimeoutCheck::Done
    }

    pub(crate) fn cancel_receive_timeout(&mut self) {
        self.set(HAS_RECEIVE_TIMEOUT | STARTS_TIMEOUT, false);
        let Some(timers) = self.timers_mut() else { return };
        timers.receive_timeout.after = None;
        timers.receive_timeout.has_elapsed = false;
        if let Some(armed) = timers.receive_timeout.armed.take() {
            armed.timer.cancel();
        }
    }
}

impl ReceiveTimeout {
    /// The timer, if one is armed.
    pub(crate) fn timer_mut(&mut self) -> Option<&mut OwnTimer> {
        self.armed.as_mut().map(|armed| &mut armed.timer)
    }

    /// Makes sure that a timer fires at the deadline, or before it.
    fn arm(&mut self, poll: &AnyPoll<'_>) {
        if let Some(armed) = &self.armed {
            if armed.timer.until_nanos() <= self.deadline {
                return;
            }
            armed.timer.cancel();
            self.armed = None;
        }
        self.jobs = self.jobs.wrapping_add(1);
        let number = self.jobs;
        let rest = Duration::from_nanos(self.deadline.saturating_sub(poll.nanos()).max(1));
        let timer = OwnTimer::arm(poll, rest, TimerEvent::ReceiveTimeout(number));
        self.armed = Some(Armed { timer, number });
    }

    /// A timer has fired: whether the timeout has elapsed. If not, another one is armed.
    fn job_fired(&mut self, poll: &AnyPoll<'_>, number: u32) -> bool {
        let is_mine = self.armed.as_ref().is_some_and(|armed| armed.number == number);
        if !is_mine || self.after.is_none() {
            return false;
        }
        let Some(Armed { timer, .. }) = self.armed.take() else { return false };
        let is_moved = timer.until_nanos() < self.deadline && poll.nanos() < self.deadline;
        if is_moved || timer.rest(poll).is_some() {
            self.arm(poll);
            return false;
        }
        true
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// The receive timeout fires.
    pub(crate) fn receive_timeout_fired(&mut self, poll: &PollOf<'_, A::Msg>) {
        if let Some(timers) = self.state.timers_mut() {
            timers.receive_timeout.has_elapsed = false;
        }
        self.signal(poll, Signal::ReceiveTimeout);
    }
}
