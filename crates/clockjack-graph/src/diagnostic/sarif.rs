//! Diagnostics as a SARIF 2.1.0 log, which code hosts and editors show next to the source lines.
//! The log contains the same information as the other formats; columns count characters.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Code, Diagnostic, Diagnostics, Severity, explain,
    render::{line_column, lines::Lines},
};
use crate::describe::{SourceText, Span};

impl Diagnostics {
    /// The report as a SARIF log with one run.
    #[must_use]
    pub fn to_sarif(&self) -> Value {
        let text = self.source.as_deref().map(|source| (source, Lines::new(&source.text)));
        let codes: BTreeSet<Code> = self.list.iter().map(|one| one.code).collect();
        let codes: Vec<Code> = codes.into_iter().collect();
        let results = self.list.iter().map(|one| result(one, &codes, text.as_ref()));
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "clockjack",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
                }},
                "columnKind": "unicodeCodePoints",
                "results": results.collect::<Vec<_>>(),
            }],
        })
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Advisory => "note",
    }
}

fn rule(code: Code) -> Value {
    let page = explain::page(code);
    json!({
        "id": code.name(),
        "shortDescription": {"text": page.means},
        "help": {"text": page.why},
        "defaultConfiguration": {"level": level(code.severity())},
        "properties": {"category": code.category().name()},
    })
}

fn result(one: &Diagnostic, codes: &[Code], text: Option<&(&SourceText, Lines<'_>)>) -> Value {
    let message = match &one.help {
        Some(help) => format!("{} ({help})", one.message),
        None => one.message.clone(),
    };
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": one.path}]});
    let mut out = json!({
        "ruleId": one.code.name(),
        "ruleIndex": codes.iter().position(|code| *code == one.code),
        "level": level(one.severity),
        "message": {"text": message},
    });
    if let Some((source, lines)) = text {
        if let Some(physical) = physical(source, lines, one.span) {
            location["physicalLocation"] = physical;
        }
        let related = one.related.iter().filter_map(|(span, note)| {
            let physical = physical(source, lines, *span)?;
            Some(json!({"physicalLocation": physical, "message": {"text": note}}))
        });
        let related: Vec<Value> = related.collect();
        if !related.is_empty() {
            out["relatedLocations"] = Value::Array(related);
        }
        if let Some(fix) = &one.fix {
            out["fixes"] = json!([{
                "description": {"text": "write instead"},
                "artifactChanges": [{
                    "artifactLocation": {"uri": uri(&source.name)},
                    "replacements": [{
                        "deletedRegion": region(lines, fix.span),
                        "insertedContent": {"text": fix.replacement},
                    }],
                }],
            }]);
        }
    }
    out["locations"] = json!([location]);
    out
}

fn physical(source: &SourceText, lines: &Lines<'_>, span: Span) -> Option<Value> {
    let region = region(lines, span)?;
    Some(json!({"artifactLocation": {"uri": uri(&source.name)}, "region": region}))
}

fn region(lines: &Lines<'_>, span: Span) -> Option<Value> {
    let (start, end) = line_column(lines, span)?;
    Some(json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
        "byteOffset": span.start,
        "byteLength": span.end.saturating_sub(span.start),
    }))
}

/// A file name as a URI reference (RFC 3986), with reserved characters escaped.
fn uri(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            b'\\' => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn log() -> Value {
        let text = "edges:\n  - id: ä1\n    to: snik.in\n";
        let span = Span { start: 27, end: 34 };
        let first = Diagnostic::new(Code::UnknownComponent, "edges.ä1.to", "there is no `snik`")
            .at(span)
            .help("did you mean `sink`?")
            .fix(span, "sink.in");
        let second = Diagnostic::new(Code::LargePayloadCopy, "edges.ä1", "frames are copied")
            .at(Span { start: 15, end: 18 })
            .related_at(span, "read here");
        let third = Diagnostic::new(Code::UnknownComponent, "graph", "in no text");
        let source = Arc::new(SourceText { name: "my graphs/a.yaml".into(), text: text.into() });
        Diagnostics { source: Some(source), list: vec![first, second, third] }.to_sarif()
    }

    #[test]
    fn each_finding_is_a_result_of_its_rule() {
        let log = log();
        assert_eq!(log["version"], "2.1.0");
        let rules = &log["runs"][0]["tool"]["driver"]["rules"];
        assert_eq!(rules.as_array().map(Vec::len), Some(2), "a rule for each code that is there");
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), 3);
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index"));
            assert_eq!(rules[index.expect("small")]["id"], result["ruleId"]);
        }
        let levels: Vec<_> = results.iter().map(|one| one["level"].as_str()).collect();
        assert_eq!(levels, [Some("error"), Some("warning"), Some("error")]);
    }

    #[test]
    fn regions_count_characters_and_fixes_say_what_goes() {
        let log = log();
        let results = &log["runs"][0]["results"];
        let region = json!({
            "startLine": 3, "startColumn": 9, "endLine": 3, "endColumn": 16,
            "byteOffset": 27, "byteLength": 7,
        });
        let at = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(at["region"], region);
        assert_eq!(at["artifactLocation"]["uri"], "my%20graphs/a.yaml");
        let change = &results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["deletedRegion"], region);
        assert_eq!(change["insertedContent"]["text"], "sink.in");
        let letter = &results[1]["locations"][0]["physicalLocation"]["region"];
        assert_eq!((&letter["startColumn"], &letter["endColumn"]), (&9.into(), &11.into()));
        assert_eq!(results[1]["relatedLocations"][0]["message"]["text"], "read here");
        assert_eq!(results[2]["locations"][0].get("physicalLocation"), None);
    }
}
