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

fn main() {}
