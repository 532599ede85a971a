//! The ready queue of a parallel epoch: which jobs can run, and which workers wait for one.
//!
//! All of it is behind one lock, which [`HelpersShared`](super::shared::HelpersShared) owns. No
//! method here blocks or runs a job. The rules are those of the [module above](super).

use core::{any::Any, cmp::Reverse, task::Waker};
use std::{collections::BinaryHeap, sync::Arc};

use super::dependencies::{Dependencies, to_u32};

/// A reference-counted handle to the state that the jobs of an epoch work on.
pub(crate) trait EpochHandle: Clone + Send + 'static {
    /// Why an epoch ends before its last job.
    type Fault: Send + 'static;
    /// Work within a job that any worker may take part in.
    type Batch: Send + Sync + 'static;

    /// Whether the jobs of a lane run in this epoch.
    fn is_due(&self, lane: usize) -> bool;
    /// Whether no more jobs may begin.
    fn is_stopping(&self) -> bool;
    /// Runs a job; returns how many components were called.
    fn run(&self, position: usize, worker: u16) -> Result<u32, Self::Fault>;
    /// Whether a batch has work for one more worker.
    fn has_job(batch: &Self::Batch) -> bool;
    /// Works on a batch until there is nothing left to do.
    fn help(&self, batch: &Self::Batch, worker: u16);
}

/// The result of an epoch.
#[derive(Debug)]
pub(crate) struct EpochOutcome<F> {
    pub(crate) n_called: u64,
    /// The first failure in compiled order that ends the run, and its position.
    pub(crate) fault: Option<(usize, F)>,
    /// The most regions that ran at the same time.
    pub(crate) overlap: usize,
    /// Whether regions may have faults to report that do not end the run.
    pub(crate) may_have_faults: bool,
}

impl<F> Default for EpochOutcome<F> {
    fn default() -> Self {
        Self { n_called: 0, fault: None, overlap: 0, may_have_faults: false }
    }
}

/// The payload of a panic.
pub(super) type PanicPayload = Box<dyn Any + Send>;

/// The result of a job.
pub(super) enum JobResult<F> {
    /// The number of components that were called.
    Done(u32),
    Failed(F),
    Panicked(PanicPayload),
}

/// Work for one worker, with a handle to the state.
pub(super) enum Job<H: EpochHandle> {
    Region(H, usize),
    Batch(H, Arc<H::Batch>),
}

/// How many workers to wake after the lock was released. They stay registered until
/// [`ReadyQueue::next_wake`] takes them one by one, so that no list of them is allocated.
#[derive(Clone, Copy)]
#[must_use = "nobody else wakes these workers"]
pub(super) struct PendingWakes {
    /// Whether a lane helper that waits may have a job.
    pub(super) has_lanes: bool,
    pub(super) n_helpers: usize,
}

/// A worker to wake.
pub(super) enum Wake {
    /// A lane helper that waits.
    Lane(Waker),
    /// A helper that waits.
    Helper(Waker),
    /// The number of a helper that does not exist yet, or that the executor has dropped.
    Start(u16),
}

/// A helper that runs no job.
pub(super) struct IdleHelper {
    pub(super) worker: u16,
    /// `None` if there is no such future yet.
    pub(super) waker: Option<Waker>,
}

/// Which jobs a worker may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobFilter {
    /// Those of all lanes that have no thread of their own.
    SharedLanes,
    /// Those of this lane.
    Lane(usize),
}

