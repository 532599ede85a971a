//! [`Props`]: the factory of an actor, and its settings.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{fmt, marker::PhantomData};

use clockjack_sched::DispatcherId;

use crate::{Actor, Context, EscalationSink, FnActor, IntoNext, Scope, Strategy};

/// The default capacity of a mailbox.
pub const MAILBOX_CAPACITY: usize = 1_000;

/// The settings of an actor's mailbox.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Mailbox, Overflow};
///
/// let latest = Mailbox::bounded(1).overflow(Overflow::DropOldest);
/// assert_eq!(latest.capacity(), Some(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    capacity: Option<usize>,
    overflow: Overflow,
}

/// What happens when a message arrives at a full mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The message is refused and returned to its sender.
    #[default]
    Fail,
    /// The message becomes a dead letter.
    DropNewest,
    /// The oldest message of the mailbox becomes a dead letter, and the new message takes its
    /// place.
    DropOldest,
    /// The actor is stopped, and the message is returned to its sender.
    StopActor,
}

impl Mailbox {
    /// The default: bounded to [`MAILBOX_CAPACITY`] messages, refusing further ones.
    pub const DEFAULT: Self = Self::bounded(MAILBOX_CAPACITY);

    /// A mailbox for at most `capacity` messages. A capacity of 0 counts as 1.
    #[must_use]
    pub const fn bounded(capacity: usize) -> Self {
        let capacity = if capacity == 0 { 1 } else { capacity };
        Self { capacity: Some(capacity), overflow: Overflow::Fail }
    }

    /// A mailbox without a bound of its own. [`Limits::messages_max`](crate::Limits::messages_max)
    /// of the system bounds it, 65,536 messages by default, and no limit exceeds 2²⁴ messages.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self { capacity: None, overflow: Overflow::Fail }
    }

    /// Sets what happens when a message arrives at a full mailbox.
    #[must_use]
    pub const fn overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// The capacity; `None` if only the system's limit applies.
    #[must_use]
    pub const fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    /// What happens when a message arrives at a full mailbox.
    #[must_use]
    pub const fn on_overflow(&self) -> Overflow {
        self.overflow
    }
}

/// The factory of an actor, and the settings of the actor.
///
/// A factory closure is enough to spawn an actor; `Props` are only needed to change a setting.
pub struct Props<A: Actor, F> {
    factory: F,
    settings: Option<Box<Settings<A>>>,
}

/// The settings of an actor. Props with default settings have none of these.
pub(crate) struct Settings<A: Actor> {
    pub(crate) mailbox: Mailbox,
    pub(crate) priority: Option<fn(&A::Msg) -> u8>,
    pub(crate) stash: usize,
    pub(crate) dispatcher: DispatcherId,
    pub(crate) futures_max: u16,
    pub(crate) future_buffer_bytes: usize,
    pub(crate) strategies: Vec<Strategy>,
    pub(crate) children: Option<(Scope, Strategy)>,
    pub(crate) ignores: Option<fn(&A::Msg) -> bool>,
    pub(crate) sink: Option<Box<dyn EscalationSink>>,
    /// The factory can be called only once.
    pub(crate) is_once: bool,
}

impl<A: Actor> Default for Settings<A> {
    fn default() -> Self {
        Self {
            mailbox: Mailbox::DEFAULT,
            priority: None,
            stash: 0,
            dispatcher: DispatcherId::DEFAULT,
            futures_max: FUTURES_MAX,
            future_buffer_bytes: 0,
            strategies: Vec::new(),
            children: None,
            ignores: None,
            sink: None,
            is_once: false,
        }
    }
}

/// The default limit for concurrently running futures of one actor.
pub const FUTURES_MAX: u16 = 64;

impl<A: Actor, F: FnMut() -> A> Props<A, F> {
    /// Props of an actor that `factory` makes, at the start and for each restart.
    pub fn new(factory: F) -> Self {
        Self { factory, settings: None }
    }
}

