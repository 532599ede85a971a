//! A shard: one timer wheel that several threads share, behind a try-lock.
//!
//! A thread that does not hold the lock leaves its operation for the holder, as in flat combining
//! (Hendler, Incze, Shavit and Tzafrir, "Flat combining and the synchronization-parallelism
//! tradeoff", 2010).
#![doc = include_str!("shard.md")]
#![expect(unsafe_code, reason = "the wheel stands in a cell that the guard guards")]

mod close;
mod compact;
mod inbox;
pub(crate) mod stats;
mod store;

use alloc::vec::Vec;
use core::{
    fmt,
    ops::{Deref, DerefMut},
};

use clockjack_sync::{
    Arc,
    index_stack::{IndexStack, Links, NIL},
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
};

pub use self::{
    close::Closed,
    stats::{ShardOccupancy, ShardStats},
    store::ShardStore,
};
use self::{
    inbox::{Cursor, Inbox, Reserved},
    stats::PublishedCounts,
    store::TimerStates,
};
use crate::{
    Expired, InsertError, Tick, TimerId, TimerPriority, Wheel,
    timer_state::{CancelledFrom, State},
};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;

/// `next_wake` of a shard in which nothing is armed.
const NEVER: u64 = u64::MAX;

/// Cells of the inbox: how many timers can be inserted while another thread holds the lock, which
/// it does for microseconds.
const INBOX_CAPACITY: usize = if cfg!(loom) { 2 } else { 64 };

/// The least capacity: a quarter of it is the two cells that an inbox has at least.
const CAPACITY_MIN: usize = 8;

/// How deep the stack of cancelled slots grows before a canceller tries to empty it itself.
pub const RETURNS_MAX: usize = if cfg!(loom) { 2 } else { 64 };

/// How many returned slots one guard frees: the rest waits for the next guard, so that a flood of
/// cancels does not keep the shard locked for long.
const RETURNS_PER_LOCK: usize = 256;

/// The limits of a [`Shard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// The number that the ids of this shard's timers contain; no other shard has it.
    pub id: u32,
    /// The tick at which the wheel starts.
    pub start: Tick,
    /// How many timers there may be, at least 8. A few slots are reserved for remote inserts: up to
    /// 64, and at most a quarter of the capacity.
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

/// A timer that was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The timer.
    pub id: TimerId,
    /// Whether it is, or may be, due before all other timers of the shard: then a thread that
    /// sleeps until the previous [`Shard::next_wake`] must be woken.
    pub is_earliest: bool,
}

/// One wheel that several threads share; the [module](self) has the rules.
pub struct Shard<T> {
    lock: Padded<AtomicU32>,
    /// Rule 7.
    next_wake: Padded<AtomicU64>,
    returns: IndexStack,
    inbox: Inbox<T>,
    states: Arc<TimerStates>,
    published_counts: PublishedCounts,
    id: u32,
    core: UnsafeCell<Core<T>>,
    /// Whether `stale_values` is not empty, for threads that do not hold the lock.
    has_stale_values: AtomicBool,
}

/// State that only the holder of the lock touches.
struct Core<T> {
    wheel: Wheel<T, ShardStore<T>>,
    cursor: Cursor,
    /// The first of the slots that were drained from `returns` and not freed yet.
    returned: u32,
    /// How many returned timers are still in the inbox, behind a cell that is not filled (rule 5).
    n_cancelled_in_inbox: usize,
    /// The values of remotely cancelled timers, to be dropped after the unlock (rule 8).
    stale_values: Vec<T>,
    /// Whether the stale values stay until [`Shard::take_stale_values`].
    keeps_stale_values: bool,
}

// SAFETY: all fields but `core` are `Sync`. Only the thread that holds the lock touches `core`; it
// locks by a compare-exchange with acquire and unlocks with release (rule 1). Values of type `T`
// move between threads with it, so `T: Send` is needed, and enough: no two threads see one value
// at a time.
unsafe impl<T: Send> Sync for Shard<T> {}

