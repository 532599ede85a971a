//! Parses and checks the signature of one marked method.

use proc_macro2::{Ident, Span};
use quote::{ToTokens as _, format_ident};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, ImplItemFn, Pat, PatType, PathArguments,
    Receiver, ReceiverKind, ReturnType, Safety, Signature, Type, ext::IdentExt as _,
    spanned::Spanned as _,
};

use crate::{
    actor::{
        block::mentions,
        markers::Role,
        names,
        owned::{self, TypeUse},
    },
    errors::Errors,
};

/// Types that are certainly an answer, so that `#[msg]` was written by mistake for `#[ask]`.
const ANSWERS: [&str; 19] = [
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "u128", "u16", "u32",
    "u64", "u8", "usize", "Option", "String", "Vec",
];

/// A method that becomes a message.
pub(crate) struct Handler {
    /// The name of the method.
    pub(crate) name: Ident,
    /// Its variant.
    pub(crate) variant: Ident,
    /// Its documentation.
    pub(crate) docs: Vec<Attribute>,
    /// Its `#[cfg]` attributes.
    pub(crate) cfgs: Vec<Attribute>,
    /// Its `#[deprecated]` attribute, if any.
    pub(crate) deprecated: Vec<Attribute>,
    /// Whether the context follows `self`.
    pub(crate) takes_context: bool,
    /// Whether it is an `async fn`.
    pub(crate) is_async: bool,
    /// Its parameters after `self` and the context.
    pub(crate) fields: Vec<Field>,
    /// How it answers.
    pub(crate) reply: Reply,
    /// The span of its return type, for compiler errors about it.
    pub(crate) output_at: Span,
    /// Whether nothing was wrong with it.
    pub(crate) is_valid: bool,
    /// Whether the method that sends it can be declared even if something is wrong with it.
    pub(crate) is_declarable: bool,
}

/// A parameter of a method, a field of its variant.
pub(crate) struct Field {
    /// The name of the parameter.
    pub(crate) name: Ident,
    /// The type of the parameter.
    pub(crate) ty: Type,
}

/// How a method answers.
pub(crate) enum Reply {
    /// No answer: `#[msg]`.
    None {
        /// Whether it is a control message.
        is_control: bool,
    },
    /// By its return value.
    Returned(Option<Type>),
    /// Later, through its parameter `reply_to`.
    Later(Type),
}

/// A method that is called for `started` or `signal`.
pub(crate) struct Hook {
    /// The name of the method.
    pub(crate) name: Ident,
    /// Its `#[cfg]` attributes.
    pub(crate) cfgs: Vec<Attribute>,
    /// Whether the context follows `self`.
    pub(crate) takes_context: bool,
    /// The span of the type of its parameter, if it has one.
    pub(crate) signal_at: Option<Span>,
    /// The span of its return type.
    pub(crate) output_at: Span,
}

impl Handler {
    /// Parses an `#[msg]` or `#[ask]`.
    pub(crate) fn parse(
        method: &ImplItemFn,
        role: Role,
        is_control: bool,
        errors: &mut Errors,
    ) -> Option<Handler> {
        let sig = &method.sig;
        check_kind(sig, role, errors);
        let (takes_context, rest) = parameters(sig, errors);
        if takes_context && let Some(token) = sig.asyncness {
            let advice = match role {
                Role::Ask => {
                    "use `cx.wait` without `async` and answer through `reply_to: ReplyTo<_>`"
                }
                _ => "use `cx.wait` in a method without `async`",
            };
            let what = format!(
                "an `async` method borrows the actor while it waits, so it cannot take the \
                 context: remove `cx`, or {advice}"
            );
            errors.add(token, what);
        }
        let fields: Vec<Field> =
            rest.iter().enumerate().map(|(index, rest)| field(rest, index, errors)).collect();
        let reply = match role {
            Role::Ask => reply(sig, &fields, errors),
            _ => Reply::None { is_control },
        };
        if !matches!(reply, Reply::Returned(_)) {
            check_outcome(sig, role, errors);
        }
        let is_hidden = names::is_actor_ref_method(&sig.ident);
        if is_hidden {
            let what = format!(
                "`ActorRef` already has a method `{}`, which would hide this one: rename this \
                 method",
                sig.ident.unraw()
            );
            errors.add(&sig.ident, what);
        }
        let Some(variant) = names::variant(&sig.ident) else {
            let what = format!(
                "`{}` cannot be converted into the name of a variant: rename this method",
                sig.ident
            );
            errors.add(&sig.ident, what);
            return None;
        };
        let named =
            |word: &str| method.attrs.iter().filter(|a| a.path().is_ident(word)).cloned().collect();
        let is_open =
            mentions(sig.output.to_token_stream(), &Ident::new("impl", Span::call_site()));
        Some(Handler {
            name: sig.ident.clone(),
            variant,
            docs: named("doc"),
            cfgs: named("cfg"),
            deprecated: named("deprecated"),
            takes_context,
            is_async: sig.asyncness.is_some(),
            fields,
            reply,
            output_at: output_at(sig),
            is_valid: true,
            is_declarable: sig.generics.params.is_empty() && !is_hidden && !is_open,
        })
    }
}

