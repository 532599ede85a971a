//! Those who meet at the board: the coordinator, helpers, and helpers of lanes. The protocol is in
//! the prose of the [module above](super); models run this file as it is, on another lock.

use core::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    task::{Poll, Waker},
};
use std::{
    panic::{catch_unwind, resume_unwind},
    sync::{Arc, PoisonError},
};

use clockjack_sync::{
    mutant,
    prim::{
        atomic::{AtomicU64, Ordering},
        hint::spin_loop,
        scaled,
    },
};

use super::{
    board::{Board, Calls, End, Job, Outcome, Panic, Share, Who},
    prim::{Mutex, MutexGuard},
    waits::Waits,
};

/// Jobs after which a helper lets others have its worker.
const JOBS_BEFORE_YIELD: u32 = 64;

/// Looks that give others the time to meet a planted fault, about a millisecond; a model needs
/// none.
const STALL: usize = scaled(0, 0, 20_000);

/// Where helpers run.
pub(crate) trait Spawn: Send + Sync + 'static {
    /// Runs a helper beside its caller. One that cannot be run is dropped.
    fn spawn(&self, helper: impl Future<Output = ()> + Send + 'static);
}

/// What coordinator, helpers and regions share.
pub(crate) struct Shared<S: Share, X> {
    board: Mutex<Board<S>>,
    /// Changes with each change of the board, for those who look without its lock.
    version: AtomicU64,
    executor: X,
    pub(super) waits: Waits,
    n_spins: u32,
}

impl<S: Share, X: Spawn> Shared<S, X> {
    /// A board with nothing on it, and so many helpers at home. Who has nothing to do looks
    /// `n_spins` times before it sleeps or goes home.
    pub(crate) fn new(waits: Waits, executor: X, n_helpers: usize, n_spins: u32) -> Self {
        let board = Mutex::new(Board::new(&waits, n_helpers));
        Self { board, version: AtomicU64::new(0), executor, waits, n_spins }
    }

    /// Runs an epoch, as its coordinator. When it ends, the caller's share is the only one.
    ///
    /// # Panics
    ///
    /// If a job did, and all before it have succeeded: as if there were nobody else.
    pub(crate) async fn epoch(self: &Arc<Self>, share: &S) -> Outcome<S::Fault> {
        let calls = self.lock().begin(&self.waits, share.clone());
        self.changed();
        self.call(calls);
        loop {
            let job = poll_fn(|cx| self.poll_job(cx.waker()));
            let Some(job) = job.await else { break };
            self.work(job, 0, Who::Anyone);
            let waits = &self.waits;
            self.spin(|board| board.is_over(waits) || board.has_job(waits, Who::Anyone));
        }
        let (share, outcome, panic) = self.lock().end();
        drop(share);
        match panic {
            Some(panic) => resume_unwind(panic),
            None => outcome,
        }
    }

    /// A job for the coordinator; none if the epoch is over.
    fn poll_job(self: &Arc<Self>, waker: &Waker) -> Poll<Option<Job<S>>> {
        let waits = &self.waits;
        let mut board = self.lock();
        if let Some(job) = board.take(waits, Who::Anyone) {
            // Who has woken the coordinator for several has gone home.
            let calls = board.take_calls(waits, 0);
            drop(board);
            self.call(calls);
            return Poll::Ready(Some(job));
        }
        // After the look for a job: it may have ended jobs that do not count any more.
        if board.is_over(waits) {
            return Poll::Ready(None);
        }
        if mutant!("crew-coordinator-waits-late") {
            drop(board);
            board = self.lock();
        }
        board.coordinator = Some(waker.clone());
        Poll::Pending
    }

    /// Sends the helpers home.
    pub(crate) fn close(&self) {
        let helpers = self.lock().close();
        self.changed();
        if !mutant!("crew-closes-silently") {
            helpers.into_iter().for_each(Waker::wake);
        }
    }

    /// How often a region went first because it had waited long, for each lane; those at the end
    /// may be missing.
    pub(super) fn n_starvations(&self) -> Vec<u64> {
        self.lock().n_starvations.clone()
    }

