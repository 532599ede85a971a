//! A scheduler in virtual time whose jobs count their runs.

use alloc::vec::Vec;
use core::{
    cell::{Cell, RefCell},
    fmt,
    time::Duration,
};

use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicU32, Ordering},
};
use clockjack_time::{MonotonicClock, Tick, TickSpan};

use super::{
    FixedRate, PropertyError, cancelled_never_ran, fixed_rate_grid, monotonic, random::Random,
};
use crate::{
    Cancellable, CloseReport, DispatcherId, JobNumber, JobSpec, LogRecord, ManualRunner, ModeError,
    Policy, Repeat, ReplayTrace, ScheduleError, Scheduler, SchedulerConfig, Task,
};

/// Records that the log keeps if the configuration does not say.
const LOG_CAPACITY: usize = 1 << 16;

/// The longest delay that is drawn, in ticks: beyond the range of the wheel, so that the overflow
/// is reached.
const DELAY_TICKS_DRAWN_MAX: u64 = 1 << 21;
/// The longest period that is drawn, in ticks.
const PERIOD_TICKS_DRAWN_MAX: u64 = 1 << 10;
/// The longest step of time that is drawn, in ticks. A job has at most as many runs in it.
const STEP_TICKS_DRAWN_MAX: u64 = 1 << 8;

/// A scheduler in virtual time, its clock, its log, and jobs that count their runs.
///
/// It is for one thread. See the [module](crate::properties) for an example.
pub struct SchedulerHarness {
    runner: ManualRunner,
    /// Of the jobs that are drawn.
    policy: Policy,
    jobs: RefCell<Vec<Job>>,
    /// Everything that is due by then has run.
    settled: Cell<Tick>,
    closed_at: Cell<Option<Tick>>,
}

/// A job that the harness has scheduled.
struct Job {
    number: JobNumber,
    handle: Cancellable,
    repeat: Repeat,
    counter: Arc<RunCounter>,
    /// Runs at the time of the cancel that succeeded.
    cancelled_at_runs: Option<u32>,
}

/// The counter of a handler.
struct RunCounter {
    runs: AtomicU32,
}

/// The results of random steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomSteps {
    /// Jobs that were accepted.
    pub scheduled: usize,
    /// Jobs that were refused.
    pub refused: usize,
    /// Cancels that succeeded.
    pub cancelled: usize,
    /// Times that the clock advanced without a poll.
    pub stalls: usize,
    /// Runs.
    pub ran: usize,
}

impl SchedulerHarness {
    /// A scheduler as this configuration says. Without a log in it, 65,536 records are kept.
    ///
    /// # Errors
    ///
    /// [`ModeError`], if the configuration is for production or has no shard.
    pub fn new(mut config: SchedulerConfig) -> Result<Self, ModeError> {
        if config.log_capacity == 0 {
            config.log_capacity = LOG_CAPACITY;
        }
        let (settled, closed_at) = (Cell::new(config.start), Cell::new(None));
        let policy = config.policies.of_dispatcher(DispatcherId::DEFAULT);
        let runner = ManualRunner::new(config)?;
        Ok(Self { runner, policy, jobs: RefCell::default(), settled, closed_at })
    }

