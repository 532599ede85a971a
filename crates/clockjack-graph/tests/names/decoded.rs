//! The trace of a run, decoded as its readers do: spans nest, flows connect a send with a receive,
//! tracks and counters have their names.

use std::collections::{BTreeMap, BTreeSet};

use clockjack_graph::{
    describe::EdgeKind,
    run::{TraceName, timeline::timeline, trace::NONE},
};
use clockjack_observe::{chrome, perfetto};
use serde_json::Value;

use crate::{
    doer::Done,
    perfetto_trace::{Opened, Slice, open},
    scenes,
};

fn opened(done: &Done) -> Opened {
    open(&perfetto::encode(&timeline(&done.plan, &done.records))).expect("the trace is sound")
}

fn end_ns(slice: &Slice) -> u64 {
    slice.start_ns + slice.duration_ns.unwrap_or(0)
}

fn arg<'a>(slice: &'a Slice, name: &str) -> Option<&'a str> {
    slice.args.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

/// The component of a slice that is an invocation or a batch of invocations.
fn component(done: &Done, slice: &Slice) -> Option<usize> {
    let track = slice.track.last()?;
    let id = track.split(" (").next()?;
    let found = done.plan.components.iter().position(|one| one.spec.id == id)?;
    let is_call = slice.name == id || slice.name == TraceName::ThreadPoolBatch.name();
    is_call.then_some(found)
}

#[test]
fn every_run_opens_in_a_decoder_and_its_spans_nest() {
    for (scene, done) in scenes::all() {
        let trace = opened(&done);
        for slice in &trace.slices {
            let Some(parent) = slice.parent.map(|parent| &trace.slices[parent]) else { continue };
            assert_eq!(parent.track, slice.track, "{scene}");
            let is_inside = parent.start_ns <= slice.start_ns && end_ns(slice) <= end_ns(parent);
            assert!(is_inside, "{scene}: {slice:?} in {parent:?}");
        }
        let calls = trace.slices.iter().filter(|slice| {
            component(&done, slice).is_some() && slice.name != TraceName::ThreadPoolBatch.name()
        });
        let recorded = done.records.iter().filter(|one| one.name == TraceName::ComponentExecute);
        assert_eq!(calls.count(), recorded.count(), "{scene}: each call is a span");
    }
}

#[test]
fn tracks_have_the_names_of_lanes_components_and_loops() {
    let done = scenes::cell(4);
    let trace = opened(&done);
    let path = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    for names in [
        &["named"][..],
        &["named", "epochs"],
        &["named", "calls"],
        &["named", "main"],
        &["named", "main", "x"],
        &["named", "main", "loop settles"],
        &["named", "main", "loop gives_up"],
        &["named", "slow"],
        &["named", "slow", "overruns"],
        &["named", "slow", "skipped ticks"],
        &["named", "slow", "after"],
        &["named", "wide", "left"],
        &["named", "wide", "join"],
    ] {
        assert!(trace.tracks.contains(&path(names)), "{names:?} of {:?}", trace.tracks);
    }
    let on = |track: &str, name: &str| {
        let is_it = |one: &&Slice| one.track.last().is_some_and(|last| last == track);
        trace.slices.iter().filter(is_it).filter(|one| one.name == name).count()
    };
    assert_eq!(on("epochs", "scheduler_iteration"), 12);
    assert!(on("slow", "fixed_rate_tick") > 0);
    assert!(on("loop settles", "loop_iteration") > 0);
    assert!(on("loop settles", "loop_converged") > 0);
    assert!(on("loop gives_up", "loop_output_discarded") > 0);
    let calls: f64 = trace
        .readings
        .iter()
        .filter(|(track, ..)| track.last().is_some_and(|name| name == "calls"))
        .map(|(.., value)| value)
        .sum();
    let recorded = done.records.iter().filter(|one| one.name == TraceName::ComponentExecute);
    assert_eq!(calls, f64::from(u32::try_from(recorded.count()).expect("few")));
}

#[test]
fn every_flow_joins_a_send_to_a_receive_of_one_edge() {
    for (scene, done) in scenes::all() {
        let trace = opened(&done);
        for (_, from, to) in &trace.flows {
            let (from, to) = (&trace.slices[*from], &trace.slices[*to]);
            let sender = component(&done, from).expect("a call or a batch sends");
            let receiver = component(&done, to).expect("a call receives");
            let mut edges = done.plan.edges.iter();
            let is_edge = edges.any(|edge| (edge.from.0, edge.to.0) == (sender, receiver));
            assert!(is_edge, "{scene}: {from:?} {to:?}");
            assert!(from.start_ns <= to.start_ns, "{scene}: {from:?} {to:?}");
        }
    }
}

