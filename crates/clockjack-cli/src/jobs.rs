//! `clockjack jobs`: a scheduler with jobs of all kinds, in virtual time.
//!
//! A hand, which is a [`ManualRunner`], registers and cancels jobs at ticks that were drawn before,
//! and moves the clock from one of these ticks to the next. In the middle the clock may leap, as
//! if the program had been suspended. Nothing here looks at a real clock, so that what comes
//! out depends on the [`Plan`] alone, byte for byte.

mod check;
mod heard;
mod plan;
mod report;
mod violation;

use core::time::Duration;
use std::sync::mpsc;

use clockjack_sched::{
    BatchMode, Cancellable, DispatcherId, EventKinds, FireContext, LogKind, ManualRunner, Policy,
    PolicyRegistry, ReplayTrace, ScheduleErrorKind, SchedulerConfig, SchedulerMetrics,
    Subscription,
};
use clockjack_time::{MonotonicClock as _, Resolution, Tick, TickSpan};

use self::{
    check::{Checker, Counts, Digest, Rules, Run, Tells},
    heard::Heard,
    plan::{Action, JobPlan, Ticks, actions, draw_jobs},
    report::Report,
};
pub(crate) use self::{
    plan::{Dump, Plan, PlanError},
    violation::Violation,
};
use crate::{failure::Failure, progress::Progress};

/// Into how many steps the whole time is cut at least, so that progress can be shown.
const STEPS: u32 = 256;
/// Events other than those of jobs that may come between two looks at the stream.
const EVENTS_BESIDE: usize = 1024;

/// What a simulation came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    /// What the scheduler did, to be kept or compared.
    pub(crate) trace: ReplayTrace,
}

/// Runs a plan, checking every run.
pub(crate) fn simulate(plan: Plan, progress: Progress<'_>) -> Result<Outcome, Failure> {
    let ticks = plan.ticks()?;
    let jobs = draw_jobs(&plan, ticks);
    let mut simulation = Simulation::new(plan, ticks, &jobs, progress);
    for (at, action) in actions(&jobs, ticks) {
        simulation.advance_to(u64::from(at))?;
        match action {
            Action::Register(number) => simulation.register(number, jobs[number as usize])?,
            Action::Cancel(number) => simulation.cancel(number)?,
            Action::Dump => simulation.dump(),
            Action::Leap => simulation.leap(),
        }
    }
    simulation.advance_to(u64::from(ticks.end))?;
    simulation.finish()
}

struct Simulation<'w> {
    plan: Plan,
    ticks: Ticks,
    runner: ManualRunner,
    /// By number.
    handles: Vec<Cancellable>,
    /// What handlers say.
    told: mpsc::Sender<Run>,
    runs: mpsc::Receiver<Run>,
    stream: Subscription,
    heard: Heard,
    checker: Checker,
    dump: Option<String>,
    progress: Progress<'w>,
}

impl<'w> Simulation<'w> {
    fn new(plan: Plan, ticks: Ticks, jobs: &[JobPlan], progress: Progress<'w>) -> Self {
        // So that no record is lost: each job is registered, runs, and ends by a cancel.
        let n_runs: u64 = jobs.iter().map(|job| job.n_runs_max(ticks.end)).sum();
        let n_records =
            usize::try_from(n_runs).unwrap_or(usize::MAX).saturating_add(2 * jobs.len());
        let policy = Policy::DEFAULT.catch_up(plan.policy);
        let config = SchedulerConfig {
            resolution: plan.resolution,
            policies: PolicyRegistry::new().set_default(policy),
            log_capacity: n_records,
            ..SchedulerConfig::DEFAULT
        };
        let rules = Rules { policy: plan.policy, jump_ticks: jump_ticks(&config) };
        let runner = ManualRunner::new(config).expect("one shard, and not for production");
        let room = n_records.saturating_add(jobs.len()).saturating_add(EVENTS_BESIDE);
        let stream = runner.scheduler().diagnostics().subscribe(EventKinds::ALL, room);
        let stream = stream.expect("the only subscription");
        let (told, runs) = mpsc::channel();
        Self {
            plan,
            ticks,
            runner,
            handles: Vec::with_capacity(jobs.len()),
            told,
            runs,
            stream,
            heard: Heard::default(),
            checker: Checker::new(rules),
            dump: None,
            progress,
        }
    }

    fn now(&self) -> u64 {
        self.runner.clock().now().tick().get()
    }

