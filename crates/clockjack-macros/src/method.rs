//! One marked method: what its signature says, or what is wrong with it.

use proc_macro2::{Ident, Span};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, ImplItemFn, Pat, PatType, PathArguments,
    Receiver, ReceiverKind, ReturnType, Safety, Signature, Type, ext::IdentExt as _,
    spanned::Spanned as _,
};

use crate::{
    faults::Faults,
    marks::Role,
    names,
    owned::{self, Cargo},
};

/// Types that are surely an answer, so that `#[msg]` in front of them is a slip for `#[ask]`.
const ANSWERS: [&str; 19] = [
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "u128", "u16", "u32",
    "u64", "u8", "usize", "Option", "String", "Vec",
];

/// A method that becomes a message.
pub(crate) struct Handler {
    /// The method.
    pub(crate) name: Ident,
    /// Its variant.
    pub(crate) variant: Ident,
    /// Its documentation.
    pub(crate) docs: Vec<Attribute>,
    /// The conditions under which it exists.
    pub(crate) cfgs: Vec<Attribute>,
    /// `#[deprecated]`, if it is.
    pub(crate) deprecated: Vec<Attribute>,
    /// Whether the context follows `self`.
    pub(crate) takes_context: bool,
    /// Whether it is an `async fn`.
    pub(crate) is_async: bool,
    /// Its parameters behind `self` and the context.
    pub(crate) fields: Vec<Field>,
    /// How it answers.
    pub(crate) reply: Reply,
    /// Where its return type stands, for what the compiler has to say about that.
    pub(crate) output_at: Span,
}

/// A parameter of a method, a field of its variant.
pub(crate) struct Field {
    /// As the method names it.
    pub(crate) name: Ident,
    /// As the method writes it.
    pub(crate) ty: Type,
}

/// How a method answers.
pub(crate) enum Reply {
    /// Not at all: `#[msg]`.
    None {
        /// Whether the message takes the control lane.
        is_control: bool,
    },
    /// By what it returns.
    Returned(Option<Type>),
    /// Later, through its parameter `reply_to`.
    Later(Type),
}

/// A method that is called for `started` or `signal`.
pub(crate) struct Hook {
    /// The method.
    pub(crate) name: Ident,
    /// The conditions under which it exists.
    pub(crate) cfgs: Vec<Attribute>,
    /// Whether the context follows `self`.
    pub(crate) takes_context: bool,
    /// Where the type of its parameter stands, if it has one.
    pub(crate) signal_at: Option<Span>,
    /// Where its return type stands.
    pub(crate) output_at: Span,
}

impl Handler {
    /// Reads an `#[msg]` or `#[ask]`.
    pub(crate) fn parse(
        method: &ImplItemFn,
        role: Role,
        is_control: bool,
        faults: &mut Faults,
    ) -> Option<Handler> {
        let sig = &method.sig;
        check_kind(sig, role, faults);
        let (takes_context, rest) = parameters(sig, faults);
        if takes_context && let Some(token) = sig.asyncness {
            let advice = match role {
                Role::Ask => {
                    "use `cx.wait` without `async` and answer through `reply_to: ReplyTo<_>`"
                }
                _ => "use `cx.wait` in a method without `async`",
            };
            let what = format!(
                "an `async` method borrows the actor while it waits, so it gets no context: leave \
                 `cx` out, or {advice}"
            );
            faults.add(token, what);
        }
        let fields: Vec<Field> = rest.iter().filter_map(|rest| field(rest, faults)).collect();
        let reply = match role {
            Role::Ask => reply(sig, &fields, faults),
            _ => Reply::None { is_control },
        };
        if !matches!(reply, Reply::Returned(_)) {
            check_outcome(sig, role, faults);
        }
        if names::is_taken(&sig.ident) {
            let what = format!(
                "`ActorRef` has a method `{}` of its own, which would hide this one: rename it",
                sig.ident.unraw()
            );
            faults.add(&sig.ident, what);
        }
        let Some(variant) = names::variant(&sig.ident) else {
            let what = format!("`{}` gives no name for a variant: rename it", sig.ident);
            faults.add(&sig.ident, what);
            return None;
        };
        let named =
            |word: &str| method.attrs.iter().filter(|a| a.path().is_ident(word)).cloned().collect();
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
        })
    }
}

