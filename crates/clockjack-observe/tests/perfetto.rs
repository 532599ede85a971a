//! Traces as a Perfetto reader sees them: spans nest, flows join, names resolve.
#![cfg(all(feature = "alloc", not(loom)))]

extern crate alloc;

#[path = "support/perfetto.rs"]
mod perfetto_trace;
#[path = "support/scene.rs"]
mod scene;

use clockjack_observe::{
    perfetto,
    timeline::{FlowError, Timeline, Value},
};
use perfetto_trace::{Opened, Slice, open};
use proptest::prelude::*;

fn opened(timeline: &Timeline) -> Opened {
    open(&perfetto::encode(timeline)).expect("the trace is sound")
}

#[test]
fn a_trace_opens_with_tracks_spans_instants_counters_and_arguments() {
    let mut timeline = Timeline::new();
    let cell = timeline.track("cell", None);
    let lane = timeline.track("fast lane", Some(cell));
    let depth = timeline.counter_track("depth", Some(lane));
    let args: [(&str, Value<'_>); 5] = [
        ("who", "imu \"1\"\n".into()),
        ("signed", Value::Int(-3)),
        ("epoch", u64::MAX.into()),
        ("gain", 0.5.into()),
        ("ok", true.into()),
    ];
    timeline.instant(lane, "publish", 130, &args);
    timeline.span(lane, "execute", 120, 30, &[]);
    timeline.span(lane, "epoch", 100, 100, &[]);
    timeline.counter(depth, 140, 7_u32);
    timeline.counter(depth, 110, -0.25);

    let trace = opened(&timeline);
    let lane = vec!["cell".to_owned(), "fast lane".to_owned()];
    let depth = [lane.clone(), vec!["depth".to_owned()]].concat();
    assert_eq!(trace.tracks, [vec!["cell".to_owned()], lane.clone(), depth.clone()]);
    let slice = |name: &str, start_ns, duration_ns, parent| Slice {
        track: lane.clone(),
        name: name.into(),
        start_ns,
        duration_ns,
        parent,
        args: Vec::new(),
    };
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let publish = Slice {
        args: vec![
            text("who", "imu \"1\"\n"),
            text("signed", "-3"),
            text("epoch", "18446744073709551615"),
            text("gain", "0.5"),
            text("ok", "true"),
        ],
        ..slice("publish", 130, None, Some(1))
    };
    let expected =
        [slice("epoch", 100, Some(100), None), slice("execute", 120, Some(30), Some(0)), publish];
    assert_eq!(trace.slices, expected);
    assert_eq!(trace.readings, [(depth.clone(), 110, -0.25), (depth, 140, 7.0)]);
}

#[test]
fn a_span_that_crosses_another_moves_to_an_overflow_track() {
    let mut timeline = Timeline::new();
    let pool = timeline.track("pool", None);
    let lane = timeline.track("lane", Some(pool));
    timeline.span(lane, "first", 0, 10, &[]);
    timeline.span(lane, "crossing", 5, 10, &[]);
    timeline.span(lane, "crossing both", 7, 20, &[]);
    timeline.span(lane, "inner", 6, 2, &[]);
    timeline.span(lane, "next", 10, 5, &[]);

    let trace = opened(&timeline);
    let places: Vec<(&str, &str)> = trace
        .slices
        .iter()
        .map(|slice| (&*slice.name, &**slice.track.last().expect("a track has a name")))
        .collect();
    let expected = [
        ("first", "lane"),
        ("crossing", "lane (2)"),      // ends after `first`
        ("inner", "lane"),             // within `first`
        ("crossing both", "lane (3)"), // ends after `first` and `crossing`
        ("next", "lane"),              // begins when `first` ends
    ];
    assert_eq!(places, expected);
    assert!(trace.tracks.iter().filter(|path| path.len() > 1).all(|path| path[0] == "pool"));
}

#[test]
fn flows_join_a_source_to_a_sink_of_the_same_instant() {
    // In virtual time a chain of messages may take no time at all, here against the tracks' order.
    let mut timeline = Timeline::new();
    let tracks = ["c", "b", "a"].map(|name| timeline.track(name, None));
    let spans = tracks.map(|track| timeline.span(track, "handle", 5, 0, &[]));
    let reply = timeline.instant(tracks[2], "reply", 5, &[]);
    timeline.flow(1, spans[2], spans[1]).expect("forward");
    timeline.flow(2, spans[1], spans[0]).expect("forward");
    timeline.flow(3, spans[0], reply).expect("forward");
    let trace = opened(&timeline);
    let name = |index: usize| &*trace.slices[index].track[0];
    let joined: Vec<_> = trace.flows.iter().map(|&(id, a, b)| (id, name(a), name(b))).collect();
    assert_eq!(joined, [(1, "a", "b"), (2, "b", "c"), (3, "c", "a")]);
}

#[test]
fn flows_that_contradict_each_other_cost_no_span() {
    let mut timeline = Timeline::new();
    let (a, b) = (timeline.track("a", None), timeline.track("b", None));
    let (one, other) = (timeline.span(a, "one", 5, 0, &[]), timeline.span(b, "other", 5, 0, &[]));
    timeline.flow(1, one, other).expect("forward");
    timeline.flow(2, other, one).expect("forward");
    let trace = opened(&timeline);
    assert_eq!(trace.flows, [(1, 0, 1)], "the second goes back and is left out");
    assert_eq!(trace.slices.len(), 2);
}

#[test]
fn flows_backward_in_circles_of_one_or_with_a_taken_id_are_refused() {
    let mut timeline = Timeline::new();
    let track = timeline.track("a", None);
    let early = timeline.instant(track, "early", 5, &[]);
    let late = timeline.instant(track, "late", 9, &[]);
    let backward = FlowError::Backward { id: 1, from_ns: 9, to_ns: 5 };
    assert_eq!(timeline.flow(1, late, early), Err(backward));
    assert_eq!(backward.to_string(), "flow 1 would go back in time, from 9 ns to 5 ns");
    assert_eq!(timeline.flow(1, late, late), Err(FlowError::SameEvent { id: 1 }));
    assert_eq!(timeline.flow(1, early, late), Ok(()));
    assert_eq!(timeline.flow(1, early, late), Err(FlowError::IdTaken { id: 1 }));
    assert_eq!(opened(&timeline).flows, [(1, 0, 1)]);
}

#[test]
fn times_beyond_what_a_trace_can_hold_are_cut() {
    let mut timeline = Timeline::new();
    let track = timeline.track("a", None);
    timeline.span(track, "endless", 10, u64::MAX, &[]);
    timeline.instant(track, "never", u64::MAX, &[]);
    let trace = opened(&timeline);
    assert_eq!(trace.slices[0].duration_ns, Some(i64::MAX.cast_unsigned() - 10));
    assert_eq!(trace.slices[1].start_ns, i64::MAX.cast_unsigned());
}

#[test]
fn an_empty_timeline_is_a_trace_too() {
    let timeline = Timeline::new();
    assert!(timeline.is_empty());
    let trace = opened(&timeline);
    assert!(trace.tracks.is_empty() && trace.slices.is_empty());
}

#[test]
fn a_track_of_the_same_name_and_parent_is_the_same_track() {
    let mut timeline = Timeline::new();
    let a = timeline.track("a", None);
    let name = timeline.intern("x");
    let x = timeline.track(name, Some(a));
    assert_eq!(timeline.track("x", Some(a)), x);
    assert_ne!(timeline.track("x", None), x);
    timeline.counter_track("x", Some(a));
    assert_eq!(timeline.n_tracks(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_opens_with_all_that_was_added(scene in scene::scenes()) {
        let trace = opened(&scene.timeline);
        let mut found: Vec<(u64, String, Option<u64>)> = trace
            .slices
            .iter()
            .map(|slice| (slice.start_ns, slice.name.clone(), slice.duration_ns))
            .collect();
        let mut added: Vec<(u64, String, Option<u64>)> = scene
            .events
            .iter()
            .map(|event| (event.start_ns, event.name.clone(), event.duration_ns))
            .collect();
        found.sort();
        added.sort();
        prop_assert_eq!(found, added);
        for slice in &trace.slices {
            let index: usize = slice.name["event ".len()..].parse().expect("names end in numbers");
            let track = slice.track.last().expect("a track has a name");
            let expected = scene::TRACKS[scene.events[index].track];
            prop_assert!(track.starts_with(expected), "{} on {}", slice.name, track);
            // Spans nest in time, not only in the order of packets.
            if let Some(parent) = slice.parent.map(|parent| &trace.slices[parent]) {
                let end = |slice: &Slice| slice.start_ns + slice.duration_ns.unwrap_or(0);
                prop_assert!(parent.start_ns <= slice.start_ns && end(slice) <= end(parent));
            }
        }
        let name = |index: usize| trace.slices[index].name.clone();
        let mut joined: Vec<_> =
            trace.flows.iter().map(|&(id, from, to)| (id, name(from), name(to))).collect();
        joined.sort();
        let name = |index: usize| scene.events[index].name.clone();
        let expected: Vec<_> =
            scene.flows.iter().map(|&(id, from, to)| (id, name(from), name(to))).collect();
        prop_assert_eq!(joined, expected);
        prop_assert_eq!(trace.readings.len(), scene.n_readings);
    }
}
