//! Single values: each is checked against its field in the table.

use std::{borrow::Cow, collections::BTreeSet};

use super::{Bindings, Reader, truncated};
use crate::{
    describe::{
        fields::{Field, FieldKind},
        scalar::Scalar,
        spec::Span,
        tree::{YamlKind, YamlNode},
    },
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};

/// A scalar after the substitution of template parameters.
#[derive(Debug)]
pub(in crate::describe) struct Resolved<'t> {
    pub(in crate::describe) text: Cow<'t, str>,
    pub(in crate::describe) scalar: Scalar,
}

impl<'t> Reader<'t> {
    /// The name of a value's type in reports; `None` if the value was already reported.
    pub(super) fn type_name(&self, node: &YamlNode<'t>) -> Option<&'static str> {
        match &node.kind {
            YamlKind::Scalar { text, is_plain: true } => Some(Scalar::of_plain(text).type_name()),
            YamlKind::Scalar { .. } => Some("a string"),
            YamlKind::Seq { .. } => Some("a list"),
            YamlKind::Map { .. } => Some("a map"),
            YamlKind::Rejected => None,
        }
    }

    pub(in crate::describe) fn is_null(&self, node: &YamlNode<'t>) -> bool {
        matches!(&node.kind, YamlKind::Scalar { text, is_plain: true }
            if Scalar::of_plain(text) == Scalar::Null)
    }

    /// A scalar; otherwise reports that `wanted` was expected. Returns `None` without a report
    /// while a template is checked by itself, because the values of its parameters are unknown.
    pub(in crate::describe) fn scalar(
        &mut self,
        node: &'t YamlNode<'t>,
        wanted: &str,
    ) -> Option<Resolved<'t>> {
        let YamlKind::Scalar { text, is_plain } = &node.kind else {
            self.wrong_type(node, wanted);
            self.report_unquoted_parameter(node);
            return None;
        };
        if self.namespace.as_ref().is_some_and(|namespace| namespace.bindings.is_some())
            && text.contains("{{")
        {
            return self.substitute(text, node.span);
        }
        let scalar = if *is_plain { Scalar::of_plain(text) } else { Scalar::Text };
        Some(Resolved { text: Cow::Borrowed(text), scalar })
    }

    /// `{{name}}` without quotes is a map in a map.
    fn report_unquoted_parameter(&mut self, node: &'t YamlNode<'t>) {
        let in_template =
            self.namespace.as_ref().is_some_and(|namespace| namespace.bindings.is_some());
        let mut pairs = self.tree.pairs(node);
        if in_template
            && pairs.next().is_some_and(|[key, _]| matches!(key.kind, YamlKind::Map { .. }))
        {
            self.error(
                Code::InvalidTemplateParameter,
                node.span,
                "put the parameter in quotes; without quotes it is a map",
            );
        }
    }

    /// Substitutes template parameters by their values.
    fn substitute(&mut self, text: &'t str, span: Span) -> Option<Resolved<'t>> {
        let mut resolved = String::new();
        let mut rest = text;
        let mut is_open = false;
        while let Some((before, after)) = rest.split_once("{{") {
            resolved.push_str(before);
            let Some((name, after)) = after.split_once("}}") else {
                self.error(Code::InvalidTemplateParameter, span, "`{{` has no closing `}}`");
                return None;
            };
            rest = after;
            let name = name.trim();
            let namespace = self.namespace.as_ref().expect("only a template has parameters");
            let value = match namespace.bindings.as_ref().expect("only a template has parameters") {
                Bindings::Declared(declared) if declared.contains(name) => {
                    is_open = true;
                    continue;
                }
                Bindings::Given(given) if given.contains_key(name) => given[name],
                // The check of the template, or the check for missing values, has reported it
                // already.
                Bindings::Given(_) => return None,
                Bindings::Declared(declared) => {
                    let message = format!("the template has no parameter `{}`", truncated(name));
                    let help = nearest(name, declared.iter().copied())
                        .map(|meant| format!("did you mean `{meant}`?"));
                    let mut diagnostic =
                        self.diagnostic(Code::InvalidTemplateParameter, span, message);
                    diagnostic.help = help;
                    self.report(diagnostic);
                    return None;
                }
            };
            let YamlKind::Scalar { text: value, is_plain } = &value.kind else { return None };
            if before.is_empty() && rest.is_empty() && resolved.is_empty() {
                self.charge(value.len(), span)?;
                // A scalar that is only a parameter has the type of the value: a number or a
                // string.
                let scalar = if *is_plain { Scalar::of_plain(value) } else { Scalar::Text };
                return Some(Resolved { text: Cow::Borrowed(value), scalar });
            }
            self.charge(value.len(), span)?;
            resolved.push_str(value);
        }
        resolved.push_str(rest);
        (!is_open).then_some(Resolved { text: Cow::Owned(resolved), scalar: Scalar::Text })
    }

    /// Charges bytes against the expansion limit; reports once when it is exceeded.
    pub(in crate::describe) fn charge(&mut self, n_bytes: usize, span: Span) -> Option<()> {
        if let Some(left) = self.expanded_bytes_left.checked_sub(n_bytes) {
            self.expanded_bytes_left = left;
            return Some(());
        }
        if self.expanded_bytes_left > 0 {
            self.expanded_bytes_left = 0;
            let max = self.limits.expanded_bytes;
            let message = format!("template instances expand to more than {max} bytes");
            self.error(Code::LimitExceeded, span, message);
        }
        self.has_omissions = true;
        None
    }

    fn check_len(&mut self, text: &str, max: usize, span: Span) -> Option<()> {
        if text.len() <= max {
            return Some(());
        }
        let message = format!("{} bytes, but at most {max} are allowed", text.len());
        self.error(Code::LimitExceeded, span, message);
        None
    }

    fn text_up_to(
        &mut self,
        node: &'t YamlNode<'t>,
        wanted: &str,
        max: usize,
    ) -> Option<Cow<'t, str>> {
        let Resolved { text, scalar } = self.scalar(node, wanted)?;
        if scalar != Scalar::Text {
            let message = format!("expected {wanted}, found {}", scalar.type_name());
            let mut diagnostic = self.diagnostic(Code::WrongType, node.span, message);
            if scalar != Scalar::Null {
                diagnostic =
                    diagnostic.help("put it in quotes").fix(node.span, format!("\"{text}\""));
            }
            self.report(diagnostic);
            return None;
        }
        self.check_len(&text, max, node.span)?;
        Some(text)
    }

