//! The compact form of trace records. Nearly all records are about a call or a commit, and fit into
//! four words: a *line*. Any other record is stored separately, with a placeholder line that keeps
//! its position. Lines count time from the start of their epoch; the number of the epoch is
//! stored once per epoch.
//!
//! ```text
//! head  63          40 39    24 23      8 7    0
//!       | whose or on | lane   | worker  | kind |
//! times 63          32 31                      0
//!       | nanoseconds | of the epoch, at its start |
//! ```

use super::{NONE, TraceName, TraceRecord};
use crate::run::flow::message::MessageId;

/// A record in four words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    head: u64,
    times: u64,
    message: MessageId,
    correlation: MessageId,
}

const _: () = assert!(size_of::<Line>() == 32);

const PLACEHOLDER: u64 = 0;
const CALL: u64 = 1;
const COMMIT: u64 = 2;
const INPUT: u64 = 3;

/// When an epoch began: what all its lines have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpochStart {
    pub(crate) epoch: u64,
    pub(crate) start_ns: u64,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordSource {
    pub(super) lane: u32,
    pub(super) worker: u16,
}

impl Line {
    /// A call of a component, if it fits.
    #[inline(always)]
    pub(super) fn call(
        component: u32,
        source: RecordSource,
        (since_ns, took_ns): (u64, u64),
        message: MessageId,
        correlation: MessageId,
    ) -> Option<Self> {
        let head = head(CALL, component, source)?;
        let fits = (since_ns | took_ns) >> 32 == 0;
        fits.then_some(Self { head, times: since_ns | took_ns << 32, message, correlation })
    }

    /// A further message of the call before, if it fits.
    #[inline]
    pub(super) fn input(
        component: u32,
        source: RecordSource,
        since_ns: u64,
        message: MessageId,
        correlation: MessageId,
    ) -> Option<Self> {
        let head = head(INPUT, component, source)?;
        let fits = since_ns >> 32 == 0;
        fits.then_some(Self { head, times: since_ns, message, correlation })
    }

    /// A commit on an edge, if it fits.
    #[inline(always)]
    pub(super) fn commit(
        edge: u32,
        source: RecordSource,
        since_ns: u64,
        message: MessageId,
    ) -> Option<Self> {
        let head = head(COMMIT, edge, source)?;
        let correlation = MessageId::default();
        let fits = since_ns >> 32 == 0;
        fits.then_some(Self { head, times: since_ns, message, correlation })
    }

    /// The placeholder of a record that is stored separately.
    pub(crate) fn placeholder() -> Self {
        let none = MessageId::default();
        Self { head: PLACEHOLDER, times: 0, message: none, correlation: none }
    }

    /// The full record; `None` for a placeholder.
    pub(crate) fn record(&self, start: EpochStart) -> Option<TraceRecord> {
        let part = |first: u32, n_bits: u32| (self.head >> first) & ((1 << n_bits) - 1);
        let number = |part: u64| u32::try_from(part).expect("it has at most 24 bits");
        let who = number(part(40, 24));
        let (name, component, edge) = match part(0, 8) {
            PLACEHOLDER => return None,
            CALL => (TraceName::ComponentExecute, who, NONE),
            INPUT => (TraceName::ComponentInput, who, NONE),
            _ => (TraceName::ChannelCommit, NONE, who),
        };
        Some(TraceRecord {
            name,
            detail: 0,
            component,
            edge,
            lane: number(part(24, 16)),
            worker: u16::try_from(part(8, 16)).expect("it has 16 bits"),
            epoch: start.epoch,
            start_ns: start.start_ns.saturating_add(self.times & u64::from(u32::MAX)),
            duration_ns: self.times >> 32,
            correlation: self.correlation.pair(),
            message: self.message.pair(),
            value: 0,
        })
    }
}

#[inline(always)]
fn head(kind: u64, who: u32, source: RecordSource) -> Option<u64> {
    let RecordSource { lane, worker } = source;
    let fits = who >> 24 == 0 && lane >> 16 == 0;
    fits.then_some(kind | u64::from(worker) << 8 | u64::from(lane) << 24 | u64::from(who) << 40)
}

/// Records of one epoch, in order.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    list: Vec<Line>,
    /// Records that do not fit into a line, with the index of the placeholder of each.
    full_records: Vec<(usize, TraceRecord)>,
    /// How many records were dropped.
    pub(crate) n_dropped: u64,
    /// The index of the first line of the current region.
    first: usize,
}

/// How many records a region keeps per epoch.
const RECORDS_MAX: usize = 4096;

