//! Hooks that occur twice, have too many or too few parameters, or are async.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[msg]
    fn inc(&mut self) {}

    #[started]
    fn start(&mut self) {}

    #[started]
    fn start_again(&mut self, _by: u32) {}

    #[signal]
    async fn on_signal(&mut self, _signal: Signal) {}

    #[signal]
    fn on_nothing(&mut self) -> bool {
        true
    }
}

fn main() {
    drop(spawn(|| Counter).inc());
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
