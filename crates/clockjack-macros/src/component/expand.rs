//! Generates the code of `#[derive(Component)]`: constants for the ports, and `impl Component`.
//!
//! Parameters and local variables are hygienic, and all paths are absolute, so nothing at the call
//! site interferes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote};
use syn::{Expr, ExprLit, ItemStruct, Lit, LitStr};

use super::{
    field::{DefaultValue, Field, Role, Setting},
    options::Options,
};

/// The constants of the ports and `impl Component`.
pub(crate) fn expand(
    item: &ItemStruct,
    component_type: &LitStr,
    options: &Options,
    fields: &[Field],
) -> TokenStream {
    let ItemStruct { ident, generics, .. } = item;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let root = &options.root;
    let constants = constants(item, options, fields);
    let describe = describe(options, fields);
    let bind = bind(fields);
    let configure = configure(options, fields);
    let (ports, config) = (hidden("ports"), hidden("config"));
    quote! {
        #constants

        #[automatically_derived]
        impl #impl_generics #root::Component for #ident #type_generics #where_clause {
            const TYPE: &'static ::core::primitive::str = #component_type;

            fn describe() -> #root::Descriptor {
                #describe
            }

            fn bind(&mut self, #ports: &mut #root::Binder<'_>) {
                #bind
            }

            fn configure(
                &mut self,
                #config: &#root::Config,
            ) -> ::core::result::Result<(), #root::ConfigError> {
                #configure
            }
        }
    }
}

/// `const X: InputPort<f64> = InputPort::new("x");` for each port.
fn constants(item: &ItemStruct, options: &Options, fields: &[Field]) -> TokenStream {
    let ItemStruct { vis, ident, generics, .. } = item;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let root = &options.root;
    let ports = fields.iter().filter_map(|field| {
        let (kind, carries, word) = match &field.role {
            Role::Input { carries, .. } => (quote!(InputPort), carries, "input"),
            Role::Output { carries } => (quote!(OutputPort), carries, "output"),
            Role::Setting(_) => return None,
        };
        let (name, docs, constant) = (&field.name, &field.docs, constant_of(field));
        let lead = format!("The {word} `{name}`.");
        let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
        Some(quote! {
            #[doc = #lead]
            #gap
            #(#docs)*
            #vis const #constant: #root::#kind<#carries> = #root::#kind::new(#name);
        })
    });
    let ports: Vec<TokenStream> = ports.collect();
    if ports.is_empty() {
        return TokenStream::new();
    }
    quote! {
        #[automatically_derived]
        impl #impl_generics #ident #type_generics #where_clause {
            #(#ports)*
        }
    }
}

