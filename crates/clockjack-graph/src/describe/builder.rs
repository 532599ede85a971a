//! Graphs built in code: the same description as a file gives, with components that exist already
//! and connections that the compiler checks for their payloads.
//!
//! Nothing here panics over a wrong graph. What is wrong is told by [`GraphBuilder::build`], all of
//! it at once, as for a file.

mod edge;
mod lane;
mod setup;
#[cfg(test)]
mod tests;

use core::{fmt, marker::PhantomData, time::Duration};
use std::{collections::BTreeSet, sync::Arc};

use clockjack_sync::mutant;

use super::{
    reader::is_identifier,
    spec::{ComponentSpec, ConfigValue, Domain, EdgeSpec, GraphKind, GraphSpec, Span},
};
use crate::{
    compile::{self, Catalog},
    component::{Component, Descriptor, Execute, ExecuteShared, InputPort, OutputPort},
    diagnostic::{Code, Diagnostic, Diagnostics},
    graph::{Graph, Made},
    registry::node::{Body, Own, Shared},
};
pub use edge::{Edge, Loop};
pub use lane::Lane;
pub use setup::{Setup, Trigger};

/// A graph that is being built.
pub struct GraphBuilder {
    spec: GraphSpec,
    parts: Vec<Part>,
    /// Of each edge: whether its id was given.
    has_id: Vec<bool>,
    faults: Vec<Diagnostic>,
}

/// What a component is, beside its description.
pub(crate) struct Part {
    descriptor: Arc<Descriptor>,
    made: Made,
    /// Inputs follow from the edges when all are known.
    has_implied_inputs: bool,
}

/// A component that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    id: Arc<str>,
}

/// An output of a component that was added.
pub struct Out<T> {
    endpoint: String,
    carries: PhantomData<fn() -> T>,
}

/// An input of a component that was added.
pub struct In<T> {
    endpoint: String,
    carries: PhantomData<fn() -> T>,
}

impl Added {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// One of its outputs.
    #[must_use]
    pub fn out<T>(&self, port: OutputPort<T>) -> Out<T>
    where
        T: crate::data::Data,
    {
        Out { endpoint: format!("{}.{}", self.id, port.name()), carries: PhantomData }
    }

    /// One of its inputs.
    #[must_use]
    pub fn input<T>(&self, port: InputPort<T>) -> In<T>
    where
        T: crate::data::Data,
    {
        In { endpoint: format!("{}.{}", self.id, port.name()), carries: PhantomData }
    }
}

macro_rules! ends {
    ($($end:ident)+) => { $(
        impl<T> Clone for $end<T> {
            fn clone(&self) -> Self {
                Self { endpoint: self.endpoint.clone(), carries: PhantomData }
            }
        }

        impl<T> fmt::Debug for $end<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($end)).field(&self.endpoint).finish()
            }
        }
    )+ };
}

ends!(Out In);

