//! A single-threaded actor system, driven by the caller.
#![expect(unsafe_code, reason = "spawns actors that are not `Send` on their own thread")]

use alloc::boxed::Box;
use core::{
    convert::Infallible, fmt, future::poll_fn, marker::PhantomData, task::Poll, time::Duration,
};

use clockjack_exec::{LocalExecutor, PanicPayload, StartError, Toolbox};
use clockjack_sched::{DriverTicks, PressureReason, Scheduler, SchedulerHost};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicBool, Ordering::Relaxed},
    waker::AtomicWaker,
};
use clockjack_time::{
    ClockKind, DriverStatus, MonotonicClock, Resolution, Tick, TickDriver, TimerInstant,
};

use crate::{
    ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, SystemBuilder,
    cell::spawn::{self, Placement},
    error::SpawnErrorKind,
    system::{FailedStart, HostParts, TerminationReport},
};

/// How long the drop of a root context may begin handlers of jobs.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of scheduler jobs per round, before the actors run.
const JOBS_PER_ROUND: usize = 64;
/// The most steps of actors per round, before the timers are checked again.
const STEPS_PER_ROUND: usize = 64;
/// The time that actors may run per round, apart from the last few steps.
const ROUND_TIME_MAX: Duration = Duration::from_millis(1);
/// The most steps of actors between two reads of the clock.
const STEPS_PER_CLOCK_READ: usize = 4;

/// An actor system on the thread that created it; nothing needs to be `Send`.
///
/// The caller drives it: on a board without an operating system, in a test, or in a simulation.
///
/// Unless the clock is advanced by hand, every round takes the ticks of the toolbox's driver, so
/// that the driver wakes the thread or task at the next tick, and reports lateness
/// ([`driver_jitter`](clockjack_sched::Diagnostics::driver_jitter)), ticks that were caught up
/// with, and, if it is [watched](Self::watch_driver), a silent driver. The end of the system stops
/// and flushes the driver; a drop before the end leaves the driver to the next context.
pub struct RootContext {
    executor: LocalExecutor,
    system: ActorSystem,
    toolbox: SharedToolbox,
    ticks: DriverTicks,
    /// The clock is advanced by hand, so there is no point in waiting for it.
    is_manual: bool,
    /// Not `Send`, because the actors need not be.
    _here: PhantomData<*const ()>,
}

/// The toolbox of the platform, which the context, the executor and the scheduler share.
#[derive(Clone)]
struct SharedToolbox(Arc<Inner>);

/// The toolbox, and a waker that is woken together with its thread.
struct Inner {
    toolbox: Box<dyn Toolbox + Send>,
    /// The waker of the task that awaits [`RootContext::dispatch_next`], if one does.
    dispatch_waker: AtomicWaker,
    /// Whether the context is registered with the tick driver, so that the ticks are the context's
    /// to take, and the driver the scheduler's to stop. Only the thread of the context changes it,
    /// except that a close of the scheduler on another thread clears it.
    is_driver_registered: AtomicBool,
}

impl Toolbox for SharedToolbox {
    fn clock(&self) -> &dyn MonotonicClock {
        self.0.toolbox.clock()
    }

    fn driver(&self) -> &dyn TickDriver {
        self.0.toolbox.driver()
    }

    fn park(&self, until: Option<Tick>) {
        self.0.toolbox.park(until);
    }

    fn backpressure_pct(&self) -> Option<u8> {
        self.0.toolbox.backpressure_pct()
    }

    fn unpark(&self) {
        self.0.toolbox.unpark();
        self.0.dispatch_waker.wake();
    }

    fn current_worker(&self) -> Option<u16> {
        self.0.toolbox.current_worker()
    }

    fn now(&self) -> TimerInstant {
        self.0.toolbox.now()
    }

    fn clock_nanos(&self) -> u64 {
        self.0.toolbox.clock_nanos()
    }

    fn seed(&self) -> u64 {
        self.0.toolbox.seed()
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.0.toolbox.catch_unwind(call)
    }
}

impl SchedulerHost for SharedToolbox {
    fn now(&self) -> TimerInstant {
        self.0.toolbox.now()
    }

    fn driver_tick(&self) -> Resolution {
        self.0.toolbox.clock().resolution()
    }

    fn clock_kind(&self) -> ClockKind {
        self.0.toolbox.clock().kind()
    }

