//! Handles to jobs.

use core::fmt;

use clockjack_sync::Arc;
use clockjack_time::Tick;

use crate::{JobId, JobState, scheduler::SchedulerShard};

/// A handle to a job. Dropping it changes nothing: the job continues.
///
/// You may keep it as long as you like: its answers stay correct. It keeps a small record of the
/// job in use, but not the task; in a store of fixed capacity that record counts as used.
pub struct Cancellable {
    shard: Arc<SchedulerShard>,
    slot: u32,
    /// The slot of its timer in the wheel when it was scheduled: a hint for the cancel.
    timer: u32,
}

const _: () = assert!(size_of::<Cancellable>() <= 16, "a handle is two words");

impl Cancellable {
    /// Takes over one handle of the slot.
    pub(crate) fn new(shard: Arc<SchedulerShard>, slot: u32, timer: u32) -> Self {
        Self { shard, slot, timer }
    }

    /// Cancels the job. Returns true at most once, and then no run of it begins any more. False for
    /// a one-shot whose handler runs or has run, and for a completed or cancelled job. A periodic
    /// job can be cancelled while its handler runs, also by the handler. A
    /// [delivery](crate::PendingDelivery) that was sent can be cancelled until it is accepted.
    pub fn cancel(&self) -> bool {
        let shard = &*self.shard;
        let shared = &*shard.shared;
        let cancel = shard.jobs.cancel(self.slot, self.timer, &|| shared.host.now());
        if let Some(payload) = cancel.payload {
            shared.discard(payload);
        }
        if cancel.wakes_poller {
            shared.host.wake_poller(shard.jobs.id() as usize, Tick::ZERO);
        } else {
            shard.flush();
        }
        // Last, because a waker may panic.
        shared.bus().wake_readers();
        cancel.won
    }

    /// Whether a cancel has succeeded, by any handle or by the scheduler. Once true, it stays true.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == JobState::Cancelled
    }

    /// Whether the job has run for the last time. True also for a job whose handler failed.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state() == JobState::Completed
    }

    /// The state of the job.
    #[must_use]
    pub fn state(&self) -> JobState {
        self.shard.jobs.state(self.slot)
    }

    /// Marks a waiting one-shot to be run, and not cancelled, if it still waits when the scheduler
    /// closes. False for periodic jobs, for [deliveries](crate::PendingDelivery), since a close
    /// puts nothing into mailboxes, and if the job is not waiting any more.
    pub fn run_on_close(&self) -> bool {
        self.shard.jobs.mark_run_on_close(self.slot)
    }

    /// Whether the close has reached the shard of the job.
    pub(crate) fn is_shard_closed(&self) -> bool {
        self.shard.jobs.is_closed()
    }

    /// Converts the handle to a guard that cancels the job on drop.
    #[must_use = "dropped at once it cancels at once"]
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop { handle: Some(self) }
    }

    /// The id of the job. It names the job as long as a handle exists.
    #[must_use]
    pub fn id(&self) -> JobId {
        JobId { shard: self.shard.jobs.id(), slot: self.slot }
    }
}

impl Clone for Cancellable {
    /// # Panics
    ///
    /// At the sixteen millionth handle of one job.
    fn clone(&self) -> Self {
        self.shard.jobs.add_handle(self.slot);
        Self { shard: self.shard.clone(), slot: self.slot, timer: self.timer }
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.shard.jobs.release_handles(self.slot, 1);
        self.shard.flush();
    }
}

impl fmt::Debug for Cancellable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellable").field("id", &self.id()).field("state", &self.state()).finish()
    }
}

/// Cancels its job when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop {
    /// `None` only during the drop and `keep`.
    handle: Option<Cancellable>,
}

impl CancelOnDrop {
    /// Returns the handle, so that a drop does not cancel the job any more.
    #[must_use]
    pub fn keep(mut self) -> Cancellable {
        self.handle.take().expect("it is taken here or by the drop")
    }
}

impl core::ops::Deref for CancelOnDrop {
    type Target = Cancellable;

    fn deref(&self) -> &Cancellable {
        self.handle.as_ref().expect("it is taken when the guard goes")
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.cancel();
        }
    }
}
