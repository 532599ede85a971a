//! An answer that borrows from the actor.

use clockjack_macros::actor;

struct Log(String);

#[actor]
impl Log {
    #[ask]
    fn text(&self) -> &str {
        &self.0
    }

    #[ask]
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let log = spawn(|| Log(String::new()));
    drop((log.text(SOON), log.bytes(SOON)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
