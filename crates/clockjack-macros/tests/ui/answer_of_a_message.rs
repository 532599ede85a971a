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

fn main() {
    let counter = spawn(|| Counter(0));
    drop((counter.get(), counter.name()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
