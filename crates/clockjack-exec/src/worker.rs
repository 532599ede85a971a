//! A worker of a pool: where it finds work, in which order, and when it sleeps.
//!
//! # Where it looks
//!
//! 1. Its LIFO slot, three times in a row at the most: what the last step woke is still in the
//!    cache.
//! 2. Its ring, oldest first.
//! 3. Every *n* steps, before the two: its timers and the injector. *n* is tuned so that about
//!    200 µs lie between two such looks; no steal resets the count.
//! 4. The injector: one, and up to sixteen more into its ring.
//! 5. Other workers, from a random one on, each once: half of its ring.
//! 6. As a last resort the timers that are overdue elsewhere, and the LIFO slot of a worker that
//!    has been in the same step for longer than the watchdog allows.
//!
//! Having found nothing it looks again: four times at once, twelve times after letting others run;
//! then it parks. Only half of the workers search at a time; [`Idle`](crate::idle::Idle) has the
//! protocol by which none sleeps while there is work, and no timer is slept through. Random numbers
//! are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! # What others may touch
//!
//! Of a worker everything: it is made of atomics. Of a [`WorkerLocal`] nothing: it is on the stack of
//! the worker's thread, which reaches it through its toolbox.
#![expect(unsafe_code, reason = "a worker has its ring and its cache to itself")]

mod local;
pub mod manual;
mod shared;

use core::{
    cell::{Cell, UnsafeCell},
    ptr::NonNull,
};

use clockjack_sync::{
    injector::BATCH_MAX,
    mpsc::Pop,
    mutant,
    prim::{
        atomic::Ordering::{Acquire, Relaxed, Release},
        hint,
    },
    ring::{Owner, Steal},
    splitmix,
};
use clockjack_time::Tick;

pub use self::local::WorkerLocal;
pub(crate) use self::shared::WorkerShared;
use self::shared::{POLL, STOP, count};
use crate::{
    executor::ExecutorShared,
    executor_ref::{ExecutorRef, RefCache},
    task::{Header, Runnable},
    timer_action::DeferredActions,
};

/// How often in a row the LIFO slot goes first.
const LIFO_RUN_MAX: u8 = 3;
/// Searches without a pause, and all together.
const SPINS_TIGHT: u32 = 4;
const SPINS_MAX: u32 = 16;
/// Steps between two looks at timers and injector.
const INTERVAL_START: u32 = 61;
const INTERVAL_MIN: u32 = 2;
const INTERVAL_MAX: u32 = 127;
/// The time that should lie between two such looks.
const INTERVAL_NANOS: u64 = 200_000;
/// How many timers one look fires at the most; the rest follows after a few steps.
const TIMERS_PER_POLL: usize = 256;

/// Works in a worker until it is asked to leave. Called by the thread that is to be the worker.
///
/// # Panics
/// If the worker is taken, or there is none of that number.
#[doc(hidden)]
pub fn run_worker(executor: &ExecutorShared, worker: usize) {
    run_worker_with(executor, worker, || ());
}

/// The same, and calls `seated` when the worker has its worker and its timers, before it does
/// anything.
///
/// # Panics
/// If the worker is taken, or there is none of that number.
#[doc(hidden)]
pub fn run_worker_with(executor: &ExecutorShared, worker: usize, seated: impl FnOnce()) {
    // Beside the worker and not in it: this thread reaches it through its toolbox too, while the
    // worker is borrowed for good.
    let local = occupy_slot(executor, worker);
    let mut worker = Worker::new(executor, &local);
    let entered = EnterGuard { executor, before: executor.toolbox().enter(&raw const local) };
    seated();
    worker.run();
    worker.leave();
    drop(entered);
    // Not before: what was dropped until now went into it.
    ExecutorRef::take_back(executor, &local.ref_cache);
}

/// Makes this thread what it was before it became a worker. By a panic of the worker, too: what is
/// dropped then would look at what is gone. The ref_cache is lost in that case, and the executor stays.
struct EnterGuard<'e> {
    executor: &'e ExecutorShared,
    before: *const WorkerLocal,
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        self.executor.toolbox().enter(self.before);
    }
}

/// Takes a worker, with its ring and a shard.
fn occupy_slot(executor: &ExecutorShared, worker: usize) -> WorkerLocal {
    let shared = &*executor.workers[worker];
    // Acquire: pairs with the release of the worker that left.
    let was_taken = shared.is_occupied.swap(1, Acquire);
    assert_eq!(was_taken, 0, "worker {worker} is taken");
    // SAFETY: this thread has just taken the worker.
    let ring = shared.ring.with_mut(|ring| unsafe { (*ring).take() });
    let ring = ring.expect("a worker that left gave the ring back");
    if mutant!("worker-forgets-request") {
        shared.flags.store(0, Relaxed);
    }
    shared.occupy();
    WorkerLocal {
        executor,
        index: worker,
        local_shard: Cell::new(executor.shards.attach(worker)),
        is_firing: Cell::new(false),
        ring: UnsafeCell::new(ring),
        cache: UnsafeCell::new(executor.cache()),
        ref_cache: RefCache::default(),
        lazy_cancels: UnsafeCell::default(),
    }
}

