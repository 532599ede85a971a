//! The scales of a plot: round numbers between the ends of an axis.

use super::{Axis, number::short};

/// A mark on an axis: where it is, as a part of the whole, and its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// The units of time, each with its length in nanoseconds and the shortest time that is shown in
/// it.
const UNITS: [(&str, f64, f64); 7] = [
    ("d", 86_400e9, 172_800e9),
    ("h", 3600e9, 7200e9),
    ("min", 60e9, 180e9),
    ("s", 1e9, 1e9),
    ("ms", 1e6, 1e6),
    ("us", 1e3, 1e3),
    ("ns", 1.0, 0.0),
];

impl Axis {
    /// The unit of the marks, and its length.
    #[expect(clippy::cast_precision_loss, reason = "marks on an axis")]
    fn unit(self, end: u64) -> (&'static str, f64) {
        match self {
            Self::Time => {
                let unit = UNITS.iter().find(|(.., from)| end as f64 >= *from);
                unit.map_or(("ns", 1.0), |(name, length, _)| (name, *length))
            }
            Self::Epoch => ("", 1.0),
        }
    }

    /// What the axis shows.
    pub(crate) fn title(self, end: u64) -> String {
        match self {
            Self::Time => format!("time of the run in {}", self.unit(end).0),
            Self::Epoch => "number of the epoch".into(),
        }
    }

    /// The label of a mark, with what it counts.
    pub(crate) fn label(self, end: u64, label: &str) -> String {
        match self {
            Self::Time => format!("{label} {}", self.unit(end).0),
            Self::Epoch => format!("epoch {label}"),
        }
    }

    /// At most `n_max` marks from zero to `end`.
    #[expect(clippy::cast_precision_loss, reason = "marks on an axis")]
    pub(crate) fn ticks(self, end: u64, n_max: usize) -> Vec<Tick> {
        let end = end.max(1);
        let n_max = match self {
            Self::Time => n_max,
            // There is no half epoch.
            Self::Epoch => n_max.min(usize::try_from(end).unwrap_or(usize::MAX).saturating_add(1)),
        };
        ticks(0.0, end as f64 / self.unit(end).1, n_max)
    }
}

/// At most `n_max` marks at round numbers from `low` to `high`.
pub(crate) fn ticks(low: f64, high: f64, n_max: usize) -> Vec<Tick> {
    let half = high / 2.0 - low / 2.0;
    if half <= 0.0 || !half.is_normal() || n_max == 0 {
        return vec![Tick { at: 0.5, label: short(low) }];
    }
    if !(high - low).is_finite() {
        let ends = [(0.0, low), (1.0, high)];
        return ends.map(|(at, value)| Tick { at, label: short(value) }).into();
    }
    let part = |value: f64| (value / 2.0 - low / 2.0) / half;
    let mut step = nice_step((high - low) / n_max as f64);
    loop {
        // Without the error of the division, a mark at the lower end would be missing.
        let first = (low / step - 1e-9).ceil();
        let values = (0..=n_max).map(|n| (first + n as f64) * step);
        let found: Vec<f64> = values.take_while(|value| part(*value) <= 1.0 + 1e-9).collect();
        if found.len() <= n_max {
            let tick = |value: f64| Tick { at: part(value).clamp(0.0, 1.0), label: short(value) };
            return found.into_iter().map(tick).collect();
        }
        step = nice_step(step * 1.5);
    }
}

/// The smallest of 1, 2, 5, 10, 20 .. times a power of ten that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powi(exponent(least));
    let found = [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter();
    found.filter(|step| *step >= least).reduce(f64::min).unwrap_or(10.0 * power)
}

#[expect(clippy::cast_possible_truncation, reason = "the exponent of a float has three digits")]
fn exponent(value: f64) -> i32 {
    value.log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(low: f64, high: f64, n_max: usize, expected: &[&str]) {
        let found = ticks(low, high, n_max);
        let labels: Vec<&str> = found.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, expected, "{low} to {high}");
        assert!(found.is_sorted_by(|a, b| a.at < b.at), "{found:?}");
    }

    #[test]
    fn marks_are_at_round_numbers() {
        check(0.0, 1.0, 6, &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(0.0, 1.0, 5, &["0", "0.5", "1"]);
        check(-0.021, 1.031, 4, &["0", "0.5", "1"]);
        check(0.0, 9.99, 6, &["0", "2", "4", "6", "8"]);
        check(-1e300, 1e300, 3, &["-1e300", "0", "1e300"]);
        check(1e-12, 3e-12, 3, &["1e-12", "2e-12", "3e-12"]);
        check(f64::MIN, f64::MAX, 3, &["-1.798e308", "1.798e308"]);
    }

    #[test]
    fn a_constant_has_one_mark() {
        check(7.0, 7.0, 5, &["7"]);
        check(0.0, f64::MIN_POSITIVE / 2.0, 5, &["0"]);
    }

    #[test]
    fn epochs_are_whole() {
        for (end, expected) in
            [(1, "0 1"), (2, "0 1 2"), (3, "0 1 2 3"), (1000, "0 200 400 600 800 1000")]
        {
            let ticks = Axis::Epoch.ticks(end, 6);
            let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
            assert_eq!(labels.join(" "), expected);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let cases = [
            (0, "ns"),
            (999, "ns"),
            (1000, "us"),
            (2_500_000, "ms"),
            (9_990_000_000, "s"),
            (179_000_000_000, "s"),
            (180_000_000_000, "min"),
            (7_200_000_000_000, "h"),
            (u64::MAX, "d"),
        ];
        for (end_ns, unit) in cases {
            assert_eq!(Axis::Time.label(end_ns, "7"), format!("7 {unit}"));
            assert!(!Axis::Time.ticks(end_ns, 6).is_empty(), "{end_ns}");
        }
    }
}
