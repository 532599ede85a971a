//! The nodes of a cluster on NATS servers.
//!
//! [`join`] makes an actor system a node, and returns its [`Net`](clockjack_net::Net), which
//! describes what a node can do. What nodes must agree on, who is a member and who offers a
//! service, is one stream in JetStream, the *log*: the server decides about its order. Frames
//! between nodes travel by core NATS, to one subject per incarnation of a node.
//!
//! # Examples
//!
//! ```no_run
//! use clockjack_actor::ActorSystem;
//! use clockjack_nats::{Auth, JoinError, NatsConfig, join};
//! use clockjack_net::Net;
//!
//! async fn start(system: &ActorSystem) -> Result<Net, JoinError> {
//!     let config = NatsConfig {
//!         auth: Auth::CredsFile("worker.creds".into()),
//!         ..NatsConfig::new("nats://10.0.0.7:4222", "shop", "node-1")
//!     };
//!     join(system, config).await
//! }
//! ```
//!
//! # Threads and queues
//!
//! A node has one thread for the connection, with a runtime of tokio on it. The node hands packs
//! and writes over through bounded queues and never waits; what a full queue refuses is counted and
//! reported as [`NetEvent::Dropped`](clockjack_net::NetEvent). The queue of packs that have arrived
//! has a bound as well.
//!
//! # When the server cannot be reached
//!
//! The node reports [`NetEvent::Suspended`](clockjack_net::NetEvent). The client connects again by
//! itself; then the node reports `Resumed` and reads the whole log again. A node whose lease has
//! ended meanwhile joins again as another incarnation.
//!
//! # Not supported
//!
//! Entities, singletons and durable timers.
//!
//! # Permissions
//!
//! [`tools::Rules`] are the permissions of a server with which a node reads its own frames only,
//! and a stranger none. The nodes of one cluster trust each other about the log: each of them may
//! remove a member that does not answer, and what a lost node has left behind, so each may write
//! any key.

mod config;
mod connect;
mod engine;
mod error;
mod inbox;
mod log;
mod names;
mod outgoing;
pub mod tools;

pub use config::{Auth, NatsConfig, Tls};
pub use connect::{Connecting, Joining, NatsConnect, connect, join};
pub use error::JoinError;

/// The oldest server that this crate supports.
pub const SERVER_MIN: (u32, u32) = (2, 14);