/// The ready queue.
pub(super) struct ReadyQueue<H: EpochHandle> {
    /// The handle of the current epoch; `None` between epochs (rule 1).
    pub(super) epoch: Option<H>,
    /// For each job, how many of its dependencies are not done.
    n_waiting_for: Vec<u32>,
    is_done: Vec<bool>,
    /// All jobs before this position are done.
    n_done_prefix: usize,
    n_done: usize,
    /// For each lane, the jobs that may run: the highest rank first, then compiled order.
    pub(super) ready: Vec<BinaryHeap<(u8, Reverse<u32>)>>,
    /// For each lane, how many of its jobs run now.
    n_active: Vec<usize>,
    /// Jobs whose dependencies are done, and that still wait for all jobs before them.
    waiting_for_all: BinaryHeap<Reverse<u32>>,
    /// The work list of `mark_done`, empty between its calls.
    finished: Vec<usize>,
    n_running: usize,
    /// Workers that have a handle because they help with a batch.
    pub(super) n_batch_helpers: usize,
    /// Batches of reentrant components that any worker may help with.
    pub(super) batches: Vec<Arc<H::Batch>>,
    /// Jobs at or after this position are skipped.
    cutoff: usize,
    outcome: EpochOutcome<H::Fault>,
    /// The first panic in compiled order, and its position.
    panic: Option<(usize, PanicPayload)>,
    /// The waker of the coordinator, while it waits.
    pub(super) coordinator: Option<Waker>,
    /// Lane helpers that wait.
    lane_helpers: Vec<(u16, JobFilter, Waker)>,
    /// Helpers that run no job. The last one is woken first.
    pub(super) idle: Vec<IdleHelper>,
    /// Whether an epoch has begun.
    has_begun: bool,
    /// How many jobs were taken.
    pub(super) n_picks: u64,
    /// For each job, the value of `n_picks` when it became ready.
    pub(super) ready_since: Vec<u64>,
    /// For each lane, how often a job ran early because it had been passed over so often.
    pub(super) n_starvations: Vec<u64>,
    pub(super) is_closed: bool,
}

impl<H: EpochHandle> ReadyQueue<H> {
    /// An empty queue with `n_helpers` idle helpers. It allocates all that it will ever need: how
    /// full its lists become depends on threads, so no number of epochs is enough to warm it up.
    pub(super) fn new(dependencies: &Dependencies, n_helpers: usize) -> Self {
        let (n_jobs, n_lanes) = (dependencies.n_jobs(), dependencies.lanes.len());
        let n_jobs_of = |lane| dependencies.lane.iter().filter(|one| **one == lane).count();
        let idle = (1..=n_helpers).map(|one| u16::try_from(one).unwrap_or(u16::MAX));
        Self {
            epoch: None,
            n_waiting_for: Vec::with_capacity(n_jobs),
            is_done: Vec::with_capacity(n_jobs),
            n_done_prefix: 0,
            n_done: 0,
            ready: (0..n_lanes).map(|lane| BinaryHeap::with_capacity(n_jobs_of(lane))).collect(),
            n_active: vec![0; n_lanes],
            waiting_for_all: BinaryHeap::with_capacity(n_jobs),
            finished: Vec::with_capacity(n_jobs),
            n_running: 0,
            n_batch_helpers: 0,
            // A region offers one batch at a time.
            batches: Vec::with_capacity(n_jobs),
            cutoff: usize::MAX,
            outcome: EpochOutcome::default(),
            panic: None,
            coordinator: None,
            // A helper per isolated lane.
            lane_helpers: Vec::with_capacity(n_lanes),
            idle: idle.map(|worker| IdleHelper { worker, waker: None }).collect(),
            has_begun: false,
            n_picks: 0,
            ready_since: vec![0; n_jobs],
            n_starvations: vec![0; n_lanes],
            is_closed: false,
        }
    }

