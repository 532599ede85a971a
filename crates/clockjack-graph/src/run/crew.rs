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
//! order, whoever was faster. A stop leaves out all jobs that have not begun.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::future::poll_fn;
use core::hint::spin_loop;
use core::num::NonZero;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

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

/// How often who has nothing to do looks again before it sleeps or goes home: 5 to 25 microseconds,
/// about what a sleep and a wake would take.
const SPINS: u32 = 400;

/// The same, where there are more to work than processors: who is looked for may wait for this one.
const SPINS_CROWDED: u32 = 10;

/// Jobs after which a helper lets others have its worker.
const JOBS_BEFORE_YIELD: u32 = 64;

/// Those who work on the epochs of a domain.
pub(crate) struct Crew {
    shared: Arc<Shared>,
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
    executor: Handle,
    waits: Waits,
    n_spins: u32,
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
    /// Lane helpers that have nothing to do.
    helpers: Vec<(u16, Who, Waker)>,
    /// Helpers that can be called.
    home: Vec<u16>,
    /// Jobs that were taken.
    n_picks: u64,
    /// For each job, how many were taken before it could be.
    offered: Vec<u64>,
    /// For each lane, how often a job went first because it had been passed over so often.
    n_starvations: Vec<u64>,
    is_closed: bool,
}

/// Something to do, with a share of the core.
enum Job {
    Region(Arc<Core>, usize),
    Batch(Arc<Core>, Arc<Batch>),
}

