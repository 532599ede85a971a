//! The arguments of the commands that read graph files without running them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clockjack_graph::{
    Registry,
    compile::lint::Finding,
    describe::FileLimits,
    picture::{Fold, Picture, text},
};

use super::{
    Streams, exit_codes,
    options::{ColorMode, GraphArgs, LimitArgs, load_or_report},
    write_result, write_to,
};
use crate::{
    failure::Failure,
    findings,
    format::Format,
    graph::{
        check::{self, Depth},
        explain,
        load::{self, Source},
        plan,
    },
    output::{self, OutputFile},
    render::{self, Form},
    run::{self, RunSettings},
};

/// What a command that reads graphs needs in addition to its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Env<'r> {
    pub(super) registry: &'r Registry,
    pub(super) color: ColorMode,
    /// The name by which the user called the program.
    pub(super) program: &'r str,
    /// Whether there are arguments besides the command and a file.
    pub(super) has_options: bool,
}

/// Reads these files in order.
fn read_all<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
    limits: FileLimits,
) -> Result<Vec<Source>, Failure> {
    let mut is_stdin_read = false;
    let read = |path: &'p PathBuf| {
        if load::is_stdin(path) && core::mem::replace(&mut is_stdin_read, true) {
            return Err(Failure::usage(
                "`-` is given twice, but standard input can be read only once",
            ));
        }
        Source::read(path, limits)
    };
    paths.into_iter().map(read).collect()
}

/// The output file, if the arguments name one. It must differ from the graph file.
pub(super) fn output_file(
    graph: &Path,
    output: Option<&PathBuf>,
) -> Result<Option<OutputFile>, Failure> {
    let Some(path) = output else { return Ok(None) };
    check_distinct_files(&[graph], [path])?;
    OutputFile::at(path).map(Some)
}

/// Rejects an output file that is also an input file or another output file.
pub(super) fn check_distinct_files<'p>(
    read: &[&Path],
    written: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    output::first_conflict(read, written).map_or(Ok(()), |path| Err(Failure::same_file(path)))
}

