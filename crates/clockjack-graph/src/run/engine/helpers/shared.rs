//! The workers of a parallel epoch: the coordinator, helpers, and helpers of lanes.
//!
//! The [module above](super) states the protocol. Loom models compile this file unchanged, with
//! loom's lock.

use core::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    task::{Poll, Waker},
};
use std::{
    panic::{catch_unwind, resume_unwind},
    sync::{Arc, PoisonError},
};

use clockjack_sync::primitive::{
    atomic::{AtomicU64, Ordering},
    hint::spin_loop,
};

use super::{
    dependencies::Dependencies,
    primitive::{Mutex, MutexGuard},
    ready_queue::{
        EpochHandle, EpochOutcome, Job, JobFilter, JobResult, PanicPayload, PendingWakes,
        ReadyQueue, Wake,
    },
};

/// Jobs after which a helper yields its worker thread.
const JOBS_BEFORE_YIELD: u32 = 64;

/// An executor for helpers.
pub(crate) trait Spawn: Send + Sync + 'static {
    /// Runs a helper concurrently with the caller. Drops a helper that it cannot run.
    fn spawn(&self, helper: impl Future<Output = ()> + Send + 'static);

    /// Wakes a helper so that another thread than that of the caller can run it.
    fn wake(&self, helper: Waker);
}

/// What the coordinator, the helpers and the regions share.
pub(crate) struct HelpersShared<H: EpochHandle, X> {
    queue: Mutex<ReadyQueue<H>>,
    /// Changes with each change of the queue, for workers that spin without the lock.
    version: AtomicU64,
    executor: X,
    pub(super) dependencies: Dependencies,
    n_spins: u32,
}

impl<H: EpochHandle, X: Spawn> HelpersShared<H, X> {
    /// An empty queue with `n_helpers` idle helpers. A worker without a job checks the queue
    /// `n_spins` times before it waits.
    pub(crate) fn new(
        dependencies: Dependencies,
        executor: X,
        n_helpers: usize,
        n_spins: u32,
    ) -> Self {
        let queue = Mutex::new(ReadyQueue::new(&dependencies, n_helpers));
        Self { queue, version: AtomicU64::new(0), executor, dependencies, n_spins }
    }

    /// Runs an epoch, as its coordinator. When it is over, the caller's handle is the only one.
    ///
    /// # Panics
    ///
    /// If a job panicked and no job before it failed: as if there were one thread.
    pub(crate) async fn run_epoch(self: &Arc<Self>, handle: &H) -> EpochOutcome<H::Fault> {
        let wakes = self.lock().begin_epoch(&self.dependencies, handle.clone());
        self.changed();
        self.send(wakes);
        loop {
            let job = poll_fn(|cx| self.poll_job(cx.waker()));
            let Some(job) = job.await else { break };
            self.run_job(job, 0, JobFilter::SharedLanes);
            let dependencies = &self.dependencies;
            self.spin(|queue| {
                queue.is_over(dependencies) || queue.has_job(dependencies, JobFilter::SharedLanes)
            });
        }
        let (handle, outcome, panic) = self.lock().end_epoch();
        drop(handle);
        match panic {
            Some(panic) => resume_unwind(panic),
            None => outcome,
        }
    }

    /// A job for the coordinator; `None` if the epoch is over.
    fn poll_job(self: &Arc<Self>, waker: &Waker) -> Poll<Option<Job<H>>> {
        let dependencies = &self.dependencies;
        let mut queue = self.lock();
        if let Some(job) = queue.take(dependencies, JobFilter::SharedLanes) {
            // A helper that woke the coordinator for several jobs may be idle since.
            let wakes = queue.count_wakes(dependencies, 0);
            drop(queue);
            self.send(wakes);
            return Poll::Ready(Some(job));
        }
        // After `take`, which may have marked skipped jobs as done.
        if queue.is_over(dependencies) {
            return Poll::Ready(None);
        }
        // Under the same lock as the search (rule 5).
        queue.coordinator = Some(waker.clone());
        Poll::Pending
    }

