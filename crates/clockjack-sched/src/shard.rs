//! A table of jobs that several threads share.
#![doc = include_str!("shard.md")]
#![expect(unsafe_code, reason = "wheel and table stand in a cell that the guard guards")]

use core::fmt;

use clockjack_sync::{
    Counted, ReturnStack, mutant,
    pad::Padded,
    prim::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicU32, Ordering, fence},
        hint,
    },
    return_stack::{Links, NIL},
};
use clockjack_time::{ClockKind, GrowingWheel, Tick, TimerInstant, WheelConfig};

use crate::{
    BatchMode, JobId, JobSpec, JobState, JobTable, ScheduleError, ScheduleErrorKind,
    SchedulerConfig,
    job::Plan,
    slots::JobSlots,
    state::CancelWon,
    table::{CompletedRun, DueItem, RESERVED_SLOTS, ReturnedDelivery, TableShared, job_data},
};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;

const NO_WAKES: u32 = 0;
/// In `pending_wakes`: something was listed that only a turn tells or drops, and nobody was called.
const WAKE_POLLER: u32 = 1;
/// In `pending_wakes`: something was published, and no reader was woken.
const WAKE_READERS: u32 = 1 << 1;

/// Bits of a tick that `next_wake` keeps.
const WAKE_BITS: u32 = 31;
/// How far ahead `next_wake` can lie: what is further is looked at again then.
const WAKE_MAX: u64 = 1 << (WAKE_BITS - 2);
/// `next_wake` of a runner that sleeps until it is called.
const NEVER: u32 = 0;

/// How many tries of the guard come before other threads are let run.
const SPINS_MAX: u32 = if cfg!(loom) { 0 } else { 64 };

/// A job that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedJob {
    pub(crate) slot: u32,
    /// Whether the runner sleeps longer than until it is due.
    pub(crate) wakes_poller: bool,
}

/// A won or lost cancel.
pub(crate) struct CancelOutcome<P> {
    pub(crate) won: bool,
    /// To be dropped.
    pub(crate) payload: Option<P>,
    /// Whether the runner has something to do.
    pub(crate) wakes_poller: bool,
}

/// What is to be done without the guard for what was taken up with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingWakes(u32);

impl PendingWakes {
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == NO_WAKES
    }

    /// The runner is to be called.
    pub(crate) const fn wakes_poller(self) -> bool {
        self.0 & WAKE_POLLER != 0
    }

    /// The readers of diagnostics are to be woken.
    pub(crate) const fn wakes_readers(self) -> bool {
        self.0 & WAKE_READERS != 0
    }
}

/// The jobs of one shard, shared by threads.
pub(crate) struct JobShard<P> {
    guard: Padded<AtomicU32>,
    next_wake: AtomicU32,
    closed: AtomicBool,
    /// What a holder owes to others for the remote_ops that it took up: [`WAKE_POLLER`] and [`WAKE_READERS`].
    pending_wakes: AtomicU32,
    remote_ops: ReturnStack,
    reserved_slots: [AtomicU32; RESERVED_SLOTS as usize],
    slots: Counted<JobSlots<P>>,
    shared: TableShared,
    id: u32,
    /// Whether the quota is shared with other shards.
    has_siblings: bool,
    locked: UnsafeCell<LockedShard<P>>,
}

/// What only the holder touches.
pub(crate) struct LockedShard<P> {
    pub(crate) wheel: GrowingWheel<JobId>,
    pub(crate) table: JobTable<P>,
}

// SAFETY: all parts but `core` are made for sharing. `core` is touched only by the thread that has
// the guard, which is taken with acquire and given back with release (rule 1). Payloads move
// between threads with it, so `P: Send` is needed, and enough: no two threads see one at a time.
unsafe impl<P: Send> Sync for JobShard<P> {}
// SAFETY: it owns all that it has, and the payloads in it may be sent.
unsafe impl<P: Send> Send for JobShard<P> {}

