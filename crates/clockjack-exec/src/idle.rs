//! The idle protocol: who is parked, how many search, and whom to wake.
#![doc = include_str!("idle.md")]

use alloc::boxed::Box;
use core::fmt;

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

/// The largest number of seats.
pub const SEATS_MAX: usize = 1024;

/// Seats in one word of the set.
const WORD_BITS: usize = 64;

/// One worker in the parked field of the counts.
const PARKED: u64 = 1 << 32;
/// One worker in the searching field of the counts.
const SEARCHING: u64 = 1;
/// The searching field of the counts.
const SEARCHING_FIELD: u64 = PARKED - 1;
/// What the searching field holds if nobody searches: the count may fall below zero for a moment
/// (rule 6), and must not borrow from the parked field then.
const NOBODY: u64 = 1 << 31;

/// How a worker came out of its park. It is searching and counted so in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unparked {
    /// Somebody has claimed it, and unparks its seat: a token comes, or came.
    Claimed,
    /// It took its bit back itself.
    Own,
}

/// What the counts of an [`Idle`] say; exact when nobody changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Parked workers; for a moment one that is being claimed is still counted.
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
/// // Worker 1 finds nothing, searches, finds nothing, and looks again before it sleeps.
/// assert!(idle.start_search());
/// assert!(idle.park_unless(1, true, || false));
///
/// // Somebody has pushed work.
/// assert!(idle.should_wake());
/// assert_eq!(idle.wake_one(), Some(1)); // the caller unparks seat 1
/// assert!(!idle.should_wake()); // one is on its way
///
/// assert_eq!(idle.cancel_park(1), Unparked::Claimed);
/// assert!(idle.end_search()); // it has found the work, and was the last who searched
/// ```
#[doc(hidden)]
pub struct Idle {
    counts: Padded<AtomicU64>,
    /// Seat `s` is bit `s % 64` of word `s / 64`.
    set: Padded<Box<[AtomicU64]>>,
    active: Padded<AtomicUsize>,
    /// Where the next scan begins: behind the seat that was claimed last, so that no seat is
    /// preferred.
    scan_start: AtomicUsize,
    seats: usize,
}

impl Idle {
    /// A pool of up to `seats` workers, none of them active.
    ///
    /// # Panics
    ///
    /// If `seats` is zero or above [`SEATS_MAX`].
    #[must_use]
    pub fn new(seats: usize) -> Self {
        assert!(seats > 0, "a pool has at least one seat");
        assert!(seats <= SEATS_MAX, "{seats} seats are more than {SEATS_MAX}");
        let n_words = seats.div_ceil(WORD_BITS);
        Self {
            counts: Padded(AtomicU64::new(NOBODY)),
            set: Padded((0..n_words).map(|_| AtomicU64::new(0)).collect()),
            active: Padded(AtomicUsize::new(0)),
            scan_start: AtomicUsize::new(0),
            seats,
        }
    }

    /// How many seats there are.
    #[must_use]
    pub const fn seats(&self) -> usize {
        self.seats
    }

    /// Counts a worker that starts, as running.
    ///
    /// # Panics
    ///
    /// If there is no such seat, or more workers than seats.
    pub fn activate(&self, seat: usize) {
        assert!(seat < self.seats, "seat {seat} of {}", self.seats);
        // Relaxed: only the limit of rule 7 reads it, and nothing is published.
        let before = self.active.fetch_add(1, Relaxed);
        assert!(before < self.seats, "{before} workers were active on {} seats", self.seats);
    }

    /// Takes a worker that leaves out of the count. It is running: it has called
    /// [`cancel_park`](Self::cancel_park) and [`end_search`](Self::end_search), and done what the
    /// latter asks for.
    ///
    /// # Panics
    ///
    /// If it is parked, or no worker is active.
    pub fn deactivate(&self, seat: usize) {
        assert!(!self.is_parked(seat), "the worker of seat {seat} leaves while it is parked");
        // Relaxed: as in `activate`.
        let before = self.active.fetch_sub(1, Relaxed);
        assert!(before > 0, "the worker of seat {seat} leaves, and none was active");
    }

