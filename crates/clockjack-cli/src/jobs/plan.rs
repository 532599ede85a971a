//! What is to be simulated, and whether it can be.

use core::{error::Error, fmt, time::Duration};

use clockjack_sched::{BatchMode, CatchUp, DELAY_TICKS_MAX, DumpFormat};
use clockjack_time::Resolution;

use crate::rng::{Choice, Rng};

/// What is to be simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many jobs.
    pub(crate) jobs: u32,
    /// Decides what they are, and who is cancelled when.
    pub(crate) seed: u64,
    /// For how long, rounded up to a tick.
    pub(crate) length: Duration,
    /// The length of a tick.
    pub(crate) resolution: Resolution,
    /// How many of a hundred are cancelled on the way.
    pub(crate) cancel_percent: u8,
    /// By how much the clock leaps in the middle, rounded up to a tick; zero for not at all.
    pub(crate) stall: Duration,
    /// What becomes of runs at a fixed rate that the leap has passed.
    pub(crate) policy: CatchUp,
    /// What to show on the way.
    pub(crate) dump: Option<Dump>,
}

/// A picture of the scheduler that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dump {
    pub(crate) format: DumpFormat,
    /// When; in the middle if `None`.
    pub(crate) at: Option<Duration>,
}

impl Plan {
    /// A thousand jobs in a minute, in ticks of ten milliseconds.
    pub(crate) const DEFAULT: Self = Self {
        jobs: 1_000,
        seed: 1,
        length: Duration::from_secs(60),
        resolution: Resolution::TEN_MILLIS,
        cancel_percent: 10,
        stall: Duration::ZERO,
        policy: CatchUp::Individually,
        dump: None,
    };
    /// Some million records in the log, and some two hundred megabytes in all.
    pub(crate) const JOBS_MAX: u32 = 100_000;
    /// All of them.
    pub(crate) const CANCEL_PERCENT_MAX: u8 = 100;

    /// The plan in ticks.
    pub(crate) fn ticks(&self) -> Result<Ticks, PlanError> {
        let ticks = |length| self.resolution.ticks_ceil(length).map(|span| span.get());
        let end = ticks(self.length).filter(|end| (1..=DELAY_TICKS_MAX).contains(end));
        let end = end.and_then(|end| u32::try_from(end).ok());
        let end = end.ok_or(PlanError::Length { resolution: self.resolution })?;
        let middle = end / 2;
        let stall = ticks(self.stall).and_then(|stall| u32::try_from(stall).ok());
        let stall = stall.filter(|stall| *stall <= end - middle).ok_or(PlanError::Stall)?;
        let dump_at = match self.dump {
            None => None,
            Some(Dump { at: None, .. }) => Some(middle),
            Some(Dump { at: Some(at), .. }) => {
                let at = ticks(at).and_then(|at| u32::try_from(at).ok());
                Some(at.filter(|at| *at <= end).ok_or(PlanError::DumpAt)?)
            }
        };
        Ok(Ticks { end, middle, stall, dump_at })
    }

    fn n_cancels(&self) -> u32 {
        let n_cancels = u64::from(self.jobs) * u64::from(self.cancel_percent) / 100;
        u32::try_from(n_cancels).expect("at most a hundred percent of a u32")
    }
}

/// The times of a plan, in ticks from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) end: u32,
    /// When the clock leaps, if it does. All jobs are registered by then.
    pub(crate) middle: u32,
    pub(crate) stall: u32,
    pub(crate) dump_at: Option<u32>,
}

/// Why a plan cannot be carried out: its times do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanError {
    Length { resolution: Resolution },
    Stall,
    DumpAt,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { resolution } => {
                write!(f, "--for must be from 1 to {DELAY_TICKS_MAX} ticks of {resolution}")
            }
            Self::Stall => f.write_str("--stall must be at most half of --for"),
            Self::DumpAt => f.write_str("--at must not be later than --for"),
        }
    }
}

impl Error for PlanError {}

/// A job as it was drawn, in ticks. Numbers go by registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobPlan {
    /// When it is registered.
    pub(crate) at: u32,
    pub(crate) mode: BatchMode,
    /// From its registration to its first run.
    pub(crate) delay: u32,
    /// Zero for a one-shot.
    pub(crate) period: u32,
    /// By how many nanoseconds, less than a tick, the delay that is asked for is shorter: it is
    /// to be rounded up.
    pub(crate) shorter_ns: u32,
    /// When somebody tries to cancel it.
    pub(crate) cancel_at: Option<u32>,
}

impl JobPlan {
    /// How often it can run before `end`, at the most.
    pub(crate) fn n_runs_max(&self, end: u32) -> u64 {
        let left = u64::from(end).saturating_sub(u64::from(self.at) + u64::from(self.delay));
        left.checked_div(u64::from(self.period)).unwrap_or(0) + 1
    }
}

/// Draws the jobs of a plan, in the order of their registration.
pub(crate) fn draw_jobs(plan: &Plan, ticks: Ticks) -> Vec<JobPlan> {
    let mut rng = Rng::new(plan.seed);
    let mut registrations: Vec<u32> = (0..plan.jobs)
        .map(|_| if rng.below(2) == 0 { 0 } else { rng.below(ticks.middle + 1) })
        .collect();
    registrations.sort_unstable();
    let mut choice = Choice { wanted: plan.n_cancels(), left: plan.jobs };
    registrations.into_iter().map(|at| draw_job(&mut rng, &mut choice, plan, ticks, at)).collect()
}

