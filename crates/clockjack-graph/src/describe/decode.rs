//! Decodes YAML values into the description. The [table](super::fields) says which value goes
//! where; here is how a value of each type is read, and what is more than one value.

mod config;
pub(super) mod expand;

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    fields::{self, Field, FieldKind},
    reader::{PathStep, Reader, key_text},
    spec::{
        BoundaryRole, ChainSpec, ClockDomain, ComponentPriority, ComponentSpec, Condition,
        ConfigMap, Convergence, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy, EdgeSpec,
        ErrorPolicy, ErrorPolicySpec, EventSourceSpec, FieldSpans, GraphKind, GraphSpec,
        LaneOverflow, LaneSpec, LaneType, LoopMode, LoopSpec, LoopType, OnPolicyError,
        OverrunPolicy, PartialSuccess, SourceType, TriggerSpec, TriggerType,
    },
    tree::{YamlKind, YamlNode},
};
use crate::diagnostic::Code;

/// A value of a field.
pub(super) trait FromYaml: Sized {
    /// Reads the value. `None` after an error: the field then keeps its default.
    fn from_yaml<'t>(
        reader: &mut Reader<'t>,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<Self>;
}

/// Reads a value into its place.
pub(super) fn read<'t, T: FromYaml>(
    to: &mut T,
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
) {
    if let Some(value) = T::from_yaml(reader, field, node) {
        *to = value;
    }
}

/// Says how the values of a type are read.
macro_rules! from_yaml {
    ($( $type:ty: |$reader:ident, $field:pat_param, $node:ident| $read:expr; )+) => { $(
        impl FromYaml for $type {
            fn from_yaml<'t>(
                $reader: &mut Reader<'t>,
                $field: &'static Field,
                $node: &'t YamlNode<'t>,
            ) -> Option<Self> {
                $read
            }
        }
    )+ };
    (names: $( $enum:ty, )+) => {
        from_yaml! { $(
            $enum: |reader, field, node| reader.name(field, node).map(|at| <$enum>::ALL[at]);
        )+ }
    };
}

from_yaml! {
    bool: |reader, _, node| reader.bool(node);
    u32: |reader, field, node| reader.count(field, node);
    u64: |reader, field, node| reader.millis(field, node);
    i64: |reader, field, node| reader.whole(field, node);
    f64: |reader, _, node| reader.number(node);
    Vec<u32>: |reader, _, node| Some(reader.counts(node));
    ConfigMap: |reader, _, node| Some(config::map(reader, node));
    String: |reader, field, node| match field.kind {
        FieldKind::Label => reader.label(node),
        FieldKind::Id => reader.id(node).map(Cow::into_owned),
        FieldKind::QualifiedId => reader.qualified_id(node),
        FieldKind::Endpoint => reader.endpoint(node),
        FieldKind::Name(names, _) => reader.name(field, node).map(|at| names[at].to_owned()),
        _ => reader.text(node).map(Cow::into_owned),
    };
    Vec<String>: |reader, field, node| Some(reader.qualified_ids(field, node));
}

from_yaml! {
    names: BoundaryRole, ClockDomain, ComponentPriority, Condition, Convergence, CopyPolicy,
    EdgeKind, EdgeMode, EdgeOverflow, ErrorPolicy, GraphKind, LaneOverflow, LaneType, LoopMode,
    LoopType, OnPolicyError, OverrunPolicy, PartialSuccess, SourceType, TriggerType,
}

impl<T: FromYaml> FromYaml for Option<T> {
    fn from_yaml<'t>(
        reader: &mut Reader<'t>,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<Self> {
        T::from_yaml(reader, field, node).map(Some)
    }
}

/// The file while it is read.
#[derive(Default)]
pub(super) struct RootDraft<'t> {
    pub(super) graph: GraphSpec,
    pub(super) groups: expand::Groups<'t>,
}

