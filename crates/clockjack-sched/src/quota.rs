//! How many jobs may live, and how that shrinks under pressure.
//!
//! # Roles
//!
//! All shards share one [`Quota`]. Each has a [`PermitCache`], which only the holder of the shard's guard
//! touches: it borrows *permits* from the quota by the block, spends one for each job, and so goes
//! to the shared word once in 64 jobs. Threads without a guard take and give single permits.
//! [`BackpressureLink`]s say when the runtime is under pressure.
//!
//! # States
//!
//! One word has it all, so that each decision is one exchange that sees all it depends on:
//!
//! ```text
//!   | permits granted ... | told | host | dispatcher | mailboxes |
//!                                  `---- pressed: any of them ---'
//! ```
//!
//! # Rules
//!
//! 1. Permits are granted by a compare-exchange that succeeds only if the word is still the one by
//!    which room was found: so the limit that was in force at the grant is never exceeded.
//! 2. A permit is in a permits or pays for a job that lives, never both: granted = available + live.
//! 3. A permits keeps one block at most. So a refusal comes at most 64 permits early for each *other*
//!    shard: who is refused has none left. With one shard the permits keeps nothing and all is exact.
//! 4. Under pressure a permits that is used gives back what it has not spent, and each take is one
//!    exact grant by the smaller limit. The class [`Low`](Class::Low) is refused at once. What has
//!    been granted stays granted: jobs are never taken back.
//! 5. That the quota was reached is told once: the mark is set by the first refusal at the limit
//!    and cleared by the next grant.
//! 6. A dispatcher that refuses a job has no level that could fall. Its pressure ends when one
//!    takes a job again; but if requests are refused for it, there may never be another. So who is
//!    refused under pressure looks when the last such refusal was, and if that is long ago, it ends
//!    the pressure and asks again.
//!
//! A thread repeats an exchange only if another one has changed the word, so some thread always
//! gets on. Nothing is published by this word: all accesses are relaxed, and what a job consists of
//! is handed over by the shard's guard.

use core::fmt;

