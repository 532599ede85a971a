//! From values to the description: one function for each section of the table. A field of the table
//! that is not taken here would be a fault of this crate, so the last arm of each match says so.

mod component;
mod config;
mod edge;
mod expand;
mod lane;

use std::collections::BTreeMap;

use super::{
    fields::{self, Field, Kind},
    reader::{Reader, Step, key_text},
    spec::{Domain, GraphKind, GraphSpec, Marks},
    tree::{Node, What},
};
use crate::diagnostic::Code;

/// Takes a value that could be read; one that could not leaves the default.
pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Takes the value of a name that could be read.
pub(super) fn pick<T: Copy>(field: &mut T, all: &[T], index: Option<usize>) {
    set(field, index.map(|index| all[index]));
}

/// The last arm of a match over the fields of a section.
#[cold]
pub(super) fn not_taken(field: &'static Field) -> ! {
    panic!("field `{}` is in the table, and nobody takes it", field.mark)
}

/// The whole file.
pub(super) fn root<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> GraphSpec {
    let mut graph = GraphSpec::default();
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let mut groups = expand::Groups::default();
    let mut graph_marks = Marks::default();
    reader.section(&fields::ROOT, node, &mut marks, |reader, field, value| match field.name {
        "schema_version" => version(reader, value),
        "graph" => self::graph(reader, value, &mut graph, &mut graph_marks),
        "lanes" => lanes(reader, field, value, &mut graph),
        "components" => each(reader, field, value, &mut graph.components, component::one),
        "edges" => each(reader, field, value, &mut graph.edges, edge::one),
        "composite_loops" => each(reader, field, value, &mut graph.loops, edge::loop_of),
        "subgraphs" => groups.subgraphs = items(reader, field, value),
        "templates" => groups.templates = items(reader, field, value),
        "template_instances" => groups.instances = items(reader, field, value),
        _ => not_taken(field),
    });
    marks.fields.append(&mut graph_marks.fields);
    graph.marks = marks;
    expand::expand(reader, &groups, &mut graph);
    graph
}

/// The items of a list of sections.
fn items<'t>(reader: &mut Reader<'t>, field: &'static Field, node: &'t Node<'t>) -> &'t [Node<'t>] {
    let Kind::ListOf { min, max, .. } = field.kind else {
        panic!("`{}` is no list of sections", field.name)
    };
    let max = max(reader.limits);
    reader.list(node, min, max, field.name)
}

/// All items of a list that say enough, with their namespace.
fn each<'t, T>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t Node<'t>,
    all: &mut Vec<T>,
    one: fn(&mut Reader<'t>, &'t Node<'t>) -> Option<T>,
) {
    let items = items(reader, field, node);
    all.reserve(items.len());
    for (index, item) in items.iter().enumerate() {
        match reader.below(Step::Item(index, item), |reader| one(reader, item)) {
            Some(one) => all.push(one),
            None => reader.has_gaps = true,
        }
    }
}

fn version<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) {
    match &node.what {
        What::Scalar { text, is_plain: true } if text == "1" => {}
        What::Refused => {}
        _ => {
            let message = "`schema_version` is 1; this file has another";
            let fault = reader.finding(Code::UnsupportedSchemaVersion, node.span, message);
            reader.tell(fault.help("write `1`"));
        }
    }
}

fn graph<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    graph: &mut GraphSpec,
    marks: &mut Marks,
) {
    let mut clock_marks = Marks::default();
    reader.section(&fields::GRAPH, node, marks, |reader, field, value| match field.name {
        "name" => set(&mut graph.name, reader.label(value)),
        "kind" => pick(&mut graph.kind, GraphKind::ALL, reader.name(field, value)),
        "config" => graph.config = config::map(reader, value),
        "clock" => {
            clock(reader, value, &mut graph.event_domain, &mut clock_marks);
        }
        _ => not_taken(field),
    });
    marks.fields.append(&mut clock_marks.fields);
}

fn clock<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>, domain: &mut Domain, marks: &mut Marks) {
    reader.section(&fields::CLOCK, node, marks, |reader, field, value| match field.name {
        "runtime_domain" => {
            reader.name(field, value);
        }
        "event_domain" => pick(domain, Domain::ALL, reader.name(field, value)),
        _ => not_taken(field),
    });
}

fn lanes<'t>(
    reader: &mut Reader<'t>,
    field: &'static Field,
    node: &'t Node<'t>,
    graph: &mut GraphSpec,
) {
    let Kind::MapOf(_, max) = field.kind else { panic!("lanes are a map") };
    let max = max(reader.limits);
    if !matches!(node.what, What::Map { .. }) {
        reader.wrong_type(node, "a map of lanes");
        reader.has_gaps = true;
        return;
    }
    let pairs = reader.tree.pairs(node);
    if pairs.len() == 0 {
        reader.fault(Code::InvalidValue, node.span, "at least one lane is needed");
    }
    let n_lanes = pairs.len();
    let mut seen = BTreeMap::new();
    for (index, [key, value]) in pairs.enumerate() {
        if index == max {
            let message = format!("{n_lanes} lanes, and at most {max} are allowed");
            reader.fault(Code::LimitExceeded, key.span, message);
            reader.has_gaps = true;
            break;
        }
        let Some(id) = reader.id(key) else {
            reader.has_gaps = true;
            continue;
        };
        let step = Step::Key(key_text(key).expect("an id is a scalar"));
        if let Some(first) = seen.get(&id) {
            reader.repeated(&id, key.span, *first);
            continue;
        }
        match reader.below(step, |reader| lane::lane(reader, id.clone().into_owned(), value)) {
            Some(mut lane) => {
                lane.marks.fields.push(("id", key.span));
                graph.lanes.push(lane);
            }
            None => reader.has_gaps = true,
        }
        seen.insert(id, key.span);
    }
}

/// An optional text of a field.
pub(super) fn some_text<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Option<String> {
    reader.text(node).map(|text| (*text).to_owned())
}
