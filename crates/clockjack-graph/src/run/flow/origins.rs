//! Where the data of messages comes from, for [chains](crate::run::engine::chains).
//!
//! A message has no room for this: it fills a cache line. So a component on a chain numbers its
//! calls and keeps, for each call that published something, when the call ended and where its data
//! began ([`Origins`]). A published message carries the number of the call in a field that its
//! channel sets only when it arrives; the channel then keeps the number next to the message
//! ([`MessageCalls`]). The reader finds the number by the sequence number of the message, and the
//! origins by the number.
//!
//! Threads: `Origins` has one writer, the worker that runs the publisher's region, and one reader
//! per edge, the worker that runs the reader's region. Across immediate edges the reader runs
//! after the writer; across other edges the two may overlap, so a lock guards the list. It is held
//! for the copy of a few numbers, and no other lock is taken under it. What a reader finds does not
//! depend on the order of the two: an entry is written before its messages become visible, and
//! stays until newer entries, as many as all messages on the way can refer to, have replaced it.

use std::{collections::VecDeque, sync::Mutex};

use crate::lock::lock;

/// No data of a chain: later than any time.
pub(crate) const NO_ORIGIN: u64 = u64::MAX;

/// Entries that are kept in any case. Memory for them is allocated at the start. A task may take
/// longer than these entries stay: its component holds the origins of its call.
const ENTRIES_MIN: usize = 1024;

/// The calls of a component on a chain: when each ended, and for each chain, when its data began.
#[derive(Debug)]
pub(crate) struct Origins(Mutex<List>);

#[derive(Debug)]
struct List {
    /// Per entry: the number of the call, its end, and one origin for each chain.
    numbers: VecDeque<u64>,
    width: usize,
    n_max: usize,
}

impl Origins {
    /// For a component on `n_chains` chains, to whose calls at most `n_messages` messages on the
    /// way may refer.
    pub(crate) fn new(n_chains: usize, n_messages: usize) -> Self {
        let (width, n_max) = (n_chains + 2, n_messages.max(ENTRIES_MIN));
        let numbers = VecDeque::with_capacity(ENTRIES_MIN * width);
        Self(Mutex::new(List { numbers, width, n_max }))
    }

    /// Adds a call. Calls come in the order of their numbers.
    pub(crate) fn push(&self, call: u64, ended_ns: u64, origins: &[u64]) {
        let mut list = lock(&self.0);
        let width = list.width;
        if list.numbers.len() >= list.n_max.saturating_mul(width) {
            list.numbers.drain(..width);
        }
        list.numbers.extend([call, ended_ns]);
        list.numbers.extend(origins);
    }

    /// Calls `see` with the end of a call, and a function of its origins; does nothing if the call
    /// is unknown.
    pub(crate) fn read(&self, call: u64, see: impl FnOnce(u64, &dyn Fn(usize) -> u64)) {
        let list = lock(&self.0);
        let (numbers, width) = (&list.numbers, list.width);
        let (mut low, mut high) = (0, numbers.len() / width);
        while low < high {
            let middle = (low + high) / 2;
            if numbers[middle * width] < call {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if numbers.get(low * width) == Some(&call) {
            see(numbers[low * width + 1], &|chain| numbers[low * width + 2 + chain]);
        }
    }
}

/// The messages of a channel on a chain: their sequence numbers, and the calls that published them.
#[derive(Debug)]
pub(crate) struct MessageCalls {
    queue: VecDeque<(u64, u64)>,
    /// The most messages that the channel and the trigger of its reader keep.
    n_max: usize,
}

impl MessageCalls {
    pub(crate) fn new(n_max: usize) -> Self {
        Self { queue: VecDeque::with_capacity(n_max.min(ENTRIES_MIN)), n_max }
    }

    /// A message has arrived. `call` is zero if no call on a chain has published it.
    pub(crate) fn push(&mut self, seq: u64, call: u64) {
        if call == 0 {
            return;
        }
        if self.queue.len() >= self.n_max {
            self.queue.pop_front();
        }
        self.queue.push_back((seq, call));
    }

    /// The call that published a message; forgets it and all messages before it. A reader sees the
    /// messages of a channel in order.
    pub(crate) fn take(&mut self, seq: u64) -> Option<u64> {
        while let Some((first, call)) = self.queue.front().copied() {
            if first > seq {
                return None;
            }
            self.queue.pop_front();
            if first == seq {
                return Some(call);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_until_newer_ones_have_replaced_it() {
        let origins = Origins::new(2, 3);
        let found = |call| {
            let mut found = None;
            origins.read(call, |ended_ns, of| found = Some((ended_ns, of(0), of(1))));
            found
        };
        assert_eq!(found(1), None);
        let n_calls = ENTRIES_MIN as u64 + 1;
        // Calls that published nothing have no entry.
        for call in (1..=n_calls).map(|nth| nth * 3) {
            origins.push(call, call * 10, &[call + 1, NO_ORIGIN]);
        }
        assert_eq!(found(3), None, "it was replaced");
        assert_eq!(found(6), Some((60, 7, NO_ORIGIN)));
        assert_eq!(found(7), None, "it has no entry");
        let last = n_calls * 3;
        assert_eq!(found(last), Some((last * 10, last + 1, NO_ORIGIN)));
        assert_eq!(found(last + 1), None);
    }

    #[test]
    fn calls_of_messages_are_found_in_order_and_bounded() {
        let mut calls = MessageCalls::new(3);
        for (seq, call) in [(1, 11), (2, 0), (3, 13), (5, 15), (6, 16)] {
            calls.push(seq, call);
        }
        assert_eq!(calls.take(1), None, "only three are kept");
        assert_eq!(calls.take(2), None, "no call on a chain has published it");
        assert_eq!(calls.take(4), None, "it was evicted before");
        assert_eq!(calls.take(5), Some(15));
        assert_eq!(calls.take(5), None, "it is forgotten");
        assert_eq!(calls.take(6), Some(16));
    }
}
