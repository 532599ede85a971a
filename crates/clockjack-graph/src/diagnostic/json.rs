//! Diagnostics as JSON: one object per report, or one line per diagnostic. The contract defines the
//! names of the members. They do not change, but members may be added.

use serde_json::{Value, json};

use super::{
    Diagnostic, Diagnostics,
    render::{line_column, lines::Lines},
};
use crate::describe::Span;

/// The version of the JSON format.
pub const SCHEMA_VERSION: &str = "1";

impl Diagnostics {
    /// The report as one JSON value: `ok`, counts, and one record per diagnostic.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "diagnostics_schema_version": SCHEMA_VERSION,
            "ok": self.n_errors() == 0,
            "source": self.source.as_deref().map(|source| source.name.as_str()),
            "n_errors": self.n_errors(),
            "diagnostics": self.records(),
        })
    }

    /// One record per diagnostic, in order.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let lines = self.source.as_deref().map(|source| Lines::new(&source.text));
        self.list.iter().map(|one| record(one, lines.as_ref())).collect()
    }

    /// One line per record (NDJSON).
    #[must_use]
    pub fn to_ndjson(&self) -> String {
        self.records().iter().map(|record| record.to_string() + "\n").collect()
    }
}

fn record(one: &Diagnostic, lines: Option<&Lines<'_>>) -> Value {
    let related =
        one.related.iter().map(|(at, note)| json!({"span": span(*at, lines), "note": note}));
    let replacement = one.fix.as_ref().map(|fix| {
        json!({
            "span": span(fix.span, lines),
            "text": fix.replacement,
        })
    });
    json!({
        "code": one.code.name(),
        "severity": one.severity.name(),
        "category": one.code.category().name(),
        "message": one.message,
        "graph_path": one.path,
        "involved_components": one.components,
        "involved_edges": one.edges,
        "suggested_fix": one.help,
        "replacement": replacement,
        "span": span(one.span, lines),
        "related": related.collect::<Vec<_>>(),
    })
}

/// The byte range, and the line and column of its first byte; null without a text.
fn span(span: Span, lines: Option<&Lines<'_>>) -> Value {
    let Some((start, _)) = lines.and_then(|lines| line_column(lines, span)) else {
        return Value::Null;
    };
    json!({ "start": span.start, "end": span.end, "line": start.line, "column": start.column })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{describe::SourceText, diagnostic::Code};

    fn report() -> Diagnostics {
        let text = "edges:\n  - id: ä1\n    to: snik.in\n";
        let span = Span { start: 27, end: 34 };
        assert_eq!(&text[27..34], "snik.in");
        let one = Diagnostic::new(Code::UnknownComponent, "edges.ä1.to", "there is no `snik`")
            .at(span)
            .edge("ä1")
            .related_at(Span { start: 15, end: 18 }, "this edge")
            .help("did you mean `sink`?")
            .fix(span, "sink.in");
        let source = Arc::new(SourceText { name: "a.yaml".into(), text: text.into() });
        Diagnostics { source: Some(source), list: vec![one] }
    }

    #[test]
    fn a_record_has_the_members_of_the_contract_and_its_place() {
        let json = report().to_json();
        assert_eq!((&json["ok"], &json["n_errors"]), (&false.into(), &1.into()));
        assert_eq!(json["diagnostics_schema_version"], "1");
        let at = json!({"start": 27, "end": 34, "line": 3, "column": 9});
        let expected = json!({
            "code": "unknown_component",
            "severity": "error",
            "category": "graph_structure",
            "message": "there is no `snik`",
            "graph_path": "edges.ä1.to",
            "involved_components": [],
            "involved_edges": ["ä1"],
            "suggested_fix": "did you mean `sink`?",
            "replacement": {"span": at, "text": "sink.in"},
            "span": at,
            "related": [{
                "span": {"start": 15, "end": 18, "line": 2, "column": 9},
                "note": "this edge",
            }],
        });
        assert_eq!(json["diagnostics"], json!([expected]));
    }

    #[test]
    fn without_a_text_there_is_no_place() {
        let mut report = report();
        report.source = None;
        assert_eq!(report.to_json()["diagnostics"][0]["span"], Value::Null);
        assert_eq!(report.to_json()["source"], Value::Null);
    }

    #[test]
    fn lines_are_records() {
        let mut report = report();
        report.list.push(Diagnostic::new(Code::GraphValidationError, "graph", "two\nlines"));
        let text = report.to_ndjson();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines, report.records());
        assert_eq!(lines.len(), 2);
    }
}
