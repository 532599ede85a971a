//! Trace records as a timeline: one track for the epochs, one for each lane, below it one for each
//! of its components, and an arrow from each call that published something to the call that it led
//! to.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use clockjack_observe::timeline::{EventId, Timeline, TrackId, Value};

use super::trace::{NONE, TraceName, TraceRecord};
use crate::compile::Plan;

/// The tracks of a graph.
struct Tracks {
    epochs: TrackId,
    lanes: Vec<TrackId>,
    components: Vec<TrackId>,
}

/// Draws the records of a run of this plan.
#[must_use]
pub fn timeline(plan: &Plan, records: &[TraceRecord]) -> Timeline {
    let mut timeline = Timeline::new();
    let graph = timeline.track(plan.name.as_str(), None);
    let tracks = Tracks {
        epochs: timeline.track("epochs", Some(graph)),
        lanes: plan
            .lanes
            .iter()
            .map(|lane| timeline.track(lane.spec.id.as_str(), Some(graph)))
            .collect(),
        components: Vec::new(),
    };
    let components = plan
        .components
        .iter()
        .map(|one| timeline.track(one.spec.id.as_str(), Some(tracks.lanes[one.lane])));
    let components = components.collect();
    let tracks = Tracks { components, ..tracks };
    draw(&mut timeline, plan, &tracks, records);
    timeline
}

fn draw(timeline: &mut Timeline, plan: &Plan, tracks: &Tracks, records: &[TraceRecord]) {
    let mut last_call: Vec<Option<EventId>> = alloc::vec![None; plan.components.len()];
    // Who has published a message: the edge plus one, and its number there.
    let mut sent: BTreeMap<(u32, u64), EventId> = BTreeMap::new();
    let mut epoch_began: Option<u64> = None;
    // Records of an epoch come region by region, in compiled order: calls before what they lead to.
    for record in records {
        match record.name {
            TraceName::ComponentExecute => {
                let component = record.component as usize;
                let call = timeline.span(
                    tracks.components[component],
                    plan.components[component].spec.id.as_str(),
                    record.start_ns,
                    record.duration_ns,
                    &args(plan, record),
                );
                last_call[component] = Some(call);
                if let Some(from) = sent.get(&record.message).copied() {
                    // An arrow back in time is none: a clock that was set back.
                    let _ = timeline.join(from, call);
                }
            }
            TraceName::ChannelCommit | TraceName::StateCommit | TraceName::AsyncAdmission => {
                let from = plan.edges.get(record.edge as usize).map(|edge| edge.from.0);
                let call = from.and_then(|from| last_call.get(from).copied().flatten());
                if let Some(call) = call {
                    sent.insert(record.message, call);
                }
            }
            TraceName::SchedulerIterationBegin => epoch_began = Some(record.start_ns),
            TraceName::SchedulerIterationEnd => {
                let began_ns = epoch_began.take().unwrap_or(record.start_ns);
                let duration_ns = record.start_ns.saturating_sub(began_ns);
                let name = TraceName::SchedulerIteration.name();
                let args = args(plan, record);
                timeline.span(tracks.epochs, name, began_ns, duration_ns, &args);
            }
            _ => {
                let track = match (record.component, record.lane) {
                    (NONE, NONE) => tracks.epochs,
                    (NONE, lane) => tracks.lanes[lane as usize],
                    (component, _) => tracks.components[component as usize],
                };
                let args = args(plan, record);
                timeline.instant(track, record.name.name(), record.start_ns, &args);
            }
        }
    }
}

fn args<'a>(plan: &'a Plan, record: &TraceRecord) -> Vec<(&'static str, Value<'a>)> {
    let mut args = Vec::with_capacity(6);
    args.push(("epoch_id", Value::Uint(record.epoch)));
    args.push(("worker_id", Value::Uint(record.worker.into())));
    if record.lane != NONE {
        let lane = plan.lanes[record.lane as usize].spec.id.as_str();
        args.push(("lane", Value::Text(lane)));
    }
    for (name, (edge_plus_one, seq)) in
        [("causation", record.message), ("correlation", record.correlation)]
    {
        if let Some(edge) = edge_plus_one.checked_sub(1) {
            // What was fed came over no edge of the plan.
            let id = plan.edges.get(edge as usize).map_or("feed", |edge| edge.id.as_str());
            let (channel, number) = match name {
                "causation" => ("causation_channel", "causation_seq"),
                _ => ("correlation_channel", "correlation_seq"),
            };
            args.push((channel, Value::Text(id)));
            args.push((number, Value::Uint(seq)));
        }
    }
    if record.value > 0 {
        args.push(("value", Value::Uint(record.value)));
    }
    args
}
