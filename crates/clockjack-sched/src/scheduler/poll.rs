//! Polling a shard: advances its time and runs due jobs.

use clockjack_sync::{Arc, primitive::atomic::Ordering};
use clockjack_time::{ClockKind, Tick, TimerInstant};

use super::{DispatchedRun, Inner, JobPayload, Scheduler, SchedulerShard, SchedulerShared};
use crate::{
    BatchMode, DispatcherId, FireContext, HandlerError, PendingDelivery, PressureReason,
    RunnerMode, Warning,
    jobs::{
        shard::JobShardGuard,
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

    /// Whether to advance the wheel before the next run, if `n_listed` jobs are in the due list.
    fn wants_advance(self, n_listed: usize, is_fresh: bool) -> bool {
        !matches!(self, Self::ListedOnly) && wants_more(n_listed, is_fresh)
    }
}

/// Counts a poll in progress, in manual mode. Its drop ends the count also if a handler panics.
struct PollScope<'i>(&'i Inner);

impl<'i> PollScope<'i> {
    /// `None` if there are pollers, which look again by themselves.
    fn begin(inner: &'i Inner) -> Option<Self> {
        if inner.metadata.mode != RunnerMode::Manual {
            return None;
        }
        // Relaxed: in manual mode one thread polls.
        inner.polling.fetch_add(1, Ordering::Relaxed);
        Some(Self(inner))
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
        self.run_due_by(self.inner().shared.host.now(), usize::MAX, &|| true)
    }

    /// As [`run_due`](Self::run_due), for jobs that are due by `limit`, which is not after now.
    /// Asks `may_run` before every `budget` runs whether there is time for more.
    pub(crate) fn run_due_by(
        &self,
        limit: TimerInstant,
        budget: usize,
        may_run: &dyn Fn() -> bool,
    ) -> usize {
        let inner = self.inner();
        let until = Until::At(limit);
        let polling = PollScope::begin(inner);
        let mut ran = 0;
        for (index, shard) in inner.shards.iter().enumerate() {
            ran += poll_while(shard, budget, until, may_run);
            // A job that was completed here may be due before the poller wakes.
            inner.shared.host.wake_poller(index, Tick::ZERO);
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
            self.run_listed_of(shard, usize::MAX, &|| true);
        }
        self.shared.wake_readers();
    }

    /// As [`run_listed`](Self::run_listed), for one shard; `may_run` as in
    /// [`run_due_by`](Scheduler::run_due_by).
    pub(super) fn run_listed_of(
        &self,
        shard: &Arc<SchedulerShard>,
        budget: usize,
        may_run: &dyn Fn() -> bool,
    ) {
        poll_while(shard, budget, Until::ListedOnly, may_run);
    }
}

