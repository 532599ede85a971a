//! The executors of a runtime beside its pool: where else actors can run.
//!
//! | dispatcher | made by | threads | for |
//! |---|---|---|---|
//! | default | the runtime | the workers of its pool | actors that do not wait |
//! | [`BLOCKING_DISPATCHER`] | the first actor on it | one for each actor | handlers that wait |
//! | `ActorSystem::dispatcher` | the user | as many as asked for | keeping loads apart |
//! | `ActorSystem::pinned` | the user | one | actors that are not `Send` |
//! | `ActorSystem::own_thread` | a graph | one | a lane, as long as it runs |
//!
//! Those that the user makes can also be set in the `SystemBuilder`; then they are made before the
//! first actor.
//!
//! The blocking dispatcher is a pool of its own. Each actor that is started there makes it as large
//! as the number of actors that live there, up to the bound of blocking work; when much fewer live,
//! the next start makes it smaller. So up to the bound no actor waits for another's handler, and
//! behind it they share. A thread that the system refuses is missed, and the actors share what
//! there is.
//!
//! Each of these pools has its metronome, and, if the runtime's pool has one, its own tokio
//! reactor. A pinned thread uses that of the runtime's pool. A handler that does not return is
//! reported wherever it runs: by the metronome of its pool, or by the [lookout](lookout).
//!
//! Jobs of the scheduler whose closures are to run on one of these become a process there, one for
//! each run; the blocking dispatcher has the threads for blocking work for them instead.
//!
//! # The end
//!
//! 1. [`shutdown`](Dispatchers::shutdown) takes everything out under the lock, and sets that it is
//!    over: what is asked for later is refused. So each executor is shut down once, or was never
//!    made.
//! 2. All are told to stop, then each is waited for, until a common time. A thread that does not
//!    come back from a handler is left behind.

mod lookout;
mod pinned;

use alloc::{borrow::Cow, sync::Arc};
use core::{fmt, mem, time::Duration};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clockjack_actor::{
    ActorSystem,
    system::{DispatcherHost, OwnThread, PolicyAnswers, ThreadPolicy},
};
use clockjack_exec::{Commands, Handle, StartError, StuckWorker};
use clockjack_sched::DispatcherId;

use self::{lookout::Lookout, pinned::PinnedThread};
use crate::{BLOCKING_DISPATCHER, OsClock, OsInstant, PoolConfig, WorkerPool, tokio_host};

/// The most threads of one dispatcher.
const THREADS_MAX: usize = 1024;

/// The node number of the first thread that is nobody's dispatcher: behind all that are.
const OWN_NODES: u32 = 1 << 16;

/// How long the end of a thread is waited for beyond the time: it has only to notice.
const LEAVES_IN: Duration = Duration::from_millis(500);

/// See the [module](self).
pub(crate) struct Dispatchers {
    config: PoolConfig,
    told: Arc<Told>,
    clock: OsClock,
    reactor: tokio_host::ReactorHandle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    pools: Vec<(DispatcherId, WorkerPool)>,
    blocking: Option<WorkerPool>,
    pinned: Vec<(DispatcherId, PinnedThread)>,
    /// Those for one task each, also some that have ended.
    own: Vec<PinnedThread>,
    /// How many of these there were.
    n_own: u32,
    /// Started with the first pinned thread.
    lookout: Option<Lookout>,
}

/// The system, for those who see handlers that do not return. It keeps the dispatchers, so it is
/// let go at the end.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Option<ActorSystem>>);

