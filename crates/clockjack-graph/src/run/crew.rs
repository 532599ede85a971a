//! Several who work on one epoch.
//!
//! # Protocol
//!
//! Roles: the *coordinator* (the domain's future), *helpers* (futures on the same executor, each
//! from when it is called to when it finds nothing more) and *lane helpers* (futures on the threads
//! of `isolated_thread` lanes, as long as the run). They share a *board* behind one lock.
//!
//! 1. Between epochs the board has no core: helpers find nothing to do, and the coordinator alone
//!    has the regions.
//! 2. To begin an epoch the coordinator puts a share of the core and the jobs that wait for nobody
//!    on the board, and calls helpers.
//! 3. Who takes a job takes a share of the core with it, runs the region without the board's lock,
//!    gives the share back, and only then says that the job is done. Doing so readies the jobs that
//!    waited for it, and calls as many as there are jobs besides the one that it goes on with.
//! 4. When no job is left, the coordinator takes the board's share. By rule 3 it is the last one,
//!    so that it has the core alone again.
//! 5. Who finds nothing leaves its waker on the board, or its number if it is a helper that goes
//!    home, under the same lock: a job that is readied later finds it. So nobody sleeps on a job.
//! 6. An executor that is full or closing takes no helper. One that was called and does not come is
//!    at home again, and the coordinator is woken in its place: who called may be of a lane and not
//!    do the job itself.
//!
//! A helper that is called is spawned anew: what is woken runs next where it was woken, behind the
//! one who has called and goes on to work; what is spawned is for any worker to take. It looks for
//! some time before it goes home, so epochs that follow each other closely find it there. One that
//! has woken the coordinator goes home at once, because the coordinator is to run on its worker.
//!
//! A job waits for the regions whose immediate outputs it reads; on lanes that call one component
//! after the other, for the job before it in that lane; with an output boundary, for all jobs
//! before it. All of these come earlier in compiled order, so the first job that is not done can
//! always run: an epoch ends.
//!
//! A failure at a position means that nothing after it counts. Jobs after it that have not begun
//! are left out; those before it go on, so that the failure that is told is the first in compiled
//! order, whoever was faster. A panic is a failure which the coordinator goes on with when the
//! others have ended. A stop leaves out all jobs that have not begun.
//!
//! The protocol knows nothing of graphs: [`board`] is what is on the board, [`shared`] those who
//! meet there. So loom explores the very files (`tests/loom.rs`).

mod board;
mod prim;
mod shared;
mod waits;

use core::num::NonZero;
use std::{sync::Arc, thread::available_parallelism};

pub(crate) use board::{Outcome, Share};
use clockjack_exec::Handle;
use shared::{Spawn, help_lane};
pub(crate) use waits::Waits;
use waits::{JobSpec, LaneSpec};

use super::{batch::Batch, epoch::Core, options::Parallel, report::Fault};
use crate::{compile::Plan, describe::LaneType};

/// A call that takes less is not worth being handed to somebody else, in nanoseconds.
const CALL_WORTH_NS: u64 = 2_000;

/// How often who has nothing to do looks again before it sleeps or goes home: 5 to 25 microseconds,
/// about what a sleep and a wake would take.
const SPINS: u32 = 400;

/// The same, where there are more to work than processors: who is looked for may wait for this one.
const SPINS_CROWDED: u32 = 10;

/// What coordinator, helpers and regions of a domain share.
pub(crate) type Shared = shared::Shared<Arc<Core>, Handle>;

/// Those who work on the epochs of a domain.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    parallel: Parallel,
    /// An isolated lane runs nowhere else.
    is_required: bool,
    /// What a call has taken of late.
    call_ns: u64,
}

impl Share for Arc<Core> {
    type Fault = Fault;
    type Batch = Batch;

    fn is_due(&self, lane: usize) -> bool {
        self.is_due[lane]
    }

    fn is_stopping(&self) -> bool {
        self.env.is_stopping()
    }

    fn run(&self, position: usize, worker: u16) -> Result<u32, Fault> {
        self.run_one(position, worker)
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
        drop(Self::spawn(self, helper));
    }
}

