//! A pool of workers with a system of actors on it.

use core::{fmt, time::Duration};

use clockjack_actor::{
    ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, SystemBuilder, TerminationReport,
    system::HostParts,
};
use clockjack_exec::StartError;

use crate::{PoolConfig, WorkerPool};

/// How long a runtime that is dropped waits for its actors.
const DROP_DEADLINE: Duration = Duration::from_secs(10);

/// Threads, a clock, and one system of actors. Dropping it is an orderly shutdown.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, actor::{Next, Props}};
/// use std::sync::mpsc;
///
/// let rt = Runtime::new("hello")?;
/// let (told, heard) = mpsc::channel();
/// let greeter = rt.spawn("greeter", Props::from_fn(move |_cx, name: String| {
///     told.send(format!("hello, {name}"))?;
///     Ok(Next::Stay)
/// }))?;
/// greeter.tell("world".into())?;
/// assert_eq!(heard.recv()?, "hello, world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Runtime {
    system: ActorSystem,
    /// Taken out by the shutdown.
    pool: Option<WorkerPool>,
}

impl Runtime {
    /// A runtime with one worker for each processor, and a system of this name.
    ///
    /// # Errors
    ///
    /// If the operating system starts no thread.
    pub fn new(name: &str) -> Result<Self, StartError> {
        Self::start(ActorSystem::builder(name))
    }

    /// A runtime with this system.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); also if two commands have the same number, or a hook of the start has
    /// failed.
    pub fn start(system: SystemBuilder) -> Result<Self, StartError> {
        Self::start_with(system, PoolConfig::DEFAULT)
    }

    /// A runtime with this system and these workers.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and for a pool that cannot be.
    pub fn start_with(
        mut system: SystemBuilder,
        mut config: PoolConfig,
    ) -> Result<Self, StartError> {
        let (limits, scheduler, commands) = system.host_config();
        config.limits = limits;
        config.scheduler.settings = scheduler;
        let seed = config.seed;
        let pool = WorkerPool::new(config, commands)?;
        let system = system.start_on(HostParts {
            executor: pool.handle(),
            scheduler: pool.scheduler().clone(),
            dispatchers: Vec::new(),
            seed,
        })?;
        let told = system.clone();
        pool.tell_of_stuck(move |stuck| {
            if let Some(pid) = stuck.pid {
                told.report_stuck(pid, Duration::from_nanos(stuck.for_nanos));
            }
        });
        Ok(Self { system, pool: Some(pool) })
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

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// The workers.
    #[must_use]
    pub fn pool(&self) -> &WorkerPool {
        self.pool.as_ref().expect("it is taken out by the shutdown only")
    }

    /// Runs a future on this thread, which sleeps while it waits.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.pool().block_on(future)
    }

    /// Waits until the system has terminated, by a call of [`ActorSystem::terminate`], a failure
    /// that has come up to the root, or the end of `/user`.
    pub fn run(self) -> TerminationReport {
        let end = self.system.when_terminated();
        self.block_on(end)
    }

    /// Terminates the system by the phases of its shutdown, waits until it has or the time is over,
    /// and ends the rest by force: what is alive then is in the report.
    pub fn shutdown(mut self, deadline: Duration) -> TerminationReport {
        self.stop(deadline)
    }

    fn stop(&mut self, deadline: Duration) -> TerminationReport {
        let Some(pool) = self.pool.take() else { return TerminationReport::default() };
        let mut end = self.system.terminate();
        let ended = pool.block_on(async {
            let limit = pool.handle().sleep(deadline);
            let mut limit = core::pin::pin!(limit);
            core::future::poll_fn(|cx| {
                if let core::task::Poll::Ready(report) = core::pin::Pin::new(&mut end).poll(cx) {
                    return core::task::Poll::Ready(Some(report));
                }
                limit.as_mut().poll(cx).map(|_| None)
            })
            .await
        });
        // What is alive now, before it is ended by force.
        let report = ended.unwrap_or_else(|| self.system.report_by_force());
        pool.shutdown(deadline);
        report
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop(DROP_DEADLINE);
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("system", &self.system).finish_non_exhaustive()
    }
}
