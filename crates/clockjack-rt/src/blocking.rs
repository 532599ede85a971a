//! Threads for closures that wait: file systems, name look-ups, foreign libraries.
//!
//! A worker must not wait, so what waits is handed over here. Threads start when there is more to
//! do than threads, up to a bound, and leave when nothing came for a while. One lock guards all of
//! it: a closure that is worth a thread of its own is worth a lock.
//!
//! # Rules
//!
//! 1. The *load* is what was admitted and has not ended: on its way in, queued or running. At most
//!    `threads_max + queue_max` are admitted, whatever the threads do meanwhile, so a refusal does
//!    not depend on how fast a thread starts.
//! 2. A submission that makes the load larger than the number of threads starts one, unless there
//!    are `threads_max`. As long as a thread is free none is started.
//! 3. Of the idle threads the one that became idle *last* is called. Those who came early to rest
//!    stay at rest, and leave: a light load ends up with few threads, and warm ones.
//! 4. A thread looks at the queue, under the lock, before it sits down, and a push, under the lock,
//!    calls one that sits. A thread leaves only if as many as the load are left without it: what
//!    was admitted and is not queued yet, because a thread is being started for it, counts.
//! 5. No closure is run or dropped under the lock. A panic in it, or in its drop, is caught, and
//!    counted; with `panic = "abort"` it ends the process.
//! 6. After [`shutdown`](BlockingPool::shutdown) nothing is admitted, and what was queued is
//!    dropped. A closure that runs cannot be stopped by anybody: it is waited for, and left alone
//!    after the deadline.
//!
//! *Why nothing waits for a thread that never comes*: what starts a thread is queued only if that
//! succeeded, or if there is a thread that has arrived; else it is refused. What starts none found
//! the load, itself included, no larger than the number of threads. Each start that may still fail
//! has its own closure in the load, so at least one thread is there or sure to come. Whoever is
//! there looks at the queue before it leaves.

mod config;
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

pub use config::{BlockingConfig, InvalidConfig};
use state::{IdleSlot, Refusal, State};

use crate::thread::{self, ThreadConfig};

/// A thread that must stay a little longer (rule 4) waits at least so long before it asks again.
const KEEP_ALIVE_MIN: Duration = Duration::from_millis(1);

/// Threads for closures that wait; the [module](self) has the rules.
///
/// Dropping it is a [`shutdown`](Self::shutdown) that waits for nothing.
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

/// What a [`shutdown`](BlockingPool::shutdown) found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockingReport {
    /// Closures that ran when it began and ended before its deadline.
    pub finished: usize,
    /// Closures that still run. Their threads are left alone, and end with them.
    pub abandoned: usize,
    /// Closures that were queued and never started: they are dropped.
    pub dropped: usize,
}

/// A picture of a pool, and counts since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockingStats {
    /// Threads, those that are being started included.
    pub threads: usize,
    /// Threads that wait for something to do.
    pub idle: usize,
    /// Closures that run.
    pub running: usize,
    /// Closures that wait for a thread.
    pub queued: usize,
    /// Threads that were started, ever.
    pub threads_started: u64,
    /// Closures that ended, by a panic or not.
    pub finished: u64,
    /// Closures that panicked, or whose drop did.
    pub panicked: u64,
    /// Closures that were not admitted.
    pub refused: u64,
    /// Closures that were dropped by a shutdown before they started.
    pub dropped: u64,
}

impl BlockingPool {
    /// A pool without threads.
    ///
    /// # Errors
    ///
    /// What [`BlockingConfig::validate`] says.
    pub fn new(config: BlockingConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        let state = Mutex::new(State::default());
        Ok(Self { shared: Arc::new(Shared { config, state, thread_exited: Condvar::new() }) })
    }

