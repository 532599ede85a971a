//! The atomic timer state: the one word on which firing and cancelling a timer of a
//! [shard](crate::shard) are decided. The timers of the executor are such timers. Jobs, and with
//! them the timers of actors, have another word (`clockjack-sched`, `jobs/state.rs`).
//!
//! A shard decides at the expiry and passes the value itself on, so it uses `arm`, `fire`, `cancel`
//! and `release`. The states Queued and Executing are for stores that pass a reference on, which a
//! cancel may still beat.
//!
//! The generation is a tag in the compare-exchanged word, the classic remedy for the ABA problem
//! (IBM System/370 Principles of Operation, 1983).
//!
//! With two separate words, one for the state and one for the generation, `cancel()` could return
//! true and the timer could still fire. Here both are exchanged together. There are two forms with
//! the same interface: `timer_state/state_64.rs` (one 64-bit atomic) and `timer_state/state_32.rs`
//! (two 32-bit atomics, for targets without 64-bit atomics); this file contains the common part.
//!
//! # Layout
//!
//! ```text
//!            63                                16 15             0
//!   64 bits [ generation 48, or link 32 if Cancelled | state 16  ]
//!
//!            31            19 18             0     31                              3 2     0
//!   32 bits high [ zero 13 | generation 47..29 ]   low [ generation 28..0, or link | state 3 ]
//! ```
//!
//! # Life cycle
//!
//! ```text
//!               arm                 expire             take                complete
//!   Pending ──────────► Scheduled ──────────► Queued ──────────► Executing ──────────► Completed
//!      ▲                 │ │ ▲                   │                  │                     │ ▲
//!      │                 │ │ └───────────────────┼── rearm (new generation)               │ │
//!      │           cancel│ │fire           cancel│                                        │ │
//!      │                 │ └─────────────────────┼────────────────────────────────────────┼─┘
//!      │                 └──► Cancelled ◄────────┘                                        │
//!      │                         │                                                        │
//!      └──────────── release ────┴────────────────────────────────────────────────────────┘
//! ```
//!
//! # Roles
//!
//! * The **owner** holds the lock of the shard that the slot belongs to. It alone calls
//!   [`arm`](AtomicState::arm), [`release`](AtomicState::release), [`expire`](AtomicState::expire)
//!   and [`fire`](AtomicState::fire).
//! * The **taker** is the thread that received the due timer. It calls [`take`](AtomicState::take),
//!   and, if it has won, [`complete`](AtomicState::complete) or [`rearm`](AtomicState::rearm).
//! * **Any thread** that has the timer's key may call [`cancel`](AtomicState::cancel), at any time,
//!   also long after the slot has served other timers.
//!
//! # Rules
//!
//! 1. Every transition but `arm` and `release` is a compare-exchange from one exact state and
//!    generation. It either changes the word or has no effect.
//! 2. `arm` and `release` are plain writes. That is correct because in Pending, Completed and
//!    Cancelled no compare-exchange of any thread can succeed: none starts from those states.
//! 3. A cancel that wins has made the state Cancelled; `expire`, `fire` and `take` of that
//!    generation then fail, so the handler never runs. A cancel that finds Executing or later, or
//!    another generation, changes nothing and returns `None`.
//! 4. No timer leaves its shard: a shard changes its worker as a whole. So there is no state for a
//!    move.
//! 5. The owner frees the slot after a won cancel, once the winner has returned the slot to it. The
//!    winner returns the slot by pushing it onto the shard's
//!    [index stack](clockjack_sync::index_stack). Until then the owner leaves the slot alone even
//!    if it reaches the timer, because the winner may still write the link (rule 6).
//! 6. In Cancelled the generation has no use any more, since every comparison fails on the state.
//!    Its bits may hold the *link*, that is, the next slot on the index stack. Only the winner of
//!    the cancel writes the link.
//! 7. Data of the slot that is written before `arm` is visible to every thread that wins a
//!    transition afterwards, and what a winner did is visible to the next winner and to the next
//!    `arm`: transitions acquire and release.
//!
//! # Why it cannot hang
//!
//! No call waits. Only `cancel` loops: it tries again only after its exchange failed because the
//! same generation moved to another state. A timer moves forward at most four times in one
//! generation.

use core::{fmt, num::NonZeroU64};

