//! [`Runtime::run`]: waits until a signal, a failure or the program itself stops the system.

use core::{
    fmt,
    future::{pending, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use clockjack_actor::{ActorSystem, FailureInfo, shutdown::Reason};

use super::{Runtime, RuntimeReport};
use crate::{
    catch_panic,
    failure_log::Failures,
    signals::{Hangup, SignalConfig, SignalEvent, SignalListener, StopSignal},
    sleep,
};

/// The handles to the system that the host itself has during a run: what else it needs the system
/// for has uncounted ones.
const OWN_HANDLES: usize = 1;

/// How often a run without top-level actors checks whether another handle to the system still
/// exists. The drop of a handle wakes nobody.
const HANDLES_CHECK: Duration = Duration::from_millis(100);

/// How [`Runtime::run_with`] runs.
///
/// # Examples
///
/// ```no_run
/// use clockjack_rt::{RunConfig, Runtime, actor::Props};
/// use std::time::Duration;
///
/// let rt = Runtime::new("shop")?;
/// let till = rt.spawn("till", Props::from_fn(|_cx, ()| println!("reads its configuration")))?;
/// let report = rt.run_with(RunConfig {
///     drain_timeout: Some(Duration::from_secs(30)),
///     on_hangup: Some(Box::new(move || till.tell_or_dead_letter(()))),
/// });
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RunConfig {
    /// How long the actors may take to stop after SIGINT or SIGTERM; `None` for
    /// [`RuntimeConfig::drop_timeout`](crate::RuntimeConfig::drop_timeout). Choose less than what
    /// the service manager waits before it kills the program.
    pub drain_timeout: Option<Duration>,
    /// Is called for SIGHUP, on the thread that called `run_with`, once for all signals that have
    /// arrived since the last call. While it runs, a signal to stop has to wait, so it is best to
    /// send a message and to return. If it panics, a warning is written and the run continues.
    /// `None`: SIGHUP does what it does without a runtime, usually it ends the program.
    pub on_hangup: Option<Box<dyn FnMut() + Send>>,
}

impl RunConfig {
    /// The drain has the time of the runtime's configuration; SIGHUP is left alone.
    pub const DEFAULT: Self = Self { drain_timeout: None, on_hangup: None };

    /// Starts to listen, and writes the warnings.
    pub(crate) fn listen(&self, failures: &Failures) -> SignalListener {
        let is_wanted = self.on_hangup.is_some();
        let hangup = if is_wanted { Hangup::Listen } else { Hangup::Leave };
        let signals = SignalListener::new(SignalConfig { hangup, ..SignalConfig::DEFAULT });
        for warning in signals.warnings() {
            failures.warn(format_args!("{warning}"));
        }
        signals
    }

    /// The next signal to stop; calls the hook for each SIGHUP before it.
    pub(crate) fn poll_stop(
        &mut self,
        signals: &SignalListener,
        failures: &Failures,
        cx: &Context<'_>,
    ) -> Poll<StopSignal> {
        loop {
            match signals.poll_next(cx) {
                Poll::Ready(SignalEvent::Stop(signal)) => return Poll::Ready(signal),
                Poll::Ready(SignalEvent::Hangup) => self.call_on_hangup(failures),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn call_on_hangup(&mut self, failures: &Failures) {
        let Some(hook) = &mut self.on_hangup else { return };
        if let Err(caught) = catch_panic(&mut || hook()) {
            failures.warn(format_args!("the hook for SIGHUP panicked: {}", caught.message()));
            caught.drop_caught(catch_panic);
        }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Debug for RunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunConfig")
            .field("drain_timeout", &self.drain_timeout)
            .field("has_on_hangup", &self.on_hangup.is_some())
            .finish()
    }
}

/// Why a run ends.
pub(crate) enum RunEnd {
    /// The program has terminated the system, or a failure at the root has.
    Terminated,
    Signal(StopSignal),
    /// The last top-level actor has failed.
    Failed(FailureInfo),
}

impl RunEnd {
    /// The reason of the shutdown that has to follow; `None` if the system has terminated.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Terminated => None,
            Self::Signal(signal) => Some(Reason::new(signal.name())),
            Self::Failed(info) => {
                Some(Reason::new(format!("the last top-level actor failed: {info}")))
            }
        }
    }

    /// Adds to a report why the run ended. The parts that were left behind are a warning if
    /// something else than the program has ended the run.
    pub(crate) fn add_to(self, mut report: RuntimeReport, failures: &Failures) -> RuntimeReport {
        let is_by_program = match self {
            Self::Terminated => {
                report.failure = failures.take_root();
                report.failure.is_none()
            }
            Self::Signal(signal) => {
                report.signal = Some(signal);
                false
            }
            Self::Failed(info) => {
                report.failure = Some(info);
                false
            }
        };
        if !is_by_program && !report.is_clean() {
            failures.warn(format_args!("{report}"));
        }
        report
    }
}

impl Runtime {
    /// Waits until the system has terminated, and shuts the runtime down. A server calls this at
    /// the end of `main`. As [`run_with`](Self::run_with), with [`RunConfig::DEFAULT`].
    ///
    /// # Panics
    ///
    /// As [`block_on`](Self::block_on).
    pub fn run(self) -> RuntimeReport {
        self.run_with(RunConfig::DEFAULT)
    }

    /// Waits until something stops the system, and shuts the runtime down:
    ///
    /// * the program terminates the system ([`ActorSystem::shutdown`]), or a failure reaches the
    ///   root;
    /// * SIGINT (Ctrl-C) or SIGTERM. The phases of the shutdown run and the actors stop, each with
    ///   `PostStop`, within the [drain time-out](RunConfig::drain_timeout). What has not stopped
    ///   then is stopped by force, and a warning names it. A second signal exits the program at
    ///   once, with code 130 or 143. [`signals`](crate::signals) has the details;
    /// * the last top-level actor fails, no strategy restarts it, and nobody can start another one,
    ///   because there is no other handle to the system ([`ActorSystem`]) than that of the runtime.
    ///
    /// The report has the [signal](RuntimeReport::signal) or the
    /// [failure](RuntimeReport::failure). The exit code of the program is up to the caller:
    /// [`is_success`](RuntimeReport::is_success) says whether everything went well.
    ///
    /// A signal that cannot be received is a warning, on standard error or in `tracing`.
    ///
    /// # Panics
    ///
    /// As [`block_on`](Self::block_on).
    pub fn run_with(mut self, mut config: RunConfig) -> RuntimeReport {
        // The listener lives until the shutdown is complete, so that a second signal exits.
        let signals = config.listen(&self.failures);
        self.system.leave_scheduler_to_host();
        let end = wait_for_end(&self.system, &self.failures, &signals, &mut config);
        let end = self.block_on(end);
        if let Some(reason) = end.reason() {
            drop(self.system.shutdown_for(reason));
        }
        let report = self.stop(config.drain_timeout.unwrap_or(self.drop_timeout));
        end.add_to(report, &self.failures)
    }
}

/// Waits until something ends a run. Has to be polled where [`sleep`] works.
pub(crate) async fn wait_for_end(
    system: &ActorSystem,
    failures: &Failures,
    signals: &SignalListener,
    config: &mut RunConfig,
) -> RunEnd {
    let mut terminated = system.when_terminated();
    let mut failed = pin!(last_failure(system, failures));
    poll_fn(|cx| {
        if Pin::new(&mut terminated).poll(cx).is_ready() {
            return Poll::Ready(RunEnd::Terminated);
        }
        if let Poll::Ready(signal) = config.poll_stop(signals, failures, cx) {
            return Poll::Ready(RunEnd::Signal(signal));
        }
        failed.as_mut().poll(cx).map(RunEnd::Failed)
    })
    .await
}

/// Completes with the failure of the last top-level actor, if nobody can start another actor.
async fn last_failure(system: &ActorSystem, failures: &Failures) -> FailureInfo {
    loop {
        let mut info = poll_fn(|cx| {
            failures.waker().register(cx.waker());
            failures.take_top_level().map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        // Several may have failed together: whichever stops last, the newest failure is reported.
        loop {
            if let Some(stopped) = system.when_top_level_stopped(info.actor) {
                stopped.await;
            }
            let Some(newer) = failures.take_top_level() else { break };
            info = newer;
        }
        if is_end(system).await {
            // An actor that had not failed yet may have been the last one to stop.
            return core::iter::from_fn(|| failures.take_top_level()).last().unwrap_or(info);
        }
    }
}

/// Whether a top-level actor that has failed was the last one; waits until that is decided.
async fn is_end(system: &ActorSystem) -> bool {
    // If another actor is started meanwhile, the one that failed was not the last one.
    let n_spawned = system.metrics().spawned;
    loop {
        // Before the actors are examined: the thread that has dropped the last other handle may
        // have started an actor first, and the Acquire of `n_handles` makes that actor visible.
        let is_alone = system.n_handles() <= OWN_HANDLES;
        if system.has_top_level_actors() || system.metrics().spawned != n_spawned {
            return false;
        }
        // The others stop, too, perhaps because of this failure. No failure of theirs follows, so
        // nothing else would end the run; but until they have stopped, they may start an actor.
        if let Some(stopped) = system.when_any_top_level_stopped() {
            stopped.await;
        } else if is_alone {
            return true;
        } else if sleep(HANDLES_CHECK).await.is_err() {
            // Without timers only the program and signals can end the run.
            pending::<()>().await;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::task::Waker;
    use std::{sync::mpsc, time::Instant};

    use clockjack_actor::{
        Actor, ActorRef, Context as ActorContext, Failure, Next, Props, Scope, Signal, Strategy,
        SystemBuilder,
    };

    use super::*;

    /// Far beyond what a loaded machine needs.
    const LONG: Duration = Duration::from_secs(60);

    /// Fails at each message; its `PostStop` waits until the other end is dropped.
    struct Failing(mpsc::Sender<()>, mpsc::Receiver<()>);

    impl Actor for Failing {
        type Msg = ();

        fn receive(&mut self, _: &mut ActorContext<'_, Self>, (): ()) -> Result<Next, Failure> {
            Err(Failure::msg("out of paper"))
        }

        fn signal(
            &mut self,
            _: &mut ActorContext<'_, Self>,
            signal: Signal,
        ) -> Result<Next, Failure> {
            if matches!(signal, Signal::PostStop) {
                let _ = self.0.send(());
                let _ = self.1.recv();
            }
            Ok(Next::Stay)
        }
    }

    /// An actor, its signal that it stops, and what lets it stop.
    type Held = (ActorRef<()>, mpsc::Receiver<()>, mpsc::Sender<()>);

    fn spawn(runtime: &Runtime, name: &str) -> Held {
        let (stops, stopping) = mpsc::channel();
        let (hold, held) = mpsc::channel();
        let mut actor = Some(Failing(stops, held));
        let props = Props::new(move || actor.take().expect("it is made once"));
        (runtime.spawn(name, props).unwrap(), stopping, hold)
    }

    fn start(builder: SystemBuilder) -> Runtime {
        let config = crate::RuntimeConfig { workers: Some(3), ..crate::RuntimeConfig::DEFAULT };
        Runtime::start_with(builder, config).unwrap()
    }

    /// Polls `last_failure` once while an actor is held in its stop, then releases that actor, and
    /// polls until the failure is there.
    fn check(runtime: &Runtime, held: mpsc::Sender<()>, expected: &str) {
        let failure = runtime.block_on(async {
            let mut failure = pin!(last_failure(&runtime.system, &runtime.failures));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(failure.as_mut().poll(&mut cx).is_pending(), "an actor has not stopped");
            drop(held);
            let start = Instant::now();
            loop {
                if let Poll::Ready(failure) = failure.as_mut().poll(&mut cx) {
                    break failure;
                }
                assert!(start.elapsed() < LONG, "the run would never end");
                std::thread::yield_now();
            }
        });
        assert_eq!(failure.path.to_string(), expected);
    }

    #[test]
    fn two_actors_that_fail_together_end_the_run_whichever_stops_last() {
        for slow_first in [true, false] {
            let runtime = start(ActorSystem::builder("t"));
            let (first, first_stops, first_held) = spawn(&runtime, "first");
            let (second, second_stops, second_held) = spawn(&runtime, "second");
            first.tell(()).unwrap();
            first_stops.recv_timeout(LONG).unwrap();
            second.tell(()).unwrap();
            second_stops.recv_timeout(LONG).unwrap();
            let (fast, freed, held) = if slow_first {
                (&second, second_held, first_held)
            } else {
                (&first, first_held, second_held)
            };
            drop(freed);
            runtime.block_on(runtime.system().when_stopped(fast));
            check(&runtime, held, "/user/second");
        }
    }

    #[test]
    fn the_failure_of_an_actor_that_stops_already_is_the_last_one() {
        type Call = (mpsc::Sender<()>, mpsc::Receiver<()>);
        let runtime = start(ActorSystem::builder("t"));
        let (first, _, held) = spawn(&runtime, "first");
        drop(held);
        let fails_late = |_: &mut ActorContext<'_, _>, (called, held): Call| {
            let _ = called.send(());
            let _ = held.recv();
            Err::<(), _>(Failure::msg("out of ink"))
        };
        let props = Props::from_fn(fails_late).supervise(Strategy::stop());
        let second = runtime.spawn("second", props).unwrap();
        let ((calls, called), (hold, held)) = (mpsc::channel(), mpsc::channel());
        second.tell((calls, held)).unwrap();
        called.recv_timeout(LONG).unwrap();
        runtime.system().stop(&second).unwrap();
        first.tell(()).unwrap();
        runtime.block_on(runtime.system().when_stopped(&first));
        check(&runtime, hold, "/user/second");
    }

    #[test]
    fn a_handle_of_the_program_keeps_the_run() {
        let runtime = start(ActorSystem::builder("t"));
        // More than a run has itself.
        let handles = vec![runtime.system().clone(); OWN_HANDLES + 1];
        let (actor, stops, held) = spawn(&runtime, "only");
        actor.tell(()).unwrap();
        stops.recv_timeout(LONG).unwrap();
        drop(held);
        runtime.block_on(runtime.system().when_stopped(&actor));
        let failure = runtime.block_on(async {
            let mut failure = pin!(last_failure(&runtime.system, &runtime.failures));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(failure.as_mut().poll(&mut cx).is_pending(), "an actor can be started");
            drop(handles);
            failure.await
        });
        assert_eq!(failure.path.to_string(), "/user/only");
    }

    #[test]
    fn siblings_that_stop_because_of_a_failure_do_not_keep_the_run() {
        for scope in [Scope::AllForOne, Scope::RestForOne] {
            let builder = ActorSystem::builder("t").supervise_users(scope, Strategy::stop());
            let runtime = start(builder);
            // The youngest is stopped first. With RestForOne the oldest one has to fail.
            let (old, old_stops, old_held) = spawn(&runtime, "old");
            let (_, _, middle_held) = spawn(&runtime, "middle");
            let (young, _, young_held) = spawn(&runtime, "young");
            drop((middle_held, young_held));
            let failing = if scope == Scope::AllForOne { &young } else { &old };
            failing.tell(()).unwrap();
            old_stops.recv_timeout(LONG).unwrap();
            check(&runtime, old_held, &failing.path().to_string());
        }
    }

    #[test]
    fn a_sibling_that_stays_keeps_the_run() {
        let strategy = Strategy::stop();
        let builder = ActorSystem::builder("t").supervise_users(Scope::RestForOne, strategy);
        let runtime = start(builder);
        let (stays, _, stays_held) = spawn(&runtime, "stays");
        let (failing, _, held) = spawn(&runtime, "failing");
        drop((stays_held, held));
        failing.tell(()).unwrap();
        runtime.block_on(runtime.system().when_stopped(&failing));
        let is_last = runtime.block_on(is_end(runtime.system()));
        assert!(!is_last && !stays.is_stopped());
    }
}
