//! Regions: one per strongly connected component (SCC) of the immediate edges. A cyclic SCC must be
//! owned by a loop. The order of the regions defines the meaning of the graph.
//!
//! Invariant: every component is in exactly one region, and the region of a cycle has exactly the
//! members that its loop declares.

use std::collections::BTreeSet;

use super::{
    capability, check, order,
    plan::{Plan, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort, PlanRegion},
    report::Report,
    resolve::NameResolver,
    scc::{self, Arcs},
};
use crate::{
    component::PortDescriptor,
    describe::{BoundaryRole, EdgeKind, EdgeSpec, LoopSpec, LoopType, PartialSuccess},
    diagnostic::{Code, Diagnostic},
};

/// The SCCs of the immediate edges and the loops that own them.
#[derive(Debug)]
pub(super) struct ImmediateSccs {
    arcs: Arcs,
    /// As Tarjan's algorithm returns them: successors first.
    parts: Vec<Vec<usize>>,
    /// The loop that owns each SCC.
    owners: Vec<Option<usize>>,
}

/// Finds the SCCs and their loops, and reports errors about both.
pub(super) fn find(resolved: &NameResolver<'_>, report: &mut Report<'_>) -> ImmediateSccs {
    let mut pairs = Vec::new();
    for (edge, ends) in resolved.spec.edges.iter().zip(&resolved.ends) {
        if let (EdgeKind::Immediate, (Some(from), Some(to))) = (edge.kind, ends) {
            pairs.push((from.component, to.component));
        }
    }
    let arcs = Arcs::new(resolved.spec.components.len(), &pairs);
    let parts = scc::strongly_connected(&arcs);
    let mut part_of = vec![0; resolved.spec.components.len()];
    for (number, part) in parts.iter().enumerate() {
        for member in part {
            part_of[*member] = number;
        }
    }
    let mut sccs = ImmediateSccs { owners: vec![None; parts.len()], arcs, parts };
    let mut is_reported = vec![false; sccs.parts.len()];
    for (at, one) in resolved.spec.loops.iter().enumerate() {
        check_fields(one, report);
        assign_owner(resolved, &mut sccs, at, &part_of, &mut is_reported, report);
    }
    let mut inner: Vec<Vec<&EdgeSpec>> = vec![Vec::new(); sccs.parts.len()];
    for (edge, ends) in resolved.spec.edges.iter().zip(&resolved.ends) {
        if let (EdgeKind::Immediate, (Some(from), Some(to))) = (edge.kind, ends)
            && part_of[from.component] == part_of[to.component]
        {
            inner[part_of[from.component]].push(edge);
        }
    }
    for (number, part) in sccs.parts.iter().enumerate() {
        let is_owned = sccs.owners[number].is_some() || is_reported[number];
        if is_owned || !scc::is_cyclic(part, &sccs.arcs) {
            continue;
        }
        let ids: Vec<&str> = part.iter().map(|at| &*resolved.spec.components[*at].id).collect();
        let text = format!("immediate edges form a cycle through `{}`", ids.join("`, `"));
        let first = inner[number][0];
        let mut diagnostic =
            Diagnostic::new(Code::ImmediateCycleWithoutLoop, format!("edges.{}", first.id), text)
                .at(first.spans.get("kind"));
        for edge in &inner[number] {
            diagnostic = diagnostic.edge(&edge.id);
        }
        for id in &ids {
            diagnostic = diagnostic.component(*id);
        }
        let help = format!(
            "make one of the edges `kind: delay`, or declare a composite loop of `[{}]`",
            ids.join(", ")
        );
        report.push(diagnostic.help(help));
    }
    sccs
}

fn at_loop(code: Code, one: &LoopSpec, field: &str, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, format!("composite_loops.{}.{field}", one.id), text)
        .at(one.spans.get(field))
}

