//! A message that borrows, in each way it can.

use clockjack_macros::actor;

use std::borrow::Cow;

struct Log;

#[actor]
impl Log {
    #[msg]
    fn line(&mut self, _text: &str) {}

    #[msg]
    fn bytes(&mut self, _bytes: &[u8], _more: Option<&mut Vec<u8>>) {}

    #[msg]
    fn text(&mut self, _text: Cow<'_, str>) {}

    #[msg]
    fn shown(&mut self, _what: &dyn ToString) {}

    #[msg]
    fn fine(&mut self, _a: &'static str, _b: fn(&str), _c: Box<dyn Fn(&str) + Send>) {}
}

fn main() {
    let log = spawn(|| Log);
    drop((log.line("a"), log.bytes(&[1], None), log.text("a".into()), log.shown(&1)));
    drop(log.fine("a", |_| (), Box::new(|_| ())));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
