//! Findings as text for people: all of them in one report, each with the lines that it is about,
//! carets below, what helps, and what to write instead. What a file says is never taken for a
//! terminal's commands: control characters are shown, not sent.

pub(crate) mod lines;

use core::fmt::Write as _;
use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Snippet};

use super::{Diagnostic, Diagnostics, Severity};
use crate::describe::{Source, Span};
use annotate_snippets as annotate;
use lines::Lines;

/// Whether a text for people has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Nothing but text.
    #[default]
    Plain,
    /// ANSI colours, for a terminal.
    Colour,
}

/// How findings are shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renderer {
    /// With colours or without.
    pub paint: Paint,
    /// Columns of the terminal; longer lines of the file are cut.
    pub columns: usize,
}

impl Renderer {
    /// Without colours, 100 columns wide.
    pub const DEFAULT: Self = Self { paint: Paint::Plain, columns: 100 };

    /// The longest line that is shown. Only the place of a longer one is told: it is no text that
    /// a person wrote.
    const LINE_LEN_MAX: usize = 4096;
    /// How many lines away another place may be to be shown in the same picture.
    const LINES_APART_MAX: usize = 12;

    /// All findings, and how many there are of each kind.
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

    fn push_one(&self, out: &mut String, one: &Diagnostic, text: Option<&(&Source, Lines<'_>)>) {
        let mut group = level(one.severity)
            .primary_title(shown(&one.message).into_owned())
            .id(one.code.name())
            .elements(text.map_or_else(Vec::new, |(source, lines)| pictures(one, source, lines)));
        if !one.path.is_empty() {
            group = group.element(Level::NOTE.with_name("at").message(shown(&one.path)));
        }
        if let Some(help) = &one.help {
            group = group.element(Level::HELP.message(shown(help)));
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
    /// All findings as text, without colours.
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

/// The text with its control characters made visible.
fn shown(text: &str) -> Cow<'_, str> {
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

/// The lines that a finding is about: one picture for what stands together, others for the rest.
fn pictures<'a>(
    one: &'a Diagnostic,
    source: &'a Source,
    lines: &Lines<'a>,
) -> Vec<annotate::Element<'a>> {
    if one.span.is_none() {
        return vec![Origin::path(shown(&source.name)).into()];
    }
    let main = lines.range(one.span);
    let (near, far): (Vec<_>, Vec<_>) = one.also.iter().partition(|(span, _)| {
        let apart = lines.line_of(lines.range(*span).0).abs_diff(lines.line_of(main.0));
        apart <= Renderer::LINES_APART_MAX
    });
    let near = near.into_iter().map(|(span, note)| (lines.range(*span), note.as_str())).collect();
    let mut out = vec![picture(source, lines, Some(main), near)];
    for (span, note) in far {
        out.push(picture(source, lines, None, vec![(lines.range(*span), note.as_str())]));
    }
    out
}

type Range = (usize, usize);

fn picture<'a>(
    source: &'a Source,
    lines: &Lines<'a>,
    main: Option<Range>,
    notes: Vec<(Range, &'a str)>,
) -> annotate::Element<'a> {
    let ranges = || main.iter().chain(notes.iter().map(|(range, _)| range));
    // A span over many lines would hide what it says: its first line stands for it.
    let first_line = |(start, end): Range| {
        let stop = source.text[start..end].find('\n').map_or(end, |at| start + at);
        (start, stop)
    };
    let low = ranges().map(|range| range.0).min().unwrap_or(0);
    let high = ranges().map(|range| first_line(*range).1).max().unwrap_or(low);
    let (start, end, first) = lines.around(low, high, 0);
    let text = &source.text[start..end];
    if text.lines().any(|line| line.len() > Renderer::LINE_LEN_MAX) {
        let place = lines.place(main.or(notes.first().map(|(range, _)| *range)).map_or(0, |r| r.0));
        let origin = Origin::path(shown(&source.name));
        return origin.line(place.line).char_column(place.column).into();
    }
    let within = |range: Range| {
        let (from, to) = first_line(range);
        from - start..to - start
    };
    let mut snippet = Snippet::source(text).path(shown(&source.name)).line_start(first);
    if let Some(main) = main {
        snippet = snippet.annotation(AnnotationKind::Primary.span(within(main)));
    }
    for (range, note) in notes {
        let context = AnnotationKind::Context.span(within(range));
        snippet = snippet.annotation(context.label(shown(note)));
    }
    snippet.into()
}

/// The text as it would be, if the change is not too long to be looked at.
fn suggestion<'a>(fix: &'a super::Fix, source: &'a Source, lines: &Lines<'a>) -> Option<Group<'a>> {
    let (from, to) = lines.range(fix.span);
    let (start, end, first) = lines.around(from, to, 0);
    let text = &source.text[start..end];
    if text.len() > Renderer::LINE_LEN_MAX {
        return None;
    }
    let patch = Patch::new(from - start..to - start, shown(&fix.replacement));
    let snippet = Snippet::source(text).line_start(first).patch(patch);
    Some(Level::HELP.secondary_title("write instead").element(snippet))
}

/// `2 errors, 1 warning in cell.yaml`; nothing if there is nothing to count.
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
        let written = write!(out, " in {}", shown(name));
        written.expect("a string takes everything");
    }
    out.push('\n');
}

/// Where a span begins, for records of other forms.
pub(crate) fn place(lines: &Lines<'_>, span: Span) -> Option<(lines::Place, lines::Place)> {
    if span.is_none() {
        return None;
    }
    let (start, end) = lines.range(span);
    Some((lines.place(start), lines.place(end)))
}

#[cfg(test)]
mod tests;
