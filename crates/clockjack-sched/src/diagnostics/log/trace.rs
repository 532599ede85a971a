//! A trace of an execution as text, and the comparison of two traces.

use alloc::vec::Vec;
use core::{error::Error, fmt};

use clockjack_time::{Resolution, Tick};

use super::{LogKind, LogRecord, SchedulerLog};
use crate::JobNumber;

/// The first word of a trace.
const MAGIC: &str = "clockjack-replay";
/// The version of the format that is written and read.
const VERSION: u64 = 1;

/// A record of what happened in one execution, to be compared with another.
///
/// # Examples
///
/// ```
/// use clockjack_sched::log::{LogRecord, ReplayTrace, SchedulerLog};
/// use clockjack_time::Resolution;
///
/// let mut log = SchedulerLog::with_capacity(8);
/// log.push(LogRecord::EMPTY);
/// let trace = ReplayTrace::from_log(Resolution::MILLI, &log);
///
/// let text = trace.to_string();
/// let again = ReplayTrace::parse(&text)?;
/// assert_eq!(trace.first_divergence(&again), None);
/// # Ok::<(), clockjack_sched::log::TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayTrace {
    resolution: Resolution,
    lost: u64,
    records: Vec<LogRecord>,
}

impl ReplayTrace {
    /// The trace of one shard.
    #[must_use]
    pub fn from_log(resolution: Resolution, log: &SchedulerLog) -> Self {
        Self { resolution, lost: log.lost(), records: log.iter().copied().collect() }
    }

    /// The trace of all shards, from their logs: ordered by tick, then by shard, and then in the
    /// order of the shard.
    #[must_use]
    pub fn merged<'l>(
        resolution: Resolution,
        logs: impl IntoIterator<Item = &'l SchedulerLog>,
    ) -> Self {
        let mut merged = Self { resolution, lost: 0, records: Vec::new() };
        for log in logs {
            merged.lost = merged.lost.saturating_add(log.lost());
            merged.records.extend(log.iter());
        }
        // Stable: the records of one shard in a tick keep their order.
        merged.records.sort_by_key(|record| (record.at, record.job.shard));
        merged
    }

    /// The records in order.
    #[must_use]
    pub fn records(&self) -> &[LogRecord] {
        &self.records
    }

    /// The length of a tick.
    #[must_use]
    pub const fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// How many records before the first were lost.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes the trace, one record per line:
    ///
    /// ```text
    /// clockjack-replay 1
    /// resolution_ns 1000000
    /// lost 0
    /// records 2
    /// schedule shard=0 job=1 scheduled_at=0 deadline=5 at=0 runs=0 executor=0
    /// fire shard=0 job=1 scheduled_at=0 deadline=5 at=5 runs=1 executor=2
    /// ```
    ///
    /// The first line contains the version. Every number is decimal, and all fields are present, in
    /// this order, separated by one space.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_to(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        writeln!(out, "{MAGIC} {VERSION}")?;
        writeln!(out, "resolution_ns {}", self.resolution.nanos())?;
        writeln!(out, "lost {}", self.lost)?;
        writeln!(out, "records {}", self.records.len())?;
        self.records.iter().try_for_each(|record| writeln!(out, "{record}"))
    }

    /// Parses a trace that [`write_to`](Self::write_to) has written.
    ///
    /// # Errors
    ///
    /// The first invalid line, and why it is invalid. Permanent.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut lines = LineReader { lines: text.lines(), line: 0 };
        let version = lines.header(MAGIC).map_err(|error| match error.kind {
            TraceErrorKind::BadNumber(_) => error,
            _ => error.because(TraceErrorKind::NotATrace),
        })?;
        if version != VERSION {
            return Err(lines.error_at(TraceErrorKind::UnknownVersion(version)));
        }
        let resolution = lines.header("resolution_ns")?;
        let resolution = u32::try_from(resolution).ok().and_then(Resolution::from_nanos);
        let bad = TraceErrorKind::BadNumber("resolution_ns");
        let resolution = resolution.ok_or_else(|| lines.error_at(bad))?;
        let lost = lines.header("lost")?;
        let n_records = lines.header("records")?;
        // Not allocated in advance: the number in the header may be wrong.
        let mut records = Vec::new();
        for _ in 0..n_records {
            let Some(line) = lines.next() else {
                return Err(lines.error_at(TraceErrorKind::TooShort));
            };
            records.push(record(line).map_err(|kind| lines.error_at(kind))?);
        }
        if !text.ends_with('\n') {
            // It was truncated, perhaps within a number.
            return Err(lines.error_at(TraceErrorKind::Unfinished));
        }
        match lines.next() {
            Some(_) => Err(lines.error_at(TraceErrorKind::TooLong)),
            None => Ok(Self { resolution, lost, records }),
        }
    }

    /// The first difference between this trace and another; `None` if they are equal.
    #[must_use]
    pub fn first_divergence(&self, other: &Self) -> Option<Divergence> {
        if self.resolution != other.resolution {
            let (left, right) = (self.resolution, other.resolution);
            return Some(Divergence::Resolution { left, right });
        }
        if self.lost != other.lost {
            return Some(Divergence::Lost { left: self.lost, right: other.lost });
        }
        let n = self.records.len().max(other.records.len());
        (0..n).find_map(|index| {
            let (left, right) = (self.records.get(index), other.records.get(index));
            let parts = || Divergence::Record { index, left: left.copied(), right: right.copied() };
            (left != right).then(parts)
        })
    }
}

