//! Timers for users: one that calls a waker, a future that sleeps, a future that keeps a period.
//!
//! A future arms its timer when it is first polled; if it was not made for an executor, it finds
//! its executor then, by the waker. A deadline is a fresh reading of the clock plus the delay,
//! rounded up to a tick: it never fires early.

pub(crate) mod action;
mod arm;
pub(crate) mod period;
pub mod shards;
pub mod source;
pub(crate) mod timeout;
pub mod watchdog;

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use clockjack_time::{Tick, TimerId};

use crate::{
    error::TimerError,
    executor::ExecutorShared,
    handle::Handle,
    pid::Pid,
    shards::ArmError,
    task::{self, Header, budget::poll_leaf},
    timer::action::{IntervalTick, TimerAction},
    timer::period::Period,
};

/// A timer that can be armed, armed again and cancelled, from any thread. Dropping it cancels it.
#[derive(Debug)]
pub struct Timer {
    handle: Handle,
    armed: Option<TimerId>,
    waker: Option<Waker>,
}

impl Timer {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, armed: None, waker: None }
    }

    /// Wakes `waker` when `after` has passed. Replaces an earlier deadline and waker.
    ///
    /// # Errors
    ///
    /// [`is_closed`](TimerError::is_closed) if the executor has shut down; permanent.
    /// [`is_full`](TimerError::is_full) if as many timers are armed as
    /// [`Limits::timers`](crate::limits::Limits::timers) allows in one shard: temporary, until one
    /// of them fires or is cancelled. Nothing else: if other threads use the same timers, this call
    /// waits for them, for microseconds, or until the operating system continues a thread that it
    /// has suspended. The earlier deadline is cancelled in any case.
    pub fn arm(&mut self, after: Duration, waker: Waker) -> Result<(), TimerError> {
        let was_armed = self.cancel();
        let executor = self.handle.executor();
        let deadline = executor.toolbox().deadline_after(after);
        let action = TimerAction::waking(executor, &waker);
        // Kept even if the timer is refused: it can be reset when there is room.
        self.waker = Some(waker);
        self.armed = Some(arm(executor, deadline, action)?);
        if was_armed {
            executor.count_rescheduled();
        }
        Ok(())
    }

    /// Arms the timer for another time, with the waker that it had. False if it never had one.
    ///
    /// # Errors
    ///
    /// As [`arm`](Self::arm).
    pub fn reset(&mut self, after: Duration) -> Result<bool, TimerError> {
        match self.waker.take() {
            Some(waker) => self.arm(after, waker).map(|()| true),
            None => Ok(false),
        }
    }

    /// Cancels the timer; true if it was armed and had not fired: then it never will.
    pub fn cancel(&mut self) -> bool {
        self.armed.take().is_some_and(|id| self.handle.executor().cancel_timer(id))
    }

    /// Whether the timer is armed and has not fired.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.armed.is_some_and(|id| self.handle.executor().is_armed(id))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[inline]
pub(crate) fn arm(
    executor: &ExecutorShared,
    deadline: Tick,
    action: TimerAction,
) -> Result<TimerId, TimerError> {
    if executor.is_forked() {
        return Err(TimerError::forked());
    }
    executor.arm(deadline, action).map_err(|refused: ArmError<TimerAction>| {
        if refused.is_closed() { TimerError::closed() } else { TimerError::full() }
    })
}

/// A future that completes at a point in time.
///
/// # Errors
///
/// Its output is an error if the executor shuts down before, has no room for another timer, or
/// cannot be found: a sleep that was not made by a [`Handle`] must be awaited in a task of an
/// executor.
///
/// # Cancellation
///
/// Dropping it cancels its timer. If another thread fires the timer at that moment, the task may be
/// polled once without a cause.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    handle: Option<Handle>,
    /// Returns the executor, if the waker does not identify it.
    fallback: Option<fn() -> Option<Handle>>,
    until: Until,
    armed: Option<(TimerId, Sleeper)>,
}

/// The task that waits.
enum Sleeper {
    /// A task of the same executor; the pid does not count as a reference.
    Process(Pid),
    Other(Waker),
}

