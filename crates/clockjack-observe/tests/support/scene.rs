//! Random timelines, and the expected contents of their traces.
//!
//! Times are few and small, so that spans often touch, cross or coincide.

use clockjack_observe::timeline::{EventId, Timeline, TrackId};
use proptest::{prelude::*, sample::Index};

/// An event as it is added.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) struct Added {
    pub(crate) track: usize,
    pub(crate) name: String,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: Option<u64>,
}

/// A timeline with the events that were added to it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) timeline: Timeline,
    pub(crate) events: Vec<Added>,
    /// Id, and positions of source and sink among the events.
    pub(crate) flows: Vec<(u64, usize, usize)>,
    pub(crate) n_readings: usize,
}

/// Names of the tracks, in order; each is below the one before or on top.
pub(crate) const TRACKS: [&str; 4] = ["cell", "lane", "part", "other"];

prop_compose! {
    /// Any scene whose flows do not contradict the order of the tracks.
    pub(crate) fn scenes()(
        events in prop::collection::vec((0..4_usize, 0..12_u64, prop::option::of(0..6_u64)), 0..40),
        readings in prop::collection::vec((0..12_u64, -5..5_i64), 0..6),
        pairs in prop::collection::vec(any::<(Index, Index)>(), 0..30),
    ) -> Scene {
        build(&events, &readings, &pairs)
    }
}

fn build(
    events: &[(usize, u64, Option<u64>)],
    readings: &[(u64, i64)],
    pairs: &[(Index, Index)],
) -> Scene {
    let mut timeline = Timeline::new();
    let cell = timeline.track(TRACKS[0], None);
    let lane = timeline.track(TRACKS[1], Some(cell));
    let part = timeline.track(TRACKS[2], Some(lane));
    let depth = timeline.counter_track("depth", Some(lane));
    let tracks: [TrackId; 4] = [cell, lane, part, timeline.track(TRACKS[3], None)];
    let mut added = Vec::new();
    let mut ids: Vec<EventId> = Vec::new();
    for (index, &(track, start_ns, duration_ns)) in events.iter().enumerate() {
        let name = format!("event {index}");
        let at = tracks[track];
        ids.push(match duration_ns {
            Some(duration_ns) => timeline.span(at, &*name, start_ns, duration_ns, &[]),
            None => timeline.instant(at, &*name, start_ns, &[]),
        });
        added.push(Added { track, name, start_ns, duration_ns });
    }
    for &(at_ns, value) in readings {
        timeline.counter(depth, at_ns, value);
    }
    let mut flows = Vec::new();
    for (id, (one, other)) in pairs.iter().enumerate() {
        if events.is_empty() {
            break;
        }
        let (from, to) = (one.index(events.len()), other.index(events.len()));
        let end_ns = |index: usize| events[index].1 + events[index].2.unwrap_or(0);
        // If both begin at the same time, the later one in the order of a track could be the
        // source.
        let goes_on = events[from].1 < events[to].1;
        let follows = events[from].1 == events[to].1 && end_ns(from) == end_ns(to) && from < to;
        if goes_on || follows {
            timeline.flow(id as u64, ids[from], ids[to]).expect("the flow goes forward");
            flows.push((id as u64, from, to));
        }
    }
    Scene { timeline, events: added, flows, n_readings: readings.len() }
}
