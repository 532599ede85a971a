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

fn main() {}
