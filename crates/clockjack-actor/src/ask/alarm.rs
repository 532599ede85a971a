//! The time-out of an ask: a timer that stays armed from one ask to the next.
//!
//! Most asks are answered long before their time is over, and the slot of one is soon that of the
//! next. So a timer that was armed for one ask is left alone when that has its answer. When it
//! fires, it looks at what the slot is used for by then: it wakes who waits for too long, or is
//! armed anew, once for all the asks that came and went meanwhile.
//!
//! Each time-out still comes at its own deadline. What is given up is the order of time-outs that
//! fall on the same tick, which is no longer that of the asks; so executors of one thread, whose
//! runs are repeated step by step, arm a timer for each ask.
//!
//! # Protocol
//!
//! Roles: the *asker* that has the slot, one at a time; *ringers*, the threads on which timers of
//! this alarm fire. One word: the deadline that is wanted, and one of
//!
//! * REST: no timer is armed;
//! * STANDS: a timer is armed, for the wanted deadline or before;
//! * HELD: somebody arranges the timer, which is that one's alone. RUNG beside it says that a timer
//!   has fired meanwhile.
//!
//! 1. The asker leaves its waker, and then writes its deadline into the word. Where that finds
//!    STANDS, and the timer is armed for no later, there is nothing else to do. REST, and STANDS
//!    for later, it exchanges for HELD and arranges. Where it finds HELD, who holds it will see the
//!    new deadline.
//! 2. A ringer exchanges STANDS for HELD and arranges. Beside HELD it leaves RUNG. REST it leaves
//!    alone: it comes from a timer that was disarmed too late.
//! 3. Who arranges disarms what is armed. If the deadline in the word has come, it exchanges HELD
//!    for REST; else it arms a timer for that, and exchanges HELD for STANDS, or for REST if it was
//!    refused. The exchange fails if the deadline was changed or RUNG was left: then it begins
//!    again. A ringer that ends with REST wakes the asker.
//! 4. An asker that is woken and finds REST looks at the clock: its time is over, or it begins
//!    again with rule 1.
//! 5. An asker that has its answer leaves the word as it is. Who drops the slot writes the deadline
//!    zero, which has come, and so lets the timer go.
//!
//! *Why no time-out is missed*: the deadline and the state are one word. Either the exchange of who
//! arranges comes later and fails, or the asker's comes later and shows it the state, and by that
//! the time for which the timer was armed. A timer that fires before the exchange leaves RUNG.
//! Where a ringer ends with REST before the asker has left its waker, the asker finds REST.
//!
//! *Why it cannot hang*: nobody waits. An exchange fails only by the step of somebody else: one a
//! timer, and one an ask.
#![expect(unsafe_code, reason = "makes wakers out of counted references")]

use core::{
    fmt,
    mem::ManuallyDrop,
    ptr::NonNull,
    task::{Poll, RawWaker, RawWakerVTable, Waker},
};

use clockjack_exec::{Handle, TimerError};
use clockjack_sync::{
    counted::Counted,
    mutant,
    prim::{
        UnsafeCell,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
    waker::AtomicWaker,
};
use clockjack_time::{Tick, TimerId};

const REST: u64 = 0;
const STANDS: u64 = 1;
const HELD: u64 = 2;
const STATE: u64 = 3;
const RUNG: u64 = 1 << 2;
const BITS: u32 = 3;

/// What arms timers.
pub trait Timers: Send + Sync + 'static {
    /// Names a timer.
    type Id: Copy + Send;
    /// Why one was not armed.
    type Refused;

    /// Wakes `waker` at a tick, which may have passed.
    ///
    /// # Errors
    ///
    /// It does not.
    fn arm(&self, deadline: Tick, waker: Waker) -> Result<Self::Id, Self::Refused>;

    /// Disarms a timer, if that has not fired.
    fn disarm(&self, id: Self::Id);

    /// Whether a tick has come.
    fn is_due(&self, deadline: Tick) -> bool;
}

impl Timers for Handle {
    type Id = TimerId;
    type Refused = TimerError;

    fn arm(&self, deadline: Tick, waker: Waker) -> Result<TimerId, TimerError> {
        self.wake_at(deadline, waker)
    }

    fn disarm(&self, id: TimerId) {
        self.disarm(id);
    }

    fn is_due(&self, deadline: Tick) -> bool {
        self.now().tick() >= deadline
    }
}

