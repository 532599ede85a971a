//! The wait-for graph of the asks in flight, for deadlock detection.
//!
//! Finding deadlocks as cycles of such a graph is described by Coffman, Elphick and Shoshani
//! ("System deadlocks", 1971).
//!
//! An edge leads from an actor that waits for an answer to the actor that is to give it. The edge
//! exists as long as the ask is pending, but it counts only as long as there is no answer: the
//! answer may be stored before the asker has seen it. Adding an edge searches for a path back,
//! breadth first: if there is one, all actors on it wait for each other. The search visits at most
//! [`SEARCH_MAX`] actors, because it holds a lock.

use alloc::{collections::BTreeMap, vec::Vec};

use clockjack_sync::spin_lock::SpinLock;

/// How many actors a search for cycles visits.
const SEARCH_MAX: usize = 64;

/// The asks in flight between actors that are identified by a `K`; a `T` describes the asked actor.
pub(crate) struct WaitForGraph<K, T> {
    edges: SpinLock<Edges<K, T>>,
    /// Whether an ask has no answer yet. Called under the lock.
    is_awaited: fn(&T) -> bool,
}

struct Edges<K, T> {
    next: u64,
    /// By asker, and then in the order in which they were added.
    map: BTreeMap<(K, u64), Edge<K, T>>,
}

struct Edge<K, T> {
    to: K,
    target: T,
}

/// Identifies an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeId<K>(K, u64);

impl<K: Copy + Ord, T: Clone> WaitForGraph<K, T> {
    pub(crate) fn new(is_awaited: fn(&T) -> bool) -> Self {
        Self { edges: SpinLock::new(Edges { next: 0, map: BTreeMap::new() }), is_awaited }
    }

    /// `from` waits for `to`, which `target` describes. If this closes a cycle, returns the actors
    /// on it, starting with `to` and ending with `from`.
    pub(crate) fn add(&self, from: K, to: K, target: T) -> (EdgeId<K>, Option<Vec<T>>) {
        self.edges.with(|edges| {
            let id = EdgeId(from, edges.next);
            edges.next += 1;
            let mut cycle = edges.path(to, from, self.is_awaited);
            if let Some(cycle) = &mut cycle {
                cycle.insert(0, target.clone());
            }
            edges.map.insert((id.0, id.1), Edge { to, target });
            (id, cycle)
        })
    }

    /// The ask is no longer pending. Returns the description of the asked actor, to be dropped.
    pub(crate) fn remove(&self, id: EdgeId<K>) -> Option<T> {
        self.edges.with(|edges| edges.map.remove(&(id.0, id.1))).map(|edge| edge.target)
    }
}

impl<K: Copy + Ord, T: Clone> Edges<K, T> {
    /// The actors on a path from `start`, which is left out, to `end`, which is included.
    fn path(&self, start: K, end: K, is_awaited: fn(&T) -> bool) -> Option<Vec<T>> {
        // Each actor that was found, with the index of its predecessor; the oldest edges first.
        let mut found: Vec<(K, Option<(usize, &T)>)> = Vec::from([(start, None)]);
        let mut at = 0;
        while let Some(&(from, _)) = found.get(at) {
            for edge in self.map.range((from, 0)..=(from, u64::MAX)).map(|(_, edge)| edge) {
                if !is_awaited(&edge.target) || found.iter().any(|(known, _)| *known == edge.to) {
                    continue;
                }
                if found.len() >= SEARCH_MAX {
                    return None;
                }
                found.push((edge.to, Some((at, &edge.target))));
                if edge.to == end {
                    return Some(trace(&found));
                }
            }
            at += 1;
        }
        None
    }
}

/// The path to the actor that was found last.
fn trace<K, T: Clone>(found: &[(K, Option<(usize, &T)>)]) -> Vec<T> {
    let mut path = Vec::new();
    let mut at = found.len().checked_sub(1);
    while let Some((_, Some((from, target)))) = at.and_then(|at| found.get(at)) {
        path.push((*target).clone());
        at = Some(*from);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> WaitForGraph<u32, &'static str> {
        WaitForGraph::new(|target| !target.ends_with("has answered"))
    }

    #[test]
    fn a_way_back_is_found_and_told_from_who_is_asked_on() {
        let graph = graph();
        assert_eq!(graph.add(1, 2, "two").1, None);
        assert_eq!(graph.add(2, 3, "three").1, None);
        assert_eq!(graph.add(2, 4, "four").1, None);
        assert_eq!(graph.add(4, 5, "five").1, None);
        let (_, cycle) = graph.add(5, 1, "one");
        assert_eq!(cycle.unwrap(), ["one", "two", "four", "five"]);
    }

    #[test]
    fn an_edge_that_was_removed_leads_nowhere() {
        let graph = graph();
        let (id, _) = graph.add(1, 2, "two");
        assert_eq!(graph.remove(id), Some("two"));
        assert_eq!(graph.remove(id), None);
        assert_eq!(graph.add(2, 1, "one").1, None);
    }

    #[test]
    fn of_two_asks_to_the_same_one_may_end_before_the_other() {
        let graph = graph();
        let (first, _) = graph.add(1, 2, "two");
        let (_second, _) = graph.add(1, 2, "two");
        graph.remove(first);
        assert_eq!(graph.add(2, 1, "one").1.unwrap(), ["one", "two"]);
    }

    #[test]
    fn an_ask_that_has_its_answer_is_on_no_way() {
        let graph = graph();
        graph.add(1, 2, "two has answered");
        assert_eq!(graph.add(2, 1, "one").1, None);
        graph.add(1, 3, "three");
        graph.add(3, 2, "two");
        assert_eq!(graph.add(2, 1, "one").1.unwrap(), ["one", "three", "two"]);
    }

    #[test]
    fn a_look_is_bounded() {
        let graph = WaitForGraph::new(|_| true);
        let far = u32::try_from(SEARCH_MAX).unwrap();
        for n in 0..far - 1 {
            assert_eq!(graph.add(n, n + 1, n + 1).1, None);
        }
        let (id, cycle) = graph.add(far - 1, 0, 0);
        assert_eq!(cycle.unwrap().len(), SEARCH_MAX);
        graph.remove(id);
        graph.add(far - 1, far, far);
        assert_eq!(graph.add(far, 0, 0).1, None, "it is too far away");
    }
}
