//! Chains: checks their ends, and finds the edges on which data travels from one to the other.
//!
//! An edge is on a chain if a path from `from` to `to` uses it. Edges that end at `from` or begin
//! at `to` are not: there the data begins or ends. A chain must not follow feedback, or data would
//! travel in a circle and grow old without bound. So of the edges inside of a cycle only those
//! count that lead away from `from`, measured in edges; a shortest path consists of such edges, so
//! `to` stays within reach.

use std::collections::{BTreeSet, VecDeque};

use super::{
    capability::has_own_epoch_domain,
    plan::PlanChain,
    report::Report,
    resolve::NameResolver,
    scc::{self, Arcs},
};
use crate::{
    describe::{ChainSpec, LaneSpec},
    diagnostic::{Code, Diagnostic},
};

/// The distance of a component that is out of reach.
const FAR: usize = usize::MAX;

/// Checks all chains; returns those without errors.
pub(super) fn find(resolved: &NameResolver<'_>, report: &mut Report<'_>) -> Vec<PlanChain> {
    let spec = resolved.spec;
    if spec.chains.is_empty() {
        return Vec::new();
    }
    let ends: Vec<(usize, usize, usize)> = resolved
        .ends
        .iter()
        .enumerate()
        .filter_map(|(edge, ends)| Some((edge, ends.0?.component, ends.1?.component)))
        .collect();
    // An end that could not be resolved may be the missing link.
    let is_whole = ends.len() == spec.edges.len();
    let one = |chain| check(resolved, chain, &ends, is_whole, report);
    spec.chains.iter().filter_map(one).collect()
}

fn at_chain(code: Code, chain: &ChainSpec, field: &str, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, format!("chains.{}.{field}", chain.id), text).at(chain.spans.get(field))
}

fn check(
    resolved: &NameResolver<'_>,
    chain: &ChainSpec,
    edges: &[(usize, usize, usize)],
    is_whole: bool,
    report: &mut Report<'_>,
) -> Option<PlanChain> {
    if chain.max_ms == 0 {
        let found = at_chain(Code::InvalidChain, chain, "max_ms", "the latency budget is zero");
        report.push(found.help("use the longest time that is acceptable, in milliseconds"));
    }
    let mut component = |field, name: &str| {
        let found = resolved.components.get(name);
        if found.is_none() {
            let text = format!("there is no component `{name}`");
            let unknown = at_chain(Code::UnknownComponent, chain, field, text);
            let all = resolved.spec.components.iter().map(|one| &*one.id);
            report.push_unknown(unknown, name, all, |meant| (name.into(), meant.into()));
        }
        found
    };
    let (from, to) = (component("from", &chain.from), component("to", &chain.to));
    let (from, to) = (from?, to?);
    if from == to {
        let text = format!("the chain begins and ends at `{}`", chain.from);
        report.push(at_chain(Code::InvalidChain, chain, "to", text).component(&chain.from));
        return None;
    }
    let path = path(resolved.spec.components.len(), edges, from, to);
    if path.is_empty() {
        if is_whole {
            let text = format!("no path of edges leads from `{}` to `{}`", chain.from, chain.to);
            let found = at_chain(Code::UnconnectedChain, chain, "to", text);
            let found = found.component(&chain.from).component(&chain.to);
            report.push(found.help("connect the two, or name other ends"));
        }
        return None;
    }
    warn_of_clocks(resolved, chain, edges.iter().filter(|(edge, ..)| path.contains(edge)), report);
    Some(PlanChain { id: chain.id.clone(), from, to, max_ms: chain.max_ms, edges: path })
}

/// Warns of a chain that leads through a lane that follows the wall clock and through one that does
/// not: if the latter is simulated, the two have no time in common.
fn warn_of_clocks<'e>(
    resolved: &NameResolver<'_>,
    chain: &ChainSpec,
    edges: impl Iterator<Item = &'e (usize, usize, usize)>,
    report: &mut Report<'_>,
) {
    let on: BTreeSet<usize> = edges.flat_map(|(_, from, to)| [*from, *to]).collect();
    let lanes = on.iter().filter_map(|component| resolved.lane_of[*component]);
    let lanes: Vec<&LaneSpec> = lanes.map(|lane| &resolved.spec.lanes[lane]).collect();
    let find = |is_own| lanes.iter().find(|lane| has_own_epoch_domain(lane) == is_own);
    let (Some(own), Some(other)) = (find(true), find(false)) else { return };
    let text = format!(
        "the chain leads through lane `{}`, which follows the wall clock, and lane `{}`, which may \
         be simulated",
        own.id, other.id
    );
    let found = at_chain(Code::ChainCrossesClocks, chain, "to", text);
    let found = found.component(&chain.from).component(&chain.to);
    let help = "run it with `--clock wall` or `--clock virtual`, or end the chain where the clock \
                changes";
    report.push(found.help(help));
}

/// The edges of a chain, in the order of the description; none if the ends are not connected.
fn path(n: usize, edges: &[(usize, usize, usize)], from: usize, to: usize) -> Vec<usize> {
    let inner = edges.iter().filter(|(_, a, b)| *b != from && *a != to);
    let inner: Vec<(usize, usize, usize)> = inner.copied().collect();
    let forward: Vec<(usize, usize)> = inner.iter().map(|(_, a, b)| (*a, *b)).collect();
    let backward: Vec<(usize, usize)> = inner.iter().map(|(_, a, b)| (*b, *a)).collect();
    let distance = distances(&Arcs::new(n, &forward), from);
    let back = distances(&Arcs::new(n, &backward), to);
    let is_on = |(_, a, b): &&(usize, usize, usize)| distance[*a] < FAR && back[*b] < FAR;
    let on: Vec<(usize, usize, usize)> = inner.iter().filter(is_on).copied().collect();
    let arcs: Vec<(usize, usize)> = on.iter().map(|(_, a, b)| (*a, *b)).collect();
    let mut part_of = vec![0; n];
    for (number, part) in scc::strongly_connected(&Arcs::new(n, &arcs)).iter().enumerate() {
        part.iter().for_each(|member| part_of[*member] = number);
    }
    let leads_away = |(_, a, b): &(usize, usize, usize)| {
        part_of[*a] != part_of[*b] || distance[*a] < distance[*b]
    };
    on.into_iter().filter(leads_away).map(|(edge, ..)| edge).collect()
}

/// The number of arcs from a node to each other one.
fn distances(arcs: &Arcs, from: usize) -> Vec<usize> {
    let mut distance = vec![FAR; arcs.n_nodes()];
    distance[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for next in arcs.of(node) {
            if distance[*next] == FAR {
                distance[*next] = distance[node] + 1;
                queue.push_back(*next);
            }
        }
    }
    distance
}
