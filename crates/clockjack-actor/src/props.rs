//! How an actor is made: its factory, and what is set for it.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{fmt, marker::PhantomData};

use clockjack_exec::Failure;
use clockjack_sched::DispatcherId;

use crate::{Actor, Context, EscalationSink, FnActor, Next, Scope, Strategy};

/// How many messages wait at most, if nothing else is set.
pub const MAILBOX_CAPACITY: usize = 1_000;

/// The mailbox of an actor.
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

/// What happens to a message that a full mailbox has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// It goes back to its sender.
    #[default]
    Fail,
    /// It becomes a dead letter.
    DropNewest,
    /// The one that waits longest becomes a dead letter, and this one has its room.
    DropOldest,
    /// The actor is stopped, and the message goes back.
    StopActor,
}

impl Mailbox {
    /// What is used if nothing else is set.
    pub const DEFAULT: Self = Self::bounded(MAILBOX_CAPACITY);

    /// At most so many messages wait; at least one.
    #[must_use]
    pub const fn bounded(capacity: usize) -> Self {
        let capacity = if capacity == 0 { 1 } else { capacity };
        Self { capacity: Some(capacity), overflow: Overflow::Fail }
    }

    /// As many wait as the limits of the system allow one actor; at least one.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self { capacity: None, overflow: Overflow::Fail }
    }

    /// With another answer to a message for which there is no room.
    #[must_use]
    pub const fn overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// How many may wait; none if only the system's limit counts.
    #[must_use]
    pub const fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    /// What happens at the bound.
    #[must_use]
    pub const fn on_overflow(&self) -> Overflow {
        self.overflow
    }
}

/// The two functions by which messages of a type become bytes and come back.
///
/// Unused without remoting or recordings; without one, only the order of messages can be recorded.
pub struct MessageCodec<M> {
    /// Appends a message as bytes.
    pub encode: fn(&M, &mut Vec<u8>),
    /// Makes a message from bytes.
    pub decode: fn(&[u8]) -> Result<M, Failure>,
}

impl<M> Clone for MessageCodec<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for MessageCodec<M> {}

impl<M> fmt::Debug for MessageCodec<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageCodec").finish_non_exhaustive()
    }
}

/// How an actor is made, and what is set for it.
///
/// A factory closure is enough to spawn an actor; `Props` come in with the first setting.
pub struct Props<A: Actor, F> {
    factory: F,
    settings: Option<Box<Settings<A>>>,
}

/// What is set for an actor, if anything is.
pub(crate) struct Settings<A: Actor> {
    pub(crate) mailbox: Mailbox,
    pub(crate) priority: Option<fn(&A::Msg) -> u8>,
    pub(crate) stash: usize,
    pub(crate) dispatcher: DispatcherId,
    pub(crate) futures: (u16, usize),
    pub(crate) layers: Vec<Strategy>,
    pub(crate) children: Option<(Scope, Strategy)>,
    pub(crate) ignores: Option<fn(&A::Msg) -> bool>,
    pub(crate) codec: Option<MessageCodec<A::Msg>>,
    pub(crate) sink: Option<Box<dyn EscalationSink>>,
    /// It cannot be made a second time.
    pub(crate) is_once: bool,
}

impl<A: Actor> Default for Settings<A> {
    fn default() -> Self {
        Self {
            mailbox: Mailbox::DEFAULT,
            priority: None,
            stash: 0,
            dispatcher: DispatcherId::DEFAULT,
            futures: (FUTURES_MAX, 0),
            layers: Vec::new(),
            children: None,
            ignores: None,
            codec: None,
            sink: None,
            is_once: false,
        }
    }
}

/// How many futures of an actor may be under way, if nothing else is set.
pub const FUTURES_MAX: u16 = 64;

impl<A: Actor, F: FnMut() -> A> Props<A, F> {
    /// An actor that is made by `factory`, again for each restart.
    pub fn new(factory: F) -> Self {
        Self { factory, settings: None }
    }
}

impl<A: Actor, F> Props<A, F> {
    fn set(mut self, set: impl FnOnce(&mut Settings<A>)) -> Self {
        set(self.settings.get_or_insert_default());
        self
    }

    /// With this mailbox.
    #[must_use]
    pub fn mailbox(self, mailbox: Mailbox) -> Self {
        self.set(|settings| settings.mailbox = mailbox)
    }

    /// Messages of a higher priority are handled first, equal ones in the order in which they came.
    /// It is called by the actor's runner, once for each message; one that panics ranks it lowest.
    /// Refused with [`Overflow::DropOldest`].
    #[must_use]
    pub fn priority(self, priority: fn(&A::Msg) -> u8) -> Self {
        self.set(|settings| settings.priority = Some(priority))
    }

    /// With room for so many stashed messages; without it there is none.
    #[must_use]
    pub fn stash(self, capacity: usize) -> Self {
        self.set(|settings| settings.stash = capacity)
    }

    /// On this dispatcher.
    #[must_use]
    pub fn dispatcher(self, dispatcher: DispatcherId) -> Self {
        self.set(|settings| settings.dispatcher = dispatcher)
    }

