//! Writes samples in Prometheus' text format, version 0.0.4.
//!
//! This module writes text and contains no server. Names follow Prometheus' conventions:
//! `runtime.scheduler.tick_count` becomes `clockjack_runtime_scheduler_tick_count_total`; times
//! become seconds, so `max_lateness_ms` becomes `max_lateness_seconds`; histograms become summaries
//! with quantiles, a sum and a count.
//!
//! Invariant: the output is well-formed, whatever help and label values contain. All samples of a
//! name are grouped under one `# HELP` and one `# TYPE`, in the order in which names and samples
//! were first given; no series occurs twice. Samples that cannot be written in this way are an
//! [`ExportError`], and then nothing is written at all.

mod name;

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::{
    error::Error,
    fmt::{self, Write},
};

use self::name::{is_label_name, metric_name};
use crate::samples::{Distribution, Kind, Sample, Unit, Value};

/// The media type of the text, for a server that sends it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Samples could not be exported. Permanent for the same samples, except for a failed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    kind: ErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorKind {
    Write,
    Name { name: String },
    Label { name: String, label: String },
    Conflict { name: String },
    Duplicate { name: String },
}

/// Writes all samples.
///
/// # Errors
///
/// Before anything is written: if a name has no letter or digit, if a label name is not valid in
/// Prometheus or occurs twice, if two samples of one name differ in kind, or if two have equal
/// labels. Later: the error of `out`.
///
/// # Examples
///
/// ```
/// use clockjack_observe::{prometheus, samples::Sample};
///
/// let mut text = String::new();
/// let labels = [("lane", "control")];
/// let ticks = Sample::counter("runtime.scheduler.tick_count", 12).help("epochs").labels(&labels);
/// let late = Sample::gauge("runtime.scheduler.max_lateness_ms", 1500);
/// prometheus::write(&mut text, &[ticks, late])?;
/// let expected = [
///     "# HELP clockjack_runtime_scheduler_tick_count_total epochs",
///     "# TYPE clockjack_runtime_scheduler_tick_count_total counter",
///     r#"clockjack_runtime_scheduler_tick_count_total{lane="control"} 12"#,
///     "# TYPE clockjack_runtime_scheduler_max_lateness_seconds gauge",
///     "clockjack_runtime_scheduler_max_lateness_seconds 1.5",
/// ];
/// assert_eq!(text.lines().collect::<Vec<_>>(), expected);
/// # Ok::<(), prometheus::ExportError>(())
/// ```
pub fn write(out: &mut dyn Write, samples: &[Sample<'_>]) -> Result<(), ExportError> {
    for family in families(samples)? {
        family.write(out).map_err(|fmt::Error| ExportError { kind: ErrorKind::Write })?;
    }
    Ok(())
}

/// All samples of one name.
struct Family<'a> {
    name: String,
    kind: Kind,
    samples: Vec<&'a Sample<'a>>,
}

/// Groups samples by name and validates them.
fn families<'a>(samples: &'a [Sample<'a>]) -> Result<Vec<Family<'a>>, ExportError> {
    let mut families: Vec<Family<'a>> = Vec::new();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let Some(name) = metric_name(sample.name, sample.kind(), sample.unit) else {
            return Err(ErrorKind::Name { name: sample.name.into() }.into());
        };
        let index = match by_name.get(&name) {
            Some(index) => *index,
            _ => {
                by_name.insert(name.clone(), families.len());
                families.push(Family { name, kind: sample.kind(), samples: Vec::new() });
                families.len() - 1
            }
        };
        let family = &mut families[index];
        if family.kind != sample.kind() {
            return Err(ErrorKind::Conflict { name: family.name.clone() }.into());
        }
        family.samples.push(sample);
    }
    reject_shared_names(&families)?;
    for family in &families {
        family.check()?;
    }
    Ok(families)
}

