//! Polling a shard: advances its time and runs due jobs.

use clockjack_sync::{Arc, primitive::atomic::Ordering};
use clockjack_time::{ClockKind, Tick, TimerInstant};

use super::{DispatchedRun, Inner, JobPayload, Scheduler, SchedulerShard, SchedulerShared};
use crate::{
    BatchMode, DispatcherId, FireContext, PendingDelivery, PressureReason, Warning,
    jobs::{
        spec::{late_by, tick_of},
        table::{CompletedRun, DueItem, Run},
    },
};

/// How many units of work of the wheel are done per hold of the guard.
const ADVANCE_BUDGET: usize = 64;
/// How many due runs share one reading of the clock.
const RUNS_PER_READING: usize = 8;

/// The result of polling a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollResult {
    /// How many handlers were called.
    pub ran: usize,
    /// Whether the budget was used up: there is more to do at once.
    pub is_more: bool,
    /// When the next job is due, if none is now.
    pub next_wake: Option<Tick>,
    /// Whether the scheduler is closed and nothing is left to do.
    pub is_over: bool,
}

/// How far a poll advances time.
#[derive(Clone, Copy)]
enum Until {
    /// To the current time, which is read repeatedly.
    Now,
    /// To this time and no further, so the poll ends however long handlers take.
    At(TimerInstant),
    /// Not at all: runs only what is in the due list.
    ListedOnly,
}

impl Until {
    /// The tick up to which jobs are run. The poller runs jobs that become due or are scheduled
    /// meanwhile; otherwise this poll would last as long as other threads schedule.
    fn flush_to(self, shared: &SchedulerShared) -> Option<Tick> {
        match self {
            Self::At(limit) => Some(tick_of(limit, shared.resolution)),
            Self::Now | Self::ListedOnly => None,
        }
    }
}

/// Counts a poll in progress. Its drop ends the count also if a handler panics.
struct PollScope<'i>(&'i Inner);

impl<'i> PollScope<'i> {
    fn begin(inner: &'i Inner) -> Self {
        // Relaxed: a count for the manual mode, in which one thread polls.
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
    /// Advances the time of a shard to now and runs due jobs on this thread: at most `budget`
    /// handlers. For hosts; logs contain `executor`.
    ///
    /// Several threads may poll one shard concurrently; one of them runs each job. A handler may
    /// call this to run other due jobs.
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

    /// Runs the jobs of all shards that are due by now, on this thread, and none that become due
    /// meanwhile. Returns the number of runs.
    pub(crate) fn run_due(&self) -> usize {
        self.run_due_by(self.inner().shared.host.now())
    }

    /// As [`run_due`](Self::run_due), for jobs that are due by `limit`, which is not after now.
    pub(crate) fn run_due_by(&self, limit: TimerInstant) -> usize {
        let inner = self.inner();
        let until = Until::At(limit);
        let polling = PollScope::begin(inner);
        let mut ran = 0;
        for (index, shard) in inner.shards.iter().enumerate() {
            ran += poll_shard(shard, 0, usize::MAX, until).ran;
            // A job that was completed here may be due before the poller wakes.
            inner.shared.host.wake_poller(index);
        }
        drop(polling);
        inner.shared.wake_readers();
        ran
    }

    /// The earliest deadline of all shards.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        let inner = self.inner();
        let next = |shard: &Arc<SchedulerShard>| {
            shard.with_guard(|locked| match locked.table.n_due() {
                0 => locked.wheel.next_deadline(),
                _ => Some(locked.table.now()),
            })
        };
        inner.shards.iter().filter_map(next).min()
    }
}

impl Inner {
    /// Runs the due lists without advancing time.
    pub(super) fn run_listed(&self) {
        for shard in &self.shards {
            poll_shard(shard, 0, usize::MAX, Until::ListedOnly);
        }
        self.shared.wake_readers();
    }
}

/// Whether to advance the wheel before the next run. A job that catches up is listed again and
/// again, and other jobs must not wait for it. But a long list is run first: its jobs are due
/// before all others, and their slots are still in the cache.
fn wants_more(listed: usize, is_fresh: bool) -> bool {
    listed == 0 || (is_fresh && listed < ADVANCE_BUDGET)
}

/// How many runs share one reading of the clock.
fn runs_per_reading(shared: &SchedulerShared) -> usize {
    match shared.host.clock_kind() {
        // Reading it costs nothing, and handlers may have moved it.
        ClockKind::Deterministic => 1,
        ClockKind::RealtimeHost | ClockKind::RealtimeHardware => RUNS_PER_READING,
    }
}

