//! `clockjack demo jobs`: a scheduler with jobs of all kinds, in virtual time.
//!
//! Jobs are registered and cancelled at ticks that were drawn before. In the middle the clock
//! jumps, as if the program had been suspended, and the scheduler catches up.

use core::{fmt, time::Duration};
use std::{sync::mpsc, time::Instant};

use clockjack_sched::{
    Cancellable, DispatcherId, DumpFormat, FireContext, ManualRunner, Repeat, ScheduleErrorKind,
    SchedulerConfig,
    properties::{JobOracle, Run},
};
use clockjack_time::{MonotonicClock as _, Tick, TickSpan};

use super::Checked;
use crate::{failure::Failure, rng::Rng};

/// The whole virtual time, in ticks of 10 ms: a minute.
const END: u32 = 6_000;
/// How far the clock jumps in the middle.
const JUMP: u32 = 500;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    pub(crate) seed: u64,
    /// Whether the state of the scheduler is printed, just before the clock jumps.
    pub(crate) is_dumped: bool,
}

impl Plan {
    /// A thousand jobs.
    pub(crate) const DEFAULT: Self = Self { count: 1_000, seed: 1, is_dumped: false };
    /// A few gigabytes of log and oracle.
    pub(crate) const COUNT_MAX: u32 = 1_000_000;
}

/// What happens at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Register { delay: u32, period: u32, cancel_after: Option<u32> },
    Cancel(usize),
}

/// The counts of one kind of job.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    jobs: u64,
    runs: u64,
    cancelled: u64,
}

/// The counts of a run in which every check held.
#[derive(Debug)]
pub(crate) struct Report {
    plan: Plan,
    /// Once, fixed rate, fixed delay.
    counts: [Count; 3],
    /// The wall time of the scheduler.
    wall: Duration,
    checked: Checked,
    dump: String,
}

/// Runs the demo.
pub(crate) fn run(plan: Plan) -> Result<Report, Failure> {
    let mut demo = Demo::new(plan);
    let mut actions = draw(plan);
    while let Some((at, action)) = actions.pop() {
        demo.advance_past_jump(at)?;
        match action {
            Action::Cancel(number) => demo.cancel(number)?,
            Action::Register { delay, period, cancel_after } => {
                let number = demo.register(delay, period)?;
                if let Some(after) = cancel_after {
                    let cancel = (at.saturating_add(after).min(END), Action::Cancel(number));
                    let place = actions.partition_point(|action| *action > cancel);
                    actions.insert(place, cancel);
                }
            }
        }
    }
    demo.advance_past_jump(END)?;
    demo.finish()
}

/// All registrations, the last one first. One job in ten is to be cancelled.
fn draw(plan: Plan) -> Vec<(u32, Action)> {
    let mut rng = Rng::new(plan.seed);
    let draw = |_| {
        let at = rng.below(END / 2);
        let (delay, period) = (rng.below(END / 4), END / 64 + rng.below(END / 8));
        let cancel_after = (rng.below(10) == 0).then(|| rng.below(END / 2));
        (at, Action::Register { delay, period, cancel_after })
    };
    let mut actions: Vec<_> = (0..plan.count).map(draw).collect();
    actions.sort_unstable_by(|a, b| b.cmp(a));
    actions
}

struct Demo {
    plan: Plan,
    runner: ManualRunner,
    handles: Vec<Cancellable>,
    sender: mpsc::Sender<(usize, Run)>,
    runs: mpsc::Receiver<(usize, Run)>,
    has_jumped: bool,
    wall: Duration,
    checked: Checked,
    counts: [Count; 3],
    dump: String,
}

impl Demo {
    fn new(plan: Plan) -> Self {
        let config = SchedulerConfig { quota: plan.count as usize, ..SchedulerConfig::DEFAULT };
        let checked = Checked::new(JobOracle::new(config.resolution));
        let runner = ManualRunner::new(config).expect("one shard, and not for production");
        let (sender, runs) = mpsc::channel();
        let (handles, dump) = (Vec::new(), String::new());
        let (has_jumped, wall, counts) = (false, Duration::ZERO, [Count::default(); 3]);
        Self { plan, runner, handles, sender, runs, has_jumped, wall, checked, counts, dump }
    }

    fn now(&self) -> u64 {
        self.runner.clock().now().tick().get()
    }

    /// Advances the clock; in the middle of the time it jumps.
    fn advance_past_jump(&mut self, to: u32) -> Result<(), Failure> {
        if !self.has_jumped && to > END / 2 {
            self.advance(END / 2)?;
            self.has_jumped = true;
            if self.plan.is_dumped {
                let written = self.runner.scheduler().dump(DumpFormat::Text, &mut self.dump);
                written.expect("writing to a string cannot fail");
            }
            self.runner.clock().advance_ticks(TickSpan::new(JUMP.into()));
            self.check_runs(|runner| {
                _ = runner.run_due();
            })?;
        }
        self.advance(to)
    }

    fn advance(&mut self, to: u32) -> Result<(), Failure> {
        if u64::from(to) <= self.now() {
            return Ok(());
        }
        self.check_runs(|runner| {
            _ = runner.advance_to(Tick::new(to.into()));
        })
    }

