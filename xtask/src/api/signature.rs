//! Types, generics and functions of rustdoc's JSON, written in Rust syntax.
//!
//! An unknown form is written as its JSON, so that a change of it is still visible.

use serde_json::Value;

/// A list of values; empty if the value is not a list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; empty if the value is not a string.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The name and the value of the only member of an object, if it has exactly one.
pub(super) fn only(value: &Value) -> Option<(&str, &Value)> {
    let (name, inner) = value.as_object()?.iter().next()?;
    Some((name, inner))
}

fn is(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

fn joined(values: &[Value], separator: &str, write: impl Fn(&Value) -> String) -> String {
    values.iter().map(write).collect::<Vec<_>>().join(separator)
}

/// A type.
pub(super) fn type_of(value: &Value) -> String {
    let Some((kind, inner)) = only(value) else { return "_".to_owned() };
    match kind {
        "resolved_path" => path(inner),
        "generic" | "primitive" => text(inner).to_owned(),
        "tuple" if list(inner).len() == 1 => format!("({},)", joined(list(inner), "", type_of)),
        "tuple" => format!("({})", joined(list(inner), ", ", type_of)),
        "slice" => format!("[{}]", type_of(inner)),
        "array" => format!("[{}; {}]", type_of(&inner["type"]), text(&inner["len"])),
        "borrowed_ref" => {
            let lifetime = text(&inner["lifetime"]);
            let space = if lifetime.is_empty() { "" } else { " " };
            let mutable = if is(&inner["is_mutable"]) { "mut " } else { "" };
            format!("&{lifetime}{space}{mutable}{}", type_of(&inner["type"]))
        }
        "raw_pointer" => {
            let kind = if is(&inner["is_mutable"]) { "mut" } else { "const" };
            format!("*{kind} {}", type_of(&inner["type"]))
        }
        "impl_trait" => format!("impl {}", bounds(inner)),
        "dyn_trait" => dyn_trait(inner),
        "qualified_path" => qualified(inner),
        "function_pointer" => {
            format!("{}fn{}", higher_ranked(inner), signature(&inner["sig"]))
        }
        _ => value.to_string(),
    }
}

fn dyn_trait(inner: &Value) -> String {
    let one = |one: &Value| format!("{}{}", higher_ranked(one), path(&one["trait"]));
    let mut parts: Vec<String> = list(&inner["traits"]).iter().map(one).collect();
    parts.extend(inner["lifetime"].as_str().map(str::to_owned));
    format!("dyn {}", parts.join(" + "))
}

fn qualified(inner: &Value) -> String {
    let (of, name) = (type_of(&inner["self_type"]), text(&inner["name"]));
    let args = generic_args(&inner["args"]);
    match inner["trait"].as_object() {
        Some(_) if !text(&inner["trait"]["path"]).is_empty() => {
            format!("<{of} as {}>::{name}{args}", path(&inner["trait"]))
        }
        _ => format!("{of}::{name}{args}"),
    }
}

/// A path with its arguments.
pub(super) fn path(value: &Value) -> String {
    format!("{}{}", text(&value["path"]), generic_args(&value["args"]))
}

fn generic_args(args: &Value) -> String {
    match only(args) {
        Some(("angle_bracketed", inner)) => {
            let constraint = |one: &Value| {
                let name = format!("{}{}", text(&one["name"]), generic_args(&one["args"]));
                match only(&one["binding"]) {
                    Some(("equality", to)) => format!("{name} = {}", term(to)),
                    Some((_, to)) => format!("{name}: {}", bounds(to)),
                    None => name,
                }
            };
            let args = list(&inner["args"]).iter().map(term);
            let all: Vec<String> =
                args.chain(list(&inner["constraints"]).iter().map(constraint)).collect();
            if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
        }
        Some(("parenthesized", inner)) => {
            let inputs = joined(list(&inner["inputs"]), ", ", type_of);
            format!("({inputs}){}", output(&inner["output"]))
        }
        _ => String::new(),
    }
}

/// A generic argument, or the right side of an associated type.
fn term(value: &Value) -> String {
    match only(value) {
        Some(("type", inner)) => type_of(inner),
        Some(("lifetime", inner)) => text(inner).to_owned(),
        Some(("const" | "constant", inner)) => text(&inner["expr"]).to_owned(),
        _ => "_".to_owned(),
    }
}

/// Bounds, with plus signs between them.
pub(super) fn bounds(value: &Value) -> String {
    joined(list(value), " + ", |bound| match only(bound) {
        Some(("trait_bound", inner)) => {
            let mark = if text(&inner["modifier"]) == "maybe" { "?" } else { "" };
            format!("{}{mark}{}", higher_ranked(inner), path(&inner["trait"]))
        }
        Some(("outlives", inner)) => text(inner).to_owned(),
        Some(("use", inner)) => {
            let name = |one: &Value| only(one).map_or("", |(_, name)| text(name)).to_owned();
            format!("use<{}>", joined(list(inner), ", ", name))
        }
        _ => bound.to_string(),
    })
}

/// `for<'a> `, if there are such parameters.
fn higher_ranked(value: &Value) -> String {
    let params = list(&value["generic_params"]);
    if params.is_empty() {
        return String::new();
    }
    format!("for<{}> ", joined(params, ", ", |param| text(&param["name"]).to_owned()))
}

/// `<'a, T: Send = u8, const N: usize>`, without the parameters that `impl Trait` creates.
pub(super) fn generics(value: &Value) -> String {
    let written = list(&value["params"]).iter().filter_map(|param| {
        let name = text(&param["name"]);
        let (kind, inner) = only(&param["kind"])?;
        let default = |default: String| match default.as_str() {
            "" | "_" => String::new(),
            _ => format!(" = {default}"),
        };
        match kind {
            "type" if is(&inner["is_synthetic"]) => None,
            "type" => {
                let bounds = with_colon(&bounds(&inner["bounds"]));
                Some(format!("{name}{bounds}{}", default(type_of(&inner["default"]))))
            }
            "const" => {
                let default = default(text(&inner["default"]).to_owned());
                Some(format!("const {name}: {}{default}", type_of(&inner["type"])))
            }
            _ => {
                let outlives = joined(list(&inner["outlives"]), " + ", |one| text(one).to_owned());
                Some(format!("{name}{}", with_colon(&outlives)))
            }
        }
    });
    let written: Vec<String> = written.collect();
    if written.is_empty() { String::new() } else { format!("<{}>", written.join(", ")) }
}

/// `: A + B`, or nothing.
pub(super) fn with_colon(bounds: &str) -> String {
    if bounds.is_empty() { String::new() } else { format!(": {bounds}") }
}

/// ` where T: Send, ..`, or nothing.
pub(super) fn where_clause(generics: &Value) -> String {
    let predicates = joined(list(&generics["where_predicates"]), ", ", |one| match only(one) {
        Some(("bound_predicate", inner)) => {
            let of = format!("{}{}", higher_ranked(inner), type_of(&inner["type"]));
            format!("{of}: {}", bounds(&inner["bounds"]))
        }
        Some(("lifetime_predicate", inner)) => {
            let outlives = joined(list(&inner["outlives"]), " + ", |one| text(one).to_owned());
            format!("{}: {outlives}", text(&inner["lifetime"]))
        }
        _ => one.to_string(),
    });
    if predicates.is_empty() { String::new() } else { format!(" where {predicates}") }
}

/// `(&mut self, n: u8) -> T`.
fn signature(sig: &Value) -> String {
    let inputs = joined(list(&sig["inputs"]), ", ", |input| {
        let (name, of) = (text(&input[0]), type_of(&input[1]));
        match (name, of.as_str()) {
            ("self", "Self") => "self".to_owned(),
            ("self", "&Self") => "&self".to_owned(),
            ("self", "&mut Self") => "&mut self".to_owned(),
            ("" | "_", _) => of,
            _ => format!("{name}: {of}"),
        }
    });
    format!("({inputs}){}", output(&sig["output"]))
}

fn output(value: &Value) -> String {
    if value.is_null() { String::new() } else { format!(" -> {}", type_of(value)) }
}

/// `const unsafe fn name<T>(..) -> U where ..`.
pub(super) fn function(name: &str, inner: &Value) -> String {
    let header = &inner["header"];
    let mut words = String::new();
    for (key, word) in [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")] {
        if is(&header[key]) {
            words.push_str(word);
        }
    }
    let (sig, of) = (signature(&inner["sig"]), &inner["generics"]);
    format!("{words}fn {name}{}{sig}{}", generics(of), where_clause(of))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(path: &str, args: &[Value]) -> Value {
        let args: Vec<Value> = args.iter().map(|arg| json!({ "type": arg })).collect();
        let args = json!({ "angle_bracketed": { "args": args, "constraints": [] } });
        json!({ "resolved_path": { "path": path, "args": args } })
    }

    #[test]
    fn types_are_written_as_rust_writes_them() {
        let byte = json!({ "primitive": "u8" });
        let (slice, pair) = (json!({ "slice": byte }), json!({ "tuple": [byte, byte] }));
        let lent = json!({ "borrowed_ref":
            { "lifetime": "'a", "is_mutable": true, "type": slice } });
        for (value, expected) in [
            (named("Option", core::slice::from_ref(&pair)), "Option<(u8, u8)>"),
            (lent, "&'a mut [u8]"),
            (json!({ "tuple": [] }), "()"),
            (json!({ "array": { "type": byte, "len": "4" } }), "[u8; 4]"),
            (json!({ "raw_pointer": { "is_mutable": false, "type": byte } }), "*const u8"),
        ] {
            assert_eq!(type_of(&value), expected);
        }
    }

    #[test]
    fn closures_and_associated_types_are_written_whole() {
        let byte = json!({ "primitive": "u8" });
        let takes = json!({ "parenthesized": { "inputs": [byte], "output": byte } });
        let bound = json!({ "trait_bound": { "generic_params": [], "modifier": "none",
            "trait": { "path": "FnMut", "args": takes } } });
        assert_eq!(type_of(&json!({ "impl_trait": [bound] })), "impl FnMut(u8) -> u8");
        let held = json!({ "impl_trait": [bound, { "use": [{ "param": "A" }] }] });
        assert_eq!(type_of(&held), "impl FnMut(u8) -> u8 + use<A>");
        let item = json!({ "qualified_path": { "name": "Item", "args": null,
            "self_type": { "generic": "I" }, "trait": { "path": "Iterator", "args": null } } });
        assert_eq!(type_of(&item), "<I as Iterator>::Item");
    }

    #[test]
    fn a_function_shows_what_a_caller_must_know() {
        let inner = json!({
            "header": { "is_const": true, "is_async": false, "is_unsafe": false },
            "generics": {
                "params": [{ "name": "T", "kind": { "type": { "bounds": [
                    { "trait_bound": { "generic_params": [], "modifier": "maybe",
                      "trait": { "path": "Sized", "args": null } } }
                ], "default": null, "is_synthetic": false } } }],
                "where_predicates": []
            },
            "sig": {
                "inputs": [
                    ["self", { "borrowed_ref": { "lifetime": null, "is_mutable": false,
                        "type": { "generic": "Self" } } }],
                    ["value", { "generic": "T" }]
                ],
                "output": { "primitive": "bool" }
            }
        });
        assert_eq!(function("has", &inner), "const fn has<T: ?Sized>(&self, value: T) -> bool");
    }
}
