//! Checks the payload and channel policy of each edge, and conflicts between edges.

use std::collections::BTreeMap;

use crate::{
    compile::{
        capability,
        report::Report,
        resolve::{Endpoint, NameResolver},
        scc::{self, Arcs},
    },
    describe::{ClockDomain, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy, EdgeSpec},
    diagnostic::{Code, Diagnostic},
};

/// A deeper queue causes a warning, because its messages are old when they are read.
const DEPTH_WITHOUT_WARNING_MAX: u32 = 256;

/// Whether a message that was accepted can be lost without being read.
fn can_drop(policy: &EdgePolicy) -> bool {
    policy.mode.is_slot()
        || policy.lifespan_ms > 0
        || policy.overflow.evicts()
        || policy.overflow == EdgeOverflow::DropNewest
}

/// The fields of an edge that are set but have no effect, with the reason.
pub(in crate::compile) fn advice(policy: &EdgePolicy) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    if !policy.preserve_order {
        found.push(("preserve_order", "messages of an edge always keep their order"));
    }
    if policy.capacity > 1 && policy.mode.is_slot() {
        found.push(("capacity", "this mode keeps one message"));
    }
    if policy.copy_policy == CopyPolicy::LoanedView {
        found.push(("copy_policy", "a pooled payload is shared like any other"));
    }
    if policy.timestamp_domain != ClockDomain::default() {
        found.push(("timestamp_domain", "each timestamp carries its own clock domain"));
    }
    found
}

/// Whether payloads of this type are large: frames, or bytes of unbounded length.
fn is_large(schema: &str) -> bool {
    let name = schema.rsplit(['.', ':', '/']).next().unwrap_or(schema);
    ["frame", "blob", "bytes", "binary", "image"]
        .iter()
        .any(|large| name.get(..large.len()).is_some_and(|start| start.eq_ignore_ascii_case(large)))
}

pub(super) fn check(resolved: &NameResolver<'_>, at: usize, report: &mut Report<'_>) {
    let edge = &resolved.spec.edges[at];
    policy(edge, report);
    risks(edge, report);
    let (Some(from), Some(to)) = resolved.ends[at] else { return };
    payload(resolved, edge, from, to, report);
    domains(resolved, edge, from, to, report);
}

fn at_policy(code: Code, edge: &EdgeSpec, field: &str, text: impl Into<String>) -> Diagnostic {
    let span = edge.spans.get(&format!("policy.{field}"));
    let path = format!("edges.{}.policy.{field}", edge.id);
    Diagnostic::new(code, path, text).at(span).edge(&edge.id)
}

fn policy(edge: &EdgeSpec, report: &mut Report<'_>) {
    let policy = &edge.policy;
    let wrong = |field: &str, text: String, help: &str| {
        at_policy(Code::InvalidChannelPolicy, edge, field, text).help(help)
    };
    if policy.capacity == 0 {
        report.push(wrong("capacity", "the capacity is zero".into(), "set it to 1 or more"));
    }
    if policy.mode.is_slot()
        && matches!(policy.overflow, EdgeOverflow::DropNewest | EdgeOverflow::Block)
    {
        let text = format!(
            "`overflow: {}` cannot be combined with `mode: {}`",
            policy.overflow, policy.mode
        );
        report.push(wrong("overflow", text, "use `mode: queue`, or `overflow: overwrite`"));
    } else if !policy.allow_drop && can_drop(policy) {
        let (field, why) = if policy.mode.is_slot() {
            ("mode", format!("`mode: {}` keeps one message", policy.mode))
        } else if policy.lifespan_ms > 0 {
            ("lifespan_ms", "`lifespan_ms` drops old messages".into())
        } else {
            ("overflow", format!("`overflow: {}` drops messages", policy.overflow))
        };
        report.push(
            wrong(
                "allow_drop",
                format!("`allow_drop` is false, but {why}"),
                "use a queue with `overflow: block`, `reject` or `fail_fast` and no lifespan",
            )
            .related_at(
                edge.spans.get(&format!("policy.{field}")),
                "contradicts `allow_drop: false`",
            ),
        );
    }
    if policy.max_inflight > 0 && edge.kind != EdgeKind::Async {
        let text = format!("`max_inflight` is set on an edge of kind `{}`", edge.kind);
        report.push(wrong("max_inflight", text, "only `async` edges have `max_inflight`"));
    }
    for (field, why) in advice(policy) {
        let path = format!("edges.{}.policy.{field}", edge.id);
        let span = edge.spans.get(&format!("policy.{field}"));
        report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
    }
}

fn risks(edge: &EdgeSpec, report: &mut Report<'_>) {
    let policy = &edge.policy;
    if policy.overflow == EdgeOverflow::Block && !policy.mode.is_slot() {
        let text = "a slow reader blocks its producer";
        report.push(at_policy(Code::BackpressureRisk, edge, "overflow", text));
    }
    if matches!(policy.mode, EdgeMode::Queue | EdgeMode::RingBuffer)
        && policy.capacity > DEPTH_WITHOUT_WARNING_MAX
    {
        let text = format!("up to {} messages may be queued", policy.capacity);
        report.push(
            at_policy(Code::HighQueueDepthLatencyRisk, edge, "capacity", text)
                .help(format!("more than {DEPTH_WITHOUT_WARNING_MAX} are old when they are read")),
        );
    }
}

