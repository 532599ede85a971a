//! Rules of the contract beyond the first one of each code, with the location of the diagnostic,
//! and what is deliberately accepted.

use super::*;
use crate::{
    describe::{
        ClockDomain, Condition, CopyPolicy, EdgeMode, EdgeOverflow, ErrorPolicy, OnPolicyError,
        OverrunPolicy, PartialSuccess, SourceText, TriggerType,
    },
    diagnostic::Fix,
};

type Change = fn(&mut GraphSpec);

/// An error of the smallest graph: its code, its location, and the change of the graph.
const FAULTS: &[(Code, &str, Change)] = &[
    (Code::InvalidChannelPolicy, "edges.e.policy.overflow", |graph| {
        graph.edges[0].policy.overflow = EdgeOverflow::DropNewest;
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.overflow", |graph| {
        graph.edges[0].policy.mode = EdgeMode::PreviousTick;
        graph.edges[0].policy.overflow = EdgeOverflow::Block;
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.max_inflight", |graph| {
        graph.edges[0].policy.max_inflight = 1;
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.allow_drop", |graph| {
        graph.edges[0].policy.allow_drop = false;
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.allow_drop", |graph| {
        let policy = &mut graph.edges[0].policy;
        (policy.allow_drop, policy.mode, policy.overflow) =
            (false, EdgeMode::Queue, EdgeOverflow::DropNewest);
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.allow_drop", |graph| {
        let policy = &mut graph.edges[0].policy;
        (policy.allow_drop, policy.mode, policy.overflow) =
            (false, EdgeMode::Queue, EdgeOverflow::Reject);
        policy.lifespan_ms = 5;
    }),
    (Code::InvalidChannelPolicy, "edges.e.policy.capacity", |graph| {
        let policy = &mut graph.edges[0].policy;
        (policy.capacity, policy.mode, policy.overflow) = (2, EdgeMode::Queue, EdgeOverflow::Block);
        graph.components[0].execution.burst = 3;
    }),
    (Code::InvalidMoveOnlyMultireader, "edges.e.policy.copy_policy", |graph| {
        graph.edges[0].policy.copy_policy = CopyPolicy::MoveOnly;
        graph.edge("f", EdgeKind::Delay, "source.out", "sink.in");
    }),
    (Code::BlockingCycle, "edges.s.policy.overflow", |graph| {
        graph.add("m", "mid");
        let policy = &mut graph.edge("s", EdgeKind::Async, "m.out", "m.in").policy;
        (policy.mode, policy.overflow) = (EdgeMode::Queue, EdgeOverflow::Block);
    }),
    (Code::InvalidLanePolicy, "lanes.main.hz", |graph| {
        (graph.lanes[0].lane_type, graph.lanes[0].hz) = (LaneType::FixedRate, -1.0);
    }),
    (Code::InvalidLanePolicy, "lanes.main.wall_clock_enabled", |graph| {
        (graph.lanes[0].lane_type, graph.lanes[0].wall_clock_enabled) = (LaneType::FixedRate, true);
    }),
    (Code::InvalidLanePolicy, "lanes.main.rt_policy", |graph| {
        graph.lanes[0].lane_type = LaneType::IsolatedThread;
        graph.lanes[0].rt_policy = "hard".into();
    }),
    (Code::InvalidLanePolicy, "lanes.main.rt_priority", |graph| {
        graph.lanes[0].lane_type = LaneType::IsolatedThread;
        graph.lanes[0].rt_policy = "fifo".into();
    }),
    (Code::InvalidLanePolicy, "lanes.main.nice_priority", |graph| {
        graph.lanes[0].nice_priority = -21;
    }),
    (Code::InvalidEventSource, "components.sink.event_sources[0]", |graph| {
        graph.on_messages(1, SourceType::Message).event_sources[0].inputs.clear();
    }),
    (Code::InvalidEventSource, "components.sink.event_sources[0]", |graph| {
        graph.components[1].event_sources.clear();
    }),
    (Code::InvalidEventSource, "components.sink.event_sources[0]", |graph| {
        graph.on_messages(1, SourceType::Manual);
    }),
    (Code::InvalidEventSource, "components.sink.event_sources[1]", |graph| {
        graph.on_messages(1, SourceType::Message).event_sources.push(EventSourceSpec {
            source_type: SourceType::Timer,
            period_ms: 5,
            ..EventSourceSpec::default()
        });
    }),
    (Code::InvalidTriggerPolicy, "components.sink.trigger_policy.type", |graph| {
        let sink = graph.on_messages(1, SourceType::Message);
        sink.trigger.trigger_type = TriggerType::RateLimit;
    }),
    (Code::InvalidTriggerPolicy, "components.sink.trigger_policy.debounce_window_ms", |graph| {
        let sink = graph.on_messages(1, SourceType::Message);
        (sink.trigger.trigger_type, sink.trigger.debounce_window_ms) = (TriggerType::Debounce, 1);
    }),
    (Code::InvalidTriggerPolicy, "components.sink.trigger_policy.inputs", |graph| {
        let sink = graph.on_messages(1, SourceType::Message);
        sink.trigger.trigger_type = TriggerType::AllInputs;
        sink.trigger.inputs = vec!["in".into(), "in".into()];
    }),
    (Code::InvalidTriggerPolicy, "components.sink.trigger_policy", |graph| {
        let sink = graph.on_messages(1, SourceType::Request);
        sink.event_sources[0].inputs.clear();
        sink.trigger.trigger_type = TriggerType::Request;
    }),
    (Code::TriggerMissingInput, "components.sink.event_sources.inputs", |graph| {
        graph.on_messages(1, SourceType::Message).event_sources[0].inputs = vec!["inn".into()];
    }),
    (Code::IncompatibleTriggerEdgeMode, "components.sink.event_sources.inputs", |graph| {
        graph.on_messages(1, SourceType::FutureReady).trigger.trigger_type = TriggerType::AnyInput;
    }),
    (Code::UnknownComponent, "composite_loops.l.components", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "bb"]);
    }),
    (Code::UnknownComponent, "components.sink.depends_on", |graph| {
        graph.components[1].depends_on = vec!["nobody".into()];
    }),
    (Code::DuplicateId, "components.sink.depends_on", |graph| {
        graph.components[1].depends_on = vec!["source".into(), "source".into()];
    }),
    (Code::DuplicateId, "components.source", |graph| {
        graph.add("source", "source");
    }),
    (Code::DuplicateId, "lanes.main", |graph| graph.lanes.push(graph.lanes[0].clone())),
    (Code::DependencyCycle, "components.sink.depends_on", |graph| {
        graph.components[1].depends_on = vec!["sink".into()];
    }),
    (Code::InvalidLoopPolicy, "composite_loops.l.components", |graph| {
        *graph = ring(&["a", "b"]);
        graph.lanes.push(LaneSpec::new("other", LaneType::ThreadPool));
        graph.components[1].execution.lane = "other".into();
        graph.own("l", &["a", "b"]);
    }),
    (Code::InvalidLoopPolicy, "composite_loops.m.components", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b"]);
        graph.own("m", &["b", "a"]);
    }),
    (Code::InvalidLoopPolicy, "composite_loops.l.components", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b", "a"]);
    }),
    (Code::InvalidLoopPolicy, "composite_loops.l.loop_policy.residual_threshold", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b"]).residual_threshold = Some(-0.5);
    }),
    (Code::PartialCompositeLoop, "composite_loops.l.components", |graph| {
        *graph = ring(&["a", "b"]);
        graph.add("c", "mid");
        graph.own("l", &["a", "b", "c"]);
    }),
    (Code::ImmediateCycleWithoutLoop, "edges.s", |graph| {
        graph.add("m", "mid");
        graph.edge("s", EdgeKind::Immediate, "m.out", "m.in");
    }),
    (Code::InvalidConfig, "components.set.config.gain", |graph| {
        graph.add("set", "set");
    }),
    (Code::InvalidConfig, "components.set.config.gain", |graph| {
        graph.add("set", "set").config = config(&[("gain", ConfigValue::Float(f64::NAN))]);
    }),
    (Code::InvalidConfig, "components.set.config.gain", |graph| {
        graph.add("set", "set").config = config(&[("gain", ConfigValue::Nested("[1]".into()))]);
    }),
    (Code::InvalidConfig, "components.set.config.count", |graph| {
        graph.add("set", "set").config =
            config(&[("gain", ConfigValue::Int(2)), ("count", ConfigValue::Float(1.5))]);
    }),
    (Code::InvalidConfig, "components.set.config.mode", |graph| {
        graph.add("set", "set").config =
            config(&[("gain", ConfigValue::Int(2)), ("mode", ConfigValue::Text("f".into()))]);
    }),
    (Code::InvalidConfig, "graph.config.emit_health_events", |graph| {
        graph.config = config(&[("emit_health_events", ConfigValue::Int(1))]);
    }),
    (Code::InvalidIdentifier, "graph.name", |graph| graph.name.clear()),
];

