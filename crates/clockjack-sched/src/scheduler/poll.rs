//! Taking a turn: time is moved, and what is due is run.

use clockjack_sync::{Counted, mutant, prim::atomic::Ordering};
use clockjack_time::{ClockKind, Tick, TimerInstant};

use super::{DispatchedRun, Inner, Item, Scheduler, SchedulerShard, SchedulerShared};
use crate::{
    BatchMode, DispatcherId, FireContext, PendingDelivery, PressureReason, Warning,
    job::{late_by, tick_of},
    table::{CompletedRun, DueItem, Run},
};

/// How much of the wheel is moved in one guard.
const ADVANCE_BUDGET: usize = 64;
/// How many runs go by one reading of the clock, if they are due already.
const RUNS_PER_READING: usize = 8;

/// What a turn has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollResult {
    /// How many handlers were called.
    pub ran: usize,
    /// Whether the budget ended it: there is more to do at once.
    pub is_more: bool,
    /// When something is due next, if nothing is now.
    pub next_wake: Option<Tick>,
    /// Whether the scheduler was closed, and nothing is left to do.
    pub is_over: bool,
}

/// How far a turn moves time.
#[derive(Clone, Copy)]
enum Until {
    /// To now, whenever it looks.
    Now,
    /// To here and no further: so it ends, however long handlers take.
    At(TimerInstant),
    /// Not at all.
    ListedOnly,
}

impl Until {
    /// What comes due or is posted meanwhile is the runner's, or else it would go on for as long as
    /// others post.
    fn flush_to(self, shared: &SchedulerShared) -> Option<Tick> {
        match self {
            Self::At(limit) => Some(tick_of(limit, shared.resolution)),
            Self::Now | Self::ListedOnly => None,
        }
    }
}

/// A turn that is being taken; over also if a handler takes its caller along.
struct PollScope<'i>(&'i Inner);

impl<'i> PollScope<'i> {
    fn begin(inner: &'i Inner) -> Self {
        // Relaxed: a count for the manual mode, in which one thread turns.
        inner.polling.fetch_add(1, Ordering::Relaxed);
        Self(inner)
    }
}

impl Drop for PollScope<'_> {
    fn drop(&mut self) {
        // Relaxed: as in `begin`.
        self.0.polling.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Scheduler {
    /// Moves the time of a shard to now and runs what is due, on this thread: at most `budget`
    /// handlers. For hosts; `executor` is told in logs.
    ///
    /// Several threads may take turns of one shard at a time; each job is run by one of them.
    /// Called from inside a handler it runs what else is due.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn poll_shard(&self, shard: usize, executor: u16, budget: usize) -> PollResult {
        let inner = self.inner();
        let polling = PollScope::begin(inner);
        let result = poll_shard(&inner.shards[shard], executor, budget, Until::Now);
        drop(polling);
        inner.shared.bus().wake_readers();
        result
    }

    /// Runs what is due by now in all shards, on this thread, and nothing that comes due meanwhile.
    /// Gives the number of runs.
    pub(crate) fn run_due(&self) -> usize {
        self.run_due_by(self.inner().shared.host.now())
    }

    /// As [`run_due`](Self::run_due), but for what is due by `limit`, which is not later than now.
    pub(crate) fn run_due_by(&self, limit: TimerInstant) -> usize {
        let inner = self.inner();
        let until = Until::At(limit);
        let polling = PollScope::begin(inner);
        let mut ran = 0;
        for (index, shard) in inner.shards.iter().enumerate() {
            ran += poll_shard(shard, 0, usize::MAX, until).ran;
            // What it has completed may be due before the runner wakes.
            inner.shared.host.wake_poller(index);
        }
        drop(polling);
        inner.shared.wake_readers();
        ran
    }

    /// The earliest time at which anything is due.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        let inner = self.inner();
        let next = |shard: &Counted<SchedulerShard>| {
            shard.with_guard(|locked| match locked.table.n_due() {
                0 => locked.wheel.next_deadline(),
                _ => Some(locked.table.now()),
            })
        };
        inner.shards.iter().filter_map(next).min()
    }
}

