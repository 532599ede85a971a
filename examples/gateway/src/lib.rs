//! A gateway for devices: they connect by TCP and send readings; programs watch and command them by
//! HTTP. An example of a whole server with Clockjack.
//!
//! ```text
//!  TCP ── connection ──> Device ──ask──> router ──> Shard ──ask, retried──> Archive ──> file
//!             ^            │  (an actor per device) (4 of them, flush job)  (its own thread)
//!             └── Writer <─┘
//!  HTTP ── axum ──ask──> Devices ──> Device ──"cmd 1 ..", resent──> the device
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the lines that devices send |
//! | [`device`] | one device: heartbeat, rate limit, readings, commands that are resent |
//! | [`devices`] | the devices that are connected, by their names |
//! | [`store`] | shards that buffer readings and send them to the archive, in batches |
//! | [`archive`] | writes batches, each once |
//! | [`tcp`], [`http`] | the two ways in; the actors know neither |
//! | [`gateway`] | starts everything, and drains it in order |
//! | [`figures`] | what `/metrics` shows |
//!
//! **What is promised.** Each reading is answered: `ack` after it is buffered, `busy` if it was
//! refused, `unknown` if the answer took too long. A reading that was acknowledged is archived
//! exactly once, also if the archive fails for a while and also if a signal arrives; only a crash
//! of the process loses what is buffered. Each refusal is counted.

pub mod archive;
pub mod bucket;
pub mod device;
pub mod devices;
pub mod figures;
pub mod gateway;
pub mod http;
#[cfg(not(unix))]
#[path = "open_files/other.rs"]
pub mod open_files;
#[cfg(unix)]
#[path = "open_files/unix.rs"]
pub mod open_files;
pub mod protocol;
pub mod store;
pub mod tcp;
