//! The overflow: an indexed 4-ary heap of what lies beyond the wheel's range.
//!
//! Ordered by deadline, then by registration, so that equal deadlines keep their order. A timer's
//! place is its position in the heap: a cancel finds it at once and takes it out in O(log n);
//! nothing stays behind.

use super::store::{Columns, Far, Place};

/// Children of a node: a shallower tree than a binary one, and siblings lie side by side.
const ARITY: usize = 4;

/// The entry that is due first.
#[inline(always)]
pub(crate) fn first<T, S: Columns<T>>(store: &S) -> Option<Far> {
    store.far().first().copied()
}

/// Takes out the entry that is due first.
pub(crate) fn pop<T, S: Columns<T>>(store: &mut S) -> Option<Far> {
    let entry = first(store)?;
    remove(store, 0);
    Some(entry)
}

/// Takes out the entry at a position.
pub(crate) fn remove<T, S: Columns<T>>(store: &mut S, position: usize) {
    let Some(last) = store.far_pop() else { return };
    if position == store.far().len() {
        return;
    }
    let gone = store.far()[position];
    store.far_mut()[position] = last;
    if last < gone { sift_up(store, position) } else { sift_down(store, position) }
}

/// Brings the entry that was appended last to where it belongs. Its timer is not vacant.
pub(crate) fn settle_last<T, S: Columns<T>>(store: &mut S) {
    let last = store.far().len() - 1;
    sift_up(store, last);
}

#[inline]
fn sift_up<T, S: Columns<T>>(store: &mut S, position: usize) {
    let far = store.far();
    let entry = far[position];
    // Mostly it is the latest, and stays where it is.
    if position == 0 || far[(position - 1) / ARITY] < entry {
        store.set_place(entry.timer, place_at(position));
        return;
    }
    sift_far_up(store, position, entry);
}

fn sift_far_up<T, S: Columns<T>>(store: &mut S, mut position: usize, entry: Far) {
    while position > 0 {
        let parent = (position - 1) / ARITY;
        let above = store.far()[parent];
        if above < entry {
            break;
        }
        seat(store, position, above);
        position = parent;
    }
    seat(store, position, entry);
}

fn sift_down<T, S: Columns<T>>(store: &mut S, mut position: usize) {
    let entry = store.far()[position];
    loop {
        let first_child = position * ARITY + 1;
        let far = store.far();
        let children_end = (first_child + ARITY).min(far.len());
        if first_child >= children_end {
            break;
        }
        let mut least = first_child;
        for child in first_child + 1..children_end {
            if far[child] < far[least] {
                least = child;
            }
        }
        let below = far[least];
        if entry < below {
            break;
        }
        seat(store, position, below);
        position = least;
    }
    seat(store, position, entry);
}

fn seat<T, S: Columns<T>>(store: &mut S, position: usize, entry: Far) {
    store.far_mut()[position] = entry;
    store.set_place(entry.timer, place_at(position));
}

#[expect(clippy::cast_possible_truncation, reason = "a store has fewer than 2^30 slots")]
fn place_at(position: usize) -> Place {
    Place::in_overflow(position as u32)
}