impl fmt::Display for ReplayTrace {
    /// As [`write_to`](Self::write_to).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

/// The first difference of two traces. `left` is `self`, `right` the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// Their ticks have different lengths, so that equal records would mean different things.
    Resolution {
        /// The length in the left trace.
        left: Resolution,
        /// The length in the right trace.
        right: Resolution,
    },
    /// They have lost different numbers of records, so they do not begin at the same record.
    Lost {
        /// How many the left one has lost.
        left: u64,
        /// How many the right one has lost.
        right: u64,
    },
    /// A record differs. A trace that is shorter has no record.
    Record {
        /// The index of the record, from zero.
        index: usize,
        /// The record of the left trace.
        left: Option<LogRecord>,
        /// The record of the right trace.
        right: Option<LogRecord>,
    },
}

impl fmt::Display for Divergence {
    /// Several lines for a record, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, left, right) = match self {
            Self::Resolution { left, right } => {
                return write!(f, "a tick is {left} on the left and {right} on the right");
            }
            Self::Lost { left, right } => {
                return write!(
                    f,
                    "the first {left} records are lost on the left, {right} on the right: \
                     they do not begin at the same one"
                );
            }
            Self::Record { index, left, right } => (index, left, right),
        };
        writeln!(f, "the traces differ at record {index}")?;
        for (side, record) in [("left ", left), ("right", right)] {
            match record {
                Some(record) => write!(f, "  {side}  {record}")?,
                None => write!(f, "  {side}  has ended")?,
            }
            f.write_str("\n")?;
        }
        f.write_str("  differs in ")?;
        let (Some(left), Some(right)) = (left, right) else { return f.write_str("length") };
        let names = [
            (left.kind != right.kind, "kind"),
            (left.job.shard != right.job.shard, "shard"),
            (left.job.number != right.job.number, "job"),
            (left.scheduled_at != right.scheduled_at, "scheduled_at"),
            (left.deadline != right.deadline, "deadline"),
            (left.at != right.at, "at"),
            (left.runs != right.runs, "runs"),
            (left.executor != right.executor, "executor"),
        ];
        let differing = names.iter().filter(|(differs, _)| *differs);
        for (n, (_, name)) in differing.enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A text that is not a complete trace. Permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceError {
    line: usize,
    kind: TraceErrorKind,
}

impl TraceError {
    /// The number of the invalid line, from one; one more than the last if something is missing.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    const fn because(self, kind: TraceErrorKind) -> Self {
        Self { kind, ..self }
    }
}

/// What is wrong with a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceErrorKind {
    /// The text does not begin like a trace.
    NotATrace,
    /// The version is not supported.
    UnknownVersion(u64),
    /// A line of the header is missing or out of order.
    MissingHeader(&'static str),
    /// The kind of the record is unknown.
    UnknownKind,
    /// A field is missing or out of order.
    MissingField(&'static str),
    /// The value is not a number, or is too large or not allowed.
    BadNumber(&'static str),
    /// There is text after the last field.
    TextBehind,
    /// There are fewer records than the header says.
    TooShort,
    /// The last line has no newline, so it may be incomplete.
    Unfinished,
    /// There are more records than the header says.
    TooLong,
}

impl fmt::Display for TraceErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => write!(f, "not a trace: it does not begin with `{MAGIC}`"),
            Self::UnknownVersion(version) => {
                write!(f, "version {version} is unknown, {VERSION} is known")
            }
            Self::MissingHeader(name) => write!(f, "`{name}` is missing in the header"),
            Self::UnknownKind => f.write_str("unknown kind of record"),
            Self::MissingField(name) => write!(f, "`{name}=` is missing"),
            Self::BadNumber(name) => write!(f, "`{name}` is not a valid number"),
            Self::TextBehind => f.write_str("text after the last field"),
            Self::TooShort => f.write_str("there are fewer records than the header says"),
            Self::Unfinished => f.write_str("the last line is incomplete"),
            Self::TooLong => f.write_str("there are more lines than the header says"),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

impl Error for TraceError {}

/// The lines of a text, counted.
struct LineReader<'t> {
    lines: core::str::Lines<'t>,
    /// The number of the line that was returned last; after the last line, one more.
    line: usize,
}

impl<'t> LineReader<'t> {
    fn next(&mut self) -> Option<&'t str> {
        self.line += 1;
        self.lines.next()
    }

    const fn error_at(&self, kind: TraceErrorKind) -> TraceError {
        TraceError { line: self.line, kind }
    }

    /// The number after a name.
    fn header(&mut self, name: &'static str) -> Result<u64, TraceError> {
        let number = self.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let number = number.ok_or_else(|| self.error_at(TraceErrorKind::MissingHeader(name)))?;
        digits(number).ok_or_else(|| self.error_at(TraceErrorKind::BadNumber(name)))
    }
}

/// One record.
fn record(line: &str) -> Result<LogRecord, TraceErrorKind> {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let kind = LogKind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or(TraceErrorKind::UnknownKind)?;
    let mut field = |name: &'static str| {
        let number = words.next().and_then(|word| word.strip_prefix(name)?.strip_prefix('='));
        let number = number.ok_or(TraceErrorKind::MissingField(name))?;
        digits(number).ok_or(TraceErrorKind::BadNumber(name))
    };
    let record = LogRecord {
        kind,
        job: JobNumber { shard: narrow(field("shard")?, "shard")?, number: field("job")? },
        scheduled_at: Tick::new(field("scheduled_at")?),
        deadline: Tick::new(field("deadline")?),
        at: Tick::new(field("at")?),
        runs: narrow(field("runs")?, "runs")?,
        executor: narrow(field("executor")?, "executor")?,
    };
    if words.next().is_some() { Err(TraceErrorKind::TextBehind) } else { Ok(record) }
}

/// A number without a sign.
fn digits(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn narrow<N: TryFrom<u64>>(number: u64, name: &'static str) -> Result<N, TraceErrorKind> {
    N::try_from(number).map_err(|_| TraceErrorKind::BadNumber(name))
}
