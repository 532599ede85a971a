//! The invocations that a trigger makes, and the messages of each.
//!
//! All messages are in one list in the order of the invocations, so that each invocation has its
//! own slice, and several can be borrowed at once. The lists are reused: after the first few epochs
//! nothing is allocated.

use crate::{describe::SourceType, run::flow::message::Message};

/// The kind of event that made a component ready.
pub(crate) type EventKind = SourceType;

/// One call of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// The event that made it ready; of several messages, the first.
    pub(crate) kind: EventKind,
    /// It carries a batch: any number of messages of each input.
    pub(crate) is_batch: bool,
    /// Ticks of a timer that it represents; one without a timer.
    pub(crate) runs: u32,
    /// Ticks that were too late for a call of their own.
    pub(crate) missed_runs: u32,
    /// When the timer was due; without a timer, when the trigger was evaluated.
    pub(crate) scheduled_ns: u64,
    /// The end of its messages. They begin at the end of the previous invocation's.
    end: usize,
}

/// Invocations in the order in which they are made.
#[derive(Debug, Default)]
pub(crate) struct Invocations {
    messages: Vec<Message>,
    list: Vec<Invocation>,
}

impl Invocations {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// How many messages the invocations from `index` on have.
    pub(crate) fn n_messages_from(&self, index: usize) -> u64 {
        let start = index.checked_sub(1).map_or(0, |before| self.list[before].end);
        (self.messages.len() - start) as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all invocations and messages.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.list.clear();
    }

    /// Removes all but the first `n_invocations`.
    pub(crate) fn truncate(&mut self, n_invocations: usize) {
        self.list.truncate(n_invocations);
        self.messages.truncate(self.list.last().map_or(0, |last| last.end));
    }

    /// Takes all invocations, each with its index and its messages.
    pub(crate) fn take_each(
        &mut self,
        mut take: impl FnMut(usize, Invocation, &mut dyn Iterator<Item = Message>),
    ) {
        let (mut messages, mut start) = (self.messages.drain(..), 0);
        for (index, invocation) in self.list.drain(..).enumerate() {
            let n_messages = invocation.end - start;
            start = invocation.end;
            take(index, invocation, &mut messages.by_ref().take(n_messages));
        }
    }

    /// Adds a message to the first invocation, after its own.
    ///
    /// # Panics
    ///
    /// If there is no invocation.
    pub(crate) fn add_to_first(&mut self, port: u16, mut message: Message) {
        message.meta.port = port;
        let first = &mut self.list[0];
        // An input may have several of them.
        first.is_batch = true;
        self.messages.insert(first.end, message);
        for invocation in &mut self.list {
            invocation.end += 1;
        }
    }

    /// Removes the first `n_invocations`.
    pub(crate) fn drop_front(&mut self, n_invocations: usize) {
        let Some(last) = n_invocations.checked_sub(1).and_then(|index| self.list.get(index)) else {
            return;
        };
        let n_messages = last.end;
        self.list.drain(..n_invocations);
        self.messages.drain(..n_messages);
        for invocation in &mut self.list {
            invocation.end -= n_messages;
        }
    }

    /// An invocation and its messages.
    ///
    /// # Panics
    ///
    /// If there is no invocation of this index.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> (Invocation, &mut [Message]) {
        let invocation = self.list[index];
        let start = if index == 0 { 0 } else { self.list[index - 1].end };
        (invocation, &mut self.messages[start..invocation.end])
    }

    /// All invocations, each with its messages.
    #[cfg(test)]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Invocation, &mut [Message])> {
        let mut rest = self.messages.as_mut_slice();
        let mut start = 0;
        self.list.iter().map(move |invocation| {
            let (mine, later) = core::mem::take(&mut rest).split_at_mut(invocation.end - start);
            rest = later;
            start = invocation.end;
            (*invocation, mine)
        })
    }

    /// Adds a message to the invocation that is [closed](Self::close) next.
    #[inline]
    pub(super) fn add(&mut self, port: u16, mut message: Message) {
        message.meta.port = port;
        self.messages.push(message);
    }

    /// Makes an invocation of the messages that were added since the last.
    #[inline]
    pub(super) fn close(&mut self, kind: EventKind, now_ns: u64) -> &mut Invocation {
        let end = self.messages.len();
        let scheduled_ns = now_ns;
        self.list.push_mut(Invocation {
            kind,
            is_batch: false,
            runs: 1,
            missed_runs: 0,
            scheduled_ns,
            end,
        })
    }
}
