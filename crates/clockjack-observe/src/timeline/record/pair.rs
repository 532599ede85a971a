//! Begins and ends of one ring, brought together.
//!
//! An end without its begin is drawn from the duration that it tells; a begin without its end lasts
//! to the next of its kind or to the last record and is *unfinished*. Nothing is drawn twice, and
//! what is drawn stands in the order of its first record, so that a ring in virtual time, where all
//! has one time, keeps its order.

use alloc::{collections::BTreeMap, vec::Vec};

use clockjack_sync::mutant;

use crate::event::{Event, Record};

/// One or two records as they are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The begin, or what there is.
    pub(super) first: Event,
    /// The end, if the begin is there too.
    pub(super) second: Option<Event>,
    pub(super) extent: Extent,
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It has no duration.
    Instant,
    /// A span.
    Whole,
    /// A span whose end is not known.
    Unfinished,
}

/// Pairs the records of a ring.
pub(super) fn draw(records: impl IntoIterator<Item = Record>) -> Vec<Drawn> {
    let mut ring = Ring::default();
    for record in records {
        ring.add(record);
    }
    // What is still open lasts to the last record.
    for (position, begin) in core::mem::take(&mut ring.open).into_values() {
        ring.lose(position, begin, ring.last_ns);
    }
    if !mutant!("records-by-end") {
        ring.drawn.sort_unstable_by_key(|(position, _)| *position);
    }
    ring.drawn.into_iter().map(|(_, drawn)| drawn).collect()
}

/// What can be open, one of each at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Opening {
    Step,
    Rest,
    /// Of the graph with this number.
    Epoch(u16),
}

/// One ring under conversion. Positions are those of the first record, and unique.
#[derive(Default)]
struct Ring {
    drawn: Vec<(usize, Drawn)>,
    open: BTreeMap<Opening, (usize, Record)>,
    /// Of the record that is being added.
    position: usize,
    last_ns: u64,
}

impl Ring {
    fn add(&mut self, record: Record) {
        self.position += 1;
        self.last_ns = self.last_ns.max(record.at_ns);
        match record.event {
            Event::StepStarted { .. } => self.begin(Opening::Step, record),
            Event::WorkerParked { .. } => self.begin(Opening::Rest, record),
            Event::EpochStarted { graph, .. } => self.begin(Opening::Epoch(graph.0), record),
            Event::StepEnded { ran_ns, .. } => self.end(Opening::Step, record, ran_ns),
            Event::WorkerUnparked { .. } => self.end(Opening::Rest, record, 0),
            Event::EpochCommitted { graph, .. } => {
                self.end(Opening::Epoch(graph.0), record, 0);
            }
            Event::ComponentRan { ran_ns, .. } => self.draw_alone(record, ran_ns, Extent::Whole),
            _ => self.draw_alone(record, 0, Extent::Instant),
        }
    }

    /// Something begins; what was open of its kind has lost its end.
    fn begin(&mut self, opening: Opening, record: Record) {
        if let Some((position, lost)) = self.open.insert(opening, (self.position, record)) {
            self.lose(position, lost, record.at_ns);
        }
    }

    /// Something ends that took `ran_ns` by its own account.
    fn end(&mut self, opening: Opening, record: Record, ran_ns: u64) {
        let Record { at_ns, event } = record;
        match self.open.remove(&opening) {
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
                    self.lose(position, lost, at_ns.saturating_sub(ran_ns));
                }
                self.draw_alone(record, ran_ns, Extent::Whole);
            }
        }
    }

    /// Draws a begin whose end is not known, to `end_ns`.
    fn lose(&mut self, position: usize, begin: Record, end_ns: u64) {
        let Record { at_ns: start_ns, event: first } = begin;
        let drawn = Drawn { start_ns, end_ns, first, second: None, extent: Extent::Unfinished };
        self.drawn.push((position, drawn));
    }

    /// Draws the record at hand, which was over at its time.
    fn draw_alone(&mut self, record: Record, ran_ns: u64, extent: Extent) {
        let Record { at_ns: end_ns, event: first } = record;
        let start_ns = end_ns.saturating_sub(ran_ns);
        self.drawn.push((self.position, Drawn { start_ns, end_ns, first, second: None, extent }));
    }
}

/// Whether an end is that of a begin of its kind.
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
