//! The place where an answer and who waits for it meet; used again and again.
//!
//! # Protocol
//!
//! Roles: one *asker*, one *replier*. One word, a room for the answer, the [alarm](super::alarm)
//! with a place for a waker, and the *home* that the slot goes back to.
//!
//! ```text
//!                  reply            asker leaves         replier leaves
//!        ┌──────► ANSWERED ───────► + ASKER_LEFT ──────► + REPLIER_LEFT ──► home
//!        │                          (or the other way round)
//!   OPEN ┼──────► DROPPED, likewise
//!        │ drop
//!        └──────► ABANDONED ───────────► home, by the replier
//!          time-out or drop
//! ```
//!
//! 1. While the word is OPEN the room is the replier's. It writes the answer there and exchanges
//!    OPEN for ANSWERED; a replier that is dropped exchanges OPEN for DROPPED. Then it wakes the
//!    asker, and then it leaves.
//! 2. An asker that gives up exchanges OPEN for ABANDONED, and has left by that: it touches the slot no
//!    more. If the exchange fails, the replier was faster, and the asker has what it left.
//! 3. So of an answer, a time-out and a drop one comes first, and all know which. A replier whose
//!    exchange finds ABANDONED takes its answer out of the room again, and is alone with the slot.
//! 4. After ANSWERED the room is the asker's. It takes the answer out and leaves.
//! 5. LeaveOnDrop sets a bit; who finds the other's bit set is alone with the slot. Who is alone makes
//!    it OPEN again and gives it to its home. The home is put in before the two begin, read by both
//!    and taken out by who is alone.
//!
//! *Why no answer is missed*: the asker leaves its waker, and then looks at the word again; the
//! replier changes the word, and then takes the waker (see
//! [`AtomicWaker`](clockjack_sync::waker::AtomicWaker)).
#![expect(unsafe_code, reason = "keeps answers of any type in one kind of memory")]

use alloc::boxed::Box;
use core::{
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
    ptr::NonNull,
    task::{Poll, Waker},
};

use clockjack_sync::{
    counted::Counted,
    mutant,
    prim::{
        UnsafeCell,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};
use clockjack_time::Tick;

use super::timer::{AskTimer, TimerBackend};

const OPEN: u32 = 0;
const ANSWERED: u32 = 1;
const DROPPED: u32 = 2;
const ABANDONED: u32 = 3;
const OUTCOME: u32 = 3;
const ASKER_LEFT: u32 = 1 << 2;
const REPLIER_LEFT: u32 = 1 << 3;

/// How large an answer may be that stands in the slot itself.
pub const INLINE_ANSWER_BYTES: usize = 64;

/// Where answers stand.
#[repr(C, align(16))]
struct AnswerBuffer([MaybeUninit<u8>; INLINE_ANSWER_BYTES]);

/// Where a slot goes when it is not used any more.
pub trait SlotOwner: Sized {
    /// What ends its asks that take too long.
    type Timers: TimerBackend;

    /// Takes the slot, which is as new.
    fn reclaim(self, slot: Box<ReplySlot<Self>>);
}

/// A place for one answer; see the [module](self).
pub struct ReplySlot<T: SlotOwner> {
    state: AtomicU32,
    /// Which slot it is, for names.
    number: u32,
    timer: Counted<AskTimer<T::Timers>>,
    owner: UnsafeCell<Option<T>>,
    /// How often it was used before.
    uses: UnsafeCell<u32>,
    buffer: UnsafeCell<AnswerBuffer>,
}

// SAFETY: the cells are used by who the protocol says, one at a time but for shared borrows of the
// home; what is in the room is sent from the replier to the asker, which they answer for.
unsafe impl<T: SlotOwner + Send + Sync> Send for ReplySlot<T> {}
// SAFETY: as above.
unsafe impl<T: SlotOwner + Send + Sync> Sync for ReplySlot<T> {}

impl<T: SlotOwner> ReplySlot<T> {
    /// A new slot.
    #[must_use]
    pub fn new(number: u32, timers: T::Timers) -> Box<Self> {
        Box::new(Self {
            state: AtomicU32::new(OPEN),
            number,
            timer: Counted::new(AskTimer::new(timers)),
            owner: UnsafeCell::new(None),
            uses: UnsafeCell::new(0),
            buffer: UnsafeCell::new(AnswerBuffer([MaybeUninit::uninit(); INLINE_ANSWER_BYTES])),
        })
    }
}

impl<T: SlotOwner> Drop for ReplySlot<T> {
    fn drop(&mut self) {
        AskTimer::release(&self.timer);
    }
}

impl<T: SlotOwner> fmt::Debug for ReplySlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySlot").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The two sides of a slot.
pub fn pair<R, T: SlotOwner>(
    mut slot: Box<ReplySlot<T>>,
    owner: T,
) -> (Asker<R, T>, Replier<R, T>) {
    slot.owner = UnsafeCell::new(Some(owner));
    let slot = NonNull::from(Box::leak(slot));
    (Asker { slot, _answer: PhantomData }, Replier { slot, _answer: PhantomData })
}

/// What both sides do with the slot.
trait SlotAccess<T: SlotOwner> {
    fn slot(&self) -> &ReplySlot<T>;

    fn owner(&self) -> &T {
        let owner = self.slot().owner.with(|owner| {
            // SAFETY: this side has not left, so the home is there and nobody changes it.
            let owner = unsafe { &*owner };
            owner.as_ref()
        });
        owner.expect("a slot that is used has a owner")
    }
}

/// Why there is no timer.
type RefusedBy<T> = <<T as SlotOwner>::Timers as TimerBackend>::Refused;

/// What an asker finds.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyOutcome<R> {
    /// The answer.
    Answered(R),
    /// There will be none.
    Dropped,
}