    /// Whether work that was made visible before this call needs a worker to be woken (rule 1).
    #[inline]
    #[must_use]
    pub fn should_wake(&self) -> bool {
        if mutant!("idle-no-fence-submit") {
            return wants_a_searcher(self.counts.load(Relaxed));
        }
        if mutant!("idle-load-for-rmw") {
            return wants_a_searcher(self.counts.load(SeqCst));
        }
        // Pairs with the fences of `begin_park` and `end_search`: either those see the work, or
        // this sees the counts that they left.
        fence(SeqCst);
        // Relaxed: the fence orders it.
        wants_a_searcher(self.counts.load(Relaxed))
    }

    /// Claims a parked worker, whichever; the caller unparks its seat. It counts as searching.
    ///
    /// None is claimed if each is awake or is about to look at every source again: then what was
    /// made visible before this call is seen by them.
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
        let seat = (0..=n_words).find_map(|i| {
            let of_interest = match i {
                0 => behind_start,
                _ if i == n_words => !behind_start,
                _ => u64::MAX,
            };
            self.claim_in((start_word + i) % n_words, of_interest)
        })?;
        // Relaxed: a hint; a store and not a read-modify-write, since any value of it is right.
        self.scan_start.store((seat + 1) % self.seats, Relaxed);
        Some(seat)
    }

    /// Claims this worker, if it is parked; the caller then unparks its seat. It counts as
    /// searching.
    ///
    /// If this says no, then the worker is awake, and what was made visible before this call is
    /// seen by it before it sleeps.
    #[must_use]
    pub fn wake_seat(&self, seat: usize) -> bool {
        if !mutant!("idle-no-fence-wake-seat") {
            // Pairs with the fence of `begin_park`: either that worker's second look sees the wish,
            // or this sees its bit.
            fence(SeqCst);
        }
        // Before the read-modify-write: most wakers find the worker awake, and leave the line as
        // it is.
        self.is_parked(seat) && self.claim(seat / WORD_BITS, bit_of(seat))
    }

    /// Lets a running worker search, unless half of the active ones do already (rule 7).
    #[must_use]
    pub fn start_search(&self) -> bool {
        // Relaxed: a limit, nothing is published.
        let limit = (self.active.load(Relaxed) / 2).max(1) as u64;
        let mut counts = self.counts.load(Relaxed);
        while counts & SEARCHING_FIELD < NOBODY + limit {
            // Relaxed: that a worker searches publishes nothing; that it stops does, by a fence.
            match self.counts.compare_exchange_weak(counts, counts + SEARCHING, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => counts = now,
            }
        }
        false
    }

    /// Ends the search of a worker that has found work. If this says yes, it may have been the last
    /// who searched: then the caller looks at the shared sources, and wakes one if there is more
    /// (rule 5).
    #[must_use]
    pub fn end_search(&self) -> bool {
        let before = self.change(SEARCHING, 0);
        let is_last = !is_searched(before, 1);
        if is_last && !mutant!("idle-no-fence-end-search") {
            // Pairs with the fence of `should_wake`: a submitter that saw this worker search and
            // woke nobody has its work seen by what the caller looks at now.
            fence(SeqCst);
        }
        is_last && !mutant!("idle-last-searcher-not-counted")
    }

    /// Announces that a worker parks; says whether it was the last who searched.
    ///
    /// After this the caller looks at every source again, and calls
    /// [`cancel_park`](Self::cancel_park) if it finds something (rule 2);
    /// [`park_unless`](Self::park_unless) does that.
    pub fn begin_park(&self, seat: usize, was_searching: bool) -> bool {
        let searching = if was_searching { SEARCHING } else { 0 };
        // The counts before the bit: who claims the bit finds the worker counted (rule 6).
        let before = self.change(searching, PARKED);
        // Release: pairs with the acquire of the claim, for the counts.
        let bits = self.word(seat).fetch_or(bit_of(seat), Release);
        debug_assert_eq!(bits & bit_of(seat), 0, "seat {seat} parks twice");
        if !mutant!("idle-no-fence-park") {
            // Pairs with the fences of `should_wake`, `wake_one` and `wake_seat`.
            fence(SeqCst);
        }
        was_searching && !is_searched(before, 1)
    }

    /// Takes a worker out of its park: because its second look found something, or after it slept.
    /// In both cases that this tells apart it is searching afterwards (rule 4).
    pub fn cancel_park(&self, seat: usize) -> Unparked {
        if mutant!("idle-awake-but-in-set") {
            return Unparked::Claimed;
        }
        // Acquire, in `claim`, pairs with its release by another claimer: what the waker made
        // visible before the claim is seen.
        if self.claim(seat / WORD_BITS, bit_of(seat)) { Unparked::Own } else { Unparked::Claimed }
    }

    /// Parks a worker unless the second look finds something: `find` looks at every source and
    /// says whether there is anything to do (rule 2).
    ///
    /// If this says yes, the caller puts the thread to sleep, and calls
    /// [`cancel_park`](Self::cancel_park) when it wakes. If it says no, the worker is searching.
    #[must_use]
    pub fn park_unless(
        &self,
        seat: usize,
        was_searching: bool,
        find: impl FnOnce() -> bool,
    ) -> bool {
        self.begin_park(seat, was_searching);
        if mutant!("idle-no-recheck") || !find() {
            return true;
        }
        self.cancel_park(seat);
        false
    }

    /// Whether the bit of this seat is set: its worker is parked, and nobody has claimed it.
    #[must_use]
    pub fn is_parked(&self, seat: usize) -> bool {
        // Relaxed: callers that decide by it have fenced.
        self.word(seat).load(Relaxed) & bit_of(seat) != 0
    }

    /// What the counts say.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Relaxed: for statistics and assertions.
        let counts = self.counts.load(Relaxed);
        let searching = (counts & SEARCHING_FIELD).cast_signed() - NOBODY.cast_signed();
        Counts { parked: counts / PARKED, searching }
    }

    /// Claims the first seat of a word that is of interest, and parked.
    fn claim_in(&self, word: usize, of_interest: u64) -> Option<usize> {
        // Relaxed: a claim that follows acquires.
        let mut bits = self.set[word].load(Relaxed) & of_interest;
        while bits != 0 {
            let index = bits.trailing_zeros() as usize;
            if self.claim(word, 1 << index) {
                return Some(word * WORD_BITS + index);
            }
            // Another was faster. That worker is awake; what is left is looked at once.
            bits &= bits - 1;
        }
        None
    }

    /// Clears a bit, and if this call did it, counts its worker as searching (rule 3).
    fn claim(&self, word: usize, bit: u64) -> bool {
        let before = if mutant!("idle-claim-by-load") {
            self.set[word].load(Acquire)
        } else {
            // Acquire: pairs with the release of `begin_park`, so that the worker is counted as
            // parked before it is not. Release: pairs with the acquire of `cancel_park`, so that
            // the worker sees what was made visible before the claim.
            self.set[word].fetch_and(!bit, AcqRel)
        };
        if mutant!("idle-claim-by-load") {
            self.set[word].fetch_and(!bit, AcqRel);
        }
        let is_claimed = before & bit != 0;
        if is_claimed && !mutant!("idle-unpark-outside-set") {
            self.change(PARKED, SEARCHING);
        }
        is_claimed
    }

    /// Changes the counts in one step; says what they were.
    fn change(&self, less: u64, more: u64) -> u64 {
        if mutant!("idle-counts-by-store") {
            let before = self.counts.load(Acquire);
            self.counts.store(before.wrapping_add(more).wrapping_sub(less), Release);
            return before;
        }
        // Relaxed: the counts publish nothing. Where work depends on their order, a full fence
        // stands behind this (rules 2 and 5). One addition, modulo 2^64, changes both fields.
        let before = self.counts.fetch_add(more.wrapping_sub(less), Relaxed);
        debug_assert!(
            less & PARKED == 0 || before >= PARKED,
            "a worker is unparked and none is counted"
        );
        debug_assert!(
            less & SEARCHING == 0 || is_searched(before + self.seats as u64, 0),
            "more workers have ended a search than there are"
        );
        before
    }

    fn word(&self, seat: usize) -> &AtomicU64 {
        &self.set[seat / WORD_BITS]
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("seats", &self.seats)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// The bit of a seat in its word.
const fn bit_of(seat: usize) -> u64 {
    1 << (seat % WORD_BITS)
}

/// Whether more than `n` workers search.
const fn is_searched(counts: u64, n: u64) -> bool {
    counts & SEARCHING_FIELD > NOBODY + n
}

/// Whether somebody is parked and nobody searches.
#[inline]
fn wants_a_searcher(counts: u64) -> bool {
    if mutant!("idle-below-zero-searches") {
        return counts >= PARKED && counts & SEARCHING_FIELD == NOBODY;
    }
    counts >= PARKED && !is_searched(counts, 0)
}
