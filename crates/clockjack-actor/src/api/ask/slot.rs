//! The slot in which an answer and the asker that waits for it meet; slots are reused.
//!
//! # Protocol
//!
//! Roles: one *asker*, one *replier*. A slot has a state word, a buffer for the answer, a
//! [timer](super::timer) with a place for a waker, and an *owner*: the asked actor, whose system
//! the slot is returned to.
//!
//! ```text
//!                  reply            asker leaves         replier leaves
//!        ┌──────► ANSWERED ───────► + ASKER_LEFT ──────► + REPLIER_LEFT ──► pool
//!        │                          (or in the other order)
//!   OPEN ┼──────► DROPPED, likewise
//!        │ drop
//!        └──────► ABANDONED ──────► pool, by the replier
//!          timeout or drop
//! ```
//!
//! 1. While the word is OPEN, the buffer belongs to the replier. The replier writes the answer
//!    there and exchanges OPEN for ANSWERED; a replier that is dropped exchanges OPEN for DROPPED.
//!    Then it wakes the asker, and then it leaves.
//! 2. An asker that is cancelled exchanges OPEN for ABANDONED, and has left by that: it does not
//!    access the slot any more. If the compare-and-swap fails, the replier was faster, and the
//!    asker takes what the replier has stored.
//! 3. So of an answer, a timeout and a drop one is first, and both sides know which. A replier
//!    whose compare-and-swap finds ABANDONED takes its answer out of the buffer again, and owns the
//!    slot alone.
//! 4. After ANSWERED the buffer belongs to the asker, which takes the answer out and leaves.
//! 5. Leaving sets a bit; the side that finds the other side's bit set owns the slot alone. It
//!    makes the slot OPEN again and returns it to the pool. The owner is stored before the two
//!    sides begin, read by both, and taken out by the side that owns the slot alone.
//!
//! *Why no answer is missed*: the asker stores its waker and then reads the word again; the replier
//! changes the word and then takes the waker. Whichever of the two is later sees the other's first
//! step (see [`AtomicWaker`](clockjack_sync::waker::AtomicWaker)).
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
    Arc,
    primitive::{
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

/// The size up to which an answer is stored in the slot itself; larger ones are boxed.
pub const INLINE_ANSWER_BYTES: usize = 64;

/// The buffer for an answer.
#[repr(C, align(16))]
struct AnswerBuffer([MaybeUninit<u8>; INLINE_ANSWER_BYTES]);

/// Reclaims a slot that is no longer used.
pub trait SlotOwner: Sized {
    /// The timers for the timeouts of its asks.
    type Timers: TimerBackend;

    /// Wakes the asker. The waker is code of the asker: a panic of it must not reach the replier.
    fn wake(&self, waker: Waker) {
        waker.wake();
    }

    /// Takes the slot back, which is in its initial state.
    fn reclaim(self, slot: Box<ReplySlot<Self>>);
}

/// A slot for one answer; see the [module](self).
pub struct ReplySlot<T: SlotOwner> {
    state: AtomicU32,
    /// Identifies the slot, for names.
    number: u32,
    timer: Arc<AskTimer<T::Timers>>,
    owner: UnsafeCell<Option<T>>,
    /// How often it was used before.
    uses: UnsafeCell<u32>,
    buffer: UnsafeCell<AnswerBuffer>,
}

// SAFETY: the protocol says which side accesses the cells, one at a time except for shared borrows
// of the owner; the answer in the buffer is sent from the replier to the asker, whose own `Send`
// bounds cover it.
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
            timer: Arc::new(AskTimer::new(timers)),
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
            // SAFETY: this side has not left, so the owner is there and nobody changes it.
            let owner = unsafe { &*owner };
            owner.as_ref()
        });
        owner.expect("a slot that is used has an owner")
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

/// The side that waits. Its drop cancels the ask.
pub struct Asker<R, T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
    _answer: PhantomData<R>,
}

// SAFETY: the answer is moved to the thread of the asker; the owner is shared, and may be dropped
// there.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Send for Asker<R, T> {}