/// Identifies one use of a slot. Forty-eight bits, never zero, the same on every target, so that a
/// key that was stored on one machine is valid on another.
///
/// # Examples
///
/// ```
/// use clockjack_time::Generation;
///
/// assert_eq!(Generation::FIRST.next().get(), 2);
/// assert_eq!(Generation::MAX.next(), Generation::FIRST);
/// assert_eq!(Generation::new(0), None);
/// assert_eq!(Generation::new(1 << 48), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Generation(NonZeroU64);

impl Generation {
    /// Bits of a generation.
    pub const BITS: u32 = 48;
    /// The first use of a slot.
    pub const FIRST: Self = Self(NonZeroU64::MIN);
    /// The last generation before the count starts again. At a million re-arms of one slot per
    /// second that takes nine years.
    pub const MAX: Self = Self(NonZeroU64::new((1 << Self::BITS) - 1).expect("not zero"));

    /// The generation of this number, or `None` for zero and for more than [`Generation::MAX`].
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= Self::MAX.0.get() => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The generation after this one; after [`MAX`](Self::MAX) comes [`FIRST`](Self::FIRST).
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        match Self::new(self.get() + 1) {
            Some(next) => next,
            None => Self::FIRST,
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The life-cycle state of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// The slot is free, or its timer is not armed yet.
    Pending = 0,
    /// Armed: the timer waits in a wheel, an overflow or an inbox.
    Scheduled = 1,
    /// Due and passed to a taker, but not taken yet: a cancel still wins.
    Queued = 2,
    /// Its handler runs: a cancel has lost.
    Executing = 3,
    /// It ran.
    Completed = 4,
    /// A cancel won: it will never run.
    Cancelled = 5,
}

impl State {
    /// The bits of a state in the 32-bit form.
    pub(crate) const BITS: u32 = 3;

    /// The state of these three bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Pending,
            1 => Self::Scheduled,
            2 => Self::Queued,
            3 => Self::Executing,
            4 => Self::Completed,
            5 => Self::Cancelled,
            _ => panic!("there is no such state"),
        }
    }

    /// Whether the timer may be armed or released: no exchange starts from here (rule 2).
    #[inline]
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        matches!(self, Self::Pending | Self::Completed | Self::Cancelled)
    }
}

/// In which state a won cancel found the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelledFrom {
    /// It waited in its shard: the shard's owner frees it, once the canceller has returned the
    /// slot.
    Scheduled,
    /// It was due and passed to a taker: the shard's owner frees it, once the canceller has
    /// returned the slot; the taker's [`take`](AtomicState::take) fails, and the taker drops its
    /// reference.
    Queued,
}

/// The memory operations of one form. Not for use outside this crate and its tests.
#[doc(hidden)]
pub trait RawTimerState: fmt::Debug + Send + Sync + Sized {
    /// The largest link.
    const LINK_MAX: u32;

    /// Pending, without generation.
    fn empty() -> Self;
    /// Rule 2: to Scheduled, by a plain write.
    fn arm(&self, generation: Generation);
    /// Rule 1: keeps the generation; clears the link if `to` is Cancelled.
    fn exchange(&self, generation: Generation, from: State, to: State) -> bool;
    /// Rule 1: Executing to Scheduled under another generation.
    fn rearm(&self, generation: Generation, next: Generation) -> bool;
    /// The state, if it is of this generation and not Pending or Cancelled.
    fn peek(&self, generation: Generation) -> Option<State>;
    /// State, and generation where it has one.
    fn state(&self) -> (State, Option<Generation>);
    /// Rule 2: to Pending, by a plain write.
    fn release(&self);
    /// Rule 6.
    fn set_link(&self, link: u32);
    /// Rule 6.
    fn link(&self) -> u32;
}

/// The atomic timer state in one of its forms; [`AtomicTimerState`](crate::AtomicTimerState) is the
/// form of the target. Protocol: [module documentation](self).
///
/// # Examples
///
/// ```
/// use clockjack_time::{AtomicTimerState, CancelledFrom, Generation};
///
/// let state = AtomicTimerState::new();
/// let first = Generation::FIRST;
/// state.arm(first);
/// assert!(state.expire(first));
/// // Due, but no thread has taken it: a cancel wins, once, and then the handler cannot run.
/// assert_eq!(state.cancel(first), Some(CancelledFrom::Queued));
/// assert_eq!(state.cancel(first), None);
/// assert!(!state.take(first));
///
/// state.release();
/// state.arm(first.next());
/// // A key of the slot's former use cancels nothing.
/// assert_eq!(state.cancel(first), None);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicState<R>(pub(crate) R);

