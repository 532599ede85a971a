//! Deliveries: runs that are sent to a mailbox, and can be cancelled until a receiver accepts them.
//!
//! For a job that runs a handler, the poll that takes the job decides: from then on the handler
//! runs. A job that sends a message is different: the message is queued in a mailbox for as long as
//! the receiver likes, and a cancel during that time must succeed. So the mailbox gets a
//! [`PendingDelivery`] instead of the message, and the receiver accepts it when it takes it out.
//! One compare-exchange decides between the accept and a cancel, as it does between a run and a
//! cancel everywhere else.
//!
//! # Roles and rules
//!
//! 1. The **task** has the message and provides a [`DeliverySink`], which receives its deliveries.
//!    The **poller** creates a delivery when the job is due, counts and logs the run as fired, and
//!    passes the delivery to the sink. From then on the **receiver** has the delivery, and accepts
//!    it.
//! 2. The delivery owns the task. Nothing borrows the task while the delivery is queued: another
//!    thread may accept it before the sink has returned.
//! 3. The drop of a delivery, accepted or not, completes its run: a fixed delay counts from there,
//!    and a fixed rate sends the next delivery only then. So a job has at most one delivery out.
//!    Runs that come due meanwhile are counted. By [`CatchUp`](crate::CatchUp) they are folded into
//!    the delivery when it is accepted (those due later, into the next one), or sent one by one.
//! 4. A cancelled delivery cannot be accepted. Instead it is dropped, which notifies its task, if
//!    the task wants that, and drops the task. Until then the job counts as live and keeps its
//!    permit.
//! 5. A delivery that is dropped without having been accepted is counted ([`discarded_total`]) and
//!    logged, whether it was cancelled or not. If it was not, a one-shot counts as executed: it was
//!    delivered, and unread messages are the responsibility of the receiver.
//! 6. The close sends nothing: it cancels jobs whose delivery was not sent, and a delivery cannot
//!    be marked to be run at the close. A one-shot that was sent before counts as executed: its
//!    delivery can be accepted at any later time, and no cancel succeeds against it. The close
//!    waits for no delivery.
//!
//! [`discarded_total`]: crate::SchedulerMetrics::discarded_total

use core::fmt;

use clockjack_sync::Arc;
use clockjack_time::Tick;

use crate::{
    BatchMode, DispatcherId, ExecutionBatch, FireContext, JobNumber, JobState, Task,
    jobs::{
        spec::late_by,
        table::{ReturnedDelivery, Run},
    },
    scheduler::{JobPayload, SchedulerShard, poll},
};

/// A task whose runs are sent as deliveries, to be accepted by a receiver.
///
/// # Examples
///
/// A channel as the mailbox:
///
/// ```
/// use clockjack_sched::{
///     DeliverySink, DeliveryTask, JobSpec, ManualRunner, PendingDelivery, SchedulerConfig,
/// };
/// use core::time::Duration;
/// use std::sync::mpsc;
///
/// struct Message {
///     text: &'static str,
///     to: mpsc::Sender<PendingDelivery>,
/// }
///
/// struct ChannelSink(mpsc::Sender<PendingDelivery>);
///
/// impl DeliverySink for ChannelSink {
///     fn deliver(self, delivery: PendingDelivery) {
///         // The receiver is gone. Dropping the delivery would continue a periodic job.
///         if let Err(mpsc::SendError(delivery)) = self.0.send(delivery) {
///             delivery.complete_job();
///         }
///     }
/// }
///
/// impl DeliveryTask for Message {
///     type Sink = ChannelSink;
///
///     fn sink(&self) -> ChannelSink {
///         ChannelSink(self.to.clone())
///     }
/// }
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let (to, mailbox) = mpsc::channel();
/// let spec = JobSpec::once(Duration::from_millis(20));
/// let first = Message { text: "first", to: to.clone() };
/// let first = manual.scheduler().schedule_delivery(spec, first).expect("open");
/// let second = Message { text: "second", to };
/// manual.scheduler().schedule_delivery(spec, second).expect("open");
///
/// manual.advance(Duration::from_millis(20));
/// assert!(first.cancel(), "it is in the mailbox and was not accepted");
/// assert!(mailbox.recv()?.accept().is_none());
/// let mut delivery = mailbox.recv()?.accept().expect("it was not cancelled");
/// assert_eq!(delivery.task_mut::<Message>().map(|message| message.text), Some("second"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait DeliveryTask: Send + 'static {
    /// The type of its sink.
    type Sink: DeliverySink;

    /// Whether [`cancelled`](Self::cancelled) is called. A poll of the shard makes that call, so a
    /// job without it is removed sooner.
    const NOTIFY_CANCEL: bool = true;

    /// The sink for the next delivery. It cannot borrow from the task, which is in the delivery.
    fn sink(&self) -> Self::Sink;

    /// As [`SchedulerTask::cancelled`](crate::SchedulerTask::cancelled). If a delivery is out, this
    /// is called after the delivery was dropped.
    fn cancelled(&mut self) {}
}

