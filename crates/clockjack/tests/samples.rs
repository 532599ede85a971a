//! The samples of the API description: they compile unchanged and behave as described.
#![cfg(not(loom))]

// A test sees the dependencies of its package, but a user of the facade does not. These lines
// shadow the crates, so that generated code which names them finds nothing.
extern crate core as clockjack_actor;
extern crate core as clockjack_graph;

#[path = "samples/bare_metal.rs"]
mod bare_metal;
#[path = "samples/client.rs"]
mod client;
#[path = "samples/gain.rs"]
mod gain;
#[path = "samples/greeter.rs"]
mod greeter;
#[path = "samples/jobs.rs"]
mod jobs;
#[path = "samples/plant.rs"]
mod plant;
#[path = "samples/process.rs"]
mod process;
#[path = "samples/session.rs"]
mod session;
