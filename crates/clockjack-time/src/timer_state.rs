//! The timer word: the one place where firing, cancelling and moving a timer are decided.
//!
//! Two words, one for the state and one for the generation, let `cancel()` return true and the
//! timer still fire. Here both are exchanged together. The memory steps stand in twin files,
//! `word/wide.rs` (one 64-bit atomic) and `word/narrow.rs` (two 32-bit atomics, for targets that
//! have no wider ones); this file holds what is the same for both.
//!
//! # Layout
//!
//! ```text
//!            63                                16 15             0
//!   wide    [ generation 48, or link 32 if Cancelled | state 16  ]
//!
//!            31            19 18             0     31                              3 2     0
//!   narrow  high [ zero 13 | generation 47..29 ]   low [ generation 28..0, or link | state 3 ]
//! ```
//!
//! # Life cycle
//!
//! ```text
//!               arm                 expire             take                complete
//!   Pending ──────────► Scheduled ──────────► Queued ──────────► Executing ──────────► Completed
//!      ▲                 │  │   ▲                │                  │                     │ ▲
//!      │  begin_migration│  │   └────────────────┼── rearm (new generation)               │ │
//!      │                 ▼  │                    │                                        │ │
//!      │          Migrating │fire                │ cancel                                 │ │
//!      │       end_migration└────────────────────┼────────────────────────────────────────┼─┘
//!      │       (to Scheduled)                    ▼                                        │
//!      │           └── cancel ──────────────► Cancelled ◄── cancel (from Scheduled)       │
//!      │                                         │                                        │
//!      └──────────── release ────────────────────┴────────────────────────────────────────┘
//! ```
//!
//! # Roles
//!
//! * The **owner** holds the lease of the shard that the slot belongs to. It alone calls
//!   [`arm`](AtomicState::arm), [`release`](AtomicState::release), [`expire`](AtomicState::expire),
//!   [`fire`](AtomicState::fire), [`begin_migration`](AtomicState::begin_migration) and
//!   [`end_migration`](AtomicState::end_migration).
//! * The **taker** is whoever was handed the due timer. It calls [`take`](AtomicState::take), and, having
//!   won, [`complete`](AtomicState::complete) or [`rearm`](AtomicState::rearm).
//! * **Anyone** who has the timer's key may call [`cancel`](AtomicState::cancel), at any time, also long
//!   after the slot has served other timers.
//!
//! # Rules
//!
//! 1. Every transition but `arm` and `release` is a compare-exchange from one exact state and
//!    generation. It changes the word or returns without effect; it never half happens.
//! 2. `arm` and `release` are plain writes, legal because in Pending, Completed and Cancelled no
//!    compare-exchange of anyone can succeed: none starts from those states.
//! 3. A cancel that wins has made the word Cancelled; `expire`, `fire`, `take` and
//!    `end_migration` of that generation then fail, so the handler never runs. A cancel that
//!    meets Executing or later, or another generation, changes nothing and returns `None`.
//! 4. A cancel may also win while the timer is Migrating. Waiting for the move to end is not
//!    allowed (the mover may be interrupted by the very thread that waits). The mover learns it
//!    from `end_migration`, which returns false: it has the entry in its hands and frees it.
//! 5. Who frees the slot after a won cancel follows from [`CancelledFrom`]: the mover for
//!    `Migrating`; otherwise the owner, once the winner has told it. Until then the owner leaves
//!    the slot alone even if it meets it, for the winner may still write the link (rule 6).
//! 6. In Cancelled the generation has no use any more, since every comparison fails on the state.
//!    Its place may hold a link, written by the winner of the cancel alone.
//! 7. Data of the slot written before `arm` is visible to whoever wins a transition afterwards,
//!    and what a winner did is visible to the next winner and to the next `arm`: transitions
//!    acquire and release.
//!
//! # Why it cannot hang
//!
//! No call waits. `cancel` alone loops: it tries again only after its exchange failed because the
//! same generation moved to another state. A timer moves forward at most four times in one
//! generation; only a shard that changes hands over and over could repeat Scheduled and Migrating,
//! and each repetition is progress of the mover.

use core::{fmt, num::NonZeroU64};

/// Names one use of a slot. Forty-eight bits, never zero, the same on every target, so that a key
/// written down on one machine reads alike on another.
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
    /// The last generation before the count starts over. At a million re-arms of one slot a
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

    /// The number, in the form that keeps an `Option` small.
    #[inline]
    #[must_use]
    pub const fn non_zero(self) -> NonZeroU64 {
        self.0
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

/// Where a timer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// The slot is free, or its timer is not armed yet.
    Pending = 0,
    /// Armed: the timer waits in a wheel, an overflow or an inbox.
    Scheduled = 1,
    /// Due and handed over, not yet taken: a cancel still wins.
    Queued = 2,
    /// Its handler runs: a cancel has lost.
    Executing = 3,
    /// It ran.
    Completed = 4,
    /// A cancel won: it will never run.
    Cancelled = 5,
    /// It is being moved from one wheel to another: a cancel still wins.
    Migrating = 6,
}

impl State {
    /// The bits that a state takes in the narrow word.
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
            6 => Self::Migrating,
            _ => panic!("the seventh state does not exist"),
        }
    }

    /// Whether the word may be armed or released: no exchange starts from here (rule 2).
    #[inline]
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        matches!(self, Self::Pending | Self::Completed | Self::Cancelled)
    }
}

/// Where a won cancel found the timer, and therefore who frees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelledFrom {
    /// It waited in its shard: the shard's owner frees it, once told.
    Scheduled,
    /// It was due and handed over: the shard's owner frees it, once told; the taker will find that
    /// its [`take`](AtomicState::take) fails, and drops the note that it was handed.
    Queued,
    /// It was on its way from one wheel to another: the mover frees it, told by
    /// [`end_migration`](AtomicState::end_migration). The canceller leaves no note.
    Migrating,
}

