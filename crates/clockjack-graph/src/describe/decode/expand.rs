//! Expands subgraphs, templates and their instances to components, edges, loops and chains with a
//! namespace.
//!
//! Expansion happens while the file is read, before the graph is checked, so that no cycle can hide
//! in a subgraph. It is deterministic: subgraphs first, then instances, each in the order of the
//! file. The number of resulting items is checked against the limits before any item is created.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    describe::{
        fields::{self, Section},
        reader::{Bindings, Namespace, PathStep, Reader, SetFn, key_text, truncated},
        spec::{GraphSpec, HierarchyEntry, Span},
        tree::{YamlKind, YamlNode},
    },
    diagnostic::Code,
    nearest::nearest,
};

/// What is to be expanded.
#[derive(Clone, Debug, Default)]
pub(in crate::describe) struct Groups<'t> {
    pub(in crate::describe) subgraphs: &'t [YamlNode<'t>],
    pub(in crate::describe) templates: &'t [YamlNode<'t>],
    pub(in crate::describe) instances: &'t [YamlNode<'t>],
}

/// An instance of a template while it is read.
#[derive(Default)]
pub(in crate::describe) struct InstanceDraft<'t> {
    pub(in crate::describe) id: Option<&'t str>,
    pub(in crate::describe) template: Option<&'t str>,
    pub(in crate::describe) arguments: Option<&'t YamlNode<'t>>,
}

/// A template that can be instantiated.
struct Template<'t> {
    node: &'t YamlNode<'t>,
    index: usize,
    id_span: Span,
    parameters: BTreeSet<&'t str>,
}

/// Adds the contents of subgraphs and instances to the graph.
pub(super) fn expand<'t>(reader: &mut Reader<'t>, groups: &Groups<'t>, graph: &mut GraphSpec) {
    let mut names = BTreeMap::new();
    for (index, node) in groups.subgraphs.iter().enumerate() {
        let step = PathStep::Item(index, node);
        reader.with_step(PathStep::Field("subgraphs"), |reader| {
            reader.with_step(step, |reader| subgraph(reader, node, &mut names, graph));
        });
    }
    let mut templates = BTreeMap::new();
    for (index, node) in groups.templates.iter().enumerate() {
        let step = PathStep::Item(index, node);
        reader.with_step(PathStep::Field("templates"), |reader| {
            reader.with_step(step, |reader| template(reader, index, node, &mut templates));
        });
    }
    for (index, node) in groups.instances.iter().enumerate() {
        let step = PathStep::Item(index, node);
        reader.with_step(PathStep::Field("template_instances"), |reader| {
            reader.with_step(step, |reader| instance(reader, node, &templates, &mut names, graph));
        });
    }
}

/// Whether the id is unique among its kind; a duplicate is reported.
fn unique<'t>(
    reader: &mut Reader<'t>,
    id: &str,
    span: Span,
    names: &mut BTreeMap<String, Span>,
) -> bool {
    if let Some(first) = names.get(id) {
        let message = format!("`{id}` is defined twice");
        let diagnostic = reader.diagnostic(Code::DuplicateId, span, message);
        reader.report(diagnostic.related_at(*first, "first defined here"));
        reader.has_omissions = true;
        return false;
    }
    names.insert(id.to_owned(), span);
    true
}

/// The value of a field, wherever it occurs in the map; the first of several.
fn value_of<'t>(
    reader: &Reader<'t>,
    node: &'t YamlNode<'t>,
    name: &str,
) -> Option<&'t YamlNode<'t>> {
    let mut pairs = reader.tree.pairs(node);
    pairs.find(|[key, _]| key_text(key) == Some(name)).map(|[_, value]| value)
}

