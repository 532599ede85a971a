//! The timers of the cell itself: back-off, receive timeout, stop timeout, and the retry of
//! escalations. None of them may be lost, and none may come early.
//!
//! # Rules
//!
//! 1. A timer is a *job* of the scheduler, which has a reserve for such jobs. So load by users
//!    cannot make the job refused. When the job runs, it sends a [`TimerEvent`].
//! 2. Jobs of the runtime can use up the reserve, and a scheduler can be closed. If the job is
//!    refused, a *substitute* takes its place: a timer of the executor, which wakes the actor. If
//!    the executor has no room for a timer either, or the system is sealed and must not allocate,
//!    the cell wakes itself in each poll until the time has come, behind other tasks.
//! 3. If the scheduler is closed while the job waits, the job is dropped, and its drop sends the
//!    event ([`SendOnDrop`]). The cell finds that the time has not come, and arms the timer again
//!    for the rest, which rule 2 makes a substitute.
//! 4. Each event has the number of its timer. The cell ignores an event of a timer that it has
//!    cancelled or replaced, so it does not matter that a cancelled job may also send its event
//!    while the scheduler is closed.
//!
//! *Why nothing waits forever.* As long as a timer is armed, there is a job, a timer of the
//! executor, or a wake-up of the cell by itself. A job ends by a run, by a cancel of the cell, or
//! by the close of the scheduler, and the first and the last send the event. `is_shutting_down` is
//! set before the close drops its first job, and the drop reads it on the thread of the close, or
//! on that of a poller that has taken the job from a list under the guard of the shard, which the
//! close has held before. So a job that the close drops always sends.

use core::time::Duration;

use clockjack_sched::{Cancellable, FireContext, Scheduler};

use super::{AnyPoll, CellVTable, UntypedRareState};
use crate::{
    cell::header::{AnyActor, SystemSend, WOKEN},
    mailbox::system_queue::{TimerEvent, TimerEvents},
};

/// A timer of a cell; see the [module](self).
pub(crate) enum OwnTimer {
    Job {
        job: Cancellable,
        until_nanos: u64,
        /// The job ends before the timer, because no job may wait as long.
        is_part: bool,
    },
    Substitute {
        event: TimerEvent,
        until_nanos: u64,
        /// There is no timer of the executor either.
        is_polled: bool,
    },
}

impl OwnTimer {
    /// Sends an event to the actor that is polled, after a delay.
    pub(crate) fn arm(poll: &AnyPoll<'_>, delay: Duration, event: TimerEvent) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let until_nanos = poll.nanos().saturating_add(nanos);
        let jobs = poll.shared().system().jobs();
        let (job, is_part) = schedule(jobs, poll.self_ref(), delay, event);
        match job {
            Some(job) => Self::Job { job, until_nanos, is_part },
            None => Self::substitute(poll, until_nanos, event),
        }
    }

    #[cold]
    fn substitute(poll: &AnyPoll<'_>, until_nanos: u64, event: TimerEvent) -> Self {
        let rest = Duration::from_nanos(until_nanos.saturating_sub(poll.nanos()));
        // The timers of an executor may need memory, which a sealed system does not allocate.
        let is_sealed = poll.shared().system().is_sealed();
        let is_polled = is_sealed || poll.wake_after(rest).is_err();
        if is_polled {
            poll.self_ref().wake_with(WOKEN);
        }
        Self::Substitute { event, until_nanos, is_polled }
    }

    /// The event of this timer has arrived. Returns the rest of the delay, if it is not over.
    pub(crate) fn rest(&self, poll: &AnyPoll<'_>) -> Option<Duration> {
        let (until_nanos, is_over) = match self {
            Self::Job { until_nanos, is_part, .. } => {
                // Otherwise the job has run, at its time.
                let is_lost = poll.shared().system().jobs().is_closed();
                (until_nanos, !is_part && !is_lost)
            }
            Self::Substitute { until_nanos, .. } => (until_nanos, false),
        };
        let rest = until_nanos.saturating_sub(poll.nanos());
        (!is_over && rest > 0).then(|| Duration::from_nanos(rest))
    }

