//! Messages that a trigger has taken from the channels of one input, and that the component has not
//! seen yet.
//!
//! The queue is bounded: if a component is never ready, only the newest messages stay. The queue
//! counts nothing; `push` reports a dropped message to its caller, which counts it.

use std::collections::VecDeque;

use super::message::Message;

/// Entries that are allocated in advance. Beyond that, memory is allocated when it is first needed.
pub(crate) const PLACES_AT_ONCE: usize = 1024;

/// How many messages may be pending at an input whose channels have `n_places` entries in all.
///
/// With `newest_only` (debouncing, coalescing) it is one. Otherwise it is the capacity of the
/// channels, or a whole batch if that is larger, plus one: so that a full channel can be emptied
/// before the message that was left over is dropped.
pub(crate) fn bound(n_places: u64, batch_size: u32, newest_only: bool) -> usize {
    if newest_only {
        return 1;
    }
    let n_messages = n_places.max(1).max(u64::from(batch_size)).saturating_add(1);
    usize::try_from(n_messages).unwrap_or(usize::MAX)
}

/// The pending messages of one input, oldest first.
#[derive(Debug)]
pub(crate) struct Pending {
    queue: VecDeque<Message>,
    bound: usize,
}

impl Pending {
    /// An empty queue for at most `bound` messages.
    pub(crate) fn new(bound: usize) -> Self {
        Self { queue: VecDeque::with_capacity(bound.min(PLACES_AT_ONCE)), bound }
    }

    /// For an input whose messages go directly to the component.
    pub(crate) fn unused() -> Self {
        Self { queue: VecDeque::new(), bound: 0 }
    }

    /// Appends a message; returns whether the oldest was dropped for it.
    #[inline]
    pub(crate) fn push(&mut self, message: Message) -> bool {
        let is_full = self.queue.len() >= self.bound;
        if is_full {
            self.queue.pop_front();
        }
        self.queue.push_back(message);
        is_full
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Message> {
        self.queue.pop_front()
    }

    /// The oldest.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Message> {
        self.queue.front()
    }

    /// Drops messages that came before `since_ns`; returns how many.
    pub(crate) fn expire(&mut self, since_ns: u64) -> usize {
        let n_before = self.queue.len();
        self.queue.retain(|message| message.meta.received_ns >= since_ns);
        n_before - self.queue.len()
    }

    /// When the oldest message came. It need not be the first: several channels of one input are
    /// emptied one after the other.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.queue.iter().map(|message| message.meta.received_ns).min()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
