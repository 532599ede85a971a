//! The attribute on an item that is not an `impl` block.

use clockjack_macros::actor;

#[actor]
struct Counter {
    n: u64,
}

#[actor]
fn inc(n: u64) -> u64 {
    n + 1
}

fn main() {}
