//! An actor system that runs as one Embassy task.
//!
//! # Protocol
//!
//! Roles: the *task* that awaits one of the methods here is the only one that steps actors and
//! fires timers; *callers* are other tasks, interrupts and executors of other priorities.
//!
//! 1. A caller first makes its work visible and then wakes the task.
//! 2. A poll of the task first registers both wakers (with the root for work, with the driver for a
//!    stop) and then looks for work and for a stop.
//! 3. A poll runs the root once, for a bounded number of steps. If the root did something, the task
//!    wakes itself and returns, so that the other tasks run first.
//! 4. If the root did nothing, the task sets the alarm for the next deadline, which it reads after
//!    running the root, and sleeps.
//!
//! *Why no work is missed*: rule 2 finds work that became visible before the task looked. Work that
//! becomes visible later is followed by a wake-up, and then the task is polled again. A caller that
//! arms a timer wakes the task too, so rule 4 sees the new deadline. *Why the task does not starve
//! others*: by rule 3.

use core::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use clockjack_actor::{
    ActorRef, ActorSystem, IntoProps, MsgOf, RootContext, SpawnError, StartError, SystemBuilder,
    TerminationReport,
};
use clockjack_time::{DriverError, MonotonicClock, Tick, TickDriver, TickSpan};

use crate::EmbassyToolbox;

/// An actor system on Embassy, which runs while one of its futures is awaited.
///
/// The system stays in its task, and nothing that it runs needs to be `Send`. While no task awaits
/// it, it pauses and loses nothing. See the [crate](crate) for an example.
///
/// # Drop
///
/// Dropping it cancels waiting jobs and stops live actors by force.
/// [`shutdown`](Self::shutdown) is the orderly way.
pub struct EmbassySystem {
    root: RootContext,
    toolbox: EmbassyToolbox,
    /// Whether the check succeeded that the driver is free for the root to register with.
    is_driver_checked: bool,
}

impl EmbassySystem {
    pub(crate) fn new(toolbox: EmbassyToolbox, builder: SystemBuilder) -> Result<Self, StartError> {
        let root = RootContext::new(toolbox.clone(), builder)?;
        Ok(Self { root, toolbox, is_driver_checked: false })
    }

