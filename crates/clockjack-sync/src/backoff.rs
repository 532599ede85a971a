//! Waiting for a thread that is in the middle of a short operation, without priority inversion.
//!
//! # The problem
//!
//! Some threads wait for another thread that is about to finish a few instructions. Usually the
//! other thread runs on another processor, and spinning is right. But a thread of a real-time class
//! (`SCHED_FIFO`) may have preempted exactly that other thread, on the same processor: as long as
//! it spins, the other thread does not run. Yielding does not help, since a real-time thread yields
//! only to threads of its own priority.
//!
//! # Who waits for whom
//!
//! | waiter | holder | what the holder has left to do |
//! |---|---|---|
//! | finds a [spin lock](crate::spin_lock) held | is in the critical section | neither user code nor a second lock; off the way of a `tell`, a list that grows may allocate, and a walk over the children of an actor is linear |
//! | a process or an actor whose mailbox returns [`Retry`](crate::mpsc::Pop::Retry) | a sender that has claimed a position | one store |
//! | a worker that must not park, since an [injector](crate::injector) counts what it cannot take | a submitter that is counted | two stores; or a worker that takes a batch, and unlinks at most [`BATCH_MAX`](crate::injector::BATCH_MAX) tasks |
//! | a thread that closes the injector's queue | the same | the same |
//! | a thread that arms a timer while its shard is locked and the shard's inbox is full | the holder of the shard's guard | one arm or cancel, or one poll of the timers, which has a budget |
//! | a thread that closes a shard | the same, but not a poll | the same |
//!
//! A `tell`, the wake-up of a task and the cancel of a timer wait for nobody: a producer, a
//! submitter and a canceller leave their item or their request and continue.
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
//! 3. A waiter that is a task calls `wait` once per poll, and then asks for another poll, so that
//!    its worker also runs other tasks. A worker calls it once per attempt to park.
//!
//! *Why no thread hangs*: each call of `wait` removes a real-time waiter from its processor, so the
//! holder, which is ready, runs and finishes its operation. A holder waits for nobody, so there is
//! no circle: it takes no second lock, and calls nothing that waits. The time that the waiter loses
//! is bounded by what the holder has left to do, plus one block of the waiter. A normal waiter does
//! not keep the holder from running for ever: the scheduler of the operating system preempts it.
//!
//! *Checked by* models of one processor on which nobody runs while a real-time thread is ready
//! (`tests/shuttle.rs` here, `tests/shuttle/realtime.rs` of `clockjack-exec`), with the holder
//! preempted between any two accesses: for the spin lock, the worker, the process and the thread
//! that arms. A waiter that spins or yields never ends there.
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