impl<A: Actor, F> Props<A, F> {
    fn set(mut self, set: impl FnOnce(&mut Settings<A>)) -> Self {
        set(self.settings.get_or_insert_default());
        self
    }

    /// Sets the mailbox.
    #[must_use]
    pub fn mailbox(self, mailbox: Mailbox) -> Self {
        self.set(|settings| settings.mailbox = mailbox)
    }

    /// Sets a priority function. Messages with a higher priority are handled first; messages with
    /// equal priority are handled in the order of their arrival. The worker that runs the actor
    /// calls the function once per message; if the function panics, the message gets the lowest
    /// priority. Cannot be combined with [`Overflow::DropOldest`].
    #[must_use]
    pub fn priority(self, priority: fn(&A::Msg) -> u8) -> Self {
        self.set(|settings| settings.priority = Some(priority))
    }

    /// Sets the capacity of the stash. The default is 0: without this setting, every `stash` is
    /// refused.
    #[must_use]
    pub fn stash(self, capacity: usize) -> Self {
        self.set(|settings| settings.stash = capacity)
    }

    /// Sets the dispatcher on which the actor runs.
    #[must_use]
    pub fn dispatcher(self, dispatcher: DispatcherId) -> Self {
        self.set(|settings| settings.dispatcher = dispatcher)
    }

    /// Sets how many futures of the actor may run concurrently; [`FUTURES_MAX`] by default.
    #[must_use]
    pub fn futures_max(self, n: u16) -> Self {
        self.set(|settings| settings.futures_max = n)
    }

    /// Reserves a buffer of this size for the futures of the actor: one that fits into the buffer
    /// needs no memory of its own. By default there is no buffer.
    #[must_use]
    pub fn future_buffer_bytes(self, bytes: usize) -> Self {
        self.set(|settings| settings.future_buffer_bytes = bytes)
    }

    /// Adds a strategy that decides about failures of the actor itself. The strategy of the first
    /// call is the innermost one: a failure that it does not match, or for which its limit is
    /// exceeded, goes to the next strategy, and finally to the parent. A strategy for the same
    /// errors as an earlier one replaces that one.
    #[must_use]
    pub fn supervise(self, strategy: Strategy) -> Self {
        self.set(|settings| {
            match settings.strategies.iter_mut().find(|earlier| strategy.replaces(earlier)) {
                Some(earlier) => *earlier = strategy,
                None => settings.strategies.push(strategy),
            }
        })
    }

    /// Sets the strategy that decides about failures of the actor's children that the children's
    /// own strategies do not handle. Without this setting, a child that fails stops.
    #[must_use]
    pub fn supervise_children(self, scope: Scope, strategy: Strategy) -> Self {
        self.set(|settings| settings.children = Some((scope, strategy)))
    }

    /// Sets a sink that receives the failures that this actor escalates, and those that its
    /// descendants without a sink of their own escalate. The sink decides nothing. A failure that
    /// the sink returns is offered to the sink again.
    #[must_use]
    pub fn escalation(self, sink: impl EscalationSink) -> Self {
        self.set(|settings| settings.sink = Some(Box::new(sink)))
    }

    /// Sets a filter for the receive time-out: a message for which the function returns true does
    /// not reset the time-out.
    #[must_use]
    pub fn receive_timeout_ignores(self, ignores: fn(&A::Msg) -> bool) -> Self {
        self.set(|settings| settings.ignores = Some(ignores))
    }

    pub(crate) fn settings(&self) -> Option<&Settings<A>> {
        self.settings.as_deref()
    }

    pub(crate) fn into_parts(self) -> (F, Option<Box<Settings<A>>>) {
        (self.factory, self.settings)
    }
}

impl<A: Actor, F: FnMut() -> A + Send + 'static> Props<A, F> {
    /// Boxes the factory, so that the props have a nameable type and can be stored in a field.
    #[must_use]
    pub fn boxed(self) -> BoxedProps<A> {
        Props { factory: Box::new(self.factory), settings: self.settings }
    }
}

/// Props with a boxed factory.
pub type BoxedProps<A> = Props<A, Box<dyn FnMut() -> A + Send>>;

