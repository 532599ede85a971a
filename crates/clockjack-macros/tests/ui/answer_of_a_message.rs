//! An answer to a message that is not an ask.

use clockjack_macros::actor;

struct Counter(u64);

#[actor]
impl Counter {
    #[msg]
    fn get(&self) -> u64 {
        self.0
    }

    #[msg]
    fn name(&self) -> Option<String> {
        None
    }
}

fn main() {}