impl<R, T: SlotOwner> SlotAccess<T> for Asker<R, T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: the slot exists until both sides have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: SlotOwner> Asker<R, T> {
    /// The owner: the actor that is asked.
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
        self.is_complete()
    }

    /// Whether a deadline has passed, for an asker that has just found nothing by
    /// [`poll`](Self::poll). If not, the waker of that poll is woken at the deadline.
    ///
    /// # Errors
    ///
    /// There is no timer.
    pub fn poll_until(&self, deadline: Tick) -> Poll<Result<(), RefusedBy<T>>> {
        AskTimer::poll(&self.slot().timer, deadline)
    }

    /// An observer of the slot.
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
        // Acquire: pairs with the replier's compare-and-swap; the answer is stored.
        self.slot().state.load(Acquire) & OUTCOME != OPEN
    }

    /// Cancels the ask, unless the replier was faster.
    pub fn cancel(self) -> Option<ReplyOutcome<R>> {
        let this = ManuallyDrop::new(self);
        // Release: this side is done with the slot; pairs with the replier's compare-and-swap.
        // Acquire: pairs with the same, if the replier was faster.
        match this.slot().state.compare_exchange(OPEN, ABANDONED, AcqRel, Acquire) {
            Ok(_) => None,
            Err(_) => Some(ManuallyDrop::into_inner(this).take()),
        }
    }

    /// Takes what the replier has stored. The caller knows that there is something.
    #[must_use]
    pub fn take(self) -> ReplyOutcome<R> {
        let this = ManuallyDrop::new(self);
        // Acquire: as in `is_complete`.
        let outcome = match this.slot().state.load(Acquire) & OUTCOME {
            // SAFETY: the word is ANSWERED, so the buffer contains an answer, which belongs to the
            // asker.
            ANSWERED => ReplyOutcome::Answered(unsafe { take_answer(this.slot()) }),
            outcome => {
                debug_assert!(outcome == DROPPED, "taken before it was complete");
                ReplyOutcome::Dropped
            }
        };
        // Release: the buffer is empty. Acquire: the replier has woken.
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

/// Observes from a third place whether an ask has an answer.
pub(crate) struct ReplySlotObserver<T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
}

// SAFETY: it only reads the state word of the slot.
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
    /// The asker has not left, and does not leave before this returns.
    pub(crate) unsafe fn is_open(&self) -> bool {
        // SAFETY: the slot exists until both sides have left.
        let slot = unsafe { self.slot.as_ref() };
        // Relaxed: an answer that was given before some event is visible to a caller that was
        // notified of this event; nothing is taken out here.
        slot.state.load(Relaxed) & OUTCOME == OPEN
    }
}

/// The side that answers. Its drop says that there will be no answer.
pub struct Replier<R, T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
    _answer: PhantomData<fn(R)>,
}

// SAFETY: the answer is sent to the thread of the asker; the owner is shared, and may be dropped
// here.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Send for Replier<R, T> {}
// SAFETY: a shared borrow only reads the state word.
unsafe impl<R: Send, T: SlotOwner + Send + Sync> Sync for Replier<R, T> {}

impl<R, T: SlotOwner> SlotAccess<T> for Replier<R, T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: the slot exists until both sides have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: SlotOwner> Replier<R, T> {
    /// Whether an asker waits for the answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        // Relaxed: it may change at once.
        self.slot().state.load(Relaxed) & OUTCOME != ABANDONED
    }

    /// Answers. If the ask was cancelled, returns the answer and the slot.
    ///
    /// # Errors
    ///
    /// The asker has cancelled the ask.
    pub fn reply(self, answer: R) -> Result<(), (R, ReleasedReplySlot<T>)> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the buffer belongs to the replier, and is empty.
        unsafe { put_answer(this.slot(), answer) };
        if complete(this.slot, ANSWERED) {
            return Ok(());
        }
        // SAFETY: it was put there above, and nobody else has seen it.
        let answer = unsafe { take_answer(this.slot()) };
        // SAFETY: the asker has left, and this side does not use the slot again.
        Err((answer, unsafe { ReleasedReplySlot::new(this.slot) }))
    }
}

