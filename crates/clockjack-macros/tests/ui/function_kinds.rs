//! `unsafe`, `extern`, `const`, generics and bounds.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[msg]
    unsafe fn raw(&mut self) {}

    #[msg]
    extern "C" fn foreign(&mut self) {}

    #[ask]
    const fn constant(&self) -> u32 {
        0
    }

    #[msg]
    fn generic<T>(&mut self, _value: T) {}

    #[msg]
    fn borrowing<'a>(&'a mut self, _by: u32) {}

    #[msg]
    fn bounded(&mut self)
    where
        String: Send,
    {
    }
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let counter = spawn(|| Counter);
    drop((counter.raw(), counter.foreign(), counter.constant(SOON), counter.bounded()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
