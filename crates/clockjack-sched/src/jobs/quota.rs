//! The limit of live jobs, and how it shrinks under pressure: a semaphore with cached permits.
//!
//! Semaphores are from Dijkstra ("Cooperating sequential processes", 1965); the caches make this
//! one a sloppy counter (Boyd-Wickizer and others, "An analysis of Linux scalability to many
//! cores", 2010).
//!
//! # Roles
//!
//! All shards share one [`Quota`]. Each shard has a [`PermitCache`], which only the holder of the
//! shard guard touches. The cache acquires *permits* from the quota in blocks and uses one per job,
//! so it accesses the shared word once per 64 jobs. Threads without a guard acquire and release
//! single permits. [`BackpressureLink`]s say when the runtime is under pressure.
//!
//! # State
//!
//! One word contains everything, so that each decision is one exchange on all that it depends on:
//!
//! ```text
//!   | granted permits ... | reported | host | dispatcher | mailboxes |
//!                                      `-- pressure: any of them ---'
//! ```
//!
//! # Rules
//!
//! 1. A compare-exchange grants permits. It succeeds only if the word has not changed since the
//!    room was computed, so grants never exceed the limit that was in force at that moment.
//! 2. A permit is in a cache or belongs to a live job, never both: granted = available + live.
//! 3. A cache keeps at most one block. So a refusal comes at most 64 permits early per *other*
//!    shard; the cache of the refused shard is empty. With one shard, the cache keeps nothing and
//!    the limit is exact.
//! 4. Under pressure, a cache that is used returns its permits, and each acquisition is one exact
//!    grant with the smaller limit. The class [`Low`](TimerPriority::Low) is refused at once.
//!    Granted permits stay granted: jobs are never revoked.
//! 5. Reaching the quota is reported once: the first refusal at the limit sets the bit `reported`,
//!    and the next grant clears it.
//! 6. A dispatcher that refuses a job has no level that could fall. Its pressure ends when a
//!    dispatcher accepts a job again. But while requests are refused for that pressure, there may
//!    never be such a job. So a request that is refused under pressure checks when the last refusal
//!    of a dispatcher was; if that is long ago, the request ends the pressure and tries again.
//!
//! A thread repeats an exchange only if another thread has changed the word, so the quota is
//! lock-free. The word publishes no other data: all accesses are relaxed, and the shard guard
//! publishes the content of a job.

use core::fmt;

