//! The oracle for jobs: what a scheduler must do, computed from the definitions alone.
//!
//! The oracle keeps a sorted list of due times. Its caller reports what was scheduled and
//! cancelled, and which runs begin and end, and the oracle compares each run with that list. It
//! asks the scheduler nothing, so wrong data of the scheduler are detected too.

use alloc::{collections::BTreeSet, vec::Vec};
use core::time::Duration;

use clockjack_time::{Resolution, Tick, TickSpan};

use super::{Property, PropertyError};
use crate::{BatchMode, ExecutionBatch, JobState, Repeat};

/// A run, as its handler saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The tick for which the job runs.
    pub due: Tick,
    /// The tick in which the job runs.
    pub now: Tick,
    /// How many runs the call represents.
    pub batch: ExecutionBatch,
}

/// The expected state of the jobs of one shard.
///
/// Jobs are numbered from 0, in the order in which they were offered.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{BatchMode, ExecutionBatch, Repeat};
/// use clockjack_sched::properties::{JobOracle, Property, Run};
/// use clockjack_time::{Resolution, Tick};
///
/// let mut oracle = JobOracle::new(Resolution::MILLI);
/// let job = oracle.offer(Repeat::Once, Tick::new(5));
/// oracle.accept(job);
/// let batch = ExecutionBatch::single(BatchMode::OneShot);
/// let error = oracle.begin(job, Run { due: Tick::new(5), now: Tick::new(4), batch });
/// assert_eq!(error.map_err(|error| error.property()), Err(Property::NeverEarly));
/// ```
#[derive(Clone, Debug)]
pub struct JobOracle {
    resolution: Resolution,
    jobs: Vec<Job>,
    /// Jobs that wait for a run, by due time.
    waiting: BTreeSet<(Tick, usize)>,
    n_live: usize,
    last_now: Tick,
    /// The latest due time of a run that was not behind an earlier one of its job.
    last_due: Tick,
    /// Due time and number of the last job that ran for the first time.
    last_first: Option<(Tick, usize)>,
    is_closing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    repeat: Repeat,
    /// [`Pending`](JobState::Pending) until the scheduler has answered; a job that it refuses is
    /// then `Cancelled`.
    state: JobState,
    first: Tick,
    due: Tick,
    /// Runs so far.
    runs: u64,
    last_now: Option<Tick>,
    is_marked: bool,
}

impl JobOracle {
    /// An oracle for a scheduler with ticks of this length.
    #[must_use]
    pub const fn new(resolution: Resolution) -> Self {
        Self {
            resolution,
            jobs: Vec::new(),
            waiting: BTreeSet::new(),
            n_live: 0,
            last_now: Tick::ZERO,
            last_due: Tick::ZERO,
            last_first: None,
            is_closing: false,
        }
    }

    /// A job is about to be scheduled, with its first run at `due`. Returns its number.
    pub fn offer(&mut self, repeat: Repeat, due: Tick) -> usize {
        let job = self.jobs.len();
        let state = JobState::Pending;
        let (runs, last_now, is_marked) = (0, None, false);
        self.jobs.push(Job { repeat, state, first: due, due, runs, last_now, is_marked });
        self.waiting.insert((due, job));
        self.n_live += 1;
        job
    }

    /// The scheduler has accepted the job. The job may have run already.
    pub fn accept(&mut self, job: usize) {
        if self.jobs[job].state == JobState::Pending {
            self.jobs[job].state = JobState::Scheduled;
        }
    }

    /// The scheduler has refused the job.
    ///
    /// # Errors
    ///
    /// If the job has run.
    pub fn refuse(&mut self, job: usize) -> Result<(), PropertyError> {
        let Job { state, runs, due, .. } = self.jobs[job];
        if state != JobState::Pending || runs > 0 {
            return Err(PropertyError::new(Property::CancelIsFinal, job, self.last_now, due));
        }
        self.finish(job, JobState::Cancelled);
        Ok(())
    }

    /// A run begins.
    ///
    /// # Errors
    ///
    /// The property that this run violates.
    pub fn begin(&mut self, job: usize, run: Run) -> Result<(), PropertyError> {
        let error = |property| Err(PropertyError::new(property, job, run.now, run.due));
        let Some(mut entry) = self.jobs.get(job).copied() else {
            return error(Property::RunsOnce);
        };
        let runs = u64::from(run.batch.runs.get());
        let is_last_chance = self.is_closing && entry.is_marked;
        let last_due = match entry.repeat {
            Repeat::FixedRate(period) => self.grid(&entry, period, entry.runs + runs - 1),
            Repeat::Once | Repeat::FixedDelay(_) => run.due,
        };
        match entry.state {
            JobState::Executing => return error(Property::NoOverlap),
            JobState::Completed => return error(Property::RunsOnce),
            JobState::Cancelled => return error(Property::CancelIsFinal),
            _ => {}
        }
        if run.due != entry.due {
            return Err(PropertyError::new(Property::OnGrid, job, run.due, entry.due));
        }
        if run.now < last_due && !is_last_chance {
            return error(Property::NeverEarly);
        }
        if run.now < self.last_now {
            return Err(PropertyError::new(Property::Monotonic, job, run.now, self.last_now));
        }
        let is_single = runs == 1 || run.batch.mode == BatchMode::FixedRate;
        let is_whole = u64::from(run.batch.missed_runs) + 1 == runs;
        if run.batch.mode != mode(entry.repeat) || !is_single || !is_whole {
            return error(Property::Batch);
        }
        if !is_last_chance {
            self.check_order(job, &entry, run)?;
        }
        self.waiting.remove(&(entry.due, job));
        entry.state = JobState::Executing;
        entry.runs += runs;
        entry.last_now = Some(run.now);
        if let Repeat::FixedRate(period) = entry.repeat {
            entry.due = self.grid(&entry, period, entry.runs);
        }
        self.last_now = run.now;
        self.jobs[job] = entry;
        Ok(())
    }

