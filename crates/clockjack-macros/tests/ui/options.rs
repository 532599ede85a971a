//! Options that do not exist, or have the wrong kind of value.

use clockjack_macros::actor;

struct A;

#[actor(name = "AMessage")]
impl A {
    #[msg]
    fn inc(&mut self) {}
}

struct B;

#[actor(msg = BMessage)]
impl B {
    #[msg]
    fn inc(&mut self) {}
}

struct C;

#[actor(vis = "public")]
impl C {
    #[msg]
    fn inc(&mut self) {}
}

struct D;

#[actor(crate = "clockjack")]
impl D {
    #[msg]
    fn inc(&mut self) {}
}

fn main() {
    drop((spawn(|| A).inc(), spawn(|| B).inc(), spawn(|| C).inc()));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