    /// Moves the clock, and holds what runs on the way to the books. Nothing happens if the clock
    /// has leapt there already: what is due then waits until time moves on.
    fn advance_to(&mut self, target: u64) -> Result<(), Failure> {
        let step = u64::from(self.ticks.end.div_ceil(STEPS));
        while self.now() < target {
            let until = target.min(self.now() + step);
            self.runner.advance_to(Tick::new(until));
            for run in self.runs.try_iter() {
                self.checker.ran(run, until)?;
            }
            self.checker.settle(until);
            self.heard.listen(&mut self.stream);
            self.progress.show("running", until, u64::from(self.ticks.end));
        }
        Ok(())
    }

    fn register(&mut self, number: u32, job: JobPlan) -> Result<(), Failure> {
        let resolution = self.plan.resolution;
        let asked = length(resolution, job.delay) - Duration::from_nanos(job.shorter_ns.into());
        let handle = self.schedule(number, job, asked).map_err(Failure::not_scheduled(number))?;
        self.handles.push(handle);
        self.checker.registered(job.mode, job.delay, job.period);
        Ok(())
    }

    fn schedule(
        &self,
        number: u32,
        job: JobPlan,
        delay: Duration,
    ) -> Result<Cancellable, ScheduleErrorKind> {
        let (scheduler, anywhere) = (self.runner.scheduler(), DispatcherId::DEFAULT);
        let period = length(self.plan.resolution, job.period);
        let told = self.told.clone();
        let handler = move |fire: &FireContext| {
            let (due, at) = (fire.due().get(), fire.now().tick().get());
            let run = Run { number, job: fire.job(), due, at, batch: fire.batch() };
            told.send(run)
        };
        match job.mode {
            BatchMode::OneShot => {
                scheduler.schedule_once_fn(delay, anywhere, handler).map_err(|e| e.kind())
            }
            BatchMode::FixedRate => scheduler
                .schedule_at_fixed_rate_fn(delay, period, anywhere, handler)
                .map_err(|e| e.kind()),
            BatchMode::FixedDelay => scheduler
                .schedule_with_fixed_delay_fn(delay, period, anywhere, handler)
                .map_err(|e| e.kind()),
        }
    }

    /// Cancels a job, and tries it again, which must come to nothing.
    fn cancel(&mut self, number: u32) -> Result<(), Failure> {
        let handle = &self.handles[number as usize];
        for _ in 0..2 {
            self.checker.cancelled(number, handle.cancel())?;
        }
        Ok(())
    }

    fn dump(&mut self) {
        let Some(Dump { format, .. }) = self.plan.dump else { return };
        let mut text = String::new();
        let written = self.runner.scheduler().dump(format, &mut text);
        written.expect("writing to a string cannot fail");
        self.dump = Some(text);
    }

    /// The clock goes on, and nobody runs anything.
    fn leap(&mut self) {
        let to = self.now() + u64::from(self.ticks.stall);
        self.runner.clock().advance_to(Tick::new(to));
        self.checker.leapt(to);
    }

    fn finish(mut self) -> Result<Outcome, Failure> {
        // A leap to the very end has left what it passed.
        if self.ticks.stall > 0 {
            self.runner.run_due();
            for run in self.runs.try_iter() {
                self.checker.ran(run, u64::from(self.ticks.end))?;
            }
            self.checker.settle(u64::from(self.ticks.end));
        }
        self.checker.finish()?;
        for (number, handle) in (0..).zip(&self.handles) {
            let (is_completed, is_cancelled) = (handle.is_completed(), handle.is_cancelled());
            self.checker.check_handle(number, Tells { is_completed, is_cancelled })?;
        }
        let metrics = self.runner.scheduler().metrics();
        let counts = *self.checker.counts();
        compare_metrics(&counts, &metrics)?;
        let closed = self.runner.scheduler().shutdown();
        let trace = self.runner.scheduler().diagnostics().trace();
        self.heard.listen(&mut self.stream);
        let ended = [
            ("jobs that were accepted", u64::from(counts.all().jobs), closed.accepted),
            ("jobs that ended, by the close", closed.accepted, closed.executed + closed.cancelled),
            ("runs after the last", 0, self.runs.try_iter().count() as u64),
        ];
        compare(&ended)?;
        compare_stream(&counts, &self.heard, closed.cancelled)?;
        compare_log(&trace, self.checker.digest(), &counts, closed.cancelled)?;
        // The line goes before anything is printed.
        drop(self.progress);
        let Self { plan, ticks, heard, dump, checker, .. } = self;
        let digest = checker.digest();
        let n_records = trace.records().len();
        let report = Report { plan, ticks, counts, metrics, heard, digest, n_records, dump };
        Ok(Outcome { report, trace })
    }
}

/// So many ticks, which are fewer than a plan may have.
fn length(resolution: Resolution, ticks: u32) -> Duration {
    resolution.duration(TickSpan::new(u64::from(ticks)))
}