impl Sleeper {
    fn of(action: &TimerAction, waker: &Waker) -> Self {
        match action {
            TimerAction::WakeTask(pid) => Self::Process(*pid),
            _ => Self::Other(waker.clone()),
        }
    }

    fn will_wake(&self, executor: &ExecutorShared, waker: &Waker) -> bool {
        let is_it = |header: &Header, pid| header.is_of(executor) && header.pid() == pid;
        match self {
            Self::Process(pid) => task::header_of(waker).is_some_and(|header| is_it(&header, *pid)),
            Self::Other(known) => known.will_wake(waker),
        }
    }
}

#[derive(Clone, Copy)]
enum Until {
    /// From the first poll on.
    After(Duration),
    At(Tick),
    /// For no time: until other tasks had the opportunity to run, once.
    Yield {
        has_yielded: bool,
    },
}

impl Until {
    const fn after(after: Duration) -> Self {
        if after.is_zero() { Self::Yield { has_yielded: false } } else { Self::After(after) }
    }
}

/// Sleeps. The time counts from the first poll. A sleep of no time takes none: it lets other tasks
/// run, as [`yield_now`] does.
pub fn sleep(after: Duration) -> Sleep {
    Sleep { handle: None, fallback: None, until: Until::after(after), armed: None }
}

impl Sleep {
    /// On a known executor; the time counts from now.
    pub(crate) fn on(handle: Handle, after: Duration) -> Self {
        let until = match Until::after(after) {
            Until::After(after) => Until::At(handle.executor().toolbox().deadline_after(after)),
            until => until,
        };
        Self { handle: Some(handle), fallback: None, until, armed: None }
    }

    /// As [`sleep`], on the executor that `fallback` returns if the waker does not identify one.
    #[doc(hidden)]
    pub fn after(after: Duration, fallback: fn() -> Option<Handle>) -> Self {
        let until = Until::after(after);
        Self { handle: None, fallback: Some(fallback), until, armed: None }
    }

    /// Sleeps until a tick of the executor whose task awaits it, or otherwise of the executor that
    /// `fallback` returns at the first poll.
    #[doc(hidden)]
    pub fn until(deadline: Tick, fallback: fn() -> Option<Handle>) -> Self {
        let until = Until::At(deadline);
        Self { handle: None, fallback: Some(fallback), until, armed: None }
    }

    pub(crate) fn at(handle: Handle, deadline: Tick) -> Self {
        Self { handle: Some(handle), fallback: None, until: Until::At(deadline), armed: None }
    }

    /// The tick of the deadline, once that is known.
    #[must_use]
    pub fn deadline(&self) -> Option<Tick> {
        match self.until {
            Until::At(tick) => Some(tick),
            Until::After(_) | Until::Yield { .. } => None,
        }
    }

    fn cancel_timer(&mut self) {
        let (Some((id, sleeper)), Some(handle)) = (self.armed.take(), &self.handle) else { return };
        match sleeper {
            Sleeper::Process(_) => handle.executor().lazy_cancel(id),
            Sleeper::Other(_) => _ = handle.executor().cancel_timer(id),
        }
    }

    /// The executor, found when it is first needed.
    #[inline]
    fn find(&mut self, waker: &Waker) -> Option<&Handle> {
        let found = match task::header_of(waker) {
            Some(header) => Handle::new((*header.executor).clone()),
            None => self.fallback?()?,
        };
        Some(self.handle.insert(found))
    }
}

impl Future for Sleep {
    type Output = Result<(), TimerError>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_leaf(cx, |cx| self.get_mut().poll_deadline(cx))
    }
}

impl Sleep {
    /// As `poll`, without the budget of the task.
    #[inline]
    fn poll_deadline(&mut self, cx: &Context<'_>) -> Poll<Result<(), TimerError>> {
        if self.handle.is_none() && self.find(cx.waker()).is_none() {
            return Poll::Ready(Err(TimerError::no_executor()));
        }
        let Self { handle: Some(handle), until, armed, .. } = self else {
            unreachable!("it was found");
        };
        let executor = handle.executor();
        if let Some((id, sleeper)) = armed {
            match check_deadline(executor, *id, sleeper, cx.waker()) {
                SleepCheck::Pending => return Poll::Pending,
                SleepCheck::Rearm => {}
                SleepCheck::Done => {
                    *armed = None;
                    return Poll::Ready(sleep_result(executor, *until));
                }
            }
        }
        arm_for(executor, until, armed, cx)
    }
}

