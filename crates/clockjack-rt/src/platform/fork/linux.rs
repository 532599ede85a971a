//! Detects a fork of the process: tells the executors of a child that their threads are gone.
//!
//! `fork` copies the memory of a process but only the calling thread, so in the child no worker, no
//! watchdog and no blocking thread of a pool exists, and a lock that one of them held stays locked.
//! Whatever waits for such a thread would wait for ever.
//!
//! # Protocol
//!
//! Roles: *owners* of pools, any thread; the *child handler*, which runs in the only thread of the
//! child, before `fork` returns there (`pthread_atfork`). The handler may only do what a signal
//! handler may: it takes no lock and allocates nothing.
//!
//! 1. Every pool has an *entry* in a list that only grows; an entry that is not used has a null
//!    pointer and is used again. So the handler can follow the list at any moment.
//! 2. An owner stores the address of its executor, with Release, when the executor exists, and
//!    clears it before it gives up the reference that keeps the executor alive.
//! 3. The handler marks every executor that it finds. By rule 2 each of them was alive when the
//!    memory was copied, and nobody else runs in the child.
#![expect(unsafe_code, reason = "registers a handler of libc, and follows a list from it")]

use core::{
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};
use std::sync::Once;

use clockjack_exec::{executor::ExecutorShared, executor_ref::ExecutorRef};

/// An entry of the list; never freed.
struct Entry {
    executor: AtomicPtr<ExecutorShared>,
    next: Option<&'static Self>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
static HANDLER: Once = Once::new();

/// While this exists, a fork marks the executor in the child.
pub(crate) struct ForkWatch(&'static Entry);

impl ForkWatch {
    /// The owner keeps the executor alive for longer than this.
    pub(crate) fn new(executor: &ExecutorRef) -> Self {
        HANDLER.call_once(|| {
            // SAFETY: the handler is a function without arguments that does what a signal handler
            // may do.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(mark_forked)) };
            // Without memory there is no handler: then a fork is not detected.
            debug_assert_eq!(refused, 0, "no memory for a handler");
        });
        let executor = ptr::from_ref(&**executor).cast_mut();
        let free = entries().find(|entry| {
            let null = ptr::null_mut();
            // Release: rule 2. Relaxed: an entry that is in use is not touched.
            entry.executor.compare_exchange(null, executor, Release, Relaxed).is_ok()
        });
        Self(free.unwrap_or_else(|| push(executor)))
    }
}

impl Drop for ForkWatch {
    fn drop(&mut self) {
        // Release: rule 2: the executor is freed afterwards.
        self.0.executor.store(ptr::null_mut(), Release);
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    // Acquire: pairs with `push`.
    let first = FIRST.load(Acquire);
    // SAFETY: null, or an entry that `push` leaked.
    core::iter::successors(unsafe { first.as_ref() }, |entry| entry.next)
}

fn push(executor: *mut ExecutorShared) -> &'static Entry {
    let mut first = FIRST.load(Acquire);
    loop {
        // SAFETY: as in `entries`.
        let next = unsafe { first.as_ref() };
        let entry = Box::into_raw(Box::new(Entry { executor: AtomicPtr::new(executor), next }));
        // AcqRel: publishes the entry; the entries before it were acquired.
        match FIRST.compare_exchange(first, entry, AcqRel, Acquire) {
            // SAFETY: it was just leaked.
            Ok(_) => return unsafe { &*entry },
            Err(now) => {
                // SAFETY: it was just leaked, and nobody has seen it.
                drop(unsafe { Box::from_raw(entry) });
                first = now;
            }
        }
    }
}

extern "C" fn mark_forked() {
    for entry in entries() {
        // Acquire: rule 2.
        let executor = entry.executor.load(Acquire);
        // SAFETY: rule 3.
        if let Some(executor) = unsafe { executor.as_ref() } {
            executor.mark_forked();
        }
    }
}