    /// The scheduler, for whatever the harness does not do. Jobs that are scheduled there are
    /// checked by the log only.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        self.runner.scheduler()
    }

    /// The runner, with its clock. Time is moved by the harness, so that it knows by when
    /// everything has run.
    #[must_use]
    pub fn runner(&self) -> &ManualRunner {
        &self.runner
    }

    /// What was logged so far.
    #[must_use]
    pub fn trace(&self) -> ReplayTrace {
        self.scheduler().diagnostics().trace()
    }

    /// Schedules a job that counts its runs.
    ///
    /// # Errors
    ///
    /// As the scheduler's.
    pub fn schedule(&self, spec: JobSpec) -> Result<JobNumber, ScheduleError<()>> {
        self.schedule_slow(spec, Duration::ZERO)
    }

    /// Schedules a job that counts its runs, and whose handler takes so much time.
    ///
    /// # Errors
    ///
    /// As the scheduler's.
    pub fn schedule_slow(
        &self,
        spec: JobSpec,
        takes: Duration,
    ) -> Result<JobNumber, ScheduleError<()>> {
        let counter = Arc::new(RunCounter { runs: AtomicU32::new(0) });
        let of_task = counter.clone();
        // The harness closes its scheduler in the end, which drops what the handler holds.
        let slow = (!takes.is_zero()).then(|| self.runner.clone());
        let task = Task::every(move |fire: &crate::FireContext| {
            // Relaxed: one thread.
            of_task.runs.fetch_add(fire.batch().runs.get(), Ordering::Relaxed);
            if let Some(runner) = &slow {
                runner.clock().advance(takes);
            }
        });
        // In one thread and one shard, the next job has the next number.
        let number = self.scheduler().metrics().accepted_total + 1;
        let number = JobNumber { shard: 0, number };
        let now = self.now();
        let handle = self.scheduler().schedule(spec, DispatcherId::DEFAULT, task);
        let handle = handle.map_err(ScheduleError::discard)?;
        if spec.delay.is_zero() {
            // It ran within the call, behind all that was due.
            self.mark_settled(now);
        }
        let (repeat, cancelled_at_runs) = (spec.repeat, None);
        self.jobs.borrow_mut().push(Job { number, handle, repeat, counter, cancelled_at_runs });
        Ok(number)
    }

    /// Cancels a job: true once, as [`Cancellable::cancel`]. False for one that the harness has not
    /// scheduled.
    pub fn cancel(&self, job: JobNumber) -> bool {
        let mut jobs = self.jobs.borrow_mut();
        let found = jobs.binary_search_by_key(&job, |job| job.number);
        found.is_ok_and(|index| jobs[index].cancel())
    }

    /// Cancels a job that the seed chooses among those that have not ended. `None` without any.
    pub fn inject_random_cancel(&self, seed: u64) -> Option<JobNumber> {
        let mut jobs = self.jobs.borrow_mut();
        let is_live = |job: &Job| !job.handle.is_cancelled() && !job.handle.is_completed();
        let n_live = jobs.iter().filter(|job| is_live(job)).count() as u64;
        if n_live == 0 {
            return None;
        }
        let chosen = usize::try_from(Random::new(seed).below(n_live)).ok()?;
        let job = jobs.iter_mut().filter(|job| is_live(job)).nth(chosen)?;
        job.cancel().then_some(job.number)
    }

    /// How often a job has run; `None` for one that the harness has not scheduled.
    pub fn runs(&self, job: JobNumber) -> Option<u32> {
        let jobs = self.jobs.borrow();
        let index = jobs.binary_search_by_key(&job, |job| job.number).ok()?;
        Some(jobs[index].runs())
    }

    /// The handle of a job that the harness has scheduled.
    pub fn handle(&self, job: JobNumber) -> Option<Cancellable> {
        let jobs = self.jobs.borrow();
        let index = jobs.binary_search_by_key(&job, |job| job.number).ok()?;
        Some(jobs[index].handle.clone())
    }

    /// Advances time and runs due jobs. Returns the number of runs.
    pub fn advance(&self, duration: Duration) -> usize {
        let begun = self.now();
        let ran = self.runner.advance(duration);
        // Whole ticks: whether what is left below one has completed another is not known here.
        let span = self.runner.clock().resolution().ticks_ceil(duration).unwrap_or(TickSpan::MAX);
        let to = begun.saturating_add(span);
        self.mark_settled(if self.ticks(span.get()) > duration {
            to.saturating_sub(TickSpan::ONE)
        } else {
            to
        });
        ran
    }

    /// Advances the clock without a poll.
    pub fn stall(&self, duration: Duration) {
        self.runner.clock().advance(duration);
    }

    /// Runs due jobs. Returns the number of runs.
    pub fn run_due(&self) -> usize {
        let now = self.now();
        let ran = self.runner.run_due();
        self.mark_settled(now);
        ran
    }

    /// Closes the scheduler.
    pub fn shutdown(&self) -> CloseReport {
        let now = self.now();
        let report = self.scheduler().shutdown();
        if self.closed_at.get().is_none() {
            self.closed_at.set(Some(now));
        }
        report
    }

    /// Takes so many steps as the seed says: jobs of all kinds are scheduled, some with handlers
    /// that take time; jobs are cancelled; time stalls and advances.
    pub fn run_random(&self, seed: u64, steps: usize) -> RandomSteps {
        let mut random = Random::new(seed);
        let mut done = RandomSteps::default();
        for _ in 0..steps {
            match random.below(8) {
                0..=3 => self.schedule_random(&mut random, &mut done),
                4 => {
                    let cancelled = self.inject_random_cancel(random.below(u64::MAX));
                    done.cancelled += usize::from(cancelled.is_some());
                }
                5 => {
                    done.stalls += 1;
                    self.stall(self.ticks(random.up_to(STEP_TICKS_DRAWN_MAX)));
                }
                6 => done.ran += self.run_due(),
                _ => done.ran += self.advance(self.ticks(random.up_to(STEP_TICKS_DRAWN_MAX))),
            }
        }
        done
    }

    fn schedule_random(&self, random: &mut Random, done: &mut RandomSteps) {
        let initial = self.ticks(random.up_to(DELAY_TICKS_DRAWN_MAX));
        let tick = self.ticks(1);
        // A period need not be whole ticks.
        let part = tick * u32::try_from(random.below(4)).unwrap_or(0) / 4;
        let period = self.ticks(1 + random.up_to(PERIOD_TICKS_DRAWN_MAX)) + part;
        let spec = match random.below(4) {
            0 => JobSpec::fixed_rate(initial, period),
            1 => JobSpec::fixed_delay(initial, period),
            _ => JobSpec::once(initial),
        };
        let spec = spec.policy(self.policy);
        // Slow jobs at a fixed rate would be further behind with each of their runs.
        let is_slow = random.below(8) == 0 && !matches!(spec.repeat, Repeat::FixedRate(_));
        match self.schedule_slow(spec, if is_slow { tick } else { Duration::ZERO }) {
            Ok(_) => done.scheduled += 1,
            Err(_) => done.refused += 1,
        }
    }

    /// Checks the order of the log, as [`monotonic`].
    ///
    /// # Errors
    ///
    /// The first violation, with its records.
    pub fn assert_monotonic(&self) -> Result<(), PropertyError> {
        monotonic(&self.records()?, self.closed_at.get())
    }

    /// Checks the cancels: by the log, as [`cancelled_never_ran`], and by the handlers and handles
    /// of the harness's jobs.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn assert_cancelled_never_ran(&self) -> Result<(), PropertyError> {
        cancelled_never_ran(&self.records()?)?;
        for job in &*self.jobs.borrow() {
            let Some(runs_then) = job.cancelled_at_runs else { continue };
            let (number, runs_now) = (job.number, job.runs());
            if !job.handle.is_cancelled() || job.handle.is_completed() {
                return Err(PropertyError::CancelForgotten { job: number });
            }
            if runs_then != runs_now {
                return Err(PropertyError::CalledAfterCancel { job: number, runs_then, runs_now });
            }
        }
        Ok(())
    }

    /// Checks the harness's jobs at a fixed rate: each run was due at a multiple of the period from
    /// the first, and of those that have not ended as many have run as were due when time was last
    /// moved by the harness.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn assert_fixed_rate_grid(&self) -> Result<(), PropertyError> {
        let records = self.records()?;
        for job in &*self.jobs.borrow() {
            let Repeat::FixedRate(period) = job.repeat else { continue };
            self.check_rate(job, period, &records)?;
        }
        Ok(())
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn assert_all(&self) -> Result<(), PropertyError> {
        self.assert_monotonic()?;
        self.assert_cancelled_never_ran()?;
        self.assert_fixed_rate_grid()
    }

    fn check_rate(
        &self,
        job: &Job,
        period: Duration,
        records: &[LogRecord],
    ) -> Result<(), PropertyError> {
        let resolution = self.runner.clock().resolution();
        let rate = FixedRate { job: job.number, period, resolution };
        let settled = Some(self.settled.get()).filter(|_| !job.handle.is_cancelled());
        let logged = fixed_rate_grid(records, &rate, settled)?;
        let seen = u64::from(job.runs());
        if logged != seen {
            return Err(PropertyError::RunsDiffer { job: job.number, logged, seen });
        }
        Ok(())
    }

    /// All records, or an error if some were lost.
    fn records(&self) -> Result<Vec<LogRecord>, PropertyError> {
        let records = self.trace().records().to_vec();
        let metrics = self.scheduler().metrics();
        let written = metrics.accepted_total + metrics.fired_total + metrics.cancelled_total;
        let kept = records.len() as u64;
        if kept < written {
            return Err(PropertyError::LogIncomplete { kept, written });
        }
        Ok(records)
    }

    fn mark_settled(&self, tick: Tick) {
        self.settled.set(self.settled.get().max(tick));
    }

    fn now(&self) -> Tick {
        self.runner.clock().now().tick()
    }

    fn ticks(&self, n: u64) -> Duration {
        self.runner.clock().resolution().duration(TickSpan::new(n))
    }
}

impl Job {
    fn runs(&self) -> u32 {
        // Relaxed: one thread.
        self.counter.runs.load(Ordering::Relaxed)
    }

    fn cancel(&mut self) -> bool {
        let won = self.handle.cancel();
        if won {
            self.cancelled_at_runs = Some(self.runs());
        }
        won
    }
}

impl Drop for SchedulerHarness {
    fn drop(&mut self) {
        self.scheduler().shutdown();
    }
}

impl fmt::Debug for SchedulerHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerHarness")
            .field("runner", &self.runner)
            .field("jobs", &self.jobs.borrow().len())
            .field("settled", &self.settled.get())
            .finish_non_exhaustive()
    }
}