impl<T> Shard<T> {
    /// An empty shard.
    #[must_use]
    pub fn new(config: ShardConfig) -> Self {
        let capacity = config.capacity.max(CAPACITY_MIN);
        let store = ShardStore::new(capacity);
        let states = store.states().clone();
        let mut wheel = Wheel::with_store(store, config.start);
        wheel.set_shard(config.id);
        let cells = (capacity / 4).min(INBOX_CAPACITY);
        let inbox = Inbox::new(1 << cells.ilog2());
        let shard = Self {
            lock: Padded(AtomicU32::new(UNLOCKED)),
            next_wake: Padded(AtomicU64::new(NEVER)),
            returns: IndexStack::new(),
            inbox,
            states,
            published_counts: PublishedCounts::new(),
            id: config.id,
            core: UnsafeCell::new(Core {
                wheel,
                cursor: Cursor::default(),
                returned: NIL,
                n_cancelled_in_inbox: 0,
                stale_values: Vec::new(),
                keeps_stale_values: false,
            }),
            has_stale_values: AtomicBool::new(false),
        };
        // Reserves the slots of the inbox.
        drop(shard.try_lock());
        shard
    }

    /// Keeps the values of remotely cancelled timers until a caller
    /// [takes](Self::take_stale_values) them: for values whose drop must not run wherever a guard
    /// is dropped.
    #[doc(hidden)]
    #[must_use]
    pub fn keeping_stale_values(mut self) -> Self {
        self.core.get_mut().keeps_stale_values = true;
        self
    }

