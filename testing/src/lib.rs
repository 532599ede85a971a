//! Code that the tests of several crates share. It is not published, and published crates may use
//! it only in their tests.
//!
//! * [`allocation`]: the system's allocator with counters;
//! * [`keeps_deadline`] and [`awaits_deadline`]: a shutdown that must keep its deadline;
//!   [`InTime`]: a drop that must;
//! * [`Patience`]: waits for other threads, with a limit;
//! * [`post`]: tracked messages, each of which must be handled, returned or dropped;
//! * [`Random`]: pseudo-random numbers that are the same in every run;
//! * `toolbox`, with the feature of the same name: a host with a manual clock.

extern crate alloc;

pub mod allocation;
mod deadline;
mod patience;
pub mod post;
mod random;
#[cfg(feature = "toolbox")]
pub mod toolbox;

pub use deadline::{GRACE, InTime, awaits_deadline, caller_asserts_deadline, keeps_deadline};
pub use patience::Patience;
pub use random::Random;
