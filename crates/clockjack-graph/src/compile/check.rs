//! The checks that need no order: each looks at one lane, component or edge and at what it is
//! connected with. Whatever is wrong is told where it is found, and no check stops the next.

mod component;
mod config;
mod edge;
mod lane;
mod trigger;

use super::{Catalog, names::Names, report::Report};
use crate::{
    describe::{BoundaryRole, ConfigValue, GraphKind},
    diagnostic::{Code, Diagnostic},
};
pub(super) use edge::{advice as edge_advice, is_slow_reader_drop_risk};

/// All of them.
pub(super) fn all(names: &Names<'_>, catalog: &dyn Catalog, report: &mut Report<'_>) {
    graph(names, catalog, report);
    for spec in &names.spec.lanes {
        lane::check(spec, report);
    }
    for at in 0..names.spec.components.len() {
        component::check(names, at, catalog, report);
        trigger::check(names, at, report);
        if !names.is_assumed[at] {
            config::check(&names.spec.components[at], &names.descriptors[at], report);
        }
    }
    for at in 0..names.spec.edges.len() {
        edge::check(names, at, report);
    }
    edge::check_endpoints(names, report);
    edge::check_blocking_cycles(names, report);
}

fn graph(names: &Names<'_>, catalog: &dyn Catalog, report: &mut Report<'_>) {
    let spec = names.spec;
    let span = spec.marks.get("graph");
    if spec.name.is_empty() {
        let found = Diagnostic::new(Code::InvalidIdentifier, "graph.name", "the name is empty");
        report.push(found.at(spec.marks.get("graph.name")));
    }
    for (key, value, span) in &spec.config.entries {
        let wanted = match (key.as_str(), value) {
            ("emit_health_events", ConfigValue::Bool(_) | ConfigValue::Null)
            | ("health_event_capacity", ConfigValue::Int(0..) | ConfigValue::Null) => continue,
            ("emit_health_events", _) => "true or false",
            ("health_event_capacity", _) => "a whole number that is not negative",
            _ => continue,
        };
        let text = format!("`{key}` must be {wanted}");
        let path = format!("graph.config.{key}");
        report.push(Diagnostic::new(Code::InvalidConfig, path, text).at(*span));
    }
    if spec.lanes.is_empty() {
        let text = "there is no lane";
        report.push(Diagnostic::new(Code::GraphValidationError, "lanes", text).at(span));
    }
    if spec.components.is_empty() {
        let text = "there is no component";
        report.push(Diagnostic::new(Code::GraphValidationError, "components", text).at(span));
        return;
    }
    if spec.kind != GraphKind::Runnable || !catalog.needs_boundaries() {
        return;
    }
    for (name, role) in [("input", BoundaryRole::Input), ("output", BoundaryRole::Output)] {
        let is_there = spec.components.iter().any(|component| {
            component.boundary.role == role || component.boundary.role == BoundaryRole::InputOutput
        });
        if !is_there {
            let text = format!("a runnable graph has no {name} boundary");
            let help = format!(
                "give a component `boundary: {{role: {name}}}`, or the graph `kind: internal_test`"
            );
            let found = Diagnostic::new(Code::MissingBoundary, "graph.kind", text);
            report.push(found.at(spec.marks.get("graph.kind")).help(help));
        }
    }
}