    /// Stops the helpers.
    pub(crate) fn close(&self) {
        let helpers = self.lock().close();
        self.changed();
        helpers.into_iter().for_each(Waker::wake);
    }

    /// For each lane, how often a region ran early because it had waited for long.
    pub(super) fn n_starvations(&self) -> Vec<u64> {
        self.lock().n_starvations.clone()
    }

    /// Locks the queue. The holder of the lock calls no code of a user, a waker or an executor.
    pub(super) fn lock(&self) -> MutexGuard<'_, ReadyQueue<H>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        // Relaxed: a hint to lock the queue, whose lock orders everything.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a job; returns whether that woke the coordinator.
    fn run_job(self: &Arc<Self>, job: Job<H>, worker: u16, filter: JobFilter) -> bool {
        match job {
            Job::Region(handle, position) => {
                let result = catch_panic(|| handle.run(position, worker));
                // Before the report: rule 3.
                drop(handle);
                self.complete(position, result, filter)
            }
            Job::Batch(handle, batch) => {
                handle.help(&batch, worker);
                // Before the count goes down: rule 3.
                drop((handle, batch));
                let mut queue = self.lock();
                queue.n_batch_helpers -= 1;
                let is_over = queue.is_over(&self.dependencies);
                let coordinator = if is_over { queue.coordinator.take() } else { None };
                drop(queue);
                self.changed();
                wake_coordinator(coordinator)
            }
        }
    }

    /// Wakes lane helpers and helpers, each outside the lock.
    fn send(self: &Arc<Self>, mut wakes: PendingWakes) {
        while wakes.has_lanes || wakes.n_helpers > 0 {
            let wake = self.lock().next_wake(&self.dependencies, &mut wakes);
            match wake {
                Some(Wake::Lane(waker)) => waker.wake(),
                Some(Wake::Helper(waker)) => self.executor.wake(waker),
                Some(Wake::Start(worker)) => {
                    let helper = Helper { shared: Arc::clone(self), worker };
                    self.executor.spawn(run_helper(helper));
                }
                None => break,
            }
        }
    }

    /// Offers a batch to other workers.
    pub(crate) fn add_batch(self: &Arc<Self>, batch: &Arc<H::Batch>) {
        let mut queue = self.lock();
        queue.batches.push(Arc::clone(batch));
        let wakes = PendingWakes { has_lanes: false, n_helpers: queue.idle.len() };
        drop(queue);
        self.changed();
        self.send(wakes);
    }

    /// Removes a batch that is done.
    pub(crate) fn remove_batch(&self, batch: &Arc<H::Batch>) {
        self.lock().batches.retain(|one| !Arc::ptr_eq(one, batch));
    }

    /// Reports the result of a job; returns whether that woke the coordinator.
    fn complete(
        self: &Arc<Self>,
        position: usize,
        result: JobResult<H::Fault>,
        filter: JobFilter,
    ) -> bool {
        let dependencies = &self.dependencies;
        let mut queue = self.lock();
        let unused: Option<PanicPayload> = queue.complete(dependencies, position, result);
        // The caller continues with one of the jobs itself.
        let n_own = usize::from(filter == JobFilter::SharedLanes);
        let n_more = queue.n_ready(dependencies).saturating_sub(n_own);
        let wakes = queue.count_wakes(dependencies, n_own);
        let is_needed = queue.is_over(dependencies) || n_more > wakes.n_helpers;
        let coordinator = if is_needed { queue.coordinator.take() } else { None };
        drop(queue);
        self.changed();
        self.send(wakes);
        let has_woken = wake_coordinator(coordinator);
        drop(unused);
        has_woken
    }

    /// Spins until the queue has something for the caller, or for `n_spins` rounds. It locks the
    /// queue only when its version has changed.
    fn spin(&self, has_something: impl Fn(&ReadyQueue<H>) -> bool) {
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

/// A helper. Dropping it makes it idle again, without a future (rule 7).
pub(super) struct Helper<H: EpochHandle, X: Spawn> {
    pub(super) shared: Arc<HelpersShared<H, X>>,
    pub(super) worker: u16,
}

impl<H: EpochHandle, X: Spawn> Drop for Helper<H, X> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        let old = queue.register_idle(self.worker, None);
        let coordinator = queue.coordinator.take();
        drop(queue);
        wake_coordinator(coordinator);
        drop(old);
    }
}

