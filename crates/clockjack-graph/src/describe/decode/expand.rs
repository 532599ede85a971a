//! Subgraphs, templates and their instances become components, edges and loops with a namespace.
//!
//! It happens while the text is read, before anything is checked, so that no cycle can hide in it.
//! The same text gives the same graph: subgraphs first, then instances, each in the order of the
//! file. How many items there will be is counted before any of them is made.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use clockjack_sync::mutant;

use super::{component, each, edge, not_taken};
use crate::{
    describe::{
        fields::{self, Field, Section},
        reader::{Bindings, Reader, Space, Step, brief, key_text},
        spec::{GraphSpec, HierarchyEntry, Marks, Span},
        tree::{Node, What},
    },
    diagnostic::Code,
    nearest::nearest,
};

/// What is to be expanded.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups<'t> {
    pub(super) subgraphs: &'t [Node<'t>],
    pub(super) templates: &'t [Node<'t>],
    pub(super) instances: &'t [Node<'t>],
}

/// A template that can be used.
struct Template<'t> {
    node: &'t Node<'t>,
    index: usize,
    id_span: Span,
    parameters: BTreeSet<&'t str>,
}

/// Adds what subgraphs and instances hold.
pub(super) fn expand<'t>(reader: &mut Reader<'t>, groups: &Groups<'t>, graph: &mut GraphSpec) {
    let mut names = BTreeMap::new();
    for (index, node) in groups.subgraphs.iter().enumerate() {
        let step = Step::Item(index, node);
        reader.below(Step::Field("subgraphs"), |reader| {
            reader.below(step, |reader| subgraph(reader, node, &mut names, graph));
        });
    }
    let mut templates = BTreeMap::new();
    for (index, node) in groups.templates.iter().enumerate() {
        let step = Step::Item(index, node);
        reader.below(Step::Field("templates"), |reader| {
            reader.below(step, |reader| template(reader, index, node, &mut templates));
        });
    }
    for (index, node) in groups.instances.iter().enumerate() {
        let step = Step::Item(index, node);
        reader.below(Step::Field("template_instances"), |reader| {
            reader.below(step, |reader| instance(reader, node, &templates, &mut names, graph));
        });
    }
}

/// An id that no other of its kind has.
fn unique<'t>(
    reader: &mut Reader<'t>,
    id: &str,
    span: Span,
    names: &mut BTreeMap<String, Span>,
) -> bool {
    if let Some(first) = names.get(id) {
        let message = format!("`{id}` is given twice");
        let fault = reader.finding(Code::DuplicateId, span, message);
        reader.tell(fault.and_at(*first, "the first one"));
        reader.has_gaps = true;
        return false;
    }
    names.insert(id.to_owned(), span);
    true
}

/// The value of a field, wherever it stands; the first of several.
fn value_of<'t>(reader: &Reader<'t>, node: &'t Node<'t>, name: &str) -> Option<&'t Node<'t>> {
    let mut pairs = reader.tree.pairs(node);
    pairs.find(|[key, _]| key_text(key) == Some(name)).map(|[_, value]| value)
}

fn subgraph<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    names: &mut BTreeMap<String, Span>,
    graph: &mut GraphSpec,
) {
    // The namespace must be known before what stands in it, whatever comes first in the text.
    let id = value_of(reader, node, "id").and_then(key_text);
    let id_span = value_of(reader, node, "id").map_or(node.span, |id| id.span);
    if id.is_some_and(|id| !unique(reader, id, id_span, names))
        || !has_room(reader, node, node.span, graph)
    {
        return;
    }
    reader.space = Some(Space { prefix: id, instance: Span::NONE, bindings: None });
    let entry = fill(reader, &fields::SUBGRAPH, node, graph);
    reader.space = None;
    if let Some(id) = id {
        graph.hierarchy.push(HierarchyEntry { id: id.to_owned(), template: None, ..entry });
    } else {
        reader.has_gaps = true;
    }
}

