//! The arguments of `plot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};
use clockjack_graph::compile::Plan;

use super::{
    Streams, exit_codes,
    graph::{Env, output_file},
    options::{ColorMode, LimitArgs, ProgressMode, load_or_report},
    run::{NOTE, RunBounds, exit_with, log_writers, run_with_progress},
    write_to,
};
use crate::{
    exit_code,
    failure::{Failure, shown},
    format::Format,
    graph::load::{Loaded, Source},
    output::LastFlush,
    plot::{
        Plot,
        signal::{self, Signal},
        svg,
        text::{self, Charset, Style},
        values::{self, RunValues},
    },
    run::{RunSettings, summary},
};

const EXAMPLES: &str = "\
Examples:
  clockjack plot cell.yaml                                    run the graph, show its boundary
  clockjack plot cell.yaml --edges wanted,arm.position        choose what is shown
  clockjack plot cell.yaml --for 1h -o cell.svg               a picture of an hour
  clockjack plot cell.log --graph cell.yaml                   a run that was logged before
  clockjack plot cell.yaml --edges 'pose[1],track[2]:f64'     items of values

An edge is given by its id or by the output of a component, COMPONENT.OUTPUT. If a value consists of
several numbers, NAME[N] is one of them, counted from 0. Of a payload that a program defines, give
the field and its type: NAME[N]:TYPE, where TYPE is bool, u8, u32, u64, i32, i64, f32 or f64. A
value is valid until the next one; NaN and infinite values are gaps. The plot shows the smallest and
the largest value of each column, so that no peak is missing, however long the run was.";

/// Plot values over time: run a graph file, or read the commit log of a run
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{EXAMPLES}"), &[0, 2, 3, 5, 130, 143]))]
pub(super) struct PlotArgs {
    /// The edges to plot; default: those at the boundary of the graph.
    #[arg(long, value_name = "EDGE,..", value_delimiter = ',')]
    edges: Vec<String>,

    /// Output format; default: svg if OUT ends in .svg, otherwise text.
    #[arg(long, value_enum)]
    format: Option<PlotFormat>,

    /// Write the plot to this file instead of standard output.
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,

    /// The graph file of a commit log, which does not contain the names of edges.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,

    /// Width of a plot with format `text` in columns; the default is the width of the terminal, or
    /// 80.
    #[arg(long, value_name = "COLUMNS", value_parser = value_parser!(u16).range(30..))]
    width: Option<u16>,

    #[command(flatten)]
    bounds: RunBounds,

    /// A graph file, which is run, or the commit log of a run; `-` reads a graph file from standard
    /// input.
    #[arg(help_heading = None)]
    file: PathBuf,

    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlotFormat {
    /// Braille patterns, or ASCII characters if the locale is not UTF-8.
    #[value(alias = "human")]
    Text,
    /// A self-contained SVG drawing.
    Svg,
}

impl PlotArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let is_log = values::is_log(&self.file);
        let graph = match (&self.graph, is_log) {
            (Some(graph), true) => graph,
            (None, false) => &self.file,
            (None, true) => {
                return Err(Failure::usage(
                    "a commit log does not contain the names of edges; add `--graph FILE`",
                ));
            }
            (Some(_), false) => {
                let file = shown(&self.file);
                return Err(Failure::usage(format!("--graph: '{file}' is not a commit log")));
            }
        };
        if is_log && !self.bounds.are_default() {
            return Err(Failure::usage("a commit log is not run: it has no bounds and no clock"));
        }
        let source = Source::read(graph, self.limits.limits())?;
        let loaded = load_or_report(&source, env, Format::Human, streams)?;
        let signals = signals(&loaded.plan, &self.edges)?;
        let file = output_file(graph, self.output.as_ref())?;
        let (plot, code) = if is_log {
            let read = values::read_log(&self.file, &loaded.plan, signals)?;
            if !read.is_complete {
                // A note that cannot be written changes nothing about the plot.
                let _written = writeln!(
                    streams.err,
                    "clockjack: '{}' ends within an entry; the plot shows the part before it",
                    shown(&self.file)
                );
            }
            (read.plot, exit_code::OK)
        } else {
            self.run_graph(loaded, signals, env, streams)?
        };
        let to_file = self.output.as_ref();
        let is_svg = to_file.is_some_and(|path| path.extension().is_some_and(|one| one == "svg"));
        let text = match self.format {
            Some(PlotFormat::Svg) => svg::draw(&plot),
            None if is_svg => svg::draw(&plot),
            _ => {
                let is_file = to_file.is_some();
                let style = style(env.color, streams, is_file);
                let columns = self.width.map_or(style.columns, usize::from);
                let is_painted = style.is_painted && !is_file;
                text::draw(&plot, Style { columns, is_painted, ..style })
            }
        };
        write_to(file.as_ref(), streams, text)?;
        exit_with(code)
    }

    /// Runs the graph; returns the exit code of the run, too.
    fn run_graph(
        &self,
        loaded: Loaded,
        signals: Vec<Signal>,
        env: Env<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(Plot, u8), Failure> {
        let plan = loaded.plan.clone();
        let values = RunValues::new(&plan, signals);
        let mut settings: RunSettings = self.bounds.settings();
        settings.commit_log =
            log_writers(&plan, settings.clock, None, Some(&values), &LastFlush::default())?;
        let mode = ProgressMode::Auto;
        let result = run_with_progress(loaded, env.registry, &settings, mode, streams)?;
        if let Some(error) = &result.error {
            // If standard error cannot be written, the exit code still reports the failure.
            let _written = writeln!(streams.err, "clockjack: the run failed: {error}");
        }
        let end_ns = result.report.as_ref().map_or(0, |report| report.elapsed_ns);
        let code = summary::exit_code(&result, summary::Demands::default());
        Ok((values.plot(&plan.name, end_ns), code))
    }
}

/// What to plot: these edges, or those at the boundary.
pub(super) fn signals(plan: &Plan, names: &[String]) -> Result<Vec<Signal>, Failure> {
    if names.is_empty() {
        return Ok(signal::at_boundary(plan));
    }
    signal::choose(plan, names).map_err(Failure::usage)
}

/// How a plot is drawn for the reader of standard output, or for a file.
pub(super) fn style(color: ColorMode, streams: &Streams<'_>, is_file: bool) -> Style {
    let terminal = streams.out_columns.filter(|_| !is_file);
    Style {
        columns: terminal.unwrap_or(text::COLUMNS_DEFAULT),
        charset: if streams.out_is_utf8 { Charset::Unicode } else { Charset::Ascii },
        is_painted: color.paints_out(streams),
    }
}