#[test]
fn every_input_of_a_call_has_its_arrow() {
    for workers in [1, 4] {
        let done = scenes::cell(workers);
        let trace = opened(&done);
        let index = |id: &str| done.plan.components.iter().position(|one| one.spec.id == id);
        let mut senders: BTreeMap<usize, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (_, from, to) in &trace.flows {
            if component(&done, &trace.slices[*to]) == index("join") {
                let sender = component(&done, &trace.slices[*from]);
                assert!(senders.entry(*to).or_default().insert(sender), "one arrow per message");
            }
        }
        let n_calls = trace.slices.iter().filter(|slice| slice.name == "join").count();
        assert!(n_calls > 5 && senders.len() == n_calls, "{n_calls} {senders:?}");
        let both = BTreeSet::from([index("left"), index("right")]);
        assert!(senders.values().all(|found| *found == both), "{senders:?}");
    }
}

#[test]
fn every_call_for_a_message_of_a_call_has_its_arrow() {
    let done = scenes::cell(4);
    let trace = opened(&done);
    // The results of tasks arrive at the epoch boundary: no invocation has sent them.
    let mut outside = BTreeSet::new();
    for pair in done.records.windows(2) {
        let [before, record] = pair else { continue };
        let Some(edge) = done.plan.edges.get(record.edge as usize) else { continue };
        let is_fed = before.name == TraceName::ChannelPublish && before.lane == NONE;
        let is_outside = match edge.kind {
            EdgeKind::Immediate => record.lane == NONE,
            _ => is_fed && before.edge == record.edge,
        };
        if is_outside {
            outside.insert((edge.id.clone(), record.message.1.to_string()));
        }
    }
    assert!(!outside.is_empty(), "the tasks are there");
    let received: BTreeSet<usize> = trace.flows.iter().map(|(.., to)| *to).collect();
    let mut kinds = BTreeSet::new();
    for (at, slice) in trace.slices.iter().enumerate() {
        let Some(channel) = arg(slice, "causation_channel") else { continue };
        if component(&done, slice).is_none() {
            continue;
        }
        let number = arg(slice, "causation_seq").expect("with its channel");
        let is_outside = outside.contains(&(channel.to_owned(), number.to_owned()));
        assert_eq!(received.contains(&at), !is_outside, "{slice:?}");
        let edge = done.plan.edges.iter().find(|edge| edge.id == channel).expect("an edge");
        kinds.insert(edge.kind.name());
    }
    assert!(kinds.is_superset(&BTreeSet::from(["immediate", "delay", "async"])), "{kinds:?}");
}

#[test]
fn the_trace_for_chrome_says_the_same() {
    for (scene, done) in scenes::all() {
        let drawn = timeline(&done.plan, &done.records);
        let mut text = String::new();
        chrome::write(&mut text, &drawn).expect("a string takes everything");
        let trace: Value = serde_json::from_str(&text).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("events");
        let of = |phase: &'static str| events.iter().filter(move |one| one["ph"] == phase);
        let perfetto = opened(&done);
        let n_spans = perfetto.slices.iter().filter(|one| one.duration_ns.is_some()).count();
        assert_eq!(of("X").count(), n_spans, "{scene}");
        assert_eq!(of("C").count(), perfetto.readings.len(), "{scene}");
        check_nesting(scene, of("X"));
        let ids = |phase| of(phase).map(|one| one["id"].to_string()).collect::<BTreeSet<_>>();
        assert_eq!(ids("s"), ids("f"), "{scene}: each arrow has both ends");
        assert_eq!(ids("s").len(), perfetto.flows.len(), "{scene}");
        let names = of("M").filter_map(|one| one["args"]["name"].as_str());
        assert!(names.collect::<BTreeSet<_>>().contains("epochs"), "{scene}: tracks have names");
    }
}

/// Times are microseconds with three decimals: whole nanoseconds.
fn check_nesting<'a>(scene: &str, spans: impl Iterator<Item = &'a Value>) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let nanos = |value: &Value| (value.as_f64().expect("a number") * 1000.0).round() as u64;
    let mut tracks: BTreeMap<(String, String), Vec<(u64, u64)>> = BTreeMap::new();
    for span in spans {
        let track = (span["pid"].to_string(), span["tid"].to_string());
        let start_ns = nanos(&span["ts"]);
        tracks.entry(track).or_default().push((start_ns, start_ns + nanos(&span["dur"])));
    }
    for (track, mut spans) in tracks {
        spans.sort_by_key(|(start, end)| (*start, core::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (start, end) in spans {
            open.retain(|outer| *outer > start);
            assert!(open.iter().all(|outer| end <= *outer), "{scene}: {track:?} {start} {end}");
            open.push(end);
        }
    }
}