    /// Whether there are stale values. A holder checks this after it has dropped its guard.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn has_stale_values(&self) -> bool {
        // Relaxed: the thread that left some sees its own store, and a thread that has held the
        // lock since then has acquired the store.
        self.has_stale_values.load(Ordering::Relaxed)
    }

    /// The values of remotely cancelled timers, if they are kept; none if another thread holds the
    /// lock, which then checks itself.
    #[doc(hidden)]
    #[must_use]
    pub fn take_stale_values(&self) -> Vec<T> {
        let Some(mut guard) = self.try_lock_raw() else { return Vec::new() };
        // Relaxed: published by the unlock.
        self.has_stale_values.store(false, Ordering::Relaxed);
        core::mem::take(&mut guard.core_mut().stale_values)
    }

    /// The number that the ids of this shard's timers contain.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Locks the shard; `None` if another thread holds the lock. Never waits.
    ///
    /// It first inserts the timers of the inbox and frees those that were cancelled remotely.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<ShardGuard<'_, T>> {
        let mut guard = self.try_lock_raw()?;
        guard.collect();
        Some(guard)
    }

    /// Rule 1.
    #[inline(always)]
    fn try_lock_raw(&self) -> Option<ShardGuard<'_, T>> {
        // Acquire pairs with the release in `ShardGuard::unlock` (rule 1).
        self.lock.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(ShardGuard { shard: self, is_next_wake_dirty: false })
    }

    /// Arms a timer from any thread; see [`arm`](Self::arm) for the thread that must be woken.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    pub fn remote_insert(&self, deadline: Tick, value: T) -> Result<TimerId, InsertError<T>> {
        self.arm(deadline, value).map(|inserted| inserted.id)
    }

    /// Arms a timer from any thread, and reports whether the thread that sleeps for this shard must
    /// be woken. Locks the shard if it is unlocked, else leaves the timer in the inbox.
    ///
    /// # Errors
    /// [`InsertError`], which holds the value: at capacity; or temporarily
    /// ([`is_busy`](InsertError::is_busy)) if the shard is locked and the inbox is full; or
    /// permanently ([`is_closed`](InsertError::is_closed)).
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{Shard, ShardConfig, Tick};
    ///
    /// let shard = Shard::new(ShardConfig::DEFAULT);
    /// let timer = shard.remote_insert(Tick::new(5), "ping")?;
    /// let guard = shard.try_lock().expect("it is unlocked");
    /// shard.remote_insert(Tick::new(3), "from another thread")?;
    /// drop(guard);
    /// assert!(shard.cancel(timer));
    ///
    /// let mut fired = Vec::new();
    /// shard.try_lock().unwrap().poll(Tick::new(9), 100, |timer| fired.push(timer.value));
    /// assert_eq!(fired, ["from another thread"]);
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    pub fn arm(&self, deadline: Tick, value: T) -> Result<Inserted, InsertError<T>> {
        let guard = self.try_lock();
        match guard {
            Some(mut guard) if !guard.is_blocked() => {
                guard.arm(deadline, TimerPriority::Normal, value)
            }
            // Locked or not: behind the timers that were inserted before (rule 6).
            _ => self.insert_by_inbox(deadline, value),
        }
    }

    /// Leaves a timer in the inbox; returns the value if the inbox is full or closed.
    fn insert_by_inbox(&self, deadline: Tick, value: T) -> Result<Inserted, InsertError<T>> {
        let arm = |reserved: Reserved| {
            if let Some(state) = self.states.get(reserved.timer) {
                state.arm(reserved.generation);
            }
        };
        let inserted = self.inbox.push(deadline.get(), value, arm)?;
        // The cell is published: rule 7. The fence pairs with the one in `ShardGuard::publish`.
        fence(Ordering::SeqCst);
        // Not "less than": a holder may have inserted the timer and published its deadline already,
        // and does not know which thread sleeps.
        let is_earliest = self.lower_next_wake(deadline.get()) >= deadline.get();
        let id = TimerId { slot: inserted.timer, shard: self.id, generation: inserted.generation };
        Ok(Inserted { id, is_earliest })
    }

    /// Cancels a timer from any thread: true at most once per timer, and then it never fires.
    ///
    /// It frees nothing by itself: the next holder of the lock does. Only if sixty-four slots wait
    /// for that and the shard is unlocked, this call locks it and frees them. A caller whose value
    /// must not stay until then calls [`request_poll`](Self::request_poll).
    pub fn cancel(&self, id: TimerId) -> bool {
        if id.shard != self.id {
            return false;
        }
        let Some(state) = self.states.get(id.slot) else { return false };
        let Some(from) = state.cancel(id.generation) else { return false };
        debug_assert_eq!(from, CancelledFrom::Scheduled, "a shard decides at expiry");
        let depth = self.returns.push(id.slot, &*self.states);
        if depth >= RETURNS_MAX {
            drop(self.try_lock());
        }
        true
    }

    /// Frees the timers that were cancelled without the lock; false if another thread holds the
    /// lock, or if some are left for the next holder.
    pub fn free_cancelled(&self) -> bool {
        self.try_lock().is_some_and(|guard| !guard.has_cancelled_left())
    }

    /// Makes the shard due at this tick or earlier, after a [`cancel`](Self::cancel): then the poll
    /// that follows frees the timer, however far away its deadline is (rule 13). The caller wakes
    /// the thread that sleeps until [`next_wake`](Self::next_wake), whatever that was.
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{Shard, ShardConfig, Tick};
    ///
    /// let shard = Shard::new(ShardConfig::DEFAULT);
    /// let timer = shard.remote_insert(Tick::new(1_000_000), "a large value")?;
    /// assert!(shard.cancel(timer));
    /// shard.request_poll(Tick::new(5));
    /// assert!(shard.is_overdue(Tick::new(5)));
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    pub fn request_poll(&self, at: Tick) {
        // The slot is on the stack: pairs with the fence in `ShardGuard::publish` (rule 13).
        fence(Ordering::SeqCst);
        self.lower_next_wake(at.get());
    }

    /// Whether a timer is armed: neither fired nor cancelled. The result may be outdated at once.
    #[must_use]
    pub fn is_armed(&self, id: TimerId) -> bool {
        let state = (id.shard == self.id).then(|| self.states.get(id.slot)).flatten();
        state.is_some_and(|state| state.state_of(id.generation) == Some(State::Scheduled))
    }

    /// When the shard must be polled: while the shard is unlocked, never later than the earliest
    /// deadline of a timer that [`arm`](Self::arm) has returned. It may be earlier: a cancel does
    /// not move it, the next poll does. `None` if no timer was armed at the last poll or since.
    #[must_use]
    pub fn next_wake(&self) -> Option<Tick> {
        // Relaxed: a hint. A thread that sleeps on it reads it again after its own full fence
        // (rule 7).
        let tick = self.next_wake.load(Ordering::Relaxed);
        (tick != NEVER).then_some(Tick::new(tick))
    }

    /// About how many timers were cancelled without the lock and are not freed yet.
    #[must_use]
    pub fn n_returned(&self) -> usize {
        self.returns.depth()
    }

    /// Whether a timer is past its deadline, so that a thread should lock the shard and poll.
    #[must_use]
    pub fn is_overdue(&self, now: Tick) -> bool {
        self.next_wake().is_some_and(|wake| wake <= now)
    }

    /// Consumes the shard and returns the values of the armed timers, in no order.
    pub fn into_values(mut self) -> Vec<T> {
        let mut values = Vec::new();
        let core = self.core.get_mut();
        while let Some(inserted) = self.inbox.pop(&mut core.cursor) {
            let state = self.states.get(inserted.reserved.timer);
            let generation = inserted.reserved.generation;
            if state.is_some_and(|state| state.cancel(generation).is_some()) {
                values.push(inserted.value);
            }
        }
        core.wheel.drain_into(&mut values);
        values
    }

    /// Makes `next_wake` no later than this, and returns its previous value.
    fn lower_next_wake(&self, deadline: u64) -> u64 {
        // A deadline of `NEVER` would mean that there is none.
        let deadline = deadline.min(NEVER - 1);
        // AcqRel: orders this after the cell for other inserters too; the fence does so for the
        // holder.
        self.next_wake.fetch_min(deadline, Ordering::AcqRel)
    }
}

