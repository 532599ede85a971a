//! Walks the YAML tree by the table of fields and collects all errors with their locations. It
//! knows types and limits, but not the meaning of a graph.
//!
//! An error does not stop the walk: the field keeps its default, and the rest is read.

mod path;
mod value;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    fields::{Field, Section, removed},
    limits::FileLimits,
    spec::{FieldSpans, Span},
    tree::{Tree, YamlKind, YamlNode},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};
pub(super) use path::PathStep;
pub(super) use value::is_identifier;

/// The parameters of a template.
#[derive(Clone, Debug)]
pub(super) enum Bindings<'t> {
    /// Only the names are known: the template is checked by itself.
    Declared(BTreeSet<&'t str>),
    /// The values of an instance.
    Given(BTreeMap<&'t str, &'t YamlNode<'t>>),
}

/// The namespace of a subgraph or an instance while it is read.
#[derive(Clone, Debug)]
pub(super) struct Namespace<'t> {
    /// The prefix of each id, without the dot; `None` while a template is checked by itself.
    pub(super) prefix: Option<&'t str>,
    /// The location of the instance, which is added to each diagnostic.
    pub(super) instance: Span,
    /// The parameters, if this is a template.
    pub(super) bindings: Option<Bindings<'t>>,
}

/// Stores the value of a field.
pub(super) type SetFn<'t, T> = fn(&mut T, &mut Reader<'t>, &'static Field, &'t YamlNode<'t>);

