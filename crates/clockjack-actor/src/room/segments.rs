//! An array that grows without moving its elements: segments, each twice as long as the one before.
//!
//! The layout is that of the resizable arrays of Brodnik et al. ("Resizable arrays in optimal time
//! and space", 1999) in its simplest form. A vector that grows moves all of its elements; here each
//! operation takes constant time.

use alloc::vec::Vec;

use super::Grows;

/// The length of the first segment, a power of two.
const FIRST_LEN: usize = 4;
/// Places for segments in the first directory.
const FIRST_DIRECTORY: usize = 2;

/// See the [module](self).
pub(crate) struct Segments<T> {
    /// Segment `k` has room for `FIRST_LEN << k` elements. There are at most as many segments as an
    /// address has bits, so a longer directory is made in constant time, too.
    directory: Vec<Vec<T>>,
    len: usize,
}

/// What an array needs before it can take another element: capacities of these lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    segment: usize,
    directory: usize,
}

/// Memory for an array that is full.
pub(crate) struct Room<T> {
    segment: Vec<T>,
    directory: Vec<Vec<T>>,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Grows for Segments<T> {
    type Missing = Missing;
    type Room = Room<T>;

    fn missing(&self) -> Option<Missing> {
        let (segment, _) = Self::place(self.len);
        if segment < self.directory.len() {
            return None;
        }
        let is_full = self.directory.len() == self.directory.capacity();
        let directory = if is_full { (segment * 2).max(FIRST_DIRECTORY) } else { 0 };
        Some(Missing { segment: FIRST_LEN << segment, directory })
    }

    fn allocate(missing: Missing) -> Room<T> {
        let Missing { segment, directory } = missing;
        Room { segment: Vec::with_capacity(segment), directory: Vec::with_capacity(directory) }
    }

    fn add_room(&mut self, mut room: Room<T>) -> Room<T> {
        let (segment, _) = Self::place(self.len);
        if segment < self.directory.len() || room.segment.capacity() < FIRST_LEN << segment {
            // Another thread has added a segment since the need was read.
            return room;
        }
        if self.directory.len() == self.directory.capacity() {
            if room.directory.capacity() <= self.directory.len() {
                return room;
            }
            room.directory.append(&mut self.directory);
            core::mem::swap(&mut room.directory, &mut self.directory);
        }
        self.directory.push(core::mem::take(&mut room.segment));
        room
    }
}

impl<T> Segments<T> {
    pub(crate) const fn new() -> Self {
        Self { directory: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The segment of an element, and its place there.
    fn place(index: usize) -> (usize, usize) {
        // The segments before segment k have FIRST_LEN * (2^k - 1) elements.
        let number = index / FIRST_LEN + 1;
        let segment = number.ilog2();
        (segment as usize, index - FIRST_LEN * ((1 << segment) - 1))
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (segment, at) = Self::place(index);
        self.directory.get(segment)?.get(at)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (segment, at) = Self::place(index);
        self.directory.get_mut(segment)?.get_mut(at)
    }

    /// Appends an element, and returns its index. There must be [room](Grows::missing).
    pub(crate) fn push(&mut self, element: T) -> usize {
        let index = self.len;
        let (segment, _) = Self::place(index);
        match self.directory.get_mut(segment) {
            Some(segment) => segment.push(element),
            None => panic!("no room was added for element {index}"),
        }
        self.len += 1;
        index
    }

    /// Removes the last element.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (segment, _) = Self::place(self.len.checked_sub(1)?);
        let last = self.directory.get_mut(segment)?.pop()?;
        self.len -= 1;
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_addresses_while_the_array_grows() {
        let mut array = Segments::new();
        let mut addresses = Vec::new();
        for number in 0..1_000_usize {
            if let Some(missing) = array.missing() {
                let rest = array.add_room(Segments::<_>::allocate(missing));
                assert_eq!(rest.segment.capacity(), 0, "all of the room was taken");
            }
            assert_eq!(array.missing(), None);
            assert_eq!(array.push(number), number);
            addresses.push(core::ptr::from_ref(array.get(number).expect("it was pushed")));
        }
        for (number, address) in addresses.into_iter().enumerate() {
            let element = array.get(number).expect("it was pushed");
            assert_eq!((*element, core::ptr::from_ref(element)), (number, address));
        }
        assert_eq!((array.len(), array.get(1_000)), (1_000, None));
    }

    #[test]
    fn a_stack_that_shrinks_and_grows_again_needs_no_memory() {
        let mut array = Segments::new();
        for round in 0..3 {
            for number in 0..100 {
                if let Some(missing) = array.missing() {
                    assert_eq!(round, 0, "the memory is there");
                    let _ = array.add_room(Segments::allocate(missing));
                }
                array.push(number);
            }
            (0..100).rev().for_each(|number| assert_eq!(array.pop(), Some(number)));
            assert_eq!((array.pop(), array.len(), array.get(0)), (None, 0, None));
        }
    }

    #[test]
    fn room_that_another_thread_was_faster_to_add_is_returned() {
        let mut array = Segments::<u8>::new();
        let missing = array.missing().expect("it is empty");
        let _ = array.add_room(Segments::<_>::allocate(missing));
        let rest = array.add_room(Segments::<_>::allocate(missing));
        assert_eq!(rest.segment.capacity(), FIRST_LEN);
        (0..FIRST_LEN).for_each(|_| _ = array.push(0));
        // The second segment is longer than the room that was allocated for the first one.
        let rest = array.add_room(rest);
        assert_eq!(rest.segment.capacity(), FIRST_LEN);
        assert_ne!(array.missing(), None);
    }
}