impl<T> Drop for Shard<T> {
    fn drop(&mut self) {
        // Drops the values in the inbox; the wheel drops its own values.
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

/// The guard of a locked shard: exclusive access to its wheel. Dropping it unlocks the shard.
///
/// It derefs to the wheel. Other threads see changes of the wheel after the unlock.
pub struct ShardGuard<'s, T> {
    shard: &'s Shard<T>,
    /// Whether `next_wake` may be outdated.
    is_next_wake_dirty: bool,
}

impl<T> ShardGuard<'_, T> {
    /// Unlocks the shard; the wheel is not touched after this.
    #[inline(always)]
    fn unlock(&self) {
        // Release pairs with the acquire in `Shard::try_lock_raw` (rule 1).
        self.shard.lock.store(UNLOCKED, Ordering::Release);
    }

    fn core(&self) -> &Core<T> {
        // SAFETY: this guard is the only one (rule 1), and `&self` prevents a change through it
        // meanwhile.
        self.shard.core.with(|core| unsafe { &*core })
    }

    fn core_mut(&mut self) -> &mut Core<T> {
        // SAFETY: this guard is the only one (rule 1), and `&mut self` is the only borrow of it.
        self.shard.core.with_mut(|core| unsafe { &mut *core })
    }

    /// Arms a timer, behind all that were inserted before.
    ///
    /// # Errors
    /// [`InsertError`], which holds the value.
    pub fn insert(&mut self, deadline: Tick, value: T) -> Result<TimerId, InsertError<T>> {
        self.arm(deadline, TimerPriority::Normal, value).map(|inserted| inserted.id)
    }

