//! Whole reports as they are printed.

use std::sync::Arc;

use super::*;
use crate::{
    describe::{SourceText, Span},
    diagnostic::Code,
};

const TEXT: &str = "\
schema_version: 1
lanes:
  main: {type: event_loop, priority: 5}
components:
  - {id: sink, type: output, execution: {lane: main}}
edges:
  - id: e1
    kind: immediate
    from: count.out
    to: snik.in
";

/// The first occurrence in the text.
fn span_of(token: &str) -> Span {
    let start = TEXT.find(token).expect("it is there");
    let at = |byte: usize| u32::try_from(byte).expect("a short text");
    Span { start: at(start), end: at(start + token.len()) }
}

fn source(text: &str) -> Option<Arc<SourceText>> {
    Some(Arc::new(SourceText { name: "cell.yaml".into(), text: text.into() }))
}

fn report() -> Diagnostics {
    let missing = Diagnostic::new(
        Code::UnknownComponent,
        "edges.e1.to",
        "edge `e1` ends at `snik.in`, and there is no component `snik`",
    );
    let missing = missing
        .at(span_of("snik.in"))
        .related_at(span_of("sink"), "a component with a similar name")
        .help("did you mean `sink`?")
        .fix(span_of("snik.in"), "sink.in");
    let ignored = Diagnostic::new(
        Code::AdvisoryLaneFieldIgnored,
        "lanes.main.priority",
        "`priority` of lane `main` has no effect",
    );
    Diagnostics { source: source(TEXT), list: vec![missing, ignored.at(span_of("5"))] }
}

#[test]
fn a_report_shows_every_finding_with_carets_help_and_counts() {
    assert_eq!(report().to_text(), include_str!("golden.txt"));
}

#[test]
fn colours_come_only_when_they_are_asked_for() {
    assert!(!report().to_text().contains('\x1b'));
    let painted = Renderer { paint: Paint::Colour, ..Renderer::DEFAULT }.render(&report());
    assert!(painted.contains("\x1b["), "{painted:?}");
}

#[test]
fn a_graph_that_was_built_in_code_has_no_lines_to_show() {
    let mut report = report();
    report.source = None;
    let text = report.to_text();
    assert!(text.contains("error[unknown_component]: edge `e1` ends at"), "{text}");
    assert!(text.contains("edges.e1.to") && text.contains("did you mean `sink`?"), "{text}");
    assert!(text.ends_with("1 error, 1 advisory\n"), "{text}");
}

#[test]
fn no_findings_are_no_text() {
    assert_eq!(Diagnostics::default().to_text(), "");
}

#[test]
fn what_a_file_says_commands_no_terminal() {
    let evil = "\x1b[2Jx\u{7}\r";
    let one = Diagnostic::new(Code::InvalidIdentifier, evil, evil.to_string())
        .at(Span { start: 0, end: 4 })
        .related_at(Span { start: 4, end: 5 }, evil)
        .help(evil)
        .fix(Span { start: 0, end: 4 }, evil);
    let source = Some(Arc::new(SourceText { name: evil.into(), text: evil.into() }));
    let text = Diagnostics { source, list: vec![one] }.to_text();
    let harmful = |letter: char| letter.is_control() && letter != '\n';
    assert!(!text.chars().any(harmful), "{text:?}");
}

#[test]
fn spans_that_make_no_sense_and_long_lines_are_survived() {
    let long = "x".repeat(100_000);
    for text in ["", "ö", "a\n", long.as_str()] {
        for (start, end) in [(0, 0), (0, 1), (1, 1), (3, 2), (1, 2), (9, u32::MAX)] {
            let span = Span { start, end };
            let one = Diagnostic::new(Code::InvalidYaml, "", "what").at(span).fix(span, "y");
            let one = one.related_at(span, "here");
            let report = Diagnostics { source: source(text), list: vec![one] };
            let escaped = report.to_text();
            assert!(escaped.contains("cell.yaml") && escaped.len() < 2_000, "{escaped}");
            assert!(report.to_json().is_object() && report.to_sarif().is_object());
        }
    }
}

#[test]
fn a_fault_over_many_lines_is_shown_by_its_first() {
    let start = u32::try_from(TEXT.find("- id: e1").expect("there")).expect("short");
    let span = Span { start, end: u32::try_from(TEXT.len()).expect("short") };
    let one = Diagnostic::new(Code::MissingField, "edges.0", "`x` is missing").at(span);
    let text = Diagnostics { source: source(TEXT), list: vec![one] }.to_text();
    assert!(text.contains("- id: e1") && !text.contains("kind: immediate"), "{text}");
}

#[test]
fn a_thousand_findings_take_one_pass_over_the_text_each_line() {
    let text = "a: b\n".repeat(20_000);
    let at = |n: u32| Span { start: n * 50, end: n * 50 + 1 };
    let one = |n| Diagnostic::new(Code::UnknownField, "a", "`a` is not known").at(at(n));
    let report = Diagnostics { source: source(&text), list: (0..1_000).map(one).collect() };
    let escaped = report.to_text();
    assert!(escaped.contains("--> cell.yaml:9991:1"), "the position refers to the whole text");
    assert!(escaped.ends_with("1000 errors in cell.yaml\n"));
}
