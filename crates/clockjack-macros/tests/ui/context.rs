//! A context in the wrong place or of the wrong kind.

use clockjack_macros::actor;

struct Counter;

#[actor]
impl Counter {
    #[msg]
    fn last(&mut self, _by: u32, _cx: &mut Context<'_, Self>) {}

    #[msg]
    fn twice(&mut self, _a: &mut Context<'_, Self>, _b: &mut Context<'_, Self>) {}

    #[msg]
    fn owned(&mut self, _cx: Context<'static, Self>) {}

    #[msg]
    async fn waits(&mut self, _cx: &mut Context<'_, Self>) {}

    #[msg]
    fn fine(&mut self, _cx: &Context<'_, Self>, _by: u32) {}
}

fn main() {
    let counter = spawn(|| Counter);
    drop((counter.last(1), counter.twice(), counter.owned(), counter.waits(), counter.fine(1)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