impl Waits {
    /// `regions`: those of the domain, in compiled order, with their numbers in the plan.
    pub(crate) fn new(plan: &Plan, regions: &[usize], isolated: &[bool]) -> Self {
        let mut position = vec![usize::MAX; plan.regions.len()];
        for (at, region) in regions.iter().enumerate() {
            position[*region] = at;
        }
        let mut last_of_lane = vec![None; plan.lanes.len()];
        let jobs = regions.iter().enumerate().map(|(at, region)| {
            let planned = &plan.regions[*region];
            let mut before: Vec<usize> =
                planned.incoming.iter().map(|one| position[*one]).collect();
            let is_pool = plan.lanes[planned.lane].spec.lane_type == LaneType::ThreadPool;
            if !is_pool {
                before.extend(last_of_lane[planned.lane].replace(at));
            }
            let (lane, rank) = (planned.lane, planned.rank);
            JobSpec { before, is_gated: planned.is_output, lane, rank }
        });
        let lanes = plan.lanes.iter().zip(isolated).map(|(planned, is_isolated)| {
            let spec = &planned.spec;
            let n_at_once = match spec.lane_type {
                LaneType::ThreadPool => spec.max_threads.max(1) as usize,
                _ => 1,
            };
            LaneSpec { n_at_once, is_isolated: *is_isolated, aging: spec.aging_picks }
        });
        Self::of(jobs, lanes.collect())
    }

    /// Whether any two jobs can run at once.
    pub(crate) fn is_wide(&self) -> bool {
        // All wait for those before them, so they are a line exactly if each waits for the one
        // right before it.
        (1..self.n_before.len())
            .any(|at| !self.is_gated[at] && !self.after[at - 1].contains(&super::wiring::count(at)))
    }

    /// Whether any job is of this lane.
    pub(crate) fn has_lane(&self, lane: usize) -> bool {
        self.lane.contains(&lane)
    }

    /// Whether a job runs on a thread of its lane only.
    pub(crate) fn has_isolated(&self) -> bool {
        self.lane.iter().any(|lane| self.lanes[*lane].is_isolated)
    }
}

impl Crew {
    /// A crew of the coordinator and so many helpers, and one for each isolated lane. The latter
    /// are started here.
    pub(crate) fn start(
        waits: Waits,
        parallel: Parallel,
        executor: &Handle,
        n_helpers: usize,
        isolated: &[(usize, Handle)],
    ) -> Self {
        let is_required = waits.has_isolated();
        let n_processors = available_parallelism().map_or(1, NonZero::get);
        let n_spins = if n_helpers < n_processors { SPINS } else { SPINS_CROWDED };
        let shared = Arc::new(Shared::new(waits, executor.clone(), n_helpers, n_spins));
        for (number, (lane, thread)) in isolated.iter().enumerate() {
            let worker = u16::try_from(n_helpers + number + 1).unwrap_or(u16::MAX);
            drop(thread.spawn(help_lane(Arc::clone(&shared), *lane, worker)));
        }
        Self { shared, parallel, is_required, call_ns: 0 }
    }

    /// Where regions leave work for others.
    pub(crate) fn board(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Whether an epoch is better run by several.
    pub(crate) fn pays(&self) -> bool {
        self.is_required
            || match self.parallel {
                Parallel::Always => true,
                Parallel::Never => false,
                Parallel::Auto => self.call_ns >= CALL_WORTH_NS,
            }
    }

    /// What an epoch has taken on one thread.
    pub(crate) fn measured(&mut self, took_ns: u64, n_called: u64) {
        self.call_ns = took_ns.checked_div(n_called).unwrap_or(self.call_ns);
    }

    /// Runs an epoch. When it ends, the caller's share of the core is the only one.
    pub(crate) async fn run(&mut self, core: &mut Arc<Core>) -> Outcome<Fault> {
        self.shared.epoch(core).await
    }

    /// Sends the helpers home.
    pub(crate) fn close(&mut self) {
        self.shared.close();
    }

    /// How often a region went first because it had waited long, for each lane; those at the end
    /// may be missing.
    pub(crate) fn n_starvations(&self) -> Vec<u64> {
        self.shared.n_starvations()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
