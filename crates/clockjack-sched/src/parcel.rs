//! Runs that travel: to a mailbox, where they are decided when they are taken out.
//!
//! A job that runs a handler is decided when a turn takes it: from then on it runs. A job that
//! sends a message is not: it lies in a mailbox for as long as the receiver likes, and a cancel
//! that comes meanwhile must win. So what is put into the mailbox is not the message but a
//! [`Parcel`], which is opened when it is taken out. One compare-exchange decides between that and
//! a cancel, as between a run and a cancel everywhere else.
//!
//! # Roles and rules
//!
//! 1. The **task** has the message, and names a [`Courier`]: where its parcels go. The **turn**
//!    makes a parcel when the job is due, and gives it to the courier; the fire is counted and
//!    logged then. The **receiver** has the parcel from then on, and opens it.
//! 2. The parcel owns the task. Nobody borrows it while it travels: it may be opened on another
//!    thread before the courier has returned.
//! 3. The drop of a parcel, opened or not, is the completion of its run: a fixed delay counts from
//!    there, and a fixed rate sends the next parcel only then. So one parcel of a job is out at the
//!    most. What comes due meanwhile is counted: by [`CatchUp`](crate::CatchUp) it joins the parcel
//!    when it is opened, if it is by then, and the next else; or is sent one by one.
//! 4. A parcel that was cancelled does not open. It is dropped in its stead, and so its task is
//!    told, if it wants to be, and dropped. Up to that the job counts as one that lives, with its
//!    place in the quota.
//! 5. What a receiver drops without having opened it is counted ([`discarded_total`]) and logged,
//!    as what was cancelled is. A one-shot counts as executed then: it was delivered, and what
//!    becomes of messages that are not read is the receiver's part.
//! 6. At the close, parcels that were not opened are cancelled, and nobody waits for them. Of jobs
//!    that are marked to be run at the close those that wait are sent, and to be sent is to be run:
//!    such a parcel can be opened for as long as it lies anywhere, and no cancel wins against it.
//!
//! [`discarded_total`]: crate::SchedulerMetrics::discarded_total

use core::fmt;

use clockjack_sync::Counted;
use clockjack_time::Tick;

use crate::{
    BatchMode, DispatcherId, ExecutionBatch, FireContext, JobNumber, JobState, Task,
    job::late_by,
    scheduler::{Item, Station, turn},
    table::{Returned, Run},
};

/// Something whose runs are sent as parcels, to be opened by a receiver.
///
/// # Examples
///
/// A mailbox that is a channel:
///
/// ```
/// use clockjack_sched::{Courier, JobSpec, ManualRunner, Parcel, ParcelTask, SchedulerConfig};
/// use core::time::Duration;
/// use std::sync::mpsc;
///
/// struct Letter {
///     text: &'static str,
///     to: mpsc::Sender<Parcel>,
/// }
///
/// struct Sending(mpsc::Sender<Parcel>);
///
/// impl Courier for Sending {
///     fn carry(self, parcel: Parcel) {
///         // The receiver is gone: a drop would complete the run, and go on with the job.
///         if let Err(mpsc::SendError(parcel)) = self.0.send(parcel) {
///             parcel.end_job();
///         }
///     }
/// }
///
/// impl ParcelTask for Letter {
///     type Courier = Sending;
///
///     fn courier(&self) -> Sending {
///         Sending(self.to.clone())
///     }
/// }
///
/// let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
/// let (to, mailbox) = mpsc::channel();
/// let spec = JobSpec::once(Duration::from_millis(20));
/// let first = Letter { text: "first", to: to.clone() };
/// let first = manual.scheduler().schedule_parcel(spec, first).expect("open");
/// let second = Letter { text: "second", to };
/// manual.scheduler().schedule_parcel(spec, second).expect("open");
///
/// manual.advance(Duration::from_millis(20));
/// assert!(first.cancel(), "it lies in the mailbox, and was not opened");
/// assert!(mailbox.recv()?.open().is_none());
/// let mut parcel = mailbox.recv()?.open().expect("nobody has cancelled it");
/// assert_eq!(parcel.task_mut::<Letter>().map(|letter| letter.text), Some("second"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait ParcelTask: Send + 'static {
    /// What takes parcels of it to their receiver.
    type Courier: Courier;

    /// Whether it wants to be told by [`cancelled`](Self::cancelled). To tell it takes a turn, so a
    /// job that does not want it is gone sooner.
    const TELLS_CANCEL: bool = true;

    /// Who takes the next parcel. It must not borrow from the task, which is in the parcel.
    fn courier(&self) -> Self::Courier;

    /// As [`SchedulerTask::cancelled`](crate::SchedulerTask::cancelled). If a parcel is out, it is
    /// called when that has come back.
    fn cancelled(&mut self) {}
}

