//! The atomic state of a job: its state, its handle count and a few flags in one word.
//!
//! ```text
//!            publish            expire            take              complete
//!  Pending ──────────► Scheduled ─────► Queued ─────────► Executing ─────────► Completed
//!     ▲                 │  │  ▲            │                │  │  ▲
//!     │ withdraw        │  │  └────────────┼─ finish run ───┘  │  │  a periodic job: to Scheduled,
//!     └─────────────────┘  │               │                   │  └  to Queued if a run is pending
//!                          └─ cancel ──────┴─► Cancelled ◄─────┘ cancel, of a periodic job
//!
//!  a job whose runs are sent as deliveries:
//!
//!            take           accept
//!  Queued ─────────► Sent ─────────► Executing       also from Sent: cancel; and the drop of the
//!                                                    delivery, with the transitions of Executing
//! ```
//!
//! # Rules
//!
//! 1. One compare-exchange on this word decides between a run and a cancel: the poller exchanges
//!    Queued for Executing (or for Sent), the canceller exchanges Scheduled, Queued or Sent for
//!    Cancelled. It is the linearization point of both. The poller that loses finds Cancelled and
//!    does not run the job; the canceller that loses finds Executing or later and reports that it
//!    is too late. A periodic job can also be cancelled while it executes: the current run is
//!    finished, and none follows.
//! 2. The *handle count* keeps the slot from being reused. The table counts as one handle while the
//!    job is live, and each [`Cancellable`](crate::Cancellable) counts as one. A slot is free when
//!    its handle count is zero and REMOTE_OP is clear. The owner of the last handle is the only
//!    thread that changes the word any more if REMOTE_OP is clear, since the state is final by
//!    then: it leaves the count as it is, and clears the word when it frees the slot.
//! 3. REMOTE_OP says that the slot is on the stack of remote operations, or about to be pushed. The
//!    thread that sets it pushes the slot. The guard holder that pops the slot clears the flag and
//!    applies the operation. So a slot is on the stack at most once.
//! 4. A job that was scheduled without the guard is accepted when a guard holder applies its remote
//!    operation. Until then its remote scheduler may withdraw it: a compare-exchange sets it back
//!    to Pending, and fails once REMOTE_OP is clear. A guard holder that applies the operation
//!    after the close refuses the job in the same way.
//! 5. A sent delivery can be cancelled like a waiting job, and accepted by a compare-exchange that
//!    fails after a cancel. The close sends nothing: it cancels deliveries that are waiting or due,
//!    and they cannot be marked to be run at the close. A delivery of a one-shot that was sent
//!    before counts as run: the close sets it to Executing, no cancel succeeds any more, and
//!    accepting it always succeeds. A periodic job is cancelled, whether its delivery was sent or
//!    not.

use core::fmt;

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering};

use crate::JobSpec;

const STATE: u32 = 0b111;
const REMOTE_OP: u32 = 1 << 3;
const RUN_ON_CLOSE: u32 = 1 << 4;
const PERIODIC: u32 = 1 << 5;
const DELIVERY: u32 = 1 << 6;
const HANDLE: u32 = 1 << 8;
const HANDLES_MAX: u32 = u32::MAX >> 8;

/// The state of a job in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum JobState {
    /// Not accepted yet, or not at all.
    Pending = 0,
    /// Waits for its deadline.
    Scheduled = 1,
    /// Due and in the list of due jobs, from which no poller has taken it yet: a cancel still
    /// succeeds.
    Queued = 2,
    /// A run has begun, or the close has ended it unheard: a cancel does not stop it any more.
    Executing = 3,
    /// Has run for the last time.
    Completed = 4,
    /// Was cancelled.
    Cancelled = 5,
    /// Its run was sent as a [delivery](crate::PendingDelivery) that was not accepted yet: a cancel
    /// still succeeds.
    Sent = 6,
}

impl JobState {
    const fn of(word: u32) -> Self {
        match word & STATE {
            1 => Self::Scheduled,
            2 => Self::Queued,
            3 => Self::Executing,
            4 => Self::Completed,
            5 => Self::Cancelled,
            6 => Self::Sent,
            _ => Self::Pending,
        }
    }

    /// Whether a run is in the hands of a poller, dispatcher or receiver that completes it.
    pub(crate) const fn is_handed_over(self) -> bool {
        matches!(self, Self::Executing | Self::Sent)
    }