/// The poller of `shard.md`: takes and completes runs with the guard, and runs them without it.
fn poll_shard(
    shard: &Arc<SchedulerShard>,
    executor: u16,
    budget: usize,
    until: Until,
) -> PollResult {
    let shared = &*shard.shared;
    let (mut result, mut done) = (PollResult::default(), None);
    let read = || shared.host.now();
    let runs_per_reading = runs_per_reading(shared);
    let flush_to = until.flush_to(shared);
    // Fresh: the wheel was not advanced to this reading yet.
    let (mut now, mut is_fresh) = (read(), true);
    loop {
        let mut guard = shard.jobs.lock(&shared.relax());
        let to_drop = done.take().and_then(|done| guard.complete(done));
        let (next, more) = if result.ran >= budget {
            (None, true)
        } else if flush_to.is_some_and(|to| guard.locked().table.is_due_after(to)) {
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
        if let Some(item) = to_drop {
            shared.discard(item);
        }
        match next {
            Some(DueItem::NotifyCancelled(item)) => notify_cancelled(shared, item),
            Some(DueItem::Drop(item)) => shared.discard(item),
            Some(DueItem::Run(mut run)) => {
                result.ran += 1;
                now = not_early(shared, &mut run, now);
                done = run_one(shard, run, now);
                // After a run with a fixed delay the clock was read: use that for the next runs.
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
            // The wheel has more, or a remote operation was pushed meanwhile.
            None => {
                now = read();
                is_fresh = true;
            }
        }
    }
}

/// The time that a run gets. If another poll listed the run by a later reading, this poll's reading
/// may be before the deadline; then reads the clock again.
fn not_early(
    shared: &SchedulerShared,
    run: &mut Run<JobPayload>,
    now: TimerInstant,
) -> TimerInstant {
    if tick_of(now, shared.resolution) >= run.due {
        return now;
    }
    let now = shared.host.now();
    run.late = late_by(now, run.due, shared.resolution);
    now
}

/// Notifies a cancelled job, and drops it.
fn notify_cancelled(shared: &SchedulerShared, mut item: JobPayload) {
    drop(shared.catch_unwind(&mut || item.task.cancelled()));
    shared.discard(item);
}

/// Runs a handler here, or passes it to its dispatcher. Returns the run to complete, if it ended.
fn run_one(
    shard: &Arc<SchedulerShard>,
    run: Run<JobPayload>,
    now: TimerInstant,
) -> Option<CompletedRun<JobPayload>> {
    if run.payload.dispatcher == DispatcherId::DEFAULT {
        return Some(execute(&shard.shared, run, now));
    }
    dispatch(shard, run)
}

/// Sends a run to its sink. A panic of the sink is reported. The delivery may then be anywhere; its
/// drop completes the run in any case.
#[inline(never)]
fn send(shard: &Arc<SchedulerShard>, run: Run<JobPayload>, folds: bool) {
    let shared = &*shard.shared;
    let (job, batch, deliver) = (run.number, run.batch, run.payload.task.deliver());
    let mut delivery = Some(PendingDelivery::new(shard.clone(), run, folds));
    let sent = shared.catch_unwind(&mut || {
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
    run: Run<JobPayload>,
    now: TimerInstant,
) -> CompletedRun<JobPayload> {
    let Run { slot, number, batch, due, late, mut payload } = run;
    let fire = FireContext::new(number, batch, due, now, late);
    let outcome = shared.call(&mut || payload.task.run(&fire));
    let at = if batch.mode == BatchMode::FixedDelay { shared.host.now() } else { now };
    CompletedRun { slot, payload, batch, outcome, at }
}

/// Passes a run to another dispatcher, which completes it.
#[cold]
fn dispatch(shard: &Arc<SchedulerShard>, run: Run<JobPayload>) -> Option<CompletedRun<JobPayload>> {
    let shared = &*shard.shared;
    let dispatcher = run.payload.dispatcher;
    let run = DispatchedRun::new(shard.clone(), run);
    match shared.host.dispatch(dispatcher, run) {
        Ok(()) => shared.report_pressure(shared.pressure.release(PressureReason::Dispatcher)),
        Err(refused) => {
            let now = tick_of(shared.host.now(), shared.resolution);
            shared.report_pressure(shared.pressure.refuse(now));
            // Dropping the run completes it.
            shared.discard(refused);
        }
    }
    None
}

/// Finishes the completion of a run outside of a poll, after the guard was released.
pub(crate) fn finish_completion(
    shard: &Arc<SchedulerShard>,
    to_drop: Option<JobPayload>,
    wakes_poller: bool,
) {
    let shared = &*shard.shared;
    if let Some(item) = to_drop {
        shared.discard(item);
    }
    // The caller wakes the readers in any case.
    if !wakes_poller && !shard.jobs.take_pending_wakes().wakes_poller() {
        return;
    }
    if shard.jobs.is_closed() {
        // The poller may be gone: notify and drop cancelled jobs here.
        poll_shard(shard, 0, usize::MAX, Until::ListedOnly);
    } else {
        shared.host.wake_poller(shard.jobs.id() as usize);
    }
}
