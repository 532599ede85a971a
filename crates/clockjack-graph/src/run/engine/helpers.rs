//! Several workers run the regions of one epoch in parallel.
//!
//! The scheme is a dependency-counting ready queue, as task-graph executors such as Taskflow have
//! it: a job becomes ready when the number of unfinished jobs that it depends on drops to zero.
//!
//! # Roles
//!
//! * The *coordinator* is the future of the domain. It begins and ends epochs, and runs jobs too.
//! * *Helpers* are futures on the same executor. The first parallel epoch spawns all of them. A
//!   helper that finds no work waits; a worker that has work for it wakes it.
//! * *Lane helpers* are futures on the threads of `isolated_thread` lanes. They live as long as the
//!   run, and take jobs of their own lane only.
//!
//! All of them share one [`ReadyQueue`](ready_queue::ReadyQueue) behind one lock. A *job* is one
//! region in one epoch. The jobs work on the state of the domain, to which the coordinator has a
//! reference-counted handle ([`EpochHandle`]).
//!
//! # Protocol
//!
//! 1. Between epochs the ready queue holds no handle to the state: helpers find no work, and the
//!    coordinator has exclusive access to the regions (`Arc::get_mut` succeeds).
//! 2. To begin an epoch, the coordinator stores a clone of its handle and all jobs without
//!    dependencies in the ready queue, under the lock. After it has released the lock, it wakes
//!    lane helpers and helpers.
//! 3. A worker that takes a job clones the handle under the lock, releases the lock, runs the
//!    region, drops its handle, and only then reports the job as done, under the lock again. The
//!    report makes dependent jobs ready. The worker continues with one of the ready jobs, and
//!    wakes as many other workers as there are further ready jobs.
//! 4. When no job is left, the coordinator removes the handle from the ready queue. By rule 3 every
//!    worker has dropped its handle before its last report, so the coordinator has exclusive access
//!    again. If a worker reported first and dropped its handle later, `Arc::get_mut` of the
//!    coordinator would fail.
//! 5. A worker that finds no job registers its waker under the same lock. A worker that makes a
//!    job ready later holds the lock after it, so it sees the waker. No wake-up is lost.
//! 6. A worker that makes jobs ready decides under the lock how many helpers to wake, and takes
//!    their wakers one by one under further locks, so that no list of wakers is allocated. If
//!    another worker is faster and takes one of them, no job is forgotten: the helper that was
//!    taken has not searched since then, and when it does, it finds both jobs.
//! 7. An executor that is full or shuts down drops a helper without polling it. The drop puts the
//!    helper back into the list of idle helpers, to be spawned again, and wakes the coordinator in
//!    its place. Otherwise the job would wait for ever if the thread that wakes was a lane helper,
//!    which does not run jobs of other lanes.
//!
//! Helpers are woken at the end of the run queue: executors run a woken future next on the thread
//! that woke it, which here goes on to run a job itself; a future at the end of the queue can be
//! taken by any worker thread. A helper spins for some time before it waits, so that epochs that
//! follow closely find it running. A helper that has woken the coordinator waits at once, because
//! the coordinator is going to run on the helper's worker thread.
//!
//! # Memory
//!
//! A warm epoch allocates nothing, on any number of workers: helpers live as long as the run, and
//! the lists of the ready queue are as long from the start as they can ever become. How long they
//! become in an epoch depends on threads.
//!
//! # Dependencies
//!
//! A job depends on the regions whose immediate outputs it reads; on lanes that call one component
//! after the other, on the previous job of that lane; with an output boundary, on all jobs before
//! it. All dependencies are earlier in compiled order, so the first job that is not done can always
//! run, and every epoch ends.
//!
//! # Failures
//!
//! When the job at a position fails, nothing after that position counts. Workers skip the jobs
//! after it that have not begun; the jobs before it run, so that the epoch reports the failure that
//! is first in compiled order, independent of which thread was faster. A panic is a failure that
//! the coordinator resumes when all other jobs have finished. A stop request skips all jobs that
//! have not begun.
//!
//! The protocol does not depend on graphs: [`ready_queue`] is the data, [`shared`] the code of the
//! roles. Loom therefore explores these very files (`tests/loom.rs`).

