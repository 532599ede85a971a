//! A plan as JSON and as text, findings of the linter, and the comparison of two plans.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::{
    compile::{diff::PlanDiff, lint::lint},
    describe::{CopyPolicy, EdgeMode, EdgeOverflow, GraphFile, HierarchyEntry},
    diagnostic::Severity,
};

/// A source, a loop of two, and a sink.
fn sample() -> GraphSpec {
    let mut graph = ring(&["a", "b"]);
    graph.add("source", "source").boundary.role = BoundaryRole::Input;
    graph.add("sink", "sink");
    graph.edge("in", EdgeKind::Immediate, "source.out", "a.in");
    graph.edge("out", EdgeKind::Delay, "b.out", "sink.in").policy.preserve_order = false;
    graph.own("l", &["a", "b"]);
    graph.lanes[0].priority = 2;
    graph.hierarchy.push(HierarchyEntry { id: "cell".into(), ..HierarchyEntry::default() });
    graph
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_plan_says_which_readers_of_an_output_lose_what_others_get_and_nothing_warns() {
    let mut graph = pair();
    graph.add("other", "sink");
    let other = graph.edge("f", EdgeKind::Immediate, "source.out", "other.in");
    (other.policy.mode, other.policy.overflow) = (EdgeMode::Queue, EdgeOverflow::Reject);
    let json = planned(&graph).to_json();
    let said = |at: usize, key: &str| json["edges"][at][key].clone();
    assert_eq!(
        (said(0, "readers"), said(0, "slow_reader_drop_risk")),
        ("multi".into(), true.into())
    );
    assert_eq!(
        (said(1, "readers"), said(1, "slow_reader_drop_risk")),
        ("multi".into(), false.into())
    );
    assert_eq!(findings(&graph), [], "several readers are no fault");
    graph.edges.pop();
    graph.components.pop();
    let json = planned(&graph).to_json();
    assert_eq!(json["edges"][0]["readers"], "single");
    assert_eq!(json["edges"][0]["slow_reader_drop_risk"], false);
}

#[test]
fn the_json_of_a_plan_has_the_keys_of_the_contract_and_no_others() {
    let json = planned(&sample()).to_json();
    let check = |value: &Value, want: &str| {
        assert_eq!(keys(value), want.split_whitespace().collect::<BTreeSet<_>>());
    };
    check(
        &json,
        "graph kind schema_version scheduler_contract_version components edges compiled_regions \
         component_region region_order hierarchy lane_capabilities",
    );
    check(&json["components"][0], "id type lane boundary_role boundary_descriptor");
    check(
        &json["edges"][0],
        "id from to kind mode capacity overflow max_inflight copy_policy readers \
         slow_reader_drop_risk",
    );
    check(
        &json["compiled_regions"][0],
        "id kind components loop_policy incoming_regions outgoing_regions",
    );
    check(
        &json["lane_capabilities"][0],
        "id type max_threads queue_capacity overflow implemented advisory_fields \
         future_extensions unsupported_claims",
    );
    check(&json["component_region"], "a b source sink");
}

#[test]
fn the_json_of_a_plan_says_what_the_plan_says() {
    let json = planned(&sample()).to_json();
    assert_eq!(json["scheduler_contract_version"], "0.2");
    assert_eq!(json["region_order"], serde_json::json!(["source", "sink", "l"]));
    assert_eq!(json["component_region"]["b"], "l");
    let region = &json["compiled_regions"][2];
    assert_eq!(region["kind"], "composite_loop");
    assert_eq!(region["components"], serde_json::json!(["a", "b"]));
    assert_eq!(region["incoming_regions"], serde_json::json!(["source"]));
    assert_eq!(region["loop_policy"]["type"], "fixed_point");
    assert_eq!(json["compiled_regions"][0]["loop_policy"], Value::Null);
    assert_eq!(json["edges"][3]["from"], "b.out");
    assert_eq!(json["lane_capabilities"][0]["advisory_fields"], serde_json::json!(["priority"]));
    assert_eq!(json.to_string(), planned(&sample()).to_json().to_string());
}

#[test]
fn the_text_of_a_plan_begins_with_the_order() {
    let want = "\
graph test (runnable): 4 components, 4 edges, 3 regions, 1 epoch domain

order
     1  source  on main  source (input)
     2  sink  on main  sink
     3  l  on main  fixed_point loop, order computed: a, b  after source

lanes
  main  event_loop, 3 regions  advisory: priority

edges
  ab  a.out -> b.in  immediate  latest of 1, overwrite
  ba  b.out -> a.in  immediate  latest of 1, overwrite
  in  source.out -> a.in  immediate  latest of 1, overwrite
  out  b.out -> sink.in  delay  latest of 1, overwrite  advisory: preserve_order

activation
  a, b, source, sink
";
    assert_eq!(planned(&sample()).to_string(), want);
}

type Change = fn(&mut GraphSpec);

const LINTS: &[(&str, Severity, &str, Change)] = &[
    ("suspicious_capacity", Severity::Warning, "e", |graph| {
        (graph.edges[0].policy.mode, graph.edges[0].policy.capacity) = (EdgeMode::Queue, 1025);
    }),
    ("blocking_overflow_event_loop", Severity::Warning, "e", |graph| {
        let policy = &mut graph.edges[0].policy;
        (policy.mode, policy.overflow) = (EdgeMode::Queue, EdgeOverflow::Block);
    }),
    ("async_capacity", Severity::Info, "e", |graph| graph.edges[0].kind = EdgeKind::Async),
    ("delay_epoch_boundary", Severity::Info, "e", |graph| graph.edges[0].kind = EdgeKind::Delay),
    ("large_payload_copy", Severity::Warning, "e", |graph| {
        graph.components[0].component_type = "frame_source".into();
        graph.components[1].component_type = "frame_sink".into();
        graph.edges[0].policy.copy_policy = CopyPolicy::Copy;
    }),
    ("budget_exceeds_lane_period", Severity::Warning, "sink", |graph| {
        (graph.lanes[0].lane_type, graph.lanes[0].hz) = (LaneType::FixedRate, 300.0);
        graph.components[1].execution.budget_ms = 4;
    }),
];

#[test]
fn each_rule_of_the_linter_finds_its_edge_or_component() {
    assert_eq!(lint(&pair(), &findings(&pair())), []);
    for (rule, severity, id, change) in LINTS {
        let mut graph = pair();
        change(&mut graph);
        let found = lint(&graph, &findings(&graph));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].rule, found[0].severity, &*found[0].id), (*rule, *severity, *id));
        assert_eq!(keys(&found[0].to_json()), ["id", "message", "rule", "severity"].into());
    }
}

