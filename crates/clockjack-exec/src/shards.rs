//! The timer shards of all workers: whose duty each is, and when they close.
#![doc = include_str!("shards.md")]

mod assign;
mod assignment;
mod close;
mod error;
mod reassign_queue;
mod table;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::{
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
        hint,
    },
};
use clockjack_time::{
    Class, Expired, Lease, Shard, ShardConfig, ShardStats, Tick, TimerId, shard::RETURNS_MAX,
};

use self::{
    assignment::{Assignment, AtomicAssignment, WorkerShards},
    reassign_queue::ReassignQueue,
    table::AppendTable,
};
pub use self::{close::Closed, error::ArmError};

/// How many workers a table has at the most.
pub const WORKERS_MAX: usize = 1024;

/// How often a guard that another thread holds is tried again by who closes, or finds out that the
/// table was closed: a holder is gone within microseconds, unless the system has stopped it.
const GUARD_TRIES_MAX: usize = if cfg!(loom) { 2 } else { 1 << 12 };

/// The limits of a [`Shards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardsConfig {
    /// How many workers there may be at a time, from 1 to [`WORKERS_MAX`].
    pub workers: usize,
    /// How many timers one shard may have; see [`ShardConfig::capacity`].
    pub capacity: usize,
    /// The tick at which time stands at first.
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
    /// Whether it is due before all others of its shard, or may be: then the assignment must be woken
    /// if it sleeps, and the watchdog if that sleeps longer. A full fence stands between the
    /// timer and the return of the call.
    pub is_earliest: bool,
    /// The worker that assigned_to the shard, if the timer is the earliest. `None` for an unassigned: the
    /// watchdog is to be told.
    pub worker: Option<usize>,
}

/// What became of a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<T> {
    /// The timer will never fire. Its value comes back, unless another thread held the shard: then
    /// whoever holds it next drops the value.
    Won(Option<T>),
    /// The timer has fired or was cancelled before.
    Lost,
}

/// What a poll has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// How many timers fired.
    pub fired: usize,
    /// Whether the budget ended before the work did.
    pub more: bool,
    /// Whether another thread held the guard, so that nothing was done: it polls, or it is about to
    /// open.
    pub held_by_other: bool,
    /// Whether the table was closed, so that nothing was done.
    pub is_closed: bool,
}

/// Counts for people; no snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardsStats {
    /// Shards that were made.
    pub shards: usize,
    /// Those that wait for a assignment.
    pub unassigned: usize,
    /// How often an unassigned got a assignment, also one that attached.
    pub reassigned: u64,
    /// Timers that fired by [`Shards::take_over`].
    pub taken_over: u64,
    /// Timers that were not armed.
    pub refused: u64,
    /// Timers that were handed out by [`Shards::close`].
    pub drained: u64,
}

/// One shard, and whose it is.
struct ShardEntry<T> {
    shard: Shard<T>,
    assignment: AtomicAssignment,
    /// About how many timers were cancelled from outside since the last poll.
    stale: AtomicUsize,
}

#[derive(Default)]
struct Counts {
    reassigned: AtomicU64,
    taken_over: AtomicU64,
    refused: AtomicU64,
    drained: AtomicU64,
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
    /// Whether values of cancelled timers wait for who [takes](Self::take_stale_values) them.
    keeps_stale_values: bool,
    counts: Padded<Counts>,
}

impl<T: Send> Shards<T> {
    /// A table without shards: workers bring them in as they [attach](Self::attach).
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

    /// Keeps the values of timers that were cancelled while another thread held their shard, for
    /// whoever [takes](Self::take_stale_values) them: their drops do not run wherever a guard ends.
    #[must_use]
    pub fn keeping_stale_values(mut self) -> Self {
        self.keeps_stale_values = true;
        self
    }

    /// Whether a shard has such values. To be asked after each call that touches a shard: whoever
    /// touched it last finds what is there.
    #[inline]
    #[must_use]
    pub fn has_stale_values(&self, shard: u32) -> bool {
        self.table.get(shard).is_some_and(|entry| entry.shard.has_garbage())
    }

    /// Those values; none if another thread holds the shard, which asks then.
    #[must_use]
    pub fn take_stale_values(&self, shard: u32) -> Vec<T> {
        self.table.get(shard).map_or(Vec::new(), |entry| entry.shard.take_garbage())
    }

    /// Arms a timer in a shard, from any thread.
    ///
    /// # Errors
    /// [`ArmError`], which holds the value: after [`close`](Self::close), or for want of room.
    ///
    /// # Panics
    /// If [`attach`](Self::attach) has never returned this shard.
    #[inline]
    pub fn arm(&self, shard: u32, deadline: Tick, value: T) -> Result<Armed, ArmError<T>> {
        let entry = self.entry(shard);
        let Some(mut guard) = entry.shard.lease() else {
            return self.arm_remote(entry, deadline, value);
        };
        // Relaxed: the guard orders this load against the closer's turn (rule 8).
        if self.closed.load(Ordering::Relaxed) && !mutant!("shards_arm_ignores_close") {
            drop(guard);
            return Err(self.refuse(ArmError::closed(Some(value))));
        }
        let posted = guard.arm(deadline, Class::Normal, value);
        drop(guard);
        match posted {
            Ok(posted) => Ok(Self::armed(entry, posted.id, posted.is_earliest)),
            Err(full) => Err(self.refuse(ArmError::full(full))),
        }
    }

