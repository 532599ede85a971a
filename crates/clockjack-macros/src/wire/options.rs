//! The options in `#[wire(..)]`.

use proc_macro2::{Ident, Span};
use syn::{
    Attribute, Error, LitInt, LitStr, Path, Result, parse::ParseStream, parse_quote_spanned,
};

use super::RootCrate;
use crate::{
    component::options::{each_key, equals, text},
    errors::Errors,
};

/// The longest name, as `clockjack_wire::NAME_MAX`.
const NAME_MAX: usize = 128;

/// The options of one `#[wire(..)]`.
pub(crate) struct Options {
    /// The path of `Wire` and so on.
    pub(crate) root: Path,
    /// The stable name. Without one, the type is a part of messages.
    pub(crate) id: Option<LitStr>,
    /// All options could be parsed.
    pub(crate) is_read: bool,
    pub(crate) version: u16,
    pub(crate) oldest: u16,
    /// The function that reads older versions.
    pub(crate) upcast: Option<Path>,
}

impl Options {
    /// Parses the options of a type; an invalid option is an error.
    pub(crate) fn of(attributes: &[Attribute], root_crate: RootCrate, errors: &mut Errors) -> Self {
        let site = Span::mixed_site();
        let mut options = Self {
            root: match root_crate {
                RootCrate::Wire => parse_quote_spanned!(site=> ::clockjack_wire),
                RootCrate::Facade => parse_quote_spanned!(site=> ::clockjack::wire),
            },
            id: None,
            is_read: true,
            version: 1,
            oldest: 0,
            upcast: None,
        };
        let mut found = attributes.iter().filter(|attribute| attribute.path().is_ident("wire"));
        if let Some(attribute) = found.next() {
            let form = "write the options in parentheses: `#[wire(id = \"app.Name\")]`";
            let is_read = each_key(attribute, form, errors, |key, input| options.take(key, input));
            options.is_read = is_read;
            if is_read {
                options.check(attribute, errors);
            }
        }
        if let Some(second) = found.next() {
            errors.add(second, "`#[wire(..)]` occurs twice: put all options into one attribute");
        }
        // Without an upcast, only the current version can be read.
        if options.oldest == 0 {
            options.oldest = if options.upcast.is_some() { 1 } else { options.version };
        }
        options
    }

    /// Options that need each other.
    fn check(&self, attribute: &Attribute, errors: &mut Errors) {
        if self.id.is_none() && (self.version != 1 || self.oldest != 0 || self.upcast.is_some()) {
            errors.add(attribute, "only a type with an `id` has versions");
        }
        if self.oldest > self.version {
            errors.add(attribute, "`oldest` is newer than `version`");
        }
        if self.oldest != 0 && self.oldest < self.version && self.upcast.is_none() {
            let what = "`oldest` promises to read older versions: name the function that does, \
                        `upcast = path`";
            errors.add(attribute, what);
        }
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "id" => {
                let expected = "`id` expects a stable name of ASCII letters, digits, `.`, `_` and \
                                `-`: `id = \"shop.Order\"`";
                let id = text(key, input, expected)?;
                let is_name =
                    |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
                let value = id.value();
                if value.is_empty() || value.len() > NAME_MAX || !value.chars().all(is_name) {
                    return Err(Error::new(id.span(), expected));
                }
                self.id = Some(id);
            }
            "version" => self.version = version(key, input)?,
            "oldest" => self.oldest = version(key, input)?,
            "upcast" => {
                let expected = "`upcast` expects the path of a function: `upcast = Order::upcast`";
                let at = equals(key, input, expected)?;
                self.upcast =
                    Some(Path::parse_mod_style(input).map_err(|_| Error::new(at, expected))?);
            }
            "crate" => {
                let expected = "`crate` expects a path: `crate = ::clockjack::wire`";
                let at = equals(key, input, expected)?;
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, expected))?;
            }
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[wire]`: the options are `id`, `version`, \
                     `oldest`, `upcast` and `crate`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }
}

/// Parses `= 2`.
fn version(key: &Ident, input: ParseStream<'_>) -> Result<u16> {
    let expected = format!("`{key}` expects a number from 1 to 65535");
    let at = equals(key, input, &expected)?;
    let number: LitInt = input.parse().map_err(|_| Error::new(at, &expected))?;
    match number.base10_parse::<u16>() {
        Ok(0) | Err(_) => Err(Error::new(number.span(), expected)),
        Ok(version) => Ok(version),
    }
}
