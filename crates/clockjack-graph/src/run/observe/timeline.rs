//! Draws trace records as a timeline: one track for the epochs, one per lane with its ticks, below
//! it one per component and loop, counters, and an arrow from each call that published a message to
//! each call that got it.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use clockjack_observe::timeline::{CounterId, EventId, Number, Timeline, TrackId, Value};

use super::trace::{NONE, TraceName, TraceRecord, is_immediate};
use crate::compile::Plan;

/// Draws the records of a run of this plan, in the order of the trace log.
#[must_use]
pub fn timeline(plan: &Plan, records: &[TraceRecord]) -> Timeline {
    let mut timeline = Timeline::new();
    let tracks = Tracks::new(&mut timeline, plan);
    let mut builder = TimelineBuilder {
        plan,
        tracks,
        arrows: Arrows::new(plan, records),
        totals: vec![(0, 0); plan.lanes.len()],
        calls: 0,
    };
    for (at, record) in records.iter().enumerate() {
        builder.record(&mut timeline, at, record);
    }
    builder.count_calls(&mut timeline);
    timeline
}

/// The tracks of a graph.
struct Tracks {
    epochs: TrackId,
    /// Calls in the last epoch.
    calls: CounterId,
    lanes: Vec<TrackId>,
    /// Ticks that took too long, and ticks that were skipped.
    late: Vec<Option<(CounterId, CounterId)>>,
    components: Vec<TrackId>,
    /// For each region, the track of its loop.
    loops: Vec<Option<TrackId>>,
}

impl Tracks {
    fn new(timeline: &mut Timeline, plan: &Plan) -> Self {
        let graph = timeline.track(plan.name.as_str(), None);
        let epochs = timeline.track("epochs", Some(graph));
        let calls = timeline.counter_track("calls", Some(graph));
        let (mut lanes, mut late) = (Vec::new(), Vec::new());
        for lane in &plan.lanes {
            let track = timeline.track(lane.spec.id.as_str(), Some(graph));
            let is_fixed = lane.spec.lane_type == crate::describe::LaneType::FixedRate;
            late.push(is_fixed.then(|| {
                let overruns = timeline.counter_track("overruns", Some(track));
                (overruns, timeline.counter_track("skipped ticks", Some(track)))
            }));
            lanes.push(track);
        }
        let components = plan.components.iter();
        let components = components
            .map(|one| timeline.track(one.spec.id.as_str(), Some(lanes[one.lane])))
            .collect();
        let loops = plan.regions.iter().map(|region| {
            let name = format!("loop {}", region.id);
            let is_loop = region.loop_policy.is_some();
            is_loop.then(|| timeline.track(name.as_str(), Some(lanes[region.lane])))
        });
        let loops = loops.collect();
        Self { epochs, calls, lanes, late, components, loops }
    }

    /// The track of a record.
    fn of(&self, plan: &Plan, record: &TraceRecord) -> TrackId {
        let component = plan.components.get(record.component as usize);
        if let (Some(one), "loop") = (component, record.name.phase())
            && let Some(track) = self.loops[one.region]
        {
            return track;
        }
        match (record.component, record.lane) {
            (NONE, NONE) => self.epochs,
            (NONE, lane) => self.lanes[lane as usize],
            (component, _) => self.components[component as usize],
        }
    }
}

struct TimelineBuilder<'p> {
    plan: &'p Plan,
    tracks: Tracks,
    arrows: Arrows,
    /// For each lane, the total of ticks that took too long, and of skipped ticks.
    totals: Vec<(u64, u64)>,
    calls: u64,
}

