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
//! * IDLE: no timer is armed;
//! * ARMED: a timer is armed, for the wanted deadline or before;
//! * UPDATING: somebody arranges the timer, which is that one's alone. FIRED beside it says that a timer
//!   has fired meanwhile.
//!
//! 1. The asker leaves its waker, and then writes its deadline into the word. Where that finds
//!    ARMED, and the timer is armed for no later, there is nothing else to do. IDLE, and ARMED
//!    for later, it exchanges for UPDATING and arranges. Where it finds UPDATING, who holds it will see the
//!    new deadline.
//! 2. A ringer exchanges ARMED for UPDATING and arranges. Beside UPDATING it leaves FIRED. IDLE it leaves
//!    alone: it comes from a timer that was disarmed too late.
//! 3. Who arranges disarms what is armed. If the deadline in the word has come, it exchanges UPDATING
//!    for IDLE; else it arms a timer for that, and exchanges UPDATING for ARMED, or for IDLE if it was
//!    refused. The exchange fails if the deadline was changed or FIRED was left: then it begins
//!    again. A ringer that ends with IDLE wakes the asker.
//! 4. An asker that is woken and finds IDLE looks at the clock: its time is over, or it begins
//!    again with rule 1.
//! 5. An asker that has its answer leaves the word as it is. Who drops the slot writes the deadline
//!    zero, which has come, and so lets the timer go.
//!
//! *Why no time-out is missed*: the deadline and the state are one word. Either the exchange of who
//! arranges comes later and fails, or the asker's comes later and shows it the state, and by that
//! the time for which the timer was armed. A timer that fires before the exchange leaves FIRED.
//! Where a ringer ends with IDLE before the asker has left its waker, the asker finds IDLE.
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

const IDLE: u64 = 0;
const ARMED: u64 = 1;
const UPDATING: u64 = 2;
const STATE: u64 = 3;
const FIRED: u64 = 1 << 2;
const STATE_BITS: u32 = 3;

/// What arms timers.
pub trait TimerBackend: Send + Sync + 'static {
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

impl TimerBackend for Handle {
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
pub struct AskTimer<T: TimerBackend> {
    /// The asker's, for its replier and for the timer.
    waker: AtomicWaker,
    word: AtomicU64,
    /// When the timer falls due. Written by who arranges.
    armed_for: AtomicU64,
    /// The timer that was armed last. Of who arranges.
    armed: UnsafeCell<Option<T::Id>>,
    timers: T,
}

// SAFETY: the cell is used by who has made the word UPDATING, one at a time; what is in it is `Send`.
unsafe impl<T: TimerBackend> Sync for AskTimer<T> {}

/// How an arrangement has ended.
enum Updated<E> {
    Armed,
    Due,
    Refused(E),
}

impl<T: TimerBackend> AskTimer<T> {
    /// An alarm without a timer, and a waker that nobody has left.
    #[must_use]
    pub fn new(timers: T) -> Self {
        Self {
            waker: AtomicWaker::new(),
            word: AtomicU64::new(IDLE),
            armed_for: AtomicU64::new(0),
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
        if word & !STATE == wanted && word & STATE != IDLE {
            // Of an ask before, for the same tick, or of the last poll.
            return Poll::Pending;
        }
        Self::set_deadline(this, wanted, word)
    }

    /// Rule 1, and rule 4.
    fn set_deadline(this: &Counted<Self>, wanted: u64, word: u64) -> Poll<Result<(), T::Refused>> {
        let mut before = word;
        let after = loop {
            let state = if before & STATE == IDLE { UPDATING } else { before & (STATE | FIRED) };
            let after = wanted | state;
            // Release: what this side did before, its waker above all, is seen by who arranges.
            // Acquire: pairs with the exchange of who has armed the timer.
            match this.word.compare_exchange(before, after, AcqRel, Acquire) {
                Ok(_) => break after,
                Err(found) => before = found,
            }
        };
        let is_mine = match before & STATE {
            IDLE => true,
            ARMED => Self::claim_if_late(this, wanted, after),
            _ => false,
        };
        if !is_mine {
            return Poll::Pending;
        }
        match Self::update(this, wanted | UPDATING) {
            Updated::Armed => Poll::Pending,
            Updated::Due => Poll::Ready(Ok(())),
            Updated::Refused(refused) => Poll::Ready(Err(refused)),
        }
    }

    /// Whether a timer stands for later than what was just written. Then it is the caller's to
    /// arrange that.
    fn claim_if_late(&self, wanted: u64, after: u64) -> bool {
        // Relaxed: the exchange that has found it standing has acquired it. If it was armed anew
        // since, that was for what is wanted.
        let is_late = self.armed_for.load(Relaxed) > tick(wanted).get();
        // Relaxed on failure: a ringer was faster, and sees what is wanted.
        is_late
            && !mutant!("ask-alarm-too-late")
            && self.word.compare_exchange(after, wanted | UPDATING, AcqRel, Relaxed).is_ok()
    }

    /// Rule 3. The caller has made the word UPDATING, which was `word` when it looked last.
    fn update(this: &Counted<Self>, mut word: u64) -> Updated<T::Refused> {
        loop {
            this.disarm();
            let deadline = tick(word);
            let (state, updated) = if this.timers.is_due(deadline) {
                (IDLE, Updated::Due)
            } else {
                match this.timers.arm(deadline, Self::waker_of(this)) {
                    Ok(id) => {
                        this.set_armed(id);
                        // Relaxed: published by the exchange below.
                        this.armed_for.store(deadline.get(), Relaxed);
                        (ARMED, Updated::Armed)
                    }
                    Err(refused) => (IDLE, Updated::Refused(refused)),
                }
            };
            let after = (word & !(STATE | FIRED)) | state;
            // Release: the timer stands, or is gone; pairs with who holds it next, and with the
            // asker that finds it standing. Acquire: on failure, what was changed meanwhile.
            let exchanged = this.word.compare_exchange(word, after, AcqRel, Acquire);
            if exchanged.is_ok() {
                return updated;
            }
            // Acquire: the asker's deadline, with its waker.
            word = this.word.fetch_and(!FIRED, AcqRel) & !FIRED;
        }
    }

    /// Rule 2.
    fn on_fire(this: &Counted<Self>) {
        // Relaxed: the exchanges below decide.
        let mut word = this.word.load(Relaxed);
        loop {
            let after = match word & STATE {
                IDLE => return,
                ARMED => (word & !STATE) | UPDATING,
                _ if mutant!("ask-alarm-unrung") => return,
                _ => word | FIRED,
            };
            // Release: this timer has fired. Acquire: pairs with who has armed it, and with the
            // asker: its waker is there.
            match this.word.compare_exchange(word, after, AcqRel, Relaxed) {
                Ok(_) if word & STATE == UPDATING => return,
                Ok(_) => break word = after,
                Err(found) => word = found,
            }
        }
        match Self::update(this, word) {
            Updated::Armed => {}
            Updated::Due | Updated::Refused(_) => this.waker.wake(),
        }
    }

    /// Rule 5: lets the timer go. Nobody has the slot any more.
    pub(super) fn release(this: &Counted<Self>) {
        // Acquire: as in `poll`.
        let word = this.word.load(Acquire);
        if word & STATE == IDLE || mutant!("ask-alarm-stays") {
            return;
        }
        // Nothing is armed by this, hence nothing refused: zero has come.
        let _ = Self::set_deadline(this, wanted(Tick::ZERO), word);
    }

    /// Disarms the timer that was armed last. Of who has made the word UPDATING.
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

    /// Notes the timer that is armed. Of who has made the word UPDATING.
    fn set_armed(&self, id: T::Id) {
        self.armed.with_mut(|armed| {
            // SAFETY: the caller holds the alarm.
            unsafe { *armed = Some(id) };
        });
    }

    const WAKER: &'static RawWakerVTable = &RawWakerVTable::new(
        waker_clone::<T>,
        waker_wake::<T>,
        waker_wake_by_ref::<T>,
        waker_release::<T>,
    );