impl<P> JobShard<P> {
    pub(crate) fn new(
        config: &SchedulerConfig,
        id: u32,
        kind: ClockKind,
        shared: TableShared,
    ) -> Self {
        let mut wheel = GrowingWheel::new(WheelConfig {
            start: config.start,
            capacity: config.capacity,
            overflow_capacity: config.overflow_capacity,
            reinsertion_batch_limit: config.reinsertion_batch_limit,
            shard: id,
        });
        if config.is_fixed {
            wheel.reserve_all();
        }
        let table = JobTable::with_shared(config, id, kind, shared.clone());
        let shard = Self {
            guard: Padded(AtomicU32::new(UNLOCKED)),
            next_wake: AtomicU32::new(NEVER),
            closed: AtomicBool::new(false),
            pending_wakes: AtomicU32::new(NO_WAKES),
            remote_ops: ReturnStack::new(),
            reserved_slots: core::array::from_fn(|_| AtomicU32::new(NIL)),
            slots: table.slots().clone(),
            shared,
            id,
            has_siblings: config.shards > 1,
            locked: UnsafeCell::new(LockedShard { wheel, table }),
        };
        if let Some(mut guard) = shard.try_lock() {
            guard.refill_reserved_slots();
        }
        shard
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The right to touch wheel and table; `None` if another thread has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<JobShardGuard<'_, P>> {
        if mutant!("jobs-lease-by-store") {
            if self.guard.load(Ordering::Acquire) == LOCKED {
                return None;
            }
            self.guard.store(LOCKED, Ordering::Release);
        } else {
            // Acquire pairs with the release in the drop of a guard (rule 1).
            self.guard
                .compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed)
                .ok()?;
        }
        let mut guard = JobShardGuard { shard: self };
        if !self.remote_ops.is_empty() {
            let left = guard.locked().table.n_due();
            guard.apply_remote_ops();
            guard.add_pending_wakes(left);
        }
        Some(guard)
    }

    /// The guard, waited for: the holder does bounded work. `relax` lets other threads run.
    pub(crate) fn lock(&self, relax: &dyn Fn()) -> JobShardGuard<'_, P> {
        let guard = self.lock_while(&|| {
            relax();
            true
        });
        guard.expect("it is waited for until it is there")
    }

    /// The guard, waited for as long as `waits` does and says so; `None` then.
    fn lock_while(&self, waits: &dyn Fn() -> bool) -> Option<JobShardGuard<'_, P>> {
        let mut spins = SPINS_MAX;
        loop {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            if spins > 0 {
                spins -= 1;
                hint::spin_loop();
            } else if !waits() {
                return None;
            }
        }
    }

    /// Accepts a job from any thread. `waits` lets other threads run, or says by false that this
    /// one must not wait for them.
    #[inline]
    pub(crate) fn schedule(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        if let Some(mut guard) = self.try_lock() {
            return guard.schedule(job, plan, payload);
        }
        self.schedule_remote(job, plan, payload, waits)
    }

    /// As [`schedule`](Self::schedule), with the guard and not by a note.
    fn schedule_locked(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        match self.lock_while(waits) {
            Some(mut guard) => guard.schedule(job, plan, payload),
            None => Err(ScheduleError::new(ScheduleErrorKind::CapacityExceeded, payload)),
        }
    }

    /// Rule 3.
    #[cold]
    fn schedule_remote(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        // Relaxed: what is missed here is found below.
        if self.closed.load(Ordering::Relaxed) {
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, payload));
        }
        let Some(slot) = self.take_reserved_slot() else {
            return self.schedule_locked(job, plan, payload, waits);
        };
        let acquire = || self.shared.quota.acquire_one(job.policy.priority);
        if let Err(kind) = acquire()
            && let Err(kind) = self.shared.retry_acquire(kind, plan.at, acquire)
        {
            self.return_reserved_slot(slot);
            if self.has_siblings {
                // This shard may have permits of its own left, which the holder spends.
                return self.schedule_locked(job, plan, payload, waits);
            }
            self.shared.report_refusal(kind);
            return Err(ScheduleError::new(kind, payload));
        }
        let at = self.slots.get(slot);
        let data = job_data(job, plan);
        // SAFETY: the slot came out of the reserved_slots by a swap, so it is this thread's alone until the
        // push; one call at a time.
        unsafe { at.data(|reserved| *reserved = data) };
        // SAFETY: as above.
        unsafe { at.payload(|reserved| *reserved = Some(payload)) };
        at.state.publish(plan.mode != BatchMode::OneShot, job, true);
        self.remote_ops.push(slot, &*self.slots);
        // Pairs with the fences of the closer and of the runner (rules 5 and 6).
        if !mutant!("jobs-post-no-fence") {
            fence(Ordering::SeqCst);
        }
        // Relaxed: the fence has ordered it.
        let is_closed = self.closed.load(Ordering::Relaxed) && !mutant!("jobs-post-no-recheck");
        if is_closed && at.state.withdraw() {
            // SAFETY: the job was not accepted, and nobody takes it up any more: the payload is
            // this thread's again.
            let payload = unsafe { at.payload(Option::take) };
            self.shared.quota.release_one();
            self.release_handles(slot, 2);
            let Some(payload) = payload else { unreachable!("it was put there above") };
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, payload));
        }
        Ok(AcceptedJob { slot, wakes_poller: self.is_before_wake(plan.due) })
    }

    fn take_reserved_slot(&self) -> Option<u32> {
        self.reserved_slots.iter().find_map(|reserved| {
            // Relaxed: a hint that spares the swap.
            if reserved.load(Ordering::Relaxed) == NIL {
                return None;
            }
            if mutant!("jobs-stock-by-load") {
                let slot = reserved.load(Ordering::Acquire);
                reserved.store(NIL, Ordering::Release);
                return (slot != NIL).then_some(slot);
            }
            // Acquire: pairs with the store of the holder that put it there.
            Some(reserved.swap(NIL, Ordering::Acquire)).filter(|slot| *slot != NIL)
        })
    }

    /// A slot that was not used goes where freed ones go.
    #[cold]
    fn return_reserved_slot(&self, slot: u32) {
        self.slots.get(slot).state.mark_for_free();
        self.remote_ops.push(slot, &*self.slots);
    }

    /// Cancels a job that the caller has a handle of. Rule 4.
    pub(crate) fn cancel(&self, slot: u32, now: &dyn Fn() -> TimerInstant) -> CancelOutcome<P> {
        if let Some(mut guard) = self.try_lock() {
            return guard.cancel(slot, now);
        }
        let won = self.slots.get(slot).state.cancel(true);
        if won == Some(CancelWon::Waiting { push: true }) {
            self.remote_ops.push(slot, &*self.slots);
        }
        // Also if the note of its post is there still: the poster may not have called.
        let wakes_poller = match won {
            Some(CancelWon::Waiting { push }) => push || !mutant!("jobs-cancelled-post-uncalled"),
            _ => false,
        };
        CancelOutcome { won: won.is_some(), payload: None, wakes_poller }
    }

    /// Decides whether a delivery that the caller has is opened, or was cancelled.
    pub(crate) fn accept(&self, slot: u32) -> bool {
        self.slots.get(slot).state.accept()
    }

    /// Where a job is that the caller has a handle or a delivery of.
    pub(crate) fn state(&self, slot: u32) -> JobState {
        self.slots.get(slot).state.load().state()
    }

    pub(crate) fn mark_run_on_close(&self, slot: u32) -> bool {
        self.slots.get(slot).state.mark_run_on_close()
    }

    /// One more handle of a job that the caller has one of.
    pub(crate) fn add_handle(&self, slot: u32) {
        self.slots.get(slot).state.add_handle();
    }

    /// Handles fewer. Rule 7.
    pub(crate) fn release_handles(&self, slot: u32, pins: u32) {
        if !self.slots.get(slot).state.release_handles(pins) {
            return;
        }
        if let Some(mut guard) = self.try_lock() {
            guard.locked().table.free_slot(slot);
        } else {
            self.slots.get(slot).state.mark_for_free();
            self.remote_ops.push(slot, &*self.slots);
        }
    }

    /// Rule 6: from here on nothing is accepted.
    pub(crate) fn close(&self, relax: &dyn Fn()) -> JobShardGuard<'_, P> {
        // Relaxed: the fence orders it.
        self.closed.store(true, Ordering::Relaxed);
        // Pairs with the fence of a poster.
        if !mutant!("jobs-close-no-fence") {
            fence(Ordering::SeqCst);
        }
        let mut guard = self.lock(relax);
        guard.locked().table.close();
        guard
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: who must know exactly has the guard.
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether remote_ops were left since the guard was last taken. To be asked after a fence (rule 5).
    pub(crate) fn has_remote_ops(&self) -> bool {
        !self.remote_ops.is_empty()
    }

    /// What holders owe, which is the caller's to do from here on.
    #[inline]
    pub(crate) fn take_pending_wakes(&self) -> PendingWakes {
        // Relaxed, twice: who owes it asks behind its guard, and if another is faster then that
        // one does it.
        if self.pending_wakes.load(Ordering::Relaxed) == NO_WAKES {
            return PendingWakes(NO_WAKES);
        }
        PendingWakes(self.pending_wakes.swap(NO_WAKES, Ordering::Relaxed))
    }

    /// How many slots are in reserved_slots.
    pub(crate) fn n_reserved_slots(&self) -> usize {
        // Relaxed: a count.
        self.reserved_slots
            .iter()
            .filter(|reserved| reserved.load(Ordering::Relaxed) != NIL)
            .count()
    }

    pub(crate) fn n_remote_ops(&self) -> usize {
        self.remote_ops.depth()
    }

    /// Whether a deadline comes before the runner wakes by itself.
    fn is_before_wake(&self, due: Tick) -> bool {
        // Relaxed: the caller has the guard, or a fence behind its push.
        let wake = self.next_wake.load(Ordering::Relaxed);
        wake == NEVER || wake_behind(wake, due) > 0
    }

    /// Publishes when the runner wakes, with the guard held; and says it.
    fn set_next_wake(&self, next: Option<Tick>, now: Tick) {
        let wake = next.map_or(NEVER, |next| wake_of(next, now));
        // Relaxed: the fence behind it orders it (rule 5).
        self.next_wake.store(wake, Ordering::Relaxed);
    }
}

