//! The word of a job: its state, its pins and a few flags, changed together.
//!
//! ```text
//!            publish            expire            take              complete
//!  Pending ──────────► Scheduled ─────► Queued ─────────► Executing ─────────► Completed
//!     ▲                 │  │  ▲            │                │  │  ▲
//!     │ withdraw        │  │  └────────────┼── go on ───────┘  │  │  a periodic job: to Scheduled,
//!     └─────────────────┘  │               │                   │  └  to Queued if a run is owed
//!                          └─ cancel ──────┴─► Cancelled ◄─────┘ cancel, of a periodic job
//!
//!  a job whose runs are sent as deliveries:
//!
//!            take           open
//!  Queued ─────────► Sent ─────────► Executing       from Sent, too: cancel; and when the delivery
//!                                                    is dropped, all that follows Executing
//! ```
//!
//! # Rules
//!
//! 1. What decides between a run and a cancel is one compare-exchange on this word; everybody who
//!    loses it leaves the job to the winner.
//! 2. A *pin* keeps the slot from being used again. The table has one while the job lives, each
//!    handle has one. A slot is free when it has no pin and no note lies on it.
//! 3. REMOTE_OP says that the slot lies on the stack of notes, or is on its way there. Who sets it
//!    pushes; who takes the slot off the stack clears it, and does what then is to be done. So a
//!    slot is on the stack once at the most.
//! 4. A job that was posted without the guard is accepted when its note is taken up. Until then its
//!    poster may withdraw it, which puts it back to Pending by an exchange that fails once REMOTE_OP is
//!    gone; and whoever takes the note up after the close refuses it in the same way.
//! 5. A delivery that was sent is cancelled as if it still waited, and opened by an exchange that
//!    fails then. At the close it is cancelled; but one of a job that is marked to be run then is
//!    put to Executing in its stead: it counts as run, no cancel wins any more, and its opening
//!    finds that it need not be decided.

use core::fmt;

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicU32, Ordering},
};

use crate::JobSpec;

const STATE: u32 = 0b111;
const REMOTE_OP: u32 = 1 << 3;
const RUN_ON_CLOSE: u32 = 1 << 4;
const PERIODIC: u32 = 1 << 5;
const DELIVERY: u32 = 1 << 6;
const HANDLE: u32 = 1 << 8;
const HANDLES_MAX: u32 = u32::MAX >> 8;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum JobState {
    /// Not accepted yet, or not at all.
    Pending = 0,
    /// Waits for its time.
    Scheduled = 1,
    /// Its time has come, and nobody has taken it yet: a cancel still wins.
    Queued = 2,
    /// Its handler runs.
    Executing = 3,
    /// It has run for the last time.
    Completed = 4,
    /// A cancel won.
    Cancelled = 5,
    /// Its run is on its way as a [delivery](crate::PendingDelivery) that nobody has opened yet: a cancel
    /// still wins.
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

    /// Whether a run of it is in somebody's hands, who completes it.
    pub(crate) const fn is_handed_over(self) -> bool {
        matches!(self, Self::Executing | Self::Sent)
    }

    /// The name as it is printed.
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

/// What a word says at some moment.
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

    pub(crate) const fn runs_on_close(self) -> bool {
        self.0 & RUN_ON_CLOSE != 0
    }

    const fn is_periodic(self) -> bool {
        self.0 & PERIODIC != 0
    }

    const fn is_delivery(self) -> bool {
        self.0 & DELIVERY != 0
    }

    const fn with(self, state: JobState) -> u32 {
        (self.0 & !STATE) | state as u32
    }
}

/// A won cancel: what the winner has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelWon {
    /// It waited: somebody has to take it out of the wheel.
    Waiting {
        /// The winner must push the slot on the stack of notes, or clear REMOTE_OP under the guard;
        /// otherwise it is there already.
        push: bool,
    },
    /// It was handed over, or runs: who has it finds out.
    HandedOver,
}

