//! Actors on several nodes.
//!
//! A [`Net`] makes an actor system a node of a cluster. Other nodes reach the actors that it
//! [exports](Net::export), and find the services of keys that it [shares](Net::share); a remote
//! actor is represented by a local one, its *remote proxy*, so `tell`, `ask`, `watch`, routers and
//! the receptionist work unchanged, and local actors pay nothing.
//!
//! # Guarantees
//!
//! * **tell**: at most once, and in order per sender and target. What is lost is counted by the
//!   receiver: [`NetEvent::Gap`]. A slow target fills the window of its channel, and all slow
//!   targets of a node together that of the link; then the mailbox of the proxy fills, `tell`
//!   returns "full" and `send` waits. [`Net::metrics`] and [`NetEvent::Blocked`] say so.
//! * **ask**: completes once, by its deadline; at once if the remote actor or its node is lost. A
//!   request whose ask is over is not sent, or is dropped where it waits, within about a second.
//! * **watch**: the end is reported exactly once.
//!   [`Terminated::cause`](clockjack_actor::Terminated) tells a stop from a lost node.
//! * **members and services**: every node reads them from one log, in one order. A node whose lease
//!   has ended is dead for all; it joins again as another incarnation.
//!
//! # What carries the bytes
//!
//! An [engine]. The one of this crate, [`MemoryServer`], is in this process: for tests in
//! virtual time (`TestCluster` of `clockjack-testkit`), and for a program that runs on one node.
//! `clockjack-nats` has the one for several machines.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod address;
mod announced;
mod channel;
mod config;
mod driver;
pub mod engine;
mod error;
mod event;
mod links;
mod log;
mod membership;
mod memory;
mod metrics;
mod net;
mod node;
mod packs;
mod proxy;
mod receiver;
mod share;
mod shared;
mod window;

pub use address::Address;
pub use clockjack_wire as wire;
pub use config::NetConfig;
pub use error::{ExportError, FindError, JoinError, Unreachable};
pub use event::NetEvent;
pub use links::CHANNELS_MAX;
pub use log::{LOG_VALUE_MAX, LogEntry, LogEvent};
pub use memory::{LOG_KEPT_MAX, MemoryServer, PACKS_WAITING_MAX};
pub use metrics::NetMetrics;
pub use net::{Find, Net};
pub use node::{Member, Members, NODE_NAME_MAX, NodeId, ParseError};
pub use share::Shared;
pub use shared::EXPORTS_MAX;
pub use window::LINK_WINDOW;