impl Inner {
    /// Runs what is on the lists, without moving time.
    pub(super) fn run_listed(&self) {
        for shard in &self.shards {
            poll_shard(shard, 0, usize::MAX, Until::ListedOnly);
        }
        self.shared.wake_readers();
    }
}

/// Whether the wheel is to be moved before the next run. A job that catches up is listed again and
/// again, and others must not wait for that; but a long list is run first, for what stands in it is
/// due before all that does not, and its slots are still in the cache.
fn wants_more(listed: usize, is_fresh: bool) -> bool {
    listed == 0 || (is_fresh && listed < ADVANCE_BUDGET && !mutant!("turn-catches-up-alone"))
}

/// How many runs go by one reading of the clock.
fn runs_per_reading(shared: &SchedulerShared) -> usize {
    match shared.host.clock_kind() {
        // Its readings cost nothing, and what handlers do to it is to be seen at once.
        ClockKind::Deterministic => 1,
        ClockKind::RealtimeHost | ClockKind::RealtimeHardware => RUNS_PER_READING,
    }
}

/// The runner of `shard.md`: takes and completes with the guard, runs without it.
fn poll_shard(
    shard: &Counted<SchedulerShard>,
    executor: u16,
    budget: usize,
    until: Until,
) -> PollResult {
    let shared = &*shard.shared;
    let mut result = PollResult::default();
    let mut done: Option<CompletedRun<Item>> = None;
    let read = || shared.host.now();
    let runs_per_reading = runs_per_reading(shared);
    let flush_to = until.flush_to(shared);
    // Fresh: the wheel has not been moved by this reading.
    let (mut now, mut is_fresh) = (read(), true);
    loop {
        let mut guard = shard.jobs.lock(&shared.relax());
        let ended = done.take().and_then(|done| guard.complete(done));
        let (next, more) = if result.ran >= budget {
            (None, true)
        } else if flush_to.is_some_and(|to| guard.locked().table.is_due_after(to))
            && !mutant!("jobs-flush-unbounded")
        {
            (None, false)
        } else if matches!(until, Until::ListedOnly)
            || !wants_more(guard.locked().table.n_due(), is_fresh)
        {
            (guard.next_due(now, executor), false)
        } else {
            is_fresh = false;
            let to = if let Until::At(limit) = until { limit } else { now };
            guard.advance(to, now, ADVANCE_BUDGET, executor)
        };
        let is_last = next.is_none() && !more;
        let next_wake = if is_last {
            guard.unlock_for_sleep()
        } else {
            drop(guard);
            None
        };
        if let Some(item) = ended {
            shared.discard(item);
        }
        match next {
            Some(DueItem::NotifyCancelled(item)) => notify_cancelled(shared, item),
            Some(DueItem::Drop(item)) => shared.discard(item),
            Some(DueItem::Run(mut run)) => {
                result.ran += 1;
                now = not_early(shared, &mut run, now);
                done = run_one(shard, run, now);
                // The end of a fixed delay was read, so those behind it know better for nothing.
                now = done.as_ref().map_or(now, |done| done.at);
                if result.ran.is_multiple_of(runs_per_reading) {
                    now = read();
                    is_fresh = true;
                }
            }
            Some(DueItem::Send(run, folds)) => {
                result.ran += 1;
                send(shard, run, folds);
                if result.ran.is_multiple_of(runs_per_reading) {
                    now = read();
                    is_fresh = true;
                }
            }
            None if result.ran >= budget => {
                result.is_more = true;
                return result;
            }
            None if is_last && (flush_to.is_some() || !shard.jobs.has_remote_ops()) => {
                result.next_wake = next_wake;
                result.is_over = next_wake.is_none() && shard.jobs.is_closed();
                return result;
            }
            // The wheel has more, or a note came meanwhile.
            None => {
                now = read();
                is_fresh = true;
            }
        }
    }
}