/// How a job that was taken is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// By the one who has taken it.
    Run,
    /// By a delivery.
    Send,
}

/// What the close has made of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseAction {
    /// It waited and is marked to be run: it is queued, and the caller lists it.
    Queued,
    /// It waited, and is cancelled: the caller reaps it.
    Cancelled,
    /// Somebody else has cancelled it, and may not have left a note yet.
    WasCancelled,
    /// Nothing is to be done: it has ended, was not accepted, or is in hands that find out.
    Left,
}

pub(crate) struct AtomicJobState(AtomicU32);

impl AtomicJobState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Relaxed: who acts on it has the guard or wins an exchange.
    pub(crate) fn load_relaxed(&self) -> JobSnapshot {
        JobSnapshot(self.0.load(Ordering::Relaxed))
    }

    /// Acquire: pairs with every transition.
    pub(crate) fn load(&self) -> JobSnapshot {
        JobSnapshot(self.0.load(Ordering::Acquire))
    }

    /// Pending → Scheduled with a pin of the table and one of a handle. By the owner of a free
    /// slot, which nobody else touches.
    pub(crate) fn publish(&self, is_periodic: bool, job: &JobSpec, has_remote_op: bool) {
        let mut word = JobState::Scheduled as u32 | (2 * HANDLE);
        word |= if is_periodic { PERIODIC } else { 0 };
        word |= if job.run_on_close && !is_periodic { RUN_ON_CLOSE } else { 0 };
        word |= if job.is_delivery { DELIVERY } else { 0 };
        word |= if has_remote_op { REMOTE_OP } else { 0 };
        // Release: what was written to the slot is visible to who wins a transition.
        self.0.store(word, Ordering::Release);
    }

    /// Every transition that is decided by an exchange: `step` gives the word that follows the one
    /// seen and what the winner says, or by its error what is said where nothing changes. Whoever
    /// comes second asks again.
    ///
    /// What is seen is read by `read`, also after a loss.
    #[inline(always)]
    fn update<T>(&self, read: Ordering, step: impl Fn(JobSnapshot) -> Result<(u32, T), T>) -> T {
        let mut seen = JobSnapshot(self.0.load(read));
        loop {
            let (new, won) = match step(seen) {
                Ok(step) => step,
                Err(stays) => return stays,
            };
            // AcqRel: the winner sees what the last one did, and the next sees what this one did.
            match self.0.compare_exchange_weak(seen.0, new, Ordering::AcqRel, read) {
                Ok(_) => return won,
                Err(now) => seen = JobSnapshot(now),
            }
        }
    }

    /// Rule 1: from exactly one state to another, whatever flags and pins there are meanwhile.
    fn transition(&self, from: JobState, to: JobState) -> bool {
        // Relaxed: who does not win does nothing.
        self.update(Ordering::Relaxed, |seen| {
            if seen.state() == from { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// Scheduled → Queued.
    pub(crate) fn expire(&self) -> bool {
        if mutant!("job-expire-by-store") {
            let seen = self.load_relaxed();
            self.0.store(seen.with(JobState::Queued), Ordering::Release);
            return true;
        }
        self.transition(JobState::Scheduled, JobState::Queued)
    }

    /// Queued → Executing, or Sent: the caller, and nobody else, runs it or sends it.
    #[inline]
    pub(crate) fn take(&self, is_closed: bool) -> Option<Taken> {
        // Which of both it is does not change while the job lives.
        let seen = self.load_relaxed();
        if seen.is_delivery() {
            return self.take_delivery(is_closed);
        }
        if mutant!("job-take-by-store") {
            self.0.store(seen.with(JobState::Executing), Ordering::Release);
            return Some(Taken::Run);
        }
        self.transition(JobState::Queued, JobState::Executing).then_some(Taken::Run)
    }

    /// Rule 5: what is sent because it is marked to be run at the close is Executing at once. By
    /// the holder of the guard, and the mark is for those that wait: it does not change either.
    #[inline(never)]
    fn take_delivery(&self, is_closed: bool) -> Option<Taken> {
        let is_marked =
            self.load_relaxed().runs_on_close() && !mutant!("parcel-granted-late-undecided");
        let is_decided = (is_closed && is_marked) || mutant!("parcel-decided-when-sent");
        let to = if is_decided { JobState::Executing } else { JobState::Sent };
        self.transition(JobState::Queued, to).then_some(Taken::Send)
    }

    /// Sent → Executing, by the owner of the delivery; or rule 5 has it there already. False if it
    /// was cancelled.
    pub(crate) fn accept(&self) -> bool {
        if mutant!("parcel-open-by-store") {
            let seen = self.load();
            let is_sent = seen.state().is_handed_over();
            if is_sent {
                self.0.store(seen.with(JobState::Executing), Ordering::Release);
            }
            return is_sent;
        }
        // Acquire: as of an exchange that is not needed any more.
        self.transition(JobState::Sent, JobState::Executing)
            || self.load().state() == JobState::Executing
    }

    /// Executing, or Sent if the delivery was not opened → the state in which it goes on, or
    /// Completed. False if it was cancelled.
    pub(crate) fn finish_run(&self, to: JobState) -> bool {
        if mutant!("job-go-on-by-store") && to != JobState::Completed {
            let seen = self.load_relaxed();
            self.0.store(seen.with(to), Ordering::Release);
            return true;
        }
        // Relaxed: as in `transition`.
        self.update(Ordering::Relaxed, |seen| {
            if seen.state().is_handed_over() { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// Any state from which a cancel wins → Cancelled, with a note if the job waits and `note` says
    /// so. `None` if it is too late, or was done before.
    pub(crate) fn cancel(&self, note: bool) -> Option<CancelWon> {
        // Relaxed: as in `transition`.
        self.update(Ordering::Relaxed, |seen| {
            let (won, noted) = match seen.state() {
                JobState::Scheduled => {
                    let push = note && !seen.has_remote_op();
                    (CancelWon::Waiting { push }, if push { REMOTE_OP } else { 0 })
                }
                JobState::Queued | JobState::Sent => (CancelWon::HandedOver, 0),
                JobState::Executing if seen.is_periodic() => (CancelWon::HandedOver, 0),
                _ => return Err(None),
            };
            Ok((seen.with(JobState::Cancelled) | noted, Some(won)))
        })
    }

    /// At the close, what waits is queued if it is marked and cancelled else, and a periodic job
    /// that is due or runs is cancelled; so is a delivery that is not opened or not sent yet, unless
    /// it is marked (rule 5). One exchange decides also between the mark and the cancel: a mark
    /// that was granted is kept.
    pub(crate) fn close(&self) -> CloseAction {
        // Acquire: what is left alone is looked at by the caller.
        self.update(Ordering::Acquire, |seen| {
            let (to, closing) = match seen.state() {
                JobState::Scheduled if seen.has_remote_op() => return Err(CloseAction::Left),
                JobState::Scheduled if seen.runs_on_close() && !mutant!("job-close-drops-mark") => {
                    (JobState::Queued, CloseAction::Queued)
                }
                JobState::Scheduled => (JobState::Cancelled, CloseAction::Cancelled),
                JobState::Queued | JobState::Executing | JobState::Sent if seen.is_periodic() => {
                    (JobState::Cancelled, CloseAction::Left)
                }
                JobState::Sent if seen.runs_on_close() && !mutant!("parcel-close-drops-mark") => {
                    (JobState::Executing, CloseAction::Left)
                }
                JobState::Queued if !seen.is_delivery() || seen.runs_on_close() => {
                    return Err(CloseAction::Left);
                }
                JobState::Queued | JobState::Sent if !mutant!("parcel-close-leaves-sent") => {
                    (JobState::Cancelled, CloseAction::Left)
                }
                JobState::Cancelled if !mutant!("job-close-skips-cancelled") => {
                    return Err(CloseAction::WasCancelled);
                }
                _ => return Err(CloseAction::Left),
            };
            Ok((seen.with(to), closing))
        })
    }

    /// Rule 3: the slot was taken off the stack. What the word said then, REMOTE_OP included.
    pub(crate) fn clear_remote_op(&self) -> JobSnapshot {
        // AcqRel: pairs with whoever pushed, and with whoever lets go of the last pin.
        JobSnapshot(self.0.fetch_and(!REMOTE_OP, Ordering::AcqRel))
    }

    /// Rule 4: as [`clear_remote_op`](Self::clear_remote_op), but a job that is not accepted yet is put back to
    /// Pending, for its poster.
    pub(crate) fn clear_remote_op_closed(&self) -> JobSnapshot {
        // Relaxed: it changes the word in any case, and what counts is what it was then.
        self.update(Ordering::Relaxed, |seen| {
            let new = if seen.state() == JobState::Scheduled {
                seen.with(JobState::Pending) & !REMOTE_OP
            } else {
                seen.0 & !REMOTE_OP
            };
            Ok((new, seen))
        })
    }

    /// Rule 4, by the poster after the close: true if the job was not accepted, and all that is in
    /// the slot is the poster's again.
    pub(crate) fn withdraw(&self) -> bool {
        // Acquire: what is in the slot is touched next, also if another has put it back.
        self.update(Ordering::Acquire, |seen| match seen.state() {
            JobState::Pending => Err(true),
            JobState::Scheduled if seen.has_remote_op() || mutant!("job-withdraw-late") => {
                Ok((seen.with(JobState::Pending), true))
            }
            _ => Err(false),
        })
    }

    /// Marks a one-shot that waits to be run at the close. False if it waits no more.
    pub(crate) fn mark_run_on_close(&self) -> bool {
        // Relaxed: the holder that closes reads the mark by an exchange of this word.
        self.update(Ordering::Relaxed, |seen| {
            let waits = seen.state() == JobState::Scheduled && !seen.is_periodic();
            if waits { Ok((seen.0 | RUN_ON_CLOSE, true)) } else { Err(false) }
        })
    }

    /// One more handle.
    ///
    /// # Panics
    /// At the sixteen millionth handle of one job.
    pub(crate) fn add_handle(&self) {
        // Relaxed: the new handle is made from one that holds the slot.
        let before = self.0.fetch_add(HANDLE, Ordering::Relaxed);
        if before >> 8 == HANDLES_MAX - 1 {
            self.0.fetch_sub(HANDLE, Ordering::Relaxed);
            panic!("too many handles of one job");
        }
    }

    /// Pins fewer. True if that was the last, nothing lies on the stack, and so the caller must see
    /// to it that the slot is freed: with the guard, or by [`mark_for_free`](Self::mark_for_free).
    #[must_use = "true means that the caller has to free the slot"]
    pub(crate) fn release_handles(&self, pins: u32) -> bool {
        // AcqRel: what was done with the slot happens before it is used again.
        let before = self.0.fetch_sub(pins * HANDLE, Ordering::AcqRel);
        let after = JobSnapshot(before - pins * HANDLE);
        !after.has_handles() && (!after.has_remote_op() || mutant!("job-unpin-over-note"))
    }

    /// REMOTE_OP on a slot that nobody pins, by who let go of it last, who pushes it then.
    pub(crate) fn mark_for_free(&self) {
        // Relaxed: the push publishes it.
        self.0.fetch_or(REMOTE_OP, Ordering::Relaxed);
    }

    /// The slot is free.
    pub(crate) fn clear(&self) {
        // Relaxed: by the holder of the guard; whoever gets the slot gets it from the holder.
        self.0.store(0, Ordering::Relaxed);
    }
}
