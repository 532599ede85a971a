//! The system lane of a process: completions, cancels, exits, ties.
//!
//! One word, because most processes never get a signal and each of them pays for it.
//!
//! # Protocol
//!
//! Roles: *senders*, any number, and the *runner*, the one worker that steps the process.
//!
//! 1. A sender hangs its node on the head by a compare-exchange from what it saw to its node, whose
//!    link it has set to what it saw. It repeats if another sender was faster, and gives up, with
//!    the signal in its hands, if it sees CLOSED.
//! 2. The runner takes the whole list by one swap with null, and turns it round: so signals come
//!    out in the order in which their exchanges happened. Nobody else takes, so no node that a
//!    sender has seen is freed and hung up again between its load and its exchange.
//! 3. When the process ends, the runner swaps in CLOSED and has everything that was accepted.
//!    After that nothing is accepted: accepted and refused are told apart by one word.
//! 4. A sender that was accepted then notifies the state word; that is what makes the runner look.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::{fmt, ptr};

use clockjack_sync::prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::{exit::ExitReason, failure::Failure, payload::Payload, pid::Pid, process::Tag};

/// What the system tells a process.
#[derive(Debug)]
pub(crate) enum ProcessSignal {
    /// A command has ended; `incarnation` is that of the process which yielded it.
    Complete { tag: Tag, incarnation: u32, result: Result<Payload, Failure> },
    /// Somebody asks the process to stop.
    Cancel { reason: &'static str },
    /// Somebody wants to know when this process ends.
    Monitor { monitor: Pid },
    /// Somebody does not want to know any more.
    Demonitor { monitor: Pid },
    /// Somebody shares the fate of this process, and this one shares theirs.
    Link { peer: Pid },
    /// Somebody does not any more.
    Unlink { peer: Pid },
    /// A process that this one watches has ended.
    Exit { pid: Pid, reason: ExitReason },
    /// A process that this one is linked to has ended.
    LinkExit { pid: Pid, reason: ExitReason },
}

/// A signal with the link of the lane.
pub(crate) struct Node {
    next: *mut Node,
    signal: ProcessSignal,
}

/// The lane; see the [module](self).
pub(crate) struct SignalQueue {
    head: AtomicPtr<Node>,
}

/// Marks a lane that accepts nothing any more. Never followed.
fn closed() -> *mut Node {
    ptr::without_provenance_mut(usize::MAX)
}

// SAFETY: nodes are handed from the sender to the runner by the exchanges of rules 1 and 2, with
// release and acquire; no two threads have one at a time. A signal is `Send`.
unsafe impl Send for SignalQueue {}
// SAFETY: as above.
unsafe impl Sync for SignalQueue {}

impl SignalQueue {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Whether there is nothing to take. A hint: rule 4 makes it enough.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: whoever sends notifies afterwards, and the notification is acquired.
        self.head.load(Relaxed).is_null()
    }

    /// Rule 1. The signal comes back if the process has ended.
    pub(crate) fn push(&self, signal: ProcessSignal) -> Result<(), ProcessSignal> {
        // Acquire: a refused sender sees what the ended process did.
        let mut seen = self.head.load(Acquire);
        if seen == closed() {
            return Err(signal);
        }
        let node = Box::into_raw(Box::new(Node { next: seen, signal }));
        loop {
            if seen == closed() {
                // SAFETY: the node came from `Box::into_raw` above and was never published.
                let node = unsafe { Box::from_raw(node) };
                return Err(node.signal);
            }
            // SAFETY: as above: this thread still owns the node.
            unsafe { (*node).next = seen };
            // Release: publishes the node to the runner's swap. Acquire: as above.
            match self.head.compare_exchange_weak(seen, node, Release, Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Rule 2: what was accepted, oldest first. Only the runner calls it.
    pub(crate) fn take(&self) -> DrainedSignals {
        DrainedSignals::reversed(self.swap(ptr::null_mut()))
    }

    /// Rule 3: what was accepted, oldest first; from now on nothing is. Only the runner calls it.
    pub(crate) fn close(&self) -> DrainedSignals {
        DrainedSignals::reversed(self.swap(closed()))
    }

    fn swap(&self, new: *mut Node) -> *mut Node {
        // Acquire: pairs with the senders' release. Release: refused senders see what was done.
        self.head.swap(new, AcqRel)
    }
}

impl Drop for SignalQueue {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// DrainedSignals in the order in which they were sent; owns those that were not taken.
pub(crate) struct DrainedSignals {
    first: *mut Node,
}

impl DrainedSignals {
    /// Turns the list round that a lane gave up.
    fn reversed(mut newest: *mut Node) -> Self {
        let mut first = ptr::null_mut();
        while !newest.is_null() && newest != closed() {
            // SAFETY: the lane gave the list up, so this thread owns its nodes, each from
            // `Box::into_raw`, valid until it is boxed again.
            let next = unsafe { (*newest).next };
            // SAFETY: as above.
            unsafe { (*newest).next = first };
            first = newest;
            newest = next;
        }
        Self { first }
    }
}

impl DrainedSignals {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }
}

impl Iterator for DrainedSignals {
    type Item = ProcessSignal;

    fn next(&mut self) -> Option<ProcessSignal> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: this list owns its nodes, each from `Box::into_raw`, and forgets this one now.
        let node = unsafe { Box::from_raw(self.first) };
        self.first = node.next;
        Some(node.signal)
    }
}

impl Drop for DrainedSignals {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl fmt::Debug for SignalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalQueue").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
