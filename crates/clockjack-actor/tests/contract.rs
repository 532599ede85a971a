//! What the contract promises and no other file shows: the shape of actors, addresses and hosts,
//! the lanes of a mailbox, and corners of supervision, signals, stash and asks.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "support/puppet.rs"]
mod puppet;

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