    /// Hands over a closure, to be run by a thread of the pool. Does not wait for it; starting a
    /// thread can take some 20 µs.
    ///
    /// # Errors
    ///
    /// The closure comes back in [`Rejected`].
    pub fn submit<F: FnOnce() + Send + 'static>(&self, work: F) -> Result<(), Rejected<F>> {
        // Boxed out here: the lock is short, and a box gives its closure back.
        let work = Box::new(work);
        match self.shared.admit() {
            Ok(mut state) => {
                let woken = state.push(work);
                drop(state);
                if let Some(slot) = woken {
                    slot.notify_one();
                }
                Ok(())
            }
            Err(refusal) => Err(Rejected { work: *work, refusal }),
        }
    }

    /// Refuses what comes from now on, drops what is queued, and waits for what runs, at most for
    /// `deadline`. Threads that are free leave at once.
    ///
    /// It may be called again, to wait longer. A closure of this pool that calls it does not wait
    /// for itself, and is among those that still run.
    pub fn shutdown(&self, deadline: Duration) -> BlockingReport {
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
        let rest = deadline.saturating_sub(start.elapsed());
        let n_own = usize::from(self.shared.is_own_thread());
        let has_others = |state: &mut State| state.n_threads() > n_own;
        let (state, _) = self
            .shared
            .thread_exited
            .wait_timeout_while(state, rest, has_others)
            .unwrap_or_else(PoisonError::into_inner);
        let abandoned = state.running();
        BlockingReport { finished: n_running - abandoned, abandoned, dropped: n_dropped }
    }

    /// Whether it was shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().is_closed()
    }

    /// How the pool stands.
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

/// A closure that was not admitted, which it carries.
///
/// *Full* and *no thread* are transient: try again when something has ended. *Closed* is permanent.
pub struct Rejected<F> {
    work: F,
    refusal: Refusal,
}

impl<F> Rejected<F> {
    /// Whether as many closures run and wait as may; transient.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self.refusal, Refusal::Full)
    }

    /// Whether the pool was shut down; permanent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.refusal, Refusal::Closed)
    }

    /// Whether the pool had no thread and the system gave none; transient.
    #[must_use]
    pub const fn is_no_thread(&self) -> bool {
        matches!(self.refusal, Refusal::NoThread)
    }

    /// The closure.
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
            Refusal::NoThread => "blocking work refused: the system gives no thread",
        })
    }
}

impl<F> Error for Rejected<F> {}

/// What the pool and its threads share.
struct Shared {
    config: BlockingConfig,
    state: Mutex<State>,
    /// Rung when a thread has left that a shutdown may wait for.
    thread_exited: Condvar,
}

thread_local! {
    /// The pool that this thread belongs to; compared, and never followed.
    static CURRENT_POOL: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Rule 5: no code of users runs under it, so a panic there is a fault of this module, and
        // has been reported.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits one closure, which is to be pushed under the lock that comes back (rules 1 and 2).
    fn admit(self: &Arc<Self>) -> Result<MutexGuard<'_, State>, Refusal> {
        let mut state = self.lock();
        state.reserve(&self.config)?;
        let Some(number) = state.reserve_thread(&self.config) else { return Ok(state) };
        // A start takes long: not under the lock.
        drop(state);
        let started = self.start_thread(number);
        let mut state = self.lock();
        let admitted = state.confirm(started.is_ok());
        if state.is_closed() {
            self.thread_exited.notify_all();
        }
        admitted.map(|()| state)
    }

    /// Whether this thread is one of the pool's.
    fn is_own_thread(&self) -> bool {
        ptr::eq(CURRENT_POOL.get(), self)
    }

    fn start_thread(self: &Arc<Self>, number: u64) -> io::Result<()> {
        let name = Cow::Owned(format!("{}-{number}", self.config.name));
        let config = ThreadConfig { name, stack_size: self.config.stack_size };
        let shared = Arc::clone(self);
        thread::start(&config, move || shared.run_thread()).map(drop)
    }

    /// The life of a thread.
    fn run_thread(&self) {
        CURRENT_POOL.set(self);
        let slot: Arc<IdleSlot> = Arc::default();
        let keep_alive = self.config.keep_alive.max(KEEP_ALIVE_MIN);
        let mut state = self.lock();
        state.thread_started();
        loop {
            if let Some(work) = state.pop() {
                drop(state);
                let panicked = caught_panic(work);
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
            // Rule 4: whoever was called is not idle any more, and has a look at the queue.
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

/// Calls what may panic; says whether it did.
fn caught_panic(call: impl FnOnce()) -> bool {
    // What the closure broke it has broken for itself: the pool keeps nothing of it.
    let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else { return false };
    drop_panic_payload(payload);
    true
}

/// Drops what was thrown, which may throw again.
pub(crate) fn drop_panic_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose drop panics with such a payload could go on for ever: leaked.
        mem::forget(another);
    }
}
