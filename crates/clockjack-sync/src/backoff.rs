//! Waiting for a thread that is in the middle of a short operation, without priority inversion.
//!
//! # The problem
//!
//! Four kinds of threads wait for another thread that is about to finish a few instructions: one
//! that finds a [spin lock](crate::spin_lock) held, one whose [`Pop`](crate::mpsc::Pop) returns
//! *retry* because a producer has claimed a position and not written it yet, one that must not park
//! because an [injector](crate::injector) counts a push that is not linked yet, and one that arms
//! or closes timers while another thread holds the guard of their shard. Usually the other thread
//! runs on another processor, and spinning is right. But a thread of a real-time class
//! (`SCHED_FIFO`) may have preempted exactly that other thread, on the same processor: as long as
//! it spins, the other thread does not run. Yielding does not help, since a real-time thread yields
//! only to threads of its own priority.
//!
//! # Protocol
//!
//! Roles: the *holder*, which is in the middle of its operation; the *waiter*, which repeats its
//! attempt.
//!
//! 1. The waiter spins a bounded number of times ([`SPINS_MAX`]).
//! 2. Then it calls [`wait`] after each further failed attempt, and repeats the attempt. A host
//!    with threads has [set](set_wait) a function for this: it blocks a real-time thread for some
//!    microseconds, at every call. A normal thread continues to spin, and yields from about a
//!    thousand failed attempts on. Without such a function `wait` is a hint to the processor: on
//!    one core without an operating system nobody but an interrupt preempts the holder, and
//!    interrupts never wait.
//!
//! *Why no thread hangs*: each call of `wait` removes a real-time waiter from its processor, so the
//! holder, which is ready, runs and finishes its operation: the time that the waiter loses is
//! bounded by the holder's few instructions, plus one block of the waiter. A normal waiter does not
//! keep the holder from running for ever: the scheduler of the operating system preempts it.
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
