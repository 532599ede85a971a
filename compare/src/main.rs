//! The same loads on Clockjack and on the crates people would use instead.

fn main() {}
