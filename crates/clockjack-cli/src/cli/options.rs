//! Options that several commands share: the graph file, forms of output, colour, progress, limits.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clockjack_graph::describe::Limits;
use clockjack_graph::diagnostic::{Paint, Renderer};

use super::Streams;
use super::graph::Surroundings;
use crate::failure::Failure;
use crate::graph::load::{self, Loaded, Source, Told};
use crate::progress::{Progress, Style};

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Human,
    /// One line with one object.
    Json,
    /// One object a line, as soon as it is known.
    Ndjson,
}

impl Format {
    /// How faults of a graph are told by a command that has something else to print.
    pub(super) const fn told(self) -> Told {
        match self {
            Self::Human => Told::Text,
            Self::Json => Told::Json,
            Self::Ndjson => Told::Ndjson,
        }
    }
}

/// Whether to use colours.
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
    /// How findings are shown on the result's stream.
    pub(crate) fn on_out(self, streams: &Streams<'_>) -> Renderer {
        self.renderer(streams.out_is_terminal, streams)
    }

    /// How findings are shown on the stream of messages.
    pub(crate) fn on_err(self, streams: &Streams<'_>) -> Renderer {
        self.renderer(streams.err_is_terminal, streams)
    }

    fn renderer(self, is_terminal: bool, streams: &Streams<'_>) -> Renderer {
        let is_painted = match self {
            Self::Auto => is_terminal && !streams.no_color,
            Self::Always => true,
            Self::Never => false,
        };
        let paint = if is_painted { Paint::Colour } else { Paint::Plain };
        Renderer { paint, ..Renderer::DEFAULT }
    }
}

/// Whether to draw a progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressMode {
    /// A bar on a terminal, nothing elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// Numbers.
    Counter,
    /// Nothing.
    None,
}

impl ProgressMode {
    /// How progress is drawn, if at all.
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
        match self.style(streams) {
            Some(style) => Progress::on(&mut *streams.err, style),
            None => Progress::silent(),
        }
    }
}

/// The graph file of a command.
#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// The file; `-` is standard input.
    // Not below the heading of options that stand before it.
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

    /// Reads and compiles it, or tells why there is no plan.
    pub(super) fn load(
        &self,
        of: Surroundings<'_>,
        told: Told,
        streams: &mut Streams<'_>,
    ) -> Result<Loaded, Failure> {
        load_or_tell(&self.read()?, of, told, streams)
    }
}

/// Compiles what was read, or tells why there is no plan.
pub(super) fn load_or_tell(
    source: &Source,
    of: Surroundings<'_>,
    told: Told,
    streams: &mut Streams<'_>,
) -> Result<Loaded, Failure> {
    let (loaded, diagnostics) = source.load(of.registry);
    loaded.ok_or_else(|| load::tell(&diagnostics, of.color.on_err(streams), told, streams))
}

/// How much of anything a graph file may hold. What is larger is refused before it is read.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits of graph files")]
pub(super) struct LimitArgs {
    /// Bytes of the file.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.text_bytes)]
    max_graph_input_bytes: usize,

    /// Lanes.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.lanes)]
    max_lanes: usize,

    /// Components, with those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.components)]
    max_components: usize,

    /// Edges, with those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.edges)]
    max_edges: usize,

    /// Loops, with those of subgraphs and templates.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.loops)]
    max_composite_loops: usize,

    /// Bytes of an id.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.identifier_bytes)]
    max_identifier_bytes: usize,

    /// Lists and maps inside each other in `config`.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.config_depth)]
    max_config_depth: usize,

    /// Bytes of a value in `config`.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.config_value_bytes)]
    max_config_value_bytes: usize,

    /// Bytes of any other text.
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.string_bytes)]
    max_string_bytes: usize,
}

impl LimitArgs {
    pub(super) const fn limits(&self) -> Limits {
        Limits {
            text_bytes: self.max_graph_input_bytes,
            lanes: self.max_lanes,
            components: self.max_components,
            edges: self.max_edges,
            loops: self.max_composite_loops,
            identifier_bytes: self.max_identifier_bytes,
            config_depth: self.max_config_depth,
            config_value_bytes: self.max_config_value_bytes,
            string_bytes: self.max_string_bytes,
            ..Limits::DEFAULT
        }
    }
}
