//! What one report costs: nanoseconds an operation, on one thread without contention.
//!
//! `cargo run --profile dist -p clockjack-observe --example costs`
#![expect(clippy::print_stdout, reason = "an example that prints its result")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch; nothing depends on the time it shows")]

use core::hint::black_box;
use std::time::Instant;

use clockjack_observe::{
    Counter, Histogram, SingleWriter,
    event::{Event, ShardId, WorkerId},
    recorder::{Ring, Writer},
};

/// A round is shorter than a time slice, so that some rounds run undisturbed on a busy machine.
const OPERATIONS: u32 = 50_000;
const ROUNDS: u32 = 200;

static SHARED: Counter = Counter::new();
static SOLE: Counter<SingleWriter> = Counter::new();
static SHARED_HISTOGRAM: Histogram<16> = Histogram::new();
static SOLE_HISTOGRAM: Histogram<16, SingleWriter> = Histogram::new();

/// The best of many rounds: the one least disturbed.
fn measure(name: &str, mut operation: impl FnMut(u64)) {
    let round = |operation: &mut dyn FnMut()| {
        let start = Instant::now();
        operation();
        start.elapsed()
    };
    let mut all = || (0..u64::from(OPERATIONS)).for_each(|n| operation(black_box(n)));
    let best = (0..ROUNDS).map(|_| round(&mut all)).min().expect("there is at least one round");
    println!("{name:<34} {:>6.2} ns", best.as_secs_f64() * 1e9 / f64::from(OPERATIONS));
}

/// Values of many magnitudes, as latencies have.
fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (32 + n % 24)
}

fn main() {
    measure("empty loop", |n| {
        black_box(n);
    });
    measure("spread of values", |n| {
        black_box(spread(n));
    });
    measure("counter add, one writer", |_| SOLE.increment());
    measure("counter add, shared", |_| SHARED.increment());
    measure("histogram record, one writer", |n| SOLE_HISTOGRAM.record(spread(n)));
    measure("histogram record, shared", |n| SHARED_HISTOGRAM.record(spread(n)));
    let ring = Ring::new(4096);
    let mut writer = Writer::claim(&ring).expect("nobody else writes");
    let (shard, worker) = (ShardId(3), WorkerId(0));
    measure("recorder write", |n| {
        writer.write(n, Event::TimersFired { shard, worker, timers: 17, late_ticks: 0 });
    });
    let mut reader = ring.reader();
    measure("recorder write and read", |n| {
        writer.write(n, Event::TimersFired { shard, worker, timers: 17, late_ticks: 0 });
        black_box(reader.read());
    });
    assert_eq!(SHARED.get() as u64, u64::from(OPERATIONS * ROUNDS));
}
