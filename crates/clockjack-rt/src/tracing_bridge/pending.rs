//! The events that the bridge has received and not written yet.
//!
//! An actor that is stopped loses its mailbox, and the bridge is stopped with its system, when the
//! most important events arrive: the failures of actors that cannot stop as they should. So the
//! mailbox of the bridge contains only a notice per event; the events themselves are here, from
//! where the bridge takes them also in its `PostStop`.
//!
//! *Publishers* push an event before they send its notice; the *bridge* takes one event per notice,
//! and all that are left when it closes this queue. Both is under one lock, so an event is either
//! taken or finds the queue closed, and then its publisher writes it. The mailbox bounds the queue.

use core::mem;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_actor::SystemEvent;

/// See the [module](self). All clones are of the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingEvents(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<SystemEvent>,
    is_closed: bool,
}

impl PendingEvents {
    /// Appends an event; returns it if the queue is closed.
    pub(super) fn push(&self, event: SystemEvent) -> Option<SystemEvent> {
        let mut queue = self.lock();
        if queue.is_closed {
            return Some(event);
        }
        queue.events.push_back(event);
        None
    }

    /// Takes the oldest event.
    pub(super) fn pop(&self) -> Option<SystemEvent> {
        self.lock().events.pop_front()
    }

    /// Closes the queue, and takes what is left, the oldest first.
    pub(super) fn close(&self) -> VecDeque<SystemEvent> {
        let mut queue = self.lock();
        queue.is_closed = true;
        mem::take(&mut queue.events)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No user code runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(n: u64) -> SystemEvent {
        SystemEvent::EventsDropped(n)
    }

    fn number(event: &SystemEvent) -> u64 {
        let SystemEvent::EventsDropped(n) = event else { panic!("{event:?}") };
        *n
    }

    #[test]
    fn an_event_is_taken_or_returned_to_its_publisher() {
        let pending = PendingEvents::default();
        (1..=3).for_each(|n| assert!(pending.push(lost(n)).is_none()));
        assert_eq!(pending.pop().as_ref().map(number), Some(1));
        assert_eq!(pending.close().iter().map(number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(pending.push(lost(4)).as_ref().map(number), Some(4));
        assert!(pending.pop().is_none() && pending.close().is_empty());
    }
}
