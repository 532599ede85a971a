//! The entry point of `#[derive(Component)]`: from the struct to the generated code.
//!
//! It generates the declaration of a component, never its behaviour: the user writes `impl
//! Execute`. All errors of a struct are reported at once; if there is one, nothing is generated.

mod expand;
mod field;
pub(crate) mod options;

use field::Field;
use options::Options;
use proc_macro2::TokenStream;
use syn::{Error, Fields, GenericParam, Item, ItemStruct};

use crate::errors::Errors;

/// The crate through which the derive was used. It determines the path of `Component` and so on,
/// unless the options override it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RootCrate {
    /// `::clockjack_graph`.
    Graph,
    /// `::clockjack::graph`, for crates that depend only on the facade.
    Facade,
}

/// Generates the declaration of a component, or its errors.
pub(crate) fn component(item: TokenStream, root_crate: RootCrate) -> TokenStream {
    try_expand(item, root_crate).unwrap_or_else(Error::into_compile_error)
}

fn try_expand(item: TokenStream, root_crate: RootCrate) -> Result<TokenStream, Error> {
    let item = match syn::parse2(item)? {
        Item::Struct(item) => item,
        Item::Enum(item) => {
            let what = "a component must be a struct whose fields are its ports and settings; \
                        this is an enum";
            return Err(Error::new_spanned(item.ident, what));
        }
        other => {
            let what = "a component must be a struct whose fields are its ports and settings";
            return Err(Error::new_spanned(other, what));
        }
    };
    let mut errors = Errors::default();
    let options = Options::of(&item, root_crate, &mut errors);
    let fields = fields_of(&item, &mut errors);
    refuse_lifetimes(&item, &mut errors);
    errors.finish()?;
    let Options { component_type: Some(component_type), .. } = &options else {
        unreachable!("a missing type is a fault")
    };
    Ok(expand::expand(&item, component_type, &options, &fields))
}

/// The marked fields. A struct without fields has none.
fn fields_of(item: &ItemStruct, errors: &mut Errors) -> Vec<Field> {
    match &item.fields {
        Fields::Named(fields) => {
            fields.named.iter().filter_map(|field| Field::of(field, errors)).collect()
        }
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            let what = "ports and settings are named after their fields, so the fields need \
                        names: `struct Gain { x: Input<f64>, .. }`";
            errors.add(fields, what);
            Vec::new()
        }
    }
}

/// A component lives as long as its graph, and no borrow limits the life of a graph.
fn refuse_lifetimes(item: &ItemStruct, errors: &mut Errors) {
    for param in &item.generics.params {
        if let GenericParam::Lifetime(param) = param {
            errors.add(param, "a component must own its data: it cannot have lifetime parameters");
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn text_of(item: TokenStream, root_crate: RootCrate) -> String {
        component(item, root_crate).to_string()
    }

    fn gain() -> TokenStream {
        quote! {
            #[component(type = "gain")]
            struct Gain {
                /// What comes in.
                #[input]
                x: Input<f64>,
                #[output]
                y: Output<f64>,
                #[config(default = 1.0)]
                k: f64,
                calls: u64,
            }
        }
    }

    #[test]
    fn the_graph_crate_is_named_unless_the_facade_or_an_option_says_else() {
        let has = |text: String, path: TokenStream| {
            assert!(text.contains(&path.to_string()), "{text}");
        };
        has(text_of(gain(), RootCrate::Graph), quote!(::clockjack_graph::Component));
        has(text_of(gain(), RootCrate::Facade), quote!(::clockjack::graph::Component));
        let own = quote!(
            #[component(type = "a", crate = crate::stub)]
            struct A;
        );
        has(text_of(own, RootCrate::Graph), quote!(crate::stub::Component));
    }

    #[test]
    fn the_documentation_of_a_port_is_carried_over_to_its_constant() {
        let text = text_of(gain(), RootCrate::Graph);
        assert!(text.contains("What comes in."), "{text}");
        assert!(text.contains("The output `y`."), "{text}");
    }

    #[test]
    fn what_is_written_names_neither_std_nor_alloc() {
        let text = text_of(gain(), RootCrate::Graph);
        let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        assert!(!words.any(|word| word == "std" || word == "alloc"), "{text}");
    }

    #[test]
    fn all_faults_of_a_struct_are_told_at_once() {
        let item = quote! {
            #[component(name = "gain")]
            struct Gain<'a> {
                #[input]
                x: f64,
                #[config(min = 2.0, max = 1.0)]
                k: f64,
                text: &'a str,
            }
        };
        let text = text_of(item, RootCrate::Graph);
        assert_eq!(text.matches("compile_error").count(), 4, "{text}");
        assert!(!text.contains("describe"), "{text}");
    }
}
