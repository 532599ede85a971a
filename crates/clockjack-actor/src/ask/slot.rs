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
//!        └──────► GONE ───────────► home, by the replier
//!          time-out or drop
//! ```
//!
//! 1. While the word is OPEN the room is the replier's. It writes the answer there and exchanges
//!    OPEN for ANSWERED; a replier that is dropped exchanges OPEN for DROPPED. Then it wakes the
//!    asker, and then it leaves.
//! 2. An asker that gives up exchanges OPEN for GONE, and has left by that: it touches the slot no
//!    more. If the exchange fails, the replier was faster, and the asker has what it left.
//! 3. So of an answer, a time-out and a drop one comes first, and all know which. A replier whose
//!    exchange finds GONE takes its answer out of the room again, and is alone with the slot.
//! 4. After ANSWERED the room is the asker's. It takes the answer out and leaves.
//! 5. Leaving sets a bit; who finds the other's bit set is alone with the slot. Who is alone makes
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

use super::alarm::{Alarm, Timers};

const OPEN: u32 = 0;
const ANSWERED: u32 = 1;
const DROPPED: u32 = 2;
const GONE: u32 = 3;
const OUTCOME: u32 = 3;
const ASKER_LEFT: u32 = 1 << 2;
const REPLIER_LEFT: u32 = 1 << 3;

/// How large an answer may be that stands in the slot itself.
pub const ROOM: usize = 64;

/// Where answers stand.
#[repr(C, align(16))]
struct Room([MaybeUninit<u8>; ROOM]);

/// Where a slot goes when it is not used any more.
pub trait Home: Sized {
    /// What ends its asks that take too long.
    type Timers: Timers;

    /// Takes the slot, which is as new.
    fn take_back(self, slot: Box<Slot<Self>>);
}

/// A place for one answer; see the [module](self).
pub struct Slot<T: Home> {
    word: AtomicU32,
    /// Which slot it is, for names.
    number: u32,
    alarm: Counted<Alarm<T::Timers>>,
    home: UnsafeCell<Option<T>>,
    /// How often it was used before.
    uses: UnsafeCell<u32>,
    room: UnsafeCell<Room>,
}

// SAFETY: the cells are used by who the protocol says, one at a time but for shared borrows of the
// home; what is in the room is sent from the replier to the asker, which they answer for.
unsafe impl<T: Home + Send + Sync> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Home + Send + Sync> Sync for Slot<T> {}

impl<T: Home> Slot<T> {
    /// A new slot.
    #[must_use]
    pub fn new(number: u32, timers: T::Timers) -> Box<Self> {
        Box::new(Self {
            word: AtomicU32::new(OPEN),
            number,
            alarm: Counted::new(Alarm::new(timers)),
            home: UnsafeCell::new(None),
            uses: UnsafeCell::new(0),
            room: UnsafeCell::new(Room([MaybeUninit::uninit(); ROOM])),
        })
    }
}

impl<T: Home> Drop for Slot<T> {
    fn drop(&mut self) {
        Alarm::retire(&self.alarm);
    }
}

impl<T: Home> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The two sides of a slot.
pub fn pair<R, T: Home>(mut slot: Box<Slot<T>>, home: T) -> (Asker<R, T>, Replier<R, T>) {
    slot.home = UnsafeCell::new(Some(home));
    let slot = NonNull::from(Box::leak(slot));
    (Asker { slot, _answer: PhantomData }, Replier { slot, _answer: PhantomData })
}

/// What both sides do with the slot.
trait Side<T: Home> {
    fn slot(&self) -> &Slot<T>;

    fn home(&self) -> &T {
        let home = self.slot().home.with(|home| {
            // SAFETY: this side has not left, so the home is there and nobody changes it.
            let home = unsafe { &*home };
            home.as_ref()
        });
        home.expect("a slot that is used has a home")
    }
}

/// Why there is no timer.
type RefusedBy<T> = <<T as Home>::Timers as Timers>::Refused;

/// What an asker finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<R> {
    /// The answer.
    Answered(R),
    /// There will be none.
    Dropped,
}

/// The side that waits. Dropped, it gives up.
pub struct Asker<R, T: Home> {
    slot: NonNull<Slot<T>>,
    _answer: PhantomData<R>,
}

// SAFETY: the answer comes to where the asker is; the home is shared, and may be given up here.
unsafe impl<R: Send, T: Home + Send + Sync> Send for Asker<R, T> {}