mod dependencies;
mod primitive;
mod ready_queue;
mod shared;

use core::{num::NonZero, task::Waker};
use std::{sync::Arc, thread::available_parallelism};

use clockjack_exec::Handle;
pub(crate) use dependencies::Dependencies;
use dependencies::{JobSpec, LaneSpec};
pub(crate) use ready_queue::{EpochHandle, EpochOutcome};
use shared::{Spawn, run_lane_helper};

use super::{batch::Batch, epoch::DomainState};
use crate::{
    compile::Plan,
    describe::LaneType,
    run::{
        observe::report::Fault,
        setup::{options::Parallel, wiring},
    },
};

/// A call that takes less time than this is not worth handing to another thread, in nanoseconds.
const CALL_WORTH_NS: u64 = 2_000;

/// How often an idle worker checks the ready queue before it waits: 5 to 25 microseconds,
/// about the cost of a sleep and a wake-up.
const SPINS: u32 = 400;

/// The same, with more workers than processors: the worker that would bring the next job may be
/// waiting for this processor.
const SPINS_CROWDED: u32 = 10;

/// What the coordinator, the helpers and the regions of a domain share.
pub(crate) type HelpersShared = shared::HelpersShared<Arc<DomainState>, Handle>;

/// The workers that run the epochs of a domain in parallel.
pub(crate) struct Helpers {
    shared: Arc<HelpersShared>,
    parallel: Parallel,
    /// A job belongs to an isolated lane, which runs nowhere else.
    is_required: bool,
    /// Average time of a call in the last measured epoch.
    call_ns: u64,
    /// The last measured epoch has changed the decision, and the next one is measured to confirm
    /// it: one slow call does not decide about many epochs.
    is_unconfirmed: bool,
    /// How many epochs ran in parallel.
    n_parallel: u64,
}

impl EpochHandle for Arc<DomainState> {
    type Fault = Fault;
    type Batch = Batch;

    fn is_due(&self, lane: usize) -> bool {
        self.is_due[lane]
    }

    fn is_stopping(&self) -> bool {
        self.env.is_stopping()
    }

    fn run(&self, position: usize, worker: u16) -> Result<u32, Fault> {
        self.run_region(position, worker)
    }

    fn has_job(batch: &Batch) -> bool {
        batch.has_job()
    }

    fn help(&self, batch: &Batch, worker: u16) {
        while batch.help(&self.env, worker) {}
    }
}

impl Spawn for Handle {
    fn spawn(&self, helper: impl Future<Output = ()> + Send + 'static) {
        drop(Self::spawn_future(self, helper));
    }

    fn wake(&self, helper: Waker) {
        clockjack_exec::wake_last(helper);
    }
}

impl Dependencies {
    /// `regions`: those of the domain, in compiled order, with their numbers in the plan.
    pub(crate) fn new(plan: &Plan, regions: &[usize], isolated: &[bool]) -> Self {
        let mut position = vec![usize::MAX; plan.regions.len()];
        for (at, region) in regions.iter().enumerate() {
            position[*region] = at;
        }
        let mut last_of_lane = vec![None; plan.lanes.len()];
        let jobs = regions.iter().enumerate().map(|(at, region)| {
            let planned = &plan.regions[*region];
            let mut dependencies: Vec<usize> =
                planned.incoming.iter().map(|one| position[*one]).collect();
            let is_pool = plan.lanes[planned.lane].spec.lane_type == LaneType::ThreadPool;
            if !is_pool {
                dependencies.extend(last_of_lane[planned.lane].replace(at));
            }
            let (lane, rank) = (planned.lane, planned.rank);
            JobSpec { dependencies, waits_for_all: planned.is_output, lane, rank }
        });
        let lanes = plan.lanes.iter().zip(isolated).map(|(planned, is_isolated)| {
            let spec = &planned.spec;
            let n_at_once = match spec.lane_type {
                LaneType::ThreadPool => spec.max_threads.max(1) as usize,
                _ => 1,
            };
            LaneSpec { n_at_once, is_isolated: *is_isolated, aging: spec.aging_picks }
        });
        Self::from_jobs(jobs, lanes.collect())
    }