    /// The system. Other tasks use it to start actors, to schedule and to shut the system down.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
    }

    /// The tick driver, for its status and to stop it.
    #[must_use]
    pub fn driver(&self) -> &dyn TickDriver {
        self.toolbox.alarm()
    }

    /// Starts an actor below `/user`. Nothing needs to be `Send`.
    ///
    /// # Errors
    ///
    /// As [`RootContext::spawn`].
    pub fn spawn<P: IntoProps>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        self.root.spawn(name, props)
    }

    /// Forbids allocation from here on: calls that need memory fail. See [`RootContext::seal`].
    pub fn seal(&mut self) {
        self.root.seal();
    }

    /// Watches from now on whether Embassy's clock advances: see [`RootContext::watch_driver`]. The
    /// application must wake the task also without Embassy's alarm, for instance by a `tell` from
    /// the interrupt of a watchdog.
    pub fn watch_driver(
        &mut self,
        reference: &'static (dyn MonotonicClock + Sync),
        fallback: fn(Duration),
    ) {
        self.root.watch_driver(reference, fallback);
    }

    /// Runs until the system has terminated, and returns its report.
    ///
    /// # Errors
    ///
    /// * [`is_stopped`](DriverError::is_stopped): the driver was stopped, so that no timer would
    ///   ever fire. Nothing is lost: the actors and their messages are still there, and
    ///   [`shutdown`](Self::shutdown) accounts for them.
    /// * [`is_already_registered`](DriverError::is_already_registered): another loop uses the
    ///   driver of this toolbox.
    pub async fn run(&mut self) -> Result<TerminationReport, DriverError> {
        let end = self.system().when_terminated();
        // The system terminates only while this task polls the root, and each poll is followed by
        // this check. So the future need not join the list of waiters, which would allocate.
        self.drive(poll_fn(|_| end.report().map_or(Poll::Pending, Poll::Ready))).await
    }

    /// Runs until `stop` returns true, or the system has terminated. Calls `stop` after each poll.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn run_until(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), DriverError> {
        let end = self.system().when_terminated();
        self.drive(poll_fn(|_| match stop() || end.report().is_some() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
        .await
    }

    /// Runs until a future is ready: an answer, a message of another task, or a timer of Embassy.
    /// The future is polled in this task, each time after the root.
    ///
    /// This future may be dropped early: another call can continue to drive the system.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn drive<F: Future>(&mut self, until: F) -> Result<F::Output, DriverError> {
        self.drive_with(DriverNeed::Required, until).await
    }

    async fn drive_with<F: Future>(
        &mut self,
        need: DriverNeed,
        until: F,
    ) -> Result<F::Output, DriverError> {
        let mut until = pin!(until);
        poll_fn(|cx| {
            let next = match self.poll_root(need, cx) {
                Ok(next) => next,
                Err(error) => return Poll::Ready(Err(error)),
            };
            // After the root, which may have produced the answer.
            if let Poll::Ready(output) = until.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            match next {
                NextStep::Yield => cx.waker().wake_by_ref(),
                NextStep::AwaitTick(tick) => self.toolbox.alarm().wake_at(tick, cx),
                NextStep::AwaitWake => {}
            }
            Poll::Pending
        })
        .await
    }

    /// Shuts the system down and runs until it has terminated. At the time-out, the report lists
    /// the live actors, and they are stopped by force. Works also with a stopped driver.
    pub async fn shutdown(mut self, timeout: Duration) -> TerminationReport {
        self.system().set_host_deadline(timeout);
        let end = self.system().shutdown();
        let clock = self.toolbox.alarm().clock();
        // One tick more, because the current tick has partly elapsed.
        let until = (clock.now() + timeout).tick().saturating_add(TickSpan::ONE);
        let toolbox = self.toolbox.clone();
        let over = poll_fn(|cx| match end.report() {
            Some(report) => Poll::Ready(Some(report)),
            None if clock.now().tick() >= until => Poll::Ready(None),
            None => {
                toolbox.alarm().wake_at(until, cx);
                Poll::Pending
            }
        });
        match self.drive_with(DriverNeed::Optional, over).await {
            Ok(Some(report)) => report,
            Ok(None) | Err(_) => self.root.shutdown(Duration::ZERO),
        }
    }

    /// Serves the driver, after checking once that no other loop uses it.
    fn serve_driver(&mut self, cx: &Context<'_>) -> Result<(), DriverError> {
        let alarm = self.toolbox.alarm();
        alarm.serve_once(cx)?;
        if !self.is_driver_checked {
            // Otherwise the root would ask in vain for ticks that another loop receives.
            alarm.register(Waker::noop().clone())?;
            alarm.unregister();
            self.is_driver_checked = true;
        }
        Ok(())
    }

    /// Rules 2 and 3: polls the root once, and returns what to wait for.
    fn poll_root(
        &mut self,
        need: DriverNeed,
        cx: &mut Context<'_>,
    ) -> Result<NextStep, DriverError> {
        let served = self.serve_driver(cx);
        // A system that has terminated has stopped the driver itself.
        let has_terminated = self.system().when_terminated().report().is_some();
        if need == DriverNeed::Required && !has_terminated {
            served?;
        }
        let polled = pin!(self.root.dispatch_next()).poll(cx);
        match polled {
            Poll::Ready(true) => Ok(NextStep::Yield),
            Poll::Ready(false) => Ok(NextStep::AwaitWake),
            // `next_wake` looks for work once more, so nothing is due before the returned tick.
            Poll::Pending => {
                Ok(self.root.next_wake().map_or(NextStep::AwaitWake, NextStep::AwaitTick))
            }
        }
    }
}

/// Whether a driver that gives no ticks is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DriverNeed {
    Required,
    Optional,
}

/// What the task waits for after a poll.
enum NextStep {
    /// Nothing, there may be more to do: let other tasks run first.
    Yield,
    /// A wake-up, or this tick.
    AwaitTick(Tick),
    /// A wake-up.
    AwaitWake,
}

impl fmt::Debug for EmbassySystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassySystem").field("root", &self.root).finish_non_exhaustive()
    }
}