fn draw_job(rng: &mut Rng, choice: &mut Choice, plan: &Plan, ticks: Ticks, at: u32) -> JobPlan {
    let Ticks { end, middle, .. } = ticks;
    let modes = [BatchMode::OneShot, BatchMode::FixedRate, BatchMode::FixedDelay];
    let mode = modes[rng.below(3) as usize];
    // So a periodic job runs some dozens of times at the most, however long a plan is.
    let (shortest, longest) = ((end / 64).max(1), (end / 8).max(1));
    let (delay, period) = if mode == BatchMode::OneShot {
        (1 + rng.below((end - middle).max(1)), 0)
    } else {
        (1 + rng.below(longest), shortest + rng.below(longest - shortest + 1))
    };
    let shorter_ns = rng.below(plan.resolution.nanos().get());
    let cancel_at = choice.takes_next(rng).then(|| at + rng.below(end - at + 1));
    JobPlan { at, mode, delay, period, shorter_ns, cancel_at }
}

/// Something that the hand does which moves the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Register(u32),
    Cancel(u32),
    Dump,
    Leap,
}

impl Action {
    /// What comes first at one tick. A picture that is asked for at the tick of the leap is of the
    /// time before.
    const fn rank(self) -> (u8, u32) {
        match self {
            Self::Register(number) => (0, number),
            Self::Cancel(number) => (1, number),
            Self::Dump => (2, 0),
            Self::Leap => (3, 0),
        }
    }
}

/// All that is to be done, with its tick, in order.
pub(crate) fn actions(jobs: &[JobPlan], ticks: Ticks) -> Vec<(u32, Action)> {
    let mut actions = Vec::with_capacity(2 * jobs.len() + 2);
    for (number, job) in (0..).zip(jobs) {
        actions.push((job.at, Action::Register(number)));
        actions.extend(job.cancel_at.map(|at| (at, Action::Cancel(number))));
    }
    actions.extend(ticks.dump_at.map(|at| (at, Action::Dump)));
    actions.extend((ticks.stall > 0).then_some((ticks.middle, Action::Leap)));
    actions.sort_unstable_by_key(|&(at, action)| (at, action.rank()));
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(change: impl FnOnce(&mut Plan)) -> Result<Ticks, PlanError> {
        let mut plan = Plan { length: Duration::from_secs(1), ..Plan::DEFAULT };
        change(&mut plan);
        plan.ticks()
    }

    #[test]
    fn times_are_rounded_up_to_ticks() {
        let found = ticks(|plan| {
            plan.length = Duration::from_millis(1_001);
            plan.stall = Duration::from_millis(1);
        });
        assert_eq!(found, Ok(Ticks { end: 101, middle: 50, stall: 1, dump_at: None }));
    }

    #[test]
    fn a_plan_that_cannot_be_is_refused() {
        let length = Err(PlanError::Length { resolution: Resolution::TEN_MILLIS });
        assert_eq!(ticks(|plan| plan.length = Duration::ZERO), length);
        let longest = Duration::from_millis(10) * i32::MAX.unsigned_abs();
        assert!(ticks(|plan| plan.length = longest).is_ok());
        assert_eq!(ticks(|plan| plan.length = longest + Duration::from_nanos(1)), length);
        assert_eq!(ticks(|plan| plan.length = Duration::MAX), length);
        assert!(ticks(|plan| plan.stall = Duration::from_millis(500)).is_ok());
        let stall = Err(PlanError::Stall);
        assert_eq!(ticks(|plan| plan.stall = Duration::from_millis(501)), stall);
        let dump =
            |at| Some(Dump { format: DumpFormat::Text, at: Some(Duration::from_millis(at)) });
        assert!(ticks(|plan| plan.dump = dump(1_000)).is_ok());
        assert_eq!(ticks(|plan| plan.dump = dump(1_001)), Err(PlanError::DumpAt));
    }

    #[test]
    fn jobs_are_of_all_kinds_and_exactly_as_many_are_to_be_cancelled_as_planned() {
        let plan = Plan { cancel_percent: 33, ..Plan::DEFAULT };
        let ticks = plan.ticks().expect("a plan that can be");
        let jobs = draw_jobs(&plan, ticks);
        assert_eq!(jobs.len(), 1_000);
        for mode in [BatchMode::OneShot, BatchMode::FixedRate, BatchMode::FixedDelay] {
            assert!(jobs.iter().filter(|job| job.mode == mode).count() > 250, "{mode}");
        }
        assert_eq!(jobs.iter().filter(|job| job.cancel_at.is_some()).count(), 330);
        assert!(jobs.iter().all(|job| job.at <= ticks.middle));
        assert!(jobs.iter().all(|job| job.cancel_at.is_none_or(|at| at >= job.at && at <= 6_000)));
        assert!(jobs.iter().all(|job| job.n_runs_max(ticks.end) <= 65));
        assert!(jobs.is_sorted_by_key(|job| job.at));
    }

    #[test]
    fn the_shortest_plan_has_jobs_too() {
        let plan = Plan { length: Duration::from_millis(1), ..Plan::DEFAULT };
        let ticks = plan.ticks().expect("one tick");
        assert_eq!((ticks.end, ticks.middle), (1, 0));
        assert!(draw_jobs(&plan, ticks).iter().all(|job| job.at == 0 && job.delay == 1));
    }

    #[test]
    fn actions_go_by_tick_and_a_picture_is_of_the_time_before_the_leap() {
        let job = JobPlan {
            at: 5,
            mode: BatchMode::OneShot,
            delay: 1,
            period: 0,
            shorter_ns: 0,
            cancel_at: Some(5),
        };
        let ticks = Ticks { end: 10, middle: 5, stall: 2, dump_at: Some(5) };
        let expected = [Action::Register(0), Action::Cancel(0), Action::Dump, Action::Leap];
        let found: Vec<Action> = actions(&[job], ticks).into_iter().map(|(_, a)| a).collect();
        assert_eq!(found, expected);
    }
}