/// A fast producer and readers that are slower by default: on a slow lane, on a pool lane that
/// admits one call, and with a trigger that waits for a slow input.
const LOSSY: &str = "
schema_version: 1
graph: { name: lossy, kind: internal_test }
lanes:
  fast: { type: fixed_rate, period_ms: 1 }
  slow: { type: fixed_rate, period_ms: 10 }
  main: { type: event_loop }
  pool: { type: thread_pool, max_threads: 4 }
components:
  - { id: fast, type: counter, execution: { lane: fast } }
  - { id: slow, type: identity, event_sources: [{ type: message, inputs: [in] }],
      trigger_policy: { type: any_input, inputs: [in] }, execution: { lane: slow } }
  - { id: pooled, type: identity, event_sources: [{ type: message, inputs: [in] }],
      trigger_policy: { type: any_input, inputs: [in] }, execution: { lane: pool } }
  - { id: both, type: join, event_sources: [{ type: message, inputs: [a, b] }],
      trigger_policy: { type: all_inputs, inputs: [a, b] }, execution: { lane: main } }
  - { id: seldom, type: counter, event_sources: [{ type: timer, period_ms: 100 }],
      execution: { lane: main } }
edges:
  - { id: skips, kind: delay, from: fast.out, to: slow.in }
  - { id: chosen, kind: delay, from: fast.out, to: slow.in, policy: { mode: latest } }
  - { id: kept, kind: delay, from: fast.out, to: slow.in, policy: { capacity: 10, mode: queue } }
  - { id: many, kind: delay, from: fast.out, to: pooled.in, policy: { mode: queue, capacity: 8 } }
  - { id: often, kind: delay, from: fast.out, to: both.a }
  - { id: rare, kind: delay, from: seldom.out, to: both.b }
";

#[test]
fn defaults_that_lose_messages_of_a_faster_producer_are_found() {
    let found = |text: &str| -> Vec<String> {
        let file = GraphFile::parse("lossy.yaml", text).expect("it is well formed");
        let found = lint(file.spec(), &[]);
        let found = found.into_iter().filter(|one| one.rule == "lossy_default");
        found.map(|one| format!("{}: {}", one.id, one.message)).collect()
    };
    assert_eq!(
        found(LOSSY),
        [
            "skips: `fast.out` sends 1000 messages per second, `slow` reads 100 times per second, \
             and the default `mode: latest`, `overflow: overwrite` drops the rest; state a policy, \
             or use `mode: queue` with enough `capacity`",
            "pooled: up to 8 messages can be ready at once, and the lane `pool` admits 1 and \
             rejects the rest; set its `queue_capacity`",
            "both: input `a` gets 1000 messages per second and `b` gets 10, and the trigger uses \
             as many of each; state `coalesce: true` if the newest of each is enough",
        ]
    );
    let stated = LOSSY
        .replace("to: slow.in }", "to: slow.in, policy: { overflow: drop_oldest } }")
        .replace("max_threads: 4 }", "max_threads: 4, queue_capacity: 0 }")
        .replace("all_inputs,", "all_inputs, coalesce: true,");
    assert_eq!(found(&stated), [""; 0], "what the file states is wanted");
}

#[test]
fn the_linter_tells_all_errors_first() {
    let mut graph = pair();
    graph.edges[0].kind = EdgeKind::State;
    graph.edge("f", EdgeKind::State, "source.out", "sink.in");
    graph.components[0].execution.lane = "nowhere".into();
    let rules: Vec<&str> =
        lint(&graph, &findings(&graph)).into_iter().map(|one| one.rule).collect();
    assert_eq!(rules, ["unknown_lane", "multi_state_writer", "state_multiple_writers"]);
}

#[test]
fn two_plans_differ_in_order_or_in_regions() {
    let one = sample();
    let same = PlanDiff::new(&planned(&one), &planned(&one));
    assert!(same.same_region_order() && same.same_component_regions());
    let mut other = one.clone();
    other.components.swap(2, 3);
    let diff = PlanDiff::new(&planned(&one), &planned(&other));
    assert!(!diff.same_region_order() && diff.same_component_regions());
    let mut other = one.clone();
    other.edges[1].kind = EdgeKind::Delay;
    other.loops.clear();
    let diff = PlanDiff::new(&planned(&one), &planned(&other));
    assert!(!diff.same_region_order() && !diff.same_component_regions());
    let json = diff.to_json();
    assert_eq!(json["left_region_order"], serde_json::json!(["source", "sink", "l"]));
    assert_eq!(json["right_component_regions"]["a"], "a");
    assert_eq!(
        diff.to_string(),
        "\
region order: different
  left   source, sink, l
  right  source, sink, a, b
component regions: different
  - a in l
  - b in l
  + a in a
  + b in b
"
    );
}
