//! The pool that the code of this thread belongs to.

use core::{cell::RefCell, fmt, time::Duration};

use clockjack_exec::{Handle, Interval, Join, Sleep};

thread_local! {
    static CURRENT: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// The handle of the pool that this thread works for, or that it has
/// [entered](crate::WorkerPool::block_on).
pub(crate) fn handle() -> Option<Handle> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Makes a pool the current one of this thread, until it is dropped.
pub(crate) struct Entered {
    before: Option<Handle>,
}

impl Entered {
    pub(crate) fn enter(handle: Handle) -> Self {
        // At the end of a thread nothing can be current any more, and what is run there does
        // without: a panic would end the program.
        let before = CURRENT.try_with(|current| current.replace(Some(handle)));
        Self { before: before.ok().flatten() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // At the end of a thread there is nothing to go back to.
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

const OUTSIDE: &str = "there is no current pool: call this in a process, a task or `block_on`";

/// Runs a future on the current pool.
///
/// # Panics
///
/// Outside a pool.
pub fn spawn<F>(future: F) -> Join<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    // Not by a borrow: a future that is refused is dropped in the call, and what it drops may enter
    // another pool.
    handle().expect(OUTSIDE).spawn(future)
}

/// Waits, on the current pool; the time counts from now. Made outside of all pools it counts from
/// the first poll, on the pool whose process awaits it.
pub fn sleep(after: Duration) -> Sleep {
    match handle() {
        Some(handle) => handle.sleep(after),
        None => Sleep::after(after, handle),
    }
}

/// A period, on the current pool. The first time is one period from now.
///
/// # Panics
///
/// Outside a pool.
#[must_use]
pub fn interval(every: Duration) -> Interval {
    Interval::new(handle().expect(OUTSIDE), every)
}
