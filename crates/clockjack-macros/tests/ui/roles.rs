//! Attributes that contradict each other, or occur where they mean nothing.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[msg]
    const N: u32 = 0;

    #[msg]
    #[ask]
    fn both(&mut self) {}

    #[msg]
    #[msg]
    fn twice(&mut self) {}

    #[control]
    fn alone(&mut self) {}

    #[ask]
    #[control]
    fn urgent(&mut self) {}

    #[msg(name = "Other")]
    fn named(&mut self) {}
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let counter = spawn(|| Counter);
    drop((counter.both(), counter.twice(), counter.urgent(SOON), counter.named()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
