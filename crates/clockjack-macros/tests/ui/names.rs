//! Names that give no variant, give one twice, or are those of methods of the ref.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[msg]
    fn set_limit(&mut self) {}

    #[msg]
    fn set__limit(&mut self) {}

    #[msg]
    fn __(&mut self) {}

    #[msg]
    fn self_(&mut self) {}

    #[msg]
    fn send(&mut self) {}

    #[ask]
    fn r#clone(&self) -> u32 {
        0
    }
}

fn main() {
    let counter = spawn(|| Counter);
    drop((counter.set_limit(), counter.set__limit(), counter.clone()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
