//! Parameters that have no plain name.

use clockjack_macros::actor;

struct Point {
    x: u32,
}

struct Pen;

#[actor]
impl Pen {
    #[msg]
    fn go(&mut self, (_x, _y): (u32, u32)) {}

    #[msg]
    fn put(&mut self, Point { x: _x }: Point) {}

    #[msg]
    fn skip(&mut self, _: u32) {}

    #[msg]
    fn keep(&mut self, ref _x: u32) {}

    #[msg]
    fn maybe(&mut self, #[cfg(any())] x: u32) {}

    #[msg]
    fn fine(&mut self, mut x: u32, _y: u32) {
        x += 1;
        drop(x);
    }
}

fn main() {
    let pen = spawn(|| Pen);
    drop((pen.go((1, 2)), pen.put(Point { x: 1 }), pen.skip(1), pen.keep(1), pen.fine(1, 2)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