    /// Whether this timer has no job.
    pub(crate) fn is_substitute(&self) -> bool {
        matches!(self, Self::Substitute { .. })
    }

    /// The time that the timer is armed for.
    pub(crate) fn until_nanos(&self) -> u64 {
        match self {
            Self::Job { until_nanos, .. } | Self::Substitute { until_nanos, .. } => *until_nanos,
        }
    }

    /// Checks a timer without a job. Returns its event if its time has come.
    fn fires(&mut self, poll: &AnyPoll<'_>) -> Option<TimerEvent> {
        let Self::Substitute { event, until_nanos, is_polled } = *self else { return None };
        if poll.nanos() >= until_nanos {
            return Some(event);
        }
        if is_polled {
            *self = Self::substitute(poll, until_nanos, event);
        }
        None
    }

    /// Cancels the job. A timer of the executor stays armed; it wakes the actor for nothing.
    pub(crate) fn cancel(&self) {
        if let Self::Job { job, .. } = self {
            job.cancel();
        }
    }
}

/// Schedules a job that sends an event to an actor: after `delay`, or after the longest delay that
/// a job may have, if that is shorter; then the flag is true. `None` if the job is refused.
pub(super) fn schedule(
    jobs: &Scheduler,
    actor: AnyActor,
    delay: Duration,
    event: TimerEvent,
) -> (Option<Cancellable>, bool) {
    // Allocated now, so that the expiry of the timer needs no allocation.
    actor.parent_link_or_new();
    let part = delay.min(jobs.internal_delay_max());
    if jobs.is_closed() {
        return (None, part < delay);
    }
    let mut sender = SendOnDrop { actor: Some(actor), event };
    let send = move |_: &FireContext| sender.send();
    // If the scheduler is closed just now, the drop of the refused job sends the event, and the
    // cell arms the timer again, once.
    (jobs.schedule_internal(part, send).ok(), part < delay)
}

/// Sends an event when the job runs, or when the close of the scheduler drops the job (rule 3).
struct SendOnDrop {
    /// `None` once it has sent.
    actor: Option<AnyActor>,
    event: TimerEvent,
}

impl SendOnDrop {
    fn send(&mut self) {
        if let Some(actor) = self.actor.take() {
            actor.send_timer_event(self.event);
        }
    }
}

impl Drop for SendOnDrop {
    fn drop(&mut self) {
        let is_closed = |actor: &AnyActor| actor.system().jobs().is_closed();
        if self.actor.as_ref().is_some_and(is_closed) {
            self.send();
        }
    }
}

impl UntypedRareState {
    /// Remembers that a timer has no job, so that each poll checks it.
    pub(crate) fn note_substitute(&mut self, timer: &OwnTimer) {
        self.has_substitutes |= timer.is_substitute();
    }
}

impl dyn CellVTable + '_ {
    /// Sends an event to the actor itself after a delay.
    pub(super) fn arm_own_timer(
        &mut self,
        poll: &AnyPoll<'_>,
        delay: Duration,
        event: TimerEvent,
    ) -> OwnTimer {
        let timer = OwnTimer::arm(poll, delay, event);
        self.rare_or_new().note_substitute(&timer);
        timer
    }

    /// Handles the timers without a job whose time has come, as if their jobs had run.
    pub(super) fn fire_substitutes(&mut self, poll: &AnyPoll<'_>) {
        if !self.rare().is_some_and(|rare| rare.has_substitutes) {
            return;
        }
        let timeout = self.receive_timeout_timer().and_then(|timer| timer.fires(poll));
        let is_timeout_left = self.receive_timeout_timer().is_some_and(|one| one.is_substitute());
        let rare = self.rare_or_new();
        let timers = [&mut rare.backoff_timer, &mut rare.stop_timer, &mut rare.retry_timer];
        let mut events = TimerEvents::default();
        let mut is_left = is_timeout_left;
        timeout.into_iter().for_each(|event| events.put(event));
        for timer in timers.into_iter().flatten() {
            timer.fires(poll).into_iter().for_each(|event| events.put(event));
            is_left |= timer.is_substitute();
        }
        rare.has_substitutes = is_left;
        self.handle_timer_events(poll, &events);
    }
}
