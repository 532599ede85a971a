//! Single values: each is checked against its field in the table, or told as a fault.

use std::{borrow::Cow, collections::BTreeSet};

use clockjack_sync::mutant;

use super::{Bindings, Reader, brief};
use crate::{
    describe::{
        fields::{Field, Kind},
        scalar::Scalar,
        spec::Span,
        tree::{Node, What},
    },
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};

/// A scalar, with values in the place of parameters.
#[derive(Debug)]
pub(in crate::describe) struct Filled<'t> {
    pub(in crate::describe) text: Cow<'t, str>,
    pub(in crate::describe) is: Scalar,
}

impl<'t> Reader<'t> {
    /// What to call a value in a report; `None` if nothing is to be said about it.
    pub(super) fn called(&self, node: &Node<'t>) -> Option<&'static str> {
        match &node.what {
            What::Scalar { text, is_plain: true } => Some(Scalar::of_plain(text).called()),
            What::Scalar { .. } => Some("a text"),
            What::Seq { .. } => Some("a list"),
            What::Map { .. } => Some("a map"),
            What::Refused => None,
        }
    }

    pub(in crate::describe) fn is_null(&self, node: &Node<'t>) -> bool {
        matches!(&node.what, What::Scalar { text, is_plain: true }
            if Scalar::of_plain(text) == Scalar::Null)
    }

    /// A scalar, or a fault that `wanted` is needed. `None` without a fault while a template is
    /// looked at for itself: nobody knows then what its parameters will be.
    pub(in crate::describe) fn scalar(
        &mut self,
        node: &'t Node<'t>,
        wanted: &str,
    ) -> Option<Filled<'t>> {
        let What::Scalar { text, is_plain } = &node.what else {
            self.wrong_type(node, wanted);
            self.tell_bare_parameter(node);
            return None;
        };
        if self.space.as_ref().is_some_and(|space| space.bindings.is_some()) && text.contains("{{")
        {
            return self.fill(text, node.span);
        }
        let is = if *is_plain { Scalar::of_plain(text) } else { Scalar::Text };
        Some(Filled { text: Cow::Borrowed(text), is })
    }

    /// `{{name}}` without quotes is a map in a map.
    fn tell_bare_parameter(&mut self, node: &'t Node<'t>) {
        let in_template = self.space.as_ref().is_some_and(|space| space.bindings.is_some());
        let mut pairs = self.tree.pairs(node);
        if in_template && pairs.next().is_some_and(|[key, _]| matches!(key.what, What::Map { .. }))
        {
            self.fault(
                Code::InvalidTemplateParameter,
                node.span,
                "a parameter is put in quotes, else it is a map",
            );
        }
    }

    /// Puts values in the place of parameters.
    fn fill(&mut self, text: &'t str, span: Span) -> Option<Filled<'t>> {
        let mut filled = String::new();
        let mut rest = text;
        let mut is_open = false;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let Some((name, after)) = after.split_once("}}") else {
                self.fault(
                    Code::InvalidTemplateParameter,
                    span,
                    "`{{` begins a parameter that no `}}` ends",
                );
                return None;
            };
            rest = after;
            let name = name.trim();
            let space = self.space.as_ref().expect("only a template has parameters");
            let value = match space.bindings.as_ref().expect("only a template has parameters") {
                Bindings::Open(declared) if declared.contains(name) => {
                    is_open = true;
                    continue;
                }
                Bindings::Closed(given) if given.contains_key(name) => given[name],
                // Told when the template was looked at for itself, or that the value is missing.
                Bindings::Closed(_) => return None,
                Bindings::Open(declared) => {
                    let message = format!("the template has no parameter `{}`", brief(name));
                    let help = nearest(name, declared.iter().copied())
                        .map(|meant| format!("did you mean `{meant}`?"));
                    let mut fault = self.finding(Code::InvalidTemplateParameter, span, message);
                    fault.help = help;
                    self.tell(fault);
                    return None;
                }
            };
            let What::Scalar { text: value, is_plain } = &value.what else { return None };
            if before.is_empty() && rest.is_empty() && filled.is_empty() {
                self.spend(value.len(), span)?;
                // Alone, the parameter is what its value is: a number, or a text.
                let is = if *is_plain { Scalar::of_plain(value) } else { Scalar::Text };
                return Some(Filled { text: Cow::Borrowed(value), is });
            }
            self.spend(value.len(), span)?;
            filled.push_str(value);
        }
        filled.push_str(rest);
        (!is_open).then_some(Filled { text: Cow::Owned(filled), is: Scalar::Text })
    }

    /// Takes bytes from what instances may come to; told once when there are none left.
    pub(in crate::describe) fn spend(&mut self, n_bytes: usize, span: Span) -> Option<()> {
        if let Some(left) = self.expanded_bytes_left.checked_sub(n_bytes) {
            self.expanded_bytes_left = left;
            return Some(());
        }
        if self.expanded_bytes_left > 0 {
            self.expanded_bytes_left = 0;
            let max = self.limits.expanded_bytes;
            let message = format!("instances of templates come to more than {max} bytes");
            self.fault(Code::LimitExceeded, span, message);
        }
        self.has_gaps = true;
        None
    }

