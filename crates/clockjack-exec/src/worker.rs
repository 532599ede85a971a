//! A worker of a pool: where it finds tasks, in which order, and when it parks.
//!
//! The scheduler is that of tokio's multi-threaded runtime and Go: a bounded ring per worker with
//! work stealing, a LIFO slot in front of it, and a shared injector.
//!
//! # Where it looks
//!
//! 1. Its LIFO slot, at most three times in a row: the task that the last poll woke still has its
//!    data in the CPU cache.
//! 2. Its ring, oldest first.
//! 3. Every *n* polls, before the first two: its timers, its shards of the
//!    [source](crate::source), and the injector. *n* is tuned so that about 200 µs pass between two
//!    such rounds of maintenance; a steal does not reset the count.
//! 4. The injector: one task, and up to sixteen more into its ring.
//! 5. The other workers, each once, beginning at a random one: half of the victim's ring.
//! 6. As a last resort the overdue shards of other workers, and the LIFO slot of a worker that has
//!    been in the same poll for longer than the watchdog tolerates.
//!
//! A worker that has found nothing searches again: four times at once, twelve times after yielding
//! to other threads; then it parks. Only half of the workers search at a time.
//! [`Idle`](crate::idle::Idle) has the protocol by which no worker sleeps while there is work or
//! while a timer is due, and `worker/leave.md` that by which a worker stops. Random numbers come
//! from SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! # What other threads may touch
//!
//! Everything of a `WorkerShared`: it is made of atomics. Nothing of a [`WorkerLocal`]: it is on
//! the stack of the worker's thread, which reaches it through its toolbox.
#![expect(unsafe_code, reason = "a worker has its ring and its cache to itself")]

pub mod idle;
mod leave;
mod local;
pub mod manual;
mod shared;
mod traced;
pub(crate) mod worker_stats;

use core::{
    cell::{Cell, UnsafeCell},
    ptr::NonNull,
};

use clockjack_observe::event::Event;
use clockjack_sync::{
    backoff,
    injector::BATCH_MAX,
    mpsc::Pop,
    primitive::{
        atomic::Ordering::{Acquire, Relaxed},
        hint,
    },
    ring::{Owner, Steal},
    splitmix,
};
use clockjack_time::Tick;

pub use self::local::WorkerLocal;
pub(crate) use self::{
    shared::WorkerShared,
    traced::{shard_id, worker_id},
};
use self::{
    shared::{NO_TASK, POLL, STOP, count},
    traced::TracedPoll,
};
use crate::{
    executor::ExecutorShared,
    executor_ref::RefCache,
    shards::SourceClaim,
    task::{Header, Runnable},
    timer::{action::DeferredActions, source::SourcePoll},
};

/// How often in a row the LIFO slot goes first.
const LIFO_RUN_MAX: u8 = 3;
/// Searches without a pause, and in total.
const SPINS_TIGHT: u32 = 4;
const SPINS_MAX: u32 = 16;
/// Polls between two rounds of maintenance.
const INTERVAL_START: u32 = 61;
const INTERVAL_MIN: u32 = 2;
const INTERVAL_MAX: u32 = 127;
/// The time that should pass between two rounds of maintenance.
const INTERVAL_NANOS: u64 = 200_000;
/// How many timers fire at most at a time; the rest follows after a few polls.
const TIMERS_PER_POLL: usize = 256;

/// Runs a worker until it is asked to stop, on the caller's thread.
///
/// # Panics
/// If the worker of this index runs already, or there is no such index.
#[doc(hidden)]
pub fn run_worker(executor: &ExecutorShared, worker: usize) {
    run_worker_with(executor, worker, || ());
}

/// As [`run_worker`], and calls `started` when the worker has its slot and its timer shard, before
/// it does anything.
///
/// # Panics
/// If the worker of this index runs already, or there is no such index.
#[doc(hidden)]
pub fn run_worker_with(executor: &ExecutorShared, worker: usize, started: impl FnOnce()) {
    // Outside of the `Worker`: this thread also reaches it through its toolbox, while the `Worker`
    // is borrowed for its whole life.
    let local = occupy_slot(executor, worker);
    let mut worker = Worker::new(executor, &local);
    let entered = EnterGuard { executor, before: executor.toolbox().enter(&raw const local) };
    started();
    let id = worker_id(local.index);
    executor.record(Event::WorkerStarted { worker: id });
    worker.run();
    executor.record(Event::WorkerStopped { worker: id });
    worker.leave(entered);
}

