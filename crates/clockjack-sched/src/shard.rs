//! A table of jobs that several threads share.
#![doc = include_str!("shard.md")]
#![expect(unsafe_code, reason = "wheel and table stand in a cell that the lease guards")]

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
    slots::Slots,
    table::{Done, Next, Returned, STOCK_LEN, Shared, fill},
    word::Won,
};

const OPEN: u32 = 0;
const HELD: u32 = 1;

const NOTHING: u32 = 0;
/// In `owed`: something was listed that only a turn tells or drops, and nobody was called.
const CALL: u32 = 1;
/// In `owed`: something was published, and no reader was woken.
const RING: u32 = 1 << 1;

/// Bits of a tick that `next_wake` keeps.
const WAKE_BITS: u32 = 31;
/// How far ahead `next_wake` can lie: what is further is looked at again then.
const WAKE_MAX: u64 = 1 << (WAKE_BITS - 2);
/// `next_wake` of a runner that sleeps until it is called.
const NEVER: u32 = 0;

/// How many tries of the lease come before other threads are let run.
const SPINS_MAX: u32 = if cfg!(loom) { 0 } else { 64 };

/// A job that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) slot: u32,
    /// Whether the runner sleeps longer than until it is due.
    pub(crate) calls_runner: bool,
}

/// A won or lost cancel.
pub(crate) struct Cancel<P> {
    pub(crate) won: bool,
    /// To be dropped.
    pub(crate) payload: Option<P>,
    /// Whether the runner has something to do.
    pub(crate) calls_runner: bool,
}

/// What is to be done without the lease for what was taken up with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed(u32);

impl Owed {
    pub(crate) const fn is_nothing(self) -> bool {
        self.0 == NOTHING
    }

    /// The runner is to be called.
    pub(crate) const fn calls_runner(self) -> bool {
        self.0 & CALL != 0
    }

    /// The readers of diagnostics are to be woken.
    pub(crate) const fn rings(self) -> bool {
        self.0 & RING != 0
    }
}

/// The jobs of one shard, shared by threads.
pub(crate) struct JobShard<P> {
    lease: Padded<AtomicU32>,
    next_wake: AtomicU32,
    closed: AtomicBool,
    /// What a holder owes to others for the notes that it took up: [`CALL`] and [`RING`].
    owed: AtomicU32,
    notes: ReturnStack,
    stock: [AtomicU32; STOCK_LEN as usize],
    slots: Counted<Slots<P>>,
    shared: Shared,
    id: u32,
    /// Whether the quota is shared with other shards.
    has_siblings: bool,
    core: UnsafeCell<Core<P>>,
}

/// What only the holder touches.
pub(crate) struct Core<P> {
    pub(crate) wheel: GrowingWheel<JobId>,
    pub(crate) table: JobTable<P>,
}

// SAFETY: all parts but `core` are made for sharing. `core` is touched only by the thread that has
// the lease, which is taken with acquire and given back with release (rule 1). Payloads move
// between threads with it, so `P: Send` is needed, and enough: no two threads see one at a time.
unsafe impl<P: Send> Sync for JobShard<P> {}
// SAFETY: it owns all that it has, and the payloads in it may be sent.
unsafe impl<P: Send> Send for JobShard<P> {}

