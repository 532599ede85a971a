//! Resolves names to indices: components, lanes, ports and the ends of edges. Unresolved names are
//! reported here, once; later checks skip errors that would only follow from them.

use std::{collections::BTreeSet, sync::Arc};

use super::{TypeCatalog, report::Report};
use crate::{
    component::{Descriptor, Multiplicity, Need, PortDescriptor},
    describe::{BoundaryRole, ComponentSpec, EdgeSpec, GraphSpec, Span},
    diagnostic::{Code, Diagnostic},
};

/// An end of an edge, as far as it could be resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub(super) component: usize,
    pub(super) port: Option<usize>,
}

/// A description whose names are resolved.
#[derive(Debug)]
pub(super) struct NameResolver<'a> {
    pub(super) spec: &'a GraphSpec,
    pub(super) components: IdIndex<'a>,
    pub(super) lanes: IdIndex<'a>,
    /// The descriptor of each component's type.
    pub(super) descriptors: Vec<Arc<Descriptor>>,
    /// Whether the type is unknown. The ports are then those that edges mention, and nothing else
    /// is known.
    pub(super) is_unknown_type: Vec<bool>,
    /// Whether an unresolved edge, or one of another component of the same id, may have been meant
    /// for this component. Unconnected inputs are then not reported.
    pub(super) has_doubtful_inputs: Vec<bool>,
    pub(super) lane_of: Vec<Option<usize>>,
    /// Both ends of each edge.
    pub(super) ends: Vec<(Option<Endpoint>, Option<Endpoint>)>,
    /// The edges at each input of each component.
    pub(super) at_inputs: Vec<Vec<Vec<usize>>>,
    /// The edges at each output of each component.
    pub(super) at_outputs: Vec<Vec<Vec<usize>>>,
}

impl<'a> NameResolver<'a> {
    pub(super) fn new(
        spec: &'a GraphSpec,
        catalog: &dyn TypeCatalog,
        report: &mut Report<'_>,
    ) -> Self {
        let lanes =
            IdIndex::new(spec.lanes.iter().map(|one| (&*one.id, one.spans.item)), "lanes", report);
        let components = IdIndex::new(
            spec.components.iter().map(|one| (&*one.id, one.spans.get("id"))),
            "components",
            report,
        );
        let _ = IdIndex::new(
            spec.edges.iter().map(|one| (&*one.id, one.spans.get("id"))),
            "edges",
            report,
        );
        let _ = IdIndex::new(
            spec.loops.iter().map(|one| (&*one.id, one.spans.get("id"))),
            "composite_loops",
            report,
        );
        let _ = IdIndex::new(
            spec.chains.iter().map(|one| (&*one.id, one.spans.get("id"))),
            "chains",
            report,
        );
        let n = spec.components.len();
        // Edges of an id that is used twice end at its first component.
        let is_doubtful = |(at, one): (usize, &ComponentSpec)| components.get(&one.id) != Some(at);
        let has_doubtful_inputs = spec.components.iter().enumerate().map(is_doubtful).collect();
        let mut resolved = Self {
            spec,
            components,
            lanes,
            descriptors: Vec::with_capacity(n),
            is_unknown_type: vec![false; n],
            has_doubtful_inputs,
            lane_of: Vec::with_capacity(n),
            ends: Vec::with_capacity(spec.edges.len()),
            at_inputs: Vec::new(),
            at_outputs: Vec::new(),
        };
        resolved.find_types(catalog, report);
        resolved.find_lanes(report);
        resolved.find_ends(report);
        resolved
    }

    /// Whether messages may reach this component's inputs from outside of the graph.
    pub(super) fn is_external_input(&self, component: usize) -> bool {
        let role = self.spec.components[component].boundary.role;
        matches!(role, BoundaryRole::Input | BoundaryRole::InputOutput)
    }

