//! Graph files: reads bytes into a description, or reports all errors.

use core::fmt;
use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use super::{
    decode,
    limits::FileLimits,
    reader::Reader,
    spec::{GraphSpec, SourceText, Span},
    tree,
};
use crate::{
    compile,
    diagnostic::{Code, Diagnostic, Diagnostics},
    registry::Registry,
};

/// A graph file that was read without errors. Compiling it decides whether the graph can run.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphFile {
    spec: GraphSpec,
}

impl GraphFile {
    /// Reads a file within [`FileLimits::DEFAULT`].
    ///
    /// # Errors
    ///
    /// [`ReadError`], if the file cannot be read or is not a graph file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::read_with(path, &FileLimits::DEFAULT)
    }

    /// Reads a file. Reads at most as many bytes as the limit allows, however long the file is.
    ///
    /// # Errors
    ///
    /// [`ReadError`], if the file cannot be read or is not a graph file.
    pub fn read_with(path: impl AsRef<Path>, limits: &FileLimits) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        let bytes = read_up_to(path, limits.text_bytes())
            .map_err(|error| ReadError::Io { path: name.clone().into_owned(), error })?;
        Self::parse_bytes(&name, &bytes, limits).map_err(ReadError::Invalid)
    }

    /// Parses a text within [`FileLimits::DEFAULT`]. Reports refer to the text by `name`.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all errors of the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::parse_with(name, text, &FileLimits::DEFAULT)
    }

    /// Parses a text.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all errors of the text.
    pub fn parse_with(name: &str, text: &str, limits: &FileLimits) -> Result<Self, Diagnostics> {
        Self::parse_bytes(name, text.as_bytes(), limits)
    }

    /// Parses the bytes of a text.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all errors of the text.
    pub fn parse_bytes(name: &str, bytes: &[u8], limits: &FileLimits) -> Result<Self, Diagnostics> {
        let loaded = load(name, bytes, limits);
        if loaded.diagnostics.n_errors() == 0 {
            Ok(Self { spec: loaded.spec })
        } else {
            Err(loaded.diagnostics)
        }
    }

    /// Reports all errors and advice about a graph file: those of
    /// [`parse_bytes`](Self::parse_bytes), and those of compiling as much as could be read.
    #[must_use]
    pub fn examine(
        name: &str,
        bytes: &[u8],
        limits: &FileLimits,
        registry: &Registry,
    ) -> Diagnostics {
        let Loaded { spec, mut diagnostics, is_complete } = load(name, bytes, limits);
        if is_complete {
            let mut found = compile::check(&spec, registry).1.list;
            let errors = diagnostics.list.iter().filter(|one| one.is_error());
            let paths: Vec<&str> = errors.map(|one| one.path.as_str()).collect();
            // A role that could not be read is the default role, which is not an error of its own.
            // Neither is the empty value of a field that is missing or of the wrong type, and an
            // empty name in the text is reported already.
            found.retain(|one| match one.code {
                Code::MissingBoundary => paths.is_empty(),
                Code::InvalidIdentifier if one.path == "graph.name" => {
                    !paths.contains(&"graph.name")
                        && !is_unread(&diagnostics, "", "graph")
                        && !is_unread(&diagnostics, "graph", "name")
                }
                Code::GraphValidationError if ["lanes", "components"].contains(&&*one.path) => {
                    !is_unread(&diagnostics, "", &one.path)
                }
                Code::BoundaryRoleMismatch => !paths
                    .iter()
                    .any(|path| path.contains("boundary") && one.path.starts_with(path)),
                _ => true,
            });
            diagnostics.list.extend(found);
            diagnostics.list.sort_by_key(|one| (one.span.start, one.span.end, one.code));
        }
        diagnostics
    }

    /// The description of the graph.
    #[doc(hidden)]
    #[must_use]
    pub fn spec(&self) -> &GraphSpec {
        &self.spec
    }

    /// The description of the graph.
    #[must_use]
    pub fn into_spec(self) -> GraphSpec {
        self.spec
    }
}

