//! Every developer command of Clockjack.

fn main() {}