/// How far the clock may go at once without folding what it has passed.
fn jump_ticks(config: &SchedulerConfig) -> u64 {
    config.resolution.ticks_ceil(config.clock_jump).map_or(u64::MAX, TickSpan::get)
}

/// Counts, by the books and by the scheduler.
fn compare(counts: &[(&'static str, u64, u64)]) -> Result<(), Violation> {
    match counts.iter().find(|(_, books, told)| books != told) {
        Some(&(what, books, told)) => Err(Violation::OtherCount { what, books, told }),
        None => Ok(()),
    }
}

fn compare_metrics(counts: &Counts, metrics: &SchedulerMetrics) -> Result<(), Violation> {
    let all = counts.all();
    let periodic = counts.fixed_rate.active() + counts.fixed_delay.active();
    compare(&[
        ("accepted_total", u64::from(all.jobs), metrics.accepted_total),
        ("fired_total", all.calls, metrics.fired_total),
        ("executed_total", u64::from(all.completed), metrics.executed_total),
        ("cancelled_total", u64::from(all.cancelled), metrics.cancelled_total),
        ("active_total", u64::from(all.active()), metrics.active_total as u64),
        ("periodic_total", u64::from(periodic), metrics.periodic_total as u64),
        ("failed_total", 0, metrics.failed_total),
        ("dropped_total", 0, metrics.dropped_total),
        ("diagnostics_dropped", 0, metrics.diagnostics_dropped as u64),
    ])
}

/// Everything that happened was on the stream, the cancels of the close included.
fn compare_stream(counts: &Counts, heard: &Heard, cancelled: u64) -> Result<(), Violation> {
    let all = counts.all();
    compare(&[
        ("jobs scheduled, on the stream", u64::from(all.jobs), heard.scheduled),
        ("jobs fired, on the stream", all.calls, heard.fired),
        ("jobs cancelled, on the stream", cancelled, heard.cancelled),
    ])
}

/// The log has what happened, and the runs in their order.
fn compare_log(
    trace: &ReplayTrace,
    digest: Digest,
    counts: &Counts,
    cancelled: u64,
) -> Result<(), Violation> {
    let count = |kind| trace.records().iter().filter(|record| record.kind == kind).count() as u64;
    let mut logged = Digest::default();
    for record in trace.records().iter().filter(|record| record.kind == LogKind::Fire) {
        let run = [record.deadline.get(), record.at.get(), u64::from(record.runs)];
        logged.enter(record.job.number.wrapping_sub(1), run);
    }
    let all = counts.all();
    compare(&[
        ("records lost by the log", 0, trace.lost()),
        ("jobs scheduled, in the log", u64::from(all.jobs), count(LogKind::Schedule)),
        ("jobs fired, in the log", all.calls, count(LogKind::Fire)),
        ("jobs cancelled, in the log", cancelled, count(LogKind::Cancel)),
        ("digest of the runs", digest.0, logged.0),
    ])
}

#[cfg(test)]
mod tests {
    use clockjack_sched::{CatchUp, DumpFormat};

    use super::*;

    #[track_caller]
    fn simulated(plan: Plan) -> Outcome {
        simulate(plan, Progress::silent()).expect("every check holds")
    }

    fn stalled(secs: u64, policy: CatchUp) -> Outcome {
        simulated(Plan { stall: Duration::from_secs(secs), policy, ..Plan::DEFAULT })
    }

    fn warned(outcome: &Outcome, name: &str) -> u64 {
        outcome.report.heard.warnings.iter().find(|w| w.name == name).map_or(0, |w| w.count)
    }

    #[test]
    fn every_plan_of_a_few_jobs_keeps_the_laws() {
        for n in 0..200_u32 {
            let policy = if n.is_multiple_of(2) { CatchUp::Individually } else { CatchUp::Folded };
            let stall = length(Resolution::MILLI, n % 7 * 3);
            let plan = Plan {
                jobs: 20,
                seed: u64::from(n),
                length: length(Resolution::MILLI, 1 + 40 * (n % 11)).max(2 * stall),
                resolution: Resolution::MILLI,
                cancel_percent: u8::try_from(n % 5 * 25).expect("a percentage"),
                stall,
                policy,
                dump: None,
            };
            if let Err(failure) = simulate(plan, Progress::silent()) {
                panic!("{plan:?}: {failure} {:?}", core::error::Error::source(&failure));
            }
        }
    }

    #[test]
    fn without_a_stall_nothing_is_late_and_nothing_is_warned_of() {
        let outcome = simulated(Plan::DEFAULT);
        assert_eq!(outcome.report.metrics.lateness.max, 0);
        assert!(outcome.report.heard.warnings.is_empty());
        let all = outcome.report.counts.all();
        assert_eq!(all.calls, all.runs);
    }

    #[test]
    fn a_stall_is_made_up_for_run_by_run_or_folded_as_the_policy_says() {
        let (single, folded) = (stalled(20, CatchUp::Individually), stalled(20, CatchUp::Folded));
        let (one, other) = (single.report.counts.fixed_rate, folded.report.counts.fixed_rate);
        assert_eq!(one.runs, one.calls);
        assert!(other.calls < other.runs);
        // What is folded is not lost. Cancels fall at the same ticks in both.
        assert_eq!(one.runs, other.runs);
        for outcome in [&single, &folded] {
            assert_eq!(warned(outcome, "DriverCatchUpExceeded"), 1);
            assert!(warned(outcome, "BurstFire") > 0);
            assert!(warned(outcome, "DriftExceeded") > 0);
            assert_eq!(warned(outcome, "ClockJump"), 0);
        }
    }

    #[test]
    fn a_jump_of_more_than_a_minute_is_told_and_folded() {
        let plan = Plan { length: Duration::from_secs(300), ..Plan::DEFAULT };
        let outcome = simulated(Plan { stall: Duration::from_secs(120), ..plan });
        assert_eq!(warned(&outcome, "ClockJump"), 1);
        let rate = outcome.report.counts.fixed_rate;
        assert!(rate.calls < rate.runs);
    }

    #[test]
    fn a_stall_until_the_end_is_made_up_for() {
        let outcome = stalled(30, CatchUp::Individually);
        assert!(outcome.report.metrics.lateness.max > 20_000_000_000);
    }

    #[test]
    fn jobs_far_ahead_keep_the_same_laws() {
        let length = Duration::from_secs(365 * 86_400) / 2;
        let outcome = simulated(Plan { length, ..Plan::DEFAULT });
        assert_eq!(outcome.report.counts.all().jobs, 1_000);
    }

    #[test]
    fn a_cancelled_share_of_all_ends_all_periodic_jobs() {
        let outcome = simulated(Plan { cancel_percent: 100, ..Plan::DEFAULT });
        let counts = outcome.report.counts;
        assert_eq!(counts.fixed_rate.active() + counts.fixed_delay.active(), 0);
        assert!(counts.once.completed > 0, "some cancels come too late");
        assert!(counts.once.cancelled > 0, "and some do not");
    }

    #[test]
    fn a_dump_within_the_stall_shows_what_has_piled_up() {
        let dump = |at| {
            let at = Some(Duration::from_secs(at));
            let dump = Some(Dump { format: DumpFormat::Lines, at });
            let stall = Duration::from_secs(20);
            simulated(Plan { stall, dump, ..Plan::DEFAULT }).report.dump.expect("asked for")
        };
        assert!(dump(10).starts_with("scheduler mode=manual clock=deterministic"));
        assert!(dump(10).contains(" now=1000 "));
        assert!(dump(30).contains(" now=3000 "), "before the leap");
        assert!(dump(31).contains(" now=5000 "), "within it time is at its end");
        assert!(dump(31).contains("wheel_offset=3000 "), "and nothing has run");
        assert!(dump(51).contains(" now=5100 "));
    }

    #[test]
    fn no_job_at_all_is_a_plan_too() {
        let outcome = simulated(Plan { jobs: 0, ..Plan::DEFAULT });
        assert_eq!(outcome.report.counts.all().calls, 0);
        assert!(outcome.trace.records().is_empty());
    }

    #[test]
    fn counts_that_differ_are_reported() {
        let first = Violation::OtherCount { what: "b", books: 1, told: 2 };
        assert_eq!(compare(&[("a", 1, 1), ("b", 1, 2), ("c", 1, 3)]), Err(first));
    }

    #[test]
    fn a_log_that_has_other_runs_is_reported() {
        let Outcome { report, trace } = simulated(Plan { jobs: 50, ..Plan::DEFAULT });
        let cancelled = report.heard.cancelled;
        assert_eq!(compare_log(&trace, report.digest, &report.counts, cancelled), Ok(()));
        let text = trace.to_string();
        let at = text.find("fire ").expect("a run");
        let (head, tail) = text.split_at(at);
        let other = format!("{head}{}", tail.replacen("runs=1", "runs=2", 1));
        let other = ReplayTrace::parse(&other).expect("a trace");
        let found = compare_log(&other, report.digest, &report.counts, cancelled);
        assert!(found.is_err_and(|v| v.to_string().starts_with("digest of the runs")));
    }
}