    /// Runs come in the order of their due times, and first runs of one tick in the order in which
    /// their jobs were offered. A job at a fixed rate that is behind runs between others.
    fn check_order(&mut self, job: usize, entry: &Job, run: Run) -> Result<(), PropertyError> {
        let is_behind = entry.last_now.is_some_and(|last| run.due <= last);
        if is_behind {
            return Ok(());
        }
        if run.due < self.last_due {
            return Err(PropertyError::new(Property::InOrder, job, run.due, self.last_due));
        }
        self.last_due = run.due;
        if entry.last_now.is_none() {
            let first = (run.due, job);
            if let Some(before) = self.last_first.replace(first)
                && before > first
            {
                return Err(PropertyError::new(Property::InOrder, job, run.due, before.0));
            }
        }
        Ok(())
    }

    /// A run has ended. A job whose handler has failed is completed.
    pub fn end(&mut self, job: usize, now: Tick, has_failed: bool) {
        let entry = &mut self.jobs[job];
        if entry.state != JobState::Executing {
            return;
        }
        if has_failed || entry.repeat == Repeat::Once {
            return self.finish(job, JobState::Completed);
        }
        if let Repeat::FixedDelay(delay) = entry.repeat {
            let span = self.resolution.ticks_ceil(delay).unwrap_or(TickSpan::MAX);
            entry.due = now.saturating_add(span);
        }
        entry.state = JobState::Scheduled;
        self.waiting.insert((entry.due, job));
    }

    /// A cancel has returned `won`.
    ///
    /// # Errors
    ///
    /// If the answer is wrong: a cancel succeeds once, unless the job has completed or is a
    /// one-shot that runs.
    pub fn cancel(&mut self, job: usize, won: bool) -> Result<(), PropertyError> {
        let Job { state, repeat, due, .. } = self.jobs[job];
        let is_expected = match state {
            JobState::Executing => repeat != Repeat::Once,
            JobState::Completed | JobState::Cancelled => false,
            _ => true,
        };
        if won != is_expected {
            return Err(PropertyError::new(Property::CancelIsFinal, job, self.last_now, due));
        }
        if won {
            self.finish(job, JobState::Cancelled);
        }
        Ok(())
    }

    /// The scheduler has cancelled the job by itself: it was evicted for lack of room, say.
    pub fn evict(&mut self, job: usize) {
        if self.is_live(job) {
            self.finish(job, JobState::Cancelled);
        }
    }

    /// The job is to run when the scheduler closes, if it still waits then.
    pub fn mark_run_on_close(&mut self, job: usize) {
        self.jobs[job].is_marked = true;
    }

    /// The scheduler begins to close: marked jobs may run before their due times.
    pub const fn close(&mut self) {
        self.is_closing = true;
    }

    /// The scheduler has run everything that was due by `now`.
    ///
    /// # Errors
    ///
    /// If a job was due by then, and waits.
    pub fn check_settled(&self, now: Tick) -> Result<(), PropertyError> {
        match self.waiting.first() {
            Some(&(due, job)) if due <= now => {
                Err(PropertyError::new(Property::NothingLost, job, now, due))
            }
            _ => Ok(()),
        }
    }

    /// When the next run is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Tick> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// When the next run of this job is due.
    #[must_use]
    pub fn due(&self, job: usize) -> Tick {
        self.jobs[job].due
    }

    /// The expected state of a job.
    #[must_use]
    pub fn state(&self, job: usize) -> JobState {
        self.jobs[job].state
    }

    /// How the job repeats.
    #[must_use]
    pub fn repeat(&self, job: usize) -> Repeat {
        self.jobs[job].repeat
    }

    /// How often the job has run.
    #[must_use]
    pub fn runs(&self, job: usize) -> u64 {
        self.jobs[job].runs
    }

    /// Whether the job is to run when the scheduler closes.
    #[must_use]
    pub fn is_run_on_close(&self, job: usize) -> bool {
        self.jobs[job].is_marked
    }

    /// Whether the job was accepted, or may be, and has not ended.
    #[must_use]
    pub fn is_live(&self, job: usize) -> bool {
        !matches!(self.jobs[job].state, JobState::Completed | JobState::Cancelled)
    }

    /// How many jobs are live.
    #[must_use]
    pub const fn n_live(&self) -> usize {
        self.n_live
    }

    /// How many jobs were offered.
    #[must_use]
    pub const fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    fn finish(&mut self, job: usize, state: JobState) {
        self.waiting.remove(&(self.jobs[job].due, job));
        self.n_live -= usize::from(self.is_live(job));
        self.jobs[job].state = state;
    }

    /// When run `n` is due, the first being 0: a multiple of the period later, rounded up. A rate
    /// is at most one run per tick.
    fn grid(&self, job: &Job, period: Duration, n: u64) -> Tick {
        let tick_ns = u128::from(self.resolution.nanos().get());
        let span_ns = period.as_nanos().max(tick_ns) * u128::from(n);
        let span = u64::try_from(span_ns.div_ceil(tick_ns)).unwrap_or(u64::MAX);
        job.first.saturating_add(TickSpan::new(span))
    }
}

const fn mode(repeat: Repeat) -> BatchMode {
    match repeat {
        Repeat::Once => BatchMode::OneShot,
        Repeat::FixedRate(_) => BatchMode::FixedRate,
        Repeat::FixedDelay(_) => BatchMode::FixedDelay,
    }
}