    /// Any string.
    pub(in crate::describe) fn text(&mut self, node: &'t YamlNode<'t>) -> Option<Cow<'t, str>> {
        self.text_up_to(node, "a string", self.limits.string_bytes)
    }

    /// A name that may contain any character.
    pub(in crate::describe) fn label(&mut self, node: &'t YamlNode<'t>) -> Option<String> {
        let text = self.text_up_to(node, "a name", self.limits.identifier_bytes)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            self.error(Code::InvalidIdentifier, node.span, "a name must be one non-empty line");
            return None;
        }
        Some(text.into_owned())
    }

    /// An identifier without its namespace.
    pub(in crate::describe) fn id(&mut self, node: &'t YamlNode<'t>) -> Option<Cow<'t, str>> {
        let text = self.text_up_to(node, "an identifier", self.limits.identifier_bytes)?;
        self.check_id(&text, node.span)?;
        Some(text)
    }

    /// An identifier with its namespace.
    pub(in crate::describe) fn qualified_id(&mut self, node: &'t YamlNode<'t>) -> Option<String> {
        let text = self.id(node)?;
        let id = self.qualify(&text);
        self.check_len(&id, self.limits.identifier_bytes, node.span)?;
        Some(id)
    }

    /// `component.port`, with its namespace.
    pub(in crate::describe) fn endpoint(&mut self, node: &'t YamlNode<'t>) -> Option<String> {
        let text = self.text_up_to(node, "an endpoint", self.limits.string_bytes)?;
        self.check_id(&text, node.span)?;
        if !text.contains('.') {
            let message = format!("`{}` is not an endpoint", truncated(&text));
            let diagnostic = self.diagnostic(Code::InvalidIdentifier, node.span, message);
            self.report(diagnostic.help("write `component.port`"));
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
        let message = format!("`{}` is not an identifier", truncated(text));
        let diagnostic = self
            .diagnostic(Code::InvalidIdentifier, span, message)
            .help("use letters, digits, `_`, `:` and `-`, with dots between the parts");
        self.report(diagnostic);
        None
    }

    pub(in crate::describe) fn qualify(&self, id: &str) -> String {
        match self.namespace.as_ref().and_then(|namespace| namespace.prefix) {
            None => id.to_owned(),
            Some(prefix) => {
                let mut text = String::with_capacity(prefix.len() + 1 + id.len());
                text.push_str(prefix);
                text.push('.');
                text.push_str(id);
                text
            }
        }
    }

    /// A list of identifiers without their namespace.
    pub(in crate::describe) fn ids(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Vec<Cow<'t, str>> {
        let (FieldKind::Ids { min } | FieldKind::QualifiedIds { min }) = field.kind else {
            panic!("`{}` is not a list of ids", field.name)
        };
        let items = self.list(node, min, usize::MAX, "identifiers");
        let mut ids = Vec::with_capacity(items.len());
        let mut seen = BTreeSet::new();
        for item in items {
            let Some(id) = self.id(item) else { continue };
            // Short lists are searched linearly, long ones with a set.
            let is_new =
                if items.len() <= 8 { !ids.contains(&id) } else { seen.insert(id.clone()) };
            if is_new {
                ids.push(id);
            } else {
                self.error(Code::InvalidValue, item.span, format!("`{id}` occurs twice"));
            }
        }
        ids
    }

    /// A list of identifiers with their namespace.
    pub(in crate::describe) fn qualified_ids(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Vec<String> {
        self.ids(field, node).iter().map(|id| self.qualify(id)).collect()
    }

    pub(in crate::describe) fn bool(&mut self, node: &'t YamlNode<'t>) -> Option<bool> {
        let Resolved { text, scalar } = self.scalar(node, "`true` or `false`")?;
        if let Scalar::Bool(value) = scalar {
            return Some(value);
        }
        let message = format!("expected `true` or `false`, found {}", scalar.type_name());
        let mut diagnostic = self.diagnostic(Code::WrongType, node.span, message);
        let meant = match &*text.to_ascii_lowercase() {
            "yes" | "on" | "true" => "true",
            "no" | "off" | "false" => "false",
            _ => "",
        };
        if !meant.is_empty() {
            diagnostic = diagnostic.help(format!("write `{meant}`")).fix(node.span, meant);
        }
        self.report(diagnostic);
        None
    }

    /// An integer within the bounds of its field.
    pub(in crate::describe) fn whole(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<i64> {
        let FieldKind::Whole { min, max } = field.kind else {
            panic!("`{}` is not an integer", field.name)
        };
        self.whole_between(node, min, max)
    }

    fn whole_between(&mut self, node: &'t YamlNode<'t>, min: i64, max: i64) -> Option<i64> {
        let Resolved { text, scalar } = self.scalar(node, "an integer")?;
        match scalar {
            Scalar::Int(value) if (min..=max).contains(&value) => Some(value),
            Scalar::Int(_) | Scalar::Huge(_) => {
                let message = format!("{} is not between {min} and {max}", truncated(&text));
                self.error(Code::InvalidValue, node.span, message);
                None
            }
            _ => {
                self.not_a_number(node, &text, scalar, "an integer");
                None
            }
        }
    }

    pub(in crate::describe) fn millis(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<u64> {
        self.whole(field, node).map(i64::unsigned_abs)
    }

    pub(in crate::describe) fn count(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<u32> {
        let value = self.whole(field, node)?;
        Some(u32::try_from(value).expect("the table bounds counts"))
    }

    /// A list of non-negative integers.
    pub(in crate::describe) fn counts(&mut self, node: &'t YamlNode<'t>) -> Vec<u32> {
        let items = self.list(node, 0, usize::MAX, "integers");
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            if let Some(value) = self.whole_between(item, 0, i64::from(u32::MAX)) {
                values.push(u32::try_from(value).expect("it was just bounded"));
            }
        }
        values
    }

    /// A non-negative number.
    #[expect(clippy::cast_precision_loss, reason = "as every reader of such a file expects")]
    pub(in crate::describe) fn number(&mut self, node: &'t YamlNode<'t>) -> Option<f64> {
        let Resolved { text, scalar } = self.scalar(node, "a number")?;
        let value = match scalar {
            Scalar::Int(value) => value as f64,
            Scalar::Huge(value) | Scalar::Float(value) => value,
            _ => {
                self.not_a_number(node, &text, scalar, "a number");
                return None;
            }
        };
        if value.is_finite() && value >= 0.0 {
            return Some(value);
        }
        let message = format!("{} is not a finite number of at least 0", truncated(&text));
        self.error(Code::InvalidValue, node.span, message);
        None
    }

    fn not_a_number(&mut self, node: &'t YamlNode<'t>, text: &str, scalar: Scalar, wanted: &str) {
        let message = format!("expected {wanted}, found {}", scalar.type_name());
        let mut diagnostic = self.diagnostic(Code::WrongType, node.span, message);
        if scalar == Scalar::Text && matches!(Scalar::of_plain(text), Scalar::Int(_)) {
            diagnostic = diagnostic.help("remove the quotes").fix(node.span, text);
        }
        self.report(diagnostic);
    }

    /// The index of a name in the list of its field.
    pub(in crate::describe) fn name(
        &mut self,
        field: &'static Field,
        node: &'t YamlNode<'t>,
    ) -> Option<usize> {
        let (FieldKind::Name(names, code) | FieldKind::NameOr(names, code, _)) = field.kind else {
            panic!("`{}` has no names", field.name)
        };
        let Resolved { text, scalar } = self.scalar(node, "a name")?;
        if scalar == Scalar::Null {
            self.wrong_type(node, "a name");
            return None;
        }
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Some(index);
        }
        let list = names.join(", ");
        let message = format!("`{}` is not one of {list}", truncated(&text));
        let mut diagnostic = self.diagnostic(code, node.span, message);
        diagnostic = suggest(diagnostic, &text, names, node.span);
        if matches!(&*text, "action_goal" | "action_cancel") {
            diagnostic = diagnostic.help("this name is reserved");
        }
        self.report(diagnostic);
        None
    }
}

/// Whether a text is a valid id, or a valid endpoint if it has several parts.
pub(in crate::describe) fn is_identifier(text: &str) -> bool {
    let is_legal =
        |one: u8| one.is_ascii_alphanumeric() || matches!(one, b'_' | b'.' | b':' | b'-');
    text.split('.').all(|part| !part.is_empty()) && text.bytes().all(is_legal)
}

/// Adds the name that was probably meant.
fn suggest(diagnostic: Diagnostic, text: &str, names: &[&'static str], span: Span) -> Diagnostic {
    match nearest(text, names.iter().copied()) {
        Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")).fix(span, meant),
        None => diagnostic,
    }
}