impl Hook {
    /// Parses a `#[started]` or `#[signal]`.
    pub(crate) fn parse(method: &ImplItemFn, role: Role, errors: &mut Errors) -> Hook {
        let sig = &method.sig;
        check_kind(sig, role, errors);
        if let Some(token) = sig.asyncness {
            let what = "a hook cannot be `async`: call `cx.wait` or `cx.spawn_future` in its body";
            errors.add(token, what);
        }
        let (takes_context, rest) = parameters(sig, errors);
        let signal_at = rest.first().map(|parameter| parameter.ty.span());
        match role {
            Role::Signal if rest.len() != 1 => {
                let what = "a `#[signal]` method takes the signal after `self` and `cx`: `fn \
                            on_signal(&mut self, signal: Signal)`";
                errors.add(&sig.ident, what);
            }
            Role::Signal => (),
            _ => {
                for parameter in rest {
                    errors.add(parameter, "a `#[started]` method takes only `self` and `cx`");
                }
            }
        }
        check_outcome(sig, role, errors);
        let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
        Hook {
            name: sig.ident.clone(),
            cfgs: method.attrs.iter().filter(is_cfg).cloned().collect(),
            takes_context,
            signal_at,
            output_at: output_at(sig),
        }
    }
}

/// Reports qualifiers and generics that a marked method cannot have.
fn check_kind(sig: &Signature, role: Role, errors: &mut Errors) {
    let mark = role.attribute();
    if let Some(token) = &sig.constness {
        errors.add(token, format!("a `const fn` cannot be `{mark}`: remove `const`"));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        let what = format!(
            "an `unsafe fn` cannot be `{mark}`: messages are sent from safe code, which cannot \
             uphold its safety contract"
        );
        errors.add(token, what);
    }
    if let Some(abi) = &sig.abi {
        errors.add(abi, format!("an `extern fn` cannot be `{mark}`: remove `extern`"));
    }
    for param in &sig.generics.params {
        let what = match param {
            GenericParam::Lifetime(_) => format!(
                "`{mark}` cannot have lifetime parameters: a message owns its data, and its \
                 method borrows the actor only while it runs"
            ),
            GenericParam::Type(_) | GenericParam::Const(_) => format!(
                "a generic method cannot be `{mark}`: a message has a concrete type; move the \
                 parameters to the `impl` block"
            ),
        };
        errors.add(param, what);
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.add(clause, "move these bounds to the `impl` block: every message needs them");
    }
}

/// Checks `self` and separates the context from the other parameters.
fn parameters<'a>(sig: &'a Signature, errors: &mut Errors) -> (bool, Vec<&'a PatType>) {
    let mut inputs = sig.inputs.iter().peekable();
    match inputs.peek() {
        Some(FnArg::Receiver(receiver)) => {
            check_receiver(receiver, errors);
            inputs.next();
        }
        _ => {
            let what = "a message is handled by a method: take `&mut self` or `&self` as the \
                        first parameter";
            errors.add(&sig.ident, what);
        }
    }
    let mut typed = inputs.filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    let mut takes_context = false;
    let mut rest = Vec::new();
    if let Some(first) = typed.next() {
        takes_context = is_context(first);
        if !takes_context {
            rest.push(first);
        }
    }
    rest.extend(typed);
    rest.retain(|parameter| {
        let is_misplaced = is_lent_context(&parameter.ty);
        if is_misplaced {
            errors.add(parameter, "the context must come right after `self`, and only once");
        }
        let is_by_value = is_called_cx(&parameter.pat) && owned::ends_in(&parameter.ty, "Context");
        if is_by_value {
            errors.add(parameter, "take the context by reference: `cx: &mut Context<'_, Self>`");
        }
        !is_misplaced && !is_by_value
    });
    (takes_context, rest)
}

