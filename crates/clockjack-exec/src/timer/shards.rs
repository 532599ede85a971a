//! The timer shards of all workers: which worker must poll each shard, and how they are closed.
#![doc = include_str!("shards.md")]

mod assign;
mod assignment;
mod close;
mod error;
mod reassign_queue;
mod source_wake;
mod table;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_sync::{
    pad::Padded,
    primitive::{
        atomic::{AtomicBool, AtomicU64, Ordering, fence},
        hint,
    },
};
use clockjack_time::{
    Expired, Shard, ShardConfig, ShardGuard, ShardOccupancy, ShardStats, Tick, TimerId,
    TimerPriority,
};

use self::{
    assignment::{Assignment, AtomicAssignment, WorkerShards},
    reassign_queue::ReassignQueue,
    source_wake::SourceWake,
    table::AppendTable,
};
pub use self::{close::Closed, error::ArmError, source_wake::SourceClaim};

/// The largest number of workers.
pub const WORKERS_MAX: usize = 1024;

/// How often a thread that withdraws a timer retries to take a shard's guard while another thread
/// holds it. A holder releases the guard within microseconds, unless the operating system has
/// suspended it.
const GUARD_TRIES_MAX: usize = if cfg!(loom) { 2 } else { 1 << 12 };

/// The configuration of a [`Shards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardsConfig {
    /// How many workers there may be at a time, from 1 to [`WORKERS_MAX`].
    pub workers: usize,
    /// How many timers one shard may have; see [`ShardConfig::capacity`].
    pub capacity: usize,
    /// The first tick.
    pub start: Tick,
}

impl ShardsConfig {
    /// One worker and a million timers, from tick 0.
    pub const DEFAULT: Self =
        Self { workers: 1, capacity: ShardConfig::DEFAULT.capacity, start: Tick::ZERO };
}

impl Default for ShardsConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A timer that was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The timer.
    pub id: TimerId,
    /// Whether the timer is, or may be, due before all others of its shard: then the caller wakes
    /// the assigned worker if it sleeps, and the watchdog if that sleeps for longer. A full fence
    /// is between the arming and the return of the call.
    pub is_earliest: bool,
    /// The worker that the shard is assigned to, if the timer is the earliest. `None` if the shard
    /// is unassigned: then the caller notifies the watchdog only.
    pub worker: Option<usize>,
}

/// A shard of the source that is due earlier than before: the caller wakes the assigned worker if
/// it sleeps, and the watchdog if that sleeps for longer. A full fence precedes the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierSource {
    /// When the shard is due.
    pub at: Tick,
    /// The worker that the shard is assigned to.
    pub worker: Option<usize>,
}

/// The result of a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<T> {
    /// The timer will never fire. The value is returned, unless another thread held the shard: then
    /// the next thread that holds the shard drops it.
    Won(Option<T>),
    /// The timer has fired or was cancelled before.
    Lost,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// How many timers fired.
    pub fired: usize,
    /// Whether the budget was used up before the work was done.
    pub more: bool,
    /// Whether another thread held the guard, so that nothing was done.
    pub held_by_other: bool,
    /// Whether the table is closed. The caller [closes](Shards::close) it again, because the
    /// closing thread may have left the shard to this poll (rule 9).
    pub is_closed: bool,
}

/// Counters for people; not a consistent snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardsStats {
    /// Shards that were created.
    pub shards: usize,
    /// Shards that are assigned to no worker.
    pub unassigned: usize,
    /// How often an unassigned shard was assigned to a worker, also to one that attached.
    pub reassigned: u64,
    /// Timers that [`Shards::take_over`] fired.
    pub taken_over: u64,
    /// Polls of the source that another worker took over, because they took too long.
    pub source_takeovers: u64,
    /// Timers that were not armed.
    pub refused: u64,
}

/// One shard, and the worker that it is assigned to.
struct ShardEntry<T> {
    shard: Shard<T>,
    assignment: AtomicAssignment,
    /// When the same shard of the source is due.
    source_wake: SourceWake,
    /// Whether the holder of the guard fires timers: then a closing thread does not wait for the
    /// guard (rule 9).
    is_firing: AtomicBool,
}

#[derive(Default)]
struct Counts {
    reassigned: AtomicU64,
    taken_over: AtomicU64,
    source_takeovers: AtomicU64,
    refused: AtomicU64,
}