impl TimelineBuilder<'_> {
    // Records of an epoch come region by region, in compiled order: calls before the calls that
    // they cause.
    fn record(&mut self, timeline: &mut Timeline, at: usize, record: &TraceRecord) {
        let (plan, track) = (self.plan, self.tracks.of(self.plan, record));
        let (start_ns, took_ns) = (record.start_ns, record.duration_ns);
        let worker_ids = worker_ids(record);
        let args = args(plan, record, &worker_ids);
        match record.name {
            TraceName::ComponentExecute => {
                self.calls += 1;
                let name = plan.components[record.component as usize].spec.id.as_str();
                let call = timeline.span(track, name, start_ns, took_ns, &args);
                let from = self.arrows.received(record, call);
                join(timeline, from, Some(call));
            }
            TraceName::ComponentInput => {
                let from = self.arrows.sent.get(&record.message).copied();
                join(timeline, from, self.arrows.current);
            }
            TraceName::ThreadPoolBatch => {
                let name = record.name.name();
                let batch = timeline.span(track, name, start_ns, took_ns, &args);
                self.arrows.batch(record, batch);
            }
            TraceName::SchedulerIteration => {
                self.count_calls(timeline);
                timeline.span(track, record.name.name(), start_ns, took_ns, &args);
                timeline.counter(self.tracks.calls, start_ns, 0_u32);
                self.arrows.epoch_began_ns = start_ns.saturating_add(took_ns);
            }
            TraceName::FixedRateTick | TraceName::LoopIteration => {
                timeline.span(track, record.name.name(), start_ns, took_ns, &args);
            }
            TraceName::ChannelPublish
            | TraceName::ChannelCommit
            | TraceName::StateCommit
            | TraceName::AsyncAdmission => self.arrows.sent(plan, at, record),
            _ => {
                timeline.instant(track, record.name.name(), start_ns, &args);
                self.count_late(timeline, record);
            }
        }
    }

    /// Draws the number of calls of an epoch at its end.
    fn count_calls(&mut self, timeline: &mut Timeline) {
        let calls = core::mem::take(&mut self.calls);
        if calls > 0 {
            let calls = i64::try_from(calls).unwrap_or(i64::MAX);
            let number = Number::Int(calls);
            timeline.counter(self.tracks.calls, self.arrows.epoch_began_ns, number);
        }
    }

    fn count_late(&mut self, timeline: &mut Timeline, record: &TraceRecord) {
        let lane = record.lane as usize;
        let Some(Some((overruns, skipped))) = self.tracks.late.get(lane).copied() else { return };
        let (n_over, n_skipped) = &mut self.totals[lane];
        let (counter, total) = match record.name {
            TraceName::FixedRateOverrun => {
                *n_over += 1;
                (overruns, *n_over)
            }
            TraceName::FixedRateSkippedTick => {
                *n_skipped += record.value;
                (skipped, *n_skipped)
            }
            _ => return,
        };
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        let number = Number::Int(total);
        timeline.counter(counter, record.start_ns, number);
    }
}

/// Draws an arrow between two calls that are both drawn.
fn join(timeline: &mut Timeline, from: Option<EventId>, to: Option<EventId>) {
    if let (Some(from), Some(to)) = (from, to) {
        // The clock was set back: no arrow leads back in time.
        let _ = timeline.join(from, to);
    }
}

/// Which call sent which message.
///
/// A message on an immediate edge comes from the last call or batch before its commit. On other
/// edges a publication and its commit are two records, one epoch apart: they come in the same
/// order, and if there are fewer commits, the oldest publications were evicted.
struct Arrows {
    /// The last call of each component.
    last_call: Vec<Option<EventId>>,
    /// The last call of all: what a record of a further message belongs to.
    current: Option<EventId>,
    /// The last batch: its component, its time, and its event.
    batch: Option<(TraceRecord, EventId)>,
    /// By message: the edge plus one, and its sequence number.
    sent: BTreeMap<(u32, u64), EventId>,
    /// By edge: the senders of publications that are not committed yet.
    on_the_way: BTreeMap<u32, Vec<Option<EventId>>>,
    /// By edge and epoch: how many commits follow.
    n_commits: BTreeMap<(u32, u64), usize>,
    /// Whether a record is the commit of a value from outside, which no call has sent.
    from_outside: Vec<bool>,
    epoch_began_ns: u64,
}

