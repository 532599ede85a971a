//! The facade on real hardware: `core` atomics, or `portable-atomic` where there is no
//! compare-exchange.

/// Atomic integers, fences and orderings.
pub mod atomic {
    #[cfg(target_has_atomic = "ptr")]
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
    };
    #[cfg(not(target_has_atomic = "ptr"))]
    pub use portable_atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
    };

    #[cfg(target_has_atomic = "64")]
    pub use core::sync::atomic::AtomicU64;
}

/// What a waiting loop says to the processor.
pub mod hint {
    pub use core::hint::spin_loop;
}

#[path = "cell.rs"]
mod cell;
pub use cell::UnsafeCell;
