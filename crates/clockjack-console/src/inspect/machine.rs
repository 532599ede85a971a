//! The overview, workers, timers and jobs.

use clockjack_actor::inspect::ActorView;
use clockjack_exec::ExecStats;
use clockjack_sched::BatchMode;
use clockjack_time::{Resolution, ShardOccupancy, TickSpan};

use super::page_of;
use crate::{
    Target, findings,
    query::Query,
    state::{Counters, float, late_p99},
    view::{
        BlockingRow, ClockRow, ConsoleRow, Findings, JobRow, Number, Overview, Page, Running, Tag,
        TimerShardRow, TimersView, WorkerRow, Workers,
    },
    watcher::at_place,
};

/// Jobs that one request reads at most.
const JOBS_MAX: usize = 20_000;
/// Slots of each level of a wheel.
const SLOTS: [u32; 4] = [64, 64, 64, 4];

pub(super) fn overview(target: &Target) -> Overview {
    let executors = target.executors();
    let now_ns = target.now_ns();
    let system = target.system().metrics();
    let log = target.log();
    let (lost, log_bytes) = (log.lost, log.bytes());
    drop(log);
    let state = target.state();
    let live = Counters::read(target, &executors, now_ns);
    let rate = |of: fn(&ExecStats) -> u64| state.rates.rate(|counters| counters.sum(of));
    let messages = Number::from(state.sweeper.taken_rate).tagged(state.sweeper.tag(now_ns));
    let blocking = target.blocking().map(|(stats, threads_max)| BlockingRow {
        running: Number::size(stats.running),
        threads_max: Number::size(threads_max),
        queued: Number::size(stats.queued),
        refused: Number::count(stats.refused),
    });
    let Findings { looked_ms, rows, undecided } = findings::known(&state, now_ns);
    Overview {
        system: target.system().name().to_owned(),
        at_ns: now_ns,
        findings: rows,
        looked_ms,
        undecided,
        clock: clock(target, now_ns),
        workers: Number::size(live.workers.len()),
        busy: state.samples.busy(),
        queue: Number::size(live.queue()),
        steals_rate: rate(|stats| stats.stolen),
        parks_rate: rate(|stats| stats.parked),
        steps_rate: rate(|stats| stats.steps),
        messages_rate: messages,
        dead_rate: state.rates.rate(|one| one.system.dead_letters_total() as u64),
        actors: Number::size(system.live),
        failures: Number::size(system.failures),
        restarts: Number::size(system.restarts),
        refused: Number::size(system.refused_full),
        timers: Number::count(live.sum(|stats| stats.timers_pending)),
        jobs: Number::size(target.system().scheduler().jobs().metrics().active_total),
        blocking,
        recorder: None,
        sweep: state.sweeper.sweep(now_ns),
        console: ConsoleRow {
            bytes: Number::size(state.bytes() + log_bytes),
            events_lost: Number::count(lost),
            samples_lost: Number::count(state.samples.lost),
            ..ConsoleRow::default()
        },
    }
}

/// The clock, for [`Hello`](crate::view::Hello) and the overview.
pub(super) fn clock(target: &Target, now_ns: u64) -> ClockRow {
    let jobs = target.system().scheduler().jobs();
    let metrics = jobs.metrics();
    let is_late = metrics.lateness.count > 0;
    ClockRow {
        kind: jobs.metadata().clock.to_string(),
        resolution_ns: u64::from(jobs.resolution().nanos().get()),
        now_ns,
        drift_ns: if is_late {
            Number::exact(float(metrics.lateness.p99))
        } else {
            Number::UNKNOWN
        },
        compensated_ticks: Number::count(metrics.drift_compensations),
    }
}

pub(super) fn workers(target: &Target) -> Workers {
    let executors = target.executors();
    let now_ns = target.now_ns();
    let state = target.state();
    let live = Counters::read(target, &executors, now_ns);
    let rows = live.workers.iter().map(|(executor, stats)| {
        let (executor, worker) = (*executor, stats.worker);
        let rate = |of: fn(&ExecStats) -> u64| state.rates.of_worker(executor, worker, of);
        let samples = state.samples.workers();
        let seen = samples.iter().find(|one| (one.executor, one.worker) == (executor, worker));
        let running = seen.and_then(|seen| {
            let (task, _, since_ns) = seen.running?;
            let for_ns = Number::count(now_ns.saturating_sub(since_ns));
            Some(running(target, &executors, (executor, task), for_ns))
        });
        WorkerRow {
            pool: executors.get(executor).map_or_else(String::new, |(name, _)| name.clone()),
            worker: u32::try_from(worker).unwrap_or(u32::MAX),
            busy: seen.map_or(Number::UNKNOWN, crate::state::WorkerSamples::busy),
            running,
            steps_rate: rate(|stats| stats.steps),
            steals_in_rate: rate(|stats| stats.stolen),
            parks_rate: rate(|stats| stats.parked),
            ring: Number::size(stats.queue_len - stats.lifo_len),
            lifo: Number::size(stats.lifo_len),
            poll_mean_ns: match u64::try_from(stats.poll_mean.as_nanos()) {
                Ok(nanos) if nanos > 0 => Number::count(nanos),
                _ => Number::UNKNOWN,
            },
            longest_ns: seen.map_or(Number::UNKNOWN, |seen| {
                Number::count(seen.longest_ns).tagged(Tag::Sampled(1_003_009.0))
            }),
            timers: Number::count(stats.counts.timers_pending),
            fired_rate: rate(|stats| stats.timers_fired),
            late_max_ticks: Number::count(stats.counts.lateness_max_ticks),
            ..WorkerRow::default()
        }
    });
    Workers { rows: rows.collect(), injector: Number::size(live.injector) }
}

