//! A queue of waiting senders: first in, first out, and each one can leave from any position.
//!
//! The queue is behind a spin lock, so each operation takes constant time, and its memory comes
//! from the caller ([`room`](crate::room)): the entries are in segments, which do not move when the
//! queue grows, and are linked in the order of their arrival. A *ticket* names an entry by its
//! index and a generation, because entries are used again.

use crate::room::{Grows, NONE, Segments};

/// See the [module](self).
pub(super) struct WaitQueue<T> {
    entries: Segments<Entry<T>>,
    first: u32,
    last: u32,
    /// The first vacant entry; vacant entries are linked by `next`.
    vacant: u32,
    /// How many entries are in the order of arrival.
    n_linked: usize,
}

pub(super) struct Entry<T> {
    /// How often the entry was used.
    generation: u32,
    prev: u32,
    next: u32,
    /// Whether the entry is in the order of arrival.
    is_linked: bool,
    /// None if the entry is vacant.
    value: Option<T>,
}

impl<T> Grows for WaitQueue<T> {
    type Missing = <Segments<Entry<T>> as Grows>::Missing;
    type Room = <Segments<Entry<T>> as Grows>::Room;

    fn missing(&self) -> Option<Self::Missing> {
        if self.vacant == NONE { self.entries.missing() } else { None }
    }

    fn allocate(missing: Self::Missing) -> Self::Room {
        Segments::<Entry<T>>::allocate(missing)
    }

    fn add_room(&mut self, room: Self::Room) -> Self::Room {
        self.entries.add_room(room)
    }
}

