//! What an actor does in a load, written once and played by every crate.
//!
//! Each crate has one generic actor, its host, which owns a part and does what the part says next:
//! the state, the messages and the decisions are the same everywhere, and what is left to the crate
//! is what it is measured for.

use super::roll::Member;
use super::subject::{Side, Subject};

/// The state of an actor and what it does with a message.
pub(crate) trait Part<S: Subject>: Sized + Send + Unpin + 'static {
    type Message: Send + 'static;
    type Question: Send + 'static;

    /// By what the part is on the roll of its load.
    fn member(&self) -> &Member;

    fn receive(&mut self, message: Self::Message) -> Next<'_, S, Self>;

    fn answer(&mut self, question: Self::Question) -> u64;

    /// The child of this index, after [`Next::Spawn`].
    fn child(&mut self, index: u64) -> (Self, Side) {
        unreachable!("child {index} of a part that has none")
    }

    /// What a child is told first.
    fn greeting(&self, _child: &S::Ref<Self>) -> Self::Message {
        unreachable!("a part without children greets nobody")
    }
}

/// What an actor does after a message. At most one message goes out for one that came in, so that
/// crates with waiting and without waiting sends can do the same.
pub(crate) enum Next<'a, S: Subject, P: Part<S>> {
    /// Waits for the next message.
    Stay,
    Tell(&'a S::Ref<P>, P::Message),
    /// Tells, then stops.
    TellAndLeave(&'a S::Ref<P>, P::Message),
    /// Stops.
    Leave,
    /// Starts so many children, and greets each of them.
    Spawn(u64),
}
