//! Health events report problems to observers. They never control anything: no decision of a run
//! depends on them.
//!
//! A channel counts its events itself (`Notes`), since all its events have the same key except for
//! the kind. The run moves them to the `HealthSink` at a point that is the same in every run. The
//! sink keeps one record per key, and a bounded number of records: `event_count = coalesced_count +
//! dropped_count + records taken + records in it`. So no event is lost without being counted.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::{compile::Plan, named::named};

/// How many records a sink keeps by default.
pub(crate) const SINK_CAPACITY: usize = 64;

/// Where a key has no component, lane or edge.
pub(crate) const NONE: u32 = u32::MAX;

named! {
    /// The kind of a problem.
    #[non_exhaustive]
    pub enum HealthKind {
        /// A channel was full: a message was evicted, dropped or refused.
        ChannelOverflow = "channel_overflow",
        /// A message was older than its edge's lifespan.
        ChannelStaleDrop = "channel_stale_drop",
        /// A message was older than its edge's deadline.
        ChannelDeadlineMiss = "channel_deadline_miss",
        /// A queue was full for the first time.
        BackpressureHighWatermark = "backpressure_high_watermark",
        /// A task was refused.
        TaskReject = "task_reject",
        /// A lane refused an invocation.
        SchedulerReject = "scheduler_reject",
        /// Data took longer than the budget of a chain.
        ChainOverBudget = "chain_over_budget",
        /// No message came to an input for longer than its edge's `max_silence_ms`.
        InputSilent = "input_silent",
        /// A call took longer than `max_callback_ms` of its lane, and had not returned.
        CallbackOverdue = "callback_overdue",
    }
}

impl HealthKind {
    /// The part of the runtime that reports it.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::TaskReject => "task",
            Self::SchedulerReject => "scheduler",
            Self::ChainOverBudget => "chain",
            Self::CallbackOverdue => "component",
            _ => "channel",
        }
    }
}

/// What identifies equal events. The channel follows from the edge, the source from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HealthKey {
    pub(crate) kind: HealthKind,
    /// The component that reads the channel, or that was refused.
    pub(crate) component: u32,
    pub(crate) lane: u32,
    pub(crate) edge: u32,
    pub(crate) chain: u32,
    /// The name of the overflow policy in force.
    pub(crate) policy: &'static str,
}

impl HealthKey {
    /// An event that belongs to no edge and no chain.
    pub(crate) const fn new(
        kind: HealthKind,
        component: u32,
        lane: u32,
        policy: &'static str,
    ) -> Self {
        Self { kind, component, lane, edge: NONE, chain: NONE, policy }
    }
}

/// An event, or several with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) key: HealthKey,
    /// How often it happened.
    pub(crate) occurrence_count: u64,
    /// This and the following fields describe the last event: the sequence number of the message
    /// (that of the last accepted message, if this one was refused).
    pub(crate) sequence: u64,
    pub(crate) depth: u32,
    pub(crate) capacity: u32,
    pub(crate) observed_ns: u64,
}

/// A problem that happened once or more often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// The kind of the problem.
    pub kind: HealthKind,
    /// The component that reads the channel, that was refused, or that does not return.
    pub component: Option<String>,
    /// Its lane.
    pub lane: Option<String>,
    /// The edge.
    pub edge: Option<String>,
    /// The chain.
    pub chain: Option<String>,
    /// The overflow policy in force.
    pub policy: &'static str,
    /// How often it happened.
    pub occurrence_count: u64,
    /// The sequence number of the last message.
    pub sequence: u64,
    /// How many messages were in the channel.
    pub depth: u32,
    /// The capacity of the channel.
    pub capacity: u32,
    /// When it last happened, in nanoseconds of the run.
    pub observed_ns: u64,
}

impl HealthEvent {
    pub(crate) fn new(plan: &Plan, event: &Health) -> Self {
        let of = |index: u32| (index != NONE).then_some(index as usize);
        let key = &event.key;
        Self {
            kind: key.kind,
            component: of(key.component).map(|one| plan.components[one].spec.id.clone()),
            lane: of(key.lane).map(|one| plan.lanes[one].spec.id.clone()),
            edge: of(key.edge).map(|one| plan.edges[one].id.clone()),
            chain: of(key.chain).map(|one| plan.chains[one].id.clone()),
            policy: key.policy,
            occurrence_count: event.occurrence_count,
            sequence: event.sequence,
            depth: event.depth,
            capacity: event.capacity,
            observed_ns: event.observed_ns,
        }
    }
}