/// Decodes the whole file.
pub(super) fn root<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> GraphSpec {
    let mut draft = RootDraft::default();
    let spans = reader.item(&fields::ROOT, node, &mut draft, fields::set_root);
    let RootDraft { mut graph, groups } = draft;
    graph.spans = spans.unwrap_or_else(|| FieldSpans { item: node.span, fields: Vec::new() });
    expand::expand(reader, &groups, &mut graph);
    graph
}

/// The items of a list of sections.
pub(super) fn items<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
) -> &'t [YamlNode<'t>] {
    let FieldKind::ListOf { min, max, .. } = field.kind else {
        panic!("`{}` is not a list of sections", field.name)
    };
    let max = max(reader.limits);
    reader.list(node, min, max, field.name)
}

/// Decodes all items of a list that are complete enough, with their namespace.
pub(super) fn decode_each<'t, T>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
    all: &mut Vec<T>,
    one: fn(&mut Reader<'t>, &'t YamlNode<'t>) -> Option<T>,
) {
    let items = items(reader, field, node);
    all.reserve(items.len());
    for (index, item) in items.iter().enumerate() {
        match reader.with_step(PathStep::Item(index, item), |reader| one(reader, item)) {
            Some(one) => all.push(one),
            None => reader.has_omissions = true,
        }
    }
}

pub(super) fn version<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) {
    match &node.kind {
        YamlKind::Scalar { text, is_plain: true } if text == "1" => {}
        YamlKind::Rejected => {}
        _ => {
            let message = "unsupported `schema_version`; it must be 1";
            let diagnostic = reader.diagnostic(Code::UnsupportedSchemaVersion, node.span, message);
            reader.report(diagnostic.help("write `1`"));
        }
    }
}

pub(super) fn lanes<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
    graph: &mut GraphSpec,
) {
    let FieldKind::MapOf(_, max) = field.kind else { panic!("lanes are a map") };
    let max = max(reader.limits);
    if !matches!(node.kind, YamlKind::Map { .. }) {
        reader.wrong_type(node, "a map of lanes");
        reader.has_omissions = true;
        return;
    }
    let pairs = reader.tree.pairs(node);
    if pairs.len() == 0 {
        reader.error(Code::InvalidValue, node.span, "at least one lane is needed");
    }
    let n_lanes = pairs.len();
    let mut seen = BTreeMap::new();
    for (index, [key, value]) in pairs.enumerate() {
        if index == max {
            let message = format!("{n_lanes} lanes, but at most {max} are allowed");
            reader.error(Code::LimitExceeded, key.span, message);
            reader.has_omissions = true;
            break;
        }
        let Some(id) = reader.id(key) else {
            reader.has_omissions = true;
            continue;
        };
        let step = PathStep::Key(key_text(key).expect("an id is a scalar"));
        if let Some(first) = seen.get(&id) {
            reader.duplicate_key(&id, key.span, *first);
            continue;
        }
        match reader.with_step(step, |reader| lane(reader, &id, value)) {
            Some(mut lane) => {
                lane.spans.fields.push(("id", key.span));
                graph.lanes.push(lane);
            }
            None => reader.has_omissions = true,
        }
        seen.insert(id, key.span);
    }
}

/// Decodes a lane. A lane with an invalid type is read as an event loop, so that its other fields
/// are checked.
fn lane<'t>(reader: &mut Reader<'t>, id: &str, node: &'t YamlNode<'t>) -> Option<LaneSpec> {
    let mut lane = LaneSpec::new(id, LaneType::EventLoop);
    lane.spans = reader.item(&fields::LANE, node, &mut lane, fields::set_lane)?;
    Some(lane)
}

/// Decodes a component, unless it has no id.
pub(super) fn component<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
) -> Option<ComponentSpec> {
    let mut one = ComponentSpec::default();
    one.spans = reader.item(&fields::COMPONENT, node, &mut one, fields::set_component)?;
    if one.event_sources.is_empty() {
        one.event_sources = vec![EventSourceSpec::default()];
    }
    (!one.id.is_empty()).then_some(one)
}

