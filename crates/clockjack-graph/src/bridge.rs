//! Actors and graphs together, in both directions.
//!
//! * A component that asks: [`ActorCall`] forwards what comes to an actor and publishes the answer
//!   at the beginning of a later epoch, as any task does. In files it is a type that
//!   [`Registry::register_actor`](crate::Registry::register_actor) adds.
//! * An actor that owns a graph: it starts one in a handler, keeps a [`Feed`](crate::Feed) to its
//!   input boundary, has its outputs told to itself
//!   ([`RunOptions::subscribe`](crate::RunOptions::subscribe)), and makes it end with itself
//!   ([`GraphRun::stop_on_drop`](crate::GraphRun::stop_on_drop)).
//!
//! What actors do is outside of the graph: a run is as repeatable as their answers. The order in
//! which they are asked and told is the graph's, for any number of workers.

mod actor_call;
mod owned;
mod subscription;

use crate::named::named;
pub use actor_call::ActorCall;
pub use owned::OwnedRun;
pub(crate) use subscription::{Subscription, subscribe};

named! {
    /// What if an actor does not take what it is sent: its mailbox is full, or too many requests
    /// are under way. It is counted in any case.
    #[derive(Default)]
    pub enum OnRefused {
        /// It is a failure of the component.
        #[default]
        Fail = "fail",
        /// It is lost.
        Drop = "drop",
    }
}
