//! The generated code of `#[derive(Wire)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::{LitStr, Path};

use super::{Options, Variant};

/// Code whose variables do not clash with those of the user.
macro_rules! code {
    ($($code:tt)*) => { quote_spanned!(Span::mixed_site()=> $($code)*) };
}

/// Generates all implementations.
pub(super) fn expand(name: &Ident, options: &Options, variants: &[Variant]) -> TokenStream {
    let type_ = Expansion { name, options, variants };
    let is_plain = variants.iter().all(|variant| variant.answer().is_none());
    let field = is_plain.then(|| type_.field());
    let message = options.id.as_ref().map(|id| type_.message(id, is_plain));
    code!(#field #message)
}

struct Expansion<'a> {
    name: &'a Ident,
    options: &'a Options,
    variants: &'a [Variant],
}

impl Expansion<'_> {
    fn root(&self) -> &Path {
        &self.options.root
    }

    /// `impl Field`.
    fn field(&self) -> TokenStream {
        let (name, root) = (self.name, self.root());
        let write = self.write(&code!(self));
        let read = self.read(|variant| {
            let value = self.value(variant);
            code!(::core::result::Result::Ok(#value))
        });
        code! {
            #[automatically_derived]
            impl #root::Field for #name {
                fn write(
                    &self,
                    out: &mut #root::Encoder<'_>,
                ) -> ::core::result::Result<(), #root::EncodeError<()>> {
                    #write
                }

                fn read(
                    from: &mut #root::Decoder<'_>,
                ) -> ::core::result::Result<Self, #root::DecodeError> {
                    #read
                }
            }
        }
    }

    /// `impl Wire`.
    fn message(&self, id: &LitStr, is_plain: bool) -> TokenStream {
        let (name, root) = (self.name, self.root());
        let Options { version, oldest, .. } = *self.options;
        let (encode, decode) = if is_plain { self.plain() } else { self.request() };
        // Only a function that returns a `Decoded` can read an older request.
        let into_decoded = is_plain.then(|| code!(.map(#root::Decoded::Tell)));
        let older = self.options.upcast.as_ref().map(|upcast| {
            code! {
                if version != Self::VERSION {
                    return #upcast(version, from) #into_decoded;
                }
            }
        });
        code! {
            #[automatically_derived]
            impl #root::Wire for #name {
                const ID: #root::WireId = #root::WireId::new(#id);
                const VERSION: u16 = #version;
                const OLDEST: u16 = #oldest;

                fn encode(
                    self,
                    out: &mut #root::Encoder<'_>,
                ) -> ::core::result::Result<(), #root::EncodeError<Self>> {
                    #encode
                }

                fn decode(
                    version: u16,
                    from: &mut #root::Decoder<'_>,
                ) -> ::core::result::Result<#root::Decoded<Self>, #root::DecodeError> {
                    #root::check_version::<Self>(version)?;
                    #older
                    #decode
                }
            }
        }
    }

    /// The bodies of `encode` and `decode` for a type without requests.
    fn plain(&self) -> (TokenStream, TokenStream) {
        let root = self.root();
        let encode = code! {
            match #root::Field::write(&self, out) {
                ::core::result::Result::Ok(()) => ::core::result::Result::Ok(()),
                ::core::result::Result::Err(error) => {
                    ::core::result::Result::Err(error.with(self))
                }
            }
        };
        let decode = code! {
            <Self as #root::Field>::read(from).map(#root::Decoded::Tell)
        };
        (encode, decode)
    }

    /// The bodies of `encode` and `decode` for a type with requests. The message is written by
    /// reference first, so that a refused one can be returned; then the `ReplyTo` is taken out.
    fn request(&self) -> (TokenStream, TokenStream) {
        let root = self.root();
        let write = self.write(&code!(&self));
        let take = self.variants.iter().filter_map(|variant| {
            let field = variant.fields.iter().find(|field| field.answer.is_some())?;
            let (path, member, binding) = (path(variant), &field.member, &field.binding);
            Some(code!(#path { #member: #binding, .. } => out.reply_to(#binding),))
        });
        let rest = self.variants.iter().any(|variant| variant.answer().is_none());
        let rest = rest.then(|| code!(_ => {}));
        let encode = code! {
            let written: ::core::result::Result<(), #root::EncodeError<()>> = { #write };
            if let ::core::result::Result::Err(error) = written {
                return ::core::result::Result::Err(error.with(self));
            }
            match self {
                #(#take)*
                #rest
            }
            ::core::result::Result::Ok(())
        };
        let decode = self.read(|variant| {
            let value = self.value(variant);
            let Some(answer) = variant.answer() else {
                return code!(::core::result::Result::Ok(#root::Decoded::Tell(#value)));
            };
            // Read before the closure, which takes the values and the `ReplyTo`.
            let reads = variant.fields.iter().filter(|field| field.answer.is_none());
            let reads = reads.map(|field| {
                let binding = &field.binding;
                code!(let #binding = #root::Field::read(from)?;)
            });
            let members = variant.fields.iter().map(|field| {
                let (member, binding) = (&field.member, &field.binding);
                code!(#member: #binding)
            });
            let reply = variant.fields.iter().find(|field| field.answer.is_some());
            let reply = reply.map(|field| &field.binding);
            let path = path(variant);
            code! {{
                #(#reads)*
                ::core::result::Result::Ok(#root::Decoded::Ask(
                    #root::AskFor::new::<#answer, _>(move |#reply| #path { #(#members),* }),
                ))
            }}
        });
        (encode, decode)
    }

    /// Writes a value behind a reference, without its `ReplyTo`.
    fn write(&self, value: &TokenStream) -> TokenStream {
        let root = self.root();
        let arms = self.variants.iter().enumerate().map(|(at, variant)| {
            let path = path(variant);
            let tag = variant.name.as_ref().map(|_| {
                let tag = at as u128;
                code!(out.varint(#tag)?;)
            });
            let plain: Vec<_> =
                variant.fields.iter().filter(|field| field.answer.is_none()).collect();
            let binds = plain.iter().map(|field| {
                let (member, binding) = (&field.member, &field.binding);
                code!(#member: #binding)
            });
            let writes = plain.iter().map(|field| {
                let binding = &field.binding;
                code!(#root::Field::write(#binding, out)?;)
            });
            code! {
                #path { #(#binds,)* .. } => {
                    #tag
                    #(#writes)*
                    ::core::result::Result::Ok(())
                }
            }
        });
        code! {
            out.nested(|out| match #value { #(#arms)* })
        }
    }

    /// Reads a value; `finish` makes the result of a variant.
    fn read(&self, finish: impl Fn(&Variant) -> TokenStream) -> TokenStream {
        let root = self.root();
        let body = match self.variants {
            [only] if only.name.is_none() => finish(only),
            variants => {
                let arms = variants.iter().enumerate().map(|(at, variant)| {
                    let (tag, value) = (at as u128, finish(variant));
                    code!(#tag => #value,)
                });
                let what = format!("variant of {}", self.name);
                code! {
                    match from.varint(32)? {
                        #(#arms)*
                        _ => ::core::result::Result::Err(#root::DecodeError::invalid(#what)),
                    }
                }
            }
        };
        code!(from.nested(|from| #body))
    }

    /// A value whose fields are read in order.
    fn value(&self, variant: &Variant) -> TokenStream {
        let root = self.root();
        let path = path(variant);
        let members = variant.fields.iter().map(|field| &field.member);
        code!(#path { #(#members: #root::Field::read(from)?),* })
    }
}

fn path(variant: &Variant) -> TokenStream {
    match &variant.name {
        Some(name) => code!(Self::#name),
        None => code!(Self),
    }
}
