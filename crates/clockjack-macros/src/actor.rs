//! The entry point of `#[actor]`: from the input tokens to the output tokens.

mod block;
mod expand;
mod markers;
mod method;
mod names;
mod options;
mod owned;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use syn::{Error, Item, ItemImpl};

pub(crate) use self::options::RootCrate;
use self::{block::Block, expand::expand, options::Options};
use crate::errors::Errors;

/// Returns the block without marker attributes and the generated code, or the block and its errors.
///
/// The user's code is kept in any case: otherwise every use of the block would cause a further
/// error.
pub(crate) fn actor(options: TokenStream, item: TokenStream, root_crate: RootCrate) -> TokenStream {
    let mut errors = Errors::default();
    let options = Options::parse(options, root_crate, &mut errors);
    let parsed: ItemImpl = match syn::parse2(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(misplaced(item.clone(), error));
            return with_errors(item, errors);
        }
    };
    if let Some((path, _)) = &parsed.trait_ {
        let what = "`#[actor]` generates `impl Actor`: put it on the block with the actor's own \
                    methods, `impl Counter { .. }`";
        errors.add(path, what);
        // Parse it only to remove its marker attributes; further errors would be noise.
        let block = Block::parse(parsed, &mut Errors::default());
        return with_errors(block.item.to_token_stream(), errors);
    }
    let mut block = Block::parse(parsed, &mut errors);
    if !options.is_local {
        block.check_send(&mut errors);
    }
    let shown = errors.finish().map_err(Error::into_compile_error).err();
    // With what is right: otherwise each use of the actor would be a further error.
    let is_expanded = shown.is_none() || options.is_root_known && block.refuse_invalid();
    let generated = is_expanded.then(|| expand(&block, &options));
    [block.item.to_token_stream()].into_iter().chain(shown).chain(generated).collect()
}

fn with_errors(item: TokenStream, errors: Errors) -> TokenStream {
    let shown = errors.finish().map_err(Error::into_compile_error).err();
    [item].into_iter().chain(shown).collect()
}

/// The error if the item is not a block: the attribute is on another item, or the syntax is wrong.
fn misplaced(item: TokenStream, error: Error) -> Error {
    match syn::parse2::<Item>(item) {
        Ok(Item::Verbatim(_) | Item::Impl(_)) | Err(_) => error,
        Ok(_) => {
            let what = "put `#[actor]` on the block with the actor's methods: `impl Counter { .. \
                        }`";
            Error::new(Span::call_site(), what)
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::{Attribute, File, Variant};

    use super::*;

    fn counter() -> File {
        let item = quote! {
            impl Counter {
                /// Counts on.
                #[msg]
                fn inc(&mut self, by: u32) {}

                #[msg]
                async fn save(&mut self) {}

                #[ask]
                fn get(&self, cx: &mut Context<'_, Self>) -> u64 { self.0 }
            }
        };
        syn::parse2(actor(quote!(), item, RootCrate::Actor)).unwrap()
    }

    #[track_caller]
    fn check_documented(attributes: &[Attribute], what: &str) {
        let is_doc = |attribute: &Attribute| attribute.path().is_ident("doc");
        assert!(attributes.iter().any(is_doc), "{what}");
    }

    #[test]
    fn all_that_is_written_is_documented() {
        let file = counter();
        let mut n_seen = 0;
        for item in &file.items {
            match item {
                Item::Enum(item) => {
                    check_documented(&item.attrs, "enum");
                    for Variant { attrs, fields, ident, .. } in &item.variants {
                        check_documented(attrs, &ident.to_string());
                        fields.iter().for_each(|field| check_documented(&field.attrs, "field"));
                    }
                    n_seen += item.variants.len();
                }
                Item::Trait(item) => {
                    check_documented(&item.attrs, "trait");
                    for member in &item.items {
                        let syn::TraitItem::Fn(method) = member else { panic!("only methods") };
                        check_documented(&method.attrs, &method.sig.ident.to_string());
                    }
                    n_seen += item.items.len();
                }
                _ => (),
            }
        }
        assert_eq!(n_seen, 6);
    }

    #[test]
    fn documentation_of_a_method_is_carried_over() {
        let text = counter().to_token_stream().to_string();
        // The method, its variant, and the method of the trait.
        assert_eq!(text.matches("Counts on.").count(), 3, "{text}");
    }

    #[test]
    fn what_is_written_names_neither_std_nor_alloc() {
        let text = counter().to_token_stream().to_string();
        let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        assert!(!words.any(|word| word == "std" || word == "alloc"), "{text}");
    }

    #[test]
    fn the_block_is_kept_whatever_is_wrong() {
        let item = quote!(impl Counter { #[msg] fn inc(self) {} fn other(&self) {} });
        let text = actor(quote!(), item, RootCrate::Actor).to_string();
        assert!(text.contains("fn other"), "{text}");
        assert!(text.contains("compile_error"), "{text}");
        assert!(!text.contains("Self :: inc"), "{text}");
    }

    #[test]
    fn a_block_with_a_fault_is_an_actor_with_the_other_messages() {
        let item = quote! {
            impl Counter {
                #[msg] fn inc(&mut self, by: Rc<u32>) {}
                #[ask] fn get(&self) -> u64 { 0 }
            }
        };
        let text = actor(quote!(), item, RootCrate::Actor).to_string();
        assert!(text.contains("compile_error"), "{text}");
        assert!(text.contains(":: Actor for Counter"), "{text}");
        assert!(text.contains("Get {"), "{text}");
        assert!(!text.contains("Inc"), "{text}");
        // The method that sends it is declared: each of its uses would be a further error.
        assert!(text.contains("fn inc (& self , by : Rc < u32 > ,)"), "{text}");
        // A type without a name, or with a lifetime, is no actor.
        let item = quote!(
            impl<'a> Counter<'a> {
                #[msg]
                fn inc(&mut self) {}
            }
        );
        let text = actor(quote!(), item, RootCrate::Actor).to_string();
        assert!(text.contains("compile_error") && !text.contains(":: Actor for"), "{text}");
        // The path of the actor crate was not read.
        let item = quote!(
            impl Counter {
                #[msg]
                fn inc(&mut self) {}
            }
        );
        let text = actor(quote!(nonsense, crate = a), item, RootCrate::Actor).to_string();
        assert!(text.contains("compile_error") && !text.contains(":: Actor for"), "{text}");
    }

    #[test]
    fn all_faults_of_a_block_are_told_at_once() {
        let item = quote!(impl Counter { #[msg] fn inc(self) {} #[ask] fn get() {} });
        let text = actor(quote!(nonsense), item, RootCrate::Actor).to_string();
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
    }
}