#[test]
fn each_rule_is_told_once_and_at_its_field() {
    for (at, (code, path, change)) in FAULTS.iter().enumerate() {
        let mut graph = pair();
        change(&mut graph);
        assert_eq!(errors(&graph), [(*code, (*path).into())], "case {at}");
    }
}

/// Fields without effect: the location, and the change of the smallest graph.
const ADVICE: &[(&str, Change)] = &[
    ("graph.clock.event_domain", |graph| graph.event_domain = ClockDomain::Device),
    ("graph.config.emit_health_event", |graph| {
        let no = ConfigValue::Bool(false);
        graph.config.entries.push(("emit_health_event".into(), no, Span::NONE));
    }),
    ("lanes.main.hz", |graph| graph.lanes[0].hz = 5.0),
    ("lanes.main.period_ms", |graph| graph.lanes[0].period_ms = 5),
    ("lanes.main.tick_budget_ms", |graph| graph.lanes[0].tick_budget_ms = 5),
    ("lanes.main.wall_clock_enabled", |graph| graph.lanes[0].wall_clock_enabled = true),
    ("lanes.main.overrun_policy", |graph| {
        graph.lanes[0].overrun_policy = OverrunPolicy::SkipNext;
    }),
    ("lanes.main.max_threads", |graph| graph.lanes[0].max_threads = 2),
    ("lanes.main.queue_capacity", |graph| graph.lanes[0].queue_capacity = 2),
    ("lanes.main.overflow", |graph| {
        graph.lanes[0].overflow = crate::describe::LaneOverflow::FailFast;
    }),
    ("lanes.main.aging_picks", |graph| graph.lanes[0].aging_picks = 2),
    ("lanes.main.thread_name", |graph| graph.lanes[0].thread_name = Some("x".into())),
    ("lanes.main.cpu_affinity", |graph| graph.lanes[0].cpu_affinity = vec![1]),
    ("lanes.main.nice_priority", |graph| graph.lanes[0].nice_priority = 1),
    ("lanes.main.rt_priority", |graph| graph.lanes[0].rt_priority = 1),
    ("lanes.main.isolation_intent", |graph| graph.lanes[0].isolation_intent = "core".into()),
    ("lanes.main.on_policy_error", |graph| {
        graph.lanes[0].on_policy_error = OnPolicyError::Fail;
    }),
    ("edges.e.policy.preserve_order", |graph| graph.edges[0].policy.preserve_order = false),
    ("edges.e.policy.capacity", |graph| graph.edges[0].policy.capacity = 2),
    ("edges.e.policy.copy_policy", |graph| {
        graph.edges[0].policy.copy_policy = CopyPolicy::LoanedView;
    }),
    ("edges.e.policy.timestamp_domain", |graph| {
        graph.edges[0].policy.timestamp_domain = ClockDomain::Device;
    }),
    ("components.source.execution.on_error", |graph| {
        graph.components[0].execution.on_error.backoff_ms = 1;
    }),
    ("components.source.execution.reentrant", |graph| {
        graph.components[0].component_type = "shared".into();
        graph.components[0].boundary.role = BoundaryRole::Input;
        graph.components[0].execution.reentrant = true;
    }),
    ("components.source.event_sources[0].phase_ms", |graph| {
        graph.components[0].event_sources[0].phase_ms = 1;
    }),
    ("components.source.trigger_policy.batch_size", |graph| {
        graph.components[0].trigger.batch_size = 1;
    }),
    ("components.source.trigger_policy.condition", |graph| {
        graph.components[0].trigger.condition = Condition::AnyInputReady;
    }),
    ("composite_loops.l.loop_policy.drop_policy", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b"]).drop_policy = Some("x".into());
    }),
    ("composite_loops.l.loop_policy.partial_success", |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b"]).partial_success = Some(PartialSuccess::FailRun);
    }),
];

