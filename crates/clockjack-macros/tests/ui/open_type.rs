//! A parameter or an answer whose type is left open.

use clockjack_macros::actor;

struct Log;

#[actor]
impl Log {
    #[msg]
    fn line(&mut self, _text: impl Into<String>) {}

    #[ask]
    fn lines(&self) -> impl Iterator<Item = String> {
        std::iter::empty()
    }
}

fn main() {
    drop(spawn(|| Log).line("a"));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
