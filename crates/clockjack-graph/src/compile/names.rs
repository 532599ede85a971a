//! Names become numbers: components, lanes, ports and the ends of edges. What cannot be found is
//! told once here; the checks after it leave out what would only repeat it.

use std::{collections::BTreeSet, sync::Arc};

use super::{Catalog, report::Report};
use crate::{
    component::{Descriptor, Need, PortDescriptor, descriptor::Multiplicity},
    describe::{BoundaryRole, ComponentSpec, EdgeSpec, GraphSpec, Span},
    diagnostic::{Code, Diagnostic},
};

/// An end of an edge, as far as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) component: usize,
    pub(super) port: Option<usize>,
}

/// A description with numbers for names.
#[derive(Debug)]
pub(super) struct Names<'a> {
    pub(super) spec: &'a GraphSpec,
    pub(super) components: Ids<'a>,
    pub(super) lanes: Ids<'a>,
    /// What each component's type says of itself.
    pub(super) descriptors: Vec<Arc<Descriptor>>,
    /// The type is unknown: the ports are those that edges name, and nothing else is known.
    pub(super) is_assumed: Vec<bool>,
    /// An edge that was meant for this component may have gone astray, so that nothing is said
    /// about inputs without one.
    pub(super) is_input_doubtful: Vec<bool>,
    pub(super) lane_of: Vec<Option<usize>>,
    /// Both ends of each edge.
    pub(super) ends: Vec<(Option<End>, Option<End>)>,
    /// The edges at each input of each component.
    pub(super) at_inputs: Vec<Vec<Vec<usize>>>,
    /// The edges at each output of each component.
    pub(super) at_outputs: Vec<Vec<Vec<usize>>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(spec: &'a GraphSpec, catalog: &dyn Catalog, report: &mut Report<'_>) -> Self {
        let lanes =
            Ids::new(spec.lanes.iter().map(|one| (&*one.id, one.marks.item)), "lanes", report);
        let components = Ids::new(
            spec.components.iter().map(|one| (&*one.id, one.marks.get("id"))),
            "components",
            report,
        );
        let _ =
            Ids::new(spec.edges.iter().map(|one| (&*one.id, one.marks.get("id"))), "edges", report);
        let _ = Ids::new(
            spec.loops.iter().map(|one| (&*one.id, one.marks.get("id"))),
            "composite_loops",
            report,
        );
        let n = spec.components.len();
        let mut names = Self {
            spec,
            components,
            lanes,
            descriptors: Vec::with_capacity(n),
            is_assumed: vec![false; n],
            is_input_doubtful: vec![false; n],
            lane_of: Vec::with_capacity(n),
            ends: Vec::with_capacity(spec.edges.len()),
            at_inputs: Vec::new(),
            at_outputs: Vec::new(),
        };
        names.find_types(catalog, report);
        names.find_lanes(report);
        names.find_ends(report);
        names
    }

    /// Whether messages may come to this component's inputs from outside of the graph.
    pub(super) fn is_fed(&self, component: usize) -> bool {
        let role = self.spec.components[component].boundary.role;
        matches!(role, BoundaryRole::Input | BoundaryRole::InputOutput)
    }

    /// The lane of a component.
    pub(super) fn lane(&self, component: usize) -> Option<&'a crate::describe::LaneSpec> {
        self.lane_of[component].map(|lane| &self.spec.lanes[lane])
    }

    /// The inputs that a component's trigger looks at: those of the policy, else the union of
    /// those of its sources, in declared order.
    pub(super) fn trigger_inputs(component: &'a ComponentSpec) -> Vec<&'a str> {
        let policy = component.trigger.inputs.iter();
        let sources = component.event_sources.iter().flat_map(|source| &source.inputs);
        // Without any of the policy's own those of the sources count, and only then.
        let n_sources = if component.trigger.inputs.is_empty() { usize::MAX } else { 0 };
        let mut found: Vec<&str> = Vec::new();
        for name in policy.chain(sources.take(n_sources)) {
            if !found.contains(&&**name) {
                found.push(name);
            }
        }
        found
    }

    fn find_types(&mut self, catalog: &dyn Catalog, report: &mut Report<'_>) {
        let mut told = BTreeSet::new();
        for (at, component) in self.spec.components.iter().enumerate() {
            if let Some(descriptor) = catalog.descriptor(at, component) {
                self.descriptors.push(descriptor);
                continue;
            }
            self.is_assumed[at] = true;
            self.descriptors.push(Arc::new(Descriptor::new(&component.component_type)));
            let name = &component.component_type;
            let found = Diagnostic::new(
                Code::UnknownType,
                format!("components.{}.type", component.id),
                format!("there is no component type `{name}`"),
            )
            .at(component.marks.get("type"))
            .component(&component.id);
            // The same wrong name in many components is looked for once.
            if told.insert(name) {
                report.push_unknown(found, name, catalog.types(), |meant| {
                    (name.clone(), meant.to_owned())
                });
            } else {
                report.push(found);
            }
        }
        self.assume_ports();
    }

    /// Gives components of unknown types the ports that edges name.
    fn assume_ports(&mut self) {
        if !self.is_assumed.contains(&true) {
            return;
        }
        for edge in &self.spec.edges {
            for (endpoint, is_output) in [(&edge.from, true), (&edge.to, false)] {
                let (component, name) = EdgeSpec::split(endpoint);
                let Some(at) = self.components.get(component) else { continue };
                if !self.is_assumed[at] {
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
            .at(component.marks.get("execution.lane"))
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
            let from = self.find_end(edge, Side::From, report);
            let to = self.find_end(edge, Side::To, report);
            if let Some(End { component, port: Some(port) }) = from {
                self.at_outputs[component][port].push(at);
            }
            match to {
                Some(End { component, port: Some(port) }) => {
                    self.at_inputs[component][port].push(at);
                }
                Some(End { component, port: None }) => self.is_input_doubtful[component] = true,
                None => {}
            }
            self.ends.push((from, to));
        }
    }

    fn find_end(&mut self, edge: &EdgeSpec, side: Side, report: &mut Report<'_>) -> Option<End> {
        let (field, endpoint) = match side {
            Side::From => ("from", &edge.from),
            Side::To => ("to", &edge.to),
        };
        let span = edge.marks.get(field);
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
            let all = self.spec.components.iter().map(|one| &*one.id);
            let meant = report.push_unknown(found.edge(&edge.id), component, all, |meant| {
                (endpoint.clone(), format!("{meant}.{port}"))
            });
            if let (Some(meant), Side::To) = (meant.and_then(|id| self.components.get(id)), side) {
                self.is_input_doubtful[meant] = true;
            }
            return None;
        };
        let descriptor = &self.descriptors[at];
        let (ports, others, kind) = match side {
            Side::From => (&descriptor.outputs, &descriptor.inputs, "output"),
            Side::To => (&descriptor.inputs, &descriptor.outputs, "input"),
        };
        let found = ports.iter().position(|one| one.name == port);
        if found.is_none() {
            let text = format!("component `{component}` has no {kind} `{port}`");
            let found = Diagnostic::new(Code::UnknownPort, path(), text)
                .at(span)
                .component(component)
                .edge(&edge.id);
            if others.iter().any(|one| one.name == port) {
                report.push(found.help(format!("`{port}` is not an {kind} but the other kind")));
            } else {
                let all = ports.iter().map(|one| &*one.name);
                report.push_unknown(found, port, all, |meant| {
                    (endpoint.clone(), format!("{component}.{meant}"))
                });
            }
        }
        Some(End { component: at, port: found })
    }
}

/// Which end of an edge.
#[derive(Clone, Copy, Debug)]
enum Side {
    From,
    To,
}

/// The number of each id, in the order of the ids.
#[derive(Debug)]
pub(super) struct Ids<'a>(Vec<(&'a str, usize)>);

