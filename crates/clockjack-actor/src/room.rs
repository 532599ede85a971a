//! Memory for what is behind a [spin lock](SpinLock).
//!
//! The holder of a spin lock does not allocate or free memory: a thread of a real-time class may
//! wait for the lock, and an allocator may take long. So a thread that inserts an element finds out
//! under the lock what is [missing](Grows::missing), allocates it while nobody holds the lock,
//! [adds](Grows::add_room) it under the lock, and tries again: [`with_room`] does all of that. What
//! is removed is moved out of the lock, and dropped there.
//!
//! [`Segments`] and [`HashSlab`] take constant time for all of it, however many elements there are.
//! A vector moves its elements when it grows, so it is for lists that have few.

mod hash_slab;
mod segments;

use alloc::{collections::VecDeque, vec::Vec};

use clockjack_sync::spin_lock::SpinLock;

#[cfg(test)]
pub(crate) use self::hash_slab::KEPT_MAX;
pub(crate) use self::{
    hash_slab::{HashSlab, NONE, hash_of, hash_of_name, hash_of_pid},
    segments::Segments,
};

/// A collection that can be behind a spin lock, because its memory comes from the caller.
pub(crate) trait Grows {
    /// What is needed before another element can be added.
    type Missing;
    /// Memory for another element.
    type Room;

    /// What is missing for another element; none if there is room.
    fn missing(&self) -> Option<Self::Missing>;

    /// Allocates what is missing. Not under the lock.
    fn allocate(missing: Self::Missing) -> Self::Room;

    /// Takes what is still missing: another thread may have been faster. Returns the rest, which
    /// the caller drops when it no longer holds the lock.
    #[must_use = "it is dropped when the lock is no longer held"]
    fn add_room(&mut self, room: Self::Room) -> Self::Room;

    /// Takes what is missing from the room of the caller. Returns what is missing then.
    fn grow(&mut self, room: &mut Option<Self::Room>) -> Option<Self::Missing> {
        *room = room.take().map(|room| self.add_room(room));
        self.missing()
    }
}

/// Calls `insert` under the lock, as soon as the collection has room for another element.
pub(crate) fn with_room<L, C: Grows, R>(
    lock: &SpinLock<L>,
    collection: impl Fn(&mut L) -> &mut C,
    insert: impl FnOnce(&mut L) -> R,
) -> R {
    let (mut insert, mut room) = (Some(insert), None);
    loop {
        let attempt = lock.with(|value| match collection(value).grow(&mut room) {
            None => Ok(insert.take().map(|insert| insert(value))),
            Some(missing) => Err(missing),
        });
        match attempt {
            Ok(result) => return result.expect("the first call ends the loop"),
            // The rest of the room before, if there is one, is dropped here.
            Err(missing) => room = Some(C::allocate(missing)),
        }
    }
}

/// The capacity of a vector that has been empty.
const CAPACITY_MIN: usize = 4;

impl<T> Grows for Vec<T> {
    type Missing = usize;
    type Room = Self;

    fn missing(&self) -> Option<usize> {
        (self.len() == self.capacity()).then_some((self.len() * 2).max(CAPACITY_MIN))
    }

    fn allocate(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }

    fn add_room(&mut self, mut room: Self) -> Self {
        if room.capacity() > self.capacity() {
            room.append(self);
            core::mem::swap(&mut room, self);
        }
        room
    }
}

impl<T> Grows for VecDeque<T> {
    type Missing = usize;
    type Room = Self;

    fn missing(&self) -> Option<usize> {
        (self.len() == self.capacity()).then_some((self.len() * 2).max(CAPACITY_MIN))
    }

    fn allocate(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }

    fn add_room(&mut self, mut room: Self) -> Self {
        if room.capacity() > self.capacity() {
            room.append(self);
            core::mem::swap(&mut room, self);
        }
        room
    }
}