impl<R: RawTimerState> AtomicState<R> {
    /// The largest number that [`set_link`](Self::set_link) takes: `u32::MAX`, or 2^29 − 1 on
    /// targets without 64-bit atomics.
    pub const LINK_MAX: u32 = R::LINK_MAX;

    /// Pending, Completed, or Cancelled and reclaimed → Scheduled, under `generation`.
    ///
    /// Called by the owner of the slot, while no other thread may touch it; `generation` is not
    /// that of an earlier use whose key may still exist. Data that was written to the slot before
    /// is visible to every thread that wins a transition of this generation.
    #[inline]
    pub fn arm(&self, generation: Generation) {
        self.0.arm(generation);
    }

    /// Scheduled → Queued: the timer is due and passed to a taker. False if it was cancelled.
    #[inline]
    #[must_use = "false means that the timer must not be handed over"]
    pub fn expire(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Scheduled, State::Queued)
    }

    /// Queued → Executing: the caller, and no other thread, runs the handler. False if it was
    /// cancelled.
    #[inline]
    #[must_use = "false means that the handler must not run"]
    pub fn take(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Queued, State::Executing)
    }

    /// Scheduled → Completed in one step: for stores that decide at expiry and pass the value
    /// itself on, so that nothing is left to cancel. False if it was cancelled.
    #[inline]
    #[must_use = "false means that the timer must not fire"]
    pub fn fire(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Scheduled, State::Completed)
    }

    /// Executing → Completed, by the winner of [`take`](Self::take). False if the timer is not
    /// executing under this generation.
    #[inline]
    pub fn complete(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Executing, State::Completed)
    }

    /// Executing → Scheduled under generation `next`, by the winner of [`take`](Self::take): a
    /// periodic timer starts its next period. Keys of the former generation are stale from then on.
    /// False if the timer is not executing under `generation`.
    #[inline]
    pub fn rearm(&self, generation: Generation, next: Generation) -> bool {
        self.0.rearm(generation, next)
    }

    /// Scheduled or Queued → Cancelled, by any thread at any time.
    ///
    /// `Some` for at most one caller per generation, and then the handler never runs. `None` if
    /// the timer has been taken, fired or cancelled, or if `generation` is of another use of the
    /// slot.
    #[inline]
    pub fn cancel(&self, generation: Generation) -> Option<CancelledFrom> {
        loop {
            let from = match self.0.peek(generation)? {
                State::Scheduled => CancelledFrom::Scheduled,
                State::Queued => CancelledFrom::Queued,
                _ => return None,
            };
            let state = match from {
                CancelledFrom::Scheduled => State::Scheduled,
                CancelledFrom::Queued => State::Queued,
            };
            if self.0.exchange(generation, state, State::Cancelled) {
                return Some(from);
            }
        }
    }

    /// Completed or Cancelled → Pending, by the owner of the slot, after which the slot is free.
    /// What the last winner did is visible to the caller afterwards.
    #[inline]
    pub fn release(&self) {
        self.0.release();
    }

    /// The state, and the generation if it has one: Pending and Cancelled have none.
    ///
    /// The answer may be out of date when it arrives, unless the caller is the owner and the state
    /// is one that only the owner changes. It serves statistics, dumps and assertions.
    #[inline]
    pub fn state(&self) -> (State, Option<Generation>) {
        self.0.state()
    }

    /// The state if it is of this generation, `None` if it is stale, Pending or Cancelled.
    /// The result may be outdated at once, as that of [`state`](Self::state).
    #[inline]
    pub fn state_of(&self, generation: Generation) -> Option<State> {
        self.0.peek(generation)
    }

    /// Stores a number in place of the generation, for a list of cancelled slots.
    ///
    /// Only by the winner of the cancel, and only until it has published the slot, for instance by
    /// pushing it on an index stack; the push may be tried again with another link. The write is
    /// relaxed: the head of the list publishes it.
    ///
    /// # Panics
    ///
    /// If `link` is more than [`LINK_MAX`](Self::LINK_MAX); the store must be built smaller.
    #[inline]
    pub fn set_link(&self, link: u32) {
        assert!(link <= R::LINK_MAX, "link {link} is more than {}", R::LINK_MAX);
        self.0.set_link(link);
    }

    /// The number that [`set_link`](Self::set_link) stored last, zero if there is none. Only in
    /// Cancelled, by a thread that has read the head of the list with acquire ordering.
    #[inline]
    pub fn link(&self) -> u32 {
        self.0.link()
    }
}

impl<R: RawTimerState> Default for AtomicState<R> {
    fn default() -> Self {
        Self(R::empty())
    }
}