/// The timers of all workers of an executor; the [module](self) has the rules.
#[doc(hidden)]
pub struct Shards<T> {
    table: AppendTable<ShardEntry<T>>,
    /// Rule 8.
    closed: AtomicBool,
    workers: Box<[WorkerShards]>,
    reassign_queue: ReassignQueue,
    config: ShardsConfig,
    /// Whether values of cancelled timers are kept until a caller [takes](Self::take_stale_values)
    /// them.
    keeps_stale_values: bool,
    counts: Padded<Counts>,
}

impl<T: Send> Shards<T> {
    /// A table without shards: workers create them when they [attach](Self::attach).
    ///
    /// # Panics
    /// If `workers` is not from 1 to [`WORKERS_MAX`].
    #[must_use]
    pub fn new(config: ShardsConfig) -> Self {
        assert!(
            (1..=WORKERS_MAX).contains(&config.workers),
            "{} workers are not from 1 to {WORKERS_MAX}",
            config.workers
        );
        let workers = u32::try_from(config.workers).expect("not above the maximum");
        Self {
            table: AppendTable::new(workers),
            closed: AtomicBool::new(false),
            workers: (0..workers).map(|_| WorkerShards::new()).collect(),
            reassign_queue: ReassignQueue::new(workers),
            config,
            keeps_stale_values: false,
            counts: Padded(Counts::default()),
        }
    }

    /// Keeps the values of timers that were cancelled while another thread held their shard, until
    /// a caller [takes](Self::take_stale_values) them. Otherwise their drops would run wherever a
    /// guard is released.
    #[must_use]
    pub fn keeping_stale_values(mut self) -> Self {
        self.keeps_stale_values = true;
        self
    }

    /// Whether a shard has such values. Every thread that has touched a shard checks this
    /// afterwards, so that the last one finds what is there.
    #[inline]
    #[must_use]
    pub fn has_stale_values(&self, shard: u32) -> bool {
        self.table.get(shard).is_some_and(|entry| entry.shard.has_stale_values())
    }

    /// These values; none if another thread holds the shard, which then checks by itself.
    #[must_use]
    pub fn take_stale_values(&self, shard: u32) -> Vec<T> {
        self.table.get(shard).map_or(Vec::new(), |entry| entry.shard.take_stale_values())
    }

    /// Arms a timer in a shard, from any thread.
    ///
    /// # Errors
    /// [`ArmError`], which holds the value: after [`close`](Self::close), or if there is no room.
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    #[inline]
    pub fn arm(&self, shard: u32, deadline: Tick, value: T) -> Result<Armed, ArmError<T>> {
        let entry = self.entry(shard);
        let Some(mut guard) = entry.shard.try_lock() else {
            return self.arm_remote(entry, deadline, value);
        };
        // Relaxed: the guard orders this load with respect to the closing thread, which takes the
        // guard too (rule 8).
        if self.closed.load(Ordering::Relaxed) {
            drop(guard);
            return Err(self.refuse(ArmError::closed(Some(value))));
        }
        let posted = guard.arm(deadline, TimerPriority::Normal, value);
        drop(guard);
        match posted {
            Ok(posted) => Ok(Self::armed(entry, posted.id, posted.is_earliest)),
            Err(full) => Err(self.refuse(ArmError::full(full))),
        }
    }

    /// Arms a timer through the inbox of a shard whose guard another thread has just held.
    #[cold]
    fn arm_remote(
        &self,
        entry: &ShardEntry<T>,
        deadline: Tick,
        value: T,
    ) -> Result<Armed, ArmError<T>> {
        // Relaxed: if this load misses the flag, the one below sees it.
        if self.closed.load(Ordering::Relaxed) {
            return Err(self.refuse(ArmError::closed(Some(value))));
        }
        let posted = match entry.shard.arm(deadline, value) {
            Ok(posted) => posted,
            Err(full) => return Err(self.refuse(ArmError::full(full))),
        };
        // Pairs with the fence in `close`: either the closing thread finds the timer, or this
        // thread sees the flag (rule 8).
        fence(Ordering::SeqCst);
        // Relaxed: the fence has ordered it.
        if self.closed.load(Ordering::Relaxed) {
            match Self::withdraw(&entry.shard, posted.id) {
                Cancelled::Won(value) => return Err(self.refuse(ArmError::closed(value))),
                // The timer has fired, or the closing thread has it: it was armed before the close.
                Cancelled::Lost => {}
            }
        }
        Ok(Self::armed(entry, posted.id, posted.is_earliest))
    }

