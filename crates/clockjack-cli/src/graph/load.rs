//! From a file to a plan. A file that cannot be read is a wrong argument; a graph that is not valid
//! is told in full, in the form in which the command would have told its result.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clockjack_graph::Registry;
use clockjack_graph::compile::{self, Plan};
use clockjack_graph::describe::{GraphFile, Limits, ReadError};
use clockjack_graph::diagnostic::{Diagnostics, Renderer};

use crate::exit_code;
use crate::failure::Failure;
use crate::streams::Streams;

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

/// A graph that can run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: GraphFile,
    pub(crate) plan: Plan,
}

/// Reads and compiles a file. Gives all findings, and the graph if none of them is an error.
pub(crate) fn load(
    path: &Path,
    limits: &Limits,
    registry: &Registry,
) -> Result<(Option<Loaded>, Diagnostics), Failure> {
    let file = match GraphFile::read_with(path, limits) {
        Ok(file) => file,
        Err(ReadError::Invalid(_)) => return Ok((None, examine(path, limits, registry)?)),
        Err(ReadError::Io { error, .. }) => return Err(Failure::graph_input(path, error)),
    };
    let (plan, diagnostics) = compile::check(file.spec(), registry);
    Ok((plan.map(|plan| Loaded { file, plan }), diagnostics))
}

/// All that is wrong with a file that is not right: also what compiling tells of what could be
/// read.
fn examine(path: &Path, limits: &Limits, registry: &Registry) -> Result<Diagnostics, Failure> {
    let unread = |error| Failure::graph_input(path, error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    // One more than may be: the loader tells that it is too much.
    let most = u64::try_from(limits.text_bytes).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(unread)?;
    Ok(GraphFile::examine(&path.display().to_string(), &bytes, limits, registry))
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
