//! The component log: lines that components write for people. It is bounded: a full log drops
//! further lines, and counts them, until the reader takes what is in it.
//!
//! Lines are ordered by epoch, then by component, then as they were written, independent of
//! threads; that includes the choice of lines to drop. Calls that do not count, because a region
//! before them failed, leave no lines. The log has no influence on the run.

use core::fmt::{self, Write as _};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::{lock::lock, named::named, run::engine::current_position::CurrentPosition};

/// The longest line in bytes; the rest is cut off.
const LINE_LEN_MAX: usize = 1024;

named! {
    /// How important a line is.
    pub enum LogLevel {
        /// Something failed.
        Error = "error",
        /// Something is suspicious.
        Warn = "warn",
        /// Something happened.
        Info = "info",
        /// For debugging.
        Debug = "debug",
        /// Every step.
        Trace = "trace",
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// How important it is.
    pub level: LogLevel,
    /// The epoch.
    pub epoch: u64,
    /// Nanoseconds of the run's time.
    pub now_ns: u64,
    /// The graph.
    pub graph: Arc<str>,
    /// The component.
    pub component: String,
    /// The text.
    pub line: String,
    /// The index of the component, for the order.
    number: usize,
}

impl fmt::Display for LogRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, epoch, graph, component, line, .. } = self;
        write!(f, "{level} {graph}/{component}, epoch {epoch}: {line}")
    }
}

/// The component log of a run. Clones refer to the same log.
#[derive(Clone)]
pub struct ComponentLog(Arc<Mutex<ComponentLogInner>>);

struct ComponentLogInner {
    records: Vec<LogRecord>,
    capacity: usize,
    least: LogLevel,
    n_dropped: u64,
}

impl ComponentLog {
    /// A log for `capacity` lines of all levels.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = ComponentLogInner {
            records: Vec::new(),
            capacity,
            least: LogLevel::Trace,
            n_dropped: 0,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Ignores lines below this level from now on, without counting them.
    #[must_use]
    pub fn least(self, level: LogLevel) -> Self {
        self.lock().least = level;
        self
    }

    /// Takes all lines. While the run goes on, lines of the current epoch may be missing.
    #[must_use]
    pub fn take(&self) -> Vec<LogRecord> {
        let mut records = core::mem::take(&mut self.lock().records);
        // The sort is stable: lines of one component in one epoch stay in order.
        records.sort_by_key(|one| (one.epoch, one.number));
        records
    }

    /// How many lines were dropped because the log was full.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        self.lock().n_dropped
    }

    /// Formats a line, if its level is high enough.
    fn record(
        &self,
        level: LogLevel,
        (epoch, now_ns): (u64, u64),
        (number, component): (usize, &str),
        graph: &Arc<str>,
        line: &dyn fmt::Display,
    ) -> Option<LogRecord> {
        if level > self.lock().least {
            return None;
        }
        // Outside the lock: `Display` is the user's code.
        let mut cut = TruncatedLine(String::new());
        // An error means that the line was cut off.
        let _ = write!(cut, "{line}");
        let (graph, component) = (Arc::clone(graph), component.into());
        Some(LogRecord { level, epoch, now_ns, graph, component, line: cut.0, number })
    }

    /// Writes a line of the run about a component, at once.
    pub(crate) fn report(
        &self,
        level: LogLevel,
        times: (u64, u64),
        component: (usize, &str),
        graph: &Arc<str>,
        line: &dyn fmt::Display,
    ) {
        self.put(self.record(level, times, component, graph, line).into_iter(), 0);
    }

    fn put(&self, records: impl Iterator<Item = LogRecord>, n_cut: u64) {
        let mut state = self.lock();
        for record in records {
            if state.records.len() < state.capacity {
                state.records.push(record);
            } else {
                state.n_dropped += 1;
            }
        }
        state.n_dropped += n_cut;
    }

    fn lock(&self) -> MutexGuard<'_, ComponentLogInner> {
        lock(&self.0)
    }
}

impl fmt::Debug for ComponentLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ComponentLog")
            .field("len", &state.records.len())
            .field("capacity", &state.capacity)
            .finish_non_exhaustive()
    }
}

/// Where the components of a domain write. Lines written at a [position](CurrentPosition) of a
/// parallel epoch are buffered here until the epoch is over.
pub(crate) struct ComponentLogWriter {
    log: ComponentLog,
    /// The capacity of the log.
    capacity: usize,
    buffered: Mutex<BufferedLines>,
}

#[derive(Default)]
struct BufferedLines {
    lines: Vec<(CurrentPosition, LogRecord)>,
    /// For each region, how many lines were dropped for lack of room.
    n_cut: BTreeMap<u32, u64>,
}

