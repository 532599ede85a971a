//! The scheduler in virtual time, against the checks of its own crate and the counts of its close
//! report.

use std::time::Duration;

use clockjack_sched::{CatchUp, JobSpec, Policy, SchedulerConfig, properties::SchedulerHarness};

use crate::input::Input;

/// Small enough to be reached.
const QUOTA: usize = 24;
/// Periods and time steps are bounded, so that one input causes few runs: with a quota of 24 jobs,
/// each at most once per tick, a step has at most a few thousand runs.
const STEP_TICKS_MAX: u64 = 64;
const STEPS_MAX: usize = 64;

/// Schedules jobs of every kind, cancels, stalls and continues. The log is monotonic, a cancelled
/// job never runs, fixed rates keep their grid, and the close report accounts for every job.
pub fn scheduler(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let catch_up = if input.below(2) == 0 { CatchUp::Individually } else { CatchUp::Folded };
    let policy = Policy::DEFAULT.catch_up(catch_up);
    let config = SchedulerConfig { quota: QUOTA, ..SchedulerConfig::DEFAULT };
    let tick = Duration::from_nanos(u64::from(config.resolution.nanos().get()));
    let harness = SchedulerHarness::new(config).expect("the configuration is for tests");
    let mut jobs = Vec::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(8) {
            kind @ 0..=3 => {
                let spec = spec(kind, &mut input, tick).policy(policy);
                jobs.extend(harness.schedule(spec));
            }
            4 => {
                let nth = input.below(256);
                if let Some(job) = jobs.get(nth % jobs.len().max(1)) {
                    let was_won = harness.cancel(*job);
                    assert!(!(was_won && harness.cancel(*job)), "two cancels have won");
                }
            }
            5 => harness.stall(ticks(&mut input, tick)),
            6 => _ = harness.run_due(),
            _ => _ = harness.advance(ticks(&mut input, tick)),
        }
    }
    harness.assert_all().unwrap_or_else(|fault| panic!("{fault}"));
    let report = harness.shutdown();
    assert_eq!(report.accepted, report.executed + report.cancelled, "{report}");
    assert_eq!(report.still_running, 0, "{report}");
}

fn spec(kind: usize, input: &mut Input<'_>, tick: Duration) -> JobSpec {
    // Delays of any length, including those that are refused.
    let delay = Duration::from_nanos(input.number().saturating_mul(1_000_000));
    // A period need not be whole ticks.
    let period = tick + tick * u32::from(input.byte()) / 16;
    match kind {
        0 => JobSpec::fixed_rate(delay, period),
        1 => JobSpec::fixed_delay(delay, period),
        2 => JobSpec::once(ticks(input, tick)),
        _ => JobSpec::once(delay),
    }
}

fn ticks(input: &mut Input<'_>, tick: Duration) -> Duration {
    let n = u64::from(input.byte()) % (STEP_TICKS_MAX * 4 + 1);
    // Quarters of ticks, so that the remainders below one tick add up.
    tick * u32::try_from(n).expect("it is a byte") / 4
}