    fn name(&self) -> &'static str {
        "root context"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {
        self.unpark();
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.0.toolbox.catch_unwind(call)
    }

    fn stop_driver(&self) -> Option<DriverStatus> {
        // Relaxed: the driver orders its own operations.
        let is_registered = self.0.is_driver_registered.swap(false, Relaxed);
        is_registered.then(|| self.driver().stop_and_flush())
    }
}

impl RootContext {
    /// Starts an actor system on this thread.
    ///
    /// # Errors
    ///
    /// If two commands have the same number, if there is no room for the guardians, or if a start
    /// hook has failed.
    pub fn new(
        toolbox: impl Toolbox + Send + 'static,
        mut builder: SystemBuilder,
    ) -> Result<Self, StartError> {
        let (limits, mut config, commands) = builder.host_config()?;
        let seed = toolbox.seed();
        config.resolution = toolbox.clock().resolution();
        config.start = toolbox.clock().now().tick();
        config.shards = 1;
        let is_manual = toolbox.clock().kind() == ClockKind::Deterministic;
        let inner = Inner {
            toolbox: Box::new(toolbox),
            dispatch_waker: AtomicWaker::new(),
            is_driver_registered: AtomicBool::new(false),
        };
        let toolbox = SharedToolbox(Arc::new(inner));
        let executor = LocalExecutor::new(toolbox.clone(), limits, commands)?;
        let scheduler = Scheduler::new(config, toolbox.clone())
            .map_err(|refused| StartError::thread(&refused))?;
        let host = HostParts {
            executor: executor.handle(),
            scheduler,
            dispatchers: alloc::vec::Vec::new(),
            dispatcher_host: None,
            seed,
        };
        let (system, error) = match builder.start_on(host) {
            Ok(system) => (system, None),
            Err(FailedStart { error, system: None }) => return Err(error),
            Err(FailedStart { error, system: Some(system) }) => (system, Some(error)),
        };
        let root = Self {
            executor,
            system,
            toolbox,
            ticks: DriverTicks::default(),
            is_manual,
            _here: PhantomData,
        };
        // A system that has started is shut down like any other, by the drop of `root`.
        error.map_or(Ok(root), Err)
    }

    /// The actor system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// The executor, for models in which other threads run it.
    #[cfg(loom)]
    #[doc(hidden)]
    #[must_use]
    pub fn executor(&self) -> clockjack_exec::Handle {
        self.executor.handle()
    }

