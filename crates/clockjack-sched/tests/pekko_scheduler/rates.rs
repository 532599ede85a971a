//! How often periodic jobs run: lines 18 to 20.

use crate::support::{Bench, Mode, ms, secs};

/// Runs a second, times ten, over the runs that there were.
fn tenths_a_second(times: &[u64]) -> u64 {
    10_000 * times.len() as u64 / times.last().expect("it ran")
}

/// 25 ms are two ticks and a half. Rounding each period up would give 33 runs a second.
#[test]
fn line_18_fixed_rate_compensates_for_the_scheduler() {
    let bench = Bench::new();
    let job = bench.every(Mode::FixedRate, ms(25), ms(25), ms(0));
    bench.advance(secs(6));
    let times = &job.runs.times()[..200];
    let rate = tenths_a_second(times);
    assert!((360..=440).contains(&rate), "{rate} runs in 10 s");
    // Stricter: each is at its own time, rounded up to a tick.
    for (run, at) in times.iter().enumerate() {
        assert_eq!(*at, (30 + 25 * run as u64).next_multiple_of(10), "run {run}");
    }
}

#[test]
fn line_18_fixed_rate_compensates_for_a_late_driver() {
    let bench = Bench::fine();
    let job = bench.every(Mode::FixedRate, ms(25), ms(25), ms(0));
    for step in 0_u64..200 {
        // Somebody wakes up late, by up to 23 ms, and never at the same phase.
        bench.clock().advance(ms(7 + step * 11 % 23));
        bench.run_due();
    }
    bench.advance_to(clockjack_time::Tick::new(6000));
    let times = job.runs.times();
    let rate = tenths_a_second(&times[..200]);
    assert!((360..=440).contains(&rate), "{rate} runs in 10 s");
    for (run, at) in times.iter().enumerate() {
        let due = 25 * (run as u64 + 1);
        assert!((due..due + 30).contains(at), "run {run} at {at}");
    }
}

#[test]
fn line_19_fixed_rate_is_not_slowed_by_a_long_body() {
    let bench = Bench::fine();
    let job = bench.every(Mode::FixedRate, ms(225), ms(225), ms(100));
    bench.advance(ms(22 * 225));
    let times = job.runs.times();
    let expected: Vec<_> = (1..=22).map(|run| 225 * run).collect();
    assert_eq!(times, expected);
    assert_eq!(tenths_a_second(&times), 44);
}

/// A body that is longer than the period: runs follow each other without a gap, and do not overlap.
#[test]
fn line_19_fixed_rate_runs_back_to_back_behind_a_body_that_is_too_long() {
    let bench = Bench::fine();
    let job = bench.every(Mode::FixedRate, ms(100), ms(100), ms(150));
    bench.advance(ms(1000));
    let times = job.runs.times();
    assert_eq!(times.len(), 10, "as many as were due by the end: {times:?}");
    let expected: Vec<_> = (0..10).map(|run| 100 + 150 * run).collect();
    assert_eq!(times, expected);
}

#[test]
fn line_20_fixed_delay_counts_from_the_end_of_the_body() {
    let bench = Bench::fine();
    let job = bench.every(Mode::FixedDelay, ms(125), ms(125), ms(100));
    bench.advance(ms(125 + 11 * 225));
    let times = job.runs.times();
    let expected: Vec<_> = (0..12).map(|run| 125 + 225 * run).collect();
    assert_eq!(times, expected);
    let cycles = times.last().expect("it ran") - times[0];
    assert_eq!(110_000 / cycles, 44, "in 10 s");
}
