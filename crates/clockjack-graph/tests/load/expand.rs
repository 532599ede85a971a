//! Subgraphs, templates and instances: what they expand to, and their errors.

use clockjack_graph::{
    GraphFile,
    describe::{ConfigValue, EdgeSpec, FileLimits, GraphSpec},
    diagnostic::Code,
};

const HEAD: &str = "\
schema_version: 1
graph: {name: g}
lanes: {main: {type: event_loop}}
";

const TEMPLATE: &str = "\
components: []
edges: []
templates:
  - id: pair
    parameters: [gain, who]
    components:
      - id: in
        type: t
        execution: {lane: main}
        config: {gain: '{{gain}}', label: 'a {{who}} of {{ gain }}'}
      - {id: out, type: t, execution: {lane: main}, depends_on: [in]}
    edges:
      - {id: e, kind: delay, from: in.y, to: out.x, policy: {capacity: '{{gain}}'}}
    composite_loops:
      - {id: l, components: [in, out], order: [out, in], loop_policy: {type: fixed_point}}
";

fn parse(rest: &str) -> GraphSpec {
    let text = format!("{HEAD}{rest}");
    GraphFile::parse("text", &text).unwrap_or_else(|reported| panic!("{reported:#?}")).into_spec()
}

#[track_caller]
fn faults(rest: &str, want: &[(Code, &str)]) -> Vec<clockjack_graph::Diagnostic> {
    let text = format!("{HEAD}{rest}");
    let reported = GraphFile::parse("text", &text).expect_err("it is wrong").list;
    let slice = |one: &clockjack_graph::Diagnostic| {
        text[one.span.start as usize..one.span.end as usize].to_owned()
    };
    let found: Vec<(Code, String)> = reported.iter().map(|one| (one.code, slice(one))).collect();
    let want: Vec<(Code, String)> =
        want.iter().map(|(code, text)| (*code, (*text).into())).collect();
    assert_eq!(found, want, "{reported:#?}");
    reported
}

#[test]
fn a_subgraph_becomes_items_with_its_namespace() {
    let graph = parse(
        "components:
  - {id: z, type: t, execution: {lane: main}}
edges:
  - {id: e, kind: delay, from: z.y, to: cell.a.x}
subgraphs:
  - components:
      - {id: a, type: t, execution: {lane: main}}
      - {id: b.c, type: t, execution: {lane: main}, depends_on: [a]}
    edges:
      - {id: e, kind: immediate, from: a.y, to: b.c.x}
    composite_loops:
      - {id: l, components: [a, b.c], loop_policy: {type: fixed_point}}
    id: cell
",
    );
    let ids: Vec<&str> = graph.components.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["z", "cell.a", "cell.b.c"]);
    assert_eq!(graph.components[2].depends_on, ["cell.a"]);
    let edge = &graph.edges[1];
    assert_eq!((edge.id.as_str(), edge.from.as_str()), ("cell.e", "cell.a.y"));
    assert_eq!(EdgeSpec::split(&edge.to), ("cell.b.c", "x"));
    assert_eq!(graph.loops[0].components, ["cell.a", "cell.b.c"]);
    let entry = &graph.hierarchy[0];
    assert_eq!((entry.id.as_str(), entry.template.as_deref()), ("cell", None));
    assert_eq!(entry.components, ["cell.a", "cell.b.c"]);
    assert_eq!(
        (&entry.edges[..], &entry.loops[..]),
        (&["cell.e".into()][..], &["cell.l".into()][..])
    );
}

#[test]
fn an_instance_has_its_values_in_the_place_of_parameters() {
    let rest = format!(
        "{TEMPLATE}template_instances:
  - {{id: left, template: pair, parameters: {{gain: 3, who: arm}}}}
  - {{id: right, template: pair, parameters: {{gain: 4, who: '5'}}}}
"
    );
    let graph = parse(&rest);
    let ids: Vec<&str> = graph.components.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["left.in", "left.out", "right.in", "right.out"]);
    let config = &graph.components[0].config;
    assert_eq!(config.get("gain"), Some(&ConfigValue::Int(3)), "alone it keeps its type");
    assert_eq!(config.get("label"), Some(&ConfigValue::Text("a arm of 3".into())));
    assert_eq!(graph.edges[1].policy.capacity, 4);
    assert_eq!(graph.loops[1].order, ["right.out", "right.in"]);
    assert_eq!(graph.hierarchy[1].template.as_deref(), Some("pair"));
    // Spans are those of the template's text.
    assert_eq!(graph.components[0].spans, graph.components[2].spans);
    assert!(!graph.components[0].spans.get("id").is_none());
    // The same text gives the same graph.
    assert_eq!(graph, parse(&rest));
}

