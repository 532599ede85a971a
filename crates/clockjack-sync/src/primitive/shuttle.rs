//! The facade under shuttle: the same names, every atomic access a place where another thread may
//! go on, in schedules drawn at random.
//!
//! shuttle runs larger scenes than loom, at full capacities, but takes every access for
//! sequentially consistent and does not watch the cells: wrong orderings are loom's to find.

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

/// What a waiting loop says to shuttle's scheduler.
pub mod hint {
    pub use shuttle::hint::spin_loop;
}

// Its atomics can be made in a constant and its cells are plain, as on hardware.
#[path = "cell.rs"]
mod cell;
pub use cell::UnsafeCell;

/// Accesses of one schedule: more than any scene needs, so that a hang is a failure.
const STEPS_MAX: usize = 200_000;
/// Schedules where the environment says nothing: for a run by hand.
const ITERATIONS: usize = 2_000;
/// Room for the frames of a scene's threads; shuttle's own default is half of it.
const STACK_BYTES: usize = 0x1_0000;

/// Runs a scene under many schedules: half at random, a quarter each with 3 and with 10 changes of
/// priority (PCT). `CLOCKJACK_SHUTTLE_ITERATIONS` says how many, `CLOCKJACK_SHUTTLE_SEED` which.
///
/// # Panics
///
/// If the scene panics, deadlocks or does not end; shuttle prints how to repeat the schedule.
pub fn explore(scene: impl Fn() + Clone + Send + Sync + 'static) {
    explore_part(1, scene);
}

/// As [`explore`], for a scene that takes long: under one of `share` schedules.
///
/// # Panics
///
/// As [`explore`]; or if the share is zero.
pub fn explore_part(share: usize, scene: impl Fn() + Clone + Send + Sync + 'static) {
    let iterations = number("CLOCKJACK_SHUTTLE_ITERATIONS").unwrap_or(ITERATIONS) / share;
    let seed: u64 = number("CLOCKJACK_SHUTTLE_SEED").unwrap_or(1);
    run(RandomScheduler::new_from_seed(seed, iterations.div_ceil(2)), scene.clone());
    run(PctScheduler::new_from_seed(seed, 3, iterations.div_ceil(4)), scene.clone());
    run(PctScheduler::new_from_seed(seed, 10, iterations.div_ceil(4)), scene);
}

fn run(scheduler: impl Scheduler + 'static, scene: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.stack_size = STACK_BYTES;
    // Said once, above: orderings are loom's.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(scene);
}

fn number<N: FromStr>(name: &str) -> Option<N> {
    env::var(name).ok()?.parse().ok()
}
