//! What an actor is: state, and what it does with messages and signals.

use core::{fmt, marker::PhantomData};

use clockjack_exec::Failure;

use crate::{Context, Terminated};

/// A thing with state that handles one message at a time.
///
/// Nothing here needs `Send`: that is asked for where an actor is spawned, if it may be moved
/// between threads. The state is `&mut self`; a restart makes a new value by the factory.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Actor, Context, Failure, Next};
///
/// struct Counter(u64);
///
/// impl Actor for Counter {
///     type Msg = u64;
///
///     fn receive(&mut self, _cx: &mut Context<'_, Self>, by: u64) -> Result<Next, Failure> {
///         self.0 += by;
///         Ok(if self.0 < 10 { Next::Stay } else { Next::Stop })
///     }
/// }
/// ```
pub trait Actor: Sized + 'static {
    /// What it can be told.
    type Msg: 'static;

    /// Called before the first message, and again after each restart.
    ///
    /// # Errors
    ///
    /// A failure here is one of the actor: its supervisor decides. So is a start that is left
    /// [`Unhandled`](Next::Unhandled).
    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let _ = cx;
        Ok(Next::Stay)
    }

    /// Handles a message.
    ///
    /// # Errors
    ///
    /// The message is used up, and the supervisor decides what becomes of the actor.
    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Self::Msg) -> Result<Next, Failure>;

    /// Handles a signal. Those that are left [`Unhandled`](Next::Unhandled) are fine, but for
    /// [`Signal::Terminated`]: whoever watches must care, or fails.
    ///
    /// # Errors
    ///
    /// As for [`receive`](Self::receive); in [`Signal::PreRestart`] and [`Signal::PostStop`] a
    /// failure is only told.
    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let _ = (cx, signal);
        Ok(Next::Unhandled)
    }
}

/// What becomes of an actor after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether the actor goes on"]
pub enum Next {
    /// It goes on.
    Stay,
    /// It stops: its children first, then itself.
    Stop,
    /// It goes on, and did not know what to do with that. It is told on the event stream.
    Unhandled,
}

/// What the system tells an actor.
#[derive(Debug)]
#[non_exhaustive]
pub enum Signal {
    /// This value is about to be dropped, and another one made in its place.
    PreRestart,
    /// It has stopped, and so have its children; this is the last that it hears.
    PostStop,
    /// An actor that it watches has ended.
    Terminated(Terminated),
    /// No message has come for as long as was set.
    ReceiveTimeout,
    /// A child has failed; what becomes of it was decided already.
    ChildFailed(crate::FailureInfo),
    /// A child has failed, and the strategy for children leaves that to who is above: this actor
    /// is about to fail with it, unless it stops.
    Escalated(crate::FailureInfo),
    /// A message adapter has failed.
    AdapterFailed(Failure),
}

/// A closure as an actor: [`Props::from_fn`](crate::Props::from_fn).
pub struct FnActor<M: 'static> {
    handler: Handler<M>,
}

type Handler<M> =
    alloc::boxed::Box<dyn FnMut(&mut Context<'_, FnActor<M>>, M) -> Result<Next, Failure> + Send>;

impl<M: 'static> FnActor<M> {
    pub(crate) fn new(
        handler: impl FnMut(&mut Context<'_, Self>, M) -> Result<Next, Failure> + Send + 'static,
    ) -> Self {
        Self { handler: alloc::boxed::Box::new(handler) }
    }
}

impl<M: 'static> Actor for FnActor<M> {
    type Msg = M;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        (self.handler)(cx, msg)
    }
}

impl<M: 'static> fmt::Debug for FnActor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnActor").field("message", &PhantomData::<M>).finish()
    }
}