/// Looks at a template for itself: what is wrong with its text is told once, also if nobody uses
/// it.
fn template<'t>(
    reader: &mut Reader<'t>,
    index: usize,
    node: &'t Node<'t>,
    templates: &mut BTreeMap<&'t str, Template<'t>>,
) {
    let id = value_of(reader, node, "id");
    let mut parameters = BTreeSet::new();
    if let Some(list) = value_of(reader, node, "parameters") {
        parameters.extend(reader.tree.items(list).iter().filter_map(key_text));
    }
    let bindings = Some(Bindings::Open(parameters.clone()));
    reader.space = Some(Space { prefix: None, instance: Span::NONE, bindings });
    // What it holds is thrown away: only its faults are of interest.
    fill(reader, &fields::TEMPLATE, node, &mut GraphSpec::default());
    reader.space = None;
    let Some((id, name)) = id.and_then(|id| Some((id, key_text(id)?))) else { return };
    if let Some(first) = templates.get(name) {
        let message = format!("template `{}` is given twice", brief(name));
        let fault = reader.finding(Code::DuplicateId, id.span, message);
        reader.tell(fault.and_at(first.id_span, "the first one"));
        return;
    }
    templates.insert(name, Template { node, index, id_span: id.span, parameters });
}

fn instance<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    templates: &BTreeMap<&'t str, Template<'t>>,
    names: &mut BTreeMap<String, Span>,
    graph: &mut GraphSpec,
) {
    let (mut id, mut template, mut arguments) = (None, None, None);
    let mut marks = Marks::default();
    reader.section(&fields::INSTANCE, node, &mut marks, |reader, field, value| match field.name {
        "id" => id = reader.id(value).and(key_text(value)),
        "template" => template = reader.id(value).and(key_text(value)),
        "parameters" => arguments = Some(value),
        _ => not_taken(field),
    });
    let found = template.and_then(|name| {
        let found = templates.get(name);
        if found.is_none() {
            unknown_template(reader, name, marks.get("template"), templates);
        }
        found
    });
    let (Some(id), Some(found)) = (id, found) else {
        reader.has_gaps = true;
        return;
    };
    let span = marks.get("id");
    let given = self::arguments(reader, arguments, found, marks.get("template"));
    if !unique(reader, id, span, names) {
        return;
    }
    let n_bytes = (found.node.span.end - found.node.span.start) as usize;
    let (Some(given), true) = (given, has_room(reader, found.node, span, graph)) else {
        reader.has_gaps = true;
        return;
    };
    if reader.spend(n_bytes, span).is_none() {
        return;
    }
    let bindings = Some(Bindings::Closed(given));
    reader.space = Some(Space { prefix: Some(id), instance: span, bindings });
    let entry = reader
        .elsewhere([Step::Field("templates"), Step::Item(found.index, found.node)], |reader| {
            fill(reader, &fields::TEMPLATE, found.node, graph)
        });
    reader.space = None;
    let template = template.map(ToOwned::to_owned);
    graph.hierarchy.push(HierarchyEntry { id: id.to_owned(), template, ..entry });
}

fn unknown_template<'t>(
    reader: &mut Reader<'t>,
    name: &str,
    span: Span,
    templates: &BTreeMap<&'t str, Template<'t>>,
) {
    let message = format!("there is no template `{}`", brief(name));
    let mut fault = reader.finding(Code::UnknownTemplate, span, message);
    if let Some(meant) = nearest(name, templates.keys().copied()) {
        fault = fault.help(format!("did you mean `{meant}`?")).fix(span, meant);
    }
    reader.tell(fault);
}

