//! A component against its type: where it stands, how it is called, which inputs have no edge.

use crate::{
    compile::{Catalog, names::Names, report::Report},
    component::{Need, descriptor::Multiplicity},
    describe::{ErrorPolicy, ErrorPolicySpec, LaneType, Overflow},
    diagnostic::{Code, Diagnostic},
};

pub(super) fn check(names: &Names<'_>, at: usize, catalog: &dyn Catalog, report: &mut Report<'_>) {
    if !names.is_assumed[at] {
        role(names, at, report);
        inputs(names, at, report);
    }
    execution(names, at, catalog, report);
    burst(names, at, report);
}

fn role(names: &Names<'_>, at: usize, report: &mut Report<'_>) {
    let component = &names.spec.components[at];
    let Some(role) = names.descriptors[at].role else { return };
    if role == component.boundary.role {
        return;
    }
    let given = component.boundary.role;
    let span = component.marks.get("boundary.role");
    let text =
        format!("the type `{}` stands as `{role}`, not as `{given}`", component.component_type);
    let found = Diagnostic::new(
        Code::BoundaryRoleMismatch,
        format!("components.{}.boundary.role", component.id),
        text,
    )
    .at(span)
    .component(&component.id)
    .help(format!("write `boundary: {{role: {role}}}`"));
    let is_written = report.stands_there(span, given.name());
    report.push(if is_written { found.fix(span, role.name()) } else { found });
}

/// Inputs without an edge, and inputs with too many.
fn inputs(names: &Names<'_>, at: usize, report: &mut Report<'_>) {
    let component = &names.spec.components[at];
    let ports = names.descriptors[at].inputs.iter().zip(&names.at_inputs[at]);
    for (port, edges) in ports {
        let path = || format!("components.{}.{}", component.id, port.name);
        if edges.is_empty() {
            // What comes from outside of the graph needs no edge, and an edge that was meant for
            // this input may be the one that was just told to be wrong.
            if names.is_fed(at) || names.is_input_doubtful[at] {
                continue;
            }
            let (code, text) = match port.need {
                Need::Required => (
                    Code::MissingRequiredInput,
                    format!("no edge ends at the input `{}`, which needs one", port.name),
                ),
                Need::Optional => (
                    Code::OptionalInputUnconnected,
                    format!("no edge ends at the optional input `{}`", port.name),
                ),
            };
            report.push(
                Diagnostic::new(code, path(), text)
                    .at(component.marks.get("id"))
                    .component(&component.id)
                    .help(format!("add an edge with `to: {}.{}`", component.id, port.name)),
            );
        } else if edges.len() > 1 && port.multiplicity == Multiplicity::Single {
            let text = format!("{} edges end at the input `{}`", edges.len(), port.name);
            let mut found = Diagnostic::new(Code::PortMultiplicityMismatch, path(), text)
                .at(names.spec.edges[edges[1]].marks.get("to"))
                .component(&component.id)
                .help("it takes one: join the others before it");
            for edge in edges {
                let edge = &names.spec.edges[*edge];
                found = found.and_at(edge.marks.get("to"), "ends here").edge(&edge.id);
            }
            report.push(found);
        }
    }
}

fn execution(names: &Names<'_>, at: usize, catalog: &dyn Catalog, report: &mut Report<'_>) {
    let component = &names.spec.components[at];
    let execution = &component.execution;
    let lane = names.lane(at);
    let advise = |field: &str, why: &str, report: &mut Report<'_>| {
        let path = format!("components.{}.execution.{field}", component.id);
        let span = component.marks.get(&format!("execution.{field}"));
        report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
    };
    if execution.reentrant {
        if !names.is_assumed[at] && !names.descriptors[at].reentrant {
            report.push(
                Diagnostic::new(
                    Code::NotReentrant,
                    format!("components.{}.execution.reentrant", component.id),
                    format!("invocations of `{}` cannot overlap", component.component_type),
                )
                .at(component.marks.get("execution.reentrant"))
                .component(&component.id)
                .help("leave `reentrant` out, or register the type as shared"),
            );
        } else if lane.is_some_and(|lane| lane.lane_type != LaneType::ThreadPool) {
            advise("reentrant", "only a `thread_pool` lane overlaps invocations", report);
        }
    }
    let on_error = execution.on_error;
    if on_error.policy == ErrorPolicy::Restart {
        if !names.is_assumed[at] && !catalog.can_restart(at) {
            report.push(
                Diagnostic::new(
                    Code::UnsupportedErrorPolicy,
                    format!("components.{}.execution.on_error", component.id),
                    "the component cannot be made anew",
                )
                .at(component.marks.get("execution.on_error"))
                .component(&component.id)
                .help("add it with a call that makes it, or use another policy"),
            );
        }
    } else if on_error != (ErrorPolicySpec { policy: on_error.policy, ..Default::default() }) {
        advise("on_error", "limits and backoff belong to the policy `restart`", report);
    }
}

/// An invocation that may publish more than a blocking edge can ever take is never made.
fn burst(names: &Names<'_>, at: usize, report: &mut Report<'_>) {
    let component = &names.spec.components[at];
    let given = component.execution.burst;
    let mut has_blocking = false;
    for edge in names.at_outputs[at].iter().flatten() {
        let edge = &names.spec.edges[*edge];
        if edge.policy.overflow != Overflow::Block {
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
                .at(edge.marks.get("policy.capacity"))
                .and_at(component.marks.get("execution.burst"), "declared here")
                .component(&component.id)
                .edge(&edge.id)
                .help(format!("give it a capacity of {given} or more")),
            );
        }
    }
    if given > 0 && !has_blocking {
        let path = format!("components.{}.execution.burst", component.id);
        let why = "no blocking edge begins at the component";
        let span = component.marks.get("execution.burst");
        report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
    }
}