    /// What a timer wakes.
    fn waker_of(this: &Counted<Self>) -> Waker {
        let data = Counted::into_raw(this.clone()).as_ptr().cast_const().cast();
        // SAFETY: the functions keep the contract of `RawWaker`: they are thread-safe, and have a
        // counted reference for each waker.
        unsafe { Waker::from_raw(RawWaker::new(data, Self::WAKER)) }
    }
}

/// The deadline as it stands in the word. So far away that it has no room there is never.
#[inline]
fn wanted(deadline: Tick) -> u64 {
    deadline.get().min(u64::MAX >> STATE_BITS) << STATE_BITS
}

fn tick(word: u64) -> Tick {
    Tick::new(word >> STATE_BITS)
}

/// # Safety
///
/// The data is that of a waker made by `AskTimer::<T>::bell`, which outlives what is given.
unsafe fn timer_of<T: TimerBackend>(data: *const ()) -> ManuallyDrop<Counted<AskTimer<T>>> {
    let raw = data.cast::<AskTimer<T>>().cast_mut();
    // SAFETY: it is the address of an alarm, hence not null.
    let raw = unsafe { NonNull::new_unchecked(raw) };
    // SAFETY: it came from `into_raw`; its count is not given away here.
    ManuallyDrop::new(unsafe { Counted::from_raw(raw) })
}

unsafe fn waker_clone<T: TimerBackend>(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers.
    let timer = unsafe { timer_of::<T>(data) };
    let cloned = Counted::into_raw(Counted::clone(&timer));
    RawWaker::new(cloned.as_ptr().cast_const().cast(), AskTimer::<T>::WAKER)
}

unsafe fn waker_wake<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is used up.
    let timer = ManuallyDrop::into_inner(unsafe { timer_of::<T>(data) });
    AskTimer::on_fire(&timer);
}

unsafe fn waker_wake_by_ref<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers.
    AskTimer::on_fire(&*unsafe { timer_of::<T>(data) });
}

unsafe fn waker_release<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is used up.
    drop(ManuallyDrop::into_inner(unsafe { timer_of::<T>(data) }));
}

impl<T: TimerBackend> fmt::Debug for AskTimer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for people.
        let word = self.word.load(Relaxed);
        f.debug_struct("AskTimer")
            .field("wanted", &tick(word))
            .field("state", &(word & (STATE | FIRED)))
            .finish_non_exhaustive()
    }
}