/// Walks a tree.
pub(super) struct Reader<'t> {
    pub(super) tree: &'t Tree<'t>,
    pub(super) limits: &'t FileLimits,
    pub(super) namespace: Option<Namespace<'t>>,
    /// Bytes that template instances may still expand to.
    pub(super) expanded_bytes_left: usize,
    /// Whether an item was left out: references to that item are then not reported as errors.
    pub(super) has_omissions: bool,
    /// The locations of the fields of the current item, including those of its nested sections.
    pub(super) spans: Vec<(&'static str, Span)>,
    path: Vec<PathStep<'t>>,
    diagnostics: Vec<Diagnostic>,
    n_suppressed: usize,
    /// Errors of a template's text, which would otherwise be reported once per instance.
    reported: BTreeSet<(Code, Span, String)>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(tree: &'t Tree<'t>, limits: &'t FileLimits) -> Self {
        Self {
            tree,
            limits,
            namespace: None,
            expanded_bytes_left: limits.expanded_bytes,
            has_omissions: false,
            spans: Vec::new(),
            path: Vec::new(),
            diagnostics: Vec::new(),
            n_suppressed: 0,
            reported: BTreeSet::new(),
        }
    }

    /// All diagnostics, and the number of further ones.
    pub(super) fn into_diagnostics(self) -> (Vec<Diagnostic>, usize) {
        (self.diagnostics, self.n_suppressed)
    }

    /// Extends the path by a step for the duration of a call.
    pub(super) fn with_step<R>(
        &mut self,
        step: PathStep<'t>,
        run: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.path.push(step);
        let result = run(self);
        self.path.pop();
        result
    }

    /// Replaces the path for the duration of a call.
    pub(super) fn with_path<R>(
        &mut self,
        path: [PathStep<'t>; 2],
        run: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let here = core::mem::replace(&mut self.path, path.to_vec());
        let result = run(self);
        self.path = here;
        result
    }

    /// Whether further errors are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.diagnostics.len() >= self.limits.diagnostics
    }

    /// A diagnostic at the current path.
    pub(super) fn diagnostic(
        &self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::new(code, self.path_text(), message).at(span)
    }

    pub(super) fn report(&mut self, mut diagnostic: Diagnostic) {
        if self.is_full() {
            self.n_suppressed += 1;
            return;
        }
        if let Some(namespace) = &self.namespace
            && namespace.bindings.is_some()
        {
            let key = (diagnostic.code, diagnostic.span, diagnostic.message.clone());
            if !self.reported.insert(key) {
                return;
            }
            diagnostic =
                diagnostic.related_at(namespace.instance, "in this instance of the template");
        }
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        if self.is_full() {
            self.n_suppressed += 1;
        } else {
            let diagnostic = self.diagnostic(code, span, message);
            self.report(diagnostic);
        }
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong_type(&mut self, node: &YamlNode<'t>, wanted: &str) {
        if let Some(found) = self.type_name(node) {
            self.error(Code::WrongType, node.span, format!("expected {wanted}, found {found}"));
        }
    }

    /// Reads the fields of an item into `one`, and returns where they are. `None` if the value is
    /// not a map.
    pub(super) fn item<T>(
        &mut self,
        section: &'static Section,
        node: &'t YamlNode<'t>,
        one: &mut T,
        set: SetFn<'t, T>,
    ) -> Option<FieldSpans> {
        let outer = core::mem::take(&mut self.spans);
        let is_map = self.section(section, node, one, set);
        let fields = core::mem::replace(&mut self.spans, outer);
        is_map.then_some(FieldSpans { item: node.span, fields })
    }

    /// Passes each known field of a map to `set` and keeps its location; reports unknown, repeated
    /// and missing fields. Returns `false` if the value is not a map.
    pub(super) fn section<T>(
        &mut self,
        section: &'static Section,
        node: &'t YamlNode<'t>,
        one: &mut T,
        set: SetFn<'t, T>,
    ) -> bool {
        if !matches!(node.kind, YamlKind::Map { .. }) {
            self.wrong_type(node, "a map");
            return false;
        }
        let tree = self.tree;
        let pairs = tree.pairs(node);
        self.spans.reserve(pairs.len().min(section.fields.len()));
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
            self.spans.push((field.span_key, value.span));
            self.path.push(PathStep::Field(field.name));
            set(one, self, field, value);
            self.path.pop();
        }
        if has_others {
            self.report_other_keys(section, node, seen);
        }
        for (index, field) in section.fields.iter().enumerate() {
            if field.is_required && seen & (1 << index) == 0 {
                let span = tree.pairs(node).next().map_or(node.span, |[key, _]| key.span);
                self.error(Code::MissingField, span, format!("field `{}` is missing", field.name));
            }
        }
        true
    }

    /// Reports the keys that were not taken.
    #[cold]
    fn report_other_keys(&mut self, section: &'static Section, node: &'t YamlNode<'t>, seen: u32) {
        let mut first_at = [None; 32];
        for [key, _] in self.tree.pairs(node) {
            let Some(name) = key_text(key) else {
                self.wrong_type(key, "a name");
                continue;
            };
            if let Some((index, _)) = section.find(name) {
                match first_at[index] {
                    None => first_at[index] = Some(key.span),
                    Some(first) => self.duplicate_key(name, key.span, first),
                }
                continue;
            }
            if self.is_full() {
                self.n_suppressed += 1;
                continue;
            }
            let fields = section.fields.iter().enumerate();
            let free = fields.filter(|(at, _)| seen & (1 << at) == 0).map(|(_, field)| field.name);
            let message = format!("unknown field `{}`", truncated(name));
            let mut diagnostic = self.diagnostic(Code::UnknownField, key.span, message);
            if let Some(help) = removed(section, name) {
                self.report(diagnostic.help(help));
                continue;
            }
            match nearest(name, free) {
                Some(meant) => {
                    diagnostic =
                        diagnostic.help(format!("did you mean `{meant}`?")).fix(key.span, meant);
                }
                None => {
                    let all: Vec<&str> = section.fields.iter().map(|field| field.name).collect();
                    diagnostic = diagnostic.help(format!("the fields here are {}", all.join(", ")));
                }
            }
            self.report(diagnostic);
        }
    }

    pub(super) fn duplicate_key(&mut self, name: &str, span: Span, first: Span) {
        let message = format!("key `{}` occurs twice", truncated(name));
        let diagnostic = self
            .diagnostic(Code::DuplicateKey, span, message)
            .related_at(first, "first occurrence");
        self.report(diagnostic);
    }

    /// The items of a list, which must have at least `min` items. Items beyond `max` are left out,
    /// with an error.
    pub(super) fn list(
        &mut self,
        node: &'t YamlNode<'t>,
        min: usize,
        max: usize,
        what: &str,
    ) -> &'t [YamlNode<'t>] {
        let tree = self.tree;
        if !matches!(node.kind, YamlKind::Seq { .. }) {
            if self.is_null(node) {
                let message = format!("expected a list of {what}, found nothing");
                let diagnostic = self.diagnostic(Code::WrongType, node.span, message);
                self.report(diagnostic.help("an empty list is `[]`"));
            } else {
                self.wrong_type(node, &format!("a list of {what}"));
            }
            return &[];
        }
        let items = tree.items(node);
        if items.len() < min {
            self.error(Code::InvalidValue, node.span, format!("at least {min} {what} are needed"));
        }
        match items.get(max) {
            Some(first) => {
                let message = format!("{} {what}, but at most {max} are allowed", items.len());
                self.error(Code::LimitExceeded, first.span, message);
                self.has_omissions = true;
                &items[..max]
            }
            None => items,
        }
    }
}

/// The text of a key, if it is a scalar.
pub(super) fn key_text<'a>(key: &'a YamlNode<'_>) -> Option<&'a str> {
    match &key.kind {
        YamlKind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

/// A text from the file, truncated so that a report stays readable.
pub(super) fn truncated(text: &str) -> Cow<'_, str> {
    const BYTES_MAX: usize = 64;
    if text.len() <= BYTES_MAX {
        Cow::Borrowed(text)
    } else {
        let mut cut = text[..text.floor_char_boundary(BYTES_MAX)].to_string();
        cut.push_str("..");
        Cow::Owned(cut)
    }
}
