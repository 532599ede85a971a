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

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let log = spawn(|| Log);
    drop((log.line("a".into()), log.lines(1, Vec::new()), log.last(SOON), log.count(SOON)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
