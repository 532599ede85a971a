//! The current pool of this thread.

use core::{cell::RefCell, fmt, time::Duration};
use std::sync::Arc;

use clockjack_exec::{Handle, Interval, JoinHandle, Sleep, Timeout};

use crate::{BlockingHandle, BlockingPool, Rejected, task_span};

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// What the functions of this module use.
struct Current {
    handle: Handle,
    /// `None` on the thread of an executor that has no threads for blocking work.
    blocking: Option<Arc<BlockingPool>>,
}

/// The handle of the pool that this thread works for, or whose
/// [`block_on`](crate::WorkerPool::block_on) it is in.
pub(crate) fn handle() -> Option<Handle> {
    let read = |current: &Current| current.handle.clone();
    CURRENT.try_with(|current| current.borrow().as_ref().map(read)).ok().flatten()
}

/// As [`handle`], for functions that panic without a current pool.
pub(crate) fn expect_handle() -> Handle {
    handle().expect(OUTSIDE)
}

/// The threads for blocking work of the current pool.
fn blocking() -> Option<Arc<BlockingPool>> {
    let read = |current: &Current| current.blocking.clone();
    CURRENT.try_with(|current| current.borrow().as_ref().and_then(read)).ok().flatten()
}

/// Makes a pool the current pool of this thread, until the guard is dropped.
pub(crate) struct Entered {
    before: Option<Current>,
}

impl Entered {
    pub(crate) fn enter(handle: Handle, blocking: Option<Arc<BlockingPool>>) -> Self {
        // While a thread exits, its thread-locals are gone and there is no current pool. Do not
        // panic: a panic there would abort the program.
        let current = Some(Current { handle, blocking });
        let before = CURRENT.try_with(|place| place.replace(current));
        Self { before: before.ok().flatten() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // While a thread exits, there is no previous value to restore.
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

const OUTSIDE: &str =
    "there is no current pool: call this function inside a process, a task or `block_on`";

const NOT_BLOCKING: &str = "there is no current pool with threads for blocking work: call this \
     function inside a task of a worker pool or its `block_on`";

/// Runs a future as a task on the current pool.
///
/// # Panics
///
/// If there is no current pool.
#[track_caller]
pub fn spawn_future<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    // Clone the handle instead of borrowing it: a refused future is dropped inside the call, and
    // its destructor may enter another pool.
    task_span::spawn_on(&expect_handle(), None, future)
}

/// Runs a closure that blocks on a thread of the current pool for blocking work. The handle yields
/// the result of the closure, or the payload of its panic; dropping the handle detaches the
/// closure.
///
/// # Errors
///
/// If too many closures are queued already, or if the pool is shut down. The error returns the
/// closure to the caller.
///
/// # Panics
///
/// If there is no current pool, or if this is the thread of an executor that has no threads for
/// blocking work: a pinned thread, or a system inside of tokio. Use
/// [`WorkerPool::spawn_blocking`](crate::WorkerPool::spawn_blocking) there.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, exec::Failure, spawn_blocking};
///
/// let rt = Runtime::new("files")?;
/// let task = rt.spawn_future(async {
///     let text = spawn_blocking(|| std::fs::read_to_string("Cargo.toml"))?.await??;
///     Ok::<_, Failure>(text.len())
/// });
/// assert!(rt.block_on(task)?.is_ok_and(|len| len > 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn spawn_blocking<F, T>(work: F) -> Result<BlockingHandle<T>, Rejected<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let blocking = blocking().expect(NOT_BLOCKING);
    if handle().is_some_and(|handle| handle.executor().is_forked()) {
        return Err(Rejected::closed(work));
    }
    blocking.spawn_blocking(work)
}

/// Limits the time of a future, on the current pool; the time starts now. If there is no current
/// pool, the time starts at the first poll, on the pool of the task that awaits it.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, timeout};
/// use std::{future::pending, time::Duration};
///
/// let rt = Runtime::new("impatient")?;
/// let limited = rt.block_on(async { timeout(Duration::from_millis(5), pending::<()>()).await });
/// assert!(limited.is_err_and(|error| error.is_elapsed()));
///
/// let in_time = rt.block_on(async { timeout(Duration::from_secs(5), async { 6 * 7 }).await });
/// assert_eq!(in_time?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn timeout<F: IntoFuture>(after: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(sleep(after), future.into_future())
}

/// Waits for a duration, on the current pool; the time starts now. If there is no current pool,
/// the time starts at the first poll, on the pool of the task that awaits it.
pub fn sleep(after: Duration) -> Sleep {
    match handle() {
        Some(handle) => handle.sleep(after),
        None => Sleep::after(after, handle),
    }
}

/// Ticks periodically, on the current pool. The first tick is one period from now.
///
/// # Panics
///
/// If there is no current pool.
#[must_use]
pub fn interval(every: Duration) -> Interval {
    Interval::new(expect_handle(), every)
}
