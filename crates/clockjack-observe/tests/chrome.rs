//! Chrome traces as a JSON reader sees them: events sorted, spans nested, flows bound, texts
//! complete.
#![cfg(all(feature = "alloc", not(loom)))]

extern crate alloc;

#[path = "support/scene.rs"]
mod scene;

use alloc::collections::BTreeMap;

use clockjack_observe::{
    chrome,
    timeline::{Timeline, Value as Arg},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parsed(timeline: &Timeline) -> Value {
    let mut text = String::new();
    chrome::write(&mut text, timeline).expect("writing to a string cannot fail");
    assert!(text.is_ascii(), "{text}");
    serde_json::from_str(&text).expect("it is JSON")
}

fn events(trace: &Value) -> &[Value] {
    trace["traceEvents"].as_array().expect("a list of events")
}

/// The time of a field in nanoseconds.
fn nanos(event: &Value, field: &str) -> u64 {
    let micros = event[field].as_f64().expect("a number");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are small")]
    let nanos = (micros * 1e3).round() as u64;
    nanos
}

#[test]
fn a_trace_has_named_processes_and_threads_in_their_order() {
    let mut timeline = Timeline::new();
    let cell = timeline.track("cell", None);
    let lane = timeline.track("lane", Some(cell));
    let part = timeline.track("part", Some(lane));
    let other = timeline.track("other", None);
    timeline.span(part, "a", 1, 10, &[]);
    timeline.span(part, "b", 2, 10, &[]);
    timeline.span(other, "c", 3, 0, &[]);
    let trace = parsed(&timeline);
    assert_eq!(trace["displayTimeUnit"], "ns");
    assert_eq!(trace["trace_schema_version"], "1");
    let metadata: Vec<String> = events(&trace)
        .iter()
        .filter(|event| event["ph"] == "M")
        .map(|event| {
            format!("{} {} {} {}", event["pid"], event["tid"], event["name"], event["args"])
        })
        .collect();
    let expected = [
        r#"1 1 "process_name" {"name":"cell"}"#,
        r#"1 1 "process_sort_index" {"sort_index":0}"#,
        r#"1 1 "thread_name" {"name":"cell"}"#,
        r#"1 1 "thread_sort_index" {"sort_index":0}"#,
        r#"1 2 "thread_name" {"name":"lane"}"#,
        r#"1 2 "thread_sort_index" {"sort_index":1}"#,
        r#"1 3 "thread_name" {"name":"lane / part"}"#,
        r#"1 3 "thread_sort_index" {"sort_index":2}"#,
        r#"1 4 "thread_name" {"name":"lane / part (2)"}"#,
        r#"1 4 "thread_sort_index" {"sort_index":3}"#,
        r#"2 5 "process_name" {"name":"other"}"#,
        r#"2 5 "process_sort_index" {"sort_index":4}"#,
        r#"2 5 "thread_name" {"name":"other"}"#,
        r#"2 5 "thread_sort_index" {"sort_index":4}"#,
    ];
    assert_eq!(metadata, expected);
}

#[test]
fn events_have_their_phase_time_and_arguments() {
    let mut timeline = Timeline::new();
    let cell = timeline.track("cell", None);
    let depth = timeline.counter_track("depth", Some(cell));
    let args: [(&str, Arg<'_>); 6] = [
        ("text", "x".into()),
        ("int", Arg::Int(i64::MIN)),
        ("uint", u64::MAX.into()),
        ("float", 1e300.into()),
        ("nan", f64::NAN.into()),
        ("bool", false.into()),
    ];
    let sent = timeline.span(cell, "send", 1_234_567, 1_001, &args);
    let got = timeline.instant(cell, "got", 2_000_000, &[]);
    timeline.flow(u64::MAX, sent, got).expect("forward");
    timeline.counter(depth, 1_999_999, -4_i64);
    let trace = parsed(&timeline);
    let found: Vec<&Value> = events(&trace).iter().filter(|event| event["ph"] != "M").collect();
    let expected = [
        json!({"ph": "X", "cat": "clockjack", "name": "send", "pid": 1, "tid": 1, "ts": 1234.567,
            "dur": 1.001, "args": {"text": "x", "int": i64::MIN, "uint": u64::MAX,
            "float": 1e300, "nan": "NaN", "bool": false}}),
        json!({"ph": "s", "cat": "clockjack", "name": "flow", "id": "0xffffffffffffffff",
            "pid": 1, "tid": 1, "ts": 1234.567}),
        json!({"ph": "C", "cat": "clockjack", "name": "depth", "pid": 1, "tid": 2,
            "ts": 1999.999, "args": {"value": -4}}),
        json!({"ph": "i", "cat": "clockjack", "name": "got", "pid": 1, "tid": 1, "ts": 2000.0,
            "s": "t", "args": {}}),
        json!({"ph": "f", "bp": "e", "cat": "clockjack", "name": "flow",
            "id": "0xffffffffffffffff", "pid": 1, "tid": 1, "ts": 2000.0}),
    ];
    assert_eq!(found, expected.iter().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_back_whole(track in any::<String>(), name in any::<String>(),
                                 arg in any::<String>(), value in "\\PC*|[\u{0}-\u{1f}\"\\\\]*") {
        let mut timeline = Timeline::new();
        let id = timeline.track(&*track, None);
        timeline.instant(id, &*name, 0, &[(&arg, (&*value).into())]);
        let trace = parsed(&timeline);
        let (process, event) = (&events(&trace)[0], &events(&trace)[4]);
        prop_assert_eq!(process["args"]["name"].as_str(), Some(&*track));
        prop_assert_eq!(event["name"].as_str(), Some(&*name));
        prop_assert_eq!(event["args"][&arg].as_str(), Some(&*value));
    }

    #[test]
    fn spans_nest_and_flows_bind_in_every_trace(scene in scene::scenes()) {
        let trace = parsed(&scene.timeline);
        let mut last_ns = 0;
        // The ends of the open spans of each thread.
        let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut started: BTreeMap<String, String> = BTreeMap::new();
        let mut joined = Vec::new();
        let (mut spans, mut n_instants, mut n_readings) = (Vec::new(), 0, 0);
        // What a flow binds to: the last event before it in the file.
        let mut bound = (0, 0, String::new());
        for event in events(&trace).iter().filter(|event| event["ph"] != "M") {
            let (at_ns, thread) = (nanos(event, "ts"), event["tid"].as_u64().expect("a thread"));
            prop_assert!(last_ns <= at_ns, "sorted by time");
            last_ns = at_ns;
            let name = event["name"].as_str().expect("a name").to_owned();
            let phase = event["ph"].as_str().expect("a phase");
            if matches!(phase, "X" | "i") {
                let end_ns = at_ns + if phase == "X" { nanos(event, "dur") } else { 0 };
                let ends = open.entry(thread).or_default();
                while ends.pop_if(|end| *end <= at_ns).is_some() {}
                prop_assert!(ends.last().is_none_or(|end| end_ns <= *end), "{name} crosses");
                ends.push(end_ns);
                bound = (thread, at_ns, name.clone());
            }
            match phase {
                "X" => spans.push((name, at_ns, nanos(event, "dur"))),
                "i" => n_instants += 1,
                "C" => n_readings += 1,
                _ => {
                    prop_assert_eq!((thread, at_ns), (bound.0, bound.1));
                    let id = event["id"].as_str().expect("an id").to_owned();
                    let source = bound.2.clone();
                    if phase == "s" {
                        prop_assert!(started.insert(id, source).is_none(), "one source");
                    } else {
                        prop_assert_eq!(&event["bp"], "e");
                        let from = started.remove(&id);
                        joined.push((id, from.expect("the source comes first"), source));
                    }
                }
            }
        }
        prop_assert!(started.is_empty(), "one sink for each source");
        let expected_spans = scene.events.iter().filter_map(|event| {
            Some((event.name.clone(), event.start_ns, event.duration_ns?))
        });
        let mut expected_spans: Vec<_> = expected_spans.collect();
        spans.sort();
        expected_spans.sort();
        prop_assert_eq!(&spans, &expected_spans);
        prop_assert_eq!(n_instants, scene.events.len() - spans.len());
        prop_assert_eq!(n_readings, scene.n_readings);
        let name = |index: usize| scene.events[index].name.clone();
        let mut expected: Vec<_> = scene
            .flows
            .iter()
            .map(|&(id, from, to)| (format!("{id:#x}"), name(from), name(to)))
            .collect();
        joined.sort();
        expected.sort();
        prop_assert_eq!(joined, expected);
    }
}