#[test]
fn each_field_without_an_effect_is_told_and_the_graph_still_runs() {
    for (path, change) in ADVICE {
        let mut graph = pair();
        change(&mut graph);
        let plan = planned(&graph);
        let paths: Vec<&str> = plan.diagnostics.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, [*path]);
        let field = path.rsplit('.').next().unwrap();
        if path.starts_with("lanes.") {
            assert_eq!(plan.lanes[0].capabilities.advisory_fields, [field]);
        } else if path.starts_with("edges.") {
            assert_eq!(plan.edges[0].advisory_fields, [field]);
        }
    }
}

#[test]
fn what_a_thread_can_have_is_advice_where_there_is_none() {
    const OF_A_THREAD: [&str; 6] = [
        "thread_name",
        "cpu_affinity",
        "nice_priority",
        "rt_policy",
        "rt_priority",
        "on_policy_error",
    ];
    for lane_type in LaneType::ALL {
        for is_wall in [false, true] {
            let has_thread = *lane_type == LaneType::IsolatedThread
                || (*lane_type == LaneType::FixedRate && is_wall);
            let mut graph = pair();
            let lane = &mut graph.lanes[0];
            lane.lane_type = *lane_type;
            lane.wall_clock_enabled = is_wall && *lane_type == LaneType::FixedRate;
            lane.period_ms = if *lane_type == LaneType::FixedRate { 10 } else { 0 };
            (lane.cpu_affinity, lane.nice_priority) = (vec![0], 5);
            (lane.rt_policy, lane.rt_priority) = ("rr".into(), 10);
            (lane.thread_name, lane.on_policy_error) = (Some("own".into()), OnPolicyError::Fail);
            lane.max_callback_ms = 3;
            let plan = planned(&graph);
            let capabilities = &plan.lanes[0].capabilities;
            let advisory: &[&str] = if has_thread { &[] } else { &OF_A_THREAD };
            assert_eq!(capabilities.advisory_fields, advisory, "{lane_type}");
            assert_eq!(plan.diagnostics.len(), advisory.len());
            let does = |what: &str| capabilities.implemented.iter().any(|one| one == what);
            assert!(OF_A_THREAD.iter().all(|field| does(field) == has_thread), "{lane_type}");
            assert!(does("max_callback_ms"));
            let claims = &capabilities.unsupported_claims;
            let is_claimed = claims.iter().any(|one| one == "os_thread_policy");
            assert_eq!((does("own_thread"), is_claimed), (has_thread, !has_thread));
        }
    }
}