    fn check_len(&mut self, text: &str, max: usize, span: Span) -> Option<()> {
        if text.len() <= max {
            return Some(());
        }
        let message = format!("{} bytes, and at most {max} are allowed", text.len());
        self.fault(Code::LimitExceeded, span, message);
        None
    }

    fn text_up_to(&mut self, node: &'t Node<'t>, wanted: &str, max: usize) -> Option<Cow<'t, str>> {
        let Filled { text, is } = self.scalar(node, wanted)?;
        if is != Scalar::Text {
            let message = format!("{wanted} is needed, not {}", is.called());
            let mut fault = self.finding(Code::WrongType, node.span, message);
            if is != Scalar::Null {
                fault = fault.help("put it in quotes").fix(node.span, format!("\"{text}\""));
            }
            self.tell(fault);
            return None;
        }
        self.check_len(&text, max, node.span)?;
        Some(text)
    }

    /// Any text.
    pub(in crate::describe) fn text(&mut self, node: &'t Node<'t>) -> Option<Cow<'t, str>> {
        self.text_up_to(node, "a text", self.limits.string_bytes)
    }

    /// An identifier in which any character may stand.
    pub(in crate::describe) fn label(&mut self, node: &'t Node<'t>) -> Option<String> {
        let text = self.text_up_to(node, "a name", self.limits.identifier_bytes)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            self.fault(Code::InvalidIdentifier, node.span, "a name is not empty, and is one line");
            return None;
        }
        Some(text.into_owned())
    }

    /// An identifier, as it stands.
    pub(in crate::describe) fn id(&mut self, node: &'t Node<'t>) -> Option<Cow<'t, str>> {
        let text = self.text_up_to(node, "an identifier", self.limits.identifier_bytes)?;
        self.check_id(&text, node.span)?;
        Some(text)
    }

    /// An identifier, with its namespace.
    pub(in crate::describe) fn qualified_id(&mut self, node: &'t Node<'t>) -> Option<String> {
        let text = self.id(node)?;
        let id = self.qualify(&text);
        self.check_len(&id, self.limits.identifier_bytes, node.span)?;
        Some(id)
    }

    /// `component.port`, with its namespace.
    pub(in crate::describe) fn endpoint(&mut self, node: &'t Node<'t>) -> Option<String> {
        let text = self.text_up_to(node, "an endpoint", self.limits.string_bytes)?;
        self.check_id(&text, node.span)?;
        if !text.contains('.') {
            let message = format!("`{}` is no endpoint", brief(&text));
            let fault = self.finding(Code::InvalidIdentifier, node.span, message);
            self.tell(fault.help("write `component.port`"));
            return None;
        }
        let endpoint = self.qualify(&text);
        self.check_len(&endpoint, self.limits.string_bytes, node.span)?;
        Some(endpoint)
    }

    pub(in crate::describe) fn check_id(&mut self, text: &str, span: Span) -> Option<()> {
        if is_identifier(text) {
            return Some(());
        }
        let message = format!("`{}` is no identifier", brief(text));
        let fault = self.finding(Code::InvalidIdentifier, span, message).help(
            "letters, digits, `_`, `:` and `-` make an identifier, and dots between parts of it",
        );
        self.tell(fault);
        None
    }

    pub(in crate::describe) fn qualify(&self, id: &str) -> String {
        match self.space.as_ref().and_then(|space| space.prefix) {
            None => id.to_owned(),
            Some(_) if mutant!("describe-namespace-lost") => id.to_owned(),
            Some(prefix) => {
                let mut text = String::with_capacity(prefix.len() + 1 + id.len());
                text.push_str(prefix);
                text.push('.');
                text.push_str(id);
                text
            }
        }
    }

    /// A list of identifiers, as they stand.
    pub(in crate::describe) fn ids(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Vec<Cow<'t, str>> {
        let Kind::Ids { min } = field.kind else { panic!("`{}` is no list of ids", field.name) };
        let items = self.list(node, min, usize::MAX, "identifiers");
        let mut ids = Vec::with_capacity(items.len());
        let mut seen = BTreeSet::new();
        for item in items {
            let Some(id) = self.id(item) else { continue };
            // Few are compared with each other, many are looked up.
            let is_new =
                if items.len() <= 8 { !ids.contains(&id) } else { seen.insert(id.clone()) };
            if is_new {
                ids.push(id);
            } else {
                self.fault(Code::InvalidValue, item.span, format!("`{id}` stands twice"));
            }
        }
        ids
    }

    /// A list of identifiers, with their namespace.
    pub(in crate::describe) fn qualified_ids(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Vec<String> {
        self.ids(field, node).iter().map(|id| self.qualify(id)).collect()
    }

    pub(in crate::describe) fn bool(&mut self, node: &'t Node<'t>) -> Option<bool> {
        let Filled { text, is } = self.scalar(node, "`true` or `false`")?;
        if let Scalar::Bool(value) = is {
            return Some(value);
        }
        let message = format!("`true` or `false` is needed, not {}", is.called());
        let mut fault = self.finding(Code::WrongType, node.span, message);
        let meant = match &*text.to_ascii_lowercase() {
            "yes" | "on" | "true" => "true",
            "no" | "off" | "false" => "false",
            _ => "",
        };
        if !meant.is_empty() {
            fault = fault.help(format!("write `{meant}`")).fix(node.span, meant);
        }
        self.tell(fault);
        None
    }

    /// A whole number in the bounds of its field.
    pub(in crate::describe) fn whole(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Option<i64> {
        let Kind::Whole { min, max } = field.kind else {
            panic!("`{}` is no whole number", field.name)
        };
        self.whole_between(node, min, max)
    }

    fn whole_between(&mut self, node: &'t Node<'t>, min: i64, max: i64) -> Option<i64> {
        let Filled { text, is } = self.scalar(node, "a whole number")?;
        match is {
            Scalar::Int(value) if (min..=max).contains(&value) => Some(value),
            Scalar::Int(_) | Scalar::Huge(_) => {
                let message = format!("{} is not between {min} and {max}", brief(&text));
                self.fault(Code::InvalidValue, node.span, message);
                None
            }
            _ => {
                self.not_a_number(node, &text, is, "a whole number");
                None
            }
        }
    }

    pub(in crate::describe) fn millis(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Option<u64> {
        self.whole(field, node).map(i64::unsigned_abs)
    }

    pub(in crate::describe) fn count(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Option<u32> {
        let value = self.whole(field, node)?;
        Some(u32::try_from(value).expect("the table bounds what is counted"))
    }

    /// A list of numbers that are not negative.
    pub(in crate::describe) fn counts(&mut self, node: &'t Node<'t>) -> Vec<u32> {
        let items = self.list(node, 0, usize::MAX, "whole numbers");
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            if let Some(value) = self.whole_between(item, 0, i64::from(u32::MAX)) {
                values.push(u32::try_from(value).expect("it was just bounded"));
            }
        }
        values
    }

    /// A number that is not negative.
    #[expect(clippy::cast_precision_loss, reason = "as every reader of such a file expects")]
    pub(in crate::describe) fn number(&mut self, node: &'t Node<'t>) -> Option<f64> {
        let Filled { text, is } = self.scalar(node, "a number")?;
        let value = match is {
            Scalar::Int(value) => value as f64,
            Scalar::Huge(value) | Scalar::Float(value) => value,
            _ => {
                self.not_a_number(node, &text, is, "a number");
                return None;
            }
        };
        if value.is_finite() && value >= 0.0 {
            return Some(value);
        }
        let message = format!("{} is not a number from 0 on", brief(&text));
        self.fault(Code::InvalidValue, node.span, message);
        None
    }

    fn not_a_number(&mut self, node: &'t Node<'t>, text: &str, is: Scalar, wanted: &str) {
        let message = format!("{wanted} is needed, not {}", is.called());
        let mut fault = self.finding(Code::WrongType, node.span, message);
        if is == Scalar::Text && matches!(Scalar::of_plain(text), Scalar::Int(_)) {
            fault = fault.help("leave out the quotes").fix(node.span, text);
        }
        self.tell(fault);
    }

    /// The place of a name in the list of its field.
    pub(in crate::describe) fn name(
        &mut self,
        field: &'static Field,
        node: &'t Node<'t>,
    ) -> Option<usize> {
        let (Kind::Name(names, code) | Kind::NameOr(names, code, _)) = field.kind else {
            panic!("`{}` has no names", field.name)
        };
        let Filled { text, is } = self.scalar(node, "a name")?;
        if is == Scalar::Null {
            self.wrong_type(node, "a name");
            return None;
        }
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Some(index);
        }
        let list = names.join(", ");
        let message = format!("`{}` is not one of {list}", brief(&text));
        let mut fault = self.finding(code, node.span, message);
        fault = suggest(fault, &text, names, node.span);
        if matches!(&*text, "action_goal" | "action_cancel") {
            fault = fault.help("this name is reserved");
        }
        self.tell(fault);
        None
    }
}

/// Whether a text can be an id, or an endpoint if it has several parts.
pub(in crate::describe) fn is_identifier(text: &str) -> bool {
    let is_legal =
        |one: u8| one.is_ascii_alphanumeric() || matches!(one, b'_' | b'.' | b':' | b'-');
    text.split('.').all(|part| !part.is_empty()) && text.bytes().all(is_legal)
}

/// Adds the name that was probably meant.
fn suggest(fault: Diagnostic, text: &str, names: &[&'static str], span: Span) -> Diagnostic {
    match nearest(text, names.iter().copied()) {
        Some(meant) => fault.help(format!("did you mean `{meant}`?")).fix(span, meant),
        None => fault,
    }
}