use clockjack_sync::{
    Arc, const_unless_loom,
    primitive::{
        IS_MODEL,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
};
use clockjack_time::{Tick, TickSpan};

use crate::{PressureReason, ScheduleErrorKind, TimerPriority, Warning};

/// How many permits a cache acquires at a time if there are several shards.
const BLOCK: usize = if IS_MODEL { 2 } else { 64 };

const PRESSURE_MASK: usize = 0b0111;
const REPORTED: usize = 0b1000;
const ONE_PERMIT: usize = 0b1_0000;
/// Instead of the time of a refusal: there was none, or the pressure has another cause.
const NOT_REFUSED: u32 = 0;
/// The largest number of permits that the word can hold.
const PERMITS_MAX: usize = usize::MAX / ONE_PERMIT;

/// The limit of live jobs in all shards together. The protocol is at the top of the file.
pub struct Quota {
    word: AtomicUsize,
    full_limit: usize,
    pressure_limit: usize,
    /// The low bits of the tick of the last refusal by a dispatcher, with the lowest bit set.
    refused_at: AtomicU32,
}

impl Quota {
    const_unless_loom! {
        /// Creates a quota with the normal limit and the limit under pressure. The second limit is
        /// capped to the first, and the first to a sixteenth of `usize::MAX`.
        #[must_use]
        pub const fn new(limit: usize, pressure_limit: usize) -> Self {
            let full_limit = if limit < PERMITS_MAX { limit } else { PERMITS_MAX };
            let pressure_limit =
                if pressure_limit < full_limit { pressure_limit } else { full_limit };
            let refused_at = AtomicU32::new(NOT_REFUSED);
            Self { word: AtomicUsize::new(0), full_limit, pressure_limit, refused_at }
        }
    }

    /// Acquires one permit without a cache.
    ///
    /// # Errors
    ///
    /// As [`PermitCache::acquire`].
    pub fn acquire_one(&self, class: TimerPriority) -> Result<(), ScheduleErrorKind> {
        self.grant(1, class).map(|_one| ())
    }

    /// Releases one permit without a cache.
    pub fn release_one(&self) {
        self.return_permits(1);
    }

    /// The limit that is in force.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit_of(self.load())
    }

    /// Whether there is pressure.
    #[must_use]
    pub fn is_under_pressure(&self) -> bool {
        self.load() & PRESSURE_MASK != 0
    }

    /// How many permits are granted. There are at most so many live jobs.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.load() / ONE_PERMIT
    }

    /// Whether the caller should report the refusal that it just got as
    /// [`QuotaReached`](Warning::QuotaReached): the refusal came at the limit and is the first
    /// since the last grant. Exactly one caller gets true. False for a request that was refused
    /// only for its class, and if another thread has already made room.
    #[must_use]
    pub fn should_report_refusal(&self) -> bool {
        let mut word = self.load();
        loop {
            if word & REPORTED != 0 || word / ONE_PERMIT < self.limit_of(word) {
                return false;
            }
            match self.word.compare_exchange_weak(word, word | REPORTED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Ends the pressure of dispatchers if none has refused a job for `lasts`. Returns the change.
    /// Rule 6.
    #[cold]
    pub(crate) fn expire_refusal_pressure(
        &self,
        now: Tick,
        lasts: TickSpan,
    ) -> Option<PressureChange> {
        let refused_at = self.refused_at.load(Relaxed);
        // Both values have the lowest bit set, so it cancels out in the difference.
        let passed = u64::from(low_bits(now).wrapping_sub(refused_at) / 2);
        let is_over = refused_at != NOT_REFUSED && passed >= lasts.get();
        if !is_over {
            return None;
        }
        self.release(PressureReason::Dispatcher)
    }

    fn engage(&self, reason: PressureReason) -> Option<PressureChange> {
        // Relaxed: see the module. All changes are ordered by the word, but two threads may report
        // theirs in another order.
        let before = self.word.fetch_or(bit(reason), Relaxed);
        (before & PRESSURE_MASK == 0).then_some(PressureChange { engaged: true, reason })
    }

    fn release(&self, reason: PressureReason) -> Option<PressureChange> {
        // Relaxed: as in `engage`.
        let before = self.word.fetch_and(!bit(reason), Relaxed);
        (before & PRESSURE_MASK == bit(reason)).then_some(PressureChange { engaged: false, reason })
    }

    /// Grants up to `block` permits, at least one; exactly one under pressure.
    fn grant(&self, block: usize, class: TimerPriority) -> Result<usize, ScheduleErrorKind> {
        let mut word = self.load();
        loop {
            // The limit must belong to the word that is exchanged (rule 1).
            let granted = word / ONE_PERMIT;
            let is_under_pressure = word & PRESSURE_MASK != 0;
            if is_under_pressure && class == TimerPriority::Low {
                return Err(ScheduleErrorKind::Backpressured);
            }
            let room = self.limit_of(word).saturating_sub(granted);
            if room == 0 {
                return Err(if granted >= self.full_limit {
                    ScheduleErrorKind::QuotaExceeded
                } else {
                    ScheduleErrorKind::Backpressured
                });
            }
            let permits = if is_under_pressure { 1 } else { block.min(room) };
            let next = (word + permits * ONE_PERMIT) & !REPORTED;
            match self.word.compare_exchange_weak(word, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(permits),
                Err(now) => word = now,
            }
        }
    }

    fn return_permits(&self, permits: usize) {
        let before = self.word.fetch_sub(permits * ONE_PERMIT, Relaxed);
        debug_assert!(
            before / ONE_PERMIT >= permits,
            "{permits} permits were returned, and {} were granted",
            before / ONE_PERMIT
        );
    }

    /// The limit under pressure, or the one without.
    pub(crate) const fn limit_if(&self, is_under_pressure: bool) -> usize {
        if is_under_pressure { self.pressure_limit } else { self.full_limit }
    }

    const fn limit_of(&self, word: usize) -> usize {
        self.limit_if(word & PRESSURE_MASK != 0)
    }

    fn load(&self) -> usize {
        // Relaxed: see the module; this word publishes nothing.
        self.word.load(Relaxed)
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quota")
            .field("granted", &self.granted())
            .field("limit", &self.limit())
            .field("is_under_pressure", &self.is_under_pressure())
            .finish_non_exhaustive()
    }
}

/// The cached permits of one shard. Use it with one quota only, and [flush](Self::flush) it before
/// dropping it; otherwise its permits are lost.
#[derive(Debug)]
pub struct PermitCache {
    available: usize,
    block: usize,
    keep_max: usize,
}

impl PermitCache {
    /// Creates an empty cache for one of `shards` shards.
    #[must_use]
    pub const fn new(shards: u32) -> Self {
        let (block, keep_max) = if shards > 1 { (BLOCK, BLOCK) } else { (1, 0) };
        Self { available: 0, block, keep_max }
    }

    /// Acquires a permit for one job of this class.
    ///
    /// # Errors
    ///
    /// [`QuotaExceeded`](ScheduleErrorKind::QuotaExceeded) at the normal limit;
    /// [`Backpressured`](ScheduleErrorKind::Backpressured) at the limit under pressure, or if there
    /// is pressure and the class is low.
    #[inline]
    pub fn acquire(
        &mut self,
        quota: &Quota,
        class: TimerPriority,
    ) -> Result<(), ScheduleErrorKind> {
        if quota.is_under_pressure() {
            self.flush(quota);
            return quota.acquire_one(class);
        }
        if self.available == 0 {
            self.available = quota.grant(self.block, class)?;
        }
        self.available -= 1;
        Ok(())
    }

    /// Releases the permit of a job that is not live any more.
    #[inline]
    pub fn release(&mut self, quota: &Quota) {
        self.available += 1;
        if quota.is_under_pressure() {
            self.flush(quota);
        } else if self.available > self.keep_max {
            // Keep half a block, so that neither the next acquire nor the next release needs the
            // quota.
            let surplus = self.available - self.keep_max / 2;
            self.available -= surplus;
            quota.return_permits(surplus);
        }
    }

    /// Returns all cached permits: when the shard becomes idle, and before the drop.
    pub fn flush(&mut self, quota: &Quota) {
        if self.available > 0 {
            quota.return_permits(self.available);
            self.available = 0;
        }
    }

    /// How many permits are cached.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.available
    }
}

/// Pressure began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a change of pressure should be reported"]
pub struct PressureChange {
    /// Whether there is pressure now.
    pub engaged: bool,
    /// The reason for the pressure, or the last reason that ended.
    pub reason: PressureReason,
}

impl From<PressureChange> for Warning {
    fn from(change: PressureChange) -> Self {
        Self::BackpressureState { engaged: change.engaged, reason: change.reason }
    }
}

/// Reports to a scheduler, from any thread, that the runtime is under pressure.
///
/// There is pressure as long as there is at least one reason. A reason is engaged and released
/// directly, or by a level in percent that engages it at a threshold and releases it at half the
/// threshold. This hysteresis keeps a level that fluctuates around the threshold from causing
/// changes.
#[derive(Clone)]
pub struct BackpressureLink {
    quota: Arc<Quota>,
    threshold_pct: u8,
}

impl BackpressureLink {
    /// The default threshold, in percent.
    pub const THRESHOLD_PCT: u8 = 80;

    /// Creates a link to the scheduler of this quota.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(quota: Arc<Quota>) -> Self {
        Self { quota, threshold_pct: Self::THRESHOLD_PCT }
    }

    /// Sets another threshold, at least 1.
    #[must_use]
    pub fn threshold(mut self, percent: u8) -> Self {
        self.threshold_pct = percent.max(1);
        self
    }

    /// Sets the level of a reason in percent. Returns the change of pressure, if there was one.
    pub fn set(&self, reason: PressureReason, percent: u8) -> Option<PressureChange> {
        if percent >= self.threshold_pct {
            self.engage(reason)
        } else if percent <= self.threshold_pct / 2 {
            self.release(reason)
        } else {
            None
        }
    }

    /// Engages a reason. Returns the change of pressure: `None` if there was pressure already.
    pub fn engage(&self, reason: PressureReason) -> Option<PressureChange> {
        if reason == PressureReason::Dispatcher {
            // Relaxed: see the module. The caller itself must release this pressure.
            self.quota.refused_at.store(NOT_REFUSED, Relaxed);
        }
        self.quota.engage(reason)
    }

    /// Records that a dispatcher has refused a job (rule 6). Returns the change of pressure.
    pub(crate) fn refuse(&self, now: Tick) -> Option<PressureChange> {
        // Relaxed: see the module. Stored before the pressure is engaged, so that the pressure is
        // not taken for an old one.
        self.quota.refused_at.store(low_bits(now), Relaxed);
        self.quota.engage(PressureReason::Dispatcher)
    }

    /// Releases a reason. Returns the change of pressure: `None` if another reason remains or there
    /// was none.
    pub fn release(&self, reason: PressureReason) -> Option<PressureChange> {
        self.quota.release(reason)
    }

    /// Whether there is any reason.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.quota.is_under_pressure()
    }
}

impl fmt::Debug for BackpressureLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackpressureLink")
            .field("is_engaged", &self.is_engaged())
            .field("threshold_pct", &self.threshold_pct)
            .finish_non_exhaustive()
    }
}

/// The low bits of a tick, shifted, with the lowest bit set so that it is not [`NOT_REFUSED`].
const fn low_bits(tick: Tick) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is compared")]
    let low = tick.get() as u32;
    low << 1 | 1
}

const fn bit(reason: PressureReason) -> usize {
    match reason {
        PressureReason::Mailboxes => 0b0001,
        PressureReason::Dispatcher => 0b0010,
        PressureReason::Host => 0b0100,
    }
}
