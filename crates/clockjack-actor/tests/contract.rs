//! Promises of the contract that no other file tests: the shape of actors, references and hosts,
//! the message kinds of a mailbox, and corner cases of supervision, signals, stash and asks.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "support/scripted_actor.rs"]
mod scripted_actor;

#[path = "contract/asks.rs"]
mod asks;
#[path = "contract/corners.rs"]
mod corners;
#[path = "contract/hosts.rs"]
mod hosts;
#[path = "contract/mailboxes.rs"]
mod mailboxes;
#[path = "contract/shape.rs"]
mod shape;
