//! The scenario of `scenario/` on bare metal: first with the tick interrupt, then in virtual time
//! with some seeds. Its logical trace is compared with `scenario/golden.txt`, the digests of its
//! orders with those of `scenario/orders.txt`, which were recorded on a server.
#![no_std]
#![no_main]

use clockjack_actor::{Limits, RootContext, SystemBuilder};
use clockjack_firmware::{board, line, program, report};
use clockjack_scenario::{Tape, builder, simulate, start, tape::digest};
use clockjack_sched::SchedulerConfig;

program!(run);

/// The simulated seeds: enough to see that the seed matters.
const SEEDS: u64 = 8;

fn run() {
    in_real_time();
    for seed in 0..=SEEDS {
        let tape = Tape::new();
        let report = simulate(seed, &tape, small(&tape)).expect("it fits");
        assert!(report.is_clean());
        line!("seed {seed}: {:016x}", digest(&tape.in_order()));
    }
    report();
}

/// With the ticks of the board. Everything is dropped before the next run: the heap has room for
/// only one system.
fn in_real_time() {
    board::start_ticks();
    let tape = Tape::new();
    let mut root = RootContext::new(board::Board, small(&tape)).expect("it fits");
    start(root.system(), &tape).expect("it fits");
    root.blocking_dispatch_loop(|| false);
    let report = root.system().when_terminated().report();
    assert!(report.is_some_and(|report| report.is_clean()));
    tape.by_actor().lines().for_each(|text| line!("{text}"));
}

/// A system with the smallest limits that the plant allows.
fn small(tape: &Tape) -> SystemBuilder {
    let scheduler =
        SchedulerConfig { quota: 16, capacity: 16, overflow_capacity: 8, ..SchedulerConfig::SMALL };
    builder(tape).limits(Limits::SMALL.processes(24).timers(32)).scheduler(scheduler)
}
