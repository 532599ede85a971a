//! The refusals since the last report, and who is about to report them.
//!
//! The window finds the worst mailbox by the algorithm *Space-Saving* (Metwally, Agrawal, El
//! Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005): it has
//! room for a few mailboxes; one that is not among them replaces the one with the fewest refusals
//! and inherits the number. So the window is small, and a mailbox with more than its share of all
//! refusals is found.
//!
//! # Protocol
//!
//! Roles: *senders*, any threads and interrupts, whose messages were refused; the *reporter*, which
//! a sender can wake; a *job* that the reporter schedules, and that a scheduler runs or drops. The
//! window is under a lock.
//!
//! ```text
//!   is_requested   the reporter was woken, and has not looked at the window since
//!   job            none | pending | refused, or dropped
//! ```
//!
//! 1. A sender adds its refusal, and decides under the same lock whether it has to wake the
//!    reporter: if nobody has been woken yet, and if the reporter would do something. Where there
//!    are jobs, that is so if there is none. Where there are none, or if the scheduler has refused
//!    or dropped the last one, it is so when the pause after the last report is over.
//! 2. The reporter clears `is_requested` and decides, under the same lock, whether to schedule a
//!    job (which is pending from then on), to report at once, or to leave that to a later sender.
//! 3. A job that runs is none any more, and takes the refusals, under one lock. A job that is
//!    refused, or dropped without having run, counts as refused: the next sender after the pause
//!    wakes the reporter.
//! 4. A sender neither allocates nor frees memory. If the path that it replaces is the last
//!    reference to it, because its actor is gone, the path is *retired*: it stays in the window
//!    until the reporter drops it. A sender that finds no room for it replaces nothing, and only
//!    the total counts its refusal.
//!
//! *Why no refusal is forgotten*: after each step the window is empty, or the reporter is woken, or
//! a job is pending, or the next refusal after the pause wakes the reporter. *Why it cannot hang*:
//! nobody waits for anybody; a sender that may have interrupted the holder of the lock tries it a
//! bounded number of times, and leaves the window as it is.

use core::{array, mem};

use clockjack_observe::backoff::WarningBackoff;
use clockjack_sync::primitive::{IS_MODEL, IS_SMALL};

/// How many mailboxes a window has room for.
pub(crate) const MAILBOXES_MAX: usize = if IS_SMALL || IS_MODEL { 2 } else { 16 };

/// See the [module](self). `K` is what identifies a mailbox, `P` its path.
pub(crate) struct Window<K, P> {
    mailboxes: [Option<RefusingMailbox<K, P>>; MAILBOXES_MAX],
    retired: [Option<P>; MAILBOXES_MAX],
    total: u64,
    backoff: WarningBackoff,
    is_requested: bool,
    job: Job,
}

struct RefusingMailbox<K, P> {
    key: K,
    path: P,
    refused: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Job {
    None,
    Pending,
    /// The scheduler has refused or dropped the last one.
    Refused,
}

/// What the reporter has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    Report,
    /// Schedule a job after this time, at least.
    Schedule(u64),
}

/// The refusals of a window.
pub(crate) struct Refusals<K, P> {
    mailboxes: [Option<RefusingMailbox<K, P>>; MAILBOXES_MAX],
    pub(crate) total: u64,
}

impl<K, P> Refusals<K, P> {
    /// The mailbox with the most refusals, and their number.
    pub(crate) fn into_worst(self) -> Option<(P, u64)> {
        let worst = self.mailboxes.into_iter().flatten().max_by_key(|one| one.refused);
        worst.map(|one| (one.path, one.refused))
    }
}

impl<K: Copy + PartialEq, P: Clone> Window<K, P> {
    pub(crate) fn new() -> Self {
        Self {
            mailboxes: array::from_fn(|_| None),
            retired: array::from_fn(|_| None),
            total: 0,
            backoff: WarningBackoff::new(),
            is_requested: false,
            job: Job::None,
        }
    }

    /// Counts a refusal (rule 4). `release` drops a path if that frees nothing, and returns it
    /// otherwise. For senders.
    pub(crate) fn add(&mut self, key: K, path: &P, release: impl FnOnce(P) -> Result<(), P>) {
        self.total += 1;
        if let Some(known) = self.mailboxes.iter_mut().flatten().find(|one| one.key == key) {
            known.refused += 1;
            return;
        }
        let count = |one: &Option<RefusingMailbox<K, P>>| one.as_ref().map_or(0, |one| one.refused);
        let least = self.mailboxes.iter_mut().min_by_key(|one| count(one));
        let least = least.expect("there is room for at least one mailbox");
        let refused = count(least) + 1;
        if let Some(replaced) = least.take()
            && let Err(path) = release(replaced.path)
        {
            let Some(room) = self.retired.iter_mut().find(|room| room.is_none()) else {
                *least = Some(RefusingMailbox { path, ..replaced });
                return;
            };
            *room = Some(path);
        }
        *least = Some(RefusingMailbox { key, path: path.clone(), refused });
    }

    /// Whether the caller has to wake the reporter (rule 1). For senders.
    pub(crate) fn request(&mut self, has_jobs: bool, now_ns: impl FnOnce() -> u64) -> bool {
        if self.is_requested {
            return false;
        }
        self.is_requested = match self.job {
            Job::None if has_jobs => true,
            Job::Pending if has_jobs => false,
            _ => self.backoff.wait_ns(now_ns()) == 0,
        };
        self.is_requested
    }

    /// What the reporter has to do now, and what it has to drop outside of the lock (rule 2).
    pub(crate) fn serve(
        &mut self,
        has_jobs: bool,
        now_ns: u64,
    ) -> (Step, [Option<P>; MAILBOXES_MAX]) {
        self.is_requested = false;
        let retired = mem::replace(&mut self.retired, array::from_fn(|_| None));
        (self.next_step(has_jobs, self.backoff.wait_ns(now_ns)), retired)
    }

    fn next_step(&mut self, has_jobs: bool, wait_ns: u64) -> Step {
        if self.total == 0 {
            return Step::Nothing;
        }
        match self.job {
            _ if !has_jobs && wait_ns == 0 => Step::Report,
            _ if !has_jobs => Step::Nothing,
            Job::Pending => Step::Nothing,
            // An overloaded scheduler is not asked for every message that is refused.
            Job::Refused if wait_ns > 0 => Step::Nothing,
            Job::None | Job::Refused => {
                self.job = Job::Pending;
                Step::Schedule(wait_ns)
            }
        }
    }

    /// The job runs (rule 3).
    pub(crate) fn job_runs(&mut self) {
        self.job = Job::None;
    }

    /// The job was refused, or dropped without having run (rule 3).
    pub(crate) fn job_is_dropped(&mut self) {
        self.job = Job::Refused;
    }

    /// Begins the next window, and returns the refusals of this one; none if it is empty.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Refusals<K, P>> {
        if self.total == 0 {
            return None;
        }
        self.backoff.note(now_ns);
        let mailboxes = mem::replace(&mut self.mailboxes, array::from_fn(|_| None));
        Some(Refusals { mailboxes, total: mem::take(&mut self.total) })
    }
}
