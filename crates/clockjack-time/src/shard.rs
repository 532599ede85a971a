//! A shard: one wheel that several threads reach, and the rules by which they do.
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
    mutant,
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
};

pub use self::{close::Closed, stats::ShardStats, store::ShardStore};
use self::{
    inbox::{Cursor, Inbox, Reserved},
    stats::PublishedCounts,
    store::TimerStates,
};
use crate::{
    Expired, Full, Tick, TimerId, TimerPriority, Wheel,
    timer_state::{CancelledFrom, State},
};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;

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
const RETURNS_PER_LOCK: usize = 256;

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
pub struct Inserted {
    /// The timer.
    pub id: TimerId,
    /// Whether it is due before all that the shard had until then, or may be: whoever sleeps until
    /// what [`Shard::next_wake`] was must be woken.
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
    /// Whether there is something to be taken, for those who do not hold the lease.
    has_stale_values: AtomicBool,
}

/// What only the holder of the lease touches.
struct Core<T> {
    wheel: Wheel<T, ShardStore<T>>,
    cursor: Cursor,
    /// The first of the slots that were drained from the return stack and not freed yet.
    returned: u32,
    /// What was cancelled from outside, to be dropped when the lease is open (rule 8).
    stale_values: Vec<T>,
    /// Whether it stays until somebody takes it.
    keeps_stale_values: bool,
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
        let store = ShardStore::new(capacity);
        let states = store.states().clone();
        let mut wheel = Wheel::with_store(store, config.start);
        wheel.set_shard(config.id);
        let quarter = u32::try_from(capacity / 4).unwrap_or(u32::MAX);
        let cells = quarter.min(INBOX_CAPACITY);
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
                stale_values: Vec::new(),
                keeps_stale_values: false,
            }),
            has_stale_values: AtomicBool::new(false),
        };
        // Stocks the inbox.
        drop(shard.try_lock());
        shard
    }

    /// Keeps the values of timers that were cancelled from outside until somebody
    /// [takes](Self::take_stale_values) them: for values whose drop must not run wherever a lease ends.
    #[doc(hidden)]
    #[must_use]
    pub fn keeping_stale_values(mut self) -> Self {
        self.core.get_mut().keeps_stale_values = true;
        self
    }

    /// Whether there are values that nobody has taken. Whoever gives a lease back looks at it
    /// afterwards.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn has_stale_values(&self) -> bool {
        // Relaxed: who has left some sees its own store, and who has held the lease since then has
        // acquired it.
        self.has_stale_values.load(Ordering::Relaxed)
    }

    /// The values of timers that were cancelled from outside, if they are kept; none if another
    /// thread holds the lease, which then looks itself.
    #[doc(hidden)]
    #[must_use]
    pub fn take_stale_values(&self) -> Vec<T> {
        let Some(mut guard) = self.try_lock_raw() else { return Vec::new() };
        // Relaxed: published by the lease.
        self.has_stale_values.store(false, Ordering::Relaxed);
        core::mem::take(&mut guard.core_mut().stale_values)
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
    pub fn try_lock(&self) -> Option<ShardGuard<'_, T>> {
        let mut guard = self.try_lock_raw()?;
        guard.collect();
        Some(guard)
    }

    /// Rule 1.
    #[inline(always)]
    fn try_lock_raw(&self) -> Option<ShardGuard<'_, T>> {
        if mutant!("shard_lease_by_store") {
            if self.lock.load(Ordering::Acquire) == LOCKED {
                return None;
            }
            self.lock.store(LOCKED, Ordering::Release);
        } else {
            // Acquire pairs with the release in `ShardGuard::unlock` (rule 1).
            self.lock
                .compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed)
                .ok()?;
        }
        Some(ShardGuard { shard: self, is_next_wake_dirty: false })
    }

    /// Arms a timer from any thread; see [`arm`](Self::arm) for who must be told.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    pub fn remote_insert(&self, deadline: Tick, value: T) -> Result<TimerId, Full<T>> {
        self.arm(deadline, value).map(|inserted| inserted.id)
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
    /// let timer = shard.remote_insert(Tick::new(5), "ping")?;
    /// let lease = shard.try_lock().expect("nobody else has it");
    /// shard.remote_insert(Tick::new(3), "from another thread")?;
    /// drop(lease);
    /// assert!(shard.cancel(timer));
    ///
    /// let mut fired = Vec::new();
    /// shard.try_lock().unwrap().poll(Tick::new(9), 100, |timer| fired.push(timer.value));
    /// assert_eq!(fired, ["from another thread"]);
    /// # Ok::<(), clockjack_time::Full<&str>>(())
    /// ```
    pub fn arm(&self, deadline: Tick, value: T) -> Result<Inserted, Full<T>> {
        let guard = self.try_lock();
        match guard {
            Some(mut guard) if !guard.is_blocked() => {
                guard.arm(deadline, TimerPriority::Normal, value)
            }
            // With the lease held or not: behind what was posted before (rule 6).
            _ => self.insert_by_inbox(deadline, value),
        }
    }

    /// Leaves a timer in the inbox; gives the value back if that is full or closed.
    fn insert_by_inbox(&self, deadline: Tick, value: T) -> Result<Inserted, Full<T>> {
        let arm = |reserved: Reserved| {
            if let Some(state) = self.states.get(reserved.timer) {
                state.arm(reserved.generation);
            }
        };
        let inserted = self.inbox.push(deadline.get(), value, arm)?;
        // The cell is published: rule 7. The fence pairs with the one in `ShardGuard::publish`.
        fence(Ordering::SeqCst);
        // Not "less than": a holder may have entered the timer and published its deadline already,
        // and does not know who sleeps.
        let is_earliest = self.lower_next_wake(deadline.get()) >= deadline.get();
        let id = TimerId { slot: inserted.timer, shard: self.id, generation: inserted.generation };
        Ok(Inserted { id, is_earliest })
    }

    /// Disarms a timer from any thread: true exactly once for each timer, and then it never fires.
    ///
    /// Frees nothing by itself: the holder of the lease does, at its next turn. Only if sixty-four
    /// are waiting for that and nobody holds the lease, this call takes it and frees them.
    pub fn cancel(&self, id: TimerId) -> bool {
        if id.shard != self.id {
            return false;
        }
        let Some(state) = self.states.get(id.slot) else { return false };
        let Some(from) = state.cancel(id.generation) else { return false };
        debug_assert_eq!(from, CancelledFrom::Scheduled, "a shard decides at expiry");
        let depth = self.returns.push(id.slot, &*self.states);
        self.states.count_cancel(id.slot);
        if depth >= RETURNS_MAX {
            drop(self.try_lock());
        }
        true
    }

    /// Whether a timer is armed: neither fired nor cancelled. Out of date as soon as it is said.
    #[must_use]
    pub fn is_armed(&self, id: TimerId) -> bool {
        let state = (id.shard == self.id).then(|| self.states.get(id.slot)).flatten();
        state.is_some_and(|state| state.state_of(id.generation) == Some(State::Scheduled))
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
pub struct ShardGuard<'s, T> {
    shard: &'s Shard<T>,
    /// Whether `next_wake` may be wrong.
    is_next_wake_dirty: bool,
}

