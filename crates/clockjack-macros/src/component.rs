//! From the struct under `#[derive(Component)]` to what stands beside it.
//!
//! It writes the declaration of a component, never what it does: `impl Execute` is the user's. All
//! faults of a struct are told at once; if there is one, nothing else is written.

mod expand;
mod field;
mod options;

use proc_macro2::TokenStream;
use syn::{Error, Fields, GenericParam, Item, ItemStruct};

use crate::faults::Faults;
use field::Field;
use options::Options;

/// By which crate the derive was reached, and so where `Component` and the others are, unless the
/// options say else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// `::clockjack_graph`.
    Graph,
    /// `::clockjack::graph`, for those who depend on the facade alone.
    Facade,
}

/// What stands beside the struct: its declaration as a component, or its faults.
pub(crate) fn component(item: TokenStream, home: Home) -> TokenStream {
    written(item, home).unwrap_or_else(Error::into_compile_error)
}

fn written(item: TokenStream, home: Home) -> Result<TokenStream, Error> {
    let item = match syn::parse2(item)? {
        Item::Struct(item) => item,
        Item::Enum(item) => {
            let what = "a component is a struct, whose fields are its ports and settings; this is \
                        an enum";
            return Err(Error::new_spanned(item.ident, what));
        }
        other => {
            let what = "a component is a struct, whose fields are its ports and settings";
            return Err(Error::new_spanned(other, what));
        }
    };
    let mut faults = Faults::default();
    let options = Options::of(&item, home, &mut faults);
    let fields = fields_of(&item, &mut faults);
    refuse_lifetimes(&item, &mut faults);
    faults.finish()?;
    let Options { component_type: Some(component_type), .. } = &options else {
        unreachable!("a missing type is a fault")
    };
    Ok(expand::expand(&item, component_type, &options, &fields))
}

/// The fields that are marked. A struct without fields has none.
fn fields_of(item: &ItemStruct, faults: &mut Faults) -> Vec<Field> {
    match &item.fields {
        Fields::Named(fields) => {
            fields.named.iter().filter_map(|field| Field::of(field, faults)).collect()
        }
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            let what = "ports and settings are called like their fields, so the fields need names: \
                        `struct Gain { x: Input<f64>, .. }`";
            faults.add(fields, what);
            Vec::new()
        }
    }
}

/// A component lives as long as its graph, and the graph is not bound to any borrow.
fn refuse_lifetimes(item: &ItemStruct, faults: &mut Faults) {
    for param in &item.generics.params {
        if let GenericParam::Lifetime(param) = param {
            faults.add(param, "a component must own what it has: it cannot have a lifetime");
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn text_of(item: TokenStream, home: Home) -> String {
        component(item, home).to_string()
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
        has(text_of(gain(), Home::Graph), quote!(::clockjack_graph::Component));
        has(text_of(gain(), Home::Facade), quote!(::clockjack::graph::Component));
        let own = quote!(
            #[component(type = "a", crate = crate::stub)]
            struct A;
        );
        has(text_of(own, Home::Graph), quote!(crate::stub::Component));
    }

    #[test]
    fn the_documentation_of_a_port_is_carried_over_to_its_constant() {
        let text = text_of(gain(), Home::Graph);
        assert!(text.contains("What comes in."), "{text}");
        assert!(text.contains("The output `y`."), "{text}");
    }

    #[test]
    fn what_is_written_names_neither_std_nor_alloc() {
        let text = text_of(gain(), Home::Graph);
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
        let text = text_of(item, Home::Graph);
        assert_eq!(text.matches("compile_error").count(), 4, "{text}");
        assert!(!text.contains("describe"), "{text}");
    }
}
