//! Parses a text into a tree of YAML values with their locations. Maps are lists of pairs, so a key
//! may occur twice; the tree does not interpret any value.
//!
//! All values are stored in one vector, and the children of a node are adjacent: one allocation
//! serves many values, and there is no recursion. The depth is checked while parser events arrive,
//! before anything is built from them. Anchors, aliases, tags, directives and further documents are
//! rejected with their locations.

mod plain;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle};

use super::{limits::FileLimits, spec::Span};
use crate::diagnostic::{Code, Diagnostic};

/// A value with its location.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlNode<'t> {
    pub(super) span: Span,
    pub(super) kind: YamlKind<'t>,
}

/// The kind of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlKind<'t> {
    /// A scalar: its text, and whether it is written without quotes.
    Scalar { text: Cow<'t, str>, is_plain: bool },
    /// A list: the range of its items.
    Seq { first: u32, n_items: u32 },
    /// A map: the range of its keys and values, which alternate.
    Map { first: u32, n_pairs: u32 },
    /// A value that was rejected and reported. It is not reported again.
    Rejected,
}

/// A text as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree<'t> {
    nodes: Vec<YamlNode<'t>>,
    root: YamlNode<'t>,
}

impl<'t> Tree<'t> {
    pub(super) fn root(&self) -> &YamlNode<'t> {
        &self.root
    }

    /// The items of a list; empty for any other value.
    pub(super) fn items(&self, node: &YamlNode<'t>) -> &[YamlNode<'t>] {
        match node.kind {
            YamlKind::Seq { first, n_items } => self.slice(first, n_items),
            _ => &[],
        }
    }

    /// The key-value pairs of a map; empty for any other value.
    pub(super) fn pairs(
        &self,
        node: &YamlNode<'t>,
    ) -> impl ExactSizeIterator<Item = [&YamlNode<'t>; 2]> {
        let nodes = match node.kind {
            YamlKind::Map { first, n_pairs } => self.slice(first, n_pairs * 2),
            _ => &[],
        };
        nodes.chunks_exact(2).map(|pair| [&pair[0], &pair[1]])
    }

    fn slice(&self, first: u32, len: u32) -> &[YamlNode<'t>] {
        &self.nodes[first as usize..][..len as usize]
    }
}

/// Parses a text whose length has been checked. Rejected parts are added to `diagnostics`; if there
/// is no tree, the last diagnostic gives the reason.
pub(super) fn parse<'t>(
    text: &'t str,
    limits: &FileLimits,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    read_plain(text, limits, diagnostics).or_else(|| read_events(text, limits, diagnostics))
}

/// The fast path. It reports nothing: the parser reads whatever the fast path does not support.
fn read_plain<'t>(
    text: &'t str,
    limits: &FileLimits,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    let mut builder = Builder::new(text, limits, diagnostics);
    plain::read(&mut builder)?;
    let root = builder.done.pop()?;
    Some(Tree { nodes: builder.nodes, root })
}

/// The general path, based on the parser's events.
fn read_events<'t>(
    text: &'t str,
    limits: &FileLimits,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        disallow_directives: true,
        flow_nesting_limit: limits.nesting(),
        block_nesting_limit: limits.nesting(),
    };
    let mut builder = Builder::new(text, limits, diagnostics);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                builder.reject_text(&error);
                return None;
            }
        };
        if event.tag().is_some() {
            builder.reject(span_of(span.tag_span().unwrap_or(span)), "tags are not allowed here");
        }
        if !builder.take(event, span_of(span)) {
            return None;
        }
    }
    let root = builder.done.pop().unwrap_or(YamlNode {
        span: builder.at(0),
        kind: YamlKind::Scalar { text: Cow::Borrowed(""), is_plain: true },
    });
    Some(Tree { nodes: builder.nodes, root })
}

/// A list or a map that is still open.
struct OpenCollection {
    /// The index of its first value in [`Builder::done`].
    first: usize,
    start: u32,
    is_map: bool,
    is_flow: bool,
}

