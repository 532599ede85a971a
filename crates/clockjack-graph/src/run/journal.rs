//! What components have to say, line by line, for whoever reads it. Bounded: a journal that is full
//! takes no more until somebody takes what is in it, and counts what it has lost.
//!
//! Lines come in the order of epochs, then of components, then of their writing, whatever the
//! threads did; so do those that there is no room for. Calls that do not count, beside a failure
//! before them, leave none. Like all that is observed they change nothing in the run.

use core::fmt::{self, Write as _};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_sync::mutant;

use super::turn::Turn;
use crate::named::named;

/// Bytes of a line; the rest is cut off.
const LINE_LEN_MAX: usize = 1024;

named! {
    /// How much a line matters.
    pub enum Level {
        /// Something failed.
        Error = "error",
        /// Something is odd.
        Warn = "warn",
        /// Something happened.
        Info = "info",
        /// For who looks for a fault.
        Debug = "debug",
        /// Every step.
        Trace = "trace",
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// How much it matters.
    pub level: Level,
    /// The epoch.
    pub epoch: u64,
    /// Nanoseconds of the run's own time.
    pub now_ns: u64,
    /// The graph.
    pub graph: Arc<str>,
    /// The component.
    pub component: String,
    /// What it says.
    pub line: String,
    /// The number of the component, for the order.
    number: usize,
}

impl fmt::Display for LogRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, epoch, graph, component, line, .. } = self;
        write!(f, "{level} {graph}/{component}, epoch {epoch}: {line}")
    }
}

/// The journal of a run. Clones are the same journal.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<State>>);

struct State {
    records: Vec<LogRecord>,
    capacity: usize,
    least: Level,
    n_dropped: u64,
}

impl Journal {
    /// One of so many lines, of all levels.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = State { records: Vec::new(), capacity, least: Level::Trace, n_dropped: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Lines that matter less are left out from now on, and not counted.
    #[must_use]
    pub fn least(self, level: Level) -> Self {
        self.lock().least = level;
        self
    }

    /// Takes what is there. Also while the run goes on: then lines of an epoch that is not over
    /// may be missing.
    #[must_use]
    pub fn take(&self) -> Vec<LogRecord> {
        let mut records = core::mem::take(&mut self.lock().records);
        // Lines of one component in one epoch stay in their order.
        records.sort_by_key(|one| (one.epoch, one.number));
        records
    }

    /// How many lines there was no room for.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        self.lock().n_dropped
    }

    /// The line, if it matters enough.
    fn record(
        &self,
        level: Level,
        (epoch, now_ns): (u64, u64),
        (number, component): (usize, &str),
        graph: &Arc<str>,
        line: &dyn fmt::Display,
    ) -> Option<LogRecord> {
        if level > self.lock().least {
            return None;
        }
        // Outside the lock: it is the user's code.
        let mut cut = Cut(String::new());
        // Past its end a line is as long as it gets.
        let _ = write!(cut, "{line}");
        let (graph, component) = (Arc::clone(graph), component.into());
        Some(LogRecord { level, epoch, now_ns, graph, component, line: cut.0, number })
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Journal")
            .field("len", &state.records.len())
            .field("capacity", &state.capacity)
            .finish_non_exhaustive()
    }
}

/// Where the components of a domain write: what is written in a [turn](Turn) stays here until the
/// epoch is over.
pub(crate) struct Desk {
    journal: Journal,
    /// Lines of the journal.
    capacity: usize,
    drafts: Mutex<Drafts>,
}

#[derive(Default)]
struct Drafts {
    lines: Vec<(Turn, LogRecord)>,
    /// For each region, lines that there will be no room for.
    n_cut: BTreeMap<u32, u64>,
}

impl Desk {
    pub(crate) fn new(journal: Journal) -> Self {
        let capacity = journal.lock().capacity;
        Self { journal, capacity, drafts: Mutex::default() }
    }