fn payload(
    resolved: &NameResolver<'_>,
    edge: &EdgeSpec,
    from: Endpoint,
    to: Endpoint,
    report: &mut Report<'_>,
) {
    let (Some(output), Some(input)) = (from.port, to.port) else { return };
    let output = &resolved.descriptors[from.component].outputs[output];
    let input = &resolved.descriptors[to.component].inputs[input];
    let [source, target] =
        [from, to].map(|end| resolved.spec.components[end.component].id.as_str());
    if !output.schema.is_empty() && !input.schema.is_empty() && output.schema != input.schema {
        let text = format!(
            "`{}` carries `{}`, but `{}` takes `{}`",
            edge.from, output.schema, edge.to, input.schema
        );
        report.push(
            Diagnostic::new(Code::PayloadTypeMismatch, format!("edges.{}", edge.id), text)
                .at(edge.spans.get("to"))
                .related_at(edge.spans.get("from"), format!("carries `{}`", output.schema))
                .component(source)
                .component(target)
                .edge(&edge.id)
                .help("insert a component that converts between the types"),
        );
    }
    if edge.policy.copy_policy == CopyPolicy::Copy && is_large(&output.schema) {
        let text =
            format!("payloads of type `{}` are copied for each further reader", output.schema);
        report.push(
            at_policy(Code::LargePayloadCopy, edge, "copy_policy", text)
                .component(source)
                .help("use `copy_policy: shared_view`"),
        );
    }
}

fn domains(
    resolved: &NameResolver<'_>,
    edge: &EdgeSpec,
    from: Endpoint,
    to: Endpoint,
    report: &mut Report<'_>,
) {
    let lanes = (resolved.lane_of[from.component], resolved.lane_of[to.component]);
    let (Some(from_lane), Some(to_lane)) = lanes else { return };
    let is_apart = [from_lane, to_lane]
        .iter()
        .any(|lane| capability::has_own_epoch_domain(&resolved.spec.lanes[*lane]));
    if edge.kind == EdgeKind::Immediate && from_lane != to_lane && is_apart {
        let [from_lane, to_lane] = [from_lane, to_lane].map(|lane| &resolved.spec.lanes[lane].id);
        let text = format!(
            "an immediate edge connects lane `{from_lane}` with lane `{to_lane}`, which have \
             different epoch domains"
        );
        report.push(
            Diagnostic::new(
                Code::ImmediateEdgeCrossesDomains,
                format!("edges.{}.kind", edge.id),
                text,
            )
            .at(edge.spans.get("kind"))
            .component(&resolved.spec.components[from.component].id)
            .component(&resolved.spec.components[to.component].id)
            .edge(&edge.id)
            .help("use `kind: delay` or `kind: state`, or put both components on one lane"),
        );
    }
}

/// Checks for conflicts between several edges of one endpoint.
pub(super) fn check_endpoints(resolved: &NameResolver<'_>, report: &mut Report<'_>) {
    let edges = &resolved.spec.edges;
    let mut state: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, edge) in edges.iter().enumerate() {
        if edge.kind == EdgeKind::State {
            let first = *state.entry(&edge.to).or_insert(at);
            if first != at {
                report.push(
                    Diagnostic::new(
                        Code::MultiStateWriter,
                        format!("edges.{}.to", edge.id),
                        format!("two state edges write `{}`", edge.to),
                    )
                    .at(edge.spans.get("to"))
                    .related_at(edges[first].spans.get("to"), "the other edge")
                    .edge(&edges[first].id)
                    .edge(&edge.id)
                    .help("give each edge its own input"),
                );
            }
        }
    }
    for of_output in resolved.at_outputs.iter().flatten().filter(|one| one.len() > 1) {
        for edge in of_output.iter().map(|at| &edges[*at]) {
            if edge.policy.copy_policy == CopyPolicy::MoveOnly {
                let text =
                    format!("a payload of `{}` is moved, but other edges carry it too", edge.from);
                report.push(
                    at_policy(Code::InvalidMoveOnlyMultireader, edge, "copy_policy", text)
                        .help("use `copy_policy: shared_view`"),
                );
            }
        }
    }
}

/// Reports cycles of blocking edges: each edge could wait for the next one forever.
pub(super) fn check_blocking_cycles(resolved: &NameResolver<'_>, report: &mut Report<'_>) {
    let edges = &resolved.spec.edges;
    let blocking: Vec<(usize, usize, usize)> = (0..edges.len())
        .filter(|at| edges[*at].policy.overflow == EdgeOverflow::Block)
        .filter(|at| !edges[*at].policy.mode.is_slot())
        .filter_map(|at| match resolved.ends[at] {
            (Some(from), Some(to)) => Some((from.component, to.component, at)),
            _ => None,
        })
        .collect();
    if blocking.is_empty() {
        return;
    }
    let pairs: Vec<_> = blocking.iter().map(|(from, to, _)| (*from, *to)).collect();
    let arcs = Arcs::new(resolved.spec.components.len(), &pairs);
    let parts = scc::strongly_connected(&arcs);
    let mut part_of = vec![0; arcs.n_nodes()];
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    for (number, part) in parts.iter().enumerate() {
        for member in part {
            part_of[*member] = number;
        }
    }
    for (from, to, at) in blocking {
        if part_of[from] == part_of[to] {
            inside[part_of[from]].push(at);
        }
    }
    for (part, inside) in parts.iter().zip(inside) {
        let Some(first) = inside.first() else { continue };
        let text =
            format!("{} blocking edges form a cycle and can wait for each other", inside.len());
        let first = &edges[*first];
        let mut found = at_policy(Code::BlockingCycle, first, "overflow", text);
        found.edges.clear();
        for at in &inside {
            found = found.edge(&edges[*at].id);
        }
        for member in part {
            found = found.component(&resolved.spec.components[*member].id);
        }
        report.push(found.help("set another `overflow` on one of them"));
    }
}