impl Hook {
    /// Reads a `#[started]` or `#[signal]`.
    pub(crate) fn parse(method: &ImplItemFn, role: Role, faults: &mut Faults) -> Hook {
        let sig = &method.sig;
        check_kind(sig, role, faults);
        if let Some(token) = sig.asyncness {
            let what = "a hook cannot be `async`: call `cx.wait` or `cx.spawn` in it";
            faults.add(token, what);
        }
        let (takes_context, rest) = parameters(sig, faults);
        let signal_at = rest.first().map(|parameter| parameter.ty.span());
        match role {
            Role::Signal if rest.len() != 1 => {
                let what = "`#[signal]` takes the signal, after `self` and `cx`: \
                            `fn on_signal(&mut self, signal: Signal)`";
                faults.add(&sig.ident, what);
            }
            Role::Signal => (),
            _ => {
                for parameter in rest {
                    faults.add(parameter, "`#[started]` takes nothing but `self` and `cx`");
                }
            }
        }
        check_outcome(sig, role, faults);
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

/// What no marked method can be.
fn check_kind(sig: &Signature, role: Role, faults: &mut Faults) {
    let mark = role.mark();
    if let Some(token) = &sig.constness {
        faults.add(token, format!("a `const fn` cannot be `{mark}`: remove `const`"));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        let what = format!(
            "an `unsafe fn` cannot be `{mark}`: messages come from safe code, and nobody could \
             keep its promise"
        );
        faults.add(token, what);
    }
    if let Some(abi) = &sig.abi {
        faults.add(abi, format!("an `extern fn` cannot be `{mark}`: remove `extern`"));
    }
    for param in &sig.generics.params {
        let what = match param {
            GenericParam::Lifetime(_) => format!(
                "`{mark}` needs no lifetime parameters: a message owns what it carries, and what \
                 it calls borrows the actor only while it runs"
            ),
            GenericParam::Type(_) | GenericParam::Const(_) => format!(
                "a method with generics cannot be `{mark}`: a message has one type; move them to \
                 the `impl` block"
            ),
        };
        faults.add(param, what);
    }
    if let Some(clause) = &sig.generics.where_clause {
        faults.add(clause, "move these bounds to the `impl` block: every message needs them");
    }
}

/// Checks `self` and splits off the context.
fn parameters<'a>(sig: &'a Signature, faults: &mut Faults) -> (bool, Vec<&'a PatType>) {
    let mut inputs = sig.inputs.iter().peekable();
    match inputs.peek() {
        Some(FnArg::Receiver(receiver)) => {
            check_receiver(receiver, faults);
            inputs.next();
        }
        _ => {
            let what = "what handles a message is a method: take `&mut self` or `&self` first";
            faults.add(&sig.ident, what);
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
            faults.add(parameter, "the context comes right after `self`, and once");
        }
        let is_by_value = is_called_cx(&parameter.pat) && owned::ends_in(&parameter.ty, "Context");
        if is_by_value {
            faults.add(parameter, "the context is lent: `cx: &mut Context<'_, Self>`");
        }
        !is_misplaced && !is_by_value
    });
    (takes_context, rest)
}

fn check_receiver(receiver: &Receiver, faults: &mut Faults) {
    let is_lent = match &receiver.kind {
        ReceiverKind::Reference(..) => true,
        ReceiverKind::Typed(_, ty) => match &**ty {
            Type::Reference(reference) => owned::ends_in(&reference.elem, "Self"),
            _ => false,
        },
        _ => false,
    };
    if !is_lent {
        let what = "a message finds the actor where it lives and cannot take it away: take `&mut \
                    self` or `&self`";
        faults.add(receiver, what);
    }
}

/// Whether a parameter in the context's place is the context: by its type, or by its name if it is
/// a reference (a type alias may hide the word).
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

/// The field of a parameter.
fn field(parameter: &PatType, faults: &mut Faults) -> Option<Field> {
    owned::check(&parameter.ty, Cargo::Message, faults);
    for attribute in &parameter.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            let what = "a parameter that may be missing cannot be a field: put the condition on \
                        the method";
            faults.add(attribute, what);
        }
    }
    match &*parameter.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some(Field { name: name.ident.clone(), ty: (*parameter.ty).clone() })
        }
        pattern => {
            let what = "a parameter becomes a field of the message, so it needs a plain name: take \
                        it apart in the body";
            faults.add(pattern, what);
            None
        }
    }
}

/// How an `#[ask]` answers.
fn reply(sig: &Signature, fields: &[Field], faults: &mut Faults) -> Reply {
    let is_reply = |field: &&Field| owned::ends_in(&field.ty, "ReplyTo");
    if let Some(field) = fields.iter().find(|field| field.name == "reply_to") {
        if let Some(answer) = later_answer(&field.ty) {
            return Reply::Later(answer);
        }
        // That it is lent has been said already.
        if !matches!(field.ty, Type::Reference(_)) {
            let what = "`reply_to` is where the answer goes: write `reply_to: ReplyTo<Answer>`, or \
                        give this parameter another name";
            faults.add(&field.name, what);
        }
    } else if let Some(field) = fields.iter().find(is_reply) {
        let what = "call it `reply_to` to answer through it later; for somebody else's `ReplyTo` \
                    use `#[msg]`";
        faults.add(&field.name, what);
    }
    let answer = owned::returned(&sig.output);
    if let Some(answer) = answer {
        owned::check(answer, Cargo::Answer, faults);
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

/// What a method without an answer may return; the rest is for `IntoNext` to refuse.
fn check_outcome(sig: &Signature, role: Role, faults: &mut Faults) {
    let Some(ty) = owned::returned(&sig.output) else { return };
    if ANSWERS.iter().any(|answer| owned::ends_in(ty, answer)) {
        let advice = match role {
            Role::Msg => "for an answer write `#[ask]`",
            Role::Ask => "the answer goes to `reply_to`",
            Role::Started | Role::Signal => "nobody waits for a hook's answer",
        };
        let what = format!(
            "what `{}` returns is what the actor does next: nothing, `Next`, `Result<(), Failure>` \
             or `Result<Next, Failure>`; {advice}",
            role.mark()
        );
        faults.add(ty, what);
    }
}

fn output_at(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Default => sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}
