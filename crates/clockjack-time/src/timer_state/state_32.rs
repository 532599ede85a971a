//! The 32-bit form of the timer state: two 32-bit atomics, for targets without 64-bit atomics.
//!
//! `low` is `generation (its lower 29 bits) << 3 | state` and decides every race; `high` is the
//! rest of the generation. A 64-bit atomic of `portable-atomic` would be a lock there, and an
//! interrupt that finds the lock held would spin for ever. Rules, in addition to those of
//! `timer_state`:
//!
//! 1. `high` changes only while no exchange of any thread can succeed: in a state at rest, or in
//!    Executing by the taker; and while it changes, `low` is Pending without generation.
//! 2. `high` is written before `low`, and read after it; release and acquire keep both orders. So a
//!    thread that reads a `low` reads the `high` of the same arm or of a later one.
//! 3. An exchange compares `low`, then `high`, then exchanges `low`. If the exchange succeeds,
//!    `low` had not changed in between, and so neither had `high`: except if the slot was armed a
//!    multiple of 2^29 times between two loads of one call. That is accepted.
//!
//! A read of both parts (`state`) works like the read of a seqlock, with `low` as the sequence.

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering, fence};

use crate::timer_state::{AtomicState, Generation, RawTimerState, State};

const LOW_BITS: u32 = u32::BITS - State::BITS;
const LOW_MASK: u32 = (1 << LOW_BITS) - 1;
const STATE_MASK: u32 = (1 << State::BITS) - 1;
const FREE: u32 = State::Pending as u32;

const _: () = assert!(Generation::BITS - LOW_BITS <= u32::BITS);

/// The memory operations of the 32-bit form.
#[derive(Debug)]
#[repr(C)]
pub struct TimerState32 {
    low: AtomicU32,
    high: AtomicU32,
}

impl AtomicState<TimerState32> {
    const_unless_loom! {
        /// Pending, without generation.
        #[inline]
        pub fn new() -> Self {
            Self(TimerState32 { low: AtomicU32::new(FREE), high: AtomicU32::new(0) })
        }
    }
}

impl TimerState32 {
    /// Rules 1 and 2: sets `generation` and Scheduled. No other thread may exchange `low` now.
    #[inline]
    fn publish(&self, generation: Generation) {
        let (low, high) = split(generation);
        let scheduled = pack(low, State::Scheduled);
        // Relaxed: only a thread that may arm writes it, and such threads are ordered.
        if self.high.load(Ordering::Relaxed) != high {
            // Relaxed, with the fence: a thread that reads the new `high` reads Pending, or a
            // later `low`, when it loads `low` again (`state`).
            self.low.store(FREE, Ordering::Relaxed);
            // Pairs with the acquire of `high` in `state`.
            fence(Ordering::Release);
            self.high.store(high, Ordering::Relaxed);
        }
        // Release pairs with the acquire of `low` in `compare` and in the exchanges: it publishes
        // `high` (rule 2) and the slot (rule 7 of `timer_state`).
        self.low.store(scheduled, Ordering::Release);
    }

    /// Rule 3, the comparisons: the state, if it is of this generation.
    #[inline]
    fn compare(&self, generation: Generation) -> Option<State> {
        let (low, high) = split(generation);
        // Pairs with the release in `publish`: the `high` below is not older (rule 2).
        let bits = self.low.load(Ordering::Acquire);
        let same = bits >> State::BITS == low
            // Relaxed: ordered by the acquire before it.
            && self.high.load(Ordering::Relaxed) == high;
        let state = state_of(bits);
        // A link, or no generation at all, may have the same bits as this generation.
        (same && !matches!(state, State::Cancelled | State::Pending)).then_some(state)
    }
}

impl RawTimerState for TimerState32 {
    const LINK_MAX: u32 = LOW_MASK;

    fn empty() -> Self {
        Self { low: AtomicU32::new(FREE), high: AtomicU32::new(0) }
    }