#[test]
fn a_cycle_inside_a_namespace_is_as_visible_as_any() {
    let flat = parse(
        "components:
  - {id: s.a, type: t, execution: {lane: main}}
  - {id: s.b, type: t, execution: {lane: main}}
edges:
  - {id: s.e, kind: immediate, from: s.a.y, to: s.b.x}
  - {id: s.f, kind: immediate, from: s.b.y, to: s.a.x}
",
    );
    let inside = "
      - {id: a, type: t, execution: {lane: main}}
      - {id: b, type: t, execution: {lane: main}}
    edges:
      - {id: e, kind: immediate, from: a.y, to: b.x}
      - {id: f, kind: immediate, from: b.y, to: a.x}
";
    let empty = "components: []\nedges: []\n";
    let as_subgraph = format!("{empty}subgraphs:\n  - id: s\n    components:{inside}");
    let as_instance = format!(
        "{empty}templates:\n  - id: t\n    components:{inside}\
         template_instances: [{{id: s, template: t}}]\n"
    );
    for text in [as_subgraph, as_instance] {
        let graph = parse(&text);
        let ends = |graph: &GraphSpec| -> Vec<_> {
            let edges = graph.edges.iter();
            edges.map(|one| (one.id.clone(), one.kind, one.from.clone(), one.to.clone())).collect()
        };
        assert_eq!(ends(&graph), ends(&flat));
        let ids = |graph: &GraphSpec| -> Vec<_> {
            graph.components.iter().map(|one| one.id.clone()).collect()
        };
        assert_eq!(ids(&graph), ids(&flat));
    }
}

#[test]
fn wrong_instances_are_told() {
    use Code::{DuplicateId, InvalidTemplateParameter, UnknownTemplate, WrongType};
    let check = |instances: &str, want: &[(Code, &str)]| {
        faults(&format!("{TEMPLATE}template_instances: {instances}\n"), want)
    };
    let reported = check(
        "[{id: i, template: pairs, parameters: {gain: 1, who: x}}]",
        &[(UnknownTemplate, "pairs")],
    );
    assert_eq!(reported[0].help.as_deref(), Some("did you mean `pair`?"));
    check(
        "[{id: i, template: pair, parameters: {gain: 1}}]",
        &[(InvalidTemplateParameter, "pair")],
    );
    let reported = check(
        "[{id: i, template: pair, parameters: {gain: 1, who: x, gains: 2}}]",
        &[(InvalidTemplateParameter, "gains")],
    );
    assert_eq!(reported[0].help.as_deref(), Some("did you mean `gain`?"));
    check("[{id: i, template: pair, parameters: {gain: 1, who: [x]}}]", &[(WrongType, "[x]")]);
    check("[{id: i, template: pair, parameters: {gain: 1, who: }}]", &[(WrongType, "who")]);
    let two = "{id: i, template: pair, parameters: {gain: 1, who: x}}";
    check(&format!("[{two}, {two}]"), &[(DuplicateId, "i")]);
}

#[test]
fn a_value_that_does_not_fit_is_told_in_the_template_with_the_instance() {
    let instances = "template_instances:
  - {id: one, template: pair, parameters: {gain: 1, who: x}}
  - {id: bad, template: pair, parameters: {gain: much, who: x}}
";
    let reported = faults(&format!("{TEMPLATE}{instances}"), &[(Code::WrongType, "'{{gain}}'")]);
    assert_eq!(reported[0].path, "templates.pair.edges.e.policy.capacity");
    let (span, note) = &reported[0].related[0];
    let text = format!("{HEAD}{TEMPLATE}{instances}");
    assert_eq!(&text[span.start as usize..span.end as usize], "bad");
    assert_eq!(note, "in this instance of the template");
}

