//! A thread pool for closures that block: file systems, name lookups, foreign libraries.
//!
//! A worker must not block, so blocking work runs here. A thread starts when there is more work
//! than threads, up to a limit, and exits after it was idle for a while. One lock guards the whole
//! pool: a closure that is worth its own thread is also worth a lock.
//!
//! # Rules
//!
//! 1. The *load* is the number of closures that were admitted and have not finished: reserved,
//!    queued or running. At most `threads_max + queue_max` are admitted, whatever the threads do
//!    meanwhile, so a refusal does not depend on how fast a thread starts.
//! 2. A submission that makes the load larger than the number of threads starts a thread, unless
//!    there are `threads_max`. While a thread is free, none is started.
//! 3. The pool wakes the thread that became idle *last* (LIFO). Threads that have been idle for
//!    longer stay idle and exit: under a light load few threads remain, with warm caches.
//! 4. A thread reads the queue under the lock before it becomes idle, and a push under the lock
//!    wakes an idle thread. A thread exits only if the remaining threads are at least as many as
//!    the load. The load includes closures that were admitted but not queued yet, because a thread
//!    is being started for them.
//! 5. No closure runs or is dropped under the lock. A panic in a closure or in its drop is caught
//!    and counted; with `panic = "abort"` it aborts the program.
//! 6. After [`shutdown`](BlockingPool::shutdown) nothing is admitted, and queued closures are
//!    dropped. A running closure cannot be stopped: the shutdown waits for it, and abandons it
//!    after the deadline. It waits as well until a thread that is being started has found the pool
//!    closed and has exited; not so where no thread can start before the caller returns, in the
//!    destructor of a thread-local variable on Windows. Such a thread exits later, without work.
//!
//! *Why no closure waits for a thread that never comes*: a submission that starts a thread is
//! queued only if the start succeeded or if another thread is live; otherwise it is refused. A
//! submission that starts no thread found the load, itself included, no larger than the number of
//! threads. Each start that may still fail has its own closure in the load, so at least one thread
//! is live or certain to start. Every live thread reads the queue before it exits.

pub(crate) mod command;
mod config;
mod handle;
mod state;

use core::{
    any::Any, cell::Cell, error::Error, fmt, mem, panic::AssertUnwindSafe, ptr, time::Duration,
};
use std::{
    borrow::Cow,
    io,
    panic::catch_unwind,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use clockjack_exec::StartError;
pub use config::BlockingConfig;
pub use handle::BlockingHandle;
use handle::JobWithHandle;
use state::{BlockingJob, IdleSlot, Job, Refusal, State};

use crate::thread::{self, ThreadConfig};

/// The minimum time that a thread which must stay (rule 4) waits before it checks again.
const KEEP_ALIVE_MIN: Duration = Duration::from_millis(1);

/// A thread pool for closures that block; the [module](self) has the rules.
///
/// Dropping it is a [`shutdown`](Self::shutdown) without waiting.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{BlockingConfig, BlockingPool};
/// use std::{sync::mpsc, time::Duration};
///
/// let pool = BlockingPool::new(BlockingConfig::DEFAULT)?;
/// let (answer, answers) = mpsc::channel();
/// pool.submit(move || answer.send(6 * 7).unwrap()).unwrap();
/// assert_eq!(answers.recv()?, 42);
///
/// let report = pool.shutdown(Duration::from_secs(5));
/// assert_eq!((report.abandoned, report.dropped), (0, 0));
/// assert!(pool.submit(|| ()).unwrap_err().is_closed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockingPool {
    shared: Arc<Shared>,
}

/// The result of a [`shutdown`](BlockingPool::shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockingReport {
    /// Closures that were running when the shutdown began and finished before its deadline.
    pub finished: usize,
    /// Closures that are still running. Their threads are abandoned, and exit after them.
    pub abandoned: usize,
    /// Closures that were queued and never started: they are dropped.
    pub dropped: usize,
}

impl BlockingReport {
    /// Whether no closure is still running, and none was dropped before it started.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.abandoned == 0 && self.dropped == 0
    }

    /// Adds the numbers of another pool.
    pub(crate) const fn add(&mut self, other: Self) {
        self.finished += other.finished;
        self.abandoned += other.abandoned;
        self.dropped += other.dropped;
    }
}