impl<A: Actor> Props<A, fn() -> A> {
    /// Props of an actor value that exists already and cannot be made again, such as one that owns
    /// a socket. Combined with a strategy that restarts the actor, these props are refused by
    /// `spawn`.
    #[must_use]
    pub fn once(actor: A) -> Props<A, impl FnMut() -> A> {
        let mut actor = Some(actor);
        let factory = move || actor.take().expect("spawn refuses strategies that restart");
        Props::new(factory).set(|settings| settings.is_once = true)
    }
}

impl<M: 'static> Props<FnActor<M>, fn() -> FnActor<M>> {
    /// Props of an actor that is a closure. A restart starts with a fresh clone of the closure.
    ///
    /// The closure returns nothing, [`Next`](crate::Next), or a `Result` of either.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{Next, Props};
    ///
    /// let printer = Props::from_fn(|_cx, text: String| println!("{text}"));
    /// let parser = Props::from_fn(|_cx, text: String| {
    ///     println!("{}", text.parse::<u32>()?);
    ///     Ok(())
    /// });
    /// let once = Props::from_fn(|_cx, (): ()| Next::Stop);
    /// # let _ = (printer, parser, once);
    /// ```
    pub fn from_fn<H, R>(handler: H) -> Props<FnActor<M>, impl FnMut() -> FnActor<M>>
    where
        H: FnMut(&mut Context<'_, FnActor<M>>, M) -> R + Clone + Send + 'static,
        R: IntoNext + 'static,
    {
        Props::new(move || FnActor::new(handler.clone()))
    }
}

impl<A: Actor, F> fmt::Debug for Props<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Props").field("actor", &PhantomData::<A>).finish_non_exhaustive()
    }
}

/// A type from which an actor can be spawned: a factory closure, or [`Props`].
#[diagnostic::on_unimplemented(
    message = "an actor cannot be spawned from `{Self}`",
    label = "expected a factory, such as `|| Counter::default()`, or `Props`",
    note = "the factory runs again for each restart, so it must not move captured values out: \
            `move || Counter {{ name: name.clone() }}`",
    note = "for an actor that is created once and never restarted, use `Props::once`"
)]
pub trait IntoProps {
    /// The type of the actor.
    type Actor: Actor;
    /// The type of the factory.
    type Factory: FnMut() -> Self::Actor + 'static;

    /// Converts `self` into props.
    fn into_props(self) -> Props<Self::Actor, Self::Factory>;

    #[doc(hidden)]
    fn peek_settings(&self) -> Option<SettingsRef> {
        None
    }
}

/// The settings that `spawn` needs before it takes the props apart.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SettingsRef {
    pub(crate) dispatcher: DispatcherId,
    pub(crate) invalid: Option<String>,
}

impl<A: Actor, F: FnMut() -> A + 'static> IntoProps for F {
    type Actor = A;
    type Factory = F;

    fn into_props(self) -> Props<A, F> {
        Props::new(self)
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> IntoProps for Props<A, F> {
    type Actor = A;
    type Factory = F;

    fn into_props(self) -> Self {
        self
    }

    fn peek_settings(&self) -> Option<SettingsRef> {
        let settings = self.settings()?;
        let restarts = settings.strategies.iter().any(Strategy::may_restart);
        let invalid = if settings.is_once && restarts {
            Some("`Props::once` cannot be combined with a restarting strategy".to_string())
        } else if settings.priority.is_some()
            && settings.mailbox.on_overflow() == Overflow::DropOldest
        {
            Some("`Overflow::DropOldest` cannot be combined with priorities".to_string())
        } else {
            settings
                .strategies
                .iter()
                .chain(settings.children.iter().map(|(_, strategy)| strategy))
                .find_map(|strategy| strategy.check().err())
                .map(str::to_string)
        };
        Some(SettingsRef { dispatcher: settings.dispatcher, invalid })
    }
}

/// The message type of the actor that props make.
pub type MsgOf<P> = <<P as IntoProps>::Actor as Actor>::Msg;
