//! The 64-bit form of the timer state: one 64-bit atomic, for targets that have it.
//!
//! `generation << 16 | state`; in Cancelled `link << 16 | state`; in Pending the upper part is
//! zero. Rule numbers are those of the module documentation of `timer_state`.

use clockjack_sync::primitive::atomic::{AtomicU64, Ordering};

use crate::timer_state::{AtomicState, Generation, RawTimerState, State};

const STATE_BITS: u32 = 16;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;

const _: () = assert!(STATE_BITS + Generation::BITS == u64::BITS);

/// The memory operations of the 64-bit form.
#[derive(Debug)]
#[repr(transparent)]
pub struct TimerState64(AtomicU64);

impl AtomicState<TimerState64> {
    const_unless_loom! {
        /// Pending, without generation.
        #[inline]
        pub fn new() -> Self {
            Self(TimerState64(AtomicU64::new(pack(0, State::Pending))))
        }
    }
}

impl RawTimerState for TimerState64 {
    const LINK_MAX: u32 = u32::MAX;

    fn empty() -> Self {
        Self(AtomicU64::new(pack(0, State::Pending)))
    }

    #[inline]
    fn arm(&self, generation: Generation) {
        // Acquire pairs with the release of the exchange that left the state at rest: what its
        // winner did to the slot happens before this use of the slot (rule 7).
        let former = self.0.load(Ordering::Acquire);
        debug_assert!(state_of(former).is_at_rest(), "armed while {:?}", state_of(former));
        // Release pairs with the acquire of every exchange of this generation (rule 7).
        self.0.store(pack(generation.get(), State::Scheduled), Ordering::Release);
    }

    #[inline]
    fn exchange(&self, generation: Generation, from: State, to: State) -> bool {
        let number = generation.get();
        let kept = if to == State::Cancelled { 0 } else { number };
        let (expected, new) = (pack(number, from), pack(kept, to));
        // Acquire pairs with the release of `arm` and of the exchange before this one, release
        // with the acquire of the next one (rule 7). On failure nothing of the slot is touched.
        self.0.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn rearm(&self, generation: Generation, next: Generation) -> bool {
        let expected = pack(generation.get(), State::Executing);
        let new = pack(next.get(), State::Scheduled);
        // As in `exchange`.
        self.0.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn peek(&self, generation: Generation) -> Option<State> {
        // Relaxed: an exchange decides everything that follows from the result, and orders it.
        let bits = self.0.load(Ordering::Relaxed);
        let state = state_of(bits);
        // A link may have the same bits as the generation, hence the second comparison (rule 6).
        (bits >> STATE_BITS == generation.get() && state != State::Cancelled).then_some(state)
    }

    #[inline]
    fn state(&self) -> (State, Option<Generation>) {
        // Acquire pairs with the release of `arm` and the exchanges: an owner that sees a timer at
        // rest also sees what its last winner did (rule 7).
        let bits = self.0.load(Ordering::Acquire);
        match state_of(bits) {
            State::Cancelled => (State::Cancelled, None),
            state => (state, Generation::new(bits >> STATE_BITS)),
        }
    }

    #[inline]
    fn release(&self) {
        // Acquire: as in `arm`.
        let former = self.0.load(Ordering::Acquire);
        debug_assert!(state_of(former).is_at_rest(), "released while {:?}", state_of(former));
        // Relaxed: a free slot publishes nothing; the next `arm` does.
        self.0.store(pack(0, State::Pending), Ordering::Relaxed);
    }

    #[inline]
    fn set_link(&self, link: u32) {
        debug_assert_eq!(state_of(self.0.load(Ordering::Relaxed)), State::Cancelled);
        // Relaxed: the head of the list publishes it (rule 6).
        self.0.store(pack(u64::from(link), State::Cancelled), Ordering::Relaxed);
    }

    #[inline]
    fn link(&self) -> u32 {
        // Relaxed: ordered by the reader's acquire of the list's head (rule 6).
        let bits = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(state_of(bits), State::Cancelled);
        #[expect(clippy::cast_possible_truncation, reason = "48 bits hold a link of 32")]
        let link = (bits >> STATE_BITS) as u32;
        link
    }
}

#[inline(always)]
const fn pack(number: u64, state: State) -> u64 {
    number << STATE_BITS | state as u64
}

#[inline(always)]
const fn state_of(bits: u64) -> State {
    #[expect(clippy::cast_possible_truncation, reason = "the upper half of the 16 bits is zero")]
    State::from_bits((bits & STATE_MASK) as u8)
}
