//! The signal queue of a process, as in OTP: completions, cancel requests, exits, links.
//!
//! A [closable stack](clockjack_sync::stack) of boxed signals; that module has the protocol. The
//! queue is one word, because most processes never get a signal and each of them has a queue. The
//! producers are the *senders*, and the consumer is the *runner*, the one thread that polls the
//! process. A sender whose signal was accepted then notifies the state of the task, so that the
//! runner drains the queue. When the process ends, the runner closes the queue.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::ptr::NonNull;

use clockjack_sync::{
    link::{Link, Linked},
    stack::{ClosableStack, Drained},
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
#[repr(C)]
struct Node {
    link: Link,
    signal: ProcessSignal,
}

// SAFETY: a box owns its node alone and keeps it in place; the link is its first field, and the
// pointer covers the whole node.
unsafe impl Linked for Node {
    type Handle = Box<Self>;

    #[inline]
    fn into_link(node: Box<Self>) -> NonNull<Link> {
        NonNull::from(Box::leak(node)).cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: by the contract the link came from `into_link`, and is given back once.
        unsafe { Box::from_raw(link.cast().as_ptr()) }
    }
}

/// The signal queue; see the [module](self).
#[derive(Debug)]
pub(crate) struct SignalQueue(ClosableStack<Node>);

impl SignalQueue {
    pub(crate) fn new() -> Self {
        Self(ClosableStack::new())
    }

    /// Whether the queue is empty. A hint, which suffices: a sender notifies after its push, and
    /// the runner acquires the notification.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the signal to the caller if the process has ended.
    pub(crate) fn push(&self, signal: ProcessSignal) -> Result<(), ProcessSignal> {
        // A signal to a process that has ended needs no memory.
        if self.0.is_closed() {
            return Err(signal);
        }
        let node = Box::new(Node { link: Link::new(), signal });
        self.0.push(node).map(drop).map_err(|node| node.signal)
    }

    /// What was accepted, oldest first. Only the runner calls it.
    pub(crate) fn take(&self) -> DrainedSignals {
        DrainedSignals(self.0.drain())
    }

    /// What was accepted, oldest first, and closes the queue. Only the runner calls it.
    pub(crate) fn close(&self) -> DrainedSignals {
        DrainedSignals(self.0.close())
    }
}

/// Signals in the order in which they were sent; owns those that were not taken.
#[derive(Debug, Default)]
pub(crate) struct DrainedSignals(Drained<Node>);

impl DrainedSignals {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for DrainedSignals {
    type Item = ProcessSignal;

    fn next(&mut self) -> Option<ProcessSignal> {
        self.0.next().map(|node| node.signal)
    }
}
