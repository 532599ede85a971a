//! Compiles a description to a plan: runs all checks, finds the regions, and computes the order in
//! which they commit.
//!
//! The compiler executes no component and uses neither clocks nor threads: the same description
//! always gives the same plan and the same diagnostics in the same order. There is a plan if and
//! only if there is no error.

pub(crate) mod capability;
mod chain;
mod check;
pub mod diff;
mod imply;
pub mod lint;
mod order;
pub mod plan;
mod region;
mod report;
mod resolve;
mod scc;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use crate::{
    component::Descriptor,
    describe::{ComponentSpec, GraphSpec},
    diagnostic::{Diagnostic, Diagnostics},
    registry::Registry,
};
pub use plan::{
    LaneCapabilities, Plan, PlanChain, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort,
    PlanRegion,
};
use report::Report;
use resolve::NameResolver;

/// The known component types: a registry, or the components themselves.
pub(crate) trait TypeCatalog {
    /// The descriptor of a component's type; `None` if the type is unknown.
    fn descriptor(&self, index: usize, spec: &ComponentSpec) -> Option<Arc<Descriptor>>;

    /// The names of all types, for suggestions.
    fn types(&self) -> Vec<&str>;

    /// Whether this component can be created again after a failure.
    fn can_restart(&self, index: usize) -> bool;

    /// Whether a runnable graph needs an input boundary and an output boundary. A graph that is
    /// built in code does not: the program can reach its components in other ways.
    fn needs_boundaries(&self) -> bool {
        false
    }
}

impl TypeCatalog for Registry {
    fn descriptor(&self, _index: usize, spec: &ComponentSpec) -> Option<Arc<Descriptor>> {
        self.entry(&spec.component_type).map(|entry| Arc::clone(&entry.descriptor))
    }

    fn types(&self) -> Vec<&str> {
        Self::types(self).collect()
    }

    fn can_restart(&self, _index: usize) -> bool {
        true
    }

    fn needs_boundaries(&self) -> bool {
        true
    }
}

/// The description with the triggers that its file leaves to the types of its components.
#[must_use]
pub fn with_triggers<'s>(spec: &'s GraphSpec, registry: &Registry) -> Cow<'s, GraphSpec> {
    imply::triggers(spec, registry)
}

/// All diagnostics of a graph, and its plan if there are no errors.
#[must_use]
pub fn check(spec: &GraphSpec, registry: &Registry) -> (Option<Plan>, Diagnostics) {
    let (plan, list) = compile(spec, registry);
    (plan, Diagnostics { source: spec.source.clone(), list })
}

/// All diagnostics of a graph, and a plan if there are no errors.
pub(crate) fn compile(
    spec: &GraphSpec,
    catalog: &dyn TypeCatalog,
) -> (Option<Plan>, Vec<Diagnostic>) {
    let spec = &*imply::triggers(spec, catalog);
    let mut report = Report::new(spec.source.as_deref());
    let resolved = NameResolver::new(spec, catalog, &mut report);
    check::all(&resolved, catalog, &mut report);
    let lifecycle = order::lifecycle(&resolved, &mut report);
    let regions = region::find(&resolved, &mut report);
    let chains = chain::find(&resolved, &mut report);
    if report.has_errors() {
        return (None, report.into_list());
    }
    let list = report.into_list();
    let mut plan = region::plan(&resolved, regions, lifecycle);
    plan.chains = chains;
    plan.diagnostics.clone_from(&list);
    (Some(plan), list)
}