impl Lines {
    /// Lines of another region follow.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.first = self.list.len();
    }

    pub(crate) fn list(&self) -> &[Line] {
        &self.list
    }

    pub(crate) fn full_records(&self) -> &[(usize, TraceRecord)] {
        &self.full_records
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.full_records.clear();
        (self.n_dropped, self.first) = (0, 0);
    }

    /// Moves all records of another list to the end of this one.
    pub(crate) fn append(&mut self, others: &mut Self) {
        let n_mine = self.list.len();
        self.list.append(&mut others.list);
        self.full_records
            .extend(others.full_records.drain(..).map(|(at, record)| (n_mine + at, record)));
        self.n_dropped += core::mem::take(&mut others.n_dropped);
        others.clear();
    }

    /// Adds a line, or the full record if it does not fit into a line.
    #[inline(always)]
    pub(super) fn add(&mut self, line: Option<Line>, record: impl FnOnce() -> TraceRecord) {
        match line {
            Some(line) if self.list.len() - self.first < RECORDS_MAX => self.list.push(line),
            _ => _ = self.push(record()),
        }
    }

    /// Adds a full record; returns its index unless it was dropped.
    #[cold]
    pub(super) fn push(&mut self, record: TraceRecord) -> Option<usize> {
        if self.list.len() - self.first >= RECORDS_MAX {
            self.n_dropped += 1;
            return None;
        }
        self.full_records.push((self.list.len(), record));
        self.list.push(Line::placeholder());
        Some(self.full_records.len() - 1)
    }

    /// A record that was [pushed](Self::push).
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut TraceRecord> {
        self.full_records.get_mut(at).map(|(_, record)| record)
    }

    /// Removes a record that was [pushed](Self::push), and all after it.
    pub(super) fn truncate(&mut self, at: usize) {
        if let Some((line, _)) = self.full_records.get(at) {
            self.list.truncate(*line);
            self.full_records.truncate(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: EpochStart = EpochStart { epoch: 7, start_ns: 1 << 40 };

    fn id(edge: u32, seq: u64) -> MessageId {
        MessageId::new(edge, seq)
    }

    #[test]
    fn a_call_and_a_commit_come_back_as_they_went_in() {
        let source = RecordSource { lane: 0xABCD, worker: 0xFFFF };
        let most = u64::from(u32::MAX);
        let call = Line::call((1 << 24) - 1, source, (most, most), id(8191, 5), id(1, 3));
        let record = call.and_then(|line| line.record(START)).expect("it fits");
        assert_eq!(record.name, TraceName::ComponentExecute);
        assert_eq!((record.component, record.edge), ((1 << 24) - 1, NONE));
        assert_eq!((record.lane, record.worker, record.epoch), (0xABCD, 0xFFFF, 7));
        assert_eq!((record.start_ns, record.duration_ns), ((1 << 40) + most, most));
        assert_eq!((record.message, record.correlation), ((8192, 5), (2, 3)));
        let input = Line::input(4, source, 2, id(8, 6), id(1, 3));
        let record = input.and_then(|line| line.record(START)).expect("it fits");
        assert_eq!((record.name, record.component), (TraceName::ComponentInput, 4));
        assert_eq!((record.message, record.correlation), ((9, 6), (2, 3)));
        let commit = Line::commit(9, source, 1, id(9, 2));
        let record = commit.and_then(|line| line.record(START)).expect("it fits");
        assert_eq!(record.name, TraceName::ChannelCommit);
        assert_eq!((record.component, record.edge), (NONE, 9));
        assert_eq!((record.start_ns, record.duration_ns), ((1 << 40) + 1, 0));
        assert_eq!((record.message, record.correlation), ((10, 2), (0, 0)));
    }

    #[test]
    fn what_does_not_fit_is_no_line() {
        let (small, none) = (RecordSource { lane: 0, worker: 0 }, MessageId::default());
        assert!(Line::call(1 << 24, small, (0, 0), none, none).is_none());
        assert!(Line::call(0, small, (1 << 32, 0), none, none).is_none());
        assert!(Line::call(0, small, (0, 1 << 32), none, none).is_none());
        assert!(Line::commit(0, small, 1 << 32, none).is_none());
        assert!(Line::commit(0, RecordSource { lane: 1 << 16, worker: 0 }, 0, none).is_none());
    }

    #[test]
    fn a_region_keeps_so_many_and_the_next_as_many_again() {
        let (small, none) = (RecordSource { lane: 0, worker: 0 }, MessageId::default());
        let line = Line::commit(0, small, 0, none);
        let record = line.and_then(|line| line.record(START)).expect("it fits");
        let mut lines = Lines::default();
        for _ in 0..RECORDS_MAX + 2 {
            lines.add(line, || record);
        }
        assert_eq!((lines.list().len(), lines.n_dropped), (RECORDS_MAX, 2));
        lines.begin();
        assert_eq!(lines.push(record), Some(0));
        assert_eq!(lines.full_records()[0].0, RECORDS_MAX);
        lines.truncate(0);
        assert_eq!((lines.list().len(), lines.full_records().len()), (RECORDS_MAX, 0));
    }
}