impl Graph {
    /// A graph of this name, to be built in code.
    #[must_use]
    pub fn builder(name: &str) -> GraphBuilder {
        GraphBuilder {
            spec: GraphSpec { name: name.into(), ..GraphSpec::default() },
            parts: Vec::new(),
            has_id: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl GraphBuilder {
    /// What the graph is for.
    pub fn kind(&mut self, kind: GraphKind) -> &mut Self {
        self.spec.kind = kind;
        self
    }

    /// Whose clock the timestamps of events are of.
    pub fn event_domain(&mut self, domain: Domain) -> &mut Self {
        self.spec.event_domain = domain;
        self
    }

    /// A setting of the graph.
    pub fn config(&mut self, key: &str, value: impl Into<ConfigValue>) -> &mut Self {
        self.spec.config.entries.push((key.into(), value.into(), Span::NONE));
        self
    }

    /// Adds a lane.
    pub fn lane(&mut self, id: &str, lane: Lane) -> &mut Self {
        self.check_id(id, "lanes");
        let (lane, odd) = lane.into_spec(id);
        self.tell_odd(&format!("lanes.{id}"), &odd);
        if self.spec.lanes.iter().any(|other| other.id == id) {
            let text = format!("lane `{id}` is given twice");
            self.faults.push(Diagnostic::new(Code::DuplicateId, format!("lanes.{id}"), text));
        } else {
            self.spec.lanes.push(lane);
        }
        self
    }

    /// Adds a component. There is one of it, so it cannot be made anew after a failure.
    pub fn add<C: Execute>(&mut self, id: &str, component: C, setup: Setup) -> Added {
        let made = Made::Once(Body::Own(Own::boxed(component)));
        self.insert(id, C::TYPE, C::describe(), made, setup)
    }

    /// Adds a component that is made by a call, also anew after a failure.
    pub fn add_with<C: Execute>(
        &mut self,
        id: &str,
        make: impl Fn() -> C + Send + Sync + 'static,
        setup: Setup,
    ) -> Added {
        let made = Made::Factory(Arc::new(move || Body::Own(Own::boxed(make()))));
        self.insert(id, C::TYPE, C::describe(), made, setup)
    }

    /// Adds a component whose invocations may overlap, if its setup says so.
    pub fn add_shared<C: ExecuteShared>(&mut self, id: &str, component: C, setup: Setup) -> Added {
        let made = Made::Once(Body::Shared(Shared::counted(component)));
        self.insert_shared::<C>(id, made, setup)
    }

    /// Connects an output with an input of the same payload.
    pub fn connect<T>(&mut self, from: Out<T>, to: In<T>, edge: Edge) -> &mut Self {
        let Edge { id, kind, policy, odd } = edge;
        self.has_id.push(id.is_some());
        let id = match id {
            Some(id) => {
                self.check_id(&id, "edges");
                id
            }
            None => format!("{}:{}", from.endpoint, to.endpoint),
        };
        self.tell_odd(&format!("edges.{id}.policy"), &odd);
        let marks = Default::default();
        let (from, to) = (from.endpoint, to.endpoint);
        self.spec.edges.push(EdgeSpec { id, kind, from, to, policy, marks });
        self
    }

    /// Gives a cycle of immediate edges its owner. The members are exactly those of the cycle.
    pub fn loop_of(&mut self, id: &str, members: &[&Added], policy: Loop) -> &mut Self {
        self.check_id(id, "composite_loops");
        let (mut spec, odd) = policy.into_spec(id);
        self.tell_odd(&format!("composite_loops.{id}.loop_policy"), &odd);
        spec.components = members.iter().map(|one| one.id().into()).collect();
        self.spec.loops.push(spec);
        self
    }

    /// Checks the graph, and fixes the order in which its results are committed.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, at once.
    pub fn build(self) -> Result<Graph, Diagnostics> {
        let (spec, parts, mut list) = self.into_parts();
        let (plan, findings) = compile::compile(&spec, &Parts(&parts));
        list.extend(findings);
        match plan {
            Some(plan) if !list.iter().any(Diagnostic::is_error) => {
                let made = parts.into_iter().map(|part| part.made).collect();
                Ok(Graph { plan: Arc::new(plan), made })
            }
            _ => Err(Diagnostics { source: None, list }),
        }
    }

    /// The description, the components in its order, and the mistakes that it cannot hold.
    pub(crate) fn into_parts(mut self) -> (GraphSpec, Vec<Part>, Vec<Diagnostic>) {
        for (component, part) in self.spec.components.iter_mut().zip(&self.parts) {
            if part.has_implied_inputs {
                imply_inputs(component, &part.descriptor, &self.spec.edges);
            }
        }
        name_edges(&mut self.spec.edges, &self.has_id);
        (self.spec, self.parts, self.faults)
    }

    fn insert_shared<C: ExecuteShared>(&mut self, id: &str, made: Made, setup: Setup) -> Added {
        let mut descriptor = <C as Component>::describe();
        descriptor.reentrant = true;
        self.insert(id, C::TYPE, descriptor, made, setup)
    }

    fn insert(
        &mut self,
        id: &str,
        component_type: &str,
        descriptor: Descriptor,
        made: Made,
        setup: Setup,
    ) -> Added {
        self.check_id(id, "components");
        let Setup { mut spec, role, has_implied_inputs, odd } = setup;
        self.tell_odd(&format!("components.{id}"), &odd);
        spec.id = id.into();
        spec.component_type = component_type.into();
        spec.boundary.role = role.or(descriptor.role).unwrap_or_default();
        self.spec.components.push(spec);
        self.parts.push(Part { descriptor: Arc::new(descriptor), made, has_implied_inputs });
        Added { id: id.into() }
    }

    fn check_id(&mut self, id: &str, list: &str) {
        if !is_identifier(id) {
            let text = format!("`{id}` is no identifier");
            self.faults.push(Diagnostic::new(Code::InvalidIdentifier, list, text));
        }
    }

    fn tell_odd(&mut self, path: &str, odd: &[(&'static str, Duration)]) {
        for (field, time) in odd {
            let text = format!("{time:?} is not a whole number of milliseconds");
            let path = format!("{path}.{field}");
            self.faults.push(Diagnostic::new(Code::InvalidValue, path, text));
        }
    }
}

impl fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// The components themselves say what their types are.
struct Parts<'a>(&'a [Part]);

impl Catalog for Parts<'_> {
    fn descriptor(&self, index: usize, _spec: &ComponentSpec) -> Option<Arc<Descriptor>> {
        self.0.get(index).map(|part| Arc::clone(&part.descriptor))
    }

    fn types(&self) -> Vec<&str> {
        self.0.iter().map(|part| &*part.descriptor.component_type).collect()
    }

    fn can_restart(&self, index: usize) -> bool {
        let is_factory = |part: &Part| matches!(part.made, Made::Factory(_));
        self.0.get(index).is_some_and(is_factory) || mutant!("builder-restarts-the-only-one")
    }
}

/// A trigger looks at the inputs that are connected, in the order of the component's type. Without
/// any it looks at all, so that whoever builds it hears which are missing.
fn imply_inputs(component: &mut ComponentSpec, descriptor: &Descriptor, edges: &[EdgeSpec]) {
    let is_connected =
        |port: &str| edges.iter().any(|edge| EdgeSpec::split(&edge.to) == (&component.id, port));
    let all = || descriptor.inputs.iter().map(|port| port.name.clone());
    let mut inputs: Vec<String> = all().filter(|port| is_connected(port)).collect();
    if inputs.is_empty() {
        inputs = all().collect();
    }
    for source in &mut component.event_sources {
        source.inputs.clone_from(&inputs);
    }
}

/// Edges without an id of their own are called after their ends; further ones between the same ends
/// are numbered.
fn name_edges(edges: &mut [EdgeSpec], has_id: &[bool]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (edge, has_id) in edges.iter_mut().zip(has_id) {
        if !has_id && taken.contains(&edge.id) {
            let free = (2u64..).map(|n| format!("{}:{n}", edge.id));
            let mut free = free.filter(|id| !taken.contains(id));
            edge.id = free.next().expect("numbers do not end");
        }
        taken.insert(edge.id.clone());
    }
}

/// Whole milliseconds of a time; of one with a rest, that and the time are kept for a report.
fn millis(field: &'static str, time: Duration, odd: &mut Vec<(&'static str, Duration)>) -> u64 {
    match u64::try_from(time.as_millis()) {
        Ok(millis) if Duration::from_millis(millis) == time => millis,
        _ => {
            odd.push((field, time));
            0
        }
    }
}
