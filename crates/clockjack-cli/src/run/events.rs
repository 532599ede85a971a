//! Trace records as JSON: the output of `trace --format ndjson` and the basis of the events of
//! `observe`.

use clockjack_graph::{
    compile::Plan,
    run::{TraceName, TraceRecord, trace::NONE},
};
use serde_json::{Value, json};

/// The schema version of the records.
pub(crate) const SCHEMA_VERSION: &str = "1";

/// A record with the names of the plan.
///
/// A trace id groups everything that one message caused: it is the id of that message. A record
/// without a causing message uses the id of its epoch. A transaction id is the number of a change
/// of settings; only the records of such changes have one.
pub(crate) fn event(plan: &Plan, record: &TraceRecord) -> Value {
    let causation = message_id(plan, record.message);
    let correlation = message_id(plan, record.correlation).or_else(|| causation.clone());
    let trace = correlation.clone().unwrap_or_else(|| format!("{}@{}", plan.name, record.epoch));
    let mut value = json!({
        "name": record.name.name(),
        "trace_id": trace,
        "phase": record.name.phase(),
        "severity": severity(record.name),
        "epoch_id": record.epoch,
        "worker_id": record.worker,
        "start_offset_ns": record.start_ns,
        "duration_ns": record.duration_ns,
    });
    let component = match plan.components.get(record.component as usize) {
        // A loop is identified by its own id.
        Some(one) if record.name.phase() == "loop" => Some(plan.regions[one.region].id.as_str()),
        one => one.map(|one| one.spec.id.as_str()),
    };
    let ids = [
        ("component_id", component),
        ("channel_id", id_of(&plan.edges, record.edge, |one| &one.id)),
        ("lane", id_of(&plan.lanes, record.lane, |one| &one.spec.id)),
        ("causation_id", causation.as_deref()),
        ("correlation_id", correlation.as_deref()),
    ];
    for (name, id) in ids {
        if let Some(id) = id {
            value[name] = id.into();
        }
    }
    if record.name.phase() == "config" {
        value["transaction_id"] = record.value.into();
    }
    value["attributes"] = attributes(record);
    value
}

/// Additional attributes, as strings.
fn attributes(record: &TraceRecord) -> Value {
    let mut attributes = json!({});
    let worker_ids: Vec<String> = record.worker_ids().map(|one| one.to_string()).collect();
    if !worker_ids.is_empty() {
        attributes["worker_ids"] = worker_ids.join(",").into();
    } else if record.value > 0 {
        attributes["value"] = record.value.to_string().into();
    }
    if let Some(kind) = record.health_kind() {
        attributes["health_kind"] = kind.name().into();
    }
    attributes
}

const fn severity(name: TraceName) -> &'static str {
    match name {
        TraceName::LoopError => "error",
        TraceName::FixedRateOverrun
        | TraceName::FixedRateSkippedTick
        | TraceName::ComponentTimeoutBudgetExceeded
        | TraceName::LoopBudgetOverrun
        | TraceName::LoopMaxIterationsHit
        | TraceName::LoopOutputDiscarded
        | TraceName::ConfigTransactionRollback
        | TraceName::HealthEvent => "warning",
        _ => "info",
    }
}

/// A message id: `edge#number`.
fn message_id(plan: &Plan, (edge_plus_one, seq): (u32, u64)) -> Option<String> {
    let edge = plan.edges.get(edge_plus_one.checked_sub(1)? as usize)?;
    Some(format!("{}#{seq}", edge.id))
}

/// The id of an item of the plan, if the record refers to one.
fn id_of<T>(list: &[T], index: u32, id: impl Fn(&T) -> &str) -> Option<&str> {
    if index == NONE { None } else { list.get(index as usize).map(id) }
}