    /// Arms in a shard whose guard another thread had a moment ago.
    #[cold]
    fn arm_remote(
        &self,
        entry: &ShardEntry<T>,
        deadline: Tick,
        value: T,
    ) -> Result<Armed, ArmError<T>> {
        // Relaxed: what is missed here is found below.
        if self.closed.load(Ordering::Relaxed) {
            return Err(self.refuse(ArmError::closed(Some(value))));
        }
        let posted = match entry.shard.arm(deadline, value) {
            Ok(posted) => posted,
            Err(full) => return Err(self.refuse(ArmError::full(full))),
        };
        // Pairs with the fence in `close`: either the closer finds the timer, or the flag is seen
        // here (rule 8).
        fence(Ordering::SeqCst);
        // Relaxed: the fence has ordered it.
        if self.closed.load(Ordering::Relaxed) && !mutant!("shards_arm_no_recheck") {
            match Self::withdraw(&entry.shard, posted.id) {
                Cancelled::Won(value) => return Err(self.refuse(ArmError::closed(value))),
                // It fired, or the closer has it: it was armed before the end.
                Cancelled::Lost => {}
            }
        }
        Ok(Self::armed(entry, posted.id, posted.is_earliest))
    }

    /// Rule 6.
    #[inline]
    fn armed(entry: &ShardEntry<T>, id: TimerId, is_earliest: bool) -> Armed {
        let worker = if is_earliest && mutant!("shards_arm_without_fence") {
            entry.assignment.load().worker()
        } else if is_earliest {
            // Pairs with the fence of whoever changes the assignment.
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

    /// Disarms a timer from any thread: true exactly once for each timer, and then it never fires.
    ///
    /// Takes no guard and frees nothing: see [`cancel_take`](Self::cancel_take) for that.
    #[inline]
    pub fn cancel(&self, id: TimerId) -> bool {
        let Some(entry) = self.table.get(id.shard()) else { return false };
        let won = entry.shard.cancel(id);
        if won {
            entry.count_stale();
        }
        won
    }

    /// Disarms a timer from any thread, and frees it at once if nobody else holds its shard.
    #[inline]
    pub fn cancel_take(&self, id: TimerId) -> Cancelled<T> {
        let Some(entry) = self.table.get(id.shard()) else { return Cancelled::Lost };
        if let Some(cancelled) = entry.shard.lease().and_then(|guard| take_by_lease(guard, id)) {
            return cancelled;
        }
        if self.cancel(id) { Cancelled::Won(None) } else { Cancelled::Lost }
    }

    /// Disarms several timers of one shard, in one turn of its guard if that is open. Their values
    /// are dropped under it: they must be such that nothing of the user's is called by that.
    pub fn cancel_all(&self, shard: u32, ids: impl Iterator<Item = TimerId>) {
        let Some(entry) = self.table.get(shard) else { return };
        let Some(mut guard) = entry.shard.lease() else {
            return ids.for_each(|id| _ = self.cancel(id));
        };
        for id in ids {
            if guard.cancel(id).is_none() && guard.is_blocked() {
                self.cancel(id);
            }
        }
    }

    /// Takes a timer back, by the guard if that can be had within a bounded time.
    fn withdraw(shard: &Shard<T>, id: TimerId) -> Cancelled<T> {
        for _ in 0..GUARD_TRIES_MAX {
            if let Some(guard) = shard.lease() {
                if let Some(cancelled) = take_by_lease(guard, id) {
                    return cancelled;
                }
                break;
            }
            hint::spin_loop();
        }
        if shard.cancel(id) { Cancelled::Won(None) } else { Cancelled::Lost }
    }

    /// Moves a shard's time to `now` and hands over what fell due, in order: at most `budget`
    /// units of work. Any thread may, whoever the assignment is.
    ///
    /// `fire` is called with the guard held (rule 7): it should hand over and not work.
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
        let Some(mut guard) = entry.shard.lease() else {
            return Polled { held_by_other: true, ..Polled::default() };
        };
        // Relaxed: the guard orders this load against the closer's turn (rule 8).
        if self.closed.load(Ordering::Relaxed) && !mutant!("shards_poll_ignores_close") {
            return Polled { is_closed: true, ..Polled::default() };
        }
        entry.reset_stale();
        let mut fired = 0;
        if mutant!("shards_hand_over_late") {
            let mut late = Vec::new();
            let more = guard.poll(now, budget, |timer| late.push(timer));
            drop(guard);
            fired = late.len();
            late.into_iter().for_each(fire);
            return Polled { fired, more, ..Polled::default() };
        }
        let more = guard.poll(now, budget, |timer| {
            fired += 1;
            fire(timer);
        });
        Polled { fired, more, ..Polled::default() }
    }

    /// As [`poll`](Self::poll), by a worker that does not keep the shard, which is counted.
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

    /// Whether a timer is armed: neither fired nor cancelled. Out of date as soon as it is said.
    #[must_use]
    pub fn is_armed(&self, id: TimerId) -> bool {
        self.table.get(id.shard()).is_some_and(|entry| entry.shard.is_armed(id))
    }

    /// Whether a shard has timers past their deadline.
    #[must_use]
    pub fn is_overdue(&self, shard: u32, now: Tick) -> bool {
        self.table.get(shard).is_some_and(|entry| entry.shard.is_overdue(now))
    }

    /// When a worker's worker wants to be woken: never later than the earliest deadline of the
    /// shards that it assigned_to, while nobody holds them.
    ///
    /// A worker that is about to sleep announces that, fences, and asks then; so either it hears of
    /// a timer here, or the timer's thread sees the sleeper.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn next_wake(&self, worker: usize) -> Option<Tick> {
        self.assigned_to(worker).filter_map(|shard| self.table.get(shard)?.shard.next_wake()).min()
    }

