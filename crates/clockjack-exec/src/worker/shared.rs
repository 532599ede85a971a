//! The part of a worker that other threads see.
//!
//! Everything in it is atomic except the ring's owner, which belongs to the thread that occupies
//! the slot. A slot outlives the workers that occupy it one after the other, so that other threads
//! can always read it.
#![expect(unsafe_code, reason = "keeps a runnable in an atomic pointer, and a ring for its worker")]

use core::ptr::{self, NonNull};

use clockjack_sync::{
    primitive::{
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
    stats::{ExecStats, LATENESS_BUCKETS},
    task::{Header, Runnable},
};

/// The worker is asked to stop.
pub(super) const STOP: u32 = 1;
/// The worker is asked to poll its timers now.
pub(super) const POLL: u32 = 2;
/// The last worker has accepted its request to stop, and no successor occupies the slot yet.
pub(super) const STOPPED: u32 = 4;

/// `current_task` of a worker that polls a shard of the source.
pub(super) const NO_TASK: u32 = u32::MAX;

/// The slot of a worker: what other threads see of it. It outlives the workers that occupy it.
pub(crate) struct WorkerShared {
    pub(super) lifo: AtomicPtr<Header>,
    pub(super) flags: AtomicU32,
    /// Begins and ends of polls; odd during a poll. For the watchdog.
    pub(super) poll_count: AtomicU32,
    /// The registry index of the task that is being polled, or [`NO_TASK`].
    pub(super) current_task: AtomicU32,
    /// The poll that the watchdog has found to take too long; even if there is none.
    pub(super) stuck: AtomicU32,
    pub(super) thief: Thief<Runnable>,
    /// The other end of `thief`, while no worker occupies the slot.
    pub(super) ring: primitive::UnsafeCell<Option<Owner<Runnable>>>,
    pub(super) is_occupied: AtomicU32,
    /// 1 from the moment at which the worker's thread goes to sleep until the thread runs again: a
    /// thread that was woken and waits for a CPU is still asleep.
    is_asleep: AtomicU32,
    /// The tick at which the worker last read the clock.
    now: AtomicU64,
    pub(super) counts: Counts,
}

/// Written only by the worker.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) spawned: AtomicU64,
    pub(super) finished: AtomicU64,
    pub(super) steps: AtomicU64,
    pub(super) stolen: AtomicU64,
    pub(super) parked: AtomicU64,
    pub(super) fired: AtomicU64,
    pub(super) lateness_max: AtomicU64,
    rescheduled: AtomicU64,
    /// The timers that were late, as in [`ExecStats::timers_by_lateness`].
    late: [AtomicU64; LATENESS_BUCKETS - 1],
    /// How long a poll takes on average, including the search for the next task.
    pub(super) poll_nanos: AtomicU64,
    pub(super) parked_nanos: AtomicU64,
}

