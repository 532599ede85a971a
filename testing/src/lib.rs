//! What the tests of several crates share. Nothing here is published, and no crate that is may use
//! it but for its tests.
//!
//! * [`allocation`]: the system's allocator with counts beside it;
//! * [`Patience`]: waiting for other threads, with an end;
//! * [`post`]: letters that are accounted for;
//! * [`Random`]: numbers that are the same in every run;
//! * `toolbox`, with the feature of that name: a host whose time passes by hand.

extern crate alloc;

pub mod allocation;
mod patience;
pub mod post;
mod random;
#[cfg(feature = "toolbox")]
pub mod toolbox;

pub use patience::Patience;
pub use random::Random;