    /// Every shard with its assignment and its wake, for who watches over all.
    pub fn wakes(&self) -> impl Iterator<Item = (u32, Option<usize>, Option<Tick>)> {
        self.table.iter().map(|(shard, entry)| {
            let worker = entry.assignment.load().worker().map(|worker| worker as usize);
            (shard, worker, entry.shard.next_wake())
        })
    }

    /// A shard that has timers past their deadline, unassigned included, beginning with the shard
    /// `from` and going round; not one that `except_worker` assigned_to.
    #[must_use]
    pub fn overdue(&self, now: Tick, except_worker: Option<usize>, from: usize) -> Option<u32> {
        let end = self.table.end();
        let from = u32::try_from(from).unwrap_or(0).checked_rem(end).unwrap_or(0);
        (from..end).chain(0..from).find(|shard| {
            self.table.get(*shard).is_some_and(|entry| {
                entry.shard.is_overdue(now) && {
                    let worker = entry.assignment.load().worker().map(|worker| worker as usize);
                    worker.is_none() || worker != except_worker
                }
            })
        })
    }

    /// About how many cancelled timers wait to be freed in the shards that a worker assigned_to: the worker
    /// with the least of it adopts.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn stale_len(&self, worker: usize) -> usize {
        let stale = |shard| self.table.get(shard).map_or(0, ShardEntry::stale);
        self.assigned_to(worker).map(stale).sum()
    }

    /// How many timers a shard has; `None` if another thread holds it, or there is none.
    #[must_use]
    pub fn len(&self, shard: u32) -> Option<usize> {
        let guard = self.table.get(shard)?.shard.lease()?;
        Some(guard.len())
    }

    /// What the shards have counted, all together.
    #[must_use]
    pub fn timers(&self) -> ShardStats {
        let mut sum = ShardStats::default();
        for (_, entry) in self.table.iter() {
            let of = entry.shard.stats();
            sum.pending += of.pending;
            sum.armed += of.armed;
            sum.fired += of.fired;
            sum.cancelled += of.cancelled;
            sum.dropped += of.dropped;
            sum.rescheduled += of.rescheduled;
            sum.stale += of.stale;
            sum.compacted += of.compacted;
            sum.scrubbed += of.scrubbed;
            sum.max_returns = sum.max_returns.max(of.max_returns);
        }
        sum
    }

    /// What happened so far.
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
            refused: count(&self.counts.refused),
            drained: count(&self.counts.drained),
        }
    }

    #[inline(always)]
    fn entry(&self, shard: u32) -> &ShardEntry<T> {
        self.table.get(shard).expect("a shard is named by who attached, and is there since then")
    }
}

impl<T> ShardEntry<T> {
    fn stale(&self) -> usize {
        // Relaxed: a statistic.
        self.stale.load(Ordering::Relaxed)
    }

    /// Counts a timer that was cancelled from outside.
    fn count_stale(&self) {
        // Relaxed: a statistic, here and below.
        let before = self.stale.fetch_add(1, Ordering::Relaxed);
        // The shard frees its own at this index, if it can.
        if before + 1 >= RETURNS_MAX && self.shard.lease().is_some() {
            self.stale.store(0, Ordering::Relaxed);
        }
    }

    /// The holder of the guard has freed what was cancelled.
    fn reset_stale(&self) {
        if self.stale() != 0 {
            // Relaxed: a statistic.
            self.stale.store(0, Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for Shards<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Disarms a timer with the guard held, which is opened. `None` if the value may not have come out
/// of the inbox yet: then the timer is to be cancelled by its word.
#[inline]
fn take_by_lease<T>(mut guard: Lease<'_, T>, id: TimerId) -> Option<Cancelled<T>> {
    match guard.cancel(id) {
        Some(value) => Some(Cancelled::Won(Some(value))),
        None if guard.is_blocked() => None,
        None => Some(Cancelled::Lost),
    }
}