    pub(crate) fn write(
        &self,
        level: Level,
        times: (u64, u64),
        who: (usize, &str),
        graph: &Arc<str>,
        line: &dyn fmt::Display,
    ) {
        let Some(record) = self.journal.record(level, times, who, graph, line) else { return };
        let turn = Turn::current().filter(|_| !mutant!("journal-writes-at-once"));
        let Some(turn) = turn else { return self.journal.put(core::iter::once(record), 0) };
        let mut drafts = self.drafts();
        drafts.lines.push((turn, record));
        // The first of them are all that the journal can take, and those behind a failure are the
        // last ones; so no more is kept, and not each line pays for it.
        if drafts.lines.len() >= self.capacity.saturating_mul(2).max(1) {
            drafts.cut(self.capacity);
        }
    }

    /// The epoch is over: takes the lines of the regions that count.
    pub(crate) fn settle(&self, counts: impl Fn(u32) -> bool) {
        let mut drafts = self.drafts();
        if drafts.lines.is_empty() && drafts.n_cut.is_empty() {
            return;
        }
        drafts.cut(self.capacity);
        let n_cut = drafts.n_cut.iter().filter(|(position, _)| counts(**position));
        let n_cut = n_cut.map(|(_, n)| *n).sum();
        drafts.n_cut.clear();
        let lines = drafts.lines.drain(..).filter(|(turn, _)| counts(turn.position));
        self.journal.put(lines.map(|(_, record)| record), n_cut);
    }

    fn drafts(&self) -> MutexGuard<'_, Drafts> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drafts {
    /// Puts the lines in order and keeps the first ones.
    fn cut(&mut self, capacity: usize) {
        // Lines of one turn stay in their order.
        self.lines.sort_by_key(|(turn, _)| *turn);
        for (turn, _) in self.lines.drain(capacity.min(self.lines.len())..) {
            *self.n_cut.entry(turn.position).or_default() += 1;
        }
    }
}

/// A text that takes no more than a line.
struct Cut(String);

impl fmt::Write for Cut {
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

    fn say(journal: &Journal, level: Level, epoch: u64, number: usize, line: &str) {
        let desk = Desk::new(journal.clone());
        desk.write(level, (epoch, 0), (number, "c"), &Arc::from("g"), &line);
    }

    #[test]
    fn lines_of_turns_come_in_their_order_and_only_of_those_that_count() {
        let journal = Journal::new(3);
        let desk = Desk::new(journal.clone());
        let has_counted = core::sync::atomic::AtomicBool::new(false);
        // Written from the last to the first, as helpers may.
        for position in (0..8).rev() {
            let _turn = Turn::of(position).begin(&has_counted);
            for line in ["first", "second"] {
                let line = format!("{line} of {position}");
                desk.write(Level::Info, (1, 0), (0, "c"), &Arc::from("g"), &line);
            }
        }
        assert!(journal.take().is_empty(), "the epoch is not over");
        desk.settle(|position| position < 5);
        let lines: Vec<String> = journal.take().into_iter().map(|one| one.line).collect();
        assert_eq!(lines, ["first of 0", "second of 0", "first of 1"]);
        assert_eq!(journal.n_dropped(), 10 - 3, "of those that count");
    }

    #[test]
    fn lines_come_in_the_order_of_epochs_then_components() {
        let journal = Journal::new(8).least(Level::Info);
        for (epoch, number, line) in [(2, 0, "d"), (1, 1, "b"), (1, 1, "c"), (1, 0, "a")] {
            say(&journal, Level::Info, epoch, number, line);
        }
        say(&journal, Level::Debug, 1, 0, "left out");
        let lines: Vec<String> = journal.take().into_iter().map(|one| one.line).collect();
        assert_eq!(lines, ["a", "b", "c", "d"]);
        assert!(journal.take().is_empty());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_a_long_line_is_cut() {
        let journal = Journal::new(1);
        say(&journal, Level::Warn, 1, 0, &"ä".repeat(LINE_LEN_MAX));
        say(&journal, Level::Warn, 1, 0, "one too many");
        assert_eq!(journal.n_dropped(), 1);
        assert_eq!(journal.take()[0].line.len(), LINE_LEN_MAX);
    }
}
