//! Kinds of edges, triggers, failures.

use clockjack_graph::{RunOptions, RunStopReason};

use crate::parts::run;

pub(crate) const CHAIN: &str = "
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
    assert_eq!(report.stop, RunStopReason::TickBound);
}

#[test]
fn a_delay_a_state_and_an_async_edge_are_seen_an_epoch_later() {
    for kind in ["delay", "state", "async"] {
        let ran = run(&CHAIN.replace("KIND", kind), RunOptions::steps(3));
        assert_eq!(ran.at("out"), [(2, 2.0), (3, 4.0)], "{kind}");
    }
}

const WIDE: &str = "
schema_version: 1
graph: { name: wide }
lanes: { main: { type: event_loop }, pool: { type: thread_pool, max_threads: 4 } }
components:
  - { id: src, type: count, execution: { lane: main }, boundary: { role: input } }
  - id: a
    type: add
    event_sources: [{ type: message, input: a }]
    trigger_policy: { type: any_input }
    execution: { lane: pool }
  - id: b
    type: add
    event_sources: [{ type: message, input: a }]
    trigger_policy: { type: any_input }
    execution: { lane: pool }
  - id: out
    type: keep
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - { id: e1, kind: immediate, from: src.out, to: a.a }
  - { id: e2, kind: immediate, from: src.out, to: b.a }
  - { id: e3, kind: immediate, from: a.out, to: out.in, policy: { mode: queue, capacity: 4 } }
  - { id: e4, kind: immediate, from: b.out, to: out.in, policy: { mode: queue, capacity: 4 } }
";

#[test]
fn helpers_give_the_log_of_one_thread() {
    let alone = run(WIDE, RunOptions::steps(50));
    let together = crate::parts::run_on_pool(WIDE, RunOptions::steps(50), 3);
    assert_eq!(alone.log, together.log);
    assert_eq!(alone.seen, together.seen);
    assert_eq!(alone.at("out").len(), 100);
    assert_eq!(together.result.expect("nothing fails").executions, 250);
}

#[test]
fn a_failure_is_told_with_who_and_when() {
    let text = CHAIN.replace("KIND", "immediate").replace("k: 2.0", "k: 2.0, fails_at: 2.0");
    let ran = run(&text, RunOptions::steps(5));
    let error = ran.result.expect_err("it is told to fail");
    assert_eq!(error.to_string(), "`twice` failed in execute, epoch 2: told to fail");
    assert_eq!(ran.seen.len(), 1, "what a failed call has published is not seen");
}

#[test]
fn a_component_with_one_required_input_needs_no_trigger_in_its_file() {
    let long = CHAIN.replace("KIND", "immediate");
    let stated: Vec<&str> = long
        .lines()
        .filter(|line| !line.contains("event_sources") && !line.contains("trigger_policy"))
        .collect();
    let short = stated.join("\n");
    let options = || RunOptions::steps(3);
    assert_eq!(run(&short, options()).at("out"), run(&long, options()).at("out"));
    let calls = |text: &str| run(text, options()).result.expect("nothing fails").executions;
    assert_eq!(calls(&short), 9);
    // The message of an async edge arrives an epoch later; its reader is not called before that.
    assert_eq!(calls(&short.replace("e2, kind: immediate", "e2, kind: async")), 8);
    // A delay edge closes cycles, so its reader is called at each tick, also without a message.
    let later = short.replace("e2, kind: immediate", "e2, kind: delay");
    assert_eq!(calls(&later), 9);
    let stated = long.replace("e2, kind: immediate", "e2, kind: delay");
    assert_eq!(calls(&stated), 8, "the last one is called for two messages");
}
