//! Hooks that occur twice, have too many or too few parameters, or are async.

use clockjack_macros::actor;

struct Signal;

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

fn main() {}
