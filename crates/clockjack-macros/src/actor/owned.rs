//! Checks that types which are sent to another actor own their data.
//!
//! A message waits in a mailbox, an answer in a slot: borrowed data may be gone by then. The
//! compiler would report "missing lifetime specifier"; this module reports what to write instead.
//! References in the arguments of a function type (`fn(&str)`, `dyn Fn(&str)`) borrow only during
//! the call, and are allowed.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    AngleBracketedGenericArguments, GenericArgument, Lifetime, Path, PathArguments, ReturnType,
    Type, TypeParamBound, TypeReference, TypeTraitObject, punctuated::Punctuated,
};

use crate::errors::Errors;

/// Where a type is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeUse {
    /// A parameter of a method that becomes a message.
    Message,
    /// The return type of an `#[ask]`.
    Answer,
    /// The actor itself.
    Actor,
}

impl TypeUse {
    fn must_own(self) -> &'static str {
        match self {
            TypeUse::Message => "a message must own its data",
            TypeUse::Answer => "an answer must own its data",
            TypeUse::Actor => "an actor must own its data",
        }
    }

    fn moves(self) -> &'static str {
        match self {
            TypeUse::Message => "a message moves",
            TypeUse::Answer => "an answer moves",
            TypeUse::Actor => "an actor moves",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            TypeUse::Message => "take",
            TypeUse::Answer => "return",
            TypeUse::Actor => "hold",
        }
    }
}

/// Checks that a type neither borrows nor is `impl Trait`.
pub(crate) fn check(ty: &Type, type_use: TypeUse, errors: &mut Errors) {
    match ty {
        Type::Reference(reference) => check_reference(reference, type_use, errors),
        Type::ImplTrait(_) => {
            let what = match type_use {
                TypeUse::Message => {
                    "a message must have a concrete type: name the type, or take `Box<dyn Trait + \
                     Send>` instead of `impl Trait`"
                }
                TypeUse::Answer | TypeUse::Actor => {
                    "an answer must have a concrete type: name the type, or return `Box<dyn Trait \
                     + Send>` instead of `impl Trait`"
                }
            };
            errors.add(ty, what);
        }
        Type::Path(path) => {
            if let Some(own) = &path.qself {
                check(&own.ty, type_use, errors);
            }
            check_path(&path.path, type_use, errors);
        }
        Type::TraitObject(object) => check_bounds(&object.bounds, type_use, errors),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|elem| check(elem, type_use, errors)),
        Type::Array(array) => check(&array.elem, type_use, errors),
        Type::Slice(slice) => check(&slice.elem, type_use, errors),
        Type::Paren(paren) => check(&paren.elem, type_use, errors),
        Type::Group(group) => check(&group.elem, type_use, errors),
        Type::Ptr(pointer) => check(&pointer.elem, type_use, errors),
        _ => (),
    }
}

/// What contains values of its arguments, so that it is `Send` only if they are.
const CONTAINERS: [&str; 8] =
    ["Option", "Result", "Vec", "VecDeque", "Box", "BTreeMap", "HashMap", "PhantomData"];

