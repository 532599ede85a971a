//! The options in `#[component(..)]`, and the parser of such options.

use proc_macro2::{Ident, Span};
use syn::{
    Attribute, Error, ItemStruct, LitStr, Meta, Path, Result, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
    parse_quote_spanned,
};

use super::RootCrate;
use crate::errors::Errors;

/// The options of one `#[component(..)]`.
pub(crate) struct Options {
    /// The path of `Component` and so on.
    pub(crate) root: Path,
    /// The name of the component type. If it is missing, there is an error.
    pub(crate) component_type: Option<LitStr>,
    /// The display name.
    pub(crate) title: Option<LitStr>,
    /// The variant of `BoundaryRole`.
    pub(crate) role: Option<Ident>,
    /// Whether undeclared settings are accepted.
    pub(crate) is_open: bool,
}

impl Options {
    /// Parses the options of a struct; an invalid option is an error.
    pub(crate) fn of(item: &ItemStruct, root_crate: RootCrate, errors: &mut Errors) -> Self {
        let site = Span::mixed_site();
        let mut options = Self {
            root: match root_crate {
                RootCrate::Graph => parse_quote_spanned!(site=> ::clockjack_graph),
                RootCrate::Facade => parse_quote_spanned!(site=> ::clockjack::graph),
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
                errors.add(
                    attribute,
                    "`#[component(..)]` occurs twice: put all options into one attribute",
                );
                continue;
            }
            is_first = false;
            let form = "write the options in parentheses: `#[component(type = \"gain\")]`";
            is_read = each_key(attribute, form, errors, |key, input| options.take(key, input));
        }
        if options.component_type.is_none() && is_read {
            let what = "the component needs a type name for graph files: `#[component(type = \
                        \"gain\")]`";
            errors.add(&item.ident, what);
        }
        options
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "type" => {
                let expected = "`type` expects the name of the component type in graph files: \
                                `type = \"gain\"`";
                let name = text(key, input, expected)?;
                let is_name = |char: char| !char.is_whitespace() && !char.is_control();
                if name.value().is_empty() || !name.value().chars().all(is_name) {
                    return Err(Error::new(name.span(), expected));
                }
                self.component_type = Some(name);
            }
            "title" => {
                let expected = "`title` expects a display name: `title = \"Gain\"`";
                self.title = Some(text(key, input, expected)?);
            }
            "role" => {
                let expected = "`role` must be \"input\", \"output\" or \"input_output\": where \
                             values enter or leave the graph";
                let role = text(key, input, expected)?;
                let variant = match role.value().as_str() {
                    "input" => "Input",
                    "output" => "Output",
                    "input_output" => "InputOutput",
                    _ => return Err(Error::new(role.span(), expected)),
                };
                self.role = Some(Ident::new(variant, Span::mixed_site()));
            }
            "open_config" => self.is_open = true,
            "crate" => {
                let expected = "`crate` expects a path: `crate = ::clockjack::graph`";
                let at = equals(key, input, expected)?;
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, expected))?;
            }
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[component]`: the options are `type`, `title`, \
                     `role`, `open_config` and `crate`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }
}

/// Passes each key of an attribute's arguments to `take`, which parses the value.
///
/// A repeated key is an error. Returns whether everything could be parsed; after an error the rest
/// of the arguments is ignored.
pub(crate) fn each_key(
    attribute: &Attribute,
    form: &str,
    errors: &mut Errors,
    mut take: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) -> bool {
    let tokens = match &attribute.meta {
        Meta::Path(_) => return true,
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            errors.add(attribute, form);
            return false;
        }
    };
    let mut seen: Vec<Ident> = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let at = input.span();
            let key = Ident::parse_any(input).map_err(|_| Error::new(at, form))?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("option `{key}` occurs twice")));
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
            errors.push(error);
            false
        }
    }
}

/// Parses `=` and returns the span of the value. If there is no value, the error is at the key.
pub(crate) fn equals(key: &Ident, input: ParseStream<'_>, expected: &str) -> Result<Span> {
    if !input.peek(Token![=]) {
        return Err(Error::new(key.span(), expected));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(key.span(), expected));
    }
    Ok(input.span())
}

/// Parses `= "text"`.
pub(crate) fn text(key: &Ident, input: ParseStream<'_>, expected: &str) -> Result<LitStr> {
    let at = equals(key, input, expected)?;
    input.parse().map_err(|_| Error::new(at, expected))
}