impl Arrows {
    fn new(plan: &Plan, records: &[TraceRecord]) -> Self {
        let mut n_commits = BTreeMap::new();
        let mut from_outside = vec![false; records.len()];
        for (at, record) in records.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &records[before]);
            let is_fed = |before: &TraceRecord| {
                before.name == TraceName::ChannelPublish
                    && (before.lane, before.edge) == (NONE, record.edge)
            };
            if !is_commit(record) {
                continue;
            }
            // A commit of a component's publication on an immediate edge has a lane; one at the
            // boundary has none.
            let is_immediate = is_immediate(plan, record.edge);
            if is_immediate {
                from_outside[at] = record.lane == NONE;
            } else if before.is_some_and(is_fed) {
                from_outside[at] = true;
            } else {
                *n_commits.entry((record.edge, record.epoch)).or_insert(0) += 1;
            }
        }
        Self {
            last_call: vec![None; plan.components.len()],
            current: None,
            batch: None,
            sent: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            n_commits,
            from_outside,
            epoch_began_ns: 0,
        }
    }

    fn batch(&mut self, record: &TraceRecord, event: EventId) {
        self.batch = Some((*record, event));
        self.last_call[record.component as usize] = Some(event);
    }

    /// A call: returns the sender of its first message.
    fn received(&mut self, record: &TraceRecord, call: EventId) -> Option<EventId> {
        self.current = Some(call);
        let is_in_batch = self.batch.as_ref().is_some_and(|(batch, _)| {
            let end_ns = |one: &TraceRecord| one.start_ns.saturating_add(one.duration_ns);
            (batch.component, batch.epoch) == (record.component, record.epoch)
                && batch.start_ns <= record.start_ns
                && end_ns(record) <= end_ns(batch)
        });
        // The publications of a batch are committed together: the batch is their sender.
        if !is_in_batch {
            self.last_call[record.component as usize] = Some(call);
        }
        self.sent.get(&record.message).copied()
    }

    fn sent(&mut self, plan: &Plan, at: usize, record: &TraceRecord) {
        if self.from_outside[at] {
            return;
        }
        // A fed value came over no edge of the plan.
        let from = plan.edges.get(record.edge as usize).map(|edge| edge.from.0);
        let call = from.and_then(|from| self.last_call.get(from).copied().flatten());
        if record.name == TraceName::ChannelPublish {
            if record.lane != NONE {
                self.on_the_way.entry(record.edge).or_default().push(call);
            }
            return;
        }
        let sender = match self.n_commits.get_mut(&(record.edge, record.epoch)) {
            None => call,
            Some(n_left) => {
                let waiting = self.on_the_way.entry(record.edge).or_default();
                let sender = waiting.len().checked_sub(*n_left).and_then(|first| waiting[first]);
                *n_left = n_left.saturating_sub(1);
                if *n_left == 0 {
                    waiting.clear();
                }
                sender
            }
        };
        if let Some(sender) = sender {
            self.sent.entry(record.message).or_insert(sender);
        }
    }
}

/// The workers that took part in a batch, as `0,1`.
fn worker_ids(record: &TraceRecord) -> String {
    let mut text = String::new();
    for worker in record.worker_ids() {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{worker}");
    }
    text
}

fn is_commit(record: &TraceRecord) -> bool {
    matches!(
        record.name,
        TraceName::ChannelCommit | TraceName::StateCommit | TraceName::AsyncAdmission
    )
}

fn args<'a>(
    plan: &'a Plan,
    record: &TraceRecord,
    worker_ids: &'a str,
) -> Vec<(&'static str, Value<'a>)> {
    let mut args = Vec::with_capacity(6);
    args.push(("epoch_id", Value::Uint(record.epoch)));
    if worker_ids.is_empty() {
        args.push(("worker_id", Value::Uint(record.worker.into())));
    } else {
        args.push(("worker_ids", Value::Text(worker_ids)));
    }
    if let Some(kind) = record.health_kind() {
        args.push(("health_kind", Value::Text(kind.name())));
    }
    if let Some(edge) = plan.edges.get(record.edge as usize) {
        args.push(("channel", Value::Text(edge.id.as_str())));
    }
    if record.lane != NONE {
        let lane = plan.lanes[record.lane as usize].spec.id.as_str();
        args.push(("lane", Value::Text(lane)));
    }
    for (name, (edge_plus_one, seq)) in
        [("causation", record.message), ("correlation", record.correlation)]
    {
        if let Some(edge) = edge_plus_one.checked_sub(1) {
            let id = plan.edges.get(edge as usize).map_or("feed", |edge| edge.id.as_str());
            let (channel, number) = match name {
                "causation" => ("causation_channel", "causation_seq"),
                _ => ("correlation_channel", "correlation_seq"),
            };
            args.push((channel, Value::Text(id)));
            args.push((number, Value::Uint(seq)));
        }
    }
    if record.value > 0 && worker_ids.is_empty() {
        args.push(("value", Value::Uint(record.value)));
    }
    args
}
