//! Several who work on one epoch.
//!
//! # Protocol
//!
//! Roles: the *coordinator* (the domain's future) and *helpers* (futures on the same executor, or
//! on the thread of an `isolated_thread` lane). They share a *board* behind one lock.
//!
//! 1. Between epochs the board has no core: helpers find nothing to do, and the coordinator alone
//!    has the regions.
//! 2. To begin an epoch the coordinator puts a share of the core and the jobs that wait for nobody
//!    on the board, and wakes helpers.
//! 3. Who takes a job takes a share of the core with it, runs the region without the board's lock,
//!    gives the share back, and only then says that the job is done. Doing so readies the jobs that
//!    waited for it, and wakes as many as there are new jobs.
//! 4. When no job is left, the coordinator takes the board's share. By rule 3 it is the last one,
//!    so that it has the core alone again.
//! 5. Who finds nothing leaves its waker on the board, under the same lock: a job that is readied
//!    later finds the waker. So nobody sleeps on a job.
//!
//! A job waits for the regions whose immediate outputs it reads; on lanes that call one component
//! after the other, for the job before it in that lane; with an output boundary, for all jobs
//! before it. All of these come earlier in compiled order, so the first job that is not done can
//! always run: an epoch ends.
//!
//! A failure at a position means that nothing after it counts. Jobs after it that have not begun
//! are left out; those before it go on, so that the failure that is told is the first in compiled
//! order, whoever was faster. A stop leaves out all jobs that have not begun.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::future::poll_fn;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clockjack_exec::Handle;
use clockjack_sync::mutant;

use super::batch::Batch;
use super::epoch::{Core, Outcome};
use super::options::Parallel;
use super::report::Fault;
use crate::compile::Plan;
use crate::describe::LaneType;

/// A call that takes less is not worth being handed to somebody else, in nanoseconds.
const CALL_WORTH_NS: u64 = 2_000;

/// How often who has nothing to do looks again before it sleeps. Some microseconds: as long as a
/// sleep and a wake would take.
const SPINS: u32 = 2_000;

/// Those who work on the epochs of a domain.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    /// Jobs that wait for nobody, and how many each other waits for.
    waits: Arc<Waits>,
    parallel: Parallel,
    /// An isolated lane runs nowhere else.
    is_required: bool,
    /// What a call has taken of late.
    call_ns: u64,
}

/// Who waits for whom, in positions of the domain.
pub(crate) struct Waits {
    /// For each job, how many it waits for.
    n_before: Vec<u32>,
    /// For each job, who waits for it.
    after: Vec<Vec<u32>>,
    /// It waits for all before it.
    is_gated: Vec<bool>,
    /// Its lane.
    lane: Vec<usize>,
    rank: Vec<u8>,
    /// For each lane of the plan: how many jobs of it at once, and whether it has its own thread.
    lanes: Vec<(usize, bool)>,
    aging: Vec<u32>,
}

/// What coordinator, helpers and regions share.
pub(crate) struct Shared {
    board: Mutex<Board>,
    /// Changes with each change of the board, for those who look without its lock.
    version: AtomicU64,
}

#[derive(Default)]
struct Board {
    core: Option<Arc<Core>>,
    n_waiting_for: Vec<u32>,
    is_done: Vec<bool>,
    /// All before this position are done.
    n_done_first: usize,
    n_done: usize,
    /// Jobs that may run, for each lane: the highest rank first, then the first in compiled order.
    ready: Vec<BinaryHeap<(u8, Reverse<u32>)>>,
    n_active: Vec<usize>,
    /// Jobs that wait for nobody but all before them.
    gated: BinaryHeap<Reverse<u32>>,
    n_running: usize,
    /// Shares of the core that are out with a batch.
    n_sharing: usize,
    /// Invocations of reentrant components that anybody may do.
    batches: Vec<Arc<Batch>>,
    /// Nothing at or after this position counts.
    limit: usize,
    outcome: Outcome,
    coordinator: Option<Waker>,
    helpers: Vec<(u16, Who, Waker)>,
    /// Jobs that were taken.
    n_picks: u64,
    /// For each job, how many were taken before it could be.
    offered: Vec<u64>,
    /// How often a job went first because it had been passed over so often.
    n_starvations: u64,
    is_closed: bool,
}

