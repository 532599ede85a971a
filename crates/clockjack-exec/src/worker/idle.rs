//! The idle protocol: which workers are parked, how many search, and which one to wake.
#![doc = include_str!("idle.md")]

use alloc::boxed::Box;
use core::fmt;

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Relaxed, Release, SeqCst},
        fence,
    },
};

/// The largest number of workers.
pub const WORKERS_MAX: usize = 1024;

/// Workers per word of the set.
const WORD_BITS: usize = 64;

/// One worker in the parked field of the counts.
const PARKED: u64 = 1 << 32;
/// One worker in the searching field of the counts.
const SEARCHING: u64 = 1;
/// The searching field of the counts.
const SEARCHING_FIELD: u64 = PARKED - 1;
/// The value of the searching field if nobody searches: the count may fall below zero for a moment
/// (rule 6), and must not borrow from the parked field then.
const SEARCHING_ZERO: u64 = 1 << 31;

/// How a worker stopped being parked. In both cases it is searching, and counted so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unparked {
    /// Another thread has claimed it and unparks its thread: a token arrives, or has arrived.
    Claimed,
    /// It has taken its bit back itself.
    Own,
}

/// The counts of an [`Idle`]; exact when nobody changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Parked workers; for a moment a worker that is being claimed is still counted.
    pub parked: u64,
    /// Searching workers; for a moment too low, and even below zero (rule 6).
    pub searching: i64,
}

/// The parked and searching workers of a pool; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_exec::idle::{Idle, Unparked};
///
/// let idle = Idle::new(2);
/// idle.activate(0);
/// idle.activate(1);
/// // Worker 1 finds nothing, searches, finds nothing, and checks again before it sleeps.
/// assert!(idle.start_search());
/// assert!(idle.park_unless(1, true, || false));
///
/// // Somebody has pushed work.
/// assert!(idle.should_wake());
/// assert_eq!(idle.wake_one(), Some(1)); // the caller unparks worker 1
/// assert!(!idle.should_wake()); // one is on its way
///
/// assert_eq!(idle.cancel_park(1), Unparked::Claimed);
/// assert!(idle.end_search()); // it has found the work, and was the last searcher
/// ```
#[doc(hidden)]
pub struct Idle {
    counts: Padded<AtomicU64>,
    /// Worker `w` is bit `w % 64` of word `w / 64`.
    set: Padded<Box<[AtomicU64]>>,
    active: Padded<AtomicUsize>,
    /// Where the next scan begins: behind the worker that was claimed last, so that no worker is
    /// preferred.
    scan_start: AtomicUsize,
    workers: usize,
}

