//! Regions: one for each strongly connected part of the immediate edges, owned by a loop if it
//! goes round. Their order is the meaning of the graph.
//!
//! Invariant: every component is in exactly one region, and a region of a cycle has exactly the
//! members that its loop declares.

use std::collections::BTreeSet;

use clockjack_sync::mutant;

use super::{
    capability, check,
    names::Names,
    order,
    plan::{Plan, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort, PlanRegion},
    report::Report,
    scc::{self, Arcs},
};
use crate::{
    component::PortDescriptor,
    describe::{BoundaryRole, EdgeKind, EdgeSpec, LoopSpec, LoopType, PartialSuccess},
    diagnostic::{Code, Diagnostic},
};

/// The parts of the immediate edges, and who owns them.
#[derive(Debug)]
pub(super) struct Found {
    arcs: Arcs,
    /// As they were found: successors first.
    parts: Vec<Vec<usize>>,
    /// The loop of each part.
    owners: Vec<Option<usize>>,
}

/// Finds the parts and their loops, and tells what is wrong with either.
pub(super) fn find(names: &Names<'_>, report: &mut Report<'_>) -> Found {
    let mut pairs = Vec::new();
    for (edge, ends) in names.spec.edges.iter().zip(&names.ends) {
        if let (EdgeKind::Immediate, (Some(from), Some(to))) = (edge.kind, ends) {
            pairs.push((from.component, to.component));
        }
    }
    let arcs = Arcs::new(names.spec.components.len(), &pairs);
    let parts = scc::parts(&arcs);
    let mut part_of = vec![0; names.spec.components.len()];
    for (number, part) in parts.iter().enumerate() {
        for member in part {
            part_of[*member] = number;
        }
    }
    let mut found = Found { owners: vec![None; parts.len()], arcs, parts };
    let mut is_excused = vec![false; found.parts.len()];
    for (at, one) in names.spec.loops.iter().enumerate() {
        check_fields(one, report);
        own(names, &mut found, at, &part_of, &mut is_excused, report);
    }
    let mut inner: Vec<Vec<&EdgeSpec>> = vec![Vec::new(); found.parts.len()];
    for (edge, ends) in names.spec.edges.iter().zip(&names.ends) {
        if let (EdgeKind::Immediate, (Some(from), Some(to))) = (edge.kind, ends)
            && part_of[from.component] == part_of[to.component]
        {
            inner[part_of[from.component]].push(edge);
        }
    }
    for (number, part) in found.parts.iter().enumerate() {
        let is_owned = found.owners[number].is_some() || is_excused[number];
        if is_owned || !scc::is_cyclic(part, &found.arcs) || mutant!("region-cycle-accepted") {
            continue;
        }
        let ids: Vec<&str> = part.iter().map(|at| &*names.spec.components[*at].id).collect();
        let text = format!("immediate edges go round through `{}`", ids.join("`, `"));
        let first = inner[number][0];
        let mut diagnostic =
            Diagnostic::new(Code::ImmediateCycleWithoutLoop, format!("edges.{}", first.id), text)
                .at(first.marks.get("kind"));
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
    found
}

fn at_loop(code: Code, one: &LoopSpec, field: &str, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, format!("composite_loops.{}.{field}", one.id), text)
        .at(one.marks.get(field))
}

/// Finds the part that a loop owns. A loop with a member that does not exist is only told that.
fn own(
    names: &Names<'_>,
    found: &mut Found,
    at: usize,
    part_of: &[usize],
    is_excused: &mut [bool],
    report: &mut Report<'_>,
) {
    let one = &names.spec.loops[at];
    let mut members = BTreeSet::new();
    let mut has_unknown = false;
    for name in &one.components {
        if let Some(member) = names.components.get(name) {
            if !members.insert(member) {
                let text = format!("the member `{name}` is named twice");
                report.push(at_loop(Code::InvalidLoopPolicy, one, "components", text));
            }
            continue;
        }
        has_unknown = true;
        let text = format!("there is no component `{name}`");
        let diagnostic = at_loop(Code::UnknownComponent, one, "components", text);
        let all = names.spec.components.iter().map(|one| &*one.id);
        report.push_unknown(diagnostic, name, all, |meant| (name.clone(), meant.into()));
    }
    let touched: BTreeSet<usize> = members
        .iter()
        .map(|member| part_of[*member])
        .filter(|part| scc::is_cyclic(&found.parts[*part], &found.arcs))
        .collect();
    if one.components.is_empty() || has_unknown {
        touched.iter().for_each(|part| is_excused[*part] = true);
        return;
    }
    check_members(names, one, &members, report);
    let exact = touched.iter().copied().find(|part| {
        // Both are in the order of their numbers.
        members.iter().eq(&found.parts[*part]) || mutant!("region-part-accepted")
    });
    if let Some(part) = exact {
        if let Some(other) = found.owners[part] {
            let other = &names.spec.loops[other];
            let text = format!("the loop `{}` has the same members", other.id);
            let diagnostic = at_loop(Code::InvalidLoopPolicy, one, "components", text);
            report.push(diagnostic.and_at(other.marks.get("components"), "the other one"));
        } else {
            found.owners[part] = Some(at);
        }
        return;
    }
    report.push(inexact(names, found, one, &members, &touched));
    touched.iter().for_each(|part| is_excused[*part] = true);
}

