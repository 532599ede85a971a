//! Arming and cancelling the timers of an executor: in which shard, and who is woken.

use clockjack_sync::{
    backoff,
    primitive::{IS_MODEL, hint},
};
use clockjack_time::{Tick, TimerId};

use crate::{
    executor::ExecutorShared,
    shards::{ArmError, Armed, Cancelled, EarlierSource},
    timer::action::TimerAction,
    worker::WorkerLocal,
};

/// How often every shard is tried for a thread that must not wait for ever.
const BUSY_ROUNDS_MAX: usize = 1 << 16;

/// How often a thread that cancels tries to get the shard for which it came too late: about a
/// microsecond, longer than another arm or cancel takes.
const FREE_TRIES_MAX: usize = if IS_MODEL { 1 } else { 32 };

impl ExecutorShared {
    /// Arms a timer in this worker's local shard, or in any shard if this thread is not a worker.
    ///
    /// A shard that another thread holds is no reason to refuse a timer: the timer goes into its
    /// inbox, else into another shard, else this thread tries again.
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
            Err(refused) => self.handle_refused(shard, deadline, refused)?,
            Ok(armed) => armed,
        };
        if armed.is_earliest {
            self.notify_assigned_worker(local, armed.worker, deadline);
        }
        self.drop_stale_values(armed.id.shard());
        Ok(armed.id)
    }

    #[cold]
    fn handle_refused(
        &self,
        shard: u32,
        deadline: Tick,
        refused: ArmError<TimerAction>,
    ) -> Result<Armed, ArmError<TimerAction>> {
        self.drop_stale_values(shard);
        if refused.is_busy() { self.arm_elsewhere(deadline, refused) } else { Err(refused) }
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

    /// Arms a timer whose shard another thread holds, with the inbox full: in any other shard,
    /// which fires it as punctually; or in the first that is released. The holder is about to
    /// release its guard, unless the operating system has suspended it, so this thread yields in
    /// between.
    ///
    /// Gives up only where the holder might wait for this thread: see `may_wait`.
    #[cold]
    fn arm_elsewhere(
        &self,
        deadline: Tick,
        mut refused: ArmError<TimerAction>,
    ) -> Result<Armed, ArmError<TimerAction>> {
        let mut rounds = 0;
        while refused.is_busy() {
            for (shard, _, _) in self.shards.wakes() {
                let Some(action) = refused.into_inner() else {
                    unreachable!("only a close keeps the value")
                };
                match self.shards.arm(shard, deadline, action) {
                    Ok(armed) => return Ok(armed),
                    Err(again) => refused = again,
                }
                self.drop_stale_values(shard);
                if !refused.is_busy() {
                    return Err(refused);
                }
            }
            rounds += 1;
            if rounds >= BUSY_ROUNDS_MAX && !self.may_wait() {
                break;
            }
            self.wait_for_holder();
        }
        Err(refused)
    }

    /// Waits a moment for a thread that is about to finish a short operation. A normal thread
    /// yields. A real-time thread would yield to nobody, least of all to the thread that it has
    /// preempted in the middle of the operation, so it blocks: see [`backoff`].
    pub(crate) fn wait_for_holder(&self) {
        self.toolbox().yield_now();
        backoff::wait(backoff::SPINS_MAX);
    }

    /// Whether this thread may wait for the holder of a guard for as long as that takes. Not if it
    /// may be the holder itself: a worker that fires timers, whose guard it holds while a result
    /// that nobody took is dropped, and the one thread of an executor without workers, also while
    /// an interrupt runs on it.
    fn may_wait(&self) -> bool {
        !self.workers.is_empty() && self.worker_local().is_none_or(|local| !local.is_firing())
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

    /// A shard for a thread that is not a worker. Threads are spread over the workers, so that they
    /// do not all wait for one guard.
    fn any_shard(&self) -> u32 {
        let workers = self.workers.len().max(1);
        let first = self.toolbox().thread_number() % workers;
        (first..workers)
            .chain(0..first)
            .find_map(|worker| self.shards.local_shard(worker))
            .unwrap_or(0)
    }

    /// Cancels a timer; true if it will never fire.
    pub(crate) fn cancel_timer(&self, id: TimerId) -> bool {
        match self.cancel_take(id) {
            Cancelled::Won(Some(action)) => action.dropped(self),
            Cancelled::Won(None) => self.request_free(id.shard()),
            Cancelled::Lost => return false,
        }
        true
    }

    fn cancel_take(&self, id: TimerId) -> Cancelled<TimerAction> {
        let cancelled = self.shards.cancel_take(id);
        self.drop_stale_values(id.shard());
        cancelled
    }

    /// A cancelled timer is left in a shard that another thread holds, and with it the waker of a
    /// user. Usually the holder is about to finish, and this thread frees the timer. Else this
    /// thread has the shard polled, since nobody may touch the shard until its next deadline (rule
    /// 17 of [`shards`](crate::shards)).
    #[cold]
    fn request_free(&self, shard: u32) {
        for _ in 0..FREE_TRIES_MAX {
            if self.shards.free_cancelled(shard) {
                return self.drop_stale_values(shard);
            }
            hint::spin_loop();
        }
        self.drop_stale_values(shard);
        let now = self.toolbox().tick_of(self.toolbox().nanos());
        let worker = self.shards.request_poll(shard, now);
        self.notify_assigned_worker(self.worker_local(), worker, now);
    }

    /// Cancels a timer that nobody waits for any more, at the next opportunity: until then it may
    /// fire, and cause a spurious wake-up. Its value is a [`TimerAction::WakeTask`].
    ///
    /// Most sleeps end like this: they are time-outs of operations that complete in time.
    #[inline]
    pub(crate) fn lazy_cancel(&self, id: TimerId) {
        match self.worker_local() {
            Some(local) if local.local_shard() == id.shard() => local.lazy_cancel(self, id),
            // If the timer is left in its shard, it holds nothing of a user.
            _ => _ = self.cancel_take(id),
        }
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.shards.is_armed(id)
    }
}
