//! Ranks: the row of each item. Immediate links go down, so that the ranks follow the compiled
//! order; other links go down unless that closes a cycle. The ranks are those of the longest path,
//! with a bounded number of items per rank (Coffman and Graham, "Optimal scheduling for
//! two-processor systems", 1972, bound the width of layers in the same way). Items that only
//! produce then move down to their consumers, which shortens links.

use std::collections::BTreeSet;

use super::level::{Item, Link};

/// The rank of each item. Links that would close a cycle do not count; they go up.
pub(super) fn ranks(items: &[Item], links: &[Link], row_items_max: usize) -> Vec<usize> {
    let arcs = acyclic(items, links);
    let order = topological(items, &arcs);
    let mut ranks = vec![0; items.len()];
    let mut load = Load { counts: Vec::new(), max: row_items_max.max(1) };
    for item in &order {
        let lowest = arcs.incoming[*item].iter().map(|from| ranks[*from] + 1).max().unwrap_or(0);
        let column = items[*item].column;
        let rank = (lowest..).find(|rank| load.has_room(*rank, column));
        ranks[*item] = rank.expect("a rank beyond all others has room");
        load.add(ranks[*item], column);
    }
    for item in order.iter().rev() {
        let (incoming, outgoing) = (&arcs.incoming[*item], &arcs.outgoing[*item]);
        let Some(next) = outgoing.iter().map(|to| ranks[*to]).min() else { continue };
        if incoming.len() >= outgoing.len() {
            continue;
        }
        let column = items[*item].column;
        let better = (ranks[*item] + 1..next).rev().find(|rank| load.has_room(*rank, column));
        if let Some(rank) = better {
            load.remove(ranks[*item], column);
            load.add(rank, column);
            ranks[*item] = rank;
        }
    }
    without_gaps(ranks)
}

/// Renumbers the ranks, because a rank may have lost all of its items.
fn without_gaps(ranks: Vec<usize>) -> Vec<usize> {
    let used: BTreeSet<usize> = ranks.iter().copied().collect();
    let used: Vec<usize> = used.into_iter().collect();
    ranks.into_iter().map(|rank| used.partition_point(|one| *one < rank)).collect()
}

/// The number of items in each rank and column.
#[derive(Debug)]
struct Load {
    counts: Vec<Vec<usize>>,
    max: usize,
}

impl Load {
    fn count(&mut self, rank: usize, column: usize) -> &mut usize {
        if self.counts.len() <= rank {
            self.counts.resize(rank + 1, Vec::new());
        }
        let counts = &mut self.counts[rank];
        if counts.len() <= column {
            counts.resize(column + 1, 0);
        }
        &mut counts[column]
    }

    fn has_room(&mut self, rank: usize, column: usize) -> bool {
        *self.count(rank, column) < self.max
    }

    fn add(&mut self, rank: usize, column: usize) {
        *self.count(rank, column) += 1;
    }

    fn remove(&mut self, rank: usize, column: usize) {
        *self.count(rank, column) -= 1;
    }
}

#[derive(Debug)]
struct Arcs {
    incoming: Vec<Vec<usize>>,
    outgoing: Vec<Vec<usize>>,
}

impl Arcs {
    fn add(&mut self, from: usize, to: usize) {
        self.outgoing[from].push(to);
        self.incoming[to].push(from);
    }

    /// Whether there is a path.
    fn reaches(&self, from: usize, to: usize, seen: &mut [bool]) -> bool {
        seen.fill(false);
        let mut open = vec![from];
        while let Some(item) = open.pop() {
            if item == to {
                return true;
            }
            if !core::mem::replace(&mut seen[item], true) {
                open.extend(self.outgoing[item].iter().copied());
            }
        }
        false
    }
}

/// The links that go down: first the immediate ones in compiled order, which form no cycle, then
/// each other link that closes none.
fn acyclic(items: &[Item], links: &[Link]) -> Arcs {
    let mut arcs =
        Arcs { incoming: vec![Vec::new(); items.len()], outgoing: vec![Vec::new(); items.len()] };
    let mut known = BTreeSet::new();
    let mut later = [Vec::new(), Vec::new()];
    for link in links {
        let (Some(from), Some(to)) = (link.from, link.to) else { continue };
        if from == to || known.contains(&(from, to)) {
            continue;
        }
        if link.is_immediate && items[from].order < items[to].order {
            known.insert((from, to));
            arcs.add(from, to);
        } else {
            later[usize::from(link.is_immediate)].push((from, to));
        }
    }
    let mut seen = vec![false; items.len()];
    for (from, to) in later.into_iter().flatten() {
        if known.insert((from, to)) && !arcs.reaches(to, from, &mut seen) {
            arcs.add(from, to);
        }
    }
    arcs
}

/// Kahn's algorithm; of several possible items, the first in compiled order is next.
fn topological(items: &[Item], arcs: &Arcs) -> Vec<usize> {
    let mut n_missing: Vec<usize> = arcs.incoming.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<(usize, usize)> = (0..items.len())
        .filter(|item| n_missing[*item] == 0)
        .map(|item| (items[item].order, item))
        .collect();
    let mut order = Vec::with_capacity(items.len());
    while let Some((_, item)) = ready.pop_first() {
        order.push(item);
        for to in &arcs.outgoing[item] {
            n_missing[*to] -= 1;
            if n_missing[*to] == 0 {
                ready.insert((items[*to].order, *to));
            }
        }
    }
    assert_eq!(order.len(), items.len(), "the arcs form no cycle");
    order
}
