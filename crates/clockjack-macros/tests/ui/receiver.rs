//! `self` by value, in a box, or missing.

use clockjack_macros::actor;

struct Counter(u32);

#[actor]
impl Counter {
    #[msg]
    fn consume(self) {}

    #[msg]
    fn consume_mut(mut self, by: u32) {
        self.0 = by;
    }

    #[msg]
    fn unbox(self: Box<Self>) {}

    #[msg]
    fn new(_by: u32) {}

    #[ask]
    fn nothing() -> u32 {
        0
    }

    #[msg]
    fn fine(self: &mut Self) {}
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let counter = spawn(|| Counter(0));
    drop((counter.consume(), counter.consume_mut(1), counter.unbox(), counter.new(1)));
    drop((counter.nothing(SOON), counter.fine()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
