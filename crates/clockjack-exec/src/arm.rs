//! Arming and disarming the timers of an executor: in which shard, and who is told.

use clockjack_time::{Tick, TimerId};

use crate::{
    executor::ExecutorShared,
    shards::{ArmError, Armed, Cancelled},
    timer_action::TimerAction,
    worker::WorkerLocal,
};

impl ExecutorShared {
    /// Arms a timer in the shard of this worker, or in any if this thread is none.
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

    /// Drops what timers held that were cancelled while somebody had their shard: wakers of users,
    /// each guarded. By whoever has touched the shard, when it is open again.
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

    /// Arms in another shard than the one whose holder the system has stopped, with its inbox full:
    /// any shard fires it in time.
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

    /// A timer is due before all others of its shard: who sleeps for that must know.
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

    /// A shard for a thread that is no worker: that of the first worker that has one.
    fn any_shard(&self) -> u32 {
        (0..self.workers.len().max(1))
            .find_map(|worker| self.shards.local_shard(worker))
            .unwrap_or(0)
    }

    /// Disarms a timer; true if it will never action.
    pub(crate) fn disarm(&self, id: TimerId) -> bool {
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

    /// Disarms a timer whose process nobody counts on it any more, at the next occasion: until then
    /// it may action, and wake a process for nothing. Its value is a [`TimerAction::WakeTask`].
    ///
    /// Most sleeps end so, because what they were the limit for was done in time.
    #[inline]
    pub(crate) fn lazy_cancel(&self, id: TimerId) {
        match self.worker_local() {
            Some(local) if local.local_shard() == id.shard() => local.lazy_cancel(self, id),
            _ => _ = self.disarm(id),
        }
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.shards.is_armed(id)
    }
}
