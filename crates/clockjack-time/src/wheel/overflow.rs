//! The overflow: an indexed 4-ary heap of what lies beyond the wheel's range.
//!
//! Ordered by deadline, then by registration, so that equal deadlines keep their order. While an
//! entry is here, its `next` link is [`IN_OVERFLOW`] and its `prev` link is its position in the
//! heap: a cancel finds it at once and takes it out in O(log n); nothing stays behind.

use super::store::{Columns, Far};

/// What stands in the `next` link of an entry of the overflow.
pub(crate) const IN_OVERFLOW: u32 = u32::MAX;

/// Children of a node: four share a cache line and a half, and halve the depth of a binary heap.
const ARITY: usize = 4;

/// The entry that is due first.
#[inline(always)]
pub(crate) fn first<T, S: Columns<T>>(store: &S) -> Option<Far> {
    store.far().first().copied()
}

/// Adds an entry. False if the overflow is full; then nothing has changed.
pub(crate) fn push<T, S: Columns<T>>(store: &mut S, entry: Far) -> bool {
    if !store.far_push(entry) {
        return false;
    }
    store.set_next(entry.index, IN_OVERFLOW);
    let last = store.far().len() - 1;
    sift_up(store, last);
    true
}

/// Takes out the entry that is due first.
pub(crate) fn pop<T, S: Columns<T>>(store: &mut S) -> Option<Far> {
    let entry = first(store)?;
    remove_at(store, 0);
    Some(entry)
}

/// Takes out the entry of a timer whose `next` link says that it is here.
pub(crate) fn remove<T, S: Columns<T>>(store: &mut S, index: u32) {
    debug_assert_eq!(store.next(index), IN_OVERFLOW, "timer {index} is not in the overflow");
    let position = store.prev(index) as usize;
    remove_at(store, position);
}

fn remove_at<T, S: Columns<T>>(store: &mut S, position: usize) {
    let Some(last) = store.far_pop() else { return };
    if position == store.far().len() {
        return;
    }
    let gone = store.far()[position];
    store.far_mut()[position] = last;
    if last < gone { sift_up(store, position) } else { sift_down(store, position) }
}

fn sift_up<T, S: Columns<T>>(store: &mut S, mut position: usize) {
    let entry = store.far()[position];
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
        let last_child = (first_child + ARITY).min(far.len());
        if first_child >= last_child {
            break;
        }
        let mut least = first_child;
        for child in first_child + 1..last_child {
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

#[expect(clippy::cast_possible_truncation, reason = "a store has fewer than 2^32 slots")]
fn seat<T, S: Columns<T>>(store: &mut S, position: usize, entry: Far) {
    store.far_mut()[position] = entry;
    store.set_prev(entry.index, position as u32);
}
