//! The rules of supervision, of the lifecycle of an actor, of death watch and of the stash, in
//! virtual time.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "support/scripted_actor.rs"]
mod scripted_actor;

#[path = "supervision/children.rs"]
mod children;
#[path = "supervision/drops.rs"]
mod drops;
#[path = "escalation/laws.rs"]
mod escalation;
#[path = "supervision/faults.rs"]
mod faults;
#[path = "supervision/groups.rs"]
mod groups;
#[path = "supervision/itself.rs"]
mod itself;
#[path = "lifecycle/laws.rs"]
mod lifecycle;
#[path = "supervision/otp.rs"]
mod otp;
#[path = "properties/laws.rs"]
mod properties;
#[path = "stash/laws.rs"]
mod stash;
#[path = "supervision/subtree.rs"]
mod subtree;
#[path = "supervision/waiting.rs"]
mod waiting;
#[path = "watch/laws.rs"]
mod watch;