impl ComponentLogWriter {
    pub(crate) fn new(log: ComponentLog) -> Self {
        let capacity = log.lock().capacity;
        Self { log, capacity, buffered: Mutex::default() }
    }

    pub(crate) fn write(
        &self,
        level: LogLevel,
        times: (u64, u64),
        who: (usize, &str),
        graph: &Arc<str>,
        line: &dyn fmt::Display,
    ) {
        let Some(record) = self.log.record(level, times, who, graph, line) else {
            return;
        };
        let Some(position) = CurrentPosition::current() else {
            return self.log.put(core::iter::once(record), 0);
        };
        let mut buffered = self.buffered();
        buffered.lines.push((position, record));
        // The log can take at most the first `capacity` of these lines, and those after a failure
        // are the last ones; so no more are kept. Sorting only at twice the capacity keeps the cost
        // per line low.
        if buffered.lines.len() >= self.capacity.saturating_mul(2).max(1) {
            buffered.cut(self.capacity);
        }
    }

    /// The epoch is over: writes the lines of the regions that count to the log.
    pub(crate) fn flush_epoch(&self, counts: impl Fn(u32) -> bool) {
        let mut buffered = self.buffered();
        if buffered.lines.is_empty() && buffered.n_cut.is_empty() {
            return;
        }
        buffered.cut(self.capacity);
        let n_cut = buffered.n_cut.iter().filter(|(at, _)| counts(**at));
        let n_cut = n_cut.map(|(_, n)| *n).sum();
        buffered.n_cut.clear();
        let lines = buffered.lines.drain(..).filter(|(at, _)| counts(at.position));
        self.log.put(lines.map(|(_, record)| record), n_cut);
    }

    fn buffered(&self) -> MutexGuard<'_, BufferedLines> {
        lock(&self.buffered)
    }
}

impl BufferedLines {
    /// Sorts the lines and keeps the first ones.
    fn cut(&mut self, capacity: usize) {
        // The sort is stable: lines of one position stay in order.
        self.lines.sort_by_key(|(at, _)| *at);
        for (at, _) in self.lines.drain(capacity.min(self.lines.len())..) {
            *self.n_cut.entry(at.position).or_default() += 1;
        }
    }
}

/// A text that is cut off at the length of a line.
struct TruncatedLine(String);

impl fmt::Write for TruncatedLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LINE_LEN_MAX - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(log: &ComponentLog, level: LogLevel, epoch: u64, number: usize, line: &str) {
        let writer = ComponentLogWriter::new(log.clone());
        writer.write(level, (epoch, 0), (number, "c"), &Arc::from("g"), &line);
    }

    #[test]
    fn lines_of_regions_come_in_their_order_and_only_of_those_that_count() {
        let log = ComponentLog::new(3);
        let writer = ComponentLogWriter::new(log.clone());
        let has_buffered_counts = core::sync::atomic::AtomicBool::new(false);
        // Written from the last to the first, as helpers may do.
        for position in (0..8).rev() {
            let _guard = CurrentPosition::of_region(position).enter(&has_buffered_counts);
            for line in ["first", "second"] {
                let line = format!("{line} of {position}");
                writer.write(LogLevel::Info, (1, 0), (0, "c"), &Arc::from("g"), &line);
            }
        }
        assert!(log.take().is_empty(), "the epoch is not over");
        writer.flush_epoch(|position| position < 5);
        let lines: Vec<String> = log.take().into_iter().map(|one| one.line).collect();
        assert_eq!(lines, ["first of 0", "second of 0", "first of 1"]);
        assert_eq!(log.n_dropped(), 10 - 3, "of those that count");
    }

    #[test]
    fn lines_come_in_the_order_of_epochs_then_components() {
        let log = ComponentLog::new(8).least(LogLevel::Info);
        for (epoch, number, line) in [(2, 0, "d"), (1, 1, "b"), (1, 1, "c"), (1, 0, "a")] {
            say(&log, LogLevel::Info, epoch, number, line);
        }
        say(&log, LogLevel::Debug, 1, 0, "left out");
        let lines: Vec<String> = log.take().into_iter().map(|one| one.line).collect();
        assert_eq!(lines, ["a", "b", "c", "d"]);
        assert!(log.take().is_empty());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_a_long_line_is_cut() {
        let log = ComponentLog::new(1);
        say(&log, LogLevel::Warn, 1, 0, &"ä".repeat(LINE_LEN_MAX));
        say(&log, LogLevel::Warn, 1, 0, "one too many");
        assert_eq!(log.n_dropped(), 1);
        assert_eq!(log.take()[0].line.len(), LINE_LEN_MAX);
    }
}
