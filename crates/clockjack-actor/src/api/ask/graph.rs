//! The wait-for graph of the asks in flight, for deadlock detection.
//!
//! Finding deadlocks as cycles of such a graph is described by Coffman, Elphick and Shoshani
//! ("System deadlocks", 1971).
//!
//! An edge leads from an actor that waits for an answer to the actor that is to give it. The edge
//! exists as long as the ask is pending, but it counts only as long as there is no answer: the
//! answer may be stored before the asker has seen it. Adding an edge searches for a path back,
//! breadth first: if there is one, all actors on it wait for each other.
//!
//! The search holds a lock, so it visits at most [`SEARCH_MAX`] actors and [`EDGES_MAX`] edges, and
//! does not allocate: if the asked actor waits itself, which is rare, the search ends, and is
//! repeated when the caller has the memory for it.

use alloc::vec::Vec;

use clockjack_sync::spin_lock::SpinLock;

use crate::room::{HashSlab, hash_of, with_room};

/// How many actors a search for cycles visits.
const SEARCH_MAX: usize = 64;
/// How many edges a search for cycles visits.
const EDGES_MAX: usize = 1_024;

/// The asks in flight between actors that are identified by numbers; a `T` describes the asked
/// actor.
pub(crate) struct WaitForGraph<T> {
    edges: SpinLock<Edges<T>>,
    /// Whether an ask has no answer yet. Called under the lock.
    is_awaited: fn(&T) -> bool,
}

struct Edges<T> {
    next: u64,
    /// By the hash of the asker.
    slab: HashSlab<Edge<T>>,
}

struct Edge<T> {
    number: u64,
    from: usize,
    to: usize,
    target: T,
}

/// Identifies an edge: its index and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeId(u32, u64);

/// Memory for a search.
struct Scratch<T> {
    found: Vec<Found>,
    cycle: Vec<T>,
}

/// An actor that was found, and how.
struct Found {
    actor: usize,
    /// The index of the actor before it, and that of the edge between them; none at the start.
    by: Option<(usize, u32)>,
    /// The number of the edge.
    number: u64,
}

impl<T> Scratch<T> {
    const fn new() -> Self {
        Self { found: Vec::new(), cycle: Vec::new() }
    }

    fn allocate(&mut self) {
        self.found.reserve_exact(SEARCH_MAX);
        self.cycle.reserve_exact(SEARCH_MAX);
    }
}

/// The search needs memory, and has not begun.
struct NeedsScratch;

impl<T: Clone> WaitForGraph<T> {
    pub(crate) fn new(is_awaited: fn(&T) -> bool) -> Self {
        Self { edges: SpinLock::new(Edges { next: 0, slab: HashSlab::new() }), is_awaited }
    }

    /// `from` waits for `to`, which `target` describes. If this closes a cycle, returns the actors
    /// on it, starting with `to` and ending with `from`.
    pub(crate) fn add(&self, from: usize, to: usize, target: T) -> (EdgeId, Option<Vec<T>>) {
        let (mut new, mut scratch) = (Some(target), Scratch::new());
        loop {
            let added = with_room(
                &self.edges,
                |edges| &mut edges.slab,
                |edges| {
                    edges.search(to, from, self.is_awaited, &mut scratch)?;
                    let target = new.take().expect("it is added once");
                    if !scratch.cycle.is_empty() {
                        scratch.cycle.push(target.clone());
                    }
                    Ok(edges.insert(from, to, target))
                },
            );
            match added {
                Ok(id) => {
                    let mut cycle = scratch.cycle;
                    cycle.reverse();
                    return (id, (!cycle.is_empty()).then_some(cycle));
                }
                Err(NeedsScratch) => scratch.allocate(),
            }
        }
    }

    /// At most `max` edges: who waits, who was asked, and the latter's description. It looks at a
    /// bounded number of entries, because it holds the lock; so some may be left out if there are
    /// more.
    pub(crate) fn edges(&self, max: usize) -> Vec<(usize, usize, T)> {
        // The memory comes from outside the lock, as everywhere.
        let mut edges = Vec::with_capacity(max);
        self.edges.with(|all| {
            let open =
                all.slab.first_slots(EDGES_MAX).filter(|edge| (self.is_awaited)(&edge.target));
            edges.extend(open.take(max).map(|edge| (edge.from, edge.to, edge.target.clone())));
        });
        edges
    }