/// The counts of events, by the names of `runtime.health.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthCounters {
    /// All events.
    pub(crate) event_count: u64,
    /// Records that were dropped for newer ones.
    pub(crate) dropped_count: u64,
    /// Events that were merged into an existing record.
    pub(crate) coalesced_count: u64,
}

/// The newest records, one per key, in the order in which their keys first occurred.
#[derive(Debug, Default)]
pub(crate) struct HealthSink {
    records: VecDeque<Health>,
    capacity: usize,
    counters: HealthCounters,
    /// Events since the last `report_new`, if the trace wants them.
    fresh: Option<Vec<Health>>,
}

impl HealthSink {
    /// A sink for `capacity` records; with zero it only counts.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { records: VecDeque::with_capacity(capacity), capacity, ..Self::default() }
    }

    /// Whether [`report_new`](Self::report_new) is used.
    pub(crate) fn watch(&mut self, is_watched: bool) {
        if is_watched {
            self.fresh.get_or_insert_default();
        }
    }

    /// Reports the events since the last call: at most one per kind of each channel and lane.
    pub(crate) fn report_new(&mut self, mut report: impl FnMut(&Health)) {
        for event in self.fresh.iter_mut().flat_map(|fresh| fresh.drain(..)) {
            report(&event);
        }
    }

    /// Records an event.
    pub(crate) fn record(&mut self, event: Health) {
        if event.occurrence_count == 0 {
            return;
        }
        if let Some(fresh) = &mut self.fresh {
            fresh.push(event);
        }
        self.record_reported(event);
    }

    /// Records an event that is in the trace already.
    pub(crate) fn record_reported(&mut self, event: Health) {
        let n_events = event.occurrence_count;
        self.counters.event_count += n_events;
        if let Some(known) = self.records.iter_mut().find(|known| known.key == event.key) {
            self.counters.coalesced_count += n_events;
            *known = Health {
                occurrence_count: known.occurrence_count.saturating_add(n_events),
                ..event
            };
            return;
        }
        self.counters.coalesced_count += n_events - 1;
        if self.records.len() == self.capacity {
            self.counters.dropped_count += 1;
            if self.records.pop_front().is_none() {
                return;
            }
        }
        self.records.push_back(event);
    }

    /// Removes the oldest record.
    pub(crate) fn take(&mut self) -> Option<Health> {
        self.records.pop_front()
    }

    /// The records, oldest first.
    #[cfg(test)]
    pub(crate) fn records(&self) -> impl Iterator<Item = &Health> {
        self.records.iter()
    }

    /// The counts of events.
    pub(crate) fn counters(&self) -> HealthCounters {
        self.counters
    }
}

/// The kinds of events of a channel, in the order in which they are reported.
const NOTED: [HealthKind; 4] = [
    HealthKind::ChannelOverflow,
    HealthKind::ChannelStaleDrop,
    HealthKind::ChannelDeadlineMiss,
    HealthKind::BackpressureHighWatermark,
];

/// Events of one kind since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    n_events: u64,
    sequence: u64,
    depth: u32,
    observed_ns: u64,
}

/// The events of a channel since the last report: bounded, and none is lost.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: [Note; NOTED.len()],
    is_any: bool,
}

impl Notes {
    /// Records an event.
    #[cold]
    pub(crate) fn add(&mut self, kind: HealthKind, sequence: u64, depth: u32, observed_ns: u64) {
        let Some(index) = NOTED.iter().position(|noted| *noted == kind) else { return };
        let n_events = self.notes[index].n_events + 1;
        self.notes[index] = Note { n_events, sequence, depth, observed_ns };
        self.is_any = true;
    }

    /// Whether there are events to report.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any
    }

    /// Moves the events to a sink. Ignores the kind of `key`.
    pub(crate) fn drain_into(&mut self, key: HealthKey, capacity: u32, sink: &mut HealthSink) {
        if !self.is_any {
            return;
        }
        self.is_any = false;
        for (note, kind) in self.notes.iter_mut().zip(NOTED) {
            let Note { n_events, sequence, depth, observed_ns } = core::mem::take(note);
            sink.record(Health {
                key: HealthKey { kind, ..key },
                occurrence_count: n_events,
                sequence,
                depth,
                capacity,
                observed_ns,
            });
        }
    }
}