/// Polls a shard until nothing is left to run, and returns the number of runs. Asks `may_run`
/// before every `budget` runs whether there is time for more.
fn poll_while(
    shard: &Arc<SchedulerShard>,
    budget: usize,
    until: Until,
    may_run: &dyn Fn() -> bool,
) -> usize {
    let mut ran = 0;
    while may_run() {
        let polled = poll_shard(shard, 0, budget, until);
        ran += polled.ran;
        if !polled.is_more {
            break;
        }
    }
    ran
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
    let mut result = PollResult::default();
    // The run that has ended and is completed with the next hold of the guard.
    let (mut spent, mut done) = (None, None);
    let read = || shared.host.now();
    let flush_to = until.flush_to(shared);
    // Fresh: the wheel was not advanced to this reading yet.
    let (mut now, mut is_fresh) = (read(), true);
    let mut runs_left = runs_per_reading(shared);
    loop {
        let mut guard = shard.jobs.lock(&shared.relax());
        let to_drop = complete(&mut guard, &mut spent, &mut done);
        let (mut next, more) = if result.ran >= budget {
            (None, true)
        } else if flush_to.is_some_and(|to| guard.locked().table.is_due_after(to)) {
            (None, false)
        } else if until.wants_advance(guard.locked().table.n_due(), is_fresh) {
            is_fresh = false;
            let to = if let Until::At(limit) = until { limit } else { now };
            guard.advance(to, now, ADVANCE_BUDGET, executor)
        } else {
            (guard.next_due(now, executor), false)
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
        match &mut next {
            Some(DueItem::Run(run)) => {
                result.ran += 1;
                now = not_early(shared, run, now);
                match run_here(shared, run, now) {
                    Some(Ok(())) if run.is_spent() => spent = Some(run.slot),
                    outcome => done = end_run(shard, next, outcome, now),
                }
                // After a run with a fixed delay the clock was read: use that for the next runs.
                now = done.as_ref().map_or(now, |done| done.at);
            }
            Some(DueItem::Send(..)) => {
                result.ran += 1;
                handle_other(shard, next);
            }
            Some(DueItem::NotifyCancelled(_) | DueItem::Drop(_)) => {
                handle_other(shard, next);
                continue;
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
                (now, is_fresh) = (read(), true);
                continue;
            }
        }
        runs_left -= 1;
        if runs_left == 0 {
            (now, is_fresh) = (read(), true);
            runs_left = runs_per_reading(shared);
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
    // A run that is late is not early, which saves a division.
    if !run.late.is_zero() {
        return now;
    }
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

/// Completes the run that has ended, if there is one: `spent` is the slot of a run that needs
/// nothing but its slot for that. Returns the payload if the caller must drop it.
#[inline(always)]
fn complete(
    guard: &mut JobShardGuard<'_, JobPayload>,
    spent: &mut Option<u32>,
    done: &mut Option<CompletedRun<JobPayload>>,
) -> Option<JobPayload> {
    if let Some(slot) = spent.take() {
        guard.complete_spent(slot);
    }
    // Moved only if there is one: it is large.
    if done.is_none() {
        return None;
    }
    guard.complete(done.take()?)
}

impl Run<JobPayload> {
    /// Whether it was the only run of its job and has left nothing to drop.
    fn is_spent(&self) -> bool {
        self.batch.mode == BatchMode::OneShot && !self.payload.task.needs_drop()
    }
}

/// Runs a handler here and returns its result; `None` if it has another dispatcher.
#[inline(always)]
fn run_here(
    shared: &SchedulerShared,
    run: &mut Run<JobPayload>,
    now: TimerInstant,
) -> Option<Result<(), HandlerError>> {
    if run.payload.dispatcher != DispatcherId::DEFAULT {
        return None;
    }
    let fire = FireContext::new(run.number, run.batch, run.due, now, run.late);
    Some(shared.call(|| run.payload.task.run(&fire)))
}

/// After [`run_here`]: the run to complete, or `None` if it was passed to its dispatcher.
#[inline(never)]
fn end_run(
    shard: &Arc<SchedulerShard>,
    item: Option<DueItem<JobPayload>>,
    outcome: Option<Result<(), HandlerError>>,
    now: TimerInstant,
) -> Option<CompletedRun<JobPayload>> {
    let Some(DueItem::Run(run)) = item else { return None };
    let Some(outcome) = outcome else { return dispatch(shard, run) };
    Some(completed(&shard.shared, run, outcome, now))
}

/// Handles an item that is not the run of a handler.
#[inline(never)]
fn handle_other(shard: &Arc<SchedulerShard>, item: Option<DueItem<JobPayload>>) {
    match item {
        Some(DueItem::NotifyCancelled(item)) => notify_cancelled(&shard.shared, item),
        Some(DueItem::Drop(item)) => shard.shared.discard(item),
        Some(DueItem::Send(run, folds)) => send(shard, run, folds),
        Some(DueItem::Run(_)) | None => unreachable!("the caller handles it"),
    }
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

/// Runs a handler here, whatever its dispatcher is.
pub(super) fn execute(
    shared: &SchedulerShared,
    mut run: Run<JobPayload>,
    now: TimerInstant,
) -> CompletedRun<JobPayload> {
    let fire = FireContext::new(run.number, run.batch, run.due, now, run.late);
    let outcome = shared.call(|| run.payload.task.run(&fire));
    completed(shared, run, outcome, now)
}

fn completed(
    shared: &SchedulerShared,
    run: Run<JobPayload>,
    outcome: Result<(), HandlerError>,
    now: TimerInstant,
) -> CompletedRun<JobPayload> {
    let Run { slot, batch, payload, .. } = run;
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
    wake_at: Option<Tick>,
) {
    let shared = &*shard.shared;
    if let Some(item) = to_drop {
        shared.discard(item);
    }
    // The caller wakes the readers in any case.
    let pending = || shard.jobs.take_pending_wakes().wakes_poller().then_some(Tick::ZERO);
    let Some(wake_at) = wake_at.or_else(pending) else { return };
    if shard.jobs.is_closed() {
        // The poller may be gone: notify and drop cancelled jobs here.
        poll_shard(shard, 0, usize::MAX, Until::ListedOnly);
    } else {
        shared.host.wake_poller(shard.jobs.id() as usize, wake_at);
    }
}
