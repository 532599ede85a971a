//! The figures of single workers, for users.

use alloc::vec::Vec;
use core::time::Duration;

use clockjack_sync::primitive::atomic::Ordering::Relaxed;
use clockjack_time::ShardOccupancy;

use super::shared::WorkerShared;
use crate::{executor::ExecutorShared, stats::ExecStats};

/// The current state of one worker, and counters since the start of its executor. Workers that
/// leave and later workers with the same index count together.
///
/// The counters are exact; the figures of one worker are not read at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// The index of the worker.
    pub worker: usize,
    /// Whether the worker polls a task, or fires jobs of the scheduler.
    pub is_polling: bool,
    /// The number of tasks in its run queue, including the LIFO slot.
    pub queue_len: usize,
    /// The number of tasks in its LIFO slot: 0 or 1.
    pub lifo_len: usize,
    /// The time between the beginnings of two polls, as a moving average over busy times; zero
    /// before the first sample. It includes the search for the next task.
    pub poll_mean: Duration,
    /// How long it was parked, without the current park. The rest of its life it was busy, or
    /// searched for tasks.
    pub parked: Duration,
    /// What it did, and the timers in the shards that are assigned to it. Everything that belongs
    /// to no worker is 0.
    pub counts: ExecStats,
}

impl ExecutorShared {
    /// The figures of all workers that run now; none on an executor of one thread.
    #[must_use]
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        let running = self.workers.iter().enumerate().filter(|(_, worker)| worker.is_occupied());
        running.map(|(index, worker)| self.stats_of(index, worker)).collect()
    }

    /// Calls `f` with the registry index of each task that a worker polls at this moment. For
    /// samplers: it reads two words per worker.
    #[doc(hidden)]
    pub fn polled_tasks(&self, mut f: impl FnMut(u32)) {
        for worker in self.workers.iter().filter(|worker| worker.current_poll().is_some()) {
            f(worker.current_task());
        }
    }

    /// Calls `f` for each worker with its index and, if it polls a task at this moment, the
    /// registry index of the task and the number of the poll: the same number means the same poll.
    /// For samplers: it reads some words per worker. Between two of these reads the worker may go
    /// on, so the task may be the next one.
    #[doc(hidden)]
    pub fn sample(&self, mut f: impl FnMut(usize, Option<(u32, u32)>)) {
        for (index, worker) in self.workers.iter().enumerate() {
            if worker.is_occupied() {
                let poll = worker.current_poll();
                f(index, poll.map(|poll| (worker.current_task(), poll)));
            }
        }
    }

    /// Calls `f` with the number of each timer shard and the occupancy of its wheel, if no other
    /// thread uses the shard at this moment.
    #[doc(hidden)]
    pub fn timer_occupancy(&self, f: impl FnMut(u32, Option<ShardOccupancy>)) {
        self.shards.occupancy(f);
    }

    fn stats_of(&self, index: usize, worker: &WorkerShared) -> WorkerStats {
        // Relaxed: statistics, here and below.
        let lifo_len = usize::from(!worker.lifo.load(Relaxed).is_null());
        WorkerStats {
            worker: index,
            is_polling: worker.current_poll().is_some(),
            queue_len: worker.thief.len() + lifo_len,
            lifo_len,
            poll_mean: Duration::from_nanos(worker.counts.poll_nanos.load(Relaxed)),
            parked: Duration::from_nanos(worker.counts.parked_nanos.load(Relaxed)),
            counts: self.counts_of(index),
        }
    }
}