/// The side that waits. Dropped, it gives up.
pub struct Asker<R, T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
    _answer: PhantomData<R>,
}

// SAFETY: the answer comes to where the asker is; the home is shared, and may be given up here.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Send for Asker<R, T> {}

impl<R, T: SlotOwner> SlotAccess<T> for Asker<R, T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: the slot is there until both have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: SlotOwner> Asker<R, T> {
    /// What the slot goes back to.
    #[must_use]
    pub fn owner(&self) -> &T {
        SlotAccess::owner(self)
    }

    /// Whether there is something to [take](Self::take). If not, `waker` is woken when there is.
    #[must_use]
    pub fn poll(&self, waker: &Waker) -> bool {
        if self.is_complete() {
            return true;
        }
        self.slot().timer.waker().register(waker);
        !mutant!("ask-looks-once") && self.is_complete()
    }

    /// Whether a deadline has come, for an asker that has just found nothing by
    /// [`poll`](Self::poll). If not, the waker of that is woken then.
    ///
    /// # Errors
    ///
    /// There is no timer for that.
    pub fn poll_until(&self, deadline: Tick) -> Poll<Result<(), RefusedBy<T>>> {
        AskTimer::poll(&self.slot().timer, deadline)
    }

    /// A look at the slot for somebody else.
    pub(crate) fn observer(&self) -> ReplySlotObserver<T> {
        ReplySlotObserver { slot: self.slot }
    }

    /// Whether it is certain that there will be no answer.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        // Relaxed: nothing is taken out here.
        self.slot().state.load(Relaxed) & OUTCOME == DROPPED
    }

    fn is_complete(&self) -> bool {
        // Acquire: pairs with the replier's exchange; the answer is there.
        self.slot().state.load(Acquire) & OUTCOME != OPEN
    }

    /// Gives up, unless the replier was faster.
    pub fn cancel(self) -> Option<ReplyOutcome<R>> {
        let this = ManuallyDrop::new(self);
        // Release: what this side did with the slot is done; pairs with the replier's exchange.
        // Acquire: pairs with the same, if that was faster.
        match this.slot().state.compare_exchange(OPEN, ABANDONED, AcqRel, Acquire) {
            Ok(_) => None,
            Err(_) => Some(ManuallyDrop::into_inner(this).take()),
        }
    }

    /// Takes what the replier has left. For who was told that there is something.
    #[must_use]
    pub fn take(self) -> ReplyOutcome<R> {
        let this = ManuallyDrop::new(self);
        // Acquire: as in `is_complete`.
        let outcome = match this.slot().state.load(Acquire) & OUTCOME {
            // SAFETY: answered, so the room has an answer, and it is the asker's.
            ANSWERED => ReplyOutcome::Answered(unsafe { take_answer(this.slot()) }),
            outcome => {
                debug_assert!(outcome == DROPPED, "taken before it was completed");
                ReplyOutcome::Dropped
            }
        };
        // Release: the room is empty. Acquire: the replier has woken.
        let before = this.slot().state.fetch_or(ASKER_LEFT, AcqRel);
        if before & REPLIER_LEFT != 0 {
            // SAFETY: the replier has left, and so has this side.
            drop(unsafe { ReleasedReplySlot::new(this.slot) });
        }
        outcome
    }
}