/// Restores what this thread was before it became a worker, also if the worker panics: values that
/// are dropped during unwinding would use a `WorkerLocal` that is gone. In that case the cached
/// references are lost, and the executor is leaked.
struct EnterGuard<'e> {
    executor: &'e ExecutorShared,
    before: *const WorkerLocal,
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        self.executor.toolbox().enter(self.before);
    }
}

/// Occupies the worker slot of an index, with its ring and a timer shard.
fn occupy_slot(executor: &ExecutorShared, worker: usize) -> WorkerLocal {
    let shared = &*executor.workers[worker];
    // Acquire: pairs with the release of the worker that stopped.
    let was_occupied = shared.is_occupied.swap(1, Acquire);
    assert_eq!(was_occupied, 0, "worker {worker} runs already");
    // SAFETY: this thread has just occupied the slot.
    let ring = shared.ring.with_mut(|ring| unsafe { (*ring).take() });
    let ring = ring.expect("a worker that stopped returned the ring");
    shared.occupy();
    WorkerLocal {
        executor,
        index: worker,
        local_shard: Cell::new(executor.shards.attach(worker)),
        push_mode: Cell::new(0),
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
    /// The task that is being polled.
    running: Cell<Option<NonNull<Header>>>,
    is_searching: bool,
    /// Whether the last poll of the source has left something that is due.
    is_source_left: bool,
    /// Whether a timer has fired whose task no other worker was woken for.
    is_fired_unannounced: bool,
    lifo_run: u8,
    /// Polls until the next maintenance, out of `interval`.
    countdown: u32,
    interval: u32,
    /// When the last maintenance was.
    maintained_at: u64,
    /// How long a poll takes, on average.
    poll_nanos: u64,
    now: Tick,
    random: u64,
    deferred: DeferredActions,
    /// The poll that is being traced.
    traced: Option<TracedPoll>,
}

/// What a worker that has read its flags does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requested {
    Nothing,
    /// Continue in the other form of the loop.
    SwitchTracing,
    Stop,
}

impl<'e> Worker<'e> {
    fn new(executor: &'e ExecutorShared, local: &'e WorkerLocal) -> Self {
        let worker = local.index;
        executor.idle.activate(worker);
        let nanos = executor.toolbox().nanos();
        executor.notify_worker_awake(executor.toolbox().tick_of(nanos));
        // Rule 15 of `shards`: perhaps there was no worker when the watchdog last looked for one.
        if executor.shards.has_unassigned() {
            executor.wake_watchdog();
        }
        Self {
            executor,
            shared: local.shared_of(executor),
            local,
            running: Cell::new(None),
            is_searching: false,
            is_source_left: false,
            is_fired_unannounced: false,
            lifo_run: 0,
            countdown: 0,
            interval: INTERVAL_START,
            maintained_at: nanos,
            poll_nanos: INTERVAL_NANOS / u64::from(INTERVAL_START),
            now: executor.toolbox().tick_of(nanos),
            random: mix(executor.toolbox().seed() ^ (worker as u64 + 1)),
            deferred: DeferredActions::default(),
            traced: None,
        }
    }

    /// Polls tasks until it is asked to stop. One `catch_unwind` is around all polls and not around
    /// each: a panic ends the task that was being polled, and the worker continues.
    fn run(&mut self) {
        let toolbox = self.executor.toolbox();
        while let Err(payload) = toolbox.catch_unwind(&mut || self.run_loops()) {
            let running = self.running.take();
            // A panic outside of a poll is a fault of this code, and the worker does not survive
            // it.
            let running = running.unwrap_or_else(|| panic!("a worker failed: {payload:?}"));
            self.end_poll();
            // SAFETY: the task was being polled when the panic was caught.
            unsafe { self.executor.finish_panicked(running, payload) };
            self.record_traced_poll();
        }
    }

    /// The loop exists in two forms, so that a poll that is not traced does not even check whether
    /// it is.
    fn run_loops(&mut self) {
        loop {
            let requested = if self.executor.is_tracing() {
                self.local.set_traced(true);
                self.run_loop::<true>()
            } else {
                self.local.set_traced(false);
                self.run_loop::<false>()
            };
            if requested == Requested::Stop {
                return;
            }
        }
    }

