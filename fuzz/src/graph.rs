//! The reader of graph files.

use clockjack_graph::describe::{FileLimits, GraphFile};

/// Loads a graph file. A refusal has at least one error, and every place that it names is in the
/// text.
pub fn graph(bytes: &[u8]) {
    let limits = FileLimits { diagnostics: 100, ..FileLimits::DEFAULT };
    let Err(told) = GraphFile::parse_bytes("fuzz", bytes, &limits) else { return };
    assert!(told.n_errors() > 0, "refused without a fault");
    let text = &told.source.as_ref().expect("a refused text is kept").text;
    for one in &told.list {
        let span = one.span.start as usize..one.span.end as usize;
        assert!(text.get(span).is_some(), "no place of the text: {one:?}");
    }
}