    /// Rule 6.
    #[inline]
    fn armed(entry: &ShardEntry<T>, id: TimerId, is_earliest: bool) -> Armed {
        let worker = if is_earliest {
            // Pairs with the fence of the thread that changes the assignment.
            fence(Ordering::SeqCst);
            entry.assignment.load().worker()
        } else {
            None
        };
        Armed { id, is_earliest, worker: worker.map(|worker| worker as usize) }
    }

    #[cold]
    fn refuse(&self, refused: ArmError<T>) -> ArmError<T> {
        // Relaxed: a statistic.
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        refused
    }

    /// Cancels a timer from any thread. Returns true at most once per timer, and then it never
    /// fires.
    ///
    /// Takes no guard and frees nothing: see [`cancel_take`](Self::cancel_take) for that.
    #[inline]
    pub fn cancel(&self, id: TimerId) -> bool {
        self.table.get(id.shard()).is_some_and(|entry| entry.shard.cancel(id))
    }

    /// Cancels a timer from any thread, and frees it at once if no other thread holds its shard.
    #[inline]
    pub fn cancel_take(&self, id: TimerId) -> Cancelled<T> {
        let Some(entry) = self.table.get(id.shard()) else { return Cancelled::Lost };
        if let Some(cancelled) =
            entry.shard.try_lock().and_then(|guard| cancel_with_guard(guard, id))
        {
            return cancelled;
        }
        if self.cancel(id) { Cancelled::Won(None) } else { Cancelled::Lost }
    }

    /// Frees what was cancelled in a shard while another thread held it; false if something may be
    /// left.
    #[must_use]
    pub fn free_cancelled(&self, shard: u32) -> bool {
        self.table.get(shard).is_none_or(|entry| entry.shard.free_cancelled())
    }

    /// Makes a shard due at this tick, because a timer was cancelled there and not freed (rule 17);
    /// returns the worker to wake.
    #[cold]
    pub fn request_poll(&self, shard: u32, at: Tick) -> Option<usize> {
        let entry = self.table.get(shard)?;
        entry.shard.request_poll(at);
        // Rule 6. Pairs with the fence of the thread that changes the assignment.
        fence(Ordering::SeqCst);
        entry.assignment.load().worker().map(|worker| worker as usize)
    }

    /// Cancels several timers of one shard, under one guard if no other thread holds it. Their
    /// values are dropped under the guard, so the drops must not call user code.
    pub fn cancel_all(&self, shard: u32, ids: impl Iterator<Item = TimerId>) {
        let Some(entry) = self.table.get(shard) else { return };
        let Some(mut guard) = entry.shard.try_lock() else {
            return ids.for_each(|id| _ = self.cancel(id));
        };
        for id in ids {
            if guard.cancel(id).is_none() && guard.is_blocked() {
                self.cancel(id);
            }
        }
    }

    /// Cancels a timer that was just armed, under the guard if that can be had within a bounded
    /// time.
    fn withdraw(shard: &Shard<T>, id: TimerId) -> Cancelled<T> {
        for _ in 0..GUARD_TRIES_MAX {
            if let Some(guard) = shard.try_lock() {
                if let Some(cancelled) = cancel_with_guard(guard, id) {
                    return cancelled;
                }
                break;
            }
            hint::spin_loop();
        }
        if shard.cancel(id) { Cancelled::Won(None) } else { Cancelled::Lost }
    }