/// The current state of a pool, and counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockingStats {
    /// Threads, including those that are being started.
    pub threads: usize,
    /// Idle threads.
    pub idle: usize,
    /// Running closures.
    pub running: usize,
    /// Queued closures.
    pub queued: usize,
    /// Threads that were started since the start of the pool.
    pub threads_started: u64,
    /// Closures that finished, including those that panicked.
    pub finished: u64,
    /// Closures that panicked, or whose drop panicked.
    pub panicked: u64,
    /// Closures that were refused.
    pub refused: u64,
    /// Closures that a shutdown dropped before they started.
    pub dropped: u64,
}

impl BlockingPool {
    /// Creates a pool without threads.
    ///
    /// # Errors
    ///
    /// If `threads_max` is zero, or the name has a zero byte.
    pub fn new(config: BlockingConfig) -> Result<Self, StartError> {
        config.check()?;
        let state = Mutex::new(State::default());
        Ok(Self { shared: Arc::new(Shared { config, state, thread_exited: Condvar::new() }) })
    }

    /// Submits a closure that a thread of the pool runs. Does not wait for the closure; starting a
    /// thread can take about 20 µs.
    ///
    /// # Errors
    ///
    /// [`Rejected`], which returns the closure to the caller.
    pub fn submit<F: FnOnce() + Send + 'static>(&self, work: F) -> Result<(), Rejected<F>> {
        self.submit_job(Box::new(work)).map_err(|(work, refusal)| Rejected { work: *work, refusal })
    }

    /// As [`submit`](Self::submit), with a handle that yields the result of the closure, or the
    /// payload of its panic.
    ///
    /// # Errors
    ///
    /// [`Rejected`], which returns the closure to the caller.
    pub fn spawn_blocking<F, T>(&self, work: F) -> Result<BlockingHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (job, handle) = JobWithHandle::new(work);
        match self.submit_job(Box::new(job)) {
            Ok(()) => Ok(handle),
            Err((job, refusal)) => Err(Rejected { work: job.into_work(), refusal }),
        }
    }

    /// The caller allocates the box, outside the lock; a refusal returns the box.
    fn submit_job<J: BlockingJob + 'static>(&self, job: Box<J>) -> Result<(), (Box<J>, Refusal)> {
        match self.shared.admit() {
            Ok(mut state) => {
                let woken = state.push(job);
                drop(state);
                if let Some(slot) = woken {
                    slot.notify_one();
                }
                Ok(())
            }
            Err(refusal) => Err((job, refusal)),
        }
    }

    /// Refuses new closures, drops queued ones, and waits for running ones until `timeout` has
    /// passed. Idle threads exit at once.
    ///
    /// It may be called again, to wait longer. A closure of this pool that calls it does not wait
    /// for itself, and counts as still running.
    pub fn shutdown(&self, timeout: Duration) -> BlockingReport {
        let start = Instant::now();
        let mut state = self.shared.lock();
        let (queue, slots) = state.close();
        let n_running = state.running();
        drop(state);
        for slot in slots {
            slot.notify_one();
        }
        let n_dropped = queue.len();
        let n_panicked =
            queue.into_iter().map(|work| caught_panic(|| drop(work))).filter(|p| *p).count();
        let mut state = self.shared.lock();
        state.count_dropped(n_dropped, n_panicked);
        let rest = timeout.saturating_sub(start.elapsed());
        let n_own = usize::from(self.shared.is_own_thread());
        // Rule 6.
        let n_waited_for =
            if thread::check_can_wait().is_ok() { State::n_threads } else { State::n_live };
        let has_others = |state: &mut State| n_waited_for(state) > n_own;
        let (state, _) = self
            .shared
            .thread_exited
            .wait_timeout_while(state, rest, has_others)
            .unwrap_or_else(PoisonError::into_inner);
        let abandoned = state.running();
        BlockingReport { finished: n_running - abandoned, abandoned, dropped: n_dropped }
    }

    /// How many threads there may be.
    pub(crate) fn threads_max(&self) -> usize {
        self.shared.config.threads_max
    }

    /// Whether the pool was shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().is_closed()
    }

    /// The current state and counters of the pool.
    #[must_use]
    pub fn stats(&self) -> BlockingStats {
        self.shared.lock().stats()
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockingPool").field(&self.stats()).finish()
    }
}

/// A closure that was refused; the error contains it.
///
/// *Full* and *no thread* are transient: retry after a closure has finished. *Closed* is permanent.
pub struct Rejected<F> {
    work: F,
    refusal: Refusal,
}

