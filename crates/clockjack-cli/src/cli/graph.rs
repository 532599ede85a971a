//! The arguments of the commands that look at graph files without running them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clockjack_graph::Registry;
use clockjack_graph::describe::Limits;

use super::options::{ColorMode, Format, GraphArgs, LimitArgs, load_or_tell};
use super::{Streams, exit_codes, write_result, write_to};
use crate::failure::Failure;
use crate::graph::check::{self, Depth};
use crate::graph::load::{self, Source, Told};
use crate::graph::{explain, plan};
use crate::output::{self, OutputFile};
use crate::render::{self, Form};
use crate::run;

/// What a command that reads graphs needs beside its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'r> {
    pub(super) registry: &'r Registry,
    pub(super) color: ColorMode,
}

/// Reads these files, one after the other.
fn read_all<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
    limits: Limits,
) -> Result<Vec<Source>, Failure> {
    let mut is_stdin_read = false;
    let read = |path: &'p PathBuf| {
        if load::is_stdin(path) && core::mem::replace(&mut is_stdin_read, true) {
            return Err(Failure::stdin_twice());
        }
        Source::read(path, limits)
    };
    paths.into_iter().map(read).collect()
}

/// The file that a result goes to, if the arguments name one. It is not the graph file.
pub(super) fn output_beside(
    graph: &Path,
    output: Option<&PathBuf>,
) -> Result<Option<OutputFile>, Failure> {
    let Some(path) = output else { return Ok(None) };
    keep_apart(&[graph], [path])?;
    OutputFile::at(path).map(Some)
}

/// Refuses to write over a file that is read, or over another that is written.
pub(super) fn keep_apart<'p>(
    read: &[&Path],
    written: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    output::clash(read, written).map_or(Ok(()), |path| Err(Failure::same_file(path)))
}