fn subgraph<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    names: &mut BTreeMap<String, Span>,
    graph: &mut GraphSpec,
) {
    // The namespace must be known before the section's contents, in whatever order they are
    // written.
    let id = value_of(reader, node, "id").and_then(key_text);
    let id_span = value_of(reader, node, "id").map_or(node.span, |id| id.span);
    if id.is_some_and(|id| !unique(reader, id, id_span, names))
        || !fits_limits(reader, node, node.span, graph)
    {
        return;
    }
    reader.namespace = Some(Namespace { prefix: id, instance: Span::NONE, bindings: None });
    let entry = decode_group(reader, (&fields::SUBGRAPH, fields::set_subgraph), node, graph);
    reader.namespace = None;
    if let Some(id) = id {
        graph.hierarchy.push(HierarchyEntry { id: id.to_owned(), template: None, ..entry });
    } else {
        reader.has_omissions = true;
    }
}

/// Checks a template by itself, so that errors in its text are reported once, even if it is never
/// instantiated.
fn template<'t>(
    reader: &mut Reader<'t>,
    index: usize,
    node: &'t YamlNode<'t>,
    templates: &mut BTreeMap<&'t str, Template<'t>>,
) {
    let id = value_of(reader, node, "id");
    let mut parameters = BTreeSet::new();
    if let Some(list) = value_of(reader, node, "parameters") {
        parameters.extend(reader.tree.items(list).iter().filter_map(key_text));
    }
    let bindings = Some(Bindings::Declared(parameters.clone()));
    reader.namespace = Some(Namespace { prefix: None, instance: Span::NONE, bindings });
    // The contents are discarded: only the diagnostics are needed.
    let template = (&fields::TEMPLATE, fields::set_template as SetFn<'t, GraphSpec>);
    decode_group(reader, template, node, &mut GraphSpec::default());
    reader.namespace = None;
    let Some((id, name)) = id.and_then(|id| Some((id, key_text(id)?))) else { return };
    if let Some(first) = templates.get(name) {
        let message = format!("template `{}` is defined twice", truncated(name));
        let diagnostic = reader.diagnostic(Code::DuplicateId, id.span, message);
        reader.report(diagnostic.related_at(first.id_span, "first defined here"));
        return;
    }
    templates.insert(name, Template { node, index, id_span: id.span, parameters });
}

fn instance<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    templates: &BTreeMap<&'t str, Template<'t>>,
    names: &mut BTreeMap<String, Span>,
    graph: &mut GraphSpec,
) {
    let mut one = InstanceDraft::default();
    let spans = reader.item(&fields::INSTANCE, node, &mut one, fields::set_instance);
    let InstanceDraft { id, template, arguments } = one;
    let spans = spans.unwrap_or_default();
    let found = template.and_then(|name| {
        let found = templates.get(name);
        if found.is_none() {
            unknown_template(reader, name, spans.get("template"), templates);
        }
        found
    });
    let (Some(id), Some(found)) = (id, found) else {
        reader.has_omissions = true;
        return;
    };
    let span = spans.get("id");
    let given = self::arguments(reader, arguments, found, spans.get("template"));
    if !unique(reader, id, span, names) {
        return;
    }
    let n_bytes = (found.node.span.end - found.node.span.start) as usize;
    let (Some(given), true) = (given, fits_limits(reader, found.node, span, graph)) else {
        reader.has_omissions = true;
        return;
    };
    if reader.charge(n_bytes, span).is_none() {
        return;
    }
    let bindings = Some(Bindings::Given(given));
    reader.namespace = Some(Namespace { prefix: Some(id), instance: span, bindings });
    let entry = reader.with_path(
        [PathStep::Field("templates"), PathStep::Item(found.index, found.node)],
        |reader| {
            let section = (&fields::TEMPLATE, fields::set_template as SetFn<'t, GraphSpec>);
            decode_group(reader, section, found.node, graph)
        },
    );
    reader.namespace = None;
    let template = template.map(ToOwned::to_owned);
    graph.hierarchy.push(HierarchyEntry { id: id.to_owned(), template, ..entry });
}

fn unknown_template<'t>(
    reader: &mut Reader<'t>,
    name: &str,
    span: Span,
    templates: &BTreeMap<&'t str, Template<'t>>,
) {
    let message = format!("there is no template `{}`", truncated(name));
    let mut diagnostic = reader.diagnostic(Code::UnknownTemplate, span, message);
    if let Some(meant) = nearest(name, templates.keys().copied()) {
        diagnostic = diagnostic.help(format!("did you mean `{meant}`?")).fix(span, meant);
    }
    reader.report(diagnostic);
}

