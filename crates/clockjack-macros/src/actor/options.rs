//! The options in `#[actor(..)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{
    Error, LitStr, Path, Result, Token, Visibility,
    ext::IdentExt as _,
    parse::{Parse, ParseStream, Parser as _},
    parse_quote_spanned,
};

use crate::{actor::block::mentions, errors::Errors};

/// The crate through which the attribute was used. It determines the path of `Actor` and so on,
/// unless the options override it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RootCrate {
    /// `::clockjack_actor`.
    Actor,
    /// `::clockjack::actor`, for crates that depend only on the facade.
    Facade,
}

impl RootCrate {
    fn root(self, site: Span) -> Path {
        match self {
            Self::Actor => parse_quote_spanned!(site=> ::clockjack_actor),
            Self::Facade => parse_quote_spanned!(site=> ::clockjack::actor),
        }
    }
}

/// The options of one `#[actor(..)]`.
pub(crate) struct Options {
    /// The path of `Actor` and so on.
    pub(crate) root: Path,
    /// The name of the enum, if not `CounterMsg`.
    pub(crate) msg: Option<Ident>,
    /// The name of the trait, if not `CounterApi`.
    pub(crate) api: Option<Ident>,
    /// The visibility of the enum and of the trait.
    pub(crate) vis: Visibility,
    /// Whether messages need not be `Send`.
    pub(crate) is_local: bool,
    /// False if `crate = ..` was given and not read.
    pub(crate) is_root_known: bool,
}

impl Options {
    /// Parses the options; an invalid option is an error, and keeps its default.
    pub(crate) fn parse(
        tokens: TokenStream,
        root_crate: RootCrate,
        errors: &mut Errors,
    ) -> Options {
        let site = Span::mixed_site();
        let mut options = Options {
            root: root_crate.root(site),
            msg: None,
            api: None,
            vis: Visibility::Public(Token![pub](site)),
            is_local: false,
            is_root_known: true,
        };
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                options.parse_one(input)?;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        };
        if let Err(error) = parser.parse2(tokens.clone()) {
            errors.push(error);
            // The options behind the error were not read. They may have said so.
            options.is_local = true;
            options.is_root_known = !mentions(tokens, &Ident::new("crate", site));
        }
        options
    }

    fn parse_one(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key = Ident::parse_any(input)?;
        match key.to_string().as_str() {
            "crate" => {
                input.parse::<Token![=]>()?;
                let expected = "`crate` expects a path: `crate = ::clockjack::actor`";
                let at = input.span();
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, expected))?;
            }
            "msg" => {
                let expected = "`msg` expects the name of the enum: `msg = \"CounterCommand\"`";
                self.msg = Some(quoted(input, expected)?);
            }
            "api" => {
                let expected = "`api` expects the name of the trait: `api = \"CounterCalls\"`";
                self.api = Some(quoted(input, expected)?);
            }
            "vis" => {
                let expected = "`vis` expects a visibility: `vis = \"pub(crate)\"`";
                self.vis = quoted(input, expected)?;
            }
            "local" => self.is_local = true,
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[actor]`: the options are `crate`, `msg`, \
                     `api`, `vis` and `local`"
                );
                return Err(Error::new_spanned(key, what));
            }
        }
        Ok(())
    }
}

/// Parses `= "value"`.
fn quoted<T: Parse>(input: ParseStream<'_>, expected: &str) -> Result<T> {
    let at = input.span();
    input.parse::<Token![=]>().map_err(|_| Error::new(at, expected))?;
    let at = input.span();
    let text: LitStr = input.parse().map_err(|_| Error::new(at, expected))?;
    text.parse().map_err(|_| Error::new_spanned(&text, expected))
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens as _, quote};

    use super::*;

    fn parse(tokens: TokenStream) -> Result<Options> {
        let mut errors = Errors::default();
        let options = Options::parse(tokens, RootCrate::Actor, &mut errors);
        errors.finish().map(|()| options)
    }

    #[track_caller]
    fn check_refused(tokens: TokenStream, expected: &str) {
        let shown = parse(tokens).err().unwrap().to_string();
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn without_options_the_actor_crate_and_pub_are_taken() {
        let options = parse(quote!()).unwrap();
        let expected = quote!(::clockjack_actor).to_string();
        assert_eq!(options.root.to_token_stream().to_string(), expected);
        assert!(matches!(options.vis, Visibility::Public(_)));
        assert!(options.msg.is_none() && options.api.is_none() && !options.is_local);
    }

    #[test]
    fn through_the_facade_the_actor_crate_is_found_behind_it() {
        let options = Options::parse(quote!(), RootCrate::Facade, &mut Errors::default());
        let expected = quote!(::clockjack::actor).to_string();
        assert_eq!(options.root.to_token_stream().to_string(), expected);
    }

    #[test]
    fn all_options_are_read_in_any_order() {
        let tokens = quote!(vis = "pub(crate)", api = "B", local, msg = "A", crate = crate::stub,);
        let options = parse(tokens).unwrap();
        assert!(options.is_local);
        assert_eq!(options.msg.unwrap(), "A");
        assert_eq!(options.api.unwrap(), "B");
        assert!(matches!(options.vis, Visibility::Restricted(_)));
        let expected = quote!(crate::stub).to_string();
        assert_eq!(options.root.to_token_stream().to_string(), expected);
    }

    #[test]
    fn an_empty_visibility_is_private() {
        assert!(matches!(parse(quote!(vis = "")).unwrap().vis, Visibility::Inherited));
    }

    #[test]
    fn what_cannot_be_read_says_what_is_wanted() {
        check_refused(quote!(name = "A"), "unknown option `name`");
        check_refused(quote!(msg = A), "`msg` expects the name of the enum");
        check_refused(quote!(msg), "`msg` expects the name of the enum");
        check_refused(quote!(api = "a b"), "`api` expects the name of the trait");
        check_refused(quote!(vis = "public"), "`vis` expects a visibility");
        check_refused(quote!(crate = "clockjack"), "`crate` expects a path");
    }
}