impl Told {
    fn set(&self, system: Option<ActorSystem>) {
        // What was there is dropped outside of the lock.
        let before = mem::replace(&mut *self.lock(), system);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ActorSystem>> {
        // Nothing is left half done by a panic under this lock.
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
    /// None yet, beside a pool of this kind.
    pub(crate) fn new(config: PoolConfig, pool: &WorkerPool) -> Arc<Self> {
        let (clock, reactor) = (pool.clock(), pool.reactor());
        let told = Arc::<Told>::default();
        let this = Arc::new(Self { config, told, clock, reactor, state: Mutex::default() });
        this.watch(pool);
        this
    }

    /// Tells the system of handlers that do not return, wherever they run.
    pub(crate) fn tell_of_stuck(&self, system: &ActorSystem) {
        self.told.set(Some(system.clone()));
    }

    fn watch(&self, pool: &WorkerPool) {
        let told = Arc::clone(&self.told);
        pool.tell_of_stuck(move |stuck| told.report(stuck));
    }

    /// The executor of a dispatcher that was made by the user.
    pub(crate) fn made(&self, id: DispatcherId) -> Option<Handle> {
        let state = self.state();
        let pool = state.pools.iter().find(|(other, _)| *other == id);
        let pinned = || state.pinned.iter().find(|(other, _)| *other == id);
        pool.map(|(_, pool)| pool.handle()).or_else(|| pinned().map(|(_, thread)| thread.handle()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done by a panic under this lock.
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
            name: Cow::Owned(name.into()),
            pin_workers: false,
            ..self.config.clone()
        };
        let pool = WorkerPool::on_node(u32::from(id.0), self.clock, config, Commands::new())?;
        self.watch(&pool);
        Ok(pool)
    }

    /// The lookout, with the first pinned thread.
    fn lookout<'s>(&self, state: &'s mut State) -> Result<&'s Lookout, StartError> {
        let lookout = match state.lookout.take() {
            Some(lookout) => lookout,
            None => Lookout::start(&self.config, Arc::clone(&self.told))?,
        };
        Ok(state.lookout.insert(lookout))
    }

    /// A thread with an executor of its own, which the lookout looks at.
    fn start_pinned(
        &self,
        state: &mut State,
        node: u32,
        name: &str,
        wishes: &ThreadPolicy,
    ) -> Result<(PinnedThread, PolicyAnswers), StartError> {
        let post = self.lookout(state)?.post();
        let (reactor, watched) = (self.reactor.clone(), Arc::clone(&post));
        let started =
            PinnedThread::start(node, name, wishes, &self.config, self.clock, reactor, watched)?;
        self.lookout(state)?.add(post, started.0.handle());
        Ok(started)
    }

    /// Lets go of threads that were for one task, and have ended.
    fn forget_the_gone(state: &mut State) {
        let State { own, lookout, .. } = state;
        for gone in own.extract_if(.., |thread| thread.is_gone()) {
            if let Some(lookout) = lookout {
                lookout.remove(gone.post());
            }
            gone.join(OsInstant::now());
        }
    }

    /// Ends all of them, until some time; see the [module](self).
    pub(crate) fn shutdown(&self, until: OsInstant) {
        let State { pools, blocking, pinned, own, lookout, .. } = self.close();
        let pinned: Vec<_> = pinned.into_iter().map(|(_, thread)| thread).chain(own).collect();
        pinned.iter().for_each(|thread| thread.stop(until));
        for pool in pools.into_iter().map(|(_, pool)| pool).chain(blocking) {
            pool.shutdown(until.saturating_since(OsInstant::now()));
        }
        for thread in pinned {
            thread.join(until);
        }
        if let Some(lookout) = lookout {
            lookout.stop();
            lookout.join();
        }
        self.told.set(None);
    }

    /// Ends all of them without waiting for anybody.
    pub(crate) fn let_go(&self) {
        let now = OsInstant::now();
        let State { pinned, own, lookout, .. } = self.close();
        pinned.iter().map(|(_, thread)| thread).chain(&own).for_each(|thread| thread.stop(now));
        lookout.iter().for_each(Lookout::stop);
        self.told.set(None);
    }

    /// Rule 1.
    fn close(&self) -> State {
        mem::replace(&mut *self.state(), State { is_over: true, ..State::default() })
    }
}

impl fmt::Debug for Dispatchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatchers").finish_non_exhaustive()
    }
}

/// The dispatchers, as a system asks for them.
#[derive(Debug)]
pub(crate) struct Office(pub(crate) Arc<Dispatchers>);

impl DispatcherHost for Office {
    fn create(&self, id: DispatcherId, name: &str, threads: usize) -> Result<Handle, StartError> {
        let this = &self.0;
        let mut state = this.state();
        if state.is_over {
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
        if state.is_over {
            return Err(StartError::stopped());
        }
        let (node, wishes) = (u32::from(id.0), ThreadPolicy::default());
        let (thread, _) = this.start_pinned(&mut state, node, name, &wishes)?;
        let handle = thread.handle();
        state.pinned.push((id, thread));
        Ok(handle)
    }

    fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        let this = &self.0;
        let mut state = this.state();
        if state.is_over {
            return Err(StartError::stopped());
        }
        let node = OWN_NODES.checked_add(state.n_own);
        let node = node.ok_or_else(|| StartError::too_many_workers(THREADS_MAX))?;
        Dispatchers::forget_the_gone(&mut state);
        if state.own.len() >= THREADS_MAX {
            return Err(StartError::too_many_workers(THREADS_MAX));
        }
        let (thread, answers) = this.start_pinned(&mut state, node, name, policy)?;
        state.n_own += 1;
        let own = OwnThread::new(thread.handle(), answers, thread.end());
        state.own.push(thread);
        Ok(own)
    }

    fn find(&self, id: DispatcherId) -> Option<Handle> {
        let this = &self.0;
        let mut state = this.state();
        if id != BLOCKING_DISPATCHER || state.is_over {
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
        // Looked at behind the start, and under the lock: whoever looks last has seen all.
        let state = self.0.state();
        let Some(pool) = &state.blocking else { return };
        let threads_max = self.0.config.blocking.threads_max.clamp(1, THREADS_MAX);
        let wanted = pool.handle().engine().live_len().clamp(1, threads_max);
        let workers = pool.workers();
        if wanted > workers || wanted < workers / 2 {
            // Refused, the actors share what there is.
            _ = pool.resize(wanted);
        }
    }
}
