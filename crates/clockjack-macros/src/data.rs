//! `#[derive(Data)]`: a struct or an enum whose fields are payloads is a payload itself.
//!
//! The encoding is that of `clockjack_graph::data::Data`: the fields in their order, each behind
//! its length; an enum begins with the number of its variant. All errors of a type are reported at
//! once; if there is one, nothing is generated.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::{
    Attribute, Error, Fields, Generics, Index, Item, LitStr, Member, Path, Result,
    parse::ParseStream, parse_quote_spanned,
};

use crate::{
    component::{
        RootCrate,
        options::{each_key, equals, text},
    },
    errors::Errors,
};

/// Code whose variables do not clash with those of the user.
macro_rules! code {
    ($($code:tt)*) => { quote_spanned!(Span::mixed_site()=> $($code)*) };
}

/// The options in `#[data(..)]`.
struct Options {
    /// The path of `Data` and so on.
    root: Path,
    schema: Option<LitStr>,
}

/// A struct, or a variant of an enum.
struct Variant {
    /// None for a struct.
    name: Option<Ident>,
    members: Vec<Member>,
}

/// Generates the implementation, or the errors.
pub(crate) fn data(item: TokenStream, root_crate: RootCrate) -> TokenStream {
    try_expand(item, root_crate).unwrap_or_else(Error::into_compile_error)
}

fn try_expand(item: TokenStream, root_crate: RootCrate) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let (name, attributes, variants) = match syn::parse2(item)? {
        Item::Struct(item) => {
            refuse_generics(&item.generics, &mut errors);
            (item.ident, item.attrs, vec![variant_of(None, &item.fields, &mut errors)])
        }
        Item::Enum(item) => {
            refuse_generics(&item.generics, &mut errors);
            if item.variants.is_empty() {
                errors.add(&item.ident, "a payload without variants has no values");
            }
            let read = |variant: &syn::Variant| {
                refuse_options(&variant.attrs, &mut errors);
                variant_of(Some(variant.ident.clone()), &variant.fields, &mut errors)
            };
            let variants = item.variants.iter().map(read).collect();
            (item.ident, item.attrs, variants)
        }
        other => return Err(Error::new_spanned(other, "a payload must be a struct or an enum")),
    };
    let options = Options::of(&attributes, root_crate, &mut errors);
    errors.finish()?;
    Ok(expand(&name, &options, &variants))
}

/// A schema stands for one type.
fn refuse_generics(generics: &Generics, errors: &mut Errors) {
    for param in &generics.params {
        let what = "a payload cannot have parameters: its schema stands for one type, which owns \
                    its data";
        errors.add(param, what);
    }
}

/// An option that is not read must not look as if it had an effect.
fn refuse_options(attributes: &[Attribute], errors: &mut Errors) {
    for odd in attributes.iter().filter(|attribute| attribute.path().is_ident("data")) {
        let what = "`#[data(..)]` belongs on the struct or enum: fields and variants have no \
                    options";
        errors.add(odd, what);
    }
}

fn variant_of(name: Option<Ident>, fields: &Fields, errors: &mut Errors) -> Variant {
    let member = |(at, field): (usize, &syn::Field)| {
        refuse_options(&field.attrs, errors);
        match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(at)),
        }
    };
    Variant { name, members: fields.iter().enumerate().map(member).collect() }
}

