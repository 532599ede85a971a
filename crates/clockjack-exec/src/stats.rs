//! Statistics of an executor.

use clockjack_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};

use clockjack_time::ShardStats;

use crate::executor::ExecutorShared;

/// How many numbers [`ExecStats::timers_by_lateness`] has.
pub(crate) const LATENESS_BUCKETS: usize = 16;

/// Counters for people; not a consistent snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecStats {
    /// Tasks that were started: processes and futures.
    pub spawned: u64,
    /// Tasks that have ended.
    pub finished: u64,
    /// Polls of tasks.
    pub steps: u64,
    /// Tasks that a worker has stolen from another.
    pub stolen: u64,
    /// How often a worker, or the thread of an executor on one thread, has parked.
    pub parked: u64,
    /// Timers that fired.
    pub timers_fired: u64,
    /// Timers that were fired by a worker to which their shard was not assigned.
    pub timers_taken_over: u64,
    /// Polls of a shard of jobs that another worker took over, because a handler took too long.
    pub source_takeovers: u64,
    /// Polls of a shard of jobs that panicked outside of handlers, and were repeated.
    pub source_panics: u64,
    /// The largest lateness of a timer, in ticks.
    pub lateness_max_ticks: u64,
    /// How many of the timers that the workers of a pool fired were how late, in ticks: in time, 1,
    /// 2 to 3, 4 to 7, and so on; the last number is for all that were later.
    pub timers_by_lateness: [u64; LATENESS_BUCKETS],
    /// How often a shard of a worker that stopped was assigned to another worker.
    pub shards_reassigned: u64,
    /// Timer shards: never more than there may be workers.
    pub timer_shards: usize,
    /// Timers that are armed now.
    pub timers_pending: u64,
    /// Timers that were armed.
    pub timers_armed: u64,
    /// Timers that were cancelled.
    pub timers_cancelled: u64,
    /// Timers that were dropped to make room, or because the executor was closed.
    pub timers_dropped: u64,
    /// How often an armed timer was armed for another time. Each of these also counts as cancelled
    /// and armed.
    pub timers_rescheduled: u64,
    /// Timers that another thread has cancelled, and that occupy their slot until the next poll.
    pub timers_stale: u64,
    /// Chunks of the timer wheels that were freed by merging chunks with few timers.
    pub timer_chunks_compacted: u64,
    /// Lists of the timer wheels that were scanned for such chunks.
    pub timer_lists_scanned: u64,
    /// Completions that arrived after their process had been upgraded to another.
    pub stale_completions: u64,
    /// Values of users that panicked when they were dropped.
    pub drop_panics: u64,
    /// How often the watchdog was restarted, because a report of a stuck worker panicked.
    pub watchdog_restarts: u64,
}

/// The counters of an executor on one thread, which has no workers. Their type is `usize` and not
/// `u64`: small processors have no larger atomics, and every poll counts.
#[derive(Default)]
pub(crate) struct SingleThreadCounters {
    steps: AtomicUsize,
    parked: AtomicUsize,
    fired: AtomicUsize,
    lateness_max: AtomicUsize,
}

impl SingleThreadCounters {
    pub(crate) fn count_step(&self) {
        add(&self.steps, 1);
    }

    pub(crate) fn count_park(&self) {
        add(&self.parked, 1);
    }

    /// Timers that fired, and the lateness of the latest of them.
    pub(crate) fn count_fired(&self, fired: usize, latest: u64) {
        add(&self.fired, fired);
        let latest = usize::try_from(latest).unwrap_or(usize::MAX);
        // Relaxed: a statistic with one writer.
        self.lateness_max.store(self.lateness_max.load(Relaxed).max(latest), Relaxed);
    }

    fn add_to(&self, stats: &mut ExecStats) {
        // Relaxed: statistics.
        let read = |counter: &AtomicUsize| counter.load(Relaxed) as u64;
        stats.steps += read(&self.steps);
        stats.parked += read(&self.parked);
        stats.timers_fired += read(&self.fired);
        stats.lateness_max_ticks = stats.lateness_max_ticks.max(read(&self.lateness_max));
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicUsize, n: usize) {
    // Relaxed: a statistic with one writer.
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Statistics.
impl ExecutorShared {
    /// How many tasks are alive, at about this time; exact while none is started.
    #[must_use]
    pub fn live_len(&self) -> usize {
        let counts = self.started_and_ended();
        usize::try_from(counts.spawned.saturating_sub(counts.finished)).unwrap_or(usize::MAX)
    }

    /// How many tasks were started, and how many of them have ended; nothing else.
    fn started_and_ended(&self) -> ExecStats {
        // Ended tasks first, so that no task is counted as ended and not as started.
        let mut stats = ExecStats { finished: self.finished.sum() as u64, ..ExecStats::default() };
        for worker in &self.workers {
            worker.add_finished(&mut stats);
        }
        // Pairs with no other fence: separates the two passes.
        fence(SeqCst);
        stats.spawned = self.spawned.sum() as u64;
        for worker in &self.workers {
            worker.add_spawned(&mut stats);
        }
        stats
    }

    /// What one worker did since the start of the executor, and the timers in the shards that are
    /// assigned to it; everything that belongs to no worker is 0.
    pub(crate) fn counts_of(&self, worker: usize) -> ExecStats {
        let shared = &self.workers[worker];
        let mut stats = ExecStats::default();
        shared.add_finished(&mut stats);
        shared.add_spawned(&mut stats);
        shared.add_to(&mut stats);
        stats.timer_shards = self.shards.assigned_to(worker).count();
        add_timers(&mut stats, &self.shards.timers_of(self.shards.assigned_to(worker)));
        stats
    }

    /// Statistics of the executor.
    #[must_use]
    pub fn stats(&self) -> ExecStats {
        let mut stats = self.started_and_ended();
        for worker in &self.workers {
            worker.add_to(&mut stats);
        }
        self.single_thread.add_to(&mut stats);
        let shards = self.shards.stats();
        stats.timers_taken_over = shards.taken_over;
        stats.source_takeovers = shards.source_takeovers;
        stats.shards_reassigned = shards.reassigned;
        stats.timer_shards = shards.shards;
        add_timers(&mut stats, &self.shards.timers());
        // Relaxed: statistics.
        stats.stale_completions = self.stale_completions.load(Relaxed);
        stats.drop_panics = self.drop_panics.load(Relaxed);
        stats.source_panics = self.source_panics.load(Relaxed);
        stats.watchdog_restarts = self.watchdog_restarts.load(Relaxed);
        stats.timers_rescheduled += self.rescheduled.load(Relaxed);
        stats
    }
}

fn add_timers(stats: &mut ExecStats, timers: &ShardStats) {
    stats.timers_pending = timers.pending as u64;
    stats.timers_armed = timers.armed as u64;
    stats.timers_cancelled = timers.cancelled as u64;
    stats.timers_dropped = timers.dropped as u64;
    stats.timers_stale = timers.stale as u64;
    stats.timer_chunks_compacted = timers.compacted as u64;
    stats.timer_lists_scanned = timers.scanned_lists as u64;
}
