//! The scenario in virtual time, under many seeds: the logical trace is always the same, and for
//! one seed the order between the actors is the same on every processor.
//!
//! After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-scenario --test simulation`
//! writes the golden files again.
#![cfg(not(loom))]

extern crate alloc;

use alloc::collections::BTreeSet;
use core::fmt::Write as _;
use std::{env, fs, path::Path};

use clockjack_scenario::{Tape, builder, simulate, start, tape::digest};
use clockjack_testkit::ManualTime;

/// Enough seeds to show that the seed matters; they take only a moment.
const SEEDS: u64 = 64;

/// Runs the scenario until it has shut down.
fn run(seed: u64) -> Tape {
    let tape = Tape::new();
    let report = simulate(seed, &tape, builder(&tape)).expect("the scenario finishes");
    assert!(report.is_clean(), "seed {seed}: {report:?}");
    tape
}

/// The same with the test kit of users.
fn run_by_kit(seed: u64) -> Tape {
    let tape = Tape::new();
    let time = ManualTime::start_seeded(builder(&tape), seed);
    start(time.system(), &tape).expect("there is room");
    let report = time.block_on(time.system().when_terminated());
    assert!(report.is_clean(), "seed {seed}: {report:?}");
    tape
}

#[track_caller]
fn check(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, actual).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file exists");
    assert_eq!(actual, expected, "{name} differs; if that is meant, run with CLOCKJACK_BLESS=1");
}

#[test]
fn every_seed_leaves_the_golden_trace() {
    let golden = run(0).by_actor();
    check("golden.txt", &golden);
    for seed in 1..=SEEDS {
        assert_eq!(run(seed).by_actor(), golden, "seed {seed}");
        assert_eq!(run_by_kit(seed).by_actor(), golden, "seed {seed}, in the kit");
    }
}

#[test]
fn a_seed_decides_the_order_between_actors_and_always_the_same() {
    let mut text = run(0).in_order();
    let mut orders = BTreeSet::new();
    for seed in 0..=SEEDS {
        let order = digest(&run(seed).in_order());
        orders.insert(order);
        writeln!(text, "seed {seed}: {order:016x}").expect("writing to a string cannot fail");
    }
    // If all seeds gave the same order, the comparison of orders would prove nothing. Siblings
    // start in the order of their spawns, so there are not many.
    assert!(orders.len() > 4, "only {} orders of {SEEDS} seeds", orders.len());
    check("orders.txt", &text);
}