#[test]
fn a_priority_without_a_class_is_advice() {
    let mut graph = pair();
    let lane = &mut graph.lanes[0];
    (lane.lane_type, lane.rt_priority) = (LaneType::IsolatedThread, 4);
    assert_eq!(planned(&graph).lanes[0].capabilities.advisory_fields, ["rt_priority"]);
}

#[test]
fn what_comes_from_outside_needs_no_edge() {
    let mut graph = pair();
    graph.add("door", "need").boundary.role = BoundaryRole::Input;
    graph.on_messages(2, SourceType::Message).trigger.trigger_type = TriggerType::AnyInput;
    let plan = planned(&graph);
    assert_eq!(plan.diagnostics, []);
    assert_eq!(plan.components[2].trigger_inputs, [0]);
}

#[test]
fn a_component_of_an_unknown_type_causes_no_other_fault() {
    let mut graph = pair();
    graph.components[0].component_type = "unheard".into();
    graph.components[0].execution.reentrant = true;
    graph.components[0].execution.on_error.policy = ErrorPolicy::Restart;
    graph.components[0].config = config(&[("gain", ConfigValue::Int(1))]);
    graph.edge("f", EdgeKind::Delay, "sink.out", "source.reset");
    graph.components[1].component_type = "mid".into();
    assert_eq!(errors(&graph), [(Code::UnknownType, "components.source.type".into())]);
}

