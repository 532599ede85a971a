//! The executors of a runtime in addition to its pool: where else actors can run.
//!
//! | dispatcher | created by | threads | for |
//! |---|---|---|---|
//! | default | the runtime | the workers of its pool | actors that do not block |
//! | [`BLOCKING_DISPATCHER`] | the first actor on it | one per actor | handlers that block |
//! | `ActorSystem::create_dispatcher` | the user | as many as requested | isolating loads |
//! | `ActorSystem::create_pinned` | the user | one | actors that are not `Send` |
//! | `ActorSystem::own_thread` | a graph | one | a lane, as long as it runs |
//!
//! The user can also declare dispatchers in the `SystemBuilder`; those are created before the first
//! actor.
//!
//! The blocking dispatcher is a separate pool. Each actor that starts there grows the pool to the
//! number of actors that live there, up to the limit for blocking work; if much fewer actors live
//! there, the next start shrinks it. So up to the limit, no actor waits for another actor's
//! handler; beyond the limit, actors share threads. If the operating system refuses a thread, the
//! actors share the existing ones.
//!
//! Each of these pools has its own watchdog and, if the runtime's pool has a tokio reactor, its
//! own reactor, with one thread. A pinned thread uses the reactor of the runtime's pool. A handler
//! that does not return is reported wherever it runs: by the watchdog of its pool, or by the
//! [watchdog of the pinned threads](thread_watchdog).
//!
//! A job of the scheduler whose closure runs on one of these executors becomes a process there,
//! one per run; jobs on the blocking dispatcher use the threads for blocking work instead.
//!
//! # Shutdown
//!
//! 1. [`shutdown`](Dispatchers::shutdown) takes all executors out of the state under the lock and
//!    sets `is_shut_down`: later requests are refused. So each executor is either shut down once or
//!    never created.
//! 2. It signals all executors to stop, then waits for each until a common deadline. A thread whose
//!    handler does not return is abandoned.

mod pinned;
mod thread_watchdog;

use core::{fmt, mem, time::Duration};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_actor::{
    ActorSystem,
    system::{DispatcherHost, OwnThread, PolicyAnswers, ThreadPolicy, UncountedSystem},
};
use clockjack_exec::{Commands, Handle, StartError, StuckWorker};
use clockjack_sched::DispatcherId;

use self::{pinned::PinnedThread, thread_watchdog::ThreadWatchdog};
use crate::{
    BLOCKING_DISPATCHER, OsClock, OsInstant, PoolConfig, RuntimeReport, WorkerPool,
    runtime::TraceSource, tokio_integration::reactor,
};

/// The maximum number of threads of one dispatcher.
const THREADS_MAX: usize = 1024;

/// The node number of the first dedicated thread; it follows all numbers of dispatchers.
const FIRST_DEDICATED_NODE: u32 = 1 << 16;

/// How long a join waits at most for the watchdog, which only has to see the stop flag, unless a
/// report callback does not return.
const JOIN_TIMEOUT: Duration = Duration::from_millis(500);

/// See the [module](self).
pub(crate) struct Dispatchers {
    config: PoolConfig,
    stuck_reporter: Arc<StuckReporter>,
    clock: OsClock,
    reactor: reactor::ReactorHandle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_shut_down: bool,
    pools: Vec<(DispatcherId, WorkerPool)>,
    blocking: Option<WorkerPool>,
    pinned: Vec<(DispatcherId, PinnedThread)>,
    /// Threads that serve one task each; some may have finished already.
    dedicated: Vec<PinnedThread>,
    /// How many dedicated threads were ever started.
    n_dedicated: u32,
    /// Started together with the first pinned thread.
    thread_watchdog: Option<ThreadWatchdog>,
}

/// Reports handlers that do not return to the actor system. The system owns the dispatchers, so
/// the shutdown clears this reference to break the cycle.
#[derive(Debug, Default)]
pub(crate) struct StuckReporter(Mutex<Option<UncountedSystem>>);

impl StuckReporter {
    fn set(&self, system: Option<UncountedSystem>) {
        // Drop the previous value outside the lock.
        let before = mem::replace(&mut *self.lock(), system);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<UncountedSystem>> {
        // No code under this lock leaves the value in an inconsistent state when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self, stuck: StuckWorker) {
        let system = self.lock().clone();
        if let (Some(system), Some(pid)) = (system, stuck.pid) {
            system.report_stuck(pid, Duration::from_nanos(stuck.for_nanos));
        }
    }
}

impl Dispatchers {
    /// Creates an empty set of dispatchers next to a pool with this configuration.
    pub(crate) fn new(config: PoolConfig, pool: &WorkerPool) -> Arc<Self> {
        let (clock, reactor) = (pool.clock(), pool.reactor());
        let stuck_reporter = Arc::<StuckReporter>::default();
        let this =
            Arc::new(Self { config, stuck_reporter, clock, reactor, state: Mutex::default() });
        this.report_stuck_of(pool);
        this
    }

