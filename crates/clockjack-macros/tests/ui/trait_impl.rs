//! The attribute on an implementation of a trait.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Clone for Counter {
    #[msg]
    fn clone(&self) -> Self {
        Counter
    }
}

fn main() {}
