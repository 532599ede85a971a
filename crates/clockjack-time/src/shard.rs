//! A shard: one wheel that several threads reach, and the rules by which they do.
#![doc = include_str!("shard.md")]
#![expect(unsafe_code, reason = "the wheel stands in a cell that the lease guards")]

mod close;
mod inbox;
mod scrub;
pub(crate) mod stats;
mod store;

use alloc::vec::Vec;
use core::{
    fmt,
    ops::{Deref, DerefMut},
};

use clockjack_sync::{
    Counted, mutant,
    pad::Padded,
    prim::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
    return_stack::{Links, NIL, ReturnStack},
};

pub use self::{close::Closed, stats::ShardStats, store::Leased};
use self::{
    inbox::{Cursor, Inbox, Reserved},
    stats::Mirror,
    store::Words,
};
use crate::{
    Class, Expired, Full, Tick, TimerId, Wheel,
    word::{CancelledFrom, State},
};

const OPEN: u32 = 0;
const HELD: u32 = 1;

/// `next_wake` of a shard in which nothing is armed.
const NEVER: u64 = u64::MAX;

/// Cells of the inbox: how many timers can be posted while another thread holds the lease, which
/// it does for microseconds.
const INBOX_CAPACITY: u32 = if cfg!(loom) { 2 } else { 64 };

/// The least capacity: a quarter of it are the two cells that an inbox has at least.
const CAPACITY_MIN: usize = 8;

/// How deep the return stack grows before a canceller tries to empty it itself.
pub const RETURNS_MAX: usize = if cfg!(loom) { 2 } else { 64 };

/// How many returned slots one lease frees: the rest waits for the next, so that a flood of
/// cancels does not hold the lease for long.
const RETURNS_PER_LEASE: usize = 256;

/// The limits of a [`Shard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// The number that ids of this shard's timers carry; no other shard has it.
    pub id: u32,
    /// The tick at which the wheel stands at first.
    pub start: Tick,
    /// How many timers there may be, at least 8. A few of them are kept back for other threads to
    /// post: up to 64, and a quarter of them at the most.
    pub capacity: usize,
}

impl ShardConfig {
    /// A million timers, from tick 0.
    pub const DEFAULT: Self = Self { id: 0, start: Tick::ZERO, capacity: 1 << 20 };
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A timer that was armed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The timer.
    pub id: TimerId,
    /// Whether it is due before all that the shard had until then, or may be: whoever sleeps until
    /// what [`Shard::next_wake`] was must be woken.
    pub is_earliest: bool,
}

/// One wheel that several threads share; the [module](self) has the rules.
pub struct Shard<T> {
    lease: Padded<AtomicU32>,
    /// Rule 7.
    next_wake: Padded<AtomicU64>,
    returns: ReturnStack,
    inbox: Inbox<T>,
    words: Counted<Words>,
    mirror: Mirror,
    id: u32,
    core: UnsafeCell<Core<T>>,
    /// Whether there is something to be taken, for those who do not hold the lease.
    has_garbage: AtomicBool,
}

/// What only the holder of the lease touches.
struct Core<T> {
    wheel: Wheel<T, Leased<T>>,
    cursor: Cursor,
    /// The first of the slots that were drained from the return stack and not freed yet.
    returned: u32,
    /// What was cancelled from outside, to be dropped when the lease is open (rule 8).
    garbage: Vec<T>,
    /// Whether it stays until somebody takes it.
    keeps_garbage: bool,
}

// SAFETY: all parts but `core` are made for sharing. `core` is touched only by the thread that
// holds the lease, which is taken by a compare-exchange with acquire and given back with release
// (rule 1). Values of type `T` move between threads with it, so `T: Send` is needed, and enough:
// no two threads see one value at a time.
unsafe impl<T: Send> Sync for Shard<T> {}

impl<T> Shard<T> {
    /// An empty shard.
    #[must_use]
    pub fn new(config: ShardConfig) -> Self {
        let capacity = config.capacity.max(CAPACITY_MIN);
        let store = Leased::new(capacity);
        let words = store.words().clone();
        let mut wheel = Wheel::with_store(store, config.start);
        wheel.set_shard(config.id);
        let quarter = u32::try_from(capacity / 4).unwrap_or(u32::MAX);
        let cells = quarter.min(INBOX_CAPACITY);
        let inbox = Inbox::new(1 << cells.ilog2());
        let shard = Self {
            lease: Padded(AtomicU32::new(OPEN)),
            next_wake: Padded(AtomicU64::new(NEVER)),
            returns: ReturnStack::new(),
            inbox,
            words,
            mirror: Mirror::new(),
            id: config.id,
            core: UnsafeCell::new(Core {
                wheel,
                cursor: Cursor::default(),
                returned: NIL,
                garbage: Vec::new(),
                keeps_garbage: false,
            }),
            has_garbage: AtomicBool::new(false),
        };
        // Stocks the inbox.
        drop(shard.lease());
        shard
    }