#[test]
fn faults_of_a_template_are_told_once_also_if_nobody_uses_it() {
    let wrong = "components: []
edges: []
templates:
  - id: t
    parameters: [p]
    components:
      - {id: a, type: t, execution: {lane: main}, config: {x: '{{q}}', '{{p}}': 1}, knid: 2}
    edges:
      - {id: e, kind: '{{p}}', from: a.y, to: a.x, policy: {capacity: '{{p}}'}}
";
    let want = [
        (Code::InvalidTemplateParameter, "'{{q}}'"),
        (Code::InvalidTemplateParameter, "'{{p}}'"),
        (Code::UnknownField, "knid"),
    ];
    faults(wrong, &want);
    let used = "template_instances:
  - {id: i, template: t, parameters: {p: delay}}
  - {id: j, template: t, parameters: {p: delay}}
";
    let reported = faults(
        &format!("{wrong}{used}"),
        &[want[0], want[1], want[2], (Code::WrongType, "'{{p}}'")],
    );
    assert_eq!(reported.len(), 4);
}

#[test]
fn parameters_without_quotes_or_end_are_told() {
    let text = |value: &str| {
        format!(
            "components: []
edges: []
templates:
  - id: t
    parameters: [p]
    components:
      - {{id: a, type: t, execution: {{lane: main, budget_ms: {value}}}}}
    edges: []
"
        )
    };
    faults(
        &text("{{p}}"),
        &[(Code::WrongType, "{{p}}"), (Code::InvalidTemplateParameter, "{{p}}")],
    );
    faults(&text("'{{p'"), &[(Code::InvalidTemplateParameter, "'{{p'")]);
}

#[test]
fn braces_outside_of_templates_are_a_text() {
    let graph = parse(
        "components:
  - {id: a, type: t, execution: {lane: main}, config: {x: '{{p}}'}}
edges: []
",
    );
    assert_eq!(graph.components[0].config.get("x"), Some(&ConfigValue::Text("{{p}}".into())));
}

#[test]
fn instances_cannot_come_to_more_than_the_limits() {
    let limits = |limits: FileLimits, rest: &str| {
        let text = format!("{HEAD}{rest}");
        GraphFile::parse_with("text", &text, &limits).expect_err("it is too much").list
    };
    let three = format!(
        "{TEMPLATE}template_instances: [{}]\n",
        ["i", "j", "k"]
            .map(|id| format!("{{id: {id}, template: pair, parameters: {{gain: 1, who: x}}}}"))
            .join(", ")
    );
    for (set, what) in [
        (FileLimits { components: 5, ..FileLimits::DEFAULT }, "6 components"),
        (FileLimits { edges: 2, ..FileLimits::DEFAULT }, "3 edges"),
        (FileLimits { loops: 2, ..FileLimits::DEFAULT }, "3 composite_loops"),
        (FileLimits { expanded_bytes: 1000, ..FileLimits::DEFAULT }, "more than 1000 bytes"),
        (FileLimits { groups: 2, ..FileLimits::DEFAULT }, "3 template_instances"),
    ] {
        let reported = limits(set, &three);
        assert_eq!(reported.len(), 1, "{reported:#?}");
        assert_eq!(reported[0].code, Code::LimitExceeded);
        assert!(reported[0].message.contains(what), "{}", reported[0].message);
    }
}

#[test]
fn a_chain_inside_of_a_group_has_its_namespace() {
    let rest = TEMPLATE.replace(
        "    composite_loops:\n",
        "    chains:\n      - {from: in, to: out, max_ms: '{{gain}}'}\n    composite_loops:\n",
    );
    let rest = format!(
        "{rest}template_instances:
  - {{id: p, template: pair, parameters: {{gain: 2, who: x}}}}
  - {{id: q, template: pair, parameters: {{gain: 3, who: y}}}}
subgraphs:
  - id: cell
    components:
      - {{id: a, type: t, execution: {{lane: main}}}}
      - {{id: b, type: t, execution: {{lane: main}}}}
    edges:
      - {{id: ab, kind: delay, from: a.y, to: b.x}}
    chains:
      - {{id: c, from: a, to: b, max_ms: 5}}
"
    );
    let chains = parse(&rest).chains;
    let of = |at: usize| {
        let one = &chains[at];
        (&*one.id, &*one.from, &*one.to, one.max_ms)
    };
    assert_eq!(chains.len(), 3);
    assert_eq!(of(0), ("cell.c", "cell.a", "cell.b", 5));
    assert_eq!(of(1), ("p.in:p.out", "p.in", "p.out", 2));
    assert_eq!(of(2), ("q.in:q.out", "q.in", "q.out", 3));
}
