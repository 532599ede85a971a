//! The `impl` block under `#[actor]`: whose it is, and which of its methods are marked.

use proc_macro2::{Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::{GenericParam, ImplItem, ItemImpl, Type};

use crate::{
    faults::Faults,
    marks::{Marks, Role},
    method::{Handler, Hook},
    owned::{self, Cargo},
};

/// What was read from a block.
pub(crate) struct Block {
    /// The block as the user wrote it, without the marks.
    pub(crate) item: ItemImpl,
    /// The last word of the actor's type.
    pub(crate) name: Ident,
    /// In the order of the block.
    pub(crate) handlers: Vec<Handler>,
    /// More than one only under conditions.
    pub(crate) started: Vec<Hook>,
    /// More than one only under conditions.
    pub(crate) signal: Vec<Hook>,
}

impl Block {
    /// Reads a block and takes the marks off; what is wrong goes to `faults`.
    pub(crate) fn parse(mut item: ItemImpl, faults: &mut Faults) -> Block {
        let name = actor_name(&item, faults);
        let (mut handlers, mut started, mut signal) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_marked = false;
        for member in &mut item.items {
            let ImplItem::Fn(method) = member else {
                if let Some(attributes) = attributes(member) {
                    Marks::take(attributes, faults).refuse(faults);
                }
                continue;
            };
            let marks = Marks::take(&mut method.attrs, faults);
            let Some((role, is_control)) = marks.role(faults) else { continue };
            match role {
                Role::Msg | Role::Ask => {
                    is_marked = true;
                    handlers.extend(Handler::parse(method, role, is_control, faults));
                }
                Role::Started => started.push(Hook::parse(method, role, faults)),
                Role::Signal => signal.push(Hook::parse(method, role, faults)),
            }
        }
        if !is_marked {
            let what = "this actor has no message: mark a method with `#[msg]` or `#[ask]`, or \
                        write `impl Actor` by hand";
            faults.add(&item.self_ty, what);
        }
        check_twins(&handlers, faults);
        check_one(&started, Role::Started, faults);
        check_one(&signal, Role::Signal, faults);
        Block { item, name, handlers, started, signal }
    }

    /// Tokens of the block in a place where `Self` means something else: it is spelled out.
    pub(crate) fn spell_self(&self, tokens: TokenStream) -> TokenStream {
        spell_self(tokens, &self.item.self_ty)
    }
}

/// Whose block it is. Every block gives a name, so that the rest can be read.
fn actor_name(item: &ItemImpl, faults: &mut Faults) -> Ident {
    for param in &item.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            let what = "an actor must own what it holds: it lives as long as it likes, so it has \
                        no lifetime parameters";
            faults.add(&lifetime.lifetime, what);
        }
    }
    let has_lifetimes = item.generics.lifetimes().next().is_some();
    if !has_lifetimes {
        owned::check(&item.self_ty, Cargo::Actor, faults);
    }
    let last = owned::as_path(&item.self_ty).and_then(|path| path.segments.last());
    last.map(|segment| segment.ident.clone()).unwrap_or_else(|| {
        let what = "an actor is a type with a name: `impl Counter { .. }`";
        faults.add(&item.self_ty, what);
        Ident::new("Unnamed", Span::mixed_site())
    })
}

fn attributes(member: &mut ImplItem) -> Option<&mut Vec<syn::Attribute>> {
    match member {
        ImplItem::Const(item) => Some(&mut item.attrs),
        ImplItem::Type(item) => Some(&mut item.attrs),
        ImplItem::Macro(item) => Some(&mut item.attrs),
        _ => None,
    }
}

/// Two methods may become one variant: `set_a` and `set__a`. Under conditions at most one of them
/// is there, which only the compiler can tell.
fn check_twins(handlers: &[Handler], faults: &mut Faults) {
    for (index, handler) in handlers.iter().enumerate() {
        let is_twin = |other: &&Handler| {
            other.variant == handler.variant && other.cfgs.is_empty() && handler.cfgs.is_empty()
        };
        if let Some(other) = handlers[..index].iter().find(is_twin) {
            let what = format!(
                "`{}` and `{}` would both be the variant `{}`: rename one",
                other.name, handler.name, handler.variant
            );
            faults.add(&handler.name, what);
        }
    }
}

fn check_one(hooks: &[Hook], role: Role, faults: &mut Faults) {
    let mut always = hooks.iter().filter(|hook| hook.cfgs.is_empty());
    let Some(first) = always.next() else { return };
    for hook in always {
        let what = format!("`{}` is `{}` already: an actor has one", first.name, role.mark());
        faults.add(&hook.name, what);
    }
}

/// Writes the type where `Self` stood; `Self::X` becomes `<Type>::X`.
fn spell_self(tokens: TokenStream, self_ty: &Type) -> TokenStream {
    let mut spelled = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "Self" => {
                let is_head = matches!(tokens.peek(), Some(TokenTree::Punct(next))
                    if next.as_char() == ':' && next.spacing() == Spacing::Joint);
                let at = word.span();
                let spelled_out = locate(self_ty.to_token_stream(), at);
                spelled.extend(if is_head {
                    quote_spanned!(at=> <#spelled_out>)
                } else {
                    spelled_out
                });
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), spell_self(group.stream(), self_ty));
                inner.set_span(group.span());
                spelled.extend([TokenTree::Group(inner)]);
            }
            other => spelled.extend([other]),
        }
    }
    spelled
}

/// The same tokens, as if they stood at one place: there the compiler will point.
fn locate(tokens: TokenStream, at: Span) -> TokenStream {
    let locate_one = |mut token: TokenTree| {
        let span = token.span().located_at(at);
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), locate(group.stream(), at)).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(locate_one).collect()
}

/// Whether a word stands somewhere in these tokens.
pub(crate) fn mentions(tokens: TokenStream, word: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(other) => other == *word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
