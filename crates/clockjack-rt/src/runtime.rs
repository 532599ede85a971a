//! A worker pool with an actor system on it.
//!
//! # Shutdown
//!
//! 1. The system stops by the phases of its coordinated shutdown, children before parents, on all
//!    dispatchers, while all threads keep running. The shutdown waits for this until the deadline;
//!    actors that are alive then are stragglers.
//! 2. The scheduler shuts down, unless the system was terminated before and has closed it: jobs
//!    that are due run, then the close tasks; the other jobs are cancelled. Jobs that have fallen
//!    behind do not delay this beyond the deadline: the report counts the runs that were left. If
//!    step 1 has used up the time, handlers begin for another 50 ms. A handler that runs on the
//!    calling thread is never interrupted; if that takes longer, the deadline for what follows is
//!    the end of this step.
//! 3. The other dispatchers shut down, and their threads are joined.
//! 4. The pool shuts down. Steps 3 and 4 stop what is still alive by force: an actor that is
//!    between two messages is dropped, its watchers and its parent are notified, and its unhandled
//!    messages become dead letters. A thread whose handler does not return is abandoned together
//!    with that handler.
//!
//! If something has to be forced, steps 3 and 4 take at most a tenth of a second beyond the
//! deadline, whatever the number of threads: all their waits share that time. A tokio task that
//! blocks is abandoned then, like a handler. *Why the shutdown cannot hang*: each wait has a
//! timeout, and no wait needs a timer of a pool. A thread that runs actors of the runtime would
//! wait for itself: there, the shutdown starts a thread that does the work, and does not wait.

mod config;
mod metrics;
mod report;
pub(crate) mod run;
mod tasks;
mod trace;

use core::{fmt, time::Duration};
use std::sync::Arc;

use clockjack_actor::{
    ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, SystemBuilder, TerminationReport,
    system::{FailedStart, HostParts},
};
use clockjack_exec::{JoinHandle, StartError};

pub(crate) use self::trace::TraceSource;
pub use self::{
    config::RuntimeConfig,
    metrics::RuntimeMetrics,
    report::{ExecutorReport, RuntimeReport},
    run::RunConfig,
    trace::FlightRecording,
};
use crate::{
    BlockingHandle, OsInstant, Rejected, WorkerPool,
    dispatchers::{Dispatchers, RtDispatcherHost},
    failure_log::Failures,
    pool::{block_on::block_on_until, host},
    thread::{self, ThreadConfig},
};

/// A worker pool, a clock and one actor system.
///
/// Dropping a runtime shuts it down in order and waits at most
/// [ten seconds](RuntimeConfig::drop_timeout). A panic in an actor is
/// a failure of that actor, and its thread survives; with `panic = "abort"` it aborts the program.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, actor::Props};
/// use std::sync::mpsc;
///
/// let rt = Runtime::new("hello")?;
/// let (sender, receiver) = mpsc::channel();
/// let greeter = rt.spawn("greeter", Props::from_fn(move |_cx, name: String| {
///     sender.send(format!("hello, {name}"))?;
///     Ok(())
/// }))?;
/// greeter.tell("world".into())?;
/// assert_eq!(receiver.recv()?, "hello, world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Runtime {
    system: ActorSystem,
    failures: Arc<Failures>,
    drop_timeout: Duration,
    metrics: RuntimeMetrics,
    /// `None` after the shutdown has taken it.
    threads: Option<AllThreads>,
}

/// Everything in the runtime that owns threads.
struct AllThreads {
    pool: WorkerPool,
    dispatchers: Arc<Dispatchers>,
}

impl Runtime {
    /// Creates a runtime with one worker per CPU and an actor system with this name.
    ///
    /// # Errors
    ///
    /// If the operating system cannot start a thread.
    pub fn new(name: &str) -> Result<Self, StartError> {
        Self::start(ActorSystem::builder(name))
    }

    /// Creates a runtime with this system.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); also if two commands have the same number, or if a start hook fails.
    pub fn start(system: SystemBuilder) -> Result<Self, StartError> {
        Self::start_with(system, RuntimeConfig::DEFAULT)
    }

    /// Creates a runtime with this system and this configuration.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and if the configuration is invalid.
    pub fn start_with(
        mut system: SystemBuilder,
        config: RuntimeConfig,
    ) -> Result<Self, StartError> {
        let (limits, scheduler, commands) = system.host_config()?;
        let (seed, drop_timeout) = (config.seed, config.drop_timeout);
        let (system, failures) = Failures::install(system, config.failure_log);
        let config = config.into_pool(limits, scheduler);
        let pool = WorkerPool::new(config.clone(), commands)?;
        let dispatchers = Dispatchers::new(config, &pool);
        pool.run_jobs_on(&dispatchers);
        let host = HostParts {
            executor: pool.handle(),
            scheduler: pool.scheduler().clone(),
            dispatchers: Vec::new(),
            dispatcher_host: Some(Box::new(RtDispatcherHost(Arc::clone(&dispatchers)))),
            seed,
        };
        match system.start_on(host) {
            Ok(system) => {
                dispatchers.report_stuck_to(&system);
                let threads = AllThreads { pool, dispatchers };
                Ok(Self::new_started(system, failures, drop_timeout, threads))
            }
            Err(FailedStart { error, system }) => {
                match system {
                    // Earlier start hooks may have started actors: shut down in order.
                    Some(system) => {
                        let threads = AllThreads { pool, dispatchers };
                        drop(Self::new_started(system, failures, drop_timeout, threads));
                    }
                    None => dispatchers.shutdown(OsInstant::now(), &mut RuntimeReport::default()),
                }
                Err(error)
            }
        }
    }