    /// Starts an actor under `/user`, on this thread.
    ///
    /// # Errors
    ///
    /// As [`ActorSystem::spawn`].
    pub fn spawn<P: IntoProps>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        let Some(user) = self.system.inner().user() else {
            return Err(SpawnError::new(SpawnErrorKind::Stopping, props));
        };
        let here = Placement::Here(self.executor.handle());
        // SAFETY: this is the thread of the executor.
        unsafe { spawn::spawn(&user, true, here, name, props) }
    }

    /// Seals the system: from now on every operation that would allocate memory is refused.
    ///
    /// Refused operations are: spawning actors; subscribing to events, failures or the
    /// receptionist; registering services; adding tasks and hooks of the shutdown; waiting for room
    /// in a mailbox; and asks and futures beyond the reserved room. Timers and jobs continue to
    /// work within the capacity of the scheduler, whose memory
    /// [`SchedulerConfig::is_fixed`](clockjack_sched::SchedulerConfig) allocates at the start. Each
    /// actor allocates in its next poll what a later failure will need, and the memory of its
    /// mailbox, if that holds at most 112 messages, or 28 on a microcontroller
    /// ([`Mailbox::bounded`](crate::Mailbox::bounded), [`Limits::messages`]). The termination of
    /// the system may allocate.
    ///
    /// [`Limits::messages`]: crate::Limits::messages
    pub fn seal(&mut self) {
        self.system.inner().seal();
    }

    /// Watches from now on whether the tick driver supplies ticks, with the help of `reference`, a
    /// clock that does not depend on the driver. The timeout is
    /// [`SchedulerConfig::driver_timeout`](clockjack_sched::SchedulerConfig::driver_timeout), but
    /// at least two ticks.
    ///
    /// Each silence is reported once, as
    /// [`Warning::DriverSilent`](clockjack_sched::Warning::DriverSilent) on the event stream, and
    /// `fallback` is called with its length: it starts what the platform has for this case, for
    /// instance restarts the timer. The context checks in every round, so the platform must also
    /// run rounds without the driver: by the interrupt of a watchdog, or by a limit to its sleep.
    /// A manual clock is not watched.
    pub fn watch_driver(
        &mut self,
        reference: &'static (dyn MonotonicClock + Sync),
        fallback: fn(Duration),
    ) {
        self.ticks.watch(self.system.scheduler().jobs(), reference, fallback);
    }

    /// Runs due jobs and timers and ready actors until there are none. Returns the number of steps.
    pub fn run_until_idle(&mut self) -> usize {
        let mut steps = 0;
        loop {
            let round = self.run_round();
            if round.steps == 0 {
                return steps;
            }
            steps += round.steps;
        }
    }

    /// Runs due jobs and timers, then ready actors, up to the limits of one round.
    fn run_round(&mut self) -> Round {
        if !self.is_manual {
            self.take_ticks();
        }
        if let Some(percent) = self.toolbox.backpressure_pct() {
            self.system.scheduler().jobs().set_pressure(PressureReason::Host, percent);
        }
        let jobs = self.system.scheduler().jobs().poll_shard(0, 0, JOBS_PER_ROUND);
        let fired = self.executor.fire_due();
        let stepped = self.step_actors();
        let next_wake = match (jobs.next_wake, self.executor.next_wake()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let steps = jobs.ran + fired + stepped + usize::from(jobs.is_more);
        let is_ready = jobs.is_more || self.executor.is_ready();
        // A context that sleeps does not take the ticks in time, and need not.
        let is_idle = steps == 0 && !is_ready;
        let never = Tick::new(u64::MAX);
        self.ticks.set_idle_until(if is_idle { next_wake.unwrap_or(never) } else { Tick::ZERO });
        Round { steps, next_wake, is_ready }
    }

    /// Takes the ticks of the driver, if this context is the one that it serves, and reports how
    /// the driver does. The time of a manual clock is that of its caller, who cannot be late.
    fn take_ticks(&mut self) {
        if !self.register_with_driver() {
            return;
        }
        if self.is_manual {
            while self.toolbox.driver().poll_tick().is_some() {}
            return;
        }
        self.ticks.take(self.system.scheduler().jobs(), self.toolbox.driver());
    }

    fn is_driver_registered(&self) -> bool {
        // Relaxed: as in `stop_driver`.
        self.toolbox.0.is_driver_registered.load(Relaxed)
    }

    /// Runs actors until none is ready or the time of the round is over. The faster the actors are,
    /// the more rarely the clock is read; a slow actor is noticed after a few steps at the latest.
    fn step_actors(&mut self) -> usize {
        let clock = self.system.scheduler().jobs();
        let begun = clock.now();
        let (mut steps, mut until_clock_read) = (0, 1);
        while steps < STEPS_PER_ROUND {
            let stepped = self.executor.step_many(until_clock_read);
            steps += stepped;
            // An actor that is ready again and again makes `step_many` return early, so that the
            // clock is read.
            let is_idle = stepped < until_clock_read && !self.executor.is_ready();
            let is_time_up = clock.now().since(begun) >= ROUND_TIME_MAX;
            if stepped == 0 || is_idle || is_time_up {
                break;
            }
            until_clock_read = (2 * until_clock_read).min(STEPS_PER_CLOCK_READ);
        }
        steps
    }

    /// Runs one round and returns when something is due next. A round is bounded: if it left work,
    /// the result is the current time.
    pub fn next_wake(&mut self) -> Option<Tick> {
        let round = self.run_round();
        if round.is_ready {
            return Some(self.toolbox.clock().now().tick());
        }
        round.next_wake
    }

    /// Runs one round; if nothing is due or ready, waits for work first. Returns false if the
    /// system has terminated.
    ///
    /// The awaiting task is woken by every operation that gives an actor something to do, and by
    /// the ticks of the toolbox's driver, in the context from which these come. If the driver
    /// already serves another consumer, or was stopped, the task polls continuously while something
    /// waits for its time.
    pub async fn dispatch_next(&mut self) -> bool {
        poll_fn(|cx| {
            // Register the waker before checking for work, so that work that arrives after the
            // check wakes the task.
            self.toolbox.0.dispatch_waker.register(cx.waker());
            if self.is_manual {
                self.take_ticks();
            }
            if self.system.when_terminated().report().is_some() {
                return Poll::Ready(false);
            }
            let round = self.run_round();
            if round.steps > 0 {
                return Poll::Ready(true);
            }
            if round.is_ready || (round.next_wake.is_some() && !self.is_driver_registered()) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Registers this context with the driver, unless it is registered; ticks then wake the thread
    /// or task that drives it. Returns false if the driver already serves another consumer, or was
    /// stopped.
    fn register_with_driver(&self) -> bool {
        let is_registered = &self.toolbox.0.is_driver_registered;
        let driver = self.toolbox.driver();
        if self.is_driver_registered() {
            // Another task may have stopped the driver.
            let is_stopped = driver.current_status() == DriverStatus::Suspended;
            // Relaxed: as in `stop_driver`.
            is_registered.store(!is_stopped, Relaxed);
            return !is_stopped;
        }
        let jobs = self.system.scheduler().jobs();
        if jobs.is_closed() || driver.register(self.executor.waker()).is_err() {
            return false;
        }
        DriverTicks::set_counts_ticks(jobs, !self.is_manual);
        is_registered.store(true, Relaxed);
        true
    }

    /// Runs until `stop` returns true or the system has terminated.
    pub async fn run_until(&mut self, mut stop: impl FnMut() -> bool) {
        while !stop() && self.dispatch_next().await {}
    }

    /// Runs forever: does not return even when the system has terminated.
    pub async fn run_forever(&mut self) -> Infallible {
        loop {
            if !self.dispatch_next().await {
                core::future::pending::<()>().await;
            }
        }
    }

    /// Runs on this thread, which sleeps when there is nothing to do, until `stop` returns true or
    /// the system has terminated.
    pub fn blocking_dispatch_loop(&mut self, mut stop: impl FnMut() -> bool) {
        while !stop() && self.system.when_terminated().report().is_none() {
            let round = self.run_round();
            if round.steps == 0 && !round.is_ready {
                self.toolbox.park(round.next_wake);
            }
        }
    }

    /// Runs until a future completes and returns its output.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = core::pin::pin!(future);
        let waker = self.executor.waker();
        let mut cx = core::task::Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            let round = self.run_round();
            if round.steps == 0 && !round.is_ready {
                self.toolbox.park(round.next_wake);
            }
        }
    }

    /// Shuts the system down and runs until that is done or the time-out has passed. Then the
    /// actors that are still alive are reported and stopped by force. With a clock
    /// that is advanced by hand there is no waiting: the system runs until it is idle.
    pub fn shutdown(mut self, timeout: Duration) -> TerminationReport {
        self.system.set_host_deadline(timeout);
        let end = self.system.shutdown();
        let executor = self.executor.handle();
        let host = executor.executor().toolbox();
        let until = host.deadline_after(timeout);
        loop {
            let round = self.run_round();
            if let Some(report) = end.report() {
                return report;
            }
            let is_idle = round.steps == 0 && !round.is_ready;
            let is_late = !self.is_manual && host.tick_of(host.nanos()) >= until;
            if is_late || (is_idle && self.is_manual) {
                return self.system.forced_report();
            }
            if is_idle {
                self.toolbox.park(Some(round.next_wake.map_or(until, |wake| wake.min(until))));
            }
        }
    }
}

impl Drop for RootContext {
    /// Cancels the pending jobs, then stops the remaining actors by force. In this order, no actor
    /// is kept alive by a job that waits for it.
    fn drop(&mut self) {
        // Relaxed: as in `stop_driver`. Without a registration, the close below does not stop the
        // driver, so that another context may use it.
        if self.toolbox.0.is_driver_registered.swap(false, Relaxed) {
            // Breaks a reference cycle: the driver holds the waker, the waker holds the executor,
            // and the executor holds the driver.
            self.toolbox.driver().unregister();
        }
        self.system.scheduler().jobs().shutdown_within(DROP_TIMEOUT);
    }
}

struct Round {
    steps: usize,
    next_wake: Option<Tick>,
    is_ready: bool,
}

impl fmt::Debug for RootContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootContext").field("system", &self.system).finish_non_exhaustive()
    }
}
