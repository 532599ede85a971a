//! Every limit: a text just within it is read, and one just beyond it is reported.

use clockjack_graph::{
    describe::{FileLimits, GraphFile},
    diagnostic::Code,
};

use super::texts::MINIMAL;

/// The text is valid with the limits `enough`, and has one error with the limits `less`.
#[track_caller]
fn check(text: &str, enough: FileLimits, less: FileLimits, token: &str) {
    if let Err(reported) = GraphFile::parse_with("text", text, &enough) {
        panic!("{reported:#?}");
    }
    let reported = GraphFile::parse_with("text", text, &less).expect_err("it is beyond the limit");
    assert_eq!(reported.list.len(), 1, "{reported:#?}");
    let one = &reported.list[0];
    let source = &reported.source.as_ref().expect("it has a text").text;
    let slice = &source[one.span.start as usize..one.span.end as usize];
    assert_eq!((one.code, slice), (Code::LimitExceeded, token), "{}", one.message);
}

const D: FileLimits = FileLimits::DEFAULT;

#[test]
fn the_defaults_are_those_of_the_schema() {
    assert_eq!(D.text_bytes, 4 << 20);
    assert_eq!((D.lanes, D.components, D.edges, D.loops), (256, 4096, 8192, 1024));
    assert_eq!((D.groups, D.identifier_bytes, D.config_depth), (4096, 128, 8));
    assert_eq!((D.config_value_bytes, D.string_bytes), (4096, 4096));
    assert_eq!(FileLimits::default(), D);
}

#[test]
fn a_text_with_as_many_components_and_edges_as_allowed_is_not_too_long() {
    let mut text = String::from("schema_version: 1\ngraph: {name: large}\n");
    text.push_str("lanes: {main: {type: event_loop}}\ncomponents:\n");
    let execution = "execution: {lane: main, priority: high, budget_ms: 100}";
    for n in 0..D.components {
        let trigger = "trigger_policy: {type: any_input, inputs: [in]}";
        let sources = "event_sources: [{type: message, inputs: [in]}]";
        let line = format!("  - {{id: component_{n}, type: identity, {execution},");
        text.push_str(&format!("{line}\n     {sources}, {trigger}}}\n"));
    }
    text.push_str("edges:\n");
    for n in 0..D.edges {
        let (from, to) = (n % D.components, (n + 1) % D.components);
        let ends = format!("from: component_{from}.out, to: component_{to}.in");
        let policy = "policy: {mode: queue, capacity: 4, overflow: drop_oldest}";
        text.push_str(&format!("  - {{id: edge_{n}, kind: delay, {ends}, {policy}}}\n"));
    }
    assert!(text.len() > 1 << 20, "{}", text.len());
    GraphFile::parse("large", &text).expect("it is within the limits");
}

#[test]
fn a_text_is_not_longer() {
    let n = MINIMAL.len();
    check(MINIMAL, FileLimits { text_bytes: n, ..D }, FileLimits { text_bytes: n - 1, ..D }, "n");
}

#[test]
fn a_file_is_read_no_further() {
    let path = std::env::temp_dir().join(format!("clockjack-limit-{}.yaml", std::process::id()));
    std::fs::write(&path, MINIMAL).expect("it can be written");
    let read = |text_bytes| GraphFile::read_with(&path, &FileLimits { text_bytes, ..D });
    let (enough, less) = (read(MINIMAL.len()), read(10));
    std::fs::remove_file(&path).expect("it was just written");
    enough.expect("it is right");
    let reported = less.expect_err("it is too long").to_string();
    assert!(reported.contains("longer than 10 bytes"), "{reported}");
}

