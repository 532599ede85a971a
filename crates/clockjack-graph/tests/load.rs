//! Graph files: what is read from them, and that every error is reported with its location.

#[path = "load/expand.rs"]
mod expand;
#[path = "load/faults.rs"]
mod faults;
#[path = "load/hostile.rs"]
mod hostile;
#[path = "load/limits.rs"]
mod limits;
#[path = "load/texts.rs"]
mod texts;

use clockjack_graph::describe::{
    ClockDomain, ComponentPriority, ConfigValue, Convergence, CopyPolicy, EdgeKind, EdgeMode,
    EdgeOverflow, ErrorPolicy, GraphFile, GraphKind, LaneOverflow, LaneType, LoopMode, LoopType,
    OnPolicyError, OverrunPolicy, PartialSuccess, ReadError, SourceType, TriggerType, json_schema,
};

use texts::{EVERYTHING, MINIMAL};

#[test]
fn what_is_not_written_has_the_defaults_of_the_schema() {
    let file = GraphFile::parse("minimal", MINIMAL).expect("it is right");
    let graph = file.spec();
    assert_eq!((graph.name.as_str(), graph.kind), ("tiny", GraphKind::Runnable));
    let lane = &graph.lanes[0];
    assert_eq!((lane.id.as_str(), lane.lane_type), ("main", LaneType::EventLoop));
    assert_eq!((lane.aging_picks, lane.rt_policy.as_str()), (64, "none"));
    let one = &graph.components[0];
    assert_eq!(one.event_sources.len(), 1);
    assert_eq!(one.event_sources[0].source_type, SourceType::Manual);
    assert_eq!(one.trigger.trigger_type, TriggerType::Manual);
    assert_eq!(one.execution.on_error.policy, ErrorPolicy::FailFast);
    let edge = &graph.edges[0];
    assert_eq!((edge.kind, edge.policy.capacity), (EdgeKind::Immediate, 1));
    assert!(edge.policy.allow_drop && edge.policy.preserve_order);
}

#[test]
fn every_field_of_a_lane_is_read() {
    let file = GraphFile::parse("everything", EVERYTHING).expect("it is right");
    let lane = &file.spec().lanes[0];
    assert_eq!(lane.lane_type, LaneType::FixedRate);
    assert_eq!((lane.hz, lane.period_ms, lane.tick_budget_ms), (99.5, 10, 8));
    assert!(lane.wall_clock_enabled);
    assert_eq!(lane.overrun_policy, OverrunPolicy::CatchUpOnce);
    assert_eq!((lane.max_threads, lane.queue_capacity), (4, 16));
    assert_eq!((lane.overflow, lane.aging_picks), (LaneOverflow::DropOldest, 7));
    assert_eq!((lane.max_callback_ms, lane.priority, lane.nice_priority), (5, -3, -5));
    assert_eq!(lane.thread_name.as_deref(), Some("fast"));
    assert_eq!(lane.cpu_affinity, [0, 2]);
    assert_eq!((lane.rt_policy.as_str(), lane.rt_priority), ("fifo", 50));
    assert_eq!(lane.isolation_intent, "dedicated");
    assert_eq!(lane.on_policy_error, OnPolicyError::Fail);
}

#[test]
fn every_field_of_a_component_is_read() {
    let file = GraphFile::parse("everything", EVERYTHING).expect("it is right");
    let one = &file.spec().components[0];
    assert_eq!((one.id.as_str(), one.component_type.as_str()), ("a", "actor:worker"));
    let source = &one.event_sources[0];
    assert_eq!((source.id.as_deref(), source.source_type), (Some("in"), SourceType::Message));
    assert_eq!(source.inputs, ["x", "y", "z"]);
    let timer = &one.event_sources[1];
    assert_eq!((timer.source_type, timer.period_ms, timer.phase_ms), (SourceType::Timer, 20, 5));
    let trigger = &one.trigger;
    assert_eq!((trigger.trigger_type, trigger.inputs.len()), (TriggerType::Batch, 2));
    let numbers = (trigger.batch_size, trigger.batch_window_ms, trigger.sync_slop_ms);
    assert_eq!(numbers, (3, 30, 2));
    let numbers = (trigger.min_interval_ms, trigger.max_latency_ms);
    assert_eq!((numbers, trigger.watermark_lateness_ms), ((1, 40), 9));
    assert!(trigger.coalesce);
    let execution = &one.execution;
    assert_eq!((execution.lane.as_str(), execution.reentrant), ("fast", true));
    assert_eq!(
        (execution.priority, execution.budget_ms, execution.burst),
        (ComponentPriority::High, 6, 2)
    );
    let on_error = execution.on_error;
    assert_eq!((on_error.policy, on_error.max_restarts), (ErrorPolicy::Restart, 4));
    assert_eq!((on_error.within_ms, on_error.backoff_ms, on_error.backoff_max_ms), (100, 10, 80));
    assert_eq!(one.depends_on, ["b"]);
    assert_eq!(one.boundary.descriptor, "left arm");
    assert_eq!(one.config.get("gain"), Some(&ConfigValue::Float(0.5)));
    assert_eq!(one.config.get("n"), Some(&ConfigValue::Int(-2)));
    assert_eq!(one.config.get("on"), Some(&ConfigValue::Bool(true)));
    assert_eq!(one.config.get("name"), Some(&ConfigValue::Text("12".into())));
    assert_eq!(one.config.get("none"), Some(&ConfigValue::Null));
    let nested = r#"{"list":[1,2.5,"a\"b",null],"deep":{"er":true}}"#;
    assert_eq!(one.config.get("map"), Some(&ConfigValue::Nested(nested.into())));
    let by_name = &file.spec().components[1].execution.on_error;
    assert_eq!((by_name.policy, by_name.max_restarts), (ErrorPolicy::Isolate, 10));
}

