//! A worker: what other threads see of a worker.
//!
//! Everything in it is atomic but the ring's owner, which belongs to the worker that sits there. It
//! outlives its workers, so that whoever looks at one finds something.
#![expect(
    unsafe_code,
    reason = "keeps an runnable in an atomic pointer, and a ring for its worker"
)]

use core::ptr::{self, NonNull};

use clockjack_sync::{
    mutant,
    prim::{
        self,
        atomic::{
            AtomicPtr, AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    ring::{Owner, Thief},
};

use clockjack_time::Tick;

use crate::{
    stats::ExecStats,
    task::{Header, Runnable},
};

/// The worker is to leave.
pub(super) const STOP: u32 = 1;
/// The worker is to look at its timers now.
pub(super) const POLL: u32 = 2;
/// The worker has seen that it is to leave, and cannot be called back.
pub(super) const STOPPED: u32 = 4;

/// A shared for a worker: what others see of it. It outlives the workers that occupy in it.
pub(crate) struct WorkerShared {
    pub(super) lifo: AtomicPtr<Header>,
    pub(super) flags: AtomicU32,
    /// Steps begun; odd while one is under way. For who watches for stuck workers.
    pub(super) poll_count: AtomicU32,
    /// The index of the process that is being stepped.
    pub(super) current_task: AtomicU32,
    /// The step that the watchdog found to take too long; even if none.
    pub(super) stuck: AtomicU32,
    pub(super) thief: Thief<Runnable>,
    /// The other end of `thief`, while nobody sits here.
    pub(super) ring: prim::UnsafeCell<Option<Owner<Runnable>>>,
    pub(super) is_occupied: AtomicU32,
    /// The tick at which the worker looked at the clock last.
    now: AtomicU64,
    pub(super) counts: Counts,
}

/// Written by the worker alone.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) spawned: AtomicU64,
    pub(super) finished: AtomicU64,
    pub(super) steps: AtomicU64,
    pub(super) stolen: AtomicU64,
    pub(super) parked: AtomicU64,
    pub(super) fired: AtomicU64,
    pub(super) lateness_max: AtomicU64,
}

/// Adds to a counter that only this thread writes.
pub(super) fn count(counter: &AtomicU64, n: u64) {
    // Relaxed: a statistic, with one writer.
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

// SAFETY: all is atomic but the ring, which belongs to whoever has set `is_occupied`.
unsafe impl Sync for WorkerShared {}
// SAFETY: as above; runnables are `Send`.
unsafe impl Send for WorkerShared {}

impl WorkerShared {
    pub(crate) fn new() -> Self {
        let ring = Owner::new();
        Self {
            lifo: AtomicPtr::new(ptr::null_mut()),
            flags: AtomicU32::new(0),
            poll_count: AtomicU32::new(0),
            current_task: AtomicU32::new(0),
            stuck: AtomicU32::new(0),
            thief: ring.thief(),
            ring: prim::UnsafeCell::new(Some(ring)),
            is_occupied: AtomicU32::new(0),
            now: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// Publishes the time of the worker's poll_count.
    pub(super) fn set_now(&self, now: Tick) {
        // Relaxed: for statistics and coarse limits; nothing is published with it.
        self.now.store(now.get(), Relaxed);
    }

    pub(crate) fn coarse_now(&self) -> u64 {
        // Relaxed: as above.
        self.now.load(Relaxed)
    }

    pub(crate) fn count_spawned(&self) {
        count(&self.counts.spawned, 1);
    }

    pub(crate) fn count_finished(&self) {
        count(&self.counts.finished, 1);
    }

    pub(crate) fn add_finished(&self, stats: &mut ExecStats) {
        // Relaxed: statistics, here and below.
        stats.finished += self.counts.finished.load(Relaxed);
    }

    pub(crate) fn add_spawned(&self, stats: &mut ExecStats) {
        stats.spawned += self.counts.spawned.load(Relaxed);
    }

    pub(crate) fn add_to(&self, stats: &mut ExecStats) {
        let counts = &self.counts;
        stats.steps += counts.steps.load(Relaxed);
        stats.stolen += counts.stolen.load(Relaxed);
        stats.parked += counts.parked.load(Relaxed);
        stats.timers_fired += counts.fired.load(Relaxed);
        stats.lateness_max_ticks = stats.lateness_max_ticks.max(counts.lateness_max.load(Relaxed));
    }

    /// The step that is under way, if there is one: the same number means the same step.
    pub(crate) fn current_poll(&self) -> Option<u32> {
        // Relaxed: a hint for who watches.
        let poll_count = self.poll_count.load(Relaxed);
        (poll_count % 2 == 1).then_some(poll_count)
    }

    /// Changes with every step, at its beginning and at its end.
    pub(crate) fn poll_count(&self) -> u32 {
        // Relaxed: as above.
        self.poll_count.load(Relaxed)
    }

    /// The index of the process that is being stepped, if `current_poll` says that one is.
    pub(crate) fn current_task(&self) -> u32 {
        // Relaxed: as above.
        self.current_task.load(Relaxed)
    }

    /// Marks a step as one that takes too long.
    pub(crate) fn mark_stuck(&self, step: u32) {
        // Relaxed: a hint for who searches.
        self.stuck.store(step, Relaxed);
    }

    /// Whether the step under way was marked.
    pub(super) fn is_stuck(&self) -> bool {
        // Relaxed: as above.
        self.current_poll().is_some_and(|step| step == self.stuck.load(Relaxed))
    }

    /// Asks the worker to look at its timers.
    pub(crate) fn request_poll(&self) {
        // Release: pairs with the acquire of the worker's look at its flags.
        self.flags.fetch_or(POLL, Release);
    }

    /// Asks the worker to leave.
    pub(crate) fn request_stop(&self) {
        // Release: as above.
        self.flags.fetch_or(STOP, Release);
    }

    /// Takes back that the worker is to leave; false if it is on its way already.
    pub(crate) fn withdraw_stop(&self) -> bool {
        let stay = |flags| (flags & STOPPED == 0).then_some(flags & !STOP);
        // Relaxed: nothing is published, and both sides go by the one word.
        self.flags.fetch_update(Relaxed, Relaxed, stay).is_ok()
    }

    /// The worker has left: what was asked of it does not concern the next one. That it left stays
    /// until that one sits, so that nobody calls back who is gone.
    pub(super) fn leave(&self) {
        // Relaxed: nothing is published; the worker is given up by `is_occupied`.
        self.flags.store(if mutant!("seat-forgets-who-left") { 0 } else { STOPPED }, Relaxed);
    }

    /// A worker sits down. What was asked of the worker since the last one left is for it.
    pub(super) fn occupy(&self) {
        // Relaxed: as above.
        self.flags.fetch_and(!STOPPED, Relaxed);
    }

    /// Whether the worker accept_stop, which it does if it is still asked to.
    pub(super) fn accept_stop(&self) -> bool {
        let leave = |flags| (flags & STOP != 0).then_some(flags | STOPPED);
        // Acquire: pairs with whoever asked. Relaxed otherwise: as above.
        self.flags.fetch_update(Acquire, Relaxed, leave).is_ok()
    }

    pub(crate) fn is_occupied(&self) -> bool {
        // Acquire: pairs with the release of a leaving worker.
        self.is_occupied.load(Acquire) != 0
    }

    /// Whether a worker sits here that was not asked to leave.
    pub(crate) fn has_worker(&self) -> bool {
        // Relaxed: a number for guesses, old when it is read; nothing is published with it.
        self.is_occupied() && self.flags.load(Relaxed) & (STOP | STOPPED) == 0
    }

    pub(super) fn has_requests(&self) -> bool {
        // Relaxed: behind the fence of the announcement to park.
        self.flags.load(Relaxed) != 0
    }

    /// Takes what is in the LIFO slot.
    #[inline]
    pub(super) fn take_lifo(&self) -> Option<Runnable> {
        // Relaxed: a first look, which saves the exchange.
        if self.lifo.load(Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the release of whoever put it there, if that was another worker in
        // this worker before. Release: for the watchdog's last look.
        let header = self.lifo.swap(ptr::null_mut(), AcqRel);
        // SAFETY: what is in the slot came from `Runnable::into_raw`, and the swap took it out.
        NonNull::new(header).map(|header| unsafe { Runnable::from_raw(header) })
    }

    /// Whether there is something that this worker's worker ought to have taken, looked at by a
    /// read-modify-write.
    pub(crate) fn has_lifo(&self) -> bool {
        let null = ptr::null_mut();
        // AcqRel: the last look of who watches pairs with the swap into the slot.
        self.lifo.compare_exchange(null, null, AcqRel, Acquire).is_err()
    }

    pub(crate) fn has_ring(&self) -> bool {
        !self.thief.is_empty()
    }
}
