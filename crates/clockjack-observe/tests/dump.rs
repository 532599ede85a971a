//! The dump as people see it, character by character.
#![cfg(not(loom))]

use core::fmt;

use clockjack_observe::{
    Event, Histogram, Record, Snapshot,
    dump::{Chart, Line, Unit, write_histogram, write_metrics, write_records},
    event::{ShardId, TaskId, WorkerId},
};

fn text(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).expect("writing to a string cannot fail");
    text
}

#[test]
fn metrics_stand_in_aligned_columns() {
    let lateness = Histogram::<16>::new();
    for us in 1..=1000 {
        lateness.record(us * 1000);
    }
    let lines = [
        Line::counter("clockjack_timers_fired_total", 1_000_000),
        Line::histogram(
            "clockjack_timer_lateness",
            Unit::Nanoseconds,
            lateness.snapshot().summary(),
        ),
        Line::gauge("clockjack_timers_bytes", Unit::Bytes, 33_554_432),
        Line::histogram("clockjack_step", Unit::Ticks, Snapshot::<2>::new().summary()),
    ];
    let expected = include_str!("golden/metrics.txt");
    assert_eq!(text(|out| write_metrics(out, &lines)), expected);
    assert_eq!(text(|out| write_metrics(out, &[])), "");
}

#[test]
fn records_are_written_one_per_line() {
    let (shard, worker, task) = (ShardId(1), WorkerId(0), TaskId(8));
    let fired = Event::TimersFired { shard, worker, timers: 70, late_ticks: 2 };
    let records = [
        Record::new(1_000_000, fired),
        Record::new(86_400_000_000_001, Event::TaskPolled { task, messages: 3, ran_ns: 120 }),
    ];
    let expected = "       0.001000000  timers_fired      shard=1 worker=0 timers=70 late_ticks=2
   86400.000000001  task_polled       task=8 messages=3 ran_ns=120
";
    assert_eq!(text(|out| write_records(out, records)), expected);
    assert_eq!(text(|out| write_records(out, None::<Record>)), "");
}

#[test]
fn a_histogram_is_drawn_as_bars() {
    let mut snapshot = Snapshot::<4>::new();
    for (value, n) in [(900, 1), (1_000, 30), (1_500, 60), (2_100, 8), (9_000, 1)] {
        snapshot.record_n(value, n);
    }
    let chart = Chart { width: 20, rows_max: 8, unit: Unit::Nanoseconds };
    let expected = "   900ns ..   1.02us 31  31.0% ##########
  1.02us ..   1.53us 60  60.0% ####################
  1.53us ..   2.04us  0   0.0%
  2.04us ..   3.07us  8   8.0% ##
  3.07us ..   4.09us  0   0.0%
  4.09us ..   6.14us  0   0.0%
  6.14us ..   8.19us  0   0.0%
  8.19us ..   9.00us  1   1.0% #
count 100  mean 1.46us  p50 1.53us  p90 1.53us  p99 2.55us  p99.9 9.00us  max 9.00us
";
    assert_eq!(text(|out| write_histogram(out, &snapshot, chart)), expected);
}

#[test]
fn a_chart_never_has_more_rows_than_asked_and_shows_every_value() {
    let mut snapshot = Snapshot::<16>::new();
    for exponent in 0..64 {
        snapshot.record_n(1 << exponent, exponent + 1);
    }
    snapshot.record(0);
    snapshot.record(u64::MAX);
    for rows_max in [0, 1, 2, 3, 10, 64, 10_000] {
        for width in [0, 1, 7, 40] {
            let chart = Chart { width, rows_max, unit: Unit::Count };
            let drawn = text(|out| write_histogram(out, &snapshot, chart));
            let rows: Vec<_> = drawn.lines().filter(|line| line.contains("..")).collect();
            assert!(rows.len() <= rows_max.max(1), "{rows_max}: {drawn}");
            let bars = rows.iter().map(|row| row.chars().filter(|c| *c == '#').count());
            assert_eq!(bars.max(), Some(width.max(1)), "the fullest row has the full width");
            assert!(drawn.is_ascii());
        }
    }
}

#[test]
fn an_empty_histogram_says_so() {
    let drawn = text(|out| write_histogram(out, &Snapshot::<4>::new(), Chart::DEFAULT));
    assert_eq!(drawn, "no values\n");
}

#[test]
fn numbers_keep_three_digits_and_their_unit() {
    let check = |unit: Unit, value, expected: &str| {
        let scaled = unit.scale(value);
        assert_eq!(scaled.to_string(), expected);
        assert_eq!(scaled.columns(), expected.len());
    };
    check(Unit::Nanoseconds, 0, "0ns");
    check(Unit::Nanoseconds, 999, "999ns");
    check(Unit::Nanoseconds, 1_009, "1.00us");
    check(Unit::Nanoseconds, 12_345, "12.3us");
    check(Unit::Nanoseconds, 999_999, "999us");
    check(Unit::Nanoseconds, 59_000_000_000, "59.0s");
    check(Unit::Nanoseconds, u64::MAX, "18446744073s");
    check(Unit::Bytes, 1023, "1023B");
    check(Unit::Bytes, 1 << 20, "1.00MiB");
    check(Unit::Bytes, (1 << 20) - 1, "1023KiB");
    check(Unit::Bytes, u64::MAX, "16777215TiB");
    check(Unit::Ticks, 42, "42t");
    check(Unit::Count, u64::MAX, "18446744073709551615");
}

#[test]
fn an_error_of_the_output_is_passed_on() {
    struct Full;
    impl fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    let record = Record::new(0, Event::ShutdownStarted { tasks: 1 });
    assert!(write_records(&mut Full, [record]).is_err());
    assert!(write_metrics(&mut Full, &[Line::counter("a", 1)]).is_err());
    assert!(write_histogram(&mut Full, &Snapshot::<4>::new(), Chart::DEFAULT).is_err());
}