pub(super) fn event_sources<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
) -> Vec<EventSourceSpec> {
    let mut sources = Vec::new();
    decode_each(reader, field, node, &mut sources, |reader, item| {
        let mut one = EventSourceSpec::default();
        let spans = reader.item(&fields::EVENT_SOURCE, item, &mut one, fields::set_event_source);
        one.spans = spans.unwrap_or_else(|| FieldSpans { item: item.span, fields: Vec::new() });
        Some(one)
    });
    sources
}

/// Sets the inputs of the field `inputs`. That of the shorthand field `input` stays the last.
pub(super) fn set_inputs(inputs: &mut Vec<String>, ids: Vec<Cow<'_, str>>) {
    let shorthand = core::mem::take(inputs);
    inputs.extend(ids.into_iter().map(Cow::into_owned));
    shorthand.into_iter().for_each(|input| add_input(inputs, Some(input.into())));
}

/// Adds the input of the shorthand field `input`.
pub(super) fn add_input(inputs: &mut Vec<String>, input: Option<Cow<'_, str>>) {
    if let Some(input) = input
        && !inputs.iter().any(|one| *one == input)
    {
        inputs.push(input.into_owned());
    }
}

pub(super) fn trigger<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> TriggerSpec {
    // The trigger's own spans omit the prefix `trigger_policy.`, which the component's spans have.
    const PREFIX: usize = "trigger_policy.".len();
    let mut one = TriggerSpec::default();
    let first = reader.spans.len();
    reader.section(&fields::TRIGGER, node, &mut one, fields::set_trigger);
    let own = reader.spans[first..].iter().map(|(name, span)| (&name[PREFIX..], *span));
    one.spans = FieldSpans { item: node.span, fields: own.collect() };
    one
}

/// A policy by its name, or a section.
pub(super) fn on_error<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t YamlNode<'t>,
    one: &mut ErrorPolicySpec,
) {
    if matches!(node.kind, YamlKind::Map { .. }) {
        reader.section(&fields::ON_ERROR, node, one, fields::set_on_error);
    } else {
        read(&mut one.policy, reader, field, node);
    }
}

/// An edge while it is read.
#[derive(Default)]
pub(super) struct EdgeDraft {
    pub(super) id: Option<String>,
    pub(super) kind: Option<EdgeKind>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) policy: EdgePolicy,
}

/// Decodes an edge, unless its id, its kind or an end is missing.
pub(super) fn edge<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> Option<EdgeSpec> {
    let mut one = EdgeDraft::default();
    let spans = reader.item(&fields::EDGE, node, &mut one, fields::set_edge)?;
    let EdgeDraft { id, kind, from, to, policy } = one;
    Some(EdgeSpec { id: id?, kind: kind?, from: from?, to: to?, policy, spans })
}

/// A loop while it is read.
pub(super) struct LoopDraft {
    pub(super) spec: LoopSpec,
    pub(super) loop_type: Option<LoopType>,
}

/// Decodes a loop, unless its id, its type or its components are missing.
pub(super) fn composite_loop<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
) -> Option<LoopSpec> {
    let mut one = LoopDraft { spec: LoopSpec::new("", LoopType::FixedPoint), loop_type: None };
    let spans = reader.item(&fields::LOOP, node, &mut one, fields::set_loop)?;
    let spec = LoopSpec { loop_type: one.loop_type?, spans, ..one.spec };
    (!spec.id.is_empty() && !spec.components.is_empty()).then_some(spec)
}

/// Decodes a chain, unless an end is missing.
pub(super) fn chain<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> Option<ChainSpec> {
    let mut one = ChainSpec::default();
    one.spans = reader.item(&fields::CHAIN, node, &mut one, fields::set_chain)?;
    one.set_default_id();
    (!one.from.is_empty() && !one.to.is_empty()).then_some(one)
}
