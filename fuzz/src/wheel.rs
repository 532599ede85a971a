//! The timer wheel, against a sorted map.

use clockjack_time::{Fixed, Slab, Storage, Tick, Wheel, WheelConfig};
use pair::{Pair, STARTS};

use crate::input::Input;

#[expect(dead_code, reason = "the fuzzer re-arms nothing")]
#[path = "../../crates/clockjack-time/tests/wheel_model/pair.rs"]
mod pair;

/// Arms, cancels and advances. Every timer fires once, not early, in the order of deadline and
/// arming, unless it was cancelled; a full wheel returns the value.
pub fn wheel(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let start = Tick::new(STARTS[input.below(STARTS.len())]);
    if input.below(2) == 0 {
        let limit = [0, 1, 3, 100][input.below(4)];
        let config = WheelConfig { start, reinsertion_batch_limit: limit, ..WheelConfig::DEFAULT };
        run(Wheel::<u64, Slab<u64>>::new(config), &mut input);
    } else {
        run(Wheel::<u64, Fixed<u64, 20>>::fixed(start), &mut input);
    }
}

fn run<S: Storage<u64>>(wheel: Wheel<u64, S>, input: &mut Input<'_>) {
    let mut pair = Pair::new(wheel);
    while !input.is_empty() {
        match input.below(5) {
            0 | 1 => pair.insert(pair.now.saturating_add(input.number())),
            2 => pair.insert(pair.now.saturating_sub(input.number())),
            3 => pair.cancel(input.below(256)),
            _ => {
                let to = pair.now.saturating_add(input.number());
                pair.advance(to, 1 + input.below(64));
            }
        }
        assert_eq!(pair.wheel.len(), pair.model.live.len());
    }
    pair.finish();
}