/// The name of an entry; never zero.
fn ticket_of(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

impl<T> WaitQueue<T> {
    pub(super) const fn new() -> Self {
        Self { entries: Segments::new(), first: NONE, last: NONE, vacant: NONE, n_linked: 0 }
    }

    /// Whether nobody is in the order of arrival.
    pub(super) fn is_empty(&self) -> bool {
        self.n_linked == 0
    }

    /// Appends, and returns the ticket. There must be [room](Grows::missing).
    pub(super) fn push(&mut self, value: T) -> u64 {
        let index = self.vacant_or_new();
        let prev = core::mem::replace(&mut self.last, index);
        match self.entry(prev) {
            Some(prev) => prev.next = index,
            None => self.first = index,
        }
        self.n_linked += 1;
        let entry = self.entry(index).expect("it is vacant or new");
        entry.generation = entry.generation.wrapping_add(1).max(1);
        (entry.prev, entry.next, entry.is_linked) = (prev, NONE, true);
        entry.value = Some(value);
        ticket_of(index, entry.generation)
    }

    fn vacant_or_new(&mut self) -> u32 {
        let vacant = self.vacant;
        if let Some(entry) = self.entry(vacant) {
            self.vacant = entry.next;
            return vacant;
        }
        let entry = Entry { generation: 0, prev: NONE, next: NONE, is_linked: false, value: None };
        u32::try_from(self.entries.push(entry)).expect("every waiting sender needs more memory")
    }

    fn entry(&mut self, index: u32) -> Option<&mut Entry<T>> {
        self.entries.get_mut(index as usize)
    }

    /// The entry of a ticket; none if it has left.
    fn at(&mut self, ticket: u64) -> Option<(u32, &mut Entry<T>)> {
        let [generation, index] = [ticket >> 32, ticket & u64::from(u32::MAX)];
        let index = u32::try_from(index).ok()?;
        let entry = self.entry(index)?;
        let is_it = u64::from(entry.generation) == generation && entry.value.is_some();
        is_it.then_some((index, entry))
    }

    pub(super) fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        self.at(ticket)?.1.value.as_mut()
    }

    /// Removes the one with this ticket.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<T> {
        let (index, _) = self.at(ticket)?;
        self.unlink(index);
        let vacant = self.vacant;
        let entry = self.entry(index)?;
        entry.next = vacant;
        let value = entry.value.take();
        self.vacant = index;
        value
    }

    fn unlink(&mut self, index: u32) {
        let Some(entry) = self.entry(index) else { return };
        if !core::mem::take(&mut entry.is_linked) {
            return;
        }
        let (prev, next) = (entry.prev, entry.next);
        match self.entry(prev) {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        match self.entry(next) {
            Some(next) => next.prev = prev,
            None => self.last = prev,
        }
        self.n_linked -= 1;
    }

    /// Takes the first waiter out of the order of arrival. It keeps its ticket.
    pub(super) fn unlink_first(&mut self) -> Option<(u64, &mut T)> {
        let index = self.first;
        self.unlink(index);
        let entry = self.entry(index)?;
        let ticket = ticket_of(index, entry.generation);
        entry.value.as_mut().map(|value| (ticket, value))
    }

    /// Removes the first waiter.
    pub(super) fn pop(&mut self) -> Option<T> {
        let index = self.first;
        let ticket = ticket_of(index, self.entry(index)?.generation);
        self.remove(ticket)
    }

    /// Removes one, also one that is not in the order of arrival any more. Afterwards no ticket is
    /// valid.
    pub(super) fn take_any(&mut self) -> Option<T> {
        (self.first, self.last, self.vacant, self.n_linked) = (NONE, NONE, NONE, 0);
        core::iter::from_fn(|| self.entries.pop()).find_map(|entry| entry.value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn push(line: &mut WaitQueue<u64>, value: u64) -> u64 {
        if let Some(missing) = line.missing() {
            let _ = line.add_room(WaitQueue::<u64>::allocate(missing));
        }
        line.push(value)
    }

    fn line(values: core::ops::Range<u64>) -> (WaitQueue<u64>, Vec<u64>) {
        let mut line = WaitQueue::new();
        let tickets = values.map(|value| push(&mut line, value)).collect();
        (line, tickets)
    }

    #[test]
    fn who_leaves_from_the_middle_is_passed_over() {
        let (mut line, tickets) = line(0..5);
        assert_eq!(line.remove(tickets[2]), Some(2));
        assert_eq!((line.remove(tickets[2]), line.get_mut(tickets[2])), (None, None));
        assert_eq!(line.remove(tickets[0]), Some(0));
        assert_eq!((line.pop(), line.pop()), (Some(1), Some(3)));
        assert!(!line.is_empty());
        assert_eq!(line.remove(tickets[4]), Some(4));
        assert_eq!(line.pop(), None);
        assert!(line.is_empty());
        push(&mut line, 5);
        assert_eq!((line.pop(), line.pop()), (Some(5), None));
    }

    #[test]
    fn places_of_those_who_have_left_do_not_pile_up_behind_one_who_stays() {
        let (mut line, first) = line(0..1);
        for value in 1..10_000 {
            let ticket = push(&mut line, value);
            assert_eq!(line.remove(ticket), Some(value));
        }
        assert_eq!(line.entries.len(), 2);
        assert_eq!(line.remove(first[0]), Some(0));
        assert!(line.is_empty());
    }

    #[test]
    fn a_ticket_does_not_name_the_next_one_at_its_place() {
        let (mut line, tickets) = line(0..2);
        assert_eq!(line.pop(), Some(0));
        let next = push(&mut line, 2);
        assert_eq!((line.remove(tickets[0]), line.get_mut(next)), (None, Some(&mut 2)));
        assert_eq!((line.pop(), line.pop()), (Some(1), Some(2)));
    }

    #[test]
    fn entries_stay_at_their_addresses_while_the_line_grows() {
        let (mut line, tickets) = line(0..1);
        let address = core::ptr::from_ref(line.get_mut(tickets[0]).expect("it waits"));
        (1..1_000).for_each(|value| _ = push(&mut line, value));
        assert_eq!(core::ptr::from_ref(line.get_mut(tickets[0]).expect("it waits")), address);
    }

    #[test]
    fn who_is_no_longer_in_the_order_keeps_the_ticket() {
        let (mut line, tickets) = line(0..3);
        assert_eq!(line.unlink_first(), Some((tickets[0], &mut 0)));
        assert_eq!(line.unlink_first(), Some((tickets[1], &mut 1)));
        assert_eq!((line.pop(), line.pop()), (Some(2), None));
        assert!(line.is_empty());
        assert_eq!(line.remove(tickets[0]), Some(0));
        assert_eq!((line.take_any(), line.take_any()), (Some(1), None));
        assert_eq!(line.remove(tickets[1]), None);
    }
}
