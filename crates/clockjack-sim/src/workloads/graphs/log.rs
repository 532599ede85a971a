//! Parses a commit log by its documented format, independently of the code that writes it.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard},
};

use super::oracle::RunState;
use crate::context::lock;

/// A run that writes to a log buffer is stopped after this many epochs. A correct run makes far
/// fewer, and a run in a busy loop is visible after this many.
const EPOCHS_MAX: u64 = 20_000;

/// The first bytes of a log.
const MAGIC: &[u8] = b"CJCL\x01";

/// A record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// An epoch starts: its number and its time.
    Epoch(u64, u64),
    /// A value was committed on an edge.
    Commit(u64),
    /// A value of a task arrived from outside.
    Arrival,
    /// The clock stopped a loop.
    Budget,
    /// A component failed and stopped the run.
    Failure(u64),
}

/// The records with their offsets; `None` if the bytes are not a valid log.
pub(super) fn records(log: &[u8]) -> Option<Vec<(usize, Record)>> {
    let mut reader = Reader { bytes: log, at: 0 };
    if reader.take(MAGIC.len())? != MAGIC {
        return None;
    }
    let length = reader.number()?;
    reader.take(usize::try_from(length).ok()?)?;
    let mut records = Vec::new();
    while reader.at < log.len() {
        let begin = reader.at;
        let tag = reader.take(1)?[0];
        let first = reader.number()?;
        let record = match tag {
            b'E' => Record::Epoch(first, reader.number()?),
            b'C' | b'I' | b'A' => {
                let length = reader.number()?;
                reader.take(usize::try_from(length).ok()?)?;
                if tag == b'C' { Record::Commit(first) } else { Record::Arrival }
            }
            b'B' => {
                reader.number()?;
                Record::Budget
            }
            b'R' => match records.last() {
                Some((_, Record::Commit(_))) => Record::Commit(first),
                Some((_, Record::Arrival)) => Record::Arrival,
                _ => return None,
            },
            b'X' => Record::Failure(first),
            _ => return None,
        };
        records.push((begin, record));
    }
    Some(records)
}

/// The log of a run with the wall clock. Clones share the buffer.
#[derive(Clone)]
pub(super) struct LogBuffer {
    run_state: RunState,
    written: Arc<Mutex<(u64, Vec<u8>)>>,
}

impl LogBuffer {
    pub(super) fn new(run_state: &RunState) -> Self {
        Self { run_state: run_state.clone(), written: Arc::default() }
    }

    fn written(&self) -> MutexGuard<'_, (u64, Vec<u8>)> {
        lock(&self.written)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.written().1.clone()
    }
}

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written();
        written.0 += 1;
        written.1.extend_from_slice(bytes);
        let is_enough = written.0 == EPOCHS_MAX;
        drop(written);
        if is_enough {
            self.run_state.stop(EPOCHS_MAX);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_as_its_format_says_and_what_is_none_is_refused() {
        let log = b"CJCL\x01\x01gE\x01\x00C\x02\x01\xffE\x02\x80\x01X\x03";
        let expected = [
            (7, Record::Epoch(1, 0)),
            (10, Record::Commit(2)),
            (14, Record::Epoch(2, 128)),
            (18, Record::Failure(3)),
        ];
        assert_eq!(records(log).as_deref(), Some(&expected[..]));
        for end in [4, 6, 9, 12, 17] {
            assert_eq!(records(&log[..end]), None, "{end} bytes");
        }
        assert_eq!(records(b"CJCL\x01\x01g?\x01"), None);
    }
}
