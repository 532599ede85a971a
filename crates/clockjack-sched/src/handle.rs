//! Handles of jobs.

use core::fmt;

use clockjack_sync::Counted;

use crate::{JobId, JobState, scheduler::SchedulerShard};

/// A handle of a job. Dropping it changes nothing: the job goes on.
///
/// It may be kept for ever: what it says of its job stays true. It keeps a small record of it, not
/// what the job was to deliver; in a store of fixed capacity that record is a used place.
pub struct Cancellable {
    shard: Counted<SchedulerShard>,
    slot: u32,
}

const _: () = assert!(size_of::<Cancellable>() <= 16, "a handle is two words");

impl Cancellable {
    /// Takes over a pin of the slot.
    pub(crate) fn new(shard: Counted<SchedulerShard>, slot: u32) -> Self {
        Self { shard, slot }
    }

    /// Cancels the job: true exactly once, and then no run of it begins any more. False for a
    /// one-shot whose handler runs or has run, and for whatever has ended. A periodic job can be
    /// cancelled while its handler runs, also by the handler. A [delivery](crate::PendingDelivery) that was
    /// sent can be cancelled until it is opened, and then does not open.
    pub fn cancel(&self) -> bool {
        let shard = &*self.shard;
        let shared = &*shard.shared;
        let cancel = shard.jobs.cancel(self.slot, &|| shared.host.now());
        if let Some(payload) = cancel.payload {
            shared.discard(payload);
        }
        if cancel.wakes_poller {
            shared.host.wake_poller(shard.jobs.id() as usize);
        } else {
            shard.flush();
        }
        // Last, since a waker may panic.
        shared.bus().wake_readers();
        cancel.won
    }

    /// Whether a cancel has succeeded, by whomever. Once true, it stays so.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == JobState::Cancelled
    }

    /// Whether the job has run for the last time. A job whose handler failed is one of these.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state() == JobState::Completed
    }

    /// Where the job is in its life.
    #[must_use]
    pub fn state(&self) -> JobState {
        self.shard.jobs.state(self.slot)
    }

    /// Marks a one-shot that waits to be run, and not cancelled, if it still waits when the
    /// scheduler closes. False for periodic jobs, and if it waits no more.
    pub fn run_on_close(&self) -> bool {
        self.shard.jobs.mark_run_on_close(self.slot)
    }

    /// Whether a close has reached the job's shard.
    pub(crate) fn is_shard_closed(&self) -> bool {
        self.shard.jobs.is_closed()
    }

    /// A guard that cancels the job when it is dropped.
    #[must_use = "dropped at once it cancels at once"]
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop { handle: Some(self) }
    }

    /// The job's place. It names the job as long as a handle is kept.
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
        Self { shard: self.shard.clone(), slot: self.slot }
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
    /// Always there, but for the moment of the drop or of `keep`.
    handle: Option<Cancellable>,
}

impl CancelOnDrop {
    /// The handle; the job is cancelled by a drop no more.
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
