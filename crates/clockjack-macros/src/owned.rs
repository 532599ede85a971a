//! Types that cross to another actor own what they carry.
//!
//! A message waits in a mailbox, an answer in a slot: what either borrows may be gone by then. The
//! compiler would say so with "missing lifetime specifier"; here it is said with what to write
//! instead. References that are arguments of a function type (`fn(&str)`, `dyn Fn(&str)`) borrow
//! only while they are called, and are free.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    AngleBracketedGenericArguments, GenericArgument, Lifetime, Path, PathArguments, ReturnType,
    Type, TypeParamBound, TypeReference, punctuated::Punctuated,
};

use crate::faults::Faults;

/// What a type is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cargo {
    /// A parameter of a method that becomes a message.
    Message,
    /// What an `#[ask]` returns.
    Answer,
    /// The actor itself.
    Actor,
}

impl Cargo {
    fn must_own(self) -> &'static str {
        match self {
            Cargo::Message => "a message must own what it carries",
            Cargo::Answer => "an answer must own what it carries",
            Cargo::Actor => "an actor must own what it holds",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Cargo::Message => "take",
            Cargo::Answer => "return",
            Cargo::Actor => "hold",
        }
    }
}

/// Finds what a type borrows or leaves open.
pub(crate) fn check(ty: &Type, cargo: Cargo, faults: &mut Faults) {
    match ty {
        Type::Reference(reference) => check_reference(reference, cargo, faults),
        Type::ImplTrait(_) => {
            let what = match cargo {
                Cargo::Message => {
                    "a message has one type: name it, or take `Box<dyn Trait + Send>` instead of \
                     `impl Trait`"
                }
                Cargo::Answer | Cargo::Actor => {
                    "an answer has one type: name it, or return `Box<dyn Trait + Send>` instead \
                     of `impl Trait`"
                }
            };
            faults.add(ty, what);
        }
        Type::Path(path) => {
            if let Some(own) = &path.qself {
                check(&own.ty, cargo, faults);
            }
            check_path(&path.path, cargo, faults);
        }
        Type::TraitObject(object) => check_bounds(&object.bounds, cargo, faults),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|elem| check(elem, cargo, faults)),
        Type::Array(array) => check(&array.elem, cargo, faults),
        Type::Slice(slice) => check(&slice.elem, cargo, faults),
        Type::Paren(paren) => check(&paren.elem, cargo, faults),
        Type::Group(group) => check(&group.elem, cargo, faults),
        Type::Ptr(pointer) => check(&pointer.elem, cargo, faults),
        _ => (),
    }
}

/// The type that a path in a type position names, without the groups a macro may have put around.
pub(crate) fn as_path(ty: &Type) -> Option<&Path> {
    match ty {
        Type::Path(path) if path.qself.is_none() => Some(&path.path),
        Type::Group(group) => as_path(&group.elem),
        Type::Paren(paren) => as_path(&paren.elem),
        _ => None,
    }
}

/// Whether a type is a path that ends in this word.
pub(crate) fn ends_in(ty: &Type, word: &str) -> bool {
    let last = as_path(ty).and_then(|path| path.segments.last());
    last.is_some_and(|segment| segment.ident == word)
}

fn check_reference(reference: &TypeReference, cargo: Cargo, faults: &mut Faults) {
    let is_static = reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static");
    if is_static {
        return check(&reference.elem, cargo, faults);
    }
    let owned = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", shown(&slice.elem)),
        Type::TraitObject(object) => format!("Box<{} + Send>", shown(object)),
        elem => shown(elem),
    };
    let borrowed = shown(reference);
    let (must_own, verb) = (cargo.must_own(), cargo.verb());
    faults.add(reference, format!("{must_own}: {verb} `{owned}` instead of `{borrowed}`"));
}

fn check_path(path: &Path, cargo: Cargo, faults: &mut Faults) {
    for segment in &path.segments {
        if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
            check_arguments(arguments, cargo, faults);
        }
        // `Fn(&str) -> String`: what it returns is seen by the caller only.
    }
}

fn check_arguments(arguments: &AngleBracketedGenericArguments, cargo: Cargo, faults: &mut Faults) {
    for argument in &arguments.args {
        match argument {
            GenericArgument::Lifetime(lifetime) => check_lifetime(lifetime, cargo, faults),
            GenericArgument::Type(ty) => check(ty, cargo, faults),
            GenericArgument::AssocType(assoc) => check(&assoc.ty, cargo, faults),
            GenericArgument::Constraint(constraint) => {
                check_bounds(&constraint.bounds, cargo, faults);
            }
            _ => (),
        }
    }
}