    /// The lane of a component.
    pub(super) fn lane(&self, component: usize) -> Option<&'a crate::describe::LaneSpec> {
        self.lane_of[component].map(|lane| &self.spec.lanes[lane])
    }

    /// The inputs that a component's trigger waits for: those of the policy, or else the union of
    /// those of its event sources, in declared order.
    pub(super) fn trigger_inputs(component: &'a ComponentSpec) -> Vec<&'a str> {
        let policy = component.trigger.inputs.iter();
        let sources = component.event_sources.iter().flat_map(|source| &source.inputs);
        // The inputs of the event sources are used only if the policy lists none.
        let n_sources = if component.trigger.inputs.is_empty() { usize::MAX } else { 0 };
        let mut found: Vec<&str> = Vec::new();
        for name in policy.chain(sources.take(n_sources)) {
            if !found.contains(&&**name) {
                found.push(name);
            }
        }
        found
    }

    fn find_types(&mut self, catalog: &dyn TypeCatalog, report: &mut Report<'_>) {
        let mut reported = BTreeSet::new();
        for (at, component) in self.spec.components.iter().enumerate() {
            if let Some(descriptor) = catalog.descriptor(at, component) {
                self.descriptors.push(descriptor);
                continue;
            }
            self.is_unknown_type[at] = true;
            self.descriptors.push(Arc::new(Descriptor::new(&component.component_type)));
            let name = &component.component_type;
            let found = Diagnostic::new(
                Code::UnknownType,
                format!("components.{}.type", component.id),
                format!("there is no component type `{name}`"),
            )
            .at(component.spans.get("type"))
            .component(&component.id);
            // Suggestions for the same unknown name are computed only once.
            if reported.insert(name) {
                report.push_unknown(found, name, catalog.types(), |meant| {
                    (name.clone(), meant.to_owned())
                });
            } else {
                report.push(found);
            }
        }
        self.infer_ports();
    }

    /// Gives components of unknown types the ports that edges mention.
    fn infer_ports(&mut self) {
        if !self.is_unknown_type.contains(&true) {
            return;
        }
        for edge in &self.spec.edges {
            for (endpoint, is_output) in [(&edge.from, true), (&edge.to, false)] {
                let (component, name) = EdgeSpec::split(endpoint);
                let Some(at) = self.components.get(component) else { continue };
                if !self.is_unknown_type[at] {
                    continue;
                }
                let descriptor = Arc::make_mut(&mut self.descriptors[at]);
                let ports =
                    if is_output { &mut descriptor.outputs } else { &mut descriptor.inputs };
                if !ports.iter().any(|port| port.name == name) {
                    ports.push(PortDescriptor {
                        name: name.into(),
                        schema: "".into(),
                        need: Need::Optional,
                        multiplicity: Multiplicity::Multiple,
                    });
                }
            }
        }
    }

    fn find_lanes(&mut self, report: &mut Report<'_>) {
        for component in &self.spec.components {
            let name = &component.execution.lane;
            let lane = self.lanes.get(name);
            self.lane_of.push(lane);
            if lane.is_some() {
                continue;
            }
            let found = Diagnostic::new(
                Code::UnknownLane,
                format!("components.{}.execution.lane", component.id),
                format!("there is no lane `{name}`"),
            )
            .at(component.spans.get("execution.lane"))
            .component(&component.id);
            let lanes = self.spec.lanes.iter().map(|lane| &*lane.id);
            report.push_unknown(found, name, lanes, |meant| (name.clone(), meant.to_owned()));
        }
    }

    fn find_ends(&mut self, report: &mut Report<'_>) {
        let spec = self.spec;
        self.at_inputs =
            self.descriptors.iter().map(|one| vec![vec![]; one.inputs.len()]).collect();
        self.at_outputs =
            self.descriptors.iter().map(|one| vec![vec![]; one.outputs.len()]).collect();
        for (at, edge) in spec.edges.iter().enumerate() {
            let from = self.find_end(edge, EndpointSide::From, report);
            let to = self.find_end(edge, EndpointSide::To, report);
            if let Some(Endpoint { component, port: Some(port) }) = from {
                self.at_outputs[component][port].push(at);
            }
            match to {
                Some(Endpoint { component, port: Some(port) }) => {
                    self.at_inputs[component][port].push(at);
                }
                Some(Endpoint { component, port: None }) => {
                    self.has_doubtful_inputs[component] = true
                }
                None => {}
            }
            self.ends.push((from, to));
        }
    }

    fn find_end(
        &mut self,
        edge: &EdgeSpec,
        side: EndpointSide,
        report: &mut Report<'_>,
    ) -> Option<Endpoint> {
        let (field, endpoint, other) = match side {
            EndpointSide::From => ("from", &edge.from, &edge.to),
            EndpointSide::To => ("to", &edge.to, &edge.from),
        };
        let span = edge.spans.get(field);
        let path = || format!("edges.{}.{field}", edge.id);
        let (component, port) = EdgeSpec::split(endpoint);
        if component.is_empty() || port.is_empty() {
            let text = format!("`{endpoint}` is not an endpoint");
            report.push(
                Diagnostic::new(Code::InvalidIdentifier, path(), text)
                    .at(span)
                    .edge(&edge.id)
                    .help("write `component.port`"),
            );
            return None;
        }
        let Some(at) = self.components.get(component) else {
            let text = format!("there is no component `{component}`");
            let found = Diagnostic::new(Code::UnknownComponent, path(), text).at(span);
            // An edge from a component to itself is hardly what was meant.
            let (other, _) = EdgeSpec::split(other);
            let all = self.spec.components.iter().map(|one| &*one.id).filter(|id| *id != other);
            let meant = report.push_unknown(found.edge(&edge.id), component, all, |meant| {
                (endpoint.clone(), format!("{meant}.{port}"))
            });
            if let (Some(meant), EndpointSide::To) =
                (meant.and_then(|id| self.components.get(id)), side)
            {
                self.has_doubtful_inputs[meant] = true;
            }
            return None;
        };
        let descriptor = &self.descriptors[at];
        let (ports, others, kind) = match side {
            EndpointSide::From => (&descriptor.outputs, &descriptor.inputs, "output"),
            EndpointSide::To => (&descriptor.inputs, &descriptor.outputs, "input"),
        };
        let found = ports.iter().position(|one| one.name == port);
        if found.is_none() {
            let text = format!("component `{component}` has no {kind} `{port}`");
            let found = Diagnostic::new(Code::UnknownPort, path(), text)
                .at(span)
                .component(component)
                .edge(&edge.id);
            if others.iter().any(|one| one.name == port) {
                report.push(found.help(format!("`{port}` exists, but it is not an {kind}")));
            } else {
                let all = ports.iter().map(|one| &*one.name);
                report.push_unknown(found, port, all, |meant| {
                    (endpoint.clone(), format!("{component}.{meant}"))
                });
            }
        }
        Some(Endpoint { component: at, port: found })
    }
}