use clockjack_sync::{
    Counted, const_unless_loom, mutant,
    prim::{
        IS_MODEL,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
};

use clockjack_time::{Tick, TickSpan};

use crate::{Class, PressureReason, ScheduleErrorKind, Warning};

/// Permits that a permits borrows at a time where there are several shards.
const BLOCK: usize = if IS_MODEL { 2 } else { 64 };

const PRESSURE_MASK: usize = 0b0111;
const REPORTED: usize = 0b1000;
const ONE_PERMIT: usize = 0b1_0000;
/// In place of the time of a refusal: none, or there is pressure for another cause.
const NOT_REFUSED: u32 = 0;
/// The largest count of permits that the word can hold.
const PERMITS_MAX: usize = usize::MAX / ONE_PERMIT;

/// How many jobs may live in all shards together; the protocol is at the head of the file.
pub struct Quota {
    word: AtomicUsize,
    full_limit: usize,
    pressure_limit: usize,
    /// The low bits of the tick at which a dispatcher has refused a job the last time, and a mark.
    refused_at: AtomicU32,
}

impl Quota {
    const_unless_loom! {
        /// So many jobs, and so many under pressure. The second is at most the first, and the first
        /// at most a sixteenth of what a `usize` can count.
        #[must_use]
        pub const fn new(limit: usize, pressure_limit: usize) -> Self {
            let full_limit = if limit < PERMITS_MAX { limit } else { PERMITS_MAX };
            let pressure_limit = if pressure_limit < full_limit { pressure_limit } else { full_limit };
            let refused_at = AtomicU32::new(NOT_REFUSED);
            Self { word: AtomicUsize::new(0), full_limit, pressure_limit, refused_at }
        }
    }

    /// Takes one permit without a permits.
    ///
    /// # Errors
    ///
    /// As [`PermitCache::take`].
    pub fn acquire_one(&self, class: Class) -> Result<(), ScheduleErrorKind> {
        self.grant(1, class).map(|_one| ())
    }

    /// Gives one permit back without a permits.
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

    /// How many permits are granted: no more jobs than that live.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.load() / ONE_PERMIT
    }

    /// Whether the refusal that the caller just got should be told as
    /// [`QuotaReached`](Warning::QuotaReached): it came at the limit, and is the first since
    /// permits were last granted. One caller is told so. A request that was refused for its class
    /// alone is no news, nor is one after which another thread has already made room.
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

    /// Rule 6: ends the pressure of dispatchers if none has refused a job for this long. Gives the
    /// change that this made.
    #[cold]
    pub(crate) fn expire_refusal_pressure(
        &self,
        now: Tick,
        lasts: TickSpan,
    ) -> Option<PressureChange> {
        let refused_at = self.refused_at.load(Relaxed);
        // Both have the mark, which is lost in the difference: twice the ticks are left.
        let passed = u64::from(mark(now).wrapping_sub(refused_at) / 2);
        let is_over = refused_at != NOT_REFUSED && passed >= lasts.get();
        if !is_over || mutant!("quota-refusal-for-ever") {
            return None;
        }
        self.release(PressureReason::Dispatcher)
    }

    fn engage(&self, reason: PressureReason) -> Option<PressureChange> {
        // Relaxed: as the module says. Changes have one order, that of the word; two threads that
        // tell of theirs may do that in another.
        let before = self.word.fetch_or(bit(reason), Relaxed);
        (before & PRESSURE_MASK == 0).then_some(PressureChange { engaged: true, reason })
    }

    fn release(&self, reason: PressureReason) -> Option<PressureChange> {
        // Relaxed: as in `engage`.
        let before = self.word.fetch_and(!bit(reason), Relaxed);
        (before & PRESSURE_MASK == bit(reason)).then_some(PressureChange { engaged: false, reason })
    }

    /// Grants up to `block` permits, at least one; exactly one under pressure.
    fn grant(&self, block: usize, class: Class) -> Result<usize, ScheduleErrorKind> {
        let first = self.load();
        let mut word = first;
        loop {
            // The limit belongs to the word that is exchanged (rule 1).
            let seen = if mutant!("quota-limit-once") { first } else { word };
            let granted = word / ONE_PERMIT;
            let is_under_pressure = seen & PRESSURE_MASK != 0;
            if is_under_pressure && class == Class::Low {
                return Err(ScheduleErrorKind::Backpressured);
            }
            let room = self.limit_of(seen).saturating_sub(granted);
            if room == 0 {
                return Err(if granted >= self.full_limit {
                    ScheduleErrorKind::QuotaExceeded
                } else {
                    ScheduleErrorKind::Backpressured
                });
            }
            let permits = if is_under_pressure { 1 } else { block.min(room) };
            let next = (word + permits * ONE_PERMIT) & !REPORTED;
            if mutant!("quota-grant-by-store") {
                self.word.swap(next, Relaxed);
                return Ok(permits);
            }
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
            "{permits} permits came back, and {} were granted",
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
        // Relaxed: as the module says, nothing is published here.
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

/// The permits that one shard has borrowed. It must be used with one quota only, and be
/// [settled](Self::settle) before it is dropped: what it has not spent is lost to the others else.
#[derive(Debug)]
pub struct PermitCache {
    available: usize,
    block: usize,
    keep_max: usize,
}

impl PermitCache {
    /// An empty permits, for one of so many shards.
    #[must_use]
    pub const fn new(shards: u32) -> Self {
        let (block, keep_max) = if shards > 1 { (BLOCK, BLOCK) } else { (1, 0) };
        Self { available: 0, block, keep_max }
    }

    /// Pays for one job of this class.
    ///
    /// # Errors
    ///
    /// [`QuotaExceeded`](ScheduleErrorKind::QuotaExceeded) if as many live as ever may;
    /// [`Backpressured`](ScheduleErrorKind::Backpressured) if as many live as may under pressure,
    /// or if there is pressure and the class is low.
    #[inline]
    pub fn acquire(&mut self, quota: &Quota, class: Class) -> Result<(), ScheduleErrorKind> {
        if quota.is_under_pressure() {
            if !mutant!("quota-unspent-kept") {
                self.flush(quota);
            }
            return quota.acquire_one(class);
        }
        if self.available == 0 {
            self.available = quota.grant(self.block, class)?;
        }
        self.available -= 1;
        Ok(())
    }

    /// Takes the permit of a job back that has ended.
    #[inline]
    pub fn release(&mut self, quota: &Quota) {
        self.available += 1;
        if quota.is_under_pressure() {
            self.flush(quota);
        } else if self.available > self.keep_max {
            // Half a block stays, so that neither the next take nor the next give needs the quota.
            let surplus = self.available - self.keep_max / 2;
            self.available -= surplus;
            if !mutant!("quota-surplus-lost") {
                quota.return_permits(surplus);
            }
        }
    }

    /// Gives back what is not spent: when the shard goes idle, and before the permits is dropped.
    pub fn flush(&mut self, quota: &Quota) {
        if self.available > 0 {
            quota.return_permits(self.available);
            self.available = 0;
        }
    }

    /// How many permits it has and has not spent.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.available
    }
}

/// Pressure began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a change of pressure is to be told"]
pub struct PressureChange {
    /// Whether there is pressure now.
    pub engaged: bool,
    /// Why there is, or why there was to the last.
    pub reason: PressureReason,
}

impl From<PressureChange> for Warning {
    fn from(change: PressureChange) -> Self {
        Self::BackpressureState { engaged: change.engaged, reason: change.reason }
    }
}

/// Tells a scheduler that the runtime is under pressure, from any thread.
///
/// There is pressure as long as there is a reason for it. A reason is engaged and released by
/// itself, or by a level in percent that engages it at a threshold and releases it at half of that:
/// so a level that trembles about the threshold changes nothing.
#[derive(Clone)]
pub struct BackpressureLink {
    quota: Counted<Quota>,
    threshold_pct: u8,
}

impl BackpressureLink {
    /// The level that engages unless another is asked for, in percent.
    pub const THRESHOLD_PCT: u8 = 80;

    /// For the scheduler of this quota.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(quota: Counted<Quota>) -> Self {
        Self { quota, threshold_pct: Self::THRESHOLD_PCT }
    }

    /// The same with another level that engages, at least 1.
    #[must_use]
    pub fn threshold(mut self, percent: u8) -> Self {
        self.threshold_pct = percent.max(1);
        self
    }

    /// The level of a reason is now so many percent. Gives the change of pressure that this made.
    pub fn set(&self, reason: PressureReason, percent: u8) -> Option<PressureChange> {
        if percent >= self.threshold_pct {
            self.engage(reason)
        } else if percent <= self.threshold_pct / 2 {
            self.release(reason)
        } else {
            None
        }
    }

    /// There is this reason. Gives the change of pressure that this made: none if there was one
    /// already.
    pub fn engage(&self, reason: PressureReason) -> Option<PressureChange> {
        if reason == PressureReason::Dispatcher {
            // Relaxed: as the module says. Who says so takes it back.
            self.quota.refused_at.store(NOT_REFUSED, Relaxed);
        }
        self.quota.engage(reason)
    }

    /// A dispatcher has refused a job (rule 6). Gives the change of pressure that this made.
    pub(crate) fn refuse(&self, now: Tick) -> Option<PressureChange> {
        // Relaxed: as the module says. Before the pressure, so that it is not taken for an old one.
        self.quota.refused_at.store(mark(now), Relaxed);
        self.quota.engage(PressureReason::Dispatcher)
    }

    /// This reason is gone. Gives the change of pressure that this made: none if there is another,
    /// or was none.
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

/// The low bits of a tick, with the lowest set so that it is not [`NOT_REFUSED`].
const fn mark(tick: Tick) -> u32 {
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
