//! The real list and mailbox of an actor without its cell, for models of the protocol.
#![expect(unsafe_code, reason = "stands in for the runner of a cell")]

use alloc::vec::Vec;
use core::{fmt, mem::ManuallyDrop, ptr::NonNull};

use clockjack_sync::{
    mail::Pop,
    prim::{
        atomic::{AtomicBool, Ordering::AcqRel},
        hint,
    },
};

use super::{Letter, Lined};
use crate::{
    ActorPath, Overflow,
    base::{Core, WAITERS},
    front::{Front, Sent},
};

/// Where a sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Let in.
    Sent,
    /// In the list.
    Waits(u64),
    /// Refused.
    Stopped,
}

/// What senders and the runner meet at.
pub struct Desk {
    /// Never dropped: it has no system to give back.
    front: ManuallyDrop<Front<u32>>,
    /// What the state word of a process would tell.
    is_woken: AtomicBool,
}

// SAFETY: what is shared of it is made for that.
unsafe impl Send for Desk {}
// SAFETY: as above.
unsafe impl Sync for Desk {}

impl Desk {
    /// A mailbox of this capacity, with a runner that has not run yet.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // SAFETY: the system is never looked at, and the core never dropped.
        let core =
            unsafe { Core::new(ActorPath::root(), None, NonNull::dangling(), Overflow::Fail) };
        let front = ManuallyDrop::new(Front::new(core, capacity));
        Self { front, is_woken: AtomicBool::new(true) }
    }

    fn wake(&self) {
        // AcqRel: as the state word of a process.
        self.is_woken.swap(true, AcqRel);
    }

    /// Sends without waiting; whether that was accepted.
    pub fn tell(&self, n: u32) -> bool {
        let sent = self.front.push(n);
        if matches!(sent, Ok(Sent::Wake)) {
            self.wake();
        }
        sent.is_ok()
    }

    /// Waits for room.
    #[must_use]
    pub fn line_up(&self, n: u32) -> Place {
        let mut back: Option<u32> = None;
        let waiters = self.front.waiters_or_new();
        match waiters.line_up(Letter::Plain(n), false, &mut back, &|| self.wake(), &|| self.wake())
        {
            Lined::Sent => Place::Sent,
            Lined::Waits(ticket) => Place::Waits(ticket),
            Lined::Full | Lined::Stopped => Place::Stopped,
        }
    }

    /// Gives up; the message, if it was not sent.
    #[must_use]
    pub fn give_up(&self, ticket: u64) -> Option<u32> {
        let mut back: Option<u32> = None;
        self.front.core.wait_list()?.give_up(ticket, &mut back);
        back
    }

    /// Steps the actor as long as it is woken, as a worker does.
    pub fn run(&self, taken: &mut Vec<u32>) {
        // AcqRel: as the state word of a process.
        while self.is_woken.swap(false, AcqRel) {
            self.step(taken);
        }
    }

    fn step(&self, taken: &mut Vec<u32>) {
        loop {
            if self.front.core.peek() & WAITERS != 0
                && let Some(waiters) = self.front.waiters()
            {
                while waiters.admit().is_some() {}
            }
            // SAFETY: one thread at a time runs it, and joins order them.
            match unsafe { self.front.mail.pop() } {
                Pop::Item(envelope) => taken.push(envelope.msg),
                // SAFETY: as above.
                Pop::Empty if unsafe { self.front.mail.try_idle() } => return,
                // Somebody has come, or waits for room and is about to say so.
                Pop::Empty | Pop::Busy => {
                    self.wake();
                    hint::spin_loop();
                    return;
                }
            }
        }
    }

    /// What the runner does when the actor begins to stop.
    pub fn stop(&self) {
        self.front.mail.close();
        if let Some(waiters) = self.front.waiters() {
            drop(waiters.close());
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
