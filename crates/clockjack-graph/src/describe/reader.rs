//! Walks a tree by the table of fields and gathers every fault it meets, each with its place. It
//! knows types and limits, not what a graph means.
//!
//! A fault never ends the walk: the field keeps its default, and what can still be read is read.

mod place;
mod value;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use clockjack_sync::mutant;

use super::{
    fields::{Field, Section},
    limits::Limits,
    spec::{Marks, Span},
    tree::{Node, Tree, What},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};
pub(super) use place::Step;
pub(super) use value::is_identifier;

/// Values for the parameters of a template.
#[derive(Clone, Debug)]
pub(super) enum Bindings<'t> {
    /// Only the names are known: the text of a template is looked at, for itself.
    Open(BTreeSet<&'t str>),
    /// An instance.
    Closed(BTreeMap<&'t str, &'t Node<'t>>),
}

/// A namespace that is being filled.
#[derive(Clone, Debug)]
pub(super) struct Space<'t> {
    /// Goes before each id, with a dot; none while a template is looked at for itself.
    pub(super) prefix: Option<&'t str>,
    /// Where the instance stands, and that it is told with each fault.
    pub(super) instance: Span,
    /// Of a template.
    pub(super) bindings: Option<Bindings<'t>>,
}

/// Walks a tree.
pub(super) struct Reader<'t> {
    pub(super) tree: &'t Tree<'t>,
    pub(super) limits: &'t Limits,
    pub(super) space: Option<Space<'t>>,
    /// Bytes that instances may still come to.
    pub(super) expanded_bytes_left: usize,
    /// Whether an item was left out: what refers to it is then not at fault.
    pub(super) has_gaps: bool,
    path: Vec<Step<'t>>,
    faults: Vec<Diagnostic>,
    n_untold: usize,
    /// Faults of a template's text, which each instance would tell again.
    told: BTreeSet<(Code, Span, String)>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(tree: &'t Tree<'t>, limits: &'t Limits) -> Self {
        Self {
            tree,
            limits,
            space: None,
            expanded_bytes_left: limits.expanded_bytes,
            has_gaps: false,
            path: Vec::new(),
            faults: Vec::new(),
            n_untold: 0,
            told: BTreeSet::new(),
        }
    }

    /// All faults, and how many more there are.
    pub(super) fn into_faults(self) -> (Vec<Diagnostic>, usize) {
        (self.faults, self.n_untold)
    }

    /// One step further down, for the time of a call.
    pub(super) fn below<R>(&mut self, step: Step<'t>, run: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(step);
        let result = run(self);
        self.path.pop();
        result
    }

    /// At another place, for the time of a call.
    pub(super) fn elsewhere<R>(
        &mut self,
        path: [Step<'t>; 2],
        run: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let here = core::mem::replace(&mut self.path, path.to_vec());
        let result = run(self);
        self.path = here;
        result
    }

    /// Whether more faults would only be counted.
    pub(super) fn is_full(&self) -> bool {
        self.faults.len() >= self.limits.diagnostics
    }

    /// A finding about where the walk is.
    pub(super) fn finding(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, self.path_text(), message).at(span)
    }

    pub(super) fn tell(&mut self, mut fault: Diagnostic) {
        if self.is_full() || (mutant!("describe-first-fault-only") && !self.faults.is_empty()) {
            self.n_untold += 1;
            return;
        }
        if let Some(space) = &self.space
            && space.bindings.is_some()
        {
            let key = (fault.code, fault.span, fault.message.clone());
            if !self.told.insert(key) {
                return;
            }
            fault = fault.and_at(space.instance, "in this instance of the template");
        }
        self.faults.push(fault);
    }

    pub(super) fn fault(&mut self, code: Code, span: Span, message: impl Into<String>) {
        if self.is_full() {
            self.n_untold += 1;
        } else {
            let fault = self.finding(code, span, message);
            self.tell(fault);
        }
    }

    /// A value that is not what is needed.
    pub(super) fn wrong_type(&mut self, node: &Node<'t>, wanted: &str) {
        if let Some(found) = self.called(node) {
            self.fault(Code::WrongType, node.span, format!("{wanted} is needed, not {found}"));
        }
    }

    /// Gives each known field of a map to `take`; tells unknown, repeated and missing ones.
    /// `false` if it is no map.
    pub(super) fn section(
        &mut self,
        section: &'static Section,
        node: &'t Node<'t>,
        marks: &mut Marks,
        mut take: impl FnMut(&mut Self, &'static Field, &'t Node<'t>),
    ) -> bool {
        if !matches!(node.what, What::Map { .. }) {
            self.wrong_type(node, "a map");
            return false;
        }
        let tree = self.tree;
        let pairs = tree.pairs(node);
        marks.fields.reserve(pairs.len().min(section.fields.len()));
        let mut seen = 0u32;
        let mut has_others = false;
        for [key, value] in pairs {
            let Some((index, field)) = key_text(key).and_then(|name| section.find(name)) else {
                has_others = true;
                continue;
            };
            if seen & (1 << index) != 0 {
                has_others = true;
                continue;
            }
            seen |= 1 << index;
            marks.fields.push((field.mark, value.span));
            self.path.push(Step::Field(field.name));
            take(self, field, value);
            self.path.pop();
        }
        if has_others {
            self.tell_others(section, node, seen);
        }
        for (index, field) in section.fields.iter().enumerate() {
            if field.is_required && seen & (1 << index) == 0 {
                let span = tree.pairs(node).next().map_or(node.span, |[key, _]| key.span);
                self.fault(Code::MissingField, span, format!("field `{}` is missing", field.name));
            }
        }
        true
    }

    /// The keys that were not taken.
    #[cold]
    fn tell_others(&mut self, section: &'static Section, node: &'t Node<'t>, seen: u32) {
        let mut first_at = [None; 32];
        for [key, _] in self.tree.pairs(node) {
            let Some(name) = key_text(key) else {
                self.wrong_type(key, "a name");
                continue;
            };
            if let Some((index, _)) = section.find(name) {
                match first_at[index] {
                    None => first_at[index] = Some(key.span),
                    Some(first) => self.repeated(name, key.span, first),
                }
                continue;
            }
            if self.is_full() {
                self.n_untold += 1;
                continue;
            }
            let fields = section.fields.iter().enumerate();
            let free = fields.filter(|(at, _)| seen & (1 << at) == 0).map(|(_, field)| field.name);
            let message = format!("there is no field `{}` here", brief(name));
            let mut fault = self.finding(Code::UnknownField, key.span, message);
            match nearest(name, free) {
                Some(meant) => {
                    fault = fault.help(format!("did you mean `{meant}`?")).fix(key.span, meant);
                }
                None => {
                    let all: Vec<&str> = section.fields.iter().map(|field| field.name).collect();
                    fault = fault.help(format!("the fields here are {}", all.join(", ")));
                }
            }
            self.tell(fault);
        }
    }

    pub(super) fn repeated(&mut self, name: &str, span: Span, first: Span) {
        if mutant!("describe-repeated-key-unseen") {
            return;
        }
        let message = format!("key `{}` stands twice", brief(name));
        let fault = self.finding(Code::DuplicateKey, span, message).and_at(first, "the first one");
        self.tell(fault);
    }

    /// The items of a list with `min` entries at least; those beyond `max` are left out, with a
    /// fault.
    pub(super) fn list(
        &mut self,
        node: &'t Node<'t>,
        min: usize,
        max: usize,
        what: &str,
    ) -> &'t [Node<'t>] {
        let tree = self.tree;
        if !matches!(node.what, What::Seq { .. }) {
            if self.is_null(node) {
                let message = format!("a list of {what} is needed, not nothing");
                let fault = self.finding(Code::WrongType, node.span, message);
                self.tell(fault.help("an empty list is `[]`"));
            } else {
                self.wrong_type(node, &format!("a list of {what}"));
            }
            return &[];
        }
        let items = tree.items(node);
        if items.len() < min {
            self.fault(Code::InvalidValue, node.span, format!("at least {min} {what} are needed"));
        }
        match items.get(max) {
            Some(first) => {
                let message = format!("{} {what}, and at most {max} are allowed", items.len());
                self.fault(Code::LimitExceeded, first.span, message);
                self.has_gaps = true;
                &items[..max]
            }
            None => items,
        }
    }
}

/// The text of a key, if it is one.
pub(super) fn key_text<'a>(key: &'a Node<'_>) -> Option<&'a str> {
    match &key.what {
        What::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

/// A text of somebody else, cut so that a report stays readable.
pub(super) fn brief(text: &str) -> Cow<'_, str> {
    const BYTES_MAX: usize = 64;
    if text.len() <= BYTES_MAX {
        Cow::Borrowed(text)
    } else {
        let mut cut = text[..text.floor_char_boundary(BYTES_MAX)].to_string();
        cut.push_str("..");
        Cow::Owned(cut)
    }
}
