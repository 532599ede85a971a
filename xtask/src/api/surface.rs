//! The public items of a crate, one line each, from rustdoc's JSON.
//!
//! An item is listed in full at its shortest path; its other paths are listed as re-exports. Items
//! that are hidden from the documentation are not part of the surface, nor are blanket
//! implementations or those that the compiler derives. An exception is a type that is not `Send` or
//! not `Sync`, or only if its parameters are: a private field can change this, and nobody would
//! notice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::{
    breaking::{OPEN, PROVIDED, UNIT},
    signature::{
        bounds, function, generics, list, only, path, text, type_of, where_clause, with_colon,
    },
};

/// Implementations of the compiler that mean nothing to a user.
const MEANINGLESS: [&str; 1] = ["StructuralPartialEq"];
/// Auto traits that users rely on.
const RELIED_UPON: [&str; 2] = ["Send", "Sync"];

/// The lines of a crate's surface, sorted.
pub(super) fn lines(json: &Value) -> Vec<String> {
    let mut surface =
        Surface { index: &json["index"], seen: BTreeMap::new(), out: BTreeSet::new() };
    let root = surface.item(&json["root"]);
    let name = text(&root["name"]).to_owned();
    let mut open = VecDeque::from([(name, root)]);
    while let Some((at, module)) = open.pop_front() {
        surface.module(&at, module, &mut open);
    }
    surface.out.into_iter().collect()
}

struct Surface<'j> {
    index: &'j Value,
    /// The path at which an item is listed in full.
    seen: BTreeMap<String, String>,
    out: BTreeSet<String>,
}

type Open<'j> = VecDeque<(String, &'j Value)>;

