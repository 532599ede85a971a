//! Every error that the loader can report, and the part of the text that it points at.

use clockjack_graph::{Diagnostics, GraphFile, diagnostic::Code};

use super::texts::MINIMAL;

/// The errors of the minimal text after a change, as codes and parts of the text.
#[track_caller]
fn check(what: &str, instead: &str, want: &[(Code, &str)]) -> Diagnostics {
    assert!(MINIMAL.contains(what), "{what:?} is not in the text");
    check_text(&MINIMAL.replacen(what, instead, 1), want)
}

#[track_caller]
fn check_text(text: &str, want: &[(Code, &str)]) -> Diagnostics {
    let reported = GraphFile::parse("text", text).expect_err("it is wrong");
    let source = &reported.source.as_ref().expect("it has a text").text;
    let found: Vec<(Code, &str)> = reported
        .list
        .iter()
        .map(|one| (one.code, &source[one.span.start as usize..one.span.end as usize]))
        .collect();
    assert_eq!(found, want, "in\n{text}");
    reported
}

fn help(reported: &Diagnostics) -> &str {
    reported.list[0].help.as_deref().unwrap_or_default()
}

fn fixed(reported: &Diagnostics) -> String {
    let fix = reported.list[0].fix.as_ref().expect("it can be repaired");
    let mut text = reported.source.as_ref().expect("it has a text").text.clone();
    text.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.replacement);
    text
}

#[test]
fn an_unknown_field_is_told_with_the_nearest_name_and_a_repair() {
    let reported = check(
        "    kind: immediate",
        "    knd: immediate",
        &[(Code::MissingField, "id"), (Code::UnknownField, "knd")],
    );
    let unknown = &reported.list[1];
    assert_eq!(unknown.help.as_deref(), Some("did you mean `kind`?"));
    assert_eq!(unknown.fix.as_ref().map(|fix| fix.replacement.as_str()), Some("kind"));
    assert_eq!(unknown.path, "edges.e");
    let reported =
        check("  name: tiny", "  name: tiny\n  colour: red", &[(Code::UnknownField, "colour")]);
    assert_eq!(help(&reported), "the fields here are name, kind, config, clock");
}

#[test]
fn a_repair_never_repeats_a_field_that_is_there() {
    let reported =
        check("    to: b.in", "    to: b.in\n    too: b.in", &[(Code::UnknownField, "too")]);
    assert_eq!(reported.list[0].fix, None);
}

#[test]
fn a_repaired_text_is_right() {
    for (what, wrong, code, token) in [
        ("immediate", "imediate", Code::InvalidValue, "imediate"),
        ("event_loop", "event_lop", Code::UnsupportedLaneType, "event_lop"),
        ("id: a\n", "id: a\n    depends_onn: [b]\n", Code::UnknownField, "depends_onn"),
        (
            "lane: main\n  - id: b",
            "lane: main\n      reentrant: yes\n  - id: b",
            Code::WrongType,
            "yes",
        ),
        (
            "lane: main\n  - id: b",
            "lane: main\n      burst: \"2\"\n  - id: b",
            Code::WrongType,
            "\"2\"",
        ),
        ("name: tiny", "name: 12", Code::WrongType, "12"),
    ] {
        let reported = check(what, wrong, &[(code, token)]);
        let text = fixed(&reported);
        GraphFile::parse("fixed", &text).unwrap_or_else(|reported| panic!("{reported} in\n{text}"));
    }
}

#[test]
fn a_field_that_was_removed_is_told_with_what_to_do() {
    for (field, value, why) in [
        ("owner", "producer", "the last reader frees a payload"),
        ("readers", "multi", "each further reader has an edge of its own"),
    ] {
        let given = format!("to: b.in\n    policy: {{ {field}: {value} }}");
        let reported = check("to: b.in", &given, &[(Code::UnknownField, field)]);
        let help = help(&reported);
        assert!(help.starts_with("the field was removed, because it had no effect: "), "{help}");
        assert!(help.contains(why) && help.ends_with("delete the field"), "{help}");
    }
    // Elsewhere these are unknown names as any other.
    let reported = check(
        "type: event_loop",
        "type: event_loop\n    owner: x",
        &[(Code::UnknownField, "owner")],
    );
    assert!(!help(&reported).contains("removed"), "{}", help(&reported));
}