    /// As [`insert`](Self::insert), for a timer of any priority, and reports whether it is due
    /// before all others.
    ///
    /// # Errors
    /// [`InsertError`], which holds the value.
    #[inline]
    pub fn arm(
        &mut self,
        deadline: Tick,
        priority: TimerPriority,
        value: T,
    ) -> Result<Inserted, InsertError<T>> {
        let shard = self.shard;
        let mut value = value;
        if shard.inbox.has_pending(&self.core().cursor) {
            // Rule 9.
            if shard.inbox.is_closed() {
                return Err(InsertError::closed(value));
            }
            self.collect();
            // Behind a cell that is not filled yet there may be timers that were inserted before,
            // also by this very thread: then this timer queues up behind them (rule 6). Only if no
            // cell is left, it overtakes them: a stalled inserter must not keep the owner from
            // arming.
            if priority == TimerPriority::Normal && self.is_blocked() {
                match shard.insert_by_inbox(deadline, value) {
                    Ok(inserted) => return Ok(inserted),
                    Err(refused) if refused.is_closed() => return Err(refused),
                    Err(refused) => value = refused.into_inner(),
                }
            }
        }
        let id = self.core_mut().wheel.insert_with_priority(deadline, priority, value)?;
        // Relaxed: the lock orders holders; an inserter's value can only be lower.
        let is_earliest = deadline.get() < shard.next_wake.load(Ordering::Relaxed)
            && shard.lower_next_wake(deadline.get()) > deadline.get();
        Ok(Inserted { id, is_earliest })
    }

