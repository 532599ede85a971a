//! The mailbox, against a deque.

use pair::{Pair, Step};

use crate::input::Input;

#[path = "../../crates/clockjack-sync/tests/mail/pair.rs"]
mod pair;

const CAPACITIES: [usize; 8] = [1, 2, 3, 16, 17, 100, 130, 1000];

/// Pushes, claims, pops, holds, goes idle and closes. Accepted messages are popped once and in
/// order, refused messages are in the error, and a push says whether the consumer must be woken.
pub fn mailbox(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let capacity = CAPACITIES[input.below(CAPACITIES.len())];
    // Positions wrap around soon, or late.
    let start = -isize::from(input.byte());
    let mut pair = Pair::new(capacity, start);
    while !input.is_empty() {
        let times = 1 + input.below(40);
        pair.step(match input.below(10) {
            0 | 1 => Step::Push(times),
            2 | 3 => Step::Pop(times),
            4 => Step::Hold(times),
            5 => Step::Free,
            6 if input.below(2) == 0 => Step::Claim,
            6 => Step::Abandon,
            7 => Step::Idle,
            8 if input.below(2) == 0 => Step::Release,
            8 => Step::Shrink,
            // Rarely, because nothing is accepted after a close.
            _ if times == 40 => Step::Close,
            _ => continue,
        });
    }
    pair.finish();
}