/// Checks that a type is not `Rc`, wherever that occurs in it, and contains neither raw pointers
/// nor boxed closures without `Send`. Another type that is not `Send` cannot be told from its name.
pub(crate) fn check_send(ty: &Type, type_use: TypeUse, errors: &mut Errors) {
    match ty {
        Type::Ptr(pointer) => {
            let what = format!(
                "{} to another thread, where nothing says that a raw pointer is still valid: {} an \
                 owned value, an index or an `Arc`, or write `#[actor(local)]` for an actor that \
                 stays on its thread",
                type_use.moves(),
                type_use.verb(),
            );
            errors.add(pointer, what);
        }
        Type::TraitObject(object) if is_closure_without_send(object) => {
            let (moves, dynamic) = (type_use.moves(), shown(object));
            let what = format!(
                "{moves} to another thread: write `{dynamic} + Send` instead of `{dynamic}`, or \
                 `#[actor(local)]` for an actor that stays on its thread"
            );
            errors.add(object, what);
        }
        Type::Path(path) => {
            for segment in &path.path.segments {
                let PathArguments::AngleBracketed(arguments) = &segment.arguments else { continue };
                if segment.ident == "Rc" {
                    let (verb, rc) = (type_use.verb(), shown(segment));
                    let arc = rc.replacen("Rc", "Arc", 1);
                    let moves = type_use.moves();
                    let what = format!(
                        "{moves} to another thread: {verb} `{arc}` instead of `{rc}`, or write \
                         `#[actor(local)]` for an actor that stays on its thread"
                    );
                    errors.add(ty, what);
                    continue;
                }
                let contains = CONTAINERS.iter().any(|name| segment.ident == name);
                for argument in &arguments.args {
                    match argument {
                        // Another type may make a pointer `Send`.
                        GenericArgument::Type(Type::Ptr(_) | Type::TraitObject(_)) if !contains => {
                        }
                        GenericArgument::Type(ty) => check_send(ty, type_use, errors),
                        _ => (),
                    }
                }
            }
        }
        Type::Tuple(tuple) => {
            tuple.elems.iter().for_each(|elem| check_send(elem, type_use, errors));
        }
        Type::Array(array) => check_send(&array.elem, type_use, errors),
        Type::Paren(paren) => check_send(&paren.elem, type_use, errors),
        Type::Group(group) => check_send(&group.elem, type_use, errors),
        _ => (),
    }
}

/// Whether this is `dyn Fn(..)` and the like, and only that: other traits may imply `Send`.
fn is_closure_without_send(object: &TypeTraitObject) -> bool {
    let is_closure = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|last| {
            let is_name = ["Fn", "FnMut", "FnOnce"].iter().any(|name| last.ident == name);
            is_name && matches!(last.arguments, PathArguments::Parenthesized(_))
        }),
        TypeParamBound::Lifetime(_) => true,
        _ => false,
    };
    object.bounds.iter().all(is_closure)
}

/// The path of a type, without the invisible groups that a macro may have added.
pub(crate) fn as_path(ty: &Type) -> Option<&Path> {
    match ty {
        Type::Path(path) if path.qself.is_none() => Some(&path.path),
        Type::Group(group) => as_path(&group.elem),
        Type::Paren(paren) => as_path(&paren.elem),
        _ => None,
    }
}

/// Whether a type is a path that ends with this identifier.
pub(crate) fn ends_in(ty: &Type, word: &str) -> bool {
    let last = as_path(ty).and_then(|path| path.segments.last());
    last.is_some_and(|segment| segment.ident == word)
}

fn check_reference(reference: &TypeReference, type_use: TypeUse, errors: &mut Errors) {
    let is_static = reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static");
    if is_static {
        return check(&reference.elem, type_use, errors);
    }
    let owned = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", shown(&slice.elem)),
        Type::TraitObject(object) => format!("Box<{} + Send>", shown(object)),
        elem => shown(elem),
    };
    let borrowed = shown(reference);
    let (must_own, verb) = (type_use.must_own(), type_use.verb());
    errors.add(reference, format!("{must_own}: {verb} `{owned}` instead of `{borrowed}`"));
}

fn check_path(path: &Path, type_use: TypeUse, errors: &mut Errors) {
    for segment in &path.segments {
        if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
            check_arguments(arguments, type_use, errors);
        }
        // `Fn(&str) -> String`: only the caller sees the return value.
    }
}

fn check_arguments(
    arguments: &AngleBracketedGenericArguments,
    type_use: TypeUse,
    errors: &mut Errors,
) {
    for argument in &arguments.args {
        match argument {
            GenericArgument::Lifetime(lifetime) => check_lifetime(lifetime, type_use, errors),
            GenericArgument::Type(ty) => check(ty, type_use, errors),
            GenericArgument::AssocType(assoc) => check(&assoc.ty, type_use, errors),
            GenericArgument::Constraint(constraint) => {
                check_bounds(&constraint.bounds, type_use, errors);
            }
            _ => (),
        }
    }
}

