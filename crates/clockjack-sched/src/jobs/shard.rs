//! A job table that several threads share.
#![doc = include_str!("shard.md")]
#![expect(unsafe_code, reason = "the shard lock protects the cell with wheel and table")]

use core::fmt;

use clockjack_sync::{
    Arc, IndexStack,
    index_stack::{Links, NIL},
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{AtomicBool, AtomicU32, Ordering, fence},
        hint,
    },
};
use clockjack_time::{ClockKind, GrowingWheel, Tick, TimerInstant, WheelConfig};

use crate::{
    BatchMode, JobId, JobSpec, JobState, JobTable, ScheduleError, ScheduleErrorKind,
    SchedulerConfig,
    jobs::{
        slots::JobSlots,
        spec::Plan,
        state::CancelWon,
        table::{CompletedRun, DueItem, RESERVED_SLOTS, ReturnedDelivery, TableShared, job_data},
    },
};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;

const NO_WAKES: u32 = 0;
/// In `pending_wakes`: the list of due jobs grew, and the poller was not woken for it.
const WAKE_POLLER: u32 = 1;
/// In `pending_wakes`: an event was published, and no reader was woken.
const WAKE_READERS: u32 = 1 << 1;

/// How many bits of a tick `next_wake` keeps.
const WAKE_BITS: u32 = 31;
/// How far ahead `next_wake` can be. For a later deadline, the poller wakes then and sleeps again.
const WAKE_MAX: u64 = 1 << (WAKE_BITS - 2);
/// `next_wake` of a poller that sleeps until it is woken.
const NEVER: u32 = 0;

/// How often a thread tries to lock before it lets other threads run.
const SPINS_MAX: u32 = if cfg!(loom) { 0 } else { 64 };

/// A job that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedJob {
    pub(crate) slot: u32,
    /// The slot of its timer in the wheel, or [`NIL`]: a hint for a cancel.
    pub(crate) timer: u32,
    /// The tick at which the shard must be polled, if the caller must wake the poller for that.
    pub(crate) wake_at: Option<Tick>,
}

/// The result of a cancel.
pub(crate) struct CancelOutcome<P> {
    pub(crate) won: bool,
    /// The caller drops it.
    pub(crate) payload: Option<P>,
    /// Whether the caller must wake the poller, which has something to do.
    pub(crate) wakes_poller: bool,
}

/// Wake-ups that are due after the guard is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingWakes(u32);

impl PendingWakes {
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == NO_WAKES
    }

    /// Whether the poller must be woken.
    pub(crate) const fn wakes_poller(self) -> bool {
        self.0 & WAKE_POLLER != 0
    }

    /// Whether the readers of diagnostics must be woken.
    pub(crate) const fn wakes_readers(self) -> bool {
        self.0 & WAKE_READERS != 0
    }
}

/// The jobs of one shard, shared by threads. See the [module](self) for the protocol.
pub(crate) struct JobShard<P> {
    lock_word: Padded<AtomicU32>,
    next_wake: AtomicU32,
    closed: AtomicBool,
    /// The wake-ups for applied remote operations: [`WAKE_POLLER`] and [`WAKE_READERS`].
    pending_wakes: AtomicU32,
    remote_ops: IndexStack,
    reserved_slots: [AtomicU32; RESERVED_SLOTS as usize],
    slots: Arc<JobSlots<P>>,
    shared: TableShared,
    id: u32,
    /// Whether the quota is shared with other shards.
    has_siblings: bool,
    locked: UnsafeCell<LockedShard<P>>,
}

/// The state that the lock protects.
pub(crate) struct LockedShard<P> {
    pub(crate) wheel: GrowingWheel<JobId>,
    pub(crate) table: JobTable<P>,
}

