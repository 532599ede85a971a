//! Connects actors and graphs, in both directions.
//!
//! * A component that asks an actor: [`ActorCall`] forwards its inputs to an actor and publishes
//!   the replies at the start of a later epoch, like the result of any task. In files it is a type
//!   that [`Registry::register_actor`](crate::Registry::register_actor) adds.
//!
//! * An actor that owns a graph: it starts the graph in a handler, keeps a [`Feed`](crate::Feed) to
//!   its input boundary, receives the outputs as messages
//!   ([`RunOptions::subscribe`](crate::RunOptions::subscribe)), and stops the run when it stops
//!   itself ([`GraphRun::stop_on_drop`](crate::GraphRun::stop_on_drop)).
//!
//! Actors are outside of the graph: a run is as reproducible as their replies. The graph determines
//! the order of the messages to actors, for any number of workers.

mod actor_call;
mod owned;
mod subscription;

use crate::named::named;
pub use actor_call::ActorCall;
pub use owned::OwnedRun;
pub(crate) use subscription::{Subscription, subscribe};

named! {
    /// What happens if an actor does not accept a message because its mailbox is full, or if too
    /// many requests are in flight. Such messages are always counted.
    #[derive(Default)]
    pub enum OnRefused {
        /// The component fails.
        #[default]
        Fail = "fail",
        /// The message is dropped.
        Drop = "drop",
    }
}
