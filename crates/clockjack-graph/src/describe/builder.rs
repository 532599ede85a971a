//! Builds graphs in code. The result is the same description as that of a file, but the components
//! are Rust values, and the Rust compiler checks that connected ports have the same payload type.
//!
//! An invalid graph does not panic: [`GraphBuilder::build`] reports all errors at once, as for a
//! file.

mod edge;
mod lane;
mod setup;
#[cfg(test)]
mod tests;

use core::{fmt, marker::PhantomData, time::Duration};
use std::{collections::BTreeSet, sync::Arc};

use super::{
    reader::is_identifier,
    spec::{ChainSpec, ClockDomain, ComponentSpec, ConfigValue, EdgeSpec, GraphSpec, Span},
};
use crate::{
    compile::{self, TypeCatalog},
    component::{Component, Descriptor, Execute, ExecuteShared, InputPort, OutputPort},
    diagnostic::{Code, Diagnostic, Diagnostics},
    graph::{ComponentSource, Graph},
    registry::node::{ErasedComponent, ExclusiveComponent, SharedComponent},
};
pub use edge::{Edge, Loop};
pub use lane::Lane;
pub use setup::{Setup, Trigger};

/// A graph under construction.
pub struct GraphBuilder {
    spec: GraphSpec,
    parts: Vec<BuiltComponent>,
    /// For each edge: whether the caller set its id.
    has_id: Vec<bool>,
    diagnostics: Vec<Diagnostic>,
}

/// A component and its type, next to its description.
pub(crate) struct BuiltComponent {
    descriptor: Arc<Descriptor>,
    source: ComponentSource,
    /// The trigger's inputs follow from the edges, once all edges are known.
    has_implied_inputs: bool,
}

/// A handle to a component that was added.
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
    /// The id of the component.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// An output of the component.
    #[must_use]
    pub fn out<T>(&self, port: OutputPort<T>) -> Out<T>
    where
        T: crate::data::Data,
    {
        Out { endpoint: format!("{}.{}", self.id, port.name()), carries: PhantomData }
    }

    /// An input of the component.
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
    /// Creates a builder for a graph with this name.
    #[must_use]
    pub fn builder(name: &str) -> GraphBuilder {
        GraphBuilder {
            spec: GraphSpec { name: name.into(), ..GraphSpec::default() },
            parts: Vec::new(),
            has_id: Vec::new(),
            diagnostics: Vec::new(),
        }
    }
}

impl GraphBuilder {
    /// Sets the clock domain of event timestamps.
    pub fn event_domain(&mut self, domain: ClockDomain) -> &mut Self {
        self.spec.event_domain = domain;
        self
    }

    /// Adds a setting of the graph.
    pub fn config(&mut self, key: &str, value: impl Into<ConfigValue>) -> &mut Self {
        self.spec.config.entries.push((key.into(), value.into(), Span::NONE));
        self
    }

    /// Adds a lane.
    pub fn lane(&mut self, id: &str, lane: Lane) -> &mut Self {
        self.check_id(id, "lanes");
        let (lane, inexact) = lane.into_spec(id);
        self.report_inexact(&format!("lanes.{id}"), &inexact);
        if self.spec.lanes.iter().any(|other| other.id == id) {
            let text = format!("lane `{id}` is defined twice");
            self.diagnostics.push(Diagnostic::new(Code::DuplicateId, format!("lanes.{id}"), text));
        } else {
            self.spec.lanes.push(lane);
        }
        self
    }

    /// Adds a component. There is only this instance, so it cannot be restarted after a failure.
    pub fn add<C: Execute>(&mut self, id: &str, component: C, setup: Setup) -> Added {
        let source = ComponentSource::Instance(ErasedComponent::Exclusive(
            ExclusiveComponent::boxed(component),
        ));
        self.insert(id, C::TYPE, C::describe(), source, setup)
    }

    /// Adds a component with a factory, which also creates the new instance after a failure.
    pub fn add_with<C: Execute>(
        &mut self,
        id: &str,
        make: impl Fn() -> C + Send + Sync + 'static,
        setup: Setup,
    ) -> Added {
        let source = ComponentSource::Factory(Arc::new(move || {
            ErasedComponent::Exclusive(ExclusiveComponent::boxed(make()))
        }));
        self.insert(id, C::TYPE, C::describe(), source, setup)
    }

    /// Adds a component whose invocations may overlap, if its setup says so.
    pub fn add_shared<C: ExecuteShared>(&mut self, id: &str, component: C, setup: Setup) -> Added {
        let source =
            ComponentSource::Instance(ErasedComponent::Shared(SharedComponent::in_arc(component)));
        self.insert_shared::<C>(id, source, setup)
    }

    /// Connects an output with an input of the same payload type.
    pub fn connect<T>(&mut self, from: Out<T>, to: In<T>, edge: Edge) -> &mut Self {
        let Edge { id, kind, policy, inexact } = edge;
        self.has_id.push(id.is_some());
        let id = match id {
            Some(id) => {
                self.check_id(&id, "edges");
                id
            }
            None => format!("{}:{}", from.endpoint, to.endpoint),
        };
        self.report_inexact(&format!("edges.{id}.policy"), &inexact);
        let spans = Default::default();
        let (from, to) = (from.endpoint, to.endpoint);
        self.spec.edges.push(EdgeSpec { id, kind, from, to, policy, spans });
        self
    }

    /// Adds a loop that owns a cycle of immediate edges. The members are exactly those of the
    /// cycle.
    pub fn loop_of(&mut self, id: &str, members: &[&Added], policy: Loop) -> &mut Self {
        self.check_id(id, "composite_loops");
        let (mut spec, inexact) = policy.into_spec(id);
        self.report_inexact(&format!("composite_loops.{id}.loop_policy"), &inexact);
        spec.components = members.iter().map(|one| one.id().into()).collect();
        self.spec.loops.push(spec);
        self
    }