    /// Reports handlers that do not return to this system, wherever they run.
    pub(crate) fn report_stuck_to(&self, system: &ActorSystem) {
        self.stuck_reporter.set(Some(system.uncounted()));
    }

    fn report_stuck_of(&self, pool: &WorkerPool) {
        let stuck_reporter = Arc::clone(&self.stuck_reporter);
        pool.on_stuck(move |stuck| stuck_reporter.report(stuck));
    }

    /// The executor of a dispatcher that the user has created.
    pub(crate) fn user_dispatcher(&self, id: DispatcherId) -> Option<Handle> {
        let state = self.state();
        let pool = state.pools.iter().find(|(other, _)| *other == id);
        let pinned = || state.pinned.iter().find(|(other, _)| *other == id);
        pool.map(|(_, pool)| pool.handle()).or_else(|| pinned().map(|(_, thread)| thread.handle()))
    }

    /// The recorders of all pools.
    pub(crate) fn trace_sources(&self) -> Vec<TraceSource> {
        let state = self.state();
        let pools = state.pools.iter().map(|(_, pool)| pool).chain(&state.blocking);
        pools.map(WorkerPool::trace_source).collect()
    }

    /// The handles of all executors.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        let state = self.state();
        let pools = state.pools.iter().map(|(_, pool)| pool).chain(&state.blocking);
        let pinned = state.pinned.iter().map(|(_, thread)| thread).chain(&state.dedicated);
        pools.map(WorkerPool::handle).chain(pinned.map(PinnedThread::handle)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code under this lock leaves the state inconsistent when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_pool(
        &self,
        id: DispatcherId,
        name: &str,
        workers: usize,
        workers_max: usize,
    ) -> Result<WorkerPool, StartError> {
        let config = PoolConfig {
            workers: Some(workers),
            workers_max,
            tokio: self.config.tokio.min(1),
            name: Cow::Owned(name.into()),
            pin_workers: false,
            ..self.config.clone()
        };
        let pool = WorkerPool::on_node(u32::from(id.0), self.clock, config, Commands::new())?;
        self.report_stuck_of(&pool);
        Ok(pool)
    }

    /// The watchdog of the pinned threads; starts it if there is none yet.
    fn thread_watchdog<'s>(&self, state: &'s mut State) -> Result<&'s ThreadWatchdog, StartError> {
        let thread_watchdog = match state.thread_watchdog.take() {
            Some(thread_watchdog) => thread_watchdog,
            None => ThreadWatchdog::start(&self.config, Arc::clone(&self.stuck_reporter))?,
        };
        Ok(state.thread_watchdog.insert(thread_watchdog))
    }

    /// Starts a thread with its own executor, which the watchdog monitors.
    fn start_pinned(
        &self,
        state: &mut State,
        node: u32,
        name: &str,
        policy: &ThreadPolicy,
    ) -> Result<(PinnedThread, PolicyAnswers), StartError> {
        let heartbeat = self.thread_watchdog(state)?.new_heartbeat();
        let (reactor, beats) = (self.reactor.clone(), Arc::clone(&heartbeat));
        let started =
            PinnedThread::start(node, name, policy, &self.config, self.clock, reactor, beats)?;
        self.thread_watchdog(state)?.add(heartbeat, started.0.handle());
        Ok(started)
    }

    /// Joins dedicated threads that have finished.
    fn join_finished(state: &mut State) {
        let State { dedicated, thread_watchdog, .. } = state;
        for finished in dedicated.extract_if(.., |thread| thread.is_finished()) {
            if let Some(thread_watchdog) = thread_watchdog {
                thread_watchdog.remove(finished.heartbeat());
            }
            drop(finished.join(OsInstant::now()));
        }
    }