    /// Whether any two jobs can run at the same time.
    pub(crate) fn is_wide(&self) -> bool {
        // Dependencies are earlier in compiled order, so the jobs form a line exactly if each job
        // depends on the job right before it.
        (1..self.n_dependencies.len()).any(|at| {
            let is_next = self.dependents[at - 1].contains(&wiring::count(at));
            !self.waits_for_all[at] && !is_next
        })
    }

    /// Whether any job belongs to this lane.
    pub(crate) fn has_lane(&self, lane: usize) -> bool {
        self.lane.contains(&lane)
    }

    /// Whether a job runs on the thread of its lane only.
    pub(crate) fn has_isolated(&self) -> bool {
        self.lane.iter().any(|lane| self.lanes[*lane].is_isolated)
    }
}

impl Helpers {
    /// Prepares `n_helpers` helpers, and starts one lane helper for each isolated lane.
    pub(crate) fn start(
        dependencies: Dependencies,
        parallel: Parallel,
        executor: &Handle,
        n_helpers: usize,
        isolated: &[(usize, Handle)],
    ) -> Self {
        let is_required = dependencies.has_isolated();
        let n_processors = available_parallelism().map_or(1, NonZero::get);
        let n_spins = if n_helpers < n_processors { SPINS } else { SPINS_CROWDED };
        let shared = HelpersShared::new(dependencies, executor.clone(), n_helpers, n_spins);
        let shared = Arc::new(shared);
        for (number, (lane, thread)) in isolated.iter().enumerate() {
            let worker = u16::try_from(n_helpers + number + 1).unwrap_or(u16::MAX);
            drop(thread.spawn_future(run_lane_helper(Arc::clone(&shared), *lane, worker)));
        }
        Self { shared, parallel, is_required, call_ns: 0, is_unconfirmed: false, n_parallel: 0 }
    }

    /// Where regions offer batches to other workers.
    pub(crate) fn shared(&self) -> Arc<HelpersShared> {
        Arc::clone(&self.shared)
    }

    /// Whether running the next epoch in parallel is worth its cost.
    pub(crate) fn is_worth_parallel(&self) -> bool {
        self.is_required
            || match self.parallel {
                Parallel::Always => true,
                Parallel::Never => false,
                Parallel::Auto => self.call_ns >= CALL_WORTH_NS,
            }
    }

    /// Whether the next epoch must be measured, because the decision has just changed.
    pub(crate) fn wants_measurement(&self) -> bool {
        self.is_unconfirmed
    }

    /// Records how long the calls of an epoch took: the whole epoch on one thread, or the sum of
    /// its calls on several.
    pub(crate) fn record_cost(&mut self, took_ns: u64, n_called: u64) {
        let was_worth = self.is_worth_parallel();
        self.call_ns = took_ns.checked_div(n_called).unwrap_or(self.call_ns);
        self.is_unconfirmed = self.is_worth_parallel() != was_worth;
    }

    /// How many epochs ran in parallel.
    pub(crate) fn n_parallel(&self) -> u64 {
        self.n_parallel
    }

    /// Runs an epoch. When it is over, the caller's reference to the state is the only one.
    pub(crate) async fn run(&mut self, state: &mut Arc<DomainState>) -> EpochOutcome<Fault> {
        self.n_parallel += 1;
        self.shared.run_epoch(state).await
    }

    /// Stops all helpers.
    pub(crate) fn close(&mut self) {
        self.shared.close();
    }

    /// For each lane, how often a region ran early because it had waited for long.
    pub(crate) fn n_starvations(&self) -> Vec<u64> {
        self.shared.n_starvations()
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
