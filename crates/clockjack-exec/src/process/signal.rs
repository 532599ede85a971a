//! The signal queue of a process, as in OTP: completions, cancel requests, exits, links.
//!
//! A closable Treiber stack that the consumer drains by one swap and reverses. It is one word,
//! because most processes never get a signal and each of them has a queue.
//!
//! # Protocol
//!
//! Roles: *senders*, any number, and the *runner*, the one thread that polls the process.
//!
//! 1. A sender loads the top of the stack, sets the link of its node to that, and pushes the node
//!    by a compare-exchange. It repeats if another sender was faster, and returns the signal to its
//!    caller if it sees CLOSED.
//! 2. The runner takes the whole stack by one swap with null, and reverses it: so signals come out
//!    in the order in which their exchanges happened. No other thread takes nodes, so no node that
//!    a sender has loaded is freed and pushed again between the sender's load and its exchange (no
//!    ABA problem).
//! 3. When the process ends, the runner swaps in CLOSED and gets everything that was accepted.
//!    Nothing is accepted after that: one word separates accepted signals from refused ones.
//! 4. A sender whose signal was accepted then notifies the state of the task, so that the runner
//!    drains the queue.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::{fmt, ptr};

use clockjack_sync::primitive::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::{exit::ExitReason, failure::Failure, payload::Payload, pid::Pid, process::Tag};

/// A signal to a process, as it is sent.
#[derive(Debug)]
pub(crate) enum ProcessSignal {
    /// A command has completed; `incarnation` is that of the process that yielded it.
    Complete { tag: Tag, incarnation: u32, result: Result<Payload, Failure> },
    /// A request to stop.
    Cancel { reason: &'static str },
    /// Another process begins to monitor this one.
    Monitor { monitor: Pid },
    /// Another process stops monitoring this one.
    Demonitor { monitor: Pid },
    /// Another process links itself to this one.
    Link { peer: Pid },
    /// Another process removes the link.
    Unlink { peer: Pid },
    /// A process that this one monitors has ended.
    Exit { pid: Pid, reason: ExitReason },
    /// A process that this one is linked to has ended.
    LinkExit { pid: Pid, reason: ExitReason },
}

/// A signal with the link of the stack.
pub(crate) struct Node {
    next: *mut Node,
    signal: ProcessSignal,
}

/// The signal queue; see the [module](self).
pub(crate) struct SignalQueue {
    head: AtomicPtr<Node>,
}

/// Marks a queue that accepts nothing any more. Never dereferenced.
fn closed() -> *mut Node {
    ptr::without_provenance_mut(usize::MAX)
}

// SAFETY: the exchanges of rules 1 and 2 pass nodes from the sender to the runner, with release and
// acquire; no two threads have a node at the same time. A signal is `Send`.
unsafe impl Send for SignalQueue {}
// SAFETY: as above.
unsafe impl Sync for SignalQueue {}

impl SignalQueue {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Whether the queue is empty. A hint, which suffices by rule 4.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a sender notifies afterwards, and the runner acquires the notification.
        self.head.load(Relaxed).is_null()
    }

    /// Rule 1. Returns the signal to the caller if the process has ended.
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

    /// Rule 3: what was accepted, oldest first, and closes the queue. Only the runner calls it.
    pub(crate) fn close(&self) -> DrainedSignals {
        DrainedSignals::reversed(self.swap(closed()))
    }

    fn swap(&self, new: *mut Node) -> *mut Node {
        // Acquire: pairs with the senders' release. Release: refused senders see what the process
        // did.
        self.head.swap(new, AcqRel)
    }
}

impl Drop for SignalQueue {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// Signals in the order in which they were sent; owns those that were not taken.
pub(crate) struct DrainedSignals {
    first: *mut Node,
}

impl DrainedSignals {
    /// Reverses a list of nodes that was taken from a queue.
    fn reversed(mut newest: *mut Node) -> Self {
        let mut first = ptr::null_mut();
        while !newest.is_null() && newest != closed() {
            // SAFETY: the list was taken from the queue, so this thread owns its nodes, each from
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
        // SAFETY: this list owns its nodes, each from `Box::into_raw`, and removes this one now.
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
