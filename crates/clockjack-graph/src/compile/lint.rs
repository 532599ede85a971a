//! Reports suspicious but valid parts of a graph. Apart from the errors that the checks have found,
//! no finding prevents a graph from running.

mod loss;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    describe::{EdgeKind, EdgeOverflow, EdgeSpec, GraphSpec, LaneSpec, LaneType},
    diagnostic::{Code, Diagnostic, Severity},
};

/// A capacity above this is probably a mistake.
const CAPACITY_MAX: u32 = 1024;

/// A suspicious part of a graph, or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity of the finding.
    pub severity: Severity,
    /// The rule: the code of an error, or a name of its own.
    pub rule: &'static str,
    /// The message: one sentence in lower case that includes the values.
    pub message: String,
    /// The id of the component or edge, or the path in the graph.
    pub id: String,
}

impl Finding {
    /// The finding as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "severity": self.severity.name(),
            "rule": self.rule,
            "message": self.message,
            "id": self.id,
        })
    }
}

/// All errors of a graph, followed by the suspicious parts in the order of the description.
#[must_use]
pub fn lint(spec: &GraphSpec, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = diagnostics
        .iter()
        .filter(|one| one.is_error())
        .map(|one| Finding {
            severity: Severity::Error,
            rule: one.code.name(),
            message: one.message.clone(),
            id: one.path.clone(),
        })
        .collect();
    let lanes: BTreeMap<&str, &LaneSpec> = spec.lanes.iter().map(|one| (&*one.id, one)).collect();
    let lane_of: BTreeMap<&str, &LaneSpec> = spec
        .components
        .iter()
        .filter_map(|one| Some((&*one.id, *lanes.get(&*one.execution.lane)?)))
        .collect();
    for edge in &spec.edges {
        let (producer, _) = EdgeSpec::split(&edge.from);
        lint_edge(edge, lane_of.get(producer).copied(), &mut findings);
    }
    for one in diagnostics {
        let (rule, id) = match (one.code, one.severity) {
            (Code::MultiStateWriter, _) => ("state_multiple_writers", one.edges.last()),
            (code, Severity::Warning) => {
                (code.name(), one.edges.first().or_else(|| one.components.first()))
            }
            // Errors come first; what is only information is not suspicious.
            (_, Severity::Error | Severity::Info | Severity::Advisory) => continue,
        };
        let id = id.unwrap_or(&one.path);
        if !findings.iter().any(|known| known.id == *id && covers(known.rule, one.code)) {
            findings.push(Finding {
                severity: Severity::Warning,
                rule,
                message: one.message.clone(),
                id: id.clone(),
            });
        }
    }
    for component in &spec.components {
        let Some(lane) = lane_of.get(&*component.id) else { continue };
        let (budget_ms, period_ns) = (component.execution.budget_ms, lane.period_ns());
        let is_paced = lane.lane_type == LaneType::FixedRate && period_ns > 0;
        if is_paced && budget_ms.saturating_mul(1_000_000) > period_ns {
            let (whole, rest) = (period_ns / 1_000_000, period_ns % 1_000_000 / 1_000);
            findings.push(Finding {
                severity: Severity::Warning,
                rule: "budget_exceeds_lane_period",
                message: format!(
                    "a budget of {budget_ms} ms exceeds the period of {whole}.{rest:03} ms of \
                     the lane `{}`",
                    lane.id
                ),
                id: component.id.clone(),
            });
        }
    }
    loss::lint(spec, &lane_of, &mut findings);
    findings
}

/// Whether a rule of the linter says more about an edge than this warning.
fn covers(rule: &str, code: Code) -> bool {
    match code {
        Code::BackpressureRisk => rule == "blocking_overflow_event_loop",
        Code::HighQueueDepthLatencyRisk => rule == "suspicious_capacity",
        _ => false,
    }
}

fn lint_edge(edge: &EdgeSpec, lane: Option<&LaneSpec>, findings: &mut Vec<Finding>) {
    let policy = &edge.policy;
    let mut add = |severity, rule, message: String| {
        findings.push(Finding { severity, rule, message, id: edge.id.clone() });
    };
    if policy.capacity > CAPACITY_MAX {
        let text = format!("a capacity of {} is more than {CAPACITY_MAX}", policy.capacity);
        add(Severity::Warning, "suspicious_capacity", text);
    }
    let is_event_loop = lane.is_some_and(|lane| lane.lane_type == LaneType::EventLoop);
    if policy.overflow == EdgeOverflow::Block && is_event_loop {
        let text = format!("a full channel blocks `{}` on an event loop", edge.from);
        add(Severity::Warning, "blocking_overflow_event_loop", text);
    }
    if edge.kind == EdgeKind::Async && policy.max_inflight == 0 && policy.capacity <= 1 {
        let text = "the edge keeps one completion at a time; others may be lost";
        add(Severity::Info, "async_capacity", text.into());
    }
    if edge.kind == EdgeKind::Delay {
        let text = "published values become visible in the next epoch";
        add(Severity::Info, "delay_epoch_boundary", text.into());
    }
}
