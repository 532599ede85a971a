//! What tests of the protocol look at and users have no business with.

use crate::Scheduler;

/// What a scheduler holds at a moment when nobody else does anything with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Slots that are neither free nor in stock: of jobs, of handles, and lost ones.
    pub slots: usize,
    /// Slots that there is room for.
    pub room: usize,
    /// Jobs that were paid for from the quota, and credits that a shard keeps.
    pub credits: usize,
    /// What is listed to be run, told or dropped, and was not yet.
    pub garbage: usize,
    /// Notes that nobody has taken up.
    pub notes: usize,
}

/// Takes up what notes there are, and looks.
#[must_use]
pub fn held(scheduler: &Scheduler) -> Held {
    let inner = scheduler.inner();
    let credits = inner.common.shared.quota.live_at_most();
    let mut held = Held { slots: 0, room: 0, credits, garbage: 0, notes: 0 };
    for station in &inner.stations {
        let jobs = &station.jobs;
        let mut lease = jobs.lease_wait(&inner.common.relax());
        let table = &lease.core().table;
        held.slots += table.slots_used();
        held.room += table.slots_room();
        held.garbage += table.n_due();
        drop(lease);
        held.slots -= jobs.n_stock();
        held.notes += usize::from(jobs.has_notes());
    }
    held
}

/// Calls `f` while another has the lease of the first shard, as it seems to `f`: what it schedules
/// and cancels goes by notes. More posts than the stock has slots for would wait for ever.
pub fn while_leased<R>(scheduler: &Scheduler, f: impl FnOnce() -> R) -> R {
    let inner = scheduler.inner();
    let lease = inner.stations[0].jobs.lease_wait(&inner.common.relax());
    let result = f();
    drop(lease);
    inner.stations[0].settle();
    result
}
