//! The end of a shard: what was armed is handed out, and nothing is armed any more (rules 9 to 11
//! of the [module above](super)).

use alloc::vec::Vec;

use clockjack_sync::{index_stack::NIL, mutant};

use super::{Inbox, Shard, ShardGuard};

/// What [`Shard::close`] has come to. From either on, nothing can be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a shard that is busy must be closed once more"]
pub enum Closed {
    /// Nothing is left in the shard, and nothing will come.
    Done,
    /// Another thread is in the middle of a call: it holds the lease, or it posts or cancels a
    /// timer. What it leaves is handed out by the next [`Shard::close`].
    Busy,
}

impl<T> Shard<T> {
    /// Refuses all timers from now on, and hands out the values of those that are armed, in no
    /// order, with the lease open. Never waits.
    ///
    /// A timer that was accepted fires, is cancelled or is handed out: one of them, once. If this
    /// says [`Closed::Busy`], call it again when others have had time to run: each call hands out
    /// what it finds. Any thread may call it, also several.
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
    /// # Ok::<(), clockjack_time::Full<&str>>(())
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

    /// Whether [`close`](Self::close) was called: what is armed from now on is refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }
}

impl<T> ShardGuard<'_, T> {
    /// Rule 10.
    fn empty(&mut self, claimed: u32, values: &mut Vec<T>) -> Closed {
        let shard = self.shard;
        self.is_next_wake_dirty = true;
        self.drain_inbox();
        loop {
            self.free_returned();
            // Ends: nothing is armed any more, so each slot is returned once at the most.
            if self.core().returned == NIL && shard.returns.is_empty() {
                break;
            }
        }
        let core = self.core_mut();
        let n_left = core.wheel.drain_into(values);
        core.wheel.close();
        let is_emptied = Inbox::<T>::is_emptied(&core.cursor, claimed);
        if n_left == 0 && (is_emptied || mutant!("shard_close_unfilled_ignored")) {
            Closed::Done
        } else {
            Closed::Busy
        }
    }
}