impl<'a> Ids<'a> {
    /// The first of several with one id has it; an empty one is none.
    fn new(
        ids: impl Iterator<Item = (&'a str, Span)> + Clone,
        section: &str,
        report: &mut Report<'_>,
    ) -> Self {
        let mut list: Vec<(&str, usize)> =
            ids.clone().enumerate().map(|(at, (id, _))| (id, at)).collect();
        list.sort_unstable();
        // Each fault with the number of the earlier one, told in the order of the description.
        let mut faults = Vec::new();
        list.dedup_by(|later, first| {
            let is_again = later.0 == first.0 && !later.0.is_empty();
            if is_again {
                faults.push((later.1, Some(first.1)));
            }
            is_again
        });
        let n_empty = list.partition_point(|(id, _)| id.is_empty());
        faults.extend(list.drain(..n_empty).map(|(_, at)| (at, None)));
        if !faults.is_empty() {
            faults.sort_unstable();
            let all: Vec<(&str, Span)> = ids.collect();
            for (at, earlier) in faults {
                let (id, span) = all[at];
                report.push(match earlier {
                    None => {
                        let path = format!("{section}[{at}]");
                        Diagnostic::new(Code::InvalidIdentifier, path, "an id is empty").at(span)
                    }
                    Some(earlier) => {
                        let text = format!("the id `{id}` is given twice");
                        Diagnostic::new(Code::DuplicateId, format!("{section}.{id}"), text)
                            .at(span)
                            .and_at(all[earlier].1, "first given here")
                            .help("give one of them another id")
                    }
                });
            }
        }
        Self(list)
    }

    /// The number of an id.
    pub(super) fn get(&self, id: &str) -> Option<usize> {
        let at = self.0.binary_search_by(|(one, _)| (**one).cmp(id)).ok()?;
        Some(self.0[at].1)
    }
}