    fn run_loop<const TRACED: bool>(&mut self) -> Requested {
        loop {
            match self.handle_requests::<TRACED>() {
                Requested::Nothing => {}
                requested => return requested,
            }
            match self.next().or_else(|| self.poll_rest()).or_else(|| self.search()) {
                Some(runnable) if TRACED => self.poll_traced(runnable),
                Some(runnable) => self.poll(runnable),
                None => self.park(),
            }
        }
    }

    /// Handles the requests of other threads.
    #[inline(always)]
    fn handle_requests<const TRACED: bool>(&mut self) -> Requested {
        // Acquire: pairs with the release of the requesting thread.
        let flags = self.shared.flags.load(Acquire);
        if flags == 0 {
            return Requested::Nothing;
        }
        if flags & STOP != 0 && self.shared.accept_stop() {
            return Requested::Stop;
        }
        // Acquire: pairs with the release of the thread that has switched tracing and then set the
        // flag. If that thread sets the flag after this line, the flag is handled the next time.
        self.shared.flags.fetch_and(!POLL, Acquire);
        self.countdown = 0;
        if self.executor.is_tracing() == TRACED {
            Requested::Nothing
        } else {
            Requested::SwitchTracing
        }
    }

    #[inline]
    fn poll(&mut self, runnable: Runnable) {
        if self.is_searching {
            self.end_search();
        }
        self.shared.begin_poll(runnable.index());
        runnable.begin_poll(self.maintained_at);
        self.executor.poll_task_in_guard(runnable, &self.running);
        self.end_poll();
    }

    #[inline]
    fn end_poll(&self) {
        self.shared.end_poll();
        count(&self.shared.counts.steps, 1);
    }

    /// The next task of this worker.
    #[inline]
    fn next(&mut self) -> Option<Runnable> {
        if self.countdown == 0
            && let Some(runnable) = self.maintain()
        {
            return Some(runnable);
        }
        self.countdown -= 1;
        if self.lifo_run < LIFO_RUN_MAX
            && let Some(runnable) = self.shared.take_lifo()
        {
            self.lifo_run += 1;
            return Some(runnable);
        }
        self.lifo_run = 0;
        self.local.with_ring(Owner::pop).or_else(|| self.shared.take_lifo())
    }

    /// Reads the clock, fires due timers, and takes tasks from the injector.
    #[cold]
    fn maintain(&mut self) -> Option<Runnable> {
        let nanos = self.executor.toolbox().nanos();
        let steps = u64::from(self.interval);
        let took = nanos.saturating_sub(self.maintained_at) / steps;
        self.poll_nanos = (self.poll_nanos * 9 + took) / 10;
        // Relaxed: a statistic.
        self.shared.counts.poll_nanos.store(self.poll_nanos, Relaxed);
        let interval = INTERVAL_NANOS / self.poll_nanos.max(1);
        self.interval = u32::try_from(interval).unwrap_or(u32::MAX);
        self.interval = self.interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        self.maintained_at = nanos;
        self.countdown = self.interval;
        self.now = self.executor.toolbox().tick_of(nanos);
        self.shared.set_now(self.now);
        self.poll_timers();
        let injected = self.take_injected();
        if self.is_fired_unannounced && (injected.is_some() || self.has_task_before_fired()) {
            self.announce_fired();
        }
        injected
    }

    /// Reads the clock after a pause, without tuning the interval.
    fn refresh(&mut self) {
        let nanos = self.executor.toolbox().nanos();
        self.maintained_at = nanos;
        self.countdown = self.interval;
        self.now = self.executor.toolbox().tick_of(nanos);
        self.shared.set_now(self.now);
    }

    /// Fires the due timers of the shards that are assigned to this worker, and polls the source.
    fn poll_timers(&mut self) {
        self.local.flush_lazy_cancels(self.executor);
        self.is_fired_unannounced = false;
        let (executor, worker) = (self.executor, self.local.index);
        for shard in executor.shards.assigned_to(worker) {
            if executor.shards.is_overdue(shard, self.now) {
                self.fire(shard, true);
            }
            self.poll_source(shard);
        }
        // The source of one shard may have made tasks ready, and a timer of the next shard another
        // one behind them. A worker that still searches wakes another one when it finds a task.
        if self.is_fired_unannounced && !self.is_searching && self.has_task_before_fired() {
            self.announce_fired();
        }
    }

    /// Polls a shard of the source, if that is due; returns whether it was.
    #[inline]
    fn poll_source(&mut self, shard: u32) -> bool {
        let ticks = self.executor.takeover_ticks;
        let claim = self.executor.shards.claim_source(shard, self.now, ticks);
        claim.map(|claim| self.poll_claimed_source(shard, claim)).is_some()
    }

