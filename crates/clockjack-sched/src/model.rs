//! Internals for the tests of the protocol. Not for users.

use crate::Scheduler;

/// The resources that a scheduler holds while no other thread uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Slots that are neither free nor reserved: of jobs, of handles, and leaked ones.
    pub slots: usize,
    /// Allocated slots.
    pub room: usize,
    /// Permits of live jobs, and permits that a shard caches.
    pub permits: usize,
    /// Jobs in the due lists: to be run, notified or dropped.
    pub due: usize,
    /// Shards with remote operations that were not applied.
    pub remote_ops: usize,
}

/// Applies all remote operations, and counts.
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

/// Calls `f` while the guard of the first shard is held, so that `f` schedules and cancels by
/// remote operations. Scheduling more jobs than there are reserved slots would wait forever.
pub fn while_locked<R>(scheduler: &Scheduler, f: impl FnOnce() -> R) -> R {
    let inner = scheduler.inner();
    let guard = inner.shards[0].jobs.lock(&inner.shared.relax());
    let result = f();
    drop(guard);
    inner.shards[0].flush();
    result
}