    /// Adds a latency budget: data of `from` must reach `to` within this time. The chain is named
    /// `from:to`.
    pub fn chain(&mut self, from: &Added, to: &Added, max: Duration) -> &mut Self {
        let mut chain =
            ChainSpec { from: from.id().into(), to: to.id().into(), ..ChainSpec::default() };
        chain.set_default_id();
        let mut inexact = InexactTimes::default();
        chain.max_ms = inexact.millis("max_ms", max);
        if inexact.0.is_empty() {
            self.spec.chains.push(chain);
        } else {
            self.report_inexact(&format!("chains.{}", chain.id), &inexact);
        }
        self
    }

    /// Checks the graph and computes the order in which its results are committed.
    ///
    /// # Errors
    ///
    /// All errors of the graph.
    pub fn build(self) -> Result<Graph, Diagnostics> {
        let (spec, parts, mut list) = self.into_parts();
        let (plan, findings) = compile::compile(&spec, &BuiltCatalog(&parts));
        list.extend(findings);
        match plan {
            Some(plan) if !list.iter().any(Diagnostic::is_error) => {
                let sources = parts.into_iter().map(|part| part.source).collect();
                Ok(Graph { plan: Arc::new(plan), sources })
            }
            _ => Err(Diagnostics { source: None, list }),
        }
    }

    /// The description, the components in its order, and the errors that the description cannot
    /// represent.
    pub(crate) fn into_parts(mut self) -> (GraphSpec, Vec<BuiltComponent>, Vec<Diagnostic>) {
        for (component, part) in self.spec.components.iter_mut().zip(&self.parts) {
            if part.has_implied_inputs {
                imply_inputs(component, &part.descriptor, &self.spec.edges);
            }
        }
        name_edges(&mut self.spec.edges, &self.has_id);
        (self.spec, self.parts, self.diagnostics)
    }

    fn insert_shared<C: ExecuteShared>(
        &mut self,
        id: &str,
        source: ComponentSource,
        setup: Setup,
    ) -> Added {
        let mut descriptor = <C as Component>::describe();
        descriptor.reentrant = true;
        self.insert(id, C::TYPE, descriptor, source, setup)
    }

    fn insert(
        &mut self,
        id: &str,
        component_type: &str,
        descriptor: Descriptor,
        source: ComponentSource,
        setup: Setup,
    ) -> Added {
        self.check_id(id, "components");
        let Setup { mut spec, role, has_implied_inputs, inexact } = setup;
        self.report_inexact(&format!("components.{id}"), &inexact);
        spec.id = id.into();
        spec.component_type = component_type.into();
        spec.boundary.role = role.or(descriptor.role).unwrap_or_default();
        self.spec.components.push(spec);
        self.parts.push(BuiltComponent {
            descriptor: Arc::new(descriptor),
            source,
            has_implied_inputs,
        });
        Added { id: id.into() }
    }

    fn check_id(&mut self, id: &str, list: &str) {
        if !is_identifier(id) {
            let text = format!("`{id}` is not an identifier");
            self.diagnostics.push(Diagnostic::new(Code::InvalidIdentifier, list, text));
        }
    }

    fn report_inexact(&mut self, path: &str, inexact: &InexactTimes) {
        for (field, time) in &inexact.0 {
            let text = format!("{time:?} is not a whole number of milliseconds");
            let path = format!("{path}.{field}");
            self.diagnostics.push(Diagnostic::new(Code::InvalidValue, path, text));
        }
    }
}

impl fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Takes the component types from the components themselves.
struct BuiltCatalog<'a>(&'a [BuiltComponent]);

impl TypeCatalog for BuiltCatalog<'_> {
    fn descriptor(&self, index: usize, _spec: &ComponentSpec) -> Option<Arc<Descriptor>> {
        self.0.get(index).map(|part| Arc::clone(&part.descriptor))
    }

    fn types(&self) -> Vec<&str> {
        self.0.iter().map(|part| &*part.descriptor.component_type).collect()
    }

    fn can_restart(&self, index: usize) -> bool {
        let is_factory = |part: &BuiltComponent| matches!(part.source, ComponentSource::Factory(_));
        self.0.get(index).is_some_and(is_factory)
    }
}

/// Sets the trigger's inputs to the connected inputs, in the order of the component's type. If no
/// input is connected, the trigger gets all inputs, so that the missing ones are reported.
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

/// Names edges without an id after their ends; further edges between the same ends get a number.
fn name_edges(edges: &mut [EdgeSpec], has_id: &[bool]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (edge, has_id) in edges.iter_mut().zip(has_id) {
        if !has_id && taken.contains(&edge.id) {
            let free = (2u64..).map(|n| format!("{}:{n}", edge.id));
            let mut free = free.filter(|id| !taken.contains(id));
            edge.id = free.next().expect("there is always another number");
        }
        taken.insert(edge.id.clone());
    }
}

/// Times that are not whole milliseconds, with their fields. `build` reports them.
#[derive(Clone, Debug, Default)]
struct InexactTimes(Vec<(&'static str, Duration)>);

impl InexactTimes {
    /// The time in whole milliseconds. A time with a fraction is recorded for a report.
    fn millis(&mut self, field: &'static str, time: Duration) -> u64 {
        match u64::try_from(time.as_millis()) {
            Ok(millis) if Duration::from_millis(millis) == time => millis,
            _ => {
                self.0.push((field, time));
                0
            }
        }
    }
}
