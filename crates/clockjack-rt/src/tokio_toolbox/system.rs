//! A system of actors that is one task of tokio's.
//!
//! # Protocol
//!
//! Roles: the *task*, whoever awaits one of the methods here, alone steps actors and fires timers;
//! *callers* are other tasks and threads.
//!
//! 1. A caller makes its work visible first and rings second, always.
//! 2. A poll of the task hands its waker to the bell before it looks for work.
//! 3. A poll takes one turn, which is bounded. If that did something, or left something that is
//!    due, the task yields through tokio's scheduler and is polled again.
//! 4. If there was nothing, the alarm is set for what is due next, which is read behind the turn,
//!    and the task waits for the bell, the alarm or its future.
//!
//! *Why no work is slept on*: what becomes visible before the look of rule 2 is found by it; what
//! becomes visible later rings later, and the task is polled again. A timer that a caller arms
//! rings as well, so rule 4 sees the new time. What falls due between the two looks of a poll is
//! run by the second, and what that leaves counts as due now. *Why it does not starve others*: by
//! rule 3.

use core::{
    fmt,
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Arc;

use clockjack_actor::{
    ActorRef, ActorSystem, IntoProps, MsgOf, RootContext, SpawnError, StartError, SystemBuilder,
    TerminationReport,
};
use clockjack_sync::mutant;
use clockjack_time::Tick;
use tokio::time::Sleep;

use super::{Shared, SliceGuard, TokioToolbox};
use crate::current::Entered;

/// A system of actors that runs while one of its futures is awaited on tokio.
///
/// It stays on its thread, and nothing that it runs needs to be `Send`: drive it in
/// `tokio::task::LocalSet`, or in the future that `Runtime::block_on` is given. Actors and their
/// futures may use what tokio has there. Its [`ActorSystem`] and its addresses go to any thread.
///
/// While nobody drives it, it stands still and loses nothing. Where actors are to run on threads of
/// their own beside tokio, [`Runtime`](crate::Runtime) is what to take.
///
/// # Drop
///
/// Jobs that wait are cancelled, and actors that are alive are ended by force.
/// [`shutdown`](Self::shutdown) is the orderly way.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{TokioToolbox, actor::{Actor, ActorSystem, Context, Failure, Next, ReplyTo}};
/// use clockjack_time::Resolution;
/// use core::time::Duration;
///
/// struct Doubler;
///
/// impl Actor for Doubler {
///     type Msg = (u32, ReplyTo<u32>);
///
///     fn receive(
///         &mut self,
///         _cx: &mut Context<'_, Self>,
///         (n, reply): Self::Msg,
///     ) -> Result<Next, Failure> {
///         reply.reply(2 * n);
///         Ok(Next::Stay)
///     }
/// }
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// let toolbox = TokioToolbox::new(Resolution::MILLI);
/// let mut system = toolbox.system(ActorSystem::builder("inside"))?;
/// let doubler = system.spawn("doubler", || Doubler)?;
/// let answer = doubler.ask(|reply| (21, reply), Duration::from_secs(1));
/// assert_eq!(system.drive(answer).await?, 42);
/// assert!(system.shutdown(Duration::from_secs(1)).await.is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokioSystem {
    root: RootContext,
    shared: Arc<Shared>,
}

/// What a turn leaves to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There may be more to do: only let others run.
    Yield,
    /// The bell, or this tick.
    Until(Tick),
    /// The bell.
    Notified,
}

impl TokioSystem {
    pub(super) fn new(toolbox: TokioToolbox, builder: SystemBuilder) -> Result<Self, StartError> {
        let shared = Arc::clone(&toolbox.shared);
        Ok(Self { root: RootContext::new(toolbox, builder)?, shared })
    }

    /// The system, by which other tasks and threads start actors, schedule and terminate.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
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

    /// Runs until the system has terminated, and tells how that went.
    ///
    /// # Panics
    ///
    /// As [`drive`](Self::drive).
    pub async fn run(&mut self) -> TerminationReport {
        let end = self.system().when_terminated();
        self.drive(end).await
    }

    /// Runs until `stop`, which is asked after each turn, says so, or the system has terminated.
    ///
    /// # Panics
    ///
    /// As [`drive`](Self::drive).
    pub async fn run_until(&mut self, mut stop: impl FnMut() -> bool) {
        let end = self.system().when_terminated();
        self.drive(poll_fn(|_| match stop() || end.report().is_some() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
        .await;
    }

    /// Runs until a future has its output: an answer, a message of another task, a socket of
    /// tokio's. It is polled in this task, after each turn, and lets tokio go on meanwhile.
    ///
    /// A turn is bounded, but a handler that does not return holds tokio's thread up, as any task
    /// would that does not await. [`sleep`](crate::sleep) and [`spawn`](crate::spawn) in the
    /// future belong to this system. Dropping it before its end is harmless: driving can go on
    /// later.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in one without its timers, as soon as it has to wait for a
    /// timer; and if the future panics.
    pub async fn drive<F: Future>(&mut self, until: F) -> F::Output {
        let mut until = pin!(until);
        let mut timer = pin!(None::<Sleep>);
        let mut timer_tick = None;
        let handle = self.system().executor();
        let shared = Arc::clone(&self.shared);
        loop {
            let end = poll_fn(|cx| {
                // Only as long as this thread is in here: other tasks have other pools.
                let _entered = Entered::enter(handle.clone());
                let wait = self.poll_once(cx);
                // Behind the turn, which may have brought the answer.
                if let Poll::Ready(output) = until.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
                let wake = match wait {
                    Wait::Yield => return Poll::Ready(None),
                    Wait::Until(tick) => Some(tick),
                    Wait::Notified => None,
                };
                if wake != timer_tick {
                    let left = wake.map(|tick| shared.left_until(tick));
                    timer.set(left.map(tokio::time::sleep));
                    timer_tick = wake;
                }
                match timer.as_mut().as_pin_mut() {
                    Some(timer) => timer.poll(cx).map(|()| None),
                    None => Poll::Pending,
                }
            });
            if let Some(output) = end.await {
                return output;
            }
            // It has rung, or is not wanted any more.
            timer.set(None);
            timer_tick = None;
            tokio::task::yield_now().await;
        }
    }

    /// Terminates the system and runs until that is done, or the time is over: then what is alive
    /// is reported, and ended by force.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in one without its timers.
    pub async fn shutdown(mut self, deadline: Duration) -> TerminationReport {
        let end = self.system().terminate();
        match tokio::time::timeout(deadline, self.drive(end)).await {
            Ok(report) => report,
            Err(_late) => self.root.shutdown(Duration::ZERO),
        }
    }

    /// Rules 2 and 3: one turn, and what to wait for then.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Wait {
        let _slice = SliceGuard::enter(&self.shared);
        let polled = pin!(self.root.dispatch_next()).poll(cx);
        match polled {
            Poll::Ready(true) if mutant!("tokio-turns-unyielded") => self.poll_once(cx),
            Poll::Ready(true) => Wait::Yield,
            Poll::Ready(false) => Wait::Notified,
            Poll::Pending if mutant!("tokio-alarm-forgotten") => Wait::Notified,
            // This looks once more, so that nothing is due before what it says.
            Poll::Pending => match self.root.next_wake() {
                // An alarm would end at once, perhaps without tokio having had its turn.
                Some(tick) if self.shared.left_until(tick).is_zero() => Wait::Yield,
                wake => wake.map_or(Wait::Notified, Wait::Until),
            },
        }
    }
}

impl fmt::Debug for TokioSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioSystem").field("root", &self.root).finish_non_exhaustive()
    }
}
