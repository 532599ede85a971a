//! Regions, their owners and their order, on small graphs.

use super::*;
use crate::describe::ComponentPriority;

/// `a.out -> b.in` for each word `ab`.
fn chain(ids: &[&str], edges: &[&str]) -> GraphSpec {
    let mut graph = empty();
    for id in ids {
        graph.add(id, "mid");
    }
    for edge in edges {
        let (from, to) = edge.split_at(1);
        let (from, to) = (format!("{from}.out"), format!("{to}.in"));
        graph.edge(edge, EdgeKind::Immediate, &from, &to);
    }
    graph
}

fn prioritise(graph: &mut GraphSpec, id: &str, priority: ComponentPriority) {
    let one = graph.components.iter_mut().find(|one| one.id == id).unwrap();
    one.execution.priority = priority;
}

#[test]
fn producers_come_before_readers_whatever_the_order_of_the_file() {
    let graph = chain(&["c", "b", "a"], &["bc", "ab"]);
    let plan = planned(&graph);
    assert_eq!(order(&plan), ["a", "b", "c"]);
    assert_eq!(plan.regions[1].incoming, [0]);
    assert_eq!(plan.regions[1].outgoing, [2]);
    assert_eq!(plan.components.iter().map(|one| one.region).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn regions_of_one_rank_keep_the_order_in_which_they_are_ready() {
    assert_eq!(order(&planned(&chain(&["x", "y", "z"], &[]))), ["x", "y", "z"]);
    // `c` is ready only after `a`, when `b` already waits.
    assert_eq!(order(&planned(&chain(&["a", "c", "b"], &["ac"]))), ["a", "b", "c"]);
}

#[test]
fn a_higher_rank_goes_first_but_never_before_its_producer() {
    let mut graph = chain(&["a", "b", "c", "d"], &["ad"]);
    prioritise(&mut graph, "d", ComponentPriority::High);
    prioritise(&mut graph, "a", ComponentPriority::Background);
    prioritise(&mut graph, "c", ComponentPriority::High);
    assert_eq!(order(&planned(&graph)), ["c", "b", "a", "d"]);
}

#[test]
fn only_immediate_edges_order_regions() {
    for kind in [EdgeKind::Delay, EdgeKind::State, EdgeKind::Async] {
        let mut graph = chain(&["b", "a"], &["ab"]);
        graph.edges[0].kind = kind;
        assert_eq!(order(&planned(&graph)), ["b", "a"]);
        let mut round = chain(&["a", "b"], &["ab", "ba"]);
        round.edges[1].kind = kind;
        assert_eq!(order(&planned(&round)), ["a", "b"]);
    }
}

#[test]
fn an_undeclared_cycle_is_refused_with_its_members_and_edges() {
    let mut graph = chain(&["a", "b", "c", "d"], &["ab", "bc", "cb", "cd"]);
    let found = findings(&graph).into_iter().find(Diagnostic::is_error).unwrap();
    assert_eq!(found.code, Code::ImmediateCycleWithoutLoop);
    assert_eq!(found.components, ["b", "c"]);
    assert_eq!(found.edges, ["bc", "cb"]);
    graph.own("l", &["b", "c"]);
    assert_eq!(order(&planned(&graph)), ["a", "l", "d"]);
}

#[test]
fn a_loop_owns_exactly_its_cycle() {
    // Two cycles that overlap are one.
    let mut graph = chain(&["a", "b", "c"], &["ab", "ba", "bc", "cb"]);
    graph.own("l", &["a", "b"]);
    let code = |graph: &GraphSpec| errors(graph).remove(0).0;
    assert_eq!(code(&graph), Code::PartialCompositeLoop);
    graph.own("m", &["b", "c"]);
    assert_eq!(errors(&graph).len(), 2);
    graph.loops.clear();
    graph.own("l", &["c", "a", "b"]);
    let plan = planned(&graph);
    assert_eq!(order(&plan), ["l"]);
    assert_eq!(plan.regions[0].rank, 2);
}

#[test]
fn one_loop_over_two_cycles_owns_neither() {
    let mut graph = chain(&["a", "b"], &["aa", "bb"]);
    graph.own("l", &["a", "b"]);
    assert_eq!(
        errors(&graph),
        [(Code::PartialCompositeLoop, "composite_loops.l.components".into())]
    );
}

#[test]
fn members_of_a_loop_are_called_in_the_order_of_their_data_or_as_declared() {
    // The declared order is against the data flow, and the cycle is entered at `c`: one edge points
    // backwards, whichever member comes first.
    let mut graph = chain(&["s", "b", "a", "c"], &["sa", "ab", "bc", "ca", "cb"]);
    graph.own("l", &["a", "b", "c"]);
    let members = |plan: &Plan| -> Vec<String> {
        let ids = plan.regions[1].components.iter();
        ids.map(|at| plan.components[*at].spec.id.clone()).collect()
    };
    let plan = planned(&graph);
    assert_eq!(members(&plan), ["c", "a", "b"], "`c` has most that leaves");
    assert!(!plan.regions[1].loop_policy.as_ref().unwrap().order_is_declared);
    graph.loops[0].order = vec!["b".into(), "c".into(), "a".into()];
    let plan = planned(&graph);
    assert_eq!(members(&plan), ["b", "c", "a"]);
    assert!(plan.regions[1].loop_policy.as_ref().unwrap().order_is_declared);
}

#[test]
fn activation_follows_dependencies_and_else_the_file() {
    let mut graph = chain(&["a", "b", "c", "d"], &["da"]);
    graph.components[0].depends_on = vec!["c".into()];
    graph.components[1].depends_on = vec!["c".into(), "a".into()];
    assert_eq!(planned(&graph).lifecycle, [2, 0, 1, 3]);
}

#[test]
fn a_region_with_an_output_boundary_waits_for_all_before_it() {
    let mut graph = chain(&["a", "b", "c"], &["ab", "ba"]);
    graph.own("l", &["a", "b"]);
    graph.components[1].boundary.role = BoundaryRole::InputOutput;
    let plan = planned(&graph);
    assert_eq!(plan.regions.iter().map(|one| one.is_output).collect::<Vec<_>>(), [true, false]);
    assert_eq!(plan.lanes[0].regions, [0, 1]);
}

#[test]
fn a_plan_has_the_edges_of_each_port_in_the_order_of_the_file() {
    let graph = chain(&["a", "b", "c"], &["ac", "ab", "bc"]);
    let plan = planned(&graph);
    assert_eq!(plan.components[0].outputs[0].edges, [0, 1]);
    assert_eq!(plan.components[2].inputs[0].edges, [0, 2]);
    assert_eq!((plan.edges[2].from, plan.edges[2].to), ((1, 0), (2, 0)));
}