impl<R, T: SlotOwner> Drop for Asker<R, T> {
    fn drop(&mut self) {
        // SAFETY: this asker is not used again.
        let this = Self { slot: self.slot, _answer: PhantomData };
        drop(this.cancel());
    }
}

/// Sees whether an ask is settled, from beside it.
pub(crate) struct ReplySlotObserver<T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
}

// SAFETY: only the word of the slot is looked at.
unsafe impl<T: SlotOwner> Send for ReplySlotObserver<T> {}

impl<T: SlotOwner> Clone for ReplySlotObserver<T> {
    fn clone(&self) -> Self {
        Self { slot: self.slot }
    }
}

impl<T: SlotOwner> ReplySlotObserver<T> {
    /// Whether there is neither an answer nor the certainty that there will be none.
    ///
    /// # Safety
    ///
    /// The asker has not left, and does not before this returns.
    pub(crate) unsafe fn is_open(&self) -> bool {
        // SAFETY: the slot is there until both have left.
        let slot = unsafe { self.slot.as_ref() };
        // Relaxed: what was answered before the caller was told of something else is seen by
        // that; nothing is taken out here.
        slot.state.load(Relaxed) & OUTCOME == OPEN
    }
}

/// The side that answers. Dropped, it says that there will be no answer.
pub struct Replier<R, T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
    _answer: PhantomData<fn(R)>,
}

// SAFETY: the answer is sent to where the asker is; the home is shared, and may be given up here.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Send for Replier<R, T> {}
// SAFETY: by a shared borrow only the word is looked at.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Sync for Replier<R, T> {}

impl<R, T: SlotOwner> SlotAccess<T> for Replier<R, T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: the slot is there until both have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: SlotOwner> Replier<R, T> {
    /// Whether somebody waits for the answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        // Relaxed: it may change at once.
        self.slot().state.load(Relaxed) & OUTCOME != ABANDONED
    }

    /// Answers. If nobody waits any more, the answer comes back, with the slot.
    ///
    /// # Errors
    ///
    /// The asker has given up.
    pub fn reply(self, answer: R) -> Result<(), (R, ReleasedReplySlot<T>)> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the room is the replier's, and empty.
        unsafe { put_answer(this.slot(), answer) };
        if complete(this.slot, ANSWERED) {
            return Ok(());
        }
        // SAFETY: it was put there above, and nobody else has seen it.
        let answer = unsafe { take_answer(this.slot()) };
        // SAFETY: the asker is gone, and this side does not use the slot again.
        Err((answer, unsafe { ReleasedReplySlot::new(this.slot) }))
    }
}

impl<R, T: SlotOwner> Drop for Replier<R, T> {
    fn drop(&mut self) {
        if mutant!("ask-drop-untold") {
            return;
        }
        if !complete(self.slot, DROPPED) {
            // SAFETY: the asker is gone, and this side does not use the slot again.
            drop(unsafe { ReleasedReplySlot::new(self.slot) });
        }
    }
}

/// Settles what becomes of an ask, wakes who asked and leaves; false if that is gone.
fn complete<T: SlotOwner>(slot: NonNull<ReplySlot<T>>, outcome: u32) -> bool {
    // SAFETY: the caller is the replier and has not left.
    let it = unsafe { slot.as_ref() };
    // Release: the answer is there; pairs with the asker's loads. Acquire: on failure, what the
    // asker did with the slot is done.
    let order = if mutant!("ask-answer-unpublished") { Relaxed } else { Release };
    if it.state.compare_exchange(OPEN, outcome, order, Acquire).is_err() {
        return false;
    }
    let _leaving = LeaveOnDrop(slot);
    it.timer.waker().wake();
    true
}

