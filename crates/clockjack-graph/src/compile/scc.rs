//! Strongly connected components: Tarjan, "Depth-first search and linear graph algorithms", 1972.
//! Iterative, so that a long chain cannot overflow the stack.

/// The successors of each node, in compressed sparse row form.
#[derive(Debug)]
pub(super) struct Arcs {
    first: Vec<usize>,
    targets: Vec<usize>,
}

impl Arcs {
    /// The arcs between `n_nodes` nodes. The successors of a node keep the given order.
    pub(super) fn new(n_nodes: usize, arcs: &[(usize, usize)]) -> Self {
        let mut first = vec![0; n_nodes + 1];
        for (from, _) in arcs {
            first[from + 1] += 1;
        }
        for node in 0..n_nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut targets = vec![0; arcs.len()];
        for (from, to) in arcs {
            targets[next[*from]] = *to;
            next[*from] += 1;
        }
        Self { first, targets }
    }

    /// The successors of a node.
    pub(super) fn of(&self, node: usize) -> &[usize] {
        &self.targets[self.first[node]..self.first[node + 1]]
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.first.len() - 1
    }
}

/// The number of a node that was not visited yet.
const UNSEEN: usize = usize::MAX;

/// The strongly connected components: every node is in exactly one, and successors come first. The
/// members of a component are sorted.
pub(super) fn strongly_connected(arcs: &Arcs) -> Vec<Vec<usize>> {
    let n_nodes = arcs.n_nodes();
    let mut parts = Vec::new();
    let mut number = vec![UNSEEN; n_nodes];
    let mut low = vec![0; n_nodes];
    let mut is_open = vec![false; n_nodes];
    let mut open = Vec::new();
    // The path of the depth-first search: each node with the number of arcs that were followed.
    let mut path: Vec<(usize, usize)> = Vec::new();
    let mut n_seen = 0;
    for root in 0..n_nodes {
        if number[root] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            if *followed == 0 && number[node] == UNSEEN {
                (number[node], low[node]) = (n_seen, n_seen);
                n_seen += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(&next) = arcs.of(node).get(*followed) {
                *followed += 1;
                if number[next] == UNSEEN {
                    path.push((next, 0));
                } else if is_open[next] {
                    low[node] = low[node].min(number[next]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[node]);
            }
            if low[node] == number[node] {
                let start = open.iter().rposition(|one| *one == node).expect("it is open");
                let mut part = open.split_off(start);
                for member in &part {
                    is_open[*member] = false;
                }
                part.sort_unstable();
                parts.push(part);
            }
        }
    }
    parts
}

/// Whether the SCC is a cycle: several members, or one member with an arc to itself.
pub(super) fn is_cyclic(part: &[usize], arcs: &Arcs) -> bool {
    part.len() > 1 || arcs.of(part[0]).contains(&part[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_and_a_long_ring_are_found_without_recursion() {
        let n = 100_000;
        let mut arcs: Vec<_> = (1..n).map(|one| (one - 1, one)).collect();
        assert_eq!(strongly_connected(&Arcs::new(n, &arcs)).len(), n);
        arcs.push((n - 1, 0));
        assert_eq!(strongly_connected(&Arcs::new(n, &arcs)).len(), 1);
    }

    #[test]
    fn successors_come_first_and_a_self_arc_goes_round() {
        let arcs = Arcs::new(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 3)]);
        let parts = strongly_connected(&arcs);
        assert_eq!(parts, [vec![3], vec![1, 2], vec![0], vec![4]]);
        assert_eq!(
            parts.iter().map(|part| is_cyclic(part, &arcs)).collect::<Vec<_>>(),
            [true, true, false, false]
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            failure_persistence: None,
            ..proptest::test_runner::Config::default()
        })]

        #[test]
        fn two_nodes_are_in_one_part_if_each_reaches_the_other(
            arcs in proptest::collection::vec((0usize..9, 0usize..9), 0..20)
        ) {
            let mut reach = [[false; 9]; 9];
            for (node, row) in reach.iter_mut().enumerate() {
                row[node] = true;
            }
            for (from, to) in &arcs {
                reach[*from][*to] = true;
            }
            for via in 0..9 {
                for from in 0..9 {
                    for to in 0..9 {
                        reach[from][to] |= reach[from][via] && reach[via][to];
                    }
                }
            }
            let parts = strongly_connected(&Arcs::new(9, &arcs));
            for (a, b) in (0..81).map(|both| (both / 9, both % 9)) {
                let is_together = parts.iter().any(|part| part.contains(&a) && part.contains(&b));
                proptest::prop_assert_eq!(is_together, reach[a][b] && reach[b][a]);
            }
        }
    }
}
