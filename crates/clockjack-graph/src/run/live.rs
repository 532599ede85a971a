//! Where a run stands while it goes on, for who looks now and again.
//!
//! Who looks gets what was last put down, and asks for more; each domain puts it down once, at the
//! end of the epoch in which it sees that it was asked. So nobody waits for anybody, and a run at
//! which nobody looks pays for one look at a flag in an epoch.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    collect::{self, LifecycleCounts},
    domain::Domain,
    epoch::RegionCell,
    metrics::Metrics,
};
use crate::compile::Plan;

/// Where a lane stands while the run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveLane {
    /// Its id.
    pub lane: String,
    /// Epochs of its domain.
    pub epochs: u64,
    /// Nanoseconds of its domain's time.
    pub now_ns: u64,
    /// Calls of its components that have succeeded.
    pub calls: u64,
    /// Its ticks.
    pub ticks: u64,
    /// Ticks that took too long.
    pub overruns: u64,
    /// Ticks that were left out.
    pub skipped: u64,
    /// Messages to its components that were lost, one way or another, or refused.
    pub drops: u64,
}

/// What was put down of a run.
pub(crate) struct Live {
    /// For each domain, what it was asked for and has not put down.
    asked: Vec<AtomicU8>,
    /// What anybody has ever asked for.
    ever_asked: AtomicU8,
    lanes: Mutex<Vec<LiveLane>>,
    /// For each domain.
    metrics: Mutex<Vec<Metrics>>,
}

const LANES: u8 = 1;
const METRICS: u8 = 2;

impl Live {
    pub(crate) fn new(plan: &Plan, n_domains: usize) -> Self {
        let lane = |id: &str| LiveLane { lane: id.into(), ..LiveLane::default() };
        Self {
            asked: (0..n_domains).map(|_| AtomicU8::new(0)).collect(),
            ever_asked: AtomicU8::new(0),
            lanes: Mutex::new(plan.lanes.iter().map(|one| lane(&one.spec.id)).collect()),
            metrics: Mutex::new(vec![Metrics::default(); n_domains]),
        }
    }

    /// Where the lanes stood.
    pub(crate) fn lanes(&self) -> Vec<LiveLane> {
        self.ask(LANES);
        lock(&self.lanes).clone()
    }

    /// All numbers, as they stood.
    pub(crate) fn metrics(&self) -> Metrics {
        self.ask(METRICS);
        let mut all = Metrics::default();
        for one in &*lock(&self.metrics) {
            all.add(one);
        }
        all
    }

    fn ask(&self, what: u8) {
        for asked in &self.asked {
            // Relaxed: a wish that is seen an epoch later is soon enough.
            asked.fetch_or(what, Ordering::Relaxed);
        }
        self.ever_asked.fetch_or(what, Ordering::Relaxed);
    }

    /// Whether a domain was asked for anything.
    #[inline]
    pub(crate) fn is_asked(&self, domain: usize) -> bool {
        // Relaxed: as above.
        self.asked[domain].load(Ordering::Relaxed) != 0
    }

    /// A domain puts down where it stands.
    #[cold]
    pub(crate) fn put(&self, domain: &Domain) {
        // Relaxed: as above.
        let asked = self.asked[domain.index].swap(0, Ordering::Relaxed);
        self.publish_parts(domain, asked);
    }

    /// A domain has ended, and puts down how: nobody will ask it again.
    pub(crate) fn publish_final(&self, domain: &Domain) {
        // Relaxed: who asks first when all is over has the report.
        self.publish_parts(domain, self.ever_asked.load(Ordering::Relaxed));
    }

    fn publish_parts(&self, domain: &Domain, asked: u8) {
        if asked & LANES != 0 {
            let mut lanes = lock(&self.lanes);
            for clock in &domain.lanes.list {
                let shown = &mut lanes[clock.lane];
                shown.epochs = domain.state.env.epoch;
                shown.now_ns = domain.state.env.now_ns;
                shown.ticks = clock.counts.ticks;
                shown.overruns = clock.counts.overruns;
                shown.skipped = clock.counts.skipped;
                (shown.calls, shown.drops) = (0, 0);
            }
            for region in domain.state.regions.iter().map(RegionCell::lock) {
                let shown = &mut lanes[region.lane];
                shown.calls += region.nodes.iter().map(|node| node.counts.executions).sum::<u64>();
                for counts in region.channels.iter().map(|channel| channel.counters()) {
                    shown.drops += counts.drop_count
                        + counts.overwrite_count
                        + counts.stale_drop_count
                        + counts.reject_count;
                }
                let edges = region.nodes.iter().flat_map(|node| node.outbox.edges());
                shown.drops += edges.map(|edge| edge.n_refused).sum::<u64>();
            }
        }
        if asked & METRICS != 0 {
            let domains = core::slice::from_ref(domain);
            let found = collect::collect(&domain.shared, domains, &LifecycleCounts::default());
            lock(&self.metrics)[domain.index] = found;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
