//! Where a run writes down what it does.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::trace::TraceRecord;

/// A commit log: in memory, or to a writer. Clones are the same log.
#[derive(Clone)]
pub struct CommitLog(Arc<Mutex<CommitState>>);

enum CommitState {
    Memory(Vec<u8>),
    Writer { to: Box<dyn Write + Send>, failed: Option<io::Error> },
}

impl CommitLog {
    /// One in memory. It grows with the run.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Arc::new(Mutex::new(CommitState::Memory(Vec::new()))))
    }

    /// One that is written as the run goes on.
    #[must_use]
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        let state = CommitState::Writer { to: Box::new(writer), failed: None };
        Self(Arc::new(Mutex::new(state)))
    }

    /// What is in memory; nothing if it goes to a writer.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &*lock(&self.0) {
            CommitState::Memory(bytes) => bytes.clone(),
            CommitState::Writer { .. } => Vec::new(),
        }
    }

    /// Hands on all that was written.
    ///
    /// # Errors
    ///
    /// The first error of the writer. After it nothing was written.
    pub fn flush(&self) -> io::Result<()> {
        match &mut *lock(&self.0) {
            CommitState::Memory(_) => Ok(()),
            CommitState::Writer { failed: Some(error), .. } => {
                Err(io::Error::new(error.kind(), alloc::format!("{error}")))
            }
            CommitState::Writer { to, .. } => to.flush(),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        match &mut *lock(&self.0) {
            CommitState::Memory(log) => log.extend_from_slice(bytes),
            CommitState::Writer { to, failed } => {
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
