//! Decodes free `config` maps: scalars as they are, lists and maps as their JSON text, which is not
//! interpreted.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use crate::{
    describe::{
        reader::{PathStep, Reader, key_text, truncated},
        scalar::Scalar,
        spec::{ConfigMap, ConfigValue, Span},
        tree::{YamlKind, YamlNode},
    },
    diagnostic::Code,
};

/// Decodes a free map.
pub(super) fn map<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> ConfigMap {
    let mut map = ConfigMap::default();
    if !matches!(node.kind, YamlKind::Map { .. }) {
        reader.wrong_type(node, "a map");
        return map;
    }
    let pairs = reader.tree.pairs(node);
    let mut seen = BTreeMap::new();
    map.entries.reserve(pairs.len());
    for [key, value] in pairs {
        let Some(name) = self::key(reader, key, &mut seen) else { continue };
        let value_of = |reader: &mut Reader<'t>| self::value(reader, value);
        if let Some(found) = reader.with_step(PathStep::Key(name), value_of) {
            map.entries.push((name.to_owned(), found, value.span));
        }
    }
    map
}

/// A key that has not occurred before.
fn key<'t>(
    reader: &mut Reader<'t>,
    key: &'t YamlNode<'t>,
    seen: &mut BTreeMap<&'t str, Span>,
) -> Option<&'t str> {
    let Some(name) = key_text(key) else {
        reader.wrong_type(key, "a name");
        return None;
    };
    let max = reader.limits.identifier_bytes;
    if name.len() > max {
        let message = format!("{} bytes, but at most {max} are allowed", name.len());
        reader.error(Code::LimitExceeded, key.span, message);
        return None;
    }
    if name.contains("{{")
        && reader.namespace.as_ref().is_some_and(|namespace| namespace.bindings.is_some())
    {
        let message = format!("a parameter cannot be used in the key `{}`", truncated(name));
        reader.error(Code::InvalidTemplateParameter, key.span, message);
        return None;
    }
    if let Some(first) = seen.get(name) {
        reader.duplicate_key(name, key.span, *first);
        return None;
    }
    seen.insert(name, key.span);
    Some(name)
}

fn value<'t>(reader: &mut Reader<'t>, node: &'t YamlNode<'t>) -> Option<ConfigValue> {
    let max = reader.limits.config_value_bytes;
    let text = match node.kind {
        YamlKind::Scalar { .. } => {
            let resolved = reader.scalar(node, "a setting")?;
            match resolved.scalar {
                Scalar::Null => return Some(ConfigValue::Null),
                Scalar::Bool(value) => return Some(ConfigValue::Bool(value)),
                Scalar::Int(value) => return Some(ConfigValue::Int(value)),
                Scalar::Huge(value) | Scalar::Float(value) => {
                    return Some(ConfigValue::Float(value));
                }
                Scalar::Text if resolved.text.len() <= max => {
                    return Some(ConfigValue::Text(resolved.text.into_owned()));
                }
                Scalar::Text => String::new(),
            }
        }
        YamlKind::Rejected => return None,
        YamlKind::Seq { .. } | YamlKind::Map { .. } => {
            let mut json = String::new();
            match nested(reader, node, 2, &mut json) {
                Nested::Written => return Some(ConfigValue::Nested(json)),
                Nested::Reported => return None,
                Nested::TooLong => json,
            }
        }
    };
    drop(text);
    let message = format!("the setting is longer than {max} bytes");
    reader.error(Code::LimitExceeded, node.span, message);
    None
}

/// The result of writing a list or map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Written,
    Reported,
    TooLong,
}

/// Writes the JSON text of a value. The limit is checked at each value, so that at most one value
/// is written beyond it.
fn nested<'t>(
    reader: &mut Reader<'t>,
    node: &'t YamlNode<'t>,
    depth: usize,
    json: &mut String,
) -> Nested {
    if json.len() > reader.limits.config_value_bytes {
        return Nested::TooLong;
    }
    let is_scalar = matches!(node.kind, YamlKind::Scalar { .. });
    if depth > reader.limits.config_depth && !is_scalar {
        let max = reader.limits.config_depth;
        let message = format!("lists and maps are nested more than {max} levels deep");
        reader.error(Code::LimitExceeded, node.span, message);
        return Nested::Reported;
    }
    match node.kind {
        YamlKind::Scalar { .. } => match reader.scalar(node, "a setting") {
            Some(resolved) => scalar(resolved.scalar, &resolved.text, json),
            None => return Nested::Reported,
        },
        YamlKind::Rejected => return Nested::Reported,
        YamlKind::Seq { .. } => {
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
        YamlKind::Map { .. } => {
            json.push('{');
            let mut seen = BTreeMap::new();
            for (index, [key, value]) in reader.tree.pairs(node).enumerate() {
                let Some(name) = self::key(reader, key, &mut seen) else { return Nested::Reported };
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

fn scalar(scalar: Scalar, text: &str, json: &mut String) {
    let written = match scalar {
        Scalar::Null => json.write_str("null"),
        Scalar::Bool(value) => write!(json, "{value}"),
        Scalar::Int(value) => write!(json, "{value}"),
        Scalar::Huge(value) | Scalar::Float(value) if value.is_finite() => {
            write!(json, "{value:?}")
        }
        // JSON cannot represent NaN and infinities, so they stay text.
        Scalar::Huge(_) | Scalar::Float(_) | Scalar::Text => {
            quoted(text, json);
            Ok(())
        }
    };
    written.expect("writing to a string cannot fail");
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
                write!(json, "\\u{:04x}", u32::from(one)).expect("writing to a string cannot fail");
            }
            one => json.push(one),
        }
    }
    json.push('"');
}
