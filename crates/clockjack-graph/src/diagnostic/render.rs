//! Diagnostics as text for a terminal: one report that shows, per diagnostic, the source lines with
//! carets, the help and the suggested replacement. Control characters of the file are escaped, so
//! that a file cannot send commands to the terminal.

pub(crate) mod lines;

use core::fmt::Write as _;
use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Snippet};

use super::{Diagnostic, Diagnostics, Severity};
use crate::describe::{SourceText, Span};
use annotate_snippets as annotate;
use lines::Lines;

/// Whether a text has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Plain text.
    #[default]
    Plain,
    /// ANSI colours, for a terminal.
    Colour,
}

/// How diagnostics are rendered as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renderer {
    /// With or without colours.
    pub paint: Paint,
    /// The width of the terminal; longer lines of the file are truncated.
    pub columns: usize,
}

impl Renderer {
    /// Without colours, 100 columns wide.
    pub const DEFAULT: Self = Self { paint: Paint::Plain, columns: 100 };

    /// The longest line that is shown. Of a longer line, which no person wrote, only the position
    /// is shown.
    const LINE_LEN_MAX: usize = 4096;
    /// How many lines apart two locations may be to be shown in one snippet.
    const LINES_APART_MAX: usize = 12;

    /// Renders all diagnostics, followed by the number of diagnostics per severity.
    #[must_use]
    pub fn render(&self, diagnostics: &Diagnostics) -> String {
        let text = diagnostics.source.as_deref().map(|source| (source, Lines::new(&source.text)));
        let mut out = String::new();
        for one in &diagnostics.list {
            self.push_one(&mut out, one, text.as_ref());
        }
        let name = diagnostics.source.as_deref().map(|source| source.name.as_str());
        push_counts(&mut out, &diagnostics.list, name);
        out
    }

    fn push_one(
        &self,
        out: &mut String,
        one: &Diagnostic,
        text: Option<&(&SourceText, Lines<'_>)>,
    ) {
        let mut group = level(one.severity)
            .primary_title(escaped(&one.message).into_owned())
            .id(one.code.name())
            .elements(text.map_or_else(Vec::new, |(source, lines)| snippets(one, source, lines)));
        if !one.path.is_empty() {
            group = group.element(Level::NOTE.with_name("at").message(escaped(&one.path)));
        }
        if let Some(help) = &one.help {
            group = group.element(Level::HELP.message(escaped(help)));
        }
        let mut report = vec![group];
        if let (Some(fix), Some((source, lines))) = (&one.fix, text) {
            report.extend(suggestion(fix, source, lines));
        }
        let renderer = match self.paint {
            Paint::Plain => annotate::Renderer::plain(),
            Paint::Colour => annotate::Renderer::styled(),
        };
        out.push_str(&renderer.term_width(self.columns.max(40)).render(&report));
        out.push_str("\n\n");
    }
}

impl Default for Renderer {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Diagnostics {
    /// Renders all diagnostics as text without colours.
    #[must_use]
    pub fn to_text(&self) -> String {
        Renderer::DEFAULT.render(self)
    }
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
        Severity::Advisory => Level::NOTE.with_name("advisory"),
    }
}

/// Escapes the control characters of a text.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if letter.is_control() {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// The source lines of a diagnostic: one snippet for nearby locations, and one snippet per distant
/// location.
fn snippets<'a>(
    one: &'a Diagnostic,
    source: &'a SourceText,
    lines: &Lines<'a>,
) -> Vec<annotate::Element<'a>> {
    if one.span.is_none() {
        return vec![Origin::path(escaped(&source.name)).into()];
    }
    let main = lines.range(one.span);
    let (near, far): (Vec<_>, Vec<_>) = one.related.iter().partition(|(span, _)| {
        let apart = lines.line_of(lines.range(*span).0).abs_diff(lines.line_of(main.0));
        apart <= Renderer::LINES_APART_MAX
    });
    let near = near.into_iter().map(|(span, note)| (lines.range(*span), note.as_str())).collect();
    let mut out = vec![snippet(source, lines, Some(main), near)];
    for (span, note) in far {
        out.push(snippet(source, lines, None, vec![(lines.range(*span), note.as_str())]));
    }
    out
}