/// Finds the SCC that a loop owns. If a member does not exist, only that is reported.
fn assign_owner(
    resolved: &NameResolver<'_>,
    sccs: &mut ImmediateSccs,
    at: usize,
    part_of: &[usize],
    is_reported: &mut [bool],
    report: &mut Report<'_>,
) {
    let one = &resolved.spec.loops[at];
    let mut members = BTreeSet::new();
    let mut has_unknown = false;
    for name in &one.components {
        if let Some(member) = resolved.components.get(name) {
            if !members.insert(member) {
                let text = format!("the member `{name}` is listed twice");
                report.push(at_loop(Code::InvalidLoopPolicy, one, "components", text));
            }
            continue;
        }
        has_unknown = true;
        let text = format!("there is no component `{name}`");
        let diagnostic = at_loop(Code::UnknownComponent, one, "components", text);
        let all = resolved.spec.components.iter().map(|one| &*one.id);
        report.push_unknown(diagnostic, name, all, |meant| (name.clone(), meant.into()));
    }
    let touched: BTreeSet<usize> = members
        .iter()
        .map(|member| part_of[*member])
        .filter(|part| scc::is_cyclic(&sccs.parts[*part], &sccs.arcs))
        .collect();
    if one.components.is_empty() || has_unknown {
        touched.iter().for_each(|part| is_reported[*part] = true);
        return;
    }
    check_members(resolved, one, &members, report);
    let exact = touched.iter().copied().find(|part| {
        // Both are sorted by index.
        members.iter().eq(&sccs.parts[*part])
    });
    if let Some(part) = exact {
        if let Some(other) = sccs.owners[part] {
            let other = &resolved.spec.loops[other];
            let text = format!("the loop `{}` has the same members", other.id);
            let diagnostic = at_loop(Code::InvalidLoopPolicy, one, "components", text);
            report.push(diagnostic.related_at(other.spans.get("components"), "the other loop"));
        } else {
            sccs.owners[part] = Some(at);
        }
        return;
    }
    report.push(membership_error(resolved, sccs, one, &members, &touched));
    touched.iter().for_each(|part| is_reported[*part] = true);
}

/// The error for a loop that contains no cycle, a part of a cycle, or more than a cycle.
fn membership_error(
    resolved: &NameResolver<'_>,
    sccs: &ImmediateSccs,
    one: &LoopSpec,
    members: &BTreeSet<usize>,
    touched: &BTreeSet<usize>,
) -> Diagnostic {
    let mut diagnostic = if touched.is_empty() {
        at_loop(
            Code::DecorativeCompositeLoop,
            one,
            "components",
            "no cycle of immediate edges has these members",
        )
        .help("remove the loop, or make the edges of the cycle immediate")
    } else {
        let whole: BTreeSet<usize> =
            touched.iter().flat_map(|part| &sccs.parts[*part]).copied().collect();
        let list = |of: Vec<&usize>| {
            let ids: Vec<&str> = of.iter().map(|at| &*resolved.spec.components[**at].id).collect();
            ids.join("`, `")
        };
        let missing = list(whole.difference(members).collect());
        let beyond = list(members.difference(&whole).collect());
        let text = match (missing.is_empty(), beyond.is_empty()) {
            (false, true) => format!("the cycle also contains `{missing}`"),
            (true, false) => format!("`{beyond}` is not in the cycle"),
            (false, false) => {
                format!("the cycle also contains `{missing}`, and `{beyond}` is not in it")
            }
            (true, true) => format!("the members form {} cycles, not one", touched.len()),
        };
        at_loop(Code::PartialCompositeLoop, one, "components", text)
            .help("list exactly the members of one cycle")
    };
    for member in members {
        diagnostic = diagnostic.component(&resolved.spec.components[*member].id);
    }
    diagnostic
}

/// Checks the relations between the members of a loop.
fn check_members(
    resolved: &NameResolver<'_>,
    one: &LoopSpec,
    members: &BTreeSet<usize>,
    report: &mut Report<'_>,
) {
    let lanes: BTreeSet<usize> = members.iter().filter_map(|at| resolved.lane_of[*at]).collect();
    if lanes.len() > 1 {
        let ids: Vec<&str> = lanes.iter().map(|at| &*resolved.spec.lanes[*at].id).collect();
        let text = format!("the members are on several lanes: `{}`", ids.join("`, `"));
        let found = at_loop(Code::InvalidLoopPolicy, one, "components", text);
        report.push(found.help("put all members of a loop on one lane"));
    }
    if one.order.is_empty() {
        return;
    }
    let mut declared: Vec<&str> = one.order.iter().map(|name| &**name).collect();
    let mut needed: Vec<&str> =
        members.iter().map(|at| &*resolved.spec.components[*at].id).collect();
    declared.sort_unstable();
    needed.sort_unstable();
    if declared != needed {
        let text = "the order does not list each member exactly once";
        let found = at_loop(Code::InvalidLoopPolicy, one, "order", text);
        report.push(
            found.help(format!("list each of these once: `{}`", one.components.join("`, `"))),
        );
    }
}

