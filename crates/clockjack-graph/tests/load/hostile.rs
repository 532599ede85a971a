//! Hostile input: the loader finishes quickly and reports what is wrong.

use clockjack_graph::describe::{FileLimits, GraphFile};
use proptest::prelude::*;

use super::texts::{EVERYTHING, MINIMAL};

/// Loads arbitrary bytes: the entry point of the fuzzer.
fn load(bytes: &[u8]) {
    let limits = FileLimits { diagnostics: 50, ..FileLimits::DEFAULT };
    if let Err(reported) = GraphFile::parse_bytes("bytes", bytes, &limits) {
        assert!(reported.n_errors() > 0);
        let text = &reported.source.as_ref().expect("there is a text").text;
        for one in &reported.list {
            let (start, end) = (one.span.start as usize, one.span.end as usize);
            assert!(text.get(start..end).is_some(), "{one:#?}");
        }
    }
}

#[test]
fn long_texts_of_one_piece_are_told() {
    const PIECES: &[&str] = &[
        "[",
        "{",
        "- ",
        "? ",
        ": ",
        "a: ",
        "a",
        " ",
        "\n",
        "\t",
        "#",
        "#\n",
        "\"",
        "'",
        "&a ",
        "*a ",
        "! ",
        "|\n ",
        ",",
        "[a,",
        "---\n",
        "...\n",
        "%",
        "a:\n",
        "-\n",
        "a: b\n",
        "\0",
        "\u{feff}",
        "é",
        "a b\n",
        ">",
        "\r",
        "a: b\r",
        "\"\\n\" ",
        "[*a,",
        "!<a> ",
        "@",
        "{a: b}, ",
        "? a\n: b\n",
        "- &a x\n",
        "  \n ",
        " a:\n  b:\n",
        "{{",
        "}}",
        "<<: *a\n",
        "\\",
        "\u{85}",
    ];
    // Long enough to show superlinear growth, short enough for a slow build.
    const BYTES: usize = 1 << 15;
    for piece in PIECES {
        for head in ["", "[", "\"", "a: |\n  ", "schema_version: 1\ncomponents:\n", MINIMAL] {
            load(format!("{head}{}", piece.repeat(BYTES / piece.len())).as_bytes());
        }
    }
}

#[test]
fn hostile_lists_and_templates_are_told() {
    let many = |n: usize, piece: &str| piece.repeat(n);
    let head = "schema_version: 1\ngraph: {name: g}\nlanes: {main: {type: event_loop}}\n";
    for text in [
        format!("{head}components: [{}]\nedges: []\n", many(20_000, "{},")),
        format!("{head}components: []\nedges: [{}]\n", many(20_000, "1,")),
        format!("{head}components: [{{id: a, depends_on: [{}]}}]\n", many(20_000, "a,")),
        format!("{head}components: [{{{}}}]\n", many(20_000, "id: a,")),
        format!("{head}components: [{{config: {{{}}}}}]\n", many(20_000, "k: a,")),
        format!("{head}components: [{{config: {{k: [{}]}}}}]\n", many(20_000, "a,")),
        format!(
            "{head}components: []\nedges: []\ntemplates:\n  - {{id: t, parameters: [p], \
             components: \
             [{{id: a, type: '{}', execution: {{lane: main}}}}], edges: []}}\n\
             template_instances:\n{}",
            many(1000, "{{p}}"),
            (0..2000)
                .map(|n| format!(
                    "  - {{id: i{n}, template: t, parameters: {{p: {}}}}}\n",
                    many(9, "x")
                ))
                .collect::<String>(),
        ),
    ] {
        load(text.as_bytes());
        GraphFile::parse("text", &text).expect_err("it is wrong");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_told(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        load(&bytes);
    }

    #[test]
    fn any_pieces_of_yaml_are_read_or_told(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a", "id", ": ", ":", "- ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ", ", "\"",
                "'", "|", ">", "&a ", "*a", "!", "?", "#", "1", "-1", "1.5", "true", "~", "{{p}}",
                "components", "edges", "lanes", "graph", "templates", "---\n",
                "schema_version: 1\n",
                "é", "\t", "\\", "%",
            ]),
            0..60,
        )
    ) {
        load(pieces.concat().as_bytes());
    }

    #[test]
    fn a_text_with_a_piece_cut_out_or_changed_is_read_or_told(
        start in 0..EVERYTHING.len(),
        len in 0usize..40,
        instead in "[ -~\n]{0,6}",
    ) {
        let mut bytes = EVERYTHING.as_bytes().to_vec();
        let end = (start + len).min(bytes.len());
        bytes.splice(start..end, instead.bytes());
        load(&bytes);
    }
}
