//! Enqueues tasks that have become ready, and wakes workers and the watchdog for them.
//!
//! The head of [`executor`](crate::executor) says which task goes into which queue.

use clockjack_sync::{pad::Padded, primitive::atomic::Ordering::Relaxed};
use clockjack_time::Tick;

use crate::{
    executor::{ExecutorShared, shutdown::SHUT_DOWN},
    task::Runnable,
    worker::{WorkerLocal, WorkerShared},
};

impl ExecutorShared {
    /// Enqueues a task that was woken.
    #[inline]
    pub(crate) fn schedule_woken(&self, runnable: Runnable) {
        match self.worker_local() {
            Some(local) => local.push_woken(self, runnable),
            None => self.inject(runnable),
        }
    }

    /// Enqueues a new task.
    #[inline]
    pub(super) fn schedule_new(&self, local: Option<&WorkerLocal>, runnable: Runnable) {
        match local {
            Some(local) => {
                local.push(self, runnable);
                self.notify_one();
            }
            None => self.inject(runnable),
        }
    }

    /// Enqueues a task that asked for another poll.
    #[inline]
    pub(super) fn schedule_yielded(&self, runnable: Runnable) {
        match self.worker_local() {
            Some(local) => local.push(self, runnable),
            None => self.inject(runnable),
        }
    }

    /// Enqueues a task that was woken, behind all others.
    pub(crate) fn schedule_last(&self, runnable: Runnable) {
        self.schedule_new(self.worker_local(), runnable);
    }

    pub(crate) fn inject(&self, runnable: Runnable) {
        let pushed = self.injector.push(runnable);
        // The injector is closed only after all tasks have ended, and those are not enqueued.
        debug_assert!(pushed.is_ok(), "a task was enqueued after its executor was closed");
        self.notify_one();
        // Relaxed: behind the fence of the notification (see `shutdown`, rule 3). An executor on
        // one thread has no such fence and does not need it: it has waited for every task that its
        // wakers enqueue.
        let is_over = !self.workers.is_empty() && self.shutdown_state.load(Relaxed) == SHUT_DOWN;
        if is_over {
            self.terminate_queued();
        }
    }

    /// Wakes a worker if the work that was just made visible needs one.
    #[inline]
    pub(crate) fn notify_one(&self) {
        if self.workers.is_empty() {
            self.toolbox.unpark(0);
        } else if self.idle.should_wake() {
            self.wake_one();
        }
    }

    #[cold]
    pub(crate) fn wake_one(&self) {
        if let Some(worker) = self.idle.wake_one() {
            self.toolbox.unpark(worker);
        }
    }

    /// Whether there is work that any worker may take. A caller that decides by this has fenced.
    pub(crate) fn has_shared_work(&self) -> bool {
        !self.injector.is_empty() || self.workers.iter().any(|worker| worker.has_ring())
    }

    /// Makes the watchdog poll now.
    pub(crate) fn wake_watchdog(&self) {
        // As if a timer were armed for tick 0: the watchdog always sleeps for longer than that.
        let _ = self.watchdog.notify_armed(0);
        self.toolbox.unpark_watchdog();
    }

    /// A worker that has just woken calls this before it runs anything: the watchdog must not sleep
    /// for longer than a poll may take.
    pub(crate) fn notify_worker_awake(&self, now: Tick) {
        if self.watchdog.notify_awake(now.get()) {
            self.toolbox.unpark_watchdog();
        }
    }

    /// Whether a worker is awake. A caller that decides by this has fenced.
    pub(crate) fn has_awake_worker(&self) -> bool {
        let is_awake = |(index, worker): (usize, &Padded<WorkerShared>)| {
            worker.is_occupied() && !self.idle.is_parked(index)
        };
        self.workers.iter().enumerate().any(is_awake)
    }

    /// Wakes a worker, if it sleeps.
    pub(crate) fn wake_worker(&self, worker: usize) {
        if self.workers.is_empty() {
            self.toolbox.unpark(0);
        } else if self.idle.wake_worker(worker) {
            self.toolbox.unpark(worker);
        }
    }
}