    /// Moves a shard's time to `now` and passes the due timers to `fire`, in order: at most
    /// `budget` units of work. Any thread may do this, whichever worker the shard is assigned to.
    ///
    /// `fire` is called with the guard held (rule 7), so it should be short.
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    pub fn poll(
        &self,
        shard: u32,
        now: Tick,
        budget: usize,
        mut fire: impl FnMut(Expired<T>),
    ) -> Polled {
        let entry = self.entry(shard);
        let Some(mut guard) = entry.shard.try_lock() else {
            return Polled { held_by_other: true, ..Polled::default() };
        };
        // Relaxed: the guard orders this load with respect to the closing thread, which takes the
        // guard too (rule 8).
        if self.closed.load(Ordering::Relaxed) {
            return Polled { is_closed: true, ..Polled::default() };
        }
        let mut fired = 0;
        // Relaxed, here and below: rule 9, by the fence.
        entry.is_firing.store(true, Ordering::Relaxed);
        let more = guard.poll(now, budget, |timer| {
            fired += 1;
            fire(timer);
        });
        entry.is_firing.store(false, Ordering::Relaxed);
        drop(guard);
        // Pairs with the fence of `close`: either the closing thread waits for the guard, or this
        // thread sees the flag.
        fence(Ordering::SeqCst);
        let is_closed = self.closed.load(Ordering::Relaxed);
        Polled { fired, more, is_closed, ..Polled::default() }
    }

    /// As [`poll`](Self::poll), by a worker that the shard is not assigned to; counts the fired
    /// timers.
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    pub fn take_over(
        &self,
        shard: u32,
        now: Tick,
        budget: usize,
        fire: impl FnMut(Expired<T>),
    ) -> Polled {
        let polled = self.poll(shard, now, budget, fire);
        // Relaxed: a statistic.
        self.counts.taken_over.fetch_add(polled.fired as u64, Ordering::Relaxed);
        polled
    }

    /// Makes a shard of the source due at this tick, or earlier (rule 10); `None` if it was anyway.
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    pub fn request_source(&self, shard: u32, at: Tick) -> Option<EarlierSource> {
        let entry = self.entry(shard);
        entry.source_wake.request(at).then(|| entry.earlier_source(at))
    }

    /// Claims a shard of the source that is due at `now`; another worker may take it over after
    /// this many ticks (rule 11). The caller polls it, and calls
    /// [`finish_source`](Self::finish_source).
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    #[inline]
    pub fn claim_source(&self, shard: u32, now: Tick, takeover_ticks: u64) -> Option<SourceClaim> {
        let source_wake = &self.entry(shard).source_wake;
        if !source_wake.is_due(now) {
            return None;
        }
        let until = now.get().saturating_add(takeover_ticks.max(1));
        let claim = source_wake.claim(now, Tick::new(until))?;
        // Relaxed: a statistic.
        self.counts.source_takeovers.fetch_add(u64::from(claim.is_takeover), Ordering::Relaxed);
        Some(claim)
    }

    /// Ends the poll of a shard of the source, which is due at `next` (rule 12).
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    pub fn finish_source(
        &self,
        shard: u32,
        claim: SourceClaim,
        next: Option<Tick>,
    ) -> Option<EarlierSource> {
        let entry = self.entry(shard);
        let at = entry.source_wake.finish(claim, next)?;
        Some(entry.earlier_source(at))
    }

    /// Whether a timer is armed: neither fired nor cancelled. The result may be out of date at
    /// once.
    #[must_use]
    pub fn is_armed(&self, id: TimerId) -> bool {
        self.table.get(id.shard()).is_some_and(|entry| entry.shard.is_armed(id))
    }

    /// Whether a shard has timers past their deadline.
    #[must_use]
    pub fn is_overdue(&self, shard: u32, now: Tick) -> bool {
        self.table.get(shard).is_some_and(|entry| entry.shard.is_overdue(now))
    }