struct Worker<'e> {
    executor: &'e ExecutorShared,
    shared: &'e WorkerShared,
    local: &'e WorkerLocal,
    /// The process whose poll_count it is.
    running: Cell<Option<NonNull<Header>>>,
    is_searching: bool,
    lifo_run: u8,
    /// Steps until the next look at timers and injector, out of `interval`.
    countdown: u32,
    interval: u32,
    /// When the last such look was.
    maintained_at: u64,
    /// How long a step takes, about.
    poll_nanos: u64,
    now: Tick,
    random: u64,
    deferred: DeferredActions,
}

impl<'e> Worker<'e> {
    fn new(executor: &'e ExecutorShared, local: &'e WorkerLocal) -> Self {
        let worker = local.index;
        executor.idle.activate(worker);
        let nanos = executor.toolbox().nanos();
        executor.notify_worker_awake(executor.toolbox().tick_of(nanos));
        Self {
            executor,
            shared: local.shared_of(executor),
            local,
            running: Cell::new(None),
            is_searching: false,
            lifo_run: 0,
            countdown: 0,
            interval: INTERVAL_START,
            maintained_at: nanos,
            poll_nanos: INTERVAL_NANOS / u64::from(INTERVAL_START),
            now: executor.toolbox().tick_of(nanos),
            random: mix(executor.toolbox().seed() ^ (worker as u64 + 1)),
            deferred: DeferredActions::default(),
        }
    }

    /// Steps until asked to leave. One guard is around all steps and not around each: a panic ends
    /// the process whose poll_count it was, and the work goes on.
    fn run(&mut self) {
        let toolbox = self.executor.toolbox();
        while let Err(payload) = toolbox.catch_unwind(&mut || self.run_loop()) {
            let running = self.running.take();
            // A panic that is not a process's is a fault of this code, and is not survived.
            let running = running.unwrap_or_else(|| panic!("a worker failed: {payload:?}"));
            self.end_poll();
            // SAFETY: it was running when the panic was caught.
            unsafe { self.executor.finish_panicked(running, payload) };
        }
    }

    fn run_loop(&mut self) {
        loop {
            if self.should_stop() {
                return;
            }
            match self.next().or_else(|| self.search()) {
                Some(runnable) => self.step(runnable),
                None => self.park(),
            }
        }
    }

    /// Does what it was asked for; whether that is to leave.
    #[inline(always)]
    fn should_stop(&mut self) -> bool {
        // Acquire: pairs with whoever asked.
        let flags = self.shared.flags.load(Acquire);
        if flags != 0 {
            if flags & STOP != 0 && self.shared.accept_stop() {
                return true;
            }
            // Relaxed: the look that follows is what was asked for.
            self.shared.flags.fetch_and(!POLL, Relaxed);
            self.countdown = 0;
        }
        false
    }

    #[inline]
    fn step(&mut self, runnable: Runnable) {
        if self.is_searching {
            self.end_search();
        }
        let shared = self.shared;
        // Relaxed: a hint for who watches.
        let poll_count = shared.poll_count.load(Relaxed).wrapping_add(1);
        shared.current_task.store(runnable.index(), Relaxed);
        shared.poll_count.store(poll_count, Relaxed);
        self.executor.poll_task_in_guard(runnable, &self.running);
        self.end_poll();
    }

    #[inline]
    fn end_poll(&self) {
        let poll_count = &self.shared.poll_count;
        // Relaxed: as in `step`.
        poll_count.store(poll_count.load(Relaxed).wrapping_add(1), Relaxed);
        count(&self.shared.counts.steps, 1);
    }

    /// The next process that is here.
    #[inline]
    fn next(&mut self) -> Option<Runnable> {
        if self.countdown == 0
            && let Some(runnable) = self.maintain()
        {
            return Some(runnable);
        }
        self.countdown -= 1;
        if (self.lifo_run < LIFO_RUN_MAX || mutant!("worker-lifo-unbounded"))
            && let Some(runnable) = self.shared.take_lifo()
        {
            self.lifo_run += 1;
            return Some(runnable);
        }
        self.lifo_run = 0;
        self.local.with_ring(Owner::pop).or_else(|| self.shared.take_lifo())
    }