struct Builder<'a, 't> {
    text: &'t str,
    limits: &'a FileLimits,
    diagnostics: &'a mut Vec<Diagnostic>,
    nodes: Vec<YamlNode<'t>>,
    /// Values whose list or map is still open.
    done: Vec<YamlNode<'t>>,
    open: Vec<OpenCollection>,
    n_documents: usize,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(text: &'t str, limits: &'a FileLimits, diagnostics: &'a mut Vec<Diagnostic>) -> Self {
        let (nodes, done, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { text, limits, diagnostics, nodes, done, open, n_documents: 0 }
    }

    /// Handles an event; `false` if the rest cannot be read.
    fn take(&mut self, event: Event<'t>, span: Span) -> bool {
        match event {
            Event::DocumentStart(..) => {
                self.n_documents += 1;
                if self.n_documents > 1 {
                    let span = self.shown(span);
                    self.reject(span, "a second document begins here; a file contains only one");
                    return false;
                }
            }
            Event::Scalar(text, style, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                // The parser returns `~` for an empty value.
                let text =
                    if span.start == span.end && is_plain { Cow::Borrowed("") } else { text };
                self.done.push(YamlNode { span, kind: YamlKind::Scalar { text, is_plain } });
            }
            Event::Anchor(..) => self.reject(span, "anchors are not allowed here"),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.reject(span, "aliases are not allowed here");
                self.done.push(YamlNode { span, kind: YamlKind::Rejected });
            }
            Event::SequenceStart(style, ..) => return self.begin(span, style, false),
            Event::MappingStart(style, ..) => return self.begin(span, style, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            _ => {}
        }
        true
    }

    fn begin(&mut self, span: Span, style: StructureStyle, is_map: bool) -> bool {
        if self.open.len() >= self.limits.nesting() {
            let diagnostic = too_deep(self.shown(span), self.limits);
            self.diagnostics.push(diagnostic);
            return false;
        }
        self.open.push(OpenCollection {
            first: self.done.len(),
            start: span.start,
            is_map,
            is_flow: style == StructureStyle::Flow,
        });
        true
    }

    fn end(&mut self, span: Span) {
        let open = self.open.pop().expect("the parser closes what it opens");
        if open.is_map {
            for at in (open.first..self.done.len()).step_by(2) {
                // A missing value is shown at its key.
                if self.done[at + 1].span.start == self.done[at + 1].span.end {
                    self.done[at + 1].span = self.done[at].span;
                }
            }
        } else {
            for at in open.first..self.done.len() {
                if self.done[at].span.start == self.done[at].span.end {
                    self.done[at].span = self.shown(self.done[at].span);
                }
            }
        }
        // The parser ends a block where the next token begins, so the last value determines the
        // end.
        let last = self.done[open.first..].last().map_or(open.start, |one| one.span.end);
        let end = if open.is_flow { span.end } else { last };
        // The parser is not consistent about the start of a block list, so the first value
        // determines it.
        let first_start = self.done[open.first..].first().map(|one| one.span.start);
        let is_block_list = !open.is_flow && !open.is_map;
        let start = first_start.filter(|_| is_block_list).unwrap_or(open.start);
        let first = offset(self.nodes.len());
        let len = offset(self.done.len() - open.first);
        self.nodes.extend(self.done.drain(open.first..));
        let kind = if open.is_map {
            YamlKind::Map { first, n_pairs: len / 2 }
        } else {
            YamlKind::Seq { first, n_items: len }
        };
        self.done.push(YamlNode { span: Span { start, end }, kind });
    }

    fn reject(&mut self, span: Span, message: impl Into<String>) {
        if self.diagnostics.len() <= self.limits.diagnostics {
            self.diagnostics.push(Diagnostic::new(Code::InvalidYaml, "", message).at(span));
        }
    }

    fn reject_text(&mut self, error: &ScanError) {
        let span = self.at(offset(error.marker().byte_offset().unwrap_or(0)));
        let diagnostic = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(span, self.limits),
            _ => Diagnostic::new(Code::InvalidYaml, "", error.info()).at(span),
        };
        self.diagnostics.push(diagnostic);
    }

    /// The span itself, or the nearest character if the span is empty.
    fn shown(&self, span: Span) -> Span {
        if span.start < span.end { span } else { self.at(span.start) }
    }

    /// The character at an offset, or the last one.
    fn at(&self, offset: u32) -> Span {
        let start = self.text.floor_char_boundary(offset as usize);
        let (before, after) = self.text.split_at(start);
        let (start, len) = match (after.chars().next(), before.chars().next_back()) {
            (Some(one), _) => (start, one.len_utf8()),
            (None, Some(one)) => (start - one.len_utf8(), one.len_utf8()),
            (None, None) => (0, 0),
        };
        Span { start: self::offset(start), end: self::offset(start + len) }
    }
}

fn span_of(span: granit_parser::Span) -> Span {
    let bytes = span.byte_range().unwrap_or_default();
    Span { start: offset(bytes.start), end: offset(bytes.end) }
}

fn too_deep(span: Span, limits: &FileLimits) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        "",
        format!("lists and maps are nested more than {} levels deep", limits.nesting()),
    )
    .at(span)
}

/// A length or an offset in a text.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("limits keep texts below 4 GiB")
}
