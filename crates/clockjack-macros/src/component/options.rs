//! What stands in the brackets of `#[component(..)]`, and how brackets are read.

use proc_macro2::{Ident, Span};
use syn::{
    Attribute, Error, ItemStruct, LitStr, Meta, Path, Result, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
    parse_quote_spanned,
};

use super::Home;
use crate::faults::Faults;

/// The options of one `#[component(..)]`.
pub(crate) struct Options {
    /// Where `Component` and the others are found.
    pub(crate) root: Path,
    /// The key of the type. Without one there is a fault.
    pub(crate) component_type: Option<LitStr>,
    /// A name for people.
    pub(crate) title: Option<LitStr>,
    /// The variant of `BoundaryRole`.
    pub(crate) role: Option<Ident>,
    /// Whether settings beyond the declared ones are let through.
    pub(crate) is_open: bool,
}

impl Options {
    /// Reads the options of a struct; what cannot be read is a fault.
    pub(crate) fn of(item: &ItemStruct, home: Home, faults: &mut Faults) -> Self {
        let site = Span::mixed_site();
        let mut options = Self {
            root: match home {
                Home::Graph => parse_quote_spanned!(site=> ::clockjack_graph),
                Home::Facade => parse_quote_spanned!(site=> ::clockjack::graph),
            },
            component_type: None,
            title: None,
            role: None,
            is_open: false,
        };
        let is_it = |attribute: &&Attribute| attribute.path().is_ident("component");
        let mut is_first = true;
        let mut is_read = true;
        for attribute in item.attrs.iter().filter(is_it) {
            if !is_first {
                faults.add(attribute, "`#[component(..)]` stands once: put all options into one");
                continue;
            }
            is_first = false;
            let form = "write the options in brackets: `#[component(type = \"gain\")]`";
            is_read = each_key(attribute, form, faults, |key, input| options.take(key, input));
        }
        if options.component_type.is_none() && is_read {
            let what = "say what files call this component: `#[component(type = \"gain\")]`";
            faults.add(&item.ident, what);
        }
        options
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "type" => {
                let wants = "`type` wants the name of the type in files: `type = \"gain\"`";
                let name = text(key, input, wants)?;
                let is_name = |char: char| !char.is_whitespace() && !char.is_control();
                if name.value().is_empty() || !name.value().chars().all(is_name) {
                    return Err(Error::new(name.span(), wants));
                }
                self.component_type = Some(name);
            }
            "title" => {
                let wants = "`title` wants a name for people: `title = \"Gain\"`";
                self.title = Some(text(key, input, wants)?);
            }
            "role" => {
                let wants = "`role` is \"input\", \"output\" or \"input_output\": where values \
                             enter or leave the graph";
                let role = text(key, input, wants)?;
                let variant = match role.value().as_str() {
                    "input" => "Input",
                    "output" => "Output",
                    "input_output" => "InputOutput",
                    _ => return Err(Error::new(role.span(), wants)),
                };
                self.role = Some(Ident::new(variant, Span::mixed_site()));
            }
            "open_config" => self.is_open = true,
            "crate" => {
                let wants = "`crate` wants a path: `crate = ::clockjack::graph`";
                let at = equals(key, input, wants)?;
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, wants))?;
            }
            other => {
                let what = format!(
                    "`{other}` is no option of `#[component]`: there are `type`, `title`, `role`, \
                     `open_config` and `crate`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }
}

/// Gives each key in the brackets of an attribute to `take`, which reads what belongs to it.
///
/// A key that comes again is a fault. Returns whether all could be read; after a fault the rest of
/// the brackets is left alone.
pub(crate) fn each_key(
    attribute: &Attribute,
    form: &str,
    faults: &mut Faults,
    mut take: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) -> bool {
    let tokens = match &attribute.meta {
        Meta::Path(_) => return true,
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            faults.add(attribute, form);
            return false;
        }
    };
    let mut seen: Vec<Ident> = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let at = input.span();
            let key = Ident::parse_any(input).map_err(|_| Error::new(at, form))?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is given twice")));
            }
            take(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    match parser.parse2(tokens) {
        Ok(()) => true,
        Err(error) => {
            faults.push(error);
            false
        }
    }
}

/// Reads `=`; where the value stands. If there is none, that is the key.
pub(crate) fn equals(key: &Ident, input: ParseStream<'_>, wants: &str) -> Result<Span> {
    if !input.peek(Token![=]) {
        return Err(Error::new(key.span(), wants));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(key.span(), wants));
    }
    Ok(input.span())
}

/// Reads `= "text"`.
fn text(key: &Ident, input: ParseStream<'_>, wants: &str) -> Result<LitStr> {
    let at = equals(key, input, wants)?;
    input.parse().map_err(|_| Error::new(at, wants))
}
