//! Generates the code that `#[actor]` adds: the enum, its `Debug`, `impl Actor`, the trait.
//!
//! Every path is absolute or starts at the root of the options, so the call site needs no import
//! and may shadow any name; `alloc` and `std` are never used, since the call site may have neither.
//! Local variables have mixed-site hygiene: a parameter named `cx`, `msg` or `timeout` does not
//! collide with them. A method of the actor is called by its path, `Self::inc(self)`, where the
//! inherent method takes precedence over a method of `Actor` with the same name.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote_spanned};
use syn::{Attribute, GenericParam, Type, ext::IdentExt as _};

use crate::actor::{
    block::{Block, mentions},
    method::{Field, Handler, Hook, Reply},
    options::Options,
};

/// Generates everything that follows the block.
pub(crate) fn expand(block: &Block, options: &Options) -> TokenStream {
    let expansion = Expansion::new(block, options);
    let parts = [expansion.message(), expansion.debug(), expansion.actor(), expansion.api()];
    let moves = (!options.is_local).then(|| expansion.moves());
    parts.into_iter().chain(moves).collect()
}

/// The data that all parts share.
struct Expansion<'a> {
    block: &'a Block,
    options: &'a Options,
    site: Span,
    /// The enum's name.
    msg: Ident,
    /// The trait's name.
    api: Ident,
    /// `<T: Bound>`, with `Self` replaced.
    declared: TokenStream,
    /// `<T>`.
    used: TokenStream,
    /// `where ..`, with `Self` replaced.
    bounds: TokenStream,
    /// The path of `Context` and so on.
    root: &'a syn::Path,
    /// `Result<Next, Failure>`.
    outcome: TokenStream,
}

impl<'a> Expansion<'a> {
    fn new(block: &'a Block, options: &'a Options) -> Self {
        let site = Span::mixed_site();
        let at = site.located_at(block.name.span());
        let named = |given: &Option<Ident>, end: &str| {
            given.clone().unwrap_or_else(|| format_ident!("{}{end}", block.name.unraw(), span = at))
        };
        let (declared, used, bounds) = block.item.generics.split_for_impl();
        let root = &options.root;
        Expansion {
            block,
            options,
            site,
            msg: named(&options.msg, "Msg"),
            api: named(&options.api, "Api"),
            declared: block.replace_self(declared.to_token_stream()),
            used: used.to_token_stream(),
            bounds: block.replace_self(bounds.to_token_stream()),
            root,
            outcome: quote_spanned! {site=>
                ::core::result::Result<#root::Next, #root::Failure>
            },
        }
    }

    /// The enum.
    fn message(&self) -> TokenStream {
        let Expansion { site, msg, declared, bounds, .. } = self;
        let vis = &self.options.vis;
        let doc = format!(
            "The messages of `{}`: one per method that is marked `#[msg]` or `#[ask]`.",
            self.block.name
        );
        let variants = self.block.handlers.iter().map(|handler| self.variant(handler));
        let phantom = self.phantom();
        quote_spanned! {*site=>
            #[doc = #doc]
            #vis enum #msg #declared #bounds { #(#variants,)* #phantom }
        }
    }

