//! Closing the table: one flag, and every timer returned once.

use alloc::vec::Vec;

use clockjack_sync::primitive::atomic::{Ordering, fence};

use super::{ShardEntry, Shards};

/// The result of a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How many timers this call returned.
    pub drained: usize,
    /// How many shards were left to the threads that fire their timers at this moment: the poll of
    /// each reports that the table [is closed](super::Polled::is_closed), and its caller closes
    /// again.
    pub left: usize,
}

impl<T: Send> Shards<T> {
    /// Refuses every timer from now on, and passes the armed ones to `drained`, in order per shard.
    ///
    /// From the moment of closing no timer is armed, and no poll begins to fire. Any thread may
    /// call this again; each timer is returned once. When the last call has returned, and no poll
    /// has [reported](super::Polled::is_closed) the close to a caller that has yet to close again,
    /// no timer is left (rules 8 and 9).
    ///
    /// `drained` is called while no guard is held. `yield_now` lets other threads run, while one of
    /// them holds a guard.
    pub fn close(&self, mut drained: impl FnMut(T), mut yield_now: impl FnMut()) -> Closed {
        // AcqRel: a swap, so that the write has one place in the modification order; the guards and
        // the fence do the rest (rule 8).
        self.closed.swap(true, Ordering::AcqRel);
        // Pairs with the fences of the threads that arm through an inbox, of those that create a
        // shard, and of those that fire timers.
        fence(Ordering::SeqCst);
        let mut closed = Closed { drained: 0, left: 0 };
        for (_, entry) in self.table.iter() {
            let mut values = Vec::new();
            while !sweep(entry, &mut values) {
                // Relaxed: behind the fence; rule 9.
                if entry.is_firing.load(Ordering::Relaxed) {
                    closed.left += 1;
                    break;
                }
                yield_now();
            }
            closed.drained += values.len();
            values.into_iter().for_each(&mut drained);
        }
        closed
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the swap, so that the caller sees what happened before the close.
        self.closed.load(Ordering::Acquire)
    }
}

/// Takes all timers out of a shard; false if some are left, or if another thread holds the shard.
fn sweep<T>(entry: &ShardEntry<T>, values: &mut Vec<T>) -> bool {
    let Some(mut guard) = entry.shard.try_lock() else { return false };
    guard.drain(|value| values.push(value));
    drop(guard);
    // A timer behind an inbox cell that is not filled yet still counts in `next_wake`.
    entry.shard.next_wake().is_none()
}
