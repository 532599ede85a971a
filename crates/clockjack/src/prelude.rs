//! What nearly every program with actors needs: `use clockjack::prelude::*`.
//!
//! The words of a first program: [`Runtime`], [`Actor`], [`Context`], [`Next`], [`Failure`], and
//! [`ReplyTo`] for one that is asked; the others come with the second program. What is not here is
//! reached by its module: `clockjack::actor::EventKinds`.

pub use core::time::Duration;

pub use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Ask, AskError, Backoff, Context, Directive, Failure, Mailbox,
    Next, Overflow, Props, ReplyTo, Scope, SendError, Signal, Strategy,
};
#[cfg(feature = "rt")]
pub use clockjack_rt::Runtime;

#[cfg(feature = "macros")]
pub use crate::macros::actor;
