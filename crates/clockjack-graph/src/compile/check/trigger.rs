//! Checks what makes a component ready: its event sources, its trigger, and the edges at their
//! inputs.

use std::collections::BTreeSet;

use crate::{
    compile::{report::Report, resolve::NameResolver},
    describe::{ComponentSpec, Condition, EdgeKind, EventSourceSpec, SourceType, TriggerType},
    diagnostic::{Code, Diagnostic},
};

pub(super) fn check(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let component = &resolved.spec.components[at];
    let has_source_error = sources(component, report);
    policy(component, report);
    inputs(resolved, at, report);
    readiness(component, has_source_error, report);
}

/// Whether the source is driven by messages at inputs.
fn is_message_like(source: &EventSourceSpec) -> bool {
    match source.source_type {
        SourceType::Message
        | SourceType::Request
        | SourceType::TaskReady
        | SourceType::FutureReady => true,
        SourceType::Manual | SourceType::Timer => false,
    }
}

fn is_timer(source: &EventSourceSpec) -> bool {
    source.source_type == SourceType::Timer
}

fn sources(component: &ComponentSpec, report: &mut Report<'_>) -> bool {
    let mut n_errors = 0;
    let mut wrong = |at: usize, field: &str, text: String, help: &str| {
        n_errors += 1;
        let path = format!("components.{}.event_sources[{at}]", component.id);
        let spans = component.event_sources.get(at).map_or(&component.spans, |one| &one.spans);
        let found = Diagnostic::new(Code::InvalidEventSource, path, text);
        report.push(found.at(spans.get(field)).component(&component.id).help(help));
    };
    if component.event_sources.is_empty() {
        wrong(0, "event_sources", "the component has no event source".into(), "add at least one");
    }
    for (at, source) in component.event_sources.iter().enumerate() {
        match source.source_type {
            SourceType::Message if source.inputs.is_empty() => wrong(
                at,
                "type",
                "a `message` source has no inputs".into(),
                "list the inputs: `inputs: [..]`",
            ),
            SourceType::Timer if source.period_ms == 0 => wrong(
                at,
                "type",
                "a `timer` source has no period".into(),
                "set `period_ms` to a value greater than zero",
            ),
            _ => {}
        }
        if !is_message_like(source) && !source.inputs.is_empty() {
            let text = format!("a `{}` source cannot have inputs", source.source_type);
            wrong(at, "inputs", text, "use `type: message`, or remove the inputs");
        }
    }
    let timer = component.event_sources.iter().position(is_timer);
    if let Some(at) = timer
        && component.event_sources.iter().any(is_message_like)
    {
        let text = "a timer source and a message source are mixed".into();
        wrong(at, "type", text, "move the timer to a component of its own");
    }
    let has_errors = n_errors > 0;
    for (at, source) in component.event_sources.iter().enumerate() {
        for (field, value) in [("period_ms", source.period_ms), ("phase_ms", source.phase_ms)] {
            if value > 0 && !is_timer(source) {
                let path = format!("components.{}.event_sources[{at}].{field}", component.id);
                let why = "only a `timer` source has a period";
                let span = source.spans.get(field);
                report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
            }
        }
    }
    has_errors
}

fn policy(component: &ComponentSpec, report: &mut Report<'_>) {
    let trigger = &component.trigger;
    let kind = trigger.trigger_type;
    let path = |field: &str| format!("components.{}.trigger_policy.{field}", component.id);
    let span = |field: &str| {
        let own = trigger.spans.get(field);
        if own.is_none() { component.spans.get(&format!("trigger_policy.{field}")) } else { own }
    };
    let mut wrong = |field: &str, text: String, help: &str| {
        let found = Diagnostic::new(Code::InvalidTriggerPolicy, path(field), text);
        report.push(found.at(span(field)).component(&component.id).help(help));
    };
    if kind == TriggerType::Batch && trigger.batch_size == 0 && trigger.batch_window_ms == 0 {
        let text = "a `batch` trigger has neither a size nor a window".into();
        wrong("type", text, "set `batch_size` or `batch_window_ms`");
    }
    if kind == TriggerType::RateLimit && trigger.min_interval_ms == 0 {
        let text = "a `rate_limit` trigger has no interval".into();
        wrong("type", text, "set `min_interval_ms` to a value greater than zero");
    }
    if trigger.debounce_window_ms != 0 {
        let text = format!("`debounce_window_ms` is {}", trigger.debounce_window_ms);
        wrong("debounce_window_ms", text, "it must be zero in schema version 1");
    }
    let mut seen = BTreeSet::new();
    for input in &trigger.inputs {
        if !seen.insert(input) {
            let text = format!("the input `{input}` is listed twice");
            wrong("inputs", text, "list it once");
        }
    }
    let others = [
        ("batch_size", trigger.batch_size > 0, TriggerType::Batch),
        ("batch_window_ms", trigger.batch_window_ms > 0, TriggerType::Batch),
        ("sync_slop_ms", trigger.sync_slop_ms > 0, TriggerType::TimeSync),
        ("watermark_lateness_ms", trigger.watermark_lateness_ms > 0, TriggerType::Watermark),
        ("condition", trigger.condition != Condition::default(), TriggerType::Condition),
    ];
    for (field, is_given, of) in others {
        if is_given && kind != of {
            let why = format!("it applies only to the trigger `{of}`");
            report.advise(Code::AdvisoryExecutionFieldIgnored, path(field), span(field), &why);
        }
    }
}

