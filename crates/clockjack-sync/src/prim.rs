//! The one facade over atomics and cells: `core`, `portable-atomic` or loom.
//!
//! Every crate of the project that shares memory between threads takes its primitives from here,
//! so that the code under a loom model is the code that ships. `cfg` for atomics stands in no
//! other file. 64-bit atomics are there only where the target has them: see [`HAS_ATOMIC_64`].

#[cfg(loom)]
#[path = "prim/model.rs"]
mod imp;
#[cfg(not(loom))]
#[path = "prim/native.rs"]
mod imp;

pub use imp::{UnsafeCell, atomic, hint};

/// Whether [`atomic::AtomicU64`] exists on this target.
pub const HAS_ATOMIC_64: bool = cfg!(any(loom, target_has_atomic = "64"));

/// Whether this is a build for loom's models, where capacities are small.
pub const IS_MODEL: bool = cfg!(loom);