/// Who is to come.
struct Calls {
    wakers: Vec<Waker>,
    helpers: Vec<u16>,
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
    /// A crew of the coordinator and so many helpers, and one for each isolated lane. The latter
    /// are started here.
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
            home: (1..=n_helpers).map(|one| u16::try_from(one).unwrap_or(u16::MAX)).collect(),
            ..Board::default()
        };
        let is_required = waits.has_isolated();
        let n_processors = available_parallelism().map_or(1, NonZero::get);
        let shared = Arc::new(Shared {
            board: Mutex::new(board),
            version: AtomicU64::new(0),
            executor: executor.clone(),
            waits,
            n_spins: if n_helpers < n_processors { SPINS } else { SPINS_CROWDED },
        });
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

    /// Runs an epoch.
    pub(crate) async fn run(&mut self, core: &mut Arc<Core>) -> Outcome {
        self.begin(core);
        let shared = &self.shared;
        let waits = &shared.waits;
        loop {
            let job = poll_fn(|cx| {
                let mut board = shared.lock();
                if let Some(job) = board.take(waits, Who::Anyone) {
                    // Who has woken the coordinator for several has gone home.
                    let calls = board.take_calls(waits, 0);
                    drop(board);
                    shared.call(calls);
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
            shared.work(job, 0, Who::Anyone);
            shared.spin(|board| board.is_over(waits) || board.has_job(waits, Who::Anyone));
        }
        let mut board = shared.lock();
        board.core = None;
        core::mem::take(&mut board.outcome)
    }

    fn begin(&self, core: &Arc<Core>) {
        let waits = &self.shared.waits;
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
        let calls = board.take_calls(waits, 1);
        drop(board);
        self.shared.changed();
        self.shared.call(calls);
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

    /// How often a region went first because it had waited long, for each lane; those at the end
    /// may be missing.
    pub(crate) fn n_starvations(&self) -> Vec<u64> {
        self.shared.lock().n_starvations.clone()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.close();
    }
}

/// A helper on its way (rule 6).
struct Called {
    /// None once it has come.
    shared: Option<Arc<Shared>>,
    worker: u16,
}

impl Drop for Called {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take().filter(|_| !mutant!("crew-called-is-lost")) else {
            return;
        };
        let mut board = shared.lock();
        board.home.push(self.worker);
        let coordinator = board.coordinator.take();
        drop(board);
        if let Some(coordinator) = coordinator {
            coordinator.wake();
        }
    }
}

/// A helper: works as long as it finds something.
async fn help(mut called: Called) {
    let Some(shared) = called.shared.take() else { return };
    while help_for_a_while(&shared, called.worker) {
        super::domain::yield_now().await;
    }
}

/// Works until there is nothing more, or others should have their turn; true if it is to go on.
fn help_for_a_while(shared: &Arc<Shared>, worker: u16) -> bool {
    let waits = &shared.waits;
    for _ in 0..JOBS_BEFORE_YIELD {
        // Also before its first job: who comes late for an epoch is there for the next.
        shared.spin(|board| board.is_closed || board.has_job(waits, Who::Anyone));
        let mut board = shared.lock();
        let job = if board.is_closed { None } else { board.take(waits, Who::Anyone) };
        let Some(job) = job else {
            if mutant!("crew-leaves-its-waker-late") {
                drop(board);
                stall();
                board = shared.lock();
            }
            board.home.push(worker);
            let coordinator = board.told_of_end(waits);
            drop(board);
            if let Some(coordinator) = coordinator {
                coordinator.wake();
            }
            return false;
        };
        drop(board);
        if shared.work(job, worker, Who::Anyone) {
            shared.lock().home.push(worker);
            return false;
        }
    }
    true
}

/// Gives others the time to meet a planted fault, about a millisecond.
fn stall() {
    (0..20_000).for_each(|_| spin_loop());
}

/// The helper of a lane with a thread of its own.
async fn help_lane(shared: Arc<Shared>, lane: usize, worker: u16) {
    let (waits, who) = (&shared.waits, Who::Lane(lane));
    loop {
        let job = poll_fn(|cx| {
            let mut board = shared.lock();
            if board.is_closed {
                return Poll::Ready(None);
            }
            if let Some(job) = board.take(waits, who) {
                return Poll::Ready(Some(job));
            }
            if mutant!("crew-leaves-its-waker-late") {
                drop(board);
                stall();
                board = shared.lock();
            }
            board.leave_waker(worker, who, cx.waker());
            let coordinator = board.told_of_end(waits);
            drop(board);
            if let Some(coordinator) = coordinator {
                coordinator.wake();
            }
            Poll::Pending
        });
        let Some(job) = job.await else { break };
        shared.work(job, worker, who);
        shared.spin(|board| board.is_closed || board.has_job(waits, who));
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

    /// Does a job; whether the coordinator was woken by it.
    fn work(self: &Arc<Self>, job: Job, worker: u16, who: Who) -> bool {
        match job {
            Job::Region(share, position) => {
                let result = share.run_one(position, worker);
                let kept = mutant!("crew-keeps-its-share").then(|| Arc::clone(&share));
                drop(share);
                let has_woken = self.done(position, result, who);
                if kept.is_some() {
                    stall();
                }
                has_woken
            }
            Job::Batch(share, batch) => {
                while batch.help(&share.env, worker) {}
                drop(share);
                let mut board = self.lock();
                board.n_sharing -= 1;
                let coordinator =
                    if board.is_over(&self.waits) { board.coordinator.take() } else { None };
                drop(board);
                self.changed();
                let has_woken = coordinator.is_some();
                if let Some(coordinator) = coordinator {
                    coordinator.wake();
                }
                has_woken
            }
        }
    }

    /// Wakes lane helpers and has helpers come.
    fn call(self: &Arc<Self>, calls: Calls) {
        for waker in calls.wakers {
            waker.wake();
        }
        for worker in calls.helpers {
            let called = Called { shared: Some(Arc::clone(self)), worker };
            drop(self.executor.spawn(help(called)));
        }
    }

    /// Lets others work on a batch.
    pub(crate) fn offer(self: &Arc<Self>, batch: &Arc<Batch>) {
        let mut board = self.lock();
        board.batches.push(Arc::clone(batch));
        let helpers = core::mem::take(&mut board.home);
        drop(board);
        self.changed();
        self.call(Calls { wakers: Vec::new(), helpers });
    }

    /// A batch is done.
    pub(crate) fn withdraw(&self, batch: &Arc<Batch>) {
        self.lock().batches.retain(|one| !Arc::ptr_eq(one, batch));
    }

    /// A job is done; whether the coordinator was woken by it.
    fn done(self: &Arc<Self>, position: usize, result: Result<u32, Fault>, who: Who) -> bool {
        let waits = &self.waits;
        let mut board = self.lock();
        board.done(waits, position, result);
        // One of the jobs is for who asks.
        let n_own = usize::from(who == Who::Anyone);
        let n_more = board.n_ready(waits).saturating_sub(n_own);
        let calls = board.take_calls(waits, n_own);
        let is_needed = board.is_over(waits) || n_more > calls.helpers.len();
        let coordinator = if is_needed { board.coordinator.take() } else { None };
        drop(board);
        self.changed();
        self.call(calls);
        let has_woken = coordinator.is_some();
        if let Some(coordinator) = coordinator {
            coordinator.wake();
        }
        has_woken
    }

    /// Looks for a while whether the board has something, before its user goes to sleep.
    fn spin(&self, has_something: impl Fn(&Board) -> bool) {
        let mut seen = u64::MAX;
        for _ in 0..self.n_spins {
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

    /// Jobs that are for anyone to take.
    fn n_ready(&self, waits: &Waits) -> usize {
        let lanes = self.ready.iter().zip(&waits.lanes);
        lanes.filter(|(_, (_, is_isolated))| !is_isolated).map(|(ready, _)| ready.len()).sum()
    }

    /// Those for whom there is something to do, if who asks goes on with so many of the jobs.
    fn take_calls(&mut self, waits: &Waits, n_own: usize) -> Calls {
        let mut wakers = Vec::new();
        let mut index = 0;
        while index < self.helpers.len() {
            if self.has_job(waits, self.helpers[index].1) {
                wakers.push(self.helpers.swap_remove(index).2);
            } else {
                index += 1;
            }
        }
        let n_called = self.n_ready(waits).saturating_sub(n_own).min(self.home.len());
        let helpers = self.home.split_off(self.home.len() - n_called);
        Calls { wakers, helpers }
    }

    /// The coordinator, if an epoch is over that it may not know of: who goes may have found
    /// nothing but jobs that do not count any more, the last ones among them, and nobody else tells
    /// of those.
    fn told_of_end(&mut self, waits: &Waits) -> Option<Waker> {
        let is_told = self.is_over(waits) && !mutant!("crew-last-leaves-silently");
        if is_told { self.coordinator.take() } else { None }
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
        if self.n_starvations.len() <= lane {
            self.n_starvations.resize(lane + 1, 0);
        }
        self.n_starvations[lane] += 1;
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
