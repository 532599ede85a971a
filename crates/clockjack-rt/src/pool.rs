//! The worker pool: a work-stealing executor on threads, whose number can change at run time.

pub(crate) mod block_on;
mod config;
pub(crate) mod current;
pub(crate) mod host;
pub(crate) mod join_set;
mod shutdown;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod watchdog;

use core::{
    convert::Infallible,
    fmt,
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, Ordering::AcqRel},
    time::Duration,
};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc},
    thread::JoinHandle as ThreadHandle,
};

use clockjack_exec::{
    Commands, ExecStats, Handle, Payload, Payloads, Pid, Process, ProcessRef, SendError,
    StartError, StuckWorker, SubmitError,
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    worker,
};
use clockjack_sched::Scheduler;

pub(crate) use self::shutdown::forced_stop_until;
pub use self::{
    config::PoolConfig,
    shutdown::{ShutdownReport, Straggler},
};
use self::{
    current::Entered,
    host::{ThreadHost, Threads},
};
use crate::{
    BlockingHandle, BlockingPool, OsClock, OsInstant, Rejected, blocking,
    dispatchers::Dispatchers,
    platform::{fork::ForkWatch, thread_control},
    runtime::TraceSource,
    scheduler::{Executors, PoolScheduler, PoolSource},
    thread::{self, ThreadConfig},
    tokio_integration::reactor,
};

/// The maximum number of workers of a pool.
const WORKERS_MAX: usize = 1024;

/// How many checks without anything to monitor the watchdog makes before it sleeps.
const IDLE_CHECKS_MAX: u32 = 5;

/// Threads that run processes and futures, steal work from each other, and fire timers.
///
/// On Linux, a child that the process forks has none of these threads: there the pool refuses
/// tasks, processes and sleeps with an error that says so (`is_forked`), and blocking work as a
/// pool that is shut down does; a shutdown or a drop does not wait. The child can start a pool of
/// its own.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
/// use core::time::Duration;
///
/// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
/// let answer = pool.spawn_future(async {
///     clockjack_rt::sleep(Duration::from_millis(5)).await?;
///     Ok::<_, clockjack_rt::exec::TimerError>(6 * 7)
/// });
/// assert_eq!(pool.block_on(answer)??, 42);
/// assert!(pool.shutdown(Duration::from_secs(1)).is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WorkerPool {
    inner: Arc<Inner>,
    handle: Handle,
}

struct Inner {
    /// Dropped before the executor.
    _fork_watch: ForkWatch,
    executor: ExecutorRef,
    threads: Arc<Threads>,
    blocking: Arc<BlockingPool>,
    config: PoolConfig,
    /// The CPUs that workers are pinned to, if they are pinned. Read once at the start: the thread
    /// that resizes the pool later may itself be pinned to one of them.
    cpus: Vec<usize>,
    worker_threads: Mutex<WorkerThreads>,
    is_shut_down: AtomicBool,
    reactor: reactor::Reactor,
    /// Created by the first call of `WorkerPool::scheduler`. The watchdog reads it, too.
    scheduler: Arc<OnceLock<PoolScheduler>>,
    /// A second receiver of reports about stuck workers.
    on_stuck: Arc<OnceLock<OnStuck>>,
    /// Other executors on which jobs of the scheduler can run.
    dispatchers: Arc<OnceLock<Weak<Dispatchers>>>,
}

type OnStuck = Box<dyn Fn(StuckWorker) + Send + Sync>;

/// The threads of a pool.
#[derive(Default)]
struct WorkerThreads {
    /// By worker index; without the workers that were asked to leave.
    workers: Vec<Option<WorkerThread>>,
    /// Workers that were asked to leave, with their index.
    leaving: Vec<(usize, WorkerThread)>,
    /// Further threads that end: the watchdog, and workers whose index has a new worker already.
    ending: Vec<ThreadHandle<()>>,
    watchdog: Option<ThreadHandle<()>>,
}

/// The thread of a worker.
struct WorkerThread {
    thread: ThreadHandle<()>,
    /// Disconnected when the worker has vacated its slot. Only a successor locks it.
    vacated: Vacated,
}

type Vacated = Arc<Mutex<mpsc::Receiver<Infallible>>>;

impl WorkerPool {
    /// Starts a pool.
    ///
    /// # Errors
    ///
    /// If the number of workers is zero or more than `workers_max`, if two handlers have the same
    /// command number, if the system refuses a thread or a CPU, or if `tokio` is not 0 and the
    /// feature is not compiled in.
    pub fn new(config: PoolConfig, commands: Commands) -> Result<Self, StartError> {
        let clock = OsClock::new(config.resolution);
        Self::on_node(0, clock, config, commands)
    }

