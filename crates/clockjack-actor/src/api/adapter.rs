//! Message adapters: closures with state that convert messages of other types into an actor's
//! messages.
//!
//! [`ActorRef::map`] is enough where a plain function can do the conversion. An adapter may keep
//! state, and runs at the receiver: between two messages, on the actor's own thread.
//!
//! A message to an adapter is transported as [`Foreign`], which is converted to a message of the
//! actor's own type. So it takes its place in the mailbox like every other message, with the same
//! bound, overflow policy and order, and a refused one is returned to its sender unchanged. The
//! actor passes it to [`Context::adapt`]. A mailbox that could hold either a message or a foreign
//! value would not need this step, but every message of every actor would need an additional check.
//!
//! * There is one adapter per type: the last one that was registered counts, also for addresses
//!   that were given away before.
//! * Adapters belong to the incarnation of the actor, as futures do: a restart removes them. A
//!   message to an adapter that does not exist is published as unhandled.
//! * A panic in an adapter causes [`Signal::AdapterFailed`]. If that signal is left
//!   [unhandled](crate::Next::Unhandled), the actor fails with it.

use alloc::{boxed::Box, vec::Vec};
use core::{
    any::{Any, TypeId, type_name},
    fmt,
};

use crate::{
    Actor, ActorRef, Context, Signal, SystemEvent, Unhandled,
    cell::{PENDING, PendingSignal},
    failure_info::Panicked,
};

/// A value of another type on its way to the adapter that converts it.
pub struct Foreign {
    value: Box<dyn Any + Send>,
    name: &'static str,
}

impl Foreign {
    fn new<N: Send + 'static>(value: N) -> Self {
        Self { value: Box::new(value), name: type_name::<N>() }
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.name
    }

    /// The value, if it is of this type.
    ///
    /// # Errors
    ///
    /// Returns it unchanged if it is of another type.
    pub fn downcast<N: 'static>(self) -> Result<N, Self> {
        let name = self.name;
        self.value.downcast().map(|value| *value).map_err(|value| Self { value, name })
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Foreign").field(&self.name).finish()
    }
}

/// The adapters of an actor.
pub(crate) type Adapters<M> = Vec<Adapter<M>>;

/// Converts values of one foreign type.
pub(crate) struct Adapter<M> {
    from: TypeId,
    adapt: Box<dyn FnMut(Foreign) -> Option<M>>,
}

impl<A: Actor> Context<'_, A> {
    /// An address for messages of another type. `f` converts each of them into a message of the
    /// actor, by way of [`adapt`](Self::adapt). Replaces an earlier adapter for the same type.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{Actor, ActorRef, Context, Failure, Foreign, Next};
    ///
    /// enum Msg {
    ///     Line { number: u64, text: String },
    ///     Foreign(Foreign),
    /// }
    ///
    /// impl From<Foreign> for Msg {
    ///     fn from(foreign: Foreign) -> Self {
    ///         Msg::Foreign(foreign)
    ///     }
    /// }
    ///
    /// struct Reader {
    ///     lines: Option<ActorRef<String>>,
    /// }
    ///
    /// impl Actor for Reader {
    ///     type Msg = Msg;
    ///
    ///     fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
    ///         let mut number = 0;
    ///         self.lines = Some(cx.message_adapter(move |text: String| {
    ///             number += 1;
    ///             Msg::Line { number, text }
    ///         }));
    ///         Ok(Next::Stay)
    ///     }
    ///
    ///     fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
    ///         match msg {
    ///             Msg::Line { number, text } => println!("{number}: {text}"),
    ///             Msg::Foreign(foreign) => {
    ///                 if let Some(msg) = cx.adapt(foreign) {
    ///                     return self.receive(cx, msg);
    ///                 }
    ///             }
    ///         }
    ///         Ok(Next::Stay)
    ///     }
    /// }
    /// ```
    pub fn message_adapter<N>(
        &mut self,
        mut f: impl FnMut(N) -> A::Msg + Send + 'static,
    ) -> ActorRef<N>
    where
        N: Send + 'static,
        A::Msg: From<Foreign> + Send,
    {
        let adapt = Box::new(move |foreign: Foreign| foreign.downcast().ok().map(&mut f));
        let adapter = Adapter { from: TypeId::of::<N>(), adapt };
        let adapters = &mut self.state.rare().adapters;
        match adapters.iter_mut().find(|one| one.from == adapter.from) {
            Some(one) => *one = adapter,
            None => adapters.push(adapter),
        }
        self.self_ref().map(|value: N| Foreign::new(value).into())
    }

    /// Converts a foreign value by its adapter; none if there is no such adapter, or if it has
    /// panicked. Both cases are reported as the [module](crate::adapter) says, and the caller need
    /// not do anything.
    pub fn adapt(&mut self, foreign: Foreign) -> Option<A::Msg> {
        let (from, name) = (foreign.value.as_ref().type_id(), foreign.name);
        let adapters = &mut self.state.rare().adapters;
        let Some(adapter) = adapters.iter_mut().find(|one| one.from == from) else {
            let header = &self.poll.shared().header;
            header.system().events().publish(&SystemEvent::Unhandled(Unhandled {
                pid: self.poll.pid(),
                path: header.path.clone(),
                message_type: name,
            }));
            self.poll.drop_catching_panic(foreign);
            return None;
        };
        let (mut foreign, mut made) = (Some(foreign), None);
        let guarded = self.poll.catch_unwind(&mut || {
            made = foreign.take().and_then(|foreign| (adapter.adapt)(foreign));
        });
        if let Err(caught) = guarded {
            let failure = Panicked::new(caught.message()).into();
            self.poll.drop_panic_payload(caught);
            let signals = &mut self.state.rare().signals;
            signals.push_back(PendingSignal::Signal(Signal::AdapterFailed(failure)));
            self.state.set(PENDING, true);
        }
        made
    }
}
