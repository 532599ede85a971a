//! Readings of metrics with what a reader elsewhere must know: kind, unit, help and labels.
//!
//! A [`Sample`] is what exporters take; [`prometheus`](crate::prometheus) writes it as text. It is
//! not a registry and reads nothing itself: who owns the numbers makes the samples when asked.
//! The kind follows from the value, so the two cannot disagree.

use alloc::vec::Vec;

use crate::{Quantile, Snapshot};

/// One reading of one metric.
///
/// ```
/// use clockjack_observe::samples::{Kind, Sample, Unit};
///
/// let sample = Sample::counter("runtime.scheduler.tick_count", 12)
///     .help("epochs begun")
///     .labels(&[("lane", "control")]);
/// assert_eq!(sample.kind(), Kind::Counter);
/// assert_eq!(Unit::of_name("runtime.scheduler.max_lateness_ms"), Unit::Milliseconds);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name, dotted or with underscores, with its unit last: `runtime.channel.message_age_ms`.
    pub name: &'a str,
    /// What it means, in a line; may be empty.
    pub help: &'a str,
    /// What the value counts.
    pub unit: Unit,
    /// Names and values that tell samples of one name apart.
    pub labels: &'a [(&'a str, &'a str)],
    /// The value, and with it the kind.
    pub value: Value,
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Only rises, from 0 at the start.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How values are spread.
    Histogram,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Things, or a number without a unit.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Ticks of a wheel.
    Ticks,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a counter.
    Counter(u64),
    /// Of a gauge that holds whole numbers.
    Gauge(i64),
    /// Of a gauge that holds a measure.
    GaugeFloat(f64),
    /// Of a histogram.
    Histogram(Distribution),
}

/// How values are spread: count, sum and some quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Quantiles between 0 and 1, rising, with the value at each. Empty if there is no value.
    pub quantiles: Vec<(f64, f64)>,
}

impl<'a> Sample<'a> {
    /// A reading without help or labels; the unit is read off the name, of a counter without the
    /// `_total` that it may end in.
    #[must_use]
    pub fn new(name: &'a str, value: Value) -> Self {
        let mut sample = Self { name, help: "", unit: Unit::Count, labels: &[], value };
        let stem = if sample.kind() == Kind::Counter { name.strip_suffix("_total") } else { None };
        sample.unit = Unit::of_name(stem.unwrap_or(name));
        sample
    }

    /// A counter's reading.
    #[must_use]
    pub fn counter(name: &'a str, count: u64) -> Self {
        Self::new(name, Value::Counter(count))
    }

    /// A gauge's reading.
    #[must_use]
    pub fn gauge(name: &'a str, level: i64) -> Self {
        Self::new(name, Value::Gauge(level))
    }

    /// A histogram's reading.
    #[must_use]
    pub fn histogram(name: &'a str, distribution: impl Into<Distribution>) -> Self {
        Self::new(name, Value::Histogram(distribution.into()))
    }

    /// With a line of help.
    #[must_use]
    pub fn help(self, help: &'a str) -> Self {
        Self { help, ..self }
    }

    /// With a unit other than the name's.
    #[must_use]
    pub fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// With labels.
    #[must_use]
    pub fn labels(self, labels: &'a [(&'a str, &'a str)]) -> Self {
        Self { labels, ..self }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.value {
            Value::Counter(_) => Kind::Counter,
            Value::Gauge(_) | Value::GaugeFloat(_) => Kind::Gauge,
            Value::Histogram(_) => Kind::Histogram,
        }
    }
}

impl Kind {
    /// The name as it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Unit {
    /// Every unit that a name can end in.
    const SUFFIXED: [Self; 6] = [
        Self::Nanoseconds,
        Self::Microseconds,
        Self::Milliseconds,
        Self::Seconds,
        Self::Bytes,
        Self::Ticks,
    ];

    /// How a name of this unit ends; empty for [`Count`](Self::Count).
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Nanoseconds => "_ns",
            Self::Microseconds => "_us",
            Self::Milliseconds => "_ms",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
            Self::Ticks => "_ticks",
        }
    }

    /// The unit that a name ends in.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let is_end = |unit: &Self| name.ends_with(unit.suffix());
        Self::SUFFIXED.into_iter().find(is_end).unwrap_or(Self::Count)
    }
}

/// Median, 90 %, 99 % and 99.9 %.
impl<const SUB: usize> From<&Snapshot<SUB>> for Distribution {
    #[expect(clippy::cast_precision_loss, reason = "a measure, not a ledger")]
    fn from(snapshot: &Snapshot<SUB>) -> Self {
        const LEVELS: [(f64, Quantile); 4] = [
            (0.5, Quantile::P50),
            (0.9, Quantile::P90),
            (0.99, Quantile::P99),
            (0.999, Quantile::P99_9),
        ];
        let at = |(level, quantile)| Some((level, snapshot.quantile(quantile)? as f64));
        Self {
            count: snapshot.count(),
            sum: snapshot.sum() as f64,
            quantiles: LEVELS.into_iter().filter_map(at).collect(),
        }
    }
}
