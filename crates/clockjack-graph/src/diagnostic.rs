//! Diagnostics: errors, warnings and advice about a graph, each with its location in the text.

mod code;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod json;
mod render;
mod sarif;

use std::sync::Arc;

use crate::{
    describe::{SourceText, Span},
    setters::setters,
};
pub use code::{Category, Code, Severity};
pub use render::{Paint, Renderer};

/// A diagnostic.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The kind of problem.
    pub code: Code,
    /// How severe the problem is.
    pub severity: Severity,
    /// The message: one sentence in lower case that includes the values.
    pub message: String,
    /// The location in the graph, for example `components.x` or `edges.y.policy.capacity`.
    pub path: String,
    /// The location in the text.
    pub span: Span,
    /// Related locations in the text, each with a note.
    pub related: Vec<(Span, String)>,
    /// The components that are involved.
    pub components: Vec<String>,
    /// The edges that are involved.
    pub edges: Vec<String>,
    /// A suggestion for the user.
    pub help: Option<String>,
    /// A replacement for the text, if it is certain.
    pub fix: Option<Fix>,
}

/// A change of the text that fixes the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The part of the text to replace.
    pub span: Span,
    /// The replacement.
    pub replacement: String,
}

impl Diagnostic {
    /// Creates a diagnostic with the severity of its code.
    #[must_use]
    pub fn new(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            path: path.into(),
            span: Span::NONE,
            related: Vec::new(),
            components: Vec::new(),
            edges: Vec::new(),
            help: None,
            fix: None,
        }
    }

    setters! {
        /// Sets the location in the text.
        at(span: Span): |found| found.span = span;
        /// Adds a related location.
        related_at(span: Span, note: impl Into<String>): |found| {
            if !span.is_none() {
                found.related.push((span, note.into()));
            }
        };
        /// Adds a component that is involved.
        component(id: impl Into<String>): |found| found.components.push(id.into());
        /// Adds an edge that is involved.
        edge(id: impl Into<String>): |found| found.edges.push(id.into());
        /// Sets the suggestion for the user.
        help(help: impl Into<String>): |found| found.help = Some(help.into());
        /// Sets the replacement text.
        fix(span: Span, replacement: impl Into<String>): |found| {
            if !span.is_none() {
                found.fix = Some(Fix { span, replacement: replacement.into() });
            }
        };
    }

    /// Whether this diagnostic prevents the graph from running.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// All diagnostics of a graph, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// The text that the spans refer to.
    pub source: Option<Arc<SourceText>>,
    /// The diagnostics.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// The number of errors. A graph with errors cannot run.
    #[must_use]
    pub fn n_errors(&self) -> usize {
        self.list.iter().filter(|one| one.is_error()).count()
    }
}

impl core::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut errors = self.list.iter().filter(|one| one.is_error());
        match (errors.next(), errors.count()) {
            (None, _) => write!(f, "the graph has no errors"),
            (Some(first), 0) => write!(f, "{}: {}", first.path, first.message),
            (Some(first), more) => {
                write!(f, "{}: {} (and {more} more errors)", first.path, first.message)
            }
        }
    }
}

impl core::error::Error for Diagnostics {}
