//! Converts the names of methods into the names of variants, and knows the reserved names.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt as _;

/// The methods of `ActorRef`: they would hide methods of the generated trait.
const ACTOR_REF_METHODS: [&str; 12] = [
    "ask",
    "ask_with_status",
    "clone",
    "is_stopped",
    "map",
    "path",
    "pid",
    "send",
    "tell",
    "tell_control",
    "tell_or_dead_letter",
    "try_send_system",
];

/// The variant of a method: `set_limit` is `SetLimit`, `r#type` is `Type`.
///
/// Returns `None` if the result is not an identifier (`__`, `_1`) or a keyword (`self_`).
pub(crate) fn variant(method: &Ident) -> Option<Ident> {
    let mut name = String::new();
    for word in method.unraw().to_string().split('_') {
        let mut chars = word.chars();
        name.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(chars.as_str());
    }
    let starts_well = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    let at = Span::mixed_site().located_at(method.span());
    (starts_well && name != "Self").then(|| Ident::new(&name, at))
}

/// Whether `ActorRef` has a method with this name.
pub(crate) fn is_actor_ref_method(method: &Ident) -> bool {
    ACTOR_REF_METHODS.contains(&method.unraw().to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, expected: Option<&str>) {
        let ident: Ident = syn::parse_str(method).unwrap();
        let variant = variant(&ident).map(|variant| variant.to_string());
        assert_eq!(variant.as_deref(), expected, "{method}");
    }

    #[test]
    fn snake_case_becomes_camel_case() {
        check("inc", Some("Inc"));
        check("set_limit", Some("SetLimit"));
        check("set_x_2", Some("SetX2"));
        check("http2_get", Some("Http2Get"));
        check("alreadyCamel", Some("AlreadyCamel"));
        check("été_fini", Some("ÉtéFini"));
    }

    #[test]
    fn underscores_at_the_ends_are_dropped() {
        check("_tick", Some("Tick"));
        check("tick_", Some("Tick"));
        check("a__b", Some("AB"));
    }

    #[test]
    fn raw_identifiers_lose_their_mark() {
        check("r#type", Some("Type"));
        check("r#move", Some("Move"));
    }

    #[test]
    fn what_gives_no_name_is_refused() {
        check("__", None);
        check("_1", None);
        check("self_", None);
    }

    #[test]
    fn methods_of_the_ref_itself_are_taken() {
        let is_actor_ref_method = |name: &str| is_actor_ref_method(&syn::parse_str(name).unwrap());
        assert!(is_actor_ref_method("tell"));
        assert!(is_actor_ref_method("r#send"));
        assert!(!is_actor_ref_method("inc"));
    }
}
