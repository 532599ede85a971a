//! A scheduler in virtual time whose jobs report their runs to an oracle.

use alloc::vec::Vec;
use core::{cell::RefCell, fmt, time::Duration};

use clockjack_sync::{Arc, spin_lock::SpinLock, splitmix::SplitMix};
use clockjack_time::{MonotonicClock, Tick, TickSpan};

use super::{JobOracle, Property, PropertyError, Run};
use crate::{
    Cancellable, CloseReport, DispatcherId, FireContext, JobSpec, ManualRunner, ModeError, Policy,
    Repeat, ReplayTrace, ScheduleError, Scheduler, SchedulerConfig, Task,
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

/// A scheduler in virtual time, its clock, its log, and an oracle for its jobs.
///
/// It is for one thread. See the [module](crate::properties) for an example.
pub struct SchedulerHarness {
    runner: ManualRunner,
    /// The policy of jobs that are drawn.
    policy: Policy,
    /// By the number of the job.
    handles: RefCell<Vec<Option<Cancellable>>>,
    checked: Arc<SpinLock<Checked>>,
}

/// The oracle, and the first violation that it has found.
struct Checked {
    oracle: JobOracle,
    error: Option<PropertyError>,
}

impl Checked {
    fn check(&mut self, result: Result<(), PropertyError>) {
        if self.error.is_none() {
            self.error = result.err();
        }
    }
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
        let oracle = JobOracle::new(config.resolution);
        let policy = config.policies.of_dispatcher(DispatcherId::DEFAULT);
        let runner = ManualRunner::new(config)?;
        let checked = Arc::new(SpinLock::new(Checked { oracle, error: None }));
        Ok(Self { runner, policy, handles: RefCell::default(), checked })
    }

    /// The scheduler, for whatever the harness does not do. Jobs that are scheduled there are not
    /// checked.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        self.runner.scheduler()
    }

    /// What was logged so far.
    #[must_use]
    pub fn trace(&self) -> ReplayTrace {
        self.scheduler().diagnostics().trace()
    }

    /// Schedules a job. Returns its number.
    ///
    /// # Errors
    ///
    /// As the scheduler's.
    pub fn schedule(&self, spec: JobSpec) -> Result<usize, ScheduleError<()>> {
        self.schedule_slow(spec, Duration::ZERO)
    }

    /// Schedules a job whose handler takes so much time. Returns its number.
    ///
    /// # Errors
    ///
    /// As the scheduler's.
    pub fn schedule_slow(
        &self,
        spec: JobSpec,
        takes: Duration,
    ) -> Result<usize, ScheduleError<()>> {
        let now = self.now();
        let span = self.runner.clock().resolution().ticks_ceil(spec.delay);
        let due = now.saturating_add(span.unwrap_or(TickSpan::MAX));
        let job = self.checked.with(|checked| checked.oracle.offer(spec.repeat, due));
        self.handles.borrow_mut().push(None);
        let (checked, runner) = (self.checked.clone(), self.runner.clone());
        let task = Task::every(move |fire: &FireContext| {
            let tick = |now: clockjack_time::TimerInstant| now.tick();
            let run = Run { due: fire.due(), now: tick(fire.now()), batch: fire.batch() };
            checked.with(|checked| {
                let result = checked.oracle.begin(job, run);
                checked.check(result);
            });
            runner.clock().advance(takes);
            checked.with(|checked| checked.oracle.end(job, tick(runner.clock().now()), false));
        });
        match self.scheduler().schedule(spec, DispatcherId::DEFAULT, task) {
            Ok(handle) => {
                self.checked.with(|checked| checked.oracle.accept(job));
                self.handles.borrow_mut()[job] = Some(handle);
                if spec.delay.is_zero() {
                    // It ran within the call, behind all that was due.
                    self.check_settled(now);
                }
                Ok(job)
            }
            Err(error) => {
                self.checked.with(|checked| {
                    let result = checked.oracle.refuse(job);
                    checked.check(result);
                });
                Err(error.discard())
            }
        }
    }

    /// Cancels a job: true once, as [`Cancellable::cancel`].
    pub fn cancel(&self, job: usize) -> bool {
        let Some(handle) = self.handle(job) else { return false };
        let won = handle.cancel();
        self.checked.with(|checked| {
            let result = checked.oracle.cancel(job, won);
            checked.check(result);
        });
        won
    }

    /// Cancels a job that the seed chooses among those that have not ended. `None` without any.
    pub fn inject_random_cancel(&self, seed: u64) -> Option<usize> {
        let live: Vec<usize> = self.checked.with(|checked| {
            let oracle = &checked.oracle;
            (0..oracle.n_jobs()).filter(|job| oracle.is_live(*job)).collect()
        });
        let chosen = below(&mut SplitMix::new(seed), u64::max(live.len() as u64, 1));
        let job = live.get(usize::try_from(chosen).ok()?).copied()?;
        self.cancel(job).then_some(job)
    }

    /// How often a job has run.
    #[must_use]
    pub fn runs(&self, job: usize) -> u64 {
        self.checked.with(|checked| checked.oracle.runs(job))
    }

    /// The handle of a job that was accepted.
    #[must_use]
    pub fn handle(&self, job: usize) -> Option<Cancellable> {
        self.handles.borrow().get(job)?.clone()
    }

    /// Marks a job to run when the scheduler closes, as [`Cancellable::run_on_close`].
    pub fn run_on_close(&self, job: usize) -> bool {
        let is_marked = self.handle(job).is_some_and(|handle| handle.run_on_close());
        if is_marked {
            self.checked.with(|checked| checked.oracle.mark_run_on_close(job));
        }
        is_marked
    }

    /// Advances time and runs due jobs. Returns the number of runs.
    pub fn advance(&self, duration: Duration) -> usize {
        let begun = self.now();
        let ran = self.runner.advance(duration);
        // Whole ticks: whether what is left below one has completed another is not known here.
        let span = self.runner.clock().resolution().ticks_ceil(duration).unwrap_or(TickSpan::MAX);
        let to = begun.saturating_add(span);
        self.check_settled(if self.ticks(span.get()) > duration {
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
        self.check_settled(now);
        ran
    }

    /// Closes the scheduler.
    pub fn shutdown(&self) -> CloseReport {
        self.checked.with(|checked| checked.oracle.close());
        self.scheduler().shutdown()
    }

    /// Takes so many steps as the seed says: jobs of all kinds are scheduled, some with handlers
    /// that take time; jobs are cancelled; time stalls and advances. Returns the number of runs.
    pub fn run_random(&self, seed: u64, steps: usize) -> usize {
        let mut random = SplitMix::new(seed);
        let mut ran = 0;
        for _ in 0..steps {
            match below(&mut random, 8) {
                0..=3 => self.schedule_random(&mut random),
                4 => drop(self.inject_random_cancel(random.next_u64())),
                5 => self.stall(self.ticks(up_to(&mut random, STEP_TICKS_DRAWN_MAX))),
                6 => ran += self.run_due(),
                _ => ran += self.advance(self.ticks(up_to(&mut random, STEP_TICKS_DRAWN_MAX))),
            }
        }
        ran
    }

    fn schedule_random(&self, random: &mut SplitMix) {
        let initial = self.ticks(up_to(random, DELAY_TICKS_DRAWN_MAX));
        let tick = self.ticks(1);
        // A period need not be whole ticks.
        let part = tick * random.below(4) / 4;
        let period = self.ticks(1 + up_to(random, PERIOD_TICKS_DRAWN_MAX)) + part;
        let spec = match random.below(4) {
            0 => JobSpec::fixed_rate(initial, period),
            1 => JobSpec::fixed_delay(initial, period),
            _ => JobSpec::once(initial),
        };
        // Slow jobs at a fixed rate would be further behind with each of their runs.
        let is_slow = random.below(8) == 0 && !matches!(spec.repeat, Repeat::FixedRate(_));
        let takes = if is_slow { tick } else { Duration::ZERO };
        // A full scheduler refuses the job, which the oracle has checked.
        drop(self.schedule_slow(spec.policy(self.policy), takes));
    }

    /// Checks that time did not go back, and that nothing ran early or out of order.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn assert_monotonic(&self) -> Result<(), PropertyError> {
        let is_about_order = |error: &PropertyError| {
            matches!(
                error.property(),
                Property::Monotonic | Property::NeverEarly | Property::InOrder
            )
        };
        match self.checked.with(|checked| checked.error).filter(is_about_order) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Checks every [`Property`], among them that no cancelled job ran, and that jobs at a fixed
    /// rate have run as often as they were due when the harness last ran due jobs.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn assert_all(&self) -> Result<(), PropertyError> {
        self.checked.with(|checked| checked.error).map_or(Ok(()), Err)
    }

    /// Everything that was due by `now` has run, unless the scheduler had no room for it.
    fn check_settled(&self, now: Tick) {
        let mut evicted = Vec::new();
        for (job, handle) in self.handles.borrow().iter().enumerate() {
            if handle.as_ref().is_some_and(Cancellable::is_cancelled) {
                evicted.push(job);
            }
        }
        self.checked.with(|checked| {
            for job in evicted {
                checked.oracle.evict(job);
            }
            let result = checked.oracle.check_settled(now);
            checked.check(result);
        });
    }

    fn now(&self) -> Tick {
        self.runner.clock().now().tick()
    }

    fn ticks(&self, n: u64) -> Duration {
        self.runner.clock().resolution().duration(TickSpan::new(n))
    }
}

/// A number below `bound`, which is not zero.
const fn below(random: &mut SplitMix, bound: u64) -> u64 {
    random.next_u64() % bound
}

/// A number up to `max`, small ones more often: its length in bits is drawn first.
fn up_to(random: &mut SplitMix, max: u64) -> u64 {
    let bits = below(random, u64::from(u64::BITS - max.leading_zeros()) + 1);
    below(random, 1 << bits.min(63)).min(max)
}

impl Drop for SchedulerHarness {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl fmt::Debug for SchedulerHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerHarness")
            .field("runner", &self.runner)
            .field("jobs", &self.handles.borrow().len())
            .finish_non_exhaustive()
    }
}