    /// Begins an epoch (rule 2); returns the workers to wake.
    pub(super) fn begin_epoch(&mut self, dependencies: &Dependencies, handle: H) -> PendingWakes {
        self.n_waiting_for.clone_from(&dependencies.n_dependencies);
        self.is_done.clear();
        self.is_done.resize(dependencies.n_jobs(), false);
        (self.n_done, self.n_done_prefix, self.cutoff) = (0, 0, usize::MAX);
        self.epoch = Some(handle);
        for position in 0..dependencies.n_jobs() {
            let is_ready = dependencies.n_dependencies[position] == 0;
            if is_ready && !self.make_ready(dependencies, position) {
                self.mark_done(dependencies, position);
            }
        }
        let wakes = self.count_wakes(dependencies, 1);
        // The first epoch starts all helpers, whether it needs them or not: a start allocates, and
        // which later epoch needs one more depends on threads.
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        if is_first { PendingWakes { n_helpers: self.idle.len(), ..wakes } } else { wakes }
    }

    /// Ends an epoch that is over (rule 4): the handle, the result, and the panic to resume.
    pub(super) fn end_epoch(
        &mut self,
    ) -> (Option<H>, EpochOutcome<H::Fault>, Option<PanicPayload>) {
        let handle = self.epoch.take();
        let outcome = core::mem::take(&mut self.outcome);
        let panic = self.panic.take();
        let failed_at = outcome.fault.as_ref().map_or(usize::MAX, |(at, _)| *at);
        // A panic after the first failure does not count.
        let panic = panic.filter(|(at, _)| *at < failed_at).map(|(_, panic)| panic);
        (handle, outcome, panic)
    }

    /// The dependencies of a job are done: puts it into the queue, or lets it wait for all jobs
    /// before it. Returns false if the job does not run in this epoch.
    fn make_ready(&mut self, dependencies: &Dependencies, position: usize) -> bool {
        let (number, lane) = (to_u32(position), dependencies.lane[position]);
        let is_due = self.epoch.as_ref().is_some_and(|epoch| epoch.is_due(lane));
        if position >= self.cutoff || !is_due {
            return false;
        }
        let must_wait = dependencies.waits_for_all[position] && self.n_done_prefix < position;
        if must_wait {
            self.waiting_for_all.push(Reverse(number));
        } else {
            self.ready_since[position] = self.n_picks;
            self.ready[lane].push((dependencies.rank[position], Reverse(number)));
        }
        true
    }

    /// Registers the waker of a lane helper, and replaces an older one.
    pub(super) fn register_lane_helper(&mut self, worker: u16, filter: JobFilter, waker: &Waker) {
        match self.lane_helpers.iter_mut().find(|(of, ..)| *of == worker) {
            Some((_, _, old)) => old.clone_from(waker),
            None => self.lane_helpers.push((worker, filter, waker.clone())),
        }
    }

    /// Registers a helper that has found no job, and replaces its older entry. Returns the waker of
    /// that entry, for the caller to drop outside the lock.
    #[must_use = "a waker is not dropped under the lock"]
    pub(super) fn register_idle(&mut self, worker: u16, waker: Option<Waker>) -> Option<Waker> {
        let at = self.idle.iter().position(|one| one.worker == worker);
        let old = at.and_then(|at| self.idle.remove(at).waker);
        self.idle.push(IdleHelper { worker, waker });
        old
    }