const CHECK_EXAMPLES: &str = "\
Examples:
  clockjack check cell.yaml                    all faults of a file, with carets
  clockjack check graphs/*.yaml --strict       warnings count as faults
  clockjack check cell.yaml --format sarif     for a code host";

/// Check graph files and tell all of their faults at once
#[derive(Debug, Args)]
#[command(after_help = exit_codes(CHECK_EXAMPLES, &[0, 2, 3]))]
pub(super) struct CheckArgs {
    /// The files; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Check only the form of the file, not what it says.
    #[arg(long)]
    schema_only: bool,

    /// Warnings keep a graph from being valid, too.
    #[arg(long, visible_alias = "strict-diagnostics", conflicts_with = "schema_only")]
    strict: bool,

    /// What to print: a report with carets, one object, one object a finding, or a SARIF log.
    #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
    format: CheckFormat,

    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    Human,
    Json,
    Ndjson,
    Sarif,
}

impl CheckArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let depth = if self.schema_only { Depth::Shape } else { Depth::Meaning };
        let sources = read_all(&self.files, self.limits.limits())?;
        let check = |source: &Source| check::check(source, depth, of.registry);
        let reports: Vec<check::Report> = sources.iter().map(check).collect();
        let form = match self.format {
            CheckFormat::Human => check::Form::Text(of.color.on_out(streams)),
            CheckFormat::Json => check::Form::Json,
            CheckFormat::Ndjson => check::Form::Ndjson,
            CheckFormat::Sarif => check::Form::Sarif,
        };
        write_result(streams, check::show(&reports, form))?;
        if reports.iter().all(|report| report.is_valid(self.strict)) {
            return Ok(());
        }
        Err(Failure::told(crate::exit_code::INVALID_GRAPH))
    }
}

const PLAN_EXAMPLES: &str = "\
Examples:
  clockjack plan cell.yaml                  regions in the order in which they commit
  clockjack plan cell.yaml --format json    the same for programs

What lanes ask of the operating system is tried out: what it refuses here is listed as advisory.";

/// Compile a graph file and print the plan
#[derive(Debug, Args)]
#[command(after_help = exit_codes(PLAN_EXAMPLES, &[0, 2, 3]))]
pub(super) struct PlanArgs {
    /// What to print: a text, one object, or one object a region.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    graph: GraphArgs,
}

impl PlanArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let mut loaded = self.graph.load(of, self.format.told(), streams)?;
        if loaded.plan.asks_of_the_host() {
            run::try_on_this_host(&mut loaded.plan)?;
        }
        let text = match self.format {
            Format::Human => loaded.plan.to_string(),
            Format::Json => format!("{}\n", loaded.plan.to_json()),
            Format::Ndjson => plan::lines(&loaded.plan),
        };
        write_result(streams, &text)
    }
}

const RENDER_EXAMPLES: &str = "\
Examples:
  clockjack render cell.yaml                                  wiring, in the terminal
  clockjack render cell.yaml --format svg --output cell.svg   a drawing
  clockjack render cell.yaml --format dot | dot -Tpdf > cell.pdf
  clockjack render cell.yaml --format mermaid                 for a page of documentation";

/// Draw a graph file: components in compiled order, edges, loops and subgraphs
#[derive(Debug, Args)]
#[command(after_help = exit_codes(RENDER_EXAMPLES, &[0, 2, 3]))]
pub(super) struct RenderArgs {
    /// What to draw it as.
    #[arg(long, value_enum, default_value_t = RenderFormat::Ascii)]
    format: RenderFormat,

    /// Write the picture to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    graph: GraphArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RenderFormat {
    /// Wiring with box drawing characters.
    #[value(alias = "human", alias = "text")]
    Ascii,
    /// A drawing that needs nothing beside it.
    Svg,
    /// For Graphviz.
    Dot,
    /// A Mermaid flowchart.
    Mermaid,
    /// Boxes, nodes and edges as one object.
    #[value(alias = "ndjson")]
    Json,
}

impl RenderArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let (form, told) = match self.format {
            RenderFormat::Ascii => (Form::Ascii, Told::Text),
            RenderFormat::Svg => (Form::Svg, Told::Text),
            RenderFormat::Dot => (Form::Dot, Told::Text),
            RenderFormat::Mermaid => (Form::Mermaid, Told::Text),
            RenderFormat::Json => (Form::Json, Told::Json),
        };
        let loaded = self.graph.load(of, told, streams)?;
        let file = output_beside(self.graph.path(), self.output.as_ref())?;
        write_to(file.as_ref(), streams, render::draw(&loaded.plan, form))
    }
}

const LINT_EXAMPLES: &str = "\
Examples:
  clockjack lint cell.yaml                           what is legal and still worth a look
  clockjack lint cell.yaml --deny --format ndjson    in a pipeline: any finding is a failure";

/// Tell what is legal in a graph file and still worth a look
#[derive(Debug, Args)]
#[command(after_help = exit_codes(LINT_EXAMPLES, &[0, 2, 3, 9]))]
pub(super) struct LintArgs {
    /// Exit with 9 if there is any finding.
    #[arg(long)]
    deny: bool,

    /// What to print: a list, one object, or one object a finding.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    graph: GraphArgs,
}

impl LintArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let (findings, has_errors) = match check::lint(&self.graph.read()?, of.registry) {
            Ok(found) => found,
            Err(diagnostics) => {
                let renderer = of.color.on_err(streams);
                return Err(load::tell(&diagnostics, renderer, self.format.told(), streams));
            }
        };
        let text = match self.format {
            Format::Human => check::lint_text(&findings),
            Format::Json => check::lint_json(&findings),
            Format::Ndjson => check::lint_lines(&findings),
        };
        write_result(streams, &text)?;
        if has_errors {
            return Err(Failure::told(crate::exit_code::INVALID_GRAPH));
        }
        if self.deny && !findings.is_empty() {
            return Err(Failure::told(crate::exit_code::ASSERTION_FAILED));
        }
        Ok(())
    }
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  clockjack explain                                  all codes
  clockjack explain immediate_cycle_without_loop     one of them: wrong, right and why";

/// Explain a code of a report: what it means, an example, its repair, and why there is the rule
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXPLAIN_EXAMPLES, &[0, 2]))]
pub(super) struct ExplainArgs {
    /// The codes; none: a list of all.
    #[arg(value_name = "CODE")]
    codes: Vec<String>,

    /// What to print: pages, one object, or one object a code.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl ExplainArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let pages = explain::find(&self.codes)?;
        let text = match self.format {
            Format::Human if self.codes.is_empty() => explain::list(&pages),
            Format::Human => explain::pages(&pages),
            Format::Json => explain::json(&pages),
            Format::Ndjson => explain::lines(&pages),
        };
        write_result(streams, &text)
    }
}

const DIFF_EXAMPLES: &str = "\
Examples:
  clockjack diff-plan old.yaml new.yaml                  what a change does to the order
  clockjack diff-plan old.yaml new.yaml --expect-same    exits with 9 if it does anything";

/// Compare the plans of two graph files: the order of regions, and who is in which
#[derive(Debug, Args)]
#[command(after_help = exit_codes(DIFF_EXAMPLES, &[0, 2, 3, 9]))]
pub(super) struct DiffPlanArgs {
    /// One file; `-` is standard input.
    left: PathBuf,

    /// The other.
    right: PathBuf,

    /// Exit with 9 if the plans differ.
    #[arg(long)]
    expect_same: bool,

    /// What to print: a text, or one object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    limits: LimitArgs,
}

impl DiffPlanArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let sources = read_all([&self.left, &self.right], self.limits.limits())?;
        let mut plans = Vec::new();
        for source in &sources {
            plans.push(load_or_tell(source, of, self.format.told(), streams)?.plan);
        }
        let diff = plan::PlanDiff::new(&plans[0], &plans[1]);
        let text = match self.format {
            Format::Human => diff.to_string(),
            Format::Json | Format::Ndjson => format!("{}\n", diff.to_json()),
        };
        write_result(streams, &text)?;
        if self.expect_same && !(diff.same_region_order() && diff.same_component_regions()) {
            return Err(Failure::told(crate::exit_code::ASSERTION_FAILED));
        }
        Ok(())
    }
}