/// Takes a parcel to its receiver.
pub trait Courier {
    /// Takes it. Called in a turn, without any lock of the scheduler; it should not take long. If
    /// it panics, the parcel is dropped with it, and so the run is complete.
    fn carry(self, parcel: Parcel);
}

/// A run on its way. Dropping it completes the run; see [`ParcelTask`].
///
/// To open and to drop it wait for a moment if another thread is busy with the same shard, so an
/// interrupt must do neither.
#[must_use = "dropping it completes the run"]
pub struct Parcel {
    station: Counted<Station>,
    /// Always there, but for the drop.
    task: Option<Task>,
    number: u64,
    due: Tick,
    slot: u32,
    missed: u32,
    mode: BatchMode,
    folds: bool,
    is_open: bool,
    is_last: bool,
}

const _: () = assert!(size_of::<Parcel>() <= 72, "it is moved into a mailbox and out of it");

impl Parcel {
    pub(crate) fn new(station: Counted<Station>, run: Run<Item>, folds: bool) -> Self {
        let Run { slot, number, batch, due, late: _, payload } = run;
        Self {
            station,
            task: Some(payload.task),
            number: number.number,
            due,
            slot,
            missed: batch.missed_runs,
            mode: batch.mode,
            folds: folds && batch.mode == BatchMode::FixedRate,
            is_open: false,
            is_last: false,
        }
    }

    /// Opens it, at the moment when it is taken out of the mailbox: from here on its run is an
    /// executing one. `None` if the job was cancelled meanwhile: then it is discarded.
    ///
    /// If a fixed rate is folded, the runs that have come due since it was sent, by the turns that
    /// were taken, are its own from here on.
    #[must_use = "dropping it completes the run"]
    pub fn open(mut self) -> Option<OpenParcel> {
        let common = &*self.station.common;
        if !self.station.jobs.open(self.slot) {
            return None;
        }
        self.is_open = true;
        let now = common.host.now();
        if self.folds {
            let mut lease = self.station.jobs.lease_wait(&common.relax());
            let more = lease.fold(self.slot, now);
            drop(lease);
            self.station.settle();
            self.missed = self.missed.saturating_add(more);
        }
        let batch = ExecutionBatch::folded(self.missed, self.mode);
        let late = late_by(now, self.due, common.resolution);
        let fire = FireContext::new(self.job(), batch, self.due, now, late);
        Some(OpenParcel { fire, parcel: self })
    }

    /// Whether the job was cancelled, so that it will not open.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.station.jobs.state(self.slot) == JobState::Cancelled
    }

    /// The job, as logs and warnings name it.
    #[must_use]
    pub fn job(&self) -> JobNumber {
        JobNumber { shard: self.station.jobs.id(), number: self.number }
    }

    /// How the job repeats.
    #[must_use]
    pub const fn mode(&self) -> BatchMode {
        self.mode
    }

    /// Completes the run, and ends the job: its receiver is gone. That is no failure, and nobody
    /// is told.
    pub fn end_job(mut self) {
        self.is_last = true;
    }

    /// For who carries it, and for the one who has opened it.
    pub(crate) fn task_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.task.as_mut()?.value_mut()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let common = &*self.station.common;
        let at = common.host.now();
        let mut lease = self.station.jobs.lease_wait(&common.relax());
        let (ended, calls_runner) = lease.receive(Returned {
            slot: self.slot,
            payload: Item { task, dispatcher: DispatcherId::DEFAULT },
            due: self.due,
            runs: self.missed.saturating_add(1),
            was_opened: self.is_open,
            is_last: self.is_last,
            at,
        });
        drop(lease);
        turn::settle(&self.station, ended, calls_runner);
        // Guarded: a handler that panics may be what drops it.
        common.ring();
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel")
            .field("job", &self.job())
            .field("due", &self.due)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// A parcel that was opened: its run is being executed until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it completes the run"]
pub struct OpenParcel {
    fire: FireContext,
    parcel: Parcel,
}

impl OpenParcel {
    /// What the run is told: with the time of the opening.
    #[must_use]
    pub const fn fire(&self) -> &FireContext {
        &self.fire
    }

    /// The task, to take its message or a copy of it; `None` if it is of another type.
    #[must_use]
    pub fn task_mut<T: ParcelTask>(&mut self) -> Option<&mut T> {
        self.parcel.task_mut()
    }

    /// As [`Parcel::end_job`].
    pub fn end_job(self) {
        self.parcel.end_job();
    }
}
