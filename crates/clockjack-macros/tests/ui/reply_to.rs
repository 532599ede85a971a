//! A `reply_to` of another type, or one under another name.

use clockjack_macros::actor;

struct ReplyTo<R>(R);

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
        reply_to.0
    }

    #[msg]
    fn forwarded(&mut self, _reply: ReplyTo<u32>) {}
}

fn main() {}