impl Idle {
    /// A pool of up to `workers` workers, none of them active.
    ///
    /// # Panics
    ///
    /// If `workers` is zero or above [`WORKERS_MAX`].
    #[must_use]
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "a pool has at least one worker");
        assert!(workers <= WORKERS_MAX, "{workers} workers are more than {WORKERS_MAX}");
        let n_words = workers.div_ceil(WORD_BITS);
        Self {
            counts: Padded(AtomicU64::new(SEARCHING_ZERO)),
            set: Padded((0..n_words).map(|_| AtomicU64::new(0)).collect()),
            active: Padded(AtomicUsize::new(0)),
            scan_start: AtomicUsize::new(0),
            workers,
        }
    }

    /// How many workers there may be.
    #[must_use]
    pub const fn workers(&self) -> usize {
        self.workers
    }

    /// Counts a worker that starts, as running.
    ///
    /// # Panics
    ///
    /// If there is no such worker, or more are active than there may be.
    pub fn activate(&self, worker: usize) {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        // Relaxed: only the limit of rule 7 reads it, and nothing is published.
        let before = self.active.fetch_add(1, Relaxed);
        assert!(before < self.workers, "{before} of at most {} workers were active", self.workers);
    }

    /// Removes a worker that stops from the count. The worker is running: it has called
    /// [`cancel_park`](Self::cancel_park) and [`end_search`](Self::end_search), and has done what
    /// the latter asks for.
    ///
    /// # Panics
    ///
    /// If the worker is parked, or no worker is active.
    pub fn deactivate(&self, worker: usize) {
        assert!(!self.is_parked(worker), "worker {worker} stops while it is parked");
        // Relaxed: as in `activate`.
        let before = self.active.fetch_sub(1, Relaxed);
        assert!(before > 0, "worker {worker} stops, and none was active");
    }

    /// Whether work that was made visible before this call needs a worker to be woken (rule 1).
    #[inline]
    #[must_use]
    pub fn should_wake(&self) -> bool {
        // Pairs with the fences of `begin_park` and `end_search`: either the worker that executes
        // those sees the work, or this thread sees the counts that the worker left.
        fence(SeqCst);
        // Relaxed: the fence orders it.
        needs_searcher(self.counts.load(Relaxed))
    }

    /// Claims any parked worker; the caller unparks its thread. The worker counts as searching.
    ///
    /// Returns `None` if every worker is awake or is about to check every source again: then they
    /// see what was made visible before this call.
    #[must_use]
    pub fn wake_one(&self) -> Option<usize> {
        // As in `should_wake`, for the bits.
        fence(SeqCst);
        // Relaxed: a hint where to begin.
        let start = self.scan_start.load(Relaxed);
        let (start_word, start_bit) = (start / WORD_BITS, start % WORD_BITS);
        let n_words = self.set.len();
        let behind_start = u64::MAX << start_bit;
        // The word in which the scan begins comes twice: its upper part first, the rest last.
        let worker = (0..=n_words).find_map(|i| {
            let of_interest = match i {
                0 => behind_start,
                _ if i == n_words => !behind_start,
                _ => u64::MAX,
            };
            self.claim_in((start_word + i) % n_words, of_interest)
        })?;
        // Relaxed: a hint; a store and not a read-modify-write, because any value is correct.
        self.scan_start.store((worker + 1) % self.workers, Relaxed);
        Some(worker)
    }

    /// Claims this worker, if it is parked; the caller then unparks its thread. The worker counts
    /// as searching.
    ///
    /// If this returns false, the worker is awake, and sees what was made visible before this call
    /// before it sleeps.
    #[must_use]
    pub fn wake_worker(&self, worker: usize) -> bool {
        // Pairs with the fence of `begin_park`: either that worker's second check sees the
        // request, or this thread sees its bit.
        fence(SeqCst);
        // Before the read-modify-write: most callers find the worker awake, and do not write to the
        // cache line.
        self.is_parked(worker) && self.claim(worker / WORD_BITS, bit_of(worker))
    }

    /// Lets a running worker search, unless half of the active workers search already (rule 7).
    #[must_use]
    pub fn start_search(&self) -> bool {
        // Relaxed: a limit, nothing is published.
        let limit = (self.active.load(Relaxed) / 2).max(1) as u64;
        let mut counts = self.counts.load(Relaxed);
        while counts & SEARCHING_FIELD < SEARCHING_ZERO + limit {
            // Relaxed: the start of a search publishes nothing; its end does, by a fence.
            match self.counts.compare_exchange_weak(counts, counts + SEARCHING, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => counts = now,
            }
        }
        false
    }

    /// Ends the search of a worker that has found work. If this returns true, the worker may have
    /// been the last one that searched: then the caller checks the shared sources, and wakes a
    /// worker if there is more work (rule 5).
    #[must_use]
    pub fn end_search(&self) -> bool {
        let before = self.change(SEARCHING, 0);
        let is_last = !has_more_searching_than(before, 1);
        if is_last {
            // Pairs with the fence of `should_wake`: if a submitter saw this worker search and woke
            // nobody, then the caller's check of the shared sources sees the submitter's work.
            fence(SeqCst);
        }
        is_last
    }

    /// Announces that a worker parks; returns whether it was the last one that searched.
    ///
    /// After this the caller checks every source again, and calls
    /// [`cancel_park`](Self::cancel_park) if it finds something (rule 2);
    /// [`park_unless`](Self::park_unless) does that.
    pub fn begin_park(&self, worker: usize, was_searching: bool) -> bool {
        let searching = if was_searching { SEARCHING } else { 0 };
        // The counts before the bit: a thread that claims the bit finds the worker counted (rule
        // 6).
        let before = self.change(searching, PARKED);
        // Release: pairs with the acquire of the claim, for the counts.
        let bits = self.word(worker).fetch_or(bit_of(worker), Release);
        debug_assert_eq!(bits & bit_of(worker), 0, "worker {worker} parks twice");
        // Pairs with the fences of `should_wake`, `wake_one` and `wake_worker`.
        fence(SeqCst);
        was_searching && !has_more_searching_than(before, 1)
    }

    /// Ends the parking of a worker: because its second check found something, or after it has
    /// slept. In both cases, which the result tells apart, the worker is searching afterwards (rule
    /// 4).
    pub fn cancel_park(&self, worker: usize) -> Unparked {
        // The acquire in `claim` pairs with the release of another claimer: the worker sees what
        // the claimer made visible before the claim.
        if self.claim(worker / WORD_BITS, bit_of(worker)) {
            Unparked::Own
        } else {
            Unparked::Claimed
        }
    }

    /// Parks a worker unless the second check finds something: `find` checks every source and
    /// returns whether there is anything to do (rule 2).
    ///
    /// If this returns true, the caller puts the thread to sleep, and calls
    /// [`cancel_park`](Self::cancel_park) when it wakes. If it returns false, the worker is
    /// searching.
    #[must_use]
    pub fn park_unless(
        &self,
        worker: usize,
        was_searching: bool,
        find: impl FnOnce() -> bool,
    ) -> bool {
        self.begin_park(worker, was_searching);
        if !find() {
            return true;
        }
        self.cancel_park(worker);
        false
    }

    /// Whether the bit of this worker is set: the worker is parked, and nobody has claimed it.
    #[must_use]
    pub fn is_parked(&self, worker: usize) -> bool {
        // Relaxed: callers that decide by this have fenced.
        self.word(worker).load(Relaxed) & bit_of(worker) != 0
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Relaxed: for statistics and assertions.
        let counts = self.counts.load(Relaxed);
        let searching = (counts & SEARCHING_FIELD).cast_signed() - SEARCHING_ZERO.cast_signed();
        Counts { parked: counts / PARKED, searching }
    }

    /// Claims the first parked worker among the given bits of a word.
    fn claim_in(&self, word: usize, of_interest: u64) -> Option<usize> {
        // Relaxed: a claim that follows acquires.
        let mut bits = self.set[word].load(Relaxed) & of_interest;
        while bits != 0 {
            let index = bits.trailing_zeros() as usize;
            if self.claim(word, 1 << index) {
                return Some(word * WORD_BITS + index);
            }
            // Another thread was faster, so that worker is awake. Each remaining bit is tried once.
            bits &= bits - 1;
        }
        None
    }

    /// Clears a bit. If this call has cleared it, counts the worker as searching (rule 3).
    fn claim(&self, word: usize, bit: u64) -> bool {
        // Acquire: pairs with the release of `begin_park`, so that the worker is counted as
        // parked before it is counted as not parked. Release: pairs with the acquire of
        // `cancel_park`, so that the worker sees what was made visible before the claim.
        let before = self.set[word].fetch_and(!bit, AcqRel);
        let is_claimed = before & bit != 0;
        if is_claimed {
            self.change(PARKED, SEARCHING);
        }
        is_claimed
    }

    /// Changes the counts in one step; returns the previous counts.
    fn change(&self, less: u64, more: u64) -> u64 {
        // Relaxed: the counts publish nothing. Where work depends on their order, a full fence
        // follows (rules 2 and 5). One addition, modulo 2^64, changes both fields.
        let before = self.counts.fetch_add(more.wrapping_sub(less), Relaxed);
        debug_assert!(
            less & PARKED == 0 || before >= PARKED,
            "a worker is unparked, but none is counted as parked"
        );
        debug_assert!(
            less & SEARCHING == 0 || has_more_searching_than(before + self.workers as u64, 0),
            "more workers have ended a search than there are"
        );
        before
    }

    fn word(&self, worker: usize) -> &AtomicU64 {
        &self.set[worker / WORD_BITS]
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("workers", &self.workers)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// The bit of a worker in its word.
const fn bit_of(worker: usize) -> u64 {
    1 << (worker % WORD_BITS)
}

/// Whether more than `n` workers search.
const fn has_more_searching_than(counts: u64, n: u64) -> bool {
    counts & SEARCHING_FIELD > SEARCHING_ZERO + n
}

/// Whether a worker is parked and none searches.
#[inline]
fn needs_searcher(counts: u64) -> bool {
    counts >= PARKED && !has_more_searching_than(counts, 0)
}
