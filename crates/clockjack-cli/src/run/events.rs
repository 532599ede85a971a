//! Records of a trace as events for programs: what `trace --format ndjson` and `observe` print.

use clockjack_graph::compile::Plan;
use clockjack_graph::run::trace::NONE;
use clockjack_graph::run::{TraceName, TraceRecord};
use serde_json::{Value, json};

/// The version of these records.
pub(crate) const SCHEMA_VERSION: &str = "1";

/// A record with the names of the plan.
pub(crate) fn event(plan: &Plan, record: &TraceRecord) -> Value {
    let mut value = json!({
        "kind": record.name.name(),
        "phase": record.name.phase(),
        "severity": severity(record.name),
        "exactness": "exact",
        "epoch_id": record.epoch,
        "worker_id": record.worker,
        "mono_ns": record.start_ns,
        "duration_ns": record.duration_ns,
        "value": record.value,
    });
    let component = match plan.components.get(record.component as usize) {
        // A loop goes by its own id.
        Some(one) if record.name.phase() == "loop" => Some(plan.regions[one.region].id.as_str()),
        one => one.map(|one| one.spec.id.as_str()),
    };
    let ids = [
        ("component_id", component),
        ("channel_id", id_of(&plan.edges, record.edge, |one| &one.id)),
        ("lane", id_of(&plan.lanes, record.lane, |one| &one.spec.id)),
    ];
    for (name, id) in ids {
        if let Some(id) = id {
            value[name] = id.into();
        }
    }
    let worker_ids: Vec<u16> = record.worker_ids().collect();
    if !worker_ids.is_empty() {
        value["worker_ids"] = worker_ids.into();
        value["value"] = 0.into();
    }
    if let Some(kind) = record.health_kind() {
        value["health_kind"] = kind.name().into();
    }
    for (name, id) in [("causation_id", record.message), ("correlation_id", record.correlation)] {
        if let Some(id) = message_id(plan, id) {
            value[name] = id.into();
        }
    }
    value
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

/// A message as `edge#number`.
fn message_id(plan: &Plan, (edge_plus_one, seq): (u32, u64)) -> Option<String> {
    let edge = plan.edges.get(edge_plus_one.checked_sub(1)? as usize)?;
    Some(format!("{}#{seq}", edge.id))
}

/// The id of something of the plan, if a record is about one.
fn id_of<T>(list: &[T], index: u32, id: impl Fn(&T) -> &str) -> Option<&str> {
    if index == NONE { None } else { list.get(index as usize).map(id) }
}
