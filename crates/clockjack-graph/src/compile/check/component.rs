//! Checks a component against its type: boundary role, execution, and unconnected inputs.

use crate::{
    compile::{TypeCatalog, report::Report, resolve::NameResolver},
    component::{Multiplicity, Need},
    describe::{EdgeOverflow, ErrorPolicy, ErrorPolicySpec, LaneType},
    diagnostic::{Code, Diagnostic},
};

pub(super) fn check(
    resolved: &NameResolver<'_>,
    at: usize,
    catalog: &dyn TypeCatalog,
    report: &mut Report<'_>,
) {
    if !resolved.is_unknown_type[at] {
        role(resolved, at, report);
        inputs(resolved, at, report);
    }
    execution(resolved, at, catalog, report);
    burst(resolved, at, report);
}

fn role(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let component = &resolved.spec.components[at];
    let Some(role) = resolved.descriptors[at].role else { return };
    if role == component.boundary.role {
        return;
    }
    let given = component.boundary.role;
    let span = component.spans.get("boundary.role");
    let text =
        format!("the type `{}` has the role `{role}`, not `{given}`", component.component_type);
    let found = Diagnostic::new(
        Code::BoundaryRoleMismatch,
        format!("components.{}.boundary.role", component.id),
        text,
    )
    .at(span)
    .component(&component.id)
    .help(format!("write `boundary: {{role: {role}}}`"));
    let is_written = report.is_written_at(span, given.name());
    report.push(if is_written { found.fix(span, role.name()) } else { found });
}

/// Reports inputs without an edge, and inputs with too many.
fn inputs(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let component = &resolved.spec.components[at];
    let ports = resolved.descriptors[at].inputs.iter().zip(&resolved.at_inputs[at]);
    for (port, edges) in ports {
        let path = || format!("components.{}.{}", component.id, port.name);
        if edges.is_empty() {
            // An input that is fed from outside needs no edge. An unresolved edge, which has been
            // reported, may have been meant for this input.
            if resolved.is_external_input(at) || resolved.has_doubtful_inputs[at] {
                continue;
            }
            let (code, text) = match port.need {
                Need::Required => (
                    Code::MissingRequiredInput,
                    format!("no edge ends at the required input `{}`", port.name),
                ),
                Need::Optional => (
                    Code::OptionalInputUnconnected,
                    format!("no edge ends at the optional input `{}`", port.name),
                ),
            };
            report.push(
                Diagnostic::new(code, path(), text)
                    .at(component.spans.get("id"))
                    .component(&component.id)
                    .help(format!("add an edge with `to: {}.{}`", component.id, port.name)),
            );
        } else if edges.len() > 1 && port.multiplicity == Multiplicity::Single {
            let text =
                format!("{} edges end at the input `{}`, which takes one", edges.len(), port.name);
            let mut found = Diagnostic::new(Code::PortMultiplicityMismatch, path(), text)
                .at(resolved.spec.edges[edges[1]].spans.get("to"))
                .component(&component.id)
                .help("join the values in a component before this input");
            for edge in edges {
                let edge = &resolved.spec.edges[*edge];
                found = found.related_at(edge.spans.get("to"), "ends here").edge(&edge.id);
            }
            report.push(found);
        }
    }
}

fn execution(
    resolved: &NameResolver<'_>,
    at: usize,
    catalog: &dyn TypeCatalog,
    report: &mut Report<'_>,
) {
    let component = &resolved.spec.components[at];
    let execution = &component.execution;
    let lane = resolved.lane(at);
    let advise = |field: &str, why: &str, report: &mut Report<'_>| {
        let path = format!("components.{}.execution.{field}", component.id);
        let span = component.spans.get(&format!("execution.{field}"));
        report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
    };
    if execution.reentrant {
        if !resolved.is_unknown_type[at] && !resolved.descriptors[at].reentrant {
            report.push(
                Diagnostic::new(
                    Code::NotReentrant,
                    format!("components.{}.execution.reentrant", component.id),
                    format!("the type `{}` is not reentrant", component.component_type),
                )
                .at(component.spans.get("execution.reentrant"))
                .component(&component.id)
                .help("remove `reentrant`, or register the type with `register_shared`"),
            );
        } else if lane.is_some_and(|lane| lane.lane_type != LaneType::ThreadPool) {
            advise("reentrant", "only a `thread_pool` lane runs invocations concurrently", report);
        }
    }
    let on_error = execution.on_error;
    if on_error.policy == ErrorPolicy::Restart {
        if !resolved.is_unknown_type[at] && !catalog.can_restart(at) {
            report.push(
                Diagnostic::new(
                    Code::UnsupportedErrorPolicy,
                    format!("components.{}.execution.on_error", component.id),
                    "the component cannot be restarted: it has no factory",
                )
                .at(component.spans.get("execution.on_error"))
                .component(&component.id)
                .help("add it with `add_with`, or use another policy"),
            );
        }
    } else if on_error != (ErrorPolicySpec { policy: on_error.policy, ..Default::default() }) {
        advise("on_error", "limits and backoff apply only to the policy `restart`", report);
    }
}

/// Reports a burst that exceeds the capacity of a blocking edge: the component would never be
/// executed.
fn burst(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let component = &resolved.spec.components[at];
    let given = component.execution.burst;
    let mut has_blocking = false;
    for edge in resolved.at_outputs[at].iter().flatten() {
        let edge = &resolved.spec.edges[*edge];
        if edge.policy.overflow != EdgeOverflow::Block {
            continue;
        }
        has_blocking = true;
        if given > edge.policy.capacity && edge.policy.capacity > 0 {
            let text = format!(
                "the edge never has room for the {given} messages that `{}` may publish at once",
                component.id
            );
            report.push(
                Diagnostic::new(
                    Code::InvalidChannelPolicy,
                    format!("edges.{}.policy.capacity", edge.id),
                    text,
                )
                .at(edge.spans.get("policy.capacity"))
                .related_at(component.spans.get("execution.burst"), "declared here")
                .component(&component.id)
                .edge(&edge.id)
                .help(format!("set the capacity to {given} or more")),
            );
        }
    }
    if given > 0 && !has_blocking {
        let path = format!("components.{}.execution.burst", component.id);
        let why = "no blocking edge begins at the component";
        let span = component.spans.get("execution.burst");
        report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
    }
}
