//! Orders: of regions, of the members of a loop, of activation. Each is a function of the numbers
//! of components, never of their names or of the order of edges, so that renaming changes nothing.

use std::collections::{BTreeSet, VecDeque};

use clockjack_sync::mutant;

use super::{
    names::Names,
    report::Report,
    scc::{self, Arcs},
};
use crate::diagnostic::{Code, Diagnostic};

/// How many ranks there are: those of `Priority`.
const N_RANKS: usize = 4;

/// The order of regions (Kahn, "Topological sorting of large networks", 1962): of those that are
/// ready the one with the highest rank, and among equals the one that was ready first. A rank
/// never goes before a dependency.
///
/// `arcs` must have no cycle; the successors of each region must be without repetition.
pub(super) fn regions(arcs: &Arcs, ranks: &[u8]) -> Vec<usize> {
    let mut n_waiting = vec![0_usize; arcs.n_nodes()];
    for node in 0..arcs.n_nodes() {
        for next in arcs.of(node) {
            n_waiting[*next] += 1;
        }
    }
    // A stable sort by rank, kept as one queue for each rank.
    let mut ready = [const { VecDeque::new() }; N_RANKS];
    let mut order = Vec::with_capacity(arcs.n_nodes());
    let push = |ready: &mut [VecDeque<usize>; N_RANKS], node: usize| {
        let queue = &mut ready[usize::from(ranks[node])];
        if mutant!("order-unstable") { queue.push_front(node) } else { queue.push_back(node) }
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
    if mutant!("order-priority-first") {
        order.sort_by_key(|node| core::cmp::Reverse(ranks[*node]));
    }
    order
}

/// An order of the members of a cycle that leaves few edges pointing back: Eades, Lin and Smyth,
/// "A fast and effective heuristic for the feedback arc set problem", 1993. Ties go to the member
/// that was declared first.
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
    let mut left = Left {
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

/// What is left of a cycle while its order is found.
struct Left {
    n_in: Vec<usize>,
    n_out: Vec<usize>,
    is_there: Vec<bool>,
    /// Less what leaves than what enters comes later.
    by_surplus: BTreeSet<(isize, usize)>,
    sources: BTreeSet<usize>,
    sinks: BTreeSet<usize>,
}

impl Left {
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

    /// The next one, and whether it belongs to the end.
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

/// The order of activation: after those that a component depends on, ties in the order of the
/// description. What is wrong with `depends_on` is told on the way.
pub(super) fn lifecycle(names: &Names<'_>, report: &mut Report<'_>) -> Vec<usize> {
    let components = &names.spec.components;
    let mut pairs = Vec::new();
    for (at, component) in components.iter().enumerate() {
        let path = || format!("components.{}.depends_on", component.id);
        let mut seen = BTreeSet::new();
        for name in &component.depends_on {
            let span = component.marks.get("depends_on");
            if !seen.insert(name) {
                report.push(
                    Diagnostic::new(
                        Code::DuplicateId,
                        path(),
                        format!("the dependency `{name}` is given twice"),
                    )
                    .at(span)
                    .component(&component.id),
                );
            } else if let Some(on) = names.components.get(name) {
                pairs.push((on, at));
            } else {
                let text = format!("there is no component `{name}`");
                let found = Diagnostic::new(Code::UnknownComponent, path(), text).at(span);
                let all = components.iter().map(|one| &*one.id);
                report.push_unknown(found.component(&component.id), name, all, |meant| {
                    (name.clone(), meant.into())
                });
            }
        }
    }
    let arcs = Arcs::new(components.len(), &pairs);
    for part in scc::parts(&arcs).iter().filter(|part| scc::is_cyclic(part, &arcs)) {
        let ids: Vec<&str> = part.iter().map(|at| &*components[*at].id).collect();
        let first = &components[part[0]];
        let text = format!("these depend on each other: `{}`", ids.join("`, `"));
        let mut found = Diagnostic::new(
            Code::DependencyCycle,
            format!("components.{}.depends_on", first.id),
            text,
        )
        .at(first.marks.get("depends_on"));
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