    /// As [`new`](Self::new), for one of several executors of one actor system: `node` makes their
    /// pids distinct, and they share one clock.
    pub(crate) fn on_node(
        node: u32,
        clock: OsClock,
        config: PoolConfig,
        commands: Commands,
    ) -> Result<Self, StartError> {
        let settings = &config.scheduler.settings;
        settings.check_host_settings().map_err(|refused| StartError::thread(&refused))?;
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let (workers, workers_max) = workers_of(&config, cpus)?;
        let blocking = BlockingPool::new(config.blocking.clone());
        let blocking = Arc::new(blocking.map_err(|invalid| StartError::thread(&invalid))?);
        let reactor = reactor::Reactor::start(config.tokio)?;
        let threads = Threads::new(clock, workers_max, &config);
        let commands = blocking::command::add_to(commands, &blocking);
        let nanos_per_tick = u128::from(config.resolution.nanos().get());
        let grace_ticks = config.timer_tolerance.as_nanos().div_ceil(nanos_per_tick).max(1);
        let executor_config = ExecutorConfig {
            workers: workers_max,
            node,
            limits: config.limits,
            resolution: config.resolution,
            tolerance_ticks: u64::try_from(grace_ticks).unwrap_or(u64::MAX),
            quiet_polls_max: IDLE_CHECKS_MAX,
        };
        let scheduler = Arc::<OnceLock<PoolScheduler>>::default();
        let source = PoolSource(Arc::clone(&scheduler));
        let host = Box::new(ThreadHost { threads: Arc::clone(&threads), source });
        let executor = ExecutorShared::new(host, &executor_config, commands)?;
        let worker_threads = WorkerThreads {
            workers: (0..workers_max).map(|_| None).collect(),
            ..WorkerThreads::default()
        };
        let inner = Arc::new(Inner {
            _fork_watch: ForkWatch::new(&executor),
            executor: executor.clone(),
            threads,
            blocking,
            cpus: if config.pin_workers { thread_control::allowed_cpus() } else { Vec::new() },
            config,
            worker_threads: Mutex::new(worker_threads),
            is_shut_down: AtomicBool::new(false),
            reactor,
            scheduler,
            on_stuck: Arc::default(),
            dispatchers: Arc::default(),
        });
        // From here on, the drop of `pool` shuts down what was started if a later step fails.
        let pool = Self { inner, handle: Handle::new(executor) };
        pool.inner.start_watchdog()?;
        pool.inner.resize(workers)?;
        Ok(pool)
    }

    /// Reports stuck workers to this function, in addition to the one in the configuration. Only
    /// the first call has an effect.
    pub(crate) fn on_stuck(&self, report: impl Fn(StuckWorker) + Send + Sync + 'static) {
        let _ = self.inner.on_stuck.set(Box::new(report));
    }

    /// Lets jobs of the scheduler run on these dispatchers, too. Only the first call has an effect.
    pub(crate) fn run_jobs_on(&self, dispatchers: &Arc<Dispatchers>) {
        let _ = self.inner.dispatchers.set(Arc::downgrade(dispatchers));
    }

    /// Whether this process is a fork of the one that started the pool: there are no threads.
    pub(crate) fn is_forked(&self) -> bool {
        self.inner.executor.is_forked()
    }

    /// What the pool has recorded, and where it runs.
    pub(crate) fn trace_source(&self) -> TraceSource {
        let (name, executor) = (self.name().to_owned(), self.inner.executor.clone());
        TraceSource { name, executor, threads: Arc::clone(&self.inner.threads) }
    }

    pub(crate) fn blocking_pool(&self) -> Arc<BlockingPool> {
        Arc::clone(&self.inner.blocking)
    }

