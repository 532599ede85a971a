//! Properties of random graphs: the order of regions, and what it does not depend on.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    compile::lint::lint,
    describe::{ComponentPriority, EdgeMode, EdgeOverflow, TriggerType},
};

const N: usize = 9;
static TYPES: [&str; 12] = [
    "source",
    "sink",
    "mid",
    "mid",
    "mid",
    "single",
    "set",
    "gate",
    "shared",
    "nope",
    "frame_sink",
    "need",
];
static IDS: [&str; 5] = ["a", "b", "c", "", "ab"];

/// Components `c0`, `c1`, ... with these priorities, and immediate edges between them.
fn graph(priorities: &[u8], pairs: &[(usize, usize)]) -> GraphSpec {
    let mut graph = empty();
    for (at, priority) in priorities.iter().enumerate() {
        let one = graph.add(&format!("c{at}"), "mid");
        one.execution.priority = ComponentPriority::ALL[usize::from(*priority)];
    }
    for (at, (from, to)) in pairs.iter().enumerate() {
        let (from, to) = (format!("c{from}.out"), format!("c{to}.in"));
        graph.edge(&format!("e{at}"), EdgeKind::Immediate, &from, &to);
    }
    graph
}

/// The members of each cycle, found by checking every pair of components.
fn cycles(pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut reach = [[false; N]; N];
    for (from, to) in pairs {
        reach[*from][*to] = true;
    }
    for via in 0..N {
        for from in 0..N {
            for to in 0..N {
                reach[from][to] |= reach[from][via] && reach[via][to];
            }
        }
    }
    let mut found: Vec<Vec<usize>> = Vec::new();
    for at in (0..N).filter(|at| reach[*at][*at]) {
        if !found.iter().flatten().any(|one| *one == at) {
            found.push((0..N).filter(|to| reach[at][*to] && reach[*to][at]).collect());
        }
    }
    found
}

fn own_all(graph: &mut GraphSpec, cycles: &[Vec<usize>]) {
    for (at, members) in cycles.iter().enumerate() {
        let ids: Vec<String> = members.iter().map(|one| format!("c{one}")).collect();
        graph.own(&format!("l{at}"), &ids.iter().map(|one| &**one).collect::<Vec<_>>());
    }
}

/// The order as the contract describes it: a list that is sorted again at each step.
fn by_the_book(priorities: &[u8], pairs: &[(usize, usize)]) -> Vec<usize> {
    let mut done: Vec<usize> = Vec::new();
    let mut ready: Vec<usize> = Vec::new();
    loop {
        for at in 0..priorities.len() {
            let is_new = !done.contains(&at) && !ready.contains(&at);
            let is_free = pairs.iter().all(|(from, to)| *to != at || done.contains(from));
            if is_new && is_free {
                ready.push(at);
            }
        }
        // `ComponentPriority::ALL` starts with the highest.
        ready.sort_by_key(|at| priorities[*at]);
        if ready.is_empty() {
            return done;
        }
        done.push(ready.remove(0));
    }
}

/// The indices of a list.
fn indices<T>(all: &'static [T]) -> core::ops::Range<usize> {
    0..all.len()
}

fn priorities() -> impl Strategy<Value = Vec<u8>> {
    let n = u8::try_from(ComponentPriority::ALL.len()).expect("there are few priorities");
    vec(0..n, N)
}

fn dag() -> impl Strategy<Value = (Vec<u8>, Vec<(usize, usize)>)> {
    let shuffled = Just((0..N).collect::<Vec<_>>()).prop_shuffle();
    (priorities(), vec((0..N, 0..N), 0..16), shuffled).prop_map(|(ranks, pairs, place)| {
        let pairs = pairs.into_iter().filter(|(from, to)| place[*from] < place[*to]).collect();
        (ranks, pairs)
    })
}

fn any_pairs() -> impl Strategy<Value = (Vec<u8>, Vec<(usize, usize)>)> {
    (priorities(), vec((0..N, 0..N), 0..14))
}