fn describe(options: &Options, fields: &[Field]) -> TokenStream {
    let root = &options.root;
    let title = options.title.iter();
    let role = options.role.iter();
    let open = options.is_open.then(|| quote!(.open_config()));
    let parts = fields.iter().map(|field| {
        let constant = constant_of(field);
        match &field.role {
            Role::Input { is_optional, is_multiple, .. } => {
                let call = if *is_multiple { quote!(inputs) } else { quote!(input) };
                let need = if *is_optional { quote!(Optional) } else { quote!(Required) };
                quote!(.#call(Self::#constant, #root::Need::#need))
            }
            Role::Output { .. } => quote!(.output(Self::#constant)),
            Role::Setting(setting) => {
                let described = described(options, &field.name, setting);
                quote!(.config(#described))
            }
        }
    });
    quote! {
        #root::Descriptor::new(<Self as #root::Component>::TYPE)
            #(.title(#title))*
            #(.role(#root::generated::BoundaryRole::#role))*
            #(#parts)*
            #open
    }
}

/// The `ConfigField` of a setting.
fn described(options: &Options, name: &str, setting: &Setting) -> TokenStream {
    let root = &options.root;
    let value = &setting.value;
    let is_required = matches!(setting.default, DefaultValue::None) && !setting.is_option;
    let required = is_required.then(|| quote!(.required()));
    let choices = &setting.choices;
    let one_of = (!choices.is_empty()).then(|| quote!(.one_of(&[#(#choices),*])));
    let field = quote! {
        #root::ConfigField::new(#name, <#value as #root::generated::FromConfig>::KIND)
            #required
            #one_of
    };
    match bounds(setting) {
        Some((min, max)) => quote!(#root::generated::bounded(#field, #min, #max)),
        None => field,
    }
}

fn bind(fields: &[Field]) -> TokenStream {
    let ports = hidden("ports");
    let mut lines = fields.iter().filter_map(|field| {
        let (ident, constant) = (&field.ident, constant_of(field));
        match &field.role {
            Role::Input { .. } => Some(quote!(self.#ident = #ports.input(Self::#constant);)),
            Role::Output { .. } => Some(quote!(self.#ident = #ports.output(Self::#constant);)),
            Role::Setting(_) => None,
        }
    });
    match lines.next() {
        Some(first) => quote!(#first #(#lines)*),
        None => quote!(let _ = #ports;),
    }
}

/// All settings are read before the first is assigned: if one is rejected, the component keeps its
/// previous settings.
fn configure(options: &Options, fields: &[Field]) -> TokenStream {
    let config = hidden("config");
    let mut reads = Vec::new();
    let mut takes = Vec::new();
    for field in fields {
        let Role::Setting(setting) = &field.role else { continue };
        let local = format_ident!("value_{}", reads.len(), span = Span::mixed_site());
        let read = read(options, &config, &field.name, setting);
        let ident = &field.ident;
        reads.push(quote!(let #local = #read;));
        takes.push(quote!(self.#ident = #local;));
    }
    let unused = reads.is_empty().then(|| quote!(let _ = #config;));
    quote! {
        #unused
        #(#reads)*
        #(#takes)*
        ::core::result::Result::Ok(())
    }
}

fn read(options: &Options, config: &Ident, name: &str, setting: &Setting) -> TokenStream {
    let Options { root, .. } = options;
    let Setting { value, choices, .. } = setting;
    let get = match &setting.default {
        _ if setting.is_option => quote!(#config.get::<#value>(#name)?),
        DefaultValue::None => quote!(#config.need::<#value>(#name)?),
        DefaultValue::OfType => quote!(#config.get::<#value>(#name)?.unwrap_or_default()),
        DefaultValue::Given(given) => {
            let (found, given) = (hidden("found"), owned(given));
            quote!(match #config.get::<#value>(#name)? {
                ::core::option::Option::Some(#found) => #found,
                ::core::option::Option::None => #given,
            })
        }
    };
    let within = bounds(setting)
        .map(|(min, max)| quote!(#root::generated::check_bounds(#config, #name, #min, #max)?;));
    let chosen = (!choices.is_empty())
        .then(|| quote!(#root::generated::check_choice(#config, #name, &[#(#choices),*])?;));
    if within.is_none() && chosen.is_none() {
        return get;
    }
    quote!({ #within #chosen #get })
}

/// A string is written as a literal and stored as a `String`.
fn owned(given: &Expr) -> TokenStream {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = given {
        quote!(::core::convert::Into::into(#text))
    } else {
        given.to_token_stream()
    }
}

/// Both bounds as options, if there is at least one.
fn bounds(setting: &Setting) -> Option<(TokenStream, TokenStream)> {
    let written = |bound: &Option<Expr>| match bound {
        Some(bound) => quote!(::core::option::Option::Some(#bound)),
        None => quote!(::core::option::Option::None),
    };
    let is_any = setting.min.is_some() || setting.max.is_some();
    is_any.then(|| (written(&setting.min), written(&setting.max)))
}

/// The constant of a port: its name in upper case.
fn constant_of(field: &Field) -> Ident {
    Ident::new(&field.name.to_uppercase(), field.ident.span())
}

/// A hygienic name: the user's code cannot see it.
fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
