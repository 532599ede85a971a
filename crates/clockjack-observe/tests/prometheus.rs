//! Prometheus' text as a strict reader sees it.
#![cfg(all(feature = "alloc", not(loom)))]

extern crate alloc;

#[path = "support/prometheus.rs"]
mod prometheus_text;

use core::fmt;

use clockjack_observe::{
    Histogram, Snapshot, prometheus,
    samples::{Distribution, Sample, Unit, Value},
};
use prometheus_text::{Parsed, Series, parse};
use proptest::prelude::*;

fn text(samples: &[Sample<'_>]) -> String {
    let mut text = String::new();
    prometheus::write(&mut text, samples).expect("the samples are sound");
    text
}

fn parsed(samples: &[Sample<'_>]) -> Parsed {
    let text = text(samples);
    parse(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn series(name: &str, labels: &[(&str, &str)], value: f64) -> Series {
    let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Series { name: name.into(), labels, value }
}

#[test]
fn samples_of_a_name_stand_together_under_one_help_and_type() {
    let (imu, pid) = ([("component_id", "imu")], [("component_id", "pid")]);
    let runs = |n| Sample::counter("runtime.component.execution_count", n).help("runs");
    let last = |n| Sample::gauge("runtime.component.last_duration_ns", n);
    let samples = [
        runs(3).labels(&imu),
        last(1_500).labels(&imu),
        runs(u64::MAX).labels(&pid),
        last(-2_000_000_000).labels(&pid),
    ];
    let expected = "\
# HELP clockjack_runtime_component_execution_count_total runs
# TYPE clockjack_runtime_component_execution_count_total counter
clockjack_runtime_component_execution_count_total{component_id=\"imu\"} 3
clockjack_runtime_component_execution_count_total{component_id=\"pid\"} 18446744073709551615
# TYPE clockjack_runtime_component_last_duration_seconds gauge
clockjack_runtime_component_last_duration_seconds{component_id=\"imu\"} 0.0000015
clockjack_runtime_component_last_duration_seconds{component_id=\"pid\"} -2
";
    assert_eq!(text(&samples), expected);
    assert_eq!(parsed(&samples).series.len(), 4);
    assert_eq!(text(&[]), "");
}

/// By convention the name of a counter ends in `_total`, after the unit.
#[test]
fn a_counter_of_time_is_in_seconds_with_total_in_its_name_and_without() {
    for name in ["blocked_ms", "blocked_ms_total", "clockjack_blocked_ms_total"] {
        let sample = Sample::counter(name, 1_500);
        assert_eq!(sample.unit, Unit::Milliseconds, "{name}");
        let expected = [series("clockjack_blocked_seconds_total", &[], 1.5)];
        assert_eq!(parsed(&[sample]).series, expected, "{name}");
    }
    assert_eq!(Sample::gauge("bytes_total", 1).unit, Unit::Count);
}

#[test]
fn a_histogram_is_a_summary_in_seconds() {
    let lateness = Histogram::<16>::new();
    for us in 1..=1000 {
        lateness.record(us * 1000);
    }
    let (lateness, empty) = (lateness.snapshot(), Snapshot::<2>::new());
    let samples = [
        Sample::histogram("timer.lateness_ns", &lateness).labels(&[("shard", "0")]),
        Sample::histogram("timer.lateness_ns", &empty).labels(&[("shard", "1")]),
    ];
    let name = "clockjack_timer_lateness_seconds";
    let found = parsed(&samples);
    assert_eq!(found.types[name], "summary");
    let quantiles: Vec<&Series> = found.series.iter().filter(|s| s.name == name).collect();
    let levels: Vec<&str> = quantiles.iter().map(|series| &*series.labels[1].1).collect();
    assert_eq!(levels, ["0.5", "0.9", "0.99", "0.999"], "and none of the empty one");
    let median = quantiles[0].value;
    assert!((500e-6..=532e-6).contains(&median), "{median} is within a sixteenth");
    assert_eq!(
        found.series[4..],
        [
            series(&format!("{name}_sum"), &[("shard", "0")], 0.5005),
            series(&format!("{name}_count"), &[("shard", "0")], 1000.0),
            series(&format!("{name}_sum"), &[("shard", "1")], 0.0),
            series(&format!("{name}_count"), &[("shard", "1")], 0.0),
        ]
    );
}

#[test]
fn numbers_that_are_none_have_the_formats_spelling() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e21, 0.1];
    let names = ["a", "b", "c", "d", "e"];
    let samples: Vec<Sample<'_>> = names
        .into_iter()
        .zip(values)
        .map(|(name, x)| Sample::new(name, Value::GaugeFloat(x)).unit(Unit::Ticks))
        .collect();
    let found = parsed(&samples).series;
    assert!(found[0].value.is_nan());
    let rest: Vec<f64> = found[1..].iter().map(|series| series.value).collect();
    assert_eq!(rest, values[1..]);
    assert_eq!(found[0].name, "clockjack_a_ticks");
}

#[test]
fn samples_that_cannot_stand_together_are_refused_before_anything_is_written() {
    fn check(samples: &[Sample<'_>], expected: &str) {
        let mut text = String::new();
        let good = Sample::gauge("good", 1);
        let samples = [core::slice::from_ref(&good), samples].concat();
        let error = prometheus::write(&mut text, &samples).expect_err(expected);
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_write() && error.is_name() != error.is_conflict());
        assert_eq!(text, "");
    }
    let empty = Distribution { count: 0, sum: 0.0, quantiles: Vec::new() };
    check(&[Sample::gauge("-", 1)], "the metric name \"-\" has no letter or digit");
    check(
        &[Sample::gauge("a.b", 1), Sample::gauge("a_b", 2)],
        "two samples of clockjack_a_b have the same labels",
    );
    check(
        &[Sample::gauge("a", 1), Sample::histogram("a", empty.clone())],
        "several metrics of different kinds map to the name clockjack_a",
    );
    check(
        &[Sample::gauge("a_sum", 1), Sample::histogram("a", empty.clone())],
        "several metrics of different kinds map to the name clockjack_a_sum",
    );
    let labels = |labels| Sample::gauge("a", 1).labels(labels);
    let fault =
        |label| format!("label {label:?} of clockjack_a is reserved, malformed or a duplicate");
    check(&[labels(&[("", "x")])], &fault(""));
    check(&[labels(&[("1a", "x")])], &fault("1a"));
    check(&[labels(&[("a-b", "x")])], &fault("a-b"));
    check(&[labels(&[("__a", "x")])], &fault("__a"));
    check(&[labels(&[("a", "x"), ("b", ""), ("a", "y")])], &fault("a"));
    check(&[Sample::histogram("a", empty).labels(&[("quantile", "x")])], &fault("quantile"));
}

#[test]
fn a_failing_writer_is_told_apart() {
    struct Full;
    impl fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    let error = prometheus::write(&mut Full, &[Sample::gauge("a", 1)]).expect_err("it is full");
    assert!(error.is_write());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_help_and_label_value_comes_back_whole(
        help in "[\\PC\n\"\\\\]{1,8}", value in "[\\PC\n\"\\\\]{0,8}",
    ) {
        let labels = [("lane", &*value), ("component_id", "\\n")];
        let found = parsed(&[Sample::counter("a", 7).help(&help).labels(&labels)]);
        prop_assert_eq!(&found.help["clockjack_a_total"], &help);
        prop_assert_eq!(&found.series, &[series("clockjack_a_total", &labels, 7.0)]);
    }
}