/// Lets the replier leave, also if a waker panics.
struct LeaveOnDrop<T: SlotOwner>(NonNull<ReplySlot<T>>);

impl<T: SlotOwner> Drop for LeaveOnDrop<T> {
    fn drop(&mut self) {
        // SAFETY: the replier has not left before this.
        let slot = unsafe { self.0.as_ref() };
        // Release: this side is done with the waker. Acquire: so is the asker with everything.
        let before = slot.state.fetch_or(REPLIER_LEFT, AcqRel);
        if before & ASKER_LEFT != 0 || mutant!("ask-slot-freed-early") {
            // SAFETY: both have left.
            drop(unsafe { ReleasedReplySlot::new(self.0) });
        }
    }
}

/// A slot that both sides have left. Dropped, it goes home.
pub struct ReleasedReplySlot<T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
}

impl<T: SlotOwner> SlotAccess<T> for ReleasedReplySlot<T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: it is this one's alone.
        unsafe { self.slot.as_ref() }
    }
}

impl<T: SlotOwner> ReleasedReplySlot<T> {
    /// # Safety
    ///
    /// Both sides have left, and this is called once.
    unsafe fn new(slot: NonNull<ReplySlot<T>>) -> Self {
        Self { slot }
    }

    /// What it goes back to.
    #[must_use]
    pub fn owner(&self) -> &T {
        SlotAccess::owner(self)
    }

    /// Which slot it is, and how often it was used before.
    #[must_use]
    pub fn name(&self) -> (u32, u32) {
        // SAFETY: it is this one's alone.
        (self.slot().number, self.slot().uses.with(|uses| unsafe { *uses }))
    }
}

impl<T: SlotOwner> Drop for ReleasedReplySlot<T> {
    fn drop(&mut self) {
        // SAFETY: it was leaked by `pair`, and is this one's alone.
        let mut slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
        // What the asker has left and nobody has woken.
        drop(slot.timer.waker().take());
        // Relaxed: the home publishes it.
        slot.state.store(OPEN, Relaxed);
        let uses = slot.uses.with_mut(|uses| {
            // SAFETY: as above.
            unsafe { *uses }
        });
        slot.uses = UnsafeCell::new(uses.wrapping_add(1));
        let owner = slot.owner.with_mut(|owner| {
            // SAFETY: as above.
            let owner = unsafe { &mut *owner };
            owner.take()
        });
        if let Some(owner) = owner {
            owner.reclaim(slot);
        }
    }
}

impl<T: SlotOwner> fmt::Debug for ReleasedReplySlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReleasedReplySlot").field(&self.name()).finish()
    }
}

/// Whether an answer of this type stands in the slot itself.
const fn fits<R>() -> bool {
    size_of::<R>() <= INLINE_ANSWER_BYTES && align_of::<R>() <= align_of::<AnswerBuffer>()
}

/// # Safety
///
/// The room is the caller's, and empty.
unsafe fn put_answer<R, T: SlotOwner>(slot: &ReplySlot<T>, answer: R) {
    slot.buffer.with_mut(|buffer| {
        if const { fits::<R>() } {
            // SAFETY: it fits, and the room is the caller's.
            unsafe { buffer.cast::<R>().write(answer) };
        } else {
            // SAFETY: as above: a pointer fits.
            unsafe { buffer.cast::<*mut R>().write(Box::into_raw(Box::new(answer))) };
        }
    });
}

/// # Safety
///
/// The room is the caller's, and has an answer of this type, which is given up here.
unsafe fn take_answer<R, T: SlotOwner>(slot: &ReplySlot<T>) -> R {
    slot.buffer.with_mut(|buffer| {
        if const { fits::<R>() } {
            // SAFETY: by the contract.
            unsafe { buffer.cast::<R>().read() }
        } else {
            // SAFETY: by the contract; it was put there by `put_answer`.
            let boxed = unsafe { buffer.cast::<*mut R>().read() };
            // SAFETY: as above.
            *unsafe { Box::from_raw(boxed) }
        }
    })
}

impl<R, T: SlotOwner> fmt::Debug for Asker<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("is_complete", &self.is_complete()).finish_non_exhaustive()
    }
}

impl<R, T: SlotOwner> fmt::Debug for Replier<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replier").field("is_wanted", &self.is_wanted()).finish_non_exhaustive()
    }
}
