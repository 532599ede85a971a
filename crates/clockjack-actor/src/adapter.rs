//! Message adapters: closures with state that turn what others send into an actor's messages.
//!
//! [`ActorRef::map`] serves wherever a plain function is enough. An adapter may keep state, and
//! runs at the receiver: between two messages, on the actor's own thread.
//!
//! What was sent to an adapter travels as [`Foreign`], a message of the actor's own type. So it
//! takes its place in the mailbox as every other, with its bound, overflow and order, and one that
//! is refused comes back as it was. The actor hands it to [`Context::adapt`]. A mailbox that
//! carries either a message or something foreign would need no such step, and would cost every
//! message of every actor a look.
//!
//! * One adapter for each type: the last one that was registered counts, also for addresses that
//!   were given away before.
//! * They belong to the value of the actor, as futures do: a restart forgets them. What is sent to
//!   one that is not there is told as unhandled.
//! * A panic in an adapter comes as [`Signal::AdapterFailed`]. If that is left
//!   [unhandled](crate::Next::Unhandled) the actor fails with it.

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

/// Something of another type on its way to the adapter that makes a message of it.
pub struct Foreign {
    value: Box<dyn Any + Send>,
    name: &'static str,
}

impl Foreign {
    fn new<N: Send + 'static>(value: N) -> Self {
        Self { value: Box::new(value), name: type_name::<N>() }
    }

    /// What its type is called.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.name
    }

    /// What it is, if it is of this type.
    ///
    /// # Errors
    ///
    /// It comes back if it is of another type.
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

/// What makes messages of one foreign type.
pub(crate) struct Adapter<M> {
    from: TypeId,
    adapt: Box<dyn FnMut(Foreign) -> Option<M>>,
}

impl<A: Actor> Context<'_, A> {
    /// An address for messages of another type, each of which `f` turns into one of the actor's,
    /// by way of [`adapt`](Self::adapt). It takes the place of an earlier one for the same type.
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

    /// What the adapter for it makes of something foreign; none if there is no such adapter, or if
    /// it has panicked: that is told as the [module](crate::adapter) says, and nothing is left to
    /// do.
    pub fn adapt(&mut self, foreign: Foreign) -> Option<A::Msg> {
        let (from, name) = (foreign.value.as_ref().type_id(), foreign.name);
        let adapters = &mut self.state.rare().adapters;
        let Some(adapter) = adapters.iter_mut().find(|one| one.from == from) else {
            let header = &self.turn.front().header;
            header.system().events().publish(&SystemEvent::Unhandled(Unhandled {
                pid: self.turn.pid(),
                path: header.path.clone(),
                message_type: name,
            }));
            self.turn.drop_contained(foreign);
            return None;
        };
        let (mut foreign, mut made) = (Some(foreign), None);
        let guarded = self.turn.guarded(&mut || {
            made = foreign.take().and_then(|foreign| (adapter.adapt)(foreign));
        });
        if let Err(caught) = guarded {
            let failure = Panicked::new(caught.message()).into();
            self.turn.discard(caught);
            let signals = &mut self.state.rare().signals;
            signals.push_back(PendingSignal::Signal(Signal::AdapterFailed(failure)));
            self.state.set(PENDING, true);
        }
        made
    }
}