    /// Keeps the values of timers that were cancelled from outside until somebody
    /// [takes](Self::take_garbage) them: for values whose drop must not run wherever a lease ends.
    #[doc(hidden)]
    #[must_use]
    pub fn keeping_garbage(mut self) -> Self {
        self.core.get_mut().keeps_garbage = true;
        self
    }

    /// Whether there are values that nobody has taken. Whoever gives a lease back looks at it
    /// afterwards.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn has_garbage(&self) -> bool {
        // Relaxed: who has left some sees its own store, and who has held the lease since then has
        // acquired it.
        self.has_garbage.load(Ordering::Relaxed)
    }

    /// The values of timers that were cancelled from outside, if they are kept; none if another
    /// thread holds the lease, which then looks itself.
    #[doc(hidden)]
    #[must_use]
    pub fn take_garbage(&self) -> Vec<T> {
        let Some(mut lease) = self.hold() else { return Vec::new() };
        // Relaxed: published by the lease.
        self.has_garbage.store(false, Ordering::Relaxed);
        core::mem::take(&mut lease.core_mut().garbage)
    }

    /// The number that ids of this shard's timers carry.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The right to touch the wheel; `None` if another thread has it. Never waits.
    ///
    /// What was posted and cancelled from outside meanwhile is entered and freed first.
    #[inline]
    #[must_use]
    pub fn lease(&self) -> Option<Lease<'_, T>> {
        let mut lease = self.hold()?;
        lease.collect();
        Some(lease)
    }

    /// Rule 1.
    #[inline(always)]
    fn hold(&self) -> Option<Lease<'_, T>> {
        if mutant!("shard_lease_by_store") {
            if self.lease.load(Ordering::Acquire) == HELD {
                return None;
            }
            self.lease.store(HELD, Ordering::Release);
        } else {
            // Acquire pairs with the release in `Lease::open` (rule 1).
            self.lease.compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Relaxed).ok()?;
        }
        Some(Lease { shard: self, is_stale: false })
    }

    /// Arms a timer from any thread; see [`arm`](Self::arm) for who must be told.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    pub fn post(&self, deadline: Tick, value: T) -> Result<TimerId, Full<T>> {
        self.arm(deadline, value).map(|posted| posted.id)
    }

    /// Arms a timer from any thread, and says whether the thread that sleeps for this shard must
    /// be woken. Takes the lease if it is open, else leaves the timer in the inbox.
    ///
    /// # Errors
    /// [`Full`], which holds the value: at capacity, or for the moment
    /// ([`is_busy`](Full::is_busy)) if the lease is held and the inbox is full, or for ever
    /// ([`is_closed`](Full::is_closed)).
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{Shard, ShardConfig, Tick};
    ///
    /// let shard = Shard::new(ShardConfig::DEFAULT);
    /// let timer = shard.post(Tick::new(5), "ping")?;
    /// let lease = shard.lease().expect("nobody else has it");
    /// shard.post(Tick::new(3), "from another thread")?;
    /// drop(lease);
    /// assert!(shard.cancel(timer));
    ///
    /// let mut fired = Vec::new();
    /// shard.lease().unwrap().poll(Tick::new(9), 100, |timer| fired.push(timer.value));
    /// assert_eq!(fired, ["from another thread"]);
    /// # Ok::<(), clockjack_time::Full<&str>>(())
    /// ```
    pub fn arm(&self, deadline: Tick, value: T) -> Result<Posted, Full<T>> {
        let lease = self.lease();
        match lease {
            Some(mut lease) if !lease.is_blocked() => lease.arm(deadline, Class::Normal, value),
            // With the lease held or not: behind what was posted before (rule 6).
            _ => self.post_by_inbox(deadline, value),
        }
    }

    /// Leaves a timer in the inbox; gives the value back if that is full or closed.
    fn post_by_inbox(&self, deadline: Tick, value: T) -> Result<Posted, Full<T>> {
        let arm = |reserved: Reserved| {
            if let Some(word) = self.words.get(reserved.timer) {
                word.arm(reserved.generation);
            }
        };
        let posted = self.inbox.push(deadline.get(), value, arm)?;
        // The cell is published: rule 7. The fence pairs with the one in `Lease::publish`.
        fence(Ordering::SeqCst);
        // Not "less than": a holder may have entered the timer and published its deadline already,
        // and does not know who sleeps.
        let is_earliest = self.lower_next_wake(deadline.get()) >= deadline.get();
        let id = TimerId { slot: posted.timer, shard: self.id, generation: posted.generation };
        Ok(Posted { id, is_earliest })
    }

    /// Disarms a timer from any thread: true exactly once for each timer, and then it never fires.
    ///
    /// Frees nothing by itself: the holder of the lease does, at its next turn. Only if sixty-four
    /// are waiting for that and nobody holds the lease, this call takes it and frees them.
    pub fn cancel(&self, id: TimerId) -> bool {
        if id.shard != self.id {
            return false;
        }
        let Some(word) = self.words.get(id.slot) else { return false };
        let Some(from) = word.cancel(id.generation) else { return false };
        debug_assert_eq!(from, CancelledFrom::Scheduled, "a shard decides at expiry");
        let depth = self.returns.push(id.slot, &*self.words);
        self.words.count_cancel(id.slot);
        if depth >= RETURNS_MAX {
            drop(self.lease());
        }
        true
    }

    /// Whether a timer is armed: neither fired nor cancelled. Out of date as soon as it is said.
    #[must_use]
    pub fn is_armed(&self, id: TimerId) -> bool {
        let word = (id.shard == self.id).then(|| self.words.get(id.slot)).flatten();
        word.is_some_and(|word| word.state_of(id.generation) == Some(State::Scheduled))
    }

    /// When the shard wants to be polled: while nobody holds the lease, never later than the
    /// earliest deadline of a timer that [`arm`](Self::arm) has returned. It may be earlier: a
    /// cancel does not move it, the next poll does. `None` if nothing was armed at the last poll
    /// or since.
    #[must_use]
    pub fn next_wake(&self) -> Option<Tick> {
        // Relaxed: a hint to others. Who sleeps on it reads it again after a full fence of its
        // own, as rule 7 has it.
        let tick = self.next_wake.load(Ordering::Relaxed);
        (tick != NEVER).then_some(Tick::new(tick))
    }

    /// Whether a timer is past its deadline, so that somebody should take the lease and poll.
    #[must_use]
    pub fn is_overdue(&self, now: Tick) -> bool {
        self.next_wake().is_some_and(|wake| wake <= now)
    }

    /// Gives up the shard and hands out what was armed, in no order.
    pub fn into_values(mut self) -> Vec<T> {
        let mut values = Vec::new();
        let core = self.core.get_mut();
        while let Some(posted) = self.inbox.pop(&mut core.cursor) {
            let word = self.words.get(posted.reserved.timer);
            let generation = posted.reserved.generation;
            if word.is_some_and(|word| word.cancel(generation).is_some()) {
                values.push(posted.value);
            }
        }
        core.wheel.drain_into(&mut values);
        values
    }

    /// Makes `next_wake` no later than this, and says what it was.
    fn lower_next_wake(&self, deadline: u64) -> u64 {
        // A deadline of `NEVER` cannot be told from none, and is as far away as can be.
        let deadline = deadline.min(NEVER - 1);
        // AcqRel: orders this after the cell for other posters too; the fence does for the holder.
        self.next_wake.fetch_min(deadline, Ordering::AcqRel)
    }
}