impl<P> JobShard<P> {
    pub(crate) fn new(config: &SchedulerConfig, id: u32, kind: ClockKind, shared: Shared) -> Self {
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
            lease: Padded(AtomicU32::new(OPEN)),
            next_wake: AtomicU32::new(NEVER),
            closed: AtomicBool::new(false),
            owed: AtomicU32::new(NOTHING),
            notes: ReturnStack::new(),
            stock: core::array::from_fn(|_| AtomicU32::new(NIL)),
            slots: table.slots().clone(),
            shared,
            id,
            has_siblings: config.shards > 1,
            core: UnsafeCell::new(Core { wheel, table }),
        };
        if let Some(mut lease) = shard.lease() {
            lease.restock();
        }
        shard
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The right to touch wheel and table; `None` if another thread has it.
    #[inline]
    pub(crate) fn lease(&self) -> Option<JobLease<'_, P>> {
        if mutant!("jobs-lease-by-store") {
            if self.lease.load(Ordering::Acquire) == HELD {
                return None;
            }
            self.lease.store(HELD, Ordering::Release);
        } else {
            // Acquire pairs with the release in the drop of a lease (rule 1).
            self.lease.compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Relaxed).ok()?;
        }
        let mut lease = JobLease { shard: self };
        if !self.notes.is_empty() {
            let left = lease.core().table.n_due();
            lease.take_up();
            lease.note_owed(left);
        }
        Some(lease)
    }

    /// The lease, waited for: the holder does bounded work. `relax` lets other threads run.
    pub(crate) fn lease_wait(&self, relax: &dyn Fn()) -> JobLease<'_, P> {
        let lease = self.lease_while(&|| {
            relax();
            true
        });
        lease.expect("it is waited for until it is there")
    }

    /// The lease, waited for as long as `waits` does and says so; `None` then.
    fn lease_while(&self, waits: &dyn Fn() -> bool) -> Option<JobLease<'_, P>> {
        let mut spins = SPINS_MAX;
        loop {
            if let Some(lease) = self.lease() {
                return Some(lease);
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
    ) -> Result<Accepted, ScheduleError<P>> {
        if let Some(mut lease) = self.lease() {
            return lease.schedule(job, plan, payload);
        }
        self.post(job, plan, payload, waits)
    }

    /// As [`schedule`](Self::schedule), with the lease and not by a note.
    fn schedule_leased(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<Accepted, ScheduleError<P>> {
        match self.lease_while(waits) {
            Some(mut lease) => lease.schedule(job, plan, payload),
            None => Err(ScheduleError::new(ScheduleErrorKind::CapacityExceeded, payload)),
        }
    }

    /// Rule 3.
    #[cold]
    fn post(
        &self,
        job: &JobSpec,
        plan: Plan,
        payload: P,
        waits: &dyn Fn() -> bool,
    ) -> Result<Accepted, ScheduleError<P>> {
        // Relaxed: what is missed here is found below.
        if self.closed.load(Ordering::Relaxed) {
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, payload));
        }
        let Some(slot) = self.take_stock() else {
            return self.schedule_leased(job, plan, payload, waits);
        };
        let pay = || self.shared.quota.take_one(job.policy.priority);
        if let Err(kind) = pay()
            && let Err(kind) = self.shared.pay_again(kind, plan.at, pay)
        {
            self.give_stock_back(slot);
            if self.has_siblings {
                // This shard may have credits of its own left, which the holder spends.
                return self.schedule_leased(job, plan, payload, waits);
            }
            self.shared.note_refusal(kind);
            return Err(ScheduleError::new(kind, payload));
        }
        let at = self.slots.get(slot);
        let body = fill(job, plan);
        // SAFETY: the slot came out of the stock by a swap, so it is this thread's alone until the
        // push; one call at a time.
        unsafe { at.body(|place| *place = body) };
        // SAFETY: as above.
        unsafe { at.payload(|place| *place = Some(payload)) };
        at.word.publish(plan.mode != BatchMode::OneShot, job, true);
        self.notes.push(slot, &*self.slots);
        // Pairs with the fences of the closer and of the runner (rules 5 and 6).
        if !mutant!("jobs-post-no-fence") {
            fence(Ordering::SeqCst);
        }
        // Relaxed: the fence has ordered it.
        let is_closed = self.closed.load(Ordering::Relaxed) && !mutant!("jobs-post-no-recheck");
        if is_closed && at.word.withdraw() {
            // SAFETY: the job was not accepted, and nobody takes it up any more: the payload is
            // this thread's again.
            let payload = unsafe { at.payload(Option::take) };
            self.shared.quota.give_one();
            self.unpin(slot, 2);
            let Some(payload) = payload else { unreachable!("it was put there above") };
            return Err(ScheduleError::new(ScheduleErrorKind::Closed, payload));
        }
        Ok(Accepted { slot, calls_runner: self.is_before_wake(plan.due) })
    }

    fn take_stock(&self) -> Option<u32> {
        self.stock.iter().find_map(|place| {
            // Relaxed: a hint that spares the swap.
            if place.load(Ordering::Relaxed) == NIL {
                return None;
            }
            if mutant!("jobs-stock-by-load") {
                let slot = place.load(Ordering::Acquire);
                place.store(NIL, Ordering::Release);
                return (slot != NIL).then_some(slot);
            }
            // Acquire: pairs with the store of the holder that put it there.
            Some(place.swap(NIL, Ordering::Acquire)).filter(|slot| *slot != NIL)
        })
    }

    /// A slot that was not used goes where freed ones go.
    #[cold]
    fn give_stock_back(&self, slot: u32) {
        self.slots.get(slot).word.note_free();
        self.notes.push(slot, &*self.slots);
    }

    /// Cancels a job that the caller has a handle of. Rule 4.
    pub(crate) fn cancel(&self, slot: u32, now: &dyn Fn() -> TimerInstant) -> Cancel<P> {
        if let Some(mut lease) = self.lease() {
            return lease.cancel(slot, now);
        }
        let won = self.slots.get(slot).word.cancel(true);
        if won == Some(Won::Waiting { push: true }) {
            self.notes.push(slot, &*self.slots);
        }
        // Also if the note of its post is there still: the poster may not have called.
        let calls_runner = match won {
            Some(Won::Waiting { push }) => push || !mutant!("jobs-cancelled-post-uncalled"),
            _ => false,
        };
        Cancel { won: won.is_some(), payload: None, calls_runner }
    }

    /// Decides whether a parcel that the caller has is opened, or was cancelled.
    pub(crate) fn open(&self, slot: u32) -> bool {
        self.slots.get(slot).word.open()
    }

    /// Where a job is that the caller has a handle or a parcel of.
    pub(crate) fn state(&self, slot: u32) -> JobState {
        self.slots.get(slot).word.look().state()
    }

    pub(crate) fn mark_run_on_close(&self, slot: u32) -> bool {
        self.slots.get(slot).word.mark_run_on_close()
    }

    /// One more handle of a job that the caller has one of.
    pub(crate) fn pin(&self, slot: u32) {
        self.slots.get(slot).word.pin();
    }

    /// Handles fewer. Rule 7.
    pub(crate) fn unpin(&self, slot: u32, pins: u32) {
        if !self.slots.get(slot).word.unpin(pins) {
            return;
        }
        if let Some(mut lease) = self.lease() {
            lease.core().table.free_slot(slot);
        } else {
            self.slots.get(slot).word.note_free();
            self.notes.push(slot, &*self.slots);
        }
    }

    /// Rule 6: from here on nothing is accepted.
    pub(crate) fn close(&self, relax: &dyn Fn()) -> JobLease<'_, P> {
        // Relaxed: the fence orders it.
        self.closed.store(true, Ordering::Relaxed);
        // Pairs with the fence of a poster.
        if !mutant!("jobs-close-no-fence") {
            fence(Ordering::SeqCst);
        }
        let mut lease = self.lease_wait(relax);
        lease.core().table.close();
        lease
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: who must know exactly has the lease.
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether notes were left since the lease was last taken. To be asked after a fence (rule 5).
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// What holders owe, which is the caller's to do from here on.
    #[inline]
    pub(crate) fn take_owed(&self) -> Owed {
        // Relaxed, twice: who owes it asks behind its lease, and if another is faster then that
        // one does it.
        if self.owed.load(Ordering::Relaxed) == NOTHING {
            return Owed(NOTHING);
        }
        Owed(self.owed.swap(NOTHING, Ordering::Relaxed))
    }

    /// How many slots are in stock.
    pub(crate) fn n_stock(&self) -> usize {
        // Relaxed: a count.
        self.stock.iter().filter(|place| place.load(Ordering::Relaxed) != NIL).count()
    }

    pub(crate) fn n_notes(&self) -> usize {
        self.notes.depth()
    }

    /// Whether a deadline comes before the runner wakes by itself.
    fn is_before_wake(&self, due: Tick) -> bool {
        // Relaxed: the caller has the lease, or a fence behind its push.
        let wake = self.next_wake.load(Ordering::Relaxed);
        wake == NEVER || wake_behind(wake, due) > 0
    }

    /// Publishes when the runner wakes, with the lease held; and says it.
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
pub(crate) struct JobLease<'s, P> {
    shard: &'s JobShard<P>,
}