    /// Whether a cell that is claimed and not filled yet blocks the inbox: then some inserted
    /// timers are not in the wheel yet.
    #[inline(always)]
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.shard.inbox.has_pending(&self.core().cursor)
    }

    /// Cancels a timer and returns its value; its slot is free at once.
    ///
    /// `None` also if the value is still in the inbox, behind a cell that is not filled: such a
    /// timer is left as it is, and [`Shard::cancel`] cancels it. [`is_blocked`](Self::is_blocked)
    /// reports whether that is possible.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        // Otherwise the wheel would win the state of a timer whose value it does not have.
        if self.is_blocked() && self.get(id).is_none() {
            return None;
        }
        self.core_mut().wheel.cancel(id)
    }

    /// Moves time to `now` and calls `fire` with the due timers, in order: at most `budget` units
    /// of work. True if the budget ended before the work did.
    ///
    /// `fire` is called under the lock, so that the order is kept: it should pass the timer on and
    /// not do the work.
    pub fn poll(&mut self, now: Tick, budget: usize, mut fire: impl FnMut(Expired<T>)) -> bool {
        self.collect();
        self.is_next_wake_dirty = true;
        let mut due = self.core_mut().wheel.advance(now, budget);
        due.by_ref().for_each(&mut fire);
        let more = due.more();
        self.compact_if_sparse();
        more
    }

    /// Takes all armed timers out, whenever they are due, and passes their values to `drained`, in
    /// order. They count as dropped.
    ///
    /// `drained` is called under the lock, as the callback of [`poll`](Self::poll) is. A timer
    /// behind a cell of the inbox that is not filled yet stays in the shard:
    /// [`Shard::next_wake`] reports it.
    pub fn drain(&mut self, mut drained: impl FnMut(T)) {
        self.collect();
        self.is_next_wake_dirty = true;
        let wheel = &mut self.core_mut().wheel;
        let mut n_dropped = 0;
        wheel.advance(Tick::MAX, usize::MAX).for_each(|timer| {
            n_dropped += 1;
            drained(timer.value);
        });
        wheel.counts_mut().count_dropped(n_dropped);
    }

    /// Inserts the timers of the inbox and frees those that were cancelled remotely.
    #[inline]
    fn collect(&mut self) {
        let core = self.core();
        let has_next = self.shard.inbox.has_next(&core.cursor);
        let has_returns = core.returned != NIL || !self.shard.returns.is_empty();
        let is_short = self.shard.inbox.n_unreserved(&core.cursor) > 0;
        if has_next || has_returns || is_short {
            self.collect_some();
        }
    }

    #[cold]
    fn collect_some(&mut self) {
        self.drain_inbox();
        self.free_returned();
        let shard = self.shard;
        let core = self.core_mut();
        if shard.inbox.is_closed() {
            core.wheel.close();
        }
        while shard.inbox.n_unreserved(&core.cursor) > 0 {
            let Some((timer, generation)) = core.wheel.reserve() else { break };
            shard.inbox.add_reserved(&mut core.cursor, Reserved { timer, generation });
        }
    }

    /// Rule 5.
    fn drain_inbox(&mut self) {
        let shard = self.shard;
        loop {
            let core = self.core_mut();
            let Some(inserted) = shard.inbox.pop(&mut core.cursor) else { break };
            let timer = inserted.reserved.timer;
            let state = shard.states.get(timer).map(|state| state.state().0);
            core.wheel.counts_mut().count_entered();
            if state == Some(State::Pending) {
                core.n_cancelled_in_inbox -= 1;
                core.wheel.counts_mut().count_reclaimed();
                core.wheel.unreserve(timer);
                core.stale_values.push(inserted.value);
            } else {
                core.wheel.insert_reserved(timer, inserted.deadline, inserted.value);
            }
        }
    }

    /// Rule 3.
    fn free_returned(&mut self) {
        let shard = self.shard;
        let depth = shard.returns.depth();
        let max_returns = &mut self.core_mut().wheel.counts_mut().max_returns;
        *max_returns = depth.max(*max_returns);
        self.core_mut().stale_values.reserve(depth.min(RETURNS_PER_LOCK));
        for _ in 0..RETURNS_PER_LOCK {
            let core = self.core_mut();
            if core.returned == NIL {
                // The drained list is walked here, under several guards if it is long.
                core.returned = shard.returns.drain(&*shard.states).next().unwrap_or(NIL);
            }
            let timer = core.returned;
            if timer == NIL {
                break;
            }
            // Reads the link before the slot is freed, because a free slot may be armed again.
            core.returned = shard.states.next(timer);
            if let Some(value) = core.wheel.reclaim(timer) {
                core.wheel.counts_mut().count_reclaimed();
                core.stale_values.push(value);
            } else if let Some(state) = shard.states.get(timer) {
                // Its value is still in the inbox; the slot is freed when the inbox is emptied.
                core.n_cancelled_in_inbox += 1;
                state.release();
            }
        }
    }

    /// Rule 7: publishes the earliest deadline, which may have become later.
    fn publish(&mut self) {
        let shard = self.shard;
        let next = self.core().wheel.next_deadline();
        let next = next.map_or(NEVER, |tick| tick.get().min(NEVER - 1));
        // AcqRel, though a store would be enough: a read-modify-write has one place among those of
        // the inserters, so the reasoning below does not depend on how stores are ordered.
        shard.next_wake.swap(next, Ordering::AcqRel);
        // Pairs with the fence in `Shard::insert_by_inbox`.
        fence(Ordering::SeqCst);
        // The inserter of a filled cell, even behind a cell that is not filled, may have lowered
        // `next_wake` before the swap overwrote it. An inserter that fills its cell later lowers
        // `next_wake` later.
        if let Some(deadline) = shard.inbox.earliest(&self.core().cursor) {
            shard.lower_next_wake(deadline);
        }
        // Rule 13: the same for a canceller, and what this guard has not freed is due at once.
        if self.has_cancelled_left() {
            shard.lower_next_wake(self.core().wheel.elapsed().get());
        }
        self.publish_counts();
    }

    /// Whether timers that were cancelled remotely are not freed yet.
    fn has_cancelled_left(&self) -> bool {
        let core = self.core();
        core.returned != NIL || core.n_cancelled_in_inbox > 0 || !self.shard.returns.is_empty()
    }
}

impl<T> Deref for ShardGuard<'_, T> {
    type Target = Wheel<T, ShardStore<T>>;

    fn deref(&self) -> &Self::Target {
        &self.core().wheel
    }
}

impl<T> DerefMut for ShardGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.is_next_wake_dirty = true;
        &mut self.core_mut().wheel
    }
}

impl<T> Drop for ShardGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_next_wake_dirty {
            self.publish();
        }
        if self.core().stale_values.is_empty() {
            return self.unlock();
        }
        if self.core().keeps_stale_values {
            // Relaxed: published by the unlock, which follows.
            self.shard.has_stale_values.store(true, Ordering::Relaxed);
            return self.unlock();
        }
        let stale_values = core::mem::take(&mut self.core_mut().stale_values);
        self.unlock();
        // Rule 8.
        drop(stale_values);
    }
}

impl<T> fmt::Debug for ShardGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardGuard").field("shard", &self.shard.id).finish_non_exhaustive()
    }
}
