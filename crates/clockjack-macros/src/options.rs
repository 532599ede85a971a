//! What stands in the brackets of `#[actor(..)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{
    Error, LitStr, Path, Result, Token, Visibility,
    ext::IdentExt as _,
    parse::{Parse, ParseStream, Parser as _},
    parse_quote_spanned,
};

use crate::faults::Faults;

/// By which crate the attribute was reached, and so where `Actor` and the others are, unless the
/// options say else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// `::clockjack_actor`.
    Actor,
    /// `::clockjack::actor`, for those who depend on the facade alone.
    Facade,
}

impl Home {
    fn root(self, site: Span) -> Path {
        match self {
            Self::Actor => parse_quote_spanned!(site=> ::clockjack_actor),
            Self::Facade => parse_quote_spanned!(site=> ::clockjack::actor),
        }
    }
}

/// The options of one `#[actor(..)]`.
pub(crate) struct Options {
    /// Where `Actor` and the others are found.
    pub(crate) root: Path,
    /// The enum, if not `CounterMsg`.
    pub(crate) msg: Option<Ident>,
    /// The trait, if not `CounterApi`.
    pub(crate) api: Option<Ident>,
    /// Of the enum and of the trait.
    pub(crate) vis: Visibility,
}

impl Options {
    /// Reads the options; what cannot be read is a fault, and keeps its default.
    pub(crate) fn parse(tokens: TokenStream, home: Home, faults: &mut Faults) -> Options {
        let site = Span::mixed_site();
        let mut options = Options {
            root: home.root(site),
            msg: None,
            api: None,
            vis: Visibility::Public(Token![pub](site)),
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
        if let Err(error) = parser.parse2(tokens) {
            faults.push(error);
        }
        options
    }

    fn parse_one(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key = Ident::parse_any(input)?;
        match key.to_string().as_str() {
            "crate" => {
                input.parse::<Token![=]>()?;
                let wants = "`crate` wants a path: `crate = ::clockjack::actor`";
                let at = input.span();
                self.root = Path::parse_mod_style(input).map_err(|_| Error::new(at, wants))?;
            }
            "msg" => {
                let wants = "`msg` wants the name of the enum: `msg = \"CounterCommand\"`";
                self.msg = Some(quoted(input, wants)?);
            }
            "api" => {
                let wants = "`api` wants the name of the trait: `api = \"CounterCalls\"`";
                self.api = Some(quoted(input, wants)?);
            }
            "vis" => {
                let wants = "`vis` wants a visibility: `vis = \"pub(crate)\"`";
                self.vis = quoted(input, wants)?;
            }
            other => {
                let what = format!(
                    "`{other}` is no option of `#[actor]`: there are `crate`, `msg`, `api` and \
                     `vis`"
                );
                return Err(Error::new_spanned(key, what));
            }
        }
        Ok(())
    }
}

/// Reads `= "value"`.
fn quoted<T: Parse>(input: ParseStream<'_>, wants: &str) -> Result<T> {
    let at = input.span();
    input.parse::<Token![=]>().map_err(|_| Error::new(at, wants))?;
    let at = input.span();
    let text: LitStr = input.parse().map_err(|_| Error::new(at, wants))?;
    text.parse().map_err(|_| Error::new_spanned(&text, wants))
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens as _, quote};

    use super::*;

    fn parse(tokens: TokenStream) -> Result<Options> {
        let mut faults = Faults::default();
        let options = Options::parse(tokens, Home::Actor, &mut faults);
        faults.finish().map(|()| options)
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
        assert!(options.msg.is_none() && options.api.is_none());
    }

    #[test]
    fn through_the_facade_the_actor_crate_is_found_behind_it() {
        let options = Options::parse(quote!(), Home::Facade, &mut Faults::default());
        let expected = quote!(::clockjack::actor).to_string();
        assert_eq!(options.root.to_token_stream().to_string(), expected);
    }

    #[test]
    fn all_options_are_read_in_any_order() {
        let tokens = quote!(vis = "pub(crate)", api = "B", msg = "A", crate = crate::stub,);
        let options = parse(tokens).unwrap();
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
        check_refused(quote!(name = "A"), "`name` is no option");
        check_refused(quote!(msg = A), "`msg` wants the name of the enum");
        check_refused(quote!(msg), "`msg` wants the name of the enum");
        check_refused(quote!(api = "a b"), "`api` wants the name of the trait");
        check_refused(quote!(vis = "public"), "`vis` wants a visibility");
        check_refused(quote!(crate = "clockjack"), "`crate` wants a path");
    }
}