#[test]
fn every_field_of_an_edge_and_a_loop_is_read() {
    let file = GraphFile::parse("everything", EVERYTHING).expect("it is right");
    let graph = file.spec();
    assert_eq!((graph.kind, graph.event_domain), (GraphKind::InternalTest, ClockDomain::Device));
    assert_eq!(graph.config.get("emit_health_events"), Some(&ConfigValue::Bool(false)));
    let policy = &graph.edges[0].policy;
    assert_eq!(
        (policy.mode, policy.capacity, policy.overflow),
        (EdgeMode::Queue, 8, EdgeOverflow::Block)
    );
    assert_eq!((policy.lifespan_ms, policy.deadline_ms, policy.max_inflight), (70, 60, 5));
    assert_eq!(policy.max_silence_ms, 80);
    let chain = &graph.chains[0];
    assert_eq!((&*chain.id, &*chain.from, &*chain.to), ("whole", "a", "b"));
    assert_eq!((graph.chains.len(), chain.max_ms), (1, 90));
    assert!(!policy.preserve_order && !policy.allow_drop && !policy.emit_health_events);
    assert_eq!(policy.timestamp_domain, ClockDomain::External);
    assert_eq!(policy.copy_policy, CopyPolicy::SharedView);
    let one = &graph.loops[0];
    assert_eq!((one.id.as_str(), one.loop_type), ("loop", LoopType::SolverIteration));
    assert_eq!((&one.components, &one.order), (&vec!["a".into(), "b".into()], &vec!["b".into()]));
    assert_eq!((one.max_iterations, one.budget_ms), (20, 3));
    assert_eq!(one.convergence, Some(Convergence::StableState));
    assert_eq!(one.residual_threshold, Some(0.001));
    assert_eq!(one.partial_success, Some(PartialSuccess::FailRun));
    assert_eq!((one.mode, one.max_inflight, one.min_interval_ms), (LoopMode::Jacobi, 1, 2));
    assert_eq!(one.drop_policy.as_deref(), Some("oldest"));
}

#[test]
fn marks_say_where_fields_stand() {
    let file = GraphFile::parse("everything", EVERYTHING).expect("it is right");
    let graph = file.spec();
    let slice =
        |span: clockjack_graph::describe::Span| &EVERYTHING[span.start as usize..span.end as usize];
    assert_eq!(slice(graph.spans.get("graph.name")), "everything");
    assert_eq!(slice(graph.spans.get("graph.clock.event_domain")), "device");
    let one = &graph.components[0];
    assert_eq!(slice(one.spans.get("execution.lane")), "fast");
    assert_eq!(slice(one.spans.get("trigger_policy.batch_size")), "3");
    assert_eq!(slice(one.trigger.spans.get("batch_size")), "3");
    assert_eq!(slice(one.spans.get("execution.on_error.backoff_ms")), "10");
    assert_eq!(slice(one.event_sources[1].spans.get("phase_ms")), "5");
    assert_eq!(slice(one.config.entries[0].2), "0.5");
    assert_eq!(slice(graph.edges[0].spans.get("policy.capacity")), "8");
    assert_eq!(slice(graph.loops[0].spans.get("loop_policy.mode")), "jacobi");
    assert!(slice(graph.lanes[0].spans.item).starts_with("type: fixed_rate"));
    assert!(slice(graph.lanes[0].spans.item).ends_with("on_policy_error: fail"));
    assert_eq!(slice(graph.lanes[0].spans.get("id")), "fast");
}

/// The text with all fields contains every field of the schema, so the test above covers all of
/// them.
#[test]
fn the_text_with_everything_has_every_field_of_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).expect("it is JSON");
    let sections = schema["$defs"].as_object().expect("sections").values().chain([&schema]);
    for section in sections {
        for field in section["properties"].as_object().expect("a section").keys() {
            let there = format!("{field}:");
            assert!(EVERYTHING.contains(&there), "{field}");
        }
    }
}

#[test]
fn a_file_is_read_and_one_that_is_not_there_is_told() {
    let path = std::env::temp_dir().join(format!("clockjack-load-{}.yaml", std::process::id()));
    std::fs::write(&path, MINIMAL).expect("it can be written");
    let read = GraphFile::read(&path);
    std::fs::remove_file(&path).expect("it was just written");
    let file = read.expect("it is right");
    let source = file.spec().source.as_ref().expect("it has a text");
    assert_eq!((source.text.as_str(), source.name.as_str()), (MINIMAL, &*path.to_string_lossy()));
    let error = GraphFile::read(&path).expect_err("it is gone");
    assert!(matches!(&error, ReadError::Io { path: read, .. } if *read == path.to_string_lossy()));
    assert!(error.to_string().contains("cannot read"), "{error}");
}
