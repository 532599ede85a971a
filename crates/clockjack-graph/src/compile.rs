//! From a description to a plan: all checks, regions, and the one order in which they commit.
//!
//! Nothing here runs a component, and nothing looks at a clock or at threads: the same description
//! always gives the same plan and the same findings in the same order. There is a plan if and only
//! if there is no error.

pub(crate) mod capability;
mod check;
pub mod diff;
pub mod lint;
mod names;
mod order;
pub mod plan;
mod region;
mod report;
mod scc;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    component::Descriptor,
    describe::{ComponentSpec, GraphSpec},
    diagnostic::{Diagnostic, Diagnostics},
    registry::Registry,
};
use names::Names;
pub use plan::{
    LaneCapabilities, Plan, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort, PlanRegion,
};
use report::Report;

/// What is known of the types of a graph's components: a registry, or the components themselves.
pub(crate) trait Catalog {
    /// What the type of this component says of itself; `None`: there is no such type.
    fn descriptor(&self, index: usize, spec: &ComponentSpec) -> Option<Arc<Descriptor>>;

    /// The names of all types, for help.
    fn types(&self) -> Vec<&str>;

    /// Whether this component can be made anew.
    fn can_restart(&self, index: usize) -> bool;

    /// Whether a runnable graph needs an input boundary and an output boundary. One that is built
    /// in code is part of a program, which can reach its components otherwise.
    fn needs_boundaries(&self) -> bool {
        false
    }
}

impl Catalog for Registry {
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

/// Everything that is wrong with a graph, and its plan if nothing is.
#[must_use]
pub fn check(spec: &GraphSpec, registry: &Registry) -> (Option<Plan>, Diagnostics) {
    let (plan, list) = compile(spec, registry);
    (plan, Diagnostics { source: spec.source.clone(), list })
}

/// All faults at once, and a plan if there is none.
pub(crate) fn compile(spec: &GraphSpec, catalog: &dyn Catalog) -> (Option<Plan>, Vec<Diagnostic>) {
    let mut report = Report::new(spec.source.as_deref());
    let names = Names::new(spec, catalog, &mut report);
    check::all(&names, catalog, &mut report);
    let lifecycle = order::lifecycle(&names, &mut report);
    let regions = region::find(&names, &mut report);
    if report.has_errors() {
        return (None, report.into_list());
    }
    let list = report.into_list();
    let mut plan = region::plan(&names, regions, lifecycle);
    plan.diagnostics.clone_from(&list);
    (Some(plan), list)
}
