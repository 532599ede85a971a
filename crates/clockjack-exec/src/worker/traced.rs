//! What a worker records, and the traced form of a poll.
//!
//! Everything here is off the path of a poll that is not traced: a steal, a park and a batch of
//! timers are rare, and polls are recorded by a form of the worker's loop of their own.

use clockjack_observe::event::{Event, ShardId, TaskId, WorkerId};

use super::Worker;
use crate::task::{Runnable, TaskRef};

/// A poll that is being traced.
pub(super) struct TracedPoll {
    /// Keeps the task alive until its messages are counted.
    task: TaskRef,
    taken_before: usize,
    started_at: u64,
}

/// The number of a worker in events.
pub(crate) fn worker_id(index: usize) -> WorkerId {
    u16::try_from(index).map_or(WorkerId::OUTSIDE, WorkerId)
}

/// The number of a shard in events.
pub(crate) fn shard_id(shard: u32) -> ShardId {
    ShardId(u16::try_from(shard).unwrap_or(u16::MAX))
}

impl Worker<'_> {
    /// As `poll`, and records how long the poll took and how many messages it handled.
    #[cold]
    pub(super) fn poll_traced(&mut self, runnable: Runnable) {
        let task = runnable.to_ref();
        let taken_before = task.header().messages_taken();
        self.traced = Some(TracedPoll { task, taken_before, started_at: self.executor.nanos() });
        self.poll(runnable);
        self.record_traced_poll();
    }

    /// Records the traced poll that has ended, by its return or by a panic.
    pub(super) fn record_traced_poll(&mut self) {
        let Some(TracedPoll { task, taken_before, started_at }) = self.traced.take() else {
            return;
        };
        let now = self.executor.nanos();
        let taken = task.header().messages_taken().wrapping_sub(taken_before);
        let event = Event::TaskPolled {
            task: TaskId(task.pid().index()),
            messages: u16::try_from(taken).unwrap_or(u16::MAX),
            ran_ns: now.saturating_sub(started_at),
        };
        self.executor.record_at(now, event);
    }

    /// Timers of a shard have fired, the latest of them this many ticks late.
    pub(super) fn record_fired(&self, shard: u32, is_own: bool, fired: usize, latest: u64) {
        let executor = self.executor;
        let is_late = latest > executor.watchdog.tolerance();
        if is_own && !is_late && !executor.is_tracing() {
            return;
        }
        let (shard, worker) = (shard_id(shard), worker_id(self.local.index));
        let timers = u32::try_from(fired).unwrap_or(u32::MAX);
        let late_ticks = u32::try_from(latest).unwrap_or(u32::MAX);
        if executor.is_tracing() {
            executor.record(Event::TimersFired { shard, worker, timers, late_ticks });
        }
        if is_late {
            executor.record(Event::TimersLate { shard, worker, timers, late_ticks });
        }
        if !is_own {
            executor.record(Event::TimersTakenOver { shard, worker, timers });
        }
    }

    pub(super) fn record_stolen(&self, victim: usize, n: usize) {
        self.executor.record(Event::WorkStolen {
            thief: worker_id(self.local.index),
            victim: worker_id(victim),
            n: u32::try_from(n).unwrap_or(u32::MAX),
        });
    }

    /// The worker has slept since this time, and has read the clock when it woke.
    pub(super) fn record_parked(&self, parked_at: u64) {
        let woke_at = self.maintained_at;
        let parked_ns = woke_at.saturating_sub(parked_at);
        let worker = worker_id(self.local.index);
        self.executor.record_at(woke_at, Event::WorkerParked { worker, parked_ns });
    }
}
