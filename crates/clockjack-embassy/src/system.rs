//! A system of actors that is one task of Embassy.
//!
//! # Protocol
//!
//! Roles: the *task*, whoever awaits one of the methods here, alone steps actors and fires timers;
//! *callers* are other tasks, interrupts and executors of other priorities.
//!
//! 1. A caller makes its work visible first and rings second.
//! 2. A poll of the task registers with both bells (the root's for work, the driver's for a stop)
//!    before it looks for either.
//! 3. A poll takes one turn, which is bounded. If that did something, the task wakes itself and
//!    returns: the others come first.
//! 4. If it did nothing, the alarm is set for what is due next, which is read behind the turn, and
//!    the task sleeps.
//!
//! *Why no work is slept on*: what becomes visible before the look of rule 2 is found by it; what
//! becomes visible later rings later, and then the task is polled again. A timer that is armed by a
//! caller rings as well, so rule 4 sees the new time. *Why it does not starve others*: by rule 3.

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
use clockjack_sync::mutant;
use clockjack_time::{DriverError, MonotonicClock as _, Tick, TickDriver, TickSpan};

use crate::EmbassyToolbox;

/// A system of actors on Embassy, which runs while one of its futures is awaited.
///
/// It stays in its task, and nothing that it runs needs to be `Send`. While nobody awaits it, it
/// stands still and loses nothing. See the [crate](crate) for an example.
///
/// # Drop
///
/// Jobs that wait are cancelled, and actors that are alive are ended by force.
/// [`shutdown`](Self::shutdown) is the orderly way.
pub struct EmbassySystem {
    root: RootContext,
    toolbox: EmbassyToolbox,
    /// Whether the driver was found free, for the root to register with.
    is_begun: bool,
}

impl EmbassySystem {
    pub(crate) fn new(toolbox: EmbassyToolbox, builder: SystemBuilder) -> Result<Self, StartError> {
        let root = RootContext::new(toolbox.clone(), builder)?;
        Ok(Self { root, toolbox, is_begun: false })
    }

    /// The system, by which other tasks start actors, schedule and terminate.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
    }

    /// The tick driver: its status, and a way to stop it.
    #[must_use]
    pub fn driver(&self) -> &dyn TickDriver {
        self.toolbox.alarm()
    }

    /// Starts an actor below `/user`; nothing needs to be `Send`.
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

    /// From here on nothing allocates: what would is refused. See [`RootContext::seal`].
    pub fn seal(&mut self) {
        self.root.seal();
    }

    /// Runs until the system has terminated, and tells how that went.
    ///
    /// # Errors
    ///
    /// * [`is_stopped`](DriverError::is_stopped): somebody has stopped the driver, so that no timer
    ///   would ever fire. Nothing is lost by that: actors and what they were told are still there,
    ///   and [`shutdown`](Self::shutdown) accounts for them.
    /// * [`is_already_registered`](DriverError::is_already_registered): another loop has the driver
    ///   of this toolbox.
    pub async fn run(&mut self) -> Result<TerminationReport, DriverError> {
        let end = self.system().when_terminated();
        // Only turns of this task bring the end, and after each of them it is looked for. So there
        // is no need for the list of those who wait, which would allocate.
        self.drive(poll_fn(|_| end.report().map_or(Poll::Pending, Poll::Ready))).await
    }

    /// Runs until `stop`, which is asked after each turn, says so, or the system has terminated.
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

    /// Runs until a future has its output: an answer, a message of another task, a time of
    /// Embassy's. It is polled in this task, after each turn.
    ///
    /// Dropping this before its end is harmless: driving can go on later.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn drive<F: Future>(&mut self, until: F) -> Result<F::Output, DriverError> {
        self.drive_with(Ticks::Needed, until).await
    }

    async fn drive_with<F: Future>(
        &mut self,
        ticks: Ticks,
        until: F,
    ) -> Result<F::Output, DriverError> {
        let mut until = pin!(until);
        poll_fn(|cx| {
            let next = match self.turn(ticks, cx) {
                Ok(next) => next,
                Err(error) => return Poll::Ready(Err(error)),
            };
            // Behind the turn, which may have brought the answer.
            if let Poll::Ready(output) = until.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            match next {
                Rest::Yield => cx.waker().wake_by_ref(),
                Rest::Until(tick) => self.toolbox.alarm().wake_at(tick, cx),
                Rest::Bell => {}
            }
            Poll::Pending
        })
        .await
    }

    /// Terminates the system and runs until that is done, or the time is over: then what is alive
    /// is reported, and ended by force. A driver that was stopped is no hindrance.
    pub async fn shutdown(mut self, deadline: Duration) -> TerminationReport {
        let end = self.system().terminate();
        let clock = self.toolbox.alarm().clock();
        // A tick more: the present one has begun some time ago.
        let until = (clock.now() + deadline).tick().saturating_add(TickSpan::ONE);
        let toolbox = self.toolbox.clone();
        let over = poll_fn(|cx| match end.report() {
            Some(report) => Poll::Ready(Some(report)),
            None if clock.now().tick() >= until => Poll::Ready(None),
            None => {
                toolbox.alarm().wake_at(until, cx);
                Poll::Pending
            }
        });
        match self.drive_with(Ticks::Waived, over).await {
            Ok(Some(report)) => report,
            Ok(None) | Err(_) => self.root.shutdown(Duration::ZERO),
        }
    }

    /// Serves the driver, after having made sure that it is there for this system.
    fn attend(&mut self, cx: &Context<'_>) -> Result<(), DriverError> {
        let alarm = self.toolbox.alarm();
        alarm.attend(cx)?;
        if !self.is_begun {
            // The root would ask again and again for ticks that another one gets.
            alarm.register(Waker::noop().clone())?;
            alarm.unregister();
            self.is_begun = true;
        }
        Ok(())
    }

    /// Rules 2 and 3: one turn, and what to wait for then.
    fn turn(&mut self, ticks: Ticks, cx: &mut Context<'_>) -> Result<Rest, DriverError> {
        let served = self.attend(cx);
        if ticks == Ticks::Needed {
            served?;
        }
        let turned = pin!(self.root.dispatch_next()).poll(cx);
        match turned {
            Poll::Ready(true) if mutant!("embassy-turns-unyielded") => self.turn(ticks, cx),
            Poll::Ready(true) => Ok(Rest::Yield),
            Poll::Ready(false) => Ok(Rest::Bell),
            // This looks once more, so that nothing is due before what it says.
            Poll::Pending if mutant!("embassy-alarm-forgotten") => Ok(Rest::Bell),
            Poll::Pending => Ok(self.root.next_wake().map_or(Rest::Bell, Rest::Until)),
        }
    }
}

/// Whether a driver that gives no ticks is a reason to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ticks {
    Needed,
    Waived,
}

/// What a turn leaves to be waited for.
enum Rest {
    /// There may be more to do: only let others run.
    Yield,
    /// The bell, or this tick.
    Until(Tick),
    /// The bell.
    Bell,
}

impl fmt::Debug for EmbassySystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassySystem").field("root", &self.root).finish_non_exhaustive()
    }
}
