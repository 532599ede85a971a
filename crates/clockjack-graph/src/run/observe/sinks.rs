//! The logs that a run writes: the commit log and the trace log.

use core::fmt;
use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard},
};

use super::trace::{EpochStart, Line, Lines, TraceRecord};
use crate::lock::lock;

/// A commit log: in memory, or to writers. Clones refer to the same log.
///
/// It has a part for each epoch domain of a run: one for all lanes that share a clock, and one for
/// each lane that follows the wall clock on its own. Each part is a complete log, which also
/// records what came from other domains, in the order of arrival. In simulated time there is one
/// part.
#[derive(Clone)]
pub struct CommitLog(Arc<Mutex<Parts>>);

struct Parts {
    /// Parts are created on demand.
    is_in_memory: bool,
    /// Each with its lane; `None`: the lanes that share a clock.
    list: Vec<(Option<String>, LogPart)>,
}

/// The log of a domain. Clones are the same.
#[derive(Clone)]
pub(crate) struct LogPart(Arc<Mutex<PartState>>);

enum PartState {
    Memory(Vec<u8>),
    Writer { to: Box<dyn Write + Send>, failed: Option<io::Error> },
}

impl CommitLog {
    /// A log in memory. It grows with the run.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Arc::new(Mutex::new(Parts { is_in_memory: true, list: Vec::new() })))
    }

    /// A log that is written while the run goes on. A lane with its own clock needs its own writer:
    /// a run with such a lane and no [`lane_to`](Self::lane_to) for it does not start.
    #[must_use]
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        let list = vec![(None, LogPart::to(writer))];
        Self(Arc::new(Mutex::new(Parts { is_in_memory: false, list })))
    }

    /// Adds the writer for a lane with its own clock.
    #[must_use]
    pub fn lane_to(self, lane: &str, writer: impl Write + Send + 'static) -> Self {
        let part = LogPart::to(writer);
        let mut parts = lock(&self.0);
        parts.list.retain(|(of, _)| of.as_deref() != Some(lane));
        parts.list.push((Some(lane.into()), part));
        drop(parts);
        self
    }

    /// The bytes in memory of the lanes that share a clock; empty if the log has a writer.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_of(None)
    }

    /// The bytes in memory of a lane with its own clock; empty if there is no such lane, or if it
    /// has a writer.
    #[must_use]
    pub fn lane_bytes(&self, lane: &str) -> Vec<u8> {
        self.bytes_of(Some(lane))
    }

    fn bytes_of(&self, lane: Option<&str>) -> Vec<u8> {
        let parts = lock(&self.0);
        let part = parts.list.iter().find(|(of, _)| of.as_deref() == lane);
        match part.map(|(_, part)| lock(&part.0)).as_deref() {
            Some(PartState::Memory(bytes)) => bytes.clone(),
            _ => Vec::new(),
        }
    }

    /// Flushes all writers.
    ///
    /// # Errors
    ///
    /// The first error of a writer. After that error nothing was written to it.
    pub fn flush(&self) -> io::Result<()> {
        let parts = lock(&self.0);
        let mut result = Ok(());
        for (_, part) in &parts.list {
            result = result.and(part.flush());
        }
        result
    }

    /// The part of a domain; none if there is no writer for it.
    pub(crate) fn part(&self, lane: Option<&str>) -> Option<LogPart> {
        let mut parts = lock(&self.0);
        if let Some((_, part)) = parts.list.iter().find(|(of, _)| of.as_deref() == lane) {
            return Some(part.clone());
        }
        if !parts.is_in_memory {
            return None;
        }
        let part = LogPart(Arc::new(Mutex::new(PartState::Memory(Vec::new()))));
        parts.list.push((lane.map(String::from), part.clone()));
        Some(part)
    }
}

impl LogPart {
    fn to(writer: impl Write + Send + 'static) -> Self {
        let state = PartState::Writer { to: Box::new(writer), failed: None };
        Self(Arc::new(Mutex::new(state)))
    }

    fn flush(&self) -> io::Result<()> {
        match &mut *lock(&self.0) {
            PartState::Memory(_) => Ok(()),
            PartState::Writer { failed: Some(error), .. } => {
                Err(io::Error::new(error.kind(), format!("{error}")))
            }
            PartState::Writer { to, .. } => to.flush(),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        match &mut *lock(&self.0) {
            PartState::Memory(log) => log.extend_from_slice(bytes),
            PartState::Writer { to, failed } => {
                if failed.is_none() {
                    *failed = to.write_all(bytes).err();
                }
            }
        }
    }
}

impl fmt::Debug for CommitLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommitLog")
    }
}

/// The newest trace records of a run. Clones are the same log.
#[derive(Clone)]
pub struct TraceLog(Arc<Mutex<TraceState>>);