    /// The ask is no longer pending. Returns the description of the asked actor, to be dropped.
    pub(crate) fn remove(&self, id: EdgeId) -> Option<T> {
        let removed = self.edges.with(|edges| {
            let is_it = edges.slab.get(id.0).is_some_and(|edge| edge.number == id.1);
            let edge = if is_it { edges.slab.remove(id.0) } else { None };
            edge.map(|edge| (edge.target, edges.slab.take_unneeded()))
        });
        removed.map(|(target, _)| target)
    }
}

impl<T: Clone> Edges<T> {
    fn insert(&mut self, from: usize, to: usize, target: T) -> EdgeId {
        let number = self.next;
        self.next += 1;
        let edge = Edge { number, from, to, target };
        EdgeId(self.slab.insert(hash_of(from as u64), edge), number)
    }

    /// The edges from an actor, each with its index, in no particular order.
    fn from(&self, actor: usize) -> impl Iterator<Item = (u32, &Edge<T>)> {
        let all = self.slab.with_hash(hash_of(actor as u64));
        all.filter(move |(_, edge)| edge.from == actor)
    }

    /// Finds the actors on a path from `start`, which is left out, to `end`, which comes first.
    fn search(
        &self,
        start: usize,
        end: usize,
        is_awaited: fn(&T) -> bool,
        scratch: &mut Scratch<T>,
    ) -> Result<(), NeedsScratch> {
        if self.from(start).next().is_none() {
            return Ok(());
        }
        let found = &mut scratch.found;
        if found.capacity() < SEARCH_MAX {
            return Err(NeedsScratch);
        }
        found.clear();
        found.push(Found { actor: start, by: None, number: 0 });
        let (mut at, mut n_edges) = (0, 0);
        while let Some(&Found { actor, .. }) = found.get(at) {
            let first = found.len();
            for (index, edge) in self.from(actor) {
                n_edges += 1;
                if n_edges > EDGES_MAX {
                    return Ok(());
                }
                let is_known = found.iter().any(|known| known.actor == edge.to);
                if is_known || !is_awaited(&edge.target) {
                    continue;
                }
                if found.len() >= SEARCH_MAX {
                    return Ok(());
                }
                let by = Some((at, index));
                found.push(Found { actor: edge.to, by, number: edge.number });
                if edge.to == end {
                    self.trace(scratch);
                    return Ok(());
                }
            }
            // The oldest edges first: the order of a bucket depends on addresses.
            found[first..].sort_unstable_by_key(|found| found.number);
            at += 1;
        }
        Ok(())
    }

    /// The path to the actor that was found last, in reverse.
    fn trace(&self, scratch: &mut Scratch<T>) {
        let mut last = scratch.found.last();
        while let Some((before, edge)) = last.and_then(|found| found.by) {
            scratch.cycle.extend(self.slab.get(edge).map(|edge| edge.target.clone()));
            last = scratch.found.get(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> WaitForGraph<&'static str> {
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
        let far = SEARCH_MAX;
        for n in 0..far - 1 {
            assert_eq!(graph.add(n, n + 1, n + 1).1, None);
        }
        let (id, cycle) = graph.add(far - 1, 0, 0);
        assert_eq!(cycle.unwrap().len(), SEARCH_MAX);
        graph.remove(id);
        graph.add(far - 1, far, far);
        assert_eq!(graph.add(far, 0, 0).1, None, "it is too far away");
    }

    #[test]
    fn a_look_visits_the_oldest_edges_of_an_actor_first() {
        // By both ways there are as many; the keys of the targets differ.
        for (first, second) in [(2, 3), (3, 2), (700, 9), (9, 700)] {
            let graph = WaitForGraph::new(|_: &usize| true);
            for to in [first, second] {
                assert_eq!(graph.add(1, to, to).1, None);
                assert_eq!(graph.add(to, 50, 50).1, None);
            }
            assert_eq!(graph.add(50, 1, 1).1.unwrap(), [1, first, 50]);
        }
    }
}