impl<T> Drop for Shard<T> {
    fn drop(&mut self) {
        // What is in the inbox is dropped here; the wheel drops its own.
        let cursor = &mut self.core.get_mut().cursor;
        while self.inbox.pop(cursor).is_some() {}
    }
}

impl<T> fmt::Debug for Shard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("id", &self.id)
            .field("next_wake", &self.next_wake())
            .finish_non_exhaustive()
    }
}

/// The right to touch a shard's wheel, given back when it is dropped.
///
/// It derefs to the wheel. What is done through that is seen by other threads once the lease is
/// open again.
pub struct Lease<'s, T> {
    shard: &'s Shard<T>,
    /// Whether `next_wake` may be wrong.
    is_stale: bool,
}

impl<T> Lease<'_, T> {
    /// Gives the lease back; the wheel is not touched after this.
    #[inline(always)]
    fn open(&self) {
        let open =
            if mutant!("shard_open_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release pairs with the acquire in `Shard::lease` (rule 1).
        self.shard.lease.store(OPEN, open);
    }

    fn core(&self) -> &Core<T> {
        // SAFETY: this lease is the only one (rule 1), and `&self` keeps it from being used to
        // change anything meanwhile.
        self.shard.core.with(|core| unsafe { &*core })
    }

    fn core_mut(&mut self) -> &mut Core<T> {
        // SAFETY: this lease is the only one (rule 1), and `&mut self` is the only borrow of it.
        self.shard.core.with_mut(|core| unsafe { &mut *core })
    }

    /// Arms a timer, behind all that were posted before.
    ///
    /// # Errors
    /// [`Full`], which holds the value.
    pub fn insert(&mut self, deadline: Tick, value: T) -> Result<TimerId, Full<T>> {
        self.arm(deadline, Class::Normal, value).map(|posted| posted.id)
    }

    /// As [`insert`](Self::insert), for a timer of any class, and says whether it is due before
    /// all others.
    ///
    /// # Errors
    /// [`Full`], which holds the value.
    #[inline]
    pub fn arm(&mut self, deadline: Tick, class: Class, value: T) -> Result<Posted, Full<T>> {
        let shard = self.shard;
        let mut value = value;
        if shard.inbox.is_busy(&self.core().cursor) {
            // Rule 9.
            if shard.inbox.is_closed() && !mutant!("shard_arms_when_closed") {
                return Err(Full::closed(value));
            }
            self.collect();
            // Behind a cell that is not filled yet there may be timers that were posted before,
            // by this very thread too: then this one queues up behind them (rule 6). Only if there
            // is no cell left it goes ahead: a stalled poster must not keep its owner from arming.
            if class == Class::Normal && self.is_blocked() {
                match shard.post_by_inbox(deadline, value) {
                    Ok(posted) => return Ok(posted),
                    Err(refused) if refused.is_closed() => return Err(refused),
                    Err(refused) => value = refused.into_inner(),
                }
            }
        }
        let id = self.core_mut().wheel.insert_class(deadline, class, value)?;
        // Relaxed: the lease orders holders; a poster's value can only be lower.
        let is_earliest = deadline.get() < shard.next_wake.load(Ordering::Relaxed)
            && shard.lower_next_wake(deadline.get()) > deadline.get();
        Ok(Posted { id, is_earliest })
    }

    /// Whether a cell that is claimed and not filled yet blocks the inbox: then timers that were
    /// posted are not in the wheel yet.
    #[inline(always)]
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.shard.inbox.is_busy(&self.core().cursor) && !mutant!("shard_overtakes_inbox")
    }

    /// Disarms a timer and gives its value back, all that it held being free at once.
    ///
    /// `None` also if the value is still in the inbox, behind a cell that is not filled: such a
    /// timer is left as it is, and [`Shard::cancel`] disarms it. [`is_blocked`](Self::is_blocked)
    /// says whether that can be.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        // The wheel would win the word of a timer whose value it does not have.
        if self.is_blocked() && self.get(id).is_none() && !mutant!("shard_cancels_in_inbox") {
            return None;
        }
        self.core_mut().wheel.cancel(id)
    }

    /// Moves time to `now` and calls `fire` with what fell due, in order: at most `budget` units
    /// of work. True if the budget ended before the work did.
    ///
    /// `fire` is called with the lease held, so that the order survives: it should hand over and
    /// not work.
    pub fn poll(&mut self, now: Tick, budget: usize, mut fire: impl FnMut(Expired<T>)) -> bool {
        self.collect();
        self.is_stale = true;
        if mutant!("shard_fires_when_open") {
            let due: Vec<_> = self.core_mut().wheel.advance(now, budget).collect();
            self.publish();
            self.shard.lease.store(OPEN, Ordering::Release);
            due.into_iter().for_each(&mut fire);
            return false;
        }
        let mut due = self.core_mut().wheel.advance(now, budget);
        due.by_ref().for_each(&mut fire);
        let more = due.more();
        self.scrub_if_sparse();
        more
    }

    /// Enters what was posted and frees what was cancelled from outside.
    #[inline]
    fn collect(&mut self) {
        let core = self.core();
        let has_mail = self.shard.inbox.has_mail(&core.cursor);
        let has_returns = core.returned != NIL || !self.shard.returns.is_empty();
        let is_short = self.shard.inbox.unstocked(&core.cursor) > 0;
        if has_mail || has_returns || is_short {
            self.collect_some();
        }
    }

    #[cold]
    fn collect_some(&mut self) {
        self.enter_posted();
        self.free_returned();
        let shard = self.shard;
        let core = self.core_mut();
        if shard.inbox.is_closed() {
            core.wheel.retire();
        }
        while shard.inbox.unstocked(&core.cursor) > 0 {
            let Some((timer, generation)) = core.wheel.reserve() else { break };
            shard.inbox.stock(&mut core.cursor, Reserved { timer, generation });
        }
    }

    /// Rule 5.
    fn enter_posted(&mut self) {
        let shard = self.shard;
        loop {
            let core = self.core_mut();
            let Some(posted) = shard.inbox.pop(&mut core.cursor) else { break };
            let timer = posted.reserved.timer;
            let state = shard.words.get(timer).map(|word| word.state().0);
            core.wheel.counts_mut().count_entered();
            if state == Some(State::Pending) && !mutant!("shard_enters_returned") {
                core.wheel.counts_mut().count_reclaimed();
                core.wheel.unreserve(timer);
                core.garbage.push(posted.value);
            } else {
                core.wheel.enter_reserved(timer, posted.deadline, posted.value);
                if mutant!("shard_entry_arms_again") {
                    shard.words.get(timer).expect("reserved").arm(posted.reserved.generation);
                }
            }
        }
    }

    /// Rule 3.
    fn free_returned(&mut self) {
        let shard = self.shard;
        let depth = shard.returns.depth();
        let max_returns = &mut self.core_mut().wheel.counts_mut().max_returns;
        *max_returns = depth.max(*max_returns);
        self.core_mut().garbage.reserve(depth.min(RETURNS_PER_LEASE));
        for _ in 0..RETURNS_PER_LEASE {
            let core = self.core_mut();
            if core.returned == NIL {
                // The drain is walked here, over several leases if it is long.
                core.returned = shard.returns.drain(&*shard.words).next().unwrap_or(NIL);
            }
            let timer = core.returned;
            if timer == NIL {
                break;
            }
            // The link is read before the slot is freed: then it may be armed again.
            core.returned = shard.words.next(timer);
            if let Some(value) = core.wheel.reclaim(timer) {
                core.wheel.counts_mut().count_reclaimed();
                core.garbage.push(value);
            } else if let Some(word) = shard.words.get(timer) {
                // Its value is still in the inbox; the slot is freed when that is emptied.
                word.release();
            }
        }
    }

    /// Rule 7: tells others the earliest deadline, which may have become later.
    fn publish(&mut self) {
        let shard = self.shard;
        let next = self.core().wheel.next_deadline();
        let next = next.map_or(NEVER, |tick| tick.get().min(NEVER - 1));
        // AcqRel, though a store would do: as a read-modify-write it has one place among those of
        // the posters, which keeps what follows from depending on how stores are ordered.
        shard.next_wake.swap(next, Ordering::AcqRel);
        // Pairs with the fence in `Shard::post_by_inbox`.
        fence(Ordering::SeqCst);
        // Of what is filled, also behind a cell that is not, the poster may have lowered the wake
        // before it was overwritten here. Who fills a cell later lowers it later.
        if let Some(deadline) = shard.inbox.earliest(&self.core().cursor)
            && !mutant!("shard_publish_no_recheck")
        {
            shard.lower_next_wake(deadline);
        }
        self.mirror();
    }
}

impl<T> Deref for Lease<'_, T> {
    type Target = Wheel<T, Leased<T>>;

    fn deref(&self) -> &Self::Target {
        &self.core().wheel
    }
}

impl<T> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.is_stale = true;
        &mut self.core_mut().wheel
    }
}

impl<T> Drop for Lease<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_stale {
            self.publish();
        }
        if self.core().garbage.is_empty() {
            return self.open();
        }
        if self.core().keeps_garbage {
            // Relaxed: published by the lease, which is given back behind it.
            self.shard.has_garbage.store(true, Ordering::Relaxed);
            return self.open();
        }
        let garbage = core::mem::take(&mut self.core_mut().garbage);
        self.open();
        // Rule 8.
        drop(garbage);
    }
}

impl<T> fmt::Debug for Lease<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("shard", &self.shard.id).finish_non_exhaustive()
    }
}
