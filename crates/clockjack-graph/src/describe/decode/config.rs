//! Free `config` maps: scalars as they are, lists and maps as their JSON text, which nobody
//! interprets.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use crate::{
    describe::{
        reader::{Reader, Step, brief, key_text},
        scalar::Scalar,
        spec::{ConfigMap, ConfigValue, Span},
        tree::{Node, What},
    },
    diagnostic::Code,
};

/// A free map.
pub(super) fn map<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> ConfigMap {
    let mut map = ConfigMap::default();
    if !matches!(node.what, What::Map { .. }) {
        reader.wrong_type(node, "a map");
        return map;
    }
    let pairs = reader.tree.pairs(node);
    let mut seen = BTreeMap::new();
    map.entries.reserve(pairs.len());
    for [key, value] in pairs {
        let Some(name) = self::key(reader, key, &mut seen) else { continue };
        let value_of = |reader: &mut Reader<'t>| self::value(reader, value);
        if let Some(found) = reader.below(Step::Key(name), value_of) {
            map.entries.push((name.to_owned(), found, value.span));
        }
    }
    map
}

/// A key that has not been there before.
fn key<'t>(
    reader: &mut Reader<'t>,
    key: &'t Node<'t>,
    seen: &mut BTreeMap<&'t str, Span>,
) -> Option<&'t str> {
    let Some(name) = key_text(key) else {
        reader.wrong_type(key, "a name");
        return None;
    };
    let max = reader.limits.identifier_bytes;
    if name.len() > max {
        let message = format!("{} bytes, and at most {max} are allowed", name.len());
        reader.fault(Code::LimitExceeded, key.span, message);
        return None;
    }
    if name.contains("{{") && reader.space.as_ref().is_some_and(|space| space.bindings.is_some()) {
        let message = format!("a parameter stands for a value, not in the key `{}`", brief(name));
        reader.fault(Code::InvalidTemplateParameter, key.span, message);
        return None;
    }
    if let Some(first) = seen.get(name) {
        reader.repeated(name, key.span, *first);
        return None;
    }
    seen.insert(name, key.span);
    Some(name)
}

fn value<'t>(reader: &mut Reader<'t>, node: &'t Node<'t>) -> Option<ConfigValue> {
    let max = reader.limits.config_value_bytes;
    let text = match node.what {
        What::Scalar { .. } => {
            let filled = reader.scalar(node, "a setting")?;
            match filled.is {
                Scalar::Null => return Some(ConfigValue::Null),
                Scalar::Bool(value) => return Some(ConfigValue::Bool(value)),
                Scalar::Int(value) => return Some(ConfigValue::Int(value)),
                Scalar::Huge(value) | Scalar::Float(value) => {
                    return Some(ConfigValue::Float(value));
                }
                Scalar::Text if filled.text.len() <= max => {
                    return Some(ConfigValue::Text(filled.text.into_owned()));
                }
                Scalar::Text => String::new(),
            }
        }
        What::Refused => return None,
        What::Seq { .. } | What::Map { .. } => {
            let mut json = String::new();
            match nested(reader, node, 2, &mut json) {
                Nested::Written => return Some(ConfigValue::Nested(json)),
                Nested::Told => return None,
                Nested::TooLong => json,
            }
        }
    };
    drop(text);
    let message = format!("more than {max} bytes, which a setting may have at most");
    reader.fault(Code::LimitExceeded, node.span, message);
    None
}

/// What became of a list or map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Written,
    Told,
    TooLong,
}

/// Writes the JSON text of a value. The limit is looked at with each value, so that no more than
/// one is written beyond it.
fn nested<'t>(
    reader: &mut Reader<'t>,
    node: &'t Node<'t>,
    depth: usize,
    json: &mut String,
) -> Nested {
    if json.len() > reader.limits.config_value_bytes {
        return Nested::TooLong;
    }
    let is_scalar = matches!(node.what, What::Scalar { .. });
    if depth > reader.limits.config_depth && !is_scalar {
        let max = reader.limits.config_depth;
        let message = format!("more than {max} lists and maps are inside each other");
        reader.fault(Code::LimitExceeded, node.span, message);
        return Nested::Told;
    }
    match node.what {
        What::Scalar { .. } => match reader.scalar(node, "a setting") {
            Some(filled) => scalar(filled.is, &filled.text, json),
            None => return Nested::Told,
        },
        What::Refused => return Nested::Told,
        What::Seq { .. } => {
            json.push('[');
            for (index, item) in reader.tree.items(node).iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                let done = nested(reader, item, depth + 1, json);
                if done != Nested::Written {
                    return done;
                }
            }
            json.push(']');
        }
        What::Map { .. } => {
            json.push('{');
            let mut seen = BTreeMap::new();
            for (index, [key, value]) in reader.tree.pairs(node).enumerate() {
                let Some(name) = self::key(reader, key, &mut seen) else { return Nested::Told };
                if index > 0 {
                    json.push(',');
                }
                quoted(name, json);
                json.push(':');
                let done = nested(reader, value, depth + 1, json);
                if done != Nested::Written {
                    return done;
                }
            }
            json.push('}');
        }
    }
    if json.len() > reader.limits.config_value_bytes { Nested::TooLong } else { Nested::Written }
}

fn scalar(is: Scalar, text: &str, json: &mut String) {
    let written = match is {
        Scalar::Null => json.write_str("null"),
        Scalar::Bool(value) => write!(json, "{value}"),
        Scalar::Int(value) => write!(json, "{value}"),
        Scalar::Huge(value) | Scalar::Float(value) if value.is_finite() => {
            write!(json, "{value:?}")
        }
        // JSON has no word for what is no number, so it stays a text.
        Scalar::Huge(_) | Scalar::Float(_) | Scalar::Text => {
            quoted(text, json);
            Ok(())
        }
    };
    written.expect("a string takes any text");
}

fn quoted(text: &str, json: &mut String) {
    json.push('"');
    for one in text.chars() {
        match one {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            one if one.is_control() => {
                write!(json, "\\u{:04x}", u32::from(one)).expect("a string takes any text");
            }
            one => json.push(one),
        }
    }
    json.push('"');
}
