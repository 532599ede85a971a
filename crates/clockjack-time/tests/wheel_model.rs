//! The wheel against a sorted map: random arming, cancelling, re-arming and advancing, with every
//! timer's place in the order checked. The test fails if a timer is early, late, lost, fired twice,
//! or out of order; if an id names a later timer; or if a value is dropped or kept wrongly.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

#[path = "wheel_model/pair.rs"]
mod pair;

use clockjack_time::{Fixed, Slab, Storage, Tick, Wheel, WheelConfig};
use pair::{Pair, STARTS};
use proptest::prelude::*;

/// Ticks after the start at which many timers are due: first ticks of slots of every level, ticks
/// inside them, and both sides of the wheel's range.
const CROWDED: [u64; 12] = [
    64,
    70,
    4_096,
    4_160,
    4_161,
    8_192,
    1 << 18,
    (1 << 18) + 4_160,
    (1 << 20) - 1,
    1 << 20,
    (1 << 20) + 4_160,
    1 << 21,
];

#[derive(Clone, Debug)]
enum Op {
    /// Several timers for one tick that others were and will be armed for.
    Crowd {
        nth: usize,
        copies: usize,
    },
    /// Just into the slot of such a tick, with a budget that ends somewhere in it.
    Approach {
        nth: usize,
        before: u64,
        budget: usize,
    },
    Insert {
        ahead: i64,
    },
    Cancel {
        nth: usize,
    },
    Rearm {
        nth: usize,
        ahead: i64,
    },
    Advance {
        by: u64,
        budget: usize,
    },
    /// Advances to exactly `next_deadline`, as a host that sleeps until then does.
    Sleep,
}

/// Deadlines of every kind: past, now, each level, the edges of the range, the overflow.
fn ahead() -> impl Strategy<Value = i64> {
    prop_oneof![
        1 => -5_000_i64..=0,
        4 => 0_i64..4,
        4 => 0_i64..130,
        3 => 0_i64..9_000,
        2 => 0_i64..600_000,
        3 => (1_i64 << 20) - 3..(1 << 20) + 200,
        2 => 0_i64..1 << 22,
        1 => 0_i64..1 << 40,
        // Few distinct ticks, so that many timers share one.
        6 => (0_i64..6).prop_map(|step| step * 4_096 + 64),
        6 => (0_i64..3).prop_map(|step| (1 << 20) + step),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..CROWDED.len(), 1_usize..6).prop_map(|(nth, copies)| Op::Crowd { nth, copies }),
        8 => (0..CROWDED.len(), prop_oneof![Just(0_u64), 0_u64..70, 0_u64..5_000], 1_usize..8)
            .prop_map(|(nth, before, budget)| Op::Approach { nth, before, budget }),
        10 => ahead().prop_map(|ahead| Op::Insert { ahead }),
        3 => any::<usize>().prop_map(|nth| Op::Cancel { nth }),
        2 => (any::<usize>(), ahead()).prop_map(|(nth, ahead)| Op::Rearm { nth, ahead }),
        2 => (0_u64..3, 1_usize..9).prop_map(|(by, budget)| Op::Advance { by, budget }),
        2 => (0_u64..5_000, 1_usize..20).prop_map(|(by, budget)| Op::Advance { by, budget }),
        2 => (0_u64..1 << 21, 1_usize..40).prop_map(|(by, budget)| Op::Advance { by, budget }),
        1 => (0_u64..1 << 41).prop_map(|by| Op::Advance { by, budget: usize::MAX }),
        2 => Just(Op::Sleep),
    ]
}

/// Checks the wheel's own counts.
fn check<S: Storage<u64>>(pair: &Pair<S>) {
    assert_eq!(pair.wheel.len(), pair.model.live.len());
    match (pair.wheel.next_deadline(), pair.model.earliest()) {
        (None, None) => {}
        (Some(said), Some(true_one)) => {
            // Too late is an error. Too early is a wasted wake-up, which the documentation allows
            // in one case.
            let latest = true_one.max(pair.wheel.elapsed().get());
            assert!(said.get() <= latest, "said {said:?}, but {true_one} is due");
            if pair.model.live.len() <= 64 && pair.wheel.elapsed() < said {
                assert_eq!(said.get(), true_one, "exact when few are armed");
            }
        }
        (said, earliest) => panic!("wheel says {said:?}, model {earliest:?}"),
    }
    for id in &pair.model.dead {
        assert!(!pair.wheel.contains(*id), "{id:?} is dead");
    }
}

fn run<S: Storage<u64>>(wheel: Wheel<u64, S>, ops: &[Op]) {
    let start = wheel.elapsed().get();
    let crowded = |nth: usize| start.saturating_add(CROWDED[nth]);
    let mut pair = Pair::new(wheel);
    for op in ops {
        let now = pair.now;
        match *op {
            Op::Insert { ahead } => pair.insert(now.saturating_add_signed(ahead)),
            Op::Crowd { nth, copies } => (0..copies).for_each(|_| pair.insert(crowded(nth))),
            Op::Approach { nth, before, budget } => {
                pair.advance(crowded(nth).saturating_sub(before).max(now), budget);
            }
            Op::Cancel { nth } => pair.cancel(nth),
            Op::Rearm { nth, ahead } => pair.rearm(nth, now.saturating_add_signed(ahead)),
            Op::Advance { by, budget } => pair.advance(now.saturating_add(by), budget),
            Op::Sleep => {
                if let Some(deadline) = pair.wheel.next_deadline() {
                    pair.advance(deadline.get().max(now), usize::MAX);
                }
            }
        }
        check(&pair);
    }
    pair.finish();
}

fn config(start: u64, limit: u32) -> WheelConfig {
    WheelConfig { start: Tick::new(start), reinsertion_batch_limit: limit, ..WheelConfig::DEFAULT }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_growing_wheel_fires_like_a_sorted_map(
        start in prop::sample::select(&STARTS[..]),
        limit in prop::sample::select(&[0_u32, 1, 3, 100][..]),
        ops in prop::collection::vec(op(), 1..160),
    ) {
        run(Wheel::<u64, Slab<u64>>::new(config(start, limit)), &ops);
    }

    #[test]
    fn a_fixed_wheel_fires_like_a_sorted_map_and_refuses_at_capacity(
        start in prop::sample::select(&STARTS[..]),
        ops in prop::collection::vec(op(), 1..160),
    ) {
        run(Wheel::<u64, Fixed<u64, 20>>::fixed(Tick::new(start)), &ops);
    }
}