/// A summary also writes `_sum` and `_count`, so no other family may have these names.
fn reject_shared_names(families: &[Family<'_>]) -> Result<(), ExportError> {
    let mut names = alloc::collections::BTreeSet::new();
    for family in families {
        let is_histogram = family.kind == Kind::Histogram;
        let suffixes: &[&str] = if is_histogram { &["", "_sum", "_count"] } else { &[""] };
        for suffix in suffixes {
            let name = alloc::format!("{}{suffix}", family.name);
            if let Some(name) = names.replace(name) {
                return Err(ErrorKind::Conflict { name }.into());
            }
        }
    }
    Ok(())
}

impl Family<'_> {
    /// Checks that labels are valid and that no series occurs twice.
    fn check(&self) -> Result<(), ExportError> {
        let mut series = alloc::collections::BTreeSet::new();
        for sample in &self.samples {
            let mut labels: Vec<(&str, &str)> = sample.labels.to_vec();
            labels.sort_unstable();
            let same_as_next = labels.windows(2).find(|pair| pair[0].0 == pair[1].0);
            let is_bad = |label: &&(&str, &str)| !is_label_name(label.0, self.kind);
            let invalid = same_as_next.map(|pair| &pair[0]).or_else(|| labels.iter().find(is_bad));
            if let Some((label, _)) = invalid {
                let (name, label) = (self.name.clone(), (*label).into());
                return Err(ErrorKind::Label { name, label }.into());
            }
            if !series.insert(labels) {
                return Err(ErrorKind::Duplicate { name: self.name.clone() }.into());
            }
        }
        Ok(())
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let name = &self.name;
        let help = self.samples.iter().map(|sample| sample.help).find(|help| !help.is_empty());
        if let Some(help) = help {
            write!(out, "# HELP {name} ")?;
            escape(out, help, Quotes::Plain)?;
            out.write_char('\n')?;
        }
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "summary",
        };
        writeln!(out, "# TYPE {name} {kind}")?;
        for sample in &self.samples {
            self.write_sample(out, sample)?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "Prometheus' numbers are doubles")]
    fn write_sample(&self, out: &mut dyn Write, sample: &Sample<'_>) -> fmt::Result {
        let (name, per_unit) = (&self.name, per_unit(sample.unit));
        match &sample.value {
            Value::Histogram(distribution) => self.write_summary(out, sample, distribution),
            // Whole numbers that need no conversion keep every digit.
            Value::Counter(n) if per_unit == 1.0 => line(out, name, "", sample, None, n),
            Value::Gauge(n) if per_unit == 1.0 => line(out, name, "", sample, None, n),
            Value::Counter(n) => line(out, name, "", sample, None, &Decimal(*n as f64 / per_unit)),
            Value::Gauge(n) => line(out, name, "", sample, None, &Decimal(*n as f64 / per_unit)),
            Value::GaugeFloat(x) => line(out, name, "", sample, None, &Decimal(x / per_unit)),
        }
    }

    fn write_summary(
        &self,
        out: &mut dyn Write,
        sample: &Sample<'_>,
        distribution: &Distribution,
    ) -> fmt::Result {
        let (name, per_unit) = (&self.name, per_unit(sample.unit));
        for (quantile, value) in &distribution.quantiles {
            let value = Decimal(value / per_unit);
            line(out, name, "", sample, Some(Decimal(*quantile)), &value)?;
        }
        let sum = Decimal(distribution.sum / per_unit);
        line(out, name, "_sum", sample, None, &sum)?;
        line(out, name, "_count", sample, None, &distribution.count)
    }
}

/// The number of this unit that make up one written unit.
const fn per_unit(unit: Unit) -> f64 {
    match unit {
        Unit::Nanoseconds => 1e9,
        Unit::Microseconds => 1e6,
        Unit::Milliseconds => 1e3,
        Unit::Count | Unit::Seconds | Unit::Bytes | Unit::Ticks => 1.0,
    }
}

/// One line of the text.
fn line(
    out: &mut dyn Write,
    name: &str,
    suffix: &str,
    sample: &Sample<'_>,
    quantile: Option<Decimal>,
    value: &dyn fmt::Display,
) -> fmt::Result {
    write!(out, "{name}{suffix}")?;
    let mut separator = '{';
    for (label, value) in sample.labels {
        write!(out, "{separator}{label}=\"")?;
        escape(out, value, Quotes::Escaped)?;
        out.write_char('"')?;
        separator = ',';
    }
    if let Some(quantile) = quantile {
        write!(out, "{separator}quantile=\"{quantile}\"")?;
        separator = ',';
    }
    if separator == ',' {
        out.write_char('}')?;
    }
    writeln!(out, " {value}")
}

/// Whether quotes are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Escaped,
    Plain,
}

fn escape(out: &mut dyn Write, text: &str, quotes: Quotes) -> fmt::Result {
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '"' if quotes == Quotes::Escaped => {
                out.write_str("\\\"")?;
            }
            _ => out.write_char(c)?,
        }
    }
    Ok(())
}

/// A float in the notation of the format.
#[derive(Clone, Copy)]
struct Decimal(f64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            x if x.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            x => write!(f, "{x}"),
        }
    }
}

impl ExportError {
    /// Whether `out` failed, rather than the samples.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.kind == ErrorKind::Write
    }

    /// Whether the name of a metric or a label is invalid.
    #[must_use]
    pub const fn is_name(&self) -> bool {
        matches!(self.kind, ErrorKind::Name { .. } | ErrorKind::Label { .. })
    }

    /// Whether two samples conflict.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        matches!(self.kind, ErrorKind::Conflict { .. } | ErrorKind::Duplicate { .. })
    }
}

impl From<ErrorKind> for ExportError {
    fn from(kind: ErrorKind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Write => f.write_str("the text could not be written"),
            ErrorKind::Name { name } => {
                write!(f, "the metric name {name:?} has no letter or digit")
            }
            ErrorKind::Label { name, label } => {
                write!(f, "label {label:?} of {name} is reserved, malformed or a duplicate")
            }
            ErrorKind::Conflict { name } => {
                write!(f, "several metrics of different kinds map to the name {name}")
            }
            ErrorKind::Duplicate { name } => {
                write!(f, "two samples of {name} have the same labels")
            }
        }
    }
}

impl Error for ExportError {}
