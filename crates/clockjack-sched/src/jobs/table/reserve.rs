//! Reserved room: for jobs with a fixed delay that run, and for jobs of the runtime itself (delays
//! of restarts, time-outs, retries).
//!
//! A place in the reserve is room for one timer in the wheel. The unused places are part of
//! `reserved_timers`, so an insert of a user leaves room for them. A job of the runtime takes a
//! place when its timer is inserted and returns it when the timer leaves the wheel. Such a job has
//! no permit of the quota, and no job can evict it, because no class is above its own.
//!
//! In a store of fixed size a handle of a user keeps a slot in use, so slots are reserved too: they
//! are taken at the start, and a freed slot goes to the reserve until it is complete again.

use alloc::vec::Vec;

use clockjack_time::{Storage, Tick, TimerId, TimerPriority, Wheel};

use super::{JobTable, job_data};
use crate::{
    JobId, JobSpec, ScheduleError, ScheduleErrorKind, SchedulerConfig,
    jobs::{
        slots::{Condition, FreeSlots, JobSlots},
        spec::Plan,
    },
};

/// How many timers are examined to find one of a lower class.
const SHED_SCAN_MAX: usize = 256;

/// The unused part of the reserve.
pub(super) struct InternalReserve {
    places: usize,
    /// Slots that no job of a user can take; none if the store grows.
    slots: Vec<u32>,
    slots_max: usize,
}

impl InternalReserve {
    pub(super) fn new<P>(
        config: &SchedulerConfig,
        free: &mut FreeSlots,
        slots: &JobSlots<P>,
    ) -> Self {
        let places = config.internal_reserve;
        let slots_max = if config.is_fixed { places } else { 0 };
        let slots: Vec<_> = (0..slots_max).map_while(|_| free.take(slots)).collect();
        Self { places, slots_max: slots.len(), slots }
    }

    pub(super) const fn has_place(&self) -> bool {
        self.places > 0
    }

    /// Keeps a freed slot if the reserve is not complete.
    #[inline]
    pub(super) fn keep_slot<P>(&mut self, slots: &JobSlots<P>, slot: u32) -> bool {
        if self.slots.len() >= self.slots_max {
            return false;
        }
        slots.get(slot).state.clear();
        self.slots.push(slot);
        true
    }
}

impl<P> JobTable<P> {
    /// Schedules a one-shot of the runtime with a place of the reserve.
    #[cold]
    pub(super) fn schedule_internal<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        job: &JobSpec,
        plan: Plan,
        payload: P,
    ) -> Result<(JobId, TimerId), ScheduleError<P>> {
        let slot = self.internal.slots.pop().or_else(|| self.free.take(&self.slots));
        let Some(slot) = slot else {
            return Err(self.refuse(ScheduleErrorKind::CapacityExceeded, payload));
        };
        let id = JobId { shard: self.shard, slot };
        let Ok(timer) = wheel.insert_with_priority(plan.due, job.policy.priority, id) else {
            self.free_slot(slot);
            return Err(self.refuse(ScheduleErrorKind::CapacityExceeded, payload));
        };
        self.internal.places -= 1;
        self.reserved_timers -= 1;
        let mut data = job_data(job, plan);
        data.timer = Some(timer);
        data.condition = Condition::Internal;
        self.fill_slot(slot, data, payload);
        self.job_state(slot).publish(false, job, false);
        self.count_accepted(slot, plan.at);
        Ok((id, timer))
    }

    /// Whether there is room besides the room that is reserved. If there is none, evicts a timer of
    /// a lower class.
    #[cold]
    pub(super) fn has_unreserved_room<S: Storage<JobId>>(
        &mut self,
        wheel: &mut Wheel<JobId, S>,
        due: Tick,
        class: TimerPriority,
    ) -> bool {
        if wheel.len() + self.reserved_timers < wheel.capacity() {
            return true;
        }
        if wheel.is_overflow_full_for(due) {
            // Only a timer in the overflow can be evicted for this one, which also makes room here.
            return true;
        }
        let is_lower = |lower: &TimerPriority| *lower < class && wheel.len_of(*lower) > 0;
        if !TimerPriority::ALL.iter().any(is_lower) {
            return false;
        }
        let Some(evicted) = wheel.shed(SHED_SCAN_MAX) else { return false };
        self.evict(wheel, evicted.value.slot, evicted.priority);
        true
    }

    /// Releases the room that was reserved for a job without a timer.
    pub(super) fn release_reserved_timer(&mut self, slot: u32) {
        let is_kept = self.data(slot, |data| data.condition == Condition::TimerReserved);
        if is_kept {
            self.data(slot, |data| data.condition = Condition::None);
            self.reserved_timers -= 1;
        }
    }

    /// The timer of a job of the runtime has left the wheel.
    #[cold]
    pub(super) fn return_internal_place(&mut self) {
        self.internal.places += 1;
        self.reserved_timers += 1;
    }
}
