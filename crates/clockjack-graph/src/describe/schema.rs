//! Generates the JSON Schema of graph files from the table that the loader uses. The schema
//! describes the structure of a file; only the compiler checks whether a graph is valid.

use serde_json::{Map, Value, json};

use super::{
    fields::{Field, FieldKind, ROOT, Section},
    limits::FileLimits,
};

/// The version of the graph semantics, as opposed to the version of the file format.
const SEMANTIC_CONTRACT_VERSION: &str = "0.2";
/// Letters, digits and a few other characters; dots only between parts.
const ID_PATTERN: &str = "^[A-Za-z0-9_:-]+(\\.[A-Za-z0-9_:-]+)*$";
const ENDPOINT_PATTERN: &str = "^[A-Za-z0-9_:-]+(\\.[A-Za-z0-9_:-]+)+$";

/// The JSON Schema (Draft 2020-12) of graph files, for editors and other programs.
#[must_use]
pub fn json_schema() -> String {
    let mut sections = Map::new();
    define(&ROOT, &mut sections);
    let mut root = sections.remove(ROOT.name).expect("it was just defined");
    let head = root.as_object_mut().expect("a section is an object");
    head.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    head.insert("title".into(), json!("Clockjack graph, schema version 1"));
    head.insert("x-topoexec-semantic_contract_version".into(), json!(SEMANTIC_CONTRACT_VERSION));
    head.insert("$defs".into(), Value::Object(sections));
    let mut text = format!("{root:#}");
    text.push('\n');
    text
}

/// Adds a section and the sections that it refers to.
fn define(section: &'static Section, sections: &mut Map<String, Value>) {
    if sections.contains_key(section.name) {
        return;
    }
    // Inserted before its references are followed, so that no section is written twice.
    sections.insert(section.name.into(), Value::Null);
    let mut properties = Map::new();
    for field in section.fields {
        properties.insert(field.name.into(), property(field, sections));
    }
    let fields = section.fields.iter();
    let required: Value =
        fields.filter(|field| field.is_required).map(|field| field.name).collect();
    let written = json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    });
    sections.insert(section.name.into(), written);
}

fn property(field: &'static Field, sections: &mut Map<String, Value>) -> Value {
    let mut written = shape(field.kind, sections);
    let object = written.as_object_mut().expect("a shape is an object");
    object.insert("description".into(), json!(field.description));
    if !field.default.is_empty() {
        let default = serde_json::from_str(field.default).expect("the table has JSON texts");
        object.insert("default".into(), default);
    }
    written
}

fn shape(kind: FieldKind, sections: &mut Map<String, Value>) -> Value {
    let limits = &FileLimits::DEFAULT;
    let id = json!({
        "type": "string", "pattern": ID_PATTERN, "minLength": 1,
        "maxLength": limits.identifier_bytes,
    });
    match kind {
        FieldKind::Version => json!({ "const": 1 }),
        FieldKind::Id | FieldKind::QualifiedId => id,
        FieldKind::Label => {
            json!({ "type": "string", "minLength": 1, "maxLength": limits.identifier_bytes })
        }
        FieldKind::Text => json!({ "type": "string", "maxLength": limits.string_bytes }),
        FieldKind::Name(names, _) => json!({ "enum": names }),
        FieldKind::Bool => json!({ "type": "boolean" }),
        FieldKind::Whole { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        FieldKind::Number => json!({ "type": "number", "minimum": 0 }),
        FieldKind::Ids { min } | FieldKind::QualifiedIds { min } => {
            json!({ "type": "array", "items": id, "minItems": min, "uniqueItems": true })
        }
        FieldKind::Wholes => json!({
            "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": u32::MAX },
        }),
        FieldKind::Endpoint => json!({
            "type": "string", "pattern": ENDPOINT_PATTERN, "maxLength": limits.string_bytes,
        }),
        FieldKind::Config => json!({ "type": "object" }),
        FieldKind::Arguments => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        FieldKind::Map(section) => refer(section, sections),
        FieldKind::MapOf(section, max) => json!({
            "type": "object", "minProperties": 1, "maxProperties": max(limits),
            "propertyNames": id, "additionalProperties": refer(section, sections),
        }),
        FieldKind::ListOf { of, min, max } => json!({
            "type": "array", "items": refer(of, sections), "minItems": min,
            "maxItems": max(limits),
        }),
        FieldKind::NameOr(names, _, section) => {
            json!({ "oneOf": [{ "enum": names }, refer(section, sections)] })
        }
    }
}

fn refer(section: &'static Section, sections: &mut Map<String, Value>) -> Value {
    define(section, sections);
    json!({ "$ref": format!("#/$defs/{}", section.name) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All fields below a section, as `section.field`.
    fn fields_of(section: &'static Section, found: &mut BTreeSet<String>) {
        for field in section.fields {
            if !found.insert(format!("{}.{}", section.name, field.name)) {
                continue;
            }
            match field.kind {
                FieldKind::Map(below)
                | FieldKind::MapOf(below, _)
                | FieldKind::ListOf { of: below, .. }
                | FieldKind::NameOr(_, _, below) => fields_of(below, found),
                _ => {}
            }
        }
    }

    #[test]
    fn the_schema_has_exactly_the_fields_that_the_loader_knows() {
        let schema: Value = serde_json::from_str(&json_schema()).expect("it is JSON");
        let mut written = BTreeSet::new();
        let mut add = |name: &str, section: &Value| {
            for field in section["properties"].as_object().expect("a section").keys() {
                written.insert(format!("{name}.{field}"));
            }
        };
        add("root", &schema);
        for (name, section) in schema["$defs"].as_object().expect("sections") {
            add(name, section);
        }
        let mut known = BTreeSet::new();
        fields_of(&ROOT, &mut known);
        assert_eq!(written, known);
        assert!(known.len() > 100, "{}", known.len());
    }

    #[test]
    fn the_schema_says_which_meaning_it_is_of() {
        let schema: Value = serde_json::from_str(&json_schema()).expect("it is JSON");
        assert_eq!(schema["x-topoexec-semantic_contract_version"], "0.2");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["lanes"]["maxProperties"], 256);
        let modes = schema["$defs"]["policy"]["properties"]["mode"]["enum"].to_string();
        assert!(modes.contains("previous_tick"), "{modes}");
    }

    #[test]
    fn every_reference_has_its_section() {
        let text = json_schema();
        let schema: Value = serde_json::from_str(&text).expect("it is JSON");
        for part in text.split("#/$defs/").skip(1) {
            let name = part.split('"').next().expect("a reference ends");
            assert!(schema["$defs"][name].is_object(), "{name}");
        }
    }
}
