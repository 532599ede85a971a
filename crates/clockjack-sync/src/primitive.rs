//! The one facade over atomics and cells: `core`, `portable-atomic`, loom or shuttle.
//!
//! Every crate of the project that shares memory between threads takes its primitives from here, so
//! that the code under a model is the code that ships. No other file contains `cfg` for atomics,
//! except for the choice between a 64-bit form of a word and its 32-bit form.
//!
//! [`atomic::AtomicU64`] exists on every target. Where the processor has none,
//! it is that of `portable-atomic`, which on bare metal disables interrupts for some instructions.
//! **A program for such a processor has to declare that it has one core**, by the feature
//! `unsafe-assume-single-core` of `portable-atomic`; it does not compile otherwise. (A program for
//! a processor without compare-exchange provides an implementation of `critical-section` instead,
//! as for all other atomics.) Words that an interrupt or every message touches have a second form
//! that consists of two 32-bit atomics.

#[cfg(loom)]
#[path = "primitive/loom.rs"]
mod imp;
#[cfg(shuttle)]
#[path = "primitive/shuttle.rs"]
mod imp;
#[cfg(not(any(loom, shuttle)))]
#[path = "primitive/native.rs"]
mod imp;

pub use imp::{UnsafeCell, atomic, hint};
#[cfg(shuttle)]
pub use imp::{become_realtime, block_realtime, explore, explore_part, explore_realtime};

/// Whether the target is a microcontroller, with one core and some ten kilobytes of memory: nothing
/// is striped per core there, and chunks are small.
pub const IS_SMALL: bool = cfg!(all(target_os = "none", not(target_has_atomic = "64")));

/// One of three sizes: for a model, for a microcontroller, for everything else.
#[must_use]
pub const fn scaled(model: usize, small: usize, usual: usize) -> usize {
    match (IS_MODEL, IS_SMALL) {
        (true, _) => model,
        (false, true) => small,
        (false, false) => usual,
    }
}

/// Whether debug assertions are on.
pub const IS_DEBUG: bool = cfg!(debug_assertions);

/// Whether this is a build for loom's models, where capacities are small. Under shuttle, which
/// samples schedules at random, capacities are the real ones.
pub const IS_MODEL: bool = cfg!(loom);