/// Who waits at a slot, and until when; see the [module](self).
pub struct Alarm<T: Timers> {
    /// The asker's, for its replier and for the timer.
    waker: AtomicWaker,
    word: AtomicU64,
    /// When the timer falls due. Written by who arranges.
    stands_for: AtomicU64,
    /// The timer that was armed last. Of who arranges.
    armed: UnsafeCell<Option<T::Id>>,
    timers: T,
}

// SAFETY: the cell is used by who has made the word HELD, one at a time; what is in it is `Send`.
unsafe impl<T: Timers> Sync for Alarm<T> {}

/// How an arrangement has ended.
enum Arranged<E> {
    Stands,
    IsDue,
    Refused(E),
}

impl<T: Timers> Alarm<T> {
    /// An alarm without a timer, and a waker that nobody has left.
    #[must_use]
    pub fn new(timers: T) -> Self {
        Self {
            waker: AtomicWaker::new(),
            word: AtomicU64::new(REST),
            stands_for: AtomicU64::new(0),
            armed: UnsafeCell::new(None),
            timers,
        }
    }

    /// Where the asker leaves its waker.
    #[inline]
    pub(super) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    /// Whether the deadline of the asker has come. If not, the waker that it has left before is
    /// woken then.
    ///
    /// # Errors
    ///
    /// No timer could be armed.
    #[inline]
    pub fn poll(this: &Counted<Self>, deadline: Tick) -> Poll<Result<(), T::Refused>> {
        let wanted = wanted(deadline);
        // Acquire: pairs with the exchange of who has armed the timer.
        let word = this.word.load(Acquire);
        if word & !STATE == wanted && word & STATE != REST {
            // Of an ask before, for the same tick, or of the last poll.
            return Poll::Pending;
        }
        Self::want(this, wanted, word)
    }

    /// Rule 1, and rule 4.
    fn want(this: &Counted<Self>, wanted: u64, word: u64) -> Poll<Result<(), T::Refused>> {
        let mut before = word;
        let after = loop {
            let state = if before & STATE == REST { HELD } else { before & (STATE | RUNG) };
            let after = wanted | state;
            // Release: what this side did before, its waker above all, is seen by who arranges.
            // Acquire: pairs with the exchange of who has armed the timer.
            match this.word.compare_exchange(before, after, AcqRel, Acquire) {
                Ok(_) => break after,
                Err(found) => before = found,
            }
        };
        let is_mine = match before & STATE {
            REST => true,
            STANDS => Self::is_too_late(this, wanted, after),
            _ => false,
        };
        if !is_mine {
            return Poll::Pending;
        }
        match Self::arrange(this, wanted | HELD) {
            Arranged::Stands => Poll::Pending,
            Arranged::IsDue => Poll::Ready(Ok(())),
            Arranged::Refused(refused) => Poll::Ready(Err(refused)),
        }
    }

    /// Whether a timer stands for later than what was just written. Then it is the caller's to
    /// arrange that.
    fn is_too_late(&self, wanted: u64, after: u64) -> bool {
        // Relaxed: the exchange that has found it standing has acquired it. If it was armed anew
        // since, that was for what is wanted.
        let is_late = self.stands_for.load(Relaxed) > tick(wanted).get();
        // Relaxed on failure: a ringer was faster, and sees what is wanted.
        is_late
            && !mutant!("ask-alarm-too-late")
            && self.word.compare_exchange(after, wanted | HELD, AcqRel, Relaxed).is_ok()
    }

    /// Rule 3. The caller has made the word HELD, which was `word` when it looked last.
    fn arrange(this: &Counted<Self>, mut word: u64) -> Arranged<T::Refused> {
        loop {
            this.disarm();
            let deadline = tick(word);
            let (state, arranged) = if this.timers.is_due(deadline) {
                (REST, Arranged::IsDue)
            } else {
                match this.timers.arm(deadline, Self::bell(this)) {
                    Ok(id) => {
                        this.set_armed(id);
                        // Relaxed: published by the exchange below.
                        this.stands_for.store(deadline.get(), Relaxed);
                        (STANDS, Arranged::Stands)
                    }
                    Err(refused) => (REST, Arranged::Refused(refused)),
                }
            };
            let after = (word & !(STATE | RUNG)) | state;
            // Release: the timer stands, or is gone; pairs with who holds it next, and with the
            // asker that finds it standing. Acquire: on failure, what was changed meanwhile.
            let exchanged = this.word.compare_exchange(word, after, AcqRel, Acquire);
            if exchanged.is_ok() {
                return arranged;
            }
            // Acquire: the asker's deadline, with its waker.
            word = this.word.fetch_and(!RUNG, AcqRel) & !RUNG;
        }
    }

