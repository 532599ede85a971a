//! The harness that users' own fuzzers drive.

use core::{fmt::Write as _, time::Duration};

use clockjack_sched::{
    CatchUp, JobSpec, Policy, PolicyRegistry, ScheduleErrorKind, SchedulerConfig,
    properties::SchedulerHarness,
};
use clockjack_time::{Resolution, Tick};
use proptest::prelude::*;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn harness() -> SchedulerHarness {
    SchedulerHarness::new(SchedulerConfig::DEFAULT).expect("it is not for production")
}

/// The log as text, a line a record.
fn text(harness: &SchedulerHarness) -> String {
    let mut text = String::new();
    for record in harness.trace().records() {
        writeln!(text, "{record:?}").expect("writing to a string cannot fail");
    }
    text
}

/// Drives a scheduler at random, judges it, and gives its log.
fn check(config: SchedulerConfig, seed: u64, steps: usize) -> String {
    let harness = SchedulerHarness::new(config).expect("it is not for production");
    for part in 0..4 {
        harness.run_random(seed ^ part, steps / 4);
        harness.assert_all().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    harness.run_due();
    harness.assert_all().unwrap_or_else(|error| panic!("seed {seed}, in the end: {error}"));
    let report = harness.shutdown();
    assert_eq!(report.accepted, report.executed + report.cancelled, "seed {seed}: {report}");
    harness.assert_all().unwrap_or_else(|error| panic!("seed {seed}, closed: {error}"));
    let refused = harness.schedule(JobSpec::once(ms(10)));
    assert_eq!(refused.map_err(|error| error.kind()), Err(ScheduleErrorKind::Closed));
    text(&harness)
}

fn config(start: u64, is_folded: bool) -> SchedulerConfig {
    let catch_up = if is_folded { CatchUp::Folded } else { CatchUp::Individually };
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(catch_up));
    SchedulerConfig { start: Tick::new(start), policies, ..SchedulerConfig::DEFAULT }
}

fn starts() -> impl Strategy<Value = u64> {
    let other = any::<u32>().prop_map(u64::from);
    prop_oneof![Just(0), Just((1 << 32) - 500), Just(u64::MAX >> 1), other]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_steps_keep_all_properties(
        seed: u64,
        is_folded: bool,
        start in starts(),
    ) {
        check(config(start, is_folded), seed, 200);
    }

    #[test]
    fn the_same_seed_gives_the_same_log_byte_for_byte(seed: u64, is_folded: bool) {
        let first = check(config(0, is_folded), seed, 120);
        let second = check(config(0, is_folded), seed, 120);
        prop_assert_eq!(first.as_bytes(), second.as_bytes());
    }

    #[test]
    fn random_steps_at_the_quota_and_the_capacity_keep_all_properties(seed: u64) {
        let config = SchedulerConfig {
            quota: 20,
            capacity: 15,
            overflow_capacity: 4,
            resolution: Resolution::MILLI,
            ..SchedulerConfig::DEFAULT
        };
        check(config, seed, 200);
    }
}

#[test]
fn other_seeds_give_other_logs() {
    let logs: alloc::collections::BTreeSet<_> =
        (0..20).map(|seed| check(config(0, false), seed, 40)).collect();
    assert_eq!(logs.len(), 20);
}

#[test]
fn random_steps_reach_everything() {
    let harness = harness();
    let ran = harness.run_random(7, 500);
    let metrics = harness.scheduler().metrics();
    assert!(metrics.accepted_total > 150 && metrics.cancelled_total > 15 && ran > 500);
    assert!(metrics.lateness.max > 0, "time has stalled");
    assert!(harness.scheduler().diagnostics().dump().shards[0].overflow > 0, "the overflow too");
}

#[test]
fn a_random_cancel_cancels_one_that_lives() {
    let harness = harness();
    assert_eq!(harness.inject_random_cancel(1), None);
    let jobs = [10, 20, 30].map(|delay| harness.schedule(JobSpec::once(ms(delay))).ok());
    harness.advance(ms(10));
    let mut cancelled = [harness.inject_random_cancel(5), harness.inject_random_cancel(6)];
    cancelled.sort();
    assert_eq!(cancelled, [jobs[1], jobs[2]]);
    assert_eq!(harness.inject_random_cancel(7), None);
    harness.advance(ms(100));
    assert_eq!(jobs.map(|job| harness.runs(job.expect("there is room"))), [1, 0, 0]);
    harness.assert_all().expect("it all holds");
}

#[test]
fn a_stall_is_no_fault_and_is_made_up_for() {
    let harness = harness();
    let job = harness.schedule(JobSpec::fixed_rate(ms(10), ms(10))).expect("there is room");
    harness.advance(ms(50));
    assert_eq!(harness.runs(job), 5);
    harness.assert_all().expect("it keeps up");
    harness.stall(ms(50));
    harness.assert_all().expect("nobody has polled yet");
    assert_eq!(harness.run_due(), 5);
    assert_eq!(harness.runs(job), 10);
    harness.assert_all().expect("it has made up for it");
}

#[test]
fn a_job_that_the_scheduler_has_cancelled_is_not_missed() {
    let harness = harness();
    let job = harness.schedule(JobSpec::once(ms(20))).expect("there is room");
    // The harness does not know of this cancel, so a run seems to be missing; it is not reported,
    // because the handle says that the scheduler has cancelled the job.
    assert!(harness.handle(job).is_some_and(|handle| handle.cancel()));
    harness.advance(ms(20));
    harness.assert_all().expect("the handle says why");
    let job = harness.schedule(JobSpec::once(ms(20))).expect("there is room");
    assert!(harness.cancel(job));
    assert!(!harness.cancel(job), "once");
    harness.assert_all().expect("both answers are right");
}

#[test]
fn what_runs_at_the_close_is_not_early() {
    let harness = harness();
    let job = harness.schedule(JobSpec::once(ms(500))).expect("there is room");
    assert!(harness.run_on_close(job));
    harness.advance(ms(20));
    assert_eq!(harness.shutdown().run_on_close, 1);
    assert_eq!(harness.runs(job), 1);
    harness.assert_all().expect("it all holds");
}