/// Something to do, with a share of the core.
enum Job {
    Region(Arc<Core>, usize),
    Batch(Arc<Core>, Arc<Batch>),
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// All lanes but those with a thread of their own.
    Anyone,
    /// This lane.
    Lane(usize),
}

impl Waits {
    /// `regions`: those of the domain, in compiled order, with their numbers in the plan.
    pub(crate) fn new(plan: &Plan, regions: &[usize], isolated: &[bool]) -> Self {
        let n = regions.len();
        let mut position = alloc::vec![usize::MAX; plan.regions.len()];
        for (at, region) in regions.iter().enumerate() {
            position[*region] = at;
        }
        let mut waits = Self {
            n_before: alloc::vec![0; n],
            after: alloc::vec![Vec::new(); n],
            is_gated: alloc::vec![false; n],
            lane: Vec::with_capacity(n),
            rank: Vec::with_capacity(n),
            lanes: Vec::with_capacity(plan.lanes.len()),
            aging: Vec::with_capacity(plan.lanes.len()),
        };
        let mut last_of_lane = alloc::vec![None; plan.lanes.len()];
        for (at, region) in regions.iter().enumerate() {
            let planned = &plan.regions[*region];
            let mut before: Vec<usize> =
                planned.incoming.iter().map(|one| position[*one]).collect();
            let is_pool = plan.lanes[planned.lane].spec.lane_type == LaneType::ThreadPool;
            if !is_pool {
                before.extend(last_of_lane[planned.lane].replace(at));
            }
            before.sort_unstable();
            before.dedup();
            for one in before.into_iter().filter(|one| *one < at) {
                waits.n_before[at] += 1;
                waits.after[one].push(super::wiring::count(at));
            }
            waits.is_gated[at] = planned.is_output;
            waits.lane.push(planned.lane);
            waits.rank.push(planned.rank);
        }
        for (lane, planned) in plan.lanes.iter().enumerate() {
            let spec = &planned.spec;
            let n_at_once = match spec.lane_type {
                LaneType::ThreadPool => spec.max_threads.max(1) as usize,
                _ => 1,
            };
            waits.lanes.push((n_at_once, isolated[lane]));
            waits.aging.push(spec.aging_picks);
        }
        waits
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
        self.lane.iter().any(|lane| self.lanes[*lane].1)
    }
}