/// What a loop says that owns no cycle, or a part of one, or more than it.
fn inexact(
    names: &Names<'_>,
    found: &Found,
    one: &LoopSpec,
    members: &BTreeSet<usize>,
    touched: &BTreeSet<usize>,
) -> Diagnostic {
    let mut diagnostic = if touched.is_empty() {
        at_loop(
            Code::DecorativeCompositeLoop,
            one,
            "components",
            "no immediate cycle has these members",
        )
        .help("remove the loop, or make the edges that go round immediate")
    } else {
        let whole: BTreeSet<usize> =
            touched.iter().flat_map(|part| &found.parts[*part]).copied().collect();
        let list = |of: Vec<&usize>| {
            let ids: Vec<&str> = of.iter().map(|at| &*names.spec.components[**at].id).collect();
            ids.join("`, `")
        };
        let missing = list(whole.difference(members).collect());
        let beyond = list(members.difference(&whole).collect());
        let text = match (missing.is_empty(), beyond.is_empty()) {
            (false, true) => format!("the cycle also has `{missing}`"),
            (true, false) => format!("`{beyond}` is not in the cycle"),
            (false, false) => {
                format!("the cycle also has `{missing}`, and `{beyond}` is not in it")
            }
            (true, true) => format!("these are {} cycles, not one", touched.len()),
        };
        at_loop(Code::PartialCompositeLoop, one, "components", text)
            .help("a loop has exactly the members of one cycle")
    };
    for member in members {
        diagnostic = diagnostic.component(&names.spec.components[*member].id);
    }
    diagnostic
}

/// What must hold between the members of a loop.
fn check_members(
    names: &Names<'_>,
    one: &LoopSpec,
    members: &BTreeSet<usize>,
    report: &mut Report<'_>,
) {
    let lanes: BTreeSet<usize> = members.iter().filter_map(|at| names.lane_of[*at]).collect();
    if lanes.len() > 1 {
        let ids: Vec<&str> = lanes.iter().map(|at| &*names.spec.lanes[*at].id).collect();
        let text = format!("the members are on several lanes: `{}`", ids.join("`, `"));
        let found = at_loop(Code::InvalidLoopPolicy, one, "components", text);
        report.push(found.help("members of one loop share a lane"));
    }
    if one.order.is_empty() {
        return;
    }
    let mut declared: Vec<&str> = one.order.iter().map(|name| &**name).collect();
    let mut needed: Vec<&str> = members.iter().map(|at| &*names.spec.components[*at].id).collect();
    declared.sort_unstable();
    needed.sort_unstable();
    if declared != needed {
        let text = "the order does not name each member once";
        let found = at_loop(Code::InvalidLoopPolicy, one, "order", text);
        report.push(found.help(format!("order these: `{}`", one.components.join("`, `"))));
    }
}

/// Fields of a loop that cannot be, or that have no effect.
fn check_fields(one: &LoopSpec, report: &mut Report<'_>) {
    if one.components.is_empty() {
        let text = "the loop has no members";
        report.push(at_loop(Code::InvalidLoopPolicy, one, "components", text));
    }
    if one.residual_threshold.is_some_and(|threshold| threshold.is_nan() || threshold < 0.0) {
        let text = "the residual threshold is not a number from zero on";
        report.push(at_loop(Code::InvalidLoopPolicy, one, "loop_policy.residual_threshold", text));
    }
    let is_commit = matches!(one.partial_success, None | Some(PartialSuccess::CommitOutputs));
    let unused = [
        ("max_inflight", one.max_inflight > 0, "it is reserved"),
        ("drop_policy", one.drop_policy.is_some(), "it is reserved"),
        ("min_interval_ms", one.min_interval_ms > 0, "it is reserved"),
        (
            "partial_success",
            one.loop_type != LoopType::SolverIteration && !is_commit,
            "only a `solver_iteration` can fail to converge",
        ),
    ];
    for (field, is_given, why) in unused {
        if is_given {
            let path = format!("composite_loops.{}.loop_policy.{field}", one.id);
            let span = one.marks.get(&format!("loop_policy.{field}"));
            report.advise(Code::AdvisoryExecutionFieldIgnored, path, span, why);
        }
    }
}

