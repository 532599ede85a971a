//! Assigns each event of a timeline to an output track, and orders all events for writing.
//!
//! An *output track* is a track as it is written: a track of the timeline, or an overflow track
//! next to one. *Steps* are begins, ends, instants and counter values. This module maintains the
//! invariants of [`timeline`](super):
//!
//! 1. Within an output track, steps are in the order of a traversal of nested spans: every end
//!    closes the span that was opened last. Times never decrease.
//! 2. Over all output tracks, steps are sorted by time. Among steps with equal times, the order of
//!    each output track is kept, and the source of a flow comes before its sink (a topological
//!    sort, Kahn's algorithm). A flow for which there is no such order is left out.
//!
//! Readers of both formats sort by time and keep the order of the file for equal times, so the
//! order among equal times is part of the trace.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};
use core::cmp::Reverse;

use super::{Event, EventId, Timeline, TrackId};

/// A flow: an arrow between two events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) id: u64,
    pub(crate) from: EventId,
    pub(crate) to: EventId,
}

/// An end of a flow at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlowEnd {
    /// The event is the source of the flow with this id.
    Source(u64),
    /// The event is the sink of the flow with this id.
    Sink(u64),
}

/// A track as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputTrack {
    pub(crate) track: TrackId,
    /// 0 for the track itself, then 1 for the first overflow track, and so on.
    pub(crate) overflow: usize,
}

/// One step of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceStep {
    pub(crate) at_ns: u64,
    /// The index of its output track.
    pub(crate) output_track: usize,
    pub(crate) kind: TraceStepKind,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceStepKind {
    /// A span begins.
    Begin(EventId),
    /// A span ends.
    End(EventId),
    /// An instant.
    Instant(EventId),
    /// A counter has a new value: the index of the reading.
    Count(usize),
}

/// The output tracks and steps of a whole timeline.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The tracks in their order, each followed by its overflow tracks.
    pub(crate) output_tracks: Vec<OutputTrack>,
    /// All steps, in the order of writing.
    pub(crate) steps: Vec<TraceStep>,
    /// Sorted by event.
    flow_ends: Vec<(EventId, FlowEnd)>,
}

impl Layout {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let (output_tracks, mut steps) = lay_out(timeline);
        put_sources_first(&mut steps, &timeline.flows);
        let flow_ends = flow_ends(&steps, &timeline.flows);
        Self { output_tracks, steps, flow_ends }
    }

    /// The flows that begin or end at an event.
    pub(crate) fn flow_ends(&self, event: EventId) -> impl Iterator<Item = FlowEnd> {
        let first = self.flow_ends.partition_point(|(id, _)| *id < event);
        self.flow_ends[first..].iter().take_while(move |(id, _)| *id == event).map(|(_, end)| *end)
    }
}

/// All output tracks, and all steps sorted by time.
fn lay_out(timeline: &Timeline) -> (Vec<OutputTrack>, Vec<TraceStep>) {
    let mut by_track = vec![(Vec::new(), Vec::new()); timeline.tracks.len()];
    for (index, event) in timeline.events.iter().enumerate() {
        by_track[event.track.0].0.push(EventId(index));
    }
    for (index, reading) in timeline.readings.iter().enumerate() {
        by_track[reading.track.0].1.push(index);
    }
    let (mut output_tracks, mut steps) = (Vec::new(), Vec::new());
    for (index, (events, mut readings)) in by_track.into_iter().enumerate() {
        let track = TrackId(index);
        let rows = nest(&timeline.events, events);
        // A track without events still has an output track, and with it a name.
        for overflow in 0..rows.len().max(1) {
            output_tracks.push(OutputTrack { track, overflow });
        }
        let first = output_tracks.len() - rows.len().max(1);
        for (overflow, row) in rows.iter().enumerate() {
            walk(&timeline.events, row, first + overflow, &mut steps);
        }
        readings.sort_by_key(|index| timeline.readings[*index].at_ns);
        steps.extend(readings.into_iter().map(|index| TraceStep {
            at_ns: timeline.readings[index].at_ns,
            output_track: first,
            kind: TraceStepKind::Count(index),
        }));
    }
    // The sort is stable, and the steps of each output track are adjacent and sorted: so their
    // order is kept.
    steps.sort_by_key(|step| step.at_ns);
    (output_tracks, steps)
}

/// Distributes the events of a track over rows in which they nest: each goes to the first row
/// that fits (first fit). If no spans cross, there is one row.
fn nest(all: &[Event], mut events: Vec<EventId>) -> Vec<Vec<EventId>> {
    // The outer of two spans that begin together comes first; instants and empty spans come last.
    events.sort_by_key(|id| (all[id.0].start_ns, Reverse(all[id.0].end_ns())));
    let mut rows: Vec<Vec<EventId>> = Vec::new();
    // The ends of the spans that are open in each row, innermost last.
    let mut open: Vec<Vec<u64>> = Vec::new();
    for id in events {
        let (start_ns, end_ns) = (all[id.0].start_ns, all[id.0].end_ns());
        let fits = |ends: &mut Vec<u64>| {
            while ends.pop_if(|end| *end <= start_ns).is_some() {}
            ends.last().is_none_or(|end| end_ns <= *end)
        };
        let row = open.iter_mut().position(fits).unwrap_or_else(|| {
            rows.push(Vec::new());
            open.push(Vec::new());
            rows.len() - 1
        });
        rows[row].push(id);
        open[row].push(end_ns);
    }
    rows
}