#[test]
fn a_key_that_stands_twice_is_told_with_the_first() {
    for (what, instead, token) in [
        ("    type: count", "    type: count\n    type: print", "type"),
        ("    type: event_loop", "    type: event_loop\n  main:\n    type: event_loop", "main"),
        ("    type: count", "    type: count\n    config: {k: 1, k: 2}", "k"),
        ("    type: count", "    type: count\n    config: {m: {k: 1, k: 2}}", "k"),
    ] {
        let reported = check(what, instead, &[(Code::DuplicateKey, token)]);
        assert_eq!(reported.list[0].related.len(), 1);
        assert!(reported.list[0].related[0].0.start < reported.list[0].span.start);
    }
}

#[test]
fn values_of_other_types_are_told() {
    use Code::WrongType;
    for (what, instead, want) in [
        ("  name: tiny", "  name: [tiny]", (WrongType, "[tiny]")),
        ("  name: tiny", "  name: {}", (WrongType, "{}")),
        ("  name: tiny", "  name:", (WrongType, "name")),
        ("  name: tiny", "  name: true", (WrongType, "true")),
        ("    type: event_loop", "    type: event_loop\n    hz: fast", (WrongType, "fast")),
        ("    type: event_loop", "    type: event_loop\n    period_ms: 1.5", (WrongType, "1.5")),
        ("    type: event_loop", "    type: event_loop\n    cpu_affinity: 1", (WrongType, "1")),
        ("    type: event_loop", "    type: event_loop\n    cpu_affinity: [x]", (WrongType, "x")),
        ("    type: event_loop", "    type: event_loop\n    overflow:", (WrongType, "overflow")),
        ("    type: count", "    type: count\n    depends_on: b", (WrongType, "b")),
        ("    type: count", "    type: count\n    config: 3", (WrongType, "3")),
        ("    type: count", "    type: count\n    config: {[a]: 3}", (WrongType, "[a]")),
        ("    type: count", "    type: count\n    boundary: input", (WrongType, "input")),
        ("    type: count", "    type: count\n    [x]: y", (WrongType, "[x]")),
        ("graph:\n  name: tiny", "graph: tiny", (WrongType, "tiny")),
    ] {
        check(what, instead, &[want]);
    }
    let reported = check(
        "edges:\n  - id: e\n    kind: immediate\n    from: a.out\n    to: b.in\n",
        "edges:\n",
        &[(WrongType, "edges")],
    );
    assert_eq!(help(&reported), "an empty list is `[]`");
}

#[test]
fn values_out_of_range_are_told() {
    use Code::InvalidValue;
    let lane = |field: &str| format!("    type: event_loop\n    {field}");
    for (field, token) in [
        ("period_ms: -1", "-1"),
        ("hz: -0.5", "-0.5"),
        ("hz: .nan", ".nan"),
        ("hz: .inf", ".inf"),
        ("max_threads: 4294967296", "4294967296"),
        ("period_ms: 99999999999999999999", "99999999999999999999"),
        ("cpu_affinity: [0, -1]", "-1"),
        ("rt_policy: deadline", "deadline"),
    ] {
        check("    type: event_loop", &lane(field), &[(InvalidValue, token)]);
    }
    check("    to: b.in", "    to: b.in\n    policy: {capacity: 0}", &[(InvalidValue, "0")]);
    check("    type: count", "    type: count\n    event_sources: []", &[(InvalidValue, "[]")]);
    check("    type: count", "    type: count\n    depends_on: [b, b]", &[(InvalidValue, "b")]);
    check("lanes:\n  main:\n    type: event_loop", "lanes: {}", &[(InvalidValue, "{}")]);
}

