//! Reads a graph file and compiles it. An unreadable file is an argument error. For an invalid
//! graph, every error is reported in the output format of the command.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use clockjack_graph::{
    Registry,
    compile::{self, Plan},
    describe::{FileLimits, GraphFile},
    diagnostic::{Diagnostics, Renderer},
};

use crate::{exit_code, failure::Failure, format::Format, streams::Streams};

/// The argument that means standard input.
const STDIN: &str = "-";
/// The maximum size of a graph file, whatever the limits are.
const BYTES_MAX: usize = 1 << 30;

/// The bytes of a graph file. They are read once, because a pipe cannot be read twice.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name of the source in reports.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    limits: FileLimits,
}

/// A graph that can run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: GraphFile,
    pub(crate) plan: Plan,
}

/// Whether a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

impl Source {
    /// Reads a file or standard input, up to the limit.
    pub(crate) fn read(path: &Path, limits: FileLimits) -> Result<Self, Failure> {
        // One byte more than the limit, so that the loader detects a file that is too large.
        let most = limits.text_bytes.min(BYTES_MAX) as u64 + 1;
        let mut bytes = Vec::new();
        let mut read_all = |from: &mut dyn Read| from.take(most).read_to_end(&mut bytes);
        let (name, read) = if is_stdin(path) {
            (String::from("<stdin>"), read_all(&mut io::stdin().lock()))
        } else {
            let read = File::open(path).and_then(|mut file| read_all(&mut file));
            (path.display().to_string(), read)
        };
        read.map_err(|error| Failure::graph_input(path, error))?;
        Ok(Self { name, bytes, limits })
    }

    /// Parses the graph file, or returns all errors of its structure.
    pub(crate) fn parse(&self) -> Result<GraphFile, Diagnostics> {
        GraphFile::parse_bytes(&self.name, &self.bytes, &self.limits)
    }

    /// All findings, and the graph if none of the findings is an error.
    pub(crate) fn load(&self, registry: &Registry) -> (Option<Loaded>, Diagnostics) {
        let Ok(file) = self.parse() else {
            // Also report what the compiler finds in the part that could be parsed.
            let all = GraphFile::examine(&self.name, &self.bytes, &self.limits, registry);
            return (None, all);
        };
        let (plan, diagnostics) = compile::check(file.spec(), registry);
        (plan.map(|plan| Loaded { file, plan }), diagnostics)
    }
}

/// Reports the diagnostics of a graph: text on standard error, or JSON on standard output in place
/// of the result. Returns the failure with the exit code.
pub(crate) fn report(
    diagnostics: &Diagnostics,
    renderer: Renderer,
    format: Format,
    streams: &mut Streams<'_>,
) -> Failure {
    let (stream, text) = match format {
        Format::Human => (&mut *streams.err, renderer.render(diagnostics)),
        Format::Json => (&mut *streams.out, format!("{}\n", diagnostics.to_json())),
        Format::Ndjson => (&mut *streams.out, diagnostics.to_ndjson()),
    };
    // If the stream cannot be written, the exit code still reports the failure.
    let _written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    Failure::already_reported(exit_code::INVALID_GRAPH)
}
