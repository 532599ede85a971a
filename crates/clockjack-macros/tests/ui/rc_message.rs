//! A message that cannot move to another thread: the error is at the field, and nowhere else.

use clockjack_macros::actor;

use std::rc::Rc;

struct Log;

#[actor]
impl Log {
    #[msg]
    fn line(&mut self, _text: Rc<str>) {}

    #[msg]
    fn lines(&mut self, _level: u8, _texts: Vec<(u8, std::rc::Rc<String>)>) {}

    #[ask]
    fn last(&self) -> Option<Rc<str>> {
        None
    }

    #[ask]
    fn count(&self) -> u64 {
        0
    }
}

struct Here;

#[actor(local)]
impl Here {
    #[msg]
    fn fine(&mut self, _text: Rc<str>) {}
}

fn spawn<A: stub::Actor>(_factory: impl FnMut() -> A)
where
    A::Msg: Send,
{
}

fn main() {
    spawn(|| Log);
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/actor.rs"]
mod stub;
pub use stub::*;
