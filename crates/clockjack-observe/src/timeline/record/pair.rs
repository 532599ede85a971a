//! Pairs begins and ends within one ring.
//!
//! An end without its begin is drawn from the duration that the end contains; a begin without its
//! end lasts to the next begin of its kind or to the last record and is *unfinished*. Nothing is
//! drawn twice. Drawn events are in the order of their first records, so that a ring in virtual
//! time, where all times are equal, keeps its order.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::event::{Event, Record};

/// One or two records as they are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The begin, or the only event.
    pub(super) first: Event,
    /// The end, if the begin is known, too.
    pub(super) second: Option<Event>,
    pub(super) extent: Extent,
}

/// The extent of a drawn event in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// No duration.
    Instant,
    /// A span.
    Whole,
    /// A span whose end is unknown.
    Unfinished,
}

/// Pairs the records of a ring.
pub(super) fn draw(records: impl IntoIterator<Item = Record>) -> Vec<Drawn> {
    let mut ring = Ring::default();
    for record in records {
        ring.add(record);
    }
    // Spans that are still open last to the last record.
    for (position, begin) in core::mem::take(&mut ring.open).into_values() {
        ring.draw_unfinished(position, begin, ring.last_ns);
    }
    ring.drawn.sort_unstable_by_key(|(position, _)| *position);
    ring.drawn.into_iter().map(|(_, drawn)| drawn).collect()
}

/// The kinds of spans; at most one of each kind is open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SpanKind {
    Step,
    Park,
    /// The epoch of the graph with this number.
    Epoch(u16),
}

/// One ring during the conversion. Positions are those of the first record, and unique.
#[derive(Default)]
struct Ring {
    drawn: Vec<(usize, Drawn)>,
    open: BTreeMap<SpanKind, (usize, Record)>,
    /// The position of the record that is being added.
    position: usize,
    last_ns: u64,
}

impl Ring {
    fn add(&mut self, record: Record) {
        self.position += 1;
        self.last_ns = self.last_ns.max(record.at_ns);
        match record.event {
            Event::StepStarted { .. } => self.begin(SpanKind::Step, record),
            Event::WorkerParked { .. } => self.begin(SpanKind::Park, record),
            Event::EpochStarted { graph, .. } => self.begin(SpanKind::Epoch(graph.0), record),
            Event::StepEnded { ran_ns, .. } => self.end(SpanKind::Step, record, ran_ns),
            Event::WorkerUnparked { .. } => self.end(SpanKind::Park, record, 0),
            Event::EpochCommitted { graph, .. } => {
                self.end(SpanKind::Epoch(graph.0), record, 0);
            }
            Event::ComponentRan { ran_ns, .. } => self.draw_alone(record, ran_ns, Extent::Whole),
            _ => self.draw_alone(record, 0, Extent::Instant),
        }
    }

    /// A span begins; if another of its kind is open, the end of that one was lost.
    fn begin(&mut self, kind: SpanKind, record: Record) {
        if let Some((position, lost)) = self.open.insert(kind, (self.position, record)) {
            self.draw_unfinished(position, lost, record.at_ns);
        }
    }

    /// A span ends that lasted for `ran_ns` according to its own record.
    fn end(&mut self, kind: SpanKind, record: Record, ran_ns: u64) {
        let Record { at_ns, event } = record;
        match self.open.remove(&kind) {
            Some((position, begin)) if is_pair(begin.event, event) => {
                let drawn = Drawn {
                    start_ns: begin.at_ns,
                    end_ns: at_ns,
                    first: begin.event,
                    second: Some(event),
                    extent: Extent::Whole,
                };
                self.drawn.push((position, drawn));
            }
            lost => {
                if let Some((position, lost)) = lost {
                    self.draw_unfinished(position, lost, at_ns.saturating_sub(ran_ns));
                }
                self.draw_alone(record, ran_ns, Extent::Whole);
            }
        }
    }

    /// Draws a begin whose end is unknown, up to `end_ns`.
    fn draw_unfinished(&mut self, position: usize, begin: Record, end_ns: u64) {
        let Record { at_ns: start_ns, event: first } = begin;
        let drawn = Drawn { start_ns, end_ns, first, second: None, extent: Extent::Unfinished };
        self.drawn.push((position, drawn));
    }

    /// Draws the current record, which ended at its time.
    fn draw_alone(&mut self, record: Record, ran_ns: u64, extent: Extent) {
        let Record { at_ns: end_ns, event: first } = record;
        let start_ns = end_ns.saturating_sub(ran_ns);
        self.drawn.push((self.position, Drawn { start_ns, end_ns, first, second: None, extent }));
    }
}

/// Whether an end belongs to a begin of its kind.
fn is_pair(begin: Event, end: Event) -> bool {
    match (begin, end) {
        (Event::StepStarted { process: begun, .. }, Event::StepEnded { process, .. }) => {
            begun == process
        }
        (Event::EpochStarted { epoch: begun, .. }, Event::EpochCommitted { epoch, .. }) => {
            begun == epoch
        }
        _ => true,
    }
}