/// Receives the deliveries of a task, for instance by putting them into a mailbox.
pub trait DeliverySink {
    /// Takes a delivery. Called in a poll of the shard, without any lock of the scheduler; it
    /// should return soon. If it panics, the delivery is dropped, which completes the run.
    fn deliver(self, delivery: PendingDelivery);
}

/// A run that was sent and can still be cancelled. Dropping it completes the run; see
/// [`DeliveryTask`].
///
/// Accepting and dropping it may wait shortly for another thread that uses the same shard, so an
/// interrupt must do neither.
#[must_use = "dropping it completes the run"]
pub struct PendingDelivery {
    shard: Arc<SchedulerShard>,
    /// `None` only during the drop.
    task: Option<Task>,
    number: u64,
    due: Tick,
    slot: u32,
    missed: u32,
    mode: BatchMode,
    folds: bool,
    is_accepted: bool,
    is_last: bool,
}

const _: () =
    assert!(size_of::<PendingDelivery>() <= 72, "it is moved into a mailbox and out of it");

impl PendingDelivery {
    pub(crate) fn new(shard: Arc<SchedulerShard>, run: Run<JobPayload>, folds: bool) -> Self {
        let Run { slot, number, batch, due, late: _, payload } = run;
        Self {
            shard,
            task: Some(payload.task),
            number: number.number,
            due,
            slot,
            missed: batch.missed_runs,
            mode: batch.mode,
            folds: folds && batch.mode == BatchMode::FixedRate,
            is_accepted: false,
            is_last: false,
        }
    }

    /// Accepts it; call this when you take it out of the mailbox. From here on its run is
    /// executing. `None` if the job was cancelled meanwhile: then the delivery is discarded.
    ///
    /// If missed runs at a fixed rate are folded, this run now includes those that polls of the
    /// shard have found due since the delivery was sent.
    #[must_use = "dropping it completes the run"]
    pub fn accept(mut self) -> Option<AcceptedDelivery> {
        let shared = &*self.shard.shared;
        if !self.shard.jobs.accept(self.slot) {
            return None;
        }
        self.is_accepted = true;
        let now = shared.host.now();
        if self.folds {
            let mut guard = self.shard.jobs.lock(&shared.relax());
            let more = guard.fold(self.slot, now);
            drop(guard);
            self.shard.flush();
            self.missed = self.missed.saturating_add(more);
        }
        let batch = ExecutionBatch::folded(self.missed, self.mode);
        let late = late_by(now, self.due, shared.resolution);
        let fire = FireContext::new(self.job(), batch, self.due, now, late);
        Some(AcceptedDelivery { fire, delivery: self })
    }

    /// Whether the job was cancelled, so that it cannot be accepted.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shard.jobs.state(self.slot) == JobState::Cancelled
    }

    /// The number of the job in logs and warnings.
    #[must_use]
    pub fn job(&self) -> JobNumber {
        JobNumber { shard: self.shard.jobs.id(), number: self.number }
    }

    /// How the job repeats.
    #[must_use]
    pub const fn mode(&self) -> BatchMode {
        self.mode
    }

    /// Completes the run and the job, for instance because its receiver is gone. This is not a
    /// failure and causes no warning.
    pub fn complete_job(mut self) {
        self.is_last = true;
    }

    /// The task, for its sink and for the receiver that has accepted it.
    pub(crate) fn task_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.task.as_mut()?.value_mut()
    }
}

impl Drop for PendingDelivery {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let shared = &*self.shard.shared;
        let at = shared.host.now();
        let mut guard = self.shard.jobs.lock(&shared.relax());
        let (to_drop, wake_at) = guard.complete_delivery(ReturnedDelivery {
            slot: self.slot,
            payload: JobPayload { task, dispatcher: DispatcherId::DEFAULT },
            due: self.due,
            runs: self.missed.saturating_add(1),
            was_accepted: self.is_accepted,
            is_last: self.is_last,
            at,
        });
        drop(guard);
        poll::finish_completion(&self.shard, to_drop, wake_at);
        // This catches panics of wakers: a panicking handler may be what drops the delivery.
        shared.wake_readers();
    }
}

impl fmt::Debug for PendingDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingDelivery")
            .field("job", &self.job())
            .field("due", &self.due)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// A delivery that was accepted. Its run is executing until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it completes the run"]
pub struct AcceptedDelivery {
    fire: FireContext,
    delivery: PendingDelivery,
}

impl AcceptedDelivery {
    /// The context of the run, with the time of the accept.
    #[must_use]
    pub const fn fire(&self) -> &FireContext {
        &self.fire
    }

    /// The task, to take its message or a copy of it; `None` if it is of another type.
    #[must_use]
    pub fn task_mut<T: DeliveryTask>(&mut self) -> Option<&mut T> {
        self.delivery.task_mut()
    }

    /// As [`PendingDelivery::complete_job`].
    pub fn complete_job(self) {
        self.delivery.complete_job();
    }
}