struct TraceState {
    lines: VecDeque<Line>,
    /// Records that do not fit into a line, with the number of the placeholder line of each.
    full_records: VecDeque<(u64, TraceRecord)>,
    /// The start of each epoch that still has lines, with the number of its first line.
    epoch_starts: VecDeque<(u64, EpochStart)>,
    /// The number of the first line, counted over the whole run.
    first: u64,
    capacity: usize,
    n_dropped: u64,
}

impl TraceLog {
    /// A log for `capacity` records. A full log drops the oldest records and counts them.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // Most records are lines, and most epochs have several. Otherwise these grow until the log
        // is full for the first time.
        let n_few = capacity / 4 + 16;
        Self(Arc::new(Mutex::new(TraceState {
            lines: VecDeque::with_capacity(capacity),
            full_records: VecDeque::with_capacity(n_few),
            epoch_starts: VecDeque::with_capacity(n_few),
            first: 0,
            capacity,
            n_dropped: 0,
        })))
    }

    /// Takes all records, the oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<TraceRecord> {
        let mut state = lock(&self.0);
        let records = state.records();
        let n_lines = state.lines.len();
        state.forget(n_lines);
        state.epoch_starts.clear();
        records
    }

    /// All records, the oldest first. They stay in the log.
    pub(crate) fn records(&self) -> Vec<TraceRecord> {
        lock(&self.0).records()
    }

    /// How many records were dropped because the log was full.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        lock(&self.0).n_dropped
    }

    /// Opens the log for the records of an epoch.
    pub(crate) fn open(&self, start: EpochStart) -> TraceWriter<'_> {
        let mut state = lock(&self.0);
        let end = state.end();
        // An epoch without records is not remembered.
        while state.epoch_starts.back().is_some_and(|(first, _)| *first == end) {
            state.epoch_starts.pop_back();
        }
        state.epoch_starts.push_back((end, start));
        TraceWriter(state)
    }
}

impl TraceState {
    /// The number of the next line.
    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// Removes the oldest `n_lines` lines.
    fn forget(&mut self, n_lines: usize) {
        self.lines.drain(..n_lines);
        self.first += n_lines as u64;
        let is_old = |number: u64| number < self.first;
        while self.full_records.front().is_some_and(|(number, _)| is_old(*number)) {
            self.full_records.pop_front();
        }
        while self.epoch_starts.get(1).is_some_and(|(first, _)| *first <= self.first) {
            self.epoch_starts.pop_front();
        }
    }

    /// Drops the oldest lines until there is room for `n_lines`.
    fn make_room(&mut self, n_lines: usize) {
        let n_over = (self.lines.len() + n_lines).saturating_sub(self.capacity);
        if n_over > 0 {
            let n_old = n_over.min(self.lines.len());
            self.forget(n_old);
            self.n_dropped += n_old as u64;
        }
    }

    fn records(&self) -> Vec<TraceRecord> {
        let (mut full_records, mut epoch_starts) =
            (self.full_records.iter(), self.epoch_starts.iter().peekable());
        let mut start = EpochStart::default();
        let record = |(number, line): (u64, &Line)| {
            while let Some((_, next)) = epoch_starts.next_if(|(first, _)| *first <= number) {
                start = *next;
            }
            line.record(start).or_else(|| full_records.next().map(|(_, record)| *record))
        };
        (self.first..).zip(&self.lines).filter_map(record).collect()
    }
}

/// A locked trace log.
pub(crate) struct TraceWriter<'a>(MutexGuard<'a, TraceState>);

impl TraceWriter<'_> {
    /// Moves these records to the log; returns how many there were.
    pub(crate) fn take_records(&mut self, records: &mut Vec<TraceRecord>) -> u64 {
        let (state, n_records) = (&mut *self.0, records.len() as u64);
        for record in records.drain(..) {
            state.make_room(1);
            if state.capacity == 0 {
                state.n_dropped += 1;
                continue;
            }
            let number = state.end();
            state.full_records.push_back((number, record));
            state.lines.push_back(Line::placeholder());
        }
        n_records
    }

    /// As [`take_records`](Self::take_records), for lines.
    pub(crate) fn take(&mut self, records: &mut Lines) -> u64 {
        let (state, list) = (&mut *self.0, records.list());
        let n_records = list.len() as u64 + records.n_dropped;
        state.make_room(list.len());
        let n_over = list.len().saturating_sub(state.capacity);
        let number = state.end();
        state.lines.extend(&list[n_over..]);
        state.n_dropped += records.n_dropped + n_over as u64;
        for (at, record) in records.full_records() {
            if let Some(at) = at.checked_sub(n_over) {
                state.full_records.push_back((number + at as u64, *record));
            }
        }
        records.clear();
        n_records
    }
}

impl fmt::Debug for TraceLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        f.debug_struct("TraceLog")
            .field("len", &state.lines.len())
            .field("capacity", &state.capacity)
            .finish_non_exhaustive()
    }
}