// SAFETY: all fields except `locked` are made for sharing. Only the thread that holds the guard
// touches `locked`; it takes the lock with acquire and returns it with release (rule 1). Payloads
// move between threads this way, so `P: Send` is needed. It is also enough, because no two threads
// access a payload at the same time.
unsafe impl<P: Send> Sync for JobShard<P> {}
// SAFETY: the shard owns everything in it, and the payloads are `Send`.
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
            capacity: config.capacity.saturating_add(config.internal_reserve),
            overflow_capacity: config.overflow_capacity,
            reinsertion_batch_limit: config.reinsertion_batch_limit,
            shard: id,
        });
        if config.is_fixed {
            wheel.reserve_all();
        }
        let table = JobTable::with_shared(config, id, kind, shared.clone());
        let shard = Self {
            lock_word: Padded(AtomicU32::new(UNLOCKED)),
            next_wake: AtomicU32::new(NEVER),
            closed: AtomicBool::new(false),
            pending_wakes: AtomicU32::new(NO_WAKES),
            remote_ops: IndexStack::new(),
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

    /// Takes the guard and applies all remote operations; `None` if another thread holds the guard.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<JobShardGuard<'_, P>> {
        // Acquire pairs with the release in the drop of a guard (rule 1).
        self.lock_word
            .compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        let mut guard = JobShardGuard { shard: self };
        if !self.remote_ops.is_empty() {
            let n_due_before = guard.locked().table.n_due();
            guard.apply_remote_ops();
            guard.add_pending_wakes(n_due_before);
        }
        Some(guard)
    }

    /// Waits for the guard; its holder does bounded work. `relax` lets other threads run.
    #[inline]
    pub(crate) fn lock(&self, relax: &dyn Fn()) -> JobShardGuard<'_, P> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        self.lock_slowly(relax)
    }

    #[cold]
    fn lock_slowly(&self, relax: &dyn Fn()) -> JobShardGuard<'_, P> {
        let guard = self.lock_while(&|| {
            relax();
            true
        });
        guard.expect("`waits` never returns false")
    }

    /// Waits for the guard; `None` when `waits` returns false. `waits` lets other threads run.
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

    /// Schedules a job from any thread. `waits` lets other threads run and returns true, or returns
    /// false if the caller must not wait for them.
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
        if job.is_internal {
            return self.schedule_internal(job, plan, payload, waits);
        }
        self.schedule_remote(job, plan, payload, waits)
    }

    /// Only a guard holder knows the reserve, so a job of the runtime waits for the guard. A caller
    /// that must not wait schedules it as a job of a user.
    #[cold]
    fn schedule_internal(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        match self.lock_while(waits) {
            Some(mut guard) => guard.schedule(job, plan, payload),
            None => {
                let job = JobSpec { is_internal: false, ..*job };
                self.schedule_remote(&job, plan, payload, waits)
            }
        }
    }

    /// As [`schedule`](Self::schedule), but always with the guard.
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

    /// Schedules a job without the guard (rule 3).
    #[cold]
    fn schedule_remote(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<AcceptedJob, ScheduleError<P>> {
        // Relaxed: only a shortcut; the load after the fence below decides.
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
                // This shard may have cached permits, which only a guard holder can use.
                return self.schedule_locked(job, plan, payload, waits);
            }
            self.shared.report_refusal(kind);
            return Err(ScheduleError::new(kind, payload));
        }
        let at = self.slots.get(slot);
        let data = job_data(job, plan);
        // SAFETY: this thread took the reserved slot by a swap, so no other thread touches it until
        // the push; the two calls do not nest.
        unsafe { at.data(|place| *place = data) };
        // SAFETY: as above.
        unsafe { at.payload(|place| *place = Some(payload)) };
        at.state.publish(plan.mode != BatchMode::OneShot, job, true);
        self.remote_ops.push(slot, &*self.slots);
        // Pairs with the fences of the poller (rule 5) and of the closer (rule 6).
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders this load after the push.
        let is_closed = self.closed.load(Ordering::Relaxed);
        if is_closed && at.state.withdraw() {
            // SAFETY: the job was not accepted and no thread applies it any more, so the payload
            // belongs to this thread again.
            let payload = unsafe { at.payload(Option::take) };
            self.shared.quota.release_one();
            self.release_handles(slot, 2);
            let Some(payload) = payload else { unreachable!("the payload was put there above") };
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, payload));
        }
        let wake_at = self.is_before_wake(plan.due).then_some(plan.due);
        Ok(AcceptedJob { slot, timer: NIL, wake_at })
    }

    fn take_reserved_slot(&self) -> Option<u32> {
        self.reserved_slots.iter().find_map(|reserved| {
            // Relaxed: a hint that avoids a useless swap.
            if reserved.load(Ordering::Relaxed) == NIL {
                return None;
            }
            // Acquire: pairs with the swap by which a guard holder put the slot here.
            Some(reserved.swap(NIL, Ordering::Acquire)).filter(|slot| *slot != NIL)
        })
    }

    /// Returns an unused reserved slot, in the same way as a freed one.
    #[cold]
    fn return_reserved_slot(&self, slot: u32) {
        self.slots.get(slot).state.mark_for_free();
        self.remote_ops.push(slot, &*self.slots);
    }

    /// Cancels a job of which the caller has a handle. Rule 4. `timer` is the slot of its timer in
    /// the wheel when it was scheduled: the memory of both is loaded at the same time.
    pub(crate) fn cancel(
        &self,
        slot: u32,
        timer: u32,
        now: &dyn Fn() -> TimerInstant,
    ) -> CancelOutcome<P> {
        self.slots.prefetch(slot);
        if let Some(mut guard) = self.try_lock() {
            guard.locked().wheel.prefetch(timer);
            return guard.cancel(slot, now);
        }
        let won = self.slots.get(slot).state.cancel(true);
        if won == Some(CancelWon::Waiting { push: true }) {
            self.remote_ops.push(slot, &*self.slots);
        }
        // Wake the poller also if the remote operation of the schedule is still on the stack: the
        // remote scheduler may not have woken it yet.
        let wakes_poller = matches!(won, Some(CancelWon::Waiting { .. }));
        CancelOutcome { won: won.is_some(), payload: None, wakes_poller }
    }

    /// Accepts a delivery that the caller has; false if it was cancelled.
    pub(crate) fn accept(&self, slot: u32) -> bool {
        self.slots.get(slot).state.accept()
    }

    /// The state of a job of which the caller has a handle or a delivery.
    pub(crate) fn state(&self, slot: u32) -> JobState {
        self.slots.get(slot).state.load().state()
    }

    pub(crate) fn mark_run_on_close(&self, slot: u32) -> bool {
        self.slots.get(slot).state.mark_run_on_close()
    }

    /// Adds a handle to a job of which the caller has one.
    pub(crate) fn add_handle(&self, slot: u32) {
        self.slots.get(slot).state.add_handle();
    }

    /// Releases `n` handles. Rule 7.
    pub(crate) fn release_handles(&self, slot: u32, n: u32) {
        if !self.slots.get(slot).state.release_handles(n) {
            return;
        }
        if let Some(mut guard) = self.try_lock() {
            guard.locked().table.free_slot(slot);
        } else {
            self.slots.get(slot).state.mark_for_free();
            self.remote_ops.push(slot, &*self.slots);
        }
    }

    /// Closes the shard: from here on no job is accepted. Rule 6.
    pub(crate) fn close(&self, due_by: Option<Tick>, relax: &dyn Fn()) -> JobShardGuard<'_, P> {
        // Relaxed: the fence below orders it.
        self.closed.store(true, Ordering::Relaxed);
        // Pairs with the fence of a remote scheduler.
        fence(Ordering::SeqCst);
        let mut guard = self.lock(relax);
        guard.locked().table.close(due_by);
        guard
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a caller that needs the exact value holds the guard.
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether there are remote operations. A poller asks after a full fence (rule 5).
    pub(crate) fn has_remote_ops(&self) -> bool {
        !self.remote_ops.is_empty()
    }

    /// Takes the pending wake-ups. The caller must perform them.
    #[inline]
    pub(crate) fn take_pending_wakes(&self) -> PendingWakes {
        // Relaxed, twice: a thread that added wake-ups calls this after it released the guard. If
        // another thread takes them first, then that thread performs them.
        if self.pending_wakes.load(Ordering::Relaxed) == NO_WAKES {
            return PendingWakes(NO_WAKES);
        }
        PendingWakes(self.pending_wakes.swap(NO_WAKES, Ordering::Relaxed))
    }

    /// How many slots are reserved.
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

    /// Whether a deadline is earlier than the time at which the poller wakes by itself.
    fn is_before_wake(&self, due: Tick) -> bool {
        // Relaxed: the caller holds the guard, or issued a fence after its push.
        let wake = self.next_wake.load(Ordering::Relaxed);
        wake == NEVER || wake_minus_due(wake, due) > 0
    }

    /// Publishes that the poller wakes for a deadline, if it would sleep for longer (rule 5).
    /// Returns the tick for which the caller must wake the poller. The caller holds the guard.
    fn lower_next_wake(&self, due: Tick, now: Tick) -> Option<Tick> {
        if !self.is_before_wake(due) {
            return None;
        }
        self.set_next_wake(Some(due), now);
        // No later than what was published: remote schedulers rely on it.
        Some(due.min(Tick::new(now.get().saturating_add(WAKE_MAX))))
    }

    /// Publishes when the poller wakes. The caller holds the guard.
    fn set_next_wake(&self, next: Option<Tick>, now: Tick) {
        let wake = next.map_or(NEVER, |next| wake_of(next, now));
        // Relaxed: the fence after the unlock orders it (rule 5).
        self.next_wake.store(wake, Ordering::Relaxed);
    }
}

