//! An actor that borrows, or has no name.

use clockjack_macros::actor;

struct Reader<'a>(&'a str);

#[actor]
impl<'a> Reader<'a> {
    #[ask]
    fn len(&self) -> usize {
        self.0.len()
    }
}

struct Writer<'a>(&'a str);

#[actor]
impl Writer<'_> {
    #[ask]
    fn len(&self) -> usize {
        self.0.len()
    }
}

trait Job {}

#[actor]
impl dyn Job {
    #[msg]
    fn run(&mut self) {}
}

fn main() {}