#[test]
fn names_that_do_not_exist_are_told_with_those_that_do() {
    let reported = check("immediate", "sometimes", &[(Code::InvalidValue, "sometimes")]);
    let want = "`sometimes` is not one of immediate, delay, state, async";
    assert_eq!(reported.list[0].message, want);
    assert_eq!(reported.list[0].path, "edges.e.kind");
    check("event_loop", "fibers", &[(Code::UnsupportedLaneType, "fibers")]);
    check(
        "      lane: main\n  - id: b",
        "      lane: main\n      on_error: retry\n  - id: b",
        &[(Code::UnsupportedErrorPolicy, "retry")],
    );
    for name in ["action_goal", "action_cancel"] {
        let instead = format!("    type: count\n    event_sources: [{{type: {name}}}]");
        let reported = check("    type: count", &instead, &[(Code::InvalidEventSource, name)]);
        assert_eq!(help(&reported), "this name is reserved");
    }
}

#[test]
fn identifiers_and_endpoints_that_cannot_be_are_told() {
    use Code::InvalidIdentifier;
    for (what, instead, token) in [
        ("id: a\n", "id: a b\n", "a b"),
        ("id: a\n", "id: \"\"\n", "\"\""),
        ("id: a\n", "id: a..b\n", "a..b"),
        ("id: a\n", "id: .a\n", ".a"),
        ("id: a\n", "id: ä\n", "ä"),
        ("from: a.out", "from: out", "out"),
        ("from: a.out", "from: a.", "a."),
        ("  name: tiny", "  name: ''", "''"),
        ("  main:\n", "  ma in:\n", "ma in"),
    ] {
        check(what, instead, &[(InvalidIdentifier, token)]);
    }
}

#[test]
fn the_version_must_be_the_one_that_is_known() {
    for version in ["2", "0", "1.0", "\"1\"", "one", "[1]"] {
        check(
            "schema_version: 1",
            &format!("schema_version: {version}"),
            &[(Code::UnsupportedSchemaVersion, version)],
        );
    }
    check("schema_version: 1\n", "", &[(Code::MissingField, "graph")]);
}

#[test]
fn all_faults_of_a_text_are_told_at_once_in_its_order() {
    let text = MINIMAL
        .replace("schema_version: 1", "schema_version: 3")
        .replace("name: tiny", "nam: tiny")
        .replace("event_loop", "eventloop")
        .replace("id: b", "id: b b")
        .replace("kind: immediate", "kind: now")
        .replace("to: b.in", "to: b\n    policy: {capacity: many, capacity: 2}");
    let reported = check_text(
        &text,
        &[
            (Code::UnsupportedSchemaVersion, "3"),
            (Code::UnknownField, "nam"),
            (Code::MissingField, "nam"),
            (Code::UnsupportedLaneType, "eventloop"),
            (Code::InvalidIdentifier, "b b"),
            (Code::InvalidValue, "now"),
            (Code::InvalidIdentifier, "b"),
            (Code::WrongType, "many"),
            (Code::DuplicateKey, "capacity"),
        ],
    );
    assert_eq!(reported.list[7].path, "edges.e.policy.capacity");
    assert!(reported.to_string().contains("and 8 more errors"), "{reported}");
}

#[test]
fn what_yaml_has_and_files_have_not_is_refused_where_it_stands() {
    use Code::InvalidYaml;
    for (what, instead, want) in [
        ("  name: tiny", "  name: &n tiny", vec![(InvalidYaml, "&n")]),
        (
            "  name: tiny",
            "  name: &n tiny\n  kind: *n",
            vec![(InvalidYaml, "&n"), (InvalidYaml, "*n")],
        ),
        ("  name: tiny", "  name: *gone", vec![(InvalidYaml, "*gone")]),
        ("  name: tiny", "  name: !!str tiny", vec![(InvalidYaml, "!!str")]),
        ("  name: tiny", "  name: !own tiny", vec![(InvalidYaml, "!own")]),
        ("lanes:\n  main:", "lanes: &l\n  main:", vec![(InvalidYaml, "&l")]),
        ("edges:", "---\nedges:", vec![(InvalidYaml, "---")]),
        ("schema_version: 1", "%YAML 1.2\n---\nschema_version: 1", vec![(InvalidYaml, "%")]),
        ("  name: tiny", "  name: \"tiny", vec![(InvalidYaml, "l")]),
        ("  name: tiny", "\tname: tiny", vec![(InvalidYaml, "n")]),
    ] {
        check(what, instead, &want);
    }
}