/// One value per declared parameter and no others; `None` after an error.
fn arguments<'t>(
    reader: &mut Reader<'t>,
    node: Option<&'t YamlNode<'t>>,
    template: &Template<'t>,
    template_span: Span,
) -> Option<BTreeMap<&'t str, &'t YamlNode<'t>>> {
    let mut given = BTreeMap::new();
    let mut spans = BTreeMap::new();
    let mut is_right = true;
    if let Some(node) = node {
        if !matches!(node.kind, YamlKind::Map { .. }) {
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
                reader.duplicate_key(name, key.span, first);
                is_right = false;
            } else if !template.parameters.contains(name) {
                let message = format!("the template has no parameter `{}`", truncated(name));
                let mut diagnostic =
                    reader.diagnostic(Code::InvalidTemplateParameter, key.span, message);
                if let Some(meant) = nearest(name, template.parameters.iter().copied()) {
                    diagnostic =
                        diagnostic.help(format!("did you mean `{meant}`?")).fix(key.span, meant);
                }
                reader.report(diagnostic.related_at(template.id_span, "the template"));
                is_right = false;
            } else if reader.argument_text(value).is_none() {
                is_right = false;
            } else {
                given.insert(name, value);
            }
        }
    }
    for name in &template.parameters {
        if !spans.contains_key(name) {
            let message = format!("parameter `{}` has no value", truncated(name));
            let diagnostic =
                reader.diagnostic(Code::InvalidTemplateParameter, template_span, message);
            reader.report(diagnostic.related_at(template.id_span, "the template"));
            is_right = false;
        }
    }
    is_right.then_some(given)
}

/// Whether all items of a group fit into the limits. Reports an error if not.
fn fits_limits<'t>(
    reader: &mut Reader<'t>,
    group: &'t YamlNode<'t>,
    span: Span,
    graph: &GraphSpec,
) -> bool {
    let limits = reader.limits;
    let mut is_room = true;
    for (name, n_now, max) in [
        ("components", graph.components.len(), limits.components),
        ("edges", graph.edges.len(), limits.edges),
        ("composite_loops", graph.loops.len(), limits.loops),
        ("chains", graph.chains.len(), limits.loops),
    ] {
        let more = value_of(reader, group, name).map_or(0, |list| reader.tree.items(list).len());
        if n_now.saturating_add(more) > max {
            let message =
                format!("{} {name} with this group, but at most {max} are allowed", n_now + more);
            reader.error(Code::LimitExceeded, span, message);
            reader.has_omissions = true;
            is_room = false;
        }
    }
    is_room
}

/// Adds the items of a group and returns their ids.
fn decode_group<'t>(
    reader: &mut Reader<'t>,
    (section, set): (&'static Section, SetFn<'t, GraphSpec>),
    node: &'t YamlNode<'t>,
    graph: &mut GraphSpec,
) -> HierarchyEntry {
    let begins = (graph.components.len(), graph.edges.len(), graph.loops.len());
    reader.item(section, node, graph, set);
    HierarchyEntry {
        id: String::new(),
        template: None,
        components: graph.components[begins.0..].iter().map(|one| one.id.clone()).collect(),
        edges: graph.edges[begins.1..].iter().map(|one| one.id.clone()).collect(),
        loops: graph.loops[begins.2..].iter().map(|one| one.id.clone()).collect(),
    }
}

impl<'t> Reader<'t> {
    /// The value of a parameter: any scalar except null.
    fn argument_text(&mut self, node: &'t YamlNode<'t>) -> Option<Cow<'t, str>> {
        let text = self.scalar(node, "a string or a number")?.text;
        if self.is_null(node) {
            self.wrong_type(node, "a string or a number");
            return None;
        }
        let max = self.limits.string_bytes;
        if text.len() > max {
            let message = format!("{} bytes, but at most {max} are allowed", text.len());
            self.error(Code::LimitExceeded, node.span, message);
            return None;
        }
        Some(text)
    }
}