/// Everything that a plan decides, without names.
fn shape(plan: &Plan) -> impl PartialEq + core::fmt::Debug + use<> {
    let regions: Vec<_> = plan
        .regions
        .iter()
        .map(|one| (one.components.clone(), one.incoming.clone(), one.outgoing.clone(), one.rank))
        .collect();
    (regions, plan.lifecycle.clone(), plan.immediate_sccs.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_a_graph_without_cycles_is_topological_and_stable_by_rank(
        (ranks, pairs) in dag()
    ) {
        let plan = planned(&graph(&ranks, &pairs));
        let order: Vec<usize> = plan.regions.iter().map(|one| one.components[0]).collect();
        let place = |at: usize| order.iter().position(|one| *one == at).unwrap();
        for (from, to) in &pairs {
            prop_assert!(place(*from) < place(*to), "{from} -> {to} in {order:?}");
        }
        prop_assert_eq!(order, by_the_book(&ranks, &pairs));
    }

    #[test]
    fn every_component_is_in_one_region_and_every_cycle_in_its_loop(
        (ranks, pairs) in any_pairs()
    ) {
        let mut graph = graph(&ranks, &pairs);
        let cycles = cycles(&pairs);
        own_all(&mut graph, &cycles);
        let plan = planned(&graph);
        let mut all: Vec<usize> =
            plan.regions.iter().flat_map(|one| one.components.clone()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..N).collect::<Vec<_>>());
        for (at, members) in cycles.iter().enumerate() {
            let region = plan.regions.iter().find(|one| one.id == format!("l{at}")).unwrap();
            let mut found = region.components.clone();
            found.sort_unstable();
            prop_assert_eq!(&found, members);
        }
        for (from, to) in &pairs {
            let [from, to] = [*from, *to].map(|at| plan.components[at].region);
            prop_assert!(from <= to, "{from} {to}");
        }
    }

    #[test]
    fn a_cycle_is_never_accepted_without_its_loop((ranks, pairs) in any_pairs(), at in 0..N) {
        let mut graph = graph(&ranks, &pairs);
        let cycles = cycles(&pairs);
        own_all(&mut graph, &cycles);
        prop_assume!(!cycles.is_empty());
        let at = at % cycles.len();
        let taken = graph.loops.remove(at);
        let codes = |graph: &GraphSpec| -> Vec<Code> {
            errors(graph).into_iter().map(|(code, _)| code).collect()
        };
        prop_assert_eq!(codes(&graph), [Code::ImmediateCycleWithoutLoop]);
        if taken.components.len() > 1 {
            graph.loops.push(taken);
            graph.loops.last_mut().unwrap().components.pop();
            prop_assert_eq!(codes(&graph), [Code::PartialCompositeLoop]);
        }
    }

    #[test]
    fn neither_the_order_of_edges_nor_that_of_loops_counts((ranks, pairs) in any_pairs()) {
        let mut one = graph(&ranks, &pairs);
        own_all(&mut one, &cycles(&pairs));
        let mut other = one.clone();
        other.edges.reverse();
        other.loops.reverse();
        let (one, other) = (planned(&one), planned(&other));
        prop_assert_eq!(order(&one), order(&other));
        let regions = |plan: &Plan| -> Vec<Vec<usize>> {
            plan.regions.iter().map(|one| one.components.clone()).collect()
        };
        prop_assert_eq!(regions(&one), regions(&other));
    }

    #[test]
    fn new_names_change_nothing_but_names((ranks, pairs) in any_pairs()) {
        let mut one = graph(&ranks, &pairs);
        own_all(&mut one, &cycles(&pairs));
        // The new names sort in reverse order.
        let renamed = |name: &str| -> String {
            let at: usize = name[1..2].parse().unwrap();
            format!("{}{}{}", &name[..1], 9 - at, &name[2..])
        };
        let mut other = one.clone();
        for component in &mut other.components {
            component.id = renamed(&component.id);
        }
        for edge in &mut other.edges {
            (edge.from, edge.to) = (renamed(&edge.from), renamed(&edge.to));
        }
        for one in &mut other.loops {
            one.components.iter_mut().for_each(|name| *name = renamed(name));
        }
        prop_assert_eq!(shape(&planned(&one)), shape(&planned(&other)));
    }

    #[test]
    fn whatever_is_described_there_is_a_plan_or_an_error(
        components in vec(
            (
                indices(&TYPES),
                indices(SourceType::ALL),
                indices(&IDS),
                indices(TriggerType::ALL),
            ),
            0..6,
        ),
        edges in vec(
            (
                indices(EdgeKind::ALL),
                indices(&IDS),
                indices(&IDS),
                indices(EdgeMode::ALL),
                indices(EdgeOverflow::ALL),
            ),
            0..8,
        ),
        members in vec(indices(&IDS), 0..5),
    ) {
        let mut graph = empty();
        for (kind, source, id, trigger) in components {
            let one = graph.add(IDS[id], TYPES[kind]);
            one.execution.reentrant = source == 1;
            one.depends_on = vec![IDS[trigger % IDS.len()].into()];
            let at = graph.components.len() - 1;
            graph.on_messages(at, SourceType::ALL[source]).trigger.trigger_type =
                TriggerType::ALL[trigger];
        }
        for (kind, from, to, mode, overflow) in edges {
            let (from, to) = (format!("{}.out", IDS[from]), format!("{}.in", IDS[to]));
            let id = format!("e{kind}{mode}");
            let policy = &mut graph.edge(&id, EdgeKind::ALL[kind], &from, &to).policy;
            (policy.mode, policy.overflow) = (EdgeMode::ALL[mode], EdgeOverflow::ALL[overflow]);
        }
        graph.own("l", &members.iter().map(|at| IDS[*at]).collect::<Vec<_>>());
        let list = findings(&graph);
        let n_errors = list.iter().filter(|one| one.is_error()).count();
        prop_assert!(lint(&graph, &list).len() >= n_errors);
    }
}