fn check_receiver(receiver: &Receiver, errors: &mut Errors) {
    let is_lent = match &receiver.kind {
        ReceiverKind::Reference(..) => true,
        ReceiverKind::Typed(_, ty) => match &**ty {
            Type::Reference(reference) => owned::ends_in(&reference.elem, "Self"),
            _ => false,
        },
        _ => false,
    };
    if !is_lent {
        let what = "a message cannot move the actor: take `&mut self` or `&self`";
        errors.add(receiver, what);
    }
}

/// Whether the first parameter is the context: by its type, or by its name if it is a reference (a
/// type alias may hide the word).
fn is_context(parameter: &PatType) -> bool {
    let is_reference = matches!(&*parameter.ty, Type::Reference(_));
    is_lent_context(&parameter.ty) || is_reference && is_called_cx(&parameter.pat)
}

fn is_lent_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => owned::ends_in(&reference.elem, "Context"),
        Type::Group(group) => is_lent_context(&group.elem),
        _ => false,
    }
}

fn is_called_cx(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Ident(name) if name.ident == "cx" || name.ident == "_cx")
}

/// The field of the parameter with this index. Returns a placeholder after an error in its name.
fn field(parameter: &PatType, index: usize, errors: &mut Errors) -> Field {
    owned::check(&parameter.ty, TypeUse::Message, errors);
    for attribute in &parameter.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            let what = "a parameter with a condition cannot become a field: put the condition on \
                        the method";
            errors.add(attribute, what);
        }
    }
    let name = match &*parameter.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
        pattern => {
            let what = "a parameter becomes a field of the message, so it needs a plain name: \
                        destructure it in the body";
            errors.add(pattern, what);
            format_ident!("unnamed_{index}")
        }
    };
    Field { name, ty: (*parameter.ty).clone() }
}

/// How an `#[ask]` answers.
fn reply(sig: &Signature, fields: &[Field], errors: &mut Errors) -> Reply {
    let is_reply = |field: &&Field| owned::ends_in(&field.ty, "ReplyTo");
    if let Some(field) = fields.iter().find(|field| field.name == "reply_to") {
        if let Some(answer) = later_answer(&field.ty) {
            return Reply::Later(answer);
        }
        // A reference was already reported.
        if !matches!(field.ty, Type::Reference(_)) {
            let what = "the answer is sent through `reply_to`: write `reply_to: ReplyTo<Answer>`, \
                        or rename this parameter";
            errors.add(&field.name, what);
        }
    } else if let Some(field) = fields.iter().find(is_reply) {
        let what = "name this parameter `reply_to` to send the answer through it later; to \
                    forward the `ReplyTo` of another request, use `#[msg]`";
        errors.add(&field.name, what);
    }
    let answer = owned::returned(&sig.output);
    if let Some(answer) = answer {
        owned::check(answer, TypeUse::Answer, errors);
    }
    Reply::Returned(answer.cloned())
}

/// The `R` of `ReplyTo<R>`.
fn later_answer(ty: &Type) -> Option<Type> {
    let last = owned::as_path(ty)?.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (last.ident == "ReplyTo", arguments.args.first()?) {
        (true, GenericArgument::Type(answer)) => Some(answer.clone()),
        _ => None,
    }
}

/// Checks the return type of a method without an answer; `IntoNext` rejects the remaining cases.
fn check_outcome(sig: &Signature, role: Role, errors: &mut Errors) {
    let Some(ty) = owned::returned(&sig.output) else { return };
    if ANSWERS.iter().any(|answer| owned::ends_in(ty, answer)) {
        let advice = match role {
            Role::Msg => "for an answer, use `#[ask]`",
            Role::Ask => "the answer is sent through `reply_to`",
            Role::Started | Role::Signal => "a hook has no answer",
        };
        let what = format!(
            "a `{}` method returns what the actor does next: nothing, `Next`, `Result<(), \
             Failure>` or `Result<Next, Failure>`; {advice}",
            role.attribute()
        );
        errors.add(ty, what);
    }
}

fn output_at(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Default => sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}
