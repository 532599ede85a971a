//! Arming and disarming the timers of an engine: in which shard, and who is told.

use clockjack_time::{Tick, TimerId};

use crate::{
    engine::Engine,
    fire::Fire,
    shards::{Armed, Cancelled, Refused},
    worker::Local,
};

impl Engine {
    /// Arms a timer in the shard of this worker, or in any if this thread is none.
    #[inline]
    pub(crate) fn arm(&self, deadline: Tick, fire: Fire) -> Result<TimerId, Refused<Fire>> {
        let local = self.local();
        let shard = match local {
            Some(local) => local.home(),
            None => self.any_shard(),
        };
        let armed = match self.shards.arm(shard, deadline, fire) {
            Err(refused) if refused.is_busy() => self.arm_elsewhere(shard, deadline, refused)?,
            armed => armed?,
        };
        if armed.is_earliest {
            self.tell_keeper(local, armed.keeper, deadline);
        }
        self.clear_out(armed.id.shard());
        Ok(armed.id)
    }

    /// Drops what timers held that were cancelled while somebody had their shard: wakers of users,
    /// each guarded. By whoever has touched the shard, when it is open again.
    #[inline]
    pub(crate) fn clear_out(&self, shard: u32) {
        if self.shards.has_garbage(shard) {
            self.clear_out_some(shard);
        }
    }

    #[cold]
    fn clear_out_some(&self, shard: u32) {
        for fire in self.shards.take_garbage(shard) {
            fire.dropped(self);
        }
    }

    /// Arms in another shard than the one whose holder the system has stopped, with its inbox full:
    /// any shard fires it in time.
    #[cold]
    fn arm_elsewhere(
        &self,
        busy: u32,
        deadline: Tick,
        mut refused: Refused<Fire>,
    ) -> Result<Armed, Refused<Fire>> {
        for (shard, _, _) in self.shards.wakes().filter(|(shard, _, _)| *shard != busy) {
            if !refused.is_busy() {
                break;
            }
            let Some(fire) = refused.into_inner() else { unreachable!("only a close keeps it") };
            match self.shards.arm(shard, deadline, fire) {
                Ok(armed) => return Ok(armed),
                Err(again) => refused = again,
            }
        }
        Err(refused)
    }

    /// A timer is due before all others of its shard: who sleeps for that must know.
    #[cold]
    fn tell_keeper(&self, local: Option<&Local>, keeper: Option<usize>, deadline: Tick) {
        if let Some(keeper) = keeper
            && local.is_none_or(|local| local.seat() != keeper)
        {
            self.wake_seat(keeper);
        }
        if self.metronome.note_arm(deadline.get()) {
            self.host().unpark_metronome();
        }
    }

    /// A shard for a thread that is no worker: that of the first seat that has one.
    fn any_shard(&self) -> u32 {
        (0..self.seats.len().max(1)).find_map(|seat| self.shards.home(seat)).unwrap_or(0)
    }

    /// Disarms a timer; true if it will never fire.
    pub(crate) fn disarm(&self, id: TimerId) -> bool {
        let cancelled = self.shards.cancel_take(id);
        self.clear_out(id.shard());
        match cancelled {
            Cancelled::Won(value) => {
                if let Some(fire) = value {
                    fire.dropped(self);
                }
                true
            }
            Cancelled::Lost => false,
        }
    }

    /// Disarms a timer whose process nobody counts on it any more, at the next occasion: until then
    /// it may fire, and wake a process for nothing. Its value is a [`Fire::Process`].
    ///
    /// Most sleeps end so, because what they were the limit for was done in time.
    #[inline]
    pub(crate) fn forget(&self, id: TimerId) {
        match self.local() {
            Some(local) if local.home() == id.shard() => local.forget(self, id),
            _ => _ = self.disarm(id),
        }
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.shards.is_armed(id)
    }
}
