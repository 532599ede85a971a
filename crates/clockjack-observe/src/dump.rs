//! Text for people: aligned tables of metrics and records, and bar charts, through `fmt::Write`.
//!
//! Nothing here allocates, so a dump works in a fault handler that writes to a serial port. All
//! output is ASCII. The text is for reading and may change; a program that parses should use the
//! [events](crate::event) themselves.

mod chart;
mod scale;

use core::fmt::{self, Write};

pub use chart::{Chart, write_histogram};
pub use scale::{Scaled, Unit};

use crate::{event::Record, histogram::Summary};

/// A named reading for [`write_metrics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The name of the metric, for example `clockjack_timers_fired_total`.
    pub name: &'a str,
    /// The unit of the number.
    pub unit: Unit,
    /// The number or numbers.
    pub reading: Reading,
}

/// The value of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A counter.
    Counter(usize),
    /// A gauge.
    Gauge(usize),
    /// A histogram.
    Histogram(Summary),
}

impl<'a> Line<'a> {
    /// A line for a counter.
    #[must_use]
    pub const fn counter(name: &'a str, count: usize) -> Self {
        Self { name, unit: Unit::Count, reading: Reading::Counter(count) }
    }

    /// A line for a gauge.
    #[must_use]
    pub const fn gauge(name: &'a str, unit: Unit, level: usize) -> Self {
        Self { name, unit, reading: Reading::Gauge(level) }
    }

    /// A line for a histogram.
    #[must_use]
    pub const fn histogram(name: &'a str, unit: Unit, summary: Summary) -> Self {
        Self { name, unit, reading: Reading::Histogram(summary) }
    }
}

/// The width of a number in the tables: six digits, a point, a unit.
const NUMBER_COLUMNS: usize = 9;

/// Writes counters and gauges, one per line, then a table of histograms, all aligned.
///
/// # Errors
///
/// The error of `out`.
///
/// # Examples
///
/// ```
/// use clockjack_observe::dump::{Line, Unit, write_metrics};
///
/// let mut text = String::new();
/// let lines = [Line::counter("fired", 12), Line::gauge("heap", Unit::Bytes, 4096)];
/// write_metrics(&mut text, &lines)?;
/// assert_eq!(text, "fired       12\nheap   4.00KiB\n");
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub fn write_metrics(out: &mut dyn Write, lines: &[Line<'_>]) -> fmt::Result {
    let name_columns = lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
    let number_columns = lines.iter().filter_map(|line| plain(line)).map(|n| n.columns()).max();
    let number_columns = number_columns.unwrap_or(0);
    for line in lines {
        if let Some(number) = plain(line) {
            writeln!(out, "{:name_columns$}  {number:>number_columns$}", line.name)?;
        }
    }
    let mut header_is_due = true;
    for line in lines {
        if let Reading::Histogram(summary) = line.reading {
            if core::mem::take(&mut header_is_due) {
                write_row(out, "", name_columns, &COLUMN_NAMES)?;
            }
            write_summary(out, line, &summary, name_columns)?;
        }
    }
    Ok(())
}

/// Writes records, one per line: seconds, kind and fields in columns.
///
/// Limit a reader of a ring with [`take`](Iterator::take) if a writer may write concurrently.
///
/// # Errors
///
/// The error of `out`.
pub fn write_records(
    out: &mut dyn Write,
    records: impl IntoIterator<Item = Record>,
) -> fmt::Result {
    for Record { at_ns, event } in records {
        let (seconds, nanos) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        write!(out, "{seconds:>SECOND_COLUMNS$}.{nanos:09}  ")?;
        write!(out, "{:KIND_COLUMNS$}", event.kind())?;
        event.visit_fields(|name, value| write!(out, " {name}={value}"))?;
        writeln!(out)?;
    }
    Ok(())
}

/// The width of whole seconds: three years.
const SECOND_COLUMNS: usize = 8;

/// The width of the longest name of a kind.
const KIND_COLUMNS: usize = {
    let (mut index, mut columns) = (0, 0);
    while index < crate::event::Kind::ALL.len() {
        let len = crate::event::Kind::ALL[index].name().len();
        if len > columns {
            columns = len;
        }
        index += 1;
    }
    columns
};

const COLUMN_NAMES: [&str; 8] = ["count", "mean", "min", "p50", "p90", "p99", "p99.9", "max"];

/// The number of a line that has only one.
fn plain(line: &Line<'_>) -> Option<Scaled> {
    match line.reading {
        Reading::Counter(n) | Reading::Gauge(n) => Some(line.unit.scale(n as u64)),
        Reading::Histogram(_) => None,
    }
}

fn write_summary(
    out: &mut dyn Write,
    line: &Line<'_>,
    summary: &Summary,
    name_columns: usize,
) -> fmt::Result {
    let Summary { count, mean, min, p50, p90, p99, p99_9, max } = *summary;
    let numbers = [mean, min, p50, p90, p99, p99_9, max].map(|n| line.unit.scale(n));
    write!(out, "{:name_columns$}  {count:>NUMBER_COLUMNS$}", line.name)?;
    for number in numbers {
        if count == 0 {
            write!(out, " {:>NUMBER_COLUMNS$}", "-")?;
        } else {
            write!(out, " {number:>NUMBER_COLUMNS$}")?;
        }
    }
    writeln!(out)
}

fn write_row(out: &mut dyn Write, name: &str, name_columns: usize, cells: &[&str]) -> fmt::Result {
    write!(out, "{name:name_columns$} ")?;
    for cell in cells {
        write!(out, " {cell:>NUMBER_COLUMNS$}")?;
    }
    writeln!(out)
}