/// The plan of a graph without faults.
pub(super) fn plan(names: &Names<'_>, found: Found, lifecycle: Vec<usize>) -> Plan {
    let spec = names.spec;
    let (regions, region_of) = ordered(names, &found);
    let mut n_domains = 1;
    let lanes = (0..spec.lanes.len())
        .map(|at| {
            let lane = &spec.lanes[at];
            let domain = if capability::keeps_own_time(lane) {
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
            .map(|at| component(names, at, region_of[at]))
            .collect(),
        edges: (0..spec.edges.len()).map(|at| edge(names, at)).collect(),
        regions,
        immediate_sccs: found.parts,
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
fn ordered(names: &Names<'_>, found: &Found) -> (Vec<PlanRegion>, Vec<usize>) {
    let spec = names.spec;
    // Numbered by their first members, so that the order of edges does not count.
    let mut by_first: Vec<usize> = (0..found.parts.len()).collect();
    by_first.sort_unstable_by_key(|part| found.parts[*part][0]);
    let mut number_of = vec![0; spec.components.len()];
    for (number, part) in by_first.iter().enumerate() {
        for member in &found.parts[*part] {
            number_of[*member] = number;
        }
    }
    let mut pairs: Vec<(usize, usize)> = (0..spec.components.len())
        .flat_map(|from| found.arcs.of(from).iter().map(move |to| (from, *to)))
        .map(|(from, to)| (number_of[from], number_of[to]))
        .filter(|(from, to)| from != to)
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let ranks: Vec<u8> = by_first
        .iter()
        .map(|part| {
            let of = |at: &usize| spec.components[*at].execution.priority.rank();
            found.parts[*part].iter().map(of).max().unwrap_or(0)
        })
        .collect();
    let order = order::regions(&Arcs::new(by_first.len(), &pairs), &ranks);
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number] = at;
    }
    let mut regions: Vec<PlanRegion> = order
        .iter()
        .map(|number| region(names, found, by_first[*number], ranks[*number]))
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

fn region(names: &Names<'_>, found: &Found, part: usize, rank: u8) -> PlanRegion {
    let spec = names.spec;
    let members = &found.parts[part];
    let owner = found.owners[part].map(|at| &spec.loops[at]);
    let components = match owner {
        Some(one) if !one.order.is_empty() => {
            one.order.iter().filter_map(|name| names.components.get(name)).collect()
        }
        Some(_) => order::feedback(members, &found.arcs),
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
        lane: names.lane_of[members[0]].expect("a graph without faults names lanes that exist"),
        rank,
        is_output,
    }
}

fn component(names: &Names<'_>, at: usize, region: usize) -> PlanComponent {
    let spec = &names.spec.components[at];
    let descriptor = &names.descriptors[at];
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
        lane: names.lane_of[at].expect("a graph without faults names lanes that exist"),
        region,
        inputs: ports(&descriptor.inputs, &names.at_inputs[at]),
        outputs: ports(&descriptor.outputs, &names.at_outputs[at]),
        trigger_inputs: Names::trigger_inputs(spec)
            .iter()
            .filter_map(|name| descriptor.inputs.iter().position(|port| port.name == **name))
            .collect(),
    }
}

fn edge(names: &Names<'_>, at: usize) -> PlanEdge {
    let spec = &names.spec.edges[at];
    let [from, to] = [names.ends[at].0, names.ends[at].1].map(|end| {
        end.and_then(|end| end.port.map(|port| (end.component, port)))
            .expect("a graph without faults names ports that exist")
    });
    PlanEdge {
        id: spec.id.clone(),
        kind: spec.kind,
        policy: spec.policy.clone(),
        from,
        to,
        slow_reader_drop_risk: check::is_slow_reader_drop_risk(&spec.policy),
        advisory_fields: check::edge_advice(&spec.policy)
            .into_iter()
            .map(|(field, _)| field.into())
            .collect(),
    }
}
