//! Orders of regions, of loop members and of activation. Each order depends only on the indices of
//! components, never on their names or on the order of edges, so that renaming changes nothing.
//!
//! The order of regions is a topological sort (Kahn, "Topological sorting of large networks",
//! 1962).

use std::collections::{BTreeSet, VecDeque};

use super::{
    report::Report,
    resolve::NameResolver,
    scc::{self, Arcs},
};
use crate::diagnostic::{Code, Diagnostic};

/// The number of ranks, which is that of `ComponentPriority`.
const N_RANKS: usize = 4;

/// The order of regions (Kahn, "Topological sorting of large networks", 1962): among the ready
/// regions the one with the highest rank comes first, and among equal ranks the one that was ready
/// first. A rank never overrides a dependency.
///
/// `arcs` must be acyclic, and the successors of each region must be distinct.
pub(super) fn regions(arcs: &Arcs, ranks: &[u8]) -> Vec<usize> {
    let mut n_waiting = vec![0_usize; arcs.n_nodes()];
    for node in 0..arcs.n_nodes() {
        for next in arcs.of(node) {
            n_waiting[*next] += 1;
        }
    }
    // A stable sort by rank: one FIFO queue per rank.
    let mut ready = [const { VecDeque::new() }; N_RANKS];
    let mut order = Vec::with_capacity(arcs.n_nodes());
    let push = |ready: &mut [VecDeque<usize>; N_RANKS], node: usize| {
        let queue = &mut ready[usize::from(ranks[node])];
        queue.push_back(node)
    };
    for (node, _) in n_waiting.iter().enumerate().filter(|(_, waits)| **waits == 0) {
        push(&mut ready, node);
    }
    while let Some(node) = ready.iter_mut().rev().find_map(VecDeque::pop_front) {
        order.push(node);
        for next in arcs.of(node) {
            n_waiting[*next] -= 1;
            if n_waiting[*next] == 0 {
                push(&mut ready, *next);
            }
        }
    }
    debug_assert_eq!(order.len(), arcs.n_nodes(), "regions have no cycle");
    order
}

/// Orders the members of a cycle so that few edges point backwards: the heuristic of Eades, Lin and
/// Smyth, "A fast and effective heuristic for the feedback arc set problem", 1993. On ties, the
/// member that was declared first comes first.
pub(super) fn feedback(members: &[usize], arcs: &Arcs) -> Vec<usize> {
    let n = members.len();
    let place = |node: usize| members.binary_search(&node).ok();
    let mut into = vec![Vec::new(); n];
    let mut out = vec![Vec::new(); n];
    for (at, node) in members.iter().enumerate() {
        let mut next: Vec<usize> = arcs.of(*node).iter().filter_map(|to| place(*to)).collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|to| *to != at);
        for to in &next {
            into[*to].push(at);
        }
        out[at] = next;
    }
    let mut left = RemainingCycle {
        n_in: into.iter().map(Vec::len).collect(),
        n_out: out.iter().map(Vec::len).collect(),
        is_there: vec![true; n],
        by_surplus: BTreeSet::new(),
        sources: BTreeSet::new(),
        sinks: BTreeSet::new(),
    };
    for at in 0..n {
        left.enter(at);
    }
    let (mut head, mut tail) = (Vec::with_capacity(n), Vec::new());
    while let Some((at, is_sink)) = left.pick() {
        left.remove(at, &into[at], &out[at]);
        if is_sink { tail.push(members[at]) } else { head.push(members[at]) }
    }
    head.extend(tail.into_iter().rev());
    head
}

/// The members of a cycle that are not yet ordered.
struct RemainingCycle {
    n_in: Vec<usize>,
    n_out: Vec<usize>,
    is_there: Vec<bool>,
    /// Sorted by in-degree minus out-degree; the smallest difference is picked first.
    by_surplus: BTreeSet<(isize, usize)>,
    sources: BTreeSet<usize>,
    sinks: BTreeSet<usize>,
}