impl<R, T: Home> Side<T> for Asker<R, T> {
    fn slot(&self) -> &Slot<T> {
        // SAFETY: the slot is there until both have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: Home> Asker<R, T> {
    /// What the slot goes back to.
    #[must_use]
    pub fn home(&self) -> &T {
        Side::home(self)
    }

    /// Whether there is something to [take](Self::take). If not, `waker` is woken when there is.
    #[must_use]
    pub fn poll(&self, waker: &Waker) -> bool {
        if self.is_settled() {
            return true;
        }
        self.slot().alarm.waker().register(waker);
        !mutant!("ask-looks-once") && self.is_settled()
    }

    /// Whether a deadline has come, for an asker that has just found nothing by
    /// [`poll`](Self::poll). If not, the waker of that is woken then.
    ///
    /// # Errors
    ///
    /// There is no timer for that.
    pub fn poll_until(&self, deadline: Tick) -> Poll<Result<(), RefusedBy<T>>> {
        Alarm::poll(&self.slot().alarm, deadline)
    }

    /// A look at the slot for somebody else.
    pub(crate) fn glance(&self) -> Glance<T> {
        Glance { slot: self.slot }
    }

    /// Whether it is certain that there will be no answer.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        // Relaxed: nothing is taken out here.
        self.slot().word.load(Relaxed) & OUTCOME == DROPPED
    }

    fn is_settled(&self) -> bool {
        // Acquire: pairs with the replier's exchange; the answer is there.
        self.slot().word.load(Acquire) & OUTCOME != OPEN
    }

    /// Gives up, unless the replier was faster.
    pub fn give_up(self) -> Option<Outcome<R>> {
        let this = ManuallyDrop::new(self);
        // Release: what this side did with the slot is done; pairs with the replier's exchange.
        // Acquire: pairs with the same, if that was faster.
        match this.slot().word.compare_exchange(OPEN, GONE, AcqRel, Acquire) {
            Ok(_) => None,
            Err(_) => Some(ManuallyDrop::into_inner(this).take()),
        }
    }

    /// Takes what the replier has left. For who was told that there is something.
    #[must_use]
    pub fn take(self) -> Outcome<R> {
        let this = ManuallyDrop::new(self);
        // Acquire: as in `is_settled`.
        let outcome = match this.slot().word.load(Acquire) & OUTCOME {
            // SAFETY: answered, so the room has an answer, and it is the asker's.
            ANSWERED => Outcome::Answered(unsafe { take_answer(this.slot()) }),
            outcome => {
                debug_assert!(outcome == DROPPED, "taken before it was settled");
                Outcome::Dropped
            }
        };
        // Release: the room is empty. Acquire: the replier has woken.
        let before = this.slot().word.fetch_or(ASKER_LEFT, AcqRel);
        if before & REPLIER_LEFT != 0 {
            // SAFETY: the replier has left, and so has this side.
            drop(unsafe { Alone::new(this.slot) });
        }
        outcome
    }
}

impl<R, T: Home> Drop for Asker<R, T> {
    fn drop(&mut self) {
        // SAFETY: this asker is not used again.
        let this = Self { slot: self.slot, _answer: PhantomData };
        drop(this.give_up());
    }
}

/// Sees whether an ask is settled, from beside it.
pub(crate) struct Glance<T: Home> {
    slot: NonNull<Slot<T>>,
}

// SAFETY: only the word of the slot is looked at.
unsafe impl<T: Home> Send for Glance<T> {}

impl<T: Home> Clone for Glance<T> {
    fn clone(&self) -> Self {
        Self { slot: self.slot }
    }
}

impl<T: Home> Glance<T> {
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
        slot.word.load(Relaxed) & OUTCOME == OPEN
    }
}

/// The side that answers. Dropped, it says that there will be no answer.
pub struct Replier<R, T: Home> {
    slot: NonNull<Slot<T>>,
    _answer: PhantomData<fn(R)>,
}

// SAFETY: the answer is sent to where the asker is; the home is shared, and may be given up here.
unsafe impl<R: Send, T: Home + Send + Sync> Send for Replier<R, T> {}
// SAFETY: by a shared borrow only the word is looked at.
unsafe impl<R: Send, T: Home + Send + Sync> Sync for Replier<R, T> {}

impl<R, T: Home> Side<T> for Replier<R, T> {
    fn slot(&self) -> &Slot<T> {
        // SAFETY: the slot is there until both have left.
        unsafe { self.slot.as_ref() }
    }
}

impl<R, T: Home> Replier<R, T> {
    /// Whether somebody waits for the answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        // Relaxed: it may change at once.
        self.slot().word.load(Relaxed) & OUTCOME != GONE
    }

    /// Answers. If nobody waits any more, the answer comes back, with the slot.
    ///
    /// # Errors
    ///
    /// The asker has given up.
    pub fn reply(self, answer: R) -> Result<(), (R, Alone<T>)> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the room is the replier's, and empty.
        unsafe { put_answer(this.slot(), answer) };
        if settle(this.slot, ANSWERED) {
            return Ok(());
        }
        // SAFETY: it was put there above, and nobody else has seen it.
        let answer = unsafe { take_answer(this.slot()) };
        // SAFETY: the asker is gone, and this side does not use the slot again.
        Err((answer, unsafe { Alone::new(this.slot) }))
    }
}

