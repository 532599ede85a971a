//! What a running Clockjack program does, read from outside.
//!
//! [`inspect`] returns the [views](view) of a [`Target`] as data: actors, workers, timers, jobs,
//! asks, dead letters, graphs, events, and [findings](view::Finding), which say what is wrong. A
//! [`Watcher`] adds what needs more than one look: rates, shares of time, the walk over all actors.
//!
//! Nothing of this costs the program anything as long as nobody looks: no instruction, no wake-up,
//! no allocation. Every number comes out of words that the runtime keeps anyway.

#[cfg(any(feature = "client", feature = "serve"))]
pub mod address;
#[cfg(feature = "client")]
pub mod client;
pub mod findings;
#[cfg(any(feature = "client", feature = "serve"))]
pub mod frame;
pub mod inspect;
pub mod query;
#[cfg(feature = "serve")]
pub mod server;
mod state;
mod target;
#[cfg(any(feature = "client", feature = "serve"))]
mod token;
#[cfg(feature = "tui")]
pub mod tui;
pub mod view;
mod watcher;

#[cfg(any(feature = "client", feature = "serve"))]
pub use self::{
    address::Address,
    token::{Token, TokenError},
};
pub use self::{target::Target, watcher::Watcher};