    /// Looks at the clock, the timers and the injector.
    #[cold]
    fn maintain(&mut self) -> Option<Runnable> {
        let nanos = self.executor.toolbox().nanos();
        let steps = u64::from(self.interval);
        assert!(!mutant!("worker-clock-must-rise") || nanos >= self.maintained_at, "stepped back");
        let took = nanos.saturating_sub(self.maintained_at) / steps;
        self.poll_nanos = (self.poll_nanos * 9 + took) / 10;
        let interval = INTERVAL_NANOS / self.poll_nanos.max(1);
        self.interval = u32::try_from(interval).unwrap_or(u32::MAX);
        self.interval = self.interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        self.maintained_at = nanos;
        self.countdown = self.interval;
        self.now = self.executor.toolbox().tick_of(nanos);
        self.shared.set_now(self.now);
        self.poll_timers();
        self.take_injected()
    }

    /// Reads the clock when it was not read for some time without a reason to tune anything.
    fn refresh(&mut self) {
        let nanos = self.executor.toolbox().nanos();
        self.maintained_at = nanos;
        self.countdown = self.interval;
        self.now = self.executor.toolbox().tick_of(nanos);
        self.shared.set_now(self.now);
    }

    /// Fires what is due in the shards that this worker keeps.
    fn poll_timers(&mut self) {
        self.local.flush_lazy_cancels(self.executor);
        let (executor, worker) = (self.executor, self.local.index);
        for shard in executor.shards.assigned_to(worker) {
            if executor.shards.is_overdue(shard, self.now) {
                self.fire(shard, true);
            }
        }
    }

    /// Says whether anything was done.
    fn fire(&mut self, shard: u32, is_own: bool) -> bool {
        let Self { executor, now, deferred, local, shared, .. } = self;
        let (shards, now) = (&executor.shards, *now);
        let mut latest = 0;
        local.is_firing.set(true);
        let mut fire = |timer: clockjack_time::Expired<crate::timer_action::TimerAction>| {
            latest = latest.max(now.get().saturating_sub(timer.deadline.get()));
            timer.value.fire(executor, now, deferred);
        };
        let polled = if is_own {
            shards.poll(shard, now, TIMERS_PER_POLL, &mut fire)
        } else {
            shards.take_over(shard, now, TIMERS_PER_POLL, &mut fire)
        };
        local.is_firing.set(false);
        if !(mutant!("worker-leaves-deferred") && shared.has_requests()) {
            deferred.finish(executor);
        }
        executor.drop_stale_values(shard);
        if polled.more {
            // The rest soon, but not before what has just been woken.
            self.countdown = self.countdown.min(INTERVAL_MIN);
        }
        if polled.fired > 0 {
            count(&shared.counts.fired, polled.fired as u64);
            // Relaxed: a statistic with one writer.
            let max = shared.counts.lateness_max.load(Relaxed).max(latest);
            shared.counts.lateness_max.store(max, Relaxed);
        }
        if polled.fired > 1 {
            executor.notify_one();
        }
        polled.fired > 0 || polled.more
    }

    /// What has become ready here while timers fired: those who wake by way of other wakers leave
    /// it in the LIFO slot.
    fn take_fired(&mut self) -> Option<Runnable> {
        self.local.with_ring(Owner::pop).or_else(|| self.shared.take_lifo())
    }

    /// One process from the injector, and some more into the ring.
    fn take_injected(&mut self) -> Option<Runnable> {
        let injector = &self.executor.injector;
        if injector.is_empty() {
            return None;
        }
        match self.local.with_ring(|ring| injector.take_into(BATCH_MAX, ring)) {
            Pop::Item((first, _)) => Some(first),
            Pop::Empty | Pop::Busy => None,
        }
    }

    /// Looks everywhere, for a while.
    fn search(&mut self) -> Option<Runnable> {
        if !self.is_searching {
            self.is_searching = self.executor.idle.start_search();
            if !self.is_searching {
                return None;
            }
        }
        for spin in 0..SPINS_MAX {
            if let Some(runnable) = self.take_injected().or_else(|| self.steal()) {
                return Some(runnable);
            }
            if self.shared.has_requests() {
                return None;
            }
            if spin < SPINS_TIGHT {
                hint::spin_loop();
            } else {
                self.executor.toolbox().yield_now();
            }
        }
        self.refresh();
        self.poll_timers();
        self.take_fired().or_else(|| self.take_over()).or_else(|| self.steal_lifo())
    }

    /// Takes half of what another worker has.
    fn steal(&mut self) -> Option<Runnable> {
        let executor = self.executor;
        let (n_seats, start) = (executor.workers.len(), self.random_below(executor.workers.len()));
        for victim in (start..n_seats).chain(0..start) {
            if victim == self.local.index {
                continue;
            }
            let thief = &executor.workers[victim].thief;
            if thief.is_empty() {
                continue;
            }
            if let Steal::Item { item, moved } = self.local.with_ring(|ring| thief.steal_into(ring))
            {
                count(&self.shared.counts.stolen, moved as u64 + 1);
                return Some(item);
            }
        }
        None
    }