const CHECK_EXAMPLES: &str = "\
Examples:
  clockjack check cell.yaml                    every error of a file, with source excerpts
  clockjack check graphs/*.yaml --strict       treat warnings as errors
  clockjack check cell.yaml --dry-run          also start and stop every component
  clockjack check cell.yaml --format sarif     SARIF, for code scanning";

/// Check graph files and report every error
#[derive(Debug, Args)]
#[command(after_help = exit_codes(CHECK_EXAMPLES, &[0, 2, 3, 5]))]
pub(super) struct CheckArgs {
    /// The graph files; `-` reads standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Check only the structure of the file, not its meaning.
    #[arg(long)]
    schema_only: bool,

    /// Treat warnings as errors.
    #[arg(long, conflicts_with = "schema_only")]
    strict: bool,

    /// Also create, configure, activate and deactivate every component of each valid graph. No
    /// component is called.
    #[arg(long, conflicts_with = "schema_only")]
    dry_run: bool,

    /// Output format: text with source excerpts, one JSON object, one JSON object per finding, or
    /// SARIF.
    #[arg(long, value_enum, default_value_t = check::Form::Human)]
    format: check::Form,

    #[command(flatten)]
    limits: LimitArgs,
}

impl CheckArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let depth = if self.schema_only { Depth::Shape } else { Depth::Meaning };
        let sources = read_all(&self.files, self.limits.limits())?;
        let check = |source: &Source| check::check(source, depth, env.registry);
        let reports: Vec<check::Report> = sources.iter().map(check).collect();
        let renderer = env.color.on_out(streams);
        write_result(streams, check::show(&reports, self.format, renderer))?;
        if !reports.iter().all(|report| report.is_valid(self.strict)) {
            return Err(Failure::already_reported(crate::exit_code::INVALID_GRAPH));
        }
        if self.dry_run {
            sources.iter().try_for_each(|source| dry_run(source, env.registry, streams))?;
        }
        Ok(())
    }
}

/// Starts and stops the components of a valid graph, without an epoch.
fn dry_run(source: &Source, registry: &Registry, streams: &Streams<'_>) -> Result<(), Failure> {
    let Some(loaded) = source.load(registry).0 else { return Ok(()) };
    let graph = super::run::compile(&loaded.file, registry);
    let result = run::run(graph, &RunSettings::steps(0), &streams.interrupt, |_| {})?;
    let faults = result.report.iter().flat_map(|report| &report.faults);
    let first = result.error.or_else(|| faults.map(ToString::to_string).next());
    first.map_or(Ok(()), |why| Err(Failure::dry_run(&source.name, &why)))
}

const PLAN_EXAMPLES: &str = "\
Examples:
  clockjack plan cell.yaml                  regions in commit order
  clockjack plan cell.yaml --format json    the same as JSON

The command tries the thread settings of each lane on this machine, and lists those that the
operating system rejects as advisory.";

/// Compile a graph file and print the plan
#[derive(Debug, Args)]
#[command(after_help = exit_codes(PLAN_EXAMPLES, &[0, 2, 3]))]
pub(super) struct PlanArgs {
    /// Output format: text, one JSON object, or one JSON object per region.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    graph: GraphArgs,
}

impl PlanArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let mut loaded = self.graph.load(env, self.format, streams)?;
        if loaded.plan.asks_of_the_host() {
            run::probe_lane_settings(&mut loaded.plan)?;
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
  clockjack render cell.yaml                                  a drawing in the terminal
  clockjack render cell.yaml --format svg --output cell.svg   an SVG drawing
  clockjack render cell.yaml --format dot | dot -Tpdf > cell.pdf
  clockjack render cell.yaml --format mermaid                 for Markdown documentation
  clockjack render plant.yaml --only arm                      one subgraph and its neighbors

A terminal drawing without room for the names of edges lists them below. A graph with more than
120 components is folded: in a terminal, boxes stand for several components; in SVG, such a box is a
link to its contents, which are below in the same file.";

/// Draw a graph file: components in compiled order, edges, loops and subgraphs
#[derive(Debug, Args)]
#[command(after_help = exit_codes(RENDER_EXAMPLES, &[0, 2, 3]))]
pub(super) struct RenderArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Form::Ascii)]
    format: Form,

    /// Write the drawing to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw only this subgraph, loop, lane or component, and what it is connected to.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Whether a large graph is folded; for `ascii` and `svg`.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = FoldMode::Auto)]
    fold: FoldMode,

    /// Maximum width of a drawing with format `ascii` in columns, if the graph permits it; the
    /// default is the width of the terminal, or 100.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,

    #[command(flatten)]
    graph: GraphArgs,
}

/// Whether a large graph is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FoldMode {
    /// If it has more than 120 components, or if the SVG is wider than 4,000 pixels.
    Auto,
    /// Never.
    Never,
}

impl RenderArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let is_json = self.format == Form::Json;
        let diagnostics = if is_json { Format::Json } else { Format::Human };
        let loaded = self.graph.load(env, diagnostics, streams)?;
        let file = output_file(self.graph.path(), self.output.as_ref())?;
        let mut picture = Picture::of(&loaded.plan);
        if let Some(only) = &self.only {
            picture = picture.part(only).map_err(|unknown| Failure::usage(unknown.to_string()))?;
        }
        let fold = match self.fold {
            FoldMode::Auto => Fold::Auto,
            FoldMode::Never => Fold::Never,
        };
        // A file is not as wide as the terminal.
        let terminal = streams.out_columns.filter(|_| file.is_none());
        let columns = self.width.map(usize::from).or(terminal).unwrap_or(text::COLUMNS_DEFAULT);
        let drawing = render::draw_picture(&picture, self.format, fold, columns);
        write_to(file.as_ref(), streams, drawing)
    }
}

const LINT_EXAMPLES: &str = "\
Examples:
  clockjack lint cell.yaml                           list suspicious parts
  clockjack lint cell.yaml --deny --format ndjson    for CI: any finding is a failure";

/// Report suspicious but valid parts of a graph file
#[derive(Debug, Args)]
#[command(after_help = exit_codes(LINT_EXAMPLES, &[0, 2, 3, 9]))]
pub(super) struct LintArgs {
    /// Exit with code 9 if there are findings.
    #[arg(long)]
    deny: bool,

    /// Output format: a list, one JSON object, or one JSON object per finding.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    graph: GraphArgs,
}

impl LintArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let (findings, has_errors) = match check::lint(&self.graph.read()?, env.registry) {
            Ok(found) => found,
            Err(diagnostics) => {
                let renderer = env.color.on_err(streams);
                return Err(load::report(&diagnostics, renderer, self.format, streams));
            }
        };
        let records = findings.iter().map(Finding::to_json);
        let text = self.format.list("findings", records, || check::lint_text(&findings));
        write_result(streams, &text)?;
        if has_errors {
            return Err(Failure::already_reported(crate::exit_code::INVALID_GRAPH));
        }
        if self.deny && !findings.is_empty() {
            return Err(Failure::already_reported(crate::exit_code::ASSERTION_FAILED));
        }
        Ok(())
    }
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  clockjack explain                                  list all codes
  clockjack explain immediate_cycle_without_loop     one code with a wrong and a right example
  clockjack explain S01                              a finding of `doctor --of` and `top`";

/// Explain a code of a diagnostic or a finding: its meaning, an example, the fix, and the reason
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXPLAIN_EXAMPLES, &[0, 2]))]
pub(super) struct ExplainArgs {
    /// The codes; lists all codes if none is given.
    #[arg(value_name = "CODE")]
    codes: Vec<String>,

    /// Output format: text, one JSON object, or one JSON object per code.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl ExplainArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let is_finding = |code: &&String| findings::page(code).is_some();
        let (found, codes): (Vec<&String>, Vec<&String>) = self.codes.iter().partition(is_finding);
        let codes: Vec<String> = codes.into_iter().cloned().collect();
        let (pages, found) = if self.codes.is_empty() {
            (explain::find(&[])?, findings::all())
        } else {
            let found = found.into_iter().filter_map(|code| findings::page(code)).collect();
            (if codes.is_empty() { Vec::new() } else { explain::find(&codes)? }, found)
        };
        let records = pages.iter().map(|page| explain::record(page));
        let records = records.chain(found.iter().map(|page| findings::to_json(page)));
        let text = self.format.list("codes", records, || {
            if self.codes.is_empty() {
                let rows = found.iter().map(|page| findings::to_row(page));
                return format!("{}{}", explain::list(&pages), rows.collect::<String>());
            }
            let texts = found.iter().map(|page| findings::to_text(page));
            let texts: Vec<String> = [explain::pages(&pages)].into_iter().chain(texts).collect();
            texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        });
        write_result(streams, &text)
    }
}

const DIFF_EXAMPLES: &str = "\
Examples:
  clockjack diff-plan old.yaml new.yaml                  how a change affects the plan
  clockjack diff-plan old.yaml new.yaml --expect-same    exit with 9 if it affects the plan";

/// Compare the plans of two graph files: the region order and the region of each component
#[derive(Debug, Args)]
#[command(after_help = exit_codes(DIFF_EXAMPLES, &[0, 2, 3, 9]))]
pub(super) struct DiffPlanArgs {
    /// The first graph file; `-` reads standard input.
    left: PathBuf,

    /// The second graph file; `-` reads standard input.
    right: PathBuf,

    /// Exit with code 9 if the plans differ.
    #[arg(long)]
    expect_same: bool,

    /// Output format: text or one JSON object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    limits: LimitArgs,
}

impl DiffPlanArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let sources = read_all([&self.left, &self.right], self.limits.limits())?;
        let mut plans = Vec::new();
        for source in &sources {
            plans.push(load_or_report(source, env, self.format, streams)?.plan);
        }
        let diff = plan::PlanDiff::new(&plans[0], &plans[1]);
        let text = match self.format {
            Format::Human => diff.to_string(),
            Format::Json | Format::Ndjson => format!("{}\n", diff.to_json()),
        };
        write_result(streams, &text)?;
        if self.expect_same && !(diff.same_region_order() && diff.same_component_regions()) {
            return Err(Failure::already_reported(crate::exit_code::ASSERTION_FAILED));
        }
        Ok(())
    }
}
