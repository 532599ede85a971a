//! Compares the fast parser with the general one.

use proptest::prelude::*;

use super::*;

fn both(text: &str) -> (Option<Tree<'_>>, Option<Tree<'_>>) {
    let limits = FileLimits::DEFAULT;
    let mut diagnostics = Vec::new();
    let fast = read_plain(text, &limits, &mut diagnostics);
    assert_eq!(diagnostics, Vec::new(), "the fast parser reports nothing");
    let slow = read_events(text, &limits, &mut diagnostics);
    (fast, if diagnostics.is_empty() { slow } else { None })
}

/// If the fast parser returns a tree, it equals that of the general parser.
fn agree(text: &str) -> bool {
    let (fast, slow) = both(text);
    if fast.is_some() {
        assert_eq!(fast, slow, "{text}");
    }
    fast.is_some()
}

#[test]
fn plain_texts_are_read_the_fast_way() {
    for text in [
        "a: b\n",
        "a: b",
        "a:\n  b: c\n  d: e\nf: g\n",
        "a:\n- b\n- c: d\n  e: f\ng: h\n",
        "a:\n  - b\n  -   c: d\n      e: f\n  - - g\n    - h\n",
        "- a: b\n  c:\n  - d\n  - e\n- f\n",
        "# x\n\na: b # c\n\n  # d\nc: 'd # e'\n",
        "a: {b: c, d: [e, f, {}], g: []}\nh: [-1, .5, +2]\n",
        "a: left arm\n\"b c\": 'd e'\n",
        "a:b: c:d\n",
        "a:\n    b: c\nd: e\n",
        "-\n  a: b\n",
    ] {
        assert!(agree(text), "{text}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_the_parser() {
    for text in [
        "",
        "a",
        "a: b\n c\n",
        "a: |\n  b\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !t b\n",
        "a:\n",
        "- \n",
        "a: \"b\\n\"\n",
        "a: 'it''s'\n",
        "a: [b,\n  c]\n",
        "a: {b}\n",
        "a: [b: c]\n",
        "a: [b,]\n",
        "a:\tb\n",
        "a: b\r\n",
        "---\na: b\n",
        "a: b\n...\n",
        "a: é\n",
        "? a\n: b\n",
        "a: b: c\n",
        "a: - b\n",
        "a: b\n  c: d\n",
        " a: b\nc: d\n",
        "a: ~\n",
        "%a: b\n",
        "a: b#c\n",
        "{a: b}\n",
    ] {
        assert_eq!(both(text).0, None, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn both_ways_agree(
        pieces in prop::collection::vec(
            prop::sample::select(Vec::from([
                "a", "b c", "d:e", "-1", ".5", "x", ": ", ":", ": ", "- ", "-", "\n", "\n", "\n  ",
                "\n    ", " ", "  ", "[", "]", "{", "}", ", ", ",", "\"q\"", "'r s'", "\"", "'",
                " # c", "#", "k: v\n", "  k: v\n", "- k: v\n", "  - v\n", "k:\n", "[a, b]",
                "{a: b}", ".", "/", "+", "_", "~", "|", "!", "&", "?",
            ])),
            0..24,
        )
    ) {
        agree(&pieces.concat());
    }

    #[test]
    fn both_ways_agree_on_lines(
        lines in prop::collection::vec((0usize..7, 0usize..12, any::<bool>()), 1..14)
    ) {
        let mut text = String::new();
        for (column, kind, has_dash) in lines {
            let rest = [
                "k:", "k: v", "v", "'q': \"r\"", "k: [a, {b: c}]", "k: {a: b} # c", "- k: v", "-",
                "", "# c", "k : v", "k: v w",
            ][kind];
            let dash = if has_dash { "- " } else { "" };
            text += &format!("{}{dash}{rest}\n", " ".repeat(column));
        }
        agree(&text);
    }
}
