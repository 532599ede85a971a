//! Fixed rates over hours, and behind long stalls; in virtual time.
#![cfg(not(loom))]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use clockjack_sched::{
    CatchUp, DiagnosticEvent, DispatcherId, EventKinds, ManualRunner, Policy, PolicyRegistry,
    SchedulerConfig, Warning,
};
use clockjack_time::MonotonicClock;

const HOURS: Duration = Duration::from_secs(10 * 3600);
const TICK_MS: u64 = 10;

/// Due, now, runs and missed runs.
type Run = (u64, u64, u32, u32);
type Runs = Arc<Mutex<Vec<Run>>>;

/// A job at a fixed rate that writes down its runs.
fn watch(manual: &ManualRunner, period: Duration) -> Runs {
    let runs = Runs::default();
    let noted = Arc::clone(&runs);
    let scheduler = manual.scheduler();
    let job =
        scheduler.schedule_at_fixed_rate_fn(period, period, DispatcherId::DEFAULT, move |fire| {
            let (due, now, batch) = (fire.due().get(), fire.now().ticks, fire.batch());
            let mut noted = noted.lock().expect("no holder panics");
            noted.push((due, now, batch.runs.get(), batch.missed_runs));
        });
    assert!(job.is_ok());
    runs
}

fn manual(catch_up: CatchUp) -> ManualRunner {
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(catch_up));
    let config = SchedulerConfig { policies, ..SchedulerConfig::DEFAULT };
    ManualRunner::new(config).expect("it is not for production")
}

/// When run `n`, from 0, of a job with this period is due: the first is rounded up to a tick, and
/// the grid is counted from there.
fn due_of(n: u64, period_ms: u64) -> u64 {
    let first_ms = period_ms.next_multiple_of(TICK_MS);
    (first_ms + n * period_ms).div_ceil(TICK_MS)
}

const PERIODS_MS: [u64; 6] = [125, 333, 1000, 1237, 60_000, 3_599_999];

/// Time moves by steps of up to `step_ms_max`, drawn from a seed, so that runs come late.
fn check_ten_hours(catch_up: CatchUp, seed: u64, step_ms_max: u64) {
    let manual = manual(catch_up);
    let jobs = PERIODS_MS.map(|period| (period, watch(&manual, Duration::from_millis(period))));
    let (mut state, mut left) = (seed, HOURS);
    while !left.is_zero() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let step = Duration::from_millis(1 + (state >> 33) % step_ms_max).min(left);
        left -= step;
        manual.clock().advance(step);
        manual.run_due();
    }
    let end = manual.clock().now().ticks;
    assert_eq!(end, 3_600_000);
    for (period, runs) in jobs {
        let runs = runs.lock().expect("no holder panics");
        let mut n = 0;
        for (due, now, batch, missed) in &*runs {
            assert_eq!(*due, due_of(n, period), "run {n} of period {period} ms drifted");
            assert!(due <= now && now - due <= step_ms_max / TICK_MS + 1, "{now} for {due}");
            assert_eq!(*batch, missed + 1);
            n += u64::from(*batch);
        }
        assert!(due_of(n, period) > end, "period {period} ms: a run is missing");
        assert!(due_of(n - 1, period) <= end, "period {period} ms: a run is too many");
    }
}

#[test]
fn a_fixed_rate_over_10_hours_drifts_by_0_ticks() {
    let manual = manual(CatchUp::Individually);
    let jobs = PERIODS_MS.map(|period| (period, watch(&manual, Duration::from_millis(period))));
    manual.advance(HOURS);
    for (period, runs) in jobs {
        let runs = runs.lock().expect("no holder panics");
        for (n, (due, now, batch, _)) in runs.iter().enumerate() {
            let expected = due_of(n as u64, period);
            assert_eq!((*due, *now, *batch), (expected, expected, 1), "run {n}, {period} ms");
        }
        assert!(due_of(runs.len() as u64, period) > 3_600_000, "none is missing");
    }
    assert_eq!(manual.scheduler().metrics().lateness.max, 0);
}

#[test]
fn a_fixed_rate_over_10_hours_with_late_wake_ups_drifts_by_0_ticks() {
    for seed in 1..=2 {
        check_ten_hours(CatchUp::Individually, seed, 900);
    }
}

#[test]
fn a_folded_fixed_rate_over_10_hours_with_late_wake_ups_drifts_by_0_ticks() {
    for seed in 1..=2 {
        check_ten_hours(CatchUp::Folded, seed, 5000);
    }
}

/// Lets 30 s pass without a poll, with a job of 1 s. Returns its contexts, and how many missed runs
/// were warned of.
fn stall(catch_up: CatchUp) -> (Vec<Run>, Vec<(u32, u32)>) {
    let manual = manual(catch_up);
    let diagnostics = manual.scheduler().diagnostics();
    let mut warnings = diagnostics.subscribe(EventKinds::WARNING, 64).expect("it is the first");
    let runs = watch(&manual, Duration::from_secs(1));
    manual.clock().advance(Duration::from_secs(30));
    manual.run_due();
    // The run after it is on time, and on the grid.
    manual.advance(Duration::from_secs(1));
    let bursts = core::iter::from_fn(|| warnings.try_next()).filter_map(|event| match event {
        DiagnosticEvent::Warned(Warning::BurstFire { missed, threshold, .. }) => {
            Some((missed, threshold))
        }
        _ => None,
    });
    let bursts = bursts.collect();
    let runs = runs.lock().expect("no holder panics").clone();
    (runs, bursts)
}

#[test]
fn after_a_stall_of_30_s_a_rate_of_1_s_is_run_30_times() {
    let (runs, bursts) = stall(CatchUp::Individually);
    let expected: Vec<_> = (1..=31).map(|run| (100 * run, 100 * run.max(30), 1, 0)).collect();
    assert_eq!(runs, expected);
    assert_eq!(bursts, [(29, 10)], "warned of once");
}

#[test]
fn after_a_stall_of_30_s_a_folded_rate_of_1_s_is_run_once_with_29_missed() {
    let (runs, bursts) = stall(CatchUp::Folded);
    assert_eq!(runs, [(100, 3000, 30, 29), (3100, 3100, 1, 0)]);
    assert_eq!(bursts, [(29, 10)], "warned of once");
}
