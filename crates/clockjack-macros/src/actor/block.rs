//! Parses the `impl` block under `#[actor]`: the actor's type and its marked methods.

use core::mem;

use proc_macro2::{Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::{GenericParam, ImplItem, ItemImpl, Type};

use crate::{
    actor::{
        markers::{Markers, Role},
        method::{Handler, Hook, Reply},
        owned::{self, TypeUse},
    },
    errors::Errors,
};

/// A parsed block.
pub(crate) struct Block {
    /// The block as the user wrote it, without the marker attributes.
    pub(crate) item: ItemImpl,
    /// The last segment of the actor's type.
    pub(crate) name: Ident,
    /// Whether the type can be an actor.
    is_actor: bool,
    /// In the order of the block.
    pub(crate) handlers: Vec<Handler>,
    /// Those with an error, of which only the methods that send them are generated.
    pub(crate) refused: Vec<Handler>,
    /// More than one only with `#[cfg]`.
    pub(crate) started: Vec<Hook>,
    /// More than one only with `#[cfg]`.
    pub(crate) signal: Vec<Hook>,
}

impl Block {
    /// Parses a block and removes the marker attributes; adds errors to `errors`.
    pub(crate) fn parse(mut item: ItemImpl, errors: &mut Errors) -> Block {
        let n_before = errors.count();
        let name = actor_name(&item, errors);
        let is_actor = errors.count() == n_before;
        let (mut handlers, mut started, mut signal) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_marked = false;
        for member in &mut item.items {
            let ImplItem::Fn(method) = member else {
                if let Some(attributes) = attributes(member) {
                    Markers::take(attributes, errors).refuse(errors);
                }
                continue;
            };
            let markers = Markers::take(&mut method.attrs, errors);
            let Some((role, is_control)) = markers.role(errors) else { continue };
            match role {
                Role::Msg | Role::Ask => {
                    is_marked = true;
                    let n_before = errors.count();
                    let handler = Handler::parse(method, role, is_control, errors);
                    let is_valid = errors.count() == n_before;
                    handlers.extend(handler.map(|handler| Handler { is_valid, ..handler }));
                }
                Role::Started => started.push(Hook::parse(method, role, errors)),
                Role::Signal => signal.push(Hook::parse(method, role, errors)),
            }
        }
        if !is_marked {
            let what = "this actor has no message: mark a method with `#[msg]` or `#[ask]`, or \
                        write `impl Actor` by hand";
            errors.add(&item.self_ty, what);
        }
        check_duplicate_variants(&handlers, errors);
        check_single_hook(&started, Role::Started, errors);
        check_single_hook(&signal, Role::Signal, errors);
        Block { item, name, is_actor, handlers, refused: Vec::new(), started, signal }
    }

    /// Checks that messages and answers can be sent to another thread, as far as their types show
    /// it; the compiler checks the rest in generated code.
    pub(crate) fn check_send(&mut self, errors: &mut Errors) {
        for handler in &mut self.handlers {
            let n_before = errors.count();
            for field in &handler.fields {
                owned::check_send(&field.ty, TypeUse::Message, errors);
            }
            if let Reply::Returned(Some(answer)) = &handler.reply {
                owned::check_send(answer, TypeUse::Answer, errors);
            }
            handler.is_valid &= errors.count() == n_before;
        }
    }

    /// Separates what is wrong, so that the rest can be expanded next to the errors. False if
    /// nothing can.
    pub(crate) fn refuse_invalid(&mut self) -> bool {
        let mut variants = Vec::new();
        for handler in mem::take(&mut self.handlers) {
            // Two with a condition may be the same message.
            let is_first = !handler.cfgs.is_empty() || !variants.contains(&handler.variant);
            variants.push(handler.variant.clone());
            if handler.is_valid && is_first {
                self.handlers.push(handler);
            } else if handler.is_declarable {
                self.refused.push(handler);
            }
        }
        self.started.clear();
        self.signal.clear();
        self.is_actor
    }

    /// Replaces `Self` by the actor's type, for tokens that move to where `Self` differs.
    pub(crate) fn replace_self(&self, tokens: TokenStream) -> TokenStream {
        replace_self(tokens, &self.item.self_ty)
    }
}

/// The name of the actor. Returns a placeholder after an error, so that parsing can continue.
fn actor_name(item: &ItemImpl, errors: &mut Errors) -> Ident {
    for param in &item.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            let what = "an actor must own its data: no borrow limits its life, so it cannot have \
                        lifetime parameters";
            errors.add(&lifetime.lifetime, what);
        }
    }
    let has_lifetimes = item.generics.lifetimes().next().is_some();
    if !has_lifetimes {
        owned::check(&item.self_ty, TypeUse::Actor, errors);
    }
    let last = owned::as_path(&item.self_ty).and_then(|path| path.segments.last());
    last.map(|segment| segment.ident.clone()).unwrap_or_else(|| {
        let what = "an actor must be a named type: `impl Counter { .. }`";
        errors.add(&item.self_ty, what);
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

/// Two methods may become the same variant: `set_a` and `set__a`. With `#[cfg]` at most one of them
/// may exist, which only the compiler knows.
fn check_duplicate_variants(handlers: &[Handler], errors: &mut Errors) {
    for (index, handler) in handlers.iter().enumerate() {
        let is_duplicate = |other: &&Handler| {
            other.variant == handler.variant && other.cfgs.is_empty() && handler.cfgs.is_empty()
        };
        if let Some(other) = handlers[..index].iter().find(is_duplicate) {
            let what = format!(
                "`{}` and `{}` would both become the variant `{}`: rename one of them",
                other.name, handler.name, handler.variant
            );
            errors.add(&handler.name, what);
        }
    }
}

fn check_single_hook(hooks: &[Hook], role: Role, errors: &mut Errors) {
    let mut always = hooks.iter().filter(|hook| hook.cfgs.is_empty());
    let Some(first) = always.next() else { return };
    for hook in always {
        let what = format!(
            "`{}` is already marked `{}`: an actor can have only one",
            first.name,
            role.attribute()
        );
        errors.add(&hook.name, what);
    }
}

/// Replaces `Self` by the type; `Self::X` becomes `<Type>::X`.
fn replace_self(tokens: TokenStream, self_ty: &Type) -> TokenStream {
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
                let mut inner =
                    Group::new(group.delimiter(), replace_self(group.stream(), self_ty));
                inner.set_span(group.span());
                spelled.extend([TokenTree::Group(inner)]);
            }
            other => spelled.extend([other]),
        }
    }
    spelled
}

/// The same tokens with another location, to which compiler errors will point.
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

/// Whether an identifier occurs in these tokens.
pub(crate) fn mentions(tokens: TokenStream, word: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(other) => other == *word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
