//! Decodes YAML values into the description, with one function per section of the table. A field of
//! the table without a decoder is a bug in this crate, so the last arm of each match panics.

mod component;
mod config;
mod edge;
mod expand;
mod lane;

use std::collections::BTreeMap;

use super::{
    fields::{self, Field, FieldKind},
    reader::{PathStep, Reader, key_text},
    spec::{Domain, FieldSpans, GraphKind, GraphSpec},
    tree::{YamlKind, YamlNode},
};
use crate::diagnostic::Code;

/// Assigns a value that could be read; otherwise the field keeps its default.
pub(super) fn assign<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Assigns the enum value of a name that could be read.
pub(super) fn assign_name<T: Copy>(field: &mut T, all: &[T], index: Option<usize>) {
    assign(field, index.map(|index| all[index]));
}

/// The last arm of a match over the fields of a section.
#[cold]
pub(super) fn unhandled(field: &'static Field) -> ! {
    panic!("field `{}` is in the table, but has no decoder", field.span_key)
}

/// Decodes the whole file.
pub(super) fn root<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> GraphSpec {
    let mut graph = GraphSpec::default();
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let mut groups = expand::Groups::default();
    let mut graph_marks = FieldSpans::default();
    reader.section(&fields::ROOT, node, &mut spans, |reader, field, value| match field.name {
        "schema_version" => version(reader, value),
        "graph" => self::graph(reader, value, &mut graph, &mut graph_marks),
        "lanes" => lanes(reader, field, value, &mut graph),
        "components" => {
            decode_each(reader, field, value, &mut graph.components, component::component)
        }
        "edges" => decode_each(reader, field, value, &mut graph.edges, edge::edge),
        "composite_loops" => {
            decode_each(reader, field, value, &mut graph.loops, edge::composite_loop)
        }
        "subgraphs" => groups.subgraphs = items(reader, field, value),
        "templates" => groups.templates = items(reader, field, value),
        "template_instances" => groups.instances = items(reader, field, value),
        _ => unhandled(field),
    });
    spans.fields.append(&mut graph_marks.fields);
    graph.spans = spans;
    expand::expand(reader, &groups, &mut graph);
    graph
}

/// The items of a list of sections.
fn items<'t>(
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
fn decode_each<'t, T>(
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

fn version<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) {
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

fn graph<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    graph: &mut GraphSpec,
    spans: &mut FieldSpans,
) {
    let mut clock_marks = FieldSpans::default();
    reader.section(&fields::GRAPH, node, spans, |reader, field, value| match field.name {
        "name" => assign(&mut graph.name, reader.label(value)),
        "kind" => assign_name(&mut graph.kind, GraphKind::ALL, reader.name(field, value)),
        "config" => graph.config = config::map(reader, value),
        "clock" => {
            clock(reader, value, &mut graph.event_domain, &mut clock_marks);
        }
        _ => unhandled(field),
    });
    spans.fields.append(&mut clock_marks.fields);
}

fn clock<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    domain: &mut Domain,
    spans: &mut FieldSpans,
) {
    reader.section(&fields::CLOCK, node, spans, |reader, field, value| match field.name {
        "runtime_domain" => {
            reader.name(field, value);
        }
        "event_domain" => assign_name(domain, Domain::ALL, reader.name(field, value)),
        _ => unhandled(field),
    });
}

fn lanes<'t>(
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
        match reader.with_step(step, |reader| lane::lane(reader, id.clone().into_owned(), value)) {
            Some(mut lane) => {
                lane.spans.fields.push(("id", key.span));
                graph.lanes.push(lane);
            }
            None => reader.has_omissions = true,
        }
        seen.insert(id, key.span);
    }
}

/// The text of an optional field.
pub(super) fn optional_text<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> Option<String> {
    reader.text(node).map(|text| (*text).to_owned())
}
