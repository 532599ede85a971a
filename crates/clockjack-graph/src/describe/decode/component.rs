//! `components[]` and what is below.

use std::borrow::Cow;

use super::{config, items, not_taken, pick, set, some_text};
use crate::describe::{
    fields::{self, Field},
    reader::{Reader, Step},
    spec::{
        BoundaryRole, BoundarySpec, ComponentSpec, Condition, ErrorPolicy, ErrorPolicySpec,
        EventSourceSpec, ExecutionSpec, Marks, Priority, SourceType, TriggerSpec, TriggerType,
    },
    tree::{Node, What},
};

/// A component, unless it has no id.
pub(super) fn one<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Option<ComponentSpec> {
    let mut one = ComponentSpec::default();
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let mut below = Marks::default();
    reader.section(&fields::COMPONENT, node, &mut marks, |reader, field, value| match field.name {
        "id" => set(&mut one.id, reader.qualified_id(value)),
        "type" => set(&mut one.component_type, reader.label(value)),
        "event_sources" => one.event_sources = event_sources(reader, field, value),
        "trigger_policy" => one.trigger = trigger(reader, value, &mut below),
        "execution" => one.execution = execution(reader, value, &mut below),
        "depends_on" => one.depends_on = reader.qualified_ids(field, value),
        "boundary" => one.boundary = boundary(reader, value, &mut below),
        "config" => one.config = config::map(reader, value),
        _ => not_taken(field),
    });
    if one.event_sources.is_empty() {
        one.event_sources = vec![EventSourceSpec::default()];
    }
    marks.fields.append(&mut below.fields);
    one.marks = marks;
    (!one.id.is_empty()).then_some(one)
}

fn event_sources<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t Node<'t>,
) -> Vec<EventSourceSpec> {
    let items = items(reader, field, node);
    let mut sources = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let source = reader.below(Step::Item(index, item), |reader| event_source(reader, item));
        sources.push(source);
    }
    sources
}

fn event_source<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> EventSourceSpec {
    let mut source = EventSourceSpec::default();
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let mut input = None;
    reader.section(&fields::EVENT_SOURCE, node, &mut marks, |reader, field, value| {
        match field.name {
            "id" => source.id = reader.id(value).map(Cow::into_owned),
            "type" => pick(&mut source.source_type, SourceType::ALL, reader.name(field, value)),
            "inputs" => source.inputs = owned(reader.ids(field, value)),
            "input" => input = reader.id(value).map(Cow::into_owned),
            "period_ms" => set(&mut source.period_ms, reader.millis(field, value)),
            "phase_ms" => set(&mut source.phase_ms, reader.millis(field, value)),
            _ => not_taken(field),
        }
    });
    add_input(&mut source.inputs, input);
    source.marks = marks;
    source
}

/// The shorthand for one input.
fn add_input(inputs: &mut Vec<String>, input: Option<String>) {
    if let Some(input) = input
        && !inputs.contains(&input)
    {
        inputs.push(input);
    }
}

fn owned(ids: Vec<Cow<'_, str>>) -> Vec<String> {
    ids.into_iter().map(Cow::into_owned).collect()
}

fn trigger<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>, below: &mut Marks) -> TriggerSpec {
    let mut one = TriggerSpec::default();
    let mut marks = Marks::default();
    let mut input = None;
    reader.section(&fields::TRIGGER, node, &mut marks, |reader, field, value| match field.name {
        "type" => pick(&mut one.trigger_type, TriggerType::ALL, reader.name(field, value)),
        "inputs" => one.inputs = owned(reader.ids(field, value)),
        "input" => input = reader.id(value).map(Cow::into_owned),
        "batch_size" => set(&mut one.batch_size, reader.count(field, value)),
        "batch_window_ms" => set(&mut one.batch_window_ms, reader.millis(field, value)),
        "sync_slop_ms" => set(&mut one.sync_slop_ms, reader.millis(field, value)),
        "min_interval_ms" => set(&mut one.min_interval_ms, reader.millis(field, value)),
        "max_latency_ms" => set(&mut one.max_latency_ms, reader.millis(field, value)),
        "watermark_lateness_ms" => {
            set(&mut one.watermark_lateness_ms, reader.millis(field, value));
        }
        "debounce_window_ms" => set(&mut one.debounce_window_ms, reader.millis(field, value)),
        "condition" => pick(&mut one.condition, Condition::ALL, reader.name(field, value)),
        "coalesce" => set(&mut one.coalesce, reader.bool(value)),
        _ => not_taken(field),
    });
    add_input(&mut one.inputs, input);
    // The trigger's own marks are without the name of its field, those of the component with it.
    const PREFIX: usize = "trigger_policy.".len();
    one.marks.item = node.span;
    one.marks.fields = marks.fields.iter().map(|(name, span)| (&name[PREFIX..], *span)).collect();
    below.fields.append(&mut marks.fields);
    one
}

fn execution<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>, below: &mut Marks) -> ExecutionSpec {
    let mut one = ExecutionSpec::default();
    let mut deeper = Marks::default();
    reader.section(&fields::EXECUTION, node, below, |reader, field, value| match field.name {
        "lane" => set(&mut one.lane, reader.id(value).map(|id| (*id).to_owned())),
        "reentrant" => set(&mut one.reentrant, reader.bool(value)),
        "priority" => pick(&mut one.priority, Priority::ALL, reader.name(field, value)),
        "budget_ms" => set(&mut one.budget_ms, reader.millis(field, value)),
        "on_error" => one.on_error = on_error(reader, field, value, &mut deeper),
        "burst" => set(&mut one.burst, reader.count(field, value)),
        _ => not_taken(field),
    });
    below.fields.append(&mut deeper.fields);
    one
}

fn on_error<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t Node<'t>,
    below: &mut Marks,
) -> ErrorPolicySpec {
    let mut one = ErrorPolicySpec::default();
    if !matches!(node.what, What::Map { .. }) {
        pick(&mut one.policy, ErrorPolicy::ALL, reader.name(field, node));
        return one;
    }
    reader.section(&fields::ON_ERROR, node, below, |reader, field, value| match field.name {
        "policy" => pick(&mut one.policy, ErrorPolicy::ALL, reader.name(field, value)),
        "max_restarts" => set(&mut one.max_restarts, reader.count(field, value)),
        "within_ms" => set(&mut one.within_ms, reader.millis(field, value)),
        "backoff_ms" => set(&mut one.backoff_ms, reader.millis(field, value)),
        "backoff_max_ms" => set(&mut one.backoff_max_ms, reader.millis(field, value)),
        _ => not_taken(field),
    });
    one
}

fn boundary<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>, below: &mut Marks) -> BoundarySpec {
    let mut one = BoundarySpec::default();
    reader.section(&fields::BOUNDARY, node, below, |reader, field, value| match field.name {
        "role" => pick(&mut one.role, BoundaryRole::ALL, reader.name(field, value)),
        "descriptor" => set(&mut one.descriptor, some_text(reader, value)),
        _ => not_taken(field),
    });
    one
}
