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
//!  a job whose runs are sent as parcels:
//!
//!            take           open
//!  Queued ─────────► Sent ─────────► Executing       from Sent, too: cancel; and when the parcel
//!                                                    is dropped, all that follows Executing
//! ```
//!
//! # Rules
//!
//! 1. What decides between a run and a cancel is one compare-exchange on this word; everybody who
//!    loses it leaves the job to the winner.
//! 2. A *pin* keeps the slot from being used again. The table has one while the job lives, each
//!    handle has one. A slot is free when it has no pin and no note lies on it.
//! 3. NOTED says that the slot lies on the stack of notes, or is on its way there. Who sets it
//!    pushes; who takes the slot off the stack clears it, and does what then is to be done. So a
//!    slot is on the stack once at the most.
//! 4. A job that was posted without the lease is accepted when its note is taken up. Until then its
//!    poster may withdraw it, which puts it back to Pending by an exchange that fails once NOTED is
//!    gone; and whoever takes the note up after the close refuses it in the same way.
//! 5. A parcel that was sent is cancelled as if it still waited, and opened by an exchange that
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
const NOTED: u32 = 1 << 3;
const RUN_ON_CLOSE: u32 = 1 << 4;
const PERIODIC: u32 = 1 << 5;
const PARCEL: u32 = 1 << 6;
const PIN: u32 = 1 << 8;
const PINS_MAX: u32 = u32::MAX >> 8;

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
    /// Its run is on its way as a [parcel](crate::Parcel) that nobody has opened yet: a cancel
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
pub(crate) struct Seen(u32);

impl Seen {
    pub(crate) const fn state(self) -> JobState {
        JobState::of(self.0)
    }

    pub(crate) const fn is_noted(self) -> bool {
        self.0 & NOTED != 0
    }

    pub(crate) const fn is_pinned(self) -> bool {
        self.0 >= PIN
    }

    pub(crate) const fn runs_on_close(self) -> bool {
        self.0 & RUN_ON_CLOSE != 0
    }

    const fn is_periodic(self) -> bool {
        self.0 & PERIODIC != 0
    }

    const fn is_parcel(self) -> bool {
        self.0 & PARCEL != 0
    }

    const fn with(self, state: JobState) -> u32 {
        (self.0 & !STATE) | state as u32
    }
}

/// A won cancel: what the winner has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Won {
    /// It waited: somebody has to take it out of the wheel.
    Waiting {
        /// The winner must push the slot on the stack of notes, or clear NOTED under the lease;
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
    /// By a parcel.
    Send,
}

/// What the close has made of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It waited and is marked to be run: it is queued, and the caller lists it.
    Queued,
    /// It waited, and is cancelled: the caller reaps it.
    Cancelled,
    /// Somebody else has cancelled it, and may not have left a note yet.
    WasCancelled,
    /// Nothing is to be done: it has ended, was not accepted, or is in hands that find out.
    Left,
}

pub(crate) struct JobWord(AtomicU32);

