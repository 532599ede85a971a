//! The behaviour of an actor in a load, written once and run by every crate.
//!
//! Each crate has one generic actor, its host, which owns a part and does what the part returns:
//! state, messages and decisions are the same everywhere, and only the crate's own mechanisms
//! differ.

use super::actor_counts::Member;
use super::subject::{Side, Subject};

/// The state of an actor and its reaction to a message.
pub(crate) trait Part<S: Subject>: Sized + Send + Unpin + 'static {
    type Message: Send + 'static;
    type Question: Send + 'static;

    /// The entry of this actor in the counts of its load.
    fn member(&self) -> &Member;

    fn receive(&mut self, message: Self::Message) -> Next<'_, S, Self>;

    fn answer(&mut self, question: Self::Question) -> u64;

    /// The child of this index, after [`Next::Spawn`].
    fn child(&mut self, index: u64) -> (Self, Side) {
        unreachable!("child {index} of a part that has none")
    }

    /// The first message to a child.
    fn greeting(&self, _child: &S::Ref<Self>) -> Self::Message {
        unreachable!("a part without children greets nobody")
    }
}

/// The action of an actor after a message. Each message causes at most one further message, so that
/// crates with and without waiting sends can do the same.
pub(crate) enum Next<'a, S: Subject, P: Part<S>> {
    /// Waits for the next message.
    Stay,
    Tell(&'a S::Ref<P>, P::Message),
    /// Sends a message, then stops.
    TellAndLeave(&'a S::Ref<P>, P::Message),
    /// Stops.
    Leave,
    /// Starts this many children and sends the first message to each.
    Spawn(u64),
}
