//! Where a run writes down what it does.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::trace::TraceRecord;

/// A commit log: in memory, or to writers. Clones are the same log.
///
/// It has a part for each epoch domain of a run: one for all lanes that share their time, and one
/// for each lane that keeps its own by the wall clock. Each part is a log by itself, in which what
/// came from other domains stands in the order of its coming. In simulated time there is one part.
#[derive(Clone)]
pub struct CommitLog(Arc<Mutex<Parts>>);

struct Parts {
    /// Parts are made as they are asked for.
    is_in_memory: bool,
    /// Each with its lane; `None`: all that keep no time of their own.
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
    /// One in memory. It grows with the run.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Arc::new(Mutex::new(Parts { is_in_memory: true, list: Vec::new() })))
    }

    /// One that is written as the run goes on. A lane that keeps its own time needs a writer of its
    /// own: a run with one that has [none](Self::lane_to) does not start.
    #[must_use]
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        let list = alloc::vec![(None, LogPart::to(writer))];
        Self(Arc::new(Mutex::new(Parts { is_in_memory: false, list })))
    }

    /// Adds the writer for a lane that keeps its own time.
    #[must_use]
    pub fn lane_to(self, lane: &str, writer: impl Write + Send + 'static) -> Self {
        let part = LogPart::to(writer);
        let mut parts = lock(&self.0);
        parts.list.retain(|(of, _)| of.as_deref() != Some(lane));
        parts.list.push((Some(lane.into()), part));
        drop(parts);
        self
    }

    /// What is in memory of the lanes that share their time; nothing if it goes to a writer.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_of(None)
    }

    /// What is in memory of a lane that keeps its own time; nothing if there is no such lane, or if
    /// it goes to a writer.
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

    /// Hands on all that was written.
    ///
    /// # Errors
    ///
    /// The first error of a writer. After it nothing was written there.
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
                Err(io::Error::new(error.kind(), alloc::format!("{error}")))
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
    records: VecDeque<TraceRecord>,
    capacity: usize,
    n_dropped: u64,
}

impl TraceLog {
    /// One of so many records; the oldest go first, and are counted.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let records = VecDeque::with_capacity(capacity);
        Self(Arc::new(Mutex::new(TraceState { records, capacity, n_dropped: 0 })))
    }

    /// Takes what is there, the oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<TraceRecord> {
        lock(&self.0).records.drain(..).collect()
    }

    /// What is there, the oldest first. It stays.
    pub(crate) fn records(&self) -> Vec<TraceRecord> {
        lock(&self.0).records.iter().copied().collect()
    }

    /// How many records there was no room for.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        lock(&self.0).n_dropped
    }

    /// Opens it for what an epoch has to tell.
    pub(crate) fn open(&self) -> TraceWriter<'_> {
        TraceWriter(lock(&self.0))
    }
}

/// A trace log, open.
pub(crate) struct TraceWriter<'a>(MutexGuard<'a, TraceState>);

impl TraceWriter<'_> {
    /// Makes room for so many records: the oldest go.
    pub(crate) fn make_room(&mut self, n_records: usize) {
        let state = &mut *self.0;
        let n_over = (state.records.len() + n_records).saturating_sub(state.capacity);
        let n_old = n_over.min(state.records.len());
        state.records.drain(..n_old);
        state.n_dropped += n_old as u64;
    }

    /// Takes these records, and counts others that were lost before.
    pub(crate) fn take(&mut self, records: &mut Vec<TraceRecord>, n_lost: u64) {
        if self.0.records.len() + records.len() > self.0.capacity {
            self.make_room(records.len());
        }
        let state = &mut *self.0;
        let n_over = (state.records.len() + records.len()).saturating_sub(state.capacity);
        state.records.extend(&records[n_over..]);
        state.n_dropped += n_lost + n_over as u64;
        records.clear();
    }
}

impl fmt::Debug for TraceLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        f.debug_struct("TraceLog")
            .field("len", &state.records.len())
            .field("capacity", &state.capacity)
            .finish_non_exhaustive()
    }
}

/// A writer that panics leaves nothing half done that anybody relies on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
