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

fn main() {}
