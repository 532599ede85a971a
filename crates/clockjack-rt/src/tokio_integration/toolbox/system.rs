//! An actor system that is one tokio task.
//!
//! # Protocol
//!
//! Roles: the *task* is the one that awaits one of the methods here; only the task polls actors and
//! fires timers. The *callers* are other tasks and threads.
//!
//! 1. A caller always publishes its work first and notifies second.
//! 2. A poll of the task registers its waker for notifications before it checks for work.
//! 3. A poll handles one bounded batch of work. If the batch did something, or left something that
//!    is due, the task yields through tokio's scheduler and is polled again.
//! 4. If there was nothing to do, the task arms the timer for the next deadline, which it reads
//!    after the batch, and waits for a notification, the timer or its future.
//!
//! *Why no wake-up is lost*: the check of rule 2 finds work that was published before it; work that
//! is published later is notified later, and the task is polled again. A caller that arms a timer
//! notifies as well, so rule 4 sees the new deadline. Work that becomes due between the two checks
//! of a poll is run by the second check, and what that check leaves counts as due now. *Why it does
//! not starve other tasks*: by rule 3.

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
    TerminationReport, shutdown::Reason,
};
use clockjack_time::Tick;
use tokio::time::Sleep;

use super::{Shared, SliceGuard, TokioToolbox};
use crate::{
    RunConfig, RuntimeConfig, RuntimeReport, failure_log::Failures, pool::current::Entered,
    runtime::run::wait_for_end,
};

/// The default of [`RunConfig::drain_timeout`], as that of a runtime.
const DRAIN_TIMEOUT: Duration = RuntimeConfig::DEFAULT.drop_timeout;

/// An actor system that runs while one of its futures is awaited on tokio.
///
/// The system stays on its thread, and its actors need not be `Send`: drive it in a
/// `tokio::task::LocalSet`, or in the future that `Runtime::block_on` runs. Actors and their
/// futures may use tokio's resources there. The [`ActorSystem`] and actor references can be sent to
/// any thread.
///
/// While no task drives the system, it pauses and loses nothing. Use [`Runtime`](crate::Runtime) to
/// run actors on their own threads next to tokio.
///
/// # Drop
///
/// Pending jobs are cancelled, and live actors are stopped by force. Use
/// [`shutdown`](Self::shutdown) for an orderly shutdown.
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
    failures: Arc<Failures>,
}

/// What to wait for after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There may be more to do: only yield.
    Yield,
    /// A notification, or this tick.
    Until(Tick),
    /// A notification.
    Notified,
}

impl TokioSystem {
    pub(super) fn new(toolbox: TokioToolbox, builder: SystemBuilder) -> Result<Self, StartError> {
        let shared = Arc::clone(&toolbox.shared);
        let (builder, failures) = Failures::install(builder, toolbox.failure_log);
        Ok(Self { root: RootContext::new(toolbox, builder)?, shared, failures })
    }

