//! The current pool of this thread.

use core::{cell::RefCell, fmt, time::Duration};

use clockjack_exec::{Handle, Interval, JoinHandle, Sleep};

thread_local! {
    static CURRENT: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// The handle of the pool that this thread works for, or whose
/// [`block_on`](crate::WorkerPool::block_on) it is in.
pub(crate) fn handle() -> Option<Handle> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Makes a pool the current pool of this thread, until the guard is dropped.
pub(crate) struct Entered {
    before: Option<Handle>,
}

impl Entered {
    pub(crate) fn enter(handle: Handle) -> Self {
        // While a thread exits, its thread-locals are gone and there is no current pool. Do not
        // panic: a panic there would abort the program.
        let before = CURRENT.try_with(|current| current.replace(Some(handle)));
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

/// Runs a future as a task on the current pool.
///
/// # Panics
///
/// If there is no current pool.
pub fn spawn_future<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    // Clone the handle instead of borrowing it: a refused future is dropped inside the call, and
    // its destructor may enter another pool.
    handle().expect(OUTSIDE).spawn_future(future)
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
    Interval::new(handle().expect(OUTSIDE), every)
}