impl JobWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Relaxed: who acts on it has the lease or wins an exchange.
    pub(crate) fn peek(&self) -> Seen {
        Seen(self.0.load(Ordering::Relaxed))
    }

    /// Acquire: pairs with every transition.
    pub(crate) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Pending → Scheduled with a pin of the table and one of a handle. By the owner of a free
    /// slot, which nobody else touches.
    pub(crate) fn publish(&self, is_periodic: bool, job: &JobSpec, is_noted: bool) {
        let mut word = JobState::Scheduled as u32 | (2 * PIN);
        word |= if is_periodic { PERIODIC } else { 0 };
        word |= if job.run_on_close && !is_periodic { RUN_ON_CLOSE } else { 0 };
        word |= if job.is_parcel { PARCEL } else { 0 };
        word |= if is_noted { NOTED } else { 0 };
        // Release: what was written to the slot is visible to who wins a transition.
        self.0.store(word, Ordering::Release);
    }

    /// Every transition that is decided by an exchange: `step` gives the word that follows the one
    /// seen and what the winner says, or by its error what is said where nothing changes. Whoever
    /// comes second asks again.
    ///
    /// What is seen is read by `read`, also after a loss.
    #[inline(always)]
    fn change<T>(&self, read: Ordering, step: impl Fn(Seen) -> Result<(u32, T), T>) -> T {
        let mut seen = Seen(self.0.load(read));
        loop {
            let (new, won) = match step(seen) {
                Ok(step) => step,
                Err(stays) => return stays,
            };
            // AcqRel: the winner sees what the last one did, and the next sees what this one did.
            match self.0.compare_exchange_weak(seen.0, new, Ordering::AcqRel, read) {
                Ok(_) => return won,
                Err(now) => seen = Seen(now),
            }
        }
    }

    /// Rule 1: from exactly one state to another, whatever flags and pins there are meanwhile.
    fn exchange(&self, from: JobState, to: JobState) -> bool {
        // Relaxed: who does not win does nothing.
        self.change(Ordering::Relaxed, |seen| {
            if seen.state() == from { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// Scheduled → Queued.
    pub(crate) fn expire(&self) -> bool {
        if mutant!("job-expire-by-store") {
            let seen = self.peek();
            self.0.store(seen.with(JobState::Queued), Ordering::Release);
            return true;
        }
        self.exchange(JobState::Scheduled, JobState::Queued)
    }

    /// Queued → Executing, or Sent: the caller, and nobody else, runs it or sends it.
    #[inline]
    pub(crate) fn take(&self, is_closed: bool) -> Option<Taken> {
        // Which of both it is does not change while the job lives.
        let seen = self.peek();
        if seen.is_parcel() {
            return self.take_parcel(is_closed);
        }
        if mutant!("job-take-by-store") {
            self.0.store(seen.with(JobState::Executing), Ordering::Release);
            return Some(Taken::Run);
        }
        self.exchange(JobState::Queued, JobState::Executing).then_some(Taken::Run)
    }

    /// Rule 5: what is sent because it is marked to be run at the close is Executing at once. By
    /// the holder of the lease, and the mark is for those that wait: it does not change either.
    #[inline(never)]
    fn take_parcel(&self, is_closed: bool) -> Option<Taken> {
        let is_marked = self.peek().runs_on_close() && !mutant!("parcel-granted-late-undecided");
        let is_decided = (is_closed && is_marked) || mutant!("parcel-decided-when-sent");
        let to = if is_decided { JobState::Executing } else { JobState::Sent };
        self.exchange(JobState::Queued, to).then_some(Taken::Send)
    }

    /// Sent → Executing, by the owner of the parcel; or rule 5 has it there already. False if it
    /// was cancelled.
    pub(crate) fn open(&self) -> bool {
        if mutant!("parcel-open-by-store") {
            let seen = self.look();
            let is_sent = seen.state().is_handed_over();
            if is_sent {
                self.0.store(seen.with(JobState::Executing), Ordering::Release);
            }
            return is_sent;
        }
        // Acquire: as of an exchange that is not needed any more.
        self.exchange(JobState::Sent, JobState::Executing)
            || self.look().state() == JobState::Executing
    }

    /// Executing, or Sent if the parcel was not opened → the state in which it goes on, or
    /// Completed. False if it was cancelled.
    pub(crate) fn leave(&self, to: JobState) -> bool {
        if mutant!("job-go-on-by-store") && to != JobState::Completed {
            let seen = self.peek();
            self.0.store(seen.with(to), Ordering::Release);
            return true;
        }
        // Relaxed: as in `exchange`.
        self.change(Ordering::Relaxed, |seen| {
            if seen.state().is_handed_over() { Ok((seen.with(to), true)) } else { Err(false) }
        })
    }

    /// Any state from which a cancel wins → Cancelled, with a note if the job waits and `note` says
    /// so. `None` if it is too late, or was done before.
    pub(crate) fn cancel(&self, note: bool) -> Option<Won> {
        // Relaxed: as in `exchange`.
        self.change(Ordering::Relaxed, |seen| {
            let (won, noted) = match seen.state() {
                JobState::Scheduled => {
                    let push = note && !seen.is_noted();
                    (Won::Waiting { push }, if push { NOTED } else { 0 })
                }
                JobState::Queued | JobState::Sent => (Won::HandedOver, 0),
                JobState::Executing if seen.is_periodic() => (Won::HandedOver, 0),
                _ => return Err(None),
            };
            Ok((seen.with(JobState::Cancelled) | noted, Some(won)))
        })
    }

    /// At the close, what waits is queued if it is marked and cancelled else, and a periodic job
    /// that is due or runs is cancelled; so is a parcel that is not opened or not sent yet, unless
    /// it is marked (rule 5). One exchange decides also between the mark and the cancel: a mark
    /// that was granted is kept.
    pub(crate) fn close(&self) -> Closing {
        // Acquire: what is left alone is looked at by the caller.
        self.change(Ordering::Acquire, |seen| {
            let (to, closing) = match seen.state() {
                JobState::Scheduled if seen.is_noted() => return Err(Closing::Left),
                JobState::Scheduled if seen.runs_on_close() && !mutant!("job-close-drops-mark") => {
                    (JobState::Queued, Closing::Queued)
                }
                JobState::Scheduled => (JobState::Cancelled, Closing::Cancelled),
                JobState::Queued | JobState::Executing | JobState::Sent if seen.is_periodic() => {
                    (JobState::Cancelled, Closing::Left)
                }
                JobState::Sent if seen.runs_on_close() && !mutant!("parcel-close-drops-mark") => {
                    (JobState::Executing, Closing::Left)
                }
                JobState::Queued if !seen.is_parcel() || seen.runs_on_close() => {
                    return Err(Closing::Left);
                }
                JobState::Queued | JobState::Sent if !mutant!("parcel-close-leaves-sent") => {
                    (JobState::Cancelled, Closing::Left)
                }
                JobState::Cancelled if !mutant!("job-close-skips-cancelled") => {
                    return Err(Closing::WasCancelled);
                }
                _ => return Err(Closing::Left),
            };
            Ok((seen.with(to), closing))
        })
    }

    /// Rule 3: the slot was taken off the stack. What the word said then, NOTED included.
    pub(crate) fn take_up(&self) -> Seen {
        // AcqRel: pairs with whoever pushed, and with whoever lets go of the last pin.
        Seen(self.0.fetch_and(!NOTED, Ordering::AcqRel))
    }

    /// Rule 4: as [`take_up`](Self::take_up), but a job that is not accepted yet is put back to
    /// Pending, for its poster.
    pub(crate) fn take_up_closed(&self) -> Seen {
        // Relaxed: it changes the word in any case, and what counts is what it was then.
        self.change(Ordering::Relaxed, |seen| {
            let new = if seen.state() == JobState::Scheduled {
                seen.with(JobState::Pending) & !NOTED
            } else {
                seen.0 & !NOTED
            };
            Ok((new, seen))
        })
    }

    /// Rule 4, by the poster after the close: true if the job was not accepted, and all that is in
    /// the slot is the poster's again.
    pub(crate) fn withdraw(&self) -> bool {
        // Acquire: what is in the slot is touched next, also if another has put it back.
        self.change(Ordering::Acquire, |seen| match seen.state() {
            JobState::Pending => Err(true),
            JobState::Scheduled if seen.is_noted() || mutant!("job-withdraw-late") => {
                Ok((seen.with(JobState::Pending), true))
            }
            _ => Err(false),
        })
    }

    /// Marks a one-shot that waits to be run at the close. False if it waits no more.
    pub(crate) fn mark_run_on_close(&self) -> bool {
        // Relaxed: the holder that closes reads the mark by an exchange of this word.
        self.change(Ordering::Relaxed, |seen| {
            let waits = seen.state() == JobState::Scheduled && !seen.is_periodic();
            if waits { Ok((seen.0 | RUN_ON_CLOSE, true)) } else { Err(false) }
        })
    }

    /// One more handle.
    ///
    /// # Panics
    /// At the sixteen millionth handle of one job.
    pub(crate) fn pin(&self) {
        // Relaxed: the new handle is made from one that holds the slot.
        let before = self.0.fetch_add(PIN, Ordering::Relaxed);
        if before >> 8 == PINS_MAX - 1 {
            self.0.fetch_sub(PIN, Ordering::Relaxed);
            panic!("too many handles of one job");
        }
    }

    /// Pins fewer. True if that was the last, nothing lies on the stack, and so the caller must see
    /// to it that the slot is freed: with the lease, or by [`note_free`](Self::note_free).
    #[must_use = "true means that the caller has to free the slot"]
    pub(crate) fn unpin(&self, pins: u32) -> bool {
        // AcqRel: what was done with the slot happens before it is used again.
        let before = self.0.fetch_sub(pins * PIN, Ordering::AcqRel);
        let after = Seen(before - pins * PIN);
        !after.is_pinned() && (!after.is_noted() || mutant!("job-unpin-over-note"))
    }

    /// NOTED on a slot that nobody pins, by who let go of it last, who pushes it then.
    pub(crate) fn note_free(&self) {
        // Relaxed: the push publishes it.
        self.0.fetch_or(NOTED, Ordering::Relaxed);
    }

    /// The slot is free.
    pub(crate) fn clear(&self) {
        // Relaxed: by the holder of the lease; whoever gets the slot gets it from the holder.
        self.0.store(0, Ordering::Relaxed);
    }
}