/// The time that a run is told. If another turn has listed it by a later reading, this one's would
/// be before it was due.
fn not_early(shared: &SchedulerShared, run: &mut Run<Item>, now: TimerInstant) -> TimerInstant {
    if tick_of(now, shared.resolution) >= run.due || mutant!("jobs-stale-reading") {
        return now;
    }
    let now = shared.host.now();
    run.late = late_by(now, run.due, shared.resolution);
    now
}

/// A job that was cancelled is told so, and dropped.
fn notify_cancelled(shared: &SchedulerShared, mut item: Item) {
    drop(shared.host.catch_unwind(&mut || item.task.cancelled()));
    shared.discard(item);
}

/// Runs a handler here, or hands it to its dispatcher. What is to be completed, if it is.
fn run_one(
    shard: &Counted<SchedulerShard>,
    run: Run<Item>,
    now: TimerInstant,
) -> Option<CompletedRun<Item>> {
    if run.payload.dispatcher == DispatcherId::DEFAULT {
        return Some(execute(&shard.shared, run, now));
    }
    dispatch(shard, run)
}

/// Gives a run to its sink. A panic there is told. Where the delivery is then nobody knows; it
/// completes its run all the same.
#[inline(never)]
fn send(shard: &Counted<SchedulerShard>, run: Run<Item>, folds: bool) {
    let shared = &*shard.shared;
    let (job, batch, deliver) = (run.number, run.batch, run.payload.task.deliver());
    let mut delivery = Some(PendingDelivery::new(shard.clone(), run, folds));
    let sent = shared.host.catch_unwind(&mut || {
        if let (Some(deliver), Some(delivery)) = (deliver, delivery.take()) {
            deliver(delivery);
        }
    });
    if let Err(error) = sent {
        shared.warn(Warning::HandlerFailed { job, error, batch });
    }
}

pub(super) fn execute(
    shared: &SchedulerShared,
    run: Run<Item>,
    now: TimerInstant,
) -> CompletedRun<Item> {
    let Run { slot, number, batch, due, late, mut payload } = run;
    let fire = FireContext::new(number, batch, due, now, late);
    let outcome = shared.call(&mut || payload.task.run(&fire));
    let at = if batch.mode == BatchMode::FixedDelay { shared.host.now() } else { now };
    CompletedRun { slot, payload, batch, outcome, at }
}

/// Hands a run to another dispatcher, which completes it.
#[cold]
fn dispatch(shard: &Counted<SchedulerShard>, run: Run<Item>) -> Option<CompletedRun<Item>> {
    let shared = &*shard.shared;
    let dispatcher = run.payload.dispatcher;
    let run = DispatchedRun::new(shard.clone(), run);
    match shared.host.dispatch(dispatcher, run) {
        Ok(()) => shared.report_pressure(shared.pressure.release(PressureReason::Dispatcher)),
        Err(refused) => {
            let now = tick_of(shared.host.now(), shared.resolution);
            shared.report_pressure(shared.pressure.refuse(now));
            // The ticket in it completes the run.
            shared.discard(refused);
        }
    }
    None
}

/// A run was completed outside of a turn: what is left to be done without the guard.
pub(crate) fn finish_completion(
    shard: &Counted<SchedulerShard>,
    ended: Option<Item>,
    wakes_poller: bool,
) {
    let shared = &*shard.shared;
    if let Some(item) = ended {
        shared.discard(item);
    }
    // The caller rings in any case.
    if !wakes_poller && !shard.jobs.take_pending_wakes().wakes_poller() {
        return;
    }
    if shard.jobs.is_closed() {
        // The runner may be gone: what is to be told or dropped is so here.
        poll_shard(shard, 0, usize::MAX, Until::ListedOnly);
    } else {
        shared.host.wake_poller(shard.jobs.id() as usize);
    }
}
