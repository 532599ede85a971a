//! The entry point of `#[derive(Wire)]`: from the type to the generated code.
//!
//! A type with an id becomes a message that travels (`impl Wire`). A type whose variants have no
//! `ReplyTo` becomes a part of messages, too (`impl Field`). All errors of a type are reported at
//! once; if there is one, nothing is generated.

mod expand;
mod options;

use options::Options;
use proc_macro2::{Ident, Span, TokenStream};
use quote::format_ident;
use syn::{
    Attribute, Error, Fields, GenericArgument, Generics, Index, Item, Member, PathArguments, Type,
};

use crate::errors::Errors;

/// The crate through which the derive was used. It determines the path of `Wire` and so on, unless
/// the options override it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RootCrate {
    /// `::clockjack_wire`.
    Wire,
    /// `::clockjack::wire`, for crates that depend only on the facade.
    Facade,
}

/// A struct, or a variant of an enum.
struct Variant {
    /// None for a struct.
    name: Option<Ident>,
    fields: Vec<WireField>,
}

struct WireField {
    member: Member,
    /// The variable that the field is bound to.
    binding: Ident,
    /// The answer type, if the field is a `ReplyTo`.
    answer: Option<Type>,
}

impl Variant {
    /// The answer type, if the variant is a request.
    fn answer(&self) -> Option<&Type> {
        self.fields.iter().find_map(|field| field.answer.as_ref())
    }
}

/// Generates the implementations, or the errors.
pub(crate) fn wire(item: TokenStream, root_crate: RootCrate) -> TokenStream {
    try_expand(item, root_crate).unwrap_or_else(Error::into_compile_error)
}

fn try_expand(item: TokenStream, root_crate: RootCrate) -> Result<TokenStream, Error> {
    let mut errors = Errors::default();
    let (name, attributes, variants) = match syn::parse2(item)? {
        Item::Struct(item) => {
            refuse_generics(&item.generics, &mut errors);
            let variant = variant_of(None, &item.fields, &mut errors);
            (item.ident, item.attrs, vec![variant])
        }
        Item::Enum(item) => {
            refuse_generics(&item.generics, &mut errors);
            if item.variants.is_empty() {
                errors.add(&item.ident, "a message without variants cannot be sent");
            }
            let read = |variant: &syn::Variant| {
                refuse_options(&variant.attrs, &mut errors);
                variant_of(Some(variant.ident.clone()), &variant.fields, &mut errors)
            };
            let variants = item.variants.iter().map(read).collect();
            (item.ident, item.attrs, variants)
        }
        other => return Err(Error::new_spanned(other, "only a struct or an enum can travel")),
    };
    let options = Options::of(&attributes as &[Attribute], root_crate, &mut errors);
    let has_no_id = options.is_read && options.id.is_none();
    if has_no_id && variants.iter().any(|variant| variant.answer().is_some()) {
        let what = "a request needs a stable name: `#[wire(id = \"app.Name\")]`";
        errors.add(&name, what);
    }
    errors.finish()?;
    Ok(expand::expand(&name, &options, &variants))
}

/// A name on the wire stands for one type.
fn refuse_generics(generics: &Generics, errors: &mut Errors) {
    for param in &generics.params {
        let what = "a type that travels cannot have parameters: its name on the wire stands for \
                    one type, which owns its data";
        errors.add(param, what);
    }
}

/// An option that is not read must not look as if it had an effect.
fn refuse_options(attributes: &[Attribute], errors: &mut Errors) {
    for odd in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
        let what = "`#[wire(..)]` belongs on the struct or enum: fields and variants have no \
                    options";
        errors.add(odd, what);
    }
}

fn variant_of(name: Option<Ident>, fields: &Fields, errors: &mut Errors) -> Variant {
    let mut variant = Variant { name, fields: Vec::new() };
    for (at, field) in fields.iter().enumerate() {
        refuse_options(&field.attrs, errors);
        let member = match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(at)),
        };
        let last = last_segment(&field.ty);
        let answer = match last {
            Some((name, argument)) if name == "ReplyTo" => {
                if variant.answer().is_some() {
                    errors.add(field, "a request has one answer: only one `ReplyTo` may travel");
                }
                if argument.is_none() {
                    errors.add(&field.ty, "write the type of the answer: `ReplyTo<u64>`");
                }
                argument
            }
            Some((name, _)) if name == "ActorRef" => {
                let what = "an `ActorRef` is a pointer of this process and cannot travel: export \
                            the actor and send its `Address`";
                errors.add(&field.ty, what);
                None
            }
            _ => None,
        };
        let binding = format_ident!("field_{at}", span = Span::mixed_site());
        variant.fields.push(WireField { member, binding, answer });
    }
    variant
}

/// The last name of a path, and its only type argument.
fn last_segment(ty: &Type) -> Option<(Ident, Option<Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(list) if list.args.len() == 1 => match list.args.first() {
            Some(GenericArgument::Type(ty)) => Some(ty.clone()),
            _ => None,
        },
        _ => None,
    };
    Some((last.ident.clone(), argument))
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn text_of(item: TokenStream, root_crate: RootCrate) -> String {
        wire(item, root_crate).to_string()
    }

    #[test]
    fn the_wire_crate_is_named_unless_the_facade_or_an_option_says_else() {
        let item = quote!(
            #[wire(id = "a.B")]
            struct B(u8);
        );
        let has = |text: String, path: TokenStream| {
            assert!(text.contains(&path.to_string()), "{text}");
        };
        has(text_of(item.clone(), RootCrate::Wire), quote!(::clockjack_wire::Wire));
        has(text_of(item, RootCrate::Facade), quote!(::clockjack::wire::Wire));
        let own = quote!(
            #[wire(id = "a.B", crate = crate::stub)]
            struct B(u8);
        );
        has(text_of(own, RootCrate::Wire), quote!(crate::stub::Wire));
    }

    #[test]
    fn a_type_without_an_id_is_only_a_part() {
        let text = text_of(
            quote!(
                struct B(u8);
            ),
            RootCrate::Wire,
        );
        assert!(text.contains(&quote!(::clockjack_wire::Field for B).to_string()), "{text}");
        assert!(!text.contains(&quote!(::clockjack_wire::Wire for B).to_string()), "{text}");
    }

    #[test]
    fn all_errors_of_a_type_are_reported_at_once() {
        let item = quote! {
            #[wire(id = "a b", version = 0)]
            enum Msg<'a> {
                To(ActorRef<u8>),
                Two(ReplyTo<u8>, ReplyTo<u8>),
                Text(&'a str),
            }
        };
        let text = text_of(item, RootCrate::Wire);
        assert_eq!(text.matches("compile_error").count(), 4, "{text}");
        assert!(!text.contains("Encoder"), "{text}");
    }
}