impl<'j> Surface<'j> {
    fn item(&self, id: &Value) -> &'j Value {
        self.index.get(id.to_string()).unwrap_or(&Value::Null)
    }

    fn items(&self, ids: &Value) -> Vec<&'j Value> {
        let mut items: Vec<&Value> = list(ids).iter().map(|id| self.item(id)).collect();
        items.sort_by_key(|item| text(&item["name"]).to_owned());
        items
    }

    fn say(&mut self, line: String) {
        self.out.insert(line);
    }

    fn module(&mut self, at: &str, module: &'j Value, open: &mut Open<'j>) {
        for item in self.items(&module["inner"]["module"]["items"]) {
            match only(&item["inner"]) {
                Some(("use", what)) => self.reexport(at, what, open),
                _ => self.named(&format!("{at}::{}", text(&item["name"])), item, open),
            }
        }
    }

    /// A re-export: of one of our own items at another path, or of an item of another crate.
    fn reexport(&mut self, at: &str, what: &'j Value, open: &mut Open<'j>) {
        let (source, item) = (text(&what["source"]), self.item(&what["id"]));
        if what["is_glob"].as_bool() == Some(true) {
            match only(&item["inner"]) {
                Some(("module", _)) => self.module(at, item, open),
                _ => self.say(format!("pub use {at}::{{{source}::*}}")),
            }
            return;
        }
        let to = format!("{at}::{}", text(&what["name"]));
        if item.is_null() {
            self.say(format!("pub use {to} = {source}"))
        } else {
            self.named(&to, item, open)
        }
    }

    /// An item at a path: in full the first time.
    fn named(&mut self, at: &str, item: &'j Value, open: &mut Open<'j>) {
        let Some((kind, inner)) = only(&item["inner"]) else { return };
        if let Some(first) = self.seen.insert(item["id"].to_string(), at.to_owned()) {
            self.say(format!("pub use {at} = {first}"));
            self.seen.insert(item["id"].to_string(), first);
            return;
        }
        let of = &inner["generics"];
        let (params, bound) = (generics(of), where_clause(of));
        match kind {
            "module" => {
                self.say(format!("pub mod {at}"));
                open.push_back((at.to_owned(), item));
            }
            "struct" | "union" => {
                let open = if has_hidden_fields(inner) { OPEN } else { openness(item) };
                let unit = if inner["kind"] == "unit" && open.is_empty() { UNIT } else { "" };
                self.say(format!("pub {kind} {at}{params}{bound}{unit}{open}"));
                self.fields(at, fields_of(inner));
                self.implementations(at, inner);
            }
            "enum" => {
                self.say(format!("pub enum {at}{params}{bound}{}", openness(item)));
                for variant in self.items(&inner["variants"]) {
                    self.variant(at, variant);
                }
                self.implementations(at, inner);
            }
            "trait" => {
                let above = with_colon(&bounds(&inner["bounds"]));
                self.say(format!("pub trait {at}{params}{above}{bound}"));
                for member in self.items(&inner["items"]) {
                    let provided = if has_default(member) { PROVIDED } else { "" };
                    self.member(at, member, provided);
                }
            }
            "function" => self.say(format!("pub {}", function(at, inner))),
            "constant" => self.say(format!("pub const {at}: {}", type_of(&inner["type"]))),
            "static" => self.say(format!("pub static {at}: {}", type_of(&inner["type"]))),
            "type_alias" => {
                self.say(format!("pub type {at}{params} = {}", type_of(&inner["type"])));
            }
            "macro" => self.say(format!("pub macro {at}!")),
            "proc_macro" => self.say(format!("pub macro {at} ({})", text(&inner["kind"]))),
            other => self.say(format!("pub {other} {at}")),
        }
    }

    /// The public fields. Private fields are omitted.
    fn fields(&mut self, at: &str, ids: &Value) {
        for id in list(ids) {
            let field = self.item(id);
            if text(&field["visibility"]) == "public" {
                let of = type_of(&field["inner"]["struct_field"]);
                self.say(format!("pub {at}::{}: {of}", text(&field["name"])));
            }
        }
    }

    fn variant(&mut self, at: &str, variant: &'j Value) {
        let name = format!("{at}::{}", text(&variant["name"]));
        let kind = &variant["inner"]["variant"]["kind"];
        let type_at = |id: &Value| type_of(&self.item(id)["inner"]["struct_field"]);
        let shape = match only(kind) {
            Some(("tuple", ids)) => {
                format!("({})", list(ids).iter().map(type_at).collect::<Vec<_>>().join(", "))
            }
            Some(("struct", inner)) => {
                let fields = list(&inner["fields"])
                    .iter()
                    .map(|id| format!("{}: {}", text(&self.item(id)["name"]), type_at(id)));
                format!(" {{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        self.say(format!("pub {name}{shape}"));
    }

    /// The inherent methods and the implemented traits.
    fn implementations(&mut self, at: &str, inner: &'j Value) {
        for item in self.items(&inner["impls"]) {
            let block = &item["inner"]["impl"];
            if block.is_null() || !block["blanket_impl"].is_null() {
                continue;
            }
            if block["is_synthetic"].as_bool() == Some(true) && !is_conditional_or_negative(block) {
                continue;
            }
            if block["trait"].is_null() {
                for member in self.items(&block["items"]) {
                    if text(&member["visibility"]) == "public" {
                        self.member(at, member, "");
                    }
                }
            } else if !MEANINGLESS.contains(&text(&block["trait"]["path"])) {
                let (of, what) = (&block["generics"], path(&block["trait"]));
                let negative = if block["is_negative"].as_bool() == Some(true) { "!" } else { "" };
                let (params, bound) = (generics(of), where_clause(of));
                let to = type_of(&block["for"]);
                self.say(format!("impl{params} {negative}{what} for {to}{bound} ({at})"));
            }
        }
    }

    /// A method, constant or type of a trait or a type, with what to write after it.
    fn member(&mut self, at: &str, member: &Value, after: &str) {
        let name = format!("{at}::{}", text(&member["name"]));
        let line = match only(&member["inner"]) {
            Some(("function", inner)) => function(&name, inner),
            Some(("assoc_const", inner)) => format!("const {name}: {}", type_of(&inner["type"])),
            Some(("assoc_type", inner)) => {
                let is = match type_of(&inner["type"]) {
                    none if none == "_" => String::new(),
                    of => format!(" = {of}"),
                };
                format!("type {name}{}{is}", with_colon(&bounds(&inner["bounds"])))
            }
            _ => return,
        };
        self.say(format!("pub {line}{after}"));
    }
}

/// Whether an implementation may omit a member of a trait. Defaults of types are unstable.
fn has_default(member: &Value) -> bool {
    match only(&member["inner"]) {
        Some(("function", inner)) => inner["has_body"].as_bool() == Some(true),
        Some(("assoc_const", inner)) => !inner["value"].is_null(),
        _ => false,
    }
}

/// Whether an auto trait implementation is listed: only if the trait does not hold unconditionally.
fn is_conditional_or_negative(block: &Value) -> bool {
    let is_conditional = !list(&block["generics"]["where_predicates"]).is_empty();
    let is_negative = block["is_negative"].as_bool() == Some(true);
    RELIED_UPON.contains(&text(&block["trait"]["path"])) && (is_negative || is_conditional)
}

/// Whether fields or variants may be added without breaking users (`non_exhaustive`).
fn openness(item: &Value) -> &'static str {
    let is_open = list(&item["attrs"]).iter().any(|attribute| attribute == "non_exhaustive");
    if is_open { OPEN } else { "" }
}

/// Whether a struct with public fields has others, too: then users cannot write a value of it. A
/// hidden field of a tuple is null.
fn has_hidden_fields(inner: &Value) -> bool {
    let (plain, tuple) = (&inner["kind"]["plain"], list(&inner["kind"]["tuple"]));
    let n_hidden = tuple.iter().filter(|id| id.is_null()).count();
    let is_mixed = n_hidden > 0 && n_hidden < tuple.len();
    let has_public = !list(&plain["fields"]).is_empty();
    is_mixed || plain["has_stripped_fields"].as_bool() == Some(true) && has_public
}

/// The ids of a struct's fields.
fn fields_of(inner: &Value) -> &Value {
    match only(&inner["kind"]) {
        Some(("plain", plain)) => &plain["fields"],
        Some((_, ids)) => ids,
        None => &inner["fields"],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(id: u32, name: &str, inner: Value) -> Value {
        json!({ "id": id, "name": name, "visibility": "public", "inner": inner })
    }

    fn module(items: &[u32]) -> Value {
        json!({ "module": { "items": items } })
    }

    fn checked(index: Value, expected: &[&str]) {
        assert_eq!(lines(&json!({ "root": 0, "index": index })), expected);
    }

    #[test]
    fn an_item_is_listed_in_full_at_its_shortest_path() {
        let of = json!({ "generics": {}, "kind": { "tuple": [] }, "impls": [] });
        let again = json!({ "use": { "source": "inner::Tick", "name": "Tick", "id": 2,
            "is_glob": false } });
        let index = json!({
            "0": item(0, "time", module(&[1, 3])),
            "1": item(1, "inner", module(&[2])),
            "2": item(2, "Tick", json!({ "struct": of })),
            "3": item(3, "", again),
        });
        let expected = [
            "pub mod time::inner",
            "pub struct time::Tick",
            "pub use time::inner::Tick = time::Tick",
        ];
        checked(index, &expected);
    }

    #[test]
    fn what_is_of_another_crate_is_named_with_its_source() {
        let other = json!({ "use": { "source": "exec::Failure", "name": "Failure", "id": 77,
            "is_glob": false } });
        let index = json!({ "0": item(0, "graph", module(&[1])), "1": item(1, "", other) });
        checked(index, &["pub use graph::Failure = exec::Failure"]);
    }

    #[test]
    fn non_exhaustive_and_not_send_are_listed() {
        let auto = |name: &str, is_negative: bool, bounds: Value| {
            json!({ "impl": { "is_synthetic": true, "is_negative": is_negative, "items": [],
                "blanket_impl": null, "generics": { "params": [], "where_predicates": bounds },
                "trait": { "path": name }, "for": { "primitive": "u8" } } })
        };
        let of = json!({ "generics": {}, "variants": [], "impls": [2, 3, 4] });
        let mut open = item(1, "E", json!({ "enum": of }));
        open["attrs"] = json!(["non_exhaustive"]);
        let index = json!({
            "0": item(0, "a", module(&[1])),
            "1": open,
            "2": item(2, "", auto("Send", true, json!([]))),
            "3": item(3, "", auto("Sync", false, json!([]))),
            "4": item(4, "", auto("Unpin", true, json!([]))),
        });
        checked(index, &["impl !Send for u8 (a::E)", "pub enum a::E, non-exhaustive"]);
    }

    #[test]
    fn members_with_a_default_and_structs_with_hidden_fields_are_marked() {
        let method = |id: u32, name: &str, has_body: bool| {
            let sig = json!({ "inputs": [], "output": null });
            let inner = json!({ "function": { "sig": sig, "generics": {}, "header": {},
                "has_body": has_body } });
            item(id, name, inner)
        };
        let of = json!({ "generics": {}, "bounds": [], "items": [2, 3] });
        let plain = json!({ "plain": { "fields": [5], "has_stripped_fields": true } });
        let index = json!({
            "0": item(0, "a", module(&[1, 4])),
            "1": item(1, "T", json!({ "trait": of })),
            "2": method(2, "must", false),
            "3": method(3, "may", true),
            "4": item(4, "S", json!({ "struct": { "generics": {}, "kind": plain, "impls": [] } })),
            "5": item(5, "x", json!({ "struct_field": { "primitive": "u8" } })),
        });
        let expected = [
            "pub a::S::x: u8",
            "pub fn a::T::may() { .. }",
            "pub fn a::T::must()",
            "pub struct a::S, non-exhaustive",
            "pub trait a::T",
        ];
        checked(index, &expected);
    }

    #[test]
    fn a_tuple_with_a_hidden_field_and_a_struct_without_fields_are_marked() {
        let of = |kind: Value| json!({ "struct": { "generics": {}, "kind": kind, "impls": [] } });
        let mut open = item(5, "OpenUnit", of(json!("unit")));
        open["attrs"] = json!(["non_exhaustive"]);
        let index = json!({
            "0": item(0, "a", module(&[1, 2, 3, 4, 5])),
            "1": item(1, "Id", of(json!({ "tuple": [6] }))),
            "2": item(2, "Mixed", of(json!({ "tuple": [7, null] }))),
            "3": item(3, "Opaque", of(json!({ "tuple": [null, null] }))),
            "4": item(4, "Unit", of(json!("unit"))),
            "5": open,
            "6": item(6, "0", json!({ "struct_field": { "primitive": "u8" } })),
            "7": item(7, "0", json!({ "struct_field": { "primitive": "u16" } })),
        });
        let expected = [
            "pub a::Id::0: u8",
            "pub a::Mixed::0: u16",
            "pub struct a::Id",
            "pub struct a::Mixed, non-exhaustive",
            "pub struct a::Opaque",
            "pub struct a::OpenUnit, non-exhaustive",
            "pub struct a::Unit;",
        ];
        checked(index, &expected);
    }

    #[test]
    fn variants_show_what_they_carry() {
        let of = json!({ "generics": {}, "variants": [2], "impls": [] });
        let index = json!({
            "0": item(0, "a", module(&[1])),
            "1": item(1, "E", json!({ "enum": of })),
            "2": item(2, "V", json!({ "variant": { "kind": { "tuple": [3] } } })),
            "3": item(3, "0", json!({ "struct_field": { "primitive": "u8" } })),
        });
        checked(index, &["pub a::E::V(u8)", "pub enum a::E"]);
    }
}