    /// Rule 2.
    fn ring(this: &Counted<Self>) {
        // Relaxed: the exchanges below decide.
        let mut word = this.word.load(Relaxed);
        loop {
            let after = match word & STATE {
                REST => return,
                STANDS => (word & !STATE) | HELD,
                _ if mutant!("ask-alarm-unrung") => return,
                _ => word | RUNG,
            };
            // Release: this timer has fired. Acquire: pairs with who has armed it, and with the
            // asker: its waker is there.
            match this.word.compare_exchange(word, after, AcqRel, Relaxed) {
                Ok(_) if word & STATE == HELD => return,
                Ok(_) => break word = after,
                Err(found) => word = found,
            }
        }
        match Self::arrange(this, word) {
            Arranged::Stands => {}
            Arranged::IsDue | Arranged::Refused(_) => this.waker.wake(),
        }
    }

    /// Rule 5: lets the timer go. Nobody has the slot any more.
    pub(super) fn retire(this: &Counted<Self>) {
        // Acquire: as in `poll`.
        let word = this.word.load(Acquire);
        if word & STATE == REST || mutant!("ask-alarm-stays") {
            return;
        }
        // Nothing is armed by this, hence nothing refused: zero has come.
        let _ = Self::want(this, wanted(Tick::ZERO), word);
    }

    /// Disarms the timer that was armed last. Of who has made the word HELD.
    fn disarm(&self) {
        let armed = self.armed.with_mut(|armed| {
            // SAFETY: the caller holds the alarm, and nothing is called meanwhile.
            let armed = unsafe { &mut *armed };
            armed.take()
        });
        if let Some(id) = armed {
            self.timers.disarm(id);
        }
    }

    /// Notes the timer that is armed. Of who has made the word HELD.
    fn set_armed(&self, id: T::Id) {
        self.armed.with_mut(|armed| {
            // SAFETY: the caller holds the alarm.
            unsafe { *armed = Some(id) };
        });
    }

    const BELL: &'static RawWakerVTable = &RawWakerVTable::new(
        bell_clone::<T>,
        bell_wake::<T>,
        bell_wake_by_ref::<T>,
        bell_release::<T>,
    );

    /// What a timer wakes.
    fn bell(this: &Counted<Self>) -> Waker {
        let data = Counted::into_raw(this.clone()).as_ptr().cast_const().cast();
        // SAFETY: the functions keep the contract of `RawWaker`: they are thread-safe, and have a
        // counted reference for each waker.
        unsafe { Waker::from_raw(RawWaker::new(data, Self::BELL)) }
    }
}

/// The deadline as it stands in the word. So far away that it has no room there is never.
#[inline]
fn wanted(deadline: Tick) -> u64 {
    deadline.get().min(u64::MAX >> BITS) << BITS
}

fn tick(word: u64) -> Tick {
    Tick::new(word >> BITS)
}

/// # Safety
///
/// The data is that of a waker made by `Alarm::<T>::bell`, which outlives what is given.
unsafe fn alarm_of<T: Timers>(data: *const ()) -> ManuallyDrop<Counted<Alarm<T>>> {
    let raw = data.cast::<Alarm<T>>().cast_mut();
    // SAFETY: it is the address of an alarm, hence not null.
    let raw = unsafe { NonNull::new_unchecked(raw) };
    // SAFETY: it came from `into_raw`; its count is not given away here.
    ManuallyDrop::new(unsafe { Counted::from_raw(raw) })
}

unsafe fn bell_clone<T: Timers>(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers.
    let alarm = unsafe { alarm_of::<T>(data) };
    let cloned = Counted::into_raw(Counted::clone(&alarm));
    RawWaker::new(cloned.as_ptr().cast_const().cast(), Alarm::<T>::BELL)
}

unsafe fn bell_wake<T: Timers>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is used up.
    let alarm = ManuallyDrop::into_inner(unsafe { alarm_of::<T>(data) });
    Alarm::ring(&alarm);
}

unsafe fn bell_wake_by_ref<T: Timers>(data: *const ()) {
    // SAFETY: the data of our wakers.
    Alarm::ring(&*unsafe { alarm_of::<T>(data) });
}

unsafe fn bell_release<T: Timers>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is used up.
    drop(ManuallyDrop::into_inner(unsafe { alarm_of::<T>(data) }));
}

impl<T: Timers> fmt::Debug for Alarm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for people.
        let word = self.word.load(Relaxed);
        f.debug_struct("Alarm")
            .field("wanted", &tick(word))
            .field("state", &(word & (STATE | RUNG)))
            .finish_non_exhaustive()
    }
}
