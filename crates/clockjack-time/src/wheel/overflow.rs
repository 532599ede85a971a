//! The overflow: an indexed 4-ary heap of the timers beyond the wheel's range.
//!
//! Heaps with more than two children per node are from Johnson ("Priority queues with update and
//! finding minimum spanning trees", 1975).
//!
//! Ordered by deadline, then by registration, so that equal deadlines keep their order. The
//! location of a timer is its position in the heap: a cancel finds it at once and takes it out in
//! O(log n); nothing stays behind.

use super::store::{Columns, Location, OverflowEntry};

/// Children of a node: a shallower tree than a binary one, and siblings are neighbours in memory.
const ARITY: usize = 4;

/// The entry that is due first.
#[inline(always)]
pub(crate) fn first<T, S: Columns<T>>(store: &S) -> Option<OverflowEntry> {
    store.overflow().first().copied()
}

/// Takes out the entry that is due first.
pub(crate) fn pop<T, S: Columns<T>>(store: &mut S) -> Option<OverflowEntry> {
    let entry = first(store)?;
    remove(store, 0);
    Some(entry)
}

/// Takes out the entry at a position.
pub(crate) fn remove<T, S: Columns<T>>(store: &mut S, position: usize) {
    let Some(last) = store.overflow_pop() else { return };
    if position == store.overflow().len() {
        return;
    }
    let gone = store.overflow()[position];
    store.overflow_mut()[position] = last;
    if last < gone { sift_up(store, position) } else { sift_down(store, position) }
}

/// Moves the entry that was appended last to its position. Its timer is not vacant.
pub(crate) fn sift_up_last<T, S: Columns<T>>(store: &mut S) {
    let last = store.overflow().len() - 1;
    sift_up(store, last);
}

#[inline]
fn sift_up<T, S: Columns<T>>(store: &mut S, position: usize) {
    let overflow = store.overflow();
    let entry = overflow[position];
    // Usually it is the latest deadline, and stays where it is.
    if position == 0 || overflow[(position - 1) / ARITY] < entry {
        store.set_location(entry.timer, location_at(position));
        return;
    }
    sift_up_slow(store, position, entry);
}

fn sift_up_slow<T, S: Columns<T>>(store: &mut S, mut position: usize, entry: OverflowEntry) {
    while position > 0 {
        let parent = (position - 1) / ARITY;
        let above = store.overflow()[parent];
        if above < entry {
            break;
        }
        put_at(store, position, above);
        position = parent;
    }
    put_at(store, position, entry);
}

fn sift_down<T, S: Columns<T>>(store: &mut S, mut position: usize) {
    let entry = store.overflow()[position];
    loop {
        let first_child = position * ARITY + 1;
        let overflow = store.overflow();
        let children_end = (first_child + ARITY).min(overflow.len());
        if first_child >= children_end {
            break;
        }
        let mut least = first_child;
        for child in first_child + 1..children_end {
            if overflow[child] < overflow[least] {
                least = child;
            }
        }
        let below = overflow[least];
        if entry < below {
            break;
        }
        put_at(store, position, below);
        position = least;
    }
    put_at(store, position, entry);
}

fn put_at<T, S: Columns<T>>(store: &mut S, position: usize, entry: OverflowEntry) {
    store.overflow_mut()[position] = entry;
    store.set_location(entry.timer, location_at(position));
}

#[expect(clippy::cast_possible_truncation, reason = "a store has fewer than 2^30 slots")]
fn location_at(position: usize) -> Location {
    Location::in_overflow(position as u32)
}
