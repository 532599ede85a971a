//! `clockjack check` and `clockjack lint`: the findings in every output format.

use clap::ValueEnum;
use clockjack_graph::{
    Registry,
    compile::lint::{self, Finding},
    diagnostic::{Diagnostics, Renderer, Severity, json},
};
use serde_json::{Value, json};

use super::load::Source;
use crate::failure::printable;

/// How much of a file is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only the structure of the file.
    Shape,
    /// Also whether the graph can run.
    Meaning,
}

/// The output format of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Human,
    Json,
    Ndjson,
    Sarif,
}

/// The result of checking a file.
#[derive(Debug)]
pub(crate) struct Report {
    file: String,
    diagnostics: Diagnostics,
    /// The regions in compiled order, if there is a plan.
    region_order: Option<Vec<String>>,
}

impl Report {
    /// Whether the graph can run; if strict, also whether it has no warnings.
    pub(crate) fn is_valid(&self, is_strict: bool) -> bool {
        let keeps = |severity| match severity {
            Severity::Error => true,
            Severity::Warning => is_strict,
            Severity::Info | Severity::Advisory => false,
        };
        !self.diagnostics.list.iter().any(|one| keeps(one.severity))
    }

    fn to_json(&self) -> Value {
        let mut value = self.diagnostics.to_json();
        value["source"] = self.file.as_str().into();
        let errors: Vec<&str> = self
            .diagnostics
            .list
            .iter()
            .filter(|one| one.is_error())
            .map(|one| one.message.as_str())
            .collect();
        value["errors"] = json!(errors);
        value["region_order"] = json!(self.region_order);
        value
    }
}

/// Checks a file.
pub(crate) fn check(source: &Source, depth: Depth, registry: &Registry) -> Report {
    let file = source.name.clone();
    if depth == Depth::Shape {
        let diagnostics = source.parse().err().unwrap_or_default();
        return Report { file, diagnostics, region_order: None };
    }
    let (loaded, diagnostics) = source.load(registry);
    let region_order =
        loaded.map(|loaded| loaded.plan.regions.iter().map(|region| region.id.clone()).collect());
    Report { file, diagnostics, region_order }
}

/// Formats all reports.
pub(crate) fn show(reports: &[Report], form: Form, renderer: Renderer) -> String {
    match form {
        Form::Human => reports.iter().map(|report| text(report, renderer)).collect(),
        Form::Json => match reports {
            [one] => format!("{}\n", one.to_json()),
            many => {
                let ok = many.iter().all(|report| report.is_valid(false));
                let files: Vec<Value> = many.iter().map(Report::to_json).collect();
                format!(
                    "{}\n",
                    json!({
                        "diagnostics_schema_version": json::SCHEMA_VERSION,
                        "ok": ok,
                        "files": files,
                    })
                )
            }
        },
        Form::Ndjson => reports.iter().map(lines).collect(),
        Form::Sarif => format!("{}\n", sarif(reports)),
    }
}

fn text(report: &Report, renderer: Renderer) -> String {
    let mut out = renderer.render(&report.diagnostics);
    if report.is_valid(false) {
        out.push_str(&format!("{}: ok\n", printable(&report.file)));
    }
    out
}

/// One record per finding with its file name, then one record for the file.
fn lines(report: &Report) -> String {
    let mut out = String::new();
    for mut record in report.diagnostics.records() {
        record["source"] = report.file.as_str().into();
        record["record"] = "diagnostic".into();
        out.push_str(&format!("{record}\n"));
    }
    let end = json!({
        "record": "file",
        "source": report.file,
        "ok": report.is_valid(false),
        "n_errors": report.diagnostics.n_errors(),
        "region_order": report.region_order,
    });
    out.push_str(&format!("{end}\n"));
    out
}

/// One SARIF log with one run per file.
fn sarif(reports: &[Report]) -> Value {
    let mut log = Diagnostics::default().to_sarif();
    let runs = reports.iter().map(|report| report.diagnostics.to_sarif()["runs"][0].take());
    log["runs"] = runs.collect();
    log
}

/// The lint findings of a file, and whether the file is invalid.
pub(crate) fn lint(
    source: &Source,
    registry: &Registry,
) -> Result<(Vec<Finding>, bool), Diagnostics> {
    let file = source.parse()?;
    let (_, diagnostics) = clockjack_graph::compile::check(file.spec(), registry);
    let spec = clockjack_graph::compile::with_triggers(file.spec(), registry);
    let findings = lint::lint(&spec, &diagnostics.list);
    Ok((findings, diagnostics.n_errors() > 0))
}

/// The findings as text.
pub(crate) fn lint_text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::from("no findings\n");
    }
    let row =
        |one: &Finding| format!("{}[{}] {}: {}\n", one.severity, one.rule, one.id, one.message);
    let mut out: String = findings.iter().map(row).collect();
    let plural = if findings.len() == 1 { "" } else { "s" };
    out.push_str(&format!("{} finding{plural}\n", findings.len()));
    out
}
