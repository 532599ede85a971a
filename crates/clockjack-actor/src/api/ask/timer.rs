//! The timeout of an ask: a timer that stays armed from one ask to the next.
//!
//! Most asks are answered long before their timeout, and the slot of one ask is soon reused by the
//! next. So a timer that was armed for one ask is not disarmed when that ask has its answer. When
//! the timer fires, it checks what the slot is used for by then: it wakes an asker that has waited
//! too long, or it is armed again, once for all the asks that came and went in the meantime.
//!
//! Each timeout still happens at its own deadline. Only the order of timeouts within the same tick
//! is no longer that of the asks. So executors with one thread, whose runs must be reproducible
//! step by step, arm one timer per ask instead.
//!
//! # Protocol
//!
//! Roles: the *asker* that owns the slot, one at a time; *timer threads*, on which timers of this
//! slot fire. One word contains the wanted deadline and one of the states
//!
//! * IDLE: no timer is armed;
//! * ARMED: a timer is armed, for the wanted deadline or earlier;
//! * UPDATING: one thread, the *updater*, arms or disarms the timer, which only this thread may
//!   access now. FIRED next to it says that a timer has fired in the meantime.
//!
//! 1. The asker stores its waker, and then writes its deadline into the word. If it finds ARMED,
//!    and the timer is armed for no later than the deadline, there is nothing else to do. It
//!    exchanges IDLE, and ARMED for a later time, for UPDATING and becomes the updater. If it finds
//!    UPDATING, the updater will see the new deadline.
//! 2. A timer thread exchanges ARMED for UPDATING and becomes the updater. Next to UPDATING it sets
//!    FIRED. If it finds IDLE, it does nothing: its timer was disarmed too late.
//! 3. The updater disarms the armed timer, if any. If the deadline in the word has passed, it
//!    exchanges UPDATING for IDLE; otherwise it arms a timer for the deadline, and exchanges
//!    UPDATING for ARMED, or for IDLE if the timer was refused. The compare-and-swap fails if the
//!    deadline was changed or FIRED was set in between: then the updater starts over. A timer
//!    thread that ends in IDLE wakes the asker.
//! 4. An asker that is woken and finds IDLE reads the clock: its timeout has elapsed, or it
//!    continues with rule 1.
//! 5. An asker that has its answer leaves the word as it is. The thread that drops the slot writes
//!    the deadline zero, which has passed, and so disarms the timer.
//!
//! *Why no timeout is missed*: deadline and state are in one word, so the asker's write of a
//! deadline and the updater's final compare-and-swap are ordered. If the asker's write is first,
//! the updater's compare-and-swap fails, and it sees the new deadline. If the updater's is first,
//! the asker sees ARMED, and with it the time that the timer is armed for, and becomes the updater
//! if that is too late. A timer that fires before the final compare-and-swap sets FIRED and makes
//! it fail. If a timer thread reaches IDLE before the asker has stored its waker, then the asker
//! finds IDLE in rule 1.
//!
//! *Why nobody loops forever*: nobody blocks. A compare-and-swap fails only because of a step of
//! another thread: at most one per timer, and one per ask.
#![expect(unsafe_code, reason = "makes wakers out of counted references")]

use core::{
    fmt,
    mem::ManuallyDrop,
    ptr::NonNull,
    task::{Poll, RawWaker, RawWakerVTable, Waker},
};

