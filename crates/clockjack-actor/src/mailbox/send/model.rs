//! The real list and mailbox of an actor without its cell, for models of the protocol.
#![expect(unsafe_code, reason = "stands in for the runner of a cell")]

use alloc::vec::Vec;
use core::{fmt, mem::ManuallyDrop, ptr::NonNull};

use clockjack_sync::{
    mail::Pop,
    primitive::{
        atomic::{AtomicBool, Ordering::AcqRel},
        hint,
    },
};

use super::{Enqueued, WaitingMessage};
use crate::{
    ActorPath, Overflow,
    cell::{
        header::{ActorHeader, WAITERS},
        shared::{Accepted, ActorShared},
    },
};

/// The state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The message was accepted.
    Sent,
    /// In the list.
    Waits(u64),
    /// Refused.
    Stopped,
}

/// What senders and the runner share.
pub struct MailboxModel {
    /// Never dropped, because it has no system.
    shared: ManuallyDrop<ActorShared<u32>>,
    /// Stands for the task state of the executor.
    is_woken: AtomicBool,
}

// SAFETY: what is shared of it is made for sharing.
unsafe impl Send for MailboxModel {}
// SAFETY: as above.
unsafe impl Sync for MailboxModel {}

impl MailboxModel {
    /// A mailbox of this capacity, with a runner that has not run yet.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // SAFETY: the system is never accessed, and the header never dropped.
        let header = unsafe {
            ActorHeader::new(ActorPath::root(), None, NonNull::dangling(), Overflow::Fail)
        };
        let shared = ManuallyDrop::new(ActorShared::new(header, capacity));
        Self { shared, is_woken: AtomicBool::new(true) }
    }

    fn wake(&self) {
        // AcqRel: as the task state of the executor.
        self.is_woken.swap(true, AcqRel);
    }

    /// Sends without waiting; whether the message was accepted.
    pub fn tell(&self, n: u32) -> bool {
        let sent = self.shared.push(n);
        if matches!(sent, Ok(Accepted::MustWake)) {
            self.wake();
        }
        sent.is_ok()
    }

    /// Waits for room.
    #[must_use]
    pub fn wait_for_room(&self, n: u32) -> SendOutcome {
        let mut back: Option<u32> = None;
        let waiters = self.shared.waiters_or_new();
        match waiters.wait_for_room(
            WaitingMessage::Ready(n),
            false,
            &mut back,
            &|| self.wake(),
            &|| self.wake(),
        ) {
            Enqueued::Sent => SendOutcome::Sent,
            Enqueued::Waits(ticket) => SendOutcome::Waits(ticket),
            Enqueued::Full | Enqueued::Stopped => SendOutcome::Stopped,
        }
    }

    /// Cancels; returns the message, if it was not sent.
    #[must_use]
    pub fn cancel(&self, ticket: u64) -> Option<u32> {
        let mut back: Option<u32> = None;
        self.shared.header.wait_list()?.cancel(ticket, &mut back);
        back
    }

    /// Polls the actor as long as it is woken, as a worker does.
    pub fn run(&self, taken: &mut Vec<u32>) {
        // AcqRel: as the task state of the executor.
        while self.is_woken.swap(false, AcqRel) {
            self.step(taken);
        }
    }

    fn step(&self, taken: &mut Vec<u32>) {
        loop {
            if self.shared.header.flags() & WAITERS != 0
                && let Some(waiters) = self.shared.waiters()
            {
                while waiters.admit().is_some() {}
            }
            // SAFETY: one thread at a time runs it, and joins order them.
            match unsafe { self.shared.mail.pop() } {
                Pop::Item(envelope) => taken.push(envelope.msg),
                // SAFETY: as above.
                Pop::Empty if unsafe { self.shared.mail.try_idle() } => return,
                // A message has arrived, or a sender waits for room and is about to wake the cell.
                Pop::Empty | Pop::Retry => {
                    self.wake();
                    hint::spin_loop();
                    return;
                }
            }
        }
    }

    /// What the runner does when the actor begins to stop.
    pub fn stop(&self) {
        self.shared.mail.close();
        if let Some(waiters) = self.shared.waiters() {
            drop(waiters.close());
        }
    }
}

impl fmt::Debug for MailboxModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailboxModel").finish_non_exhaustive()
    }
}
