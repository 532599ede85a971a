//! The facade on real hardware: `core` atomics, or `portable-atomic` where a target lacks them.
//!
//! | target | up to 32 bits | 64 bits |
//! |---|---|---|
//! | with 64-bit atomics | core | core |
//! | with compare-exchange, bare metal (Cortex-M3 and up, RV32IMAC) | core | interrupts disabled |
//! | with compare-exchange, an operating system | core | a lock of `portable-atomic` |
//! | without compare-exchange (Cortex-M0, RV32IMC) | `critical-section` | `critical-section` |

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
    #[cfg(not(target_has_atomic = "64"))]
    pub use portable_atomic::AtomicU64;
}

// Without the feature `unsafe-assume-single-core` the 64-bit type is a global lock here. An
// interrupt that found the lock held would spin for ever, so the build fails instead.
#[cfg(all(target_os = "none", target_has_atomic = "ptr", not(target_has_atomic = "64")))]
const _: () = assert!(
    atomic::AtomicU64::is_always_lock_free(),
    "a processor without 64-bit atomics: add to the program's Cargo.toml \
     `portable-atomic = {{ version = \"1\", features = [\"unsafe-assume-single-core\"] }}`, \
     which is true of one core that runs privileged"
);

/// The hint of a waiting loop to the processor.
pub mod hint {
    pub use core::hint::spin_loop;
}

#[path = "cell.rs"]
mod cell;
pub use cell::UnsafeCell;
