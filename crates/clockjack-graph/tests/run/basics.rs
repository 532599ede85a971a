//! Kinds of edges, triggers, failures.

use clockjack_graph::{RunOptions, StopReason};

use crate::parts::run;

const CHAIN: &str = "
schema_version: 1
graph: { name: chain }
lanes: { main: { type: event_loop } }
components:
  - { id: src, type: count, execution: { lane: main }, boundary: { role: input } }
  - id: twice
    type: add
    event_sources: [{ type: message, input: a }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    config: { k: 2.0 }
  - id: out
    type: keep
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - { id: e1, kind: immediate, from: src.out, to: twice.a }
  - { id: e2, kind: KIND, from: twice.out, to: out.in }
";

#[test]
fn an_immediate_edge_is_seen_in_its_epoch() {
    let ran = run(&CHAIN.replace("KIND", "immediate"), RunOptions::steps(3));
    assert_eq!(ran.at("out"), [(1, 2.0), (2, 4.0), (3, 6.0)]);
    let report = ran.result.expect("nothing fails");
    assert_eq!((report.epochs, report.executions), (3, 9));
    assert_eq!(report.stop, StopReason::TickBound);
}

#[test]
fn a_delay_a_state_and_an_async_edge_are_seen_an_epoch_later() {
    for kind in ["delay", "state", "async"] {
        let ran = run(&CHAIN.replace("KIND", kind), RunOptions::steps(3));
        assert_eq!(ran.at("out"), [(2, 2.0), (3, 4.0)], "{kind}");
    }
}
