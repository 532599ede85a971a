//! The checks that do not depend on an order: each looks at one lane, component or edge and its
//! connections. Every check runs, and each reports all the errors that it finds.

mod component;
mod config;
mod edge;
mod lane;
mod trigger;

use super::{TypeCatalog, report::Report, resolve::NameResolver};
use crate::{
    describe::{BoundaryRole, ClockDomain, ConfigValue, GraphKind},
    diagnostic::{Code, Diagnostic},
};
pub(super) use edge::advice as edge_advice;

/// Runs all checks.
pub(super) fn all(resolved: &NameResolver<'_>, catalog: &dyn TypeCatalog, report: &mut Report<'_>) {
    graph(resolved, catalog, report);
    for spec in &resolved.spec.lanes {
        lane::check(spec, report);
    }
    for at in 0..resolved.spec.components.len() {
        component::check(resolved, at, catalog, report);
        trigger::check(resolved, at, report);
        if !resolved.is_unknown_type[at] {
            config::check(&resolved.spec.components[at], &resolved.descriptors[at], report);
        }
    }
    for at in 0..resolved.spec.edges.len() {
        edge::check(resolved, at, report);
    }
    edge::check_endpoints(resolved, report);
    edge::check_blocking_cycles(resolved, report);
}

/// The settings of a graph that a run reads.
const GRAPH_SETTINGS: [&str; 2] = ["emit_health_events", "health_event_capacity"];

fn graph(resolved: &NameResolver<'_>, catalog: &dyn TypeCatalog, report: &mut Report<'_>) {
    let spec = resolved.spec;
    let span = spec.spans.get("graph");
    if spec.name.is_empty() {
        let found =
            Diagnostic::new(Code::InvalidIdentifier, "graph.name", "the graph has an empty name");
        report.push(found.at(spec.spans.get("graph.name")));
    }
    if spec.event_domain != ClockDomain::default() {
        let (path, span) = ("graph.clock.event_domain", spec.spans.get("graph.clock.event_domain"));
        let why = "each timestamp carries its own clock domain";
        report.advise(Code::AdvisoryExecutionFieldIgnored, path.into(), span, why);
    }
    for (key, value, span) in &spec.config.entries {
        let wanted = match (key.as_str(), value) {
            ("emit_health_events", ConfigValue::Bool(_) | ConfigValue::Null)
            | ("health_event_capacity", ConfigValue::Int(0..) | ConfigValue::Null) => continue,
            ("emit_health_events", _) => "true or false",
            ("health_event_capacity", _) => "a non-negative integer",
            // Other settings are for the program that reads the plan, unless it is a typing error.
            _ => {
                if let Some(meant) = report.nearest(key, GRAPH_SETTINGS) {
                    let path = format!("graph.config.{key}");
                    let why = format!("a run reads `{meant}`");
                    report.advise(Code::AdvisoryExecutionFieldIgnored, path, *span, &why);
                }
                continue;
            }
        };
        let text = format!("`{key}` must be {wanted}");
        let path = format!("graph.config.{key}");
        report.push(Diagnostic::new(Code::InvalidConfig, path, text).at(*span));
    }
    if spec.lanes.is_empty() {
        let text = "the graph has no lanes";
        report.push(Diagnostic::new(Code::GraphValidationError, "lanes", text).at(span));
    }
    if spec.components.is_empty() {
        let text = "the graph has no components";
        report.push(Diagnostic::new(Code::GraphValidationError, "components", text).at(span));
        return;
    }
    if spec.kind != GraphKind::Runnable || !catalog.needs_boundaries() {
        return;
    }
    for (name, role) in [("input", BoundaryRole::Input), ("output", BoundaryRole::Output)] {
        // A component whose type has this role was meant; its wrong role is reported there.
        let is_role = |one: BoundaryRole| one == role || one == BoundaryRole::InputOutput;
        let is_there =
            spec.components.iter().zip(&resolved.descriptors).any(|(one, descriptor)| {
                is_role(one.boundary.role) || descriptor.role.is_some_and(is_role)
            });
        if !is_there {
            let text = format!("a runnable graph has no {name} boundary");
            let help = format!(
                "set `boundary: {{role: {name}}}` on a component, or `kind: internal_test`"
            );
            let found = Diagnostic::new(Code::MissingBoundary, "graph.kind", text);
            report.push(found.at(spec.spans.get("graph.kind")).help(help));
        }
    }
}