    /// Lets the scheduler run jobs, and checks these runs.
    fn check_runs(&mut self, advance: impl FnOnce(&ManualRunner)) -> Result<(), Failure> {
        let started = Instant::now();
        advance(&self.runner);
        self.wall += started.elapsed();
        for (number, run) in self.runs.try_iter() {
            self.checked.run(number, run)?;
            self.counts[number % 3].runs += u64::from(run.batch.runs.get());
        }
        Ok(self.checked.settled(self.now())?)
    }

    /// Schedules a job: once, at a fixed rate or with a fixed delay, in turn. Returns its number.
    fn register(&mut self, delay: u32, period: u32) -> Result<usize, Failure> {
        let resolution = self.runner.clock().resolution();
        let length = |ticks: u32| resolution.duration(TickSpan::new(ticks.into()));
        let kind = self.handles.len() % 3;
        let repeat =
            [Repeat::Once, Repeat::FixedRate(length(period)), Repeat::FixedDelay(length(period))]
                [kind];
        let due = Tick::new(self.now() + u64::from(delay));
        let number = self.checked.oracle.offer(repeat, due);
        let started = Instant::now();
        let handle = self.schedule(number, length(delay), repeat);
        self.wall += started.elapsed();
        let handle =
            handle.map_err(|kind| Failure::check(format!("job {number} was refused: {kind}")))?;
        self.checked.oracle.accept(number);
        self.handles.push(handle);
        self.counts[kind].jobs += 1;
        // A job without a delay has run at once.
        self.check_runs(|_| ())?;
        Ok(number)
    }

    fn schedule(
        &self,
        number: usize,
        delay: Duration,
        repeat: Repeat,
    ) -> Result<Cancellable, ScheduleErrorKind> {
        let (scheduler, any) = (self.runner.scheduler(), DispatcherId::DEFAULT);
        let sender = self.sender.clone();
        let handler = move |fire: &FireContext| {
            let run = Run { due: fire.due(), now: fire.now().tick(), batch: fire.batch() };
            sender.send((number, run))
        };
        match repeat {
            Repeat::Once => {
                scheduler.schedule_once_fn(delay, any, handler).map_err(|error| error.kind())
            }
            Repeat::FixedRate(period) => scheduler
                .schedule_at_fixed_rate_fn(delay, period, any, handler)
                .map_err(|error| error.kind()),
            Repeat::FixedDelay(period) => scheduler
                .schedule_with_fixed_delay_fn(delay, period, any, handler)
                .map_err(|error| error.kind()),
        }
    }

    /// Cancels a job twice; the second cancel must fail.
    fn cancel(&mut self, number: usize) -> Result<(), Failure> {
        for _ in 0..2 {
            let won = self.handles[number].cancel();
            self.checked.oracle.cancel(number, won)?;
            self.counts[number % 3].cancelled += u64::from(won);
        }
        Ok(())
    }

    fn finish(self) -> Result<Report, Failure> {
        let n_live = self.runner.scheduler().metrics().active_total;
        let closed = self.runner.scheduler().shutdown();
        let is_complete = closed.accepted == u64::from(self.plan.count)
            && closed.accepted == closed.executed + closed.cancelled
            && n_live == self.checked.oracle.n_live()
            && self.runs.try_iter().next().is_none();
        if !is_complete {
            return Err(Failure::check(format!("the scheduler has lost a job: {closed}")));
        }
        let Self { plan, counts, wall, checked, dump, .. } = self;
        Ok(Report { plan, counts, wall, checked, dump })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { count, seed, .. } = self.plan;
        if !self.dump.is_empty() {
            writeln!(f, "{}", self.dump)?;
        }
        writeln!(
            f,
            "{count} jobs in 60 s of virtual time, seed {seed}; at 30 s the clock jumps 5 s\n"
        )?;
        for (name, Count { jobs, runs, cancelled }) in
            ["once", "fixed rate", "fixed delay"].iter().zip(self.counts)
        {
            writeln!(f, "{name:<12} {jobs:>6} jobs {runs:>8} runs {cancelled:>6} cancelled")?;
        }
        let Checked { n_late, late_max, order, .. } = self.checked;
        let late_ms = late_max * 10;
        writeln!(
            f,
            "lateness     none early; {n_late} calls late, at most {late_ms} ms: the jump"
        )?;
        let ms = self.wall.as_secs_f64() * 1e3;
        writeln!(f, "scheduler    {ms:.1} ms of wall time{}", crate::slow_build_note())?;
        writeln!(f, "order        {order:#018x}, the same on every machine")?;
        writeln!(f, "checked      against a sorted list: equal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn passed(count: u32, seed: u64) -> Report {
        run(Plan { count, seed, ..Plan::DEFAULT }).expect("every check holds")
    }

    #[test]
    fn every_seed_of_a_few_jobs_passes() {
        for seed in 0..200 {
            passed(20, seed);
        }
        passed(0, 1);
    }

    #[test]
    fn the_jump_makes_jobs_late_and_loses_no_run() {
        let Report { counts: [once, rate, delay], checked, .. } = passed(1_000, 1);
        assert_eq!(once.jobs + rate.jobs + delay.jobs, 1_000);
        assert!(checked.n_late > 100 && checked.late_max <= u64::from(JUMP), "{checked:?}");
        assert!(rate.runs > delay.runs, "a fixed rate catches up, a fixed delay does not");
        assert!([once, rate, delay].iter().all(|count| count.cancelled > 0));
    }
}