impl<P> JobLease<'_, P> {
    #[inline(always)]
    pub(crate) fn core(&mut self) -> &mut Core<P> {
        let core = self.shard.core.with_mut(|core| core);
        // SAFETY: this thread has the lease, so no other has a reference into the core, and
        // `&mut self` makes this the only one that came from this lease.
        unsafe { &mut *core }
    }

    /// Notes that a call is owed if more is listed than was, and a ring if a reader waits for one.
    fn note_owed(&mut self, left: usize) {
        let is_listed = self.core().table.n_due() > left && !mutant!("jobs-listed-uncalled");
        let is_told = self.shard.shared.hub.is_due() && !mutant!("jobs-taken-up-in-silence");
        let owed = if is_listed { CALL } else { NOTHING } | if is_told { RING } else { NOTHING };
        if owed != NOTHING {
            // Relaxed: see `take_owed`.
            self.shard.owed.fetch_or(owed, Ordering::Relaxed);
        }
    }

    /// Rule 2.
    fn take_up(&mut self) {
        let slots = &self.shard.slots;
        if mutant!("jobs-notes-newest-first") {
            for slot in self.shard.notes.drain(&**slots) {
                let Core { wheel, table } = self.core();
                table.take_up(wheel, slot);
            }
            return self.restock();
        }
        // The stack gives the newest first.
        let mut oldest = NIL;
        for slot in self.shard.notes.drain(&**slots) {
            slots.set_next(slot, oldest);
            oldest = slot;
        }
        while oldest != NIL {
            let slot = oldest;
            oldest = self.shard.slots.next(slot);
            let Core { wheel, table } = self.core();
            table.take_up(wheel, slot);
        }
        self.restock();
    }

    /// Slots that were put in stock when many jobs lived keep the segments that were made for
    /// those: they are traded for lower ones.
    #[cold]
    fn lower_stock(&mut self) {
        let shard = self.shard;
        for place in &shard.stock {
            // Relaxed: a hint that spares the swap.
            let slot = place.load(Ordering::Relaxed);
            if slot == NIL || !self.core().table.free().wants_back(slot) {
                continue;
            }
            // Acquire: as a poster takes it, and one may have been faster.
            let slot = place.swap(NIL, Ordering::Acquire);
            if slot != NIL {
                self.core().table.free_slot(slot);
                self.restock();
            }
        }
    }

    /// Fills the stock up.
    fn restock(&mut self) {
        let shard = self.shard;
        for place in &shard.stock {
            // Relaxed: only the holder puts in, so what is empty stays so.
            if place.load(Ordering::Relaxed) == NIL
                && let Some(slot) = self.core().table.take_slot()
            {
                // Release: the slot is free as its taker sees it. A swap, though a store would do:
                // the model checker orders a store beside swaps that found nothing in no way.
                let before = place.swap(slot, Ordering::Release);
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
    ) -> Result<Accepted, ScheduleError<P>> {
        let shard = self.shard;
        let Core { wheel, table } = self.core();
        let left = table.n_due();
        let (job, due) = match table.schedule_planned(wheel, job, plan, payload) {
            Ok(accepted) => accepted,
            Err(refused) => {
                self.note_owed(left);
                return Err(refused);
            }
        };
        let is_earlier = shard.is_before_wake(due);
        if is_earlier {
            shard.set_next_wake(Some(due), table.now());
        }
        // One that had to go for this one is to be told, or dropped.
        let calls_runner = is_earlier || table.n_due() > left;
        Ok(Accepted { slot: job.slot, calls_runner })
    }

    fn cancel(&mut self, slot: u32, now: &dyn Fn() -> TimerInstant) -> Cancel<P> {
        let id = self.shard.id;
        let Core { wheel, table } = self.core();
        if table.wants_time() {
            table.observe(now());
        }
        let left = table.n_due();
        let (won, payload) = table.cancel_take(wheel, JobId { shard: id, slot });
        // Its post may lie on the stack still.
        let calls_runner = table.n_due() > left || (won && self.shard.has_notes());
        Cancel { won, payload, calls_runner }
    }

    /// Completes a run. Gives what is to be dropped.
    pub(crate) fn complete(&mut self, done: Done<P>) -> Option<P> {
        let Core { wheel, table } = self.core();
        table.complete(wheel, done)
    }

    /// A parcel has come back, which completes its run. Gives what is to be dropped, and whether
    /// the runner sleeps longer than it may now.
    pub(crate) fn receive(&mut self, returned: Returned<P>) -> (Option<P>, bool) {
        let shard = self.shard;
        let Core { wheel, table } = self.core();
        let left = table.n_due();
        let (ended, due) = table.receive(wheel, returned);
        // Rule 5.
        let is_earlier = due.is_some_and(|due| shard.is_before_wake(due));
        if is_earlier {
            shard.set_next_wake(due, table.now());
        }
        (ended, (is_earlier || table.n_due() > left) && !mutant!("parcel-back-uncalled"))
    }

    /// A parcel was opened: how many further runs of its job have come due, which it stands for
    /// too.
    pub(crate) fn fold(&mut self, slot: u32, now: TimerInstant) -> u32 {
        self.core().table.fold(slot, now)
    }

    /// Moves time to `to`, and gives what is due next, if anything is. The flag says that there is
    /// more to be moved.
    pub(crate) fn advance(
        &mut self,
        to: TimerInstant,
        now: TimerInstant,
        budget: usize,
        executor: u16,
    ) -> (Option<Next<P>>, bool) {
        let Core { wheel, table } = self.core();
        let more = table.expire_due(wheel, to, budget);
        (table.next_due(wheel, now, executor), more)
    }

    /// What is due next, without moving time.
    pub(crate) fn next_due(&mut self, now: TimerInstant, executor: u16) -> Option<Next<P>> {
        let Core { wheel, table } = self.core();
        table.next_due(wheel, now, executor)
    }

    /// Publishes when the runner wakes, and opens the lease. The caller looks at the notes then
    /// ([`has_notes`](JobShard::has_notes)).
    pub(crate) fn retire(mut self) -> Option<Tick> {
        if self.core().table.free().is_sparse() && !mutant!("jobs-stock-kept-high") {
            self.lower_stock();
        }
        let Core { wheel, table } = self.core();
        table.settle_if_idle();
        let now = table.now();
        // Cut as it is published: posters count on the runner to be awake then.
        let far = Tick::new(now.get().saturating_add(WAKE_MAX));
        let next = table.next_look(wheel);
        let next = if mutant!("jobs-wake-uncut") { next } else { next.map(|next| next.min(far)) };
        self.shard.set_next_wake(next, now);
        if self.core().table.n_due() == 0 {
            // Relaxed: the lease is held, nothing is left to be called for, and a turn ends with a
            // ring.
            self.shard.owed.store(NOTHING, Ordering::Relaxed);
        }
        drop(self);
        // Pairs with the fence of a poster (rule 5).
        if !mutant!("jobs-retire-no-fence") {
            fence(Ordering::SeqCst);
        }
        next
    }
}

impl<P> Drop for JobLease<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `lease` (rule 1).
        self.shard.lease.store(OPEN, Ordering::Release);
    }
}

impl<P> fmt::Debug for JobShard<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobShard").field("id", &self.id).finish_non_exhaustive()
    }
}