/// Adds to a counter that only this thread writes.
pub(super) fn count(counter: &AtomicU64, n: u64) {
    // Relaxed: a statistic, with one writer.
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

// SAFETY: everything is atomic except the ring, which belongs to the thread that has set
// `is_occupied`.
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
            ring: primitive::UnsafeCell::new(Some(ring)),
            is_occupied: AtomicU32::new(0),
            is_asleep: AtomicU32::new(0),
            now: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// Publishes the time that the worker has read.
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

    /// Counts a timer that fired so many ticks late.
    #[cold]
    pub(super) fn count_late(&self, ticks: u64) {
        let bucket = ticks.ilog2() as usize;
        count(&self.counts.late[bucket.min(LATENESS_BUCKETS - 2)], 1);
    }

    pub(crate) fn count_rescheduled(&self) {
        count(&self.counts.rescheduled, 1);
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
        stats.timers_rescheduled += counts.rescheduled.load(Relaxed);
        let mut n_late = 0;
        for (sum, late) in stats.timers_by_lateness[1..].iter_mut().zip(&counts.late) {
            let late = late.load(Relaxed);
            *sum += late;
            n_late += late;
        }
        stats.timers_by_lateness[0] += counts.fired.load(Relaxed).saturating_sub(n_late);
        stats.lateness_max_ticks = stats.lateness_max_ticks.max(counts.lateness_max.load(Relaxed));
    }

    /// A poll of this task begins, or of the source.
    #[inline]
    pub(super) fn begin_poll(&self, task: u32) {
        // Relaxed: a hint for the watchdog.
        self.current_task.store(task, Relaxed);
        self.poll_count.store(self.poll_count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    #[inline]
    pub(super) fn end_poll(&self) {
        // Relaxed: as above.
        self.poll_count.store(self.poll_count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The current poll, if there is one: the same number means the same poll.
    pub(crate) fn current_poll(&self) -> Option<u32> {
        // Relaxed: a hint for the watchdog.
        let poll_count = self.poll_count.load(Relaxed);
        (poll_count % 2 == 1).then_some(poll_count)
    }

    /// Changes at the beginning and at the end of every poll.
    pub(crate) fn poll_count(&self) -> u32 {
        // Relaxed: as above.
        self.poll_count.load(Relaxed)
    }

    /// The registry index of the task that is being polled, if there is a `current_poll`.
    pub(crate) fn current_task(&self) -> u32 {
        // Relaxed: as above.
        self.current_task.load(Relaxed)
    }

    /// Marks a poll as one that takes too long.
    pub(crate) fn mark_stuck(&self, step: u32) {
        // Relaxed: a hint for workers that search.
        self.stuck.store(step, Relaxed);
    }

    /// Whether the current poll was marked.
    pub(super) fn is_stuck(&self) -> bool {
        // Relaxed: as above.
        self.current_poll().is_some_and(|step| step == self.stuck.load(Relaxed))
    }

    /// Asks the worker to poll its timers.
    pub(crate) fn request_poll(&self) {
        // Release: pairs with the acquire by which the worker reads its flags.
        self.flags.fetch_or(POLL, Release);
    }

    /// Asks the worker to stop.
    pub(crate) fn request_stop(&self) {
        // Release: as above.
        self.flags.fetch_or(STOP, Release);
    }

    /// Withdraws the request to stop; false if the worker has accepted it already. STOP alone
    /// decides: next to STOPPED it is a request to a successor that still waits for the slot.
    pub(crate) fn withdraw_stop(&self) -> bool {
        let stay = |flags| (flags & STOP != 0).then_some(flags & !STOP);
        // Relaxed: nothing is published, and both sides decide by this one word.
        self.flags.fetch_update(Relaxed, Relaxed, stay).is_ok()
    }

    /// A worker occupies the slot. A request since the last worker accepted its stop is for this
    /// one.
    pub(super) fn occupy(&self) {
        // Relaxed: as above; `is_occupied` has acquired the slot.
        self.flags.fetch_and(!STOPPED, Relaxed);
    }

    /// Accepts the request to stop, if it was not withdrawn; returns whether the worker stops.
    pub(super) fn accept_stop(&self) -> bool {
        let leave = |flags| (flags & STOP != 0).then_some((flags & !STOP) | STOPPED);
        // Acquire: pairs with the release of the requesting thread. Relaxed otherwise: as above.
        self.flags.fetch_update(Acquire, Relaxed, leave).is_ok()
    }

    pub(crate) fn is_occupied(&self) -> bool {
        // Acquire: pairs with the release of a worker that stops.
        self.is_occupied.load(Acquire) != 0
    }

    /// Calls a function in which the thread of the worker sleeps.
    pub(super) fn while_asleep(&self, sleep: impl FnOnce()) {
        // Relaxed: for reports; nothing is published with it.
        self.is_asleep.store(1, Relaxed);
        sleep();
        self.is_asleep.store(0, Relaxed);
    }

    /// Whether the thread of a worker here runs code: a step, a waker, or its own.
    pub(crate) fn is_awake(&self) -> bool {
        // Relaxed: as above.
        self.is_occupied() && self.is_asleep.load(Relaxed) == 0
    }

    /// Whether a worker runs here that was not asked to stop.
    pub(crate) fn has_worker(&self) -> bool {
        // Relaxed: an estimate, out of date when it is read; nothing is published with it.
        self.is_occupied() && self.flags.load(Relaxed) & (STOP | STOPPED) == 0
    }

    pub(super) fn has_requests(&self) -> bool {
        // Relaxed: behind the fence of the announcement to park.
        self.flags.load(Relaxed) != 0
    }

    /// Takes the task in the LIFO slot.
    #[inline]
    pub(super) fn take_lifo(&self) -> Option<Runnable> {
        // Relaxed: a first check, which saves the exchange.
        if self.lifo.load(Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the release of the thread that put the task there, if that was an
        // earlier worker in this slot. Release: for the watchdog's last check.
        let header = self.lifo.swap(ptr::null_mut(), AcqRel);
        // SAFETY: what is in the slot came from `Runnable::into_raw`, and the swap took it out.
        NonNull::new(header).map(|header| unsafe { Runnable::from_raw(header) })
    }

    /// Whether there is a task in the LIFO slot; checked by a read-modify-write.
    pub(crate) fn has_lifo(&self) -> bool {
        let null = ptr::null_mut();
        // AcqRel: the watchdog's last check pairs with the swap into the slot.
        self.lifo.compare_exchange(null, null, AcqRel, Acquire).is_err()
    }

    pub(crate) fn has_ring(&self) -> bool {
        !self.thief.is_empty()
    }
}