    /// The board, for as long as nobody's code is called.
    pub(super) fn lock(&self) -> MutexGuard<'_, Board<S>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        // Relaxed: a hint to look at the board, whose lock orders everything.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Does a job; whether the coordinator was woken by it.
    fn work(self: &Arc<Self>, job: Job<S>, worker: u16, who: Who) -> bool {
        match job {
            Job::Region(share, position) => {
                let end = end_of(|| share.run(position, worker));
                let kept = mutant!("crew-keeps-its-share").then(|| share.clone());
                drop(share);
                let has_woken = self.done(position, end, who);
                if kept.is_some() {
                    stall();
                }
                has_woken
            }
            Job::Batch(share, batch) => {
                share.help(&batch, worker);
                drop((share, batch));
                let mut board = self.lock();
                board.n_sharing -= 1;
                let coordinator =
                    if board.is_over(&self.waits) { board.coordinator.take() } else { None };
                drop(board);
                self.changed();
                wake(coordinator)
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
            self.executor.spawn(help(called));
        }
    }

    /// Lets others work on a batch.
    pub(crate) fn offer(self: &Arc<Self>, batch: &Arc<S::Batch>) {
        let mut board = self.lock();
        board.batches.push(Arc::clone(batch));
        let helpers = core::mem::take(&mut board.home);
        drop(board);
        self.changed();
        self.call(Calls { wakers: Vec::new(), helpers });
    }

    /// A batch is done.
    pub(crate) fn withdraw(&self, batch: &Arc<S::Batch>) {
        self.lock().batches.retain(|one| !Arc::ptr_eq(one, batch));
    }

    /// A job is done; whether the coordinator was woken by it.
    fn done(self: &Arc<Self>, position: usize, end: End<S::Fault>, who: Who) -> bool {
        let waits = &self.waits;
        let mut board = self.lock();
        let spare: Option<Panic> = board.done(waits, position, end);
        // One of the jobs is for who asks.
        let n_own = usize::from(who == Who::Anyone);
        let n_more = board.n_ready(waits).saturating_sub(n_own);
        let calls = board.take_calls(waits, n_own);
        let is_needed = board.is_over(waits) || n_more > calls.helpers.len();
        let coordinator = if is_needed { board.coordinator.take() } else { None };
        drop(board);
        self.changed();
        self.call(calls);
        let has_woken = wake(coordinator);
        drop(spare);
        has_woken
    }

    /// Looks for a while whether the board has something, before its user goes to sleep.
    fn spin(&self, has_something: impl Fn(&Board<S>) -> bool) {
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

/// A helper on its way (rule 6).
pub(super) struct Called<S: Share, X: Spawn> {
    /// None once it has come.
    pub(super) shared: Option<Arc<Shared<S, X>>>,
    pub(super) worker: u16,
}

impl<S: Share, X: Spawn> Drop for Called<S, X> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take().filter(|_| !mutant!("crew-called-is-lost")) else {
            return;
        };
        let mut board = shared.lock();
        board.home.push(self.worker);
        let coordinator = board.coordinator.take();
        drop(board);
        wake(coordinator);
    }
}

/// A helper: works as long as it finds something.
pub(super) async fn help<S: Share, X: Spawn>(mut called: Called<S, X>) {
    let Some(shared) = called.shared.take() else { return };
    while help_for_a_while(&shared, called.worker) {
        clockjack_exec::yield_now().await;
    }
}

/// Works until there is nothing more, or others should have their turn; true if it is to go on.
fn help_for_a_while<S: Share, X: Spawn>(shared: &Arc<Shared<S, X>>, worker: u16) -> bool {
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
            if !mutant!("crew-late-helper-is-lost") {
                board.home.push(worker);
            }
            let coordinator = board.told_of_end(waits);
            drop(board);
            wake(coordinator);
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

/// The helper of a lane with a thread of its own.
pub(crate) async fn help_lane<S: Share, X: Spawn>(
    shared: Arc<Shared<S, X>>,
    lane: usize,
    worker: u16,
) {
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
            wake(coordinator);
            Poll::Pending
        });
        let Some(job) = job.await else { break };
        shared.work(job, worker, who);
        shared.spin(|board| board.is_closed || board.has_job(waits, who));
    }
}

/// How a job ends: a panic must not keep it from doing so, or the coordinator would wait for ever.
fn end_of<F>(job: impl FnOnce() -> Result<u32, F>) -> End<F> {
    if mutant!("crew-panic-is-lost") {
        return job().map_or_else(End::Failed, End::Done);
    }
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(Ok(n_called)) => End::Done(n_called),
        Ok(Err(fault)) => End::Failed(fault),
        Err(panic) => End::Panicked(panic),
    }
}

/// Wakes the coordinator, if it is to be woken.
fn wake(coordinator: Option<Waker>) -> bool {
    let has_woken = coordinator.is_some();
    if let Some(coordinator) = coordinator {
        coordinator.wake();
    }
    has_woken
}

/// Gives others the time to meet a planted fault.
fn stall() {
    (0..STALL).for_each(|_| spin_loop());
}