    /// A handle for other threads and tasks. It does not keep the pool running.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// If `init` fails or panics, if the pool has no room for another process, or if the pool is
    /// shut down. The error returns the process to the caller.
    pub fn submit<P>(&self, process: P) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        self.handle.submit(process)
    }

    /// Starts a process with one of its methods and an input for that method.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    pub fn submit_method<P>(
        &self,
        process: P,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>>
    where
        P: Process + Send,
        P::Message: Send,
    {
        self.handle.submit_method(process, method, input)
    }

    /// Sends a message to a process by its pid.
    ///
    /// # Errors
    ///
    /// If there is no such process, if it has stopped, if its message queue is full, or if it takes
    /// messages of another type. The error returns the message to the caller.
    pub fn send(&self, to: Pid, message: Payload) -> Result<(), SendError<Payload>> {
        self.handle.send(to, message)
    }

    /// Runs a closure that blocks on a separate thread, so that no worker blocks. The handle yields
    /// the result of the closure, or the payload of its panic; dropping it detaches the closure.
    ///
    /// # Errors
    ///
    /// If too many closures are queued already, or if the pool is shut down. The error returns the
    /// closure to the caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands};
    ///
    /// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    /// let text = pool.spawn_blocking(|| std::fs::read_to_string("Cargo.toml"))?;
    /// assert!(pool.block_on(text)??.contains("clockjack-rt"));
    ///
    /// let panics = pool.spawn_blocking(|| panic!("no such file"))?;
    /// let error = pool.block_on(panics).unwrap_err();
    /// assert_eq!(error.panic_message(), Some("no such file"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_blocking<F, T>(&self, work: F) -> Result<BlockingHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.is_forked() {
            return Err(Rejected::closed(work));
        }
        self.inner.blocking.spawn_blocking(work)
    }

    /// Runs a future on this thread and blocks until it completes. [`sleep`](crate::sleep) and
    /// [`spawn_future`](crate::spawn_future) in the future use this pool.
    ///
    /// # Panics
    ///
    /// On a worker, because the worker would wait for itself. Use `.await` there, or
    /// [`spawn_blocking`](Self::spawn_blocking).
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = Entered::enter(self.handle(), Some(Arc::clone(&self.inner.blocking)));
        let reactor = self.inner.reactor.handle();
        let _reactor = reactor.enter();
        block_on::block_on(future)
    }

    /// The number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.inner.worker_threads().workers.iter().flatten().count()
    }

    /// Changes the number of workers; returns the previous number.
    ///
    /// A worker that leaves first finishes its step and hands its tasks and timers over to others:
    /// no task or timer is lost, and no timer fires early. This method does not wait for workers to
    /// leave.
    ///
    /// # Errors
    ///
    /// If `workers` is zero or more than `workers_max`, if the pool is shut down, or if a thread
    /// cannot be started; the workers that were started remain.
    pub fn resize(&self, workers: usize) -> Result<usize, StartError> {
        self.inner.resize(workers)
    }

    /// The clock of this pool's timers.
    #[must_use]
    pub fn clock(&self) -> OsClock {
        self.inner.threads.clock
    }

    /// The scheduler of this pool. The first call creates it from [`PoolConfig::scheduler`]. The
    /// workers drive it with the pool's clock, and the pool's shutdown shuts it down. Handlers run
    /// on workers, or with [`BLOCKING_DISPATCHER`](crate::BLOCKING_DISPATCHER) on threads for
    /// blocking work; in a runtime, handlers can also run on dispatchers that the user has created.
    /// The module [`scheduler`](crate::scheduler) explains what happens if a handler blocks a
    /// worker.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{PoolConfig, WorkerPool, exec::Commands, sched::DispatcherId};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    /// let (sender, receiver) = mpsc::channel();
    /// let ms = Duration::from_millis;
    /// let beat = pool.scheduler().schedule_at_fixed_rate_fn(ms(5), ms(5), DispatcherId::DEFAULT, {
    ///     move |fire| sender.send(fire.batch().runs.get())
    /// })?;
    /// assert_eq!(receiver.iter().take(3).sum::<u32>(), 3);
    /// beat.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        let inner = &self.inner;
        let make = || {
            let (threads, blocking) = (Arc::clone(&inner.threads), Arc::clone(&inner.blocking));
            let config = &inner.config.scheduler;
            let executors =
                Executors { threads, blocking, user_dispatchers: Arc::clone(&inner.dispatchers) };
            PoolScheduler::new(config, self.workers(), inner.executor.clone(), executors)
        };
        inner.scheduler.get_or_init(make).scheduler()
    }

    /// The name of the worker threads, without the worker's number.
    pub(crate) fn name(&self) -> &str {
        &self.inner.config.name
    }

    /// The tokio reactor that a thread enters to use the sockets of this pool.
    pub(crate) fn reactor(&self) -> reactor::ReactorHandle {
        self.inner.reactor.handle()
    }

    /// Shuts the scheduler down before the pool's shutdown, if there is one; waits until the
    /// deadline for handlers that run on other threads. Returns the deadline for what follows.
    pub(crate) fn close_scheduler(&self, until: OsInstant) -> OsInstant {
        let is_worker = host::is_worker_of(&self.inner.executor);
        let scheduler = self.inner.scheduler.get();
        scheduler.map_or(until, |scheduler| scheduler.close(is_worker, until))
    }

    /// Statistics since the start of the pool.
    #[must_use]
    pub fn stats(&self) -> ExecStats {
        self.handle.stats()
    }

    /// Shuts the pool down. First the calling thread [shuts down](Scheduler::shutdown) the
    /// scheduler, if there is one. Then the pool asks every process to stop and waits until all
    /// have stopped or the time-out has passed, while the workers keep running; then it stops the
    /// remaining processes by force and reports each. Meanwhile it accepts nothing new.
    ///
    /// The time-out does not limit handlers and close tasks that the scheduler's shutdown runs on
    /// the calling thread. A future cannot be asked to stop: it is dropped at its await point. A
    /// step that never returns is abandoned together with its thread. On a worker of the pool this
    /// method does not wait.
    pub fn shutdown(self, timeout: Duration) -> ShutdownReport {
        self.shutdown_until(OsInstant::now().saturating_add(timeout))
    }

    pub(crate) fn shutdown_until(self, deadline: OsInstant) -> ShutdownReport {
        self.inner.shutdown_once(deadline)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        let deadline = OsInstant::now().saturating_add(self.inner.config.drop_timeout);
        self.inner.shutdown_once(deadline);
        if self.inner.executor.is_forked() {
            // Never dropped: that would join threads, and take locks that may be held for ever.
            core::mem::forget(Arc::clone(&self.inner));
        }
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool")
            .field("workers", &self.workers())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// The number of workers at the start, and the maximum number.
fn workers_of(config: &PoolConfig, cpus: usize) -> Result<(usize, usize), StartError> {
    let is_default = config.workers_max == PoolConfig::DEFAULT.workers_max;
    let max = if is_default { config.workers_max.max(cpus) } else { config.workers_max };
    let max = max.clamp(1, WORKERS_MAX);
    let workers = config.workers.unwrap_or(cpus.min(max));
    check_count(workers, max)?;
    Ok((workers, max))
}

fn check_count(workers: usize, max: usize) -> Result<(), StartError> {
    if workers == 0 {
        Err(StartError::zero_workers())
    } else if workers > max {
        Err(StartError::too_many_workers(max))
    } else {
        Ok(())
    }
}

impl WorkerThreads {
    /// Whether the worker with this index was asked to leave and has not finished.
    fn is_leaving(&self, index: usize) -> bool {
        self.leaving.iter().any(|(leaving, _)| *leaving == index)
    }
}

impl Inner {
    fn worker_threads(&self) -> MutexGuard<'_, WorkerThreads> {
        // No code under this lock leaves the value in an inconsistent state when it panics.
        self.worker_threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resize(&self, workers: usize) -> Result<usize, StartError> {
        if self.executor.is_forked() {
            return Err(StartError::stopped());
        }
        let mut all = self.worker_threads();
        check_count(workers, all.workers.len())?;
        if self.executor.is_stopping() {
            return Err(StartError::stopped());
        }
        let before = all.workers.iter().flatten().count();
        let mut now = before;
        for index in (0..all.workers.len()).rev() {
            if now <= workers {
                break;
            }
            if let Some(worker) = all.workers[index].take() {
                self.executor.request_worker_stop(index);
                all.leaving.push((index, worker));
                now -= 1;
            }
        }
        all.leaving.retain(|(_, worker)| !worker.thread.is_finished());
        all.ending.retain(|thread| !thread.is_finished());
        for index in 0..all.workers.len() {
            if now >= workers {
                break;
            }
            // An index is free only after its previous worker has left.
            if all.workers[index].is_none() && !all.is_leaving(index) {
                all.workers[index] = Some(self.start_worker(index, None)?);
                now += 1;
            }
        }
        while now < workers
            && let Some((index, worker)) = all.leaving.pop()
        {
            let worker = if self.executor.withdraw_worker_stop(index) {
                worker
            } else {
                // The worker has accepted the stop already; another one takes its place. The
                // successor waits for that, and not this thread, which holds the lock: the worker
                // that leaves may drop wakers of users, and those may use the pool.
                match self.start_worker(index, Some(Arc::clone(&worker.vacated))) {
                    Ok(successor) => {
                        all.ending.push(worker.thread);
                        successor
                    }
                    Err(refused) => {
                        // The index is not free: the next call tries again.
                        all.leaving.push((index, worker));
                        return Err(refused);
                    }
                }
            };
            all.workers[index] = Some(worker);
            now += 1;
        }
        Ok(before)
    }

    /// Starts a worker, and waits until it is pinned and, if nobody else occupies its slot,
    /// registered. Otherwise the worker itself waits until `predecessor` is disconnected.
    fn start_worker(
        &self,
        index: usize,
        predecessor: Option<Vacated>,
    ) -> Result<WorkerThread, StartError> {
        let config = &self.config;
        let name = Cow::Owned(format!("{}-{index}", config.name));
        let cpu = config.pin_workers.then(|| match &*self.cpus {
            [] => index,
            cpus => cpus[index % cpus.len()],
        });
        let (executor, reactor) = (self.executor.clone(), self.reactor.handle());
        let (threads, blocking) = (Arc::clone(&self.threads), Arc::clone(&self.blocking));
        let (report, reported) = mpsc::channel();
        let (occupies, vacated) = mpsc::channel();
        let thread_config = ThreadConfig { name, stack_size: config.stack_size };
        thread::check_can_wait().map_err(|refused| StartError::thread(&refused))?;
        let started = thread::start(&thread_config, move || {
            let _occupies = occupies;
            thread::sleep_precisely();
            let pinned = cpu.map_or(Ok(()), thread::pin_to_cpu);
            if pinned.is_err() {
                drop(report.send(pinned));
                return;
            }
            if let Some(predecessor) = predecessor {
                drop(report.send(Ok(())));
                // Nothing is ever sent: this returns when the slot is free.
                let _ = predecessor.lock().unwrap_or_else(PoisonError::into_inner).recv();
            }
            let _ring = threads.claim_ring(index);
            let _reactor = reactor.enter();
            let _entered = Entered::enter(Handle::new(executor.clone()), Some(blocking));
            // The send fails only if the starting thread has stopped waiting.
            worker::run_worker_with(&executor, index, || drop(report.send(pinned)));
        });
        let thread = started.map_err(|refused| StartError::thread(&refused))?;
        match reported.recv() {
            Ok(Err(refused)) => Err(StartError::thread(&refused)),
            Ok(Ok(())) => Ok(WorkerThread { thread, vacated: Arc::new(Mutex::new(vacated)) }),
            Err(_) => Err(StartError::thread(&"the worker thread panicked")),
        }
    }

    fn shutdown_once(&self, deadline: OsInstant) -> ShutdownReport {
        if self.executor.is_forked() {
            // The threads exist in the parent only, and a lock that one of them held stays locked.
            return ShutdownReport { workers_left: 1, ..ShutdownReport::default() };
        }
        // AcqRel: a second caller sees what the first one has done.
        if self.is_shut_down.swap(true, AcqRel) {
            return ShutdownReport::default();
        }
        shutdown::shutdown(self, deadline)
    }

    /// Asks all threads to leave, without waiting.
    fn request_exit_all(&self) {
        let mut all = self.worker_threads();
        for index in 0..all.workers.len() {
            if let Some(worker) = all.workers[index].take() {
                self.executor.request_worker_stop(index);
                all.leaving.push((index, worker));
            }
        }
        if let Some(watchdog) = all.watchdog.take() {
            self.threads.watchdog.unpark();
            all.ending.push(watchdog);
        }
    }

    /// Asks all threads to leave and joins them; returns the number of workers that did not return
    /// from what they do.
    fn join_all(&self, until: OsInstant) -> usize {
        self.request_exit_all();
        let mut all = self.worker_threads();
        let others = core::mem::take(&mut all.ending).into_iter().map(|thread| (None, thread));
        let workers = core::mem::take(&mut all.leaving).into_iter();
        drop(all);
        let workers = workers.map(|(index, worker)| (Some(index), worker.thread));
        let mut leaving: Vec<_> = workers.chain(others).collect();
        // A thread does not join itself: neither the watchdog, if a report callback drops the pool,
        // nor a worker that has left, if a thread-local destructor of its thread drops the pool.
        let here = std::thread::current().id();
        // Where no thread can start, a watchdog that has not started yet would never end. The
        // workers have all started.
        let can_wait = thread::check_can_wait().is_ok();
        let is_awaited = |index: Option<usize>| can_wait || index.is_some();
        leaving.retain(|(index, thread)| thread.thread().id() != here && is_awaited(*index));
        loop {
            for (_, thread) in leaving.extract_if(.., |(_, thread)| thread.is_finished()) {
                thread::join_or_detach(thread);
            }
            if leaving.is_empty() || OsInstant::now() >= until {
                // One that is asleep was woken, and only waits for a CPU.
                let is_stuck = |index: usize| self.executor.is_worker_awake(index);
                return leaving.iter().filter(|(index, _)| index.is_some_and(is_stuck)).count();
            }
            let next_check = OsInstant::now().saturating_add(Duration::from_millis(1)).min(until);
            self.threads.shutdown_parker.park(Some(next_check));
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}
