//! A block without a message.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[started]
    fn start(&mut self) {}

    fn helper(&self) {}
}

fn main() {
    drop(spawn(|| Counter));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
