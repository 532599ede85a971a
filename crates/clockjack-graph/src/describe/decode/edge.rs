//! Decodes `edges[]` and `composite_loops[]`.

use super::{assign, assign_name, optional_text, unhandled};
use crate::describe::{
    fields,
    reader::Reader,
    spec::{
        Convergence, CopyPolicy, Domain, EdgeKind, EdgePolicy, EdgeSpec, FieldSpans, LoopMode,
        LoopSpec, LoopType, Mode, Overflow, Owner, PartialSuccess, Readers,
    },
    tree::YamlNode,
};

/// Decodes an edge, unless its id, its kind or an end is missing.
pub(super) fn edge<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> Option<EdgeSpec> {
    let (mut id, mut kind, mut from, mut to) = (None, None, None, None);
    let mut policy = EdgePolicy::default();
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let mut with_step = FieldSpans::default();
    reader.section(&fields::EDGE, node, &mut spans, |reader, field, value| match field.name {
        "id" => id = reader.qualified_id(value),
        "kind" => kind = reader.name(field, value).map(|index| EdgeKind::ALL[index]),
        "from" => from = reader.endpoint(value),
        "to" => to = reader.endpoint(value),
        "policy" => self::policy(reader, value, &mut policy, &mut with_step),
        _ => unhandled(field),
    });
    spans.fields.append(&mut with_step.fields);
    // An edge needs its id, its kind and both ends; otherwise it is left out.
    Some(EdgeSpec { id: id?, kind: kind?, from: from?, to: to?, policy, spans })
}

fn policy<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    one: &mut EdgePolicy,
    with_step: &mut FieldSpans,
) {
    reader.section(&fields::POLICY, node, with_step, |reader, field, value| match field.name {
        "mode" => assign_name(&mut one.mode, Mode::ALL, reader.name(field, value)),
        "capacity" => assign(&mut one.capacity, reader.count(field, value)),
        "overflow" => assign_name(&mut one.overflow, Overflow::ALL, reader.name(field, value)),
        "lifespan_ms" => assign(&mut one.lifespan_ms, reader.millis(field, value)),
        "deadline_ms" => assign(&mut one.deadline_ms, reader.millis(field, value)),
        "max_inflight" => assign(&mut one.max_inflight, reader.count(field, value)),
        "preserve_order" => assign(&mut one.preserve_order, reader.bool(value)),
        "allow_drop" => assign(&mut one.allow_drop, reader.bool(value)),
        "emit_health_events" => assign(&mut one.emit_health_events, reader.bool(value)),
        "timestamp_domain" => {
            assign_name(&mut one.timestamp_domain, Domain::ALL, reader.name(field, value));
        }
        "copy_policy" => {
            assign_name(&mut one.copy_policy, CopyPolicy::ALL, reader.name(field, value))
        }
        "owner" => assign_name(&mut one.owner, Owner::ALL, reader.name(field, value)),
        "readers" => assign_name(&mut one.readers, Readers::ALL, reader.name(field, value)),
        _ => unhandled(field),
    });
}

/// Decodes a loop, unless its id, its type or its components are missing.
pub(super) fn composite_loop<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
) -> Option<LoopSpec> {
    let mut one = LoopSpec::new("", LoopType::FixedPoint);
    let mut has_type = false;
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let mut with_step = FieldSpans::default();
    reader.section(&fields::LOOP, node, &mut spans, |reader, field, value| match field.name {
        "id" => assign(&mut one.id, reader.qualified_id(value)),
        "components" => one.components = reader.qualified_ids(field, value),
        "order" => one.order = reader.qualified_ids(field, value),
        "loop_policy" => has_type = loop_policy(reader, value, &mut one, &mut with_step),
        _ => unhandled(field),
    });
    spans.fields.append(&mut with_step.fields);
    one.spans = spans;
    (has_type && !one.id.is_empty() && !one.components.is_empty()).then_some(one)
}

/// Whether the type of the loop could be read.
fn loop_policy<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    one: &mut LoopSpec,
    with_step: &mut FieldSpans,
) -> bool {
    let mut loop_type = None;
    reader.section(&fields::LOOP_POLICY, node, with_step, |reader, field, value| {
        match field.name {
            "type" => loop_type = reader.name(field, value).map(|index| LoopType::ALL[index]),
            "max_iterations" => assign(&mut one.max_iterations, reader.count(field, value)),
            "budget_ms" => assign(&mut one.budget_ms, reader.millis(field, value)),
            "convergence" => {
                one.convergence = reader.name(field, value).map(|index| Convergence::ALL[index]);
            }
            "residual_threshold" => one.residual_threshold = reader.number(value),
            "partial_success" => {
                one.partial_success =
                    reader.name(field, value).map(|index| PartialSuccess::ALL[index]);
            }
            "mode" => assign_name(&mut one.mode, LoopMode::ALL, reader.name(field, value)),
            "max_inflight" => assign(&mut one.max_inflight, reader.count(field, value)),
            "drop_policy" => one.drop_policy = optional_text(reader, value),
            "min_interval_ms" => assign(&mut one.min_interval_ms, reader.millis(field, value)),
            _ => unhandled(field),
        }
    });
    assign(&mut one.loop_type, loop_type);
    loop_type.is_some()
}