    /// Fires what is overdue in the shards of workers that are busy, or that nobody keeps, until
    /// there is something to step.
    fn take_over(&mut self) -> Option<Runnable> {
        let executor = self.executor;
        loop {
            if mutant!("worker-takes-nothing-over") {
                return None;
            }
            let from = self.random_below(executor.workers.len());
            let shard = executor.shards.overdue(self.now, Some(self.local.index), from)?;
            let did_fire = self.fire(shard, false);
            if let Some(runnable) = self.take_fired() {
                return Some(runnable);
            }
            if !did_fire || self.shared.has_requests() || executor.has_shared_work() {
                return None;
            }
            self.refresh();
            self.poll_timers();
        }
    }

    /// Takes what a worker has put first and does not come to, as the watchdog has found.
    fn steal_lifo(&mut self) -> Option<Runnable> {
        if mutant!("worker-steals-no-lifo") {
            return None;
        }
        let runnable = self
            .executor
            .workers
            .iter()
            .find_map(|worker| if worker.is_stuck() { worker.take_lifo() } else { None })?;
        count(&self.shared.counts.stolen, 1);
        Some(runnable)
    }

    fn end_search(&mut self) {
        self.is_searching = false;
        if mutant!("worker-search-ends-silently") {
            let _ = self.executor.idle.end_search();
            return;
        }
        // If nobody else searches, who submitted meanwhile counted on this worker.
        if self.executor.idle.end_search() && self.executor.has_shared_work() {
            self.executor.wake_one();
        }
    }

    fn park(&mut self) {
        let slept = self.prepare_park();
        if let Some(until) = slept {
            self.executor.toolbox().park(self.local.index, until);
        }
        self.finish_park(slept);
    }

    /// Announces that it sleeps, unless there is something to do after all; says until when.
    fn prepare_park(&mut self) -> Option<Option<Tick>> {
        let (executor, worker, shared) = (self.executor, self.local.index, self.shared);
        let was_searching = core::mem::replace(&mut self.is_searching, true);
        let now = self.now;
        let parks = executor.idle.park_unless(worker, was_searching, || {
            shared.has_requests()
                || shared.has_lifo()
                || executor.has_shared_work()
                || executor.shards.next_wake(worker).is_some_and(|wake| wake <= now)
        });
        if !parks {
            return None;
        }
        count(&shared.counts.parked, 1);
        // Read after the announcement: whoever armed before that is in it, whoever arms after it
        // sees the sleeper.
        Some(executor.shards.next_wake(worker))
    }

    /// It is awake again, or has not slept.
    fn finish_park(&mut self, slept: Option<Option<Tick>>) {
        let executor = self.executor;
        if let Some(until) = slept {
            executor.idle.cancel_park(self.local.index);
            if mutant!("worker-trusts-its-alarm") {
                self.now = until.unwrap_or(self.now);
                return self.poll_timers();
            }
        }
        self.refresh();
        executor.notify_worker_awake(self.now);
        // Its timers are probably why it is awake.
        self.poll_timers();
    }

    /// Hands on everything that is here.
    fn leave(&mut self) {
        let executor = self.executor;
        if self.is_searching {
            self.end_search();
        }
        let first = || if mutant!("worker-leaves-lifo") { None } else { self.shared.take_lifo() };
        // Both each time: after the end of the executor what is handed on is ended, here, and that
        // may wake others.
        while let Some(runnable) = first().or_else(|| self.local.with_ring(Owner::pop)) {
            executor.inject(runnable);
        }
        self.local.flush_lazy_cancels(executor);
        let unassigned = executor.shards.detach(self.local.index);
        executor.idle.deactivate(self.local.index);
        if unassigned > 0 {
            executor.wake_watchdog();
        }
        self.local.with_cache(|cache| executor.flush_slot_cache(cache));
        let ring = self.local.with_ring(core::mem::take);
        // SAFETY: this thread has the worker.
        self.shared.ring.with_mut(|shared| unsafe { *shared = Some(ring) });
        self.shared.leave();
        // Release: pairs with the acquire of the next one who sits here.
        self.shared.is_occupied.store(0, Release);
    }

    fn random_below(&mut self, n: usize) -> usize {
        self.random = mix(self.random);
        // The high bits, scaled: no division.
        let high = (self.random >> 32) * n as u64;
        usize::try_from(high >> 32).unwrap_or(0)
    }
}

/// One step of a generator of random numbers: an addition, and a scrambling of its sum.
pub(crate) const fn mix(state: u64) -> u64 {
    splitmix::mix(state.wrapping_add(splitmix::STEP))
}
