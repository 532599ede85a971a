//! A pool of workers with a system of actors on it.
//!
//! # The end
//!
//! 1. The system terminates by the phases of its shutdown, children before parents, on all
//!    dispatchers, with everything at work. That is waited for until the deadline; actors that are
//!    left then are stragglers.
//! 2. The scheduler is closed: what is due runs, the rest is cancelled.
//! 3. The dispatchers beside the pool end, and their threads are joined.
//! 4. The pool ends. What is still there by then, in this step and the one before, is ended by
//!    force: an actor between two messages is dropped, its watchers and its parent are told, and
//!    what it had not handled are dead letters. A thread that does not come back from a handler is
//!    left behind with it.
//!
//! Steps 3 and 4 take a fraction of a second beyond the deadline where something has to be forced.
//! *Why it cannot hang*: each wait has a time, and none needs a timer of a pool. A thread that runs
//! actors of the runtime would have to wait for itself: there, a thread is started that does all
//! this, and nobody waits.

mod ctrl_c;

use core::{fmt, future::poll_fn, pin::Pin, task::Poll, time::Duration};
use std::sync::Arc;

use clockjack_actor::{
    ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, SystemBuilder, TerminationReport,
    shutdown::Reason,
    system::{FailedStart, HostParts},
};
use clockjack_exec::StartError;

use self::ctrl_c::CtrlCListener;
use crate::{
    OsInstant, PoolConfig, WorkerPool,
    block_on::block_on_until,
    dispatchers::{Dispatchers, RtDispatcherHost},
    host,
    thread::{self, ThreadConfig},
};

/// How long a runtime that is dropped, or was interrupted, waits for its actors.
const DROP_DEADLINE: Duration = Duration::from_secs(10);

/// Threads, a clock, and one system of actors.
///
/// Dropping it is an orderly shutdown that waits at most ten seconds. A panic in an actor is a
/// failure of that actor, and the threads live on; under `panic = "abort"` it ends the program.
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
    threads: Option<AllThreads>,
}

/// All that has threads.
struct AllThreads {
    pool: WorkerPool,
    dispatchers: Arc<Dispatchers>,
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

    /// A runtime with this system and these workers. Limits and scheduler are those of the system.
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
                Ok(Self { system, threads: Some(AllThreads { pool, dispatchers }) })
            }
            Err(FailedStart { error, system }) => {
                match system {
                    // Hooks may have started much before another failed: it ends as any runtime.
                    Some(system) => {
                        drop(Self { system, threads: Some(AllThreads { pool, dispatchers }) });
                    }
                    None => dispatchers.shutdown(OsInstant::now()),
                }
                Err(error)
            }
        }
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
        &self.threads.as_ref().expect("they are taken out by the shutdown only").pool
    }

    /// Runs a future on this thread, which sleeps while it waits.
    ///
    /// # Panics
    ///
    /// On a thread that runs actors: it would have to wait for itself. Await there.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.pool().block_on(future)
    }

    /// Waits until the system has terminated, or somebody has pressed Ctrl-C, which terminates it:
    /// then its actors have ten seconds. A second Ctrl-C ends the program at once.
    ///
    /// Ctrl-C is heard by a handler of the whole program, which stays when this returns, and then
    /// ends the program as if it were not there. If the program has set another by the crate
    /// `ctrlc`, that one hears it, and not this.
    ///
    /// # Panics
    ///
    /// As [`block_on`](Self::block_on).
    pub fn run(mut self) -> TerminationReport {
        // There until all has ended: who was told and is still there makes the next the second.
        let listener = CtrlCListener::new();
        let mut end = self.system.when_terminated();
        let is_interrupted = self.block_on(poll_fn(|cx| {
            if Pin::new(&mut end).poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            listener.poll(cx).map(|()| true)
        }));
        if is_interrupted {
            drop(self.system.terminate_for(Reason::new("Ctrl-C")));
        }
        self.stop(DROP_DEADLINE)
    }

    /// Terminates the system by the phases of its shutdown and waits until it has, then ends all
    /// threads. What has not stopped in time is ended by force, and its paths are in the report: a
    /// parent that waits for a child is among them.
    ///
    /// On a thread that runs actors of a runtime it does not wait: a thread is started that does
    /// the rest, and the report tells of actors that are there at this moment. The real one is that
    /// of [`ActorSystem::when_terminated`].
    pub fn shutdown(mut self, deadline: Duration) -> TerminationReport {
        self.stop(deadline)
    }

    fn stop(&mut self, deadline: Duration) -> TerminationReport {
        let Some(threads) = self.threads.take() else { return TerminationReport::default() };
        let system = self.system.clone();
        if !host::is_worker() {
            return threads.end(&system, deadline);
        }
        let end = system.terminate();
        let mut report = TerminationReport::default();
        report.reason = "shut down by a thread that it waits for".into();
        report.stragglers = system.tree().into_iter().filter(|path| path.depth() > 1).collect();
        let dispatchers = Arc::clone(&threads.dispatchers);
        let config = ThreadConfig { name: "cj-shutdown".into(), ..ThreadConfig::DEFAULT };
        if thread::start(&config, move || drop(threads.end(&system, deadline))).is_err() {
            // The pool has been dropped with the closure, which does not wait either.
            dispatchers.shutdown_now();
        }
        end.report().unwrap_or(report)
    }
}

impl AllThreads {
    /// See the [module](self).
    fn end(self, system: &ActorSystem, deadline: Duration) -> TerminationReport {
        let Self { pool, dispatchers } = self;
        let until = OsInstant::now().saturating_add(deadline);
        let end = block_on_until(system.terminate(), until);
        // What is alive now, before it is ended by force.
        let report = end.unwrap_or_else(|| system.give_up());
        pool.close_scheduler(until);
        dispatchers.shutdown(until);
        pool.shutdown(until.saturating_since(OsInstant::now()));
        system.host_ended();
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
