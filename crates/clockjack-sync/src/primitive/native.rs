//! The facade on real hardware: `core` atomics, or `portable-atomic` for what a target has not.
//!
//! | target | up to 32 bits | 64 bits |
//! |---|---|---|
//! | with 64-bit atomics | core | core |
//! | with compare-exchange, bare metal (Cortex-M3 and up, RV32IMAC) | core | interrupts held off |
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

// Without that feature the 64-bit type is a global lock here. An interrupt that met it held would
// spin for ever, so this is not left to chance.
#[cfg(all(target_os = "none", target_has_atomic = "ptr", not(target_has_atomic = "64")))]
const _: () = assert!(
    atomic::AtomicU64::is_always_lock_free(),
    "a processor without 64-bit atomics: let the program's Cargo.toml say \
     `portable-atomic = {{ version = \"1\", features = [\"unsafe-assume-single-core\"] }}`, \
     which is true of one core that runs privileged"
);

/// What a waiting loop says to the processor.
pub mod hint {
    pub use core::hint::spin_loop;
}

#[path = "cell.rs"]
mod cell;
pub use cell::UnsafeCell;
