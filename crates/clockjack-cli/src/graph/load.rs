//! From a file to a plan. A file that cannot be read is a wrong argument; a graph that is not valid
//! is told in full, in the form in which the command would have told its result.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clockjack_graph::Registry;
use clockjack_graph::compile::{self, Plan};
use clockjack_graph::describe::{GraphFile, Limits};
use clockjack_graph::diagnostic::{Diagnostics, Renderer};

use crate::exit_code;
use crate::failure::Failure;
use crate::streams::Streams;

/// What stands for standard input among the arguments.
const STDIN: &str = "-";
/// No graph file is longer, whatever the limits say.
const BYTES_MAX: usize = 1 << 30;

/// How the faults of a graph are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// As text, beside the result that there is not.
    Text,
    /// As one object, in its place.
    Json,
    /// As one object a finding, in its place.
    Ndjson,
}

/// The bytes of a graph file. They are read once: a pipe gives them no second time.
#[derive(Debug)]
pub(crate) struct Source {
    /// What reports call it.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    limits: Limits,
}

/// A graph that can run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: GraphFile,
    pub(crate) plan: Plan,
}

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

impl Source {
    /// Reads a file, or standard input. No more than the limit is read, however long it is.
    pub(crate) fn read(path: &Path, limits: Limits) -> Result<Self, Failure> {
        // One more than may be: the loader tells that it is too much.
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

    /// The description in it, or all faults of its form.
    pub(crate) fn parse(&self) -> Result<GraphFile, Diagnostics> {
        GraphFile::parse_bytes(&self.name, &self.bytes, &self.limits)
    }

    /// All findings, and the graph if none of them is an error.
    pub(crate) fn load(&self, registry: &Registry) -> (Option<Loaded>, Diagnostics) {
        let Ok(file) = self.parse() else {
            // What compiling tells of what could be read is told, too.
            let all = GraphFile::examine(&self.name, &self.bytes, &self.limits, registry);
            return (None, all);
        };
        let (plan, diagnostics) = compile::check(file.spec(), registry);
        (plan.map(|plan| Loaded { file, plan }), diagnostics)
    }
}

/// Tells the faults of a graph. Gives the failure that is left.
pub(crate) fn tell(
    diagnostics: &Diagnostics,
    renderer: Renderer,
    told: Told,
    streams: &mut Streams<'_>,
) -> Failure {
    let (stream, text) = match told {
        Told::Text => (&mut *streams.err, renderer.render(diagnostics)),
        Told::Json => (&mut *streams.out, format!("{}\n", diagnostics.to_json())),
        Told::Ndjson => (&mut *streams.out, diagnostics.to_ndjson()),
    };
    // Where it cannot be said, the exit code says it.
    let _said = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    Failure::told(exit_code::INVALID_GRAPH)
}
