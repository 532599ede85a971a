//! The graphs of the suite, the same for every subject: the nodes, the edges and the expected sum,
//! independent of how they are run.
//!
//! The nodes are in topological order, so a subject may simply call them one after the other.

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) nodes: Vec<Node>,
}

/// A node, and the nodes whose values it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<usize>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Returns the number of the epoch, from one.
    Source,
    /// Returns its input, mixed this many times.
    Mix(u32),
    /// Adds all its inputs to a sum. The result is the sum of all sinks.
    Sink,
}

/// The maximum number of inputs of a sink.
pub(crate) const INPUTS_MAX: usize = 16;

/// One iteration of arithmetic: too short to measure, and too irregular for the compiler to
/// predict.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491)
}

/// This many iterations, each of which depends on the previous one.
#[inline]
pub(crate) fn mix_times(mut x: u64, n_turns: u32) -> u64 {
    for _ in 0..n_turns {
        x = mix(x);
    }
    x
}

impl Shape {
    /// A head, and eight segments of a body and a foot: 17 nodes. Each body forwards its input to
    /// its foot and to the next body.
    pub(crate) fn caterpillar() -> Self {
        let mut shape = Self { nodes: Vec::new() };
        let mut last = shape.add(Kind::Source, &[]);
        for _ in 0..8 {
            last = shape.add(Kind::Mix(1), &[last]);
            shape.add(Kind::Sink, &[last]);
        }
        shape
    }

    /// 17 nodes in a row.
    pub(crate) fn chain() -> Self {
        let mut shape = Self { nodes: Vec::new() };
        let mut last = shape.add(Kind::Source, &[]);
        for _ in 0..15 {
            last = shape.add(Kind::Mix(1), &[last]);
        }
        shape.add(Kind::Sink, &[last]);
        shape
    }

    /// One node with 16 readers.
    pub(crate) fn fan_out() -> Self {
        let mut shape = Self { nodes: Vec::new() };
        let source = shape.add(Kind::Source, &[]);
        for _ in 0..16 {
            shape.add(Kind::Sink, &[source]);
        }
        shape
    }

    /// One node that reads 16 others, in one call.
    pub(crate) fn fan_in() -> Self {
        let mut shape = Self { nodes: Vec::new() };
        let sources: Vec<usize> = (0..INPUTS_MAX).map(|_| shape.add(Kind::Source, &[])).collect();
        shape.add(Kind::Sink, &sources);
        shape
    }

    /// A source, eight branches with this many iterations each, and a sink that reads all of them.
    pub(crate) fn branches(n_turns: u32) -> Self {
        let mut shape = Self { nodes: Vec::new() };
        let source = shape.add(Kind::Source, &[]);
        let works: Vec<usize> = (0..8).map(|_| shape.add(Kind::Mix(n_turns), &[source])).collect();
        shape.add(Kind::Sink, &works);
        shape
    }

    fn add(&mut self, kind: Kind, inputs: &[usize]) -> usize {
        self.nodes.push(Node { kind, inputs: inputs.to_vec() });
        self.nodes.len() - 1
    }

    /// The sum of all sinks after this many epochs.
    pub(crate) fn expected(&self, n_epochs: u64) -> u64 {
        let mut values = vec![0_u64; self.nodes.len()];
        let mut total = 0_u64;
        for epoch in 1..=n_epochs {
            for (index, node) in self.nodes.iter().enumerate() {
                match node.kind {
                    Kind::Source => values[index] = epoch,
                    Kind::Mix(n_turns) => {
                        values[index] = mix_times(values[node.inputs[0]], n_turns);
                    }
                    Kind::Sink => {
                        let read = node.inputs.iter().map(|&input| values[input]);
                        total = read.fold(total, u64::wrapping_add);
                    }
                }
            }
        }
        total
    }

    /// The graph as text: for each node its kind, then a colon and the numbers of the nodes it
    /// reads.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |node: &Node| {
            let inputs: Vec<String> = node.inputs.iter().map(usize::to_string).collect();
            let kind = match node.kind {
                Kind::Source => "source".to_owned(),
                Kind::Mix(n_turns) => format!("mix{n_turns}"),
                Kind::Sink => "sink".to_owned(),
            };
            format!("{kind}:{}", inputs.join(","))
        };
        self.nodes.iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Shape, mix, mix_times};

    #[test]
    fn each_node_comes_behind_those_that_it_reads() {
        for shape in [
            Shape::caterpillar(),
            Shape::chain(),
            Shape::fan_out(),
            Shape::fan_in(),
            Shape::branches(3),
        ] {
            for (index, node) in shape.nodes.iter().enumerate() {
                assert!(node.inputs.iter().all(|&input| input < index), "{shape:?}");
                assert_eq!(node.inputs.is_empty(), node.kind == Kind::Source, "{shape:?}");
            }
        }
    }

    #[test]
    fn all_but_the_branches_have_17_nodes() {
        for shape in [Shape::caterpillar(), Shape::chain(), Shape::fan_out(), Shape::fan_in()] {
            assert_eq!(shape.nodes.len(), 17, "{shape:?}");
        }
        assert_eq!(Shape::branches(1).nodes.len(), 10);
    }

    #[test]
    fn what_comes_out_is_what_one_would_write_by_hand() {
        assert_eq!(Shape::fan_out().expected(3), 16 * (1 + 2 + 3));
        assert_eq!(Shape::fan_in().expected(3), 16 * (1 + 2 + 3));
        assert_eq!(Shape::chain().expected(1), mix_times(1, 15));
        let feet = (1..=8).map(|n| mix_times(1, n)).fold(0, u64::wrapping_add);
        assert_eq!(Shape::caterpillar().expected(1), feet);
        let twice = mix(mix(1)).wrapping_add(mix(mix(2))).wrapping_mul(8);
        assert_eq!(Shape::branches(2).expected(2), twice);
    }

    #[test]
    fn a_shape_can_be_written_as_text() {
        let words = Shape::branches(7).words();
        assert_eq!(words[..2], ["source:", "mix7:0"]);
        assert_eq!(words[9], "sink:1,2,3,4,5,6,7,8");
    }
}