impl<R, T: Home> Drop for Replier<R, T> {
    fn drop(&mut self) {
        if mutant!("ask-drop-untold") {
            return;
        }
        if !settle(self.slot, DROPPED) {
            // SAFETY: the asker is gone, and this side does not use the slot again.
            drop(unsafe { Alone::new(self.slot) });
        }
    }
}

/// Settles what becomes of an ask, wakes who asked and leaves; false if that is gone.
fn settle<T: Home>(slot: NonNull<Slot<T>>, outcome: u32) -> bool {
    // SAFETY: the caller is the replier and has not left.
    let it = unsafe { slot.as_ref() };
    // Release: the answer is there; pairs with the asker's loads. Acquire: on failure, what the
    // asker did with the slot is done.
    let order = if mutant!("ask-answer-unpublished") { Relaxed } else { Release };
    if it.word.compare_exchange(OPEN, outcome, order, Acquire).is_err() {
        return false;
    }
    let _leaving = Leaving(slot);
    it.alarm.waker().wake();
    true
}

/// Lets the replier leave, also if a waker panics.
struct Leaving<T: Home>(NonNull<Slot<T>>);

impl<T: Home> Drop for Leaving<T> {
    fn drop(&mut self) {
        // SAFETY: the replier has not left before this.
        let slot = unsafe { self.0.as_ref() };
        // Release: this side is done with the waker. Acquire: so is the asker with everything.
        let before = slot.word.fetch_or(REPLIER_LEFT, AcqRel);
        if before & ASKER_LEFT != 0 || mutant!("ask-slot-freed-early") {
            // SAFETY: both have left.
            drop(unsafe { Alone::new(self.0) });
        }
    }
}

/// A slot that both sides have left. Dropped, it goes home.
pub struct Alone<T: Home> {
    slot: NonNull<Slot<T>>,
}

impl<T: Home> Side<T> for Alone<T> {
    fn slot(&self) -> &Slot<T> {
        // SAFETY: it is this one's alone.
        unsafe { self.slot.as_ref() }
    }
}

impl<T: Home> Alone<T> {
    /// # Safety
    ///
    /// Both sides have left, and this is called once.
    unsafe fn new(slot: NonNull<Slot<T>>) -> Self {
        Self { slot }
    }

    /// What it goes back to.
    #[must_use]
    pub fn home(&self) -> &T {
        Side::home(self)
    }

    /// Which slot it is, and how often it was used before.
    #[must_use]
    pub fn name(&self) -> (u32, u32) {
        // SAFETY: it is this one's alone.
        (self.slot().number, self.slot().uses.with(|uses| unsafe { *uses }))
    }
}

impl<T: Home> Drop for Alone<T> {
    fn drop(&mut self) {
        // SAFETY: it was leaked by `pair`, and is this one's alone.
        let mut slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
        // What the asker has left and nobody has woken.
        drop(slot.alarm.waker().take());
        // Relaxed: the home publishes it.
        slot.word.store(OPEN, Relaxed);
        let uses = slot.uses.with_mut(|uses| {
            // SAFETY: as above.
            unsafe { *uses }
        });
        slot.uses = UnsafeCell::new(uses.wrapping_add(1));
        let home = slot.home.with_mut(|home| {
            // SAFETY: as above.
            let home = unsafe { &mut *home };
            home.take()
        });
        if let Some(home) = home {
            home.take_back(slot);
        }
    }
}

impl<T: Home> fmt::Debug for Alone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Alone").field(&self.name()).finish()
    }
}

/// Whether an answer of this type stands in the slot itself.
const fn fits<R>() -> bool {
    size_of::<R>() <= ROOM && align_of::<R>() <= align_of::<Room>()
}

/// # Safety
///
/// The room is the caller's, and empty.
unsafe fn put_answer<R, T: Home>(slot: &Slot<T>, answer: R) {
    slot.room.with_mut(|room| {
        if const { fits::<R>() } {
            // SAFETY: it fits, and the room is the caller's.
            unsafe { room.cast::<R>().write(answer) };
        } else {
            // SAFETY: as above: a pointer fits.
            unsafe { room.cast::<*mut R>().write(Box::into_raw(Box::new(answer))) };
        }
    });
}

/// # Safety
///
/// The room is the caller's, and has an answer of this type, which is given up here.
unsafe fn take_answer<R, T: Home>(slot: &Slot<T>) -> R {
    slot.room.with_mut(|room| {
        if const { fits::<R>() } {
            // SAFETY: by the contract.
            unsafe { room.cast::<R>().read() }
        } else {
            // SAFETY: by the contract; it was put there by `put_answer`.
            let boxed = unsafe { room.cast::<*mut R>().read() };
            // SAFETY: as above.
            *unsafe { Box::from_raw(boxed) }
        }
    })
}

impl<R, T: Home> fmt::Debug for Asker<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("is_settled", &self.is_settled()).finish_non_exhaustive()
    }
}

impl<R, T: Home> fmt::Debug for Replier<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replier").field("is_wanted", &self.is_wanted()).finish_non_exhaustive()
    }
}