    /// Closes the queue; returns the wakers of all helpers that wait.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.is_closed = true;
        let lane_helpers = core::mem::take(&mut self.lane_helpers);
        let lane_helpers = lane_helpers.into_iter().map(|(.., waker)| waker);
        lane_helpers.chain(self.idle.iter_mut().filter_map(|one| one.waker.take())).collect()
    }

    /// How many ready jobs belong to lanes that have no thread of their own.
    pub(super) fn n_ready(&self, dependencies: &Dependencies) -> usize {
        let lanes = self.ready.iter().zip(&dependencies.lanes);
        lanes.filter(|(_, lane)| !lane.is_isolated).map(|(ready, _)| ready.len()).sum()
    }

    /// The workers to wake for the ready jobs, if the caller itself continues with `n_own` of them.
    pub(super) fn count_wakes(&self, dependencies: &Dependencies, n_own: usize) -> PendingWakes {
        let has_lanes = self.lane_helpers.iter().any(|one| self.has_job(dependencies, one.1));
        let n_more = self.n_ready(dependencies).saturating_sub(n_own);
        PendingWakes { has_lanes, n_helpers: n_more.min(self.idle.len()) }
    }

    /// The next worker to wake; `None` if none is left. Another worker may have taken some of them
    /// since: that one has woken them, and they take jobs until there is none.
    pub(super) fn next_wake(
        &mut self,
        dependencies: &Dependencies,
        wakes: &mut PendingWakes,
    ) -> Option<Wake> {
        if wakes.has_lanes {
            let mut lane_helpers = self.lane_helpers.iter();
            if let Some(at) = lane_helpers.position(|one| self.has_job(dependencies, one.1)) {
                return Some(Wake::Lane(self.lane_helpers.swap_remove(at).2));
            }
            wakes.has_lanes = false;
        }
        wakes.n_helpers = wakes.n_helpers.checked_sub(1)?;
        let IdleHelper { worker, waker } = self.idle.pop()?;
        Some(waker.map_or(Wake::Start(worker), Wake::Helper))
    }

    /// The waker of the coordinator, if the epoch is over and the coordinator may not know. A
    /// worker calls this before it waits: its search for a job may have marked the last
    /// jobs as done because they are after the cutoff, and no other worker reports those.
    pub(super) fn coordinator_if_over(&mut self, dependencies: &Dependencies) -> Option<Waker> {
        let must_wake = self.is_over(dependencies);
        if must_wake { self.coordinator.take() } else { None }
    }

    /// Whether all jobs are done, and no worker has a handle any more.
    pub(super) fn is_over(&self, dependencies: &Dependencies) -> bool {
        self.n_done == dependencies.n_jobs() && self.n_batch_helpers == 0
    }

    /// Takes a job, with a handle to the state (rule 3).
    pub(super) fn take(
        &mut self,
        dependencies: &Dependencies,
        filter: JobFilter,
    ) -> Option<Job<H>> {
        if self.epoch.as_ref().is_some_and(EpochHandle::is_stopping) {
            self.cutoff = 0;
        }
        if filter == JobFilter::SharedLanes
            && let Some(batch) = self.batches.iter().find(|batch| H::has_job(batch))
        {
            let epoch = self.epoch.as_ref().expect("batches exist only during an epoch");
            self.n_batch_helpers += 1;
            return Some(Job::Batch(epoch.clone(), Arc::clone(batch)));
        }
        loop {
            let lane = self.best_lane(dependencies, filter)?;
            let position = self.pick(dependencies, lane);
            if position >= self.cutoff {
                self.mark_done(dependencies, position);
                continue;
            }
            self.n_picks += 1;
            self.n_active[lane] += 1;
            self.n_running += 1;
            self.outcome.overlap = self.outcome.overlap.max(self.n_running);
            let epoch = self.epoch.as_ref().expect("jobs are ready only during an epoch");
            return Some(Job::Region(epoch.clone(), position));
        }
    }

    /// Removes the next job of a lane that has one: the one with the highest rank, unless a job of
    /// a lower rank was passed over so often that it runs first (aging against starvation).
    pub(super) fn pick(&mut self, dependencies: &Dependencies, lane: usize) -> usize {
        let (top, Reverse(first)) = *self.ready[lane].peek().expect("the lane has a ready job");
        let limit = u64::from(dependencies.lanes[lane].aging);
        let has_waited = |number: u32| self.n_picks - self.ready_since[number as usize];
        let below = self.ready[lane].iter().filter(|(rank, _)| *rank < top);
        let starving = below
            .map(|(_, Reverse(number))| *number)
            .filter(|number| limit > 0 && has_waited(*number) >= limit)
            .max_by_key(|number| (has_waited(*number), Reverse(*number)));
        let Some(number) = starving else {
            self.ready[lane].pop();
            return first as usize;
        };
        self.n_starvations[lane] += 1;
        self.ready[lane].retain(|(_, Reverse(one))| *one != number);
        number as usize
    }

    pub(super) fn has_job(&self, dependencies: &Dependencies, filter: JobFilter) -> bool {
        let helps = filter == JobFilter::SharedLanes;
        (helps && self.batches.iter().any(|batch| H::has_job(batch)))
            || self.best_lane(dependencies, filter).is_some()
    }

    /// The lane whose next job goes first.
    fn best_lane(&self, dependencies: &Dependencies, filter: JobFilter) -> Option<usize> {
        let mut best: Option<(u8, Reverse<u32>, usize)> = None;
        for (lane, ready) in self.ready.iter().enumerate() {
            let spec = dependencies.lanes[lane];
            let is_allowed = match filter {
                JobFilter::SharedLanes => !spec.is_isolated,
                JobFilter::Lane(own) => own == lane,
            };
            if !is_allowed || self.n_active[lane] >= spec.n_at_once {
                continue;
            }
            let Some((rank, number)) = ready.peek() else { continue };
            let candidate = (*rank, *number, lane);
            if best.is_none_or(|(rank, number, _)| (candidate.0, candidate.1) > (rank, number)) {
                best = Some(candidate);
            }
        }
        best.map(|(.., lane)| lane)
    }

    /// Reports the result of a job that was taken. Returns a panic that does not count, for the
    /// caller to drop outside the lock.
    pub(super) fn complete(
        &mut self,
        dependencies: &Dependencies,
        position: usize,
        result: JobResult<H::Fault>,
    ) -> Option<PanicPayload> {
        self.n_active[dependencies.lane[position]] -= 1;
        self.n_running -= 1;
        // The coordinator looks for faults in all regions at the end of the epoch.
        self.outcome.may_have_faults = true;
        let mut unused = None;
        match result {
            JobResult::Done(n_called) => self.outcome.n_called += u64::from(n_called),
            JobResult::Failed(fault) => {
                let first = self.outcome.fault.as_ref().map_or(usize::MAX, |(at, _)| *at);
                if position < first {
                    self.outcome.fault = Some((position, fault));
                }
                self.skip_after(position);
            }
            JobResult::Panicked(panic) => {
                unused = match self.panic.take() {
                    Some((at, first)) if at < position => {
                        self.panic = Some((at, first));
                        Some(panic)
                    }
                    other => {
                        self.panic = Some((position, panic));
                        other.map(|(_, panic)| panic)
                    }
                };
                self.skip_after(position);
            }
        }
        self.mark_done(dependencies, position);
        unused
    }

    /// Skips the jobs after a position that have not begun.
    fn skip_after(&mut self, position: usize) {
        self.cutoff = self.cutoff.min(position + 1);
    }

    /// A job has run or is skipped: jobs that depend on it may become ready.
    fn mark_done(&mut self, dependencies: &Dependencies, position: usize) {
        // A work list instead of recursion: a chain of skipped jobs may be long.
        let mut finished = core::mem::take(&mut self.finished);
        finished.push(position);
        while let Some(position) = finished.pop() {
            self.is_done[position] = true;
            self.n_done += 1;
            while self.is_done.get(self.n_done_prefix) == Some(&true) {
                self.n_done_prefix += 1;
            }
            for dependent in &dependencies.dependents[position] {
                let dependent = *dependent as usize;
                self.n_waiting_for[dependent] -= 1;
                let is_ready = self.n_waiting_for[dependent] == 0;
                if is_ready && !self.make_ready(dependencies, dependent) {
                    finished.push(dependent);
                }
            }
            while let Some(Reverse(first)) = self.waiting_for_all.peek() {
                let first = *first as usize;
                if self.n_done_prefix < first && first < self.cutoff {
                    break;
                }
                self.waiting_for_all.pop();
                if !self.make_ready(dependencies, first) {
                    finished.push(first);
                }
            }
        }
        self.finished = finished;
    }
}