    /// The system, with which other tasks and threads start actors, schedule jobs and terminate.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
    }

    /// Starts an actor below `/user`; the actor need not be `Send`.
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

    /// Runs until the system has terminated, and returns the report. Signals are left to the
    /// application, and so are failures that leave no actor behind; see
    /// [`run_with`](Self::run_with).
    ///
    /// # Panics
    ///
    /// As [`drive`](Self::drive).
    pub async fn run(&mut self) -> TerminationReport {
        let end = self.system().when_terminated();
        self.drive(end).await
    }

    /// Runs until something stops the system, and shuts the system down, as
    /// [`Runtime::run_with`](crate::Runtime::run_with) does:
    ///
    /// * the program terminates the system ([`ActorSystem::shutdown`]), or a failure reaches the
    ///   root;
    /// * SIGINT (Ctrl-C) or SIGTERM. The phases of the shutdown run and the actors stop, within the
    ///   [drain time-out](RunConfig::drain_timeout), by default ten seconds. What has not stopped
    ///   then is stopped by force, and a warning names it. A second signal exits the program at
    ///   once, with code 130 or 143. [`signals`](crate::signals) has the details;
    /// * the last top-level actor fails, no strategy restarts it, and nobody can start another one,
    ///   because there is no other handle to the system ([`ActorSystem`]) than that of this value.
    ///
    /// The report has the [signal](RuntimeReport::signal) or the
    /// [failure](RuntimeReport::failure), and what happened to the actors and in the phases
    /// ([`termination`](RuntimeReport::termination)). Threads and tasks are those of tokio.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in a runtime without timers.
    pub async fn run_with(mut self, mut config: RunConfig) -> RuntimeReport {
        let failures = Arc::clone(&self.failures);
        // The listener lives until the shutdown is complete, so that a second signal exits.
        let signals = config.listen(&failures);
        // Uncounted: this run must not look like somebody who can start an actor.
        let system = self.system().uncounted();
        let end = self.drive(wait_for_end(&system, &failures, &signals, &mut config)).await;
        let timeout = config.drain_timeout.unwrap_or(DRAIN_TIMEOUT);
        let termination = match end.reason() {
            Some(reason) => self.shutdown_for(reason, timeout).await,
            // Not forced: the system has terminated and has its report.
            None => system.forced_report(),
        };
        failures.flush();
        let report = RuntimeReport { termination, is_final: true, ..RuntimeReport::default() };
        end.add_to(report, &failures)
    }

    /// Runs until `stop`, which is called after each poll, returns true, or the system has
    /// terminated.
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

    /// Runs until a future completes: an answer, a message of another task, a tokio socket. The
    /// future is polled in this task, after each batch of work, and tokio runs meanwhile.
    ///
    /// A batch is bounded, but a handler that does not return blocks tokio's thread, as does any
    /// tokio task that does not await. [`sleep`](crate::sleep) and
    /// [`spawn_future`](crate::spawn_future) in the future use this system. Dropping the returned
    /// future early is safe: driving can continue later.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in a runtime without timers, as soon as it has to wait for a
    /// timer; and if the future panics.
    pub async fn drive<F: Future>(&mut self, until: F) -> F::Output {
        let mut until = pin!(until);
        let mut timer = pin!(None::<Sleep>);
        let mut timer_tick = None;
        let handle = self.system().executor();
        let shared = Arc::clone(&self.shared);
        loop {
            let end = poll_fn(|cx| {
                // Only during this poll: other tasks on this thread have other pools.
                let _entered = Entered::enter(handle.clone(), None);
                let wait = self.poll_once(cx);
                // After the batch, which may have completed the future.
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
            // The timer has fired, or is not needed any more.
            timer.set(None);
            timer_tick = None;
            tokio::task::yield_now().await;
        }
    }

    /// Terminates the system and runs until it has terminated or the time-out has passed; then
    /// reports the live actors and stops them by force.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in a runtime without timers.
    pub async fn shutdown(self, timeout: Duration) -> TerminationReport {
        self.shutdown_for(Reason::ACTOR_SYSTEM_TERMINATE, timeout).await
    }

    async fn shutdown_for(mut self, reason: Reason, timeout: Duration) -> TerminationReport {
        self.system().set_host_deadline(timeout);
        let end = self.system().shutdown_for(reason);
        match tokio::time::timeout(timeout, self.drive(end)).await {
            Ok(report) => report,
            Err(_late) => self.root.shutdown(Duration::ZERO),
        }
    }

    /// Rules 2 and 3: handles one batch, and returns what to wait for.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Wait {
        let _slice = SliceGuard::enter(&self.shared);
        let polled = pin!(self.root.dispatch_next()).poll(cx);
        match polled {
            Poll::Ready(true) => Wait::Yield,
            Poll::Ready(false) => Wait::Notified,
            // This checks once more, so that nothing is due before the tick that it returns.
            Poll::Pending => match self.root.next_wake() {
                // A timer would fire at once, perhaps without going through tokio's scheduler.
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
