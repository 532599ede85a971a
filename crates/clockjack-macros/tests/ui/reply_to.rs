//! A `reply_to` of another type, or one under another name.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[ask]
    fn number(&mut self, reply_to: u32) -> u32 {
        reply_to
    }

    #[ask]
    fn renamed(&mut self, _reply: ReplyTo<u32>) {}

    #[ask]
    fn answers_twice(&mut self, reply_to: ReplyTo<u32>) -> u32 {
        drop(reply_to);
        0
    }

    #[msg]
    fn forwarded(&mut self, _reply: ReplyTo<u32>) {}
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let counter = spawn(|| Counter);
    drop((counter.number(1, SOON), counter.answers_twice(SOON)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