/// Checks for invalid fields and fields without effect.
fn check_fields(one: &LoopSpec, report: &mut Report<'_>) {
    if one.components.is_empty() {
        let text = "the loop has no members";
        report.push(at_loop(Code::InvalidLoopPolicy, one, "components", text));
    }
    if one.residual_threshold.is_some_and(|threshold| threshold.is_nan() || threshold < 0.0) {
        let text = "the residual threshold is negative or not a number";
        report.push(at_loop(Code::InvalidLoopPolicy, one, "loop_policy.residual_threshold", text));
    }
    let is_commit = matches!(one.partial_success, None | Some(PartialSuccess::CommitOutputs));
    let unused = [
        ("max_inflight", one.max_inflight > 0, "the field is reserved"),
        ("drop_policy", one.drop_policy.is_some(), "the field is reserved"),
        ("min_interval_ms", one.min_interval_ms > 0, "the field is reserved"),
        (
            "partial_success",
            one.loop_type != LoopType::SolverIteration && !is_commit,
            "only a `solver_iteration` can fail to converge",
        ),
    ];
    for (field, is_given, why) in unused {
        if is_given {
            let path = format!("composite_loops.{}.loop_policy.{field}", one.id);
            let span = one.spans.get(&format!("loop_policy.{field}"));
            report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
        }
    }
}

/// Builds the plan of a graph without errors.
pub(super) fn plan(
    resolved: &NameResolver<'_>,
    sccs: ImmediateSccs,
    lifecycle: Vec<usize>,
) -> Plan {
    let spec = resolved.spec;
    let (regions, region_of) = ordered(resolved, &sccs);
    let mut n_domains = 1;
    let lanes = (0..spec.lanes.len())
        .map(|at| {
            let lane = &spec.lanes[at];
            let domain = if capability::has_own_epoch_domain(lane) {
                n_domains += 1;
                n_domains - 1
            } else {
                0
            };
            PlanLane {
                spec: lane.clone(),
                regions: Vec::new(),
                domain,
                capabilities: capability::of(lane),
            }
        })
        .collect();
    let mut plan = Plan {
        name: spec.name.clone(),
        kind: spec.kind,
        lanes,
        components: (0..spec.components.len())
            .map(|at| component(resolved, at, region_of[at]))
            .collect(),
        edges: (0..spec.edges.len()).map(|at| edge(resolved, at)).collect(),
        regions,
        chains: Vec::new(),
        immediate_sccs: sccs.parts,
        lifecycle,
        n_domains,
        hierarchy: spec.hierarchy.clone(),
        diagnostics: Vec::new(),
        config: spec.config.clone(),
    };
    for (at, region) in plan.regions.iter().enumerate() {
        plan.lanes[region.lane].regions.push(at);
    }
    plan
}

