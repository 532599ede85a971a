//! Diagnostics: errors, warnings and advice about a graph, each with its location in the text.

mod code;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod json;
mod render;
mod sarif;

use std::sync::Arc;

use crate::describe::{SourceText, Span};
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

    /// Sets the location in the text.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Adds a related location.
    #[must_use]
    pub fn related_at(mut self, span: Span, note: impl Into<String>) -> Self {
        if !span.is_none() {
            self.related.push((span, note.into()));
        }
        self
    }

    /// Adds a component that is involved.
    #[must_use]
    pub fn component(mut self, id: impl Into<String>) -> Self {
        self.components.push(id.into());
        self
    }

    /// Adds an edge that is involved.
    #[must_use]
    pub fn edge(mut self, id: impl Into<String>) -> Self {
        self.edges.push(id.into());
        self
    }

    /// Sets the suggestion for the user.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the replacement text.
    #[must_use]
    pub fn fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        if !span.is_none() {
            self.fix = Some(Fix { span, replacement: replacement.into() });
        }
        self
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