impl Options {
    fn of(attributes: &[Attribute], root_crate: RootCrate, errors: &mut Errors) -> Self {
        let site = Span::mixed_site();
        let root = match root_crate {
            RootCrate::Graph => parse_quote_spanned!(site=> ::clockjack_graph),
            RootCrate::Facade => parse_quote_spanned!(site=> ::clockjack::graph),
        };
        let mut options = Self { root, schema: None };
        let mut found = attributes.iter().filter(|attribute| attribute.path().is_ident("data"));
        if let Some(attribute) = found.next() {
            let form = "write the options in parentheses: `#[data(schema = \"pose\")]`";
            each_key(attribute, form, errors, |key, input| options.take(key, input));
        }
        if let Some(second) = found.next() {
            errors.add(second, "`#[data(..)]` occurs twice: put all options into one attribute");
        }
        options
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "schema" => {
                let expected = "`schema` expects the name of the type in graphs: `schema = \
                                \"pose\"`";
                let schema = text(key, input, expected)?;
                if schema.value().is_empty() {
                    return Err(Error::new(schema.span(), expected));
                }
                self.schema = Some(schema);
            }
            "crate" => {
                let expected = "`crate` expects a path: `crate = ::clockjack::graph`";
                let at = equals(key, input, expected)?;
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, expected))?;
            }
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[data]`: the options are `schema` and `crate`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }
}

fn expand(name: &Ident, options: &Options, variants: &[Variant]) -> TokenStream {
    let root = &options.root;
    let type_name = LitStr::new(&name.to_string(), name.span());
    let schema = options.schema.as_ref().unwrap_or(&type_name);
    let encode = variants.iter().enumerate().map(|(at, variant)| encode_arm(root, at, variant));
    let decode = match variants {
        [only] if only.name.is_none() => {
            let value = read(only);
            code!(let value = #value;)
        }
        _ => {
            let arms = variants.iter().enumerate().map(|(at, variant)| {
                let (tag, value) = (at as u64, read(variant));
                code!(#tag => #value,)
            });
            code! {
                let value = match fields.number()? {
                    #(#arms)*
                    _ => return ::core::result::Result::Err(fields.unknown_variant()),
                };
            }
        }
    };
    code! {
        #[automatically_derived]
        impl #root::data::Data for #name {
            const SCHEMA: &'static str = #schema;

            fn encode(&self, out: &mut #root::generated::Bytes) {
                // A unit has nothing to write.
                let _ = &out;
                match self { #(#encode)* }
            }

            fn decode(
                bytes: &[u8],
            ) -> ::core::result::Result<Self, #root::data::DataError> {
                let mut fields = #root::generated::Fields::new(
                    <Self as #root::data::Data>::SCHEMA,
                    bytes,
                );
                #decode
                fields.end()?;
                ::core::result::Result::Ok(value)
            }
        }
    }
}

/// Encodes one variant.
fn encode_arm(root: &Path, at: usize, variant: &Variant) -> TokenStream {
    let tag = variant.name.as_ref().map(|_| {
        let tag = at as u64;
        code!(#root::generated::put_number(out, #tag);)
    });
    let bindings: Vec<Ident> = (0..variant.members.len())
        .map(|at| format_ident!("field_{at}", span = Span::mixed_site()))
        .collect();
    let (path, members) = (path(variant), &variant.members);
    code! {
        #path { #(#members: #bindings,)* } => {
            #tag
            #(#root::generated::put_field(out, #bindings);)*
        }
    }
}

/// A value whose fields are read in order.
fn read(variant: &Variant) -> TokenStream {
    let (path, members) = (path(variant), &variant.members);
    code!(#path { #(#members: fields.field()?,)* })
}

fn path(variant: &Variant) -> TokenStream {
    match &variant.name {
        Some(name) => code!(Self::#name),
        None => code!(Self),
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn text_of(item: TokenStream, root_crate: RootCrate) -> String {
        data(item, root_crate).to_string()
    }

    #[test]
    fn the_graph_crate_is_named_unless_the_facade_or_an_option_says_else() {
        let item = quote!(
            struct Pose(f64);
        );
        let has = |text: String, path: TokenStream| {
            assert!(text.contains(&path.to_string()), "{text}");
        };
        has(
            text_of(item.clone(), RootCrate::Graph),
            quote!(::clockjack_graph::data::Data for Pose),
        );
        has(text_of(item, RootCrate::Facade), quote!(::clockjack::graph::data::Data for Pose));
        let own = quote!(
            #[data(crate = crate::stub)]
            struct Pose(f64);
        );
        has(text_of(own, RootCrate::Graph), quote!(crate::stub::data::Data for Pose));
    }

    #[test]
    fn the_schema_is_the_name_of_the_type_unless_an_option_says_else() {
        let plain = text_of(
            quote!(
                struct Pose;
            ),
            RootCrate::Graph,
        );
        assert!(plain.contains("= \"Pose\""), "{plain}");
        let named = quote!(
            #[data(schema = "pose/2")]
            struct Pose;
        );
        let named = text_of(named, RootCrate::Graph);
        assert!(named.contains("= \"pose/2\""), "{named}");
    }

    #[test]
    fn all_errors_of_a_type_are_reported_at_once() {
        let item = quote! {
            #[data(schema = "")]
            enum Odd<'a, T> {
                #[data(schema = "x")]
                Text(&'a str),
                Other(T),
            }
        };
        let text = text_of(item, RootCrate::Graph);
        assert_eq!(text.matches("compile_error").count(), 4, "{text}");
        assert!(!text.contains("decode"), "{text}");
    }
}