    /// Shuts all of them down until a deadline, and adds what happened to the report; see the
    /// [module](self).
    pub(crate) fn shutdown(&self, until: OsInstant, report: &mut RuntimeReport) {
        let mut state = self.close();
        Self::join_finished(&mut state);
        let State { pools, blocking, pinned, dedicated, thread_watchdog, .. } = state;
        let pinned = pinned.into_iter().map(|(_, thread)| thread).chain(dedicated);
        // The owner of a thread that is already stopping has cancelled its tasks.
        let pinned: Vec<_> = pinned.map(|thread| (thread.is_stopping(), thread)).collect();
        pinned.iter().for_each(|(_, thread)| thread.stop(until));
        for pool in pools.into_iter().map(|(_, pool)| pool).chain(blocking) {
            let name = pool.name().to_owned();
            report.add_pool(name, pool.shutdown_until(until));
        }
        for (was_stopping, thread) in pinned {
            let mut joined = thread.join(until);
            if was_stopping {
                joined.stragglers.clear();
            }
            report.executors.push(joined);
        }
        if let Some(thread_watchdog) = thread_watchdog {
            thread_watchdog.stop();
            thread_watchdog.join(until);
        }
        self.stuck_reporter.set(None);
    }

    /// Signals all of them to stop, without waiting.
    pub(crate) fn shutdown_now(&self) {
        let now = OsInstant::now();
        let State { pinned, dedicated, thread_watchdog, .. } = self.close();
        pinned
            .iter()
            .map(|(_, thread)| thread)
            .chain(&dedicated)
            .for_each(|thread| thread.stop(now));
        thread_watchdog.iter().for_each(ThreadWatchdog::stop);
        self.stuck_reporter.set(None);
    }

    /// Rule 1.
    fn close(&self) -> State {
        mem::replace(&mut *self.state(), State { is_shut_down: true, ..State::default() })
    }
}

impl fmt::Debug for Dispatchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatchers").finish_non_exhaustive()
    }
}

/// Gives an actor system access to the dispatchers.
#[derive(Debug)]
pub(crate) struct RtDispatcherHost(pub(crate) Arc<Dispatchers>);

impl DispatcherHost for RtDispatcherHost {
    fn create(&self, id: DispatcherId, name: &str, threads: usize) -> Result<Handle, StartError> {
        let this = &self.0;
        let mut state = this.state();
        if state.is_shut_down {
            return Err(StartError::stopped());
        }
        if threads > THREADS_MAX {
            return Err(StartError::too_many_workers(THREADS_MAX));
        }
        let pool = this.start_pool(id, name, threads, threads)?;
        let handle = pool.handle();
        state.pools.push((id, pool));
        Ok(handle)
    }

    fn pinned(&self, id: DispatcherId, name: &str) -> Result<Handle, StartError> {
        let this = &self.0;
        let mut state = this.state();
        if state.is_shut_down {
            return Err(StartError::stopped());
        }
        let (node, policy) = (u32::from(id.0), ThreadPolicy::default());
        let (thread, _) = this.start_pinned(&mut state, node, name, &policy)?;
        let handle = thread.handle();
        state.pinned.push((id, thread));
        Ok(handle)
    }

    fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        let this = &self.0;
        let mut state = this.state();
        if state.is_shut_down {
            return Err(StartError::stopped());
        }
        let node = FIRST_DEDICATED_NODE.checked_add(state.n_dedicated);
        let node = node.ok_or_else(|| StartError::too_many_workers(THREADS_MAX))?;
        Dispatchers::join_finished(&mut state);
        if state.dedicated.len() >= THREADS_MAX {
            return Err(StartError::too_many_workers(THREADS_MAX));
        }
        let (thread, answers) = this.start_pinned(&mut state, node, name, policy)?;
        state.n_dedicated += 1;
        let own_thread = OwnThread::new(thread.handle(), answers, thread.stop_on_drop());
        state.dedicated.push(thread);
        Ok(own_thread)
    }

    fn find(&self, id: DispatcherId) -> Option<Handle> {
        let this = &self.0;
        let mut state = this.state();
        if id != BLOCKING_DISPATCHER || state.is_shut_down {
            return None;
        }
        if state.blocking.is_none() {
            let threads_max = this.config.blocking.threads_max.clamp(1, THREADS_MAX);
            state.blocking = this.start_pool(id, "cj-actors", 1, threads_max).ok();
        }
        state.blocking.as_ref().map(WorkerPool::handle)
    }

    fn started(&self, id: DispatcherId) {
        if id != BLOCKING_DISPATCHER {
            return;
        }
        // Read the count after the start and under the lock, so that the last starter sees all
        // actors.
        let state = self.0.state();
        let Some(pool) = &state.blocking else { return };
        let threads_max = self.0.config.blocking.threads_max.clamp(1, THREADS_MAX);
        let wanted = pool.handle().executor().live_len().clamp(1, threads_max);
        let workers = pool.workers();
        if wanted > workers || wanted < workers / 2 {
            // If the resize is refused, the actors share the existing threads.
            _ = pool.resize(wanted);
        }
    }
}