/// The low bits of a tick and a mark, so that it is not NEVER; a tick that is far ahead of `now` is
/// cut.
fn wake_of(next: Tick, now: Tick) -> u32 {
    let ahead = next.saturating_since(now).get().min(WAKE_MAX);
    let bits = now.get().wrapping_add(ahead) & ((1 << WAKE_BITS) - 1);
    let bits = bits as u32;
    (bits << 1) | 1
}

/// By how much a wake lies behind a tick, which lies not more than `WAKE_MAX` before or behind it,
/// or is taken for that: a far one is behind.
fn wake_behind(wake: u32, due: Tick) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is compared")]
    let due = (due.get() as u32) << 1;
    (wake & !1).wrapping_sub(due).cast_signed() >> 1
}

/// The right to touch the wheel and the table of a shard.
pub(crate) struct JobShardGuard<'s, P> {
    shard: &'s JobShard<P>,
}

impl<P> JobShardGuard<'_, P> {
    #[inline(always)]
    pub(crate) fn locked(&mut self) -> &mut LockedShard<P> {
        let locked = self.shard.locked.with_mut(|locked| locked);
        // SAFETY: this thread has the guard, so no other has a reference into the core, and
        // `&mut self` makes this the only one that came from this guard.
        unsafe { &mut *locked }
    }

    /// Notes that a call is pending_wakes if more is listed than was, and a ring if a reader waits for one.
    fn add_pending_wakes(&mut self, left: usize) {
        let is_listed = self.locked().table.n_due() > left && !mutant!("jobs-listed-uncalled");
        let has_readers =
            self.shard.shared.bus.has_pending_wakes() && !mutant!("jobs-taken-up-in-silence");
        let pending_wakes = if is_listed { WAKE_POLLER } else { NO_WAKES }
            | if has_readers { WAKE_READERS } else { NO_WAKES };
        if pending_wakes != NO_WAKES {
            // Relaxed: see `take_pending_wakes`.
            self.shard.pending_wakes.fetch_or(pending_wakes, Ordering::Relaxed);
        }
    }

    /// Rule 2.
    fn apply_remote_ops(&mut self) {
        let slots = &self.shard.slots;
        if mutant!("jobs-notes-newest-first") {
            for slot in self.shard.remote_ops.drain(&**slots) {
                let LockedShard { wheel, table } = self.locked();
                table.apply(wheel, slot);
            }
            return self.refill_reserved_slots();
        }
        // The stack gives the newest first.
        let mut oldest = NIL;
        for slot in self.shard.remote_ops.drain(&**slots) {
            slots.set_next(slot, oldest);
            oldest = slot;
        }
        while oldest != NIL {
            let slot = oldest;
            oldest = self.shard.slots.next(slot);
            let LockedShard { wheel, table } = self.locked();
            table.apply(wheel, slot);
        }
        self.refill_reserved_slots();
    }

    /// JobSlots that were put in reserved_slots when many jobs lived keep the segments that were made for
    /// those: they are traded for lower ones.
    #[cold]
    fn lower_reserved_slots(&mut self) {
        let shard = self.shard;
        for reserved in &shard.reserved_slots {
            // Relaxed: a hint that spares the swap.
            let slot = reserved.load(Ordering::Relaxed);
            if slot == NIL || !self.locked().table.free().should_replace(slot) {
                continue;
            }
            // Acquire: as a poster takes it, and one may have been faster.
            let slot = reserved.swap(NIL, Ordering::Acquire);
            if slot != NIL {
                self.locked().table.free_slot(slot);
                self.refill_reserved_slots();
            }
        }
    }

    /// Fills the reserved_slots up.
    fn refill_reserved_slots(&mut self) {
        let shard = self.shard;
        for reserved in &shard.reserved_slots {
            // Relaxed: only the holder puts in, so what is empty stays so.
            if reserved.load(Ordering::Relaxed) == NIL
                && let Some(slot) = self.locked().table.take_slot()
            {
                // Release: the slot is free as its taker sees it. A swap, though a store would do:
                // the model checker orders a store beside swaps that found nothing in no way.
                let before = reserved.swap(slot, Ordering::Release);
                debug_assert_eq!(before, NIL, "only the holder puts in");
            }
        }
    }

    #[inline]
    fn schedule(
        &mut self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        let shard = self.shard;
        let LockedShard { wheel, table } = self.locked();
        let left = table.n_due();
        let (job, due) = match table.schedule_planned(wheel, job, plan, payload) {
            Ok(accepted) => accepted,
            Err(refused) => {
                self.add_pending_wakes(left);
                return Err(refused);
            }
        };
        let is_earlier = shard.is_before_wake(due);
        if is_earlier {
            shard.set_next_wake(Some(due), table.now());
        }
        // One that had to go for this one is to be told, or dropped.
        let wakes_poller = is_earlier || table.n_due() > left;
        Ok(AcceptedJob { slot: job.slot, wakes_poller })
    }

    fn cancel(&mut self, slot: u32, now: &dyn Fn() -> TimerInstant) -> CancelOutcome<P> {
        let id = self.shard.id;
        let LockedShard { wheel, table } = self.locked();
        if table.wants_time() {
            table.observe(now());
        }
        let left = table.n_due();
        let (won, payload) = table.cancel_take(wheel, JobId { shard: id, slot });
        // Its post may lie on the stack still.
        let wakes_poller = table.n_due() > left || (won && self.shard.has_remote_ops());
        CancelOutcome { won, payload, wakes_poller }
    }

    /// Completes a run. Gives what is to be dropped.
    pub(crate) fn complete(&mut self, done: CompletedRun<P>) -> Option<P> {
        let LockedShard { wheel, table } = self.locked();
        table.complete(wheel, done)
    }

    /// A delivery has come back, which completes its run. Gives what is to be dropped, and whether
    /// the runner sleeps longer than it may now.
    pub(crate) fn complete_delivery(&mut self, returned: ReturnedDelivery<P>) -> (Option<P>, bool) {
        let shard = self.shard;
        let LockedShard { wheel, table } = self.locked();
        let left = table.n_due();
        let (ended, due) = table.complete_delivery(wheel, returned);
        // Rule 5.
        let is_earlier = due.is_some_and(|due| shard.is_before_wake(due));
        if is_earlier {
            shard.set_next_wake(due, table.now());
        }
        (ended, (is_earlier || table.n_due() > left) && !mutant!("parcel-back-uncalled"))
    }

    /// A delivery was opened: how many further runs of its job have come due, which it stands for
    /// too.
    pub(crate) fn fold(&mut self, slot: u32, now: TimerInstant) -> u32 {
        self.locked().table.fold(slot, now)
    }

    /// Moves time to `to`, and gives what is due next, if anything is. The flag says that there is
    /// more to be moved.
    pub(crate) fn advance(
        &mut self,
        to: TimerInstant,
        now: TimerInstant,
        budget: usize,
        executor: u16,
    ) -> (Option<DueItem<P>>, bool) {
        let LockedShard { wheel, table } = self.locked();
        let more = table.expire_due(wheel, to, budget);
        (table.next_due(wheel, now, executor), more)
    }

    /// What is due next, without moving time.
    pub(crate) fn next_due(&mut self, now: TimerInstant, executor: u16) -> Option<DueItem<P>> {
        let LockedShard { wheel, table } = self.locked();
        table.next_due(wheel, now, executor)
    }

    /// Publishes when the runner wakes, and opens the guard. The caller looks at the remote_ops then
    /// ([`has_remote_ops`](JobShard::has_remote_ops)).
    pub(crate) fn unlock_for_sleep(mut self) -> Option<Tick> {
        if self.locked().table.free().is_sparse() && !mutant!("jobs-stock-kept-high") {
            self.lower_reserved_slots();
        }
        let LockedShard { wheel, table } = self.locked();
        table.flush_permits_if_idle();
        let now = table.now();
        // Cut as it is published: posters count on the runner to be awake then.
        let far = Tick::new(now.get().saturating_add(WAKE_MAX));
        let next = table.next_wake(wheel);
        let next = if mutant!("jobs-wake-uncut") { next } else { next.map(|next| next.min(far)) };
        self.shard.set_next_wake(next, now);
        if self.locked().table.n_due() == 0 {
            // Relaxed: the guard is held, nothing is left to be called for, and a turn ends with a
            // ring.
            self.shard.pending_wakes.store(NO_WAKES, Ordering::Relaxed);
        }
        drop(self);
        // Pairs with the fence of a poster (rule 5).
        if !mutant!("jobs-retire-no-fence") {
            fence(Ordering::SeqCst);
        }
        next
    }
}

impl<P> Drop for JobShardGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `guard` (rule 1).
        self.shard.guard.store(UNLOCKED, Ordering::Release);
    }
}

impl<P> fmt::Debug for JobShard<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobShard").field("id", &self.id).finish_non_exhaustive()
    }
}