/// The memory steps of one twin. Not for use outside this crate and its tests.
#[doc(hidden)]
pub trait RawTimerState: fmt::Debug + Send + Sync + Sized {
    /// The largest link.
    const LINK_MAX: u32;

    /// A word in Pending, without generation.
    fn empty() -> Self;
    /// Rule 2: to Scheduled, by a plain write.
    fn arm(&self, generation: Generation);
    /// Rule 1: keeps the generation; clears the link if `to` is Cancelled.
    fn exchange(&self, generation: Generation, from: State, to: State) -> bool;
    /// Rule 1: Executing to Scheduled under another generation.
    fn rearm(&self, generation: Generation, next: Generation) -> bool;
    /// The state, if the word is of this generation and not Pending or Cancelled.
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

/// The timer word over one of the twins; [`AtomicTimerState`](crate::AtomicTimerState) is that of the target.
/// Protocol: [module documentation](self).
///
/// # Examples
///
/// ```
/// use clockjack_time::{CancelledFrom, Generation, AtomicTimerState};
///
/// let word = AtomicTimerState::new();
/// let first = Generation::FIRST;
/// word.arm(first);
/// assert!(word.expire(first));
/// // Due, but nobody has taken it: a cancel wins, once, and then the handler cannot run.
/// assert_eq!(word.cancel(first), Some(CancelledFrom::Queued));
/// assert_eq!(word.cancel(first), None);
/// assert!(!word.take(first));
///
/// word.release();
/// word.arm(first.next());
/// // A key of the slot's former use cancels nothing.
/// assert_eq!(word.cancel(first), None);
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
    /// By the owner of the slot, while nobody else may touch it; `generation` is not that of an
    /// earlier use which a key may still name. What was written to the slot before is visible to
    /// whoever wins a transition of this generation.
    #[inline]
    pub fn arm(&self, generation: Generation) {
        self.0.arm(generation);
    }

    /// Scheduled → Queued: the timer is due and handed over. False if it was cancelled.
    #[inline]
    #[must_use = "false means that the timer must not be handed over"]
    pub fn expire(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Scheduled, State::Queued)
    }

    /// Queued → Executing: the caller, and nobody else, runs the handler. False if it was
    /// cancelled.
    #[inline]
    #[must_use = "false means that the handler must not run"]
    pub fn take(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Queued, State::Executing)
    }

    /// Scheduled → Completed in one step: for stores that decide at expiry and hand the value
    /// itself over, so that nothing is left to cancel. False if it was cancelled.
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
    /// periodic timer goes round. Keys of the former generation are stale from here on. False if
    /// the timer is not executing under `generation`.
    #[inline]
    pub fn rearm(&self, generation: Generation, next: Generation) -> bool {
        self.0.rearm(generation, next)
    }

    /// Scheduled, Queued or Migrating → Cancelled, by anyone at any time.
    ///
    /// `Some` for exactly one caller per generation, and then the handler never runs. `None` if
    /// the timer has been taken, fired or cancelled, or if `generation` is of another use of the
    /// slot.
    #[inline]
    pub fn cancel(&self, generation: Generation) -> Option<CancelledFrom> {
        loop {
            let from = match self.0.peek(generation)? {
                State::Scheduled => CancelledFrom::Scheduled,
                State::Queued => CancelledFrom::Queued,
                State::Migrating => CancelledFrom::Migrating,
                _ => return None,
            };
            let state = match from {
                CancelledFrom::Scheduled => State::Scheduled,
                CancelledFrom::Queued => State::Queued,
                CancelledFrom::Migrating => State::Migrating,
            };
            if self.0.exchange(generation, state, State::Cancelled) {
                return Some(from);
            }
        }
    }

    /// Scheduled → Migrating: the timer leaves its wheel for another one. False if it was
    /// cancelled; then the owner of the slot will be told by the canceller.
    #[inline]
    #[must_use = "false means that the timer must not be moved"]
    pub fn begin_migration(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Scheduled, State::Migrating)
    }

    /// Migrating → Scheduled: the timer has arrived. False if it was cancelled on the way; then
    /// the caller, who has the entry in hand, frees it.
    #[inline]
    #[must_use = "false means that the timer was cancelled on the way and must be freed here"]
    pub fn end_migration(&self, generation: Generation) -> bool {
        self.0.exchange(generation, State::Migrating, State::Scheduled)
    }

    /// Completed or Cancelled → Pending, by the owner of the slot, after which it is free. What
    /// the last winner did is visible to the caller afterwards.
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

    /// The state if the word is of this generation, `None` if it is stale, Pending or Cancelled.
    /// As fleeting as [`state`](Self::state).
    #[inline]
    pub fn state_of(&self, generation: Generation) -> Option<State> {
        self.0.peek(generation)
    }

    /// Keeps a number in the place of the generation, for a list of cancelled slots.
    ///
    /// Only by the winner of the cancel, and only until it has published the slot, for instance by
    /// pushing it on the return stack; the push may be tried again with another link. The write is
    /// relaxed: it is the head of the list that publishes it.
    ///
    /// # Panics
    ///
    /// If `link` is more than [`LINK_MAX`](Self::LINK_MAX); the store must be built smaller.
    #[inline]
    pub fn set_link(&self, link: u32) {
        assert!(link <= R::LINK_MAX, "link {link} is more than {}", R::LINK_MAX);
        self.0.set_link(link);
    }

    /// The number last kept by [`set_link`](Self::set_link), zero if none was. Only in Cancelled,
    /// by whoever has read the head of the list with acquire ordering.
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
