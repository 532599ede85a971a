//! One minimal graph per code that the compiler reports: it produces that code and no other.

use std::collections::BTreeSet;

use super::*;
use crate::{
    compile::lint::lint,
    describe::{CopyPolicy, EdgeMode, EdgeOverflow, ErrorPolicy, GraphKind, TriggerType},
    diagnostic::Severity,
};

type Change = fn(&mut GraphSpec);

/// Codes that only the loader can report, because a description cannot represent such an error.
const OF_THE_LOADER: &[Code] = &[
    Code::InvalidEncoding,
    Code::InvalidYaml,
    Code::LimitExceeded,
    Code::UnsupportedSchemaVersion,
    Code::UnknownField,
    Code::MissingField,
    Code::DuplicateKey,
    Code::WrongType,
    Code::InvalidValue,
    Code::UnknownTemplate,
    Code::InvalidTemplateParameter,
    Code::UnsupportedLaneType,
];

/// A change of the smallest graph that causes one error.
const CASES: &[(Code, Change)] = &[
    (Code::InvalidIdentifier, |graph| {
        graph.edges.push(EdgeSpec { to: "sink".into(), id: "f".into(), ..graph.edges[0].clone() })
    }),
    (Code::UnknownComponent, |graph| graph.edges[0].to = "sinc.in".into()),
    (Code::UnknownPort, |graph| graph.edges[0].to = "sink.inn".into()),
    (Code::UnknownLane, |graph| graph.components[0].execution.lane = "mian".into()),
    (Code::UnknownType, |graph| graph.components[1].component_type = "sinck".into()),
    (Code::DuplicateId, |graph| {
        graph.edge("e", EdgeKind::Immediate, "source.out", "sink.in");
    }),
    (Code::InvalidConfig, |graph| {
        graph.components[0].config = config(&[("gain", ConfigValue::Float(1.0))]);
    }),
    (Code::DependencyCycle, |graph| {
        graph.components[0].depends_on = vec!["sink".into()];
        graph.components[1].depends_on = vec!["source".into()];
    }),
    (Code::PayloadTypeMismatch, |graph| {
        graph.components[1].component_type = "text_sink".into();
    }),
    (Code::MissingRequiredInput, |graph| {
        graph.add("need", "need");
    }),
    (Code::OptionalInputUnconnected, |graph| {
        graph.add("lone", "sink");
    }),
    (Code::BoundaryRoleMismatch, |graph| {
        graph.add("gate", "gate");
    }),
    (Code::PortMultiplicityMismatch, |graph| {
        graph.components[1].component_type = "single".into();
        graph.edge("f", EdgeKind::Delay, "source.out", "sink.in");
    }),
    (Code::ImmediateCycleWithoutLoop, |graph| *graph = ring(&["a", "b"])),
    (Code::PartialCompositeLoop, |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a"]);
    }),
    (Code::DecorativeCompositeLoop, |graph| {
        graph.own("l", &["source", "sink"]);
    }),
    (Code::InvalidLoopPolicy, |graph| {
        *graph = ring(&["a", "b"]);
        graph.own("l", &["a", "b"]).order = vec!["b".into()];
    }),
    (Code::InvalidChain, |graph| graph.chain("source", "sink", 0)),
    (Code::UnconnectedChain, |graph| graph.chain("sink", "source", 5)),
    (Code::ChainCrossesClocks, |graph| {
        let mut lane = LaneSpec::new("fast", LaneType::FixedRate);
        (lane.wall_clock_enabled, lane.period_ms) = (true, 10);
        graph.lanes.push(lane);
        graph.components[0].execution.lane = "fast".into();
        graph.edges[0].kind = EdgeKind::State;
        graph.chain("source", "sink", 50);
    }),
    (Code::MultiStateWriter, |graph| {
        graph.edges[0].kind = EdgeKind::State;
        graph.edge("f", EdgeKind::State, "source.out", "sink.in");
    }),
    (Code::InvalidChannelPolicy, |graph| graph.edges[0].policy.capacity = 0),
    (Code::BlockingCycle, |graph| {
        *graph = ring(&["a", "b"]);
        for edge in &mut graph.edges {
            edge.kind = EdgeKind::Delay;
            edge.policy.mode = EdgeMode::Queue;
            edge.policy.overflow = EdgeOverflow::Block;
        }
    }),
    (Code::ImmediateEdgeCrossesDomains, |graph| {
        let mut lane = LaneSpec::new("fast", LaneType::FixedRate);
        (lane.wall_clock_enabled, lane.period_ms) = (true, 10);
        graph.lanes.push(lane);
        graph.components[0].execution.lane = "fast".into();
    }),
    (Code::InvalidMoveOnlyMultireader, |graph| {
        graph.edges[0].policy.copy_policy = CopyPolicy::MoveOnly;
        graph.add("other", "sink");
        graph.edge("f", EdgeKind::Immediate, "source.out", "other.in");
    }),
    (Code::InvalidLanePolicy, |graph| {
        graph.lanes[0].lane_type = LaneType::FixedRate;
        graph.lanes[0].hz = f64::NAN;
    }),
    (Code::UnsupportedErrorPolicy, |graph| {
        graph.add("once", "once").execution.on_error.policy = ErrorPolicy::Restart;
    }),
    (Code::NotReentrant, |graph| graph.components[0].execution.reentrant = true),
    (Code::InvalidEventSource, |graph| {
        graph.components[0].event_sources[0].source_type = SourceType::Timer;
    }),
    (Code::InvalidTriggerPolicy, |graph| {
        let sink = graph.on_messages(1, SourceType::Message);
        sink.trigger.trigger_type = TriggerType::Batch;
    }),
    (Code::TriggerMissingInput, |graph| {
        graph.edges.clear();
        graph.on_messages(1, SourceType::Message).trigger.trigger_type = TriggerType::AnyInput;
    }),
    (Code::IncompatibleTriggerEdgeMode, |graph| {
        graph.on_messages(1, SourceType::TaskReady).trigger.trigger_type = TriggerType::TaskReady;
    }),
    (Code::AdvisoryLaneFieldIgnored, |graph| graph.lanes[0].priority = 3),
    (Code::AdvisoryExecutionFieldIgnored, |graph| graph.components[0].execution.burst = 2),
    (Code::BackpressureRisk, |graph| {
        let policy = &mut graph.edges[0].policy;
        (policy.mode, policy.overflow) = (EdgeMode::Queue, EdgeOverflow::Block);
    }),
    (Code::HighQueueDepthLatencyRisk, |graph| {
        graph.edges[0].policy.mode = EdgeMode::Queue;
        graph.edges[0].policy.capacity = 257;
    }),
    (Code::LargePayloadCopy, |graph| {
        graph.components[0].component_type = "frame_source".into();
        graph.components[1].component_type = "frame_sink".into();
        graph.edges[0].policy.copy_policy = CopyPolicy::Copy;
    }),
    (Code::TriggerNeverReady, |graph| {
        graph.components[1].trigger.trigger_type = TriggerType::AnyInput;
    }),
    (Code::GraphValidationError, |graph| {
        graph.components.clear();
        graph.edges.clear();
    }),
];

