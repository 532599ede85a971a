//! The watchdog: what it does each time it wakes. Its thread belongs to the runtime
//! (`clockjack-rt`).
//!
//! The [protocol](shared) says when the watchdog sleeps and who wakes it. It checks for shards that
//! are assigned to no worker, shards that are overdue because their worker is busy, workers that do
//! not get to the task in their LIFO slot, and workers that have been in one poll for too long.

use alloc::{vec, vec::Vec};

use clockjack_observe::event::{Event, TaskId};
use clockjack_time::Tick;

pub mod shared;
use crate::{
    executor::ExecutorShared,
    pid::Pid,
    worker::{shard_id, worker_id},
};

/// For how long the watchdog stays half-awake after activity, before it sleeps until it is
/// notified.
const CALM_NANOS: u64 = 100_000_000;

/// A worker that has been in one poll for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckWorker {
    /// The index of the worker.
    pub worker: usize,
    /// The task that it polls, if that is still alive; `None` if it runs a job.
    pub pid: Option<Pid>,
    /// For how long, at least.
    pub for_nanos: u64,
}

/// What the watchdog remembers from one check to the next.
#[doc(hidden)]
#[derive(Debug)]
pub struct Watchdog {
    workers: Vec<WorkerRecord>,
    quiet_polls: u32,
    /// After which time in one poll a worker is reported.
    report_after_nanos: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct WorkerRecord {
    poll_count: u32,
    poll: Option<u32>,
    since_nanos: u64,
    is_reported: bool,
}

impl Watchdog {
    /// A watchdog for an executor with this many workers.
    #[must_use]
    pub fn new(workers: usize, report_after_nanos: u64) -> Self {
        Self { workers: vec![WorkerRecord::default(); workers], quiet_polls: 0, report_after_nanos }
    }

    /// Checks everything once, and returns until when to sleep; `None`: until unparked. Calls
    /// `report` for stuck workers, once per poll.
    #[must_use]
    pub fn poll(
        &mut self,
        executor: &ExecutorShared,
        mut report: impl FnMut(StuckWorker),
    ) -> Option<Tick> {
        let was_claimed = executor.watchdog.mark_awake();
        let nanos = executor.toolbox().nanos();
        let now = executor.toolbox().tick_of(nanos);
        self.quiet_polls = executor.watchdog.begin_poll(self.quiet_polls);
        let report_ticks = executor.toolbox().tick_of(self.report_after_nanos).get();
        executor.watchdog.set_awake_max(report_ticks.saturating_add(2));
        reassign(executor);
        let is_active = self.check_workers(executor, nanos, &mut report);
        let tolerance = executor.watchdog.tolerance();
        let mut plan = shared::plan(now.get(), tolerance, wakes(executor));
        if plan.n_overdue > 0 {
            wake_for_overdue(executor, now, tolerance);
        }
        let has_idle_work = || executor.workers.iter().any(|worker| worker.has_lifo());
        let is_quiet = executor.watchdog.stop_polling_if_quiet(self.quiet_polls, has_idle_work);
        // Rule 10: at the latest when the current poll of a worker has to be reported.
        let report_at = self.report_at(executor, nanos).max(now.get().saturating_add(tolerance));
        if was_claimed || !is_quiet && executor.watchdog.is_polling() {
            plan = plan.cap_to_tolerance(now.get(), tolerance);
        } else if self.workers.iter().any(|record| record.poll.is_some()) {
            plan.sleep_until = plan.sleep_until.min(report_at);
        } else if is_active {
            // A worker that was active may be active again in a moment: until then nobody has to
            // notify the watchdog.
            let calm = executor.toolbox().tick_of(CALM_NANOS).get().max(tolerance);
            plan.sleep_until = plan.sleep_until.min(report_at).min(now.get().saturating_add(calm));
        }
        let soonest = now.get().saturating_add(tolerance);
        let until = executor.watchdog.prepare_sleep(plan.sleep_until, soonest, || {
            let awake = executor.has_awake_worker().then(|| report_at.saturating_sub(tolerance));
            wakes(executor).flatten().chain(awake).min()
        });
        (until != shared::NEVER).then_some(Tick::new(until))
    }

    /// The tick at which the first current poll has taken too long, or at which a poll that begins
    /// now would have.
    fn report_at(&self, executor: &ExecutorShared, nanos: u64) -> u64 {
        let under_way =
            self.workers.iter().filter(|record| record.poll.is_some() && !record.is_reported);
        let since = under_way.map(|record| record.since_nanos).min().unwrap_or(nanos);
        let at = executor.toolbox().tick_of(since.saturating_add(self.report_after_nanos));
        at.get().saturating_add(1)
    }

    /// Checks the workers; returns whether one has polled anything since the last check, or does
    /// now.
    fn check_workers(
        &mut self,
        executor: &ExecutorShared,
        nanos: u64,
        report: &mut impl FnMut(StuckWorker),
    ) -> bool {
        let mut is_active = false;
        for (index, (worker, record)) in executor.workers.iter().zip(&mut self.workers).enumerate()
        {
            let (poll_count, poll) = (worker.poll_count(), worker.current_poll());
            is_active |= poll_count != record.poll_count || poll.is_some();
            if poll.is_none() || poll != record.poll {
                *record = WorkerRecord { poll_count, poll, since_nanos: nanos, is_reported: false };
                continue;
            }
            let Some(poll) = poll else { continue };
            let for_nanos = nanos.saturating_sub(record.since_nanos);
            if worker.has_lifo() {
                // Two checks in the same poll are at least the tolerance apart.
                worker.mark_stuck(poll);
                executor.wake_one();
            } else if worker.has_ring() {
                executor.wake_one();
            }
            if for_nanos >= self.report_after_nanos && !record.is_reported {
                record.is_reported = true;
                let pid = executor.pid_at(worker.current_task());
                let (worker, task) = (worker_id(index), TaskId(worker.current_task()));
                executor.record(Event::WorkerStuck { worker, task, ran_ns: for_nanos });
                report(StuckWorker { worker: index, pid, for_nanos });
            }
        }
        is_active
    }
}

fn wakes(executor: &ExecutorShared) -> impl Iterator<Item = Option<u64>> {
    executor.shards.wakes().map(|(_, _, wake)| wake.map(Tick::get))
}

/// Assigns the shards of workers that stopped to the active workers with the least load.
fn reassign(executor: &ExecutorShared) {
    if !executor.shards.has_unassigned() {
        return;
    }
    let least = || {
        // Not by whether the slot is occupied: a worker that leaves still occupies its slot when it
        // has detached, and it has the least load of all then.
        let is_attached = |worker: &usize| executor.shards.local_shard(*worker).is_some();
        let active = (0..executor.workers.len()).filter(is_attached);
        active.min_by_key(|worker| executor.shards.load(*worker))
    };
    executor.shards.reassign(least, |worker, shard| {
        let (shard, assigned) = (shard_id(shard), worker_id(worker));
        executor.record(Event::ShardReassigned { shard, worker: assigned });
        executor.workers[worker].request_poll();
        executor.wake_worker(worker);
    });
}

/// Makes somebody poll the shards that are overdue: their assigned worker, or an idle one.
fn wake_for_overdue(executor: &ExecutorShared, now: Tick, tolerance: u64) {
    for (_, worker, wake) in executor.shards.wakes() {
        if wake.is_some_and(|wake| wake.get().saturating_add(tolerance) <= now.get()) {
            if let Some(worker) = worker {
                executor.workers[worker].request_poll();
                executor.wake_worker(worker);
            }
            executor.wake_one();
        }
    }
}