/// Adds the steps of a row whose events nest.
fn walk(all: &[Event], row: &[EventId], output_track: usize, steps: &mut Vec<TraceStep>) {
    let mut open: Vec<EventId> = Vec::new();
    let end = |id: EventId| TraceStep {
        at_ns: all[id.0].end_ns(),
        output_track,
        kind: TraceStepKind::End(id),
    };
    for id in row {
        let event = &all[id.0];
        while let Some(over) = open.pop_if(|over| all[over.0].end_ns() <= event.start_ns) {
            steps.push(end(over));
        }
        let kind = match event.duration_ns {
            Some(_) => TraceStepKind::Begin(*id),
            None => TraceStepKind::Instant(*id),
        };
        steps.push(TraceStep { at_ns: event.start_ns, output_track, kind });
        if event.duration_ns.is_some() {
            open.push(*id);
        }
    }
    steps.extend(open.into_iter().rev().map(end));
}

/// The index of the step at which each event begins.
fn starts(steps: &[TraceStep]) -> BTreeMap<EventId, usize> {
    let start = |(index, step): (usize, &TraceStep)| match step.kind {
        TraceStepKind::Begin(id) | TraceStepKind::Instant(id) => Some((id, index)),
        TraceStepKind::End(_) | TraceStepKind::Count(_) => None,
    };
    steps.iter().enumerate().filter_map(start).collect()
}

/// Both ends of every flow that goes forward, sorted by event.
fn flow_ends(steps: &[TraceStep], flows: &[Flow]) -> Vec<(EventId, FlowEnd)> {
    let starts = starts(steps);
    let mut ends = Vec::with_capacity(flows.len() * 2);
    // Flows that could not be ordered are left out: readers treat a sink without a source as
    // damaged data.
    for flow in flows.iter().filter(|flow| starts[&flow.from] < starts[&flow.to]) {
        ends.push((flow.from, FlowEnd::Source(flow.id)));
        ends.push((flow.to, FlowEnd::Sink(flow.id)));
    }
    ends.sort_unstable();
    ends
}

/// Reorders steps with equal times so that sources come before their sinks.
fn put_sources_first(steps: &mut [TraceStep], flows: &[Flow]) {
    let starts = starts(steps);
    // Only flows between steps with equal times can be out of order.
    let mut arrows: Vec<(usize, usize)> = flows
        .iter()
        .map(|flow| (starts[&flow.from], starts[&flow.to]))
        .filter(|(from, to)| steps[*from].at_ns == steps[*to].at_ns)
        .collect();
    arrows.sort_unstable();
    let mut rest = &arrows[..];
    while let Some((from, to)) = rest.first() {
        let at_ns = steps[*from].at_ns;
        debug_assert_eq!(steps[*to].at_ns, at_ns, "both ends of an arrow are of one time");
        let first = steps.partition_point(|step| step.at_ns < at_ns);
        let end = steps.partition_point(|step| step.at_ns <= at_ns);
        let n = rest.partition_point(|(from, _)| *from < end);
        let order = sort_topologically(&steps[first..end], &rest[..n], first);
        let sorted: Vec<TraceStep> = order.into_iter().map(|index| steps[first + index]).collect();
        steps[first..end].copy_from_slice(&sorted);
        rest = &rest[n..];
    }
}

/// The order of `group` in which every output track keeps its order and every flow goes forward,
/// as close to the given order as possible (Kahn's algorithm with the lowest index first).
/// `arrows` are indices from `base`, sorted.
///
/// If flows form a cycle, or contradict the order of an output track, the first step that its
/// output track allows comes next: then a flow is lost, but no span.
fn sort_topologically(group: &[TraceStep], arrows: &[(usize, usize)], base: usize) -> Vec<usize> {
    let mut sources_left = vec![0_usize; group.len()];
    for (_, to) in arrows {
        sources_left[to - base] += 1;
    }
    let mut next_of_track = vec![None; group.len()];
    let mut last_of_track = BTreeMap::new();
    // The next step of each output track, separated by whether it waits for a source.
    let (mut ready, mut waiting) = (BTreeSet::new(), BTreeSet::new());
    for (index, step) in group.iter().enumerate() {
        match last_of_track.insert(step.output_track, index) {
            Some(last) => next_of_track[last] = Some(index),
            None if sources_left[index] == 0 => _ = ready.insert(index),
            None => _ = waiting.insert(index),
        }
    }
    let mut order = Vec::with_capacity(group.len());
    while let Some(index) = ready.pop_first().or_else(|| waiting.pop_first()) {
        order.push(index);
        let first = arrows.partition_point(|(from, _)| *from < base + index);
        for (_, to) in arrows[first..].iter().take_while(|(from, _)| *from == base + index) {
            let to = to - base;
            sources_left[to] -= 1;
            if sources_left[to] == 0 && waiting.remove(&to) {
                ready.insert(to);
            }
        }
        if let Some(next) = next_of_track[index] {
            if sources_left[next] == 0 {
                ready.insert(next);
            } else {
                waiting.insert(next);
            }
        }
    }
    assert_eq!(order.len(), group.len(), "every step has its turn");
    order
}
