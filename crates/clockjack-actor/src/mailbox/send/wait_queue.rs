//! A queue of waiting senders: first in, first out, and each one can leave from any position.
//!
//! A map by ticket would do the same with several times the code, and that once per message type.

use alloc::collections::VecDeque;

/// How many vacant entries are tolerated, in addition to one per waiting sender, before the queue
/// is compacted.
const VACANT_MAX: usize = 16;

/// See the [module](self).
pub(super) struct WaitQueue<T> {
    /// In the order of their tickets, which increase. A sender that has left leaves a vacant entry.
    entries: VecDeque<(u64, Option<T>)>,
    n_waiting: usize,
}

impl<T> WaitQueue<T> {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), n_waiting: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_waiting == 0
    }

    /// Appends; the ticket is greater than all before.
    pub(super) fn push(&mut self, ticket: u64, one: T) {
        debug_assert!(self.entries.back().is_none_or(|(last, _)| *last < ticket));
        self.entries.push_back((ticket, Some(one)));
        self.n_waiting += 1;
    }

    fn at(&self, ticket: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()
    }

    pub(super) fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        let at = self.at(ticket)?;
        self.entries.get_mut(at)?.1.as_mut()
    }

    /// Removes the one with this ticket.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<T> {
        let at = self.at(ticket)?;
        let one = self.entries.get_mut(at)?.1.take()?;
        self.n_waiting -= 1;
        // So each compaction is paid for by as many removals, and an empty queue has no entries.
        if self.n_waiting == 0 || self.entries.len() > 2 * self.n_waiting + VACANT_MAX {
            self.entries.retain(|(_, one)| one.is_some());
        }
        Some(one)
    }

    /// Removes the first waiter.
    pub(super) fn pop(&mut self) -> Option<T> {
        loop {
            if let Some(one) = self.entries.pop_front()?.1 {
                self.n_waiting -= 1;
                return Some(one);
            }
        }
    }

    /// Those that wait, in order, with their tickets.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.entries.iter_mut().filter_map(|(ticket, one)| one.as_mut().map(|one| (*ticket, one)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn line(tickets: core::ops::Range<u64>) -> WaitQueue<u64> {
        let mut line = WaitQueue::new();
        tickets.for_each(|ticket| line.push(ticket, ticket * 10));
        line
    }

    #[test]
    fn who_leaves_from_the_middle_is_passed_over() {
        let mut line = line(1..6);
        assert_eq!(line.remove(3), Some(30));
        assert_eq!((line.remove(3), line.get_mut(3)), (None, None));
        assert_eq!(line.remove(1), Some(10));
        assert_eq!((line.pop(), line.pop()), (Some(20), Some(40)));
        assert!(!line.is_empty());
        assert_eq!((line.pop(), line.pop()), (Some(50), None));
        assert!(line.is_empty());
    }

    #[test]
    fn places_of_those_who_have_left_do_not_pile_up_behind_one_who_stays() {
        let mut line = line(0..1);
        for ticket in 1..10_000 {
            line.push(ticket, 0);
            assert_eq!(line.remove(ticket), Some(0));
            assert!(line.entries.len() <= VACANT_MAX + 3, "{} entries", line.entries.len());
        }
        assert_eq!(line.remove(0), Some(0));
        assert!(line.is_empty() && line.entries.is_empty());
    }

    #[test]
    fn tickets_find_their_owners_after_the_others_have_moved_up() {
        let mut line = line(0..100);
        for ticket in (0..100).filter(|ticket| ticket % 10 != 0) {
            assert_eq!(line.remove(ticket), Some(ticket * 10));
        }
        assert_eq!(line.get_mut(70), Some(&mut 700));
        let left: Vec<_> = line.iter_mut().map(|(ticket, _)| ticket).collect();
        assert_eq!(left, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    }
}