/// A value for each parameter, and none for anything else; `None` if that is not so.
fn arguments<'t>(
    reader: &mut Reader<'t>,
    node: Option<&'t Node<'t>>,
    template: &Template<'t>,
    template_span: Span,
) -> Option<BTreeMap<&'t str, &'t Node<'t>>> {
    let mut given = BTreeMap::new();
    let mut spans = BTreeMap::new();
    let mut is_right = true;
    if let Some(node) = node {
        if !matches!(node.what, What::Map { .. }) {
            reader.wrong_type(node, "a map");
            return None;
        }
        for [key, value] in reader.tree.pairs(node) {
            let Some(name) = key_text(key) else {
                reader.wrong_type(key, "a name");
                is_right = false;
                continue;
            };
            if let Some(first) = spans.insert(name, key.span) {
                reader.repeated(name, key.span, first);
                is_right = false;
            } else if !template.parameters.contains(name) {
                let message = format!("the template has no parameter `{}`", brief(name));
                let mut fault = reader.finding(Code::InvalidTemplateParameter, key.span, message);
                if let Some(meant) = nearest(name, template.parameters.iter().copied()) {
                    fault = fault.help(format!("did you mean `{meant}`?")).fix(key.span, meant);
                }
                reader.tell(fault.and_at(template.id_span, "the template"));
                is_right = false;
            } else if reader.text_of_argument(value).is_none() {
                is_right = false;
            } else {
                given.insert(name, value);
            }
        }
    }
    for name in &template.parameters {
        if !spans.contains_key(name) {
            let message = format!("parameter `{}` is not given", brief(name));
            let fault = reader.finding(Code::InvalidTemplateParameter, template_span, message);
            reader.tell(fault.and_at(template.id_span, "the template"));
            is_right = false;
        }
    }
    is_right.then_some(given)
}

/// Whether all items of a group can be added. Told if not.
fn has_room<'t>(
    reader: &mut Reader<'t>,
    group: &'t Node<'t>,
    span: Span,
    graph: &GraphSpec,
) -> bool {
    let limits = reader.limits;
    let mut is_room = true;
    for (name, n_now, max) in [
        ("components", graph.components.len(), limits.components),
        ("edges", graph.edges.len(), limits.edges),
        ("composite_loops", graph.loops.len(), limits.loops),
    ] {
        let more = value_of(reader, group, name).map_or(0, |list| reader.tree.items(list).len());
        if n_now.saturating_add(more) > max && !mutant!("describe-instances-unbounded") {
            let message =
                format!("{} {name} with these, and at most {max} are allowed", n_now + more);
            reader.fault(Code::LimitExceeded, span, message);
            reader.has_gaps = true;
            is_room = false;
        }
    }
    is_room
}

/// Adds the items of a group, and says which they are.
fn fill<'t>(
    reader: &mut Reader<'t>,
    section: &'static Section,
    node: &'t Node<'t>,
    graph: &mut GraphSpec,
) -> HierarchyEntry {
    let begins = (graph.components.len(), graph.edges.len(), graph.loops.len());
    let mut marks = Marks::default();
    reader.section(section, node, &mut marks, |reader, field: &'static Field, value| {
        match field.name {
            "id" => {
                reader.id(value);
            }
            "parameters" => {
                reader.ids(field, value);
            }
            "components" => each(reader, field, value, &mut graph.components, component::one),
            "edges" => each(reader, field, value, &mut graph.edges, edge::one),
            "composite_loops" => each(reader, field, value, &mut graph.loops, edge::loop_of),
            _ => not_taken(field),
        }
    });
    HierarchyEntry {
        id: String::new(),
        template: None,
        components: graph.components[begins.0..].iter().map(|one| one.id.clone()).collect(),
        edges: graph.edges[begins.1..].iter().map(|one| one.id.clone()).collect(),
        loops: graph.loops[begins.2..].iter().map(|one| one.id.clone()).collect(),
    }
}

impl<'t> Reader<'t> {
    /// A value for a parameter: any scalar but nothing.
    fn text_of_argument(&mut self, node: &'t Node<'t>) -> Option<Cow<'t, str>> {
        let text = self.scalar(node, "a text or a number")?.text;
        if self.is_null(node) {
            self.wrong_type(node, "a text or a number");
            return None;
        }
        let max = self.limits.string_bytes;
        if text.len() > max {
            let message = format!("{} bytes, and at most {max} are allowed", text.len());
            self.fault(Code::LimitExceeded, node.span, message);
            return None;
        }
        Some(text)
    }
}
