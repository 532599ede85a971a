//! What tests of the protocol look at and users have no business with.

use crate::Scheduler;

/// What a scheduler holds at a moment when nobody else does anything with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// JobSlots that are neither free nor in stock: of jobs, of handles, and lost ones.
    pub slots: usize,
    /// JobSlots that there is room for.
    pub room: usize,
    /// Jobs that were paid for from the quota, and permits that a shard keeps.
    pub permits: usize,
    /// What is listed to be run, told or dropped, and was not yet.
    pub due: usize,
    /// Notes that nobody has taken up.
    pub remote_ops: usize,
}

/// Takes up what remote_ops there are, and looks.
#[must_use]
pub fn held(scheduler: &Scheduler) -> Held {
    let inner = scheduler.inner();
    let permits = inner.shared.tables.quota.granted();
    let mut held = Held { slots: 0, room: 0, permits, due: 0, remote_ops: 0 };
    for shard in &inner.shards {
        let jobs = &shard.jobs;
        let mut guard = jobs.lock(&inner.shared.relax());
        let table = &guard.locked().table;
        held.slots += table.slots_used();
        held.room += table.slots_room();
        held.due += table.n_due();
        drop(guard);
        held.slots -= jobs.n_reserved_slots();
        held.remote_ops += usize::from(jobs.has_remote_ops());
    }
    held
}

/// Calls `f` while another has the guard of the first shard, as it seems to `f`: what it schedules
/// and cancels goes by remote_ops. More posts than the stock has slots for would wait for ever.
pub fn while_locked<R>(scheduler: &Scheduler, f: impl FnOnce() -> R) -> R {
    let inner = scheduler.inner();
    let guard = inner.shards[0].jobs.lock(&inner.shared.relax());
    let result = f();
    drop(guard);
    inner.shards[0].flush();
    result
}