use clockjack_exec::{Handle, TimerError};
use clockjack_sync::{
    Arc,
    primitive::{
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

/// Arms timers.
pub trait TimerBackend: Send + Sync + 'static {
    /// Identifies a timer.
    type Id: Copy + Send;
    /// Why a timer was not armed.
    type Refused;

    /// Wakes `waker` at a tick, which may have passed.
    ///
    /// # Errors
    ///
    /// The timer was not armed.
    fn arm(&self, deadline: Tick, waker: Waker) -> Result<Self::Id, Self::Refused>;

    /// Disarms a timer, if it has not fired.
    fn disarm(&self, id: Self::Id);

    /// Whether a tick has been reached.
    fn is_due(&self, deadline: Tick) -> bool;
}

impl TimerBackend for Handle {
    type Id = TimerId;
    type Refused = TimerError;

    fn arm(&self, deadline: Tick, waker: Waker) -> Result<TimerId, TimerError> {
        self.wake_at(deadline, waker)
    }

    fn disarm(&self, id: TimerId) {
        self.cancel_timer(id);
    }

    fn is_due(&self, deadline: Tick) -> bool {
        self.now().tick() >= deadline
    }
}

/// The waker of the asker at a slot, and its timeout; see the [module](self).
pub struct AskTimer<T: TimerBackend> {
    /// The asker's waker, for its replier and for the timer.
    waker: AtomicWaker,
    word: AtomicU64,
    /// When the timer is due. Written by the updater.
    armed_for: AtomicU64,
    /// The timer that was armed last. Accessed by the updater only.
    armed: UnsafeCell<Option<T::Id>>,
    timers: T,
}

// SAFETY: only the updater, the thread that has set UPDATING, accesses the cell, one thread at a
// time; its content is `Send`.
unsafe impl<T: TimerBackend> Sync for AskTimer<T> {}

/// The result of an update.
enum Updated<E> {
    Armed,
    Due,
    Refused(E),
}

impl<T: TimerBackend> AskTimer<T> {
    /// Without an armed timer and without a waker.
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

    /// Where the asker stores its waker.
    #[inline]
    pub(super) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    /// Whether the deadline of the asker has passed. If not, the waker that it has stored before is
    /// woken at the deadline.
    ///
    /// # Errors
    ///
    /// No timer could be armed.
    #[inline]
    pub fn poll(this: &Arc<Self>, deadline: Tick) -> Poll<Result<(), T::Refused>> {
        let wanted = wanted(deadline);
        // Acquire: pairs with the compare-and-swap of the thread that has armed the timer.
        let word = this.word.load(Acquire);
        if word & !STATE == wanted && word & STATE != IDLE {
            // Written by an earlier ask for the same tick, or by the last poll.
            return Poll::Pending;
        }
        Self::set_deadline(this, wanted, word)
    }

    /// Rule 1, and rule 4.
    fn set_deadline(this: &Arc<Self>, wanted: u64, word: u64) -> Poll<Result<(), T::Refused>> {
        let mut before = word;
        let after = loop {
            let state = if before & STATE == IDLE { UPDATING } else { before & (STATE | FIRED) };
            let after = wanted | state;
            // Release: the updater sees what this thread did before, above all its waker. Acquire:
            // pairs with the compare-and-swap of the thread that has armed the timer.
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

    /// Whether a timer is armed for later than the deadline that was just written. Then the caller
    /// becomes the updater.
    fn claim_if_late(&self, wanted: u64, after: u64) -> bool {
        // Relaxed: the compare-and-swap that has found ARMED has acquired it. If the timer was
        // armed again since then, that was for the wanted deadline.
        let is_late = self.armed_for.load(Relaxed) > tick(wanted).get();
        // Relaxed on failure: a timer thread was faster, and sees the wanted deadline.
        is_late && self.word.compare_exchange(after, wanted | UPDATING, AcqRel, Relaxed).is_ok()
    }

    /// Rule 3. The caller has set UPDATING; `word` is the last value that it has seen.
    fn update(this: &Arc<Self>, mut word: u64) -> Updated<T::Refused> {
        loop {
            this.disarm();
            let deadline = tick(word);
            let (state, updated) = if this.timers.is_due(deadline) {
                (IDLE, Updated::Due)
            } else {
                match this.timers.arm(deadline, Self::waker_of(this)) {
                    Ok(id) => {
                        this.set_armed(id);
                        // Relaxed: published by the compare-and-swap below.
                        this.armed_for.store(deadline.get(), Relaxed);
                        (ARMED, Updated::Armed)
                    }
                    Err(refused) => (IDLE, Updated::Refused(refused)),
                }
            };
            let after = (word & !(STATE | FIRED)) | state;
            // Release: the timer is armed, or gone; pairs with the next updater, and with the asker
            // that finds ARMED. Acquire: on failure, what was changed in between.
            let exchanged = this.word.compare_exchange(word, after, AcqRel, Acquire);
            if exchanged.is_ok() {
                return updated;
            }
            // Acquire: the asker's deadline, with its waker.
            word = this.word.fetch_and(!FIRED, AcqRel) & !FIRED;
        }
    }

    /// Rule 2.
    fn on_fire(this: &Arc<Self>) {
        // Relaxed: the compare-and-swaps below decide.
        let mut word = this.word.load(Relaxed);
        loop {
            let after = match word & STATE {
                IDLE => return,
                ARMED => (word & !STATE) | UPDATING,
                _ => word | FIRED,
            };
            // Release: this timer has fired. Acquire: pairs with the thread that has armed it, and
            // with the asker: its waker is visible.
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

    /// Rule 5: disarms the timer. Nobody uses the slot any more.
    pub(super) fn release(this: &Arc<Self>) {
        // Acquire: as in `poll`.
        let word = this.word.load(Acquire);
        if word & STATE == IDLE {
            return;
        }
        // Nothing is armed by this, hence nothing refused: tick zero has passed.
        let _ = Self::set_deadline(this, wanted(Tick::ZERO), word);
    }

    /// Disarms the timer that was armed last. For the updater.
    fn disarm(&self) {
        let armed = self.armed.with_mut(|armed| {
            // SAFETY: the caller is the updater, and no other code runs in between.
            let armed = unsafe { &mut *armed };
            armed.take()
        });
        if let Some(id) = armed {
            self.timers.disarm(id);
        }
    }

    /// Stores the timer that is armed. For the updater.
    fn set_armed(&self, id: T::Id) {
        self.armed.with_mut(|armed| {
            // SAFETY: the caller is the updater.
            unsafe { *armed = Some(id) };
        });
    }

    const WAKER: &'static RawWakerVTable = &RawWakerVTable::new(
        waker_clone::<T>,
        waker_wake::<T>,
        waker_wake_by_ref::<T>,
        waker_release::<T>,
    );

    /// The waker that a timer wakes.
    fn waker_of(this: &Arc<Self>) -> Waker {
        let data = Arc::into_raw(this.clone()).as_ptr().cast_const().cast();
        // SAFETY: the functions fulfil the contract of `RawWaker`: they are thread-safe, and own a
        // counted reference for each waker.
        unsafe { Waker::from_raw(RawWaker::new(data, Self::WAKER)) }
    }
}

/// The deadline as it is stored in the word. A deadline that is too large for it is never.
#[inline]
fn wanted(deadline: Tick) -> u64 {
    deadline.get().min(u64::MAX >> STATE_BITS) << STATE_BITS
}

fn tick(word: u64) -> Tick {
    Tick::new(word >> STATE_BITS)
}

/// # Safety
///
/// The data is that of a waker made by `AskTimer::<T>::waker_of`, which outlives the result.
unsafe fn timer_of<T: TimerBackend>(data: *const ()) -> ManuallyDrop<Arc<AskTimer<T>>> {
    let raw = data.cast::<AskTimer<T>>().cast_mut();
    // SAFETY: it is the address of a timer, hence not null.
    let raw = unsafe { NonNull::new_unchecked(raw) };
    // SAFETY: it came from `into_raw`; its reference is not released here.
    ManuallyDrop::new(unsafe { Arc::from_raw(raw) })
}

unsafe fn waker_clone<T: TimerBackend>(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers.
    let timer = unsafe { timer_of::<T>(data) };
    let cloned = Arc::into_raw(Arc::clone(&timer));
    RawWaker::new(cloned.as_ptr().cast_const().cast(), AskTimer::<T>::WAKER)
}

unsafe fn waker_wake<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is consumed.
    let timer = ManuallyDrop::into_inner(unsafe { timer_of::<T>(data) });
    AskTimer::on_fire(&timer);
}

unsafe fn waker_wake_by_ref<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers.
    AskTimer::on_fire(&*unsafe { timer_of::<T>(data) });
}

unsafe fn waker_release<T: TimerBackend>(data: *const ()) {
    // SAFETY: the data of our wakers; this one is consumed.
    drop(ManuallyDrop::into_inner(unsafe { timer_of::<T>(data) }));
}

impl<T: TimerBackend> fmt::Debug for AskTimer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for debug output.
        let word = self.word.load(Relaxed);
        f.debug_struct("AskTimer")
            .field("wanted", &tick(word))
            .field("state", &(word & (STATE | FIRED)))
            .finish_non_exhaustive()
    }
}