/// What a worker was seen running.
fn running(
    target: &Target,
    executors: &[(String, clockjack_exec::Handle)],
    place: (usize, u32),
    for_ns: Number,
) -> Running {
    let of_actor = |actor: &ActorView<'_>| Running {
        pid: actor.pid().to_string(),
        name: actor.path().to_string(),
        type_name: actor.type_name().to_owned(),
        for_ns,
    };
    // Another task than an actor has no view; a dump of all tasks would be too much for a name.
    let other = Running { for_ns, ..Running::default() };
    at_place(target, executors, place, of_actor).unwrap_or(other)
}

pub(super) fn timers(target: &Target) -> TimersView {
    let executors = target.executors();
    let now_ns = target.now_ns();
    let state = target.state();
    let live = Counters::read(target, &executors, now_ns);
    let rate = |of: fn(&ExecStats) -> u64| state.rates.rate(|counters| counters.sum(of));
    let mut shards = Vec::new();
    for (pool, handle) in &executors {
        handle.executor().timer_occupancy(|shard, occupancy| {
            shards.push(shard_row(pool, shard, occupancy));
        });
    }
    let p99 = state.rates.lateness().and_then(|late| late_p99(&late));
    let late_max = live.executors.iter().map(|stats| stats.lateness_max_ticks).max().unwrap_or(0);
    TimersView {
        pending: Number::count(live.sum(|stats| stats.timers_pending)),
        armed_rate: rate(|stats| stats.timers_armed),
        fired_rate: rate(|stats| stats.timers_fired),
        cancelled_rate: rate(|stats| stats.timers_cancelled),
        by_lateness: (0..16)
            .map(|at| Number::count(live.sum(|stats| stats.timers_by_lateness[at])))
            .collect(),
        late_p99_ticks: p99.map_or(Number::UNKNOWN, Number::count),
        late_max_ticks: Number::count(late_max),
        shards,
    }
}

fn shard_row(pool: &str, shard: u32, occupancy: Option<ShardOccupancy>) -> TimerShardRow {
    let row = TimerShardRow { pool: pool.to_owned(), shard, ..TimerShardRow::default() };
    // Another thread uses the shard at this moment: nothing is known of it.
    let Some(seen) = occupancy else { return row };
    let levels = SLOTS
        .iter()
        .zip(seen.levels)
        .map(|(slots, bits)| (0..*slots).map(|slot| u8::from(bits & (1 << slot) != 0)).collect());
    let next = seen.next.map(|next| next.get().saturating_sub(seen.elapsed.get()));
    TimerShardRow {
        levels: levels.collect(),
        slot_ticks: (0..4).map(|level| 64_u64.pow(level)).collect(),
        next_due_ticks: next.map_or(Number::UNKNOWN, Number::count),
        overflow: Number::size(seen.overflow),
        ..row
    }
}

fn nanos(ticks: u64, resolution: Resolution) -> f64 {
    resolution.duration(TickSpan::new(ticks)).as_secs_f64() * 1e9
}

pub(super) fn jobs(target: &Target, query: &Query) -> Page<JobRow> {
    let scheduler = target.system().scheduler().jobs();
    // Filters need all rows; without one, those of the pages so far are enough.
    let rows_max = query.rows.clamp(1, crate::query::ROWS_MAX) as usize;
    let wanted = (query.page as usize).saturating_add(1).saturating_mul(rows_max) + 1;
    let is_all = query.filter.is_empty();
    let read_max = if is_all { wanted.min(JOBS_MAX) } else { JOBS_MAX };
    let dump = scheduler.diagnostics().dump_jobs(read_max);
    let (resolution, now) = (dump.resolution, dump.now);
    let mut jobs: Vec<_> = dump.shards.iter().flat_map(|shard| &shard.jobs).collect();
    jobs.sort_by_key(|job| (job.mode == BatchMode::OneShot, job.due, job.job));
    let rows = jobs.into_iter().map(|job| {
        let due_in = if job.due >= now {
            nanos(job.due.get() - now.get(), resolution)
        } else {
            -nanos(now.get() - job.due.get(), resolution)
        };
        let is_once = job.mode == BatchMode::OneShot;
        let period = (!is_once).then(|| nanos(job.period_ticks, resolution));
        let last =
            job.last_fire.map(|last| nanos(now.get().saturating_sub(last.get()), resolution));
        JobRow {
            job: job.job.to_string(),
            mode: match job.mode {
                BatchMode::OneShot => "once",
                BatchMode::FixedRate => "rate",
                BatchMode::FixedDelay => "delay",
            }
            .to_owned(),
            state: job.state.to_owned(),
            due_in_ns: Number::exact(due_in),
            period_ns: period.into(),
            backlog: Number::count(u64::from(job.backlog)),
            last_run_ns: last.into(),
            priority: job.priority.to_string(),
            ..JobRow::default()
        }
    });
    let rows: Vec<JobRow> = rows.filter(|row| query.filter.matches(row)).collect();
    let total = Number::size(dump.active);
    let matches = if is_all {
        total
    } else if dump.active > JOBS_MAX {
        Number::UNKNOWN
    } else {
        Number::size(rows.len())
    };
    let (rows, has_more) = page_of(rows, query);
    Page { rows, page: query.page, matches, total, has_more, sweep: None }
}