fn check_bounds<P>(bounds: &Punctuated<TypeParamBound, P>, type_use: TypeUse, errors: &mut Errors) {
    for bound in bounds {
        match bound {
            TypeParamBound::Lifetime(lifetime) => check_lifetime(lifetime, type_use, errors),
            // A bound with its own `for<'a>` borrows only during the call.
            TypeParamBound::Trait(bound) if bound.lifetimes.is_none() => {
                check_path(&bound.path, type_use, errors);
            }
            _ => (),
        }
    }
}

fn check_lifetime(lifetime: &Lifetime, type_use: TypeUse, errors: &mut Errors) {
    if lifetime.ident != "static" {
        let must_own = type_use.must_own();
        errors.add(lifetime, format!("{must_own}: only the lifetime `'static` is allowed here"));
    }
}

/// The return type of a function.
pub(crate) fn returned(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

/// Formats a type as a person would: the compiler's printer puts a space between all tokens.
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
        let mut errors = Errors::default();
        super::check(&syn::parse_str(ty).unwrap(), TypeUse::Message, &mut errors);
        let shown: Vec<String> = match errors.finish() {
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
        check("Cow<'_, str>", &["only the lifetime `'static`"]);
        check("Box<dyn Job + 'a>", &["only the lifetime `'static`"]);
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
    fn rc_is_found_wherever_it_hides() {
        for (ty, expected) in [
            ("Rc<u8>", Some("take `Arc<u8>` instead of `Rc<u8>`")),
            ("std::rc::Rc<u8>", Some("take `Arc<u8>`")),
            ("Option<(u8, [Rc<A>; 2])>", Some("take `Arc<A>`")),
            ("Vec<Arc<u8>>", None),
            ("Rc", None),
        ] {
            let mut errors = Errors::default();
            check_send(&syn::parse_str(ty).unwrap(), TypeUse::Message, &mut errors);
            let shown = errors.finish().err().map(|error| error.to_string());
            assert_eq!(shown.is_some(), expected.is_some(), "{ty}: {shown:?}");
            if let (Some(shown), Some(expected)) = (shown, expected) {
                assert!(shown.contains(expected), "{ty}: {shown}");
            }
        }
    }

    #[test]
    fn raw_pointers_and_closures_without_send_are_found_where_nothing_can_make_them_send() {
        for (ty, expected) in [
            ("*const u8", Some("take an owned value")),
            ("Option<(u8, *mut u8)>", Some("raw pointer")),
            ("Vec<Box<dyn Fn(u8) -> u8>>", Some("write `dyn Fn(u8) -> u8 + Send` instead")),
            ("Box<dyn FnOnce() + 'static>", Some("`dyn FnOnce() + 'static + Send`")),
            ("Sendable<*mut u8>", None),
            ("AtomicPtr<u8>", None),
            ("Box<dyn FnMut() + Send>", None),
            ("Box<dyn Job>", None),
            ("Box<dyn Fn<u8>>", None),
            ("fn(*mut u8)", None),
        ] {
            let mut errors = Errors::default();
            check_send(&syn::parse_str(ty).unwrap(), TypeUse::Message, &mut errors);
            let shown = errors.finish().err().map(|error| error.to_string());
            assert_eq!(shown.is_some(), expected.is_some(), "{ty}: {shown:?}");
            let is_there = shown.zip(expected).is_none_or(|(shown, words)| shown.contains(words));
            assert!(is_there, "{ty}");
        }
    }

    #[test]
    fn an_open_type_is_refused() {
        check("impl Into<String>", &["concrete type"]);
        check("Vec<impl Job>", &["concrete type"]);
    }
}