impl Crew {
    /// A crew of the coordinator and so many helpers, and one for each isolated lane. They are
    /// started here.
    pub(crate) fn start(
        waits: Waits,
        parallel: Parallel,
        executor: &Handle,
        n_helpers: usize,
        isolated: &[(usize, Handle)],
    ) -> Self {
        let board = Board {
            ready: waits.lanes.iter().map(|_| BinaryHeap::new()).collect(),
            n_active: alloc::vec![0; waits.lanes.len()],
            ..Board::default()
        };
        let shared = Arc::new(Shared { board: Mutex::new(board), version: AtomicU64::new(0) });
        let waits = Arc::new(waits);
        for number in 0..n_helpers {
            let worker = u16::try_from(number + 1).unwrap_or(u16::MAX);
            let helper = help(Arc::clone(&shared), Arc::clone(&waits), Who::Anyone, worker);
            drop(executor.spawn(helper));
        }
        for (number, (lane, thread)) in isolated.iter().enumerate() {
            let worker = u16::try_from(n_helpers + number + 1).unwrap_or(u16::MAX);
            let helper = help(Arc::clone(&shared), Arc::clone(&waits), Who::Lane(*lane), worker);
            drop(thread.spawn(helper));
        }
        let is_required = waits.has_isolated();
        Self { shared, waits, parallel, is_required, call_ns: 0 }
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

    /// Runs an epoch.
    pub(crate) async fn run(&mut self, core: &mut Arc<Core>) -> Outcome {
        self.begin(core);
        let (shared, waits) = (&self.shared, &self.waits);
        loop {
            let job = poll_fn(|cx| {
                let mut board = shared.lock();
                if let Some(job) = board.take(waits, Who::Anyone) {
                    return Poll::Ready(Some(job));
                }
                // After the look for a job: it may have ended jobs that do not count any more.
                if board.is_over(waits) {
                    return Poll::Ready(None);
                }
                board.coordinator = Some(cx.waker().clone());
                Poll::Pending
            });
            let Some(job) = job.await else { break };
            shared.work(waits, job, 0);
            shared.spin(|board| board.is_over(waits) || board.has_job(waits, Who::Anyone));
        }
        let mut board = shared.lock();
        board.core = None;
        core::mem::take(&mut board.outcome)
    }

    fn begin(&self, core: &Arc<Core>) {
        let waits = &*self.waits;
        let n_jobs = waits.n_before.len();
        let mut board = self.shared.lock();
        board.n_waiting_for.clone_from(&waits.n_before);
        board.is_done.clear();
        board.is_done.resize(n_jobs, false);
        board.offered.resize(n_jobs, 0);
        (board.n_done, board.n_done_first, board.limit) = (0, 0, usize::MAX);
        board.core = Some(Arc::clone(core));
        for position in 0..n_jobs {
            if waits.n_before[position] == 0 && !board.offer(waits, position) {
                board.finish(waits, position);
            }
        }
        let wakers = board.take_wakers(waits);
        drop(board);
        self.shared.changed();
        for waker in wakers {
            waker.wake();
        }
    }

    /// Sends the helpers home.
    pub(crate) fn close(&mut self) {
        let mut board = self.shared.lock();
        board.is_closed = true;
        let helpers = core::mem::take(&mut board.helpers);
        drop(board);
        self.shared.changed();
        for (.., waker) in helpers {
            waker.wake();
        }
    }

    /// How often a region went first because it had waited long.
    pub(crate) fn n_starvations(&self) -> u64 {
        self.shared.lock().n_starvations
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.close();
    }
}

/// A helper.
async fn help(shared: Arc<Shared>, waits: Arc<Waits>, who: Who, worker: u16) {
    loop {
        let job = poll_fn(|cx| {
            let mut board = shared.lock();
            if board.is_closed {
                return Poll::Ready(None);
            }
            if let Some(job) = board.take(&waits, who) {
                return Poll::Ready(Some(job));
            }
            if mutant!("crew-leaves-its-waker-late") {
                drop(board);
                shared.spin(|_| false);
                board = shared.lock();
            }
            board.leave_waker(worker, who, cx.waker());
            // It may have found nothing but jobs that do not count any more, the last ones among
            // them: nobody else tells the coordinator of those.
            let is_told = board.is_over(&waits) && !mutant!("crew-last-leaves-silently");
            let coordinator = if is_told { board.coordinator.take() } else { None };
            drop(board);
            if let Some(coordinator) = coordinator {
                coordinator.wake();
            }
            Poll::Pending
        });
        let Some(job) = job.await else { break };
        shared.work(&waits, job, worker);
        shared.spin(|board| board.is_closed || board.has_job(&waits, who));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        // Relaxed: a hint to look at the board, whose lock orders everything.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Does a job.
    fn work(&self, waits: &Waits, job: Job, worker: u16) {
        match job {
            Job::Region(share, position) => {
                let result = share.run_one(position, worker);
                let kept = mutant!("crew-keeps-its-share").then(|| Arc::clone(&share));
                drop(share);
                self.done(waits, position, result);
                if kept.is_some() {
                    self.spin(|_| false);
                }
            }
            Job::Batch(share, batch) => {
                while batch.help(&share.env, worker) {}
                drop(share);
                let mut board = self.lock();
                board.n_sharing -= 1;
                let coordinator =
                    if board.is_over(waits) { board.coordinator.take() } else { None };
                drop(board);
                self.changed();
                if let Some(coordinator) = coordinator {
                    coordinator.wake();
                }
            }
        }
    }

    /// Lets others work on a batch.
    pub(crate) fn offer(&self, batch: &Arc<Batch>) {
        let mut board = self.lock();
        board.batches.push(Arc::clone(batch));
        let helpers = core::mem::take(&mut board.helpers);
        drop(board);
        self.changed();
        for (.., waker) in helpers {
            waker.wake();
        }
    }

    /// A batch is done.
    pub(crate) fn withdraw(&self, batch: &Arc<Batch>) {
        self.lock().batches.retain(|one| !Arc::ptr_eq(one, batch));
    }

    /// A job is done.
    fn done(&self, waits: &Waits, position: usize, result: Result<u32, Fault>) {
        let mut board = self.lock();
        board.done(waits, position, result);
        let wakers = board.take_wakers(waits);
        let is_over = board.is_over(waits);
        let coordinator = if is_over || board.has_job(waits, Who::Anyone) {
            board.coordinator.take()
        } else {
            None
        };
        drop(board);
        self.changed();
        for waker in wakers.into_iter().chain(coordinator) {
            waker.wake();
        }
    }

    /// Looks for a while whether the board has something, before its user goes to sleep.
    fn spin(&self, has_something: impl Fn(&Board) -> bool) {
        let mut seen = u64::MAX;
        for _ in 0..SPINS {
            // Relaxed: as in `changed`.
            let version = self.version.load(Ordering::Relaxed);
            if version != seen {
                seen = version;
                if has_something(&self.lock()) {
                    return;
                }
            }
            spin_loop();
        }
    }
}

impl Board {
    /// A job that waits for nobody any more: it can be taken, or it waits for all before it. False
    /// if it is not run in this epoch.
    fn offer(&mut self, waits: &Waits, position: usize) -> bool {
        let (number, lane) = (super::wiring::count(position), waits.lane[position]);
        let is_due = self.core.as_ref().is_some_and(|core| core.is_due[lane]);
        if position >= self.limit || !is_due {
            return false;
        }
        let is_shut = waits.is_gated[position] && self.n_done_first < position;
        if is_shut && !mutant!("crew-ignores-the-gate") {
            self.gated.push(Reverse(number));
        } else {
            self.offered[position] = self.n_picks;
            self.ready[lane].push((waits.rank[position], Reverse(number)));
        }
        true
    }

    /// Leaves a waker, in the place of an older one of the same helper.
    fn leave_waker(&mut self, worker: u16, who: Who, waker: &Waker) {
        match self.helpers.iter_mut().find(|(of, ..)| *of == worker) {
            Some((_, _, old)) => old.clone_from(waker),
            None => self.helpers.push((worker, who, waker.clone())),
        }
    }

    /// The wakers of helpers for whom there is something to do: no more than there are jobs.
    fn take_wakers(&mut self, waits: &Waits) -> Vec<Waker> {
        let mut n_jobs: usize = self.ready.iter().map(BinaryHeap::len).sum();
        let mut wakers = Vec::new();
        let mut index = 0;
        while index < self.helpers.len() && n_jobs > 0 {
            if self.has_job(waits, self.helpers[index].1) {
                wakers.push(self.helpers.swap_remove(index).2);
                n_jobs -= 1;
            } else {
                index += 1;
            }
        }
        wakers
    }

    /// Whether every job is done, and every share but the board's is back.
    fn is_over(&self, waits: &Waits) -> bool {
        self.n_done == waits.n_before.len() && self.n_sharing == 0
    }

    /// Takes a job, with a share of the core.
    fn take(&mut self, waits: &Waits, who: Who) -> Option<Job> {
        if self.core.as_ref().is_some_and(|core| core.env.is_stopping())
            && !mutant!("crew-goes-on-when-stopped")
        {
            self.limit = 0;
        }
        if who == Who::Anyone
            && let Some(batch) = self.batches.iter().find(|batch| batch.has_job())
        {
            let core = self.core.as_ref().expect("batches come in an epoch");
            self.n_sharing += 1;
            return Some(Job::Batch(Arc::clone(core), Arc::clone(batch)));
        }
        loop {
            let lane = self.best_lane(waits, who)?;
            let position = self.pick(waits, lane);
            if position >= self.limit {
                self.finish(waits, position);
                continue;
            }
            self.n_picks += 1;
            self.n_active[lane] += 1;
            self.n_running += 1;
            self.outcome.overlap = self.outcome.overlap.max(self.n_running);
            let core = self.core.as_ref().expect("jobs come with a core");
            return Some(Job::Region(Arc::clone(core), position));
        }
    }

    /// Takes the next job of a lane that has one: that of the highest rank, unless another has been
    /// passed over so often that it goes first.
    fn pick(&mut self, waits: &Waits, lane: usize) -> usize {
        let (top, Reverse(first)) = *self.ready[lane].peek().expect("it was seen");
        let limit = u64::from(waits.aging[lane]);
        let has_waited = |number: u32| self.n_picks - self.offered[number as usize];
        let below = self.ready[lane].iter().filter(|(rank, _)| *rank < top);
        let starving = below
            .map(|(_, Reverse(number))| *number)
            .filter(|number| limit > 0 && has_waited(*number) >= limit)
            .max_by_key(|number| (has_waited(*number), Reverse(*number)));
        let Some(number) = starving.filter(|_| !mutant!("crew-lets-starve")) else {
            self.ready[lane].pop();
            return first as usize;
        };
        self.n_starvations += 1;
        self.ready[lane].retain(|(_, Reverse(one))| *one != number);
        number as usize
    }

    fn has_job(&self, waits: &Waits, who: Who) -> bool {
        (who == Who::Anyone && self.batches.iter().any(|batch| batch.has_job()))
            || self.best_lane(waits, who).is_some()
    }

    /// The lane whose next job goes first.
    fn best_lane(&self, waits: &Waits, who: Who) -> Option<usize> {
        let mut best: Option<(u8, Reverse<u32>, usize)> = None;
        for (lane, ready) in self.ready.iter().enumerate() {
            let (n_at_once, is_isolated) = waits.lanes[lane];
            let is_mine = match who {
                Who::Anyone => !is_isolated,
                Who::Lane(mine) => mine == lane,
            };
            if !is_mine || self.n_active[lane] >= n_at_once {
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

    fn done(&mut self, waits: &Waits, position: usize, result: Result<u32, Fault>) {
        self.n_active[waits.lane[position]] -= 1;
        self.n_running -= 1;
        // Whoever has faults to tell of is looked for at the end of the epoch.
        self.outcome.n_faults += 1;
        match result {
            Ok(n_called) => self.outcome.n_called += u64::from(n_called),
            Err(fault) => {
                let is_first = self.outcome.fault.as_ref().is_none_or(|(at, _)| position < *at);
                if is_first {
                    self.outcome.fault = Some((position, fault));
                }
                if is_first && !mutant!("crew-ignores-the-limit") {
                    self.limit = self.limit.min(position + 1);
                }
            }
        }
        self.finish(waits, position);
    }

    /// A job is over, one way or another: those who waited for it may be ready.
    fn finish(&mut self, waits: &Waits, position: usize) {
        // A list of its own instead of calls within calls: a chain may be long.
        let mut finished = alloc::vec![position];
        while let Some(position) = finished.pop() {
            self.is_done[position] = true;
            self.n_done += 1;
            while self.is_done.get(self.n_done_first) == Some(&true) {
                self.n_done_first += 1;
            }
            for after in &waits.after[position] {
                let after = *after as usize;
                self.n_waiting_for[after] -= 1;
                if self.n_waiting_for[after] == 0 && !self.offer(waits, after) {
                    finished.push(after);
                }
            }
            while let Some(Reverse(first)) = self.gated.peek() {
                let first = *first as usize;
                if self.n_done_first < first && first < self.limit {
                    break;
                }
                self.gated.pop();
                if !self.offer(waits, first) {
                    finished.push(first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