fn check_bounds<P>(bounds: &Punctuated<TypeParamBound, P>, cargo: Cargo, faults: &mut Faults) {
    for bound in bounds {
        match bound {
            TypeParamBound::Lifetime(lifetime) => check_lifetime(lifetime, cargo, faults),
            // With `for<'a>` of its own a bound borrows only while it is called.
            TypeParamBound::Trait(bound) if bound.lifetimes.is_none() => {
                check_path(&bound.path, cargo, faults);
            }
            _ => (),
        }
    }
}

fn check_lifetime(lifetime: &Lifetime, cargo: Cargo, faults: &mut Faults) {
    if lifetime.ident != "static" {
        let must_own = cargo.must_own();
        faults.add(lifetime, format!("{must_own}: only `'static` can stand here"));
    }
}

/// The type that a function returns.
pub(crate) fn returned(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

/// A type as one would write it: the compiler's own printer puts a space between all tokens.
fn shown(ty: impl ToTokens) -> String {
    let mut text = String::new();
    show(ty.to_token_stream(), &mut text);
    text
}

fn show(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        let ends_word =
            text.ends_with(|last: char| last.is_alphanumeric() || "_>,;".contains(last));
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                if open == "[" && ends_word || text.ends_with([',', ';']) {
                    text.push(' ');
                }
                text.push_str(open);
                show(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                sign @ ('+' | '=') => text.extend([' ', sign, ' ']),
                '-' => text.push_str(" -"),
                sign @ ('&' | '\'') if text.ends_with([',', ';']) => text.extend([' ', sign]),
                sign => text.push(sign),
            },
            word => {
                if ends_word {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ty: &str, expected: &[&str]) {
        let mut faults = Faults::default();
        super::check(&syn::parse_str(ty).unwrap(), Cargo::Message, &mut faults);
        let shown: Vec<String> = match faults.finish() {
            Ok(()) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        };
        assert_eq!(shown.len(), expected.len(), "{ty}: {shown:?}");
        for (shown, words) in shown.iter().zip(expected) {
            assert!(shown.contains(words), "{ty}: {shown}");
        }
    }

    #[test]
    fn what_is_owned_or_static_passes() {
        for ty in ["u32", "Vec<String>", "&'static str", "Cow<'static, str>", "[u8; 4]", "(u8, A)"]
        {
            check(ty, &[]);
        }
    }

    #[test]
    fn references_in_function_types_pass() {
        check("fn(&str) -> &str", &[]);
        check("Box<dyn Fn(&str) -> usize + Send>", &[]);
        check("Box<dyn for<'a> Visit<'a> + Send>", &[]);
    }

    #[test]
    fn a_borrow_is_found_wherever_it_hides() {
        check("&str", &["take `String`"]);
        check("&[u8]", &["take `Vec<u8>`"]);
        check("&mut Job", &["take `Job`"]);
        check("Option<&str>", &["take `String`"]);
        check("(u8, [&str; 2])", &["take `String`"]);
        check("Cow<'_, str>", &["only `'static`"]);
        check("Box<dyn Job + 'a>", &["only `'static`"]);
        check("Box<dyn Job<Item = &u8>>", &["take `u8`"]);
        check("<&str as Job>::Out", &["take `String`"]);
        check("(&str, &[u8])", &["`String`", "`Vec<u8>`"]);
        check("&'static &str", &["take `String`"]);
    }

    #[test]
    fn a_type_is_shown_as_it_is_written() {
        for ty in [
            "&str",
            "&mut Vec<u8>",
            "&'a [u8; 4]",
            "Box<dyn Fn(&str, u8) -> u8 + Send + 'static>",
            "(A, &B, &'a C, (D, [E; 2]))",
            "<T as Iterator>::Item",
            "a::B<Item = C>",
        ] {
            assert_eq!(shown(syn::parse_str::<Type>(ty).unwrap()), ty);
        }
    }

    #[test]
    fn an_open_type_is_refused() {
        check("impl Into<String>", &["one type"]);
        check("Vec<impl Job>", &["one type"]);
    }
}
