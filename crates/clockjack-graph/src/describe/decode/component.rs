//! Decodes `components[]` and its sections.

use std::borrow::Cow;

use super::{assign, assign_name, config, items, optional_text, unhandled};
use crate::describe::{
    fields::{self, Field},
    reader::{PathStep, Reader},
    spec::{
        BoundaryRole, BoundarySpec, ComponentSpec, Condition, ErrorPolicy, ErrorPolicySpec,
        EventSourceSpec, ExecutionSpec, FieldSpans, Priority, SourceType, TriggerSpec, TriggerType,
    },
    tree::{YamlKind, YamlNode},
};

/// Decodes a component, unless it has no id.
pub(super) fn component<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
) -> Option<ComponentSpec> {
    let mut one = ComponentSpec::default();
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let mut with_step = FieldSpans::default();
    reader.section(&fields::COMPONENT, node, &mut spans, |reader, field, value| match field.name {
        "id" => assign(&mut one.id, reader.qualified_id(value)),
        "type" => assign(&mut one.component_type, reader.label(value)),
        "event_sources" => one.event_sources = event_sources(reader, field, value),
        "trigger_policy" => one.trigger = trigger(reader, value, &mut with_step),
        "execution" => one.execution = execution(reader, value, &mut with_step),
        "depends_on" => one.depends_on = reader.qualified_ids(field, value),
        "boundary" => one.boundary = boundary(reader, value, &mut with_step),
        "config" => one.config = config::map(reader, value),
        _ => unhandled(field),
    });
    if one.event_sources.is_empty() {
        one.event_sources = vec![EventSourceSpec::default()];
    }
    spans.fields.append(&mut with_step.fields);
    one.spans = spans;
    (!one.id.is_empty()).then_some(one)
}

fn event_sources<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
) -> Vec<EventSourceSpec> {
    let items = items(reader, field, node);
    let mut sources = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let source =
            reader.with_step(PathStep::Item(index, item), |reader| event_source(reader, item));
        sources.push(source);
    }
    sources
}

fn event_source<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> EventSourceSpec {
    let mut source = EventSourceSpec::default();
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let mut input = None;
    reader.section(&fields::EVENT_SOURCE, node, &mut spans, |reader, field, value| {
        match field.name {
            "id" => source.id = reader.id(value).map(Cow::into_owned),
            "type" => {
                assign_name(&mut source.source_type, SourceType::ALL, reader.name(field, value))
            }
            "inputs" => source.inputs = owned(reader.ids(field, value)),
            "input" => input = reader.id(value).map(Cow::into_owned),
            "period_ms" => assign(&mut source.period_ms, reader.millis(field, value)),
            "phase_ms" => assign(&mut source.phase_ms, reader.millis(field, value)),
            _ => unhandled(field),
        }
    });
    add_input(&mut source.inputs, input);
    source.spans = spans;
    source
}

/// Adds the input of the shorthand field `input`.
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

fn trigger<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    with_step: &mut FieldSpans,
) -> TriggerSpec {
    let mut one = TriggerSpec::default();
    let mut spans = FieldSpans::default();
    let mut input = None;
    reader.section(&fields::TRIGGER, node, &mut spans, |reader, field, value| match field.name {
        "type" => assign_name(&mut one.trigger_type, TriggerType::ALL, reader.name(field, value)),
        "inputs" => one.inputs = owned(reader.ids(field, value)),
        "input" => input = reader.id(value).map(Cow::into_owned),
        "batch_size" => assign(&mut one.batch_size, reader.count(field, value)),
        "batch_window_ms" => assign(&mut one.batch_window_ms, reader.millis(field, value)),
        "sync_slop_ms" => assign(&mut one.sync_slop_ms, reader.millis(field, value)),
        "min_interval_ms" => assign(&mut one.min_interval_ms, reader.millis(field, value)),
        "max_latency_ms" => assign(&mut one.max_latency_ms, reader.millis(field, value)),
        "watermark_lateness_ms" => {
            assign(&mut one.watermark_lateness_ms, reader.millis(field, value));
        }
        "debounce_window_ms" => assign(&mut one.debounce_window_ms, reader.millis(field, value)),
        "condition" => assign_name(&mut one.condition, Condition::ALL, reader.name(field, value)),
        "coalesce" => assign(&mut one.coalesce, reader.bool(value)),
        _ => unhandled(field),
    });
    add_input(&mut one.inputs, input);
    // The trigger's own spans omit the prefix `trigger_policy.`, which the component's spans have.
    const PREFIX: usize = "trigger_policy.".len();
    one.spans.item = node.span;
    one.spans.fields = spans.fields.iter().map(|(name, span)| (&name[PREFIX..], *span)).collect();
    with_step.fields.append(&mut spans.fields);
    one
}

fn execution<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    with_step: &mut FieldSpans,
) -> ExecutionSpec {
    let mut one = ExecutionSpec::default();
    let mut deeper = FieldSpans::default();
    reader.section(&fields::EXECUTION, node, with_step, |reader, field, value| match field.name {
        "lane" => assign(&mut one.lane, reader.id(value).map(|id| (*id).to_owned())),
        "reentrant" => assign(&mut one.reentrant, reader.bool(value)),
        "priority" => assign_name(&mut one.priority, Priority::ALL, reader.name(field, value)),
        "budget_ms" => assign(&mut one.budget_ms, reader.millis(field, value)),
        "on_error" => one.on_error = on_error(reader, field, value, &mut deeper),
        "burst" => assign(&mut one.burst, reader.count(field, value)),
        _ => unhandled(field),
    });
    with_step.fields.append(&mut deeper.fields);
    one
}

fn on_error<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
    with_step: &mut FieldSpans,
) -> ErrorPolicySpec {
    let mut one = ErrorPolicySpec::default();
    if !matches!(node.kind, YamlKind::Map { .. }) {
        assign_name(&mut one.policy, ErrorPolicy::ALL, reader.name(field, node));
        return one;
    }
    reader.section(&fields::ON_ERROR, node, with_step, |reader, field, value| match field.name {
        "policy" => assign_name(&mut one.policy, ErrorPolicy::ALL, reader.name(field, value)),
        "max_restarts" => assign(&mut one.max_restarts, reader.count(field, value)),
        "within_ms" => assign(&mut one.within_ms, reader.millis(field, value)),
        "backoff_ms" => assign(&mut one.backoff_ms, reader.millis(field, value)),
        "backoff_max_ms" => assign(&mut one.backoff_max_ms, reader.millis(field, value)),
        _ => unhandled(field),
    });
    one
}

fn boundary<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    with_step: &mut FieldSpans,
) -> BoundarySpec {
    let mut one = BoundarySpec::default();
    reader.section(&fields::BOUNDARY, node, with_step, |reader, field, value| match field.name {
        "role" => assign_name(&mut one.role, BoundaryRole::ALL, reader.name(field, value)),
        "descriptor" => assign(&mut one.descriptor, optional_text(reader, value)),
        _ => unhandled(field),
    });
    one
}