impl<T> ShardGuard<'_, T> {
    /// Gives the lease back; the wheel is not touched after this.
    #[inline(always)]
    fn unlock(&self) {
        let open =
            if mutant!("shard_open_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        // Release pairs with the acquire in `Shard::try_lock` (rule 1).
        self.shard.lock.store(UNLOCKED, open);
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
        self.arm(deadline, TimerPriority::Normal, value).map(|inserted| inserted.id)
    }

    /// As [`insert`](Self::insert), for a timer of any class, and says whether it is due before
    /// all others.
    ///
    /// # Errors
    /// [`Full`], which holds the value.
    #[inline]
    pub fn arm(
        &mut self,
        deadline: Tick,
        priority: TimerPriority,
        value: T,
    ) -> Result<Inserted, Full<T>> {
        let shard = self.shard;
        let mut value = value;
        if shard.inbox.has_pending(&self.core().cursor) {
            // Rule 9.
            if shard.inbox.is_closed() && !mutant!("shard_arms_when_closed") {
                return Err(Full::closed(value));
            }
            self.collect();
            // Behind a cell that is not filled yet there may be timers that were posted before,
            // by this very thread too: then this one queues up behind them (rule 6). Only if there
            // is no cell left it goes ahead: a stalled poster must not keep its owner from arming.
            if priority == TimerPriority::Normal && self.is_blocked() {
                match shard.insert_by_inbox(deadline, value) {
                    Ok(inserted) => return Ok(inserted),
                    Err(refused) if refused.is_closed() => return Err(refused),
                    Err(refused) => value = refused.into_inner(),
                }
            }
        }
        let id = self.core_mut().wheel.insert_with_priority(deadline, priority, value)?;
        // Relaxed: the lease orders holders; a poster's value can only be lower.
        let is_earliest = deadline.get() < shard.next_wake.load(Ordering::Relaxed)
            && shard.lower_next_wake(deadline.get()) > deadline.get();
        Ok(Inserted { id, is_earliest })
    }

    /// Whether a cell that is claimed and not filled yet blocks the inbox: then timers that were
    /// posted are not in the wheel yet.
    #[inline(always)]
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.shard.inbox.has_pending(&self.core().cursor) && !mutant!("shard_overtakes_inbox")
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
        self.is_next_wake_dirty = true;
        if mutant!("shard_fires_when_open") {
            let due: Vec<_> = self.core_mut().wheel.advance(now, budget).collect();
            self.publish();
            self.shard.lock.store(UNLOCKED, Ordering::Release);
            due.into_iter().for_each(&mut fire);
            return false;
        }
        let mut due = self.core_mut().wheel.advance(now, budget);
        due.by_ref().for_each(&mut fire);
        let more = due.more();
        self.compact_if_sparse();
        more
    }

    /// Enters what was posted and frees what was cancelled from outside.
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
            if state == Some(State::Pending) && !mutant!("shard_enters_returned") {
                core.wheel.counts_mut().count_reclaimed();
                core.wheel.unreserve(timer);
                core.stale_values.push(inserted.value);
            } else {
                core.wheel.insert_reserved(timer, inserted.deadline, inserted.value);
                if mutant!("shard_entry_arms_again") {
                    shard.states.get(timer).expect("reserved").arm(inserted.reserved.generation);
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
        self.core_mut().stale_values.reserve(depth.min(RETURNS_PER_LOCK));
        for _ in 0..RETURNS_PER_LOCK {
            let core = self.core_mut();
            if core.returned == NIL {
                // The drain is walked here, over several leases if it is long.
                core.returned = shard.returns.drain(&*shard.states).next().unwrap_or(NIL);
            }
            let timer = core.returned;
            if timer == NIL {
                break;
            }
            // The link is read before the slot is freed: then it may be armed again.
            core.returned = shard.states.next(timer);
            if let Some(value) = core.wheel.reclaim(timer) {
                core.wheel.counts_mut().count_reclaimed();
                core.stale_values.push(value);
            } else if let Some(state) = shard.states.get(timer) {
                // Its value is still in the inbox; the slot is freed when that is emptied.
                state.release();
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
        // Pairs with the fence in `Shard::insert_by_inbox`.
        fence(Ordering::SeqCst);
        // Of what is filled, also behind a cell that is not, the poster may have lowered the wake
        // before it was overwritten here. Who fills a cell later lowers it later.
        if let Some(deadline) = shard.inbox.earliest(&self.core().cursor)
            && !mutant!("shard_publish_no_recheck")
        {
            shard.lower_next_wake(deadline);
        }
        self.publish_counts();
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
            // Relaxed: published by the lease, which is given back behind it.
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