    fn new_started(
        system: ActorSystem,
        failures: Arc<Failures>,
        drop_timeout: Duration,
        threads: AllThreads,
    ) -> Self {
        let metrics = RuntimeMetrics::new(&system, &threads.pool, &threads.dispatchers);
        Self { system, failures, drop_timeout, metrics, threads: Some(threads) }
    }

    /// Starts an actor below `/user`.
    ///
    /// # Errors
    ///
    /// As [`ActorSystem::spawn`].
    pub fn spawn<P>(&self, name: &str, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        self.system.spawn(name, props)
    }

    /// As [`spawn`](Self::spawn), with a name that the system chooses.
    ///
    /// # Errors
    ///
    /// As [`ActorSystem::spawn`].
    pub fn spawn_anonymous<P>(&self, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        self.system.spawn_anonymous(props)
    }

    /// Runs a future as a task on the worker pool. If the task cannot be started, the handle yields
    /// the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::Runtime;
    ///
    /// let rt = Runtime::new("hello")?;
    /// let answer = rt.spawn_future(async { 6 * 7 });
    /// let length = rt.spawn_blocking(|| "work that blocks".len())?;
    /// assert_eq!(rt.block_on(answer)?, 42);
    /// assert_eq!(rt.block_on(length)?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.pool().spawn_future(future)
    }

    /// Runs a closure that blocks on a separate thread; see [`WorkerPool::spawn_blocking`].
    ///
    /// # Errors
    ///
    /// As [`WorkerPool::spawn_blocking`].
    pub fn spawn_blocking<F, T>(&self, work: F) -> Result<BlockingHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.pool().spawn_blocking(work)
    }

    /// The actor system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// The worker pool.
    #[must_use]
    pub fn pool(&self) -> &WorkerPool {
        &self.threads.as_ref().expect("they are taken out by the shutdown only").pool
    }

    /// Runs a future on this thread, which sleeps while the future waits.
    ///
    /// # Panics
    ///
    /// On a thread that runs actors, because that thread would wait for itself. Use `.await` there.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.pool().block_on(future)
    }

    /// Shuts the system down by the phases of its coordinated shutdown, waits for it, and then
    /// shuts down the scheduler, the dispatchers and the pool. Actors that have not stopped within
    /// `timeout` are stopped by force, and the report contains their paths, including parents that
    /// wait for such a child. The report also names the jobs, tasks, threads and blocking work
    /// that were left behind.
    ///
    /// On a thread that runs actors of a runtime this method does not wait: it starts a thread
    /// that does the rest, and the report, which is not [final](RuntimeReport::is_final), lists the
    /// actors that are alive at this moment. [`ActorSystem::when_terminated`] yields the final
    /// report of the actors.
    pub fn shutdown(mut self, timeout: Duration) -> RuntimeReport {
        self.stop(timeout)
    }

    fn stop(&mut self, timeout: Duration) -> RuntimeReport {
        let Some(threads) = self.threads.take() else { return RuntimeReport::default() };
        if threads.pool.is_forked() {
            // The threads exist in the parent only.
            core::mem::forget(threads);
            let mut termination = TerminationReport::default();
            termination.reason = "the process is a fork of the one that started the system".into();
            return RuntimeReport { termination, ..RuntimeReport::default() };
        }
        let system = self.system.clone();
        if !host::is_worker() {
            let report = threads.shutdown(&system, timeout);
            self.failures.flush();
            return report;
        }
        let end = system.shutdown();
        let mut so_far = TerminationReport::default();
        so_far.reason = "shut down by a thread that it waits for".into();
        so_far.stragglers = system.tree().into_iter().filter(|path| path.depth() > 1).collect();
        let dispatchers = Arc::clone(&threads.dispatchers);
        let config = ThreadConfig { name: "cj-shutdown".into(), ..ThreadConfig::DEFAULT };
        if thread::start(&config, move || drop(threads.shutdown(&system, timeout))).is_err() {
            // The closure was dropped with the pool in it; on a worker that drop does not wait.
            dispatchers.shutdown_now();
        }
        RuntimeReport { termination: end.report().unwrap_or(so_far), ..RuntimeReport::default() }
    }
}

impl AllThreads {
    /// See the [module](self).
    fn shutdown(self, system: &ActorSystem, timeout: Duration) -> RuntimeReport {
        let Self { pool, dispatchers } = self;
        let until = OsInstant::now().saturating_add(timeout);
        system.leave_scheduler_to_host();
        let end = block_on_until(system.shutdown(), until);
        // Collect the actors that are alive now, before they are stopped by force.
        let termination = end.unwrap_or_else(|| system.force_termination());
        let mut report = RuntimeReport { termination, is_final: true, ..RuntimeReport::default() };
        let until = pool.close_scheduler(until);
        dispatchers.shutdown(until, &mut report);
        let name = pool.name().to_owned();
        report.add_pool(name, pool.shutdown_until(until));
        // The pool of the runtime comes first.
        report.executors.rotate_right(1);
        system.host_stopped();
        report
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop(self.drop_timeout));
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("system", &self.system).finish_non_exhaustive()
    }
}
