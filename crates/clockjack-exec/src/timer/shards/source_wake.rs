//! When a shard of the [source](crate::timer::source) has to be polled, and whether a worker polls
//! it now, as one word.

use clockjack_sync::primitive::atomic::{AtomicU64, Ordering};
use clockjack_time::Tick;

/// A worker polls the shard; the tick says from when on another may take over.
const POLLING: u64 = 1;
/// There was a request since the worker began to poll.
const REQUESTED: u64 = 2;
/// The tick is above these bits.
const TICK_SHIFT: u32 = 2;
/// The word of a shard that nobody has to poll.
const NEVER: u64 = u64::MAX << TICK_SHIFT;

/// ```text
///   bits    63..2    1            0
///           tick     REQUESTED    POLLING          all ones above the flags: never
/// ```
///
/// Every access that changes something is a read-modify-write with acquire and release, also if it
/// leaves the value as it is: what a thread made visible before its request is visible to the
/// worker that claims the shard, or that finishes a poll, after the request.
pub(super) struct SourceWake(AtomicU64);

/// The right and the duty to poll a shard of the source once.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a shard that was claimed has to be finished"]
pub struct SourceClaim {
    word: u64,
    /// Whether the shard was taken over from a worker whose poll takes too long.
    pub is_takeover: bool,
}

impl SourceWake {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// When the shard has to be polled, or taken over.
    #[inline]
    pub(super) fn get(&self) -> Option<Tick> {
        // Relaxed: a caller that decides to sleep by this has executed a fence.
        let word = self.0.load(Ordering::Relaxed);
        (word < NEVER).then_some(Tick::new(word >> TICK_SHIFT))
    }

    #[inline]
    pub(super) fn is_due(&self, now: Tick) -> bool {
        self.get().is_some_and(|wake| wake <= now)
    }

    /// Rule 10: makes the shard due at `at`, unless it is earlier anyway; returns whether it is due
    /// earlier than before.
    pub(super) fn request(&self, at: Tick) -> bool {
        let mut is_earlier = false;
        self.update(|word| {
            let lowered = encode(Some(at)).min(word);
            is_earlier = word & POLLING == 0 && lowered < word;
            // The worker that polls the source now polls it again.
            if word & POLLING == 0 { lowered } else { word | REQUESTED }
        });
        is_earlier
    }

    /// Rule 11: claims the shard, if it is due at `now`. Another worker may take over at `until`,
    /// which is after `now`.
    pub(super) fn claim(&self, now: Tick, until: Tick) -> Option<SourceClaim> {
        debug_assert!(until > now, "a claim that has run out already");
        // Relaxed: the exchange acquires.
        let mut word = self.0.load(Ordering::Relaxed);
        let claimed = encode(Some(until)) | POLLING;
        while word < NEVER && word >> TICK_SHIFT <= now.get() {
            match self.exchange(word, claimed) {
                Ok(_) => {
                    return Some(SourceClaim { word: claimed, is_takeover: word & POLLING != 0 });
                }
                Err(current) => word = current,
            }
        }
        None
    }

    /// Rule 12: ends a poll; returns the tick at which the shard is due, if that is earlier than
    /// other threads may have read.
    pub(super) fn finish(&self, claim: SourceClaim, next: Option<Tick>) -> Option<Tick> {
        let next_word = encode(next);
        let mut due = None;
        self.update(|word| {
            let (new, is_earlier) = if word == claim.word {
                (next_word, next_word < word)
            } else if word == claim.word | REQUESTED {
                (encode(Some(Tick::ZERO)), true)
            } else if word & POLLING == 0 {
                (next_word.min(word), next_word < word)
            } else {
                // Another worker has taken over, and polls again if there is a next wake-up.
                let requested = if next.is_some() { REQUESTED } else { 0 };
                (word | requested, false)
            };
            due = is_earlier.then_some(Tick::new(new >> TICK_SHIFT));
            new
        });
        due
    }

    fn update(&self, mut change: impl FnMut(u64) -> u64) {
        // Relaxed: the exchange acquires.
        let mut word = self.0.load(Ordering::Relaxed);
        while let Err(current) = self.exchange(word, change(word)) {
            word = current;
        }
    }

    fn exchange(&self, from: u64, to: u64) -> Result<u64, u64> {
        // AcqRel: see the type. Relaxed on failure: the next attempt acquires.
        self.0.compare_exchange_weak(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }
}

fn encode(tick: Option<Tick>) -> u64 {
    tick.map_or(NEVER, |tick| tick.get().min((NEVER >> TICK_SHIFT) - 1) << TICK_SHIFT)
}
