//! `edges[]` and `composite_loops[]`.

use super::{not_taken, pick, set, some_text};
use crate::describe::{
    fields,
    reader::Reader,
    spec::{
        Convergence, CopyPolicy, Domain, EdgeKind, EdgePolicy, EdgeSpec, LoopMode, LoopSpec,
        LoopType, Marks, Mode, Overflow, Owner, PartialSuccess, Readers,
    },
    tree::Node,
};

/// An edge, unless it lacks its id, its kind or an end.
pub(super) fn one<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Option<EdgeSpec> {
    let (mut id, mut kind, mut from, mut to) = (None, None, None, None);
    let mut policy = EdgePolicy::default();
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let mut below = Marks::default();
    reader.section(&fields::EDGE, node, &mut marks, |reader, field, value| match field.name {
        "id" => id = reader.qualified_id(value),
        "kind" => kind = reader.name(field, value).map(|index| EdgeKind::ALL[index]),
        "from" => from = reader.endpoint(value),
        "to" => to = reader.endpoint(value),
        "policy" => self::policy(reader, value, &mut policy, &mut below),
        _ => not_taken(field),
    });
    marks.fields.append(&mut below.fields);
    // Without its ends and its kind an edge says nothing; without an id it still connects.
    Some(EdgeSpec { id: id?, kind: kind?, from: from?, to: to?, policy, marks })
}

fn policy<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    one: &mut EdgePolicy,
    below: &mut Marks,
) {
    reader.section(&fields::POLICY, node, below, |reader, field, value| match field.name {
        "mode" => pick(&mut one.mode, Mode::ALL, reader.name(field, value)),
        "capacity" => set(&mut one.capacity, reader.count(field, value)),
        "overflow" => pick(&mut one.overflow, Overflow::ALL, reader.name(field, value)),
        "lifespan_ms" => set(&mut one.lifespan_ms, reader.millis(field, value)),
        "deadline_ms" => set(&mut one.deadline_ms, reader.millis(field, value)),
        "max_inflight" => set(&mut one.max_inflight, reader.count(field, value)),
        "preserve_order" => set(&mut one.preserve_order, reader.bool(value)),
        "allow_drop" => set(&mut one.allow_drop, reader.bool(value)),
        "emit_health_events" => set(&mut one.emit_health_events, reader.bool(value)),
        "timestamp_domain" => {
            pick(&mut one.timestamp_domain, Domain::ALL, reader.name(field, value));
        }
        "copy_policy" => pick(&mut one.copy_policy, CopyPolicy::ALL, reader.name(field, value)),
        "owner" => pick(&mut one.owner, Owner::ALL, reader.name(field, value)),
        "readers" => pick(&mut one.readers, Readers::ALL, reader.name(field, value)),
        _ => not_taken(field),
    });
}

/// A loop, unless it has no id, no type or no components.
pub(super) fn loop_of<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Option<LoopSpec> {
    let mut one = LoopSpec::new("", LoopType::FixedPoint);
    let mut has_type = false;
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let mut below = Marks::default();
    reader.section(&fields::LOOP, node, &mut marks, |reader, field, value| match field.name {
        "id" => set(&mut one.id, reader.qualified_id(value)),
        "components" => one.components = reader.qualified_ids(field, value),
        "order" => one.order = reader.qualified_ids(field, value),
        "loop_policy" => has_type = loop_policy(reader, value, &mut one, &mut below),
        _ => not_taken(field),
    });
    marks.fields.append(&mut below.fields);
    one.marks = marks;
    (has_type && !one.id.is_empty() && !one.components.is_empty()).then_some(one)
}

/// Whether the type of the loop could be read.
fn loop_policy<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    one: &mut LoopSpec,
    below: &mut Marks,
) -> bool {
    let mut loop_type = None;
    reader.section(&fields::LOOP_POLICY, node, below, |reader, field, value| match field.name {
        "type" => loop_type = reader.name(field, value).map(|index| LoopType::ALL[index]),
        "max_iterations" => set(&mut one.max_iterations, reader.count(field, value)),
        "budget_ms" => set(&mut one.budget_ms, reader.millis(field, value)),
        "convergence" => {
            one.convergence = reader.name(field, value).map(|index| Convergence::ALL[index]);
        }
        "residual_threshold" => one.residual_threshold = reader.number(value),
        "partial_success" => {
            one.partial_success = reader.name(field, value).map(|index| PartialSuccess::ALL[index]);
        }
        "mode" => pick(&mut one.mode, LoopMode::ALL, reader.name(field, value)),
        "max_inflight" => set(&mut one.max_inflight, reader.count(field, value)),
        "drop_policy" => one.drop_policy = some_text(reader, value),
        "min_interval_ms" => set(&mut one.min_interval_ms, reader.millis(field, value)),
        _ => not_taken(field),
    });
    set(&mut one.loop_type, loop_type);
    loop_type.is_some()
}