    fn variant(&self, handler: &Handler) -> TokenStream {
        let Expansion { site, .. } = self;
        let Handler { variant, cfgs, .. } = handler;
        let docs = self.docs(handler);
        let mut fields: Vec<TokenStream> = Vec::new();
        for Field { name, ty } in &handler.fields {
            let ty = self.block.replace_self(ty.to_token_stream());
            let doc = format!("The parameter `{name}` of `{}`.", handler.name);
            fields.push(quote_spanned!(*site=> #[doc = #doc] #name: #ty));
        }
        if let Reply::Returned(_) = handler.reply {
            let (root, answer) = (self.root, self.answer(handler));
            fields.push(quote_spanned! {*site=>
                #[doc = "Where the answer goes."]
                reply_to: #root::ReplyTo<#answer>
            });
        }
        let fields = (!fields.is_empty()).then(|| quote_spanned!(*site=> { #(#fields),* }));
        quote_spanned!(*site=> #(#cfgs)* #docs #variant #fields)
    }

    /// Checks that each field and answer is `Send`, at the place of its type: otherwise the
    /// compiler would report it only where the actor is spawned, and name the enum. What depends on
    /// a type parameter is checked only there.
    fn moves(&self) -> TokenStream {
        let Expansion { site, .. } = self;
        let params = self.block.item.generics.params.iter().filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        });
        let params: Vec<&Ident> = params.collect();
        let [message, answer] = ["a_message_moves", "an_answer_moves"]
            .map(|name| format_ident!("{name}_to_another_thread", span = *site));
        let check = |cfgs: &[Attribute], moves: &Ident, ty: &Type| {
            let tokens = self.block.replace_self(ty.to_token_stream());
            let is_generic = params.iter().any(|param| mentions(tokens.clone(), param));
            (!is_generic).then(|| quote_spanned!(*site=> #(#cfgs)* let _ = #moves::<#tokens>;))
        };
        let checks = self.block.handlers.iter().flat_map(|handler| {
            let fields = handler.fields.iter();
            let fields = fields.map(|field| check(&handler.cfgs, &message, &field.ty));
            let returned = match &handler.reply {
                Reply::Returned(ty) => ty.as_ref(),
                Reply::Later(_) | Reply::None { .. } => None,
            };
            let returned = returned.map(|ty| check(&handler.cfgs, &answer, ty));
            fields.chain(returned).flatten().collect::<Vec<_>>()
        });
        let checks: Vec<_> = checks.collect();
        let bound = quote_spanned!(*site=> T: ?::core::marker::Sized + ::core::marker::Send);
        quote_spanned! {*site=>
            const _: () = {
                const fn #message<#bound>() {}
                const fn #answer<#bound>() {}
                let _ = (#message::<()>, #answer::<()>);
                #(#checks)*
            };
        }
    }

    /// The method's documentation, or a default line.
    fn docs(&self, handler: &Handler) -> TokenStream {
        let docs = &handler.docs;
        if docs.is_empty() {
            let doc = format!("Calls `{}::{}`.", self.block.name, handler.name);
            quote_spanned!(self.site=> #[doc = #doc])
        } else {
            quote_spanned!(self.site=> #(#docs)*)
        }
    }

    /// An uninhabited variant, for type parameters that may not occur in any message.
    fn phantom(&self) -> Option<TokenStream> {
        // Only the types: a variant may have the name of a parameter.
        let always: TokenStream = (self.block.handlers.iter())
            .filter(|handler| handler.cfgs.is_empty())
            .flat_map(|handler| {
                let spell = |field: &Field| self.block.replace_self(field.ty.to_token_stream());
                handler.fields.iter().map(spell).chain([self.answer(handler)])
            })
            .collect();
        let unused: Vec<&Ident> = (self.block.item.generics.params.iter())
            .filter_map(|param| match param {
                GenericParam::Type(param) => Some(&param.ident),
                _ => None,
            })
            .filter(|name| !mentions(always.clone(), name))
            .collect();
        (!unused.is_empty()).then(|| {
            quote_spanned! {self.site=>
                #[doc(hidden)]
                __Phantom(
                    ::core::convert::Infallible,
                    ::core::marker::PhantomData<
                        fn() -> (#(::core::marker::PhantomData<#unused>,)*)
                    >,
                ),
            }
        })
    }

    /// `Debug` with the variant's name only: the fields need not implement it.
    fn debug(&self) -> TokenStream {
        let Expansion { site, msg, declared, used, bounds, .. } = self;
        let arms = self.block.handlers.iter().map(|Handler { variant, cfgs, .. }| {
            let text = variant.to_string();
            quote_spanned!(*site=> #(#cfgs)* #msg::#variant { .. } => #text,)
        });
        let phantom = self
            .phantom()
            .map(|_| quote_spanned!(*site=> #msg::__Phantom(never, _) => match *never {},));
        // After an error there may be no message.
        let is_empty = self.block.handlers.is_empty() && phantom.is_none();
        let body = if is_empty {
            quote_spanned!(*site=> let _ = f; match *self {})
        } else {
            quote_spanned! {*site=>
                ::core::fmt::Formatter::write_str(f, match self { #(#arms)* #phantom })
            }
        };
        quote_spanned! {*site=>
            #[automatically_derived]
            impl #declared ::core::fmt::Debug for #msg #used #bounds {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    #body
                }
            }
        }
    }

    /// `impl Actor`.
    fn actor(&self) -> TokenStream {
        let Expansion { site, msg, declared, used, bounds, root, outcome, .. } = self;
        let self_ty = &self.block.item.self_ty;
        let started = self.block.started.iter().map(|hook| self.hook(hook, "started"));
        let signal = self.block.signal.iter().map(|hook| self.hook(hook, "signal"));
        let arms = self.block.handlers.iter().map(|handler| self.arm(handler));
        let phantom = self
            .phantom()
            .map(|_| quote_spanned!(*site=> #msg::__Phantom(never, _) => match never {},));
        // With `#[cfg]` it may be unused even so, hence the line in the body.
        let uses_context = self.block.handlers.iter().any(|h| h.takes_context || h.is_async);
        let context = if uses_context { "cx" } else { "_cx" };
        let context = Ident::new(context, *site);
        let touch = uses_context.then(|| quote_spanned!(*site=> let _ = &#context;));
        quote_spanned! {*site=>
            #[automatically_derived]
            impl #declared #root::Actor for #self_ty #bounds {
                type Msg = #msg #used;
                #(#started)*
                fn receive(
                    &mut self,
                    #context: &mut #root::Context<'_, Self>,
                    msg: #msg #used,
                ) -> #outcome {
                    #touch
                    match msg { #(#arms)* #phantom }
                }
                #(#signal)*
            }
        }
    }

    fn hook(&self, hook: &Hook, method: &str) -> TokenStream {
        let Expansion { site, root, outcome, .. } = self;
        let (name, cfgs, method) = (&hook.name, &hook.cfgs, Ident::new(method, *site));
        let context = Ident::new(if hook.takes_context { "cx" } else { "_cx" }, *site);
        let passed = hook.takes_context.then(|| quote_spanned!(*site=> #context,));
        let argument = hook.signal_at.map(|at| Ident::new("signal", site.located_at(at)));
        let parameter = argument.iter().map(|name| quote_spanned!(*site=> #name: #root::Signal));
        let at = site.located_at(hook.output_at);
        let call = quote_spanned!(at=> Self::#name(self, #passed #argument));
        let next = self.next_of(&call, at);
        quote_spanned! {*site=>
            #(#cfgs)*
            fn #method(
                &mut self,
                #context: &mut #root::Context<'_, Self>,
                #(#parameter)*
            ) -> #outcome {
                #next
            }
        }
    }

    /// One arm of `receive`.
    fn arm(&self, handler: &Handler) -> TokenStream {
        let Expansion { site, msg, root, .. } = self;
        let Handler { name, variant, cfgs, .. } = handler;
        let fields: Vec<&Ident> = handler.fields.iter().map(|field| &field.name).collect();
        let answers = matches!(handler.reply, Reply::Returned(_));
        let reply_to = answers.then(|| quote_spanned!(*site=> reply_to: answer_to,));
        let at = site.located_at(handler.output_at);
        let context = handler.takes_context.then(|| quote_spanned!(*site=> cx,));
        let stay = quote_spanned!(*site=> ::core::result::Result::Ok(#root::Next::Stay));
        // In an `async` arm, the actor is the argument of the closure of `wait_mut`.
        let (me, wait) = if handler.is_async {
            (quote_spanned!(*site=> me), Some(quote_spanned!(at=> .await)))
        } else {
            (quote_spanned!(*site=> self), None)
        };
        let call = quote_spanned!(at=> Self::#name(#me, #context #(#fields),*) #wait);
        let body = if answers {
            quote_spanned! {*site=>
                let answer = #call;
                #root::ReplyTo::reply(answer_to, answer);
                #stay
            }
        } else {
            self.next_of(&call, at)
        };
        let body = if handler.is_async {
            let at = site.located_at(name.span());
            let lent = quote_spanned! {at=>
                move |me| #root::generated::Box::pin(async move { #body })
            };
            quote_spanned!(at=> #root::Context::wait_mut(cx, #lent)?; #stay)
        } else {
            body
        };
        let pattern = quote_spanned!(*site=> #msg::#variant { #(#fields,)* #reply_to });
        let quiet = (!handler.deprecated.is_empty()).then(|| {
            let reason = "who sends it is warned; that it is still handled is no use of it";
            quote_spanned!(*site=> #[expect(deprecated, reason = #reason)])
        });
        quote_spanned!(*site=> #(#cfgs)* #quiet #pattern => { #body })
    }

    fn next_of(&self, call: &TokenStream, at: Span) -> TokenStream {
        let root = self.root;
        quote_spanned!(at=> #root::generated::IntoNext::into_next(#call))
    }

    /// The trait and its implementation.
    fn api(&self) -> TokenStream {
        let Expansion { site, msg, api, declared, used, bounds, root, .. } = self;
        let vis = &self.options.vis;
        let doc = format!(
            "The methods of `{}` on an `ActorRef` to it: each sends one message.",
            self.block.name
        );
        let (mut signatures, mut methods) = (Vec::new(), Vec::new());
        for handler in &self.block.handlers {
            let Handler { cfgs, deprecated, .. } = handler;
            let (docs, signature) = (self.api_docs(handler), self.signature(handler));
            let body = self.api_body(handler);
            signatures.push(quote_spanned!(*site=> #(#cfgs)* #docs #(#deprecated)* #signature;));
            methods.push(quote_spanned!(*site=> #(#cfgs)* #signature { #body }));
        }
        for handler in &self.block.refused {
            let Handler { cfgs, .. } = handler;
            let (docs, signature) = (self.api_docs(handler), self.signature(handler));
            let body = self.refused_body(handler);
            signatures.push(quote_spanned!(*site=> #(#cfgs)* #docs #signature;));
            methods.push(quote_spanned!(*site=> #(#cfgs)* #signature { #body }));
        }
        quote_spanned! {*site=>
            #[doc = #doc]
            #vis trait #api #declared #bounds { #(#signatures)* }

            #[automatically_derived]
            impl #declared #api #used for #root::ActorRef<#msg #used> #bounds { #(#methods)* }
        }
    }

    fn api_docs(&self, handler: &Handler) -> TokenStream {
        let docs = self.docs(handler);
        let more = match handler.reply {
            Reply::None { .. } => {
                "\n\n# Errors\n\nIf the mailbox is full or the actor has stopped. The error \
                 returns the message to the caller."
            }
            Reply::Returned(_) | Reply::Later(_) => {
                "\n\nThe message is sent at once. The returned future yields the answer, or the \
                 reason why there is none before the timeout."
            }
        };
        quote_spanned!(self.site=> #docs #[doc = #more])
    }

    fn signature(&self, handler: &Handler) -> TokenStream {
        let Expansion { site, msg, used, root, .. } = self;
        let name = &handler.name;
        let parameters = self.sent(handler).map(|Field { name, ty }| {
            let ty = self.block.replace_self(ty.to_token_stream());
            quote_spanned!(*site=> #name: #ty,)
        });
        let (timeout, output) = match handler.reply {
            Reply::None { .. } => {
                let error = quote_spanned!(*site=> #root::SendError<#msg #used>);
                (None, quote_spanned!(*site=> ::core::result::Result<(), #error>))
            }
            Reply::Returned(_) | Reply::Later(_) => {
                let answer = self.answer(handler);
                let timeout = quote_spanned!(*site=> timeout: ::core::time::Duration);
                (Some(timeout), quote_spanned!(*site=> #root::Ask<#answer>))
            }
        };
        quote_spanned!(*site=> fn #name(&self, #(#parameters)* #timeout) -> #output)
    }

    fn api_body(&self, handler: &Handler) -> TokenStream {
        let Expansion { site, msg, root, .. } = self;
        let variant = &handler.variant;
        let sent = self.sent(handler).map(|field| &field.name);
        let message = quote_spanned!(*site=> #msg::#variant { #(#sent,)* });
        match handler.reply {
            Reply::None { is_control } => {
                let tell = if is_control { "tell_control" } else { "tell" };
                let tell = Ident::new(tell, *site);
                quote_spanned!(*site=> #root::ActorRef::#tell(self, #message))
            }
            Reply::Returned(_) | Reply::Later(_) => {
                let sent = self.sent(handler).map(|field| &field.name);
                quote_spanned! {*site=>
                    #root::ActorRef::ask(
                        self,
                        move |answer_to| #msg::#variant { #(#sent,)* reply_to: answer_to },
                        timeout,
                    )
                }
            }
        }
    }

    /// The body of a method that would send a message with an error. It never runs.
    fn refused_body(&self, handler: &Handler) -> TokenStream {
        let site = self.site;
        let sent = self.sent(handler).map(|field| &field.name);
        let timeout = Ident::new("timeout", site);
        let timeout = (!matches!(handler.reply, Reply::None { .. })).then_some(timeout);
        quote_spanned! {site=>
            let _ = (#(#sent,)* #timeout);
            ::core::unreachable!()
        }
    }

    /// The fields that the sender fills: all except `reply_to`.
    fn sent<'h>(&self, handler: &'h Handler) -> impl Iterator<Item = &'h Field> {
        let is_later = matches!(handler.reply, Reply::Later(_));
        handler.fields.iter().filter(move |field| !is_later || field.name != "reply_to")
    }

    fn answer(&self, handler: &Handler) -> TokenStream {
        match &handler.reply {
            Reply::Returned(Some(ty)) | Reply::Later(ty) => {
                self.block.replace_self(ty.to_token_stream())
            }
            Reply::Returned(None) | Reply::None { .. } => quote_spanned!(self.site=> ()),
        }
    }
}