    /// The printed name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Queued => "queued",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Sent => "sent",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobSnapshot(u32);

impl JobSnapshot {
    pub(crate) const fn state(self) -> JobState {
        JobState::of(self.0)
    }

    pub(crate) const fn has_remote_op(self) -> bool {
        self.0 & REMOTE_OP != 0
    }

    pub(crate) const fn has_handles(self) -> bool {
        self.0 >= HANDLE
    }

    const fn handles(self) -> u32 {
        self.0 / HANDLE
    }

    pub(crate) const fn runs_on_close(self) -> bool {
        self.0 & RUN_ON_CLOSE != 0
    }

    const fn is_periodic(self) -> bool {
        self.0 & PERIODIC != 0
    }

    pub(crate) const fn is_delivery(self) -> bool {
        self.0 & DELIVERY != 0
    }

    const fn with(self, state: JobState) -> u32 {
        (self.0 & !STATE) | state as u32
    }
}

/// A cancel that succeeded: what the canceller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelWon {
    /// The job was waiting: a guard holder must remove it from the wheel.
    Waiting {
        /// The canceller must push the slot as a remote operation, or clear REMOTE_OP under the
        /// guard. If false, the slot is already on the stack.
        push: bool,
    },
    /// The job is due, sent or running: the thread that takes it next, or ends the run, finds it
    /// cancelled.
    NotWaiting,
}

/// How a job that was taken is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// By the thread that has taken it.
    Run,
    /// As a delivery.
    Send,
}

/// What the close did with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseAction {
    /// It waited and is marked to be run: it is Queued now, and the caller adds it to the due list.
    Queued,
    /// It waited and is cancelled now: the caller reaps it.
    Cancelled,
    /// It was due or handed over and is cancelled now: the thread that has its run reaps it.
    CancelledRun,
    /// Another thread has cancelled it, and may not have pushed its remote operation yet.
    WasCancelled,
    /// Nothing to do: it has completed, was not accepted, or the thread that has its run reacts.
    Left,
}

pub(crate) struct AtomicJobState(AtomicU32);

