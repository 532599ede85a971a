//! The page on graph files, from their JSON Schema.

use serde_json::{Map, Value};

/// The page.
pub(super) fn text(schema: &Value) -> String {
    let mut out = String::from(
        "# Graph files\n\nA graph file is YAML. `clockjack schema` prints the JSON Schema that \
         this page is generated from, for editors. An unknown key or a missing required key is an \
         error. The [codes](codes.md) list the further rules, and the \
         [components](components.md) their settings under `config`.\n\n\
         ## The file\n",
    );
    out.push_str(&table(schema));
    let empty = Map::new();
    for (name, section) in schema["$defs"].as_object().unwrap_or(&empty) {
        out.push_str(&format!("\n## {name}\n{}", table(section)));
    }
    out
}

/// A row for each key of a section.
fn table(section: &Value) -> String {
    let mut out = String::from("\n| key | value | default | |\n|---|---|---|---|\n");
    let required: Vec<&str> =
        section["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let empty = Map::new();
    for (key, property) in section["properties"].as_object().unwrap_or(&empty) {
        let default = match property.get("default") {
            _ if required.contains(&key.as_str()) => "**required**".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let about = property["description"].as_str().unwrap_or_default();
        let row = format!("| `{key}` | {} | {default} | {about} |\n", kind(property));
        out.push_str(&row);
    }
    out
}

/// What may stand there, in words.
fn kind(property: &Value) -> String {
    if let Some(to) = reference(property) {
        return to;
    }
    if let Some(choices) = property["oneOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(", or ");
    }
    if let Some(only) = property.get("const") {
        return format!("`{only}`");
    }
    if let Some(names) = property["enum"].as_array() {
        let names: Vec<String> =
            names.iter().map(|name| format!("`{}`", name.as_str().unwrap_or_default())).collect();
        return names.join(", ");
    }
    match property["type"].as_str() {
        Some("array") => format!("a list: {}", kind(&property["items"])),
        Some("object") if property["additionalProperties"].is_object() => {
            format!("by name: {}", kind(&property["additionalProperties"]))
        }
        Some("object") => "a map".to_owned(),
        Some("integer") => format!("an integer{}", bounds(property)),
        Some("number") => format!("a number{}", bounds(property)),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some(_) => "a string".to_owned(),
        None => "a text, a number, `true` or `false`".to_owned(),
    }
}

/// A link to the section that a property is one of.
fn reference(property: &Value) -> Option<String> {
    let name = property["$ref"].as_str()?.rsplit('/').next()?;
    Some(format!("[{name}](#{})", name.to_lowercase()))
}

fn bounds(property: &Value) -> String {
    match (property.get("minimum"), property.get("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" to {max}"),
        (None, None) => String::new(),
    }
}
