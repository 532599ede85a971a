//! The [`Actor`] trait: a state, and handlers for messages and signals.

use core::{fmt, marker::PhantomData};

use clockjack_exec::Failure;

use crate::{Context, IntoNext, Terminated};

/// A state machine that handles one message at a time.
///
/// The trait does not require `Send`; spawning does, if the actor may move between threads. The
/// state is `&mut self`. A restart calls the factory to make a new value.
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
    /// The type of the messages that this actor receives.
    type Msg: 'static;

    /// Called before the first message, and again after each restart.
    ///
    /// # Errors
    ///
    /// An error is a failure of the actor: its supervisor decides. [`Unhandled`](Next::Unhandled)
    /// is an error here, too.
    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let _ = cx;
        Ok(Next::Stay)
    }

    /// Handles a message.
    ///
    /// # Errors
    ///
    /// An error is a failure of the actor: the message is dropped, and the supervisor decides what
    /// happens to the actor.
    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Self::Msg) -> Result<Next, Failure>;

    /// Handles a signal. A signal may be left [`Unhandled`](Next::Unhandled), except
    /// [`Signal::Terminated`]: an actor that watches another one and does not handle its
    /// termination fails.
    ///
    /// # Errors
    ///
    /// As for [`receive`](Self::receive). In [`Signal::PreRestart`] and [`Signal::PostStop`] a
    /// failure is only reported; no supervisor decides about it.
    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let _ = (cx, signal);
        Ok(Next::Unhandled)
    }
}

/// What an actor does after it has handled a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "says whether the actor continues"]
pub enum Next {
    /// The actor continues.
    Stay,
    /// The actor stops: its children first, then itself.
    Stop,
    /// The actor continues, and did not handle the message. The event stream reports that as
    /// [`crate::Unhandled`].
    Unhandled,
}

/// A notification from the system to an actor.
#[derive(Debug)]
#[non_exhaustive]
pub enum Signal {
    /// The actor is about to be restarted: this value is dropped, and the factory makes a new one.
    PreRestart,
    /// The actor and its children have stopped; this is the last signal that the actor receives.
    PostStop,
    /// A watched actor has stopped.
    Terminated(Terminated),
    /// No message has arrived for the duration of the receive time-out.
    ReceiveTimeout,
    /// A child has failed; the decision about the child has already been made.
    ///
    /// While the actor handles no signals, because it waits for a future, at most 256 of these wait
    /// for it. Further ones become dead letters; all failures are events.
    ChildFailed(crate::FailureInfo),
    /// A child has failed, and this actor's strategy for children escalates the failure: this actor
    /// is about to fail with it, unless it stops.
    Escalated(crate::FailureInfo),
    /// A message adapter has failed.
    AdapterFailed(Failure),
}

/// An actor that is a closure. Made by [`Props::from_fn`](crate::Props::from_fn).
pub struct FnActor<M: 'static> {
    handler: Handler<M>,
}

type Handler<M> =
    alloc::boxed::Box<dyn FnMut(&mut Context<'_, FnActor<M>>, M) -> Result<Next, Failure> + Send>;

impl<M: 'static> FnActor<M> {
    pub(crate) fn new<H, R>(mut handler: H) -> Self
    where
        H: FnMut(&mut Context<'_, Self>, M) -> R + Send + 'static,
        R: IntoNext + 'static,
    {
        let handler = move |cx: &mut Context<'_, Self>, msg| handler(cx, msg).into_next();
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