#[test]
fn an_open_type_takes_any_setting_and_null_is_as_if_left_out() {
    let mut graph = pair();
    graph.add("open", "open").config = config(&[("any", ConfigValue::Bool(true))]);
    graph.add("set", "set").config =
        config(&[("gain", ConfigValue::Int(2)), ("mode", ConfigValue::Null)]);
    assert_eq!(errors(&graph), []);
}

#[test]
fn domains_apart_may_be_joined_by_edges_that_wait_for_the_next_epoch() {
    let mut graph = pair();
    for id in ["fast", "slow"] {
        let mut lane = LaneSpec::new(id, LaneType::FixedRate);
        (lane.wall_clock_enabled, lane.hz) = (true, 100.0);
        graph.lanes.push(lane);
    }
    graph.components[0].execution.lane = "fast".into();
    graph.components[1].execution.lane = "slow".into();
    assert_eq!(errors(&graph), [(Code::ImmediateEdgeCrossesDomains, "edges.e.kind".into())]);
    graph.edges[0].kind = EdgeKind::State;
    let plan = planned(&graph);
    assert_eq!(plan.n_domains, 3);
    assert_eq!(plan.lanes.iter().map(|lane| lane.domain).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_slip_is_repaired_where_the_text_has_it_and_only_there() {
    let text = "to: sinc.in";
    let mut graph = pair();
    graph.source = Some(Arc::new(SourceText { name: "g".into(), text: text.into() }));
    graph.edges[0].to = "sinc.in".into();
    graph.edges[0].spans.fields = vec![("to", Span { start: 4, end: 11 })];
    let span = Span { start: 4, end: 11 };
    let found = findings(&graph).remove(0);
    assert_eq!(found.span, span);
    assert_eq!(found.help.as_deref(), Some("did you mean `sink`?"));
    assert_eq!(found.fix, Some(Fix { span, replacement: "sink.in".into() }));
    // The full name of an item in a template instance differs from its text.
    graph.edges[0].to = "cell.sinc.in".into();
    graph.components[1].id = "cell.sink".into();
    let found = findings(&graph).remove(0);
    assert_eq!((found.help.is_some(), found.fix), (true, None));
}

#[test]
fn findings_come_in_the_order_of_the_text() {
    let mut graph = pair();
    graph.edges[0].policy.capacity = 0;
    graph.edges[0].spans.item = Span { start: 5, end: 6 };
    graph.components[0].execution.lane = "x".into();
    graph.components[0].spans.item = Span { start: 9, end: 12 };
    graph.lanes[0].priority = 1;
    graph.lanes[0].spans.item = Span { start: 20, end: 22 };
    let starts: Vec<u32> = findings(&graph).iter().map(|one| one.span.start).collect();
    assert_eq!(starts, [5, 9, 20]);
}
