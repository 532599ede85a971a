//! Waiting for a thread that is in the middle of a short operation, without priority inversion.
#![doc = include_str!("backoff.md")]
#![expect(unsafe_code, reason = "a function pointer is kept in an atomic pointer")]

// Not the facade: the hook is set once and protects nothing, and a model must not count it.
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use crate::primitive::{IS_MODEL, hint};

/// How often a waiter spins before it calls [`wait`]: longer than a holder that runs needs.
pub const SPINS_MAX: u32 = if IS_MODEL { 1 } else { 256 };

static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function that [`wait`] calls, for the whole program. For hosts. It gets the number of
/// attempts that have failed. It must not take a lock or allocate.
pub fn set_wait(hook: fn(u32)) {
    // Release: pairs with `wait`.
    HOOK.store(hook as *mut (), Release);
}

/// Called after an attempt has failed because another thread is in the middle of an operation; the
/// caller then tries again. `n_failed` is the number of attempts that have failed in a row.
#[cold]
pub fn wait(n_failed: u32) {
    // Acquire: pairs with `set_wait`.
    let hook = HOOK.load(Acquire);
    if hook.is_null() {
        return hint::spin_loop();
    }
    // SAFETY: only `set_wait` stores there, and stores a function of this type.
    let hook: fn(u32) = unsafe { core::mem::transmute::<*mut (), fn(u32)>(hook) };
    hook(n_failed);
}