/// The future of a helper: runs jobs until the queue is closed.
pub(super) async fn run_helper<H: EpochHandle, X: Spawn>(helper: Helper<H, X>) {
    while poll_fn(|cx| helper.poll_jobs(cx.waker())).await {
        clockjack_exec::yield_now().await;
    }
}

impl<H: EpochHandle, X: Spawn> Helper<H, X> {
    /// Runs jobs until there is none, or the helper has to yield. False if the queue is closed.
    fn poll_jobs(&self, waker: &Waker) -> Poll<bool> {
        let shared = &self.shared;
        let dependencies = &shared.dependencies;
        for _ in 0..JOBS_BEFORE_YIELD {
            // Also before the first job: a helper that is late for this epoch may meet the next.
            shared.spin(|queue| {
                queue.is_closed || queue.has_job(dependencies, JobFilter::SharedLanes)
            });
            let mut queue = shared.lock();
            if queue.is_closed {
                return Poll::Ready(false);
            }
            let job = queue.take(dependencies, JobFilter::SharedLanes);
            let Some(job) = job else {
                return self.wait(queue, waker);
            };
            drop(queue);
            if shared.run_job(job, self.worker, JobFilter::SharedLanes) {
                // The coordinator takes the other jobs: it is next on the thread of this helper.
                return self.wait(shared.lock(), waker);
            }
        }
        Poll::Ready(true)
    }

    /// Waits, if the queue is not closed. The lock is that of the search for a job (rule 5), or of
    /// a helper that has woken the coordinator.
    fn wait(&self, mut queue: MutexGuard<'_, ReadyQueue<H>>, waker: &Waker) -> Poll<bool> {
        if queue.is_closed {
            return Poll::Ready(false);
        }
        let old = queue.register_idle(self.worker, Some(waker.clone()));
        let coordinator = queue.coordinator_if_over(&self.shared.dependencies);
        drop(queue);
        wake_coordinator(coordinator);
        drop(old);
        Poll::Pending
    }
}

/// The helper of a lane that has its own thread.
pub(crate) async fn run_lane_helper<H: EpochHandle, X: Spawn>(
    shared: Arc<HelpersShared<H, X>>,
    lane: usize,
    worker: u16,
) {
    let (dependencies, filter) = (&shared.dependencies, JobFilter::Lane(lane));
    loop {
        let job = poll_fn(|cx| {
            let mut queue = shared.lock();
            if queue.is_closed {
                return Poll::Ready(None);
            }
            if let Some(job) = queue.take(dependencies, filter) {
                return Poll::Ready(Some(job));
            }
            // Under the same lock as the search (rule 5).
            queue.register_lane_helper(worker, filter, cx.waker());
            let coordinator = queue.coordinator_if_over(dependencies);
            drop(queue);
            wake_coordinator(coordinator);
            Poll::Pending
        });
        let Some(job) = job.await else { break };
        shared.run_job(job, worker, filter);
        shared.spin(|queue| queue.is_closed || queue.has_job(dependencies, filter));
    }
}

/// Runs a job and catches its panic. A job that panicked must be reported as done like any other:
/// otherwise the coordinator would wait for it for ever.
fn catch_panic<F>(job: impl FnOnce() -> Result<u32, F>) -> JobResult<F> {
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(Ok(n_called)) => JobResult::Done(n_called),
        Ok(Err(fault)) => JobResult::Failed(fault),
        Err(panic) => JobResult::Panicked(panic),
    }
}

/// Wakes the coordinator, if its waker was taken; returns whether it was.
fn wake_coordinator(coordinator: Option<Waker>) -> bool {
    let has_woken = coordinator.is_some();
    if let Some(coordinator) = coordinator {
        coordinator.wake();
    }
    has_woken
}
