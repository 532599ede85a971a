//! The one facade over atomics and cells: `core`, `portable-atomic`, loom or shuttle.
//!
//! Every crate of the project that shares memory between threads takes its primitives from here,
//! so that the code under a model is the code that ships. `cfg` for atomics stands in no
//! other file. 64-bit atomics are there only where the target has them: see [`HAS_ATOMIC_64`].

#[cfg(loom)]
#[path = "prim/model.rs"]
mod imp;
#[cfg(shuttle)]
#[path = "prim/shuttle.rs"]
mod imp;
#[cfg(not(any(loom, shuttle)))]
#[path = "prim/native.rs"]
mod imp;

#[cfg(shuttle)]
pub use imp::explore;
pub use imp::{UnsafeCell, atomic, hint};

/// Whether [`atomic::AtomicU64`] exists on this target.
pub const HAS_ATOMIC_64: bool = cfg!(any(loom, shuttle, target_has_atomic = "64"));

/// Whether this is a build for loom's models, where capacities are small. Under shuttle, which
/// explores no tree, they stay as they ship.
pub const IS_MODEL: bool = cfg!(loom);
