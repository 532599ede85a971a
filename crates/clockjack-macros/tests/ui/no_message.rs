//! A block without a message.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[started]
    fn start(&mut self) {}

    fn helper(&self) {}
}

fn main() {}