/// The regions in compiled order, and the region of each component.
fn ordered(resolved: &NameResolver<'_>, sccs: &ImmediateSccs) -> (Vec<PlanRegion>, Vec<usize>) {
    let spec = resolved.spec;
    // Numbered by their first members, so that the order of edges does not matter.
    let mut by_first: Vec<usize> = (0..sccs.parts.len()).collect();
    by_first.sort_unstable_by_key(|part| sccs.parts[*part][0]);
    let mut number_of = vec![0; spec.components.len()];
    for (number, part) in by_first.iter().enumerate() {
        for member in &sccs.parts[*part] {
            number_of[*member] = number;
        }
    }
    let mut pairs: Vec<(usize, usize)> = (0..spec.components.len())
        .flat_map(|from| sccs.arcs.of(from).iter().map(move |to| (from, *to)))
        .map(|(from, to)| (number_of[from], number_of[to]))
        .filter(|(from, to)| from != to)
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let ranks: Vec<u8> = by_first
        .iter()
        .map(|part| {
            let of = |at: &usize| spec.components[*at].execution.priority.rank();
            sccs.parts[*part].iter().map(of).max().unwrap_or(0)
        })
        .collect();
    let order = order::regions(&Arcs::new(by_first.len(), &pairs), &ranks);
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number] = at;
    }
    let mut regions: Vec<PlanRegion> = order
        .iter()
        .map(|number| region(resolved, sccs, by_first[*number], ranks[*number]))
        .collect();
    for (from, to) in pairs {
        regions[place[from]].outgoing.push(place[to]);
        regions[place[to]].incoming.push(place[from]);
    }
    for region in &mut regions {
        region.incoming.sort_unstable();
        region.outgoing.sort_unstable();
    }
    (regions, number_of.into_iter().map(|number| place[number]).collect())
}

fn region(resolved: &NameResolver<'_>, sccs: &ImmediateSccs, part: usize, rank: u8) -> PlanRegion {
    let spec = resolved.spec;
    let members = &sccs.parts[part];
    let owner = sccs.owners[part].map(|at| &spec.loops[at]);
    let components = match owner {
        Some(one) if !one.order.is_empty() => {
            one.order.iter().filter_map(|name| resolved.components.get(name)).collect()
        }
        Some(_) => order::feedback(members, &sccs.arcs),
        None => members.clone(),
    };
    let is_output = members.iter().any(|at| {
        let role = spec.components[*at].boundary.role;
        matches!(role, BoundaryRole::Output | BoundaryRole::InputOutput)
    });
    PlanRegion {
        id: owner.map_or_else(|| spec.components[members[0]].id.clone(), |one| one.id.clone()),
        components,
        loop_policy: owner
            .map(|one| PlanLoop { spec: one.clone(), order_is_declared: !one.order.is_empty() }),
        incoming: Vec::new(),
        outgoing: Vec::new(),
        lane: resolved.lane_of[members[0]].expect("all lanes of a valid graph exist"),
        rank,
        is_output,
    }
}

fn component(resolved: &NameResolver<'_>, at: usize, region: usize) -> PlanComponent {
    let spec = &resolved.spec.components[at];
    let descriptor = &resolved.descriptors[at];
    let ports = |of: &[PortDescriptor], edges: &[Vec<usize>]| {
        of.iter()
            .zip(edges)
            .map(|(port, edges)| PlanPort {
                name: port.name.clone(),
                schema: port.schema.clone(),
                edges: edges.clone(),
            })
            .collect()
    };
    PlanComponent {
        spec: spec.clone(),
        descriptor: descriptor.clone(),
        lane: resolved.lane_of[at].expect("all lanes of a valid graph exist"),
        region,
        inputs: ports(&descriptor.inputs, &resolved.at_inputs[at]),
        outputs: ports(&descriptor.outputs, &resolved.at_outputs[at]),
        trigger_inputs: NameResolver::trigger_inputs(spec)
            .iter()
            .filter_map(|name| descriptor.inputs.iter().position(|port| port.name == **name))
            .collect(),
    }
}

fn edge(resolved: &NameResolver<'_>, at: usize) -> PlanEdge {
    let spec = &resolved.spec.edges[at];
    let [from, to] = [resolved.ends[at].0, resolved.ends[at].1].map(|end| {
        end.and_then(|end| end.port.map(|port| (end.component, port)))
            .expect("all ports of a valid graph exist")
    });
    let n_readers = resolved.at_outputs[from.0][from.1].len();
    PlanEdge {
        id: spec.id.clone(),
        kind: spec.kind,
        policy: spec.policy.clone(),
        from,
        to,
        slow_reader_drop_risk: n_readers > 1 && spec.policy.overflow.evicts(),
        advisory_fields: check::edge_advice(&spec.policy)
            .into_iter()
            .map(|(field, _)| field.into())
            .collect(),
    }
}
