//! A text as a tree of YAML values that know where they stand. Nothing is looked up in it by name,
//! so a key may stand twice; nothing is interpreted, so no text can run anything.
//!
//! All values lie in one list, the children of one beside each other: one allocation for many
//! values, no recursion. The depth is bounded while events come, before anything is built on them.
//! Anchors, aliases, tags, directives and further documents are refused, each where it stands.

mod plain;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle};

use super::{limits::Limits, spec::Span};
use crate::diagnostic::{Code, Diagnostic};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'t> {
    pub(super) span: Span,
    pub(super) what: What<'t>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What<'t> {
    /// A scalar: its text, and whether it stands in no quotes.
    Scalar { text: Cow<'t, str>, is_plain: bool },
    /// A list: where its values lie.
    Seq { first: u32, n_items: u32 },
    /// A map: where its keys and values lie, in turn.
    Map { first: u32, n_pairs: u32 },
    /// What was refused, and has been told. Whoever finds it says no more about it.
    Refused,
}

/// A text as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree<'t> {
    nodes: Vec<Node<'t>>,
    root: Node<'t>,
}

impl<'t> Tree<'t> {
    pub(super) fn root(&self) -> &Node<'t> {
        &self.root
    }

    /// The values of a list; none of anything else.
    pub(super) fn items(&self, node: &Node<'t>) -> &[Node<'t>] {
        match node.what {
            What::Seq { first, n_items } => self.slice(first, n_items),
            _ => &[],
        }
    }

    /// The keys and values of a map, in turn; none of anything else.
    pub(super) fn pairs(&self, node: &Node<'t>) -> impl ExactSizeIterator<Item = [&Node<'t>; 2]> {
        let nodes = match node.what {
            What::Map { first, n_pairs } => self.slice(first, n_pairs * 2),
            _ => &[],
        };
        nodes.chunks_exact(2).map(|pair| [&pair[0], &pair[1]])
    }

    fn slice(&self, first: u32, len: u32) -> &[Node<'t>] {
        &self.nodes[first as usize..][..len as usize]
    }
}

/// Reads a text whose length has been checked. What is refused goes to `faults`; without a tree the
/// last of them says why.
pub(super) fn parse<'t>(
    text: &'t str,
    limits: &Limits,
    faults: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    read_plain(text, limits, faults).or_else(|| read_events(text, limits, faults))
}

/// The fast way. It tells nothing: what it does not know the parser may.
fn read_plain<'t>(
    text: &'t str,
    limits: &Limits,
    faults: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    let mut builder = Builder::new(text, limits, faults);
    plain::read(&mut builder)?;
    let root = builder.done.pop()?;
    Some(Tree { nodes: builder.nodes, root })
}

/// The parser's way.
fn read_events<'t>(
    text: &'t str,
    limits: &Limits,
    faults: &mut Vec<Diagnostic>,
) -> Option<Tree<'t>> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        disallow_directives: true,
        flow_nesting_limit: limits.nesting(),
        block_nesting_limit: limits.nesting(),
    };
    let mut builder = Builder::new(text, limits, faults);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                builder.refuse_text(&error);
                return None;
            }
        };
        if event.tag().is_some() {
            builder.refuse(span_of(span.tag_span().unwrap_or(span)), "a tag cannot be used here");
        }
        if !builder.take(event, span_of(span)) {
            return None;
        }
    }
    let root = builder.done.pop().unwrap_or(Node {
        span: builder.at(0),
        what: What::Scalar { text: Cow::Borrowed(""), is_plain: true },
    });
    Some(Tree { nodes: builder.nodes, root })
}

/// A list or a map that has begun.
struct Open {
    /// Where its values begin in [`Builder::done`].
    first: usize,
    start: u32,
    is_map: bool,
    is_flow: bool,
}

struct Builder<'a, 't> {
    text: &'t str,
    limits: &'a Limits,
    faults: &'a mut Vec<Diagnostic>,
    nodes: Vec<Node<'t>>,
    /// Values whose list or map has not ended.
    done: Vec<Node<'t>>,
    open: Vec<Open>,
    n_documents: usize,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(text: &'t str, limits: &'a Limits, faults: &'a mut Vec<Diagnostic>) -> Self {
        let (nodes, done, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { text, limits, faults, nodes, done, open, n_documents: 0 }
    }

    /// Takes an event; `false` if nothing that follows can be read.
    fn take(&mut self, event: Event<'t>, span: Span) -> bool {
        match event {
            Event::DocumentStart(..) => {
                self.n_documents += 1;
                if self.n_documents > 1 {
                    let span = self.shown(span);
                    self.refuse(span, "a second document begins here, and a file has one");
                    return false;
                }
            }
            Event::Scalar(text, style, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                // The parser gives `~` where nothing stands.
                let text =
                    if span.start == span.end && is_plain { Cow::Borrowed("") } else { text };
                self.done.push(Node { span, what: What::Scalar { text, is_plain } });
            }
            Event::Anchor(..) => self.refuse(span, "an anchor cannot be used here"),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.refuse(span, "an alias cannot be used here");
                self.done.push(Node { span, what: What::Refused });
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
            let fault = too_deep(self.shown(span), self.limits);
            self.faults.push(fault);
            return false;
        }
        self.open.push(Open {
            first: self.done.len(),
            start: span.start,
            is_map,
            is_flow: style == StructureStyle::Flow,
        });
        true
    }

    fn end(&mut self, span: Span) {
        let open = self.open.pop().expect("the parser ends what it has begun");
        if open.is_map {
            for at in (open.first..self.done.len()).step_by(2) {
                // What is not there is shown at its key.
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
        // The end of a block is where the next token begins, so its last value says where it ends.
        let last = self.done[open.first..].last().map_or(open.start, |one| one.span.end);
        let end = if open.is_flow { span.end } else { last };
        // Where a list without brackets begins is not told alike for all; its first value is.
        let first_start = self.done[open.first..].first().map(|one| one.span.start);
        let is_block_list = !open.is_flow && !open.is_map;
        let start = first_start.filter(|_| is_block_list).unwrap_or(open.start);
        let first = offset(self.nodes.len());
        let len = offset(self.done.len() - open.first);
        self.nodes.extend(self.done.drain(open.first..));
        let what = if open.is_map {
            What::Map { first, n_pairs: len / 2 }
        } else {
            What::Seq { first, n_items: len }
        };
        self.done.push(Node { span: Span { start, end }, what });
    }

    fn refuse(&mut self, span: Span, message: impl Into<String>) {
        if self.faults.len() <= self.limits.diagnostics {
            self.faults.push(Diagnostic::new(Code::InvalidYaml, "", message).at(span));
        }
    }

    fn refuse_text(&mut self, error: &ScanError) {
        let span = self.at(offset(error.marker().byte_offset().unwrap_or(0)));
        let fault = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(span, self.limits),
            _ => Diagnostic::new(Code::InvalidYaml, "", error.info()).at(span),
        };
        self.faults.push(fault);
    }

    /// The same span if something stands there, else a character beside it.
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

fn too_deep(span: Span, limits: &Limits) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        "",
        format!("more than {} lists and maps are inside each other", limits.nesting()),
    )
    .at(span)
}

/// A length or an offset in a text.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("limits keep texts below 4 GiB")
}