/// An end of an edge.
#[derive(Clone, Copy, Debug)]
enum EndpointSide {
    From,
    To,
}

/// The index of each id, sorted by id.
#[derive(Debug)]
pub(super) struct IdIndex<'a>(Vec<(&'a str, usize)>);

impl<'a> IdIndex<'a> {
    /// Builds the index. If several items have the same id, the first one wins; empty ids are left
    /// out.
    fn new(
        ids: impl Iterator<Item = (&'a str, Span)> + Clone,
        section: &str,
        report: &mut Report<'_>,
    ) -> Self {
        let mut list: Vec<(&str, usize)> =
            ids.clone().enumerate().map(|(at, (id, _))| (id, at)).collect();
        list.sort_unstable();
        // Each error with the index of the earlier item, reported in the order of the description.
        let mut errors = Vec::new();
        list.dedup_by(|later, first| {
            let is_again = later.0 == first.0 && !later.0.is_empty();
            if is_again {
                errors.push((later.1, Some(first.1)));
            }
            is_again
        });
        let n_empty = list.partition_point(|(id, _)| id.is_empty());
        errors.extend(list.drain(..n_empty).map(|(_, at)| (at, None)));
        if !errors.is_empty() {
            errors.sort_unstable();
            let all: Vec<(&str, Span)> = ids.collect();
            for (at, earlier) in errors {
                let (id, span) = all[at];
                report.push(match earlier {
                    None => {
                        let path = format!("{section}[{at}]");
                        Diagnostic::new(Code::InvalidIdentifier, path, "the id is empty").at(span)
                    }
                    Some(earlier) => {
                        let text = format!("the id `{id}` is used twice");
                        Diagnostic::new(Code::DuplicateId, format!("{section}.{id}"), text)
                            .at(span)
                            .related_at(all[earlier].1, "first used here")
                            .help("change one of the ids")
                    }
                });
            }
        }
        Self(list)
    }

    /// The index of an id.
    pub(super) fn get(&self, id: &str) -> Option<usize> {
        let at = self.0.binary_search_by(|(one, _)| (**one).cmp(id)).ok()?;
        Some(self.0[at].1)
    }
}
