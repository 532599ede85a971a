//! Arming and cancelling the timers of an executor: in which shard, and who is woken.

use clockjack_time::{Tick, TimerId};

use crate::{
    executor::ExecutorShared,
    shards::{ArmError, Armed, Cancelled, EarlierSource},
    timer::action::TimerAction,
    worker::WorkerLocal,
};

impl ExecutorShared {
    /// Arms a timer in this worker's local shard, or in any shard if this thread is not a worker.
    #[inline]
    pub(crate) fn arm(
        &self,
        deadline: Tick,
        action: TimerAction,
    ) -> Result<TimerId, ArmError<TimerAction>> {
        let local = self.worker_local();
        let shard = match local {
            Some(local) => local.local_shard(),
            None => self.any_shard(),
        };
        let armed = match self.shards.arm(shard, deadline, action) {
            Err(refused) if refused.is_busy() => self.arm_elsewhere(shard, deadline, refused)?,
            armed => armed?,
        };
        if armed.is_earliest {
            self.notify_assigned_worker(local, armed.worker, deadline);
        }
        self.drop_stale_values(armed.id.shard());
        Ok(armed.id)
    }

    /// Drops the values of timers that were cancelled while another thread held their shard: wakers
    /// of users, each under `catch_unwind`. Called by a thread that has touched the shard, after it
    /// has released the guard.
    #[inline]
    pub(crate) fn drop_stale_values(&self, shard: u32) {
        if self.shards.has_stale_values(shard) {
            self.drop_stale_values_slow(shard);
        }
    }

    #[cold]
    fn drop_stale_values_slow(&self, shard: u32) {
        for action in self.shards.take_stale_values(shard) {
            action.dropped(self);
        }
    }

    /// Arms the timer in another shard, if the operating system has suspended the holder of the
    /// guard and the inbox is full: every shard fires its timers in time.
    #[cold]
    fn arm_elsewhere(
        &self,
        busy: u32,
        deadline: Tick,
        mut refused: ArmError<TimerAction>,
    ) -> Result<Armed, ArmError<TimerAction>> {
        for (shard, _, _) in self.shards.wakes().filter(|(shard, _, _)| *shard != busy) {
            if !refused.is_busy() {
                break;
            }
            let Some(action) = refused.into_inner() else { unreachable!("only a close keeps it") };
            match self.shards.arm(shard, deadline, action) {
                Ok(armed) => return Ok(armed),
                Err(again) => refused = again,
            }
        }
        Err(refused)
    }

    /// A shard is due earlier than before: wakes the assigned worker and the watchdog,
    /// if they sleep for longer.
    #[cold]
    fn notify_assigned_worker(
        &self,
        local: Option<&WorkerLocal>,
        worker: Option<usize>,
        deadline: Tick,
    ) {
        if let Some(worker) = worker
            && local.is_none_or(|local| local.index() != worker)
        {
            self.wake_worker(worker);
        }
        if self.watchdog.notify_armed(deadline.get()) {
            self.toolbox().unpark_watchdog();
        }
    }

    /// A shard of the source is due earlier than before.
    pub(crate) fn notify_source(&self, earlier: EarlierSource) {
        self.notify_assigned_worker(self.worker_local(), earlier.worker, earlier.at);
    }

    /// A shard for a thread that is not a worker: that of the first worker that has one.
    fn any_shard(&self) -> u32 {
        (0..self.workers.len().max(1))
            .find_map(|worker| self.shards.local_shard(worker))
            .unwrap_or(0)
    }

    /// Cancels a timer; true if it will never fire.
    pub(crate) fn cancel_timer(&self, id: TimerId) -> bool {
        let cancelled = self.shards.cancel_take(id);
        self.drop_stale_values(id.shard());
        match cancelled {
            Cancelled::Won(value) => {
                if let Some(action) = value {
                    action.dropped(self);
                }
                true
            }
            Cancelled::Lost => false,
        }
    }

    /// Cancels a timer that nobody waits for any more, at the next opportunity: until then it may
    /// fire, and cause a spurious wake-up. Its value is a [`TimerAction::WakeTask`].
    ///
    /// Most sleeps end like this: they are time-outs of operations that complete in time.
    #[inline]
    pub(crate) fn lazy_cancel(&self, id: TimerId) {
        match self.worker_local() {
            Some(local) if local.local_shard() == id.shard() => local.lazy_cancel(self, id),
            _ => _ = self.cancel_timer(id),
        }
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.shards.is_armed(id)
    }
}
