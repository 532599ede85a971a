//! Runs that travel: to a mailbox, where they are decided when they are taken out.
//!
//! A job that runs a handler is decided when a turn takes it: from then on it runs. A job that
//! sends a message is not: it lies in a mailbox for as long as the receiver likes, and a cancel
//! that comes meanwhile must win. So what is put into the mailbox is not the message but a
//! [`PendingDelivery`], which is opened when it is taken out. One compare-exchange decides between that and
//! a cancel, as between a run and a cancel everywhere else.
//!
//! # Roles and rules
//!
//! 1. The **task** has the message, and names a [`DeliverySink`]: where its deliveries go. The **turn**
//!    makes a delivery when the job is due, and gives it to the sink; the fire is counted and
//!    logged then. The **receiver** has the delivery from then on, and opens it.
//! 2. The delivery owns the task. Nobody borrows it while it travels: it may be opened on another
//!    thread before the sink has returned.
//! 3. The drop of a delivery, opened or not, is the completion of its run: a fixed delay counts from
//!    there, and a fixed rate sends the next delivery only then. So one delivery of a job is out at the
//!    most. What comes due meanwhile is counted: by [`CatchUp`](crate::CatchUp) it joins the delivery
//!    when it is opened, if it is by then, and the next else; or is sent one by one.
//! 4. A delivery that was cancelled does not open. It is dropped in its stead, and so its task is
//!    told, if it wants to be, and dropped. Up to that the job counts as one that lives, with its
//!    place in the quota.
//! 5. What a receiver drops without having opened it is counted ([`discarded_total`]) and logged,
//!    as what was cancelled is. A one-shot counts as executed then: it was delivered, and what
//!    becomes of messages that are not read is the receiver's part.
//! 6. At the close, deliveries that were not opened are cancelled, and nobody waits for them. Of jobs
//!    that are marked to be run at the close those that wait are sent, and to be sent is to be run:
//!    such a delivery can be opened for as long as it lies anywhere, and no cancel wins against it.
//!
//! [`discarded_total`]: crate::SchedulerMetrics::discarded_total

use core::fmt;

use clockjack_sync::Counted;
use clockjack_time::Tick;

use crate::{
    BatchMode, DispatcherId, ExecutionBatch, FireContext, JobNumber, JobState, Task,
    job::late_by,
    scheduler::{Item, SchedulerShard, poll},
    table::{ReturnedDelivery, Run},
};

/// Something whose runs are sent as deliveries, to be opened by a receiver.
///
/// # Examples
///
/// A mailbox that is a channel:
///
/// ```
/// use clockjack_sched::{DeliverySink, JobSpec, ManualRunner, PendingDelivery, DeliveryTask, SchedulerConfig};
/// use core::time::Duration;
/// use std::sync::mpsc;
///
/// struct Letter {
///     text: &'static str,
///     to: mpsc::Sender<PendingDelivery>,
/// }
///
/// struct Sending(mpsc::Sender<PendingDelivery>);
///
/// impl DeliverySink for Sending {
///     fn deliver(self, delivery: PendingDelivery) {
///         // The receiver is gone: a drop would complete the run, and go on with the job.
///         if let Err(mpsc::SendError(delivery)) = self.0.send(delivery) {
///             delivery.complete_job();
///         }
///     }
/// }
///
/// impl DeliveryTask for Letter {
///     type Sink = Sending;
///
///     fn sink(&self) -> Sending {
///         Sending(self.to.clone())
///     }
/// }
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let (to, mailbox) = mpsc::channel();
/// let spec = JobSpec::once(Duration::from_millis(20));
/// let first = Letter { text: "first", to: to.clone() };
/// let first = manual.scheduler().schedule_delivery(spec, first).expect("open");
/// let second = Letter { text: "second", to };
/// manual.scheduler().schedule_delivery(spec, second).expect("open");
///
/// manual.advance(Duration::from_millis(20));
/// assert!(first.cancel(), "it lies in the mailbox, and was not opened");
/// assert!(mailbox.recv()?.accept().is_none());
/// let mut delivery = mailbox.recv()?.accept().expect("nobody has cancelled it");
/// assert_eq!(delivery.task_mut::<Letter>().map(|letter| letter.text), Some("second"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait DeliveryTask: Send + 'static {
    /// What takes deliveries of it to their receiver.
    type Sink: DeliverySink;

    /// Whether it wants to be told by [`cancelled`](Self::cancelled). To tell it takes a turn, so a
    /// job that does not want it is gone sooner.
    const NOTIFY_CANCEL: bool = true;

    /// Who takes the next delivery. It must not borrow from the task, which is in the delivery.
    fn sink(&self) -> Self::Sink;

    /// As [`SchedulerTask::cancelled`](crate::SchedulerTask::cancelled). If a delivery is out, it is
    /// called when that has come back.
    fn cancelled(&mut self) {}
}

/// Takes a delivery to its receiver.
pub trait DeliverySink {
    /// Takes it. Called in a turn, without any lock of the scheduler; it should not take long. If
    /// it panics, the delivery is dropped with it, and so the run is complete.
    fn deliver(self, delivery: PendingDelivery);
}

/// A run on its way. Dropping it completes the run; see [`DeliveryTask`].
///
/// To open and to drop it wait for a moment if another thread is busy with the same shard, so an
/// interrupt must do neither.
#[must_use = "dropping it completes the run"]
pub struct PendingDelivery {
    shard: Counted<SchedulerShard>,
    /// Always there, but for the drop.
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
    pub(crate) fn new(shard: Counted<SchedulerShard>, run: Run<Item>, folds: bool) -> Self {
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

    /// Opens it, at the moment when it is taken out of the mailbox: from here on its run is an
    /// executing one. `None` if the job was cancelled meanwhile: then it is discarded.
    ///
    /// If a fixed rate is folded, the runs that have come due since it was sent, by the turns that
    /// were taken, are its own from here on.
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

    /// Whether the job was cancelled, so that it will not open.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shard.jobs.state(self.slot) == JobState::Cancelled
    }

    /// The job, as logs and warnings name it.
    #[must_use]
    pub fn job(&self) -> JobNumber {
        JobNumber { shard: self.shard.jobs.id(), number: self.number }
    }

    /// How the job repeats.
    #[must_use]
    pub const fn mode(&self) -> BatchMode {
        self.mode
    }

    /// Completes the run, and ends the job: its receiver is gone. That is no failure, and nobody
    /// is told.
    pub fn complete_job(mut self) {
        self.is_last = true;
    }

    /// For who carries it, and for the one who has opened it.
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
        let (ended, wakes_poller) = guard.complete_delivery(ReturnedDelivery {
            slot: self.slot,
            payload: Item { task, dispatcher: DispatcherId::DEFAULT },
            due: self.due,
            runs: self.missed.saturating_add(1),
            was_accepted: self.is_accepted,
            is_last: self.is_last,
            at,
        });
        drop(guard);
        poll::finish_completion(&self.shard, ended, wakes_poller);
        // Guarded: a handler that panics may be what drops it.
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

/// A delivery that was opened: its run is being executed until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it completes the run"]
pub struct AcceptedDelivery {
    fire: FireContext,
    delivery: PendingDelivery,
}

impl AcceptedDelivery {
    /// What the run is told: with the time of the opening.
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