impl RemainingCycle {
    fn surplus(&self, at: usize) -> isize {
        self.n_in[at].cast_signed() - self.n_out[at].cast_signed()
    }

    fn enter(&mut self, at: usize) {
        self.by_surplus.insert((self.surplus(at), at));
        if self.n_out[at] == 0 {
            self.sinks.insert(at);
        } else if self.n_in[at] == 0 {
            self.sources.insert(at);
        }
    }

    fn leave(&mut self, at: usize) {
        self.by_surplus.remove(&(self.surplus(at), at));
        self.sinks.remove(&at);
        self.sources.remove(&at);
    }

    /// The next member, and whether it belongs at the end of the order.
    fn pick(&self) -> Option<(usize, bool)> {
        let sink = self.sinks.first().map(|at| (*at, true));
        let source = || self.sources.first().map(|at| (*at, false));
        let other = || self.by_surplus.first().map(|(_, at)| (*at, false));
        sink.or_else(source).or_else(other)
    }

    fn remove(&mut self, at: usize, into: &[usize], out: &[usize]) {
        self.leave(at);
        self.is_there[at] = false;
        for (others, is_before) in [(into, true), (out, false)] {
            for other in
                others.iter().copied().filter(|one| self.is_there[*one]).collect::<Vec<_>>()
            {
                self.leave(other);
                let count = if is_before { &mut self.n_out[other] } else { &mut self.n_in[other] };
                *count -= 1;
                self.enter(other);
            }
        }
    }
}

/// The order of activation: a component comes after its dependencies, and otherwise in the order of
/// the description. Reports errors in `depends_on`.
pub(super) fn lifecycle(resolved: &NameResolver<'_>, report: &mut Report<'_>) -> Vec<usize> {
    let components = &resolved.spec.components;
    let mut pairs = Vec::new();
    for (at, component) in components.iter().enumerate() {
        let path = || format!("components.{}.depends_on", component.id);
        let mut seen = BTreeSet::new();
        for name in &component.depends_on {
            let span = component.spans.get("depends_on");
            if !seen.insert(name) {
                report.push(
                    Diagnostic::new(
                        Code::DuplicateId,
                        path(),
                        format!("`depends_on` lists `{name}` twice"),
                    )
                    .at(span)
                    .component(&component.id),
                );
            } else if let Some(on) = resolved.components.get(name) {
                pairs.push((on, at));
            } else {
                let text = format!("there is no component `{name}`");
                let found = Diagnostic::new(Code::UnknownComponent, path(), text).at(span);
                let others = components.iter().filter(|one| one.id != component.id);
                let all = others.map(|one| &*one.id);
                report.push_unknown(found.component(&component.id), name, all, |meant| {
                    (name.clone(), meant.into())
                });
            }
        }
    }
    let arcs = Arcs::new(components.len(), &pairs);
    for part in scc::strongly_connected(&arcs).iter().filter(|part| scc::is_cyclic(part, &arcs)) {
        let ids: Vec<&str> = part.iter().map(|at| &*components[*at].id).collect();
        let first = &components[part[0]];
        let text = format!("`depends_on` has a cycle: `{}`", ids.join("`, `"));
        let mut found = Diagnostic::new(
            Code::DependencyCycle,
            format!("components.{}.depends_on", first.id),
            text,
        )
        .at(first.spans.get("depends_on"));
        for id in ids {
            found = found.component(id);
        }
        report.push(found.help("remove one of the dependencies"));
    }
    let mut n_waiting = vec![0_usize; components.len()];
    for (_, at) in &pairs {
        n_waiting[*at] += 1;
    }
    let mut ready: BTreeSet<usize> =
        (0..components.len()).filter(|at| n_waiting[*at] == 0).collect();
    let mut order = Vec::with_capacity(components.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for next in arcs.of(at) {
            n_waiting[*next] -= 1;
            if n_waiting[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    order
}
