//! Options that several commands share: the graph file, output formats, colors, progress and
//! limits.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clockjack_graph::{
    describe::FileLimits,
    diagnostic::{Paint, Renderer},
};

use super::{Streams, graph::Env};
use crate::{
    failure::Failure,
    format::Format,
    graph::load::{self, Loaded, Source},
    progress::{Progress, Style},
};

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorMode {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorMode {
    /// The renderer for findings on standard output.
    pub(crate) fn on_out(self, streams: &Streams<'_>) -> Renderer {
        self.renderer(streams.out_is_terminal, streams)
    }

    /// The renderer for findings on standard error.
    pub(crate) fn on_err(self, streams: &Streams<'_>) -> Renderer {
        self.renderer(streams.err_is_terminal, streams)
    }

    /// Whether standard output has colors.
    pub(super) fn paints_out(self, streams: &Streams<'_>) -> bool {
        self.paints(streams.out_is_terminal, streams)
    }

    fn paints(self, is_terminal: bool, streams: &Streams<'_>) -> bool {
        match self {
            Self::Auto => is_terminal && !streams.no_color,
            Self::Always => true,
            Self::Never => false,
        }
    }

    fn renderer(self, is_terminal: bool, streams: &Streams<'_>) -> Renderer {
        let is_painted = self.paints(is_terminal, streams);
        let paint = if is_painted { Paint::Colour } else { Paint::Plain };
        Renderer { paint, ..Renderer::DEFAULT }
    }
}

/// When to show a progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressMode {
    /// A bar on a terminal; otherwise nothing.
    Auto,
    /// A bar.
    Bar,
    /// Numbers.
    Counter,
    /// Nothing.
    None,
}

impl ProgressMode {
    /// The style of the progress line, if there is one.
    pub(super) fn style(self, streams: &Streams<'_>) -> Option<Style> {
        match self {
            Self::Auto => streams.err_is_terminal.then_some(Style::Bar),
            Self::Bar => Some(Style::Bar),
            Self::Counter => Some(Style::Counter),
            Self::None => None,
        }
    }

    /// A progress line on standard error.
    pub(super) fn on<'s>(self, streams: &'s mut Streams<'_>) -> Progress<'s> {
        let style = self.style(streams);
        Progress::on(&mut *streams.err, style)
    }
}

/// The graph file of a command.
#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// The graph file; `-` reads standard input.
    // Without this, clap would list the file under the heading of the preceding options.
    #[arg(help_heading = None)]
    file: PathBuf,

    #[command(flatten)]
    limits: LimitArgs,
}

impl GraphArgs {
    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    pub(super) fn read(&self) -> Result<Source, Failure> {
        Source::read(&self.file, self.limits.limits())
    }

    /// Reads and compiles the file, or reports why it has no plan.
    pub(super) fn load(
        &self,
        env: Env<'_>,
        format: Format,
        streams: &mut Streams<'_>,
    ) -> Result<Loaded, Failure> {
        load_or_report(&self.read()?, env, format, streams)
    }
}

/// Compiles the source, or reports why it has no plan.
pub(super) fn load_or_report(
    source: &Source,
    env: Env<'_>,
    format: Format,
    streams: &mut Streams<'_>,
) -> Result<Loaded, Failure> {
    let (loaded, diagnostics) = source.load(env.registry);
    loaded.ok_or_else(|| load::report(&diagnostics, env.color.on_err(streams), format, streams))
}

/// Limits on the contents of a graph file. A larger file is rejected before it is parsed.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits of graph files")]
pub(super) struct LimitArgs {
    /// Maximum size of the file in bytes.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.text_bytes)]
    max_graph_input_bytes: usize,

    /// Maximum number of lanes.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.lanes)]
    max_lanes: usize,

    /// Maximum number of components, including those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.components)]
    max_components: usize,

    /// Maximum number of edges, including those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.edges)]
    max_edges: usize,

    /// Maximum number of loops, including those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.loops)]
    max_composite_loops: usize,

    /// Maximum length of an id in bytes.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.identifier_bytes)]
    max_identifier_bytes: usize,

    /// Maximum nesting depth of lists and maps in `config`.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.config_depth)]
    max_config_depth: usize,

    /// Maximum size of a value in `config` in bytes.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.config_value_bytes)]
    max_config_value_bytes: usize,

    /// Maximum length of any other string in bytes.
    #[arg(long, value_name = "N", default_value_t = FileLimits::DEFAULT.string_bytes)]
    max_string_bytes: usize,
}

impl LimitArgs {
    pub(super) const fn limits(&self) -> FileLimits {
        FileLimits {
            text_bytes: self.max_graph_input_bytes,
            lanes: self.max_lanes,
            components: self.max_components,
            edges: self.max_edges,
            loops: self.max_composite_loops,
            identifier_bytes: self.max_identifier_bytes,
            config_depth: self.max_config_depth,
            config_value_bytes: self.max_config_value_bytes,
            string_bytes: self.max_string_bytes,
            ..FileLimits::DEFAULT
        }
    }
}