impl<F> Rejected<F> {
    /// The refusal of a pool whose threads do not exist, because the process was forked.
    pub(crate) const fn closed(work: F) -> Self {
        Self { work, refusal: Refusal::Closed }
    }

    /// Whether the maximum number of closures is running and queued; transient.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.refusal, Refusal::Full)
    }

    /// Whether the pool was shut down, or its threads exist only in the process from which this one
    /// was forked; permanent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.refusal, Refusal::Closed)
    }

    /// Whether the pool had no thread and the system refused to start one; transient.
    #[must_use]
    pub const fn is_no_thread(&self) -> bool {
        matches!(self.refusal, Refusal::NoThread)
    }

    /// Returns the closure.
    #[must_use]
    pub fn into_inner(self) -> F {
        self.work
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rejected").field(&self.refusal).finish()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.refusal {
            Refusal::Full => "blocking work refused: the pool is full",
            Refusal::Closed => "blocking work refused: the pool is shut down",
            Refusal::NoThread => "blocking work refused: the system cannot start a thread",
        })
    }
}

impl<F> Error for Rejected<F> {}

/// The state that the pool and its threads share.
struct Shared {
    config: BlockingConfig,
    state: Mutex<State>,
    /// Notified when a thread exits that a shutdown may wait for.
    thread_exited: Condvar,
}

thread_local! {
    /// The pool that this thread belongs to; only compared, never dereferenced.
    static CURRENT_POOL: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Rule 5: no user code runs under the lock, so a panic there is a bug in this module and
        // has been reported already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits one closure; the caller must push it under the returned lock (rules 1 and 2).
    fn admit(self: &Arc<Self>) -> Result<MutexGuard<'_, State>, Refusal> {
        let mut state = self.lock();
        state.reserve(&self.config)?;
        let Some(number) = state.reserve_thread(&self.config) else { return Ok(state) };
        // Starting a thread takes long: do it outside the lock.
        drop(state);
        let started = self.start_thread(number);
        let mut state = self.lock();
        let admitted = state.confirm(started.is_ok());
        if state.is_closed() {
            self.thread_exited.notify_all();
        }
        admitted.map(|()| state)
    }

    /// Whether the current thread belongs to this pool.
    fn is_own_thread(&self) -> bool {
        ptr::eq(CURRENT_POOL.get(), self)
    }

    fn start_thread(self: &Arc<Self>, number: u64) -> io::Result<()> {
        let name = Cow::Owned(format!("{}-{number}", self.config.name));
        let config = ThreadConfig { name, stack_size: self.config.stack_size };
        let shared = Arc::clone(self);
        thread::start(&config, move || shared.run_thread()).map(drop)
    }

    /// The main loop of a thread.
    fn run_thread(&self) {
        CURRENT_POOL.set(self);
        let slot: Arc<IdleSlot> = Arc::default();
        let keep_alive = self.config.keep_alive.max(KEEP_ALIVE_MIN);
        let mut state = self.lock();
        state.thread_started();
        loop {
            if let Some(work) = state.pop() {
                drop(state);
                let panicked = run_job(work);
                state = self.lock();
                state.count_finished(panicked);
                continue;
            }
            if !state.enter_idle(&slot) {
                break;
            }
            let is_waiting = |state: &mut State| state.is_idle(&slot);
            (state, _) = slot
                .wait_timeout_while(state, keep_alive, is_waiting)
                .unwrap_or_else(PoisonError::into_inner);
            // Rule 4: a thread that was woken is not idle any more, and reads the queue.
            if state.leave_idle(&slot) && state.is_surplus() {
                break;
            }
        }
        state.thread_exited();
        if state.is_closed() {
            self.thread_exited.notify_all();
        }
    }
}

/// Runs a job; returns whether it panicked.
fn run_job(job: Job) -> bool {
    let mut caught = false;
    caught_panic(|| caught = job.run()) || caught
}

/// Calls a function; returns whether it panicked.
fn caught_panic(call: impl FnOnce()) -> bool {
    // `AssertUnwindSafe`: a panic can break only the closure's own state, which is dropped.
    let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else { return false };
    drop_panic_payload(payload);
    true
}

/// Drops the payload of a panic; the drop may panic again.
pub(crate) fn drop_panic_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose drop panics with another such payload could repeat for ever: leak it.
        mem::forget(another);
    }
}
