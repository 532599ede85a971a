//! Closing a shard: the armed values are returned, and no timer can be armed any more (rules 9 to
//! 11 of the [module above](super)).

use alloc::vec::Vec;

use clockjack_sync::index_stack::NIL;

use super::{Inbox, Shard, ShardGuard};

/// The result of [`Shard::close`]. After either, no timer can be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a busy shard must be closed again"]
pub enum Closed {
    /// Nothing is left in the shard, and no timer will be added.
    Done,
    /// Another thread is in the middle of a call: it holds the lock, or it inserts or cancels a
    /// timer. The next [`Shard::close`] returns what that thread leaves.
    Busy,
}

impl<T> Shard<T> {
    /// Refuses all timers from now on, and passes the values of the armed timers to `drain`, in no
    /// order, after the unlock. Never waits.
    ///
    /// An accepted timer fires, is cancelled or is passed to `drain`: exactly one of them, once. If
    /// this returns [`Closed::Busy`], call it again when other threads have had time to run: each
    /// call drains what it finds. Any thread may call it, also several threads.
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{Closed, Shard, ShardConfig, Tick};
    ///
    /// let shard = Shard::new(ShardConfig::DEFAULT);
    /// shard.remote_insert(Tick::new(5), "ping")?;
    /// let mut left = Vec::new();
    /// while shard.close(|value| left.push(value)) == Closed::Busy {
    ///     std::thread::yield_now();
    /// }
    /// assert_eq!(left, ["ping"]);
    ///
    /// let refused = shard.remote_insert(Tick::new(5), "pong").unwrap_err();
    /// assert!(refused.is_closed());
    /// assert_eq!(refused.into_inner(), "pong");
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    pub fn close(&self, drain: impl FnMut(T)) -> Closed {
        let claimed = self.inbox.close();
        let Some(mut guard) = self.try_lock_raw() else { return Closed::Busy };
        let mut values = Vec::new();
        let closed = guard.empty(claimed, &mut values);
        drop(guard);
        values.into_iter().for_each(drain);
        closed
    }

    /// Whether [`close`](Self::close) was called: every insert from now on is refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }
}

impl<T> ShardGuard<'_, T> {
    /// Rule 10.
    fn empty(&mut self, claimed: usize, values: &mut Vec<T>) -> Closed {
        let shard = self.shard;
        self.is_next_wake_dirty = true;
        self.drain_inbox();
        loop {
            self.free_returned();
            // The loop ends: no timer is armed any more, so each slot is returned at most once.
            if self.core().returned == NIL && shard.returns.is_empty() {
                break;
            }
        }
        let core = self.core_mut();
        let n_left = core.wheel.drain_into(values);
        core.wheel.close();
        let is_emptied = Inbox::<T>::is_emptied(&core.cursor, claimed);
        if n_left == 0 && is_emptied { Closed::Done } else { Closed::Busy }
    }
}