#[test]
fn there_are_not_more_items() {
    let two = MINIMAL.replace("  main:\n", "  more: {type: event_loop}\n  main:\n");
    check(&two, FileLimits { lanes: 2, ..D }, FileLimits { lanes: 1, ..D }, "main");
    let b = "id: b\n    type: print\n    execution:\n      lane: main";
    check(MINIMAL, FileLimits { components: 2, ..D }, FileLimits { components: 1, ..D }, b);
    let e = "id: e\n    kind: immediate\n    from: a.out\n    to: b.in";
    check(MINIMAL, FileLimits { edges: 1, ..D }, FileLimits { edges: 0, ..D }, e);
    let l = "{id: l, components: [a], loop_policy: {type: transaction}}";
    let looped = format!("{MINIMAL}composite_loops: [{l}]\n");
    check(&looped, FileLimits { loops: 1, ..D }, FileLimits { loops: 0, ..D }, l);
    let s = "{id: s, components: [{id: a, type: t, execution: {lane: main}}], edges: []}";
    let grouped = format!("{MINIMAL}subgraphs: [{s}]\n");
    check(&grouped, FileLimits { groups: 1, ..D }, FileLimits { groups: 0, ..D }, s);
}

#[test]
fn items_of_subgraphs_count() {
    let s = "{id: s, components: [{id: a, type: t, execution: {lane: main}}], edges: []}";
    let grouped = format!("{MINIMAL}subgraphs: [{s}]\n");
    check(&grouped, FileLimits { components: 3, ..D }, FileLimits { components: 2, ..D }, s);
}

#[test]
fn identifiers_and_texts_are_not_longer() {
    let long = "x".repeat(20);
    let named = MINIMAL.replace("id: e\n", &format!("id: {long}\n"));
    let id = |identifier_bytes| FileLimits { identifier_bytes, ..D };
    check(&named, id(20), id(19), &long);
    let s = "{id: spaces, components: [{id: abcd, type: t, execution: {lane: main}}], edges: []}";
    let grouped = format!("{MINIMAL}subgraphs: [{s}]\n");
    // With its namespace it is `spaces.abcd`.
    check(&grouped, id(11), id(10), "abcd");
    let string = |string_bytes| FileLimits { string_bytes, ..D };
    let text = MINIMAL.replace(
        "    type: count",
        &format!("    type: count\n    boundary: {{descriptor: {long}}}"),
    );
    check(&text, string(20), string(19), &long);
    let key =
        MINIMAL.replace("    type: count", &format!("    type: count\n    config: {{{long}: 1}}"));
    check(&key, id(20), id(19), &long);
}

#[test]
fn settings_are_not_deeper_or_longer() {
    let config = |value: &str| {
        MINIMAL.replace("    type: count", &format!("    type: count\n    config: {{k: {value}}}"))
    };
    let depth = |config_depth| FileLimits { config_depth, ..D };
    check(&config("[[[1]]]"), depth(4), depth(3), "[1]");
    let bytes = |config_value_bytes| FileLimits { config_value_bytes, ..D };
    check(&config("abcdefgh"), bytes(8), bytes(7), "abcdefgh");
    check(&config("[1, {a: b}]"), bytes(13), bytes(12), "[1, {a: b}]");
}

#[test]
fn lists_and_maps_are_not_deeper_anywhere() {
    let nesting = |nesting| FileLimits { nesting, ..D };
    check(MINIMAL, nesting(4), nesting(3), "l");
    let deep = format!("a: {}", "[".repeat(100));
    let reported = GraphFile::parse("deep", &deep).expect_err("it is too deep");
    assert_eq!(reported.list[0].code, Code::LimitExceeded);
    let mixed = format!("a:\n{}{}{}", "- ".repeat(40), "[".repeat(40), "]".repeat(40));
    let reported = GraphFile::parse("mixed", &mixed).expect_err("it is too deep");
    assert_eq!(reported.list[0].code, Code::LimitExceeded);
}

#[test]
fn of_very_many_faults_the_number_is_told() {
    let text = format!("{MINIMAL}{}", (0..50).map(|n| format!("x{n}: 1\n")).collect::<String>());
    let reported = GraphFile::parse_with("text", &text, &FileLimits { diagnostics: 10, ..D });
    let list = reported.expect_err("it is wrong").list;
    assert_eq!(list.len(), 11);
    assert_eq!(list[9].code, Code::UnknownField);
    assert_eq!(list[10].code, Code::LimitExceeded);
    assert_eq!(list[10].message, "40 more errors are not shown");
}
