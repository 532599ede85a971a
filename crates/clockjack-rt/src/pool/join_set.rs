//! A set of tasks that are joined in the order in which they finish.
//!
//! The set keeps the join handles of its tasks by key. [`woken`] is the queue that tells which of
//! them may have finished, and has the protocol; joining one of *n* tasks takes constant time.

pub(crate) mod woken;

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::{borrow::Cow, collections::HashMap, sync::Arc};

use clockjack_exec::{Handle, JoinError, JoinHandle, poll_leaf};

use self::woken::{Entry, WokenQueue};
use super::current;
use crate::task_span;

/// A set of tasks with the same output, joined in the order in which they finish.
///
/// Dropping the set aborts its tasks; [`detach_all`](Self::detach_all) lets them continue. The
/// number of tasks is bounded by the limits of the executor: a task that is refused is in the set,
/// and its result is the reason.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{JoinSet, Runtime, sleep};
/// use std::time::Duration;
///
/// let rt = Runtime::new("set")?;
/// let sum = rt.block_on(async {
///     let mut set = JoinSet::new();
///     for n in [30, 10, 20] {
///         set.spawn_future(async move {
///             sleep(Duration::from_millis(n)).await?;
///             Ok::<_, clockjack_rt::exec::TimerError>(n)
///         });
///     }
///     let mut sum = 0;
///     while let Some(joined) = set.join_next().await {
///         sum += joined??; // 10 first, then 20, then 30
///     }
///     Ok::<_, Box<dyn std::error::Error>>(sum)
/// })?;
/// assert_eq!(sum, 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JoinSet<T> {
    tasks: HashMap<u64, JoinedTask<T>>,
    queue: Arc<WokenQueue>,
    /// The key of the next task. Keys are not used again.
    next_key: u64,
}

struct JoinedTask<T> {
    handle: JoinHandle<T>,
    waker: Waker,
}

impl<T: Send + 'static> JoinSet<T> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { tasks: HashMap::new(), queue: Arc::new(WokenQueue::new()), next_key: 0 }
    }

    /// Runs a future as a task on the current pool.
    ///
    /// # Panics
    ///
    /// If there is no current pool: use [`spawn_on`](Self::spawn_on) there.
    #[track_caller]
    pub fn spawn_future<F>(&mut self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(current::spawn_future(future));
    }

    /// As [`spawn_future`](Self::spawn_future), with a name for dumps.
    ///
    /// # Panics
    ///
    /// If there is no current pool.
    #[track_caller]
    pub fn spawn_named<F>(&mut self, name: impl Into<Cow<'static, str>>, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(task_span::spawn_on(&current::expect_handle(), Some(name.into()), future));
    }

    /// Runs a future as a task on this executor.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, handle: &Handle, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(task_span::spawn_on(handle, None, future));
    }

    /// Adds a task that was started elsewhere.
    pub fn insert(&mut self, handle: JoinHandle<T>) {
        let key = self.next_key;
        self.next_key += 1;
        let waker = Waker::from(Arc::new(Entry::new(key, Arc::clone(&self.queue))));
        self.tasks.insert(key, JoinedTask { handle, waker });
        // Rule 5: nobody is woken, because `self` is borrowed exclusively, so nobody waits.
        self.queue.push(key);
    }
}

impl<T> JoinSet<T> {
    /// The number of tasks that were not joined yet, finished or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether every task was joined.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for the next task that finishes, and removes it from the set; `None` if the set is
    /// empty.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing.
    pub fn join_next(&mut self) -> impl Future<Output = Option<Result<T, JoinError>>> {
        JoinNext(self)
    }

    /// A task that has finished, removed from the set; `None` if there is none at this time.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        while let Some(key) = self.queue.pop() {
            if let Poll::Ready(joined) = self.poll_task(key) {
                return Some(joined);
            }
        }
        None
    }

    /// Waits for all tasks, and returns their results in the order in which they finished.
    pub async fn join_all(mut self) -> Vec<Result<T, JoinError>> {
        let mut all = Vec::with_capacity(self.len());
        while let Some(joined) = self.join_next().await {
            all.push(joined);
        }
        all
    }

    /// Aborts every task instead of its next poll. The tasks remain in the set until they are
    /// joined; the result of a task that was aborted in time says so.
    pub fn abort_all(&self) {
        for task in self.tasks.values() {
            task.handle.abort();
        }
    }

    /// Removes all tasks from the set; they continue.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
        // Otherwise the keys of tasks that have finished would stay until the next join.
        while self.queue.pop().is_some() {}
    }

    /// As [`join_next`](Self::join_next), for a future that is written by hand.
    #[track_caller]
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        poll_leaf(cx, |cx| {
            while !self.tasks.is_empty() {
                let Some(key) = self.queue.pop_or_register(cx.waker()) else {
                    return Poll::Pending;
                };
                if let Poll::Ready(joined) = self.poll_task(key) {
                    return Poll::Ready(Some(joined));
                }
            }
            Poll::Ready(None)
        })
    }

    /// Rule 4: polls the task with this key, if it is still in the set.
    fn poll_task(&mut self, key: u64) -> Poll<Result<T, JoinError>> {
        let Some(task) = self.tasks.get_mut(&key) else { return Poll::Pending };
        let polled = Pin::new(&mut task.handle).poll(&mut Context::from_waker(&task.waker));
        if polled.is_ready() {
            self.tasks.remove(&key);
        }
        polled
    }
}

/// The future of [`JoinSet::join_next`]. Not an `async fn`, so that a dump names the `.await` of
/// the caller.
struct JoinNext<'s, T>(&'s mut JoinSet<T>);

impl<T> Future for JoinNext<'_, T> {
    type Output = Option<Result<T, JoinError>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_join_next(cx)
    }
}

impl<T: Send + 'static> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_set_whose_tasks_are_detached_keeps_nothing_of_them() {
        let pool = crate::WorkerPool::new(crate::PoolConfig::DEFAULT, crate::exec::Commands::new());
        pool.unwrap().block_on(async {
            let mut set = JoinSet::new();
            for _ in 0..3 {
                set.spawn_future(core::future::pending::<()>());
                set.detach_all();
            }
            assert!(set.is_empty());
            assert_eq!(set.queue.pop(), None);
        });
    }
}
