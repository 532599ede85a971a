//! The receive time-out of an actor: a signal if no message comes for some time.
//!
//! # Rules
//!
//! 1. The wait begins anew when the handler of a message returns, whatever it returned, and behind
//!    the [signal](crate::Signal::ReceiveTimeout) itself: it comes again and again, until it is
//!    cancelled. Other signals count as messages; results of futures do not.
//! 2. Messages for which [`Props::receive_timeout_ignores`](crate::Props::receive_timeout_ignores)
//!    is true change nothing, however they came: by a timer, from the stash, in whatever lane.
//! 3. Setting and cancelling take effect in whatever handler, also in that of an ignored message;
//!    the last call decides. What is set begins when the handler returns. Cancelled, it does not
//!    come, also if it was due already.
//! 4. It belongs to the value of the actor that has set it, and is cancelled before
//!    [`PreRestart`](crate::Signal::PreRestart) and [`PostStop`](crate::Signal::PostStop).
//! 5. A message that waits in the mailbox goes first, if none is ever ignored: then it would begin
//!    the wait anew anyhow.
//!
//! # How
//!
//! Messages only move the deadline that the cell keeps, which is a look at the clock. The job that
//! is armed stays where it is; when it comes, and the deadline lies further on, it is armed for the
//! rest. So an actor that is busy has one job in each time-out, and not one for each message. It is
//! armed anew at once only for an earlier deadline. The number of the job is what tells its coming
//! from that of one that was cancelled.

use core::time::Duration;

use clockjack_sched::{Cancellable, DispatcherId, FireContext};
use clockjack_sync::mutant;

use crate::{
    Actor, Context, Signal,
    cell::{AnyTurn, Cell, CellState, HAS_RECEIVE_TIMEOUT, STARTS_TIMEOUT, TurnOf, any},
    header::SystemSend,
    system_queue::TimerEvent,
    testing::Effect,
};

/// The receive time-out of an actor; see the [module](self).
#[derive(Default)]
pub(crate) struct ReceiveTimeout {
    after: Option<Duration>,
    /// In nanoseconds of the executor.
    deadline: u64,
    armed: Option<Armed>,
    /// How many jobs there were.
    jobs: u32,
}

struct Armed {
    job: Cancellable,
    number: u32,
    until: u64,
}

impl<A: Actor> Context<'_, A> {
    /// Wants [`Signal::ReceiveTimeout`] if no message comes for this
    /// long, again and again, until it is cancelled; instead of what was set before. The shortest
    /// one is a tick.
    ///
    /// It ends with this value of the actor. If the scheduler has no room for it, or was shut down,
    /// it is tried again behind the next message.
    pub fn set_receive_timeout(&mut self, after: Duration) {
        self.state.timers_or_new().receive_timeout.after = Some(after);
        self.state.set(HAS_RECEIVE_TIMEOUT | STARTS_TIMEOUT, true);
        self.state.restart_receive_timeout(self.turn);
        self.state.record(|| Effect::ReceiveTimeoutSet(after));
    }

    /// Wants no time-out any more, also if it was due already.
    pub fn cancel_receive_timeout(&mut self) {
        self.state.cancel_receive_timeout();
        self.state.record(|| Effect::ReceiveTimeoutCancelled);
    }
}

impl<A: Actor> CellState<A> {
    /// Whether a message ends the wait for a receive time-out.
    pub(crate) fn influences(&self, msg: &A::Msg) -> bool {
        if !self.has(HAS_RECEIVE_TIMEOUT) {
            // One that its handler sets begins there.
            return false;
        }
        let ignores = self.settings.as_ref().and_then(|settings| settings.ignores);
        !ignores.is_some_and(|ignores| ignores(msg)) || mutant!("actor-idle-ignores-nothing")
    }

    /// Begins the wait anew, if there is one.
    pub(crate) fn restart_receive_timeout(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if !self.has(HAS_RECEIVE_TIMEOUT) {
            return;
        }
        let Some(timers) = self.timers_mut() else { return };
        let Some(after) = timers.receive_timeout.after else { return };
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        timers.receive_timeout.deadline = turn.nanos().saturating_add(after.max(1));
        timers.receive_timeout.arm(&any(turn));
    }

    pub(crate) fn cancel_receive_timeout(&mut self) {
        self.set(HAS_RECEIVE_TIMEOUT | STARTS_TIMEOUT, false);
        let Some(timers) = self.timers_mut() else { return };
        timers.receive_timeout.after = None;
        if let Some(armed) = timers.receive_timeout.armed.take() {
            armed.job.cancel();
        }
    }
}

impl ReceiveTimeout {
    /// Sees to it that a job comes at the deadline, or before it.
    fn arm(&mut self, turn: &AnyTurn<'_>) {
        if let Some(armed) = &self.armed {
            if armed.until <= self.deadline && !armed.job.is_cancelled() {
                return;
            }
            armed.job.cancel();
            self.armed = None;
        }
        self.jobs = self.jobs.wrapping_add(1);
        let number = self.jobs;
        let actor = turn.me();
        // Made now, so that the fire needs nothing.
        actor.parent_link_or_new();
        let tell =
            move |_: &FireContext| actor.send_timer_event(TimerEvent::ReceiveTimeout(number));
        let system = turn.front().system();
        // What is longer than any delay is armed for the rest when that is over.
        let longest = u64::try_from(system.delay_max().as_nanos()).unwrap_or(u64::MAX);
        let now = turn.nanos();
        let rest = self.deadline.saturating_sub(now).clamp(1, longest);
        let delay = Duration::from_nanos(rest);
        if let Ok(job) = system.jobs().schedule_once_fn(delay, DispatcherId::DEFAULT, tell) {
            self.armed = Some(Armed { job, number, until: now.saturating_add(rest) });
        }
    }

    /// A job has come: whether the time is over. If it is not, one comes later.
    fn has_elapsed(&mut self, turn: &AnyTurn<'_>, number: u32) -> bool {
        let is_mine = self.armed.as_ref().is_some_and(|armed| armed.number == number);
        if !is_mine || self.after.is_none() {
            return false;
        }
        let until = self.armed.take().map_or(0, |armed| armed.until);
        if until < self.deadline && turn.nanos() < self.deadline && !mutant!("actor-idle-early") {
            self.arm(turn);
            return false;
        }
        true
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// The job of a receive time-out has come.
    pub(crate) fn receive_timeout_fired(&mut self, turn: &TurnOf<'_, A::Msg>, number: u32) {
        let Some(timers) = self.state.timers_mut() else { return };
        if !timers.receive_timeout.has_elapsed(&any(turn), number) {
            return;
        }
        let ignores_some = self.state.settings.as_ref().is_some_and(|one| one.ignores.is_some());
        if !ignores_some && !turn.front().mail.is_empty() {
            // The message that waits begins the wait anew. If it is taken back, this has.
            self.state.restart_receive_timeout(turn);
            return;
        }
        self.signal(turn, Signal::ReceiveTimeout);
    }
}