/// Whether this field of a map is missing, or it or the map is of the wrong type.
fn is_unread(diagnostics: &Diagnostics, map: &str, field: &str) -> bool {
    let missing = format!("`{field}`");
    let path = if map.is_empty() { field.to_owned() } else { format!("{map}.{field}") };
    diagnostics.list.iter().any(|one| match one.code {
        Code::MissingField => one.path == map && one.message.contains(&missing),
        Code::WrongType => one.path == map || one.path == path,
        _ => false,
    })
}

/// The result of reading a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    /// The part of the description that could be read.
    pub(crate) spec: GraphSpec,
    /// All errors, in the order of the text.
    pub(crate) diagnostics: Diagnostics,
    /// Whether every item of the text is in the description, possibly with other values. Only a
    /// complete description is worth compiling for further errors; otherwise many items would seem
    /// to be missing.
    pub(crate) is_complete: bool,
}

/// Reads as much as can be read.
pub(crate) fn load(name: &str, bytes: &[u8], limits: &FileLimits) -> Loaded {
    let (text, diagnostic) = text_of(bytes, limits);
    let source = Arc::new(SourceText { name: name.into(), text: text.into_owned() });
    let mut diagnostics = Vec::from_iter(diagnostic);
    let mut spec = GraphSpec::default();
    let mut is_complete = false;
    let mut n_suppressed = 0;
    if diagnostics.is_empty()
        && let Some(tree) = tree::parse(&source.text, limits, &mut diagnostics)
    {
        let mut reader = Reader::new(&tree, limits);
        spec = decode::root(&mut reader, tree.root());
        is_complete = diagnostics.is_empty() && !reader.has_omissions;
        let (more, suppressed) = reader.into_diagnostics();
        diagnostics.extend(more);
        n_suppressed = suppressed;
    }
    spec.source = Some(Arc::clone(&source));
    diagnostics
        .sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end, diagnostic.code));
    n_suppressed += diagnostics.len().saturating_sub(limits.diagnostics);
    if n_suppressed > 0 {
        diagnostics.truncate(limits.diagnostics);
        let message = format!("{n_suppressed} more errors are not shown");
        diagnostics.push(Diagnostic::new(Code::LimitExceeded, "", message));
        is_complete = false;
    }
    Loaded {
        spec,
        diagnostics: Diagnostics { source: Some(source), list: diagnostics },
        is_complete,
    }
}

/// The bytes as text; after an encoding error, the valid part and the diagnostic.
fn text_of<'b>(bytes: &'b [u8], limits: &FileLimits) -> (Cow<'b, str>, Option<Diagnostic>) {
    let max = limits.text_bytes();
    if bytes.len() > max {
        let text = String::from_utf8_lossy(&bytes[..max]);
        let message = format!("the text is longer than {max} bytes");
        let diagnostic = Diagnostic::new(Code::LimitExceeded, "", message).at(last_of(&text));
        return (text, Some(diagnostic));
    }
    match core::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(error) => {
            let (good, bad) = bytes.split_at(error.valid_up_to());
            // A replacement character marks the first invalid byte.
            let mut text = String::from_utf8_lossy(good).into_owned();
            text.push(char::REPLACEMENT_CHARACTER);
            let message = format!("byte {} ({:#04x}) is not valid UTF-8", good.len(), bad[0]);
            let diagnostic = Diagnostic::new(Code::InvalidEncoding, "", message).at(last_of(&text));
            (Cow::Owned(text), Some(diagnostic))
        }
    }
}

/// The last character of a text.
fn last_of(text: &str) -> Span {
    let len = text.chars().next_back().map_or(0, char::len_utf8);
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    Span { start: end - u32::try_from(len).unwrap_or(0), end }
}

/// The bytes of a file, or `max + 1` bytes if it is longer than `max`.
fn read_up_to(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = vec![];
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why a graph file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file cannot be read. Trying again helps only if the file changes.
    Io {
        /// The path of the file.
        path: String,
        /// The reason.
        error: io::Error,
    },
    /// The file is not a valid graph file.
    Invalid(Diagnostics),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "cannot read {path}: {error}"),
            Self::Invalid(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl core::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Invalid(_) => None,
        }
    }
}