    /// When a worker must wake up: never later than the earliest deadline of the shards that are
    /// assigned to it, in both stores, while nobody holds them.
    ///
    /// A worker that is about to sleep announces that, fences, and then calls this. So either it
    /// sees a timer here, or the thread that arms the timer sees that the worker sleeps.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn next_wake(&self, worker: usize) -> Option<Tick> {
        self.assigned_to(worker).filter_map(|shard| self.table.get(shard)?.next_wake()).min()
    }

    /// Every shard with the worker that it is assigned to and when it is due, in either store, for
    /// the watchdog.
    pub fn wakes(&self) -> impl Iterator<Item = (u32, Option<usize>, Option<Tick>)> {
        self.table.iter().map(|(shard, entry)| {
            let worker = entry.assignment.load().worker().map(|worker| worker as usize);
            (shard, worker, entry.next_wake())
        })
    }

    /// A shard that is overdue in either store, unassigned shards included, in circular order from
    /// the shard `from`; not one that is assigned to `except_worker`.
    #[must_use]
    pub fn overdue(&self, now: Tick, except_worker: Option<usize>, from: usize) -> Option<u32> {
        let end = self.table.end();
        let from = u32::try_from(from).unwrap_or(0).checked_rem(end).unwrap_or(0);
        (from..end).chain(0..from).find(|shard| {
            self.table.get(*shard).is_some_and(|entry| {
                (entry.shard.is_overdue(now) || entry.source_wake.is_due(now)) && {
                    let worker = entry.assignment.load().worker().map(|worker| worker as usize);
                    worker.is_none() || worker != except_worker
                }
            })
        })
    }

    /// About how many cancelled timers are not freed yet in the shards that are assigned to a
    /// worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn stale_len(&self, worker: usize) -> usize {
        let stale = |shard| self.table.get(shard).map_or(0, |entry| entry.shard.n_returned());
        self.assigned_to(worker).map(stale).sum()
    }

    /// How many timers a shard has; `None` if another thread holds it, or there is no such shard.
    #[must_use]
    pub fn len(&self, shard: u32) -> Option<usize> {
        let guard = self.table.get(shard)?.shard.try_lock()?;
        Some(guard.len())
    }

    /// The sum of the statistics of all shards.
    #[must_use]
    pub fn timers(&self) -> ShardStats {
        self.timers_of(0..self.table.end())
    }

    /// The sum of the statistics of these shards.
    #[must_use]
    pub fn timers_of(&self, shards: impl Iterator<Item = u32>) -> ShardStats {
        let mut sum = ShardStats::default();
        for entry in shards.filter_map(|shard| self.table.get(shard)) {
            let of = entry.shard.stats();
            sum.pending += of.pending;
            sum.armed += of.armed;
            sum.fired += of.fired;
            sum.cancelled += of.cancelled;
            sum.dropped += of.dropped;
            sum.rescheduled += of.rescheduled;
            sum.stale += of.stale;
            sum.compacted += of.compacted;
            sum.scanned_lists += of.scanned_lists;
            sum.max_returns = sum.max_returns.max(of.max_returns);
        }
        sum
    }

    /// The occupancy of each shard that no other thread uses at this moment.
    pub(crate) fn occupancy(&self, mut f: impl FnMut(u32, Option<ShardOccupancy>)) {
        for (shard, entry) in self.table.iter() {
            f(shard, entry.shard.occupancy());
        }
    }

    /// Statistics of this table.
    #[must_use]
    pub fn stats(&self) -> ShardsStats {
        // Relaxed: statistics.
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let is_unassigned =
            |entry: &ShardEntry<T>| entry.assignment.load() == Assignment::Unassigned;
        ShardsStats {
            shards: self.table.iter().count(),
            unassigned: self.table.iter().filter(|(_, entry)| is_unassigned(entry)).count(),
            reassigned: count(&self.counts.reassigned),
            taken_over: count(&self.counts.taken_over),
            source_takeovers: count(&self.counts.source_takeovers),
            refused: count(&self.counts.refused),
        }
    }

    #[inline(always)]
    fn entry(&self, shard: u32) -> &ShardEntry<T> {
        self.table.get(shard).expect("`attach` has returned this shard, so it exists")
    }
}

impl<T> ShardEntry<T> {
    /// When the shard is due, in either store.
    #[inline]
    fn next_wake(&self) -> Option<Tick> {
        match (self.shard.next_wake(), self.source_wake.get()) {
            (Some(timer), Some(source)) => Some(timer.min(source)),
            (timer, source) => timer.or(source),
        }
    }

    /// Rule 6, for the source.
    fn earlier_source(&self, at: Tick) -> EarlierSource {
        // Pairs with the fence of the thread that changes the assignment.
        fence(Ordering::SeqCst);
        let worker = self.assignment.load().worker().map(|worker| worker as usize);
        EarlierSource { at, worker }
    }
}

impl<T> fmt::Debug for Shards<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Cancels a timer with the guard held, and releases the guard. `None` if the value may still be in
/// the inbox: then the caller cancels the timer by its state word.
#[inline]
fn cancel_with_guard<T>(mut guard: ShardGuard<'_, T>, id: TimerId) -> Option<Cancelled<T>> {
    match guard.cancel(id) {
        Some(value) => Some(Cancelled::Won(Some(value))),
        None if guard.is_blocked() => None,
        None => Some(Cancelled::Lost),
    }
}