    /// With at most so many futures under way, and so many bytes kept for the next one.
    #[must_use]
    pub fn futures(self, max: u16, room_bytes: usize) -> Self {
        self.set(|settings| settings.futures = (max, room_bytes))
    }

    /// Lets `strategy` decide about failures of the actor itself. The first call is the innermost:
    /// what it does not decide, or gives up on, goes on to the next, and then to the parent. A
    /// strategy for the same errors as an earlier one takes its place.
    #[must_use]
    pub fn supervise(self, strategy: Strategy) -> Self {
        self.set(|settings| {
            match settings.layers.iter_mut().find(|layer| strategy.replaces(layer)) {
                Some(layer) => *layer = strategy,
                None => settings.layers.push(strategy),
            }
        })
    }

    /// Lets `strategy` decide about failures of the actor's children that they did not settle
    /// themselves. Without it they stop.
    #[must_use]
    pub fn supervise_children(self, scope: Scope, strategy: Strategy) -> Self {
        self.set(|settings| settings.children = Some((scope, strategy)))
    }

    /// Is told of failures that this actor, or one below it without a sink of its own, leaves to
    /// who is above. It decides nothing. What it gives back is offered again.
    #[must_use]
    pub fn escalation(self, sink: impl EscalationSink) -> Self {
        self.set(|settings| settings.sink = Some(Box::new(sink)))
    }

    /// Messages for which this is true neither end nor begin the wait of a receive time-out.
    #[must_use]
    pub fn receive_timeout_ignores(self, ignores: fn(&A::Msg) -> bool) -> Self {
        self.set(|settings| settings.ignores = Some(ignores))
    }

    /// Messages can be turned into bytes.
    #[must_use]
    pub fn codec(self, codec: MessageCodec<A::Msg>) -> Self {
        self.set(|settings| settings.codec = Some(codec))
    }

    pub(crate) fn settings(&self) -> Option<&Settings<A>> {
        self.settings.as_deref()
    }

    pub(crate) fn into_parts(self) -> (F, Option<Box<Settings<A>>>) {
        (self.factory, self.settings)
    }
}

impl<A: Actor, F: FnMut() -> A + Send + 'static> Props<A, F> {
    /// The same with a factory whose type is not to be seen, to be kept in a field.
    #[must_use]
    pub fn boxed(self) -> BoxedProps<A> {
        Props { factory: Box::new(self.factory), settings: self.settings }
    }
}

/// Props to be kept: the factory is behind a pointer.
pub type BoxedProps<A> = Props<A, Box<dyn FnMut() -> A + Send>>;

impl<A: Actor> Props<A, fn() -> A> {
    /// An actor that is there already, and cannot be made again: one that owns a socket. With a
    /// strategy that restarts it is refused where it is spawned.
    #[must_use]
    pub fn once(actor: A) -> Props<A, impl FnMut() -> A> {
        let mut actor = Some(actor);
        let factory = move || actor.take().expect("restarts of it are refused");
        Props::new(factory).set(|settings| settings.is_once = true)
    }
}

impl<M: 'static> Props<FnActor<M>, fn() -> FnActor<M>> {
    /// A closure as an actor. A restart takes a fresh clone of it.
    pub fn from_fn<H>(handler: H) -> Props<FnActor<M>, impl FnMut() -> FnActor<M>>
    where
        H: FnMut(&mut Context<'_, FnActor<M>>, M) -> Result<Next, Failure> + Clone + Send + 'static,
    {
        Props::new(move || FnActor::new(handler.clone()))
    }
}

impl<A: Actor, F> fmt::Debug for Props<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Props").field("actor", &PhantomData::<A>).finish_non_exhaustive()
    }
}

/// What an actor can be spawned from: a factory closure, or [`Props`].
pub trait IntoProps {
    /// The actor.
    type Actor: Actor;
    /// What makes it.
    type Factory: FnMut() -> Self::Actor + 'static;

    /// The props.
    fn into_props(self) -> Props<Self::Actor, Self::Factory>;

    #[doc(hidden)]
    fn peek_settings(&self) -> Option<SettingsRef> {
        None
    }
}

/// What has to be known before props are taken apart.
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
        let restarts = settings.layers.iter().any(Strategy::may_restart);
        let invalid = if settings.is_once && restarts {
            Some("an actor that cannot be made again has a strategy that restarts it".to_string())
        } else if settings.priority.is_some()
            && settings.mailbox.on_overflow() == Overflow::DropOldest
        {
            Some("a mailbox that drops its oldest message has no priorities".to_string())
        } else {
            settings
                .layers
                .iter()
                .chain(settings.children.iter().map(|(_, strategy)| strategy))
                .find_map(|strategy| strategy.check().err())
                .map(|invalid| invalid.to_string())
        };
        Some(SettingsRef { dispatcher: settings.dispatcher, invalid })
    }
}

/// The messages of what props make.
pub type MsgOf<P> = <<P as IntoProps>::Actor as Actor>::Msg;
