//! A ring buffer of the newest records.

use alloc::{boxed::Box, vec};
use core::fmt;

use super::LogRecord;

/// Keeps the newest records, and counts the overwritten ones.
///
/// All memory is allocated at the start. A log with capacity zero is off: it keeps and counts
/// nothing, and a push is one branch.
///
/// # Examples
///
/// ```
/// use clockjack_sched::log::{LogRecord, SchedulerLog};
///
/// let mut log = SchedulerLog::with_capacity(2);
/// for runs in 1..=3 {
///     log.push(LogRecord { runs, ..LogRecord::EMPTY });
/// }
/// assert_eq!(log.iter().map(|record| record.runs).collect::<Vec<_>>(), [2, 3]);
/// assert_eq!(log.lost(), 1);
/// ```
pub struct SchedulerLog {
    /// The length of the buffer, stored here so that a push into a log that is off reads no more.
    capacity: usize,
    /// Where the next record goes.
    next: usize,
    len: usize,
    lost: u64,
    buffer: Buffer,
}

enum Buffer {
    Own(Box<[LogRecord]>),
    Lent(&'static mut [LogRecord]),
}

impl Buffer {
    fn records(&self) -> &[LogRecord] {
        match self {
            Self::Own(records) => records,
            Self::Lent(records) => records,
        }
    }

    fn records_mut(&mut self) -> &mut [LogRecord] {
        match self {
            Self::Own(records) => records,
            Self::Lent(records) => records,
        }
    }
}

impl SchedulerLog {
    /// Creates a log of the newest `capacity` records; zero switches it off.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::new(Buffer::Own(vec![LogRecord::EMPTY; capacity].into_boxed_slice()))
    }

    /// Creates a log in a buffer of the caller, for hosts that manage their memory themselves.
    /// Overwrites the content of the buffer.
    #[must_use]
    pub fn in_buffer(buffer: &'static mut [LogRecord]) -> Self {
        Self::new(Buffer::Lent(buffer))
    }

    fn new(buffer: Buffer) -> Self {
        Self { capacity: buffer.records().len(), next: 0, len: 0, lost: 0, buffer }
    }

    /// Appends a record; overwrites the oldest one if the buffer is full.
    #[inline]
    pub fn push(&mut self, record: LogRecord) {
        if self.capacity > 0 {
            self.push_on(record);
        }
    }

    fn push_on(&mut self, record: LogRecord) {
        self.buffer.records_mut()[self.next] = record;
        self.next = if self.next + 1 == self.capacity { 0 } else { self.next + 1 };
        if self.len < self.capacity {
            self.len += 1;
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// The records, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &LogRecord> {
        let records = &self.buffer.records()[..self.len];
        // A ring that is not full begins at index 0, and its `next` equals its length.
        let (newer, older) = records.split_at(self.next.min(self.len));
        older.iter().chain(newer)
    }

    /// How many records were overwritten.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// How many records there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The capacity; zero for a log that is off.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Removes all records and resets the count of lost ones.
    pub const fn clear(&mut self) {
        self.next = 0;
        self.len = 0;
        self.lost = 0;
    }
}

impl fmt::Debug for SchedulerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerLog")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