/// The tick at which a shard must be polled: at once if the list of due jobs grew.
fn wake_at(is_listed: bool, earlier: Option<Tick>) -> Option<Tick> {
    if is_listed { Some(Tick::ZERO) } else { earlier }
}

/// The low bits of a tick, shifted, with the lowest bit set so that the value is not NEVER. A tick
/// that is far ahead of `now` is capped.
fn wake_of(next: Tick, now: Tick) -> u32 {
    let ahead = next.saturating_since(now).get().min(WAKE_MAX);
    let bits = now.get().wrapping_add(ahead) & ((1 << WAKE_BITS) - 1);
    let bits = bits as u32;
    (bits << 1) | 1
}

/// How many ticks a wake is later than `due`, modulo 2^31: exact if the two are less than 2^30
/// ticks apart.
fn wake_minus_due(wake: u32, due: Tick) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is compared")]
    let due = (due.get() as u32) << 1;
    (wake & !1).wrapping_sub(due).cast_signed() >> 1
}

/// Exclusive access to the wheel and the table of a shard. Dropping it unlocks the shard.
pub(crate) struct JobShardGuard<'s, P> {
    shard: &'s JobShard<P>,
}

impl<P> JobShardGuard<'_, P> {
    #[inline(always)]
    pub(crate) fn locked(&mut self) -> &mut LockedShard<P> {
        let locked = self.shard.locked.with_mut(|locked| locked);
        // SAFETY: this thread holds the guard, so no other thread has a reference into the cell,
        // and `&mut self` makes this the only reference that came from this guard.
        unsafe { &mut *locked }
    }

    /// Records that the poller must be woken if the list of due jobs grew, and the readers of
    /// diagnostics if one of them waits for events.
    fn add_pending_wakes(&mut self, n_due_before: usize) {
        let is_listed = self.locked().table.n_due() > n_due_before;
        let has_readers = self.shard.shared.bus.has_pending_wakes();
        let pending_wakes = if is_listed { WAKE_POLLER } else { NO_WAKES }
            | if has_readers { WAKE_READERS } else { NO_WAKES };
        if pending_wakes != NO_WAKES {
            // Relaxed: see `take_pending_wakes`.
            self.shard.pending_wakes.fetch_or(pending_wakes, Ordering::Relaxed);
        }
    }

    /// Applies all remote operations, oldest first (rule 2).
    fn apply_remote_ops(&mut self) {
        let slots = &self.shard.slots;
        // The stack yields the newest first: reverse it.
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

    /// Swaps reserved slots in high segments for low ones, so that the high segments can be freed.
    #[cold]
    fn lower_reserved_slots(&mut self) {
        let shard = self.shard;
        for reserved in &shard.reserved_slots {
            // Relaxed: a hint that avoids a useless swap.
            let slot = reserved.load(Ordering::Relaxed);
            if slot == NIL || !self.locked().table.free().should_replace(slot) {
                continue;
            }
            // Acquire: as when a remote scheduler takes the slot; one may have been faster.
            let slot = reserved.swap(NIL, Ordering::Acquire);
            if slot != NIL {
                self.locked().table.free_slot(slot);
                self.refill_reserved_slots();
            }
        }
    }

    /// Refills the reserved slots.
    fn refill_reserved_slots(&mut self) {
        let shard = self.shard;
        for reserved in &shard.reserved_slots {
            // Relaxed: only the guard holder fills, so an empty place stays empty.
            if reserved.load(Ordering::Relaxed) == NIL
                && let Some(slot) = self.locked().table.take_slot()
            {
                // Release: the thread that takes the slot sees it free. A store would be enough,
                // but loom does not order a store after failed swaps of the same atomic.
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
        wheel.prefetch_free();
        let n_due_before = table.n_due();
        let (job, timer) = match table.schedule_planned(wheel, job, plan, payload) {
            Ok(accepted) => accepted,
            Err(refused) => {
                self.add_pending_wakes(n_due_before);
                return Err(refused);
            }
        };
        let earlier = shard.lower_next_wake(plan.due, plan.at);
        // A job that was evicted for this one must be notified or dropped by the poller.
        let is_listed = table.n_due() > n_due_before;
        let wake_at = wake_at(is_listed, earlier);
        Ok(AcceptedJob { slot: job.slot, timer: timer.slot(), wake_at })
    }

    fn cancel(&mut self, slot: u32, now: &dyn Fn() -> TimerInstant) -> CancelOutcome<P> {
        let id = self.shard.id;
        let LockedShard { wheel, table } = self.locked();
        if table.wants_time() {
            table.observe(now());
        }
        let n_due_before = table.n_due();
        let (won, payload) = table.cancel_take(wheel, JobId { shard: id, slot });
        // The remote operation that scheduled it may still be on the stack.
        let wakes_poller = table.n_due() > n_due_before || (won && self.shard.has_remote_ops());
        CancelOutcome { won, payload, wakes_poller }
    }

    /// Completes a run. Returns the payload if the caller must drop it.
    pub(crate) fn complete(&mut self, done: CompletedRun<P>) -> Option<P> {
        let LockedShard { wheel, table } = self.locked();
        table.complete(wheel, done)
    }

    /// Completes the run of a one-shot that has succeeded and has nothing to drop.
    #[inline]
    pub(crate) fn complete_spent(&mut self, slot: u32) {
        let LockedShard { wheel, table } = self.locked();
        let payload = table.finish_job(wheel, slot, None);
        debug_assert!(payload.is_none(), "a one-shot that runs cannot be cancelled");
    }

    /// Completes the run of a delivery. Returns the payload if the caller must drop it, and the
    /// tick at which the shard must be polled, if the caller must wake the poller for that.
    pub(crate) fn complete_delivery(
        &mut self,
        returned: ReturnedDelivery<P>,
    ) -> (Option<P>, Option<Tick>) {
        let shard = self.shard;
        let LockedShard { wheel, table } = self.locked();
        let n_due_before = table.n_due();
        let (to_drop, due) = table.complete_delivery(wheel, returned);
        let earlier = due.and_then(|due| shard.lower_next_wake(due, table.now()));
        let is_listed = table.n_due() > n_due_before;
        (to_drop, wake_at(is_listed, earlier))
    }

    /// Folds into an accepted delivery the runs that have come due since it was sent, and returns
    /// their number.
    pub(crate) fn fold(&mut self, slot: u32, now: TimerInstant) -> u32 {
        self.locked().table.fold(slot, now)
    }

    /// Advances time to `to` and returns the next due item, if there is one. The flag says that the
    /// budget ended before `to` was reached.
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

    /// The next due item, without advancing time.
    pub(crate) fn next_due(&mut self, now: TimerInstant, executor: u16) -> Option<DueItem<P>> {
        let LockedShard { wheel, table } = self.locked();
        table.next_due(wheel, now, executor)
    }

    /// Publishes when the poller wakes, and releases the guard. The caller then checks
    /// [`has_remote_ops`](JobShard::has_remote_ops).
    pub(crate) fn unlock_for_sleep(mut self) -> Option<Tick> {
        if self.locked().table.free().is_sparse() {
            self.lower_reserved_slots();
        }
        let LockedShard { wheel, table } = self.locked();
        table.flush_permits_if_idle();
        let now = table.now();
        // Capped to what `next_wake` can represent: remote schedulers rely on the poller being
        // awake at the published tick.
        let far = Tick::new(now.get().saturating_add(WAKE_MAX));
        let next = table.next_wake(wheel);
        let next = next.map(|next| next.min(far));
        self.shard.set_next_wake(next, now);
        if self.locked().table.n_due() == 0 {
            // Relaxed: the guard is held. No due job is left to wake the poller for, and every poll
            // ends with waking the readers.
            self.shard.pending_wakes.store(NO_WAKES, Ordering::Relaxed);
        }
        drop(self);
        // Pairs with the fence of a remote scheduler (rule 5).
        fence(Ordering::SeqCst);
        next
    }
}

impl<P> Drop for JobShardGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `try_lock` (rule 1).
        self.shard.lock_word.store(UNLOCKED, Ordering::Release);
    }
}

impl<P> fmt::Debug for JobShard<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobShard").field("id", &self.id).finish_non_exhaustive()
    }
}