type Range = (usize, usize);

fn snippet<'a>(
    source: &'a SourceText,
    lines: &Lines<'a>,
    main: Option<Range>,
    notes: Vec<(Range, &'a str)>,
) -> annotate::Element<'a> {
    let ranges = || main.iter().chain(notes.iter().map(|(range, _)| range));
    // A span of many lines would hide the label, so only its first line is marked.
    let first_line = |(start, end): Range| {
        let stop = source.text[start..end].find('\n').map_or(end, |at| start + at);
        (start, stop)
    };
    let low = ranges().map(|range| range.0).min().unwrap_or(0);
    let high = ranges().map(|range| first_line(*range).1).max().unwrap_or(low);
    let (start, end, first) = lines.around(low, high, 0);
    let text = &source.text[start..end];
    if text.lines().any(|line| line.len() > Renderer::LINE_LEN_MAX) {
        let place =
            lines.line_column(main.or(notes.first().map(|(range, _)| *range)).map_or(0, |r| r.0));
        let origin = Origin::path(escaped(&source.name));
        return origin.line(place.line).char_column(place.column).into();
    }
    let within = |range: Range| {
        let (from, to) = first_line(range);
        from - start..to - start
    };
    let mut snippet = Snippet::source(text).path(escaped(&source.name)).line_start(first);
    if let Some(main) = main {
        snippet = snippet.annotation(AnnotationKind::Primary.span(within(main)));
    }
    for (range, note) in notes {
        let context = AnnotationKind::Context.span(within(range));
        snippet = snippet.annotation(context.label(escaped(note)));
    }
    snippet.into()
}

/// The text after the suggested change, unless it is too long to read.
fn suggestion<'a>(
    fix: &'a super::Fix,
    source: &'a SourceText,
    lines: &Lines<'a>,
) -> Option<Group<'a>> {
    let (from, to) = lines.range(fix.span);
    let (start, end, first) = lines.around(from, to, 0);
    let text = &source.text[start..end];
    if text.len() > Renderer::LINE_LEN_MAX {
        return None;
    }
    let patch = Patch::new(from - start..to - start, escaped(&fix.replacement));
    let snippet = Snippet::source(text).line_start(first).patch(patch);
    Some(Level::HELP.secondary_title("write instead").element(snippet))
}

/// Appends a summary such as `2 errors, 1 warning in cell.yaml`; nothing without diagnostics.
fn push_counts(out: &mut String, list: &[Diagnostic], name: Option<&str>) {
    let mut parts = Vec::new();
    for severity in Severity::ALL {
        let n = list.iter().filter(|one| one.severity == *severity).count();
        let (one, many) = match severity {
            Severity::Error => ("error", "errors"),
            Severity::Warning => ("warning", "warnings"),
            Severity::Info => ("note", "notes"),
            Severity::Advisory => ("advisory", "advisories"),
        };
        if n > 0 {
            parts.push(format!("{n} {}", if n == 1 { one } else { many }));
        }
    }
    if parts.is_empty() {
        return;
    }
    out.push_str(&parts.join(", "));
    if let Some(name) = name {
        let written = write!(out, " in {}", escaped(name));
        written.expect("writing to a string cannot fail");
    }
    out.push('\n');
}

/// The line and column of both ends of a span, for the other output formats.
pub(crate) fn line_column(
    lines: &Lines<'_>,
    span: Span,
) -> Option<(lines::LineColumn, lines::LineColumn)> {
    if span.is_none() {
        return None;
    }
    let (start, end) = lines.range(span);
    Some((lines.line_column(start), lines.line_column(end)))
}

#[cfg(test)]
mod tests;