    #[inline]
    fn arm(&self, generation: Generation) {
        // Acquire pairs with the release of the exchange that left the state at rest: what its
        // winner did to the slot happens before this use of the slot (rule 7 of `timer_state`).
        let former = self.low.load(Ordering::Acquire);
        debug_assert!(state_of(former).is_at_rest(), "armed while {:?}", state_of(former));
        self.publish(generation);
    }

    #[inline]
    fn exchange(&self, generation: Generation, from: State, to: State) -> bool {
        if self.compare(generation) != Some(from) {
            return false;
        }
        let (number, _) = split(generation);
        let kept = if to == State::Cancelled { 0 } else { number };
        let (expected, new) = (pack(number, from), pack(kept, to));
        // Acquire pairs with the release of `publish` and of the exchange before this one, release
        // with the acquire of the next one. On failure nothing of the slot is touched.
        self.low.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn rearm(&self, generation: Generation, next: Generation) -> bool {
        let (low, high) = split(generation);
        if self.compare(generation) != Some(State::Executing) {
            return false;
        }
        let executing = pack(low, State::Executing);
        let (next_low, next_high) = split(next);
        if next_high == high {
            // As in `exchange`.
            let new = pack(next_low, State::Scheduled);
            return self
                .low
                .compare_exchange(executing, new, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        }
        // Once in 2^29 times: only the taker may leave Executing, and this exchange decides who the
        // taker is if two callers claim to be. Then rule 1 holds for `publish`.
        let free =
            self.low.compare_exchange(executing, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if free {
            self.publish(next);
        }
        free
    }

    #[inline]
    fn peek(&self, generation: Generation) -> Option<State> {
        self.compare(generation)
    }

    #[inline]
    fn state(&self) -> (State, Option<Generation>) {
        loop {
            // Acquire pairs with the release in `publish` (rule 2), and with that of exchanges: an
            // owner that sees a timer at rest also sees what its last winner did.
            let low = self.low.load(Ordering::Acquire);
            // Acquire pairs with the fence in `publish`: if this is the `high` of a later arm, the
            // load below does not see `low` as it was before.
            let high = self.high.load(Ordering::Acquire);
            // Relaxed: only compared. Another value means that the state has changed: read again.
            if self.low.load(Ordering::Relaxed) != low {
                continue;
            }
            return match state_of(low) {
                state @ (State::Cancelled | State::Pending) => (state, None),
                state => (state, Generation::new(join(low >> State::BITS, high))),
            };
        }
    }

    #[inline]
    fn release(&self) {
        // Acquire: as in `arm`.
        let former = self.low.load(Ordering::Acquire);
        debug_assert!(state_of(former).is_at_rest(), "released while {:?}", state_of(former));
        // Relaxed: a free slot publishes nothing; the next `arm` does.
        self.low.store(FREE, Ordering::Relaxed);
    }

    #[inline]
    fn set_link(&self, link: u32) {
        debug_assert_eq!(state_of(self.low.load(Ordering::Relaxed)), State::Cancelled);
        // Relaxed: the head of the list publishes it.
        self.low.store(pack(link, State::Cancelled), Ordering::Relaxed);
    }

    #[inline]
    fn link(&self) -> u32 {
        // Relaxed: ordered by the reader's acquire of the list's head.
        let low = self.low.load(Ordering::Relaxed);
        debug_assert_eq!(state_of(low), State::Cancelled);
        low >> State::BITS
    }
}

#[inline(always)]
const fn pack(number: u32, state: State) -> u32 {
    number << State::BITS | state as u32
}

#[inline(always)]
const fn state_of(low: u32) -> State {
    State::from_bits((low & STATE_MASK) as u8)
}

/// Lower 29 bits and the rest.
#[inline(always)]
const fn split(generation: Generation) -> (u32, u32) {
    let number = generation.get();
    #[expect(clippy::cast_possible_truncation, reason = "masked, and at most 48 bits")]
    ((number & LOW_MASK as u64) as u32, (number >> LOW_BITS) as u32)
}

#[inline(always)]
const fn join(low: u32, high: u32) -> u64 {
    (high as u64) << LOW_BITS | low as u64
}