    /// Polls a shard of the source. Other threads see that as they see the poll of a task: the
    /// worker does not count as searching, and the watchdog notices if user code blocks.
    fn poll_claimed_source(&mut self, shard: u32, claim: SourceClaim) {
        let (executor, worker) = (self.executor, self.local.index);
        if self.is_searching {
            self.end_search();
        }
        self.announce_fired();
        self.shared.begin_poll(NO_TASK);
        let mut polled = SourcePoll::default();
        let caught = executor.toolbox().catch_unwind(&mut || {
            if let Some(source) = executor.toolbox().source() {
                polled = source.poll(shard, worker);
            }
        });
        self.shared.end_poll();
        if let Err(payload) = caught {
            executor.drop_panic_payload(payload);
            // Relaxed: a statistic.
            executor.source_panics.fetch_add(1, Relaxed);
            polled.is_more = true;
        }
        if let Some(earlier) = executor.shards.finish_source(shard, claim, polled.next()) {
            executor.notify_source(earlier);
        }
        // As for timers: the rest follows soon, but not before the tasks that were just woken.
        let countdown_max = if polled.is_more { INTERVAL_MIN } else { INTERVAL_MAX };
        let countdown = self.countdown.min(countdown_max);
        // User code may have taken any time.
        self.refresh();
        self.countdown = countdown;
        self.is_source_left |= polled.is_more;
    }

    /// Continues to poll the source while no task is ready.
    fn poll_rest(&mut self) -> Option<Runnable> {
        while core::mem::take(&mut self.is_source_left) {
            if self.shared.has_requests() || self.executor.has_shared_work() {
                break;
            }
            self.refresh();
            self.poll_timers();
            if let Some(runnable) = self.take_fired() {
                return Some(runnable);
            }
        }
        None
    }

    /// Fires the due timers of a shard; returns whether anything was done.
    fn fire(&mut self, shard: u32, is_own: bool) -> bool {
        let Self { executor, now, deferred, local, shared, .. } = self;
        let (shards, now) = (&executor.shards, *now);
        let mut latest = 0;
        local.set_firing(true);
        let mut fire = |timer: clockjack_time::Expired<crate::timer::action::TimerAction>| {
            let late = now.get().saturating_sub(timer.deadline.get());
            if late > 0 {
                shared.count_late(late);
                latest = latest.max(late);
            }
            timer.value.fire(executor, now, deferred);
        };
        let polled = if is_own {
            shards.poll(shard, now, TIMERS_PER_POLL, &mut fire)
        } else {
            shards.take_over(shard, now, TIMERS_PER_POLL, &mut fire)
        };
        local.set_firing(false);
        let n_unannounced = polled.fired + usize::from(self.is_fired_unannounced);
        self.is_fired_unannounced = n_unannounced == 1;
        if n_unannounced > 1 {
            // Before the wakers of users are called, which may take any time.
            executor.notify_one();
        }
        deferred.finish(executor);
        executor.drop_stale_values(shard);
        if polled.is_closed {
            executor.close_timers();
        }
        if polled.more {
            // The rest follows soon, but not before the tasks that were just woken.
            self.countdown = self.countdown.min(INTERVAL_MIN);
        }
        if polled.fired > 0 {
            count(&shared.counts.fired, polled.fired as u64);
            // Relaxed: a statistic with one writer.
            let max = shared.counts.lateness_max.load(Relaxed).max(latest);
            shared.counts.lateness_max.store(max, Relaxed);
        }
        if polled.fired > 0 {
            self.record_fired(shard, is_own, polled.fired, latest);
        }
        polled.fired > 0 || polled.more
    }

    /// Whether a task is in the LIFO slot, or in the ring besides the one that a timer has woken.
    fn has_task_before_fired(&self) -> bool {
        self.shared.has_lifo() || self.local.with_ring(|ring| ring.len() > 1)
    }

    /// Wakes a worker for the one task that a timer has made ready here, before this worker runs
    /// anything else (rule 14 of [`shards`](crate::shards)).
    fn announce_fired(&mut self) {
        if core::mem::take(&mut self.is_fired_unannounced) {
            self.executor.notify_one();
        }
    }

    /// A task that has become ready here while timers fired. A timer that wakes through another
    /// executor's or a user's waker may put a task into the LIFO slot.
    fn take_fired(&mut self) -> Option<Runnable> {
        self.local.with_ring(Owner::pop).or_else(|| self.shared.take_lifo())
    }