impl AtomicJobState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Relaxed: a caller that acts on the value holds the guard or wins a compare-exchange.
    pub(crate) fn load_relaxed(&self) -> JobSnapshot {
        JobSnapshot(self.0.load(Ordering::Relaxed))
    }

    /// Acquire: pairs with every transition.
    pub(crate) fn load(&self) -> JobSnapshot {
        JobSnapshot(self.0.load(Ordering::Acquire))
    }

    /// Pending → Scheduled, with two handles: one of the table and one of the caller. Called by the
    /// owner of a free slot, which no other thread touches.
    pub(crate) fn publish(&self, is_periodic: bool, job: &JobSpec, has_remote_op: bool) {
        let mut word = JobState::Scheduled as u32 | (2 * HANDLE);
        word |= if is_periodic { PERIODIC } else { 0 };
        let is_marked = job.run_on_close && !is_periodic && !job.is_delivery;
        word |= if is_marked { RUN_ON_CLOSE } else { 0 };
        word |= if job.is_delivery { DELIVERY } else { 0 };
        word |= if has_remote_op { REMOTE_OP } else { 0 };
        // Release: the thread that wins the next transition sees the content of the slot.
        self.0.store(word, Ordering::Release);
    }

    /// A compare-exchange loop. `step` maps the current value to the new value and the result of
    /// the winner, or returns as its error the result for a value that is left unchanged.
    ///
    /// `read` is the ordering of the loads, including those after a failed exchange.
    #[inline(always)]
    fn update<T>(&self, read: Ordering, step: impl Fn(JobSnapshot) -> Result<(u32, T), T>) -> T {
        let mut seen = JobSnapshot(self.0.load(read));
        loop {
            let (new, won) = match step(seen) {
                Ok(step) => step,
                Err(stays) => return stays,
            };
            // AcqRel: the winner sees what the previous winner did, and the next one sees this.
            match self.0.compare_exchange_weak(seen.0, new, Ordering::AcqRel, read) {
                Ok(_) => return won,
                Err(now) => seen = JobSnapshot(now),
            }
        }
    }

    /// Rule 1: from one state to another. Flags and handle count may change concurrently.
    fn transition(&self, from: JobState, to: JobState) -> bool {
        // Relaxed: a thread that loses does nothing.
        self.update(Ordering::Relaxed, |seen| {
            if seen.state() == from { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// Scheduled → Queued.
    pub(crate) fn expire(&self) -> bool {
        self.transition(JobState::Scheduled, JobState::Queued)
    }

    /// Queued → Executing or Sent: the caller, and no other thread, runs it or sends it. A delivery
    /// is cancelled instead if `may_send` is false.
    #[inline]
    pub(crate) fn take(&self, may_send: bool) -> Option<Taken> {
        // This flag does not change while the job is live.
        if self.load_relaxed().is_delivery() {
            return self.take_delivery(may_send);
        }
        self.transition(JobState::Queued, JobState::Executing).then_some(Taken::Run)
    }

    #[inline(never)]
    fn take_delivery(&self, may_send: bool) -> Option<Taken> {
        if !may_send {
            // A canceller may have been faster.
            self.cancel(false);
            return None;
        }
        self.transition(JobState::Queued, JobState::Sent).then_some(Taken::Send)
    }

    /// Sent → Executing, by the owner of the delivery; also true if it is Executing by rule 5.
    /// False if it was cancelled.
    pub(crate) fn accept(&self) -> bool {
        // Acquire: as the exchange that is not needed in this case.
        self.transition(JobState::Sent, JobState::Executing)
            || self.load().state() == JobState::Executing
    }

    /// Executing, or Sent if the delivery was not accepted → `to`: the state of the next run, or
    /// Completed. False if it was cancelled.
    pub(crate) fn finish_run(&self, to: JobState) -> bool {
        // Relaxed: as in `transition`.
        self.update(Ordering::Relaxed, |seen| {
            if seen.state().is_handed_over() { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// As [`finish_run`](Self::finish_run) to Completed, and releases the handle of the table with
    /// the same exchange. `None` if it was cancelled; otherwise as
    /// [`release_handles`](Self::release_handles).
    pub(crate) fn complete(&self) -> Option<bool> {
        // Relaxed: as in `transition`.
        self.update(Ordering::Relaxed, |seen| {
            if !seen.state().is_handed_over() {
                return Err(None);
            }
            let after = JobSnapshot(seen.with(JobState::Completed) - HANDLE);
            Ok((after.0, Some(!(after.has_handles() || after.has_remote_op()))))
        })
    }

    /// Any state in which a cancel succeeds → Cancelled. Sets REMOTE_OP if the job waits and
    /// `push_remote_op` is true. `None` if it is too late or was already cancelled.
    pub(crate) fn cancel(&self, push_remote_op: bool) -> Option<CancelWon> {
        // Relaxed: as in `transition`.
        self.update(Ordering::Relaxed, |seen| {
            let (won, flag) = match seen.state() {
                JobState::Scheduled => {
                    let push = push_remote_op && !seen.has_remote_op();
                    (CancelWon::Waiting { push }, if push { REMOTE_OP } else { 0 })
                }
                JobState::Queued | JobState::Sent => (CancelWon::NotWaiting, 0),
                JobState::Executing if seen.is_periodic() => (CancelWon::NotWaiting, 0),
                _ => return Err(None),
            };
            Ok((seen.with(JobState::Cancelled) | flag, Some(won)))
        })
    }

    /// The close. A waiting job becomes Queued if it is marked, and Cancelled otherwise. A periodic
    /// job that is due or running is cancelled, and so is a delivery that is due. A delivery of a
    /// one-shot that was sent counts as run (rule 5). One compare-exchange also decides between
    /// setting the mark and the cancel: a mark that was granted is honoured.
    pub(crate) fn close(&self) -> CloseAction {
        // Acquire: the caller looks at jobs that are left unchanged.
        self.update(Ordering::Acquire, |seen| {
            let (to, closing) = match seen.state() {
                JobState::Scheduled if seen.has_remote_op() => return Err(CloseAction::Left),
                JobState::Scheduled if seen.runs_on_close() => {
                    (JobState::Queued, CloseAction::Queued)
                }
                JobState::Scheduled => (JobState::Cancelled, CloseAction::Cancelled),
                JobState::Queued | JobState::Executing | JobState::Sent if seen.is_periodic() => {
                    (JobState::Cancelled, CloseAction::CancelledRun)
                }
                JobState::Sent => (JobState::Executing, CloseAction::Left),
                JobState::Queued if seen.is_delivery() => {
                    (JobState::Cancelled, CloseAction::CancelledRun)
                }
                JobState::Cancelled => {
                    return Err(CloseAction::WasCancelled);
                }
                _ => return Err(CloseAction::Left),
            };
            Ok((seen.with(to), closing))
        })
    }

    /// Rule 3: the slot was popped from the stack. Returns the value before, with REMOTE_OP set.
    pub(crate) fn clear_remote_op(&self) -> JobSnapshot {
        // AcqRel: pairs with the thread that pushed, and with the release of the last handle.
        JobSnapshot(self.0.fetch_and(!REMOTE_OP, Ordering::AcqRel))
    }

    /// As [`clear_remote_op`](Self::clear_remote_op), but sets a job that is not accepted yet back
    /// to Pending, for its remote scheduler. Rule 4.
    pub(crate) fn clear_remote_op_closed(&self) -> JobSnapshot {
        // Relaxed: the exchange always changes the word, and its AcqRel orders it.
        self.update(Ordering::Relaxed, |seen| {
            let new = if seen.state() == JobState::Scheduled {
                seen.with(JobState::Pending) & !REMOTE_OP
            } else {
                seen.0 & !REMOTE_OP
            };
            Ok((new, seen))
        })
    }

    /// Called by the remote scheduler after the close: true if the job was not accepted, so that
    /// the content of the slot belongs to the caller again. Rule 4.
    pub(crate) fn withdraw(&self) -> bool {
        // Acquire: the caller touches the slot next, also if a guard holder set it back.
        self.update(Ordering::Acquire, |seen| match seen.state() {
            JobState::Pending => Err(true),
            JobState::Scheduled if seen.has_remote_op() => Ok((seen.with(JobState::Pending), true)),
            _ => Err(false),
        })
    }

    /// Marks a waiting one-shot to be run at the close. False if it is not waiting any more, and
    /// for a delivery (rule 5).
    pub(crate) fn mark_run_on_close(&self) -> bool {
        // Relaxed: the closer reads the mark by an exchange of this word.
        self.update(Ordering::Relaxed, |seen| {
            let is_handler = !seen.is_periodic() && !seen.is_delivery();
            let waits = seen.state() == JobState::Scheduled && is_handler;
            if waits { Ok((seen.0 | RUN_ON_CLOSE, true)) } else { Err(false) }
        })
    }

    /// Adds a handle.
    ///
    /// # Panics
    /// At the sixteen millionth handle of one job.
    pub(crate) fn add_handle(&self) {
        // Relaxed: the caller already has a handle, which keeps the slot in use.
        let before = self.0.fetch_add(HANDLE, Ordering::Relaxed);
        if before >> 8 == HANDLES_MAX - 1 {
            self.0.fetch_sub(HANDLE, Ordering::Relaxed);
            panic!("too many handles of one job");
        }
    }

    /// Releases `n` handles. True if they were the last and the slot is not on the stack: then the
    /// caller must free the slot with the guard, or by [`mark_for_free`](Self::mark_for_free).
    #[must_use = "true means that the caller has to free the slot"]
    pub(crate) fn release_handles(&self, n: u32) -> bool {
        // Acquire: as the subtraction below. If these are the last handles and the slot is not on
        // the stack, no other thread changes the word any more, and freeing the slot clears it.
        let seen = self.load();
        if seen.handles() == n && !seen.has_remote_op() {
            return true;
        }
        // AcqRel: all uses of the slot happen before its reuse.
        let before = self.0.fetch_sub(n * HANDLE, Ordering::AcqRel);
        let after = JobSnapshot(before - n * HANDLE);
        !after.has_handles() && !after.has_remote_op()
    }

    /// Sets REMOTE_OP on a slot, and its handle count to zero. The caller released the last handle,
    /// so no other thread changes the word; the caller pushes the slot.
    pub(crate) fn mark_for_free(&self) {
        let seen = self.load_relaxed();
        // Relaxed: the push publishes it.
        self.0.store((seen.0 % HANDLE) | REMOTE_OP, Ordering::Relaxed);
    }

    /// Resets the word of a free slot.
    pub(crate) fn clear(&self) {
        // Relaxed: the caller holds the guard; the next owner gets the slot from a guard holder.
        self.0.store(0, Ordering::Relaxed);
    }
}