/// Checks that every input that the trigger or an event source uses has an edge that can make it
/// ready.
fn inputs(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let component = &resolved.spec.components[at];
    let descriptor = &resolved.descriptors[at];
    let trigger = &component.trigger;
    let mut reported = BTreeSet::new();
    let of_policy = trigger.inputs.iter().map(|input| {
        let needs_task = trigger.trigger_type == TriggerType::TaskReady;
        let own = trigger.spans.get("inputs");
        let span = if own.is_none() { component.spans.get("trigger_policy.inputs") } else { own };
        (input, needs_task, span, "trigger_policy")
    });
    let of_sources = component.event_sources.iter().flat_map(|source| {
        let needs_task =
            matches!(source.source_type, SourceType::TaskReady | SourceType::FutureReady);
        let span = source.spans.get("inputs");
        source.inputs.iter().map(move |input| (input, needs_task, span, "event_sources"))
    });
    for (input, needs_task, span, section) in of_policy.chain(of_sources) {
        let path = format!("components.{}.{section}.inputs", component.id);
        let port = descriptor.inputs.iter().position(|port| port.name == *input);
        let edges = port.map_or(&[][..], |port| &resolved.at_inputs[at][port]);
        if port.is_none() && !resolved.is_unknown_type[at] {
            if reported.insert(input) {
                let text = format!("component `{}` has no input `{input}`", component.id);
                let found = Diagnostic::new(Code::TriggerMissingInput, path, text).at(span);
                let all = descriptor.inputs.iter().map(|port| &*port.name);
                report.push_unknown(found.component(&component.id), input, all, |meant| {
                    (input.clone(), meant.into())
                });
            }
        } else if edges.is_empty() {
            if !resolved.is_external_input(at)
                && !resolved.has_doubtful_inputs[at]
                && reported.insert(input)
            {
                let text =
                    format!("no edge ends at the input `{input}`, which the trigger waits for");
                report.push(
                    Diagnostic::new(Code::TriggerMissingInput, path, text)
                        .at(span)
                        .component(&component.id)
                        .help(format!("add an edge with `to: {}.{input}`", component.id)),
                );
            }
        } else if needs_task
            && !resolved.is_external_input(at)
            && edges.iter().all(|edge| resolved.spec.edges[*edge].kind != EdgeKind::Async)
            && reported.insert(input)
        {
            let edge = &resolved.spec.edges[edges[0]];
            let text =
                format!("the trigger waits for tasks at `{input}`, but no async edge ends there");
            report.push(
                Diagnostic::new(Code::IncompatibleTriggerEdgeMode, path, text)
                    .at(span)
                    .related_at(edge.spans.get("kind"), "this edge ends there")
                    .component(&component.id)
                    .edge(&edge.id)
                    .help("use `kind: async`, or trigger on messages"),
            );
        }
    }
}

/// Checks that at least one event can make the trigger ready.
fn readiness(component: &ComponentSpec, has_source_error: bool, report: &mut Report<'_>) {
    let trigger = &component.trigger;
    let kind = trigger.trigger_type;
    let has_messages = component.event_sources.iter().any(is_message_like);
    let has_timer = component.event_sources.iter().any(is_timer);
    let is_by_input = !matches!(kind, TriggerType::Manual | TriggerType::OnEvent);
    let looks_at_none = trigger.inputs.is_empty()
        && component.event_sources.iter().all(|source| source.inputs.is_empty());
    let path = format!("components.{}.trigger_policy", component.id);
    if has_source_error {
        // The errors of the event sources have been reported.
    } else if has_messages && looks_at_none && kind != TriggerType::Manual {
        report.push(
            Diagnostic::new(
                Code::InvalidTriggerPolicy,
                path,
                format!("the trigger `{kind}` has no inputs"),
            )
            .at(component.spans.get("trigger_policy"))
            .component(&component.id)
            .help("list the inputs: `inputs: [..]`"),
        );
    } else if !has_messages && (!trigger.inputs.is_empty() || (is_by_input && !has_timer)) {
        report.push(
            Diagnostic::new(
                Code::TriggerNeverReady,
                path,
                format!("the trigger `{kind}` waits for inputs, but there is no message source"),
            )
            .at(component.spans.get("trigger_policy"))
            .component(&component.id)
            .help("add `{type: message, inputs: [..]}` to `event_sources`"),
        );
    }
}
