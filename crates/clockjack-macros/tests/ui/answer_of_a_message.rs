//! An answer where nobody asked.

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