impl<R, T: SlotOwner> Drop for Replier<R, T> {
    fn drop(&mut self) {
        if !complete(self.slot, DROPPED) {
            // SAFETY: the asker has left, and this side does not use the slot again.
            drop(unsafe { ReleasedReplySlot::new(self.slot) });
        }
    }
}

/// Completes an ask, wakes the asker and leaves; false if the asker has left.
fn complete<T: SlotOwner>(slot: NonNull<ReplySlot<T>>, outcome: u32) -> bool {
    // SAFETY: the caller is the replier and has not left.
    let it = unsafe { slot.as_ref() };
    // Release: the answer is stored; pairs with the asker's loads. Acquire: on failure, the asker
    // is done with the slot.
    if it.state.compare_exchange(OPEN, outcome, Release, Acquire).is_err() {
        return false;
    }
    let leaving = LeaveOnDrop(slot);
    if let Some(waker) = it.timer.waker().take() {
        leaving.owner().wake(waker);
    }
    true
}

/// Makes the replier leave, also if a waker panics.
struct LeaveOnDrop<T: SlotOwner>(NonNull<ReplySlot<T>>);

impl<T: SlotOwner> SlotAccess<T> for LeaveOnDrop<T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: the replier has not left.
        unsafe { self.0.as_ref() }
    }
}

impl<T: SlotOwner> Drop for LeaveOnDrop<T> {
    fn drop(&mut self) {
        // SAFETY: the replier has not left before this.
        let slot = unsafe { self.0.as_ref() };
        // Release: this side is done with the waker. Acquire: the asker is done with everything.
        let before = slot.state.fetch_or(REPLIER_LEFT, AcqRel);
        if before & ASKER_LEFT != 0 {
            // SAFETY: both sides have left.
            drop(unsafe { ReleasedReplySlot::new(self.0) });
        }
    }
}

/// A slot that both sides have left. Its drop returns the slot to the pool.
pub struct ReleasedReplySlot<T: SlotOwner> {
    slot: NonNull<ReplySlot<T>>,
}

impl<T: SlotOwner> SlotAccess<T> for ReleasedReplySlot<T> {
    fn slot(&self) -> &ReplySlot<T> {
        // SAFETY: this value owns the slot alone.
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

    /// The owner, which reclaims the slot.
    #[must_use]
    pub fn owner(&self) -> &T {
        SlotAccess::owner(self)
    }

    /// The number of the slot, and how often it was used before.
    #[must_use]
    pub fn name(&self) -> (u32, u32) {
        // SAFETY: this value owns the slot alone.
        (self.slot().number, self.slot().uses.with(|uses| unsafe { *uses }))
    }
}

impl<T: SlotOwner> Drop for ReleasedReplySlot<T> {
    fn drop(&mut self) {
        // SAFETY: it was leaked by `pair`, and this value owns the slot alone.
        let mut slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
        // A waker that the asker has stored and nobody has woken.
        drop(slot.timer.waker().take());
        // Relaxed: the pool publishes it.
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

/// Whether an answer of this type fits into the buffer.
const fn fits<R>() -> bool {
    size_of::<R>() <= INLINE_ANSWER_BYTES && align_of::<R>() <= align_of::<AnswerBuffer>()
}

/// # Safety
///
/// The buffer belongs to the caller, and is empty.
unsafe fn put_answer<R, T: SlotOwner>(slot: &ReplySlot<T>, answer: R) {
    slot.buffer.with_mut(|buffer| {
        if const { fits::<R>() } {
            // SAFETY: it fits, and the buffer belongs to the caller.
            unsafe { buffer.cast::<R>().write(answer) };
        } else {
            // SAFETY: as above: a pointer fits.
            unsafe { buffer.cast::<*mut R>().write(Box::into_raw(Box::new(answer))) };
        }
    });
}

/// # Safety
///
/// The buffer belongs to the caller, and contains an answer of this type, which is moved out.
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
