//! Samples of metrics with the metadata that a remote reader needs: kind, unit, help and labels.
//!
//! Exporters take [`Sample`]s; [`prometheus`](mod@crate::prometheus) writes them as text. This is
//! not a registry and reads nothing itself: the owner of the numbers creates the samples on
//! request. The kind follows from the value, so the two cannot disagree.

use alloc::{string::String, vec::Vec};

use crate::{
    Quantile, Snapshot,
    histogram::Summary,
    prometheus::{self, ExportError},
};

/// One sample of one metric.
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
    /// The name, with dots or underscores, and the unit at its end:
    /// `runtime.channel.message_age_ms`.
    pub name: &'a str,
    /// A one-line description; may be empty.
    pub help: &'a str,
    /// The unit of the value.
    pub unit: Unit,
    /// Names and values that distinguish samples of one name.
    pub labels: &'a [(&'a str, &'a str)],
    /// The value, and with it the kind.
    pub value: Value,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Only rises, starting from 0.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// A count, or a number without a unit.
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
    /// Ticks of a timer wheel.
    Ticks,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A counter.
    Counter(u64),
    /// A gauge with an integer value.
    Gauge(i64),
    /// A gauge with a floating-point value.
    GaugeFloat(f64),
    /// A histogram.
    Histogram(Distribution),
}

/// A distribution of values: count, sum and some quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Quantiles between 0 and 1, ascending, with the value at each. Empty if there is no value.
    pub quantiles: Vec<(f64, f64)>,
}

impl<'a> Sample<'a> {
    /// Creates a sample without help or labels. The unit is derived from the name; for a counter,
    /// a trailing `_total` is ignored.
    #[must_use]
    pub fn new(name: &'a str, value: Value) -> Self {
        let mut sample = Self { name, help: "", unit: Unit::Count, labels: &[], value };
        let stem = if sample.kind() == Kind::Counter { name.strip_suffix("_total") } else { None };
        sample.unit = Unit::of_name(stem.unwrap_or(name));
        sample
    }

    /// A sample of a counter.
    #[must_use]
    pub fn counter(name: &'a str, count: u64) -> Self {
        Self::new(name, Value::Counter(count))
    }

    /// A sample of a gauge.
    #[must_use]
    pub fn gauge(name: &'a str, level: i64) -> Self {
        Self::new(name, Value::Gauge(level))
    }

    /// A sample of a histogram.
    #[must_use]
    pub fn histogram(name: &'a str, distribution: impl Into<Distribution>) -> Self {
        Self::new(name, Value::Histogram(distribution.into()))
    }

    /// Adds a help line.
    #[must_use]
    pub fn help(self, help: &'a str) -> Self {
        Self { help, ..self }
    }

    /// Overrides the unit that the name implies.
    #[must_use]
    pub fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Adds labels.
    #[must_use]
    pub fn labels(self, labels: &'a [(&'a str, &'a str)]) -> Self {
        Self { labels, ..self }
    }

    /// The kind of the metric.
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
    /// The printed name.
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
    /// Every unit that a name can end with.
    const SUFFIXED: [Self; 6] = [
        Self::Nanoseconds,
        Self::Microseconds,
        Self::Milliseconds,
        Self::Seconds,
        Self::Bytes,
        Self::Ticks,
    ];

    /// The suffix of names with this unit; empty for [`Count`](Self::Count).
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

    /// The unit that a name ends with.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let is_end = |unit: &Self| name.ends_with(unit.suffix());
        Self::SUFFIXED.into_iter().find(is_end).unwrap_or(Self::Count)
    }
}

/// Samples that own their texts, so that several sources can fill one set.
///
/// # Examples
///
/// ```
/// use clockjack_observe::samples::{Sample, SampleSet};
///
/// let mut set = SampleSet::new();
/// for (queue, len) in [("in", 3), ("out", 0)] {
///     set.push(&Sample::gauge("queue_length", len).labels(&[("queue", queue)]));
/// }
/// let text = set.prometheus()?;
/// assert!(text.ends_with("clockjack_queue_length{queue=\"out\"} 0\n"));
/// # Ok::<(), clockjack_observe::prometheus::ExportError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SampleSet(Vec<OwnedSample>);

#[derive(Clone, Debug)]
struct OwnedSample {
    name: String,
    help: String,
    unit: Unit,
    labels: Vec<(String, String)>,
    value: Value,
}

impl OwnedSample {
    fn labels(&self) -> Vec<(&str, &str)> {
        self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

impl SampleSet {
    /// A set without samples.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a copy of a sample.
    pub fn push(&mut self, sample: &Sample<'_>) {
        let labels = sample.labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        self.0.push(OwnedSample {
            name: sample.name.into(),
            help: sample.help.into(),
            unit: sample.unit,
            labels: labels.collect(),
            value: sample.value.clone(),
        });
    }

    /// Adds all samples of another set.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The samples in [Prometheus' text format](crate::prometheus).
    ///
    /// # Errors
    ///
    /// As [`crate::prometheus::write`].
    pub fn prometheus(&self) -> Result<String, ExportError> {
        // Collected apart, because samples borrow them.
        let labels: Vec<Vec<(&str, &str)>> = self.0.iter().map(OwnedSample::labels).collect();
        let samples = self.0.iter().zip(&labels).map(|(one, labels)| Sample {
            name: &one.name,
            help: &one.help,
            unit: one.unit,
            labels,
            value: one.value.clone(),
        });
        let mut text = String::new();
        prometheus::write(&mut text, &samples.collect::<Vec<_>>())?;
        Ok(text)
    }
}

/// The median, 90 %, 99 % and 99.9 %.
impl From<&Summary> for Distribution {
    #[expect(clippy::cast_precision_loss, reason = "a measure, not a ledger")]
    fn from(summary: &Summary) -> Self {
        let Summary { count, sum, p50, p90, p99, p99_9, .. } = *summary;
        let all = [(0.5, p50), (0.9, p90), (0.99, p99), (0.999, p99_9)];
        let quantiles = all.map(|(level, value)| (level, value as f64));
        Self {
            count,
            sum: sum as f64,
            quantiles: if count == 0 { Vec::new() } else { quantiles.to_vec() },
        }
    }
}

/// The median, 90 %, 99 % and 99.9 %.
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