#[test]
fn what_is_no_map_is_told() {
    check_text("", &[(Code::WrongType, "")]);
    check_text("hello", &[(Code::WrongType, "hello")]);
    check_text("[1, 2]", &[(Code::WrongType, "[1, 2]")]);
    check_text("# nothing\n", &[(Code::WrongType, "#")]);
}

#[test]
fn bytes_that_are_no_text_are_told_where_they_are() {
    let limits = clockjack_graph::describe::FileLimits::DEFAULT;
    let reported =
        GraphFile::parse_bytes("bytes", b"graph: \xff\xfe", &limits).expect_err("no text");
    assert_eq!(reported.list[0].code, Code::InvalidEncoding);
    assert_eq!((reported.list[0].span.start, reported.list[0].span.end), (7, 10));
    assert_eq!(reported.list[0].message, "byte 7 (0xff) is not valid UTF-8");
}

#[test]
fn an_examination_tells_what_the_compiler_finds_too() {
    let examine = |text: &str| {
        let registry = clockjack_graph::Registry::new();
        let limits = clockjack_graph::describe::FileLimits::DEFAULT;
        let reported = GraphFile::examine("text", text.as_bytes(), &limits, &registry);
        reported.list.into_iter().map(|one| one.code).collect::<Vec<Code>>()
    };
    let wrong = MINIMAL.replace("name: tiny", "name: tiny\n  colour: red");
    let reported = examine(&wrong.replacen("lane: main", "lane: mian", 1));
    assert!(reported.contains(&Code::UnknownField), "{reported:?}");
    assert!(reported.contains(&Code::UnknownLane), "{reported:?}");
    // An edge that could not be read would seem to be missing, so nothing else is reported.
    let reported = examine(&wrong.replacen("lane: main", "lane: mian", 1).replace("a.out", "a"));
    assert_eq!(reported, [Code::UnknownField, Code::InvalidIdentifier]);
}

/// The codes and the help of everything that is wrong with a graph of standard components.
fn examined(text: &str) -> Vec<(Code, Option<String>)> {
    let registry = clockjack_graph::Registry::standard();
    let limits = clockjack_graph::describe::FileLimits::DEFAULT;
    let reported = GraphFile::examine("text", text.as_bytes(), &limits, &registry);
    reported.list.into_iter().map(|one| (one.code, one.help)).collect()
}

#[test]
fn a_component_is_not_proposed_as_its_own_target_or_dependency() {
    let text = |edge: &str, depends_on: &str| {
        format!(
            "schema_version: 1\ngraph: {{name: pair, kind: internal_test}}\n\
             lanes: {{main: {{type: event_loop}}}}\ncomponents:\n\
             \x20 - {{id: filter1, type: identity, execution: {{lane: main}}, \
             depends_on: [{depends_on}]}}\n\
             \x20 - {{id: filler5, type: counter, execution: {{lane: main}}}}\n\
             edges:\n  - {{id: e, kind: delay, {edge}}}\n"
        )
    };
    let hints = |edge: &str, depends_on: &str| {
        let found = examined(&text(edge, depends_on));
        let unknown = found.into_iter().filter(|(code, _)| *code == Code::UnknownComponent);
        unknown.map(|(_, help)| help.unwrap_or_default()).collect::<Vec<String>>()
    };
    // `filter1` is nearer to what is written, but it is the other end.
    let meant = "did you mean `filler5`?";
    assert_eq!(hints("from: filter5.out, to: filter1.in", ""), [meant]);
    assert_eq!(hints("from: filler5.out, to: filter1.in", "filter5"), [meant]);
    assert_eq!(hints("from: filter1.out, to: filter1x.in", ""), [""], "nothing else is near");
    assert_eq!(hints("from: filler5.out, to: filter.in", ""), ["did you mean `filter1`?"]);
}