/// What the poll of an armed sleep finds.
enum SleepCheck {
    Pending,
    /// The timer was armed for another waker; it is cancelled now.
    Rearm,
    /// The timer has fired, or the timers were closed.
    Done,
}

fn check_deadline(
    executor: &ExecutorShared,
    id: TimerId,
    sleeper: &Sleeper,
    waker: &Waker,
) -> SleepCheck {
    if !executor.is_armed(id) {
        SleepCheck::Done
    } else if sleeper.will_wake(executor, waker) {
        SleepCheck::Pending
    } else if executor.cancel_timer(id) {
        SleepCheck::Rearm
    } else {
        SleepCheck::Done
    }
}

/// The result of a timer that is not armed any more: its time has come, or the timers were closed.
fn sleep_result(executor: &ExecutorShared, until: Until) -> Result<(), TimerError> {
    let toolbox = executor.toolbox();
    let now = toolbox.tick_of(toolbox.nanos());
    let is_due = matches!(until, Until::At(deadline) if deadline <= now);
    if is_due { Ok(()) } else { Err(TimerError::closed()) }
}

/// Arms a sleep that is not armed.
#[inline]
fn arm_for(
    executor: &ExecutorShared,
    until: &mut Until,
    armed: &mut Option<(TimerId, Sleeper)>,
    cx: &Context<'_>,
) -> Poll<Result<(), TimerError>> {
    let deadline = match until {
        Until::At(tick) => *tick,
        Until::After(after) => executor.toolbox().deadline_after(*after),
        Until::Yield { .. } if executor.are_timers_closed() => {
            return Poll::Ready(Err(TimerError::closed()));
        }
        Until::Yield { has_yielded: true } => return Poll::Ready(Ok(())),
        Until::Yield { has_yielded } => {
            *has_yielded = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
    };
    *until = Until::At(deadline);
    let action = TimerAction::waking(executor, cx.waker());
    let sleeper = Sleeper::of(&action, cx.waker());
    match arm(executor, deadline, action) {
        Ok(id) => {
            *armed = Some((id, sleeper));
            Poll::Pending
        }
        Err(error) => Poll::Ready(Err(error)),
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel_timer();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

/// A periodic timer. It is due at multiples of its period, without drift, however long each round
/// takes. If the period is not a whole number of ticks, each due time is rounded up to a tick
/// separately.
///
/// Due times that have passed before anybody waits for them are skipped, and counted.
#[derive(Debug)]
pub struct Interval {
    handle: Handle,
    period: Period,
    /// Skipped since the last reported tick.
    missed: u64,
    sleep: Option<Sleep>,
}

impl Interval {
    /// The first due time is one period from now. A period shorter than a tick is one tick.
    #[must_use]
    pub fn new(handle: Handle, every: Duration) -> Self {
        let executor = handle.executor();
        let first = executor.toolbox().deadline_after(every);
        let period = Period::new(every, first, executor.resolution());
        Self { handle, period, missed: 0, sleep: None }
    }

    /// When it is due next.
    #[must_use]
    pub fn due(&self) -> Tick {
        self.period.due()
    }

    /// Waits for the next due time; returns it, and how many were skipped since the last.
    ///
    /// # Errors
    ///
    /// As [`Sleep`].
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing: the next call waits for the same time.
    pub async fn tick(&mut self) -> Result<IntervalTick, TimerError> {
        let executor = self.handle.executor();
        let now = executor.toolbox().tick_of(executor.toolbox().nanos());
        self.missed = self.missed.saturating_add(self.period.catch_up(now));
        let due = self.period.due();
        let sleep = self.sleep.insert(Sleep::at(self.handle.clone(), due));
        let woken = Pin::new(sleep).await;
        self.sleep = None;
        woken?;
        self.period.advance_to_next();
        Ok(IntervalTick { due, missed: core::mem::take(&mut self.missed) })
    }
}

/// Lets other tasks run, once.
pub fn yield_now() -> YieldNow {
    YieldNow { has_yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "it does nothing unless it is awaited"]
pub struct YieldNow {
    has_yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
