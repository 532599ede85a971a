//! What is wrong with a graph, or may be: raised where it is found, with its place in the text.

pub mod code;
pub mod explain;
pub mod json;
pub mod render;
mod sarif;

use std::sync::Arc;

use crate::describe::{Source, Span};
pub use code::{Category, Code, Severity};
pub use render::{Paint, Renderer};

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// What kind of finding it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence, lower case, with the values.
    pub message: String,
    /// Where in the graph: `components.x`, `edges.y.policy.capacity`.
    pub path: String,
    /// Where in the text.
    pub span: Span,
    /// Other places that belong to it, with a word on each.
    pub also: Vec<(Span, String)>,
    /// The components that it is about.
    pub components: Vec<String>,
    /// The edges that it is about.
    pub edges: Vec<String>,
    /// What to do.
    pub help: Option<String>,
    /// What to write instead, if that is certain.
    pub fix: Option<Fix>,
}

/// A change of the text that removes the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub replacement: String,
}

impl Diagnostic {
    /// A finding with the severity of its code.
    #[must_use]
    pub fn new(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            path: path.into(),
            span: Span::NONE,
            also: Vec::new(),
            components: Vec::new(),
            edges: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// Where it stands in the text.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Another place that belongs to it.
    #[must_use]
    pub fn and_at(mut self, span: Span, note: impl Into<String>) -> Self {
        if !span.is_none() {
            self.also.push((span, note.into()));
        }
        self
    }

    /// A component that it is about.
    #[must_use]
    pub fn component(mut self, id: impl Into<String>) -> Self {
        self.components.push(id.into());
        self
    }

    /// An edge that it is about.
    #[must_use]
    pub fn edge(mut self, id: impl Into<String>) -> Self {
        self.edges.push(id.into());
        self
    }

    /// What to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What to write instead.
    #[must_use]
    pub fn fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        if !span.is_none() {
            self.fix = Some(Fix { span, replacement: replacement.into() });
        }
        self
    }

    /// Whether the graph cannot run because of it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// All findings about a graph, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// The text that the spans are of.
    pub source: Option<Arc<Source>>,
    /// The findings.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// How many of them keep the graph from running.
    #[must_use]
    pub fn n_errors(&self) -> usize {
        self.list.iter().filter(|one| one.is_error()).count()
    }
}

impl core::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut errors = self.list.iter().filter(|one| one.is_error());
        match (errors.next(), errors.count()) {
            (None, _) => write!(f, "the graph has no faults"),
            (Some(first), 0) => write!(f, "{}: {}", first.path, first.message),
            (Some(first), more) => {
                write!(f, "{}: {} (and {more} more faults)", first.path, first.message)
            }
        }
    }
}

impl core::error::Error for Diagnostics {}
