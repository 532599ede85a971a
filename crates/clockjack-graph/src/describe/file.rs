//! Graph files: from bytes to a description, or to everything that is wrong with them.

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
    limits::Limits,
    reader::Reader,
    spec::{GraphSpec, Source, Span},
    tree,
};
use crate::{
    compile,
    diagnostic::{Code, Diagnostic, Diagnostics},
    registry::Registry,
};

/// A graph file that could be read. Whether the graph can run is not known before it is compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphFile {
    spec: GraphSpec,
}

impl GraphFile {
    /// Reads a file, within [`Limits::DEFAULT`].
    ///
    /// # Errors
    ///
    /// [`ReadError`], if the file cannot be read or is no graph file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::read_with(path, &Limits::DEFAULT)
    }

    /// Reads a file. No more than the limit is read, however long the file is.
    ///
    /// # Errors
    ///
    /// [`ReadError`], if the file cannot be read or is no graph file.
    pub fn read_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        let bytes = read_up_to(path, limits.text_bytes())
            .map_err(|error| ReadError::Io { path: name.clone().into_owned(), error })?;
        Self::parse_bytes(&name, &bytes, limits).map_err(ReadError::Invalid)
    }

    /// Takes a text, within [`Limits::DEFAULT`]. `name` is what it is called in reports.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all faults of the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::parse_with(name, text, &Limits::DEFAULT)
    }

    /// Takes a text.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all faults of the text.
    pub fn parse_with(name: &str, text: &str, limits: &Limits) -> Result<Self, Diagnostics> {
        Self::parse_bytes(name, text.as_bytes(), limits)
    }

    /// Takes bytes that should be a text.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`]: all faults of the text.
    pub fn parse_bytes(name: &str, bytes: &[u8], limits: &Limits) -> Result<Self, Diagnostics> {
        let loaded = load(name, bytes, limits);
        if loaded.diagnostics.n_errors() == 0 {
            Ok(Self { spec: loaded.spec })
        } else {
            Err(loaded.diagnostics)
        }
    }

    /// Everything that is wrong with bytes that should be a graph file, and all advice: what
    /// [`parse_bytes`](Self::parse_bytes) tells, and what compiling tells of what could be read.
    #[must_use]
    pub fn examine(name: &str, bytes: &[u8], limits: &Limits, registry: &Registry) -> Diagnostics {
        let Loaded { spec, mut diagnostics, is_whole } = load(name, bytes, limits);
        if is_whole {
            diagnostics.list.extend(compile::check(&spec, registry).1.list);
            diagnostics.list.sort_by_key(|one| (one.span.start, one.span.end, one.code));
        }
        diagnostics
    }

    /// What it describes.
    #[must_use]
    pub fn spec(&self) -> &GraphSpec {
        &self.spec
    }

    /// What it describes.
    #[must_use]
    pub fn into_spec(self) -> GraphSpec {
        self.spec
    }
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    /// What could be read of it.
    pub(crate) spec: GraphSpec,
    /// All its faults, in the order of the text.
    pub(crate) diagnostics: Diagnostics,
    /// Whether every item of the text is in the description, if with other values. Then it can be
    /// compiled for what else may be wrong; else much would seem to be missing.
    pub(crate) is_whole: bool,
}

/// Reads whatever can be read.
pub(crate) fn load(name: &str, bytes: &[u8], limits: &Limits) -> Loaded {
    let (text, fault) = text_of(bytes, limits);
    let source = Arc::new(Source { name: name.into(), text: text.into_owned() });
    let mut faults = Vec::from_iter(fault);
    let mut spec = GraphSpec::default();
    let mut is_whole = false;
    let mut n_untold = 0;
    if faults.is_empty()
        && let Some(tree) = tree::parse(&source.text, limits, &mut faults)
    {
        let mut reader = Reader::new(&tree, limits);
        spec = decode::root(&mut reader, tree.root());
        is_whole = faults.is_empty() && !reader.has_gaps;
        let (more, untold) = reader.into_faults();
        faults.extend(more);
        n_untold = untold;
    }
    spec.source = Some(Arc::clone(&source));
    faults.sort_by_key(|fault| (fault.span.start, fault.span.end, fault.code));
    n_untold += faults.len().saturating_sub(limits.diagnostics);
    if n_untold > 0 {
        faults.truncate(limits.diagnostics);
        let message = format!("{n_untold} more faults are not told");
        faults.push(Diagnostic::new(Code::LimitExceeded, "", message));
        is_whole = false;
    }
    Loaded { spec, diagnostics: Diagnostics { source: Some(source), list: faults }, is_whole }
}

/// The bytes as a text, or as much of them as is one and why it is no more.
fn text_of<'b>(bytes: &'b [u8], limits: &Limits) -> (Cow<'b, str>, Option<Diagnostic>) {
    let max = limits.text_bytes();
    if bytes.len() > max {
        let text = String::from_utf8_lossy(&bytes[..max]);
        let message = format!("the text is longer than {max} bytes");
        let fault = Diagnostic::new(Code::LimitExceeded, "", message).at(last_of(&text));
        return (text, Some(fault));
    }
    match core::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(error) => {
            let (good, bad) = bytes.split_at(error.valid_up_to());
            // The sign for what cannot be shown stands where the first wrong byte is.
            let mut text = String::from_utf8_lossy(good).into_owned();
            text.push(char::REPLACEMENT_CHARACTER);
            let message = format!("byte {} is {:#04x}, which is not UTF-8", good.len(), bad[0]);
            let fault = Diagnostic::new(Code::InvalidEncoding, "", message).at(last_of(&text));
            (Cow::Owned(text), Some(fault))
        }
    }
}

/// The last character of a text.
fn last_of(text: &str) -> Span {
    let len = text.chars().next_back().map_or(0, char::len_utf8);
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    Span { start: end - u32::try_from(len).unwrap_or(0), end }
}

/// The bytes of a file; one more than `max` if there are more.
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
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// It is no graph file.
    Invalid(Diagnostics),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{path} cannot be read: {error}"),
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