#[test]
fn a_boundary_that_a_typo_hides_is_not_missing() {
    let text = |boundary: &str| {
        format!(
            "schema_version: 1\ngraph: {{name: pair}}\nlanes: {{main: {{type: event_loop}}}}\n\
             components:\n\
             \x20 - {{id: a, type: input, execution: {{lane: main}}, {boundary}}}\n\
             \x20 - {{id: b, type: output, execution: {{lane: main}}, \
             boundary: {{role: output}}}}\n\
             edges:\n  - {{id: e, kind: immediate, from: a.out, to: b.in}}\n"
        )
    };
    let codes = |boundary: &str| {
        let found = examined(&text(boundary)).into_iter().map(|(code, _)| code);
        found.filter(|code| *code != Code::OptionalInputUnconnected).collect::<Vec<Code>>()
    };
    assert_eq!(codes("boundary: {role: input}"), []);
    assert_eq!(codes("boundary: {rol: input}"), [Code::UnknownField]);
    assert_eq!(codes("boundary: {role: inptu}"), [Code::InvalidValue]);
    assert_eq!(codes("boundary: {role: processing}"), [Code::BoundaryRoleMismatch]);
    let lost = text("boundary: {role: inptu}").replace("type: input", "type: identity");
    let codes: Vec<Code> = examined(&lost).into_iter().map(|(code, _)| code).collect();
    assert!(!codes.contains(&Code::MissingBoundary), "{codes:?}");
    let none = text("boundary: {role: processing}").replace("type: input", "type: identity");
    let codes: Vec<Code> = examined(&none).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes[0], Code::MissingBoundary, "nothing hides it");
}

#[test]
fn what_only_follows_from_another_fault_is_not_told() {
    let codes = |text: &str| {
        let found = examined(text).into_iter().map(|(code, _)| code);
        found.filter(|code| *code != Code::OptionalInputUnconnected).collect::<Vec<Code>>()
    };
    assert_eq!(codes(""), [Code::WrongType]);
    assert_eq!(codes("schema_version: 1\n"), [Code::MissingField; 4], "and nothing is empty");
    let text = |graph: &str, lanes: &str, components: &str| {
        format!(
            "schema_version: 1\ngraph: {graph}\nlanes: {lanes}\ncomponents: {components}\n\
             edges: []\n"
        )
    };
    let (named, lanes) = ("{name: g, kind: internal_test}", "{main: {type: event_loop}}");
    let counter = "[{id: a, type: counter, execution: {lane: main}}]";
    assert_eq!(codes(&text(named, lanes, counter)), []);
    assert_eq!(codes(&text("{kind: internal_test}", lanes, counter)), [Code::MissingField]);
    assert_eq!(codes(&text("5", lanes, counter)), [Code::WrongType]);
    assert_eq!(codes(&text(named, lanes, "5")), [Code::WrongType]);
    // What is empty in the file is told.
    let unnamed = "{name: '', kind: internal_test}";
    assert_eq!(codes(&text(unnamed, lanes, counter)), [Code::InvalidIdentifier]);
    assert_eq!(codes(&text(named, lanes, "[]")), [Code::GraphValidationError]);
    // The second `b` is the mistake, and not that all edges end at the first.
    let one = |id: &str, component_type: &str| {
        format!("{{id: {id}, type: {component_type}, execution: {{lane: main}}}}")
    };
    let twice =
        format!("[{}, {}, {}]", one("a", "counter"), one("b", "identity"), one("b", "identity"));
    let edge = "[{id: e, kind: immediate, from: a.out, to: b.in}]";
    let text = text(named, lanes, &twice).replace("edges: []", &format!("edges: {edge}"));
    assert_eq!(codes(&text), [Code::DuplicateId]);
}
