//! The facade under shuttle: the same names, every atomic access is a point where another thread
//! may run, in schedules drawn at random.
//!
//! shuttle runs larger scenarios than loom, at full capacities, but treats every access as
//! sequentially consistent and does not check the cells: only loom finds wrong orderings.

use core::str::FromStr;
use std::env;

use shuttle::{
    Config, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

/// Atomic integers, fences and orderings.
pub mod atomic {
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// The hint of a waiting loop to the scheduler of shuttle.
pub mod hint {
    pub use shuttle::hint::spin_loop;
}

// The atomics can be built in a constant and the cells are plain, as on hardware.
#[path = "cell.rs"]
mod cell;
pub use cell::UnsafeCell;

#[path = "realtime.rs"]
mod realtime;
pub use realtime::{become_realtime, block_realtime, explore_realtime};

/// Accesses of one schedule: more than any scenario needs, so that a hang is a failure.
const STEPS_MAX: usize = 200_000;
/// The number of schedules if the environment variable is not set.
const ITERATIONS: usize = 2_000;
/// The stack of a thread of a scenario; the default of shuttle is half of it.
const STACK_BYTES: usize = 0x1_0000;

/// Runs a scenario under many schedules: half at random, a quarter each with 3 and with 10 changes
/// of priority (PCT). `CLOCKJACK_SHUTTLE_ITERATIONS` says how many, `CLOCKJACK_SHUTTLE_SEED` which.
///
/// # Panics
///
/// If the scenario panics, deadlocks or does not finish; shuttle prints how to repeat the schedule.
pub fn explore(scenario: impl Fn() + Clone + Send + Sync + 'static) {
    explore_part(1, scenario);
}

/// As [`explore`], for a long scenario: under one of every `share` schedules.
///
/// # Panics
///
/// As [`explore`]; or if the share is zero.
pub fn explore_part(share: usize, scenario: impl Fn() + Clone + Send + Sync + 'static) {
    let iterations = number("CLOCKJACK_SHUTTLE_ITERATIONS").unwrap_or(ITERATIONS) / share;
    let seed: u64 = number("CLOCKJACK_SHUTTLE_SEED").unwrap_or(1);
    run(RandomScheduler::new_from_seed(seed, iterations.div_ceil(2)), scenario.clone());
    run(PctScheduler::new_from_seed(seed, 3, iterations.div_ceil(4)), scenario.clone());
    run(PctScheduler::new_from_seed(seed, 10, iterations.div_ceil(4)), scenario);
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.stack_size = STACK_BYTES;
    // The module documentation says it: only loom checks orderings.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(scenario);
}

fn number<N: FromStr>(name: &str) -> Option<N> {
    env::var(name).ok()?.parse().ok()
}
