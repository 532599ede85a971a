//! Futures that complete after a delay.

use core::{
    fmt,
    num::NonZeroU32,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicU32, Ordering},
    waker::AtomicWaker,
};
use clockjack_time::Resolution;

use crate::{
    BatchMode, CancelOnDrop, DispatcherId, ExecutionBatch, FireContext, ScheduleErrorKind,
    Scheduler,
};

const WAITING: u32 = 0;
const FIRED: u32 = 1;
const CANCELLED: u32 = 2;

/// Creates futures that complete after a delay. Each is a one-shot job of the scheduler.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{DelayProvider, ManualRunner, SchedulerConfig};
/// use core::{future::Future, pin::pin, task::{Context, Poll, Waker}, time::Duration};
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let mut tea = pin!(manual.scheduler().delays().delay(Duration::from_secs(180)));
/// let mut cx = Context::from_waker(Waker::noop());
/// manual.advance(Duration::from_secs(179));
/// assert!(tea.as_mut().poll(&mut cx).is_pending());
/// manual.advance(Duration::from_secs(1));
/// assert_eq!(tea.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
/// # Ok::<(), clockjack_sched::ModeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DelayProvider {
    scheduler: Scheduler,
}

impl DelayProvider {
    pub(crate) const fn new(scheduler: Scheduler) -> Self {
        Self { scheduler }
    }

    /// A future that completes when `duration` has passed since this call, and not before. If it
    /// cannot be scheduled, it completes at once with the error.
    pub fn delay(&self, duration: Duration) -> DelayFuture {
        let shared = Arc::new(DelayState {
            state: AtomicU32::new(WAITING),
            missed_ticks: AtomicU32::new(0),
            waker: AtomicWaker::new(),
        });
        let completion = DelayCompletion(shared.clone());
        let tick = self.scheduler.resolution();
        let fire = move |fire: &FireContext| completion.fire(whole_ticks(fire.late(), tick));
        let scheduled = self.scheduler.schedule_once_fn(duration, DispatcherId::DEFAULT, fire);
        DelayFuture {
            shared,
            job: scheduled.map(crate::Cancellable::cancel_on_drop).map_err(|error| error.kind()),
        }
    }
}

/// The number of whole ticks in `late`; saturates.
fn whole_ticks(late: Duration, tick: Resolution) -> u32 {
    let ticks = late.as_nanos() / u128::from(tick.nanos().get());
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// The state that future and job share.
struct DelayState {
    state: AtomicU32,
    /// How many whole ticks late the job fired; final when the state is `FIRED`.
    missed_ticks: AtomicU32,
    waker: AtomicWaker,
}

/// The job's side of a delay. If it is dropped without `fire`, the delay completes with an error.
struct DelayCompletion(Arc<DelayState>);

impl DelayCompletion {
    fn fire(&self, missed_ticks: u32) {
        // Relaxed: published by the store below.
        self.0.missed_ticks.store(missed_ticks, Ordering::Relaxed);
        // Release: pairs with the load of the future.
        self.0.state.store(FIRED, Ordering::Release);
        self.0.waker.wake();
    }
}

impl Drop for DelayCompletion {
    fn drop(&mut self) {
        // Relaxed: only this side writes it.
        if self.0.state.load(Ordering::Relaxed) == WAITING {
            // Release: as in `fire`.
            self.0.state.store(CANCELLED, Ordering::Release);
            self.0.waker.wake();
        }
    }
}

/// A future that completes after a delay; created by [`DelayProvider::delay`].
///
/// # Errors
///
/// Its output is a [`DelayError`] if it could not be scheduled, if the scheduler closes first, or
/// if its job was evicted for a more important one. It never completes early.
///
/// # Cancellation
///
/// Dropping it cancels the job, without a wake-up.
#[must_use = "a delay does nothing unless it is awaited"]
pub struct DelayFuture {
    shared: Arc<DelayState>,
    job: Result<CancelOnDrop, ScheduleErrorKind>,
}

impl DelayFuture {
    /// The batch of the run, once it has fired: a delay that fires late is one wake-up for the tick
    /// at which it was due and for the ticks since then. `missed_runs` is the number of whole ticks
    /// by which it was late, and `runs` is one more.
    #[must_use]
    pub fn batch(&self) -> Option<ExecutionBatch> {
        // Acquire: pairs with the store of the job's side.
        if self.shared.state.load(Ordering::Acquire) != FIRED {
            return None;
        }
        // Relaxed: published by the state.
        let missed_runs = self.shared.missed_ticks.load(Ordering::Relaxed);
        let runs = NonZeroU32::MIN.saturating_add(missed_runs);
        Some(ExecutionBatch { runs, missed_runs, mode: BatchMode::OneShot })
    }

    fn poll_state(&self) -> Poll<Result<(), DelayError>> {
        // Acquire: pairs with the store of the job's side.
        match self.shared.state.load(Ordering::Acquire) {
            WAITING => Poll::Pending,
            FIRED => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(DelayError(self.cancel_reason()))),
        }
    }

    /// Only this future has a handle to the job, so the close or an eviction cancelled it.
    fn cancel_reason(&self) -> ScheduleErrorKind {
        match &self.job {
            Ok(job) if !job.is_shard_closed() => ScheduleErrorKind::CapacityExceeded,
            _ => ScheduleErrorKind::Closed,
        }
    }
}

impl Future for DelayFuture {
    type Output = Result<(), DelayError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(kind) = self.job {
            return Poll::Ready(Err(DelayError(kind)));
        }
        if let Poll::Ready(over) = self.poll_state() {
            return Poll::Ready(over);
        }
        self.shared.waker.register(cx.waker());
        // The job may have fired before the waker was registered, so check again.
        self.poll_state()
    }
}

impl Drop for DelayFuture {
    /// Removes the waker first: the drop of the job's side wakes, and the task that drops the delay
    /// must not be polled again for nothing.
    fn drop(&mut self) {
        drop(self.shared.waker.take());
    }
}

impl fmt::Debug for DelayFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayFuture").field("job", &self.job).finish_non_exhaustive()
    }
}

/// Why a delay did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayError(ScheduleErrorKind);

impl DelayError {
    /// The reason: the delay could not be scheduled; or, before its time, the scheduler was
    /// [closed](ScheduleErrorKind::Closed), or the job was evicted for
    /// [lack of room](ScheduleErrorKind::CapacityExceeded).
    #[must_use]
    pub const fn kind(&self) -> ScheduleErrorKind {
        self.0
    }
}

impl fmt::Display for DelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the delay did not complete: {}", self.0)
    }
}

impl core::error::Error for DelayError {}