    /// One task from the injector, and some more into the ring.
    fn take_injected(&mut self) -> Option<Runnable> {
        let injector = &self.executor.injector;
        if injector.is_empty() {
            return None;
        }
        match self.local.with_ring(|ring| injector.take_into(BATCH_MAX, ring)) {
            Pop::Item((first, _)) => Some(first),
            Pop::Empty | Pop::Retry => None,
        }
    }

    /// Searches for a task everywhere, for a while.
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

    /// Steals half of another worker's ring.
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
                self.record_stolen(victim, moved + 1);
                return Some(item);
            }
        }
        None
    }

    /// Fires overdue timers of busy workers and of unassigned shards, until there is a task to
    /// poll.
    fn take_over(&mut self) -> Option<Runnable> {
        let executor = self.executor;
        let n_shards_max = executor.workers.len();
        let mut from = self.random_below(n_shards_max);
        // Shards in a row in which nothing fired.
        let mut n_empty = 0;
        while n_empty < n_shards_max {
            let shard = executor.shards.overdue(self.now, Some(self.local.index), from)?;
            let did_fire = executor.shards.is_overdue(shard, self.now) && self.fire(shard, false);
            let did_fire = self.poll_source(shard) || did_fire;
            if let Some(runnable) = self.take_fired() {
                return Some(runnable);
            }
            if self.shared.has_requests() || executor.has_shared_work() {
                return None;
            }
            if did_fire {
                n_empty = 0;
                self.refresh();
                self.poll_timers();
                from = self.random_below(n_shards_max);
            } else {
                // The shard was due for a timer that is cancelled, or another thread polls it. The
                // shards behind it may have timers that are overdue (rule 16 of `shards`).
                n_empty += 1;
                from = shard as usize + 1;
            }
        }
        None
    }

    /// Takes the task in the LIFO slot of a worker that the watchdog has found stuck.
    fn steal_lifo(&mut self) -> Option<Runnable> {
        let workers = self.executor.workers.iter().enumerate();
        let (victim, runnable) = workers
            .filter(|(_, worker)| worker.is_stuck())
            .find_map(|(index, worker)| Some((index, worker.take_lifo()?)))?;
        count(&self.shared.counts.stolen, 1);
        self.record_stolen(victim, 1);
        Some(runnable)
    }

    fn end_search(&mut self) {
        self.is_searching = false;
        // If no other worker searches, a thread that submitted a task in the meantime has relied on
        // this worker and woken nobody.
        if self.executor.idle.end_search() && self.executor.has_shared_work() {
            self.executor.wake_one();
        }
    }

    fn park(&mut self) {
        let slept = self.prepare_park();
        let Some(until) = slept else {
            // There is something that this worker has not found: perhaps a pusher was preempted in
            // the middle of its push, by this very thread.
            backoff::wait(1);
            return self.finish_park(slept);
        };
        let parked_at = self.executor.nanos();
        let index = self.local.index;
        self.shared.while_asleep(|| self.executor.toolbox().park(index, until));
        self.finish_park(slept);
        let parked = self.maintained_at.saturating_sub(parked_at);
        count(&self.shared.counts.parked_nanos, parked);
        self.record_parked(parked_at);
    }

    /// Announces that the worker parks, unless there is something to do after all; returns until
    /// when it may sleep.
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
        self.local.with_cache(|cache| executor.flush_idle_slot_cache(cache));
        // Read after the announcement: a timer that was armed before the announcement is included,
        // and a thread that arms a timer after it sees that the worker is parked.
        Some(executor.shards.next_wake(worker))
    }

    /// The worker is awake again, or has not parked.
    fn finish_park(&mut self, slept: Option<Option<Tick>>) {
        let executor = self.executor;
        if let Some(_until) = slept {
            executor.idle.cancel_park(self.local.index);
        }
        self.refresh();
        executor.notify_worker_awake(self.now);
        // Its timers are probably the reason why it is awake.
        self.poll_timers();
    }

    fn random_below(&mut self, n: usize) -> usize {
        self.random = mix(self.random);
        // The high bits, scaled: no division.
        let high = (self.random >> 32) * n as u64;
        usize::try_from(high >> 32).unwrap_or(0)
    }
}

/// One step of the random number generator: an addition, and a scrambling of its sum.
pub(crate) const fn mix(state: u64) -> u64 {
    splitmix::mix(state.wrapping_add(splitmix::STEP))
}