#[test]
fn the_smallest_graph_has_no_finding() {
    assert_eq!(findings(&pair()), []);
}

#[test]
fn each_fault_gives_its_own_code_and_no_other() {
    for (code, change) in CASES {
        let mut graph = pair();
        change(&mut graph);
        let list = findings(&graph);
        // An error may come with advice; a warning or an advisory comes alone.
        let is_error = code.severity() == Severity::Error;
        let found: BTreeSet<Code> =
            list.iter().filter(|one| !is_error || one.is_error()).map(|one| one.code).collect();
        assert_eq!(found, BTreeSet::from([*code]), "{list:#?}");
        for one in &list {
            assert_eq!(one.severity, one.code.severity());
            assert!(!one.path.is_empty() && !one.message.is_empty(), "{one:?}");
            assert!(!one.message.ends_with('.'), "{one:?}");
        }
    }
}

#[test]
fn the_linter_reports_every_warning_of_the_checks() {
    for (code, change) in CASES.iter().filter(|(code, _)| code.severity() == Severity::Warning) {
        let mut graph = pair();
        change(&mut graph);
        let found = lint(&graph, &findings(&graph));
        // A rule of the linter itself is more exact about a blocked producer.
        let rule = match code {
            Code::BackpressureRisk => "blocking_overflow_event_loop",
            code => code.name(),
        };
        let rules: Vec<&str> = found.iter().map(|one| one.rule).collect();
        assert_eq!(rules, [rule], "{code}");
        let ids =
            graph.edges.iter().map(|one| &one.id).chain(graph.components.iter().map(|c| &c.id));
        assert!(ids.into_iter().any(|id| *id == found[0].id), "{}", found[0].id);
    }
    let mut graph = pair();
    graph.lanes[0].lane_type = LaneType::ThreadPool;
    graph.edges[0].policy.mode = EdgeMode::Queue;
    graph.edges[0].policy.overflow = EdgeOverflow::Block;
    let found = lint(&graph, &findings(&graph));
    let found: Vec<_> = found.iter().map(|one| (one.rule, one.id.as_str())).collect();
    assert_eq!(found, [("backpressure_risk", "e")]);
}

#[test]
fn a_runnable_graph_of_a_registry_needs_both_boundaries() {
    let needs = Types { needs_boundaries: true };
    let mut graph = pair();
    let missing = |graph: &GraphSpec| {
        let (plan, list) = compile(graph, &needs);
        assert!(list.iter().all(|one| one.code == Code::MissingBoundary));
        (plan.is_some(), list.len())
    };
    assert_eq!(missing(&graph), (false, 2));
    graph.components[0].boundary.role = BoundaryRole::Input;
    assert_eq!(missing(&graph), (false, 1));
    graph.components[1].boundary.role = BoundaryRole::Output;
    assert_eq!(missing(&graph), (true, 0));
    graph.components[0].boundary.role = BoundaryRole::InputOutput;
    graph.components[1].boundary.role = BoundaryRole::Processing;
    assert_eq!(missing(&graph), (true, 0));
    graph.components[0].boundary.role = BoundaryRole::Processing;
    graph.kind = GraphKind::InternalTest;
    assert_eq!(missing(&graph), (true, 0));
}

#[test]
fn every_code_is_raised_here_or_is_the_loaders_or_reserved() {
    let mut all: Vec<Code> = CASES.iter().map(|(code, _)| *code).collect();
    all.push(Code::MissingBoundary);
    all.extend(OF_THE_LOADER);
    all.sort_unstable();
    assert_eq!(all, Code::ALL);
}

#[test]
fn all_faults_of_a_graph_are_told_at_once_and_each_once() {
    let mut graph = pair();
    graph.components[0].component_type = "sauce".into();
    graph.components[1].execution.lane = "mian".into();
    graph.edges[0].policy.capacity = 0;
    graph.lanes[0].nice_priority = 40;
    graph.add("x", "mid").depends_on = vec!["sourc".into()];
    graph.edge("loose", EdgeKind::Delay, "x.out", "sinc.in");
    let mut codes: Vec<Code> = errors(&graph).into_iter().map(|(code, _)| code).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [
            Code::UnknownComponent,
            Code::UnknownComponent,
            Code::UnknownLane,
            Code::UnknownType,
            Code::InvalidChannelPolicy,
            Code::InvalidLanePolicy,
        ]
    );
}
